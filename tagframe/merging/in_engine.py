"""Merges that run as one statement in the engine that holds all tables; only the result is read.

A plan runs in the engine only if SQL gives the same result as pandas. This is checked: keys are of one kind, no text
without a partner would find one in canonical form (servers have their own comparison: `Pushdown.as_in_memory`), and the
tests can be written in SQL. The engine also makes the counts of the report, when they are first read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pandas as pd
from sqlglot import exp

from tagframe import logs
from tagframe.corpus.canonical import canonical_all
from tagframe.corpus.references import Column
from tagframe.engines.base import Engine
from tagframe.engines.cells import CellTest, Condition, Either, tests_of
from tagframe.engines.pushdown import Pushdown, Statement
from tagframe.errors import FanOut, RowsLost
from tagframe.joins.aggregates import FIRST
from tagframe.joins.statement import Joined, kept, made_of, one_row_a_key
from tagframe.joins.steps import How, JoinStep, PlanTable
from tagframe.keys.composite import MOST_ROWS
from tagframe.merging import advice
from tagframe.merging.report import MergeReport, RowCounts, StepReport
from tagframe.merging.table_rows import PlanRows
from tagframe.merging.where import Asked, LeftToMemory

SHOWN_ROWS = 1_000
"""The largest number of rows of the start table on an error."""
_SPARSE = 0.25
_MOST_LONE = 200_000
"""The largest number of distinct text keys without a partner that are compared in canonical form."""
_REACH, _ROUNDS = 64, 3
"""For a limit: the first number of rows of the start table per row, the factor of each round, and the rounds."""
_TIMES = "tagframe times"


def merge_in_engine(asked: Asked, engine: Engine) -> tuple[pd.DataFrame, MergeReport]:
    """The merged frame and its report.

    Raises:
        LeftToMemory: the engine runs no joins, SQL might give another result, or it would not be faster.
        FanOut, RowsLost: as :func:`tagframe.merging.run_plan`; with the first of the rows.
        ServerGone, UnreadableTable, ColumnNotFound: a table cannot be read, or has changed.
    """
    with _opened(asked, engine) as merge:
        merge.check()
        frame, sql = merge.run()
        merge.say_loss(len(frame))
    return frame, _report(asked, engine, merge.pushdown.kind, len(frame), sql)


def stream_in_engine(asked: Asked, engine: Engine, rows: int) -> Generator[pd.DataFrame, None, MergeReport]:
    """The merged rows as the engine makes them, in frames of about so many; returns the report.

    Raises:
        LeftToMemory, FanOut, …: as :func:`merge_in_engine`, before the first frame.
    """
    done = 0
    with _opened(asked, engine) as merge:
        merge.check()
        statement = merge.statement()
        with logs.statement("merging", statement.query, merge.pushdown.dialect):
            for frame in merge.pushdown.batches(statement, rows):
                done += len(frame)
                yield merge.typed(frame)
        if not done:  # the columns of no rows
            yield merge.typed(merge.pushdown.rows(statement))
        merge.say_loss(done)
    return _report(asked, engine, merge.pushdown.kind, done, statement.query)


def _report(asked: Asked, engine: Engine, kind: str, rows: int, sql: str) -> MergeReport:
    def count() -> RowCounts:
        with _opened(asked, engine) as again:
            return again.counts()

    return MergeReport(asked.plan, rows, count, kind, sql=sql)


@contextmanager
def _opened(asked: Asked, engine: Engine) -> Iterator[_EngineMerge]:
    block = engine.pushdown([*dict.fromkeys(map(asked.corpus.source_table, asked.plan.tables))])
    if block is None:
        raise LeftToMemory(f"{engine.kind} runs no joins")
    with block as pushdown:
        yield _EngineMerge(asked, pushdown)


class _EngineMerge:
    """A plan as statements over one engine's tables; each table has an alias."""

    def __init__(self, asked: Asked, pushdown: Pushdown) -> None:
        self.asked, self.plan, self.pushdown = asked, asked.plan, pushdown
        self._aliases = {table: f"t{number}" for number, table in enumerate(self.plan.tables)}
        self._names = {table: asked.corpus.source_table(table) for table in self.plan.tables}
        self._ordered: tuple[str, ...] = ()
        self._unique: dict[str, bool] = {}
        self.joined = Joined(self.plan, asked.how, self)

    def name(self, table: str) -> str:
        """The engine's name of a table."""
        return self._names[table]

    # --- tables in statements -----------------------------------------------------------------------------------------

    def alias(self, table: str) -> str:
        return self._aliases[table]

    def item(self, table: str) -> exp.Expr:
        """The table in FROM, with its rows numbered if they are sorted by the number."""
        if self.plan.by_id[table].aggregates:
            return self._whole(table, self._aliases[table])
        return self.pushdown.item(self.name(table), self._aliases[table], numbered=table in self._ordered)

    def join_type(self, how: How) -> str:
        """The engine's kind of join."""
        return self.pushdown.join_type(how, is_tested=bool(self.asked.where))

    def as_key(self, column: exp.Expr) -> exp.Expr:
        """The key as the engine compares it."""
        return self.pushdown.as_key(column)

    def _whole(self, table: str, alias: str) -> exp.Expr:
        item, source = self.pushdown.item(self.name(table), alias), self.plan.by_id[table]
        if not source.aggregates:
            return item
        return one_row_a_key(source, item, partial(self._made_of, source), self.as_key).subquery(
            exp.to_identifier(alias, quoted=True)
        )

    def _made_of(self, source: PlanTable, column: str, function: str) -> exp.Expr:
        """The aggregate as pandas computes it: NaN does not count, and sums have the type that they have in memory."""
        cell: exp.Expr = exp.column(exp.to_identifier(column, quoted=True))
        kind = self.pushdown.cell_kind(self.name(source.id), column)
        if kind in ("real", "real32"):
            cell = exp.Case(ifs=[exp.If(this=self.pushdown.missing(cell, kind).not_(), true=cell.copy())])
        found = made_of(cell, function)
        return exp.cast(found, "DOUBLE" if function == "mean" else "BIGINT") if function in ("sum", "mean") else found

    def _size(self, table: str) -> exp.Expr:
        return exp.select(exp.Count(this=exp.Star())).from_(self._whole(table, "whole"), copy=False).subquery()

    def _tests(self, values: dict[str, Any] | None) -> list[exp.Expr]:
        """The tests of ``where``; ``values`` gets the values of the placeholders."""
        return [self._test(condition, values) for condition in self.asked.where.tests]

    def _test(self, condition: Condition, values: dict[str, Any] | None) -> exp.Expr:
        if isinstance(condition, CellTest):
            return self.pushdown.test(
                self.joined.value(condition.column), self.name(condition.column[0]), condition, values
            )
        parts = [self._test(part, values) for part in condition.parts]
        return exp.or_(*parts) if isinstance(condition, Either) else exp.and_(*parts)

    def _number(self, query: exp.Expr, values: dict[str, Any] | None = None) -> dict[str, Any]:
        sql = query.sql(dialect=self.pushdown.dialect)
        with logs.statement("merging", sql, self.pushdown.dialect):
            return self.pushdown.numbers(sql, values)

    # --- what may run -------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Leave the merge to pandas if SQL might give another result, and refuse lost or repeated rows.

        Raises:
            LeftToMemory, FanOut, RowsLost: see :func:`merge_in_engine`.
        """
        asked, pushdown = self.asked, self.pushdown
        if asked.how == "right":
            raise LeftToMemory("rows of a right merge have an order of their own")
        if asked.how == "outer" and not pushdown.joins_outer:
            raise LeftToMemory(f"this {pushdown.kind} has no outer joins")
        if not asked.where.is_said:
            raise LeftToMemory("where= cannot be written in SQL")
        for condition in asked.where.tests:
            for test in tests_of(condition):
                if not pushdown.says(self.name(test.column[0]), test):
                    raise LeftToMemory(f"{pushdown.kind} cannot run the test of where= on {'.'.join(test.column)}")
        for step in self.plan.steps:
            self._check_keys(step)
        for source in self.plan.sources:
            self._check_made(source)
        self._check_size()
        if asked.on_fanout != "allow":
            self._refuse_fan_out()
        if asked.on_loss == "raise" and asked.how == "inner" and self.plan.steps:
            if asked.on_fanout == "allow" and not all(map(self.is_unique, self.plan.steps)):
                raise LeftToMemory("rows are repeated, and lost rows are refused")
            self._refuse_loss()

    def _check_keys(self, step: JoinStep) -> None:
        base, table = self.name(step.base), self.name(step.table)
        for mine, theirs in zip(step.base_columns, step.columns, strict=True):
            kinds = {self.pushdown.key_kind(base, mine), self.pushdown.key_kind(table, theirs)}
            if self.asked.how != "outer" and "integer" in kinds:
                kinds.discard("unsigned")  # compared as numbers; only one column made of both would need a type
            if "" in kinds or len(kinds - {"null"}) > 1:
                raise LeftToMemory(f"SQL compares the keys of {step} differently")
            if kinds == {"text"} and self.pushdown.as_in_memory:
                fact = ("matches otherwise", mine, table, theirs)
                if self.pushdown.known(base, fact, partial(self._may_match, base, mine, table, theirs)):
                    raise LeftToMemory(f"keys of {step} may match in another spelling")

    def _check_made(self, source: PlanTable) -> None:
        """Leave aggregates that depend on the order of rows (sums of fractions) or on the sort order of texts."""
        made = dict(source.aggregates)
        if made and self.asked.how == "outer":
            raise LeftToMemory(f"the engine has no fixed order for the rows of {source.id}")
        if any(test.column[0] == source.id and test.column[1] in made
               for condition in self.asked.where.tests for test in tests_of(condition)):  # fmt: skip
            raise LeftToMemory(f"where= tests an aggregate of {source.id}")
        for column, function in made.items():
            kind = self.pushdown.key_kind(self.name(source.id), column)
            cells = self.pushdown.cell_kind(self.name(source.id), column)
            if function == FIRST or not (
                function == "count"
                or kind == "integer"
                or (function == "nunique" and kind == "text")
                or (function in ("min", "max") and cells in ("real", "real32"))
            ):
                raise LeftToMemory(f"the engine may give another {function} of {source.id}.{column}")

    def _may_match(self, table: str, column: str, other: str, other_column: str) -> bool:
        """Whether a text without a partner may find one in canonical form: " Prague" and "prague"."""
        lone, held = self.pushdown.lone(table, column, other, other_column, _MOST_LONE)
        if not lone or len(lone) == _MOST_LONE:
            return bool(lone)
        forms = {form for form in canonical_all(held)[0] if form is not None}
        return not forms.isdisjoint(canonical_all(lone)[0])

    def _check_size(self) -> None:
        """Leave merges that are faster with whole columns."""
        asked = self.asked
        if self.pushdown.most_rows is None or asked.is_forced:
            return
        most = max(self.pushdown.most_rows, _SPARSE * self.pushdown.size(self.name(self.plan.start)))
        rows = asked.limit
        if rows is None or rows > most:
            found = self._count_kept()
            rows = found if rows is None else min(found, rows)
        if rows > most:
            raise LeftToMemory(f"most rows are needed, and reading them is faster than a join in {self.pushdown.kind}")

    def is_unique(self, step: JoinStep) -> bool:
        """Whether no key of a step's new table repeats, apart from nulls."""
        if step.table not in self._unique:
            made = self.plan.by_id[step.table].aggregates
            self._unique[step.table] = bool(made) or self.pushdown.is_unique(self.name(step.table), step.columns)
        return self._unique[step.table]

    def _refuse_fan_out(self) -> None:
        for step in self.plan.steps:
            if self.is_unique(step):
                continue
            shown = [exp.Count(this=exp.Star()), exp.Max(this=_column(_TIMES, "twice"))]
            found = self._number(self._repeated(step, [exp.alias_(shown[0], "n"), exp.alias_(shown[1], "most")]))
            if not found["n"]:
                continue
            if self.asked.on_fanout == "warn":
                raise LeftToMemory("rows are repeated, which needs a warning")
            size = self.pushdown.size(self.name(step.table))
            copies = PlanRows(self.asked.corpus, self.plan).copies(step.table, step.columns) if size <= MOST_ROWS else 0
            n, most = int(found["n"]), int(found["most"])
            message = advice.fan_out(self.plan, step, n, most, are_all=False, copies=copies)
            raise FanOut(message, self._start_rows(partial(self._repeated, step)))

    def _repeated(self, step: JoinStep, shown: Sequence[exp.Expr]) -> exp.Select:
        """The rows so far that have several partners in the step's table."""
        twice = self._partners(step).having(exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1)))
        before = self.joined.select(shown, self.plan.steps[: self.plan.steps.index(step)])
        return before.join(twice.subquery("twice"), on=self.joined.equal(step, brought="twice"), copy=False)

    def _partners(self, step: JoinStep) -> exp.Select:
        """The keys of the step's table, each with its number of rows."""
        keys = [_column(column, "brought") for column in step.columns]
        times = exp.alias_(exp.Count(this=exp.Star()), _TIMES, quoted=True)
        shown = [exp.alias_(self.as_key(key.copy()), key.name, quoted=True) for key in keys]
        query = exp.select(*shown, times, copy=False).from_(self._whole(step.table, "brought"), copy=False)
        filled = [key.is_(exp.null()).not_() for key in keys]
        return query.where(*filled, copy=False).group_by(*(self.as_key(key) for key in keys), copy=False)

    def _refuse_loss(self) -> None:
        lost, rows = self._losses()
        if lost:
            message = advice.loss(self.plan.start, lost, rows)
            raise RowsLost(
                f"{message}. The first of them are in .rows of this error. how='left' keeps them",
                self._start_rows(self._lost_rows),
            )

    def _lost_rows(self, shown: Sequence[exp.Expr]) -> exp.Select:
        """The rows of the start table that lack a partner, if no step repeats rows."""
        lost = exp.and_(*map(self._found, self.plan.steps)).not_()
        return self.joined.select(shown, self.plan.steps, join_type="left").where(lost, copy=False)

    def _losses(self) -> tuple[int, int]:
        """The number of lost rows of the start table, and of all its rows."""
        if not all(map(self.is_unique, self.plan.steps)):
            rows = self._size_of_start()
            return rows - self._present(), rows
        shown = [exp.alias_(exp.Count(this=exp.Star()), "lost"), exp.alias_(self._size(self.plan.start), "n")]
        found = self._number(self._lost_rows(shown))
        return int(found["lost"]), int(found["n"])

    def say_loss(self, rows: int) -> None:
        """Warn of lost rows, unless counting them would take long; ``rows`` is the number that the merge gave."""
        asked = self.asked
        if not asked.says_loss:
            return
        is_whole = not asked.where and (asked.limit is None or rows < asked.limit)
        if is_whole and all(map(self.is_unique, self.plan.steps)):
            size = self._size_of_start()
            lost = size - rows
        elif asked.counts_loss:
            lost, size = self._losses()
        else:
            return
        if lost:
            advice.say_loss(self.plan.start, lost, size, None)

    def _found(self, step: JoinStep) -> exp.Expr:
        """Whether a row has a partner in the step's table; partners with a null in their key do not count."""
        return self.joined.column(step.table, step.columns[0]).is_(exp.null()).not_()

    def _start_rows(self, query: Callable[[list[exp.Expr]], exp.Select]) -> pd.DataFrame:
        """The first rows of the start table of a query, in their order; the query is made from the shown columns."""
        start = self.plan.start
        source, called = self.plan.source(start), self.name(start)
        names = [column for column in source.columns if column not in source.hidden]
        number = self.pushdown.number(called, self._aliases[start])
        self._ordered = () if number is None else (start,)
        found = query([self.joined.column(start, name) for name in names])
        found = found if number is None else found.order_by(number, copy=False)
        sql = found.limit(SHOWN_ROWS, copy=False).sql(dialect=self.pushdown.dialect)
        return self.pushdown.rows(Statement(sql, [(called, name, name) for name in names], f"table {called!r}"))

    # --- the rows -----------------------------------------------------------------------------------------------------

    def run(self) -> tuple[pd.DataFrame, str]:
        """The frame, and the statement that gave it."""
        asked = self.asked
        if self.pushdown.as_in_memory:
            # A statement that repeats rows of the start table, or adds rows, also sorts them.
            adds = asked.how == "outer"
            brought = [step.table for step in self.plan.steps if adds or not self.is_unique(step)]
            self._ordered = (self.plan.start, *brought)
            if any(self.pushdown.number(self.name(table), self._aliases[table]) is None for table in self._ordered):
                raise LeftToMemory("the engine has no fixed order for its rows")
        found = None
        if asked.limit is not None and asked.how != "outer" and self.pushdown.starts_early:
            reach = max(1, asked.limit)
            for _ in range(_ROUNDS):
                reach *= _REACH
                found = self._rows(reach)
                if len(found[0]) == asked.limit:
                    break
                found = None
        frame, sql = self._rows() if found is None else found
        self._ordered = ()
        return self.typed(frame), sql

    def typed(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows with the dtypes of pandas, and a fresh index."""
        for name, (table, column) in self.asked.wanted.items():
            # As in pandas, if rows of a table are missing.
            if self.pushdown.cell_kind(self.name(table), column) == "boolean" and frame[name].dtype == object:
                frame[name] = frame[name].astype("boolean")
        frame.index = pd.RangeIndex(len(frame))
        return frame

    def _rows(self, first: int | None = None) -> tuple[pd.DataFrame, str]:
        statement = self.statement(first)
        with logs.statement("merging", statement.query, self.pushdown.dialect):
            return self.pushdown.rows(statement), statement.query

    def statement(self, first: int | None = None) -> Statement:
        """What gives the rows; ``first`` is how many rows of the start table are read, None for all."""
        values, sql = kept(self._known_as(first), lambda: self._statement(first))
        asked = self.asked
        columns = [(*self._typed(table, column), name) for name, (table, column) in asked.wanted.items()]
        what = f"the merge of {', '.join(self.plan.tables)}"
        is_sought = bool(asked.where) and not asked.are_small
        return Statement(sql, columns, what, values, asked.limit, is_sought)

    def _typed(self, table: str, column: str) -> tuple[str, str]:
        """The table and column of the engine that give a column its type."""
        function = dict(self.plan.by_id[table].aggregates).get(column, "min")
        if function in ("min", "max"):
            return self.name(table), column
        return "", "real" if function == "mean" else "integer"

    def _known_as(self, first: int | None) -> Any:
        """The cache key of this merge's statement."""
        asked = self.asked
        tested = [test for condition in asked.where.tests for test in tests_of(condition)]
        values = tuple((type(value), repr(value)) for test in tested for value in test.values)
        kinds = tuple(self.pushdown.cell_kind(self.name(test.column[0]), test.column[1]) for test in tested)
        items = tuple(self.pushdown.from_item(self.name(table)) for table in self.plan.tables)
        shape = repr(asked.where.tests)
        return (self.pushdown.kind, items, self.plan, asked.how, tuple(asked.wanted.items()), shape, values, kinds,
                asked.limit, self._ordered, first)  # fmt: skip

    def _statement(self, first: int | None) -> tuple[dict[str, Any] | None, str]:
        """The statement of the rows, and the values of its placeholders."""
        asked, start = self.asked, self.plan.start
        values: dict[str, Any] | None = {} if self.pushdown.binds else None
        shown = [self.joined.named(key, name) for name, key in asked.wanted.items()]
        begin = None
        if first is not None:
            begin = self.pushdown.item(self.name(start), self._aliases[start], numbered=True, first=first)
        query = self.joined.select(shown, self.plan.steps, start=begin)
        query = query.where(*self._tests(values), copy=False)
        numbers = [self.pushdown.number(self.name(table), self._aliases[table]) for table in self._ordered]
        if len(numbers) > 1 or asked.how == "outer":
            # Rows without a row of the table come after the others.
            numbers = [number and exp.Ordered(this=number, nulls_first=False) for number in numbers]
        numbers = numbers or self._stored_order()
        query = query.order_by(*filter(None, numbers), copy=False) if numbers else query
        query = query if asked.limit is None else query.limit(asked.limit, copy=False)
        return values, query.sql(dialect=self.pushdown.dialect)

    def _stored_order(self) -> list[exp.Expr | None]:
        """As a server stores its rows, where it might give them in the order of a hidden key."""
        hidden = {(source.id, column) for source in self.plan.sources for column in source.hidden}
        ends = {end for step in self.plan.steps for end in self._ends(step)}
        if self.pushdown.as_in_memory or not hidden & ends:
            return []
        found: list[exp.Expr | None] = []
        for table in self.plan.tables:
            order = "" if self.plan.by_id[table].aggregates else self.pushdown.order(self.name(table))
            if not order:
                raise LeftToMemory("its rows would come in the order of a hidden key")
            column: exp.Expr = exp.maybe_parse(order, dialect=self.pushdown.dialect)
            column.set("table", exp.to_identifier(self._aliases[table], quoted=True))
            found.append(exp.Ordered(this=column, nulls_first=False))
        return found

    @staticmethod
    def _ends(step: JoinStep) -> list[Column]:
        return [*((step.base, one) for one in step.base_columns), *((step.table, one) for one in step.columns)]

    # --- the account --------------------------------------------------------------------------------------------------

    def counts(self) -> RowCounts:
        """The row counts of the merge."""
        steps: list[StepReport] = []
        changing: list[JoinStep] = []
        for step in self.plan.steps:
            told = self._counted(step, changing)
            alone = {"inner": told.unmatched_left, "left": 0, "outer": told.unmatched_right}[self.asked.how]
            changing += [step] if alone or told.fan_out > 1 else []
            steps.append(told)
        size = steps[0].rows_in if steps else self._size_of_start()
        joined = steps[-1].rows_out if steps else size
        repeats = self.asked.how == "outer" or any(told.fan_out > 1 for told in steps)
        alive = self._present() if repeats else joined
        kept_rows = self._count_kept() if self.asked.where.tests else joined
        return RowCounts(size, tuple(steps), size - alive, joined - kept_rows)

    def _count_kept(self) -> int:
        """The number of joined rows that ``where`` keeps."""
        values: dict[str, Any] | None = {} if self.pushdown.binds else None
        query = self.joined.select([exp.alias_(exp.Count(this=exp.Star()), "n")], self.plan.steps)
        return int(self._number(query.where(*self._tests(values), copy=False), values)["n"])

    def _size_of_start(self) -> int:
        return self.pushdown.size(self.name(self.plan.start))

    def _present(self) -> int:
        """The number of rows of the start table among the joined rows."""
        number = exp.alias_(exp.Window(this=exp.RowNumber()), "tagframe row", quoted=True)
        start, alias = self.plan.start, self._aliases[self.plan.start]
        numbered = exp.select(exp.Star(), number).from_(self._whole(start, "whole"), copy=False).subquery(alias)
        shown = exp.Count(this=exp.Distinct(expressions=[_column("tagframe row", alias)]))
        query = self.joined.select([exp.alias_(shown, "n")], self.plan.steps, start=numbered)
        return int(self._number(query)["n"])

    def _counted(self, step: JoinStep, changing: Sequence[JoinStep]) -> StepReport:
        """The report of a step, from the distinct keys of the rows before it and their number of rows.

        Each key is looked up once, not once per row. The same look-up says which keys of the other table are used.

        Args:
            step: the step.
            changing: the steps before it that lose, add or repeat rows. Other steps only lead to its keys.
        """
        started = time.perf_counter()
        wanted = {step.base, *(other.table for other in changing)}
        before: list[JoinStep] = []
        for other in reversed(self.plan.steps[: self.plan.steps.index(step)]):
            if other.table in wanted:
                before.insert(0, other)
                wanted.add(other.base)
        mine = [self.as_key(self.joined.column(step.base, column)) for column in step.base_columns]
        keys = [f"tagframe key {position}" for position in range(len(mine))]
        shown = [exp.alias_(column, key, quoted=True) for column, key in zip(mine, keys, strict=True)]
        shown.append(exp.alias_(exp.Count(this=exp.Star()), _TIMES, quoted=True))
        found = self.joined.select(shown, before).group_by(*(column.copy() for column in mine), copy=False)
        theirs = [_column(column, "brought") for column in step.columns]
        known = [_column(key, "found") for key in keys]
        equal = [self.as_key(key.copy()).eq(column.copy()) for key, column in zip(known, theirs, strict=True)]
        many, times = _column(_TIMES, "found"), _column(_TIMES, "brought")
        has_partner = theirs[0].is_(exp.null()).not_()
        brought: exp.Expr
        if self.is_unique(step):
            brought, pairs = self._whole(step.table, "brought"), _sum_where(many, has_partner)
            used: exp.Expr = exp.Count(this=theirs[0].copy())
        else:
            brought, pairs = self._partners(step).subquery("brought"), exp.Sum(this=many * times)
            used = exp.Sum(this=times)
        query = exp.select(
            exp.alias_(exp.Sum(this=many), "n"),
            exp.alias_(_sum_where(many, exp.or_(*(key.is_(exp.null()) for key in known))), "empty"),
            exp.alias_(_sum_where(many, has_partner), "matched"),
            exp.alias_(pairs, "pairs"),
            exp.alias_(used, "used"),
            exp.alias_(self._size(step.table), "size"),
            copy=False,
        ).from_(found.subquery("found"), copy=False)
        query = query.join(brought, on=exp.and_(*equal), join_type="left", copy=False)
        number = {name: int(count or 0) for name, count in self._number(query).items()}
        alone, unused = number["n"] - number["matched"], number["size"] - number["used"]
        return StepReport(
            left=step.left,
            right=step.right,
            rows_in=number["n"],
            rows_out=number["pairs"] + {"inner": 0, "left": alone, "outer": alone + unused}[self.asked.how],
            matched=number["matched"],
            unmatched_left=alone,
            unmatched_right=unused,
            fan_out=number["pairs"] / number["matched"] if number["matched"] else 0.0,
            null_keys=number["empty"],
            coerced=0,
            seconds=time.perf_counter() - started,
        )


def _column(name: str, table: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(table, quoted=True))


def _sum_where(number: exp.Expr, condition: exp.Expr) -> exp.Expr:
    return exp.Sum(this=exp.Case(ifs=[exp.If(this=condition, true=number.copy())]))
