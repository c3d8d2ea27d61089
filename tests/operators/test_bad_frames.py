"""Frames as users really have them, given to every operator: right, or a named error; the caller's frame untouched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import InvalidArgument, TagframeError
from tagframe.lm import LM, QuotingLM
from tagframe.operators import OPERATORS, run

RIGHT = pd.DataFrame({"text": ["a river", "a road"], "place": ["Oslo", "Rome"]})
CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "sem_filter": (("{text} is kind",), {}),
    "sem_topk": (("Which {text} is most kind?", 2), {}),
    "sem_agg": (("What does every {text} say?",), {}),
    "sem_map": (("The tone of {text}",), {}),
    "sem_score": (("How kind is {text}?",), {}),
    "sem_extract": (("text", {"topic": None}), {}),
    "sem_join": ((RIGHT, "{text:left} is at {place:right}"), {}),
    "sem_search": (("text", "water", 2), {}),
    "sem_dedup": (("text",), {"border": 0.1}),
    "sem_sim_join": ((RIGHT, "text", "text", 1), {"lsuffix": "_left", "rsuffix": "_right"}),
}
"""An ordinary call of each operator over a column ``text``; a new operator needs a line here."""


class Measured(pd.DataFrame):
    """A subclass, as geopandas has one."""

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return Measured


class Picture:
    """What stands for an image."""

    def __repr__(self) -> str:
        return "<picture>"


WORDS = ["a river", "a road", "a house", "a river"]
HUGE = "word " * 2_000_000
FRAMES: dict[str, pd.DataFrame] = {
    "empty": pd.DataFrame({"text": pd.Series([], dtype="string"), "n": pd.Series([], dtype="int64")}),
    "one row": pd.DataFrame({"text": ["a river"]}),
    "duplicate index": pd.DataFrame({"text": WORDS}, index=[1, 1, 1, 2]),
    "levels in the index": pd.DataFrame({"text": WORDS}, index=pd.MultiIndex.from_product([["a", "b"], [1, 2]])),
    "levels in the columns": pd.DataFrame(
        [[word, 1] for word in WORDS], columns=pd.MultiIndex.from_tuples([("text", ""), ("n", "x")])
    ),
    "names twice": pd.DataFrame([[word, "x", "y"] for word in WORDS], columns=["text", "n", "n"]),
    "blank": pd.DataFrame({"text": ["", "  ", "\n"]}),
    "all null": pd.DataFrame({"text": [None, None, None]}),
    "null and NaN": pd.DataFrame({"text": pd.Series(["a river", None, np.nan, pd.NA], dtype=object)}),
    "mixed types": pd.DataFrame({"text": pd.Series(["a river", 3, 2.5, True], dtype=object)}),
    "lists and dicts": pd.DataFrame({"text": pd.Series([["a"], {"b": 1}, {1, 2}, (1, 2)], dtype=object)}),
    "bytes": pd.DataFrame({"text": [b"\xff\x00", b"plain", b"", b"x"]}),
    "pictures": pd.DataFrame({"text": pd.Series([Picture(), Picture()], dtype=object)}),
    "a cell of 10 MB": pd.DataFrame({"text": ["a river", HUGE]}),
    "half a character": pd.DataFrame({"text": pd.Series(["a \ud800 river", "a road"], dtype=object)}),
    "control characters": pd.DataFrame({"text": ["\x00\x1b[2J", "\u2028\u202e"]}),
    "pyarrow": pd.DataFrame({"text": pd.array(WORDS, dtype="string[pyarrow]")}),
    "string": pd.DataFrame({"text": pd.array([*WORDS, None], dtype="string")}),
    "categories": pd.DataFrame({"text": pd.Categorical(WORDS)}),
    "dates": pd.DataFrame({"text": pd.to_datetime(["2026-01-02", None])}),
    "numbers": pd.DataFrame({"text": [1.5, np.inf, -np.inf, np.nan]}),
    "a subclass": Measured({"text": WORDS}),
    "a view": pd.DataFrame({"text": [*WORDS, *WORDS], "n": range(8)}).iloc[::2],
    "many rows": pd.DataFrame({"text": np.array(WORDS)[np.arange(2_000) % 4]}),
}
REFUSED = {(name, "levels in the columns") for name in ("sem_dedup", "sem_extract", "sem_search", "sem_sim_join")}
"""What an operator refuses, with a named error."""
REFUSED |= {(name, "bytes") for name in CALLS}
OPERATOR = pytest.mark.parametrize("name", list(CALLS))


def result_of(name: str, frame: pd.DataFrame, *arguments: Any, **options: Any) -> pd.DataFrame:
    """What the operator makes of answers such as a model would give; nothing is sent."""
    lm = LM("openai/test", api_base="http://127.0.0.1:9/v1", api_key="none", store=None, context_window=8_000)
    record = OPERATORS[name.split()[0]]
    return run(record.step(lm, frame, *arguments, **options), QuotingLM(lm, record.guess))


@pytest.mark.filterwarnings("ignore::tagframe.errors.CutWarning")
@OPERATOR
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind == "a cell of 10 MB")) for kind in FRAMES]
)
def test_right_or_a_named_error(name: str, kind: str):
    frame = FRAMES[kind]
    before, attrs = frame.copy(deep=True), dict(frame.attrs)
    arguments, options = CALLS[name]
    try:
        result = result_of(name, frame, *arguments, **options)
    except TagframeError:
        if (name, kind) not in REFUSED:
            raise
    else:
        assert isinstance(result, pd.DataFrame)
        if name in ("sem_filter", "sem_topk", "sem_dedup"):
            assert list(result.columns) == list(frame.columns)
            assert list(result.dtypes) == list(frame.dtypes)
            assert type(result) is type(frame)
        if name in ("sem_map", "sem_score", "sem_extract"):
            assert result.index.equals(frame.index)
        if name not in ("sem_search", "sem_sim_join"):
            assert len(result.tag.outcomes) in (len(frame), 1)
    pd.testing.assert_frame_equal(frame, before)
    assert frame.attrs == attrs


@pytest.mark.filterwarnings("ignore::tagframe.errors.CutWarning")
@pytest.mark.parametrize("kind", FRAMES)
def test_a_cascade(kind: str):
    frame = FRAMES[kind]
    before = frame.copy(deep=True)
    cascade = tf.Cascade(np.arange(len(frame)))
    if ("sem_filter", kind) in REFUSED:
        with pytest.raises(InvalidArgument):
            result_of("sem_filter", frame, "{text} is kind", cascade=cascade)
        return
    result = result_of("sem_filter", frame, "{text} is kind", cascade=cascade)
    assert list(result.columns) == list(frame.columns)
    assert len(result.tag.outcomes) == len(frame)
    assert result.tag.cascade.judged <= len(frame)
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.slow
def test_a_hundred_thousand_rows():
    frame = pd.DataFrame({"text": np.array(WORDS)[np.arange(100_000) % 4]})
    assert len(result_of("sem_filter", frame, "{text} is kind", rows_per_call="auto")) == 100_000
    assert len(result_of("sem_topk", frame, "Which {text} is most kind?", 3)) == 3


@pytest.mark.filterwarnings("ignore::tagframe.errors.AllColumnsWarning")
@pytest.mark.parametrize("name", ["sem_filter", "sem_topk", "sem_agg", "sem_map", "sem_score"])
def test_instructions_that_are_odd(name: str):
    frame = pd.DataFrame({"text": WORDS, "n": range(4)})
    rest = CALLS[name][0][1:]
    assert isinstance(result_of(name, frame, "What is most kind?", *rest), pd.DataFrame), "no column: all are shown"
    assert isinstance(result_of(name, frame, 'like {text}, as {"kind": true, "of": [1]}', *rest), pd.DataFrame)
    for odd in ("", "   ", None, 7, [""] if name == "sem_filter" else ["{text}"]):
        with pytest.raises(InvalidArgument, match="no words"):
            result_of(name, frame, odd, *rest)
    with pytest.raises(TagframeError, match="did you mean 'text'"):
        result_of(name, frame, "{texts} is kind", *rest)


def test_every_operator_has_an_ordinary_call():
    assert set(CALLS) >= set(OPERATORS)
