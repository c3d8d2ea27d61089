"""How surely one column references another: log odds from names, values and structure.

A pair's terms (:mod:`~tagframe.keys.terms`) and their fitted weights give its log odds; then the pairs compete
(:mod:`~tagframe.keys.competition`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tagframe.keys import column_names as names
from tagframe.keys.candidates import SHARE, candidate_pairs
from tagframe.keys.containment import MOST, Overlap, log_ratio, overlap
from tagframe.keys.key_columns import Column
from tagframe.keys.mentions import Mentions
from tagframe.keys.terms import CALENDAR, KeyWeights, default_weights, name_match, name_terms, value_terms, weighted_sum

WEAK = -2.0
"""If pairs with lower log odds are wanted, columns that can hardly be keys are included."""
UNLINKED = 3.0
"""The gain of a pair that is the only likely one of an unlinked table."""
_MOST_OF_COUNTED = 6.0
"""The strongest evidence (log likelihood ratio) of values contained in ids that count from 1."""
_MOST_COMPANY = 5.0
"""The usual limit of the evidence from other columns' references."""


@dataclass
class Candidate:
    """A pair of columns under consideration.

    Attributes:
        left, right: the referencing and the referenced column.
        match: how well the names fit.
        contained, covered: share of the left's values that the right holds, and the reverse.
        ratio: log likelihood ratio of the values; None without values.
        logit: log odds that the pair is a key.
        terms: the terms of the log odds, as in :data:`~tagframe.keys.terms.TERMS`.
        popular: other columns that reference the right one by name.
        similarity: in meaning, if a function for it was given.
    """

    left: Column
    right: Column
    match: names.NameMatch
    contained: Overlap | None
    covered: Overlap | None
    ratio: float | None
    logit: float
    terms: tuple[float, ...]
    popular: int = 0
    similarity: float | None = None


def probability(logit: float, surest: float | None = None) -> float:
    """The chance that a pair with these log odds is a key; ``surest`` is the chance of a pair with all evidence."""
    most = default_weights().surest if surest is None else surest
    return most / (1.0 + math.exp(-max(-30.0, min(30.0, logit))))


def evidence_share(score: float) -> float:
    """A pair's chance relative to that of a pair with all evidence, in [0, 1]; 1 is the surest."""
    return min(1.0, score / default_weights().surest)


def log_odds(score: float, surest: float | None = None) -> float:
    """The log odds of a chance, the inverse of :func:`probability`; also finite for 0 and for 1 (declared keys)."""
    inside = min(1 - 1e-6, max(1e-6, score / (default_weights().surest if surest is None else surest)))
    return math.log(inside / (1 - inside))


def score_all(
    columns: Sequence[Column],
    mentions: Mentions,
    similarity: names.Similarity | None,
    *,
    floor: float,
    across: bool,
    weights: KeyWeights,
) -> list[Candidate]:
    """Score the candidate pairs within databases or, with ``across``, between them.

    Args:
        columns: of all tables.
        mentions: of the same tables.
        similarity: likeness in meaning of two names, in [0, 1].
        floor: the smallest log odds of a pair; if it is low, columns that are usually not keys (cities, states) are
            possible targets, too.
        across: only pairs of different databases.
        weights: of the terms.
    """
    targets = [position for position, column in enumerate(columns) if floor < WEAK or column.may_be_target]
    ends: Counter[int] = Counter(column.run.high for column in columns if column.run)
    pairs = candidate_pairs(columns, targets, mentions)

    table_of = np.array([column.table for column in columns], dtype=np.int64)

    def scored(least: float, only: frozenset[int] | None = None) -> Iterator[Candidate]:
        for position, rights in pairs.items():
            left = columns[position]
            if only is not None and left.table not in only:
                rights = rights[np.isin(table_of[rights], [*only])]
            if not len(rights):
                continue
            meant = mentions.of(left.spelt)[:3]  # at most two of these are the tables of the pair
            ends_there = (ends[left.run.high] - 1) / ends.total() if left.run else 0.0
            for right in (columns[other] for other in rights):
                if (left.owner.database != right.owner.database) != across:
                    continue
                elsewhere = max((sure for table, sure in meant if table not in (left.table, right.table)), default=0.0)
                candidate = _score(
                    left, right, elsewhere, ends_there, similarity, floor=least, across=across, weights=weights
                )
                if candidate is not None:
                    yield candidate

    found = list(scored(floor))
    if across:
        return found
    # Unlinked tables may gain by competition, so their fainter pairs count.
    linked = {side.table for candidate in found if candidate.logit > 0 for side in (candidate.left, candidate.right)}
    unlinked = frozenset(column.table for column in columns) - linked
    rest = [candidate for candidate in found if not {candidate.left.table, candidate.right.table} & unlinked]
    return [*rest, *scored(floor - UNLINKED, unlinked)] if unlinked else found


def _score(
    left: Column,
    right: Column,
    named_elsewhere: float,
    ends_there: float,
    similarity: names.Similarity | None,
    *,
    floor: float,
    across: bool,
    weights: KeyWeights,
) -> Candidate | None:
    if left.counts_rows or (right.counts_rows and left.name.words != right.name.words):
        return None  # a saved index is not a reference, and is referenced only by columns with its name
    match = name_match(left, right)
    same_table = left.owner.id == right.owner.id
    if same_table and not match.score:
        return None
    alike = None
    if similarity is not None and match.score < 0.5 and not same_table:
        alike = similarity(_described(left), _described(right))
    of_names = name_terms(left, right, match, alike, named_elsewhere, across=across)
    logit = weighted_sum(of_names, weights.of_names)
    counted = right.run is not None and right.run.low <= 10
    most = weights.most_of_values(_MOST_OF_COUNTED if counted else MOST)
    if logit + most + _MOST_COMPANY * bool(match.score) < floor:
        return None
    contained = _contained(left, right)
    if (
        contained is None
        and left.profile.distinct == 0
        and not left.name.key_word
        and {*left.name.words[-1:]} & CALENDAR
    ):
        return None  # an empty column for days is none of the calendar's keys
    if contained is not None and (contained.share < SHARE or (counted and _has_codes(left))):
        return None
    if contained is None and (across or not _convinces_alone(left, match) or _lies_outside(left, right)):
        return None
    ratio = None
    if contained is not None:
        ratio = log_ratio(left.profile, right.profile, left.run, right.run, contained, ends_there)
        if (across and counted) or _differ_in_case(left, right):
            ratio = min(ratio, 0.0)  # every database counts from 1, and "a" is no "A"
    covered = overlap(right.profile.sketch, left.profile.sketch)
    of_values = value_terms(left, right, match, contained, covered, ratio)
    logit += weighted_sum(of_values, weights.of_values)
    terms = of_names + of_values
    return Candidate(left, right, match, contained, covered, ratio, logit, terms, similarity=alike)


def _contained(left: Column, right: Column) -> Overlap | None:
    if not right.profile.distinct and right.profile.sketch is not None:
        return None  # without values there is no overlap to measure
    found = overlap(left.profile.sketch, right.profile.sketch)
    if found is not None and not found.error:
        return found
    # A run without gaps holds every integer between its ends: no sketch is needed.
    mine, theirs = left.run, right.run
    if mine and theirs and theirs.density == 1.0 and theirs.low <= mine.low and mine.high <= theirs.high:
        return Overlap(1.0, left.profile.distinct or 1, 0.0)
    return found


def _differ_in_case(left: Column, right: Column) -> bool:
    """Whether the texts of two columns are equal only if letter case is ignored, as far as samples show it."""
    if not left.profile.family == right.profile.family == "text":
        return False
    mine, theirs = ({text for text in column.profile.samples if text} for column in (left, right))
    if mine & theirs or not mine or not theirs:
        return False
    if {text.casefold() for text in mine} & {text.casefold() for text in theirs}:
        return True
    return (all(map(str.islower, mine)) and all(map(str.isupper, theirs))) or (
        all(map(str.isupper, mine)) and all(map(str.islower, theirs))
    )


def _has_codes(column: Column) -> bool:
    """Whether a column also holds codes such as "00D1", as far as samples show it: no rows are numbered so.

    A single one may be a typing error.
    """
    found = [text for text in column.profile.samples if text and text.isalnum()]
    return sum(not text.isalpha() and not text.isdigit() for text in found) > 1


def _lies_outside(left: Column, right: Column) -> bool:
    """Whether most of the left column's range of integers is outside the right one's; the ranges alone show it."""
    mine, theirs = left.run, right.run
    if mine is None or theirs is None:
        return False
    inside = min(mine.high, theirs.high) - max(mine.low, theirs.low) + 1
    return inside < 0.5 * (mine.high - mine.low + 1)


def _convinces_alone(left: Column, match: names.NameMatch) -> bool:
    """Whether the names are enough without values: with a key word, or if the name is clearly that of a thing."""
    return match.score >= 0.55 and (left.name.key_word > 0 or (match.score > 0.6 and not left.name.generic))


def _described(column: Column) -> str:
    return f"{' '.join(names.words(column.owner.name))} {' '.join(column.name.words)}"
