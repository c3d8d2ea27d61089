"""Key pairs as text: ``"orders.buyer = customers.id"``, and columns that tables share by name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tagframe.corpus.profile import TableProfile
from tagframe.errors import ColumnNotFound, InvalidArgument, TableNotFound, did_you_mean
from tagframe.keys.key_pair import Evidence, KeyPair

On = str | KeyPair | Sequence[str | KeyPair]
"""Key pairs that a user gives: see :func:`keys_on`."""

_GIVEN = Evidence(origin="given", name=1.0, reason="given by hand")
_FORM = '"table.column = other.column"'

Column = tuple[str, str]
"""Table id and column name."""


@dataclass(frozen=True)
class NamedTable:
    """What a key pair's text may call a table.

    Attributes:
        id: ``database.table``.
        name: as in the source.
        columns: all of them.
        parts: ids and names of the tables that it is the stack of; they mean it as well.
    """

    id: str
    name: str
    columns: tuple[str, ...]
    parts: tuple[str, ...] = ()

    @classmethod
    def of(cls, profile: TableProfile) -> NamedTable:
        """The names of a profiled table."""
        return cls(profile.id, profile.name, tuple(column.name for column in profile.columns))


def keys_on(on: On, tables: Sequence[NamedTable]) -> list[KeyPair]:
    """The key pairs that a user gives.

    Args:
        on: ``"a.x = b.y"`` (several columns with ``and`` between; a table may be left out where only one has the
            column), a :class:`~tagframe.keys.KeyPair`, the name of a column that tables share, or a list of these.
            Names in a list are one key together, and so are pairs of the same two tables.
        tables: which the text may name; tables that share a column are joined to the first that has it.

    Raises:
        InvalidArgument: what is not of that form, or a side that may be in several tables.
        TableNotFound, ColumnNotFound: there is no such table or column.
    """
    items = [on] if isinstance(on, str | KeyPair) else list(on)
    if not items or not all(isinstance(item, str | KeyPair) for item in items):
        raise InvalidArgument(f"on= is {_FORM}, the name of a shared column, or a list of these; got {on!r}")
    found: list[KeyPair] = []
    shared: list[str] = []
    for item in items:
        if isinstance(item, KeyPair):
            found.append(replace(item, score=1.0, evidence=_GIVEN))
        elif "=" in item and not any(item in table.columns for table in tables):
            found.append(key_of(item, tables))
        else:
            shared.append(item)
    if shared:
        found += _by_name(shared, tables)
    return _one_a_pair(found)


def key_of(text: str, tables: Sequence[NamedTable]) -> KeyPair:
    """The key pair ``"a.x = b.y"``; several columns with ``and`` between.

    Raises:
        InvalidArgument: not of that form, both sides in one table, or a side that may be in several tables.
        TableNotFound, ColumnNotFound: there is no such table or column.
    """
    readings: list[dict[tuple[str, str], tuple[str, str]]] = []
    for part in re.split(r"\s+and\s+", text, flags=re.IGNORECASE):
        halves = [half.strip() for half in part.split("=")]
        if len(halves) != 2 or not all(halves):
            raise InvalidArgument(f"a join is written {_FORM}; got {text!r}")
        lefts, rights = (_columns_called(half, tables) for half in halves)
        readings.append({(left, right): (mine, theirs) for left, mine in lefts for right, theirs in rights
                         if left != right})  # fmt: skip
    possible = set.intersection(*map(set, readings))
    order = {table.id: place for place, table in enumerate(tables)}
    # Where both tables have both columns, the sides are in the order of the tables.
    possible -= {(left, right) for left, right in possible if order[left] > order[right] and (right, left) in possible}
    if not possible:
        raise InvalidArgument(f"a join is between two tables; got {text!r}")
    if len(possible) > 1:
        shown = " or ".join(f"{left} and {right}" for left, right in sorted(possible))
        raise InvalidArgument(f"{text!r} may mean {shown}: write the tables too, as in {_FORM}")
    ((left, right),) = possible
    columns = [reading[left, right] for reading in readings]
    mine, theirs = tuple(one for one, _ in columns), tuple(other for _, other in columns)
    return KeyPair(left, mine, right, theirs, 1.0, _GIVEN)


def text_of(key: KeyPair, tables: Sequence[NamedTable]) -> str:
    """The key pair as :func:`keys_on` reads it; without databases where the tables' names tell them apart."""
    names = Counter(table.name.casefold() for table in tables)
    shown = {table.id: table.name if names[table.name.casefold()] == 1 else table.id for table in tables}
    left, right = shown[key.left_table], shown[key.right_table]
    columns = zip(key.left_columns, key.right_columns, strict=True)
    return " and ".join(f"{left}.{mine} = {right}.{theirs}" for mine, theirs in columns)


def find_table(name: str, tables: Sequence[NamedTable]) -> NamedTable:
    """The table of that id, or of that name where one only has it; a stack also by the id or name of a part.

    Raises:
        TableNotFound: there is none, or more than one.
    """
    for table in tables:
        if name == table.id or name in table.parts:
            return table
    named = [table for table in tables if table.name.casefold() == name.casefold()]
    if len(named) == 1:
        return named[0]
    ids = [table.id for table in tables]
    if named:
        raise TableNotFound(f"two tables are called {name!r}: say {' or '.join(repr(table.id) for table in named)}")
    raise TableNotFound(f"no table {name!r} among {did_you_mean(name, ids)}")


def _columns_called(text: str, tables: Sequence[NamedTable]) -> list[Column]:
    """What ``table.column`` or a bare ``column`` may mean; table and column may hold dots themselves."""
    for cut in [place for place, letter in enumerate(text) if letter == "."][::-1]:
        try:
            table = find_table(text[:cut], tables)
        except TableNotFound:
            continue
        return [(table.id, _spelt(text[cut + 1 :], table))]
    bare = [(table.id, text) for table in tables if text in table.columns]
    if bare:
        return bare
    if "." in text:
        named = dict.fromkeys(name for table in tables for name in (table.name, table.id))
        raise TableNotFound(f"no table of {text!r} among {did_you_mean(text.rpartition('.')[0], named)}")
    known = dict.fromkeys(column for table in tables for column in table.columns)
    raise ColumnNotFound(f"no table has a column {text!r}: {did_you_mean(text, known)}")


def _spelt(column: str, table: NamedTable) -> str:
    """The column as the table spells it."""
    if column in table.columns:
        return column
    folded = {name.casefold(): name for name in table.columns}
    if column.casefold() in folded:
        return folded[column.casefold()]
    raise ColumnNotFound(f"no column {column!r} in {table.id}: {did_you_mean(column, table.columns)}")


def _by_name(columns: Sequence[str], tables: Sequence[NamedTable]) -> list[KeyPair]:
    """The key of these columns between the first table that has them all and each other one that does."""
    having = [table for table in tables if set(columns) <= set(table.columns)]
    if len(having) > 1:
        names = tuple(columns)
        return [KeyPair(having[0].id, names, other.id, names, 1.0, _GIVEN) for other in having[1:]]
    for column in columns:
        owners = [table.id for table in tables if column in table.columns]
        if len(owners) < 2:
            where = f"only {owners[0]} has a column {column!r}" if owners else f"no table has a column {column!r}"
            known = dict.fromkeys(name for table in tables if table.id not in owners for name in table.columns)
            raise ColumnNotFound(
                f"{where}. Columns of unlike names are joined by {_FORM}; the others have {did_you_mean(column, known)}"
            )
    raise ColumnNotFound(
        f"no two tables have all of {', '.join(map(repr, columns))}. Names in on= are one key together; for several "
        f"keys write each as {_FORM}"
    )


def _one_a_pair(keys: Sequence[KeyPair]) -> list[KeyPair]:
    """Pairs of the same two tables together, as one key of several columns."""
    found: dict[frozenset[str], KeyPair] = {}
    for key in keys:
        known = found.get(key.tables)
        if known is None:
            found[key.tables] = key
            continue
        other = key if key.left_table == known.left_table else key.reversed()
        pairs = dict.fromkeys(
            [
                *zip(known.left_columns, known.right_columns, strict=True),
                *zip(other.left_columns, other.right_columns, strict=True),
            ]
        )
        left, right = tuple(one for one, _ in pairs), tuple(theirs for _, theirs in pairs)
        found[key.tables] = replace(known, left_columns=left, right_columns=right)
    return list(found.values())
