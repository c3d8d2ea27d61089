"""Which engines have the tables of a plan, and an estimate of the rows that come here when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tagframe.corpus import ColumnProfile, Corpus, TableProfile
from tagframe.display.markup import size_text
from tagframe.engines.base import Engine
from tagframe.errors import counted
from tagframe.joins.steps import JoinStep, PlanTable

if TYPE_CHECKING:
    from tagframe.joins.plan import JoinPlan

_WIDTHS = {"integer": 8.0, "real": 8.0, "date": 8.0, "boolean": 1.0, "empty": 0.0}
_TEXT = 16.0
"""The assumed size of a text in bytes, if no sample is known."""


@dataclass(frozen=True)
class PlannedMove:
    """Rows of one table of a plan that are moved out of their engine.

    Attributes:
        table: its id.
        place: the kind of the engine that holds it.
        rows, size: the largest number of rows, and their size in bytes, roughly; None if the table's rows are unknown.
        asked_by: the tables whose keys may select the rows.
    """

    table: str
    place: str
    rows: int | None
    size: int | None
    asked_by: tuple[str, ...]

    def __str__(self) -> str:
        much = (
            "rows"
            if self.rows is None or self.size is None
            else f"at most {counted(self.rows, 'row')} (about {size_text(self.size)})"
        )
        return f"{much} of {self.table} come from {self.place}, chosen by keys of {' and '.join(self.asked_by)}"


def planned_moves(sources: Sequence[PlanTable], steps: Sequence[JoinStep]) -> list[PlannedMove]:
    """The rows that are moved if a plan's tables are in several engines; none for tables in memory or a single engine.

    A step reads at most as many rows of its new table as its base has. How many rows of the start table the keys leave
    out is not known in advance.
    """
    start, by_id = sources[0].id, {source.id: source for source in sources}
    rows: dict[str, int | None] = {start: sources[0].rows}
    for step in steps:
        known, base = by_id[step.table].rows, rows[step.base]
        rows[step.table] = known if known is None or base is None or step.grows else min(known, base)
    found = []
    for table, source in by_id.items():
        if not source.place:
            continue
        asked = [step.base for step in steps if step.table == table]
        asked += [step.table for step in steps if step.base == table == start]
        size = None if (count := rows[table]) is None else round(count * source.row_bytes)
        found.append(PlannedMove(table, source.place, rows[table], size, tuple(asked)))
    return found


def placed(plan: JoinPlan, corpus: Corpus) -> JoinPlan:
    """The plan with the schema of each table, and if they are in several engines and not stacked, place and width."""
    if any(_schema(part, corpus) for source in plan.sources for part in source.parts or (source,)):
        plan = plan.with_sources(lambda source: _in_schema(source, corpus))
    kinds = {}
    engines: list[Engine] = []
    for source in plan.sources:
        engine = None if source.parts else corpus.engine(source.table)
        if engine is None:
            return plan
        kinds[source.id] = engine.kind if engine.is_asked else ""
        if not any(engine is other or engine == other for other in engines):
            engines.append(engine)
    if len(engines) < 2:
        return plan

    return plan.with_sources(
        lambda source: replace(source, place=kinds[source.id], row_bytes=_width(corpus.profile(source.table)))
    )


def _schema(source: PlanTable, corpus: Corpus) -> str:
    engine = None if source.parts else corpus.engine(source.table)
    found = None if engine is None else engine.default_schema
    return "" if found is None or found == source.database else source.database


def _in_schema(source: PlanTable, corpus: Corpus) -> PlanTable:
    parts = tuple(_in_schema(part, corpus) for part in source.parts)
    return replace(source, parts=parts, schema=_schema(source, corpus))


def _width(profile: TableProfile) -> float:
    return sum(map(_bytes_of, profile.columns))


def _bytes_of(column: ColumnProfile) -> float:
    if column.family in _WIDTHS:
        return _WIDTHS[column.family]
    return float(np.mean([len(text.encode()) for text in column.samples])) + 4.0 if column.samples else _TEXT
