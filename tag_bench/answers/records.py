"""The outcome of each question, and their summary."""

from __future__ import annotations

import re
import statistics
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd

import tagframe as tf
from tag_bench.answers.databases import Question
from tag_bench.measured import percent
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


Status = Literal["run", "not_run", "error"]
_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True)
class Record:
    """One question, asked by one method.

    Attributes:
        id, type, kind: of the question.
        status: ``"run"``; ``"not_run"`` if the tables are missing; ``"error"`` if it failed.
        prediction: the values of the answer.
        answer: the key as published; None if there is none.
        strict, tolerant: whether the prediction equals the published key; None if there is no key, nothing was run, or
            answers of the model are missing.
        strict_here, tolerant_here: the same for the key's reading on the rows here.
        seconds: wall-clock time; None if answers came from a store, since that is not the time of a model.
        calls: the number of distinct prompts.
        tokens: in and out; None if answers came from a store.
        rows_asked: for pipelines, the number of calls with one call per row, as in LOTUS.
        text: the answer for a person, if there is one.
        assumptions, doubts: of :class:`tagframe.Answer`, if the method gives one; a doubt has a reason and
            facts.
        warnings: the warnings during the question, for example that a merge lost rows.
        missing: whether the store that is replayed lacks answers.
        error: why there is no answer, or why it was not run.
    """

    id: int
    type: str
    kind: str
    status: Status
    prediction: list[Any] | None = None
    answer: list[Any] | None = None
    strict: bool | None = None
    tolerant: bool | None = None
    strict_here: bool | None = None
    tolerant_here: bool | None = None
    seconds: float | None = None
    calls: int = 0
    tokens: int | None = None
    rows_asked: int | None = None
    text: str = ""
    assumptions: list[str] = field(default_factory=list)
    doubts: list[dict[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    missing: bool = False
    error: str = ""

    @property
    def tokens_by_row(self) -> float | None:
        """The estimated tokens with one call per row: the mean per call, times the rows."""
        if self.tokens is None:
            return None
        return self.tokens * (self.rows_asked or 0) / self.calls if self.calls else 0.0

    def to_record(self) -> dict[str, Any]:
        """The outcome as values for JSON."""
        return asdict(self)

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Record:
        """The outcome of a record."""
        return cls(**{one.name: record[one.name] for one in fields(cls) if one.name in record})

    @classmethod
    def of(cls, question: Question, status: Status, error: str = "", *, missing: bool = False) -> Record:
        """The record of a question without an answer."""
        key = None if question.key is None else list(question.key)
        wrong = None if key is None or status == "not_run" or missing else False
        marks = dict.fromkeys(MARKS, wrong)
        return cls(question.id, question.type, question.kind, status, answer=key, error=error, missing=missing, **marks)

    def answered(self, question: Question, answer: tf.Answer | Generated) -> Record:
        """The record with an answer, scored."""
        values = tuple(map(_plain, answer.values))
        scored = replace(self, status="run", prediction=list(values), text=answer.text)
        if isinstance(answer, tf.Answer):
            scored = replace(
                scored,
                assumptions=list(answer.assumptions),
                doubts=[{"reason": doubt.reason, "facts": doubt.facts} for doubt in answer.doubts],
            )
        return scored.scored(question)

    def scored(self, question: Question) -> Record:
        """The record with its prediction scored against the key."""
        values = self.prediction
        if values is None or question.key is None or question.key_here is None:
            return self
        return replace(
            self,
            strict=strict(values, question.key),
            tolerant=tolerant(values, question.key, question.text),
            strict_here=strict(values, question.key_here),
            tolerant_here=tolerant(values, question.key_here, question.text),
        )


def _plain(value: Any) -> Any:
    """A value as a plain Python value."""
    if isinstance(value, np.generic):
        return value.item()
    return None if value is pd.NA else value


def summary(records: Sequence[Record]) -> dict[str, Any]:
    """Exact match and execution time: overall, by query type, and by knowledge or reasoning, as in tables 1 and 2."""
    return {
        "overall": _scores(records),
        "by_type": _grouped(records, lambda record: record.type),
        "by_kind": _grouped(records, lambda record: record.kind),
    }


def _grouped(records: Sequence[Record], by: Callable[[Record], str]) -> Mapping[str, Any]:
    return {
        name: _scores([record for record in records if by(record) == name]) for name in dict.fromkeys(map(by, records))
    }


def _scores(records: Iterable[Record]) -> dict[str, Any]:
    """Shares in percent of the questions with a key that were asked.

    An error counts as a wrong answer; a question with missing answers of the model counts as neither. A sum, mean or
    median is None if the value of any question is not known.
    """
    run = [record for record in records if record.status != "not_run"]
    keyed = [record for record in run if record.answer is not None and not record.missing]
    seconds = _all_known(record.seconds for record in run)
    tokens = _all_known(record.tokens for record in run)
    by_row = _all_known(record.tokens_by_row for record in run)
    return {
        **{mark: percent((bool(getattr(record, mark)) for record in keyed), 1) for mark in MARKS},
        **{f"{mark}_count": sum(bool(getattr(record, mark)) for record in keyed) for mark in MARKS},
        "questions": len(run),
        "with_key": len(keyed),
        "errors": sum(record.status == "error" and not record.missing for record in run),
        "missing": sum(record.missing for record in run),
        "warned": sum(bool(record.warnings) for record in run),
        "seconds": round(statistics.fmean(seconds), 3) if seconds else None,
        "seconds_median": round(statistics.median(seconds), 3) if seconds else None,
        "calls": sum(record.calls for record in run),
        "calls_median": statistics.median(record.calls for record in run) if run else None,
        "tokens": None if tokens is None else sum(tokens),
        "rows_asked": sum(record.rows_asked or 0 for record in run),
        "tokens_by_row": None if by_row is None else round(sum(by_row)),
    }


def _all_known(values: Iterable[_Number | None]) -> list[_Number] | None:
    """The values; None if any of them is not known."""
    listed = list(values)
    known = [value for value in listed if value is not None]
    return known if len(known) == len(listed) else None
