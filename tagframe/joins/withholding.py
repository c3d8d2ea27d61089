"""Columns that a plan leaves out of its result, because they would reveal cells of hidden columns that it joins on.

A column that is joined to a hidden one by equality has its cells. If that column identifies the rows of its table, as
days identify the rows of a calendar, every other identifying column of the table reveals the cells, too. So does each
column that is equal to one of these, and so on. A column that the user hid reveals nothing by itself, because nobody
reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from tagframe.corpus.references import Column
from tagframe.joins.steps import JoinStep, PlanTable


def withholding(sources: Sequence[PlanTable], steps: Sequence[JoinStep]) -> tuple[PlanTable, ...]:
    """The tables of a plan, with the columns that its result leaves out."""
    secret = {(source.id, column) for source in sources for column in source.hidden_by_user}
    if not secret:
        return tuple(replace(source, hidden=()) if source.hidden else source for source in sources)
    telling = told_by(secret, sources, steps)
    kept = {source.id: tuple(name for name in source.columns if (source.id, name) in telling) for source in sources}
    return tuple(replace(source, hidden=kept[source.id]) for source in sources)


def told_by(secret: Collection[Column], sources: Sequence[PlanTable], steps: Sequence[JoinStep]) -> set[Column]:
    """The secret columns, and the columns whose cells reveal theirs in the rows of a plan.

    Args:
        secret: table id and column.
        sources, steps: of the plan.
    """
    by_id = {source.id: source for source in sources}
    pairs = [((step.base, mine), (step.table, theirs)) for step in steps for mine, _, theirs in step.comparisons]
    telling, grows = {*secret}, True
    while grows:
        before = len(telling)
        for one, other in [*pairs, *((other, one) for one, other in pairs)]:
            if one in telling and other not in telling:
                telling.add(other)
                table, column = other
                if column in by_id[table].known_by:
                    telling.update((table, name) for name in by_id[table].known_by)
        grows = len(telling) > before
    return telling
