"""Key pairs as text: ``"orders.buyer = customers.id"``, and columns that tables share by name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, product

from tagframe.corpus.references import FORM, NamedTable, column_pairs, columns_called, find_column
from tagframe.errors import ColumnNotFound, InvalidArgument, TableNotFound, did_you_mean
from tagframe.keys.key_pair import TURNED, Evidence, KeyPair, Sign, column_id

On = str | KeyPair | Sequence[str | KeyPair]
"""Key pairs that a user gives: see :func:`keys_on`."""

_COMPARED = re.compile(r"\s*(<=|>=|<|>|=)\s*")
_BETWEEN = re.compile(r"\s+between\s+", re.IGNORECASE)
_AND = re.compile(r"\s+and\s+", re.IGNORECASE)
_SEVERAL = re.compile(r"(.+?)\.\(([^()]+)\)\s*=\s*(.+?)\.\(([^()]+)\)")
"""Several columns as plans show them: ``a.(x, y) = b.(u, v)``."""
_GIVEN = Evidence(origin="given", name=1.0, reason="given by the user")


def keys_on(on: On, tables: Sequence[NamedTable]) -> list[KeyPair]:
    """The key pairs that a user gives.

    Args:
        on: ``"a.x = b.y"`` (several columns joined by ``and``, or as ``a.(x, y) = b.(u, v)``; a table may be left out
            if only one has the column), the same with ``<=``, ``<``, ``>=``, ``>`` or ``between`` (see :func:`key_of`),
            a :class:`~tagframe.keys.KeyPair`, the name of a column that tables share, or a list of these. The names in
            a list form one key, and so do pairs of the same two tables. ``"a.x = b.y as role"`` joins ``b`` in a role,
            so that it may be joined several times; other pairs may name the role in place of a table: ``role.z = c.z``.
        tables: the tables that the text may name; tables that share a column are joined to the first that has it.

    Raises:
        InvalidArgument: another form, or a side that may be in several tables.
        TableNotFound, ColumnNotFound: there is no such table or column.
    """
    if isinstance(on, Mapping):
        text = " and ".join(f"{left} = {right}" for left, right in on.items())
        raise InvalidArgument(
            f"on= must be text, a key pair or a list of these, not a dict: write on={text!r}, with table names"
        )
    items = [on] if isinstance(on, str | KeyPair) else list(on)
    if not items or not all(isinstance(item, str | KeyPair) for item in items):
        raise InvalidArgument(f"on= must be {FORM}, the name of a shared column, or a list of these; got {on!r}")
    found: list[KeyPair] = []
    shared: list[str] = []
    texts = [item for item in items if isinstance(item, str) and not any(item in table.columns for table in tables)]
    named = with_roles([part[::2] for item in texts for part in _parts(item)], tables)
    for item in items:
        if isinstance(item, KeyPair):
            found.append(replace(item, score=1.0, evidence=_GIVEN))
        elif (_COMPARED.search(item) or _BETWEEN.search(item)) and not any(item in table.columns for table in tables):
            found.append(key_of(item, named))
        else:
            shared.append(item)
    if shared:
        found += _by_name(shared, tables)
    pairs, ids = _one_a_pair(found), {table.id for table in tables}
    for pair in pairs:
        _check_role(pair, ids)
    return pairs


def key_of(text: str, tables: Sequence[NamedTable]) -> KeyPair:
    """The key pair ``"a.x = b.y"``; see :func:`~tagframe.corpus.references.column_pairs`, which raises the same.

    ``"a.k = b.k and b.date <= a.date"`` means the row of ``b`` with the same ``k`` and the latest date up to
    ``a.date``. ``"a.date between b.start and b.end"`` means all rows of ``b`` whose interval contains ``a.date``.
    """
    parts = _parts(text)
    if any(len(part) != 3 for part in parts):  # the error says what is wrong
        return KeyPair(*column_pairs(text, tables), 1.0, _GIVEN)
    tables = with_roles([part[::2] for part in parts], tables)
    lefts, rights = (in_their_roles([part[side] for part in parts], tables) for side in (0, 2))
    signs: list[Sign] = [part[1] for part in parts]  # type: ignore[misc]
    if all(sign == "=" for sign in signs):
        text = " and ".join(f"{left} = {right}" for left, right in zip(lefts, rights, strict=True))
        return KeyPair(*column_pairs(text, tables), 1.0, _GIVEN)
    compared = [*zip(lefts, signs, rights, strict=True)]
    if any(left == right and sign != "=" for left, sign, right in compared):
        raise InvalidArgument(f"{text!r} does not say which table's row comes first: write the tables too")
    turned = [[one] if one[1] == "=" else [one, (one[2], TURNED[one[1]], one[0])] for one in compared]
    key: KeyPair | None = None
    for ways in product(*turned):  # "a.k = b.k and b.date <= a.date"
        with suppress(InvalidArgument):
            key = key or _compared(ways, tables)
    return as_of_key(key or _compared(compared, tables))


def _one_by_one(text: str) -> str:
    """The text with each pair of columns by itself.

    >>> _one_by_one("a.(x, y) = b.(u, v)")
    'a.x = b.u and a.y = b.v'
    """
    several = _SEVERAL.fullmatch(text.strip())
    if several is None:
        return text
    left, right = ([f"{table}.{name.strip()}" for name in names.split(",")]
                   for table, names in (several.group(1, 2), several.group(3, 4)))  # fmt: skip
    if len(left) != len(right):
        raise InvalidArgument(f"{text!r} has {len(left)} columns on one side and {len(right)} on the other")
    return " and ".join(f"{one} = {other}" for one, other in zip(left, right, strict=True))


def _parts(text: str) -> list[list[str]]:
    """The sides and the sign of each comparison in a text; other than three pieces where it is none."""
    pieces = iter(_AND.split(_one_by_one(text).strip()))
    parts = []
    for part in pieces:
        moment, *start = _BETWEEN.split(part)
        both = [f"{moment} >= {start[0]}", f"{moment} <= {next(pieces, '')}"] if start else [part]
        parts += [_COMPARED.split(one) for one in both]
    return parts


def _compared(parts: Sequence[tuple[str, Sign, str]], tables: Sequence[NamedTable]) -> KeyPair:
    sides = column_pairs(" and ".join(f"{left} = {right}" for left, _, right in parts), tables)
    return KeyPair(*sides, 1.0, _GIVEN, tuple(sign for _, sign, _ in parts))


def as_of_key(key: KeyPair) -> KeyPair:
    """The key with its equal columns first, followed by the comparisons of one moment.

    Raises:
        InvalidArgument: the comparisons are neither a single one nor the two ends of an interval.
    """
    equal = [one for one in key.comparisons if one[1] == "="]
    others = [one for one in key.comparisons if one[1] != "="]
    moments = [{one[side] for one in others} for side in (0, 2)]
    is_interval = len(others) == 2 and {others[0][1][0], others[1][1][0]} == {"<", ">"} and 1 in map(len, moments)
    if len(others) > 1 and not is_interval:
        given = " and ".join(" ".join(one) for one in others)
        raise InvalidArgument(
            f'beside equal columns, a join takes one comparison, such as "b.date <= a.date", or one interval, such as '
            f'"a.date between b.start and b.end"; got {given}'
        )
    left, signs, right = zip(*equal, *others, strict=True)
    return replace(key, left_columns=left, right_columns=right, signs=signs if others else ())


def text_of(key: KeyPair, tables: Sequence[NamedTable]) -> str:
    """The key pair as :func:`keys_on` reads it; without databases if the tables' names are unique."""
    own = {(table.table or table).id: table.table or table for table in tables}
    names = Counter(table.name.casefold() for table in own.values())
    named = {table.id: table for table in tables}

    def in_full(id: str, column: str) -> str:
        table = named[id].table or named[id]
        role = f" as {named[id].name}" if named[id].table else ""
        return f"{table.name if names[table.name.casefold()] == 1 else table.id}.{column}{role}"

    return " and ".join(
        f"{in_full(key.left_table, mine)} {sign} {in_full(key.right_table, theirs)}"
        for mine, sign, theirs in key.comparisons
    )


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
                f"{where}. Columns with different names are joined by {FORM}; the other tables have "
                f"{did_you_mean(column, known)}"
            )
    raise ColumnNotFound(
        f"no two tables have all of {', '.join(map(repr, columns))}. The names in on= form one key; for several keys "
        f"write each as {FORM}"
    )


def _check_role(key: KeyPair, ids: Container[str]) -> None:
    """Refuse two columns that have one role: they would have to be equal."""
    for pair in (key, key.reversed()):
        equal = [theirs for _, sign, theirs in pair.comparisons if sign == "="]
        if len(set(equal)) < len(equal) and pair.right_table not in ids:
            raise InvalidArgument(
                f"{' and '.join(pair.left_columns)} of {pair.left_table} are two roles, and both are joined with "
                f"{column_id(pair.right_table, (equal[0],))}: give each role its own name"
            )


def _one_a_pair(keys: Sequence[KeyPair]) -> list[KeyPair]:
    """Pairs of the same two tables combined into one key of several columns."""
    found: dict[frozenset[str], KeyPair] = {}
    for key in keys:
        known = found.get(key.tables)
        if known is None:
            found[key.tables] = key
            continue
        other = key if key.left_table == known.left_table else key.reversed()
        left, signs, right = zip(*dict.fromkeys([*known.comparisons, *other.comparisons]), strict=True)
        found[key.tables] = as_of_key(replace(known, left_columns=left, right_columns=right, signs=signs))
    return list(found.values())


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
    parts = _AS.fullmatch(side)
    if parts is None:
        return None
    with suppress(TableNotFound, ColumnNotFound):  # the name of a table or a column may contain the word
        columns_called(side, tables)
        return None
    own = {(table.table or table).id: table.table or table for table in tables}
    table, column = find_column(parts[1].strip(), [*own.values()])
    role = parts[2].strip()
    if len(role) > 1 and role[0] == role[-1] and role[0] in _QUOTES:
        role = role[1:-1].strip()
    if not role:
        raise InvalidArgument(f"{side!r} names no role: write one, as in {parts[1].strip()} as buyer")
    return own[table].as_role(role), column
