"""Merges as one statement in the engine that holds all tables: only the result is read.

A plan runs in the engine only if SQL gives the same result as pandas. This is checked: keys are of one kind, no text
without a partner would find one in canonical form (servers have their own comparison: `Pushdown.as_in_memory`), and the
tests can be written in SQL. A second statement over the same joins makes all counts of the report, when they are first
read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

import pandas as pd
from sqlglot import exp

from tagframe.engines.base import Engine
from tagframe.engines.cells import CellTest, Condition, Either, tests_of
from tagframe.engines.pushdown import (
    Cells,
    Pushdown,
    Statement,
    can_test,
    compared,
    condition,
    is_missing,
    named_column,
)
from tagframe.joins.aggregates import FIRST
from tagframe.joins.statement import JOINS, Joined, made_of, one_row_a_key
from tagframe.joins.steps import How, JoinStep, PlanTable
from tagframe.merging import advice
from tagframe.merging.report import MergeReport, RowCounts, StepReport
from tagframe.merging.source_facts import Key, SourceFacts
from tagframe.merging.where import MergeRequest, NotPushable

_COUNTED = ("rows", "matched", "out", "size", "used")
_REACH, _ROUNDS = 64, 3
"""For a limit: the first number of rows of the start table per row, the factor of each round, and the rounds."""


def merge_in_engine(request: MergeRequest, engine: Engine) -> tuple[pd.DataFrame, MergeReport]:
    """The merged frame and its report.

    Raises:
        NotPushable: the engine runs no joins, SQL might give another result, or it would not be faster.
        ServerGone, UnreadableTable, ColumnNotFound: a table cannot be read, or has changed.
    """
    with _opened(request, engine) as merge:
        merge.check()
        frame, sql = merge.run()
        merge.say_loss(len(frame))
    return frame, _report(merge, engine, len(frame), sql)


def _report(merge: MergeStatements, engine: Engine, rows: int, sql: str) -> MergeReport:
    def count() -> RowCounts:
        with _opened(merge.request, engine) as again:
            return again.counts

    counts = merge.counts if "counts" in vars(merge) else count
    return MergeReport(merge.plan, rows, counts, merge.pushdown.kind, sql=sql)


@contextmanager
def _opened(request: MergeRequest, engine: Engine) -> Iterator[MergeStatements]:
    block = engine.pushdown([*dict.fromkeys(map(request.corpus.source_table, request.plan.tables))])
    if block is None:
        raise NotPushable(f"{engine.kind} runs no joins")
    with block as pushdown:
        yield MergeStatements(request, pushdown)


class MergeStatements:
    """The statements of a merge over one engine's tables; each table has an alias."""

    def __init__(self, request: MergeRequest, pushdown: Pushdown) -> None:
        self.request, self.plan, self.pushdown = request, request.plan, pushdown
        self.source = SourceFacts(pushdown)
        self._aliases = {table: f"t{number}" for number, table in enumerate(self.plan.tables)}
        self._names = {table: request.corpus.source_table(table) for table in self.plan.tables}
        self._ordered: tuple[str, ...] = ()
        self.joined = Joined(self.plan, request.how, self)

    def name(self, table: str) -> str:
        """The engine's name of a table."""
        return self._names[table]

    def cells(self, table: str, column: str) -> Cells:
        """What a column of a table holds."""
        return self.pushdown.cells(self.name(table), column)

    # --- tables in statements -----------------------------------------------------------------------------------------

    def alias(self, table: str) -> str:
        return self._aliases[table]

    def item(self, table: str) -> exp.Expr:
        """The table in FROM, with its rows numbered if they are sorted by the number; or its rows by key."""
        source, alias = self.plan.by_id[table], self._aliases[table]
        if source.aggregates:
            rows = self.pushdown.item(self.name(table), "t")
            query = one_row_a_key(source, rows, partial(self._made_of, source), lambda key: self.key(table, key, "t"))
            return query.subquery(exp.to_identifier(alias, quoted=True))
        return self.pushdown.item(self.name(table), self._aliases[table], numbered=table in self._ordered)

    def join_type(self, how: How) -> str:
        """The engine's kind of join."""
        if how == "inner" and self.pushdown.joins_in_order and not self.request.where:
            return "cross"
        return JOINS[how]

    def key(self, table: str, column: str, alias: str = "") -> exp.Expr:
        """A column as the engine compares it."""
        return compared(self.pushdown, self.name(table), column, alias or self._aliases[table])

    def _made_of(self, source: PlanTable, column: str, function: str) -> exp.Expr:
        """The aggregate as pandas computes it: NaN does not count, and sums have the type that they have in memory."""
        cell: exp.Expr = named_column(column, "t")
        kind = self.cells(source.id, column).kind
        if kind in self.pushdown.nan_kinds:
            missing = is_missing(self.pushdown, cell, kind)
            cell = exp.Case(ifs=[exp.If(this=missing.not_(), true=cell.copy())])
        found = made_of(cell, function)
        return exp.cast(found, "DOUBLE" if function == "mean" else "BIGINT") if function in ("sum", "mean") else found

    def _placeholders(self) -> dict[str, Any] | None:
        """What collects the values of placeholders; None where values are written into statements."""
        return {} if self.pushdown.binds else None

    def _tests(self, values: dict[str, Any] | None) -> list[exp.Expr]:
        """The tests of ``where``; ``values`` gets the values of the placeholders."""
        return [self._test(one, values) for one in self.request.where.tests]

    def _test(self, test: Condition, values: dict[str, Any] | None) -> exp.Expr:
        if isinstance(test, CellTest):
            column = self.joined.value(test.column, self.key)
            return exp.paren(condition(self.pushdown, column, self.name(test.column[0]), test, values))
        parts = [self._test(part, values) for part in test.parts]
        return exp.or_(*parts) if isinstance(test, Either) else exp.and_(*parts)

    # --- what may run -------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Leave the merge to pandas if SQL might give another result, or if rows that it refuses are needed.

        Raises:
            NotPushable: see :func:`merge_in_engine`.
        """
        request, pushdown = self.request, self.pushdown
        if request.how == "right":
            raise NotPushable("rows of a right merge have an order of their own")
        if request.how == "outer" and not pushdown.joins_outer:
            raise NotPushable(f"this {pushdown.kind} has no outer joins")
        if request.where.functions:
            raise NotPushable("where= cannot be written in SQL")
        for test in (one for part in request.where.tests for one in tests_of(part)):
            if not can_test(pushdown, self.name(test.column[0]), test):
                raise NotPushable(f"{pushdown.kind} cannot run the test of where= on {'.'.join(test.column)}")
        for step in self.plan.steps:
            self._check_keys(step)
        for source in self.plan.sources:
            self._check_aggregates(source)
        may_repeat = request.on_fanout != "allow" and not all(map(self.is_unique, self.plan.steps))
        if may_repeat and any(step.fan_out > 1 for step in self.counts.steps):
            raise NotPushable("rows are repeated, which needs a warning or an error with them")
        if request.on_loss == "raise" and request.how == "inner" and self.counts.lost:
            raise NotPushable("rows are lost, which needs an error with them")

    def _check_keys(self, step: JoinStep) -> None:
        for mine, theirs in zip(step.base_columns, step.columns, strict=True):
            kinds = {self.cells(step.base, mine).key, self.cells(step.table, theirs).key}
            if self.request.how != "outer" and "integer" in kinds:
                kinds.discard("unsigned")  # compared as numbers; only one column made of both would need a type
            if "" in kinds or len(kinds - {"null"}) > 1:
                raise NotPushable(f"SQL compares the keys of {step} differently")
            if kinds == {"text"} and self.pushdown.as_in_memory:
                base, table = self.name(step.base), self.name(step.table)
                fact = ("matches otherwise", mine, table, theirs)
                if self.source.fact(base, fact, partial(self._may_match, base, mine, table, theirs)):
                    raise NotPushable(f"keys of {step} may match in another spelling")

    def _check_aggregates(self, source: PlanTable) -> None:
        """Leave aggregates that depend on the order of rows (sums of fractions) or on the sort order of texts."""
        made = dict(source.aggregates)
        if made and self.request.how == "outer":
            raise NotPushable(f"the engine has no fixed order for the rows of {source.id}")
        tested = {test.column for part in self.request.where.tests for test in tests_of(part)}
        if any((source.id, column) in tested for column in made):
            raise NotPushable(f"where= tests an aggregate of {source.id}")
        for column, function in made.items():
            cells = self.cells(source.id, column)
            if function == FIRST or not (
                function == "count"
                or cells.key == "integer"
                or (function == "nunique" and cells.key == "text")
                or (function in ("min", "max") and cells.kind in ("real", "real32") and self.pushdown.is_typed)
            ):
                raise NotPushable(f"the engine may give another {function} of {source.id}.{column}")

    def _may_match(self, table: str, column: str, other: str, other_column: str) -> bool:
        """Whether a text without a partner may find one in canonical form."""
        mine, theirs = (compared(self.pushdown, *ends) for ends in ((table, column, "t"), (other, other_column, "o")))
        there = exp.select(theirs.copy()).from_(self.pushdown.item(other, "o")).where(theirs.is_(exp.null()).not_())
        lone = mine.isin(query=there).not_()
        return self.source.may_mean(table, column, list(self.source.keys(other, other_column)), [lone])

    def is_unique(self, step: JoinStep) -> bool:
        """Whether no key of a step's new table repeats, apart from nulls."""
        is_made = bool(self.plan.by_id[step.table].aggregates)
        return is_made or self._unique[self.name(step.table), step.columns]

    @cached_property
    def _unique(self) -> dict[Key, bool]:
        joined = [step for step in self.plan.steps if not self.plan.by_id[step.table].aggregates]
        return self.source.are_unique((self.name(step.table), step.columns) for step in joined)

    def say_loss(self, rows: int) -> None:
        """Warn of lost rows, unless counting them would take long; ``rows`` is the number that the merge gave."""
        request = self.request
        if not request.says_loss:
            return
        is_whole = not request.where and (request.limit is None or rows < request.limit)
        if is_whole and all(map(self.is_unique, self.plan.steps)):
            size = self._size_of_start()
            lost = size - rows
        elif request.counts_loss:
            lost, size = self.counts.lost, self.counts.start_rows
        else:
            return
        if lost:
            advice.say_loss(self.plan.start, lost, size, None)

    # --- the rows -----------------------------------------------------------------------------------------------------

    def run(self) -> tuple[pd.DataFrame, str]:
        """The frame, and the statement that gave it."""
        request = self.request
        if self.pushdown.as_in_memory:
            # A statement that repeats rows of the start table, or adds rows, also sorts them.
            adds = request.how == "outer"
            brought = [step.table for step in self.plan.steps if adds or not self.is_unique(step)]
            self._ordered = (self.plan.start, *brought)
            if any(self.pushdown.number(self.name(table)) is None for table in self._ordered):
                raise NotPushable("the engine has no fixed order for its rows")
        if request.limit is not None and request.how != "outer" and self.pushdown.starts_early:
            reach = max(1, request.limit)
            for _ in range(_ROUNDS):
                reach *= _REACH
                statement = self.statement(reach)
                frame = self.source.rows(statement)
                if len(frame) == request.limit:
                    return self.typed(frame), statement.query
        statement = self.statement()
        return self.typed(self.source.rows(statement)), statement.query

    def typed(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows with the dtypes of pandas, and a fresh index."""
        for name, (table, column) in self.request.wanted.items():
            # As in pandas, if rows of a table are missing.
            if frame[name].dtype == object and self.cells(table, column).kind == "boolean":
                frame[name] = frame[name].astype("boolean")
        frame.index = pd.RangeIndex(len(frame))
        return frame

    def statement(self, first: int | None = None) -> Statement:
        """What gives the rows; ``first`` is how many rows of the start table are read, None for all."""
        request, start = self.request, self.plan.start
        values = self._placeholders()
        begin = None
        if first is not None:
            begin = self.pushdown.item(self.name(start), self._aliases[start], numbered=True, first=first)
        selected = [self.joined.named(key, name) for name, key in request.wanted.items()]
        query = self.joined.select(selected, self.plan.steps, start=begin)
        query = query.where(*self._tests(values), copy=False)
        query = query.order_by(*order, copy=False) if (order := self._order()) else query
        query = query if request.limit is None else query.limit(request.limit, copy=False)
        columns = [(*self._typed_by(table, column), name) for name, (table, column) in request.wanted.items()]
        what = f"the merge of {', '.join(self.plan.tables)}"
        return Statement(query.sql(dialect=self.pushdown.dialect), columns, what, values, request.limit)

    def _order(self) -> list[exp.Expr]:
        names = [(self.pushdown.number(self.name(table)), self._aliases[table]) for table in self._ordered]
        numbers: list[exp.Expr] = [named_column(name, alias) for name, alias in names if name is not None]
        if len(numbers) > 1 or self.request.how == "outer":
            # Rows without a row of the table come after the others.
            return [exp.Ordered(this=number, nulls_first=False) for number in numbers]
        return numbers

    def _typed_by(self, table: str, column: str) -> tuple[str, str]:
        """The table and column of the engine that give a column its type."""
        function = dict(self.plan.by_id[table].aggregates).get(column, "min")
        if function in ("min", "max"):
            return self.name(table), column
        return "", "real" if function == "mean" else "integer"

    # --- the account --------------------------------------------------------------------------------------------------

    @cached_property
    def counts(self) -> RowCounts:
        """The row counts of the merge, by one statement."""
        started = time.perf_counter()
        values, how, steps = self._placeholders(), self.request.how, self.plan.steps
        numbers = {"start": self._count([])}
        for at, step in enumerate(steps):
            numbers |= {f"{at} {name}": one for name, one in self._step_numbers(step, steps[:at]).items()}
        if how == "inner" and not all(map(self.is_unique, steps)):
            numbers["present"] = self._present
        if self.request.where.tests:
            numbers["selected"] = self._count(steps, *self._tests(values))
        number = self.source.numbers(numbers, lambda columns: exp.select(*columns, copy=False), values)
        seconds = (time.perf_counter() - started) / max(1, len(steps))
        reports = tuple(self._step_report(step, str(at), number, seconds) for at, step in enumerate(steps))
        joined = reports[-1].rows_out if reports else number["start"]
        lost = number["start"] - number.get("present", joined) if how == "inner" else 0
        return RowCounts(number["start"], reports, lost, joined - number.get("selected", joined))

    def _count(self, steps: Sequence[JoinStep], *tests: exp.Expr) -> exp.Expr:
        """The number of rows that some steps join, and that meet tests."""
        query = self.joined.select([exp.Count(this=exp.Star())], steps)
        return query.where(*tests, copy=False).subquery()

    def _size_of_start(self) -> int:
        return self.source.size(self.name(self.plan.start))

    @property
    def _present(self) -> exp.Expr:
        """The number of rows of the start table among the joined rows."""
        number = exp.alias_(exp.Window(this=exp.RowNumber()), "tagframe row", quoted=True)
        start, alias = self.plan.start, self._aliases[self.plan.start]
        numbered = exp.select(exp.Star(), number).from_(self.item(start), copy=False).subquery(alias)
        distinct = exp.Count(this=exp.Distinct(expressions=[named_column("tagframe row", alias)]))
        return self.joined.select([distinct], self.plan.steps, start=numbered).subquery()

    def _step_numbers(self, step: JoinStep, before: Sequence[JoinStep]) -> dict[str, exp.Expr]:
        """The numbers of a step: of the rows that the steps before it join, and of its table."""
        mine = [self.key(step.base, column) for column in step.base_columns]
        theirs = [self.key(step.table, column) for column in step.columns]
        count, table = exp.Count(this=exp.Star()), self.item(step.table)
        used = exp.select(count).from_(table).where(self._among(theirs, self.joined.select(mine, before)))
        return {
            "rows": self._count(before),
            "nulls": self._count(before, exp.or_(*(key.copy().is_(exp.null()) for key in mine))),
            "matched": self._count(before, self._among(mine, exp.select(*theirs).from_(table))),
            "out": self._count([*before, step]),
            "size": exp.select(count).from_(table).subquery(),
            "used": used.subquery(),
        }

    def _among(self, keys: Sequence[exp.Expr], query: exp.Select) -> exp.Expr:
        """Whether keys are among those of a query; unknown for a null."""
        if self.pushdown.dialect == "tsql" and len(keys) > 1:  # compares no rows
            equal = [one.eq(other) for one, other in zip(keys, query.selects, strict=True)]
            return exp.Exists(this=query.where(*equal))
        return exp.In(this=exp.Tuple(expressions=[*keys]) if len(keys) > 1 else keys[0].copy(), query=query.subquery())

    def _step_report(self, step: JoinStep, called: str, number: dict[str, int], seconds: float) -> StepReport:
        rows, matched, out, size, used = (
            number[f"{called} {name}"] for name in ("rows", "matched", "out", "size", "used")
        )
        alone, unused = rows - matched, size - used
        pairs = out - {"inner": 0, "left": alone, "outer": alone + unused}[self.request.how]
        return StepReport(
            left=step.left,
            right=step.right,
            rows_in=rows,
            rows_out=out,
            matched=matched,
            unmatched_left=alone,
            unmatched_right=unused,
            fan_out=pairs / matched if matched else 0.0,
            null_keys=number[f"{called} nulls"],
            coerced=0,
            seconds=seconds,
        )
