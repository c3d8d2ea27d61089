from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import Scripted, shown_rows

from tagframe.errors import ContextTooLong, FactUnknown, InvalidArgument, RowsChanged, RowsFailed
from tagframe.operators import sem_agg
from tagframe.operators.aggregate import PROMPT_CHARACTERS, pack_parts


def tell(message: str) -> str:
    """The numbers that the rows hold; of partial answers, all of theirs."""
    rows = shown_rows(message)
    if not rows:
        lines = message.split("\n")
        return " ".join(line.strip('"') for line in lines[1 : lines.index("</answers>")])
    if any(row["n"] == 13 for row in rows):
        return " "
    return " ".join(str(row["n"]) for row in rows)


def test_one_text_from_all_rows():
    lm = Scripted(tell)
    result = sem_agg(pd.DataFrame({"n": [1, 2, 3], "x": "y"}), "List every {n}", lm=lm)
    assert result.to_dict("list") == {"_output": ["1 2 3"]}
    assert shown_rows(lm.asked[0]) == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_all_cols_and_no_named_column_show_everything():
    frame = pd.DataFrame({"n": [1], "x": ["y"]})
    for instruction, all_cols in [("List every {n}", True), ("List everything", False)]:
        lm = Scripted(tell)
        sem_agg(frame, instruction, lm=lm, all_cols=all_cols)
        assert shown_rows(lm.asked[0]) == [{"n": 1, "x": "y"}]


def test_many_rows_are_answered_in_parts_and_nothing_is_left_out():
    frame = pd.DataFrame({"n": range(100, 140), "text": "x" * (PROMPT_CHARACTERS // 10)})
    lm = Scripted(tell)
    result = sem_agg(frame, "List {n} and {text}", lm=lm)
    assert result["_output"].iloc[0] == " ".join(map(str, range(100, 140)))
    assert [len(one) for one in lm.batches] == [5, 1]


def test_a_row_of_ten_megabytes_is_shown_whole():
    frame = pd.DataFrame({"n": [1, 2, 3], "text": ["a", "b" * 10_000_000, "c"]})
    lm = Scripted(tell)
    assert sem_agg(frame, "List {n} and {text}", lm=lm)["_output"].iloc[0] == "1 2 3"
    assert sum(len(row["text"]) for message in lm.batches[0] for row in shown_rows(message)) == 10_000_002


def test_groups_come_in_order_of_appearance_and_are_asked_at_once():
    frame = pd.DataFrame({"g": ["b", "a", "b", None], "n": [1, 2, 3, 4]})
    lm = Scripted(tell)
    result = sem_agg(frame, "List every {n}", lm=lm, group_by=["g"])
    assert result["_output"].tolist() == ["1 3", "2", "4"]
    assert result["g"].tolist()[:2] == ["b", "a"]
    assert result["g"].isna().tolist() == [False, False, True]
    assert len(lm.asked) == 3


def test_nothing_to_say():
    lm = Scripted(tell)
    assert sem_agg(pd.DataFrame({"n": []}), "List {n}", lm=lm)["_output"].isna().tolist() == [True]
    assert sem_agg(pd.DataFrame({"n": [None]}), "List {n}", lm=lm)["_output"].isna().tolist() == [True]
    assert len(sem_agg(pd.DataFrame({"n": [], "g": []}), "List {n}", lm=lm, group_by="g")) == 0
    assert lm.asked == []


def test_a_failed_group_is_one_failed_group():
    frame = pd.DataFrame({"g": ["a", "b", "c"], "n": [1, 13, 3]})
    with pytest.raises(RowsFailed, match="sem_agg: 1 of 3 groups have no answer") as caught:
        sem_agg(frame, "List {n}", lm=Scripted(tell), group_by="g")
    assert caught.value.frame["_output"].isna().tolist() == [False, True, False]
    kept = sem_agg(frame, "List {n}", lm=Scripted(tell), group_by="g", on_error="keep")
    assert kept["output_error"].isna().tolist() == [True, False, True]
    dropped = sem_agg(frame, "List {n}", lm=Scripted(tell), group_by="g", on_error="drop")
    assert dropped.to_dict("list") == {"g": ["a", "c"], "_output": ["1", "3"]}


def test_sources_are_the_rows_behind_each_answer():
    frame = pd.DataFrame(
        {"id": [10, 11, 12, 13, 14], "g": list("abaca"), "n": [1, 2, None, 13, 5]}, index=[5, 5, 6, 7, 8]
    )
    result = sem_agg(frame, "List {n}", lm=Scripted(tell), group_by="g", on_error="keep")
    sources = result.tag.sources
    assert sources["answer"].tolist() == [0, 0, 1], "null rows were not shown, and no answer has no sources"
    assert (sources["id"].tolist(), sources.index.tolist()) == ([10, 14, 11], [5, 8, 5])
    assert list(sources.columns) == ["answer", "id", "g", "n"]
    assert result.tag.outcomes.to_dict("index")["c"]["outcome"] == "failed"
    assert result.tag.outcomes["outcome"].to_dict() == {"a": "answered", "b": "answered", "c": "failed"}
    with pytest.raises(RowsChanged):
        _ = result.sort_values("g", ascending=False).tag.sources
    dropped = sem_agg(frame.iloc[::-1], "List {n}", lm=Scripted(tell), group_by="g", on_error="drop")
    assert dropped.tag.sources.merge(dropped[["g"]], left_on="answer", right_index=True).eval("g_x == g_y").all()


def test_sources_of_one_answer():
    frame = pd.DataFrame({"n": [1, 2], "answer": ["mine", "yours"]})
    result = sem_agg(frame, "List {n}", lm=Scripted(tell))
    assert result.tag.sources.to_dict("list") == {"answer_": [0, 0], "n": [1, 2], "answer": ["mine", "yours"]}
    assert result.tag.outcomes.to_dict("list")["outcome"] == ["answered"]
    with pytest.raises(FactUnknown):
        _ = frame.tag.sources


def narrow(limit: int) -> Callable[[str], str]:
    """A model that takes prompts of so many bytes."""

    def answer(message: str) -> str:
        if len(message.encode()) > limit:
            raise ContextTooLong(f"maximum context length is {limit} bytes", 400)
        return tell(message)

    return answer


@pytest.mark.parametrize("window", [None, 1_000])
def test_packs_shrink_to_the_models_window(window: int | None):
    frame = pd.DataFrame({"n": range(100, 200), "text": "é" * 20})
    lm = Scripted(narrow(1_600))
    lm.context_window = window
    result = sem_agg(frame, "List {n} and {text}", lm=lm)
    assert result["_output"].iloc[0] == " ".join(map(str, range(100, 200)))
    assert result.tag.outcomes["outcome"].tolist() == ["answered"]
    assert any(len(message.encode()) > 1_600 for message in lm.asked) == (window is None)


@pytest.mark.parametrize("window", [None, 1_000])
def test_a_row_that_alone_is_too_long_is_cut_and_its_outcome_says_so(window: int | None):
    frame = pd.DataFrame({"g": ["a", "a", "a", "b"], "n": [1, 2, 3, 4], "text": ["x", "y" * 9_000, "z", "w"]})
    lm = Scripted(narrow(1_600))
    lm.context_window = window
    result = sem_agg(frame, "List {n} and {text}", lm=lm, group_by="g")
    assert result["_output"].tolist() == ["1 2 3", "4"]
    assert result.tag.outcomes["outcome"].tolist() == ["cut", "answered"]
    assert any(row["text"].endswith("y … (cut)") for message in lm.asked for row in shown_rows(message))


def test_a_model_that_takes_nothing_fails_the_group():
    with pytest.raises(RowsFailed, match="ContextTooLong"):
        sem_agg(pd.DataFrame({"n": range(100, 130)}), "List {n}", lm=Scripted(narrow(10)))


def test_reasoning_is_no_part_of_the_text():
    lm = Scripted(lambda message: "<think>Rows 1 and 2.</think>\nOne and two.")
    assert sem_agg(pd.DataFrame({"n": [1, 2]}), "List {n}", lm=lm)["_output"].tolist() == ["One and two."]


def test_groups_by_cells_that_cannot_be_hashed():
    frame = pd.DataFrame({"n": [1, 2, 3], "g": [["x"], {"y": 1}, ["x"]]})
    result = sem_agg(frame, "List {n}", lm=Scripted(tell), group_by="g")
    assert result.to_dict("list") == {"g": [["x"], {"y": 1}], "_output": ["1 3", "2"]}


def test_a_group_column_called_like_the_output():
    frame = pd.DataFrame({"_output": ["a"], "n": [1]})
    with pytest.raises(InvalidArgument, match="already has a column '_output'"):
        sem_agg(frame, "List {n}", lm=Scripted(tell), group_by="_output")


@given(st.lists(st.text(max_size=12), max_size=30), st.integers(1, 40))
def test_packs_hold_every_part_once_and_shrink(parts, limit):
    packs = pack_parts(parts, limit)
    assert [part for pack in packs for part in pack] == parts
    assert len(packs) < len(parts) or len(parts) < 2
