"""Tables that are joined once for each of their roles: the buyer and the seller of an order are two users.

A table in a role has an id of its own in a plan, such as ``shop.users as buyer``, and is called by its role
(:attr:`~tagframe.joins.PlanTable.role`). Everything that works on a plan sees one more table; only the corpus of a
merge knows that its rows are those of ``shop.users`` (:func:`tagframe.corpus.corpus.with_roles`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Literal

from tagframe.corpus.documents import identifier_words
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.references import in_role, without_role
from tagframe.errors import InvalidArgument
from tagframe.joins.direct import DIRECT_CHANCE, repeats
from tagframe.joins.edges import MAX_NEAR_GAP, is_sound
from tagframe.keys.column_names import KEY_WORDS, common_prefix, table_entity, words
from tagframe.keys.components import Components
from tagframe.keys.inference import ACCEPTED
from tagframe.keys.key_pair import KeyPair
from tagframe.keys.scoring import log_odds

Roles = Literal["all"] | Callable[[Sequence[KeyPair]], Collection[KeyPair]] | None
"""Which roles of a table are joined besides the one that a plan chooses: all of them, those of the keys that a function
chooses (for example by a question), or none."""

_FIRST = frozenset({"id", "fk", "pk"})
"""Key words that may stand first: ``id_buyer``."""


def role_name(column: str, table: str, key: str) -> str:
    """The name of the role that a column gives to the table that it refers to, as an identifier.

    >>> role_name("buyer_id", "users", "user_id"), role_name("home_team_api_id", "Team", "team_api_id")
    ('buyer', 'home_team')
    >>> role_name("BillToAddressID", "Address", "AddressID"), role_name("ShipVia", "Shippers", "ShipperID")
    ('bill_to', 'ship_via')

    Args:
        column: the column that refers to the table.
        table: the name of the table.
        key: the column of the table that it refers to.
    """
    found, spelt = list(words(column)), identifier_words(column)
    whole = "_".join(spelt) or column
    spelling = dict(zip(found, spelt, strict=True)) if len(found) == len(spelt) else {}
    thing, ending = table_entity(table), {*words(key), *KEY_WORDS}
    while found and found[0] in _FIRST:
        found.pop(0)
    if len(found) > 2 and found[-2] in KEY_WORDS:
        found.insert(0, found.pop())  # "team_id_home"
    while found and (found[-1] in KEY_WORDS or (found[-1] in ending and found[-1] not in thing)):
        found.pop()
    if len(found) > len(thing) + 1 and tuple(found[-len(thing) :]) == thing:
        found = found[: -len(thing)]
    return "_".join(spelling.get(word, word) for word in found) or whole


# --- roles in the keys of a plan --------------------------------------------------------------------------------------


def roles_in(keys: Sequence[KeyPair], tables: Container[str]) -> dict[str, str]:
    """The tables in a role that the keys join: their id → the id of the table itself, one of ``tables``."""
    ends = dict.fromkeys(chain.from_iterable((key.left_table, key.right_table) for key in keys))
    return {end: table for end in ends if (table := without_role(end, tables)) != end}


def without_roles(keys: Sequence[KeyPair], tables: Container[str]) -> list[KeyPair]:
    """The keys between the tables themselves."""
    return [
        replace(key, left_table=without_role(key.left_table, tables), right_table=without_role(key.right_table, tables))
        for key in keys
    ]


def joined_tables(tables: Sequence[str], given: Sequence[KeyPair]) -> list[str]:
    """The tables of a plan by these keys: a table with roles is there by itself only if a key names it so."""
    roles = roles_in(given, tables)
    named = {end for key in given for end in key.tables}
    return [*(table for table in tables if table in named or table not in roles.values()), *roles]


class InRoles:
    """The tables and keys of a plan in which some tables have roles.

    A table with roles is joined by itself only if a given key names it without one. Otherwise its keys to further
    tables are keys of each of its roles, one of which the plan takes.

    Args:
        profiles: the tables themselves.
        given: the keys that name the roles.
        anchor: id of the table whose rows the plan starts from.

    Raises:
        InvalidArgument: a key names a table without a role and is not connected to its roles, or the plan starts from a
            table that is only joined in roles.
    """

    def __init__(self, profiles: Sequence[TableProfile], given: Sequence[KeyPair], anchor: str | None) -> None:
        by_id = {profile.id: profile for profile in profiles}
        self.tables = roles_in(given, by_id)
        self._given = {key.tables for key in given}
        self._of: dict[str, list[str]] = defaultdict(list)
        for role, table in self.tables.items():
            self._of[table].append(role)
        there = joined_tables([*by_id], given)
        if anchor is not None and anchor not in there:
            raise InvalidArgument(
                f"the merge starts from {anchor}, which is joined only as {self._roles_text(anchor)}: start from the "
                "table whose columns refer to it"
            )
        self._gone = by_id.keys() - {*there}
        _check_connected(given, there, self)
        self.profiles = [by_id[id] if id in by_id else replace(by_id[self.tables[id]], id=id) for id in there]

    def _roles_text(self, table: str) -> str:
        return " and ".join(self.role(role) for role in self._of[table])

    def role(self, id: str) -> str:
        """The role of a table, or "" for a table itself."""
        return id.removeprefix(in_role(self.tables[id], "")) if id in self.tables else ""

    def keys(self, keys: Sequence[KeyPair]) -> dict[KeyPair, list[KeyPair]]:
        """For each key: the key, or those of the roles of its tables."""
        return {key: [*self._keys(key)] for key in keys}

    def _keys(self, key: KeyPair) -> Iterator[KeyPair]:
        if self._gone.isdisjoint(key.tables):
            yield key
        elif key.left_table != key.right_table:
            lefts, rights = (self._of[end] if end in self._gone else [end] for end in (key.left_table, key.right_table))
            for left in lefts:
                # A table that has roles of its own joins no other table's.
                if not any(frozenset((left, right)) in self._given for right in rights):
                    yield from (replace(key, left_table=left, right_table=right) for right in rights)


def _check_connected(given: Sequence[KeyPair], there: Sequence[str], roles: InRoles) -> None:
    """Refuse a table with roles that a user's key names without one, if the keys do not connect it to its roles."""
    parts = Components(there)
    for key in given:
        if key.tables <= parts.parent.keys():
            parts.join(key.left_table, key.right_table)
    named = {end for key in given if key.evidence.origin == "given" for end in key.tables}
    for table in {*roles.tables.values()} & parts.parent.keys() & named:
        own = [role for role, other in roles.tables.items() if other == table]
        if parts.root(table) not in map(parts.root, own):
            key = next(key for key in given if table in key.tables)
            (column, *_) = key.columns_of(table)
            name = roles.role(own[0])
            raise InvalidArgument(
                f"{table} is joined as {' and '.join(map(roles.role, own))}, and {key.left} = {key.right} names it "
                f"without a role: write which is meant, as in {name}.{column}"
            )


# --- roles that no key names yet --------------------------------------------------------------------------------------


def keys_in_roles(
    keys: Sequence[KeyPair],
    tables: Mapping[str, TableProfile],
    roles: Roles,
    *,
    given: Sequence[KeyPair] = (),
    anchor: str | None = None,
    doubtful: Collection[str] = (),
) -> list[KeyPair]:
    """Keys that join a table once for each of its roles, in addition to the given ones.

    Two or more columns of a table that refer to the same columns of another table, about equally likely, are roles. The
    one that is named like the other table joins it by itself; the others have a role, see :func:`role_name`. A table
    that is joined only in roles gives none to others, because it would not be clear which of its own is meant. With all
    roles, a further table that refers to such a table once joins it by itself.

    Args:
        keys: of these tables, best first.
        tables: by id.
        roles: which of them.
        given: keys that the plan has; the two tables of one of these are not joined in more ways.
        anchor: id of the table whose rows the plan starts from; it is not joined in roles.
        doubtful: ids of tables that are probably not needed; where the others are not joined without them, named roles
            that only they have are joined.
    """
    if roles is None:
        return []
    taken = {name.casefold() for table in tables.values() for name in (table.id, table.name)}
    known = {frozenset(without_role(end, tables) for end in key.tables) for key in given}
    fixed = {end for key in given for end in key.tables} | {anchor}
    by_itself: set[str] = set()
    in_roles: set[str] = set()
    giving: set[str] = set()
    found: list[KeyPair] = []

    def in_a_role(key: KeyPair) -> KeyPair:
        left, name = tables[key.left_table].name, _role_of(key, tables[key.left_table], tables[key.right_table])
        options = chain([name, f"{left}_{name}"], (f"{name}_{number}" for number in count(2)))
        name = next(option for option in options if option.casefold() not in taken)
        taken.add(name.casefold())
        return replace(key, right_table=in_role(key.right_table, name), score=max(key.score, DIRECT_CHANCE))

    between = [key for key in keys if key.left_table != key.right_table and {*key.tables} <= tables.keys()]
    likely = [key for key in between if key.score >= ACCEPTED or (roles != "all" and is_sound(key))]
    referenced = {key.right_table for key in likely}
    needed = [table for table in tables if table not in doubtful]
    inside = Components(needed)
    for key in likely:
        if {*key.tables}.isdisjoint(doubtful):
            inside.join(*key.tables)
    are_joined = len(needed) > 1 and len(inside.groups()) == 1
    for group in sorted(
        _groups(likely), key=lambda keys: [keys[0].left_table in some for some in (doubtful, referenced)]
    ):
        both = group[0].tables
        chosen = group if roles == "all" else [key for key in group if key in {*roles(group)}]
        left, right = group[0].left_table, group[0].right_table
        if (
            len(chosen) < 2
            or both in known
            or right in fixed
            or (left in doubtful and (roles == "all" or right in in_roles or are_joined))
        ):
            continue
        if left in in_roles - by_itself or right in giving:
            continue
        known.add(both)
        in_roles.add(right)
        giving.add(left)
        for key in chosen:
            name = _role_of(key, tables[left], tables[right])
            is_plain = tuple(words(name)) == table_entity(tables[right].name) and right not in by_itself
            by_itself |= {right} if is_plain else set()
            found.append(key if is_plain else in_a_role(key))
    if roles != "all":
        gone = {*filter(None, fixed), *in_roles, *giving, *doubtful}
        found += map(in_a_role, chain.from_iterable(_across(likely, roles, gone)))
    gone = {*in_roles - by_itself, *giving, *doubtful}
    found += map(in_a_role, _of_itself(keys, tables, roles, gone, given))
    if roles == "all":
        alone = [key for key in likely if key.right_table in in_roles - by_itself and key.tables not in known]
        parts = Components(chain(tables, *(key.tables for key in (*given, *found))))
        for key in [*given, *found]:
            parts.join(key.left_table, key.right_table)
        for key in sorted(alone, key=lambda key: key.left_table in referenced):
            left, right = key.left_table, key.right_table
            if left not in {*in_roles - by_itself, *doubtful} and right not in by_itself and parts.join(left, right):
                by_itself.add(right)
                found.append(key)
    return found


def _of_itself(
    keys: Sequence[KeyPair],
    tables: Mapping[str, TableProfile],
    roles: Literal["all"] | Callable[[Sequence[KeyPair]], Collection[KeyPair]],
    gone: Container[str],
    given: Sequence[KeyPair],
) -> list[KeyPair]:
    """The keys by which a table refers to itself, a person to the boss. A question means another table's column of the
    same name first, and no rows that repeat: the previous election, of which each party has a row."""
    own = [key for key in keys if key.left_table == key.right_table in tables and key.score >= ACCEPTED]
    named = {*own} if roles == "all" else {*roles(own)}
    others = {(key.right_table, key.left_columns) for key in keys if key.left_table != key.right_table}
    fixed = {end for key in given for end in key.tables}
    return [
        key
        for key in own
        if key in named
        and key.right_table not in gone
        and not any(without_role(end, {key.right_table}) == key.right_table != end for end in fixed)
        and (roles == "all" or (key.right_table, key.left_columns) not in others)
        and (roles == "all" or not repeats(tables[key.right_table].column(key.right_columns[0])))
    ]


def _across(
    keys: Sequence[KeyPair], roles: Callable[[Sequence[KeyPair]], Collection[KeyPair]], fixed: Container[str]
) -> Iterator[list[KeyPair]]:
    """Keys of several tables to the same columns, if the question names a role in each and other keys join the tables:
    a form's basic frame, and the derived frame of a value of the form."""
    groups: dict[tuple[str, tuple[str, ...]], list[KeyPair]] = defaultdict(list)
    for key in keys:
        if key.score >= ACCEPTED:
            groups[key.right_table, key.right_columns].append(key)
    for (right, _), group in groups.items():
        chosen = sorted({*roles(group)}, key=lambda key: (key.left_table, key.left_columns))
        lefts = [key.left_table for key in chosen]
        parts = Components(chain.from_iterable(key.tables for key in keys))
        for key in keys:
            if right not in key.tables and key.score >= ACCEPTED:
                parts.join(key.left_table, key.right_table)
        is_one = len({parts.root(left) for left in lefts}) == 1
        if len(lefts) > 1 and len({*lefts}) == len(lefts) and is_one and not any(t in fixed for t in (right, *lefts)):
            yield chosen


def _groups(keys: Sequence[KeyPair]) -> list[list[KeyPair]]:
    """The keys of two tables that are roles of each other; the surest roles first."""
    found: dict[tuple[str, str, tuple[str, ...]], list[KeyPair]] = defaultdict(list)
    for key in keys:
        found[key.left_table, key.right_table, key.right_columns].append(key)
    groups = []
    for group in found.values():
        surest = max(log_odds(key.score) for key in group)
        near = [key for key in group if log_odds(key.score) > surest - MAX_NEAR_GAP]
        groups.append(sorted(near, key=lambda key: key.left_columns))
    roles = [group for group in groups if len(group) > 1]
    return sorted(roles, key=lambda group: (-max(key.score for key in group), group[0].left, group[0].right))


def _role_of(key: KeyPair, table: TableProfile, other: TableProfile) -> str:
    """The role that a key's columns give; those that are called as the columns of the other table say nothing of it."""
    pairs = [*zip(key.left_columns, key.right_columns, strict=True)]
    telling = [pair for pair in pairs if pair[0].casefold() != pair[1].casefold()] or pairs
    start = len(common_prefix([column.name for column in table.columns]))
    return "_".join(role_name(mine[start:], other.name, theirs) for mine, theirs in telling)
