from __future__ import annotations

import copy
import pickle

import pandas as pd
import pytest

from tagframe import results
from tagframe.errors import FactUnknown, RowsChanged


@pytest.fixture
def frame() -> pd.DataFrame:
    frame = pd.DataFrame({"a": [3, 1, 2], "b": ["x", "y", "z"]})
    results.remember(frame, color="red")
    results.remember_rows(frame, sources=["row 0", "row 1", "row 2"])
    return frame


def test_facts_add_up_and_are_replaced(frame):
    results.remember(frame, shape="round", color="blue")
    assert [results.recall(frame, name) for name in ("color", "shape", "size")] == ["blue", "round", None]
    assert results.recall(frame, "sources") == ["row 0", "row 1", "row 2"]


@pytest.mark.parametrize(
    "take",
    [
        lambda frame: frame.query("a > 1"),
        lambda frame: frame[frame["a"] > 1],
        lambda frame: frame.head(1),
        lambda frame: frame.sort_values("a"),
        lambda frame: frame.copy(),
        lambda frame: frame[["b"]],
        lambda frame: frame.assign(c=1),
        lambda frame: frame.reset_index(drop=True),
        lambda frame: frame.describe(),
        copy.copy,
        copy.deepcopy,
        lambda frame: pickle.loads(pickle.dumps(frame)),
        lambda frame: pd.concat([frame.head(1), frame.tail(1)]),
    ],
)
def test_what_is_taken_from_a_frame_knows_the_facts_of_that_frame(frame, take):
    assert results.recall(take(frame), "color") == "red"


@pytest.mark.parametrize(
    "keep",
    [
        lambda frame: frame.copy(),
        lambda frame: frame[["b"]],
        lambda frame: frame.assign(c=1),
        lambda frame: frame.head(3),
        lambda frame: frame.rename(columns={"a": "c"}),
        lambda frame: pickle.loads(pickle.dumps(frame)),
    ],
)
def test_facts_that_name_rows_hold_while_the_rows_do(frame, keep):
    assert results.recall(keep(frame), "sources") == ["row 0", "row 1", "row 2"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda frame: frame.head(2), "this one has 2 rows instead of 3"),
        (lambda frame: frame.describe(), "has 8 rows"),
        (lambda frame: frame.T, "has 2 rows"),
        (lambda frame: frame.sort_values("a"), "this one has another index"),
        (lambda frame: frame.groupby("b").sum(), "this one has another index"),
        (lambda frame: frame.sort_values("a").reset_index(drop=True), "this one has other cells in column 'a'"),
        (lambda frame: frame.set_index("b"), "this one has another index"),
        (lambda frame: frame[[]], "this one has none of its columns"),
    ],
)
def test_facts_that_name_rows_say_why_they_do_not_hold(frame, change, why):
    with pytest.raises(RowsChanged, match=why):
        results.recall(change(frame), "sources")
    assert results.recall(frame, "sources") is not None


def test_a_permutation_of_a_large_frame_is_seen():
    frame = pd.DataFrame({"a": range(10_000)})
    results.remember_rows(frame, sources=1)
    shuffled = frame.sample(frac=1, random_state=0).reset_index(drop=True)
    with pytest.raises(RowsChanged, match="because it was sorted"):
        results.recall(shuffled, "sources")


def test_what_is_remembered_of_a_part_is_not_said_of_the_whole(frame):
    part = frame.head(2)
    results.remember(part, color="green", shape="round")
    assert results.recall(part, "color") == "green"
    assert results.recall(frame, "color") == "red"
    assert results.recall(frame, "shape") is None


def test_frames_of_two_makers_put_together_know_nothing(frame):
    other = pd.DataFrame({"a": [9], "b": ["w"]})
    assert results.recall(pd.concat([frame, other]), "color") is None
    results.remember(other, color="red")
    assert results.recall(pd.concat([frame, other]), "color") is None


@pytest.mark.slow
def test_facts_go_with_the_last_frame():
    import gc
    import weakref

    class Fact:
        pass

    fact = Fact()
    alive = weakref.ref(fact)
    frame = pd.DataFrame({"a": [1]})
    results.remember(frame, fact=fact)
    taken = frame.head()
    del frame, fact
    gc.collect()
    assert alive() is not None
    del taken
    gc.collect()
    assert alive() is None


def test_attrs_of_a_result_can_be_written_down(frame, tmp_path):
    """What comes back from a file is text, and no fact."""
    frame.to_parquet(tmp_path / "frame.parquet")
    back = pd.read_parquet(tmp_path / "frame.parquet")
    assert results.recall(back, "color") is None
    assert results.recall(back, "sources") is None


def test_odd_frames_have_facts_too():
    for frame in (
        pd.DataFrame(),
        pd.DataFrame({"a": []}),
        pd.DataFrame([[1, 2]], columns=["n", "n"]),
        pd.DataFrame({"a": [[1], {}]}),
        pd.DataFrame({"a": [float("nan"), None]}, index=[7, 7]),
    ):
        results.remember_rows(frame, sources=1)
        assert results.recall(frame.assign(), "sources") == 1


def test_a_fact_that_is_required(frame):
    assert results.require(frame, "color", "a dye") == "red"
    assert results.require(frame, "sources", "an answer")
    with pytest.raises(FactUnknown, match="no size: it does not come from a ruler"):
        results.require(frame, "size", "a ruler")
    with pytest.raises(AttributeError):
        results.require(frame.head(1), "sources", "an answer")


def test_the_accessor_does_not_lose_facts():
    """pandas 3 makes the accessor afresh on every access; the facts are the frame's, not the accessor's."""
    frame = pd.DataFrame({"a": [1]})
    results.remember(frame, cascade="the report")
    assert frame.tag.cascade == "the report"
    assert frame.tag.cascade == "the report"
