"""Merges in memory: the reference for all other ways.

Between steps, only row numbers are kept: one per table for each joined row. So columns are copied once, at the end, and
a step that repeats rows repeats only numbers.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from itertools import combinations, repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tagframe.corpus.canonical import canonical_all
from tagframe.corpus.references import Column
from tagframe.engines.cells import CellTest, Condition, Either, fitting, nullable, tests_of
from tagframe.errors import FanOut, RowsLost, RowsMultipliedWarning
from tagframe.joins.plan import JoinPlan
from tagframe.joins.steps import JoinStep
from tagframe.keys.as_of import match_as_of
from tagframe.keys.column_names import table_entity, words
from tagframe.keys.composite import CONTAINED, MOST_REPEATED
from tagframe.keys.matching import Matches, Positions, hashable, is_copy, match_rows
from tagframe.merging import advice
from tagframe.merging.advice import Reaction
from tagframe.merging.agreement import alike, columns_there
from tagframe.merging.report import MergeReport, RowCounts, StepReport
from tagframe.merging.table_rows import PlanRows
from tagframe.merging.where import Filter, MergeRequest, Where, where_of

_MAX_OPTIONS = 6
_MAX_ROWS_OF_ADVICE = 2_000_000
"""Tables with more rows are not read for the advice in an error."""
_MAX_TEXTS = 100_000
_MAX_EXAMPLE_ROWS = 1_000
"""The number of rows matching only in canonical form that are searched for an example."""
_MOST_CELLS = 2_000_000_000
"""A step that repeats rows is refused if the result would have more cells: they take 16 GB and more."""
_MOST_UNASKED_CELLS = 100_000_000
"""The same for a step whose repetition nobody allowed: only the question may need it."""
_ROW = ""
"""The id of a table that does not exist, whose rows are the joined rows."""
_NO_ROWS = np.empty(0, dtype=np.int64)
_EXACT_INTEGERS = 2.0**53
"""Beyond this, floats cannot represent every integer."""


def merge_in_memory(request: MergeRequest) -> tuple[pd.DataFrame, MergeReport]:
    """The merged frame and its report; raises as :func:`tagframe.merging.run_plan`."""
    plan, where = request.plan, request.where
    counted = _counted(request) if request.absent and not where else where
    needed = {*where.columns(), *counted.columns(), *request.wanted.values()}
    result = Merge(request, PlanRows(request.corpus, plan), needed)
    waits = bool(where) or request.implied is not None
    joined = [step for step in plan.steps if step.table not in request.absent]
    steps = [result.advance(step, request.on_fanout, waits=waits) for step in joined]
    lost = result.lost()
    if request.on_loss == "raise":
        result.refuse_loss(lost)
    if request.absent:
        steps += result.remove_matched(counted, request.absent)
    before = result.rows.length
    result.select(where, [table for table in plan.tables if table not in request.absent])
    selected = result.rows.length
    result.settle_fanout(request)
    if request.limit is not None and request.limit < selected:
        result.rows.select(np.arange(request.limit, dtype=np.int64))
    frame = result.frame(request.wanted)
    counts = RowCounts(result.sizes[plan.start], tuple(steps), len(lost), before - selected)
    if len(lost) and request.says_loss:
        advice.say_loss(plan.start, len(lost), counts.start_rows, result.examples(lost))
    return frame, MergeReport(plan, len(frame), counts)


def _counted(request: MergeRequest) -> Where:
    """Which rows of the absent tables count: those with the cells that the question names after its denial, but for a
    cell that is called as its table: "bought at a sale" names the sales."""
    implied = Filter({}) if request.implied is None else request.implied(request.plan, request.corpus)
    called = {table: {*table_entity(request.plan.by_id[table].name)} for table in request.absent}
    absent, denied = (
        {
            name: value
            for name, value in cells.items()
            if (own := called.get(request.plan.find_column(name)[0])) is not None and not {*words(str(value))} <= own
        }
        for cells in (implied.conditions, implied.denied)
    )
    if absent:
        advice.say_filter_of_absent(request.plan, absent, denied)
    return where_of(denied, request.plan)


def _react(repeats: FanOut, reaction: Reaction) -> None:
    """Warn of rows that a step repeats, or raise the error."""
    if reaction == "warn":
        advice.warn(str(repeats), RowsMultipliedWarning)
    elif reaction == "raise":
        raise repeats


class Merge:
    """A running merge: steps are made one by one, then rows are selected, and columns are taken."""

    def __init__(self, request: MergeRequest, source: PlanRows, needed: Collection[Column]) -> None:
        self.plan, self.how, self._corpus, self._source = request.plan, request.how, request.corpus, source
        plan, names = request.plan, request.plan.column_names()
        self.names = names
        self._sharing: dict[str, list[Column]] = defaultdict(list)
        for key, name in names.items():
            self._sharing[name].append(key)
        if self.how in ("right", "outer"):
            # A row without a left side has its key on the right, so all columns that share a name are needed.
            needed = {key for name in {names[key] for key in needed} for key in self._sharing[name]}
        columns = columns_needed(plan, needed)
        self.tables = {table: source.whole(table, list(columns[table])) for table in plan.tables}
        self.sizes = {table: len(frame) for table, frame in self.tables.items()}
        self.rows = JoinedRows(plan.start, self.sizes[plan.start])
        self._width = len(plan.tables) + len(request.wanted)
        self._repeats: list[tuple[FanOut, str]] = []

    def advance(self, step: JoinStep, on_fanout: Reaction, *, says: bool = True, waits: bool = False) -> StepReport:
        """Make one step.

        Args:
            step: the step.
            on_fanout: what to do if it repeats rows of the start table.
            says: whether it warns of keys that match only in canonical form.
            waits: whether :meth:`settle_fanout` decides on repeated rows, after rows were selected.
        """
        started = time.perf_counter()
        base, table = self.tables[step.base], self.tables[step.table]
        mine, theirs = [base[column] for column in step.base_columns], [table[column] for column in step.columns]
        for owner, column, keys in [*zip(repeat(step.base), step.base_columns, mine),
                                    *zip(repeat(step.table), step.columns, theirs)]:  # fmt: skip
            advice.refuse_inexact(f"{owner}.{column}", keys)
        compared = step.comparisons
        if step.key.signs:
            called = [(f"{step.base}.{one}", f"{step.table}.{other}") for one, _, other in compared]
            matches = match_as_of(mine, theirs, [sign for _, sign, _ in compared], called)
        else:
            matches = match_rows(mine, theirs)
        found, rows_in = self.rows.match(step.base, matches), self.rows.length
        matched, coerced = int(np.count_nonzero(found.counts)), int(np.count_nonzero(found.coerced))
        if coerced and says:
            equal = len(step.equal_columns)
            advice.say_coercion(step, coerced, rows_in, _first_coerced(mine[:equal], theirs[:equal], matches))
        if says:
            self._say_written_otherwise(step, mine, theirs, matches)
        most = _MOST_UNASKED_CELLS if on_fanout == "raise" else _MOST_CELLS
        is_too_long = self._is_too_long(found, most)
        if on_fanout != "allow" and (repeats := self._fan_out(step, found)) is not None:
            if not waits or is_too_long:
                _react(repeats, on_fanout)
            else:
                self._repeats.append((repeats, self._nearly_unique(step)))
        if is_too_long:
            none = self.tables[self.plan.start].iloc[_NO_ROWS]
            raise FanOut(advice.too_many_rows(step, self._rows_out(found), most), none)
        unused = self.rows.join(
            step.table,
            found,
            len(table),
            keep_left=self.how in ("left", "outer"),
            keep_right=self.how in ("right", "outer"),
        )
        return StepReport(
            left=step.left,
            right=step.right,
            rows_in=rows_in,
            rows_out=self.rows.length,
            matched=matched,
            unmatched_left=rows_in - matched,
            unmatched_right=unused,
            fan_out=int(found.counts.sum()) / matched if matched else 0.0,
            null_keys=int(np.count_nonzero(found.nulls)),
            coerced=coerced,
            seconds=time.perf_counter() - started,
            sign=" and ".join(sign for _, sign, _ in compared) if step.key.signs else "=",
        )

    def _say_written_otherwise(
        self, step: JoinStep, mine: list[pd.Series], theirs: list[pd.Series], matches: Matches
    ) -> None:
        """Warn if keys of text find no partner, but would in canonical form."""
        lone = mine[0][(matches.counts == 0) & ~matches.nulls]
        # Inference compared canonical forms of single columns.
        is_seen = len(mine) == 1 and step.key.evidence.contained is not None and len(lone) > 0
        if not is_seen or not all(key_kind(keys.head(1)) == key_kind(keys) == "text" for keys in (lone, theirs[0])):
            return
        known = theirs[0].dropna().unique()
        if len(known) > _MAX_TEXTS:
            return
        forms = dict(zip(canonical_all(list(known))[0], known, strict=True))
        texts = lone.unique()[:_MAX_TEXTS]
        found = {
            text: forms[form] for text, form in zip(texts, canonical_all(list(texts))[0], strict=True) if form in forms
        }
        if found:
            advice.say_written_otherwise(step, int(lone.isin([*found]).sum()), next(iter(found.items())))

    def _rows_out(self, found: Matches) -> int:
        alone = int(np.count_nonzero(found.counts == 0)) if self.how in ("left", "outer") else 0
        return int(found.counts.sum(dtype=np.int64)) + alone

    def _is_too_long(self, found: Matches, most: int) -> bool:
        """Whether a step that repeats rows would make more cells than a merge needs; nothing is joined to know it."""
        rows = self._rows_out(found)
        return rows > max(self.rows.length, len(found.counts)) and rows * self._width > most

    def _fan_out(self, step: JoinStep, found: Matches) -> FanOut | None:
        """The error of a step that repeats rows of the start table; None if it repeats none."""
        repeated = np.flatnonzero(found.counts > 1)
        if not len(repeated):
            return None
        start = self.rows.numbers(self.plan.start)[repeated]
        offending = np.unique(start[start >= 0])
        if not len(offending):
            return None
        most = int(found.counts[repeated].max())
        copies = 0 if self.sizes[step.table] > _MAX_ROWS_OF_ADVICE else self._source.copies(step.table, step.columns)
        read = partial(self._source.whole, step.table)
        other = "" if copies else self._wider(step) or advice.versions(self.plan, step, read)
        message = advice.fan_out(self.plan, step, len(offending), most, other=other, copies=copies)
        return FanOut(message, self.tables[self.plan.start].iloc[offending])

    def _nearly_unique(self, step: JoinStep) -> str:
        """The warning of a step whose keys hardly any row of its table repeats, by mistake; "" of another one."""
        keys = self.tables[step.table][[*step.columns]].dropna()
        again = int(is_copy(keys).sum())
        return advice.nearly_unique(self.plan, step, again, len(keys)) if again <= MOST_REPEATED * len(keys) else ""

    def settle_fanout(self, request: MergeRequest) -> None:
        """React to steps that repeated rows of the start table, unless ``where`` has left each row once.

        If the conditions that the question implies leave each row of some table once, and of those of which it names a
        number, the joined rows stay, and a warning gives the conditions. So do those of a table that hardly repeats its
        keys, if the question neither begins with a table nor names a number of the repeated rows.
        """
        everything = np.arange(self.rows.length, dtype=np.int64)
        # Without ``where``, rows that a later step loses do not undo a repetition: tf.merge refuses it, too.
        if not self._repeats or (request.where and not self._repeats_rows_of(self.plan.start, everything)):
            return
        reading = Filter({}) if request.implied is None else request.implied(self.plan, request.corpus)
        aggregated = {source.id for source in self.plan.sources if source.aggregates}
        there = [table for table in self.plan.tables if table not in request.absent]
        implied = {name: value for name, value in reading.conditions.items() if self.plan.find_column(name)[0] in there}
        measured = (reading.measured | aggregated).intersection(there)
        for conditions in [implied, *({name: value} for name, value in implied.items())]:
            chosen = self._fitting(conditions) if conditions else _NO_ROWS
            once = [table for table in there if len(chosen) and not self._repeats_rows_of(table, chosen)]
            if once and not any(self._repeats_rows_of(table, chosen) for table in measured):
                advice.warn(advice.narrowed(once[0], conditions, self.rows.length, len(chosen)), RowsMultipliedWarning)
                return
        if reading.once and not aggregated:
            advice.warn(advice.once_is_enough(self.rows.length), RowsMultipliedWarning)
            return
        may_repeat = request.implied is not None and not self.plan.is_anchored and self.plan.start not in measured
        for repeats, doubled in self._repeats:
            if doubled and may_repeat:
                advice.warn(doubled, RowsMultipliedWarning)
            else:
                _react(repeats, request.on_fanout)

    def _fitting(self, conditions: Mapping[str, Any]) -> Positions:
        """The positions of the joined rows that meet conditions, given as for ``where``."""
        return np.flatnonzero(np.logical_and.reduce([*map(self._fits, where_of(conditions, self.plan).tests)]))

    def _fits(self, condition: Condition) -> npt.NDArray[np.bool_]:
        """Which joined rows meet a condition."""
        if isinstance(condition, CellTest):
            return fitting(self.column(condition.column), condition)
        both = np.logical_or if isinstance(condition, Either) else np.logical_and
        found: npt.NDArray[np.bool_] = both.reduce([*map(self._fits, condition.parts)])
        return found

    def _repeats_rows_of(self, table: str, chosen: Positions) -> bool:
        """Whether some of these joined rows have the same row of a table."""
        numbers = self.rows.numbers(table)[chosen]
        numbers = numbers[numbers >= 0]
        return len(np.unique(numbers)) < len(numbers)

    def _wider(self, step: JoinStep) -> str:
        """More columns to join a table on so that no row is repeated and hardly any is lost; "" if there are none."""
        if max(self.sizes[step.table], self.rows.length) > _MAX_ROWS_OF_ADVICE:
            return ""
        there = columns_there(self.plan, self._corpus)
        options = [
            (mine, column)
            for mine, column in alike(self.plan.source(step.base), self.plan.source(step.table))
            if column not in step.columns
            and mine not in step.base_columns
            and {(step.base, mine), (step.table, column)} <= there
        ][:_MAX_OPTIONS]
        pairs = [*zip(step.base_columns, step.columns, strict=True), *options]
        bases, partners = (
            self._source.whole(table, [*dict.fromkeys(columns)]) if options else pd.DataFrame()
            for table, columns in zip((step.base, step.table), zip(*pairs, strict=True), strict=True)
        )
        for chosen in (subset for size in (1, 2) for subset in combinations(options, size)):
            if any(len({*columns}) < len(chosen) for columns in zip(*chosen, strict=True)):
                continue
            keys = [*zip(step.base_columns, step.columns, strict=True), *chosen]
            table = partners[[column for _, column in keys]]
            if table.dropna().apply(hashable).duplicated().any():
                continue
            mine = [taken(bases[own], self.rows.of(step.base)) for own, _ in keys]
            found = match_rows(mine, [table[column] for _, column in keys])
            if np.count_nonzero(found.counts) >= CONTAINED * np.count_nonzero(~found.nulls):
                return advice.wider(self.plan, step, chosen)
        return ""

    def select(self, where: Where, tables: Collection[str]) -> None:
        """Keep the rows that match ``where`` in these tables; its functions see the rows that passed its tests."""
        for one in where.tests:
            if all(test.column[0] in tables for test in tests_of(one)):
                self.rows.select(np.flatnonzero(self._fits(one)))
        for column, function in where.functions:
            if column[0] in tables:
                self.rows.select(np.flatnonzero(fitting(self.column(column), function)))

    def remove_matched(self, where: Where, absent: Collection[str]) -> list[StepReport]:
        """Remove the rows with a partner in the absent tables that matches ``where``; the steps are accounted for."""
        rows = self.rows
        self.rows = rows.numbered()
        advice.say_weak_absence(self.plan)
        steps = [self.advance(step, "allow") for step in self.plan.steps if step.table in absent]
        self.select(where, absent)
        matched = self.rows.numbers(_ROW)
        self.rows = rows
        before = rows.length
        rows.select(np.setdiff1d(np.arange(before, dtype=np.int64), matched))
        if rows.length in (0, before):
            advice.say_all_or_none(self.plan, rows.length)
        return [*steps[:-1], replace(steps[-1], rows_out=rows.length)]

    def examples(self, lost: Positions) -> pd.DataFrame:
        """The first lost rows, with the key columns of the start table."""
        return self.tables[self.plan.start][[*advice.key_columns(self.plan)]].iloc[lost[:3]]

    def lost(self) -> Positions:
        """The rows of the start table that are not among the joined rows."""
        return np.flatnonzero(~self.rows.present(self.plan.start, self.sizes[self.plan.start]))

    def refuse_loss(self, lost: Positions) -> None:
        """Raise an error with the lost rows, if there are any."""
        if len(lost):
            message = advice.loss(self.plan.start, len(lost), self.sizes[self.plan.start])
            rows = self.tables[self.plan.start].iloc[lost]
            raise RowsLost(f"{message}. They are in .rows of this error. how='left' keeps them", rows)

    def column(self, key: Column) -> pd.Series:
        """One column of the joined rows; one that only a question's condition needs is read now."""
        table, name = key
        whole = self.tables[table] if name in self.tables[table] else self._source.whole(table, [name])
        series = taken(whole[name], self.rows.of(table))
        if self.how in ("right", "outer"):
            for other, same in self._sharing[self.names[key]]:
                if (other, same) != key and series.isna().any():
                    series = _filled(series, taken(self.tables[other][same], self.rows.of(other)))
        return series

    def frame(self, wanted: Mapping[str, Column]) -> pd.DataFrame:
        """The joined rows with these columns."""
        data = {name: self.column(key) for name, key in wanted.items()}
        return pd.DataFrame(data, index=pd.RangeIndex(self.rows.length), copy=False)


class JoinedRows:
    """For each table joined so far, its row number in each joined row; -1 for none."""

    def __init__(self, start: str, length: int) -> None:
        self.length = length
        # None means 0, 1, 2, …: the start table, until a step moves its rows.
        self._of: dict[str, Positions | None] = {start: None}

    def numbered(self) -> JoinedRows:
        """The same rows, with their own numbers as those of one more table."""
        same = JoinedRows(_ROW, self.length)
        same._of.update(self._of)
        return same

    def of(self, table: str) -> Positions | None:
        """Row numbers of a table; None for 0, 1, 2, …."""
        return self._of[table]

    def numbers(self, table: str) -> Positions:
        """Row numbers of a table, shape (length,)."""
        known = self._of[table]
        return np.arange(self.length, dtype=np.int64) if known is None else known

    def present(self, table: str, size: int) -> npt.NDArray[np.bool_]:
        """Which of the table's ``size`` rows are among the joined rows."""
        known = self._of[table]
        if known is None:
            return np.ones(size, dtype=bool)
        found = np.zeros(size, dtype=bool)
        found[known[known >= 0]] = True
        return found

    def select(self, chosen: Positions) -> None:
        """Keep the rows at these positions, in this order; a position may be repeated."""
        self._of = {table: chosen if known is None else known[chosen] for table, known in self._of.items()}
        self.length = len(chosen)

    def match(self, base: str, matches: Matches) -> Matches:
        """The partners of every joined row, from those of the base table's rows."""
        at = self._of[base]
        if at is None:
            return matches
        # A row without a row of the base table (outer joins) reads the entry added at the end: no match.
        counts, starts = np.append(matches.counts, np.int8(0))[at], np.append(matches.starts, -1)[at]
        nulls, coerced = np.append(matches.nulls, True)[at], np.append(matches.coerced, False)[at]
        return Matches(starts, counts, matches.partners, nulls, coerced)

    def join(self, table: str, found: Matches, size: int, *, keep_left: bool, keep_right: bool) -> int:
        """Bring in a table of ``size`` rows.

        Args:
            table: its id.
            found: the rows of the table that each joined row matches.
            size: its number of rows.
            keep_left: keep rows without a partner.
            keep_right: add the unmatched rows of the table at the end.

        Returns:
            The number of unmatched rows of the table.
        """
        bring = self._multiply if found.counts.max(initial=0) > 1 else self._look_up
        new = bring(found, keep_left=keep_left)
        used = np.zeros(size, dtype=bool)
        used[new[new >= 0]] = True
        unused = np.flatnonzero(~used)
        if keep_right and len(unused):
            nowhere = np.full(len(unused), -1, dtype=np.int64)
            self._of = {other: np.concatenate([self.numbers(other), nowhere]) for other in self._of}
            new = np.concatenate([new, unused])
            self.length += len(unused)
        self._of[table] = new
        return len(unused)

    def _look_up(self, found: Matches, *, keep_left: bool) -> Positions:
        """At most one partner for each row."""
        new, partners = found.starts, found.partners
        if partners is not None:
            first = partners[np.minimum(new, len(partners) - 1)] if len(partners) else new
            new = np.where(found.counts > 0, first, -1)
        matched = np.flatnonzero(found.counts)
        if not keep_left and len(matched) < self.length:
            self.select(matched)
            new = new[matched]
        return new

    def _multiply(self, found: Matches, *, keep_left: bool) -> Positions:
        """Several partners for some rows: those rows are repeated."""
        counts, partners = found.counts, found.partners
        assert partners is not None  # otherwise each row would have at most one partner
        repeats = np.maximum(counts, 1) if keep_left else counts
        chosen = np.repeat(np.arange(self.length, dtype=np.int64), repeats)
        within = np.arange(len(chosen), dtype=np.int64) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        at = np.minimum(found.starts[chosen] + within, len(partners) - 1)
        new = np.where(counts[chosen] > 0, partners[at], -1)
        self.select(chosen)
        return new


def taken(series: pd.Series, rows: Positions | None) -> pd.Series:
    """The values at these rows, with a fresh index; missing at -1. Always a copy.

    Dtypes are kept, except for integers and booleans with missing rows: they become ``Int64`` and the like, and
    ``boolean``, so that nothing is lost.
    """
    if rows is None:
        return pd.Series(series.array.copy(), copy=False)
    is_missing = bool(len(rows)) and int(rows.min()) < 0
    if is_missing and isinstance(series.dtype, np.dtype) and series.dtype.kind in "iub":
        series = series.astype(nullable(series.dtype))
    # A plain numpy array is indexed directly: pandas would search a wrapped one for missing values.
    values: Any = series.to_numpy() if isinstance(series.dtype, np.dtype) else series.array
    found = pd.api.extensions.take(values, rows, allow_fill=True) if is_missing else values.take(rows)
    return pd.Series(found, dtype=series.dtype, copy=False)


def _first_coerced(mine: list[pd.Series], theirs: list[pd.Series], matches: Matches) -> tuple[Any, Any] | None:
    """The keys of the first row that matches only in canonical form, and of its partner; None if they look alike."""
    for row in np.flatnonzero(matches.coerced)[:_MAX_EXAMPLE_ROWS].tolist():
        at = int(matches.starts[row])
        partner = at if matches.partners is None else int(matches.partners[at])
        for left, right in zip(mine, theirs, strict=True):
            one, other = (
                key.item() if isinstance(key, np.generic) else key for key in (left.iloc[row], right.iloc[partner])
            )
            if repr(one) != repr(other):
                return one, other
    return None


def _filled(series: pd.Series, other: pd.Series) -> pd.Series:
    """``series`` with ``other`` in place of missing values; as objects if their types do not go together."""
    if series.dtype != other.dtype:
        common = pd.concat([series.iloc[:0], other.iloc[:0]], ignore_index=True).dtype
        series, other = series.astype(common), other.astype(common)
    return series.where(series.notna(), other)


def columns_needed(plan: JoinPlan, early: Collection[Column]) -> dict[str, dict[str, None]]:
    """By table: the key columns and those of ``early``; at least one of the start table, to count its rows."""
    columns: dict[str, dict[str, None]] = {table: {} for table in plan.tables}
    for step in plan.steps:
        columns[step.base].update(dict.fromkeys(step.base_columns))
        columns[step.table].update(dict.fromkeys(step.columns))
    for source in plan.sources:
        columns[source.id].update(dict.fromkeys(column for column in source.columns if (source.id, column) in early))
    if not columns[plan.start]:
        columns[plan.start].update(dict.fromkeys(plan.source(plan.start).columns[:1]))
    return columns


def key_kind(keys: pd.Series) -> str:
    """The kind of a key column: "integer", "text", "null" if it is empty, "" for others, which only pandas compares.

    >>> key_kind(pd.Series([1.0, None])), key_kind(pd.Series(["a", None])), key_kind(pd.Series([1.5]))
    ('integer', 'text', '')
    """
    if keys.isna().all():
        return "null"
    dtype: Any = getattr(keys.dtype, "numpy_dtype", keys.dtype)
    if isinstance(dtype, np.dtype) and dtype.kind in "iu":
        return "integer" if dtype.kind == "i" or int(keys.max()) < 2**63 else ""
    if isinstance(dtype, np.dtype) and dtype.kind == "f":
        numbers = keys.dropna().to_numpy(dtype=np.float64)
        is_whole = bool((numbers == np.trunc(numbers)).all() and (np.abs(numbers) < _EXACT_INTEGERS).all())
        return "integer" if is_whole else ""
    if isinstance(dtype, pd.CategoricalDtype):
        return "text" if pd.api.types.infer_dtype(keys.cat.categories, skipna=True) == "string" else ""
    is_text = pd.api.types.is_string_dtype(dtype) or pd.api.types.is_object_dtype(dtype)
    return "text" if is_text and pd.api.types.infer_dtype(keys, skipna=True) == "string" else ""
