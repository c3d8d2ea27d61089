"""Key pairs as edges between tables: how strongly a plan prefers each, and which of several roles comes first."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, permutations
from typing import Any

from tagframe.corpus.profile import TableProfile
from tagframe.joins.direct import DIRECT_CHANCE, is_period, repeats
from tagframe.joins.steps import Order
from tagframe.keys.column_names import column_name, table_entity
from tagframe.keys.inference import ACCEPTED
from tagframe.keys.key_columns import is_code
from tagframe.keys.key_pair import Evidence, KeyPair
from tagframe.keys.scoring import log_odds, probability

_MAX_LOG_ODDS = 6.0
"""Log odds beyond this make no difference between keys."""
_NAME_BONUS = 4.0
"""The bonus of a name that fits in full."""
_DECLARED_BONUS = 5.0
"""The bonus of a declared key over every inferred one."""
MAX_NEAR_GAP = 4.0
"""Keys between two tables are nearly equally likely if their strengths differ by less. Then the question decides, or
the order of their roles."""
_REPEATED_PENALTY = 6.0
"""The penalty of a likely key whose values repeat on both sides: it joins tables that no reference connects."""
_LIFT = 0.1
"""A key of several columns is stronger than the references of its columns by this; and a reference that repeats, than
one the other way that does not."""
_SIBLING_PENALTY = 2.0
"""The penalty, in log odds, of a pair of columns that both reference a table outside the plan."""
_MAX_UNLIKE_CHANCE = 0.4
"""The largest chance of such a pair if the names differ: the head of a department is no teacher of a class."""
_MAX_ACCIDENT = 0.01
"""Values that match by accident more often than this, relative to those of a key, are no evidence of a role."""
_MIN_ROLE_GAP = 1.0
"""Two references of one table to the same column are equally likely, for pairs with another table's reference, if their
log odds differ by less."""
_MAIN_ROLES = frozenset(
    """home host winner source src origin from start sender buyer owner author creator current main primary first
    principal""".split()
)
_OTHER_ROLES = frozenset(
    """away visitor guest loser dest destination target to end receiver recipient seller editor edited last previous
    next related permanent secondary second other alternate old new ship shipped shipping delivery""".split()
)
"""Roles that are meant by default if a thing has several, and roles that are not."""


@dataclass(frozen=True)
class Edge:
    """Two tables that may be joined.

    Attributes:
        key: the key pair.
        strength: how strongly a plan prefers it, in log odds.
        role: its position among the keys of these tables that are as strong.
    """

    key: KeyPair
    strength: float
    role: int = 0

    @property
    def ends(self) -> tuple[str, str]:
        """Both tables."""
        return self.key.left_table, self.key.right_table

    @property
    def is_sure(self) -> bool:
        """Whether it is likelier right than wrong, or meant, or joins by several columns that each would repeat."""
        is_of_several = is_composite(self.key) and self.key.score >= DIRECT_CHANCE
        return self.key.score >= ACCEPTED or self.strength > 0 or is_of_several


def is_composite(key: KeyPair) -> bool:
    """Whether a key of several columns was inferred."""
    return key.evidence.origin == "inferred" and len(key.left_columns) > 1


def is_of_names(key: KeyPair) -> bool:
    """Whether a key of several columns was inferred of which none has a key word, such as first and last name."""
    return is_composite(key) and not any(column_name(column).key_word for column in key.left_columns)


def siblings(keys: Sequence[KeyPair], wanted: frozenset[str], order: Order) -> list[KeyPair]:
    """Pairs of columns that reference the same column of a table outside ``wanted``."""
    by_target: dict[tuple[str, tuple[str, ...]], list[KeyPair]] = defaultdict(list)
    for key in keys:
        if key.left_table in wanted and key.right_table not in wanted:
            by_target[key.right_table, key.right_columns].append(key)
    found = []
    for (table, _), group in sorted(by_target.items()):
        group.sort(key=lambda key: (order[key.left_table], key.left_columns))
        sole = Counter(key.left_table for key in group)
        surest: dict[str, float] = defaultdict(lambda: -math.inf)
        for key in group:
            surest[key.left_table] = max(surest[key.left_table], log_odds(key.score))

        def odds(key: KeyPair, surest: Mapping[str, float] = surest) -> float:
            # The chances of two roles of one table do not say which is meant.
            own = log_odds(key.score)
            return surest[key.left_table] if own > surest[key.left_table] - _MIN_ROLE_GAP else own

        for i, one in enumerate(group):
            for other in group[i + 1 :]:
                if one.left_table != other.left_table:
                    score = probability(min(odds(one), odds(other)) - _SIBLING_PENALTY)
                    if sole[one.left_table] == sole[other.left_table] == 1 and not _are_called_alike(one, other):
                        score = min(score, _MAX_UNLIKE_CHANCE)
                    evidence = Evidence(origin="shared", reason=f"both reference {table}")
                    sides = one.left_table, one.left_columns, other.left_table, other.left_columns
                    found.append(KeyPair(*sides, score, evidence))
    return found


def _are_called_alike(one: KeyPair, other: KeyPair) -> bool:
    """Whether one referencing column's name is in the other's: ``student_id`` and ``liked_student_id``."""
    mine, theirs = (
        {word for column in key.left_columns for word in column_name(column).entity} for key in (one, other)
    )
    return mine <= theirs or theirs <= mine


def edges_of(keys: Sequence[KeyPair], tables: Mapping[str, TableProfile], hints: Mapping[KeyPair, float]) -> list[Edge]:
    """The keys as edges.

    Of two tables, a key of names comes after one of codes (:func:`is_code`): names are spelt in several ways.

    Keys from one table to the same column are roles. Nearly equally likely roles are ordered by the hints and, without
    a hint, by :func:`_role`. A hint for a key counts only if it is nearly as likely as the best one between the two
    tables, and never lifts it above a declared one; one against a key always counts.
    """
    strengths = {
        key: _strength(key)
        - _REPEATED_PENALTY * (key.evidence.origin == "inferred" and repeat_on_both_sides(key, tables))
        for key in keys
    }
    roles: dict[KeyPair, int] = {}
    groups: dict[tuple[str, str, tuple[str, ...]], list[KeyPair]] = defaultdict(list)
    for key in keys:
        groups[key.left_table, key.right_table, key.right_columns].append(key)
    for key in keys:
        # Two columns with the same values refer to each other, so each counts as a role of the other.
        roles_there = groups.get((key.right_table, key.left_table, key.left_columns))
        if roles_there and key.evidence.contained == key.evidence.covered == 1.0 and key not in roles_there:
            roles_there.append(key)
    for (left, _, _), group in groups.items():
        near = _near(group, strengths)
        surest = max(strengths[key] for key in near)
        # A role that the question names need not have the plainest name.
        near += [key for key in group if hints.get(key, 0.0) > 0 and key not in near and _is_as_sure(key, near)]
        near.sort(key=lambda key: _role(key if key.left_table == left else key.reversed(), tables[left]))
        for position, key in enumerate(near):
            strengths[key], roles[key] = surest, position
    pairs: dict[frozenset[str], list[KeyPair]] = defaultdict(list)
    for key in keys:
        pairs[key.tables].append(key)
    for group in pairs.values():
        _doubt_names(group, tables, strengths)
        _prefer_members(group, tables, strengths)
        near = _near(group, strengths)
        surest = max(strengths[key] for key in near)
        near += [key for key in group if hints.get(key, 0.0) > 0 and key not in near and _is_way_back(key, near)]
        if any(key in hints for key in near):
            against = {key: strengths[key] + min(0.0, hints.get(key, 0.0)) for key in group}
            strengths.update(against | {key: surest + hints.get(key, 0.0) for key in near})
    _lift_composites(keys, strengths)
    return [Edge(key, strengths[key], roles.get(key, 0)) for key in keys]


def _lift_composites(keys: Sequence[KeyPair], strengths: dict[KeyPair, float]) -> None:
    """Put a key of several columns, each a period or a reference to a further table, before these references.

    Ratings and wishes by user and book: joined by way of the book, each rating would meet the wishes of all users. So
    it is with a likely key of which one column refers to one table on both sides: cities by their country and province.
    """
    refers: dict[tuple[str, str], list[float]] = defaultdict(list)
    for key in keys:
        if len(key.left_columns) == 1 and key.score >= ACCEPTED:
            refers[key.left_table, key.left_columns[0]].append(strengths[key])
    for key in filter(is_composite, keys):
        ends = [*zip(key.left_columns, key.right_columns, strict=True)]
        own = [[*refers[key.left_table, mine], *refers[key.right_table, theirs]] for mine, theirs in ends]
        tells = [found or is_period(column) for found, column in zip(own, key.left_columns, strict=True)]
        both = [refers[key.left_table, mine] and refers[key.right_table, theirs] for mine, theirs in ends]
        if (any(own) and all(tells)) or (key.score >= ACCEPTED and any(both)):
            strengths[key] = max(strengths[key], *chain.from_iterable(own)) + _LIFT


def _is_stated(key: KeyPair) -> bool:
    """Whether a source or a person says that it is a key."""
    return key.evidence.origin in ("declared", "given")


def _strength(key: KeyPair) -> float:
    """How strongly a plan prefers the key: its log odds up to a limit, plus a bonus for a clear name.

    ``UserId`` is *the* user of a row, ``OwnerUserId`` one of them.
    """
    if key.score < ACCEPTED:
        return log_odds(key.score)  # a key below 50% comes after all likelier ones, whatever its name
    declared = _DECLARED_BONUS * _is_stated(key)
    if is_of_names(key):
        return log_odds(key.score)  # namesakes come after references
    return min(log_odds(key.score), _MAX_LOG_ODDS) + _NAME_BONUS * key.evidence.name + declared


def repeat_on_both_sides(key: KeyPair, tables: Mapping[str, TableProfile]) -> bool:
    """Whether a key of one column has values that repeat on both sides."""
    is_one = len(key.left_columns) == 1
    return is_one and all(id in tables and repeats(tables[id].column(key.columns_of(id)[0])) for id in key.tables)


def is_constant(key: KeyPair, tables: Mapping[str, TableProfile]) -> bool:
    """Whether a column of a key that nobody states has one value: it tells no rows apart."""
    return not _is_stated(key) and any(
        tables[id].column(name).distinct == 1 for id in key.tables for name in key.columns_of(id)
    )


def _doubt_names(group: Sequence[KeyPair], tables: Mapping[str, TableProfile], strengths: dict[KeyPair, float]) -> None:
    """Lower the keys of names between two tables below a likely key of codes of which as many values are found."""
    inferred = [key for key in group if key.evidence.origin == "inferred" and len(key.left_columns) == 1]
    coded = {key: [is_code(tables[id].column(key.columns_of(id)[0])) for id in key.tables] for key in inferred}
    found = {key: key.evidence.contained or 0.0 for key in inferred}
    codes = [key for key in inferred if all(coded[key]) and key.score >= ACCEPTED and key.evidence.uniqueness == 1.0]
    for key in inferred:
        surer = [strengths[code] for code in codes if found[code] >= found[key]]
        if surer and not any(coded[key]):
            strengths[key] = min(strengths[key], max(surer) - MAX_NEAR_GAP)


def _prefer_members(
    group: Sequence[KeyPair], tables: Mapping[str, TableProfile], strengths: dict[KeyPair, float]
) -> None:
    """Lower a reference that no two rows share below one that goes the other way and repeats: a country has many
    cities, and one capital."""
    inferred = [key for key in group if key.evidence.origin == "inferred" and len(key.left_columns) == 1]
    shared = {key: repeats(tables[key.left_table].column(key.left_columns[0])) for key in inferred}
    for key, other in permutations(inferred, 2):
        is_mutual = key.left_table == other.right_table and key.left_columns != other.right_columns
        if is_mutual and shared[other] and not shared[key]:
            strengths[key] = min(strengths[key], strengths[other] - _LIFT)


def _near(group: Sequence[KeyPair], strengths: Mapping[KeyPair, float]) -> list[KeyPair]:
    surest = max(group, key=lambda key: strengths[key])
    least = min(surest.score, ACCEPTED)
    return [key for key in group if strengths[key] > strengths[surest] - MAX_NEAR_GAP and key.score >= least]


def _is_as_sure(key: KeyPair, others: Sequence[KeyPair]) -> bool:
    surest = max(others, key=lambda other: other.score)
    return not any(map(_is_stated, others)) and log_odds(key.score) > log_odds(surest.score) - _MIN_ROLE_GAP


def is_sound(key: KeyPair) -> bool:
    """Whether all values of a column or of several are found among the unique values of another side, whatever their
    names say, and an accident is unlikely."""
    found = key.evidence
    chance = 1.0 if found.chance is None else found.chance
    is_rare = chance <= _MAX_ACCIDENT or (found.chance is not None and key.score >= DIRECT_CHANCE)
    return found.contained == found.uniqueness == 1.0 and (is_rare or is_composite(key))


def _is_way_back(key: KeyPair, others: Sequence[KeyPair]) -> bool:
    """Whether a sound key refers to the table that refers by the others: a country's capital, beside its cities."""
    return (
        not any(map(_is_stated, others))
        and is_sound(key)
        and all(other.left_table == key.right_table for other in others)
    )


def _role(key: KeyPair, table: TableProfile) -> Any:
    """The sort key of roles: the default role comes first.

    A column named like its own table is not the default: in ``friend`` it is ``student_id``, not ``friend_id``.
    """
    words = [word for column in key.left_columns for word in column_name(column).entity]
    own = [thing for thing in table_entity(table.name) if len(thing) > 3]
    aside = sum(word in _OTHER_ROLES or any(word.startswith(thing) for thing in own) for word in words)
    return (
        aside - sum(word in _MAIN_ROLES for word in words),
        -key.evidence.name,
        -round(log_odds(key.score), 1),
        key.left_columns,
    )
