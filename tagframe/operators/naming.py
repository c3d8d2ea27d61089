"""What the columns of a frame are called in a prompt: by what they mean, each by a name of its own."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from tagframe import results
from tagframe.keys.key_columns import is_unnamed

if TYPE_CHECKING:
    from tagframe.joins import JoinPlan

_KEY_WORD = re.compile(r"(?:[_\s.-]+|(?<=[a-z]))(?:id|key|code|no|nr|num|number|fk|ref)$|^(?:id|key|code)$", re.I)


def label_text(label: Hashable) -> str:
    """A column's label as an instruction names it; of several levels, joined by dots.

    >>> label_text(2020), label_text(("price", "usd"))
    ('2020', 'price.usd')
    """
    return ".".join(str(part) for part in label if part != "") if isinstance(label, tuple) else str(label)


def shown_names(frame: pd.DataFrame, positions: Sequence[int]) -> list[str]:
    """What the columns at ``positions`` are called in a prompt, each by another name.

    A merge calls a column that two tables have ``table.column``. Where it was given a frame without a name it has to
    make one up, and ``frame_2.name`` tells a model nothing: such a column is called by the key that leads to its table
    (``team.name`` where ``team_id = frame_2.id``), or by its own name alone where it is the only one of it.
    Columns whose labels read alike (``"n"`` twice, ``1`` and ``"1"``) are told apart: ``n``, ``n_2``.
    """
    names = [label_text(label) for label in frame.columns]
    report = results.recall(frame, "merge_report")
    plan: JoinPlan | None = getattr(report, "plan", None)
    if plan is not None:
        meant = _meanings(plan)
        better = [meant.get(name, name) for name in names]
        names = [new if better.count(new) == 1 else old for old, new in zip(names, better, strict=True)]
    return _told_apart([names[place] for place in positions])


def _meanings(plan: JoinPlan) -> dict[str, str]:
    """Label in the merged frame → what it means, for the columns of tables whose names were made up."""
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


def _told_apart(names: Sequence[str]) -> list[str]:
    if len(set(names)) == len(names):
        return list(names)
    apart: list[str] = []
    taken = set(names)
    for place, name in enumerate(names):
        other, number = name, 1
        while name in names[:place] and other in taken:
            number += 1
            other = f"{name}_{number}"
        taken.add(other)
        apart.append(other)
    return apart
