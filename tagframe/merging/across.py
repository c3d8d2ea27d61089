"""Merges across engines: keys are sent, the matching rows are read, and pandas joins them.

From each engine only rows are read that may be in the result. Keys of tables that are small, or that ``where`` makes
small, are sent from engine to engine towards the start table. Then the rows of the start table are read, and their keys
select the rows of the tables that they reference. This is Yannakakis' reduction of a tree of joins (VLDB 1981) by
semi-joins; those within one engine run there as subqueries. The result is a part of each table, in the table's own
order. It is joined like whole tables, so the frame is the same.

Some merges are left to pandas: the key of a step's new table repeats, keys are neither integers nor text, or text
without a partner might find one in canonical form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from tagframe.corpus.canonical import canonical_all, plain
from tagframe.engines.base import Engine
from tagframe.engines.cells import CellTest, fitting
from tagframe.engines.pushdown import Pushdown, Selection, Within
from tagframe.joins.steps import JoinStep
from tagframe.merging import advice
from tagframe.merging.in_memory import Merge, columns_needed, key_kind, merge_in_memory
from tagframe.merging.report import MergeReport, Moved, RowCounts, StepReport
from tagframe.merging.table_rows import PlanRows
from tagframe.merging.where import Asked, LeftToMemory

MOST_KEYS = 500_000
"""At most this many keys are sent; with more, the other table is read whole."""
_MOST_NEAR = 20_000
"""At most this many texts are compared in canonical form; with more, the merge is left to pandas."""
_FIRST_ROWS, _MORE = 1_000, 16
"""For a limit: the least number of rows of the start table that are read first, and the factor of the next rounds."""
_ROUNDS = 3


def merge_across(asked: Asked, engines: Sequence[tuple[Engine, Sequence[str]]]) -> tuple[pd.DataFrame, MergeReport]:
    """The merged frame and its report.

    Args:
        asked: the merge.
        engines: the engines of its tables, each with its tables.

    Raises:
        LeftToMemory: no engine can choose rows, or SQL might give another result.
        ServerGone, UnreadableTable, ColumnNotFound: a table cannot be read, or has changed.
    """
    plan, corpus = asked.plan, asked.corpus
    if asked.how in ("right", "outer") or any(source.parts or source.aggregates for source in plan.sources):
        raise LeftToMemory("right and outer merges, stacks, and tables with one row per key need all rows")
    if asked.where.query:
        raise LeftToMemory("an expression needs all columns")
    with ExitStack() as opened:
        pushdowns: dict[str, Pushdown] = {}
        for engine, tables in engines:
            block = engine.pushdown([*dict.fromkeys(map(corpus.source_table, tables))])
            if block is not None and (pushdown := opened.enter_context(block)).takes_keys:
                pushdowns.update(dict.fromkeys(tables, pushdown))
        if not pushdowns:
            raise LeftToMemory("no engine can choose rows by keys")
        crossing = _Crossing(asked, pushdowns)
        crossing.check()
        frame, report = crossing.run()
    # The engines are closed here: a later count reads the tables again.
    if asked.says_loss and crossing.start_rows is not None:
        lost, rows = crossing.start_rows - len(frame), crossing.start_rows
    elif asked.counts_loss:
        lost, rows = report.lost, report.start_rows
    else:
        return frame, report
    if lost:
        advice.say_loss(plan.start, lost, rows, None)
    return frame, report


class _Crossing(PlanRows):
    """A running merge of tables of several engines, with the rows that may be in its result."""

    def __init__(self, asked: Asked, pushdowns: Mapping[str, Pushdown]) -> None:
        super().__init__(asked.corpus, asked.plan)
        self.asked, self.plan, self.how = asked, asked.plan, asked.how
        self.start_rows: int | None = None
        """Rows of the start table, if the result is a selection of them."""
        self._pushdowns, self._where = pushdowns, asked.where
        wanted = asked.wanted.values()
        self._late = {key for key in wanted if self.may_pick(key[0])}
        self._early = {*asked.where.columns(()), *(key for key in wanted if key not in self._late)}
        self._columns = columns_needed(asked.plan, self._early)
        self._whole: dict[str, pd.DataFrame] = {}
        self._tables: dict[str, pd.DataFrame] = {}
        self._moved: list[Moved] = []
        self._statements: dict[str, str] = {}

    # --- what may run -------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Leave the merge to pandas if SQL might join differently."""
        start = self.plan.start
        if start in self._pushdowns and not self._pushdowns[start].order(self._name(start)):
            raise LeftToMemory("the engine has no fixed order for the rows of the start table")
        for step in self.plan.steps:
            if {step.base, step.table}.isdisjoint(self._pushdowns):
                continue
            for mine, theirs in zip(step.base_columns, step.columns, strict=True):
                kinds = {self._kind(step.base, mine), self._kind(step.table, theirs)} - {"null"}
                if len(kinds) > 1 or not kinds <= {"integer", "text"}:
                    raise LeftToMemory(f"SQL compares the keys of {step} differently")
        if not all(map(self._is_unique, self.plan.steps)):
            raise LeftToMemory("a step may repeat rows")

    def _is_unique(self, step: JoinStep) -> bool:
        if step.table in self._pushdowns:
            return self._pushdowns[step.table].is_unique(self._name(step.table), step.columns)
        return not self._here(step.table)[list(step.columns)].dropna().duplicated().any()

    def _kind(self, table: str, column: str) -> str:
        if table in self._pushdowns:
            return self._pushdowns[table].key_kind(self._name(table), column)
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
            if table not in self._pushdowns or self._pushdowns[table].says(self._name(table), test):
                found.append(test)
        return tuple(found)

    def _selection(self, table: str) -> Selection:
        """The selection by ``where``, and by the tables that the plan joins to it."""
        keys: dict[str, pd.Index] = {}
        within: dict[str, Within] = {}
        for step in self.plan.steps:
            if step.base == table and (self.how == "inner" or self._tests(step.table)):
                for mine, theirs in zip(step.base_columns, step.columns, strict=True):
                    found = self._towards(step, mine, theirs)
                    if isinstance(found, Within):
                        within[mine] = found
                    elif found is not None:
                        keys[mine] = found if mine not in keys else keys[mine].intersection(found)
        return Selection(self._tests(table), keys, within)

    def _towards(self, step: JoinStep, mine: str, theirs: str) -> pd.Index | Within | None:
        """The keys that rows of the base may have, if that leaves out some rows."""
        if step.base not in self._pushdowns:
            return None
        base, table = self._pushdowns[step.base], self._pushdowns.get(step.table)
        if table is None:
            rows = self._here(step.table)
            for test in self._tests(step.table):
                rows = rows[fitting(rows[test.column[1]], test)]
            keys: pd.Index | None = _keys_of(rows[theirs])
            narrows = len(rows) < len(self._here(step.table))
        else:
            selection = self._selection(step.table)
            narrows = not selection.is_whole
            if table is base:
                if not narrows or self._kind(step.table, theirs) != "integer":
                    return None
                return Within(self._name(step.table), theirs, selection)
            if not narrows and not self._are_fewer(self._rows(step.table), step.base, mine):
                return None
            keys = table.distinct(self._name(step.table), theirs, selection, MOST_KEYS)
            if keys is not None:
                self._note(step.table, "keys", len(keys), _size_of(keys), selection)
        if keys is None or len(keys) > MOST_KEYS or not (narrows or self._are_fewer(len(keys), step.base, mine)):
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
        """Leave the merge to pandas if a text that was not sent may mean the same as one without a partner."""
        forms = _canonical_forms(lone.tolist())
        found = self._pushdowns[table].near(self._name(table), column, sent, forms, _MOST_NEAR)
        if found is None or not forms.isdisjoint(_canonical_forms(found)):
            raise LeftToMemory("keys of text may match in another spelling")

    # --- reading ------------------------------------------------------------------------------------------------------

    def _chosen(self, table: str, selection: Selection, limit: int | None = None) -> pd.DataFrame:
        pushdown = self._pushdowns[table]
        frame, sql = pushdown.frame(self._name(table), list(self._columns[table]), selection, limit)
        self._note(table, "rows", len(frame), sum(_size_of(frame[column]) for column in frame.columns), selection)
        self._statements[table] = f"-- {table} from {pushdown.kind}\n{sql}"
        return frame

    def _note(self, table: str, what: str, rows: int, size: int, selection: Selection) -> None:
        """Note the rows that one statement brought here, and the keys that were sent for it, except hidden keys."""
        hidden = self.plan.by_id[table].hidden
        if hidden and what == "keys" and any(
            step.table == table and {*step.columns} & {*hidden} for step in self.plan.steps
        ):  # fmt: skip
            return
        sent = [keys for column, keys in selection.keys.items() if column not in hidden]
        self._moved.append(
            Moved(table, self._pushdowns[table].kind, what, rows, size, sum(map(len, sent)), sum(map(_size_of, sent)))
        )

    def _referenced(self, step: JoinStep) -> pd.DataFrame:
        """The rows of a table that its base's rows reference."""
        pushdown, base = self._pushdowns[step.table], self._tables[step.base]
        known = self._rows(step.table)
        asked: dict[str, pd.Index] = {}
        for mine, theirs in zip(step.base_columns, step.columns, strict=True):
            keys = _keys_of(base[mine])
            if len(keys) <= MOST_KEYS and (known is None or len(keys) < known):
                asked[theirs] = keys
        found = self._chosen(step.table, Selection(self._tests(step.table), asked))
        for theirs, keys in asked.items():
            if pushdown.key_kind(self._name(step.table), theirs) == "text":
                lone = keys[~keys.isin(found[theirs])]
                if len(lone):
                    self._leave_if_near(step.table, theirs, keys, lone)
        return found

    def _parts(self, start: Selection, limit: int | None) -> Iterator[bool]:
        """Read the tables, for a limit in growing parts of the start table; yields whether all its rows are read."""
        table = self.plan.start
        reach = None if limit is None else max(_FIRST_ROWS, 4 * limit)
        for round in range(_ROUNDS + 1):
            reach = None if round == _ROUNDS else reach
            if table in self._pushdowns:
                self._tables[table] = self._chosen(table, start, reach)
            else:
                self._tables[table] = self._here(table).iloc[:reach]
            for step in self.plan.steps:
                if step.table in self._pushdowns:
                    self._tables[step.table] = self._referenced(step)
                else:
                    self._tables[step.table] = self._here(step.table)
            is_whole = reach is None or len(self._tables[table]) < reach
            yield is_whole
            if is_whole:
                return
            assert reach is not None
            reach *= _MORE

    # --- rows for the merge -------------------------------------------------------------------------------------------

    def may_pick(self, table: str) -> bool:
        """As in the base class, for tables whose engine cannot choose rows by keys."""
        return table not in self._pushdowns and super().may_pick(table)

    def whole(self, table: str, columns: Sequence[str]) -> pd.DataFrame:
        """The rows of the table that may be in the result."""
        if table not in self._pushdowns and not set(columns) <= set(self._columns[table]):
            return super().whole(table, columns)
        return self._tables[table][list(columns)]

    # --- the merge ----------------------------------------------------------------------------------------------------

    def run(self) -> tuple[pd.DataFrame, MergeReport]:
        """The frame, and the report; it is already counted if all rows of the start table had to be read."""
        limit, on_loss = self.asked.limit, self.asked.on_loss
        counts_all = not self._where and limit is None
        if on_loss == "raise" and self.how == "inner" and not counts_all:
            raise LeftToMemory("the error needs all rows that are lost")
        start = Selection()
        if not (on_loss == "raise" and self.how == "inner"):
            start = self._selection(self.plan.start)
        # A function sees the whole column.
        for is_whole in self._parts(start, None if self._where.functions else limit):
            merge = Merge(self.asked, self, self._early, self._late)
            steps = [merge.advance(step, "allow", says=False) for step in self.plan.steps]
            if any(step.coerced for step in steps):
                raise LeftToMemory("keys of text match in another spelling")
            lost = len(merge.lost())
            merge.select(self._where)
            if is_whole or (limit is not None and merge.rows.length >= limit):
                break
        if limit is not None and limit < merge.rows.length:
            merge.rows.select(np.arange(limit, dtype=np.int64))
        frame = merge.frame(self.asked.wanted)
        if not self._where and (limit is None or len(frame) < limit):
            self.start_rows = self._size(self.plan.start) if not start.is_whole else merge.sizes[self.plan.start]
        made: RowCounts | Callable[[], RowCounts] = partial(_counted, self.asked)
        if counts_all and start.is_whole:
            assert self.start_rows is not None
            if lost and on_loss == "raise":
                raise LeftToMemory("lost rows are refused")
            made = RowCounts(self.start_rows, tuple(map(self._with_unread, self.plan.steps, steps)), lost, 0)
        kinds = dict.fromkeys(self._corpus.engine(table).kind for table in self.plan.tables)  # type: ignore[union-attr]
        sql = ";\n".join(self._statements.values())
        return frame, MergeReport(self.plan, len(frame), made, " + ".join(kinds), sql=sql, moved=tuple(self._moved))

    def _size(self, table: str) -> int:
        if table in self._pushdowns:
            return self._pushdowns[table].size(self._name(table))
        return len(self._here(table))

    def _with_unread(self, step: JoinStep, report: StepReport) -> StepReport:
        """The report, with the rows of the step's table that no row references."""
        unread = self._size(step.table) - len(self._tables[step.table])
        return replace(report, unmatched_right=report.unmatched_right + unread)


def _counted(asked: Asked) -> RowCounts:
    """The row counts. At this point it is known that no row is repeated, and whether any is lost."""
    return merge_in_memory(replace(asked, wanted={}, on_fanout="allow", on_loss="allow"))[1].counts


def _keys_of(keys: pd.Series) -> pd.Index:
    """The distinct keys that are not null, integers as ``int64``."""
    values = keys.dropna()
    found: Any = values.to_numpy(dtype=np.int64 if key_kind(values) == "integer" else object)
    unique: pd.Index = pd.Index(pd.unique(found))
    return unique


def _canonical_forms(texts: Sequence[str]) -> set[str]:
    """All canonical forms of the texts: as numbers, if they can be read so, and as text."""
    forms = {form for form in canonical_all(list(texts))[0] if form is not None} if texts else set()
    return forms | {plain(text.strip())[0] or "" for text in texts if text.strip()}


def _size_of(values: pd.Series | pd.Index) -> int:
    """Their size in bytes as an Arrow table."""
    import pyarrow as pa  # type: ignore[import-untyped]

    try:
        return int(pa.Array.from_pandas(values).nbytes)
    except (pa.ArrowException, TypeError):  # objects of several kinds
        return sum(len(str(value)) for value in values)
