"""The outcome of each question, and their summary."""

from __future__ import annotations

import re
import statistics
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

import tagframe as tf
from tag_bench.answers.databases import Question
from tag_bench.measured import percent
from tag_bench.records import Record
from tagframe.answer import Generated

MARKS = ("strict", "strict_here", "tolerant", "tolerant_here")
"""The ways in which an answer is scored."""
_ASKS_FOR_ORDER = re.compile(r"\b(?:in order|in alphabetical order|rank(?:ed)?\b(?! [12]\b)|order of)", re.IGNORECASE)
_TRUTH = {"true": "yes", "false": "no"}


def strict(values: Sequence[Any], key: Sequence[Any]) -> bool:
    """Exact match, as in the benchmark (section 4.1): equal by ``==``, in order; a number never equals a text.

    >>> strict([54], (54,)), strict(["54"], (54,)), strict(["Lisa", "Jennifer"], ("Jennifer", "Lisa"))
    (True, False, False)
    """
    if len(values) != len(key):
        return False
    return all(type_of(value) == type_of(wanted) and value == wanted for value, wanted in zip(values, key, strict=True))


def type_of(value: Any) -> str:
    """The kind of a value, because ``1 == True`` must not match."""
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, (int, float)) else "text"


def tolerant(values: Sequence[Any], key: Sequence[Any], question: str) -> bool:
    """Equality that ignores type, case, accents and blanks, and also the order if the question asks for none.

    >>> tolerant(["54"], (54,), "How many schools?"), tolerant(["São Paulo"], ("Sao Paulo",), "Which city?")
    (True, True)
    >>> tolerant(["b", "a"], ("a", "b"), "Which two?"), tolerant(["b", "a"], ("a", "b"), "List two in order of size.")
    (True, False)
    """
    given, wanted = [_folded(value) for value in values], [_folded(value) for value in key]
    return given == wanted if asks_for_order(question) else Counter(given) == Counter(wanted)


def asks_for_order(question: str) -> bool:
    """Whether the order of the values matters.

    >>> asks_for_order("rank the locations by distance"), asks_for_order("How many drivers have been ranked 2?")
    (True, False)
    """
    return _ASKS_FOR_ORDER.search(question) is not None


def _folded(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = unicodedata.normalize("NFKD", str(value))
    text = "".join(letter for letter in text if not unicodedata.combining(letter))
    text = " ".join(text.casefold().split())
    try:
        return f"{float(text.replace(',', '')):g}"
    except ValueError:
        return _TRUTH.get(text, text)


def unanswered(question: Question, status: str = "run", error: str = "", *, missing: bool = False) -> Record:
    """The record of a question without an answer.

    Its keys are the id, type and kind of the question, and

    - ``status``: ``"run"``; ``"not_run"`` if the tables are missing; ``"error"`` if it failed, and ``error`` says why;
    - ``prediction``: the values of the answer, ``text``: the answer for a person, ``answer``: the key as published;
    - ``strict``, ``tolerant``: whether the prediction equals the published key; None if there is no key, nothing was
      run, or answers of the model are missing; ``strict_here``, ``tolerant_here``: the same for the key's reading on
      the rows here;
    - ``seconds``, ``tokens``: None if answers came from a store, since they are not those of a model;
    - ``calls``: the number of distinct prompts, ``rows_asked``: that with one call per row, as in LOTUS;
    - ``assumptions``, ``doubts``: of :class:`tagframe.Answer`, if the method gives one;
    - ``warnings``: during the question; ``missing``: whether the store that is replayed lacks answers.
    """
    key = None if question.key is None else list(question.key)
    wrong = None if key is None or status == "not_run" or missing else False
    about = {"id": question.id, "type": question.type, "kind": question.kind, "status": status, "prediction": None}
    counts = {"seconds": None, "calls": 0, "tokens": None, "rows_asked": None, "text": ""}
    remarks = {"assumptions": [], "doubts": [], "warnings": [], "missing": missing, "error": error}
    return {**about, "answer": key, **dict.fromkeys(MARKS, wrong), **counts, **remarks}


def answered(question: Question, answer: tf.Answer | Generated) -> Record:
    """The record of a question with an answer, scored."""
    record = {**unanswered(question), "prediction": [*map(_plain, answer.values)], "text": answer.text}
    if isinstance(answer, tf.Answer):
        record["assumptions"] = list(answer.assumptions)
        record["doubts"] = [{"reason": doubt.reason, "facts": doubt.facts} for doubt in answer.doubts]
    return scored(record, question)


def scored(record: Record, question: Question) -> Record:
    """The record with its prediction scored against the key."""
    values = record.get("prediction")
    marks: Record = {}
    for end, key in (("", question.key), ("_here", question.key_here)):
        if values is not None and question.key is not None and key is not None:
            marks[f"strict{end}"], marks[f"tolerant{end}"] = strict(values, key), tolerant(values, key, question.text)
    return {**record, **marks}


def _plain(value: Any) -> Any:
    """A value as a plain Python value."""
    if isinstance(value, np.generic):
        return value.item()
    return None if value is pd.NA else value


def summary(records: Sequence[Record]) -> dict[str, Any]:
    """Exact match and execution time: overall, by query type, and by knowledge or reasoning, as in tables 1 and 2."""

    def grouped(by: str) -> dict[str, Any]:
        groups = dict.fromkeys(record[by] for record in records)
        return {group: _scores([record for record in records if record[by] == group]) for group in groups}

    return {"overall": _scores(records), "by_type": grouped("type"), "by_kind": grouped("kind")}


def _scores(records: Iterable[Record]) -> dict[str, Any]:
    """Shares in percent of the questions with a key that were asked.

    An error counts as a wrong answer; a question with missing answers of the model counts as neither. A sum, mean or
    median is None if the value of any question is not known. The tokens by row are those of a call for each row: the
    mean per call, times the rows.
    """
    run = [record for record in records if record["status"] != "not_run"]
    keyed = [record for record in run if record["answer"] is not None and not record["missing"]]
    seconds, tokens = (_all_known(record[name] for record in run) for name in ("seconds", "tokens"))
    by_row = [
        record["tokens"] * (record["rows_asked"] or 0) / record["calls"] for record in run if tokens and record["calls"]
    ]
    return {
        **{mark: percent((bool(record[mark]) for record in keyed), 1) for mark in MARKS},
        **{f"{mark}_count": sum(bool(record[mark]) for record in keyed) for mark in MARKS},
        "questions": len(run),
        "with_key": len(keyed),
        "errors": sum(record["status"] == "error" and not record["missing"] for record in run),
        "missing": sum(record["missing"] for record in run),
        "warned": sum(bool(record["warnings"]) for record in run),
        "seconds": round(statistics.fmean(seconds), 3) if seconds else None,
        "seconds_median": round(statistics.median(seconds), 3) if seconds else None,
        "calls": sum(record["calls"] for record in run),
        "calls_median": statistics.median(record["calls"] for record in run) if run else None,
        "tokens": None if tokens is None else sum(tokens),
        "rows_asked": sum(record["rows_asked"] or 0 for record in run),
        "tokens_by_row": None if tokens is None else round(sum(by_row)),
    }


def _all_known(values: Iterable[float | None]) -> list[float] | None:
    """The values; None if any of them is not known."""
    listed = list(values)
    known = [value for value in listed if value is not None]
    return known if len(known) == len(listed) else None
