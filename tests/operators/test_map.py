from __future__ import annotations

import datetime
import enum
import json
from typing import Literal

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel, Field
from scripted import Scripted, shown_rows

import tagframe as tf
from tagframe.errors import AnswerRejected, ColumnNotFound, InvalidArgument, NotKnown, RowsFailed
from tagframe.operators import sem_map, sem_score
from tagframe.operators.values import parse_choice

FRAME = pd.DataFrame({"n": pd.array([4, 1, 4, None], dtype="Int64"), "day": list("abcd")}, index=[7, 7, 3, 0])


def answering(*texts: str) -> Scripted:
    """Answers the texts in turn."""
    left = list(texts)
    return Scripted(lambda message: left.pop(0))


def test_a_text_for_each_row_beside_the_frame_as_it_is():
    before = FRAME.copy(deep=True)
    lm = Scripted(lambda message: f"number {shown_rows(message)[-1]['n']}")
    result = sem_map(FRAME, "The name of {n}", lm=lm)
    pd.testing.assert_frame_equal(result.drop(columns="_map"), before)
    pd.testing.assert_frame_equal(FRAME, before)
    assert result["_map"].dtype == "string"
    assert result["_map"].tolist() == ["number 4", "number 1", "number 4", pd.NA]
    assert result.tag.outcomes["outcome"].tolist() == ["answered", "answered", "answered", "null"]
    assert len(lm.asked) == 3, "a null row is not asked about"


@pytest.mark.parametrize(
    ("dtype", "answer", "value", "column"),
    [
        (float, "1,234.5", 1234.5, "Float64"),
        ("number", "**-3e2**", -300.0, "Float64"),
        (int, "Answer: 12.", 12, "Int64"),
        ("Int32", "12", 12, "Int32"),
        ("float64", "0.5", 0.5, "Float64"),
        (bool, "Yes.", True, "boolean"),
        (datetime.date, "1066-10-14", pd.Timestamp("1066-10-14").as_unit("s"), "datetime64[s]"),
        ("datetime64[ns]", "2024-02-29", pd.Timestamp("2024-02-29"), "datetime64[ns]"),
        ("text", "two\nlines", "two\nlines", "string"),
    ],
)
def test_types(dtype, answer, value, column):
    result = sem_map(FRAME.head(1), "What of {n}?", dtype=dtype, lm=answering(answer))
    assert str(result["_map"].dtype) == column
    assert result["_map"].iloc[0] == value


@pytest.mark.parametrize("dtype", [str, float, int, bool, datetime.date])
@pytest.mark.parametrize("answer", ["Unknown", "unknown.", "**Unknown**", "Answer: Unknown"])
def test_unknown_is_unsure_and_no_value(dtype, answer):
    result = sem_map(FRAME.head(1), "What of {n}?", dtype=dtype, lm=answering(answer))
    assert result["_map"].isna().tolist() == [True]
    assert result.tag.outcomes["outcome"].tolist() == ["unsure"]


def test_words_of_doubt_are_unsure_but_where_any_text_is_a_value():
    for dtype in (float, bool, datetime.date):
        result = sem_map(FRAME.head(1), "{n}", dtype=dtype, lm=answering("It cannot be determined from the row."))
        assert result.tag.outcomes["outcome"].tolist() == ["unsure"]
    assert sem_map(FRAME.head(1), "{n}", lm=answering("It depends."))["_map"].tolist() == ["It depends."]


@pytest.mark.parametrize(
    ("dtype", "answer"),
    [
        (float, "about 7"), (float, "7 or 8"), (float, "3,5"), (float, "$5"), (float, "nan"), (float, "."),
        (float, "1e999"), (int, "7.5"), (int, "9" * 30), ("Int8", "300"), (bool, "1"),
        (datetime.date, "14 October 1066"), (datetime.date, "2023-02-29"), (datetime.date, "2024-01-01T00:00:00Z"),
        (str, " "), (str, "<think>well"),
    ],
)  # fmt: skip
def test_what_is_no_value_of_the_type_is_a_failed_row(dtype, answer):
    kept = sem_map(FRAME.head(1), "What of {n}?", dtype=dtype, on_error="keep", lm=answering(answer))
    assert kept["_map"].isna().tolist() == [True]
    assert "AnswerRejected" in kept["map_error"].iloc[0]
    with pytest.raises(RowsFailed, match="sem_map: 1 of 1 rows"):
        sem_map(FRAME.head(1), "What of {n}?", dtype=dtype, lm=answering(answer))


def test_choices_are_as_they_are_written():
    options = ["C", "C#", "C++", "Visual Basic"]
    for text, value in {
        "c": "C",
        "**C#**": "C#",
        "C++.": "C++",
        "It is old.\nAnswer: 'visual basic'": "Visual Basic",
    }.items():
        assert parse_choice(text, options) == value
    for text in ("", "C or C#", "B", "Visual", "C #"):
        with pytest.raises(AnswerRejected, match="expected one of"):
            parse_choice(text, options)
    assert parse_choice("a", ["A", "a"]) == "a"
    result = sem_map(FRAME.head(2), "What of {n}?", choices=["odd", "unknown"], lm=answering("odd", "Unknown"))
    assert result["_map"].tolist() == ["odd", "unknown"], "a choice is a choice"
    assert result["_map"].dtype == "string"


class Mood(enum.Enum):
    GOOD = "good"
    BAD = "bad"


class Review(BaseModel):
    mood: Mood
    stars: int | None = Field(ge=1, le=5)
    share: float
    seen: datetime.date
    recommended: bool
    source: Literal["paper", "radio"]
    actors: list[str]


def test_the_fields_of_a_model_are_columns():
    answer = {
        "mood": "good", "stars": None, "share": 0.5, "seen": "2024-05-17", "recommended": True, "source": "radio",
        "actors": ["Ana"],
    }  # fmt: skip
    lm = answering(f"```json\n{json.dumps(answer)}\n```", "Unknown")
    result = sem_map(FRAME.head(2), "The review of {n}", response_format=Review, lm=lm)
    assert list(result.columns) == ["n", "day", *answer]
    types = ["string", "Int64", "Float64", "datetime64[s]", "boolean", "string", "object"]
    assert [str(dtype) for dtype in result.dtypes[2:]] == types
    assert result.iloc[0, 2:].tolist() == [
        "good", pd.NA, 0.5, pd.Timestamp("2024-05-17"), True, "radio", ["Ana"],
    ]  # fmt: skip
    assert result.iloc[1, 2:].isna().all()
    assert result.tag.outcomes["outcome"].tolist() == ["answered", "unsure"]
    bad = json.dumps(answer | {"stars": 9})
    kept = sem_map(FRAME.head(1), "{n}", response_format=Review, on_error="keep", lm=answering(bad))
    assert "stars: Input should be less than or equal to 5" in kept["map_error"].iloc[0]


def test_explanations_stand_before_the_value():
    lm = answering("Warm words.\n\n**Answer:** 0.9", "I cannot see it.\nAnswer: Unknown")
    result = sem_map(FRAME.head(2), "How warm is {n}?", dtype=float, return_explanations=True, lm=lm)
    assert result["_map"].tolist() == [0.9, pd.NA]
    assert result["explanation_map"].tolist() == ["Warm words.", "I cannot see it."]


def test_scores_are_from_0_to_1():
    lm = answering("0.25", "1", "Unknown")
    result = sem_score(FRAME.assign(n=[4, 1, 5, None]), "How odd is {n}?", lm=lm)
    assert str(result["_score"].dtype) == "Float64"
    assert result["_score"].tolist() == [0.25, 1.0, pd.NA, pd.NA]
    kept = sem_score(FRAME.head(1), "How odd is {n}?", lm=answering("7"), on_error="keep")
    assert "from 0 to 1" in kept["score_error"].iloc[0]


def test_bad_arguments_cost_nothing():
    lm = answering()
    refused = {
        "one of dtype= and choices=": {"dtype": str, "choices": ["a", "b"]},
        "dtype must be one of": {"dtype": "complex128"},
        "dtype must be one of str": {"dtype": list},
        "choices must be a list of texts": {"choices": [1, 2]},
        "choices must be two or more different texts": {"choices": ["a", "a"]},
        "response_format must be a pydantic model": {"response_format": {"type": "object"}},
        "already has a column 'day'": {"suffix": "day"},
        "on_error must be one of": {"on_error": "ignore"},
    }
    for reason, options in refused.items():
        with pytest.raises(InvalidArgument, match=reason):
            sem_map(FRAME, "{n}", lm=lm, **options)
    with pytest.raises(InvalidArgument, match="already has a column 'mood'; rename it"):
        sem_map(FRAME.rename(columns={"day": "mood"}), "{n}", response_format=Review, lm=lm)
    assert lm.asked == []


def test_an_empty_frame_has_the_columns_and_their_types():
    empty = FRAME.head(0)
    assert str(sem_map(empty, "{n}", dtype=int, lm=answering())["_map"].dtype) == "Int64"
    assert str(sem_score(empty, "{n}", lm=answering())["_score"].dtype) == "Float64"
    assert list(sem_map(empty, "{n}", response_format=Review, lm=answering()).columns)[2:] == list(Review.model_fields)


def test_over_http_what_is_alike_is_paid_once_and_a_quote_knows(live):
    frame = pd.DataFrame({"word": ["sea", "sky", "sea", None, np.nan]})
    options = {"dtype": int, "return_explanations": True}
    quote = frame.tag.sem_map("Letters of {word}", **options, quote=True)
    live.answers = "Counted.\nAnswer: 3"
    result = tf.sem_map(frame, "Letters of {word}", **options)
    assert result["_map"].tolist() == [3, 3, 3, pd.NA, pd.NA]
    assert len(live.requests) == quote.calls == 2
    assert frame.tag.sem_score("How long is {word}?", quote=True).calls == 2
    whole = frame.tag.sem_map("{word}", response_format=Review, quote=True)
    assert (whole.whole, whole.calls) == (True, 2)


def test_a_repaired_value_counts(live):
    live.answers = lambda request: "0.5" if len(request.messages) > 2 else "half"
    assert pd.DataFrame({"a": [1]}).tag.sem_score("How odd is {a}?")["_score"].tolist() == [0.5]


def test_one_fact_is_asked_once_for_all_rows():
    lm = answering("1869", "9")
    ships = pd.DataFrame({"launched": [1859, 1869, 1912]})
    with tf.context(lm=lm):
        opened = tf.known("the year in which {what} was opened", int, what="the Suez Canal")
        assert ships[ships["launched"] < opened].index.tolist() == [0]
        assert tf.known("how many {things} there are", things="muses") == "9"
    assert len(lm.asked) == 2
    assert shown_rows(lm.asked[0])[-1] == {"what": "the Suez Canal"}


def test_a_fact_that_the_model_does_not_know_is_no_value():
    with tf.context(lm=answering("UNKNOWN", "no number")):
        with pytest.raises(NotKnown, match=r"does not know 'the height of \{whom\}' for \{'whom': 'Bo'\}"):
            tf.known("the height of {whom}", float, whom="Bo")
        with pytest.raises(InvalidArgument, match="say what the fact is about"):
            tf.known("the height of Bo")
        with pytest.raises(ColumnNotFound):
            tf.known("the height of {whom}", person="Bo")
