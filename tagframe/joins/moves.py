"""Which engines have the tables of a plan, and what comes here when it runs, as far as profiles can tell."""

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
"""Bytes of a text of which no sample is known."""


@dataclass(frozen=True)
class PlannedMove:
    """Rows of one table of a plan that travel.

    Attributes:
        table: its id.
        place: the kind of the engine that holds it.
        rows, size: how many come at most, and about how many bytes they are; None where the table's rows are not known.
        asked_by: the tables whose keys may choose them.
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
    """What moves where a plan's tables are of several engines; nothing of those in memory, or where one has all.

    Of a table that a step brings in no more rows are asked for than its base has; what keys leave out of the start
    table is not known before they are sent.
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
        found.append(PlannedMove(table, source.place, rows[table], _size(source, rows[table]), tuple(asked)))
    return found


def _size(source: PlanTable, rows: int | None) -> int | None:
    return None if rows is None else round(rows * source.row_bytes)


def placed(plan: JoinPlan, corpus: Corpus) -> JoinPlan:
    """The plan, told where its tables are and how wide their rows; as it is where all are of one engine, or stacked."""
    kinds = {}
    engines: list[Engine] = []
    for source in plan.sources:
        engine = None if source.parts else corpus.engine(source.id)
        if engine is None:
            return plan
        kinds[source.id] = engine.kind if engine.is_asked else ""
        if not any(engine is other or engine == other for other in engines):
            engines.append(engine)
    if len(engines) < 2:
        return plan

    return plan.with_sources(
        lambda source: replace(source, place=kinds[source.id], row_bytes=_width(corpus.profile(source.id)))
    )


def _width(profile: TableProfile) -> float:
    return sum(map(_bytes_of, profile.columns))


def _bytes_of(column: ColumnProfile) -> float:
    if column.family in _WIDTHS:
        return _WIDTHS[column.family]
    return float(np.mean([len(text.encode()) for text in column.samples])) + 4.0 if column.samples else _TEXT
