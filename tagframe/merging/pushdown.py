"""Joins that run inside an engine, so that only the rows of the result are loaded.

A plan runs there where SQL's answer is the same as pandas', which is checked and not assumed: one engine holds all
tables, no step repeats a row, keys are all integers or all text, and no text is left that might match after coercion.
What cannot be told is left to :func:`tagframe.merging.run_plan`. Text is compared by its bytes: two texts that are no
UTF-8 and differ do not match here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from tagframe.corpus import Corpus
from tagframe.engines.base import ColumnKind, Session
from tagframe.engines.dtypes import EXACT, typed_series
from tagframe.errors import UnreadableTable
from tagframe.joins.plan import JoinPlan
from tagframe.joins.steps import How, JoinStep
from tagframe.merging.joined_rows import taken
from tagframe.merging.report import MergeReport, StepReport
from tagframe.merging.statements import one_engine

if TYPE_CHECKING:
    from sqlglot import exp

ColumnKey = tuple[str, str]

_FEW, _SPARSE = 10_000, 0.25
"""Results of so few rows are fetched in any case; larger ones where they are at most this share of the start table."""
_MOST_VALUES = 1_000


def merge_in_engine(
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
    engine, conditions = one_engine(plan, corpus), _conditions(plan, filters)
    session = None if engine is None or conditions is None or how == "outer" else engine.session()
    if session is None or conditions is None:
        return None
    try:
        with session as queries:
            tables = {
                table: _Table(queries, f"t{place}", corpus.source_table(table))
                for place, table in enumerate(plan.tables)
            }
            return _Join(queries, plan, tables, how).run(wanted, conditions, limit)
    except UnreadableTable:
        # A table whose rows have no numbers, or one that cannot be read: the plain way works, or says what is wrong.
        return None


@dataclass(frozen=True)
class _Condition:
    """``where`` on one column: it is null, or one of some values of one kind."""

    column: ColumnKey
    kind: Literal["null", "number", "text"]
    values: tuple[Any, ...] = ()


def _conditions(plan: JoinPlan, filters: Mapping[ColumnKey, Any]) -> list[_Condition] | None:
    found = [_condition(column, value) for column, value in filters.items()]
    return None if None in found else [condition for condition in found if condition is not None]


def _condition(column: ColumnKey, value: Any) -> _Condition | None:
    """``column == value``, or one of several, without SQL's conversions; None for what is not as plain as that."""
    if value is None or value is pd.NA:
        return _Condition(column, "null")
    values = tuple(value) if isinstance(value, (list, tuple, set, frozenset)) else (value,)
    if len(values) <= _MOST_VALUES and all(map(_is_plain_number, values)):
        return _Condition(column, "number", values)
    if len(values) <= _MOST_VALUES and all(map(_is_plain_text, values)):
        return _Condition(column, "text", values)
    return None


def _is_plain_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < EXACT


def _is_plain_text(value: Any) -> bool:
    # What cannot be decoded is read as U+FFFD, and a lone surrogate cannot be encoded.
    return type(value) is str and "\ufffd" not in value and value.isprintable()


class _Table:
    """One table of the engine, as the statement calls it."""

    def __init__(self, session: Session, alias: str, name: str) -> None:
        self._session, self._name, self._alias = session, name, alias
        self._number = session.row_number(name)

    @property
    def number(self) -> exp.Column:
        """What numbers its rows."""
        return self.column(self._number)

    @cached_property
    def size(self) -> int:
        """Its rows."""
        return self._session.size(self._name)

    def item(self) -> exp.Expr:
        """The table in FROM or JOIN."""
        from sqlglot import exp

        return exp.alias_(exp.Table(this=exp.to_identifier(self._name, quoted=True)), self._alias, table=True)

    def column(self, name: str) -> exp.Column:
        """A column of it."""
        from sqlglot import exp

        return exp.column(exp.to_identifier(name, quoted=True), table=self._alias)

    def kind(self, column: str) -> tuple[ColumnKind | None, bool]:
        """What the column holds, and whether it may have nulls."""
        return self._session.column_kind(self._name, column)

    def is_unique(self, columns: Sequence[str]) -> bool:
        """Whether no key repeats, nulls aside."""
        return self._session.is_unique(self._name, columns)


@dataclass(frozen=True)
class _Keys:
    """The keys of a step: whether they are text, and whether the base may have null ones."""

    is_text: bool
    has_nulls: bool


class _Join:
    """A plan as queries over one engine."""

    def __init__(self, session: Session, plan: JoinPlan, tables: Mapping[str, _Table], how: How) -> None:
        self._session, self._plan, self._tables, self._how = session, plan, tables, how
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
        if rows > max(_FEW, _SPARSE * self._start.size):
            return None
        frame = self._frame(wanted, conditions, rows)
        joined = steps[-1].rows_out if steps else self._start.size
        lost = self._start.size - joined
        kind = self._session.kind
        return frame, MergeReport(self._plan.start, self._start.size, steps, rows, lost, joined - kept, kind)

    def _keys(self, step: JoinStep) -> _Keys | None:
        """None where SQL might compare otherwise than pandas."""
        is_text = has_nulls = False
        for mine, theirs in zip(step.base_columns, step.columns, strict=True):
            (kind, nulls), (other, _) = self._tables[step.base].kind(mine), self._tables[step.table].kind(theirs)
            if None in (kind, other) or len({kind, other} - {"null"}) > 1:
                return None
            is_text, has_nulls = is_text or "text" in (kind, other), has_nulls or nulls
        return _Keys(is_text, has_nulls or (self._how == "left" and step.base != self._plan.start))

    def _on(self, step: JoinStep) -> list[exp.Expr]:
        base, table = self._tables[step.base], self._tables[step.table]
        return [
            self._session.exact(base.column(mine)).eq(table.column(theirs))
            for mine, theirs in zip(step.base_columns, step.columns, strict=True)
        ]

    def _counted(self, keys: Sequence[_Keys], conditions: Sequence[_Condition]) -> tuple[tuple[StepReport, ...], int]:
        """All steps in one pass over the start table, and how many joined rows fit the conditions.

        A row that an inner join loses finds no later partner.
        """
        from sqlglot import exp

        started = time.perf_counter()
        shown: list[exp.Expr] = [exp.Count(this=exp.Star())]
        query = exp.select().from_(self._start.item())
        alive: list[exp.Expr] = []
        for step, key in zip(self._plan.steps, keys, strict=True):
            base, table = self._tables[step.base], self._tables[step.table]
            shown += [exp.Count(this=table.number), exp.Count(this=exp.Distinct(expressions=[table.number]))]
            empty = [base.column(column).is_(exp.null()) for column in step.base_columns]
            shown.append(_how_many(exp.and_(*alive, exp.or_(*empty))) if key.has_nulls else exp.Literal.number(0))
            query = query.join(table.item(), on=exp.and_(*self._on(step), *alive), join_type="left")
            alive = [table.number.is_(exp.null()).not_()] if self._how == "inner" else []
        tests, values = self._tests(conditions)
        shown.append(_how_many(exp.and_(*alive, *tests)) if alive or tests else exp.Count(this=exp.Star()))
        ((rows, *counts, kept),) = self._session.fetch(query.select(*shown), values)
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
                    null_keys=nulls,
                    coerced=0,
                    seconds=seconds,
                )
            )
            rows = rows_out
        return tuple(found), kept

    def _tests(self, conditions: Sequence[_Condition]) -> tuple[list[exp.Expr], dict[str, Any]]:
        """The conditions, and the values of their placeholders."""
        from sqlglot import exp

        tests: list[exp.Expr] = []
        values: dict[str, Any] = {}
        for condition in conditions:
            table, name = condition.column
            column = self._tables[table].column(name)
            if condition.kind == "null":
                tests.append(column.is_(exp.null()))
                continue
            names = [f"v{len(values) + place}" for place in range(len(condition.values))]
            values.update(zip(names, condition.values, strict=True))
            compared = self._session.exact(column) if condition.kind == "text" else column
            tests.append(self._session.holds(column, condition.kind))
            tests.append(exp.In(this=compared, expressions=[exp.Placeholder(this=name) for name in names]))
        return tests, values

    def _frame(self, wanted: Mapping[str, ColumnKey], conditions: Sequence[_Condition], rows: int) -> pd.DataFrame:
        from sqlglot import exp

        needed = list(dict.fromkeys([self._plan.start, *(table for table, _ in wanted.values())]))
        columns = [self._tables[table].column(column) for table, column in wanted.values()]
        query = exp.select(*[self._tables[table].number for table in needed], *columns).from_(self._start.item())
        # Rows are taken in the order of the start table until there are enough; a condition may know a better way.
        word = "left" if self._how == "left" else "" if conditions else self._session.ordered_join
        for step in self._plan.steps:
            query = query.join(self._tables[step.table].item(), on=exp.and_(*self._on(step)), join_type=word)
        tests, values = self._tests(conditions)
        if tests:
            query = query.where(*tests)
        # Each row of the start table stands in the result once: its number alone puts the rows in order.
        cells = self._session.fetch(query.order_by(self._start.number).limit(rows), values)
        by_column = list(zip(*cells, strict=True)) if cells else [()] * (len(needed) + len(columns))
        present = {table: [number is not None for number in by_column[place]] for place, table in enumerate(needed)}
        data = {}
        for (name, (table, _)), column in zip(wanted.items(), by_column[len(needed) :], strict=False):
            is_there = np.array(present[table], dtype=bool)
            places = None if is_there.all() else np.where(is_there, np.cumsum(is_there) - 1, -1)
            data[name] = taken(typed_series(tuple(compress(column, present[table]))), places)
        return pd.DataFrame(data, index=pd.RangeIndex(len(cells)), copy=False)


def _how_many(condition: exp.Expr) -> exp.Count:
    """How many rows fit."""
    from sqlglot import exp

    return exp.Count(this=exp.Case(ifs=[exp.If(this=condition, true=exp.Literal.number(1))]))
