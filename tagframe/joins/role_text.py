"""Roles in the text of a key: ``"orders.buyer_id = users.id as buyer"``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain

from tagframe.corpus.references import NamedTable, columns_called, find_column
from tagframe.errors import ColumnNotFound, InvalidArgument, TableNotFound

_AS = re.compile(r"(.+)\s+as\s+(.+)", re.IGNORECASE)
_QUOTES = "\"'`"


def with_roles(parts: Sequence[Sequence[str]], tables: Sequence[NamedTable]) -> list[NamedTable]:
    """The tables, followed by those that are joined in a role.

    Args:
        parts: the sides of comparisons, such as ``b.y as role``.
        tables: that the sides may name.

    Raises:
        InvalidArgument: a role has no name, the name of a table, or that of another role.
        TableNotFound, ColumnNotFound: there is no such table or column.
    """
    found = [*tables]
    for side in chain.from_iterable(parts):
        made = _in_role(side, found)
        if made is None or any(table.id == made[0].id for table in found):
            continue
        new, name = made[0], made[0].name.casefold()
        for other in found:
            if name in (other.name.casefold(), other.id.casefold()):
                whose = (
                    f"a role of {other.table.id} is called {other.name!r}" if other.table else f"a table is {other.id}"
                )
                raise InvalidArgument(f"{side!r} takes a name twice: {whose}. Choose another name for the role")
        found.append(new)
    return found


def in_their_roles(sides: Sequence[str], tables: Sequence[NamedTable]) -> list[str]:
    """The sides of a key's comparisons, with the ids of tables in their roles.

    A role that is written once is that of all columns of its table among these sides.

    >>> users = NamedTable("shop.users", "users", ("id", "country"))
    >>> in_their_roles(["users.country", "users.id as buyer"], [users, users.as_role("buyer")])
    ['shop.users as buyer.country', 'shop.users as buyer.id']
    """
    made = [_in_role(side, tables) for side in sides]
    roles = [*dict.fromkeys(one[0] for one in made if one is not None)]
    if len(roles) > 1:
        raise InvalidArgument(
            f"one key joins one role, not {' and '.join(role.name for role in roles)}: write each key as a text of "
            "its own, in a list"
        )
    found = []
    for side, own in zip(sides, made, strict=True):
        if own is None and roles:
            with suppress(TableNotFound, ColumnNotFound):
                there = dict(columns_called(side, tables))
                own = next(
                    ((role, there[role.table.id]) for role in roles if role.table and role.table.id in there), None
                )
        found.append(side if own is None else f"{own[0].id}.{own[1]}")
    return found


def _in_role(side: str, tables: Sequence[NamedTable]) -> tuple[NamedTable, str] | None:
    """The table in its role and the column of a side such as ``b.y as role``; None if it names no role."""
    said = _AS.fullmatch(side)
    if said is None:
        return None
    with suppress(TableNotFound, ColumnNotFound):  # the name of a table or a column may contain the word
        columns_called(side, tables)
        return None
    own = {(table.table or table).id: table.table or table for table in tables}
    table, column = find_column(said[1].strip(), [*own.values()])
    role = said[2].strip()
    if len(role) > 1 and role[0] == role[-1] and role[0] in _QUOTES:
        role = role[1:-1].strip()
    if not role:
        raise InvalidArgument(f"{side!r} names no role: write one, as in {said[1].strip()} as buyer")
    return own[table].as_role(role), column
