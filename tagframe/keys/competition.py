"""Competition between pairs: a column usually references one other; the likeliest key of an unlinked table gains."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from tagframe.keys import column_names as names
from tagframe.keys.key_columns import MAX_GAPPED_DENSITY, Column, holds_long_numbers, is_code
from tagframe.keys.scoring import UNLINKED, Candidate
from tagframe.keys.terms import CALENDAR, FAINT_NAME

_MIN_TELLING_RATIO = 5.0
"""The evidence of values (log likelihood ratio) that lifts the likeliest pair of an unlinked table above 50%. Unrelated
tables have a likeliest pair, too, and most ids are contained in others by accident."""
_MAX_DOUBTED_LOGIT = -0.2
"""Without this evidence, the log odds of such a pair end here."""
_MIN_NAME_SCORE = 0.55
"""If names fit this well, the values need no evidence of their own: it is enough that all are found."""
_MIN_REFERENCE_LOGIT = -1.5
"""References by name that are this likely support each other, even if each lacks a little evidence."""
_MIN_PLAIN_NAME_SCORE = 0.75
"""From this score on, a column's name means a table, and a name that does not is no other role of it."""
_MIN_CONTAINED_SHARE = 0.95
_MIN_DISTINCT = 10
"""With at least this many values, a column is judged by its values although its name says nothing."""
_SURROGATE_WORD = "sk"
"""The word that marks a column as a surrogate key."""
_MIN_OWN_NAME_SCORE = 0.55
"""From this score on, a column's name is that of its own table's key."""
_MAX_LOGIT_GAP = 4.0
"""If one of two columns numbers the rows of their table, both are possible if their log odds differ by less."""
_SHARE_TOLERANCE = 0.05
"""Differences below this in the contained share of the left's values do not count."""
_MIN_SUBSET_RATIO = 2.3
"""Values that match by accident one time in ten, relative to those of a key."""
_MIN_CLEAR_MARGIN = 1.0
"""The likeliest pair of an unlinked table is raised if no other table's pair comes this near in log odds."""

_FOUND_CODE_LOGIT, _FOUND_TEXT_LOGIT = 1.5, 0.5
"""The log odds of a pair whose codes, or other texts, are found in a unique column, if no name says so."""
_SECOND_LOGIT = 1.0
"""So much less likely are further columns that have the values: firms, and those of them that produce."""
_MIN_FOUND_SHARE = 0.5
"""Codes of which fewer are found join two tables, but few of their rows."""


def compete(candidates: Sequence[Candidate], *, across: bool = False) -> list[Candidate]:
    """Let pairs compete: a column usually references one other column, and prefers one that others reference.

    Args:
        candidates: all of them.
        across: whether they are between databases, most of which are unrelated.
    """
    if not across:
        _prefer_referenced(candidates)  # unrelated databases name their columns alike, too
    _doubt_second_names(candidates)
    doubted = _see_through_surrogates(candidates)
    roles = _share_roles(candidates)
    by_left: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_left[candidate.left.key].append(candidate)
    for group in by_left.values():
        _doubt_shared_names(group)
        group.sort(key=lambda c: (-c.logit, c.right.owner.id, c.right.profile.position))
        for other in group[1:]:
            if not _is_rival(other, group[0]):
                other.logit = min(other.logit, 0.0) - 2.0
    competed = [candidate for group in by_left.values() for candidate in group]
    _adopt_orphans(competed)
    if not across:
        _link_the_unlinked(competed)
    for group in roles:
        _level(group)
    for candidate in doubted:
        candidate.logit = min(candidate.logit, _MAX_DOUBTED_LOGIT)
    if not across:
        _accept_found(by_left.values())
    best: dict[frozenset[tuple[str, str]], Candidate] = {}
    for candidate in competed:
        both = frozenset((candidate.left.key, candidate.right.key))
        if both not in best or _reads(candidate) > _reads(best[both]):
            best[both] = candidate
    return list(best.values())


def _doubt_shared_names(group: Sequence[Candidate]) -> None:
    """Lower several targets that have the column's name and are no table's own key: all may refer to another one."""
    shared = [
        c for c in group if c.match.kind == "same" and c.right.own < _MIN_OWN_NAME_SCORE and c.right.unique is None
    ]
    if len(shared) > 1:
        for candidate in shared:
            candidate.logit = min(candidate.logit, 0.0) - 2.0


def _share_roles(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Give the columns of a table that fit the same key alike the same chance, and return them in groups.

    They are roles: buyer and seller of an order, both users. Which name is better known is no evidence for one of them.
    """
    best_of: dict[tuple[str, tuple[str, str]], Candidate] = {}
    surest: dict[tuple[str, str], float] = {}
    for candidate in candidates:
        role = candidate.left.owner.id, candidate.right.key
        if role not in best_of or candidate.logit > best_of[role].logit:
            best_of[role] = candidate
        surest[candidate.left.key] = max(surest.get(candidate.left.key, candidate.logit), candidate.logit)
    groups: dict[tuple[str, tuple[str, str]], list[Candidate]] = {}
    for candidate in candidates:
        role = candidate.left.owner.id, candidate.right.key
        best = best_of[role]
        elsewhere = surest[candidate.left.key] > candidate.logit + _MIN_CLEAR_MARGIN
        if candidate is not best and not elsewhere and _are_roles(candidate, best):
            candidate.logit = best.logit
            groups.setdefault(role, [best]).append(candidate)
    return [*groups.values()]


def _level(group: Sequence[Candidate]) -> None:
    """Give roles of a key the chance of the surest one; where no name is plain, also its name's support."""
    best = max(group, key=lambda candidate: (candidate.match.score, candidate.logit))
    surest = max(candidate.logit for candidate in group)
    for candidate in group:
        candidate.logit = surest
        if candidate.match.score < best.match.score < _MIN_NAME_SCORE:
            rule = f"fits as {' '.join(best.left.name.words)} does"
            candidate.match = names.NameMatch(best.match.score, rule, best.match.kind)


def _are_roles(other: Candidate, best: Candidate) -> bool:
    """Whether two columns fit the same key alike, so that a reader could not say which of the two is the key."""
    mine, theirs = other.left, best.left
    contained, most = other.contained, best.contained
    if mine.owner.id == best.right.owner.id or mine.profile.family != theirs.profile.family or not (contained and most):
        return False
    if (mine.unique == 1.0) != (theirs.unique == 1.0):
        return False  # one of the two numbers the rows of its table
    if (
        contained.share < min(_MIN_CONTAINED_SHARE, most.share - _SHARE_TOLERANCE)
        or _names_no_thing(mine)
        or _names_no_thing(theirs)
    ):
        return False
    if other.ratio is not None and other.ratio >= _MIN_TELLING_RATIO:
        return True  # values that are not found by accident
    if names.is_role(mine.spelt):
        return True
    # Small numbers are found everywhere, so the names must be of one kind, and as many rows must be referenced.
    as_many = 2 * (mine.profile.distinct or 0) >= (theirs.profile.distinct or 0)
    is_named = (
        best.match.score >= _MIN_NAME_SCORE or names.about(theirs.spelt, best.right.owner.name) >= _MIN_PLAIN_NAME_SCORE
    )
    named = not is_named or other.match.score >= FAINT_NAME
    return as_many and named and (mine.name.key_word > 0) == (theirs.name.key_word > 0)


def _names_no_thing(column: Column) -> bool:
    """Whether a column is no reference by its name: an amount, a day, a list, a name, the number of its own row."""
    if column.is_surrogate or column.counts_rows:
        return True
    if column.name.key_word:
        return False
    listed = names.is_plural(column.spelt) and column.profile.family == "integer"
    return listed or column.name.generic or names.is_measure(column.spelt) or bool({*column.name.words} & CALENDAR)


def _see_through_surrogates(candidates: Sequence[Candidate]) -> list[Candidate]:
    """If a table has a surrogate key beside the key that others use, the others refer to the column with their name.

    That column must hold their values. It may repeat: it can be one of several columns of a key, or the key of a table
    with versions. A join that repeats rows is reported or refused, while a wrong join would stay unnoticed. If no name
    decides, either column may be meant, unless one is called a surrogate.

    Returns:
        Pairs to row numbers of versions, although another column has the name and holds some of the values.
    """
    doubted: list[Candidate] = []
    between: dict[tuple[tuple[str, str], str], list[Candidate]] = defaultdict(list)
    known: set[tuple[str, str]] = set()
    for candidate in candidates:
        between[candidate.left.key, candidate.right.owner.id].append(candidate)
        if candidate.right.is_versioned and _points_to(candidate) and _is_whole_of_left(candidate):
            known.add((candidate.left.owner.id, candidate.right.owner.id))
    for group in between.values():
        if not any(c.right.is_counted or c.right.is_versioned for c in group):
            continue
        # Rows may be missing on either side: what a row number contains of them is only chance.
        met = max((c.contained.share for c in group if c.contained and c.right.is_counted), default=1.0)
        least = min(_MIN_CONTAINED_SHARE, met - _SHARE_TOLERANCE)
        whole = [c for c in group if c.contained is None or c.contained.share >= least]
        named = [c for c in whole if _points_to(c)]
        counted = [c for c in group if c.right.is_counted and c not in named]
        versions = [c for c in whole if c.right.is_versioned and _may_be_the_key(c)]
        if any(c.right.is_versioned and _points_to(c) and c not in whole for c in group):
            doubted += counted
        wrong = counted if named or versions else [c for c in counted if _is_surrogate_of_others(c)]
        keys = named or versions or [c for c in whole if _may_be_the_key(c) and c not in wrong]
        if not keys:
            # Another column holds the versioned key.
            wrong += [c for c in counted if (c.left.owner.id, c.right.owner.id) in known and not c.match.direct]
            for candidate in wrong:
                candidate.logit = min(candidate.logit, 0.0) - 2.0
        if not counted or not keys:
            continue
        keys.sort(key=lambda candidate: -candidate.logit)
        # If no name is wrong, the likeliest pair stays first, and the next one is raised beside it.
        best = keys[0] if wrong or len(keys) == 1 else keys[1]
        best.logit = max(best.logit, *(candidate.logit for candidate in counted))
        for candidate in wrong:
            candidate.logit = min(candidate.logit, 0.0) - 2.0
    return doubted


def _points_to(candidate: Candidate) -> bool:
    """Whether the left column's name ends in the right one's: it is the same name, or a role of it."""
    left, right = candidate.left.name, candidate.right.name
    return bool(left.entity and right.entity) and left.words[-len(right.words) :] == right.words


def _may_be_the_key(candidate: Candidate) -> bool:
    """Whether others may refer to the right column, which is not the one that numbers the rows of its table."""
    right = candidate.right
    if candidate.contained is None:
        return False
    if right.name.key_word and right.own >= _MIN_OWN_NAME_SCORE:
        return True
    if names.is_rank(right.spelt) or candidate.left.name.key_word == 1.0 > right.name.key_word > 0:
        return False  # an order of the rows, or a number where an id is named
    # The first column beside the row number is not a measure, whatever its name.
    says_which = right.profile.position <= 1 or not names.is_measure(right.spelt)
    return right.unique == 1.0 and right.profile.family == "integer" and says_which


def _is_surrogate_of_others(candidate: Candidate) -> bool:
    """Whether the name marks the right column as a surrogate key, but not the left one as a reference to one."""
    return _SURROGATE_WORD in candidate.right.name.words and _SURROGATE_WORD not in candidate.left.name.words


def _is_whole_of_left(candidate: Candidate) -> bool:
    return candidate.contained is None or candidate.contained.share >= _MIN_CONTAINED_SHARE


def _is_rival(other: Candidate, best: Candidate) -> bool:
    """Whether a column may also refer to another column of the same table, if one of the two numbers the rows."""
    return (
        other.right.owner.id == best.right.owner.id
        and other.logit > max(0.0, best.logit - _MAX_LOGIT_GAP)
        and (other.right.is_counted or best.right.is_counted)
        and not _points_to(best)
        and not (names.is_rank(other.right.spelt) or (best.match.direct and other.right.name.key_word < 1.0))
        and other.contained is not None
        and _is_whole_of_left(other)
    )


def _reads(candidate: Candidate) -> tuple[bool, float]:
    """The direction of a pair: the column that hardly repeats is referenced, even if some values dangle."""
    return candidate.logit > 0 and candidate.right.may_be_target, candidate.logit


def _prefer_referenced(candidates: Iterable[Candidate]) -> None:
    """Raise pairs to columns that others clearly reference, for columns that could mean several."""
    referenced: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for candidate in candidates:
        if candidate.logit > _MIN_REFERENCE_LOGIT and candidate.match.direct:
            referenced[candidate.right.key].add(candidate.left.key)
    for candidate in candidates:
        numbers_rows = candidate.left.is_surrogate and not candidate.left.name.entity  # such as "id" in every table
        right = candidate.right
        is_first = right.unique is None and right.profile.position == 0
        is_key = right.own >= _MIN_OWN_NAME_SCORE or ((right.unique == 1.0 or is_first) and not right.is_beside_key)
        if candidate.match.score and not numbers_rows and is_key:
            candidate.popular = len(referenced[candidate.right.key] - {candidate.left.key})
            candidate.logit += 1.2 * math.log1p(candidate.popular)


def _doubt_second_names(candidates: Iterable[Candidate]) -> None:
    """Lower a second column for the same thing without a role: ``trans.account`` beside ``trans.account_id``.

    The same holds for the number of the table's own rows: ``player.player_id`` beside ``player.person_id``.
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
    """Link an unlinked table to one with exactly the same ids: one record in two halves, such as cars and their data.

    The chance that two unrelated tables count up to the same number n is about 1 / n.
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
    """Raise the likeliest pair of a table without links: tables of a database are usually linked.

    A pair of columns that both number the rows of their own tables is not raised, unless a name says so.
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
        if best.logit - max(rivals, default=-99.0) >= _MIN_CLEAR_MARGIN:
            # Two roles of one thing ("f1", "f2" of "follows") are equally likely.
            near = [c for c in group if c.right.key == best.right.key and c.logit > best.logit - _MIN_CLEAR_MARGIN]
            chosen.update({(c.left.key, c.right.key): c for c in near if _is_whole(c)})
    for candidate in chosen.values():
        if _is_subset(candidate):
            candidate.logit += UNLINKED
        is_found = candidate.ratio is not None and candidate.ratio >= _MIN_TELLING_RATIO
        is_likely = (is_found or candidate.match.score >= _MIN_NAME_SCORE) and _may_be_opaque(candidate)
        highest = math.inf if is_likely else max(candidate.logit, _MAX_DOUBTED_LOGIT)
        candidate.logit = min(candidate.logit + UNLINKED, highest)


def _accept_found(groups: Iterable[Sequence[Candidate]]) -> None:
    """Accept the pairs of a column whose codes or texts are found in a unique column, whatever the names say.

    Unlike small numbers, they are not found by accident. Of the columns of codes that are found in part in such a
    column, 21 of 22 referred to it in 36 folders of public files; of those whose texts are all found, 9 in 10 join the
    tables.
    """
    for group in groups:
        found = [(odds, candidate) for candidate in group if (odds := _found_logit(candidate))]
        if found and not any(candidate.logit > 0.0 for candidate in group):
            best = max(found, key=lambda one: (one[1].logit, one[1].covered.share if one[1].covered else 0.0))[1]
            for odds, candidate in found:
                candidate.logit = odds if candidate is best else odds - _SECOND_LOGIT


def _found_logit(candidate: Candidate) -> float:
    """The log odds of a pair whose values are in a unique column of another table, and by no accident; else 0."""
    left, right, contained = candidate.left, candidate.right, candidate.contained
    if contained is None or contained.share < _MIN_FOUND_SHARE or left.owner.id == right.owner.id:
        return 0.0
    if right.unique != 1.0 or names.is_measure(left.spelt) or names.is_attribute(left.spelt):
        return 0.0
    if left.profile.family != right.profile.family or (candidate.ratio or 0.0) < _MIN_TELLING_RATIO:
        return 0.0
    if left.profile.family == "text" and not (is_code(left.profile) and is_code(right.profile)):
        return _FOUND_TEXT_LOGIT if contained.share >= _MIN_CONTAINED_SHARE else 0.0
    are_codes = left.profile.family == "text" or all(holds_long_numbers(side.profile) for side in (left, right))
    return _FOUND_CODE_LOGIT if are_codes else 0.0


def _may_be_opaque(candidate: Candidate) -> bool:
    """Whether the names are at least no evidence against the pair: an amount, or a number of other things."""
    left, right = candidate.left, candidate.right
    if _is_surrogate_of_others(candidate):
        return False
    if candidate.match.score >= FAINT_NAME:
        return True
    if names.mean_unlike(left.spelt, right.spelt):
        return False
    many = (left.profile.distinct or 0) >= _MIN_DISTINCT
    if left.profile.family == right.profile.family == "text":
        return many
    if names.is_measure(left.spelt):
        return False
    key_words = (left.name.key_word > 0) + (right.name.key_word > 0)
    return key_words == 2 or (key_words == 1 and many)


def _is_subset(candidate: Candidate) -> bool:
    """Whether a table's own numbers are drawn from another's: museums among attractions. Neither counts its rows, and
    two sets of numbers with gaps do not agree by accident."""
    runs = candidate.left.run, candidate.right.run
    return (
        candidate.left.is_surrogate
        and all(run is not None and run.density < MAX_GAPPED_DENSITY for run in runs)
        and candidate.ratio is not None
        and candidate.ratio >= _MIN_SUBSET_RATIO
        and candidate.right.is_surrogate
    )


def _is_whole(candidate: Candidate) -> bool:
    # The row number of a table may refer to another table if its name fits: supplier addresses among addresses.
    is_other = not candidate.left.is_surrogate or candidate.match.score >= _MIN_NAME_SCORE or _is_subset(candidate)
    return bool(candidate.contained and candidate.right.unique == 1.0 and is_other and _is_whole_of_left(candidate))
