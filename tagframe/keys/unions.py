"""Tables with the same columns: ``sales_2023`` and ``sales_2024`` should be stacked, not joined.

The same holds for ``2023/sales.csv`` and ``2024/sales.csv``, and for ``north/orders.csv`` and ``south/orders.csv``.

Iterative-JAR names unions as future work. Here they are found so that no key is inferred between such tables: their ids
overlap but mean different rows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tagframe.corpus.profile import TableProfile
from tagframe.keys import column_names as names
from tagframe.keys.containment import overlap
from tagframe.keys.key_columns import uniqueness

_DATE_PART = re.compile(
    r"\d+(-\d+)*|[qhwvy]\d+|fy\d+|"
    "(jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec|january|february|march|april|june|july|august|september|"
    "october|november|december|mon|tue|wed|thu|fri|sat|sun|monday|tuesday|wednesday|thursday|friday|saturday|sunday|"
    "januar|februar|mär|märz|maerz|mrz|mai|juni|juli|okt|oktober|dez|dezember|"
    "ene|enero|febrero|marzo|abr|abril|mayo|junio|julio|ago|agosto|septiembre|octubre|noviembre|dic|diciembre)",
    re.IGNORECASE,
)
"""A number, several, a quarter, a month (in English, German or Spanish) or the like."""

_ONE_NAME = ""
"""Marks the form of tables that have one name, in several databases of a folder."""
_SHEET = re.compile(r"(sheet|table|tabelle|blatt|hoja|tabla|feuille?|foglio|data)[ _]?\d*", re.IGNORECASE)
"""A name that programs give, of which every workbook has one."""
_COPIED = 0.9
"""Tables that share this much of the values of every column are copies."""
_MANY = 10
_NUMBERS = {"integer", "real"}
COLUMNS_A_MISTYPED = 20
"""Of so many columns one may have numbers in one table and texts in another: in one year, a player's seed is "WC"."""


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


def infer_unions(
    profiles: Sequence[TableProfile],
    *,
    by_date: bool = False,
    around: Sequence[TableProfile] | None = None,
    named: Sequence[TableProfile] = (),
    doubtful: Collection[str] = (),
) -> list[UnionGroup]:
    """Find tables of one database, or of one folder, that have the same columns and similar names.

    Same columns: at least two, with equal names (case and order are ignored), and hardly ever numbers in one table and
    text in the other (:data:`COLUMNS_A_MISTYPED`). Similar names: they differ in one word or number (``sales_2023``,
    ``east_store``), or in all numbers (``sales_2023_q4``). In a folder, tables of two databases may also have one name,
    unless one is a copy of the other.

    Args:
        profiles: the tables.
        by_date: only names that differ in a number or a part of a date: ``sales_2023`` and ``sales_2024`` are of one
            kind, ``budget_2024`` and ``actual_2024`` may not be. Tables of one name are, too.
        around: all tables. Then tables of one name are of one kind only if their databases have half of their tables in
            common: of unrelated databases, several have the same ``products``.
        named: tables whose names show what a name says (:func:`_has_sheet_name`), if not ``around``.
        doubtful: ids of tables that may not be needed: with ``by_date``, the others of many columns are of one kind
            whatever their names if they number their rows apart (:func:`_is_other_part`).

    Returns:
        Groups of at least two tables, sorted by their first table; no table is in two groups.
    """
    kinds: dict[str, set[tuple[str, str]]] | None = None
    if around is not None:
        kinds = defaultdict(set)
        for table in around:
            kinds[table.database].add((table.name.casefold(), table.shape))
    by_shape: dict[tuple[str, str], list[TableProfile]] = defaultdict(list)
    for profile in sorted(profiles, key=lambda profile: profile.id):
        by_shape[profile.place or profile.database, profile.shape].append(profile)
    unions = []
    for tables in by_shape.values():
        if len(tables) < 2 or len(tables[0].columns) < 2:
            continue
        by_form: dict[tuple[str, ...], list[tuple[TableProfile, str]]] = defaultdict(list)
        for table in tables:
            for form, part in _forms(table.name):
                if not by_date or _DATE_PART.fullmatch(part):
                    by_form[form].append((table, part))
            if table.place and not (by_date and _is_above(table)):
                for form, part in _forms_of_place(table, is_sheet=_has_sheet_name(table, around or named or profiles)):
                    by_form[_ONE_NAME, *form].append((table, part))
        taken: set[str] = set()
        for form, members in sorted(by_form.items(), key=lambda item: (-len(item[1]), item[0])):
            free = [(table, part) for table, part in members if table.id not in taken and _alike(members[0][0], table)]
            if form[0] == _ONE_NAME and by_date and free:
                first = free[0][0]
                if any(_is_copy(first, table) for table, _ in free[1:]):
                    continue
                free = [one for one in free if one[0] is first or _are_siblings(first, one[0], kinds)]
            if len(free) > 1:
                taken |= {table.id for table, _ in free}
                ids, parts = tuple(table.id for table, _ in free), tuple(part for _, part in free)
                unions.append(UnionGroup(ids, tuple(column.name for column in free[0][0].columns), parts))
        rest = [table for table in tables if by_date and table.id not in {*taken, *doubtful}]
        rest = [table for table in rest if table is rest[0] or _is_other_part(rest[0], table)]
        if len(rest) > 1:
            ids, parts = zip(*((table.id, table.name) for table in rest), strict=True)
            unions.append(UnionGroup(ids, tuple(column.name for column in rest[0].columns), parts))
    return sorted(unions, key=lambda group: group.tables)


def _forms(name: str) -> list[tuple[tuple[str, ...], str]]:
    """The name without each of its words in turn, with that word; and without all numbers, with these.

    A name of one word is left out only if it is a date: ``Jan`` and ``Feb`` are sheets of one kind.
    """
    parts = names.words(name)
    forms = [
        ((*parts[:position], "*", *parts[position + 1 :]), word)
        for position, word in enumerate(parts)
        if len(parts) > 1 or _DATE_PART.fullmatch(word)
    ]
    numbers = [word for word in parts if word.isdecimal()]
    if len(numbers) > 1:
        forms.append((tuple("*" if word.isdecimal() else word for word in parts), "-".join(numbers)))
    return forms


def _has_sheet_name(table: TableProfile, around: Sequence[TableProfile]) -> bool:
    """Whether a table's name says nothing of its rows, only its file's name does.

    Programs give such names. Others stand for different tables in a folder: most of those of that name have other
    columns (``Details`` in each workbook).
    """
    named = [one.shape for one in around if (one.place, one.name.casefold()) == (table.place, table.name.casefold())]
    return bool(_SHEET.fullmatch(table.name)) or 2 * named.count(table.shape) <= len(named)


def _forms_of_place(table: TableProfile, *, is_sheet: bool) -> list[tuple[tuple[str, ...], str]]:
    """The name without the database, with that; if only the file has a real name, that without its date."""
    if not is_sheet:
        return [((table.name.casefold(),), table.database)]
    return [(form, part) for form, part in _forms(table.database) if _DATE_PART.fullmatch(part)]


def _are_siblings(one: TableProfile, other: TableProfile, kinds: Mapping[str, set[tuple[str, str]]] | None) -> bool:
    """Whether the databases of two tables have half of the tables of the smaller one in common."""
    if kinds is None:
        return True
    mine, theirs = kinds[one.database], kinds[other.database]
    return 2 * len(mine & theirs) >= min(len(mine), len(theirs))


def _is_above(table: TableProfile) -> bool:
    """Whether a table stands in the opened folder itself, beside the folders of others."""
    return table.database == Path(table.place).name


def _is_copy(one: TableProfile, other: TableProfile) -> bool:
    """Whether two tables of one shape hold nearly the same values: ``backup/customers.csv`` is no further piece.

    Only columns of many values that are no integers tell: ids count from 1 in each folder.
    """
    if not one.rows or not other.rows or min(one.rows, other.rows) < _COPIED * max(one.rows, other.rows):
        return False
    theirs = {column.name.casefold(): column.sketch for column in other.columns}
    telling = [
        (column.sketch.hashes, sketch.hashes)
        for column in one.columns
        if column.family != "integer" and column.sketch and (sketch := theirs[column.name.casefold()]) is not None
    ]
    telling = [(mine, others) for mine, others in telling if len(mine) >= _MANY]
    return bool(telling) and all(
        len(np.intersect1d(mine, others)) >= _COPIED * max(len(mine), len(others)) for mine, others in telling
    )


def _is_other_part(one: TableProfile, other: TableProfile) -> bool:
    """Whether two tables of many columns number their rows in one column that has no value in both: ``auxcat`` has the
    objects A1, A2, …, and ``ftocat`` F1, F2, …."""
    if len(one.columns) < _MANY or not _alike(one, other):
        return False
    first = [table.columns[0] for table in (one, other)]
    shared = overlap(*(column.sketch for column in first))
    is_own = all(column.family == "text" and uniqueness(column) == 1.0 for column in first)
    return is_own and shared is not None and shared.seen >= _MANY and not shared.share


def _alike(one: TableProfile, other: TableProfile) -> bool:
    if one.stored is not None and other.stored is not None and one.stored.text == other.stored.text:
        return True
    families = {column.name.casefold(): column.family for column in other.columns}
    pairs = [{column.family, families[column.name.casefold()]} - {"empty"} for column in one.columns]
    unlike = [pair for pair in pairs if len(pair) > 1 and not pair <= _NUMBERS]
    return len(unlike) <= len(pairs) // COLUMNS_A_MISTYPED and all(pair <= {*_NUMBERS, "text"} for pair in unlike)
