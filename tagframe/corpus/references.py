"""Text references to tables and columns: ``orders.buyer``, ``shop.orders.buyer``, ``orders.buyer = customers.id``."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tagframe.corpus.profile import TableProfile
from tagframe.errors import ColumnNotFound, InvalidArgument, TableNotFound, did_you_mean

FORM = '"table.column = other.column"'
"""How a key is written, for messages."""

Column = tuple[str, str]
"""Table id and column name."""

AS_ROLE = " as "
"""Between the id of a table and its role."""


def in_role(table: str, role: str) -> str:
    """The id of a table that is joined in a role.

    >>> in_role("shop.users", "buyer")
    'shop.users as buyer'
    """
    return f"{table}{AS_ROLE}{role}"


def without_role(id: str, tables: Container[str]) -> str:
    """The id of the table itself, for one that is joined in a role; ``tables`` are the ids of the tables.

    >>> without_role("shop.users as buyer", {"shop.users"}), without_role("shop.sold as new", {"shop.sold as new"})
    ('shop.users', 'shop.sold as new')
    """
    table = id.rpartition(AS_ROLE)[0]
    return table if id not in tables and table in tables else id


@dataclass(frozen=True)
class JoinColumns:
    """A pair of columns (or of several columns each), the referencing side first if that is known."""

    left_table: str
    left_columns: tuple[str, ...]
    right_table: str
    right_columns: tuple[str, ...]

    @property
    def sides(self) -> frozenset[tuple[Column, Column]]:
        """The pairs of columns, independent of the order of the sides."""
        pairs = zip(self.left_columns, self.right_columns, strict=True)
        ends = (self.left_table, self.right_table)
        return frozenset(min(((ends[0], a), (ends[1], b)), ((ends[1], b), (ends[0], a))) for a, b in pairs)

    def __str__(self) -> str:
        pairs = zip(self.left_columns, self.right_columns, strict=True)
        return " and ".join(f"{self.left_table}.{left} = {self.right_table}.{right}" for left, right in pairs)

    @property
    def value(self) -> dict[str, Any]:
        """Plain values that :meth:`of` reads."""
        return {name: list(side) if isinstance(side, tuple) else side for name, side in vars(self).items()}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> JoinColumns:
        """Read plain values of the four, such as the ``vars`` of another key."""
        left, right = (tuple(map(str, plain[f"{side}_columns"])) for side in ("left", "right"))
        return cls(str(plain["left_table"]), left, str(plain["right_table"]), right)


def moved_key(plain: Mapping[str, Any], called: Mapping[str, str]) -> dict[str, Any]:
    """The plain values of a key, with other ids for its tables."""
    return {**plain, **{end: called[plain[end]] for end in ("left_table", "right_table")}}


@dataclass(frozen=True)
class NamedTable:
    """The names that a text may use for a table.

    Attributes:
        id: ``database.table``.
        name: as in the source.
        columns: all of them.
        parts: ids and names of the tables in a stack; they also refer to the stack.
        table: the table itself, if this is a table in a role; ``name`` is then the role.
    """

    id: str
    name: str
    columns: tuple[str, ...]
    parts: tuple[str, ...] = ()
    table: NamedTable | None = None

    @classmethod
    def of(cls, profile: TableProfile) -> NamedTable:
        """The names of a profiled table."""
        return cls(profile.id, profile.name, tuple(column.name for column in profile.columns))

    def as_role(self, role: str) -> NamedTable:
        """The same table in a role."""
        return NamedTable(in_role(self.id, role), role, self.columns, (in_role(self.name, role),), self)


def find_table(name: str, tables: Sequence[NamedTable]) -> NamedTable:
    """The table with that id, or with that name if only one has it; a stack also by the id or name of a part.

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
        raise TableNotFound(f"two tables are called {name!r}: write {' or '.join(repr(table.id) for table in named)}")
    raise TableNotFound(f"no table {name!r} among {did_you_mean(name, ids)}")


def find_column(text: str, tables: Sequence[NamedTable]) -> Column:
    """The column with that name; its table may be left out if only one table has such a column.

    Raises:
        TableNotFound, ColumnNotFound: there is no such table or column.
        InvalidArgument: several tables have such a column.
    """
    matches = columns_called(text, tables)
    if len(matches) > 1:
        possible_names = " or ".join(f"{table}.{column}" for table, column in matches)
        raise InvalidArgument(f"{text!r} may mean {possible_names}: write the table too")
    return matches[0]


def columns_called(text: str, tables: Sequence[NamedTable]) -> list[Column]:
    """The columns that ``table.column`` or a bare ``column`` may mean; the names may have dots themselves."""
    for cut in [position for position, letter in enumerate(text) if letter == "."][::-1]:
        try:
            table = find_table(text[:cut], tables)
        except TableNotFound:
            continue
        return [(table.id, _spelling(text[cut + 1 :], table))]
    having = [table for table in tables if text in table.columns]
    if having:  # a bare name is of a table itself, if the table is there itself
        return [(table.id, text) for table in having if table.table is None] or [(table.id, text) for table in having]
    if "." in text:
        named = dict.fromkeys(name for table in tables for name in (table.name, table.id))
        raise TableNotFound(f"no table of {text!r} among {did_you_mean(text.rpartition('.')[0], named)}")
    known = dict.fromkeys(column for table in tables for column in table.columns)
    raise ColumnNotFound(f"no table has a column {text!r}: {did_you_mean(text, known)}")


def _spelling(column: str, table: NamedTable) -> str:
    """The column in the table's spelling."""
    if column in table.columns:
        return column
    folded = {name.casefold(): name for name in table.columns}
    if column.casefold() in folded:
        return folded[column.casefold()]
    raise ColumnNotFound(f"no column {column!r} in {table.id}: {did_you_mean(column, table.columns)}")


def column_pairs(
    text: str, tables: Sequence[NamedTable], *, within: bool = False
) -> tuple[str, tuple[str, ...], str, tuple[str, ...]]:
    """Table and columns of both sides of ``"a.x = b.y"``; several columns are joined by ``and``.

    Args:
        text: as above; a table may be left out if only one has the column.
        tables: the tables that the text may name.
        within: whether both sides may be in one table.

    Raises:
        InvalidArgument: another form, both sides in one table, or a side that may be in several tables.
        TableNotFound, ColumnNotFound: there is no such table or column.
    """
    readings: list[dict[tuple[str, str], tuple[str, str]]] = []
    for part in re.split(r"\s+and\s+", text, flags=re.IGNORECASE):
        halves = [half.strip() for half in part.split("=")]
        if len(halves) != 2 or not all(halves):
            raise InvalidArgument(f"a join must be written as {FORM}; got {text!r}")
        lefts, rights = (columns_called(half, tables) for half in halves)
        readings.append(
            {
                (left, right): (mine, theirs)
                for left, mine in lefts
                for right, theirs in rights
                if left != right or (within and mine != theirs)
            }
        )
    possible = set.intersection(*map(set, readings))
    order = {table.id: position for position, table in enumerate(tables)}
    # If both tables have both columns, the sides are in the order of the tables.
    possible -= {(left, right) for left, right in possible if order[left] > order[right] and (right, left) in possible}
    if not possible:
        sides = "two tables, or two columns of one" if within else "two tables"
        raise InvalidArgument(f"a join must be between {sides}; got {text!r}")
    if len(possible) > 1:
        possible_names = " or ".join(f"{left} and {right}" for left, right in sorted(possible))
        raise InvalidArgument(f"{text!r} may mean {possible_names}: write the tables too, as in {FORM}")
    ((left, right),) = possible
    columns = [reading[left, right] for reading in readings]
    mine, theirs = tuple(one for one, _ in columns), tuple(other for _, other in columns)
    return left, mine, right, theirs


def read_key(text: str | JoinColumns, profiles: Sequence[TableProfile]) -> JoinColumns:
    """Read a key from text: ``"orders.buyer = customers.id"``, several pairs of columns joined by ``and``.

    A :class:`JoinColumns` is taken as it is, for columns that text cannot name (``"a and b"``).

    Raises:
        InvalidArgument: another form, a column and itself, or a side that may be in several tables.
        TableNotFound, ColumnNotFound: an unknown name.
    """
    if isinstance(text, JoinColumns):
        return text
    return JoinColumns(*column_pairs(text, list(map(NamedTable.of, profiles)), within=True))
