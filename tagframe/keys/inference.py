"""Foreign keys between tables, from data and names.

Neither is enough alone. Most ids are 1 … n, so data without names recalls a fifth of the keys; names without data miss
every column that is named after its role. Each candidate pair of columns gets a log-odds score from both
(:mod:`~tagframe.keys.containment`, :mod:`~tagframe.keys.column_names`). Then the pairs compete: a column usually
references one table, and a table is usually referenced by one column.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tagframe.corpus.profile import TableProfile
from tagframe.engines.base import ForeignKey
from tagframe.errors import InvalidArgument, counted
from tagframe.keys.checking import Contains, checked
from tagframe.keys.column_names import CALENDAR, column_name
from tagframe.keys.competition import compete
from tagframe.keys.composite import CONTAINED, Read, composite_keys
from tagframe.keys.conventions import Mentions
from tagframe.keys.key_columns import Column, columns_of
from tagframe.keys.key_pair import Evidence, KeyPair
from tagframe.keys.polymorphic import with_types
from tagframe.keys.schema_model import is_judged_alone, schema_keys
from tagframe.keys.scoring import Candidate, log_odds, probability, score_all
from tagframe.keys.terms import KeyWeights, default_weights
from tagframe.keys.unions import infer_unions

ACCEPTED = 0.5
"""Key pairs with a lower score are returned only on request."""
LARGE = 500
"""From this many tables on, only likely pairs are searched.

Among a few hundred tables, faint pairs help to connect tables that nothing else connects. Among thousands they are
accidents, and every column would be a candidate for every other."""
_WIDE = 5_000
"""From this many columns on, a database is large, even with few tables."""
MANY = 800
"""From this many columns on, the faintest pairs are left out: fifty tables have ten thousand of them, one in a thousand
is a key, and every question would read them all."""
_UNDECLARED = 3.0
"""What a target loses, in log odds, that repeats, or may, beside the declared primary key of its table."""
_FAINT, FAINTER, _FAINTEST = 0.2, 0.005, 1e-4
"""The smallest score of a pair in a large database, in one with many columns, and in any other."""


def least_score(tables: Sequence[TableProfile]) -> float:
    """The smallest score of the pairs that are searched. It depends only on the number of tables and columns, so a
    caller that asks for fewer pairs gets the same ones."""
    columns = sum(len(table.columns) for table in tables)
    if len(tables) > LARGE or columns > _WIDE:
        return _FAINT
    return FAINTER if columns >= MANY else _FAINTEST


def _reason(candidate: Candidate) -> str:
    parts = []
    if candidate.contained is not None:
        about = "" if candidate.contained.error == 0 else f" ± {candidate.contained.error:.0%}"
        parts.append(f"{candidate.contained.share:.0%}{about} of the values found")
    if candidate.right.is_versioned:
        parts.append("target has versions")
    elif candidate.right.unique == 1.0:
        parts.append("target unique")
    if candidate.match.rule:
        parts.append(candidate.match.rule)
    if candidate.popular:
        parts.append(f"{counted(candidate.popular, 'more column references', 'more columns reference')} it")
    return ", ".join(parts)


def key_pair(candidate: Candidate, surest: float) -> KeyPair:
    """The key pair of a candidate; ``surest`` is the chance of a pair with all evidence."""
    left, right = candidate.left, candidate.right
    evidence = Evidence(
        contained=None if candidate.contained is None else candidate.contained.share,
        covered=None if candidate.covered is None else candidate.covered.share,
        error=0.0 if candidate.contained is None else candidate.contained.error,
        chance=None if candidate.ratio is None else min(1.0, math.exp(-candidate.ratio)),
        uniqueness=right.really_unique,
        null_share=left.profile.null_share,
        families=(left.profile.family, right.profile.family),
        name=candidate.match.score,
        reason=_reason(candidate),
    )
    return KeyPair(
        left.owner.id,
        (left.profile.name,),
        right.owner.id,
        (right.profile.name,),
        round(probability(candidate.logit, surest), 6),
        evidence,
    )


def _joinable(candidates: Sequence[Candidate], tables: Sequence[TableProfile]) -> list[Candidate]:
    """The candidates without those between tables of the same columns: their rows are of one kind but not the same."""
    shape = {table: number for number, group in enumerate(infer_unions(tables)) for table in group.tables}
    return [
        candidate
        for candidate in candidates
        if (left := candidate.left.owner.id) == (right := candidate.right.owner.id)
        or shape.get(left, -1) != shape.get(right, -2)
    ]


def with_composites(single: Sequence[KeyPair], composite: Sequence[KeyPair]) -> list[KeyPair]:
    """Both, without single pairs that are part of a composite one of the same tables and not a key themselves.

    A day or a year alone is none: the other parts say what it is of.
    """

    between: dict[frozenset[str], list[KeyPair]] = defaultdict(list)
    for one in composite:
        between[one.tables].append(one)

    def is_part(key: KeyPair) -> bool:
        evidence = key.evidence
        is_key = evidence.uniqueness == 1.0 and (evidence.contained is None or evidence.contained >= CONTAINED)
        is_time = CALENDAR.issuperset(column_name(key.right_columns[0]).words)
        return (is_time or not is_key) and any(map(key.is_part_of, between.get(key.tables, ())))

    return [*(key for key in single if not is_part(key)), *composite]


def _declared(tables: Sequence[TableProfile], *, given: bool) -> list[KeyPair]:
    """The keys that the sources declare, or with ``given`` those that the user gave."""
    return [
        _modelled(sides, key) if key.by else KeyPair(*sides, 1.0, _GIVEN[key.given + key.ran])
        for sides, key in _located(tables, "foreign_keys")
        if key.given == given
    ]


def _modelled(sides: _Sides, key: ForeignKey) -> KeyPair:
    """A key that a semantic model declares. If it holds for fewer than half of the rows, this share is its chance."""
    score = 1.0 if key.holds is None or key.holds >= _HOLDS else key.holds
    rows = "" if key.holds is None else f", holds for {share_of_rows(key.holds)} of the rows"
    return KeyPair(*sides, score, Evidence(origin="declared", name=1.0, reason=f"declared by {key.by}{rows}"))


_HOLDS = 0.5


def share_of_rows(share: float) -> str:
    """A share in percent that says 100% of all only.

    >>> share_of_rows(1.0), share_of_rows(0.9998), share_of_rows(0.97)
    ('100%', '99.9%', '97%')
    """
    return f"{math.floor(share * 1000 + 1e-9) / 10:g}%"


_GIVEN = (
    Evidence(origin="declared", name=1.0, reason="declared by the source"),
    Evidence(origin="given", name=1.0, reason="given by the user"),
    _RAN := Evidence(origin="given", name=1.0, reason="joined this way by past statements"),
)
_NEVER = ", never joined this way by past statements"


def _never_run(pair: KeyPair) -> KeyPair:
    reason = f"{pair.evidence.reason}{_NEVER}"
    return replace(pair, score=pair.score / (2 - pair.score), evidence=replace(pair.evidence, reason=reason))


def _allowed(pairs: Iterable[KeyPair], tables: Sequence[TableProfile]) -> list[KeyPair]:
    """The pairs without those that the user forbade, in either direction."""
    given = [KeyPair(*sides) for sides, _ in _located(tables, "forbidden_keys")]
    forbidden = {*given, *(pair.reversed() for pair in given)}
    return [pair for pair in pairs if pair not in forbidden]


_Sides = tuple[str, tuple[str, ...], str, tuple[str, ...]]
"""Table id and columns of both sides of a key."""


def _located(tables: Sequence[TableProfile], kind: str) -> Iterator[tuple[_Sides, ForeignKey]]:
    """The keys of one kind that tables have, with those sides that the profiles have."""
    by_name = {(table.database, table.name.casefold()): table for table in tables}
    for table in tables:
        for key in getattr(table, kind):
            sides = _sides(table, key, by_name)
            if sides is not None:
                yield sides, key


def _sides(table: TableProfile, key: ForeignKey, by_name: Mapping[tuple[str, str], TableProfile]) -> _Sides | None:
    """Both sides in the profiles' spelling; None if one of them is missing."""
    other = by_name.get((key.other_database or table.database, key.other_table.casefold()))
    if other is None or len(key.columns) != len(key.other_columns):
        return None
    mine = {column.name.casefold(): column.name for column in table.columns}
    theirs = {column.name.casefold(): column.name for column in other.columns}
    left = tuple(mine.get(name.casefold(), "") for name in key.columns)
    right = tuple(theirs.get(name.casefold(), "") for name in key.other_columns)
    return (table.id, left, other.id, right) if all(left) and all(right) else None


def candidates_of(
    tables: Sequence[TableProfile],
    columns: Sequence[Column],
    *,
    floor: float,
    weights: KeyWeights,
    contains: Contains | None = None,
    across: bool = False,
) -> list[Candidate]:
    """The pairs of single columns that may be keys, after they have competed.

    Args:
        tables: of one database, sorted by id.
        columns: theirs.
        floor: the smallest log odds of a pair.
        weights: of the evidence.
        contains: looks up values if the profiles say nothing about them.
        across: whether the tables are of several databases, and only pairs between these are searched.
    """
    scored = score_all(columns, Mentions(tables), floor=floor, across=across, weights=weights)
    for one in scored:
        one.logit -= _UNDECLARED * (one.right.declared == "no" and one.right.unique != 1.0)
    if contains is not None:
        scored = checked(scored, contains, weights)
    return compete(_joinable(scored, tables), across=across)


def single_and_composite_keys(
    profiles: Sequence[TableProfile], read: Read | None = None, weights: KeyWeights | None = None, **options: Any
) -> tuple[list[KeyPair], list[KeyPair]]:
    """What :func:`single_keys` finds with these options, and what :func:`composites_of` finds then."""
    known = columns_by_database(profiles)
    single = single_keys(profiles, weights=weights, known=known, **options)
    return single, composites_of(profiles, single, read, weights, known=known)


def columns_by_database(profiles: Iterable[TableProfile]) -> list[list[Column]]:
    """The columns of the tables of each database."""
    return [columns_of(group) for group in by_database(sorted(profiles, key=lambda table: table.id))]


def single_keys(
    profiles: Sequence[TableProfile],
    *,
    across_sources: bool = False,
    weights: KeyWeights | None = None,
    contains: Contains | None = None,
    known: Sequence[Sequence[Column]] | None = None,
) -> list[KeyPair]:
    """The pairs of single columns that may be keys by the profiles, even faint ones; see :func:`infer_key_pairs`.

    ``known`` is the result of :func:`columns_by_database`, if the caller has it.
    """
    weights = default_weights() if weights is None else weights
    tables = sorted(profiles, key=lambda table: table.id)
    groups = by_database(tables)
    found: list[KeyPair] = []
    parents: set[tuple[str, ...]] = set()
    for group, columns in zip(groups, known or columns_by_database(tables), strict=True):
        here: list[Candidate] = []
        floor = log_odds(least_score(group), weights.surest)
        if not is_judged_alone(group):
            here = candidates_of(group, columns, floor=floor, weights=weights, contains=contains)
        pairs = schema_keys(group, [key_pair(one, weights.surest) for one in here if one.logit >= floor])
        parents.update((one.left_table, *one.left_columns) for one in pairs if one.score > 0.5 * weights.surest)
        found += with_types(pairs, columns)
    if across_sources and len(groups) > 1:
        floor = log_odds(least_score(tables), weights.surest)
        every = columns_of(tables)
        between = candidates_of(tables, every, floor=floor, weights=weights, contains=contains, across=True)
        found += [key_pair(one, weights.surest) for one in between if one.left.key not in parents]
    return found


def composites_of(
    profiles: Sequence[TableProfile],
    single: Sequence[KeyPair],
    read: Read | None = None,
    weights: KeyWeights | None = None,
    *,
    known: Sequence[Sequence[Column]] | None = None,
) -> list[KeyPair]:
    """The composite keys between tables of one database that no likely single key links.

    Args:
        profiles: the tables.
        single: the result of :func:`single_keys` for these and other tables.
        read, weights: as for :func:`infer_key_pairs`.
        known: as for :func:`single_keys`.
    """
    least = 0.5 * (default_weights() if weights is None else weights).surest
    likely = [key for key in single if key.score > least]
    columns = known or columns_by_database(profiles)
    return [key for each in columns for key in composite_keys(each, likely, read, single)]


def by_database(tables: Sequence[TableProfile]) -> list[list[TableProfile]]:
    """The tables of each database."""
    tables_of: dict[str, list[TableProfile]] = defaultdict(list)
    for table in tables:
        tables_of[table.database].append(table)
    return list(tables_of.values())


def with_told(pairs: Sequence[KeyPair], tables: Sequence[TableProfile], *, declared: bool = True) -> list[KeyPair]:
    """Inferred pairs together with the pairs that the user gave and, with ``declared``, those that the sources declare.

    Given and declared pairs score 1. Pairs that the user
    forbade are left out. If past statements join two tables in another way, the odds of their inferred pairs are
    halved. If a user or a semantic model tells a key of a column, inferred pairs of that column with copies of its
    target get a small chance. Best first.
    """
    given = [*(_declared(tables, given=False) if declared else []), *_declared(tables, given=True)]
    ran = {pair.tables for pair in given if pair.evidence is _RAN}
    inferred = {pair: _never_run(pair) if pair.tables in ran else pair for pair in pairs}
    for pair in given:
        known = inferred.pop(pair, None) or inferred.pop(pair.reversed(), None)
        if known is not None:
            reason = f"{pair.evidence.reason}, {known.evidence.reason.removesuffix(_NEVER)}"
            pair = replace(pair, evidence=replace(known.evidence, origin=pair.evidence.origin, reason=reason, only=()))
        inferred[pair] = pair
    targets = dict(map(_ends, (pair for pair in given if pair.evidence not in (_GIVEN[0], _RAN))))
    allowed = _allowed(_without_detours(inferred.values(), targets), tables)
    return sorted(allowed, key=lambda p: (-p.score, p.left_table, p.left_columns, p.right_table, p.right_columns))


_End = tuple[str, tuple[str, ...]]


def _ends(pair: KeyPair) -> tuple[_End, _End]:
    return (pair.left_table, pair.left_columns), (pair.right_table, pair.right_columns)


def _without_detours(pairs: Collection[KeyPair], targets: Mapping[_End, _End]) -> Collection[KeyPair]:
    """The pairs, with a small chance for those that join a column with a copy of the target that is told for it.

    A copy is what a likely pair joins with the target. The way through the target says the same.
    """
    if not targets:
        return pairs
    linked = {frozenset(_ends(pair)) for pair in pairs if pair.score >= ACCEPTED}

    def is_detour(pair: KeyPair) -> bool:
        left, right = _ends(pair)
        ways = {frozenset((left, targets.get(left, left))), frozenset((targets.get(left, left), right))}
        return pair.evidence.is_guess and left in targets and ways <= linked

    return [replace(pair, score=min(pair.score, _DETOUR)) if is_detour(pair) else pair for pair in pairs]


_DETOUR = probability(-2.0)


def infer_key_pairs(
    profiles: Sequence[TableProfile],
    *,
    declared: bool = True,
    across_sources: bool = False,
    min_score: float = ACCEPTED,
    read: Read | None = None,
    weights: KeyWeights | None = None,
    contains: Contains | None = None,
) -> list[KeyPair]:
    """Find the foreign keys between tables.

    Args:
        profiles: the tables; ids must differ.
        declared: whether the keys that the source declares are used; they score 1 and are marked as declared. Keys that
            the user gave are always used, and keys that the user forbade never.
        across_sources: also look for keys between databases; they need more evidence.
        min_score: leave out pairs with a lower score.
        read: gives columns of a table, by its id; composite keys are then checked against the rows.
        weights: of the evidence; None for tagframe's own.
        contains: looks up values that the profiles do not have, for tables too large to be read; see
            :func:`tagframe.keys.checking.contains_in`.

    Returns:
        Key pairs, best first; the order does not depend on the order of ``profiles``.

    Raises:
        InvalidArgument: two profiles have the same id.
    """
    tables = sorted(profiles, key=lambda table: table.id)
    if len({table.id for table in tables}) < len(tables):
        ids = [table.id for table in tables]
        twice = sorted({name for name in ids if ids.count(name) > 1})
        raise InvalidArgument(f"table ids must differ; more than one table is called {', '.join(map(repr, twice))}")
    found = single_and_composite_keys(tables, read, weights, across_sources=across_sources, contains=contains)
    pairs = with_composites(*found)
    least = max(min_score, _FAINTEST)
    return [pair for pair in with_told(pairs, tables, declared=declared) if pair.score >= least]
