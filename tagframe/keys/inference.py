"""Foreign keys between tables, from data and names.

Neither suffices alone: most ids are 1 … n, so that data without names recalls a fifth of the keys, and names without
data miss every column that is called by its role. Each candidate pair of columns gets a log-odds score from both
(:mod:`~tagframe.keys.containment`, :mod:`~tagframe.keys.column_names`); then the pairs compete, since a column
references one table as a rule, and a table is referenced by one column as a rule.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tagframe.corpus.profile import TableProfile
from tagframe.engines.base import ForeignKey
from tagframe.errors import InvalidArgument
from tagframe.keys.candidates import Mentions
from tagframe.keys.checking import Contains, checked
from tagframe.keys.column_names import Similarity
from tagframe.keys.competition import compete
from tagframe.keys.composite import CONTAINED, Read, composite_keys
from tagframe.keys.key_columns import Column, columns_of, unjoined_columns
from tagframe.keys.key_pair import Evidence, KeyPair
from tagframe.keys.scoring import Candidate, log_odds, probability, score_all
from tagframe.keys.terms import KeyWeights, default_weights
from tagframe.keys.unions import infer_unions

ACCEPTED = 0.5
"""Key pairs that score below are not returned unless asked for."""
LARGE = 500
"""Tables from which only pairs are looked for that may well be keys.

Among a few hundred tables faint pairs help to connect what nothing else does; among thousands they are accidents, and
every column would be a candidate for every other."""
_WIDE = 5_000
"""Columns from which a database is large, however few its tables."""
MANY = 800
"""Columns from which the very faintest pairs are left out: of fifty tables there are ten thousand, one in a thousand of
them a key, and a question would read them all."""
_FAINT, FAINTER, _FAINTEST = 0.2, 0.005, 1e-4
"""The least score of a pair in a large database, in one of many columns, and in any."""


def least_score(tables: Sequence[TableProfile]) -> float:
    """Pairs of these tables are not looked for that score less. How deep a look goes hangs on how many they are alone,
    so that whoever asks for fewer pairs is given the same ones."""
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
    if candidate.similarity is not None and candidate.similarity >= 0.5:
        parts.append(f"names alike in meaning ({candidate.similarity:.2f})")
    if candidate.popular:
        parts.append(f"{candidate.popular} more reference it")
    return ", ".join(parts)


def _key_pair(candidate: Candidate, surest: float) -> KeyPair:
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
        similarity=candidate.similarity,
        referenced_by=candidate.popular,
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
    """The candidates without those between tables of one shape, whose rows are of one kind but not the same."""
    shape = {table: number for number, group in enumerate(infer_unions(tables)) for table in group.tables}
    return [
        candidate
        for candidate in candidates
        if (left := candidate.left.owner.id) == (right := candidate.right.owner.id)
        or shape.get(left, -1) != shape.get(right, -2)
    ]


def with_composites(single: Sequence[KeyPair], composite: Sequence[KeyPair]) -> list[KeyPair]:
    """Both, without those of the single ones that are part of a composite of the same tables, and no key themselves."""
    parts = {
        frozenset(((key.left_table, mine), (key.right_table, theirs)))
        for key in composite
        for mine, theirs in zip(key.left_columns, key.right_columns, strict=True)
    }

    def is_part(key: KeyPair) -> bool:
        ends = frozenset(((key.left_table, key.left_columns[0]), (key.right_table, key.right_columns[0])))
        found = key.evidence
        is_key = found.uniqueness == 1.0 and (found.contained is None or found.contained >= CONTAINED)
        return ends in parts and not is_key

    return [*(key for key in single if not is_part(key)), *composite]


def _declared(tables: Sequence[TableProfile], *, given: bool) -> list[KeyPair]:
    """The keys that the sources declare, or with ``given`` those that the user gave."""
    by_name = {(table.database, table.name.casefold()): table for table in tables}
    found = []
    for table in tables:
        for key in table.foreign_keys:
            sides = _sides(table, key, by_name) if key.given == given else None
            if sides is not None:
                found.append(KeyPair(*sides, 1.0, _TOLD[key.given + key.ran]))
    return found


_TOLD = (
    Evidence(origin="declared", name=1.0, reason="declared by the source"),
    Evidence(origin="given", name=1.0, reason="given by the user"),
    _RAN := Evidence(origin="given", name=1.0, reason="joined so by statements that were run"),
)
_NEVER = ", never joined so by statements that were run"


def was_only_run(pair: KeyPair) -> bool:
    """Whether nothing but statements that were run says that a pair is a key: nobody vouches for these."""
    return pair.evidence.reason == _RAN.reason


def _never_run(pair: KeyPair) -> KeyPair:
    reason = f"{pair.evidence.reason}{_NEVER}"
    return replace(pair, score=pair.score / (2 - pair.score), evidence=replace(pair.evidence, reason=reason))


def given_keys(tables: Sequence[TableProfile]) -> list[KeyPair]:
    """The keys that the user gave, and has not forbidden since; ``infer_key_pairs`` has those of its tables too."""
    return _allowed(_declared(tables, given=True), tables)


def _allowed(pairs: Iterable[KeyPair], tables: Sequence[TableProfile]) -> list[KeyPair]:
    """The pairs but for those that the user forbade, and those of columns that nothing joins on."""
    forbidden = _forbidden(tables)
    unjoined = {(table.id, column) for table in tables for column in unjoined_columns(table)}
    return [
        pair
        for pair in pairs
        if pair not in forbidden
        and not (
            unjoined
            and unjoined
            & {*((pair.left_table, name) for name in pair.left_columns),
               *((pair.right_table, name) for name in pair.right_columns)}
        )
    ]  # fmt: skip


def _forbidden(tables: Sequence[TableProfile]) -> set[KeyPair]:
    """What the user says is no key, both ways round."""
    by_name = {(table.database, table.name.casefold()): table for table in tables}
    sides = [_sides(table, key, by_name) for table in tables for key in table.forbidden_keys]
    pairs = [KeyPair(*ends) for ends in sides if ends is not None]
    return {*pairs, *(pair.reversed() for pair in pairs)}


def _sides(
    table: TableProfile, key: ForeignKey, by_name: Mapping[tuple[str, str], TableProfile]
) -> tuple[str, tuple[str, ...], str, tuple[str, ...]] | None:
    """Table id and columns of both sides as the profiles spell them; None where one of them is not there."""
    other = by_name.get((key.other_database or table.database, key.other_table.casefold()))
    if other is None or len(key.columns) != len(key.other_columns):
        return None
    mine = {column.name.casefold(): column.name for column in table.columns}
    theirs = {column.name.casefold(): column.name for column in other.columns}
    left = tuple(mine.get(name.casefold(), "") for name in key.columns)
    right = tuple(theirs.get(name.casefold(), "") for name in key.other_columns)
    return (table.id, left, other.id, right) if all(left) and all(right) else None


def _best_first(pairs: Iterable[KeyPair]) -> list[KeyPair]:
    return sorted(pairs, key=lambda p: (-p.score, p.left_table, p.left_columns, p.right_table, p.right_columns))


def candidates_of(
    tables: Sequence[TableProfile],
    columns: Sequence[Column],
    similarity: Similarity | None,
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
        similarity: likeness in meaning of two names, in [0, 1].
        floor: log odds below which nothing is wanted.
        weights: of what speaks for a pair.
        contains: looks up values of which the profiles say nothing.
        across: the tables are of several databases, and only pairs between these are looked for.
    """
    scored = score_all(columns, Mentions(tables), similarity, floor=floor, across=across, weights=weights)
    if contains is not None:
        scored = checked(scored, contains, weights)
    return compete(scored if across else _joinable(scored, tables), across=across)


def single_keys(
    profiles: Sequence[TableProfile],
    *,
    across_sources: bool = False,
    similarity: Similarity | None = None,
    weights: KeyWeights | None = None,
    contains: Contains | None = None,
) -> list[KeyPair]:
    """The pairs of single columns that may be keys, however faint, as profiles say; see :func:`infer_key_pairs`."""
    weights = default_weights() if weights is None else weights
    tables = sorted(profiles, key=lambda table: table.id)
    groups = _by_database(tables)
    found: list[Candidate] = []
    for group in groups:
        floor = log_odds(least_score(group), weights.surest)
        columns = columns_of(group)
        here = candidates_of(group, columns, similarity, floor=floor, weights=weights, contains=contains)
        found += [candidate for candidate in here if candidate.logit >= floor]
    if across_sources and len(groups) > 1:
        parents = {candidate.left.key for candidate in found if candidate.logit > 0}
        floor = log_odds(least_score(tables), weights.surest)
        columns = columns_of(tables)
        between = candidates_of(
            tables, columns, similarity, floor=floor, weights=weights, contains=contains, across=True
        )
        found += [candidate for candidate in between if candidate.left.key not in parents]
    return [_key_pair(candidate, weights.surest) for candidate in found]


def composites_of(
    profiles: Sequence[TableProfile],
    single: Sequence[KeyPair],
    read: Read | None = None,
    weights: KeyWeights | None = None,
) -> list[KeyPair]:
    """The composite keys between tables of one database that no likely single key links.

    Args:
        profiles: the tables.
        single: what :func:`single_keys` gave of them, and of others.
        read, weights: as for :func:`infer_key_pairs`.
    """
    likely = 0.5 * (default_weights() if weights is None else weights).surest
    known = [key for key in single if key.score > likely]
    tables = sorted(profiles, key=lambda table: table.id)
    return [key for group in _by_database(tables) for key in composite_keys(columns_of(group), known, read)]


def _by_database(tables: Sequence[TableProfile]) -> list[list[TableProfile]]:
    found: dict[str, list[TableProfile]] = defaultdict(list)
    for table in tables:
        found[table.database].append(table)
    return list(found.values())


def with_told(pairs: Sequence[KeyPair], tables: Sequence[TableProfile], *, declared: bool = True) -> list[KeyPair]:
    """Inferred pairs with those that the user gave and, with ``declared``, those that the sources declare: these score
    1. Those that the user forbade are left out, and those of tables that statements join otherwise are half as likely
    (their odds). Best first."""
    told = _declared(tables, given=True)
    ran = {pair.tables for pair in told if pair.evidence is _RAN}
    found = {pair: _never_run(pair) if pair.tables in ran else pair for pair in pairs}
    for pair in [*(_declared(tables, given=False) if declared else []), *told]:
        known = found.pop(pair, None) or found.pop(pair.reversed(), None)
        if known is not None:
            reason = f"{pair.evidence.reason}, {known.evidence.reason.removesuffix(_NEVER)}"
            pair = replace(pair, evidence=replace(known.evidence, origin=pair.evidence.origin, reason=reason))
        found[pair] = pair
    return _best_first(_allowed(found.values(), tables))


def infer_key_pairs(
    profiles: Sequence[TableProfile],
    *,
    declared: bool = True,
    across_sources: bool = False,
    similarity: Similarity | None = None,
    min_score: float = ACCEPTED,
    read: Read | None = None,
    weights: KeyWeights | None = None,
    contains: Contains | None = None,
) -> list[KeyPair]:
    """Find the foreign keys between tables.

    Args:
        profiles: the tables; ids must differ.
        declared: whether the keys that the source declares are used; they score 1 and say so. Those that the user gave
            are used always, and those that the user forbade never.
        across_sources: also look for keys between databases, which takes more evidence.
        similarity: likeness in meaning of two names, in [0, 1].
        min_score: leave out what scores below.
        read: gives columns of a table, by its id: composite keys are then checked against the rows.
        weights: of what speaks for a pair; those that tagframe brings along where None.
        contains: looks up values of which the profiles say nothing, where tables are too large to be read; see
            :func:`tagframe.keys.checking.contains_in`.

    Returns:
        Key pairs, best first; the order does not depend on the order of ``profiles``.

    Raises:
        InvalidArgument: two profiles have one id.
    """
    tables = sorted(profiles, key=lambda table: table.id)
    if len({table.id for table in tables}) < len(tables):
        ids = [table.id for table in tables]
        twice = sorted({name for name in ids if ids.count(name) > 1})
        raise InvalidArgument(f"table ids must differ; more than one table is called {', '.join(map(repr, twice))}")
    single = single_keys(
        tables, across_sources=across_sources, similarity=similarity, weights=weights, contains=contains
    )
    pairs = with_composites(single, composites_of(tables, single, read, weights))
    least = max(min_score, _FAINTEST)
    return with_told([pair for pair in pairs if pair.score >= least], tables, declared=declared)
