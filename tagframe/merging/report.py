"""What a merge did to the rows, step by step."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas as pd

from tagframe.display import Public
from tagframe.errors import counted
from tagframe.joins.aggregates import sentence_of
from tagframe.joins.plan import JoinPlan
from tagframe.joins.steps import PlanTable
from tagframe.keys.key_pair import column_id
from tagframe.merging.advice import equally_likely


@dataclass(frozen=True)
class StepReport:
    """One join step.

    Attributes:
        left, right: ``database.table.column`` of the rows before the step, and of the new table.
        rows_in: rows before the step: ``matched`` + ``unmatched_left``.
        rows_out: rows after it.
        matched: rows that have a partner.
        unmatched_left: rows without a partner, including ``null_keys``; an inner join loses them.
        unmatched_right: rows of the new table that no row matched.
        fan_out: rows out per matched row: 1 if none is repeated, 0 if none matched.
        null_keys: rows whose key is null, or that lack a row of the key's table; they never match.
        coerced: rows that match only in canonical form: "007" and 7, " Prague" and "prague".
        seconds: the time of the step. SQLite makes all steps in one pass; each gets an equal part of the time.
        sign: how each pair of columns is compared, for example "= and >=".
    """

    left: str
    right: str
    rows_in: int
    rows_out: int
    matched: int
    unmatched_left: int
    unmatched_right: int
    fan_out: float
    null_keys: int
    coerced: int
    seconds: float
    sign: str = "="

    @property
    def troubles(self) -> list[str]:
        """Notes to read before using the rows; none if each row has exactly one partner."""
        found = []
        if self.unmatched_left:
            rows = counted(self.rows_in, "row has", "rows have")
            found.append(f"{self.unmatched_left:,} of {rows} no partner{self._with_nulls()}")
        return found + self._changes()

    def _with_nulls(self) -> str:
        return f" ({self.null_keys:,} with a null key)" if self.null_keys else ""

    def _changes(self) -> list[str]:
        found = []
        if self.fan_out > 1:
            found.append(f"a matched row becomes {self.fan_out:.2f} rows on average")
        if self.coerced:
            found.append(counted(self.coerced, "matches only after coercion", "match only after coercion"))
        return found

    def __str__(self) -> str:
        notes = [f"{self.matched:,} of {counted(self.rows_in, 'row matches', 'rows match')}"]
        if self.unmatched_left:
            notes.append(f"{counted(self.unmatched_left, 'does', 'do')} not{self._with_nulls()}")
        notes += self._changes()
        if self.unmatched_right:
            notes.append(
                counted(self.unmatched_right, "row of the new table stays unused", "rows of the new table stay unused")
            )
        return f"{self.left} {self.sign} {self.right}: " + "; ".join(notes) + f"; {counted(self.rows_out, 'row')} out."


@dataclass(frozen=True)
class Moved:
    """The rows that one statement of a merge across engines brought here.

    Attributes:
        table: its id.
        engine: the kind of the engine that it came from.
        what: "rows" of the table, or "keys": the distinct values of a key column, which are sent to another engine.
        rows: their number.
        keys: the number of keys that were sent to select them.
    """

    table: str
    engine: str
    what: str
    rows: int
    keys: int = 0

    def __str__(self) -> str:
        sent = f", for {counted(self.keys, 'key')} sent there" if self.keys else ""
        return f"{counted(self.rows, self.what[:-1])} of {self.table} came from {self.engine}{sent}"


@dataclass(frozen=True)
class RowCounts:
    """The row counts of a merge; see :class:`MergeReport`."""

    start_rows: int
    steps: tuple[StepReport, ...]
    lost: int
    filtered: int


@dataclass(frozen=True, eq=False)
class MergeReport(Public):
    """What a merge did: a :class:`StepReport` for each join step.

    If an engine ran the join, it counts the rows when the counts are first read. That takes a pass over the tables as
    they are at that time; the merge itself may have stopped after a hundred rows. If the engine cannot answer, reading
    the counts raises the same errors as a merge.

    Attributes:
        plan: the plan of the merge.
        rows: rows of the result, after ``where`` and ``limit``.
        made: the counts, or a function that makes them.
        engine: where the join ran: "pandas", or the kind of the engine ("sqlite").
        differing: a sentence for each column that two tables share and whose values differ in matched rows.
        sql: the statement that gave the rows, if an engine ran the join; for a merge across engines, the statements
            that gave the rows of each table.
        moved: the rows that came from each engine of a merge across several.
        frame_rows: the number of rows of the frame now, if it differs from the merge's.
        limit: the largest number of rows that was asked for.
        remarks: what does not hold of a model's plan, and what was done instead.
    """

    plan: JoinPlan = field(repr=False)
    rows: int
    made: RowCounts | Callable[[], RowCounts] = field(repr=False)
    engine: str = "pandas"
    differing: tuple[str, ...] = ()
    sql: str = field(default="", repr=False)
    moved: tuple[Moved, ...] = ()
    frame_rows: int | None = None
    limit: int | None = None
    remarks: tuple[str, ...] = ()

    @property
    def _joined_rows(self) -> int:
        """The number of joined rows after ``where``, before ``limit``."""
        return (self.steps[-1].rows_out if self.steps else self.start_rows) - self.filtered

    @cached_property
    def counts(self) -> RowCounts:
        """The counts; they are made when first read."""
        return self.made if isinstance(self.made, RowCounts) else self.made()

    @property
    def is_counted(self) -> bool:
        """Whether the counts are there already."""
        return isinstance(self.made, RowCounts) or "counts" in vars(self)

    @property
    def start(self) -> str:
        """The table that the merge started from."""
        return self.plan.start

    @property
    def start_rows(self) -> int:
        """Its rows."""
        return self.counts.start_rows

    @property
    def steps(self) -> tuple[StepReport, ...]:
        """In the order in which they were made."""
        return self.counts.steps

    @property
    def lost(self) -> int:
        """The number of rows of the start table that are not in the joined rows."""
        return self.counts.lost

    @property
    def filtered(self) -> int:
        """The number of joined rows that ``where`` removed."""
        return self.counts.filtered

    @property
    def stacks(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Tables with the same columns that were joined as one: (id of the stack, ids of its parts)."""
        return tuple((one.id, tuple(part.id for part in one.parts)) for one in self.plan.sources if one.parts)

    @property
    def ambiguous(self) -> tuple[str, ...]:
        """The joins that are as likely as the one that was used, a line each."""
        return equally_likely(self.plan)

    def read_of(self, rows: int) -> MergeReport:
        """The report for a frame that has this many rows now, for example after filtering; nothing is counted."""
        return self if rows == self.rows else replace(self, made=lambda: self.counts, frame_rows=rows)

    @property
    def _made_of_tables(self) -> list[PlanTable]:
        return [source for source in self.plan.sources if source.aggregates]

    def to_frame(self) -> pd.DataFrame:
        """One row for each step, with the attributes of :class:`StepReport` as columns."""
        names = [field.name for field in dataclasses.fields(StepReport)]
        return pd.DataFrame([dataclasses.asdict(step) for step in self.steps], columns=names)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as ``tagframe merge --json`` prints them."""
        plain = {
            "start": self.start,
            "start_rows": self.start_rows,
            "steps": [dataclasses.asdict(step) for step in self.steps],
            "rows": self.rows,
            "lost": self.lost,
            "filtered": self.filtered,
            "engine": self.engine,
            "stacks": [{"id": id, "tables": list(parts)} for id, parts in self.stacks],
            "ambiguous": list(self.ambiguous),
        }
        where_there_are = {
            "differing": list(self.differing),
            "sql": self.sql,
            "limit": self.limit,
            "remarks": list(self.remarks),
            "moved": [dataclasses.asdict(moved) for moved in self.moved],
            "aggregate": {source.id: dict(source.aggregates) for source in self._made_of_tables},
        }
        plain |= {name: value for name, value in where_there_are.items() if value}
        return plain if self.frame_rows is None else {**plain, "frame_rows": self.frame_rows}

    @property
    def preface(self) -> list[str]:
        """The first lines: which tables are stacked, which have one row per key, and which are left out."""
        return [
            *(f"{stack} is the stack of {' and '.join(parts)}." for stack, parts in self.stacks),
            *map(sentence_of, self._made_of_tables),
            *([f"{plan_text[:1].upper()}{plan_text[1:]}."] if (plan_text := self.plan.sentence_of_absence) else []),
            *(
                f"{key.left} refers to {key.right_table} where {column_id(table, (column,))} is {type!r}."
                for key in (step.key for step in self.plan.steps if step.key.evidence.only)
                for table, column, type in [key.evidence.only]
            ),
            *(f"Exact copies of rows of {one.id} count once." for one in self.plan.sources if one.distinct),
            *(f"{table} is left out: {self.plan.why_left_out(table)}." for table in self.plan.left_out),
            *(f"Of the model's plan: {remark}." for remark in self.remarks),
        ]

    @property
    def heading(self) -> str:
        return f"Merged from {self.start} ({counted(self.start_rows, 'row')}):"

    @property
    def doubts(self) -> list[str]:
        """A sentence for each join that is equally likely, and for each column that differs in matched rows."""
        return [*(f"equally likely: {one}" for one in self.ambiguous), *(f"{one}." for one in self.differing)]

    @property
    def ending(self) -> str:
        parts = [f"{counted(self.rows, 'row')} in the result"]
        is_limited = self.limit is not None and self.rows < self._joined_rows
        if is_limited:
            parts[0] += f", limited by limit={self.limit}: the first of {counted(self._joined_rows, 'joined row')}"
        if self.lost and (is_limited or self.filtered):  # of other rows of the start, too, none is in the result
            parts.append(
                counted(self.lost, f"row of {self.start} has no partner", f"rows of {self.start} have no partner")
            )
        elif self.lost:
            parts.append(
                counted(self.lost, f"row of {self.start} is not among them", f"rows of {self.start} are not among them")
            )
        if self.filtered:
            parts.append(counted(self.filtered, "row was filtered out by where=", "rows were filtered out by where="))
        found = "; ".join(parts) + "."
        if self.frame_rows is not None:
            of_them = " of them" * (self.frame_rows < self.rows)
            found += f" The merge gave {counted(self.rows, 'row')}; this frame has {self.frame_rows:,}{of_them}."
        return found

    def __repr__(self) -> str:
        from tagframe.display import fitted

        below = [*map(str, self.steps), *self.doubts, *(f"{moved}." for moved in self.moved), self.ending]
        return fitted("\n".join([*self.preface, self.heading, *(f"  {line}" for line in below)]))

    def _repr_html_(self) -> str:
        from tagframe.display import report_html

        return report_html(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MergeReport) and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash((self.start, self.rows))

    def _facts(self) -> tuple[Any, ...]:
        return self.start, self.rows, self.counts, self.engine, self.stacks, self.ambiguous, self.differing

    def __reduce__(self) -> tuple[Any, ...]:
        """With its counts."""
        counted = replace(self, made=self.counts)
        return MergeReport, tuple(getattr(counted, field.name) for field in dataclasses.fields(self))
