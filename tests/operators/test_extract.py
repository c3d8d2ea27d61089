from __future__ import annotations

import datetime
import json
from typing import Literal

import pandas as pd
import pydantic
import pytest
from scripted import Scripted, shown_rows

import tagframe as tf
from tagframe.errors import ColumnNotFound, InvalidArgument, RowsFailed
from tagframe.operators import sem_extract

FRAME = pd.DataFrame({"text": ["Great film, saw it in 1998.", "Dull.", None], "stars": [5, 1, 2]}, index=[3, 3, 0])
WANTED = {"mood": "good or bad", "year": None}


def reading(message: str) -> str:
    text = shown_rows(message)[-1]["text"]
    return json.dumps({"mood": "good" if "Great" in text else "bad", "year": 1998 if "1998" in text else None})


def test_columns_of_what_rows_say():
    before = FRAME.copy(deep=True)
    lm = Scripted(reading)
    result = sem_extract(FRAME, ["text"], WANTED, lm=lm)
    assert result[["mood", "year"]].to_numpy(dtype=object, na_value=None).tolist() == [
        ["good", "1998"],
        ["bad", None],
        [None, None],
    ]
    assert [str(dtype) for dtype in result.dtypes[2:]] == ["string", "string"]
    assert result.tag.outcomes["outcome"].tolist() == ["answered", "answered", "null"]
    assert all("stars" not in message for message in lm.asked)
    assert "good or bad" in str(lm.prompts[0].messages[0].content)
    pd.testing.assert_frame_equal(FRAME, before)
    assert sem_extract(FRAME, "text", WANTED, lm=lm).equals(result)


def test_quotes_are_words_of_the_row():
    answer = {"mood": "good", "year": "1998", "mood_quote": "great  FILM", "year_quote": "the year 1998"}
    result = sem_extract(FRAME.head(1), "text", WANTED, extract_quotes=True, lm=Scripted(lambda _: json.dumps(answer)))
    assert result["mood_quote"].tolist() == ["great  FILM"]
    assert result["year_quote"].isna().tolist() == [True], "the row does not say that"
    assert result.tag.outcomes["note"].tolist() == ["not in the row, and left out: year_quote"]


def test_explanations():
    lm = Scripted(lambda message: f"It says so.\nAnswer: {reading(message)}")
    result = sem_extract(FRAME.head(2), "text", WANTED, return_explanations=True, lm=lm)
    assert result["explanation_extract"].tolist() == ["It says so."] * 2


@pytest.mark.parametrize("answer", ["good", "[]", '{"mood": "good"}', '{"mood": ["good"], "year": null}', ""])
def test_what_is_no_such_object_is_a_failed_row(answer):
    with pytest.raises(RowsFailed) as caught:
        sem_extract(FRAME.head(1), "text", WANTED, lm=Scripted(lambda _: answer))
    assert caught.value.frame["extract_error"].notna().all()


def test_bad_arguments_cost_nothing():
    lm = Scripted(reading)
    for options in ({}, [], "mood", [3], {"mood": 3}, {"mood": ["good"]}, {"mood": dict}, {1: "a"}, {" ": "a"}, None):
        with pytest.raises(InvalidArgument, match="output_cols"):
            sem_extract(FRAME, "text", options, lm=lm)  # type: ignore[arg-type]
    with pytest.raises(ColumnNotFound, match="did you mean 'text'"):
        sem_extract(FRAME, ["txet"], WANTED, lm=lm)
    with pytest.raises(InvalidArgument, match="names no column"):
        sem_extract(FRAME, [], WANTED, lm=lm)
    with pytest.raises(InvalidArgument, match="already has a column 'stars'; rename it"):
        sem_extract(FRAME, "text", {"stars": None}, lm=lm)
    assert lm.asked == []


def test_names_types_and_models():
    def say(answer: dict[str, object]) -> Scripted:
        return Scripted(lambda _: json.dumps(answer))

    one = FRAME.head(1)
    assert sem_extract(one, "text", ["mood"], lm=say({"mood": "good"}))["mood"].tolist() == ["good"]
    wanted = {"mood": ["good", "bad"], "year": int, "seen": bool, "on": datetime.date, "share": float, "by": None}
    lm = say({"mood": "Good", "year": "1,998", "seen": True, "on": "1998-05-17", "share": None, "by": "me"})
    result = sem_extract(one, "text", wanted, lm=lm)
    assert result.iloc[0, 2:].tolist()[:3] == ["good", 1998, True]
    assert result["on"].dt.year.tolist() == [1998]
    assert result["share"].isna().all()
    assert [str(dtype) for dtype in result.dtypes[2:]] == [
        "string", "Int64", "boolean", "datetime64[s]", "Float64", "string"
    ]  # fmt: skip
    assert '"year": year, as one whole number' in str(lm.prompts[0].messages[0].content)
    for wrong in ({"mood": "so so"}, {"year": "MCM"}, {"seen": "perhaps"}, {"on": "May"}, {"share": [1]}):
        answer = dict.fromkeys(wanted) | wrong
        kept = sem_extract(one, "text", wanted, on_error="keep", lm=say(answer))
        assert next(iter(wrong)) in kept["extract_error"].iloc[0]

    class Film(pydantic.BaseModel):
        mood: Literal["good", "bad"]
        year: int | None

    found = sem_extract(one, "text", Film, lm=say({"mood": "good", "year": 1998}))
    assert found[["mood", "year"]].to_numpy().tolist() == [["good", 1998]]
    packed = pd.DataFrame({"text": [f"Film {number}" for number in range(8)]})
    lm = Scripted(lambda message: "\n".join(f'{n}: {{"mood": "bad", "year": null}}' for n in range(1, 9))
                  if message.startswith("<rows>") else '{"mood": "bad", "year": null}')  # fmt: skip
    assert (sem_extract(packed, "text", Film, rows_per_call=8, lm=lm)["mood"] == "bad").all()
    with pytest.raises(InvalidArgument, match="extract_quotes= needs names"):
        sem_extract(one, "text", Film, extract_quotes=True, lm=lm)
    with pytest.raises(InvalidArgument, match="pydantic model class"):
        sem_extract(one, "text", int, lm=lm)


def test_columns_of_any_label():
    frame = pd.DataFrame([["Great film", 1]], columns=pd.MultiIndex.from_tuples([("a", "text"), ("b", "n")]))
    lm = Scripted(lambda _: '{"mood": "good", "year": null}')
    assert tf.sem_extract(frame, ("a", "text"), WANTED, lm=lm).iloc[0, 2] == "good"
    assert shown_rows(lm.asked[0]) == [{"a.text": "Great film"}]
    assert sem_extract(pd.DataFrame({7: ["Great"]}), [7], WANTED, lm=lm)["mood"].tolist() == ["good"]
