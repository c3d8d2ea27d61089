"""Polymorphic references: a column refers to several tables, and the one beside it says to which.

``commentable_type`` beside ``commentable_id`` has the names of tables, or refers to a table that has such names.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace

from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.keys import column_names as names
from tagframe.keys.key_columns import Column
from tagframe.keys.key_pair import Evidence, KeyPair, column_id

CHANCE = 0.45
"""The chance of a key that only rows of one type have: it is none of the whole table."""
_KINDS = "type", "typeid", "doctype"
"""Ends of the names of columns that say to which table the one beside them refers."""
_OF_OBJECTS = "contenttype", "contenttypeid"
"""The names of this column beside ``object_id``, in Django's generic references."""
_WITHIN = re.compile(r"::|[\\./]")
"""Separates a name from the modules around it: ``Blog::Post``, ``blog.post``."""
_LEAST = 2
"""Beside a table that is called as the reference, such as accounts by ``account_id``, one name may be an accident."""
_End = tuple[str, tuple[str, ...]]
"""The id of a table, and columns of it."""
_ACCIDENT = 0.01
"""Below this chance values are not among the keys of a table by accident, as numbers from 1 on are."""
_OWN = 0.55
"""From this score on, a column's name is that of its own table's key."""


def type_beside(words: Sequence[str], entity: int, key_word: float, columns: Container[str]) -> str | None:
    """The column that says in which table the key of another one is: ``targettype`` beside ``target_id``.

    Args:
        words, entity, key_word: of the other one: its words, how many of them are its thing, and as of
            :class:`~tagframe.keys.column_names.Name`.
        columns: of the table, each as its words written together.
    """
    stem = [*words[:entity]]
    if not key_word and stem[-1:] == ["name"]:
        stem.pop()
    kinds = ["".join((*stem, kind)) for kind in _KINDS] if stem else []
    kinds += _OF_OBJECTS if stem == ["object"] else ()
    return next((kind for kind in kinds if kind in columns), None)


def with_types(pairs: Sequence[KeyPair], columns: Sequence[Column]) -> list[KeyPair]:
    """The pairs, those of polymorphic references only with the tables that their types name."""
    members: dict[str, list[Column]] = defaultdict(list)
    for column in columns:
        members[column.owner.id].append(column)
    tables = {id: own[0].owner for id, own in members.items()}
    things = {id: names.table_entity(table.name) for id, table in tables.items()}
    of_end: dict[_End, list[KeyPair]] = defaultdict(list)
    for pair in pairs:
        of_end[pair.left_table, pair.left_columns].append(pair)
        of_end[pair.right_table, pair.right_columns].append(pair)
    gone: set[KeyPair] = set()
    found: list[KeyPair] = []
    for id, table in tables.items():
        for side, kind in _references(table):
            end, names_of = (id, (side,)), (id, [kind])
            own = any(one.own >= _OWN for one in members[id] if one.profile.name == side)
            if own or any(_has_all(pair, end) for pair in of_end[end]):
                continue
            codes = [one for one in of_end[id, (kind.name,)] if one.left_table == id and kind.family == "integer"]
            if codes:
                other = max(codes, key=lambda pair: pair.score).right_table
                names_of = other, [*tables[other].columns]
            targets = _targets(side, *names_of, things)
            gone.update(of_end[end] if targets else ())
            made = (_pair(end, members[other], one, of_end[end]) for other, one in targets.items() if other != id)
            found += made
    return [*(pair for pair in pairs if pair not in gone), *found]


def _has_all(pair: KeyPair, end: _End) -> bool:
    """Whether all values of a column are keys of one table, and not by accident: no type says to which it refers."""
    seen = pair.evidence
    is_from = (pair.left_table, pair.left_columns) == end
    return is_from and seen.contained == seen.uniqueness == 1.0 and seen.chance is not None and seen.chance < _ACCIDENT


def _references(table: TableProfile) -> Iterator[tuple[str, ColumnProfile]]:
    """The columns that another one says the table of, each with that one."""
    read = {column.name: names.column_name(column.name) for column in table.columns}
    by_text = {"".join(read[column.name].words): column for column in table.columns}
    for column, name in read.items():
        kind = type_beside(name.words, len(name.entity), name.key_word, by_text)
        if kind is not None and by_text[kind].name != column:
            yield column, by_text[kind]


def _targets(
    side: str, at: str, columns: Sequence[ColumnProfile], things: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, str, str]]:
    """The tables that cells of one of the columns name, each with that column and cell; empty if that is not sure."""
    least = _LEAST if names.column_name(side).entity in things.values() else 1
    for column in columns:
        values = column.samples if column.family == "text" else ()
        named = {value: _named(value, things) for value in values}
        found = {other: (at, column.name, value) for value, other in named.items() if other}
        if len(found) >= least and (least == 1 or 2 * len(found) >= len(values)):
            return found
    return {}


def _named(value: str, things: Mapping[str, tuple[str, ...]]) -> str | None:
    """The one table that a value names, with or without the modules around it; or whose name ends in it."""
    whole, last = (names.table_entity(text) for text in (value, _WITHIN.split(value)[-1]))
    for fits in (
        [id for id, thing in things.items() if thing == whole],
        [id for id, thing in things.items() if thing == last],
        [id for id, thing in things.items() if thing[-len(last) :] == last and last],
    ):
        if fits:
            return fits[0] if len(fits) == 1 else None
    return None


def _pair(end: _End, columns: Sequence[Column], only: tuple[str, str, str], known: Sequence[KeyPair]) -> KeyPair:
    """The key for the rows of one type: to the column that values and names fit best, or to the table's own key."""
    id, reason = columns[0].owner.id, f"only where {column_id(only[0], only[1:2])} names it"
    inferred = [one for one in known if (one.left_table, one.left_columns) == end and one.right_table == id]
    if inferred:
        best = max(inferred, key=lambda pair: pair.score)
        evidence = replace(best.evidence, reason=f"{reason}, {best.evidence.reason}", only=only)
        return replace(best, score=CHANCE, evidence=evidence)
    may_be = [one for one in columns if one.unique in (None, 1.0)] or columns
    key = max(may_be, key=lambda one: (one.own >= _OWN and one.name.key_word > 0, one.own, -one.profile.position))
    return KeyPair(*end, id, (key.profile.name,), CHANCE, Evidence(name=1.0, reason=reason, only=only))
