from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Scripted, shown_rows

from tagframe.errors import AnswerRejected, ColumnNotFound, InvalidArgument, RowsFailed, RunStopped
from tagframe.operators import sem_topk
from tagframe.operators.topk import PIVOTS_TRIED, parse_choice


def larger(message: str) -> str:
    """The row with the larger n; 13 gets nonsense."""
    a, b = (row["n"] for row in shown_rows(message))
    if 13 in (a, b):
        return "Both."
    return "A" if a > b else "B"


@settings(max_examples=60)
@given(st.lists(st.integers(0, 50).filter(lambda n: n != 13), max_size=40), st.integers(1, 12))
def test_ranks_as_a_sort_would(numbers, k):
    """Equal rows stay in their order, and the index is kept."""
    frame = pd.DataFrame({"n": pd.Series(numbers, dtype="int64")})
    result = sem_topk(frame, "Which {n} is largest?", k, lm=Scripted(larger))
    expected = frame.sort_values("n", ascending=False, kind="stable").head(k)
    pd.testing.assert_frame_equal(result, expected)


def test_the_same_call_asks_the_same():
    frame = pd.DataFrame({"n": [100 + (i * 37) % 101 for i in range(100)]})
    first, second = Scripted(larger), Scripted(larger)
    sem_topk(frame, "Which {n} is largest?", 5, lm=first)
    sem_topk(frame, "Which {n} is largest?", 5, lm=second)
    assert first.batches == second.batches
    assert len(first.batches) < 15
    assert len(first.asked) < 400


def test_rows_that_look_the_same_are_compared_once():
    frame = pd.DataFrame({"n": [1, 2] * 50, "id": range(100)})
    lm = Scripted(larger)
    result = sem_topk(frame, "Which {n} is largest?", 60, lm=lm)
    assert result["id"].tolist() == [*range(1, 100, 2), *range(0, 20, 2)]
    assert len(lm.asked) == 1


def test_challengers_take_turns_in_the_first_place():
    lm = Scripted(larger)
    sem_topk(pd.DataFrame({"n": range(9)}), "Which {n} is largest?", 1, lm=lm)
    firsts = [shown_rows(message)[0]["n"] for message in lm.batches[0]]
    assert firsts.count(4) == 4


def test_groups():
    frame = pd.DataFrame({"n": [1, 5, 3, 9, 7, 8], "g": ["x", "y", "x", "y", None, None]})
    result = sem_topk(frame, "Which {n} is largest?", 1, lm=Scripted(larger), group_by="g")
    assert result["n"].tolist() == [3, 9, 8]
    assert sem_topk(frame, "Which {n} is largest?", 1, lm=Scripted(larger), group_by=["g"]).equals(result)
    with pytest.raises(ColumnNotFound):
        sem_topk(frame, "Which {n} is largest?", 1, lm=Scripted(larger), group_by="h")


def test_null_rows_come_last_unasked():
    frame = pd.DataFrame({"n": [None, 3.0, None, 4.0]})
    lm = Scripted(larger)
    assert sem_topk(frame, "Which {n} is largest?", 3, lm=lm).index.tolist() == [3, 1, 0]
    assert len(lm.asked) == 1


def test_failed_rows():
    frame = pd.DataFrame({"n": [1, 13, 2, 3]})
    with pytest.raises(RowsFailed, match="sem_topk: 1 of 4 rows have no answer") as caught:
        sem_topk(frame, "Which {n} is largest?", 2, lm=Scripted(larger))
    assert caught.value.frame["n"].tolist() == [3, 2, 13]
    kept = sem_topk(frame, "Which {n} is largest?", 2, lm=Scripted(larger), on_error="keep")
    assert kept["topk_error"].isna().tolist() == [True, True, False]
    assert sem_topk(frame, "Which {n} is largest?", 2, lm=Scripted(larger), on_error="drop")["n"].tolist() == [3, 2]


def test_the_order_of_arrival_changes_neither_the_result_nor_what_is_asked():
    frame = pd.DataFrame({"n": [1000 + (i * 37) % 101 for i in range(100)], "g": ["x", "y"] * 50})
    plain = Scripted(larger)
    expected = sem_topk(frame, "Which {n} is largest?", 7, lm=plain, group_by="g")
    for seed in range(10):
        lm = Scripted(larger, shuffle=random.Random(seed))
        pd.testing.assert_frame_equal(sem_topk(frame, "Which {n} is largest?", 7, lm=lm, group_by="g"), expected)
        assert sorted(lm.asked) == sorted(plain.asked)


def test_the_order_of_arrival_does_not_matter_with_failures_either():
    frame = pd.DataFrame({"n": [i if i % 11 else 13 for i in range(100, 160)], "id": range(60)})
    expected = sem_topk(frame, "Which of {n} and {id} is largest?", 9, lm=Scripted(larger), on_error="keep")
    assert expected["topk_error"].notna().sum() == 5
    for seed in range(10):
        lm = Scripted(larger, shuffle=random.Random(seed))
        result = sem_topk(frame, "Which of {n} and {id} is largest?", 9, lm=lm, on_error="keep")
        pd.testing.assert_frame_equal(result, expected)


def test_a_pivot_that_cannot_be_compared_is_set_aside_alone():
    """The first pivot is the row in the middle."""
    numbers = [*range(100, 150), 13, *range(150, 200)]
    frame = pd.DataFrame({"n": numbers})
    with pytest.raises(RowsFailed, match="sem_topk: 1 of 101 rows have no answer; the first is number 50") as caught:
        sem_topk(frame, "Which {n} is largest?", 3, lm=Scripted(larger))
    assert caught.value.frame["n"].tolist() == [199, 198, 197, 13]
    assert caught.value.frame.tag.outcomes["outcome"].value_counts().to_dict() == {
        "left out": 97,
        "kept": 3,
        "failed": 1,
    }


def test_a_row_that_cannot_be_compared_is_never_the_best():
    frame = pd.DataFrame({"n": [1, 13, 2]})
    assert sem_topk(frame, "Which {n} is largest?", 1, lm=Scripted(larger), on_error="drop")["n"].tolist() == [2]
    both = pd.DataFrame({"n": [1, 13]})
    assert len(sem_topk(both, "Which {n} is largest?", 1, lm=Scripted(larger), on_error="drop")) == 0


def test_where_nothing_can_be_compared_it_ends_soon():
    lm = Scripted(lambda message: "Both.")
    kept = sem_topk(pd.DataFrame({"n": range(100)}), "Which {n} is largest?", 3, lm=lm, on_error="keep")
    assert kept["topk_error"].notna().all()
    assert len(lm.asked) < 100 * (PIVOTS_TRIED + 1)


def test_a_run_that_has_stopped_fails_no_pivot_after_another():
    def stopped(message: str) -> str:
        raise RunStopped("not sent")

    lm = Scripted(stopped)
    assert len(sem_topk(pd.DataFrame({"n": range(100)}), "{n}", 3, lm=lm, on_error="drop")) == 0
    assert len(lm.asked) == 99


def test_outcomes():
    frame = pd.DataFrame({"n": [1, None, 3, 13, 2]}, index=list("abcde"))
    result = sem_topk(frame, "Which {n} is largest?", 2, lm=Scripted(larger), on_error="drop")
    assert result.tag.outcomes["outcome"].to_dict() == {
        "a": "left out",
        "b": "null",
        "c": "kept",
        "d": "failed",
        "e": "kept",
    }
    assert list(result.tag.outcomes.columns) == ["outcome", "error", "note"]


def test_groups_by_cells_that_cannot_be_hashed():
    frame = pd.DataFrame({"n": [1, 5, 3], "g": [["x"], ["y"], ["x"]]})
    assert sem_topk(frame, "Which {n} is largest?", 1, lm=Scripted(larger), group_by="g")["n"].tolist() == [3, 5]


def test_k_may_be_numpys():
    frame = pd.DataFrame({"n": [1, 5, 3]})
    assert sem_topk(frame, "Which {n} is largest?", np.int64(2), lm=Scripted(larger))["n"].tolist() == [5, 3]


def test_an_empty_frame():
    lm = Scripted(larger)
    assert len(sem_topk(pd.DataFrame({"n": []}), "Which {n} is largest?", 3, lm=lm)) == 0
    assert lm.batches == []


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "3"])
def test_k_is_a_positive_whole_number(k):
    with pytest.raises(InvalidArgument, match="K is the number of rows to keep"):
        sem_topk(pd.DataFrame({"n": [1]}), "{n}", k, lm=Scripted(larger))


@pytest.mark.parametrize(
    ("text", "choice"), [("A", "A"), (" b.", "B"), ("Answer: A", "A"), ("Row B", "B"), ("(a)", "A")]
)
def test_choices(text, choice):
    assert parse_choice(text) == choice


@pytest.mark.parametrize("text", ["", "C", "A or B", "A B", "Apple", "neither"])
def test_no_choice(text):
    with pytest.raises(AnswerRejected, match="expected A or B"):
        parse_choice(text)
