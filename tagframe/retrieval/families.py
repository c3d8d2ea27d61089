"""Families: tables that are one table in pieces: ``events_20210101``, …, or ``2023/sales.csv`` and ``2024/sales.csv``.

A question is about all events, not about those of one day. So the pieces are one candidate, and a merge stacks them.
Tables under another prefix or suffix (``rooms_hist``) are no pieces, but near-copies: a query reads one family of them.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

import numpy as np
import numpy.typing as npt

from tagframe.corpus.documents import identifier_words
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.stored_profiles import ComputedStore
from tagframe.keys import infer_unions
from tagframe.keys.database_keys import code_of_keys
from tagframe.retrieval.problem import Floats
from tagframe.retrieval.words import terms
from tagframe.retrieval.years import year_of, years_in, years_meant

LEAST = 3
"""The fewest tables of one shape that are a family: of two, a question may mean one. Two tables of one name in a folder
are a family, too: the names of their databases say which is meant (:func:`meant`)."""

COPIED = 0.6
"""Two tables are near-copies if they have at least this share of their column names in common (Jaccard)."""

_NUMBER = re.compile(r"\d+")
_YEAR_DIGITS = 4
"""The fewest digits of a number that names a piece."""


@dataclass(frozen=True)
class Family:
    """A table, or the pieces of one.

    Attributes:
        table: the first piece.
        name: the common part of the pieces' names, with ``*`` for the rest; a single table's own name.
        parts: the ids of all pieces, sorted; empty for a single table.
    """

    table: TableProfile
    name: str
    parts: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the pieces, or of the single table."""
        return self.parts or (self.table.id,)

    @cached_property
    def years(self) -> frozenset[int]:
        """The years in the ids of the table or its pieces."""
        return frozenset[int]().union(*map(years_in, self.ids))

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The ids in lower case, with ``*`` for numbers."""
        return frozenset(_NUMBER.sub("*", id.casefold()) for id in self.ids)


def families(tables: Sequence[TableProfile], facts: ComputedStore, *, apart: str | None = None) -> list[Family]:
    """The tables, with the pieces of a family as one; sorted by the id of the first piece.

    Args:
        tables: the profiles, sorted by id.
        facts: the store of families.
        apart: id of a table that belongs to no family, whatever its name.
    """
    alike = Counter((_around(table), table.shape) for table in tables)
    named = Counter((table.place, table.name.casefold(), table.shape) for table in tables if table.place)
    by_database: dict[str, list[TableProfile]] = defaultdict(list)
    for table in tables:
        if table.id != apart and (
            (alike[_around(table), table.shape] >= LEAST and _NUMBER.search(table.name))
            or named[table.place, table.name.casefold(), table.shape] > 1
        ):
            by_database[_around(table)].append(table)
    parts = [ids for database, members in by_database.items() for ids in _groups(database, members, tables, facts)]
    return _of_pieces(tables, parts)


def _of_pieces(tables: Sequence[TableProfile], parts: Iterable[Sequence[str]]) -> list[Family]:
    """The tables, with the tables of these ids as pieces of one."""
    first = {ids[0]: tuple(ids) for ids in parts}
    others = {id for ids in first.values() for id in ids[1:]}
    names = {table.id: table.name for table in tables}
    return [
        Family(table, shared_name([names[id] for id in ids]) if ids else table.name, ids)
        for table in tables
        if table.id not in others
        for ids in [first.get(table.id, ())]
    ]


def _around(table: TableProfile) -> str:
    """Where the pieces of a table are looked for."""
    return table.place or table.database


def twins_of(table: TableProfile, tables: Sequence[TableProfile], question: str) -> tuple[str, ...]:
    """The ids of a table and its twins, such as ``visits_2023`` and ``visits_2024``; none if the question names one.

    Args:
        table: the table that was found.
        tables: all tables of the corpus.
        question: in plain language.

    >>> from tagframe.corpus.profile import ColumnProfile
    >>> columns = tuple(ColumnProfile(name, 0, "integer") for name in ("id", "fee"))
    >>> visits = [TableProfile(f"d.visits_{year}", "d", f"visits_{year}", columns) for year in (2023, 2024)]
    >>> twins_of(visits[1], visits, "What were the fees?"), twins_of(visits[1], visits, "What were the fees of 2024?")
    (('d.visits_2023', 'd.visits_2024'), ())
    """
    alike = [one for one in tables if one.shape == table.shape and _around(one) == _around(table)]
    for group in infer_unions(alike, by_date=True, around=tables) if len(alike) > 1 else ():
        parts = {piece.casefold() for part in group.differ for piece in part.split("-")}
        if table.id in group.tables:
            ranged = tuple(one.id for one in _of_the_years([one for one in alike if one.id in group.tables], question))
            is_named = ranged or parts & {*re.findall(r"\w+", question.casefold())}
            return group.tables if not is_named else ranged if len(ranged) > 1 else ()
    return ()


def named_pieces(pieces: Sequence[TableProfile], question: str) -> list[TableProfile]:
    """The pieces that a question names by words that not all of them have; all of them if it names none.

    A piece is left out if another has all words by which it is named, and more.

    The words of a piece are those of its own name, and of its folder, file or schema. Numbers are years and dates only:
    the 10 of "the top 10" is no October.

    >>> sales = [TableProfile(f"{year}.sales", f"{year}", "sales", ()) for year in (2023, 2024)]
    >>> [piece.id for piece in named_pieces(sales, "Sold in 2024?")], len(named_pieces(sales, "What was sold?"))
    (['2024.sales'], 2)
    >>> len(named_pieces(sales, "Sold since 2023?")), len(named_pieces(sales, "Sold before 2024?"))
    (2, 1)
    """
    ranged = _of_the_years(pieces, question)
    if ranged:
        return ranged
    stems = {*terms(question)}
    words = [{*terms(f"{piece.database} {piece.name}")} for piece in pieces]
    shared = frozenset.intersection(*map(frozenset, words)) if words else frozenset()
    named = [
        {word for word in own - shared if not word.isdecimal() or len(word) >= _YEAR_DIGITS} & stems
        | {name for name in (piece.database,) if _is_written(name, question)}
        for own, piece in zip(words, pieces, strict=True)
    ]
    return [piece for piece, own in zip(pieces, named, strict=True) if not any(own < other for other in named)]


def _of_the_years(pieces: Sequence[TableProfile], question: str) -> list[TableProfile]:
    """The pieces of the years that a question means; none if it names none of theirs."""
    years = {piece.id: year_of(piece.name) or year_of(piece.database) for piece in pieces}
    chosen = years_meant(question, filter(None, years.values()))
    return [piece for piece in pieces if years[piece.id] in chosen]


def of_other_years(families: Sequence[Family], question: str) -> npt.NDArray[np.bool_]:
    """Which tables have years in their names, but none that a question means: shape (n,).

    A table is of another year only if one with the same name, but for its numbers, is of a year of the question.
    """
    chosen = years_meant(question, frozenset[int]().union(*(family.years for family in families)))
    there = {kind for family in families if family.years & chosen for kind in family.kinds}
    return np.array([not family.years & chosen and family.kinds <= there for family in families], np.bool_)


def are_copies(one: TableProfile, other: TableProfile) -> bool:
    """Whether two tables have most of their column names in common (:data:`COPIED`)."""
    mine, theirs = ({column.name.casefold() for column in table.columns} for table in (one, other))
    return len(mine & theirs) >= COPIED * len(mine | theirs)


def mixed_copies(tables: Sequence[TableProfile], similarity: Floats) -> npt.NDArray[np.bool_]:
    """Which two tables are of different families of near-copies: ``FAC_ROOM`` and ``FCLT_FLOOR``, or ``FCLT_ROOM``.

    The tables of a family differ in their columns, and two or more of them have near-copies whose names differ by the
    same prefix or suffix. Names that differ by numbers are pieces of one table.

    Args:
        tables: n profiles.
        similarity: shape (n, n), zero diagonal: the Jaccard similarity of their column names.

    Returns:
        Shape (n, n), symmetric.
    """
    words = [identifier_words(table.name) for table in tables]
    copies: dict[tuple[str | bool, ...], list[tuple[int, int]]] = defaultdict(list)
    for one, other in np.argwhere(similarity >= COPIED).tolist():
        affixes = _affixes(words[one], words[other])
        if affixes and tables[one].database == tables[other].database:
            copies[tables[one].database, *affixes].append((one, other))
    mixed = np.zeros((len(tables), len(tables)), dtype=np.bool_)
    for pairs in copies.values():
        ones, others = zip(*pairs, strict=True)
        if (similarity[np.ix_(ones, ones)] < COPIED).sum() > len(ones):  # more than the diagonal
            mixed[np.ix_(ones, others)] = True
    return mixed


def _affixes(one: Sequence[str], other: Sequence[str]) -> tuple[bool, str, str] | None:
    """The prefixes (False) or suffixes (True) in which two names differ, as words; None if they differ otherwise.

    >>> _affixes(["fac", "room"], ["fclt", "room"]), _affixes(["room"], ["room", "hist"])
    ((False, 'fac', 'fclt'), (True, '', 'hist'))
    >>> _affixes(["room"], ["floor"]), _affixes(["fees", "2023"], ["fees", "2024"])
    (None, None)
    """
    start = _count_alike(one, other)
    end = _count_alike(one[start:][::-1], other[start:][::-1])
    mine, theirs = (" ".join(name[start : len(name) - end]) for name in (one, other))
    is_other = mine == theirs or (start > 0) == (end > 0) or _NUMBER.search(mine + theirs)
    return None if is_other else (start > 0, mine, theirs)


def _count_alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words two names have in common from their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _is_written(name: str, question: str) -> bool:
    """Whether a question has the whole name of a folder or file: ``2024-Q2``. A short one must be in capitals: IT, HR.

    >>> _is_written("2024-Q2", "orders of 2024-q2"), _is_written("it", "is it?"), _is_written("it", "staff of IT")
    (True, False, True)
    """
    text, sought = (question, name.upper()) if len(name) < _YEAR_DIGITS else (question.casefold(), name.casefold())
    return bool(name) and re.search(rf"(?<!\w){re.escape(sought)}(?!\w)", text) is not None


def families_at(tables: Sequence[TableProfile], pieces: npt.NDArray[np.int64]) -> list[Family]:
    """The result of :func:`families` for the same tables, made again from positions.

    Args:
        tables: the profiles, sorted by id.
        pieces: shape (pieces, 2): the number of a family, and the position of a piece; no rows for single tables.
    """
    parts: dict[int, list[str]] = defaultdict(list)
    for number, position in pieces.tolist():
        parts[number].append(tables[position].id)
    return _of_pieces(tables, parts.values())


def pieces_of(families: Sequence[Family], tables: Sequence[TableProfile]) -> npt.NDArray[np.int64]:
    """The positions of pieces among the tables, as for :func:`families_at`."""
    position = {table.id: number for number, table in enumerate(tables)}
    pieces = [(number, position[id]) for number, one in enumerate(families) for id in one.parts]
    return np.array(pieces, dtype=np.int64).reshape(-1, 2)


def _groups(
    database: str, tables: Sequence[TableProfile], around: Sequence[TableProfile], facts: ComputedStore
) -> list[tuple[str, ...]]:
    place = tables[0].place
    # Whether tables of one name are pieces depends on the other tables of their databases.
    state = facts.state(
        tables, code_of_keys(), *(f"{table.id} {table.shape}" for table in around if place and table.place == place)
    )
    stored = facts.get("families", database, state, lambda text: [*map(tuple, json.loads(text))])
    if stored is not None:
        return stored
    names = {table.id: table.name.casefold() for table in tables}
    groups = [
        group.tables
        for group in infer_unions(tables, by_date=True, around=around)
        if len(group.tables) >= LEAST or len({names[id] for id in group.tables}) == 1
    ]
    facts.put("families", database, state, json.dumps(groups))
    return groups


def shared_name(names: Sequence[str]) -> str:
    """The name with ``*`` for the numbers that differ.

    >>> shared_name(["events_20210101", "events_20210102"]), shared_name(["ga4_1990_q1", "ga4_1991_q1"])
    ('events_*', 'ga4_*_q1')
    """
    of_folder = {name.rpartition(".")[2] for name in names}
    if len(of_folder) == 1 and "." in names[0]:
        return f"*.{of_folder.pop()}"
    pieces, numbers = _NUMBER.split(names[0]), [_NUMBER.findall(name) for name in names]
    if len({len(digits) for digits in numbers}) > 1:
        return _NUMBER.sub("*", names[0])
    parts = [column[0] if len(set(column)) == 1 else "*" for column in zip(*numbers, strict=True)]
    return "".join(piece + number for piece, number in zip(pieces, [*parts, ""], strict=True))
