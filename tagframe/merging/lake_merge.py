"""Joins of files that DuckDB reads where they are: one statement gives the rows, a second one the report's counts.

A plan runs there where SQL's answer is the same as pandas': all tables are of one lake, no step repeats a row, keys are
integers, or text of which none that finds no partner would find one in canonical form. What cannot be told is left to
:func:`tagframe.merging.run_plan`. The counts are made when the report is first looked at.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe.corpus import Corpus
from tagframe.corpus.canonical import canonical_all
from tagframe.engines.base import quoted
from tagframe.engines.files import from_arrow
from tagframe.engines.lake import LakeEngine
from tagframe.engines.lake_connection import Opened, named_errors
from tagframe.errors import FanOut, RowsLost
from tagframe.joins.plan import JoinPlan
from tagframe.joins.steps import How, JoinStep
from tagframe.merging import advice
from tagframe.merging.advice import Reaction
from tagframe.merging.report import LaterReport, MergeReport, StepReport

if TYPE_CHECKING:
    import pyarrow as pa

ColumnKey = tuple[str, str]

_INTEGERS = frozenset("TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER UBIGINT".split())
_NUMBERS = _INTEGERS | {"FLOAT", "DOUBLE"}
_MOST_VALUES = 1_000
_MOST_LONE = 200_000
"""Distinct text keys without a partner that are looked at in canonical form."""
_PREFIX = 64
"""Rows of the start table that are looked at first for each row of a limit; then so many times as many."""
_KEPT_ROWS = 1_000
"""Rows that an error holds at most."""


def merge_in_lake(
    plan: JoinPlan,
    corpus: Corpus,
    wanted: Mapping[str, ColumnKey],
    filters: Mapping[ColumnKey, Any],
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
        filters: (table id, column) → what :func:`tagframe.merging.run_plan` takes as a value of ``where``.
        how: the kind of every join.
        limit: rows at most.
        on_fanout: "raise" refuses here what repeats rows of the start table.
        on_loss: "raise" has the counts made before the rows are.

    Raises:
        FanOut: a step would repeat rows of the start table; the first of them are on it.
        RowsLost: rows of the start table are lost, with ``on_loss="raise"``; the first of them are on it.
        UnreadableTable: a file cannot be read, or is not there any more.
    """
    engine = None if how == "outer" or any(source.parts for source in plan.sources) else corpus.engine(plan.start)
    if not isinstance(engine, LakeEngine) or any(corpus.engine(table) != engine for table in plan.tables):
        return None
    merge = _Merge(plan, corpus, engine, how)
    with named_errors(*(opened.table for opened in merge.opened.values())):
        tests = merge.tests(filters)
        if tests is None or not merge.is_plain():
            return None
        repeating = merge.repeating()
        if repeating is not None and on_fanout == "raise":
            merge.refuse_fanout(repeating)
        if repeating is not None:
            return None
        if on_loss == "raise":
            merge.refuse_loss()
        frame, report = merge.run(wanted, tests, limit)
        if on_loss == "warn" and plan.is_anchored and limit is None and report.lost:
            advice.say_loss(plan.start, report.lost, report.start_rows, None)
        return frame, report


@dataclass(frozen=True)
class _Tests:
    """The conditions in SQL, by the table that they are on, and the values of their placeholders."""

    by_table: Mapping[str, Sequence[str]]
    values: Mapping[str, Any]

    @property
    def all(self) -> list[str]:
        """All of them."""
        return [test for tests in self.by_table.values() for test in tests]


class _Merge:
    """A plan as statements over one lake."""

    def __init__(self, plan: JoinPlan, corpus: Corpus, engine: LakeEngine, how: How) -> None:
        self._plan, self._how, self._sql = plan, how, ""
        self._lake = engine.lake
        self.opened: dict[str, Opened] = {table: self._lake.opened(corpus.source_table(table)) for table in plan.tables}
        taken = {column.name for opened in self.opened.values() for column in opened.columns}
        self._number = quoted(next(name for n in count() if (name := f"tagframe row {n}") not in taken))
        self._alias = {table: f"t{place}" for place, table in enumerate(plan.tables)}
        self._types = {
            (table, column.name): column.type for table, opened in self.opened.items() for column in opened.columns
        }

    # --- what may run -------------------------------------------------------------------------------------------------

    def is_plain(self) -> bool:
        """Whether SQL joins as pandas does: rows are numbered, and keys are alike."""
        if not self.opened[self._plan.start].number:
            return False
        for step in self._plan.steps:
            for mine, theirs in zip(step.base_columns, step.columns, strict=True):
                left, right = self._types.get((step.base, mine)), self._types.get((step.table, theirs))
                if not ({left, right} <= _INTEGERS or left == right == "VARCHAR"):
                    return False
        return not any(map(self._may_coerce, self._plan.steps))

    def repeating(self) -> JoinStep | None:
        """The first step that brings in a table whose keys repeat."""
        return next((step for step in self._plan.steps if not self._is_unique(step)), None)

    def refuse_fanout(self, step: JoinStep) -> None:
        """Raise where the step, the first that may, repeats rows of the start table.

        Raises:
            FanOut: it does.
        """
        before = self._plan.steps[: self._plan.steps.index(step)]
        names = [quoted(column) for column in step.columns]
        filled = " AND ".join(f"{name} IS NOT NULL" for name in names)
        twice = (
            f"(SELECT {', '.join(names)}, count(*) AS {_TIMES} FROM {self.opened[step.table].source} WHERE {filled} "
            f"GROUP BY {', '.join(names)} HAVING count(*) > 1) AS twice"
        )
        on = " AND ".join(
            f"{self._column(step.base, mine)} = twice.{name}"
            for mine, name in zip(step.base_columns, names, strict=True)
        )
        repeated = f"FROM {self._joined(steps=before)} JOIN {twice} ON {on}"
        (found,) = self._lake.fetch(f"SELECT count(*) AS n, max({_TIMES}) AS most {repeated}").to_pylist()
        if found["n"]:
            message = advice.fan_out(self._plan, step, int(found["n"]), int(found["most"]))
            raise FanOut(message.replace("They are on", "The first of them are on"), self._start_rows(repeated))

    def _start_rows(self, rest: str) -> pd.DataFrame:
        """The first rows of the start table of a query, from FROM on."""
        start, source = self._alias[self._plan.start], self._plan.source(self._plan.start)
        shown = [f"{start}.{quoted(column)}" for column in source.columns if column not in source.hidden]
        query = f"SELECT {start}.{self._number}, {', '.join(shown) or 'NULL'} {rest} ORDER BY 1 LIMIT {_KEPT_ROWS}"
        return from_arrow(self._lake.fetch(query)).set_index(self._number.strip('"')).rename_axis(None)

    def _is_unique(self, step: JoinStep) -> bool:
        """Whether no key of the table that is brought in repeats, nulls aside; found out once."""
        opened = self.opened[step.table]
        known = ("unique", step.columns)
        if known not in opened.facts:
            names = ", ".join(map(quoted, step.columns))
            filled = " AND ".join(f"{quoted(column)} IS NOT NULL" for column in step.columns)
            twice = f"SELECT 1 AS n FROM {opened.source} WHERE {filled} GROUP BY {names} HAVING count(*) > 1 LIMIT 1"
            opened.facts[known] = not self._lake.fetch(twice).num_rows
        return bool(opened.facts[known])

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

    def tests(self, filters: Mapping[ColumnKey, Any]) -> _Tests | None:
        """The conditions; None where one is a function, or its values are not as plain as its column."""
        by_table: dict[str, list[str]] = {}
        values: dict[str, Any] = {}
        for (table, name), value in filters.items():
            column, type = self._column(table, name), self._types[table, name]
            if callable(value):
                return None
            if value is None or value is pd.NA:
                nan = f" OR isnan({column})" if type in ("FLOAT", "DOUBLE") else ""
                by_table.setdefault(table, []).append(f"({column} IS NULL{nan})")
                continue
            several = list(value) if pd.api.types.is_list_like(value) else [value]
            plain = [one for one in several if _fits(one, type)]
            if (
                len(several) > _MOST_VALUES
                or not all(_is_plain(one) for one in several)
                or type not in (_NUMBERS | {"VARCHAR", "BOOLEAN"})
            ):
                return None
            names = [f"v{len(values) + place}" for place in range(len(plain))]
            values.update(zip(names, plain, strict=True))
            shown = ", ".join(f"${one}" for one in names)
            by_table.setdefault(table, []).append(f"{column} IN ({shown})" if names else "false")
        return _Tests(by_table, values)

    # --- the statements -----------------------------------------------------------------------------------------------

    def run(
        self, wanted: Mapping[str, ColumnKey], tests: _Tests, limit: int | None
    ) -> tuple[pd.DataFrame, MergeReport]:
        """The frame, and the report, which counts when it is looked at."""
        shown = ", ".join(f"{self._column(*key)} AS c{place}" for place, key in enumerate(wanted.values()))
        number = f"{self._alias[self._plan.start]}.{self._number}"
        where = f" WHERE {' AND '.join(tests.all)}" if tests.all else ""
        frame = None if limit is None else self._prefix(shown, where, tests, limit)
        if frame is None:
            tail = "" if limit is None else f" LIMIT {limit}"
            frame = self._frame(f"SELECT {shown or 'NULL'} FROM {self._joined()}{where} ORDER BY {number}{tail}", tests)
        frame = frame.set_axis(list(wanted), axis="columns") if wanted else frame.iloc[:, :0]
        for name, (table, column) in wanted.items():
            # As pandas has it where rows of a table are missing.
            if table != self._plan.start and self._types[table, column] == "BOOLEAN" and frame[name].dtype == object:
                frame[name] = frame[name].astype("boolean")
        frame.index = pd.RangeIndex(len(frame))
        ambiguous, rows = advice.ways_as_sure(self._plan), len(frame)
        report = LaterReport(self._plan, len(frame), "duckdb", ambiguous, self._sql, lambda: self._counted(tests, rows))
        return frame, report

    def _prefix(self, shown: str, where: str, tests: _Tests, limit: int) -> pd.DataFrame | None:
        """The rows of a limit from the first rows of the first file, where there are enough of them."""
        number = f"{self._alias[self._plan.start]}.{self._number}"
        reach = max(1, limit) * _PREFIX
        for _ in range(3):
            start = self._item(self._plan.start, f" WHERE file_index = 0 AND file_row_number < {reach}")
            query = f"SELECT {shown or 'NULL'} FROM {self._joined(start)}{where} ORDER BY {number} LIMIT {limit}"
            frame = self._frame(query, tests)
            if len(frame) == limit:
                return frame
            reach *= _PREFIX
        return None

    def _frame(self, query: str, tests: _Tests) -> pd.DataFrame:
        self._sql = query
        return from_arrow(_with_plain_columns(self._lake.fetch(query, tests.values)))

    def _column(self, table: str, name: str) -> str:
        return f"{self._alias[table]}.{quoted(name)}"

    def _item(self, table: str, where: str = "") -> str:
        """A table in FROM or JOIN, with what numbers its rows."""
        opened = self.opened[table]
        number = opened.number or "0"
        return f"(SELECT *, {number} AS {self._number} FROM {opened.source}{where}) AS {self._alias[table]}"

    def _joined(
        self, start: str | None = None, word: str | None = None, steps: Sequence[JoinStep] | None = None
    ) -> str:
        word = word or ("LEFT JOIN" if self._how == "left" else "JOIN")
        made = self._plan.steps if steps is None else steps
        joins = (f"{word} {self._item(step.table)} ON {' AND '.join(self._on(step))}" for step in made)
        return " ".join([start or self._item(self._plan.start), *joins])

    def _on(self, step: JoinStep) -> list[str]:
        return [
            f"{self._column(step.base, mine)} = {self._column(step.table, theirs)}"
            for mine, theirs in zip(step.base_columns, step.columns, strict=True)
        ]

    # --- the account --------------------------------------------------------------------------------------------------

    def refuse_loss(self) -> None:
        """Raise where the joins lose rows of the start table.

        Raises:
            RowsLost: they do.
        """
        if self._how == "left" or not self._plan.steps:
            return
        last = [f"{self._column(step.table, column)} IS NULL" for step in self._plan.steps for column in step.columns]
        lost = f"FROM {self._joined(word='LEFT JOIN')} WHERE {' OR '.join(last)}"
        (lost_rows,) = self._lake.fetch(f"SELECT count(*) AS n {lost}")["n"].to_pylist()
        if not lost_rows:
            return
        (size,) = self._lake.fetch(f"SELECT count(*) AS n FROM {self.opened[self._plan.start].source}")["n"].to_pylist()
        message = advice.loss(self._plan.start, lost_rows, size)
        raise RowsLost(
            f"{message}. The first of them are on this error as .rows. how='left' keeps them", self._start_rows(lost)
        )

    def _counted(self, tests: _Tests, result_rows: int) -> MergeReport:
        """All steps in one pass over the start table; a row that an inner join loses finds no later partner."""
        started = time.perf_counter()
        shown = ["count(*) AS rows"]
        alive: list[str] = []
        joined = self._item(self._plan.start)
        for place, step in enumerate(self._plan.steps):
            there = " AND ".join(f"{self._column(step.table, column)} IS NOT NULL" for column in step.columns)
            keys = ", ".join(self._column(step.table, column) for column in step.columns)
            key = keys if len(step.columns) == 1 else f"CASE WHEN {there} THEN ({keys}) END"
            empty = " OR ".join(f"{self._column(step.base, column)} IS NULL" for column in step.base_columns)
            shown += [
                f"count(*) FILTER (WHERE {there}) AS m{place}",
                f"count(DISTINCT {key}) AS u{place}",
                f"count(*) FILTER (WHERE {' AND '.join([*alive, f'({empty})'])}) AS n{place}",
            ]
            joined += f" LEFT JOIN {self._item(step.table)} ON {' AND '.join([*self._on(step), *alive])}"
            if self._how == "inner":
                alive = [f"({there})"]
        fit = " AND ".join([*alive, *(f"coalesce({test}, false)" for test in tests.all)])
        shown.append(f"count(*) FILTER (WHERE {fit}) AS kept" if fit else "count(*) AS kept")
        with named_errors(*(opened.table for opened in self.opened.values())):
            (found,) = self._lake.fetch(f"SELECT {', '.join(shown)} FROM {joined}", tests.values).to_pylist()
            sizes = {step.table: self._size(step.table) for step in self._plan.steps}
        seconds = (time.perf_counter() - started) / max(1, len(self._plan.steps))
        rows = start_rows = int(found["rows"])
        steps = []
        for place, step in enumerate(self._plan.steps):
            matched = int(found[f"m{place}"])
            rows_out = matched if self._how == "inner" else rows
            steps.append(
                StepReport(
                    left=step.left,
                    right=step.right,
                    rows_in=rows,
                    rows_out=rows_out,
                    matched=matched,
                    unmatched_left=rows - matched,
                    unmatched_right=sizes[step.table] - int(found[f"u{place}"]),
                    fan_out=1.0 if matched else 0.0,
                    null_keys=int(found[f"n{place}"]),
                    coerced=0,
                    seconds=seconds,
                )
            )
            rows = rows_out
        return MergeReport(
            self._plan.start,
            start_rows,
            tuple(steps),
            result_rows,
            start_rows - rows,
            rows - int(found["kept"]),
            "duckdb",
            ambiguous=advice.ways_as_sure(self._plan),
            plan=self._plan,
            sql=self._sql,
        )

    def _size(self, table: str) -> int:
        (rows,) = self._lake.fetch(f"SELECT count(*) AS n FROM {self.opened[table].source}")["n"].to_pylist()
        return int(rows)


_TIMES = '"tagframe times"'


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
