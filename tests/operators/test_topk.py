from __future__ import annotations

import random
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Scripted

from tagframe.errors import BudgetExceeded, ColumnNotFound, ContextTooLong, InvalidArgument, RowsFailed, RunStopped
from tagframe.operators import sem_topk
from tagframe.operators.topk import MAX_LIST_ROW_BYTES, MAX_LIST_ROWS


def numbers(message: str) -> list[int]:
    """The ``n`` of the rows of a prompt, in their order."""
    return [int(number) for number in re.findall(r'"n": (-?\d+)', message)]


def larger(message: str) -> str:
    """The truth by ``n``; prompts that hold 13 get nonsense."""
    shown = numbers(message)
    if 13 in shown:
        return "All of them."
    return " > ".join(str(at + 1) for at in sorted(range(len(shown)), key=lambda at: -shown[at]))


def first_shown(message: str) -> str:
    """A model that prefers what it sees first."""
    return " > ".join(str(at + 1) for at in range(len(numbers(message))))


@settings(max_examples=40, deadline=None)
@given(data=st.lists(st.integers(0, 500).filter(lambda n: n != 13), max_size=90), k=st.integers(1, 45))
def test_ranks_as_a_sort_would(data, k):
    """Equal rows stay in their order, and the index is kept."""
    frame = pd.DataFrame({"n": pd.Series(data, dtype="int64")})
    result = sem_topk(frame, "Which {n} is largest?", k, lm=Scripted(larger))
    expected = frame.sort_values("n", ascending=False, kind="stable").head(k)
    pd.testing.assert_frame_equal(result, expected)


def test_lists_of_a_thousand_rows():
    lm = Scripted(larger)
    frame = pd.DataFrame({"n": np.random.default_rng(0).permutation(1000) + 100})
    result = sem_topk(frame, "Which {n} is largest?", 10, lm=lm)
    assert result["n"].tolist() == list(range(1099, 1089, -1))
    assert len(lm.asked) <= 60
    assert result.tag.outcomes.remarks == (f"prompts asked for the ranking: {len(lm.asked)}",)


def test_thirty_rows_are_one_list():
    lm = Scripted(larger)
    frame = pd.DataFrame({"n": [100 + (i * 37) % 101 for i in range(MAX_LIST_ROWS)]})
    for k in (1, 20, 40):
        result = sem_topk(frame, "Which {n} is largest?", k, lm=lm)
        assert result["n"].tolist() == sorted(frame["n"], reverse=True)[:k]
    assert len(lm.asked) == 3


@pytest.mark.parametrize("debias", [False, True])
def test_a_list_is_asked_for_its_best_k_alone(debias):
    lm = Scripted(lambda message: " > ".join(larger(message).split(" > ")[:3]))
    frame = pd.DataFrame({"n": np.random.default_rng(2).permutation(90) + 100})
    result = sem_topk(frame, "Which {n} is largest?", 3, lm=lm, debias=debias)
    assert result["n"].tolist() == [189, 188, 187]
    assert all("the best 3 rows" in str(prompt.messages[-1].content).splitlines()[-1] for prompt in lm.prompts)
    assert len(lm.asked) == 4 * (1 + debias)


@pytest.mark.parametrize("k", [3, 20])
def test_a_model_that_puts_no_list_in_order_fails_all_rows(k):
    lm = Scripted(lambda message: "All of them.")
    with pytest.raises(RowsFailed) as caught:
        sem_topk(pd.DataFrame({"n": range(100, 170)}), "Which {n} is largest?", k, lm=lm)
    assert caught.value.frame["topk_error"].notna().sum() == len(caught.value.failures) == 70
    assert len(lm.asked) < 140, "it ends soon"


def test_a_list_of_no_more_than_k_rows_is_put_in_order_whole():
    lm = Scripted(larger)
    sem_topk(pd.DataFrame({"n": range(100, 105)}), "Which {n} is largest?", 5, lm=lm)
    assert "of all rows" in str(lm.prompts[0].messages[-1].content).splitlines()[-1]


def test_more_rows_to_keep_than_a_list_holds():
    frame = pd.DataFrame({"n": np.random.default_rng(1).permutation(400) + 100})
    lm = Scripted(larger)
    result = sem_topk(frame, "Which {n} is largest?", 150, lm=lm)
    assert result["n"].tolist() == list(range(499, 349, -1))
    assert len(lm.asked) < 60


def test_rows_that_look_the_same_are_compared_once():
    frame = pd.DataFrame({"n": [1, 2] * 50, "id": range(100)})
    lm = Scripted(larger)
    result = sem_topk(frame, "Which {n} is largest?", 60, lm=lm)
    assert result["id"].tolist() == [*range(1, 100, 2), *range(0, 20, 2)]
    assert len(lm.asked) == 1


def test_groups():
    frame = pd.DataFrame({"n": [1, 5, 3, 9, 7, 8], "g": ["x", "y", "x", "y", None, None]})
    options = {"lm": Scripted(larger)}
    result = sem_topk(frame, "Which {n} is largest?", 1, group_by="g", **options)
    assert result["n"].tolist() == [3, 9, 8]
    assert sem_topk(frame, "Which {n} is largest?", 1, group_by=["g"], **options).equals(result)
    with pytest.raises(ColumnNotFound):
        sem_topk(frame, "Which {n} is largest?", 1, group_by="h", **options)


def test_null_rows_come_last_unasked():
    frame = pd.DataFrame({"n": [None, 3, None, 4]}, dtype="Int64")
    lm = Scripted(larger)
    result = sem_topk(frame, "Which {n} is largest?", 3, lm=lm)
    assert result.index.tolist() == [3, 1, 0]
    assert result.tag.outcomes["outcome"].tolist() == ["kept", "kept", "null", "kept"]
    assert len(lm.asked) == 1


# --- bias, contradictions, limits ---------------------------------------------------------------------------------


def test_debias_asks_the_other_way_round_too():
    frame = pd.DataFrame({"n": [101, 103, 102]})
    lm = Scripted(larger)
    result = sem_topk(frame, "Which {n} is largest?", 3, lm=lm, debias=True)
    assert result["n"].tolist() == [103, 102, 101]
    shown = [tuple(numbers(message)) for message in lm.asked]
    assert set(shown) == {one[::-1] for one in shown}
    biased = sem_topk(frame, "Which {n} is largest?", 3, lm=Scripted(first_shown), debias=True)
    assert biased["n"].tolist() == [101, 103, 102], "what came out even stays as it was"
    assert any("without a winner" in remark for remark in biased.tag.outcomes.remarks)


def test_contradictions_are_counted():
    def of_two_minds(message: str) -> str:
        return "1 > 2" if numbers(message)[0] == 1 else "2 > 3"  # one, two; the other way round two, one

    frame = pd.DataFrame({"n": [1, 2, 3]})
    results = [sem_topk(frame, "Which {n} wins?", 2, lm=Scripted(of_two_minds), debias=True) for _ in range(2)]
    assert set(results[0]["n"]) == {1, 2}
    assert results[0].equals(results[1])
    assert "comparisons that contradict the ranking: 1" in results[0].tag.outcomes.remarks


# --- failures -----------------------------------------------------------------------------------------------------


def test_failed_rows():
    frame = pd.DataFrame({"n": [1, 13, 2, 3]})
    options = {"lm": Scripted(larger)}
    with pytest.raises(RowsFailed, match="sem_topk: 1 of 4 rows have no answer") as caught:
        sem_topk(frame, "Which {n} is largest?", 2, **options)
    assert caught.value.frame["n"].tolist() == [3, 2, 13]
    kept = sem_topk(frame, "Which {n} is largest?", 2, on_error="keep", **options)
    assert kept["topk_error"].isna().tolist() == [True, True, False]
    assert sem_topk(frame, "Which {n} is largest?", 2, on_error="drop", **options)["n"].tolist() == [3, 2]


@settings(max_examples=40, deadline=None)
@given(data=st.lists(st.integers(1, 60), unique=True, max_size=60), k=st.integers(1, 40))
def test_a_row_that_cannot_be_compared_is_set_aside_alone(data, k):
    """Wherever it stands."""
    frame = pd.DataFrame({"n": pd.Series([*data, 13], dtype="int64").drop_duplicates().sample(frac=1, random_state=k)})
    sound = sorted(set(data) - {13}, reverse=True)
    result = sem_topk(frame, "Which {n} is largest?", k, lm=Scripted(larger), on_error="keep")
    if len(frame) == 1:
        assert result["n"].tolist() == [13], "there was nothing to ask"
    elif len(frame) == 2:
        assert result["topk_error"].notna().all(), "either may be what cannot be compared"
    else:
        assert result["n"].tolist() == [*sound[:k], 13]
        assert result["topk_error"].notna().tolist() == [False] * min(k, len(sound)) + [True]


def test_the_order_of_arrival_changes_neither_the_result_nor_what_is_asked():
    frame = pd.DataFrame({"n": [i if i % 11 else 13 for i in range(100, 180)], "id": range(80), "g": ["x", "y"] * 40})
    instruction = "Which of {n} and {id} is largest?"
    options = {"group_by": "g", "on_error": "keep"}
    plain = Scripted(larger)
    expected = sem_topk(frame, instruction, 9, lm=plain, **options)
    assert expected["topk_error"].notna().sum() == (frame["n"] == 13).sum()
    for seed in range(5):
        lm = Scripted(larger, shuffle=random.Random(seed))
        pd.testing.assert_frame_equal(sem_topk(frame, instruction, 9, lm=lm, **options), expected)
        assert sorted(lm.asked) == sorted(plain.asked)


@pytest.mark.parametrize("error", [RunStopped("not sent"), BudgetExceeded("the budget")])
def test_a_run_that_has_stopped_asks_no_more_and_ranks_nothing(error):
    answered = []

    def stopping(message: str) -> str:
        answered.append(message)
        if len(answered) > 20:
            raise error
        return larger(message)

    frame = pd.DataFrame({"n": range(100, 900)})
    with pytest.raises(RowsFailed, match=type(error).__name__) as caught:
        sem_topk(frame, "{n}", 3, lm=Scripted(stopping))
    assert caught.value.frame["topk_error"].notna().all(), "no row is said to be among the first"
    assert len(answered) <= 400, "one round"


@pytest.mark.filterwarnings("ignore::tagframe.errors.CutWarning")
def test_rows_too_long_for_the_model_are_cut_and_told():
    def narrow(message: str) -> str:
        if len(message) > 2_000:
            raise ContextTooLong("maximum context length is 2000 letters", 400)
        return larger(message)

    frame = pd.DataFrame({"n": [101, 103, 102], "text": ["short", "x" * 3_000, "short"]})
    result = sem_topk(frame, "{n} {text}", 3, lm=Scripted(narrow))
    assert result["n"].tolist() == [103, 102, 101]
    notes = result.tag.outcomes["note"]
    assert notes.isna().tolist() == [True, False, True]
    assert "cut to" in notes[1]


@pytest.mark.filterwarnings("ignore::tagframe.errors.CutWarning")
def test_a_row_longer_than_a_list_shows_is_cut_and_told():
    lm = Scripted(larger)
    frame = pd.DataFrame({"n": [101, 103, 102], "text": ["short", "x" * 50_000, "short"]})
    result = sem_topk(frame, "{n} {text}", 3, lm=lm)
    assert len(lm.asked[0]) < MAX_LIST_ROW_BYTES + 500
    assert result.tag.outcomes["note"].isna().tolist() == [True, False, True]


def test_a_narrow_window_makes_short_lists():
    lm = Scripted(larger)
    lm.context_window = 1_500
    frame = pd.DataFrame({"n": np.random.default_rng(0).permutation(60) + 100, "text": "x" * 100})
    result = sem_topk(frame, "{n} {text}", 5, lm=lm)
    assert result["n"].tolist() == [159, 158, 157, 156, 155]
    assert max(len(message) for message in lm.asked) < 2 * (1_500 - 1_500 // 4)


# --- the frame ----------------------------------------------------------------------------------------------------


def test_outcomes():
    frame = pd.DataFrame({"n": pd.array([1, None, 3, 13, 2], dtype="Int64")}, index=list("abcde"))
    result = sem_topk(frame, "Which {n} is largest?", 2, lm=Scripted(larger), on_error="drop")
    assert result.tag.outcomes["outcome"].to_dict() == {
        "a": "left out",
        "b": "null",
        "c": "kept",
        "d": "failed",
        "e": "kept",
    }


def test_k_may_be_numpys():
    frame = pd.DataFrame({"n": [1, 5, 3]})
    assert sem_topk(frame, "Which {n} is largest?", np.int64(2), lm=Scripted(larger))["n"].tolist() == [5, 3]


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "3"])
def test_k_is_a_positive_whole_number(k):
    with pytest.raises(InvalidArgument, match="K must be the number of rows to keep"):
        sem_topk(pd.DataFrame({"n": [1]}), "{n}", k, lm=Scripted(larger))


@pytest.mark.parametrize("most", [2, 5, 12])
def test_a_model_that_orders_short_lists_alone(most):
    """Lists of half the length are tried, down to pairs, and the order is exact; if they are too many, that is said."""
    lm = Scripted(lambda message: larger(message) if len(numbers(message)) <= most else "I cannot say.")
    frame = pd.DataFrame({"n": np.random.default_rng(4).permutation(25) + 100})
    result = sem_topk(frame, "Which {n} is largest?", 4, lm=lm)
    assert result["n"].tolist() == [124, 123, 122, 121]
    assert not any("not certain" in remark for remark in result.tag.outcomes.remarks)
