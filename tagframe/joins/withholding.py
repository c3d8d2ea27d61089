"""What a plan keeps out of its result, since it would tell cells of hidden columns that the plan joins on.

The column that a hidden one is made equal to has its cells. If rows of that column's table are known by it, as days of
a calendar are, any other column that they are known by tells its cells, too. What is equal to such a column tells them
as well, and so on. A column that its user hid tells nothing by itself, as nobody reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from tagframe.corpus.references import Column
from tagframe.joins.steps import JoinStep, PlanTable


def withholding(sources: Sequence[PlanTable], steps: Sequence[JoinStep]) -> tuple[PlanTable, ...]:
    """The tables of a plan with the columns that are in no result of it."""
    secret = {(source.id, column) for source in sources for column in source.hidden_by_user}
    if not secret:
        return tuple(replace(source, hidden=()) if source.hidden else source for source in sources)
    telling = told_by(secret, sources, steps)
    kept = {source.id: tuple(name for name in source.columns if (source.id, name) in telling) for source in sources}
    return tuple(replace(source, hidden=kept[source.id]) for source in sources)


def told_by(secret: Collection[Column], sources: Sequence[PlanTable], steps: Sequence[JoinStep]) -> set[Column]:
    """The columns whose cells tell cells of secret ones in the rows of a plan, and these.

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
