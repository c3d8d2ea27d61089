"""What a model is shown of a frame: no blank rows, no ids unless they are named, and long rows cut with a warning."""

from __future__ import annotations

import importlib
import json
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scripted import Scripted, shown_rows
from test_bad_frames import CALLS, RIGHT

import tagframe as tf
from tagframe.errors import AllColumnsWarning, CutWarning, NameUnknown
from tagframe.operators.cells import encode_rows

BLANKS = ["", "  ", "\n\t\u00a0", None, np.nan, pd.NA]
ASKED = ["sem_filter", "sem_map", "sem_score", "sem_extract", "sem_topk", "sem_agg", "sem_join"]
"""Those that ask a model about every row."""
UNNAMED = {
    "sem_filter": ("It is kind",),
    "sem_map": ("The tone",),
    "sem_score": ("How kind?",),
    "sem_topk": ("Which is kindest?", 2),
    "sem_agg": ("What do they say?",),
}


def answer(message: str) -> str:
    """An answer in the form of any of these operators."""
    if '"L1"' in message or "True or False" in message:
        return "False"
    if message.startswith("<rows>"):
        count = message.count("\n[")
        return " > ".join(str(number) for number in range(1, count + 1)) if count > 1 else "All is well.\nSources: 1"
    return json.dumps({"topic": "piers"}) if "topic" in message else "0.5"


def model(name: str) -> Scripted:
    form = {"sem_filter": "True", "sem_extract": '{"topic": "piers"}', "sem_agg": "All is well.\nSources: 1"}
    return Scripted(lambda message: form.get(name) or answer(message))


@pytest.mark.parametrize("name", [name for name in CALLS if name != "sem_sim_join"])
@pytest.mark.parametrize("kind", ["a frame", "batches"])
def test_blank_rows_are_not_asked_about(name: str, kind: str):
    """A text of white space is as blank as a null, in every operator."""
    frame = pd.DataFrame({"text": pd.Series(BLANKS, dtype=object)})
    nulls = pd.DataFrame({"text": pd.Series([None] * len(BLANKS), dtype=object)})
    lm = Scripted(lambda message: pytest.fail(f"asked: {message}"))

    def result(of: pd.DataFrame) -> pd.DataFrame:
        given: Any = of if kind == "a frame" else iter([of.iloc[:3], of.iloc[3:]])
        found = getattr(tf, name)(given, *CALLS[name][0], **({} if name == "sem_search" else {"lm": lm}))
        return found if isinstance(found, pd.DataFrame) else pd.concat(list(found))

    blank, null = result(frame), result(nulls)
    assert len(blank) == len(null)
    assert list(blank.columns) == list(null.columns)
    if kind == "a frame" and name != "sem_search":
        assert set(blank.tag.outcomes["outcome"]) == ({"null", "kept"} if name == "sem_topk" else {"null"})


def test_blank_cells_beside_others_are_left_out():
    frame = pd.DataFrame({"a": ["x", "x", "x"], "b": ["", " ", None], "n": [0, 0, 0]})
    assert set(encode_rows(frame, [0, 1, 2])) == {'{"a": "x", "n": 0}'}
    lm = Scripted(lambda message: "True")
    assert len(tf.sem_filter(frame, "{a} and {b} agree", lm=lm)) == 3
    assert set(lm.asked) == {'<row>\n{"a": "x"}\n</row>\nAnswer with True or False:'}


@pytest.mark.parametrize("name", ASKED)
def test_rows_that_are_cut_are_warned_of_once(name: str):
    frame = pd.DataFrame({"text": ["a pier", "word " * 80_000, "word " * 20_000]})
    lm = model(name)
    lm.context_window = 8_000  # type: ignore[attr-defined]
    with pytest.warns(CutWarning) as said:
        result = getattr(tf, name)(frame, *CALLS[name][0], lm=lm, on_error="keep")
    (warning,) = (one for one in said if issubclass(one.category, CutWarning))
    assert f"{name}: 2 rows were cut" in str(warning.message)
    assert "the longest from 400,0" in str(warning.message)
    assert result.tag.outcomes["note"].str.contains(r"cut to [\d,]+ of [\d,]+ characters").sum() == (
        1 if name == "sem_agg" else 2
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", CutWarning)
        getattr(tf, name)(frame.head(1), *CALLS[name][0], lm=model(name), on_error="keep")


@pytest.mark.parametrize("name", UNNAMED)
@pytest.mark.parametrize("kind", ["a frame", "batches", "partitions"])
def test_an_instruction_without_braces_shows_all_columns_but_ids(name: str, kind: str):
    frame = pd.DataFrame(
        {
            "id": [1, 2],
            "review_id": [7, 8],
            "userId": ["u1", "u2"],
            "text": ["fine", "grand"],
            "paid": [1, 2],
            "n": [3, 4],
        }
    )
    lm = model(name)

    def call() -> None:
        if kind == "partitions":
            dd = pytest.importorskip("dask.dataframe")
            importlib.import_module("tagframe.dask")  # adds .tag
            getattr(dd.from_pandas(frame, npartitions=2).tag, name)(*UNNAMED[name], lm=lm).compute()
            return
        given: Any = frame if kind == "a frame" else iter([frame.head(1), frame.tail(1)])
        found = getattr(tf, name)(given, *UNNAMED[name], lm=lm)
        if not isinstance(found, pd.DataFrame):
            list(found)

    with pytest.warns(AllColumnsWarning) as said:
        call()
    texts = {str(one.message) for one in said if issubclass(one.category, AllColumnsWarning)}
    assert len(texts) == 1, "one text, which Python shows once"
    without = "" if (kind, name) == ("batches", "sem_agg") else " but id, review_id, userId"
    assert f"is shown all{without}: text, paid, n." in texts.pop()
    if kind == "a frame":
        assert len([one for one in said if issubclass(one.category, AllColumnsWarning)]) == 1
    shown = {name for message in lm.asked for row in shown_rows(message) for name in row}
    assert shown == {"text", "paid", "n"}


def test_named_columns_ids_alone_and_all_cols_are_not_warned_of():
    frame = pd.DataFrame({"id": [1], "text": ["fine"]})
    lm = Scripted(lambda message: "True")
    with warnings.catch_warnings():
        warnings.simplefilter("error", AllColumnsWarning)
        tf.sem_filter(frame, "{id} is odd", lm=lm)
        tf.sem_filter(frame, "It is odd", all_cols=True, lm=lm)
    with pytest.warns(AllColumnsWarning, match="shown all: id"):
        tf.sem_filter(frame[["id"]], "It is odd", lm=lm)
    assert [shown_rows(message)[0] for message in lm.asked] == [{"id": 1}, {"id": 1, "text": "fine"}, {"id": 1}]


@pytest.mark.parametrize("name", ["sem_index", "load_sem_index"])
def test_no_index_is_needed(name: str):
    for owner in (tf, RIGHT.tag):
        with pytest.raises(NameUnknown, match=f"no {name} is needed: sem_search"):
            getattr(owner, name)
