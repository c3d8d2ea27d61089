"""Pairs of columns compete: a column references one other as a rule; the likeliest key of a table without one gains."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from tagframe.keys import column_names as names
from tagframe.keys.scoring import UNLINKED, Candidate
from tagframe.keys.terms import FAINT_NAME

_TELLING = 5.0
_AT_MOST = -0.2
"""The likeliest pair of a table that nothing links becomes likelier than not only where its values are so telling, as
log likelihood ratio: two tables that have nothing to do with each other have a likeliest pair, too, and most ids are
contained in others by accident."""
_SAID = 0.55
"""Names that fit so well need no telling values: it is enough that all are found."""
_NEARLY = -1.5
"""References by name that are so likely speak for each other: all of them may be short of a little."""
_WHOLE = 0.95
_MANY = 10
"""Values of a column whose name says nothing from which on they speak for themselves."""
_SURROGATE = "sk"
"""The word that says of a column that it is a surrogate key."""
_OWN = 0.55
"""A column's name is that of its own table's key from here on."""
_AS_LIKELY = 4.0
"""Two columns of a table, one of which counts its rows, are both possible where their log odds differ by less."""
_HARDLY = 0.05
"""What hardly less of the left's values are contained is no less contained."""
_CLEAR = 1.0
"""Which pairs: so much of the left's values are contained, and no other table's pair comes so near in log odds."""


def compete(candidates: Sequence[Candidate], *, across: bool = False) -> list[Candidate]:
    """Let pairs compete: a column references one other as a rule, and the one that others reference already.

    Args:
        candidates: all of them.
        across: they are between databases, of which most have nothing to do with each other.
    """
    _prefer_referenced(candidates)
    _doubt_second_names(candidates)
    _see_through_surrogates(candidates)
    by_left: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_left[candidate.left.key].append(candidate)
    for group in by_left.values():
        group.sort(key=lambda c: (-c.logit, c.right.owner.id, c.right.profile.position))
        for other in group[1:]:
            if not _is_rival(other, group[0]):
                other.logit = min(other.logit, 0.0) - 2.0
    kept = [candidate for group in by_left.values() for candidate in group]
    _adopt_orphans(kept)
    if not across:
        _link_the_unlinked(kept)
    best: dict[frozenset[tuple[str, str]], Candidate] = {}
    for candidate in kept:
        both = frozenset((candidate.left.key, candidate.right.key))
        if both not in best or _reads(candidate) > _reads(best[both]):
            best[both] = candidate
    return list(best.values())


def _see_through_surrogates(candidates: Sequence[Candidate]) -> None:
    """A table that counts its rows beside the key that others have: these refer to the column of their own name.

    It is to hold what they hold. That it repeats is no reason against it: it may be one of several columns of a key, or
    a key of which there are versions, and a join that repeats rows is said or refused, where a wrong one is not. Where
    no name tells, either may be meant, unless one says of itself that it is a surrogate.
    """
    between: dict[tuple[tuple[str, str], str], list[Candidate]] = defaultdict(list)
    known: set[tuple[str, str]] = set()
    for candidate in candidates:
        between[candidate.left.key, candidate.right.owner.id].append(candidate)
        if candidate.right.is_versioned and _points_to(candidate) and _is_whole_of_left(candidate):
            known.add((candidate.left.owner.id, candidate.right.owner.id))
    for group in between.values():
        # Rows may be gone on either side: what a column that counts rows holds of them is no more than chance.
        met = max((c.contained.share for c in group if c.contained and c.right.is_counted), default=1.0)
        least = min(_WHOLE, met - _HARDLY)
        whole = [c for c in group if c.contained is None or c.contained.share >= least]
        named = [c for c in whole if _points_to(c)]
        counted = [c for c in group if c.right.is_counted and c not in named]
        versions = [c for c in whole if c.right.is_versioned and _may_be_the_key(c)]
        wrong = counted if named or versions else [c for c in counted if _is_surrogate_of_others(c)]
        keys = named or versions or [c for c in whole if _may_be_the_key(c) and c not in wrong]
        if not keys:
            # Another column holds what the versions are of.
            wrong += [c for c in counted if (c.left.owner.id, c.right.owner.id) in known and not c.match.direct]
            for candidate in wrong:
                candidate.logit = min(candidate.logit, 0.0) - 2.0
        if not counted or not keys:
            continue
        keys.sort(key=lambda candidate: -candidate.logit)
        # Where nothing is wrong by name the likeliest stays so, and the next is raised beside it.
        best = keys[0] if wrong or len(keys) == 1 else keys[1]
        best.logit = max(best.logit, *(candidate.logit for candidate in counted))
        for candidate in wrong:
            candidate.logit = min(candidate.logit, 0.0) - 2.0


def _points_to(candidate: Candidate) -> bool:
    """Whether the left column's name ends in the right one's: it is called as that is, or a role of it."""
    left, right = candidate.left.name, candidate.right.name
    return bool(left.entity and right.entity) and left.words[-len(right.words) :] == right.words


def _may_be_the_key(candidate: Candidate) -> bool:
    """Whether the right column is what others know the rows of its table by, if it is not the one that counts them."""
    right = candidate.right
    if candidate.contained is None:
        return False
    if right.name.key_word and right.own >= _OWN:
        return True
    # What stands first beside the count is no measure, whatever it is called.
    says_which = right.profile.position <= 1 or not names.is_measure(right.spelt)
    return right.unique == 1.0 and right.profile.family == "integer" and says_which


def _is_surrogate_of_others(candidate: Candidate) -> bool:
    """Whether the right column says that it is a surrogate key, and the left one not that it holds such."""
    return _SURROGATE in candidate.right.name.words and _SURROGATE not in candidate.left.name.words


def _is_whole_of_left(candidate: Candidate) -> bool:
    return candidate.contained is None or candidate.contained.share >= _WHOLE


def _is_rival(other: Candidate, best: Candidate) -> bool:
    """Whether a column may as well refer to another one of the same table, where one of the two counts the rows."""
    return (
        other.right.owner.id == best.right.owner.id
        and other.logit > max(0.0, best.logit - _AS_LIKELY)
        and (other.right.is_counted or best.right.is_counted)
        and not _points_to(best)
        and other.contained is not None
        and _is_whole_of_left(other)
    )


def _reads(candidate: Candidate) -> tuple[bool, float]:
    """Which way round a pair is read: what hardly repeats is referenced, though some values of the others dangle."""
    return candidate.logit > 0 and candidate.right.may_be_target, candidate.logit


def _prefer_referenced(candidates: Iterable[Candidate]) -> None:
    """A column that others plainly reference is likelier to be referenced by those that could mean several."""
    referenced: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for candidate in candidates:
        if candidate.logit > _NEARLY and candidate.match.direct:
            referenced[candidate.right.key].add(candidate.left.key)
    for candidate in candidates:
        numbers_rows = candidate.left.is_surrogate and not candidate.left.name.entity  # what "id" is in every table
        if candidate.match.score and not numbers_rows:
            candidate.popular = len(referenced[candidate.right.key] - {candidate.left.key})
            candidate.logit += 1.2 * math.log1p(candidate.popular)


def _doubt_second_names(candidates: Iterable[Candidate]) -> None:
    """``trans.account`` beside ``trans.account_id``: a second column that names the same thing needs a role.

    So does the number of the table's own rows beside it: ``player.player_id`` beside ``player.person_id``.
    """
    keyed = {
        (c.left.owner.id, c.right.key, c.left.name.entity) for c in candidates if c.left.name.key_word and c.match.score
    }
    own = {(c.left.owner.id, c.right.key) for c in candidates if not c.left.is_surrogate and c.match.direct}
    for candidate in candidates:
        left = candidate.left
        if left.is_surrogate and not candidate.match.direct and (left.owner.id, candidate.right.key) in own:
            candidate.logit -= 6.0
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
            and not names.mean_unlike(left.spelt, right.spelt)
            and not {left.owner.id, right.owner.id} <= linked
        ):
            rarely = math.log(max(1, left.profile.distinct or 1))
            candidate.logit += rarely
            candidate.ratio = rarely if candidate.ratio is None else candidate.ratio + rarely


def _link_the_unlinked(candidates: Sequence[Candidate]) -> None:
    """Tables of a database are linked, as a rule: the likeliest pair of one that nothing links gains by it.

    Two columns that number the rows of their own tables are no such pair, unless a name says so.
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
        tells = candidate.match.score >= _SAID or (candidate.ratio is not None and candidate.ratio >= _TELLING)
        told_apart = tells and _may_be_opaque(candidate)
        candidate.logit = min(candidate.logit + UNLINKED, math.inf if told_apart else max(candidate.logit, _AT_MOST))


def _may_be_opaque(candidate: Candidate) -> bool:
    """Whether the names at least say nothing against the pair: that it is a number of something, or of other things."""
    left, right = candidate.left, candidate.right
    if _is_surrogate_of_others(candidate):
        return False
    if candidate.match.score >= FAINT_NAME or candidate.similarity is not None:
        return True
    if names.mean_unlike(left.spelt, right.spelt):
        return False
    many = (left.profile.distinct or 0) >= _MANY
    if left.profile.family == right.profile.family == "text":
        return many
    if names.is_measure(left.spelt):
        return False
    key_words = (left.name.key_word > 0) + (right.name.key_word > 0)
    return key_words == 2 or (key_words == 1 and many)


def _is_whole(candidate: Candidate) -> bool:
    # The number of a table's own rows is another's where it is called so: that of supplier addresses among addresses.
    is_other = not candidate.left.is_surrogate or candidate.match.score >= _SAID
    return bool(candidate.contained and candidate.right.unique == 1.0 and is_other and _is_whole_of_left(candidate))
