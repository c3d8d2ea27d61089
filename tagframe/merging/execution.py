"""Run a join plan, and account for every row."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np
import pandas as pd

from tagframe.corpus import Corpus
from tagframe.errors import FanOut, InvalidArgument, RowsLost, RowsMultipliedWarning
from tagframe.joins.plan import JoinPlan
from tagframe.joins.steps import How, JoinStep
from tagframe.keys.matching import Matches, Positions, match_rows
from tagframe.merging import advice
from tagframe.merging.advice import Reaction
from tagframe.merging.joined_rows import JoinedRows, Mask, Matched, taken
from tagframe.merging.lake import merge_in_lake
from tagframe.merging.pushdown import merge_in_engine
from tagframe.merging.report import MergeReport, StepReport
from tagframe.merging.server import merge_in_server
from tagframe.merging.stacking import StackedRows
from tagframe.merging.table_rows import CorpusRows, Rows

Where = Mapping[str, Any] | str

ColumnKey = tuple[str, str]
"""Table id and column name."""


def run_plan(
    plan: JoinPlan,
    corpus: Corpus,
    *,
    how: How = "inner",
    on_fanout: Reaction = "raise",
    on_loss: Reaction = "warn",
    on_ambiguous: Reaction = "warn",
    columns: Sequence[str] | None = None,
    where: Where | None = None,
    limit: int | None = None,
) -> tuple[pd.DataFrame, MergeReport]:
    """Join the tables of a plan.

    Args:
        plan: which tables, in which order, on which columns.
        corpus: the corpus of the tables. With ``where`` or ``limit``, tables of SQLite files are not read whole. Where
            all are in one file, no step repeats a row and no key needs coercion, SQLite joins them, and only the rows
            of the result are read (``where`` as a mapping to values, or none); the report's ``engine`` says so. Else
            the key columns are read whole, and of the others only the rows of the result. Where all tables are in one
            PostgreSQL server, ``how`` is no outer join and ``where`` tests for values, one statement
            (:attr:`MergeReport.sql`) joins them there: keys are compared as the server compares them, so that nothing
            matches by coercion, rows come in the server's order, and of a ``limit`` which ones they are is its choice.
            What the report counts is counted there when it is read; with a ``limit`` no loss is warned of before.
        how: the kind of every join. "left" keeps the rows of the start table.
        on_fanout: what to do where a step repeats rows of the start table.
        on_loss: what to do where rows of the anchor are lost; other tables lose rows by nature. Where the planner chose
            the start table, "raise" is for its rows, and "warn" says nothing.
        on_ambiguous: what to do where other plans are as sure (:attr:`JoinPlan.ambiguous`).
        columns: those of the result, by the name that they have there, or as ``column``, ``table.column`` or
            ``database.table.column``; all where None.
        where: keeps the joined rows that fit: a mapping from a column, named as for ``columns``, to a value, a list of
            values or a function from the column to booleans; or an expression for :meth:`pandas.DataFrame.query` over
            the result's columns.
        limit: at most so many rows.

    Returns:
        The frame, in the order of the start table's rows, with a fresh index; and the report. Columns that the plan
        makes equal appear once, under the name in the table that was joined first; other names stay as they are where
        unique and become ``table.column`` where not. Dtypes are kept; integers beside missing rows become ``Int64``,
        booleans ``boolean``. What is read from SQLite for a ``where`` or ``limit`` has the dtypes of the rows read.

    Raises:
        FanOut: a step would repeat rows of the start table; they are on the exception.
        RowsLost: rows of the start table are lost, with ``on_loss="raise"``; they are on the exception.
        AmbiguousJoin: other plans are as sure, with ``on_ambiguous="raise"``; all are on the exception.
        InexactKeys: keys are floats so large that unlike integers look alike.
        ColumnNotFound: ``columns`` or ``where`` name no column of the plan.
        InvalidArgument: an argument is none of its choices.
    """
    _check(how, on_fanout, on_loss, on_ambiguous, columns, limit)
    advice.say_ambiguity(plan, on_ambiguous)
    advice.say_doubt(plan)
    names = plan.column_names()
    wanted = _wanted(plan, names, columns)
    everything = _wanted(plan, names, None)
    filters = {plan.find_column(name): value for name, value in where.items()} if isinstance(where, Mapping) else {}
    if how != "outer" and not isinstance(where, str):
        served = merge_in_server(plan, corpus, wanted, where or {}, how, limit, on_fanout, on_loss)
        if served is not None:
            return served
    picks = how != "outer" and not isinstance(where, str) and not (where is None and limit is None)
    if picks:
        pushed = merge_in_engine(plan, corpus, wanted, filters, how=how, limit=limit)
        if pushed is not None and not (pushed[1].lost and on_loss == "raise"):
            frame, report = pushed
            if report.lost and on_loss == "warn" and plan.is_anchored:
                advice.say_loss(plan.start, report.lost, report.start_rows, None)
            return frame, replace(report, plan=plan, ambiguous=advice.ways_as_sure(plan))
    if not isinstance(where, str):
        in_lake = merge_in_lake(
            plan, corpus, wanted, filters, how=how, limit=limit, on_fanout=on_fanout, on_loss=on_loss
        )
        if in_lake is not None:
            return in_lake
    source = StackedRows(CorpusRows(corpus), plan)
    tested = {*filters, *(everything.values() if isinstance(where, str) else ())}
    late = {key for key in wanted.values() if picks and source.may_pick(key[0])}
    result = _Merge(plan, source, names, how, tested | ({*wanted.values()} - late), late)
    steps = [result.advance(step, on_fanout) for step in plan.steps]
    lost = result.lost()
    if on_loss == "raise":
        result.refuse_loss(lost)
    before = result.rows.length
    for key, value in filters.items():
        result.rows.select(np.flatnonzero(_fits(result.column(key), value)))
    if isinstance(where, str):
        chosen = result.frame(everything).reset_index(drop=True).query(where).index.to_numpy(dtype=np.int64)
        result.rows.select(chosen)
    kept = result.rows.length
    if limit is not None and limit < kept:
        result.rows.select(np.arange(limit, dtype=np.int64))
    frame = result.frame(wanted)
    stacks = tuple((table.id, tuple(part.id for part in table.parts)) for table in plan.sources if table.parts)
    report = MergeReport(
        plan.start,
        result.sizes[plan.start],
        tuple(steps),
        len(frame),
        len(lost),
        before - kept,
        stacks=stacks,
        ambiguous=advice.ways_as_sure(plan),
        plan=plan,
    )
    if len(lost) and on_loss == "warn" and plan.is_anchored:
        advice.say_loss(plan.start, len(lost), report.start_rows, result.examples(lost))
    return frame, report


class _Merge:
    """A merge under way: the tables' columns, and the rows joined so far."""

    def __init__(
        self,
        plan: JoinPlan,
        source: Rows,
        names: Mapping[ColumnKey, str],
        how: How,
        needed: Collection[ColumnKey],
        late: Collection[ColumnKey],
    ) -> None:
        self.plan, self.names, self.how = plan, names, how
        self._source = source
        self._sharing: dict[str, list[ColumnKey]] = defaultdict(list)
        for key, name in names.items():
            self._sharing[name].append(key)
        if how == "outer":
            # A row without a left side has its key on the right: all columns that share a name are needed.
            needed = {key for name in {names[key] for key in needed} for key in self._sharing[name]}
        columns = _columns(plan, needed)
        self._late = frozenset(late)
        self.tables = {table: source.whole(table, list(columns[table])) for table in plan.tables}
        self.sizes = {table: len(frame) for table, frame in self.tables.items()}
        self.rows = JoinedRows(plan.start, self.sizes[plan.start])

    def advance(self, step: JoinStep, on_fanout: Reaction) -> StepReport:
        """Make one step."""
        started = time.perf_counter()
        base, table = self.tables[step.base], self.tables[step.table]
        mine, theirs = [base[column] for column in step.base_columns], [table[column] for column in step.columns]
        for owner, column, keys in [*zip(repeat(step.base), step.base_columns, mine),
                                    *zip(repeat(step.table), step.columns, theirs)]:  # fmt: skip
            advice.refuse_inexact(f"{owner}.{column}", keys)
        matches = match_rows(mine, theirs)
        matched = self.rows.match(step.base, matches)
        rows_in = self.rows.length
        if matched.coerced:
            advice.say_coercion(step, matched.coerced, rows_in, _first_coerced(mine, theirs, matches))
        if on_fanout != "allow":
            self._check_fanout(step, matched, on_fanout)
        unused = self.rows.join(
            step.table, matched, len(table), keep_left=self.how != "inner", keep_right=self.how == "outer"
        )
        return StepReport(
            left=step.left,
            right=step.right,
            rows_in=rows_in,
            rows_out=self.rows.length,
            matched=matched.matched,
            unmatched_left=rows_in - matched.matched,
            unmatched_right=unused,
            fan_out=matched.pairs / matched.matched if matched.matched else 0.0,
            null_keys=matched.null_keys,
            coerced=matched.coerced,
            seconds=time.perf_counter() - started,
        )

    def _check_fanout(self, step: JoinStep, matched: Matched, reaction: Reaction) -> None:
        repeated = np.flatnonzero(matched.counts > 1)
        if not len(repeated):
            return
        start = self.rows.numbers(self.plan.start)[repeated]
        offending = np.unique(start[start >= 0])
        if not len(offending):
            return
        message = advice.fan_out(self.plan, step, len(offending), int(matched.counts[repeated].max()))
        if reaction == "warn":
            advice.warn(message, RowsMultipliedWarning)
            return
        raise FanOut(message, self._start_rows(offending))

    def examples(self, lost: Positions) -> pd.DataFrame:
        """The first of the lost rows, with the columns that the start table is joined on."""
        return self.tables[self.plan.start][advice.key_columns(self.plan)].iloc[lost[:3]]

    def _start_rows(self, numbers: Positions) -> pd.DataFrame:
        """Rows of the start table, with the columns that would not have been read before the end too."""
        start = self.plan.start
        source = self.plan.source(start)
        columns = [column for column in source.columns if column not in source.hidden]
        rows = self._source.some(start, columns, numbers) if self._late else None
        if rows is None:
            return self.tables[start].drop(columns=[*source.hidden], errors="ignore").iloc[numbers]
        return rows.set_axis(numbers, axis="index")

    def lost(self) -> Positions:
        """The rows of the start table that are not among the joined rows."""
        return np.flatnonzero(~self.rows.present(self.plan.start, self.sizes[self.plan.start]))

    def refuse_loss(self, lost: Positions) -> None:
        """Raise the rows that are lost, if any are."""
        if len(lost):
            message = advice.loss(self.plan.start, len(lost), self.sizes[self.plan.start])
            raise RowsLost(f"{message}. They are on this error as .rows. how='left' keeps them", self._start_rows(lost))

    def _load(self, keys: Collection[ColumnKey]) -> dict[str, tuple[pd.DataFrame, Positions | None]]:
        """By table: the columns of it among ``keys`` that were not read yet, and which of their rows stand where."""
        columns: dict[str, list[str]] = defaultdict(list)
        for table, column in keys:
            if (table, column) in self._late:
                columns[table].append(column)
        found: dict[str, tuple[pd.DataFrame, Positions | None]] = {}
        for table, names in columns.items():
            numbers = self.rows.numbers(table)
            present, places = np.unique(numbers[numbers >= 0], return_inverse=True)
            frame = self._source.some(table, names, present)
            if frame is None:
                found[table] = (self._source.whole(table, names), self.rows.of(table))
                continue
            at = np.full(len(numbers), -1, dtype=np.int64)
            at[numbers >= 0] = places
            found[table] = (frame, at)
        return found

    def column(self, key: ColumnKey) -> pd.Series:
        """One column of the joined rows, of those that were read before the join."""
        table, name = key
        series = taken(self.tables[table][name], self.rows.of(table))
        if self.how == "outer":
            for other, same in self._sharing[self.names[key]]:
                if (other, same) != key and series.isna().any():
                    series = _filled(series, taken(self.tables[other][same], self.rows.of(other)))
        return series

    def frame(self, wanted: Mapping[str, ColumnKey]) -> pd.DataFrame:
        """The joined rows with these columns."""
        late = self._load(wanted.values())
        data = {}
        for name, (table, column) in wanted.items():
            if (table, column) in self._late:
                frame, rows = late[table]
                data[name] = taken(frame[column], rows)
            else:
                data[name] = self.column((table, column))
        return pd.DataFrame(data, index=pd.RangeIndex(self.rows.length), copy=False)


def _first_coerced(mine: list[pd.Series], theirs: list[pd.Series], matches: Matches) -> tuple[Any, Any]:
    """The keys of the first row that matches only in canonical form, and of its partner."""
    row = int(np.flatnonzero(matches.coerced)[0])
    at = int(matches.starts[row])
    partner = at if matches.partners is None else int(matches.partners[at])
    pairs = [(left.iloc[row], right.iloc[partner]) for left, right in zip(mine, theirs, strict=True)]
    return next(((left, right) for left, right in pairs if type(left) is not type(right) or left != right), pairs[0])


def _filled(series: pd.Series, other: pd.Series) -> pd.Series:
    """``series`` with ``other`` in place of what is missing; as objects where their types do not go together."""
    if series.dtype != other.dtype:
        common = pd.concat([series.iloc[:0], other.iloc[:0]], ignore_index=True).dtype
        series, other = series.astype(common), other.astype(common)
    return series.where(series.notna(), other)


def _check(how: str, on_fanout: str, on_loss: str, on_ambiguous: str, columns: object, limit: object) -> None:
    for name, value, choices in (
        ("how", how, ("inner", "left", "outer")),
        ("on_fanout", on_fanout, ("raise", "warn", "allow")),
        ("on_loss", on_loss, ("raise", "warn", "allow")),
        ("on_ambiguous", on_ambiguous, ("raise", "warn", "allow")),
    ):
        if value not in choices:
            raise InvalidArgument(f"{name} is one of {', '.join(map(repr, choices))}; got {value!r}")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise InvalidArgument(f"limit is a number of rows, 0 or more; got {limit!r}")
    if isinstance(columns, str):
        raise InvalidArgument(f"columns is a list of names; got the text {columns!r}, say [{columns!r}]")


def _wanted(plan: JoinPlan, names: Mapping[ColumnKey, str], columns: Sequence[str] | None) -> dict[str, ColumnKey]:
    """Result name to (table, column), in order; the first of the columns that share a name."""
    wanted: dict[str, ColumnKey] = {}
    for key in list(names) if columns is None else [plan.find_column(name) for name in columns]:
        wanted.setdefault(names[key], key)
    if columns is not None:
        # A column that shares its name is taken from the table that was joined first.
        first: dict[str, ColumnKey] = {}
        for key, name in names.items():
            first.setdefault(name, key)
        wanted = {name: first[name] for name in wanted}
    return wanted


def _columns(plan: JoinPlan, early: Collection[ColumnKey]) -> dict[str, dict[str, None]]:
    """By table: the key columns and those of ``early``; one at least of the start table, to count its rows."""
    columns: dict[str, dict[str, None]] = {table: {} for table in plan.tables}
    for step in plan.steps:
        columns[step.base].update(dict.fromkeys(step.base_columns))
        columns[step.table].update(dict.fromkeys(step.columns))
    for source in plan.sources:
        columns[source.id].update(dict.fromkeys(column for column in source.columns if (source.id, column) in early))
    if not columns[plan.start]:
        columns[plan.start].update(dict.fromkeys(plan.source(plan.start).columns[:1]))
    return columns


def _fits(column: pd.Series, value: Any) -> Mask:
    if callable(value):
        mask = value(column)
    elif pd.api.types.is_list_like(value):
        mask = column.isin(list(value))
    elif value is None or value is pd.NA:
        mask = column.isna()
    else:
        mask = column == value
    found = pd.array(np.asarray(mask, dtype=object), dtype="boolean")
    if len(found) != len(column):
        raise InvalidArgument(f"a function in where= gives a boolean for each of {len(column)} rows; got {len(found)}")
    return found.to_numpy(dtype=bool, na_value=False)
