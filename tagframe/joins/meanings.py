"""What the columns of a merged frame mean that it had to make names up for."""

from __future__ import annotations

import re

from tagframe.joins.plan import JoinPlan
from tagframe.keys.key_columns import is_unnamed

_KEY_WORD = re.compile(r"(?:[_\s.-]+|(?<=[a-z]))(?:id|key|code|no|nr|num|number|fk|ref)$|^(?:id|key|code)$", re.I)
"""The end of a key column's name that says that it is one: what stands before it is what it refers to."""


def column_meanings(plan: JoinPlan) -> dict[str, str]:
    """Name in the merged frame → what it means, for columns named after a table whose own name was made up.

    ``frame_2.name`` tells a reader nothing. It is called by the key that leads to its table (``team.name`` where
    ``team_id = frame_2.id``), or by its own name alone where no key says more.
    """
    sources = {source.id: source for source in plan.sources}
    meanings = {}
    for (table, column), name in plan.column_names().items():
        source = sources[table]
        if is_unnamed(source.name) and name in (f"{source.name}.{column}", f"{source.id}.{column}"):
            role = _role(plan, table)
            meanings[name] = f"{role}.{column}" if role else column
    return meanings


def _role(plan: JoinPlan, table: str) -> str:
    """What the rows of a table are to those that refer to them: "team" for ``team_id = table.id``; "" if unknown."""
    for step in plan.steps:
        if step.table == table and step.cardinality in ("many-to-one", "one-to-one"):
            return _KEY_WORD.sub("", str(step.base_columns[0]))
        if step.base == table and step.cardinality == "one-to-many":
            return _KEY_WORD.sub("", str(step.columns[0]))
    return ""
