"""Alternatives: statements that differ from an answer's in one decision, and give other rows.

They are made from the statement and the corpus alone, and run under the limits of the statement: all together for as
long as it took, and at least a second (four seconds for those that count rows of a join once). An alternative with the
same rows says nothing, and is not shown.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tagframe.answer.generation import plain_rows, plain_value
from tagframe.answer.guard import Reader
from tagframe.answer.lm_sql import has_functions
from tagframe.errors import CorpusError, SQLFailed, UnsafeSQL, counted

if TYPE_CHECKING:
    from tagframe.engines.sql_reader import ReadStatement

LEAST_SECONDS = 1.0
"""Alternatives may take so long together, however short the statement was."""
_PATIENCE = 4.0
"""Those that count rows of a join once may take so many seconds: they sort its rows."""
_MOST_ROWS = 1_000
"""So many rows of an alternative, beyond those of the statement, are read at most."""
_DIGITS = 9
"""Two numbers that are equal in so many digits are equal: sums depend on the order of their rows."""
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
Reason = Literal[
    "lacking", "repeated", "key", "match", "reading", "column", "join", "value", "null", "total", "limit",
    "tie", "unsure", "text",
]  # fmt: skip


@dataclass(frozen=True)
class Doubt:
    """One reason to doubt an answer: another statement with another result, or a fact about the answer.

    Attributes:
        reason: "repeated" (rows that a join repeats, or values, are counted several times or listed again, or a column
            is that of any one of the rows that are counted), "key" (tables are joined by a part of their key), "match"
            (rows without a match, or with both of two values), "reading" (the model's own other reading), "column"
            (another column fits the words as well, or another table has it), "join" (another key joins the tables, or
            they join by none, nothing of one is used, or a named one is not read), "value" (no cell has a value, others
            spell it otherwise, or cells are taken for something else), "null" (values that are not there), "total" (a
            row is the total of the others), "limit" (LIMIT leaves rows out), "tie" (these rank like the last one),
            "lacking" (the tables lack what the question needs, or the statement a number of it), "unsure" (LM functions
            could not judge some values), "text" (the model's answer has a value that no row has).
        facts: in a sentence; while the other statement has not run, what is so in the answer's.
        statement: the other one; "" for a fact.
        rows: its result; None for a fact.
    """

    reason: Reason
    facts: str
    statement: str = ""
    rows: pd.DataFrame | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return self.facts

    def to_dict(self, rows: int = 20) -> dict[str, Any]:
        """The doubt as JSON values, with the first ``rows`` rows of the other statement."""
        plain = {"reason": self.reason, "facts": self.facts}
        if self.rows is None:
            return plain
        return {**plain, "statement": self.statement, "rows": self.rows.head(rows).to_dict("records")}


class Comparison:
    """Runs alternatives until their time is over.

    Args:
        rows: of the statement.
        reader: that ran it.
        seconds: that it took.
    """

    def __init__(self, rows: pd.DataFrame, reader: Reader, seconds: float) -> None:
        self.rows, self.reader = rows, reader
        self._results = dict[tuple[str, int], pd.DataFrame]()
        self._seconds = seconds
        self._start = time.monotonic()

    def run(self, sql: str, most: int | None = None, seconds: float = LEAST_SECONDS) -> pd.DataFrame | None:
        """The rows of a statement; None if it cannot run, or the time is over."""
        most = max(self.reader.limits.rows, len(self.rows) + _MOST_ROWS) if most is None else most
        left = min(max(self._seconds, seconds), self.reader.limits.seconds) - (time.monotonic() - self._start)
        if (sql, most) not in self._results and left >= 0.01:
            with suppress(CorpusError, SQLFailed, UnsafeSQL):
                self._results[sql, most] = self.reader.run(sql, replace(self.reader.limits, rows=most, seconds=left))
        return self._results.get((sql, most))

    def doubts(self, alternatives: Iterator[Doubt]) -> Iterator[Doubt]:
        """The alternatives with other rows, those of one result once, with what differs; and the facts."""
        seen: list[pd.DataFrame] = []
        reasons: set[str] = set()
        with suppress(CorpusError, SQLFailed, UnsafeSQL, SqlglotError):
            for one in alternatives:
                value = one.facts.partition(";")[0]
                reason = {"match": "match", "value": value}.get(one.reason, one.statement or value)
                if reason in reasons:
                    continue  # of another table of the same join, or of the same value
                if one.rows is not None or not one.statement or has_functions(one.statement):
                    yield one
                    continue
                seconds = _PATIENCE if one.reason in ("repeated", "key") else LEAST_SECONDS
                other = self.run(one.statement, seconds=seconds)
                if other is None or not (has_values(other) or has_values(self.rows)):
                    continue  # no rows, NULL and 0 say the same
                if any(same_rows(other, known) for known in (self.rows, *seen)):
                    continue
                seen.append(other)
                reasons.add(reason)
                yield replace(one, facts=f"{one.facts}{difference(self.rows, other)}", rows=other)


def blocks(statement: ReadStatement) -> list[exp.Select]:
    """All blocks of a statement, the outer ones first."""
    return list(statement.tree.find_all(exp.Select))


def same_rows(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Whether two results have the same rows, in any order."""
    return _counted(one) == _counted(other)


def _counted(rows: pd.DataFrame) -> Counter[tuple[object, ...]]:
    return Counter(tuple(map(_rounded, row)) for row in plain_rows(rows))


def _rounded(cell: object) -> object:
    """A cell as it is compared: a number may be written as a text."""
    if isinstance(cell, str) and NUMBER.fullmatch(cell):
        cell = float(cell) if "." in cell else int(cell)
    return float(f"{cell:.{_DIGITS}g}") if isinstance(cell, float) else cell


def has_values(rows: pd.DataFrame) -> bool:
    """Whether a cell is neither NULL nor 0, as a sum or a count of no rows is."""
    return any(cell is not None and cell != 0 for row in plain_rows(rows) for cell in row)


def difference(rows: pd.DataFrame, other: pd.DataFrame) -> str:
    """How another result differs, in a few words."""
    if other.size == 1 and rows.size <= 1:
        instead = f" instead of {_excerpt(rows.iat[0, 0])}" if rows.size else ""
        return f"it would be {_excerpt(other.iat[0, 0])}{instead}"
    if len(rows) != len(other):
        return f"there would be {counted(len(other), 'row')} instead of {len(rows):,}"
    return f"{(_counted(rows) - _counted(other)).total():,} of {len(rows):,} rows would differ"


def _excerpt(cell: object) -> str:
    plain = plain_value(cell)
    return f"{plain:.10g}" if isinstance(plain, float) else str(plain)
