"""Merges across engines: one source is sent the keys that the others need, and pandas joins the rows that come.

From each engine only rows are read that may be in the result. Keys of tables that are small, or that ``where`` makes
small, are sent from engine to engine towards the start table. Then the rows of the start table are read, and their keys
select the rows of the tables that they reference. This is Yannakakis' reduction of a tree of joins (VLDB 1981) by
semi-joins. The result is a part of each table, in the table's own order. It is joined like whole tables, so the frame
is the same.

Some merges are left to whole tables: the key of a step's new table repeats, keys are neither integers nor text, or text
without a partner might find one in canonical form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sqlglot import exp

from tagframe.engines.base import Engine
from tagframe.engines.cells import CellTest, fitting
from tagframe.engines.pushdown import Statement, can_test, compared, condition, named_column
from tagframe.joins.steps import JoinStep
from tagframe.merging import advice
from tagframe.merging.in_memory import Merge, columns_needed, key_kind, merge_in_memory
from tagframe.merging.report import MergeReport, Moved, RowCounts
from tagframe.merging.source_facts import SourceFacts
from tagframe.merging.table_rows import PlanRows
from tagframe.merging.where import MergeRequest, NotPushable

MAX_KEYS = 500_000
"""At most this many keys are sent; with more, the other table is read whole."""
_FIRST_ROWS = 1_000
"""For a limit: the least number of rows of the start table that are read first."""


def merge_across(
    request: MergeRequest, engines: Sequence[tuple[Engine, Sequence[str]]]
) -> tuple[pd.DataFrame, MergeReport]:
    """The merged frame and its report.

    Args:
        request: the merge.
        engines: the engines of its tables, each with its tables.

    Raises:
        NotPushable: no engine can choose rows, or SQL might give another result.
        ServerGone, UnreadableTable, ColumnNotFound: a table cannot be read, or has changed.
    """
    plan, corpus = request.plan, request.corpus
    if request.how in ("right", "outer") or any(source.parts or source.aggregates for source in plan.sources):
        raise NotPushable("right and outer merges, stacks, and tables with one row per key need all rows")
    with ExitStack() as opened:
        sources: dict[str, SourceFacts] = {}
        for engine, tables in engines:
            block = engine.pushdown([*dict.fromkeys(map(corpus.source_table, tables))])
            if block is not None and (pushdown := opened.enter_context(block)).takes_keys:
                sources.update(dict.fromkeys(tables, SourceFacts(pushdown)))
        if not sources:
            raise NotPushable("no engine can choose rows by keys")
        merge = _SemiJoin(request, sources)
        merge.check()
        frame, report = merge.run()
    # The engines are closed here: a later count reads the tables again.
    if request.says_loss and merge.start_rows is not None:
        lost, rows = merge.start_rows - len(frame), merge.start_rows
    elif request.counts_loss:
        lost, rows = report.lost, report.start_rows
    else:
        return frame, report
    if lost:
        advice.say_loss(plan.start, lost, rows, None)
    return frame, report


@dataclass(frozen=True)
class _Selection:
    """Rows of a table: those that fit all tests, and have one of the keys in each of these columns."""

    tests: tuple[CellTest, ...] = ()
    keys: Mapping[str, pd.Index] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether it leaves out no rows."""
        return not (self.tests or self.keys)


class _SemiJoin(PlanRows):
    """A running merge of tables of several engines, with the rows that may be in its result."""

    def __init__(self, request: MergeRequest, sources: Mapping[str, SourceFacts]) -> None:
        super().__init__(request.corpus, request.plan)
        self.request, self.plan, self.how = request, request.plan, request.how
        self.start_rows: int | None = None
        """Rows of the start table, if the result is a selection of them."""
        self._from, self._where = sources, request.where
        self._needed = {*request.where.columns(), *request.wanted.values()}
        self._columns = columns_needed(request.plan, self._needed)
        self._whole: dict[str, pd.DataFrame] = {}
        self._tables: dict[str, pd.DataFrame] = {}
        self._moved: list[Moved] = []
        self._statements: dict[str, str] = {}

    # --- what may run -------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Leave the merge to whole tables if SQL might join differently."""
        start = self.plan.start
        if start in self._from and self._from[start].pushdown.number(self._name(start)) is None:
            raise NotPushable("the engine has no fixed order for the rows of the start table")
        for step in self.plan.steps:
            if {step.base, step.table}.isdisjoint(self._from):
                continue
            for mine, theirs in zip(step.base_columns, step.columns, strict=True):
                kinds = {self._kind(step.base, mine), self._kind(step.table, theirs)} - {"null"}
                if len(kinds) > 1 or not kinds <= {"integer", "text"}:
                    raise NotPushable(f"SQL compares the keys of {step} differently")
        if not all(map(self._is_unique, self.plan.steps)):
            raise NotPushable("a step may repeat rows")

    def _is_unique(self, step: JoinStep) -> bool:
        if step.table in self._from:
            key = self._name(step.table), step.columns
            return self._from[step.table].are_unique([key])[key]
        return not self._here(step.table)[list(step.columns)].dropna().duplicated().any()

    def _kind(self, table: str, column: str) -> str:
        if table in self._from:
            return self._from[table].pushdown.cells(self._name(table), column).key
        return key_kind(self._here(table)[column])

    def _name(self, table: str) -> str:
        return self._corpus.source_table(table)

    def _here(self, table: str) -> pd.DataFrame:
        """All rows of a table whose engine cannot choose rows."""
        if table not in self._whole:
            self._whole[table] = super().whole(table, list(self._columns[table]))
        return self._whole[table]

    # --- the rows of a table that may be in the result ----------------------------------------------------------------

    def _tests(self, table: str) -> tuple[CellTest, ...]:
        """The tests of ``where`` that can select a table's rows."""
        found = []
        for test in self._where.by_column:
            if test.column[0] != table:
                continue
            if self.how == "left" and table != self.plan.start and test.null:
                continue  # a row without a partner in the table has a null there, too
            if table not in self._from or can_test(self._from[table].pushdown, self._name(table), test):
                found.append(test)
        return tuple(found)

    def _selection(self, table: str) -> _Selection:
        """The selection by ``where``, and by the tables that the plan joins to it."""
        keys: dict[str, pd.Index] = {}
        for step in self.plan.steps:
            if step.base == table and (self.how == "inner" or self._tests(step.table)):
                for mine, theirs in zip(step.base_columns, step.columns, strict=True):
                    found = self._needed_keys(step, mine, theirs)
                    if found is not None:
                        keys[mine] = found if mine not in keys else keys[mine].intersection(found)
        return _Selection(self._tests(table), keys)

    def _needed_keys(self, step: JoinStep, mine: str, theirs: str) -> pd.Index | None:
        """The keys that rows of the base may have, if that leaves out some rows."""
        base, table = self._from.get(step.base), self._from.get(step.table)
        if base is None:
            return None
        if table is None:
            rows = self._here(step.table)
            for test in self._tests(step.table):
                rows = rows[fitting(rows[test.column[1]], test)]
            keys, narrows = _keys_of(rows[theirs]), len(rows) < len(self._here(step.table))
        else:
            selection = self._selection(step.table)
            narrows = not selection.is_whole
            if not narrows and (table is base or not self._are_fewer(self._rows(step.table), step.base, mine)):
                return None
            values: dict[str, Any] = {}
            tests = self._conditions(step.table, selection, values)
            keys = table.keys(self._name(step.table), theirs, tests, MAX_KEYS + 1, values)
            self._note(step.table, "keys", len(keys), selection)
        if len(keys) > MAX_KEYS or not (narrows or self._are_fewer(len(keys), step.base, mine)):
            return None
        if self._kind(step.table, theirs) == "text":
            self._leave_if_near(step.base, mine, keys, keys)
        return keys

    def _are_fewer(self, keys: float | None, table: str, column: str) -> bool:
        """Whether this number of keys can leave out a good part of a column's values."""
        profile = self._corpus.profile(table).column(column)
        most = self._rows(table) if profile.distinct is None else profile.distinct
        return keys is not None and (most is None or keys < most / 2)

    def _rows(self, table: str) -> int | None:
        return self._corpus.profile(table).rows

    def _leave_if_near(self, table: str, column: str, sent: pd.Index, lone: pd.Index) -> None:
        """Leave the merge to whole tables if a text that was not sent may mean the same as one without a partner."""
        source, name, values = self._from[table], self._name(table), dict[str, Any]()
        key = compared(source.pushdown, name, column, "t")
        is_sent = source.pushdown.among(key, source.pushdown.cells(name, column), sent, values)
        if source.may_mean(name, column, lone.tolist(), [exp.not_(is_sent)], values):
            raise NotPushable("keys of text may match in another spelling")

    # --- reading ------------------------------------------------------------------------------------------------------

    def _conditions(self, table: str, selection: _Selection, values: dict[str, Any] | None) -> list[exp.Expr]:
        """A selection as conditions on ``t``; without ``values`` they only tell how many keys there are."""
        pushdown, name = self._from[table].pushdown, self._name(table)
        found: list[exp.Expr] = []
        for test in selection.tests:
            key = compared(pushdown, name, test.column[1], "t")
            found.append(exp.paren(condition(pushdown, key, name, test, values if pushdown.binds else None)))
        for column, keys in selection.keys.items():
            key = compared(pushdown, name, column, "t")
            if values is None:
                found.append(exp.In(this=key, expressions=[exp.Var(this=f"… {len(keys):,} keys …")]))
            else:
                found.append(pushdown.among(key, pushdown.cells(name, column), keys, values))
        return found

    def _chosen(self, table: str, selection: _Selection, limit: int | None = None) -> pd.DataFrame:
        pushdown, name, columns = self._from[table].pushdown, self._name(table), self._columns[table]
        for column in columns:
            pushdown.cells(name, column)  # raises where the table has it no more
        number, values = pushdown.number(name), dict[str, Any]()
        if limit is not None and number == pushdown.stored:
            number = None
        selected: list[exp.Expr] = [named_column(column, "t") for column in columns]
        query = exp.select(*(selected or [exp.null()])).from_(pushdown.item(name, "t", numbered=number is not None))
        query = query if number is None else query.order_by(named_column(number, "t"))
        query = query if limit is None else query.limit(limit)
        brief, sql = (query.where(*self._conditions(table, selection, sent)).sql(dialect=pushdown.dialect)
                      for sent in (None, values))  # fmt: skip
        names = [(name, column, column) for column in columns]
        frame = self._from[table].rows(Statement(sql, names, f"table {name!r}", values))
        self._note(table, "rows", len(frame), selection)
        self._statements[table] = f"-- {table} from {pushdown.kind}\n{brief}"
        return frame

    def _note(self, table: str, what: str, rows: int, selection: _Selection) -> None:
        """Note the rows that one statement brought here, and the keys that were sent for it."""
        kind = self._from[table].pushdown.kind
        self._moved.append(Moved(table, kind, what, rows, sum(map(len, selection.keys.values()))))

    def _referenced(self, step: JoinStep) -> pd.DataFrame:
        """The rows of a table that its base's rows reference."""
        base, known = self._tables[step.base], self._rows(step.table)
        sent: dict[str, pd.Index] = {}
        for mine, theirs in zip(step.base_columns, step.columns, strict=True):
            keys = _keys_of(base[mine])
            if len(keys) <= MAX_KEYS and (known is None or len(keys) < known):
                sent[theirs] = keys
        rows = self._chosen(step.table, _Selection(self._tests(step.table), sent))
        for theirs, keys in sent.items():
            lone = keys[~keys.isin(rows[theirs])]
            if len(lone) and self._kind(step.table, theirs) == "text":
                self._leave_if_near(step.table, theirs, keys, lone)
        return rows

    def _read_tables(self, start: _Selection, reach: int | None) -> bool:
        """Read the tables, of the start table the first rows only if ``reach`` says how many; whether that is all."""
        table = self.plan.start
        here = table not in self._from
        self._tables[table] = self._here(table).iloc[:reach] if here else self._chosen(table, start, reach)
        for step in self.plan.steps:
            is_sent = step.table in self._from
            self._tables[step.table] = self._referenced(step) if is_sent else self._here(step.table)
        return reach is None or len(self._tables[table]) < reach

    # --- rows for the merge -------------------------------------------------------------------------------------------

    def whole(self, table: str, columns: Sequence[str]) -> pd.DataFrame:
        """The rows of the table that may be in the result."""
        return self._tables[table][list(columns)]

    # --- the merge ----------------------------------------------------------------------------------------------------

    def run(self) -> tuple[pd.DataFrame, MergeReport]:
        """The frame, and the report, which is counted when it is read."""
        limit, refuses_loss = self.request.limit, self.request.on_loss == "raise" and self.how == "inner"
        if refuses_loss and (self._where or limit is not None):
            raise NotPushable("the error needs all rows that are lost")
        start = _Selection() if refuses_loss else self._selection(self.plan.start)
        # A function sees the whole column.
        first = [] if limit is None or self._where.functions else [max(_FIRST_ROWS, 4 * limit)]
        for reach in (*first, None):
            is_whole = self._read_tables(start, reach)
            merge = Merge(self.request, self, self._needed)
            if any(merge.advance(step, "allow", says=False).coerced for step in self.plan.steps):
                raise NotPushable("keys of text match in another spelling")
            if refuses_loss and len(merge.lost()):
                raise NotPushable("lost rows are refused")
            merge.select(self._where, self.plan.tables)
            if is_whole or (limit is not None and merge.rows.length >= limit):
                break
        if limit is not None and limit < merge.rows.length:
            merge.rows.select(np.arange(limit, dtype=np.int64))
        frame = merge.frame(self.request.wanted)
        if not self._where and (limit is None or len(frame) < limit):
            self.start_rows = self._size(self.plan.start) if not start.is_whole else merge.sizes[self.plan.start]
        kinds = dict.fromkeys(self._corpus.engine(table).kind for table in self.plan.tables)  # type: ignore[union-attr]
        sql, count = ";\n".join(self._statements.values()), partial(_counted, self.request)
        return frame, MergeReport(self.plan, len(frame), count, " + ".join(kinds), sql=sql, moved=tuple(self._moved))

    def _size(self, table: str) -> int:
        return self._from[table].size(self._name(table)) if table in self._from else len(self._here(table))


def _counted(request: MergeRequest) -> RowCounts:
    """The row counts. At this point it is known that no row is repeated, and whether any is lost."""
    return merge_in_memory(replace(request, wanted={}, on_fanout="allow", on_loss="allow"))[1].counts


def _keys_of(keys: pd.Series) -> pd.Index:
    """The distinct keys that are not null, integers as ``int64``."""
    values = keys.dropna()
    found: Any = values.to_numpy(dtype=np.int64 if key_kind(values) == "integer" else object)
    unique: pd.Index = pd.Index(pd.unique(found))
    return unique
