"""Joins that run inside a SQLite file, so that only the rows of the result are loaded.

A plan runs there where SQL's answer is the same as pandas', which is checked and not assumed: one file holds all
tables, no step repeats a row, keys are all integers or all text, and no text is left that might match after coercion.
What cannot be told is left to :func:`tagframe.merging.run_plan`. Text is compared by its bytes: two texts that are no
UTF-8 and differ do not match here.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tagframe.corpus import Corpus
from tagframe.engines.sqlite import connect_readonly, quoted, typed_series
from tagframe.joins.plan import How, JoinPlan, JoinStep
from tagframe.merging.joined_rows import taken
from tagframe.merging.report import MergeReport, StepReport
from tagframe.merging.table_rows import SPARSE, rowid_name

ColumnKey = tuple[str, str]

_FEW = 10_000
"""Results of so few rows are fetched in any case; larger ones where they are a small part of the start table."""
_MOST_VALUES = 1_000
_EXACT = 2**53


def merge_in_sqlite(
    plan: JoinPlan,
    corpus: Corpus,
    wanted: Mapping[str, ColumnKey],
    filters: Mapping[ColumnKey, Any],
    *,
    how: How,
    limit: int | None,
) -> tuple[pd.DataFrame, MergeReport] | None:
    """The merged frame and its report, or None where SQL might answer otherwise than pandas, or gains nothing.

    Args:
        plan: how the tables are joined.
        corpus: where they are.
        wanted: name in the result → (table id, column), in order.
        filters: (table id, column) → what :func:`tagframe.merging.run_plan` takes as a value of ``where``.
        how: the kind of every join.
        limit: rows at most.
    """
    path = _one_file(plan, corpus)
    conditions = _conditions(plan, filters)
    if path is None or conditions is None or how == "outer":
        return None
    try:
        with closing(connect_readonly(path)) as connection:
            connection.execute("BEGIN")  # all statements see one state of the file
            tables = {table: _Table(connection, f"t{place}", *_names(corpus, table))
                      for place, table in enumerate(plan.tables)}  # fmt: skip
            return _Join(connection, plan, tables, how).run(wanted, conditions, limit)
    except (sqlite3.Error, OSError):
        # A table without row ids, or a file that cannot be read: the plain way works, or says what is wrong.
        return None


def _one_file(plan: JoinPlan, corpus: Corpus) -> Path | None:
    if any(source.parts for source in plan.sources):
        return None
    files = {corpus.sqlite_file(table) for table in plan.tables}
    return files.pop() if len(files) == 1 else None


def _names(corpus: Corpus, table: str) -> tuple[str, str | None]:
    """The table's name in the file, and what its row ids are called."""
    return corpus.source_table(table), rowid_name(corpus.profile(table))


@dataclass(frozen=True)
class _Condition:
    """``where`` on one column: SQL with ``{}`` in place of the column, and its parameters."""

    column: ColumnKey
    sql: str
    values: tuple[Any, ...]


def _conditions(plan: JoinPlan, filters: Mapping[ColumnKey, Any]) -> list[_Condition] | None:
    found = [_condition(column, value) for column, value in filters.items()]
    return None if None in found else [condition for condition in found if condition is not None]


def _condition(column: ColumnKey, value: Any) -> _Condition | None:
    """``column == value``, or one of several, without SQL's conversions; None for what is not as plain as that."""
    if value is None or value is pd.NA:
        return _Condition(column, "{} IS NULL", ())
    values = tuple(value) if isinstance(value, (list, tuple, set, frozenset)) else (value,)
    marks = ", ".join("?" * len(values))
    if len(values) <= _MOST_VALUES and all(map(_is_plain_number, values)):
        return _Condition(column, f"typeof({{}}) IN ('integer', 'real') AND {{}} IN ({marks})", values)
    if len(values) <= _MOST_VALUES and all(map(_is_plain_text, values)):
        return _Condition(column, f"typeof({{}}) = 'text' AND {{}} COLLATE BINARY IN ({marks})", values)
    return None


def _is_plain_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < _EXACT


def _is_plain_text(value: Any) -> bool:
    # What cannot be decoded is read as U+FFFD, and a lone surrogate cannot be encoded.
    return type(value) is str and "\ufffd" not in value and value.isprintable()


class _Table:
    """One table of the file, as the statement calls it."""

    def __init__(self, connection: sqlite3.Connection, alias: str, name: str, rowid: str | None) -> None:
        if rowid is None:
            raise sqlite3.OperationalError(f"the row ids of {name} are hidden by columns of their names")
        self._connection = connection
        self.alias, self.name = alias, name
        self.id = f"{alias}.{rowid}"
        self.item = f"{quoted(name)} AS {alias}"

    @cached_property
    def size(self) -> int:
        """Its rows."""
        return int(self._connection.execute(f"SELECT count(*) FROM {quoted(self.name)}").fetchone()[0])

    @cached_property
    def _indexes(self) -> list[sqlite3.Row]:
        return self._connection.execute(f"PRAGMA index_list({quoted(self.name)})").fetchall()

    @cached_property
    def numbered_by(self) -> str | None:
        """The column that is the row id (INTEGER PRIMARY KEY), which nothing but integers can be in."""
        columns = self._connection.execute(f"PRAGMA table_xinfo({quoted(self.name)})").fetchall()
        keys = [(name, declared) for _, name, declared, _, _, key, _ in columns if key]
        is_alias = len(keys) == 1 and keys[0][1].upper() == "INTEGER"
        return keys[0][0] if is_alias and all(origin != "pk" for _, _, _, origin, _ in self._indexes) else None

    def column(self, name: str) -> str:
        """A column in SQL."""
        return f"{self.alias}.{quoted(name)}"

    def kind(self, column: str) -> tuple[str | None, bool]:
        """What the column holds, and whether it may have nulls.

        "integer", "text" or, where all is null, "null"; None for any other or for a mixture.
        """
        if column == self.numbered_by:
            return "integer", False
        name = self.column(column)
        first = self._first(f"typeof({name})", f"{name} IS NOT NULL")
        if first not in ("integer", "text"):
            return ("null" if first is None else None), True
        if self._first("1", f"typeof({name}) <> '{first}'") is None:
            return first, False
        return (first if self._first("1", f"typeof({name}) NOT IN ('{first}', 'null')") is None else None), True

    def _first(self, shown: str, condition: str) -> Any:
        row = self._connection.execute(f"SELECT {shown} FROM {self.item} WHERE {condition} LIMIT 1").fetchone()
        return None if row is None else row[0]

    def is_unique(self, columns: Sequence[str]) -> bool:
        """Whether no key repeats, nulls aside."""
        if self.numbered_by in columns:
            return True
        for _, index, unique, _, partial in self._indexes:
            parts = {part for _, _, part in self._connection.execute(f"PRAGMA index_info({quoted(index)})")}
            if unique and not partial and parts <= set(columns):
                return True
        names = [self.column(column) for column in columns]
        filled = " AND ".join(f"{name} IS NOT NULL" for name in names)
        grouped = ", ".join(f"{name} COLLATE BINARY" for name in names)
        twice = f"SELECT 1 FROM {self.item} WHERE {filled} GROUP BY {grouped} HAVING count(*) > 1 LIMIT 1"
        return self._connection.execute(twice).fetchone() is None


@dataclass(frozen=True)
class _Keys:
    """The keys of a step: whether they are text, and whether the base may have null ones."""

    is_text: bool
    has_nulls: bool


class _Join:
    """A plan as statements over one file."""

    def __init__(self, connection: sqlite3.Connection, plan: JoinPlan, tables: Mapping[str, _Table], how: How) -> None:
        self._connection, self._plan, self._tables, self._how = connection, plan, tables, how
        self._start = tables[plan.start]

    def run(
        self, wanted: Mapping[str, ColumnKey], conditions: Sequence[_Condition], limit: int | None
    ) -> tuple[pd.DataFrame, MergeReport] | None:
        """The frame and the report; None where the answer might not be pandas'."""
        keys = [self._keys(step) for step in self._plan.steps]
        if not all(keys) or not all(self._tables[step.table].is_unique(step.columns) for step in self._plan.steps):
            return None
        steps, kept = self._counted([key for key in keys if key], conditions)
        for key, step in zip(keys, steps, strict=True):
            if key and key.is_text and step.matched + step.null_keys < step.rows_in:
                return None  # " Prague" may be "prague"
        rows = kept if limit is None else min(kept, limit)
        if rows > max(_FEW, SPARSE * self._start.size):
            return None
        frame = self._frame(wanted, conditions, rows)
        joined = steps[-1].rows_out if steps else self._start.size
        lost = self._start.size - joined
        return frame, MergeReport(self._plan.start, self._start.size, steps, rows, lost, joined - kept, "sqlite")

    def _keys(self, step: JoinStep) -> _Keys | None:
        """None where SQL might compare otherwise than pandas."""
        is_text = has_nulls = False
        for mine, theirs in zip(step.base_columns, step.columns, strict=True):
            (kind, nulls), (other, _) = self._tables[step.base].kind(mine), self._tables[step.table].kind(theirs)
            if None in (kind, other) or len({kind, other} - {"null"}) > 1:
                return None
            is_text, has_nulls = is_text or "text" in (kind, other), has_nulls or nulls
        return _Keys(is_text, has_nulls or (self._how == "left" and step.base != self._plan.start))

    def _on(self, step: JoinStep) -> str:
        base, table = self._tables[step.base], self._tables[step.table]
        return " AND ".join(
            f"{base.column(mine)} COLLATE BINARY = {table.column(theirs)}"
            for mine, theirs in zip(step.base_columns, step.columns, strict=True)
        )

    def _counted(self, keys: Sequence[_Keys], conditions: Sequence[_Condition]) -> tuple[tuple[StepReport, ...], int]:
        """All steps in one pass over the start table, and how many joined rows fit the conditions.

        A row that an inner join loses finds no later partner.
        """
        started = time.perf_counter()
        shown, source, alive = ["count(*)"], f"FROM {self._start.item}", "1"
        for step, key in zip(self._plan.steps, keys, strict=True):
            base, table = self._tables[step.base], self._tables[step.table]
            filled = " AND ".join(f"{base.column(column)} IS NOT NULL" for column in step.base_columns)
            nulls = f"total({alive} AND NOT ({filled}))" if key.has_nulls else "0"
            shown += [f"count({table.id})", f"count(DISTINCT {table.id})", nulls]
            source += f"\nLEFT JOIN {table.item} ON {self._on(step)} AND {alive}"
            alive = f"{table.id} IS NOT NULL" if self._how == "inner" else "1"
        tests, values = self._tests(conditions)
        shown.append(f"total({alive} AND {tests})")
        rows, *counts, kept = self._connection.execute(f"SELECT {', '.join(shown)}\n{source}", values).fetchone()
        seconds = (time.perf_counter() - started) / max(1, len(keys))
        found = []
        for place, step in enumerate(self._plan.steps):
            matched, used, nulls = counts[3 * place : 3 * place + 3]
            rows_out = matched if self._how == "inner" else rows
            found.append(
                StepReport(
                    left=step.left,
                    right=step.right,
                    rows_in=rows,
                    rows_out=rows_out,
                    matched=matched,
                    unmatched_left=rows - matched,
                    unmatched_right=self._tables[step.table].size - used,
                    fan_out=1.0 if matched else 0.0,
                    null_keys=int(nulls),
                    coerced=0,
                    seconds=seconds,
                )
            )
            rows = rows_out
        return tuple(found), int(kept)

    def _tests(self, conditions: Sequence[_Condition]) -> tuple[str, list[Any]]:
        tests = []
        for condition in conditions:
            table, column = condition.column
            tests.append(condition.sql.replace("{}", self._tables[table].column(column)))
        return " AND ".join(tests) or "1", [value for condition in conditions for value in condition.values]

    def _frame(self, wanted: Mapping[str, ColumnKey], conditions: Sequence[_Condition], rows: int) -> pd.DataFrame:
        needed = list(dict.fromkeys([self._plan.start, *(table for table, _ in wanted.values())]))
        columns = [self._tables[table].column(column) for table, column in wanted.values()]
        shown = ", ".join([*(self._tables[table].id for table in needed), *columns])
        # Rows are taken in the order of the start table until there are enough; a condition may know a better way.
        word = "LEFT JOIN" if self._how == "left" else "JOIN" if conditions else "CROSS JOIN"
        joins = [f"{word} {self._tables[step.table].item} ON {self._on(step)}" for step in self._plan.steps]
        tests, values = self._tests(conditions)
        lines = [f"SELECT {shown}", f"FROM {self._start.item}", *joins, f"WHERE {tests}"]
        # Each row of the start table stands in the result once: its row id alone puts the rows in order.
        lines.append(f"ORDER BY {self._start.id} LIMIT {rows}")
        cells = self._connection.execute("\n".join(lines), values).fetchall()
        by_column = list(zip(*cells, strict=True)) if cells else [()] * (len(needed) + len(columns))
        present = {table: [id is not None for id in by_column[place]] for place, table in enumerate(needed)}
        data = {}
        for (name, (table, _)), column in zip(wanted.items(), by_column[len(needed) :], strict=False):
            is_there = np.array(present[table], dtype=bool)
            places = None if is_there.all() else np.where(is_there, np.cumsum(is_there) - 1, -1)
            data[name] = taken(typed_series(tuple(compress(column, present[table]))), places)
        return pd.DataFrame(data, index=pd.RangeIndex(len(cells)), copy=False)
