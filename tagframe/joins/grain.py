"""Whose rows a plan is for: tables that are hardly needed set no grain, and repeat no rows of those that are."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tagframe.joins.plan import JoinPlan


def aside(plan: JoinPlan, doubtful: Collection[str]) -> dict[str, bool]:
    """By id of a doubtful table through which no needed ones are joined: whether rows of those are repeated for it.

    Args:
        plan: over all tables.
        doubtful: ids of those that are more likely not needed.
    """
    if not doubtful:
        return {}
    doubtful = {*doubtful}
    doubtful |= {one.id for one in plan.sources if one.parts and doubtful.issuperset(part.id for part in one.parts)}
    needed = [source.id for source in plan.sources if source.id not in doubtful and not source.bridge]
    if not needed or len(needed) == len(plan.sources):
        return {}
    steps = plan.restarted(needed[0]).steps
    by_table = {step.table: step for step in steps}
    inside = {needed[0]}
    for table in needed:
        while table not in inside:
            inside.add(table)
            table = by_table[table].base
    repeats: dict[str, bool] = {}
    for step in steps:
        if step.table not in inside:
            grows = step.cardinality in ("one-to-many", "many-to-many")
            repeats[step.table] = grows or repeats.get(step.base, False)
    return {table: found for table, found in repeats.items() if table in doubtful}
