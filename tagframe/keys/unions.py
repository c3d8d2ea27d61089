"""Tables with the same columns: ``sales_2023`` and ``sales_2024`` should be stacked, not joined.

Iterative-JAR names unions as future work. Here they are found so that no key is inferred between such tables: their ids
overlap but mean different rows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tagframe.corpus.profile import TableProfile
from tagframe.keys import column_names as names

_DATE_PART = re.compile(
    r"\d+(-\d+)*|[qhwvy]\d+|fy\d+|"
    "(jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec|january|february|march|april|june|july|august|september|"
    "october|november|december|mon|tue|wed|thu|fri|sat|sun|monday|tuesday|wednesday|thursday|friday|saturday|sunday)",
    re.IGNORECASE,
)
"""A number, several, a quarter, a month or the like."""


@dataclass(frozen=True)
class UnionGroup:
    """Tables with the same columns.

    Attributes:
        tables: their ids, sorted.
        columns: the column names of the first, in its order.
        differ: the part of each table's name that the others do not share, in the order of ``tables``.
    """

    tables: tuple[str, ...]
    columns: tuple[str, ...]
    differ: tuple[str, ...]

    def __repr__(self) -> str:
        return f"union of {', '.join(self.tables)} ({len(self.columns)} columns)"


def infer_unions(profiles: Sequence[TableProfile], *, by_date: bool = False) -> list[UnionGroup]:
    """Find tables of one database that have the same columns and similar names.

    Same columns: at least two, with equal names (case and order are ignored), and never numbers in one table and text
    in the other. Similar names: they differ in one word or number (``sales_2023``, ``east_store``), or in all numbers
    (``sales_2023_q4``).

    Args:
        profiles: the tables.
        by_date: only names that differ in a number or a part of a date: ``sales_2023`` and ``sales_2024`` are of one
            kind, ``budget_2024`` and ``actual_2024`` may not be.

    Returns:
        Groups of at least two tables, sorted by their first table; no table is in two groups.
    """
    by_shape: dict[tuple[str, str], list[TableProfile]] = defaultdict(list)
    for profile in sorted(profiles, key=lambda profile: profile.id):
        by_shape[profile.database, profile.shape].append(profile)
    found = []
    for tables in by_shape.values():
        if len(tables) < 2 or len(tables[0].columns) < 2:
            continue
        by_form: dict[tuple[str, ...], list[tuple[TableProfile, str]]] = defaultdict(list)
        for table in tables:
            for form, part in _forms(table.name):
                if by_date and not _DATE_PART.fullmatch(part):
                    continue
                by_form[form].append((table, part))
        taken: set[str] = set()
        for _, members in sorted(by_form.items(), key=lambda item: (-len(item[1]), item[0])):
            free = [(table, part) for table, part in members if table.id not in taken and _alike(members[0][0], table)]
            if len(free) > 1:
                taken |= {table.id for table, _ in free}
                ids, parts = tuple(table.id for table, _ in free), tuple(part for _, part in free)
                found.append(UnionGroup(ids, tuple(column.name for column in free[0][0].columns), parts))
    return sorted(found, key=lambda group: group.tables)


def _forms(name: str) -> list[tuple[tuple[str, ...], str]]:
    """The name without each of its words in turn, with that word; and without all numbers, with these."""
    parts = names.words(name)
    forms = [
        ((*parts[:position], "*", *parts[position + 1 :]), word)
        for position, word in enumerate(parts)
        if len(parts) > 1
    ]
    numbers = [word for word in parts if word.isdecimal()]
    if len(numbers) > 1:
        forms.append((tuple("*" if word.isdecimal() else word for word in parts), "-".join(numbers)))
    return forms


def _alike(one: TableProfile, other: TableProfile) -> bool:
    if one.stored is not None and other.stored is not None and one.stored.text == other.stored.text:
        return True
    numbers = ("integer", "real")
    families = {column.name.casefold(): column.family for column in other.columns}
    for column in one.columns:
        pair = {column.family, families[column.name.casefold()]} - {"empty"}
        if len(pair) > 1 and not pair <= set(numbers):
            return False
    return True
