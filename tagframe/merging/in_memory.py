"""Merges in memory, which all other ways are held equal to: the tables' columns, and the rows joined so far."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Mapping
from itertools import combinations, repeat
from typing import Any

import numpy as np
import pandas as pd

from tagframe.corpus.canonical import canonical_all
from tagframe.errors import FanOut, RowsLost, RowsMultipliedWarning
from tagframe.joins.plan import JoinPlan
from tagframe.joins.steps import How, JoinStep
from tagframe.keys.as_of import match_as_of
from tagframe.keys.composite import CONTAINED, MOST_ROWS
from tagframe.keys.matching import Matches, Positions, hashable, match_rows
from tagframe.merging import advice
from tagframe.merging.advice import Reaction
from tagframe.merging.agreement import alike, columns_there
from tagframe.merging.joined_rows import JoinedRows, Matched, taken
from tagframe.merging.key_values import key_kind
from tagframe.merging.report import MergeReport, StepReport
from tagframe.merging.stacking import StackedRows
from tagframe.merging.table_rows import AggregatedRows, CorpusRows, Rows
from tagframe.merging.where import Asked, ColumnKey, Where, fitting


def merge_in_memory(asked: Asked) -> tuple[pd.DataFrame, MergeReport]:
    """The merged frame and its report; raises as :func:`tagframe.merging.run_plan`."""
    plan, where = asked.plan, asked.where
    source = AggregatedRows(StackedRows(CorpusRows(asked.corpus), plan), plan)
    tested = where.columns(asked.everything.values())
    wanted = set(asked.wanted.values())
    # Where the result may be a small part of the rows, columns are read of it alone.
    picks = asked.how != "outer" and not where.query and (bool(where) or asked.limit is not None)
    late = {key for key in wanted if picks and source.may_pick(key[0])}
    result = Merge(
        plan, source, plan.column_names(), asked.how, tested | (wanted - late), late, columns_there(plan, asked.corpus)
    )
    steps = [result.advance(step, asked.on_fanout) for step in plan.steps]
    lost = result.lost()
    if asked.on_loss == "raise":
        result.refuse_loss(lost)
    before = result.rows.length
    if where.query:
        chosen = result.frame(asked.everything).query(where.query).index.to_numpy(dtype=np.int64)
        result.rows.select(chosen)
    else:
        result.select(where)
    kept = result.rows.length
    if asked.limit is not None and asked.limit < kept:
        result.rows.select(np.arange(asked.limit, dtype=np.int64))
    frame = result.frame(asked.wanted)
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
    if len(lost) and asked.says_loss:
        advice.say_loss(plan.start, len(lost), report.start_rows, result.examples(lost))
    return frame, report


_MOST_OPTIONS = 6
_MOST_TEXTS = 100_000
_LOOKED_AT = 1_000
"""Rows that match only in canonical form, among which an example is looked for."""


class Merge:
    """Steps are made one by one; then rows are selected, and columns of them taken."""

    def __init__(
        self,
        plan: JoinPlan,
        source: Rows,
        names: Mapping[ColumnKey, str],
        how: How,
        needed: Collection[ColumnKey],
        late: Collection[ColumnKey],
        there: Collection[ColumnKey] = (),
    ) -> None:
        self._there = there
        self.plan, self.names, self.how = plan, names, how
        self._source = source
        self._sharing: dict[str, list[ColumnKey]] = defaultdict(list)
        for key, name in names.items():
            self._sharing[name].append(key)
        if how == "outer":
            # A row without a left side has its key on the right: all columns that share a name are needed.
            needed = {key for name in {names[key] for key in needed} for key in self._sharing[name]}
        columns = columns_needed(plan, needed)
        self._late = frozenset(late)
        self.tables = {table: source.whole(table, list(columns[table])) for table in plan.tables}
        self.sizes = {table: len(frame) for table, frame in self.tables.items()}
        self.rows = JoinedRows(plan.start, self.sizes[plan.start])

    def advance(self, step: JoinStep, on_fanout: Reaction, *, says: bool = True) -> StepReport:
        """Make one step; ``says`` is whether it warns of keys that only match in canonical form."""
        started = time.perf_counter()
        base, table = self.tables[step.base], self.tables[step.table]
        mine, theirs = [base[column] for column in step.base_columns], [table[column] for column in step.columns]
        for owner, column, keys in [*zip(repeat(step.base), step.base_columns, mine),
                                    *zip(repeat(step.table), step.columns, theirs)]:  # fmt: skip
            advice.refuse_inexact(f"{owner}.{column}", keys, shown=column not in self.plan.source(owner).withheld)
        compared = step.comparisons
        if step.key.signs:
            called = [(f"{step.base}.{one}", f"{step.table}.{other}") for one, _, other in compared]
            matches = match_as_of(mine, theirs, [sign for _, sign, _ in compared], called)
        else:
            matches = match_rows(mine, theirs)
        matched = self.rows.match(step.base, matches)
        rows_in = self.rows.length
        if matched.coerced and says:
            equal = len(step.equal_columns)
            withheld = advice.is_withheld(self.plan, step)
            example = None if withheld else _first_coerced(mine[:equal], theirs[:equal], matches)
            advice.say_coercion(step, matched.coerced, rows_in, example)
        if says:
            self._say_written_otherwise(step, mine, theirs, matches)
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
            sign=" and ".join(sign for _, sign, _ in compared) if step.key.signs else "=",
        )

    def _say_written_otherwise(
        self, step: JoinStep, mine: list[pd.Series], theirs: list[pd.Series], matches: Matches
    ) -> None:
        """Warn where keys of text find no partner, and one in canonical form would."""
        found_there = step.key.evidence.contained is not None  # inference took them for the same
        if (
            len(mine) > 1
            or not found_there
            or key_kind(mine[0].head(1)) != "text"
            or key_kind(theirs[0].head(1)) != "text"
        ):
            return
        lone = mine[0][(matches.counts == 0) & ~matches.nulls]
        known = theirs[0].dropna().unique()
        if not len(lone) or len(known) > _MOST_TEXTS or key_kind(lone) != "text" or key_kind(theirs[0]) != "text":
            return
        forms = dict(zip(canonical_all(list(known))[0], known, strict=True))
        texts = lone.unique()[:_MOST_TEXTS]
        found = {
            text: forms[form] for text, form in zip(texts, canonical_all(list(texts))[0], strict=True) if form in forms
        }
        if found:
            example = None if advice.is_withheld(self.plan, step) else next(iter(found.items()))
            advice.say_written_otherwise(step, int(lone.isin([*found]).sum()), example)

    def _check_fanout(self, step: JoinStep, matched: Matched, reaction: Reaction) -> None:
        repeated = np.flatnonzero(matched.counts > 1)
        if not len(repeated):
            return
        start = self.rows.numbers(self.plan.start)[repeated]
        offending = np.unique(start[start >= 0])
        if not len(offending):
            return
        most = int(matched.counts[repeated].max())
        message = advice.fan_out(self.plan, step, len(offending), most, wider=self._wider(step))
        if reaction == "warn":
            advice.warn(message, RowsMultipliedWarning)
            return
        raise FanOut(message, self._start_rows(offending))

    def _wider(self, step: JoinStep) -> str:
        """What to join a table on so that no row is repeated, and hardly one is lost; "" where columns do not say."""
        if max(self.sizes[step.table], self.rows.length) > MOST_ROWS:
            return ""
        theirs = self.plan.source(step.table)
        before = self.plan.tables[: self.plan.tables.index(step.table)]
        options = [
            ((owner, mine), column)
            for owner in sorted(before, key=lambda table: table != step.base)
            for mine, column in alike(self.plan.source(owner), theirs)
            if column not in step.columns and {(owner, mine), (step.table, column)} <= {*self._there}
        ][:_MOST_OPTIONS]
        for chosen in (subset for size in (1, 2) for subset in combinations(options, size)):
            if len({column for _, column in chosen}) < len(chosen):
                continue
            keys = [*zip(((step.base, own) for own in step.base_columns), step.columns, strict=True), *chosen]
            table = self._source.whole(step.table, [column for _, column in keys])
            if table.dropna().apply(hashable).duplicated().any():
                continue
            mine = [taken(self._source.whole(owner, [own])[own], self.rows.of(owner)) for (owner, own), _ in keys]
            found = match_rows(mine, [table[column] for _, column in keys])
            if np.count_nonzero(found.counts) >= CONTAINED * np.count_nonzero(~found.nulls):
                return advice.wider(self.plan, step, chosen)
        return ""

    def select(self, where: Where) -> None:
        """Keep the rows that fit what is asked; functions see the rows that fit the tests."""
        for test in where.by_column:
            self.rows.select(np.flatnonzero(fitting(self.column(test.column), test)))
        for column, function in where.functions:
            self.rows.select(np.flatnonzero(fitting(self.column(column), function)))

    def examples(self, lost: Positions) -> pd.DataFrame:
        """The first of the lost rows, with the columns that the start table is joined on, but for hidden ones."""
        withheld = self.plan.source(self.plan.start).withheld
        shown = [column for column in advice.key_columns(self.plan) if column not in withheld]
        return self.tables[self.plan.start][shown].iloc[lost[:3]]

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


def _first_coerced(mine: list[pd.Series], theirs: list[pd.Series], matches: Matches) -> tuple[Any, Any] | None:
    """The keys of the first row that matches only in canonical form, and of its partner; None where they look alike."""
    for row in np.flatnonzero(matches.coerced)[:_LOOKED_AT].tolist():
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
    """``series`` with ``other`` in place of what is missing; as objects where their types do not go together."""
    if series.dtype != other.dtype:
        common = pd.concat([series.iloc[:0], other.iloc[:0]], ignore_index=True).dtype
        series, other = series.astype(common), other.astype(common)
    return series.where(series.notna(), other)


def columns_needed(plan: JoinPlan, early: Collection[ColumnKey]) -> dict[str, dict[str, None]]:
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
