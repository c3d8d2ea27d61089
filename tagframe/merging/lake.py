"""Joins of files that DuckDB reads where they are: one statement gives the rows, a second one the report's counts.

A plan runs there where SQL's answer is the same as pandas': all tables are of one lake, and keys are integers, or text
of which none that finds no partner would find one in canonical form. Rows come in the order of the files: where a step
repeats or adds some, in the order of its own. What cannot be told is left to :func:`tagframe.merging.run_plan`. The
counts are made when the report is first looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe.corpus import Corpus
from tagframe.corpus.canonical import canonical_all
from tagframe.engines.base import quoted
from tagframe.engines.duckdb.connection import Opened, named_errors
from tagframe.engines.duckdb.engine import LakeEngine
from tagframe.engines.files import from_arrow
from tagframe.joins.plan import JoinPlan
from tagframe.joins.steps import How, JoinStep
from tagframe.merging import advice
from tagframe.merging.advice import Reaction
from tagframe.merging.conditions import ColumnKey, Condition
from tagframe.merging.counting import counted
from tagframe.merging.report import LaterReport, MergeReport
from tagframe.merging.statements import SHOWN_ROWS, StatementMerge, one_engine

if TYPE_CHECKING:
    import pyarrow as pa

_INTEGERS = frozenset("TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER UBIGINT".split())
_NUMBERS = _INTEGERS | {"FLOAT", "DOUBLE"}
_MOST_VALUES = 1_000
_MOST_LONE = 200_000
"""Distinct text keys without a partner that are looked at in canonical form."""
_PREFIX = 64
"""Rows of the start table that are looked at first for each row of a limit; then so many times as many."""


def merge_in_lake(
    plan: JoinPlan,
    corpus: Corpus,
    wanted: Mapping[str, ColumnKey],
    conditions: Sequence[Condition],
    *,
    how: How,
    limit: int | None,
    on_fanout: Reaction,
    on_loss: Reaction,
) -> tuple[pd.DataFrame, MergeReport] | None:
    """The merged frame and its report, or None where SQL might answer otherwise than pandas.

    Args:
        plan: how the tables are joined.
        corpus: where they are.
        wanted: name in the result → (table id, column), in order.
        conditions: what ``where`` asks of a row.
        how: the kind of every join.
        limit: rows at most.
        on_fanout: "raise" refuses here what repeats rows of the start table, "allow" has them repeated here.
        on_loss: "raise" has the counts made before the rows are.

    Raises:
        FanOut: a step would repeat rows of the start table; the first of them are on it.
        RowsLost: rows of the start table are lost, with ``on_loss="raise"``; the first of them are on it.
        UnreadableTable: a file cannot be read, or is not there any more.
    """
    engine = one_engine(plan, corpus)
    if not isinstance(engine, LakeEngine):
        return None
    merge = _Merge(plan, corpus, engine, how)
    with named_errors(*(opened.table for opened in merge.opened.values())):
        tests = merge.tests(conditions)
        if tests is None or not merge.is_plain():
            return None
        if on_fanout != "allow" and not merge.repeats_nothing(on_fanout):
            return None
        if on_loss == "raise" and how == "inner":
            if on_fanout == "allow" and not all(map(merge.is_unique, plan.steps)):
                return None
            merge.refuse_loss()
        frame, report = merge.run(wanted, tests, limit)
        if on_loss == "warn" and how == "inner" and plan.is_anchored and limit is None and report.lost:
            advice.say_loss(plan.start, report.lost, report.start_rows, None)
        return frame, report


@dataclass(frozen=True)
class _Tests:
    """The conditions in SQL, and the values of their placeholders."""

    all: Sequence[str]
    values: Mapping[str, Any]


class _Merge(StatementMerge):
    """A plan as statements over one lake."""

    def __init__(self, plan: JoinPlan, corpus: Corpus, engine: LakeEngine, how: How) -> None:
        super().__init__(plan, how, "duckdb")
        self._sql = ""
        self._ordered = [plan.start]
        self._lake = engine.lake
        self.opened: dict[str, Opened] = {table: self._lake.opened(corpus.source_table(table)) for table in plan.tables}
        taken = {column.name for opened in self.opened.values() for column in opened.columns}
        self._number = quoted(next(name for n in count() if (name := f"tagframe row {n}") not in taken))
        self._types = {
            (table, column.name): column.type for table, opened in self.opened.items() for column in opened.columns
        }

    # --- what may run -------------------------------------------------------------------------------------------------

    def is_plain(self) -> bool:
        """Whether SQL joins as pandas does: keys are alike, and so are columns that an outer join makes one of."""
        if self.how == "outer" and any(len({self._types[key] for key in same}) > 1 for same in self.sharing.values()):
            return False
        for step in self.plan.steps:
            for mine, theirs in zip(step.base_columns, step.columns, strict=True):
                left, right = self._types.get((step.base, mine)), self._types.get((step.table, theirs))
                if not ({left, right} <= _INTEGERS or left == right == "VARCHAR"):
                    return False
        return not any(map(self._may_coerce, self.plan.steps))

    def is_unique(self, step: JoinStep) -> bool:
        """Found out once."""
        opened = self.opened[step.table]
        known = ("unique", step.columns)
        if known not in opened.facts:
            names = ", ".join(map(quoted, step.columns))
            filled = " AND ".join(f"{quoted(column)} IS NOT NULL" for column in step.columns)
            twice = f"SELECT 1 AS n FROM {opened.source} WHERE {filled} GROUP BY {names} HAVING count(*) > 1 LIMIT 1"
            opened.facts[known] = not self._lake.fetch(twice).num_rows
        return bool(opened.facts[known])

    def start_rows(self, rest: str) -> pd.DataFrame:
        """In the order of the file, under their numbers."""
        start, source = self.aliases[self.plan.start], self.plan.source(self.plan.start)
        shown = [f"{start}.{quoted(column)}" for column in source.columns if column not in source.hidden]
        query = f"SELECT {start}.{self._number}, {', '.join(shown) or 'NULL'} {rest} ORDER BY 1 LIMIT {SHOWN_ROWS}"
        return from_arrow(self._lake.fetch(query)).set_index(self._number.strip('"')).rename_axis(None)

    def _may_coerce(self, step: JoinStep) -> bool:
        """Whether text that finds no partner may find one in canonical form: " Prague" and "prague"."""
        texts = [
            (mine, theirs)
            for mine, theirs in zip(step.base_columns, step.columns, strict=True)
            if self._types[step.base, mine] == "VARCHAR"
        ]
        base, table = self.opened[step.base], self.opened[step.table]
        for mine, theirs in texts:
            known = ("coerces", mine, table.table.name, theirs)
            if known not in base.facts:
                base.facts[known] = self._coerces(base, mine, table, theirs)
            if base.facts[known]:
                return True
        return False

    def _coerces(self, base: Opened, mine: str, table: Opened, theirs: str) -> bool:
        keys = f"(SELECT {quoted(theirs)} FROM {table.source} WHERE {quoted(theirs)} IS NOT NULL)"
        lone = self._lake.fetch(
            f"SELECT DISTINCT {quoted(mine)} AS k FROM {base.source} WHERE {quoted(mine)} IS NOT NULL "
            f"AND {quoted(mine)} NOT IN {keys} LIMIT {_MOST_LONE}"
        )["k"].to_pylist()
        if not lone or len(lone) == _MOST_LONE:
            return bool(lone)
        theirs_now = self._lake.fetch(f"SELECT DISTINCT {quoted(theirs)} AS k FROM {table.source}")["k"].to_pylist()
        forms = {form for form in canonical_all([key for key in theirs_now if key is not None])[0] if form is not None}
        return not forms.isdisjoint(canonical_all(lone)[0])

    def tests(self, conditions: Sequence[Condition]) -> _Tests | None:
        """The conditions; None where one is a function, or its values are not as plain as its column."""
        tests: list[str] = []
        values: dict[str, Any] = {}
        for condition in conditions:
            value, column, type = condition.value, self.value(condition.column), self._types[condition.column]
            if callable(value):
                return None
            # To DuckDB NaN is the greatest of all numbers.
            nan = f"isnan({column})" if type in ("FLOAT", "DOUBLE") else "false"
            if value is None or value is pd.NA:
                tests.append(f"({column} IS NULL OR {nan})")
                continue
            several = list(value) if pd.api.types.is_list_like(value) else [value]
            plain = [one for one in several if _fits(one, type)]
            if (
                len(several) > _MOST_VALUES
                or not all(_is_plain(one) for one in several)
                or type not in (_NUMBERS | {"VARCHAR", "BOOLEAN"})
                or (condition.bound is not None and (not plain or type == "BOOLEAN"))
            ):
                return None
            names = [f"v{len(values) + place}" for place in range(len(plain))]
            values.update(zip(names, plain, strict=True))
            if condition.bound is not None:
                tests.append(f"({column} {condition.bound} ${names[0]} AND NOT {nan})")
            else:
                shown = ", ".join(f"${one}" for one in names)
                tests.append(f"{column} IN ({shown})" if names else "false")
        return _Tests(tests, values)

    # --- the statements -----------------------------------------------------------------------------------------------

    def run(
        self, wanted: Mapping[str, ColumnKey], tests: _Tests, limit: int | None
    ) -> tuple[pd.DataFrame, MergeReport]:
        """The frame, and the report, which counts when it is looked at."""
        self._ordered = self._tables_in_order()
        shown = ", ".join(f"{self.value(key)} AS c{place}" for place, key in enumerate(wanted.values()))
        where = f" WHERE {' AND '.join(tests.all)}" if tests.all else ""
        frame = None if limit is None or self.how == "outer" else self._prefix(shown, where, tests, limit)
        if frame is None:
            tail = "" if limit is None else f" LIMIT {limit}"
            joined = self.joined(self.plan.steps, self.join_word)
            frame = self._frame(f"SELECT {shown or 'NULL'} FROM {joined}{where} ORDER BY {self._order}{tail}", tests)
        frame = frame.set_axis(list(wanted), axis="columns") if wanted else frame.iloc[:, :0]
        for name, (table, column) in wanted.items():
            # As pandas has it where rows of a table are missing.
            if (
                (table != self.plan.start or self.how == "outer")
                and self._types[table, column] == "BOOLEAN"
                and frame[name].dtype == object
            ):
                frame[name] = frame[name].astype("boolean")
        frame.index = pd.RangeIndex(len(frame))
        ambiguous, rows = advice.ways_as_sure(self.plan), len(frame)
        report = LaterReport(self.plan, len(frame), "duckdb", ambiguous, self._sql, lambda: self.report(tests, rows))
        return frame, report

    def _prefix(self, shown: str, where: str, tests: _Tests, limit: int) -> pd.DataFrame | None:
        """The rows of a limit from the first rows of the first file, where there are enough of them."""
        reach = max(1, limit) * _PREFIX
        places = bool(self.opened[self.plan.start].number)
        for _ in range(3):
            first = f" WHERE file_index = 0 AND file_row_number < {reach}" if places else f" LIMIT {reach}"
            start = self.item(self.plan.start, first)
            joined = self.joined(self.plan.steps, self.join_word, start=start)
            query = f"SELECT {shown or 'NULL'} FROM {joined}{where} ORDER BY {self._order} LIMIT {limit}"
            frame = self._frame(query, tests)
            if len(frame) == limit:
                return frame
            reach *= _PREFIX
        return None

    def _frame(self, query: str, tests: _Tests) -> pd.DataFrame:
        self._sql = query
        return from_arrow(_with_plain_columns(self._lake.fetch(query, tests.values)))

    def _tables_in_order(self) -> list[str]:
        """The tables by whose rows those of the result are sorted: the start, and what repeats its rows, or adds to."""
        adds = self.how == "outer"
        return [self.plan.start, *(step.table for step in self.plan.steps if adds or not self.is_unique(step))]

    @property
    def _order(self) -> str:
        return ", ".join(f"{self.aliases[table]}.{self._number} NULLS LAST" for table in self._ordered)

    def item(self, table: str, rest: str = "") -> str:
        """With what numbers its rows, where they are sorted by that."""
        opened = self.opened[table]
        number = opened.number or ("row_number() OVER ()" if table in self._ordered else "0")
        return f"(SELECT *, {number} AS {self._number} FROM {opened.source}{rest}) AS {self.aliases[table]}"

    # --- the account --------------------------------------------------------------------------------------------------

    def report(self, tests: _Tests, rows: int) -> MergeReport:
        """What became of every row, of a merge that gave so many."""
        with named_errors(*(opened.table for opened in self.opened.values())):
            return counted(self, rows, tests.all, self._sql, tests.values)

    def numbers(self, sql: str, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The one row of a statement that counts."""
        (found,) = self._lake.fetch(sql, values or {}).to_pylist()
        return dict(found)

    def place(self, table: str) -> str:
        """The files."""
        return self.opened[table].source


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str) or value is pd.NA


def _fits(value: Any, type: str) -> bool:
    """Whether a value may be in a column of the type."""
    if isinstance(value, bool):
        return type == "BOOLEAN" or type in _NUMBERS
    if isinstance(value, int | float):
        return type in _NUMBERS or (type == "BOOLEAN" and value in (0, 1))
    return isinstance(value, str) and type == "VARCHAR"


def _with_plain_columns(table: pa.Table) -> pa.Table:
    """Texts of few values as texts."""
    import pyarrow as pa

    columns = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    return pa.Table.from_arrays(columns, names=table.column_names)
