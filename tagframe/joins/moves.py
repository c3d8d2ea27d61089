"""What comes here from where when a plan over tables of several engines is carried out, as far as profiles can tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tagframe.errors import counted
from tagframe.joins.steps import JoinStep, PlanTable


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


def size_text(size: int) -> str:
    """A size for a reader.

    >>> size_text(900), size_text(45_000), size_text(1_234_567)
    ('900 bytes', '45.0 kB', '1.2 MB')
    """
    if size < 1_000:
        return f"{size} bytes"
    return f"{size / 1e3:,.1f} kB" if size < 1_000_000 else f"{size / 1e6:,.1f} MB"


def planned_moves(sources: Sequence[PlanTable], steps: Sequence[JoinStep]) -> list[PlannedMove]:
    """What moves where a plan's tables are in several places; nothing of those in memory, or where they are in one.

    Of a table that a step brings in no more rows are asked for than its base has; what keys leave out of the start
    table is not known before they are sent.
    """
    start, by_id = sources[0].id, {source.id: source for source in sources}
    rows: dict[str, int | None] = {start: sources[0].rows}
    for step in steps:
        known, base = by_id[step.table].rows, rows[step.base]
        is_one = step.cardinality in ("many-to-one", "one-to-one")
        rows[step.table] = known if known is None or base is None or not is_one else min(known, base)
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
