"""A merge under test: the numbers of the source rows that it joins, compared with those that a statement joins."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pandas as pd

import tagframe
from tagframe.errors import FanOut
from tagframe.joins import JoinPlan
from tagframe.joins.steps import PlanTable

ROW = "row number"
"""A column that is added to every table of a merge under test."""


@dataclass(frozen=True)
class Merged:
    """An inner merge.

    Attributes:
        rows: the row numbers of each table, by its id in the plan.
        lost: how many rows of the start table are lost, as the merge's report says.
    """

    rows: pd.DataFrame
    lost: int


def merged_rows(plan: JoinPlan, read: Callable[[PlanTable, Sequence[str]], pd.DataFrame]) -> Merged | None:
    """Merge by the plan; None if the merge is refused because it would repeat rows of the start table.

    Args:
        plan: of single tables, which may have roles.
        read: gives the columns of a table and the column ``ROW``.
    """
    numbered = replace(
        plan,
        sources=tuple(replace(source, columns=(*source.columns, ROW)) for source in plan.sources),
        alternatives=(),
    )
    table_of = {source.id: source.table for source in plan.sources}
    columns: dict[str, set[str]] = {table: set() for table in table_of.values()}
    for step in plan.steps:
        columns[table_of[step.base]].update(step.base_columns)
        columns[table_of[step.table]].update(step.columns)
    frames = {source.table: read(source, sorted(columns[source.table])) for source in plan.sources}
    wanted = [f"{source.id}.{ROW}" for source in plan.sources]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame = tagframe.merge(frames, plan=numbered, on_loss="allow", columns=wanted)
    except FanOut:
        return None
    names = {numbered.column_names()[source.id, ROW]: source.id for source in plan.sources}
    return Merged(frame.rename(columns=names), frame.tag.merge_report.lost)


def holds_rows(rows: pd.DataFrame, gold: pd.DataFrame, tables: Sequence[str]) -> bool:
    """Whether the merged rows contain every gold row, as often as the gold SQL gives it."""
    if gold.empty:
        return True
    have = rows[list(tables)].value_counts()
    need = gold.set_axis(list(tables), axis="columns").value_counts()
    return bool((have.reindex(need.index, fill_value=0) >= need).all())
