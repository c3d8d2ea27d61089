"""What became of each question, and what all of them come to."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tag_bench.answers.questions import Question, Values
from tag_bench.answers.scoring import strict, tolerant

Status = Literal["run", "not_run", "error"]


@dataclass(frozen=True)
class Record:
    """One question, asked by one method.

    Attributes:
        id, type, kind: of the question.
        status: ``"run"``; ``"not_run"`` where the tables are not there; ``"error"`` where it ended with one.
        prediction: the values that were answered.
        answer: the key as published; None where there is none.
        strict, tolerant: whether the prediction is the published key; None where there is none, or nothing was run.
        strict_here, tolerant_here: the same against what the key's reading gives on the rows here.
        seconds: on the clock.
        calls: distinct prompts that the model was asked.
        tokens: in and out.
        rows_asked: what a call a row would have asked, for pipelines: LOTUS's way.
        text: the answer for a person, where there is one.
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
    seconds: float = 0.0
    calls: int = 0
    tokens: int = 0
    rows_asked: int | None = None
    text: str = ""
    error: str = ""

    @property
    def tokens_by_row(self) -> float:
        """About what a call a row would take in tokens: as many a call as the calls that were made took."""
        return self.tokens * (self.rows_asked or 0) / self.calls if self.calls else 0.0

    @classmethod
    def of(cls, question: Question, status: Status, error: str = "") -> Record:
        """The record of a question that has no answer."""
        key = None if question.key is None else list(question.key)
        wrong = None if key is None or status == "not_run" else False
        marks = dict.fromkeys(("strict", "tolerant", "strict_here", "tolerant_here"), wrong)
        return cls(question.id, question.type, question.kind, status, answer=key, error=error, **marks)

    def answered(self, question: Question, values: Values, text: str) -> Record:
        """The record with an answer, scored."""
        scored = replace(self, status="run", prediction=list(values), text=text)
        if question.key is None or question.key_here is None:
            return scored
        return replace(
            scored,
            strict=strict(values, question.key),
            tolerant=tolerant(values, question.key, question.text),
            strict_here=strict(values, question.key_here),
            tolerant_here=tolerant(values, question.key_here, question.text),
        )


def read_records(file: Path) -> dict[int, Record]:
    """Records of a run that was begun, by question; none where there is no such file. A line cut short is left out."""
    records: dict[int, Record] = {}
    if file.is_file():
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                record = Record(**json.loads(line))
            except (json.JSONDecodeError, TypeError):
                continue
            records[record.id] = record
    return records


def append_record(file: Path, record: Record) -> None:
    """Add one to the file."""
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(asdict(record), ensure_ascii=False, default=str) + "\n")


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
    """Shares in percent of the questions with a key that were asked; an error is a wrong answer."""
    asked = [record for record in records if record.status != "not_run"]
    keyed = [record for record in asked if record.answer is not None]
    seconds = [record.seconds for record in asked]
    marks = ("strict", "tolerant", "strict_here", "tolerant_here")
    return {
        **{mark: _percent(getattr(record, mark) for record in keyed) for mark in marks},
        **{f"{mark}_count": sum(bool(getattr(record, mark)) for record in keyed) for mark in marks},
        "questions": len(asked),
        "with_key": len(keyed),
        "errors": sum(record.status == "error" for record in asked),
        "seconds": round(statistics.fmean(seconds), 3) if seconds else None,
        "seconds_median": round(statistics.median(seconds), 3) if seconds else None,
        "calls": sum(record.calls for record in asked),
        "calls_median": statistics.median(record.calls for record in asked) if asked else None,
        "tokens": sum(record.tokens for record in asked),
        "rows_asked": sum(record.rows_asked or 0 for record in asked),
        "tokens_by_row": round(sum(record.tokens_by_row for record in asked)),
    }


def _percent(marks: Iterable[bool | None]) -> float | None:
    listed = [bool(mark) for mark in marks]
    return round(100 * sum(listed) / len(listed), 1) if listed else None
