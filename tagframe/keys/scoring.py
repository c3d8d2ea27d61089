"""How surely one column references another: log odds from names, values and structure, and the competition of pairs.

The weights were set by hand and are the same for all databases. What went wrong was looked at on the dev databases of
Spider and BIRD and on those of Spider's training set that ``halves.json`` calls ``fit``; of the others only the totals
of ``tag_bench joins`` were seen, while weights were chosen, too. :data:`SUREST` is a maximum likelihood estimate.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tagframe.keys import names
from tagframe.keys.candidates import SHARE, Mentions, candidate_pairs
from tagframe.keys.containment import MOST, Overlap, log_ratio, overlap
from tagframe.keys.key_columns import Column

PRIOR = -6.0
"""Log odds that a pair of columns is a key, before anything is known of it."""
NAME = 8.0
"""What a name that fits in full adds."""
VALUES = 0.8
"""The weight of the values' log likelihood ratio, which takes them for more independent than they are."""
DANGLING = 15.0
"""What it costs if no value is contained, in proportion, beyond the few percent that dangle anywhere."""
OTHER_SOURCE = -3.0
"""What it costs to come from another database."""
SUREST = 0.95
"""The chance of a pair that has all evidence for it: one in twenty is none (two columns of one name and the same values
that both reference a third). The likeliest value on the dev databases of Spider and BIRD and the ``fit`` half of 70 of
Spider's training databases, where scores are probabilities of log odds times this."""


WEAK = -2.0
"""Log odds below which pairs are wanted that can hardly be keys."""
_CALENDAR = frozenset("date day week month quarter year time timestamp datetime hour".split())
"""A column of these that is unique numbers the rows of its table by when they were."""
_MOST_OF_COUNTED = 6.0
"""No values contained in ids that were counted up from 1 are more telling than this."""
_MOST_COMPANY = 5.0
"""What other columns' references add at most, as a rule."""


_UNLINKED = 3.0
"""What a pair gains that is the only likely one of a table that nothing links."""
_TELLING = 5.0
_AT_MOST = -0.2
"""It becomes likelier than not only where its values are so telling, as log likelihood ratio: two tables that have
nothing to do with each other have a likeliest pair, too, and most ids are contained in others by accident."""
_WHOLE = 0.95
_CLEAR = 1.0
"""Which pairs: so much of the left's values are contained, and no other table's pair comes so near in log odds."""


@dataclass
class Candidate:
    """A pair of columns under consideration.

    Attributes:
        left, right: the referencing and the referenced column.
        match: what the names say.
        contained, covered: share of the left's values that the right holds, and the other way round.
        ratio: log likelihood ratio of the values; None without values.
        logit: log odds that the pair is a key.
        popular: other columns that reference the right one by name.
        similarity: in meaning, where a function for it was given.
    """

    left: Column
    right: Column
    match: names.NameMatch
    contained: Overlap | None
    covered: Overlap | None
    ratio: float | None
    logit: float
    popular: int = 0
    similarity: float | None = None


def probability(logit: float) -> float:
    """The chance that a pair with so much evidence is a key."""
    return SUREST / (1.0 + math.exp(-max(-30.0, min(30.0, logit))))


def evidence_share(score: float) -> float:
    """A pair's chance as a share of the chance of one that has all evidence for it: 1 is the surest, in [0, 1]."""
    return min(1.0, score / SUREST)


def log_odds(score: float) -> float:
    """The evidence behind a chance, the inverse of :func:`probability`; finite for 0, and for 1 as of declared keys."""
    inside = min(1 - 1e-6, max(1e-6, evidence_share(score)))
    return math.log(inside / (1 - inside))


def score_all(
    columns: Sequence[Column],
    mentions: Mentions,
    similarity: names.Similarity | None,
    *,
    floor: float,
    across: bool,
) -> list[Candidate]:
    """Score the candidate pairs within databases or, with ``across``, between them.

    Args:
        columns: of all tables.
        mentions: of the same tables.
        similarity: likeness in meaning of two names, in [0, 1].
        floor: log odds below which nothing is wanted; where it is low, columns that cannot be keys (cities, states)
            are looked at as targets, too.
        across: only pairs of different databases.
    """
    targets = [place for place, column in enumerate(columns) if floor < WEAK or column.may_be_target]
    ends: Counter[int] = Counter(column.run.high for column in columns if column.run)
    pairs = candidate_pairs(columns, targets, mentions)

    table_of = np.array([column.table for column in columns], dtype=np.int64)

    def scored(least: float, only: frozenset[int] | None = None) -> Iterator[Candidate]:
        for place, rights in pairs.items():
            left = columns[place]
            if only is not None and left.table not in only:
                rights = rights[np.isin(table_of[rights], [*only])]
            if not len(rights):
                continue
            meant = mentions.of(left.spelt)
            ends_there = (ends[left.run.high] - 1) / ends.total() if left.run else 0.0
            for right in (columns[other] for other in rights):
                if (left.owner.database != right.owner.database) != across:
                    continue
                elsewhere = max((sure for table, sure in meant if table not in (left.table, right.table)), default=0.0)
                candidate = _score(left, right, elsewhere, ends_there, similarity, floor=least, across=across)
                if candidate is not None:
                    yield candidate

    found = list(scored(floor))
    if across:
        return found
    # Tables that nothing links may gain by that, so that fainter pairs of theirs count.
    linked = {side.table for candidate in found if candidate.logit > 0 for side in (candidate.left, candidate.right)}
    unlinked = frozenset(column.table for column in columns) - linked
    rest = [candidate for candidate in found if not {candidate.left.table, candidate.right.table} & unlinked]
    return [*rest, *scored(floor - _UNLINKED, unlinked)] if unlinked else found


def _score(
    left: Column,
    right: Column,
    named_elsewhere: float,
    ends_there: float,
    similarity: names.Similarity | None,
    *,
    floor: float,
    across: bool,
) -> Candidate | None:
    match = names.match(left.spelt, left.owner.name, right.spelt, right.owner.name)
    if not left.name.entity and match.score and left.unique is not None and left.unique < 1 and right.unique == 1:
        match = names.NameMatch(0.65, f"{match.rule}, which repeats here", "same")
    calendar = match.kind == "same" and right.unique == 1.0 and set(right.name.words) <= _CALENDAR
    if calendar:
        match = replace(match, score=0.5, rule="the same day or time, which is unique there")
    if match.kind == "same" and match.score < 1.0 and right.unique is None and right.profile.position > 0:
        # Neither known to be unique, nor at home in its table, nor first: two references to a third look like this.
        match = replace(match, score=0.6 * match.score)
    same_table = left.owner.id == right.owner.id
    if same_table and not match.score:
        return None
    alike = None
    if similarity is not None and match.score < 0.5 and not same_table:
        alike = similarity(_described(left), _described(right))
    logit = PRIOR + NAME * max(match.score, 0.5 * alike if alike is not None else 0.0)
    logit += left.name.key_word + _as_target(right)
    if not left.name.key_word and not match.score:
        logit -= 2.0
    if named_elsewhere > max(match.score, names.about(left.spelt, right.owner.name)):
        logit -= 3.0 * named_elsewhere
    if left.profile.family in ("real", "boolean", "date"):
        logit += 3.0 if calendar and left.profile.family == "date" else -3.0
    if left.is_surrogate and not (match.kind == "same" and left.name.entity):
        logit -= 6.0
    if same_table:
        logit -= 1.0
    if across:
        logit += OTHER_SOURCE
    counted = right.run is not None and right.run.low <= 10
    if logit + VALUES * (_MOST_OF_COUNTED if counted else MOST) + _MOST_COMPANY * bool(match.score) < floor:
        return None
    contained = _contained(left, right)
    if contained is not None and contained.share < SHARE:
        return None
    if contained is None and (across or not _convinces_alone(left, match) or _lies_outside(left, right)):
        return None
    ratio = None
    if contained is not None:
        ratio = log_ratio(left.profile, right.profile, left.run, right.run, contained, ends_there)
        if across and counted:
            ratio = min(ratio, 0.0)  # every database counts from 1
        logit += VALUES * ratio - DANGLING * max(0.0, 0.97 - contained.share)
    covered = overlap(right.profile.sketch, left.profile.sketch)
    return Candidate(left, right, match, contained, covered, ratio, logit, similarity=alike)


def _contained(left: Column, right: Column) -> Overlap | None:
    found = overlap(left.profile.sketch, right.profile.sketch)
    if found is not None and not found.error:
        return found
    # A run without gaps holds every integer between its ends: no sketch is needed.
    mine, theirs = left.run, right.run
    if mine and theirs and theirs.density == 1.0 and theirs.low <= mine.low and mine.high <= theirs.high:
        return Overlap(1.0, left.profile.distinct or 1, 0.0)
    return found


def _lies_outside(left: Column, right: Column) -> bool:
    """Whether most of the left column's range of integers is outside the right one's: no values are needed for that."""
    mine, theirs = left.run, right.run
    if mine is None or theirs is None:
        return False
    inside = min(mine.high, theirs.high) - max(mine.low, theirs.low) + 1
    return inside < 0.5 * (mine.high - mine.low + 1)


def _convinces_alone(left: Column, match: names.NameMatch) -> bool:
    """Whether the names suffice where there are no values: with a key word, or plainly the name of a thing."""
    return match.score >= 0.55 and (left.name.key_word > 0 or (match.score > 0.6 and not left.name.generic))


def _described(column: Column) -> str:
    return f"{' '.join(names.words(column.owner.name))} {' '.join(column.name.words)}"


def _as_target(column: Column) -> float:
    """How well the column would serve as the referenced side, in log odds."""
    profile, term = column.profile, 0.0
    if column.unique is not None:
        term += 0.5 if column.unique == 1.0 else -2.0 if column.unique > 0.95 else -5.0
        if profile.null_share:
            term -= 2.0 * min(1.0, 5 * profile.null_share)
    if column.own >= 0.55 and column.name.key_word:
        term += 1.0
    elif column.name.key_word < 1.0 and not column.own:
        term -= 1.0
    if profile.position == 0:
        term += 0.5
    if profile.family in ("real", "date", "boolean"):
        term -= 3.0
    return term


def compete(candidates: Sequence[Candidate], *, across: bool = False) -> list[Candidate]:
    """Let pairs compete: a column references one other as a rule, and the one that others reference already.

    Args:
        candidates: all of them.
        across: they are between databases, of which most have nothing to do with each other.
    """
    _prefer_referenced(candidates)
    _doubt_second_names(candidates)
    by_left: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_left[candidate.left.key].append(candidate)
    for group in by_left.values():
        group.sort(key=lambda c: (-c.logit, c.right.owner.id, c.right.profile.position))
        for other in group[1:]:
            other.logit = min(other.logit, 0.0) - 2.0
    kept = [candidate for group in by_left.values() for candidate in group]
    _adopt_orphans(kept)
    if not across:
        _link_the_unlinked(kept)
    best: dict[frozenset[tuple[str, str]], Candidate] = {}
    for candidate in kept:
        both = frozenset((candidate.left.key, candidate.right.key))
        if both not in best or candidate.logit > best[both].logit:
            best[both] = candidate
    return list(best.values())


def _prefer_referenced(candidates: Iterable[Candidate]) -> None:
    """A column that others plainly reference is likelier to be referenced by those that could mean several."""
    referenced: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for candidate in candidates:
        if candidate.logit > 0 and candidate.match.direct:
            referenced[candidate.right.key].add(candidate.left.key)
    for candidate in candidates:
        if candidate.match.score:
            candidate.popular = len(referenced[candidate.right.key] - {candidate.left.key})
            candidate.logit += 1.2 * math.log1p(candidate.popular)


def _doubt_second_names(candidates: Iterable[Candidate]) -> None:
    """``trans.account`` beside ``trans.account_id``: a second column that names the same thing needs a role."""
    keyed = {
        (c.left.owner.id, c.right.key, c.left.name.entity) for c in candidates if c.left.name.key_word and c.match.score
    }
    for candidate in candidates:
        left = candidate.left
        if not left.name.key_word and (left.owner.id, candidate.right.key, left.name.entity) in keyed:
            candidate.logit -= 6.0


def _adopt_orphans(candidates: Sequence[Candidate]) -> None:
    """A table that nothing links, with the very ids of another: one record in two halves, as with cars and their data.

    That two unrelated tables count up to the same number has a chance of about one in that number.
    """
    linked = {side.owner.id for c in candidates if c.logit > 0 for side in (c.left, c.right)}
    for candidate in candidates:
        left, right = candidate.left, candidate.right
        sets = (candidate.contained, candidate.covered)
        if (
            all(share is not None and share.share == 1.0 for share in sets)
            and left.unique == right.unique == 1.0
            and left.name.key_word
            and right.name.key_word
            and not {left.owner.id, right.owner.id} <= linked
        ):
            candidate.logit += math.log(max(1, left.profile.distinct or 1))


def _link_the_unlinked(candidates: Sequence[Candidate]) -> None:
    """Tables of a database are linked, as a rule: the likeliest pair of one that nothing links gains by it.

    Two columns that number the rows of their own tables are no such pair.
    """
    linked = {side.owner.id for c in candidates if c.logit > 0 for side in (c.left, c.right)}
    of_table: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        left, right = candidate.left.owner.id, candidate.right.owner.id
        if left != right:
            for table in {left, right} - linked:
                of_table[table].append(candidate)
    chosen: dict[tuple[tuple[str, str], tuple[str, str]], Candidate] = {}
    for group in of_table.values():
        best = max(group, key=lambda candidate: candidate.logit)
        rivals = [
            c.logit for c in group if {c.left.owner.id, c.right.owner.id} != {best.left.owner.id, best.right.owner.id}
        ]
        if best.logit - max(rivals, default=-99.0) >= _CLEAR:
            # Two roles of one thing ("f1", "f2" of "follows") are as likely.
            near = [c for c in group if c.right.key == best.right.key and c.logit > best.logit - _CLEAR]
            chosen.update({(c.left.key, c.right.key): c for c in near if _is_whole(c)})
    for candidate in chosen.values():
        told_apart = candidate.ratio is not None and candidate.ratio >= _TELLING
        candidate.logit = min(candidate.logit + _UNLINKED, math.inf if told_apart else max(candidate.logit, _AT_MOST))


def _is_whole(candidate: Candidate) -> bool:
    contained, left, right = candidate.contained, candidate.left, candidate.right
    return contained is not None and contained.share >= _WHOLE and right.unique == 1.0 and not left.is_surrogate
