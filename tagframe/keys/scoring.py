"""How surely one column references another: log odds from names, values and structure.

A pair's terms (:mod:`~tagframe.keys.terms`) and their fitted weights give its log odds; then the pairs compete
(:mod:`~tagframe.keys.competition`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tagframe.keys import column_names as names
from tagframe.keys.candidates import SHARE, candidate_pairs
from tagframe.keys.containment import MOST, Overlap, Overlaps, log_ratio, overlaps
from tagframe.keys.conventions import Mentions
from tagframe.keys.key_columns import Column, Facts, Floats
from tagframe.keys.key_pair import is_unnamed
from tagframe.keys.terms import (
    KeyWeights,
    default_weights,
    is_plainly_the_key,
    name_match,
    name_terms,
    value_terms,
    weighted_sum,
)

Positions = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]


class Fits:
    """How well the names of pairs of columns fit.

    Most have nothing in common: their values led to each other, or the name of a table. Words as numbers tell it for
    all pairs at once, so that rules are applied only to pairs whose names have something in common.

    Args:
        columns: all columns.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        known: dict[Hashable, int] = {}

        def numbers(of: Callable[[Column], Hashable]) -> Positions:
            return np.array([known.setdefault(of(column), len(known)) for column in columns])

        self._spelt = numbers(lambda column: column.spelt)
        self._table = numbers(lambda column: column.owner.name)
        self._last = numbers(lambda column: column.name.words[-1:])
        self._ends = {
            part: _Ends([getattr(column.name, part) for column in columns], known) for part in ("words", "entity")
        }
        self._texts = [*known]
        flags = [
            (
                column.own >= 0.55 or is_plainly_the_key(column),
                names.calls(column.spelt, column.owner.name),
                column.own == 0,
                column.name.key_word > 0,
                is_unnamed(column.owner.name) or _numbers_days(column),
                len(column.name.words) == 1 and not column.name.generic,
            )
            for column in columns
        ]
        self._is_key, self._calls, self._is_not_own, self._has_key_word, self._is_special, self._is_word = np.array(
            flags, dtype=bool
        ).T

    def same_words(self, lefts: Positions, rights: Positions) -> _Flags:
        """Whether the names have the same words."""
        every = self._ends["words"].whole
        same: _Flags = every[lefts] == every[rights]
        return same

    def of(self, lefts: Positions, rights: Positions) -> tuple[Floats, list[names.NameMatch]]:
        """How surely each left column's name means the right one's table, in [0, 1], and how well the names fit."""
        about = self._each(names.about, self._spelt[lefts], self._table[rights])
        bare = ~self._has_key_word[lefts]
        means = (about > 0) & self._is_key[rights]
        means |= (about >= 0.8) & bare & self._is_not_own[rights]
        means |= self._calls[rights] & bare
        within = (self._table[lefts] == self._table[rights]) & self._has_key_word[rights]
        words, entity = self._ends["words"], self._ends["entity"]
        common = (
            self.same_words(lefts, rights)
            | words.end_in(lefts, rights)
            | words.end_in(rights, lefts)
            | entity.end_in(lefts, rights)
        )
        one = np.flatnonzero(self._is_word[rights])
        common[one] |= self._each(_ends_in, self._last[lefts[one]], self._last[rights[one]]) > 0
        matches = [names.NO_MATCH] * len(lefts)
        for at in np.flatnonzero(means | within | common | self._is_special[rights]).tolist():
            matches[at] = name_match(self._columns[lefts[at]], self._columns[rights[at]])
        return about, matches

    def _each(self, of: Callable[[Any, Any], float], ones: Positions, others: Positions) -> Floats:
        """A number for each pair of texts, counted once for each distinct pair."""
        count = len(self._texts)
        distinct, which = np.unique(ones * count + others, return_inverse=True)
        values = [of(self._texts[code // count], self._texts[code % count]) for code in distinct.tolist()]
        numbers: Floats = np.array(values, dtype=np.float64)[which]
        return numbers


class _Ends:
    """The ends of tuples of words as numbers."""

    def __init__(self, every: Sequence[tuple[str, ...]], known: dict[Hashable, int]) -> None:
        self._length = np.array([len(words) for words in every])
        most = int(self._length.max(initial=0)) + 1
        self._end = np.full((len(every), most), -1)
        for row, words in enumerate(every):
            for length in range(len(words) + 1):
                self._end[row, length] = known.setdefault(words[len(words) - length :], len(known))
        self.whole = self._end[np.arange(len(every)), self._length]

    def end_in(self, ones: Positions, others: Positions) -> _Flags:
        """Whether the words of each one end in those of the other, which has some."""
        length = self._length[others]
        ends: _Flags = (length > 0) & (self._end[ones, length] == self.whole[others])
        return ends


def _ends_in(last: tuple[str, ...], word: tuple[str, ...]) -> bool:
    return last != word and last[:1] != () and last[0].endswith(word[0])


def _numbers_days(column: Column) -> bool:
    return column.unique == 1.0 and names.CALENDAR.issuperset(column.name.words)


WEAK = -2.0
"""If pairs with lower log odds are wanted, columns that can hardly be keys are included."""
UNLINKED = 3.0
"""The gain of a pair that is the only likely one of an unlinked table."""
_MOST_OF_COUNTED = 6.0
"""The strongest evidence (log likelihood ratio) of values contained in ids that count from 1."""
_AT_ONCE = 100_000
"""So many pairs are scored at once, which bounds the memory."""
_MOST_COMPANY = 5.0
"""The usual limit of the evidence from other columns' references."""


@dataclass(eq=False)
class Candidate:
    """A pair of columns under consideration.

    Attributes:
        left, right: the referencing and the referenced column.
        match: how well the names fit.
        contained, covered: share of the left's values that the right holds, and the reverse.
        ratio: log likelihood ratio of the values; None without values.
        logit: log odds that the pair is a key.
        terms: the terms of the log odds, in the order of :data:`~tagframe.keys.terms.TERMS`.
        popular: other columns that reference the right one by name.
    """

    left: Column
    right: Column
    match: names.NameMatch
    contained: Overlap | None
    covered: Overlap | None
    ratio: float | None
    logit: float
    terms: Floats
    popular: int = 0


def probability(logit: float, surest: float | None = None) -> float:
    """The chance that a pair with these log odds is a key; ``surest`` is the chance of a pair with all evidence."""
    most = default_weights().surest if surest is None else surest
    return most / (1.0 + math.exp(-max(-30.0, min(30.0, logit))))


def log_odds(score: float, surest: float | None = None) -> float:
    """The log odds of a chance, the inverse of :func:`probability`; also finite for 0 and for 1 (declared keys)."""
    inside = min(1 - 1e-6, max(1e-6, score / (default_weights().surest if surest is None else surest)))
    return math.log(inside / (1 - inside))


def score_all(
    columns: Sequence[Column],
    mentions: Mentions,
    *,
    floor: float,
    across: bool,
    weights: KeyWeights,
) -> list[Candidate]:
    """Score the candidate pairs within databases or, with ``across``, between them.

    Args:
        columns: of all tables.
        mentions: of the same tables.
        floor: the smallest log odds of a pair; if it is low, columns that are usually not keys (cities, states) are
            possible targets, too.
        across: only pairs of different databases.
        weights: of the terms.
    """
    targets = [position for position, column in enumerate(columns) if floor < WEAK or column.may_be_target]
    pairs = candidate_pairs(columns, targets, mentions)
    if not pairs:
        return []
    scorer = _Scorer(columns, mentions, across=across, weights=weights)
    lefts = np.repeat(np.array([*pairs]), [len(rights) for rights in pairs.values()])
    lefts, rights = scorer.possible(lefts, np.concatenate([*pairs.values()]))
    scored = scorer.scored(lefts, rights, floor)
    if across:
        return scored
    # Unlinked tables may gain by competition, so their fainter pairs count.
    linked = {side.table for candidate in scored if candidate.logit > 0 for side in (candidate.left, candidate.right)}
    unlinked = {column.table for column in columns} - linked
    rest = [candidate for candidate in scored if not {candidate.left.table, candidate.right.table} & unlinked]
    tables = scorer.facts.table
    again = np.isin(tables[lefts], [*unlinked]) | np.isin(tables[rights], [*unlinked])
    return [*rest, *scorer.scored(lefts[again], rights[again], floor - UNLINKED)]


class _Scorer:
    """The scores of pairs of columns, given by their positions; see :func:`score_all`."""

    def __init__(self, columns: Sequence[Column], mentions: Mentions, *, across: bool, weights: KeyWeights) -> None:
        self._columns, self._across, self._weights = columns, across, weights
        self.facts = Facts.of(columns)
        self._fits = Fits(columns)
        self._sketches = [column.profile.sketch for column in columns]
        self._coded = np.array([_has_codes(column) for column in columns])
        ends: Counter[int] = Counter(column.run.high for column in columns if column.run)
        self._ends = np.array([(ends[c.run.high] - 1) / ends.total() if c.run else 0.0 for c in columns])
        # At most two of the first three tables that a name means are those of the pair.
        mentioned = [[*mentions.of(column.spelt)[:3], (-1, 0.0), (-1, 0.0), (-1, 0.0)][:3] for column in columns]
        self._tables_meant, self._sure = (
            np.array([[one[part] for one in each] for each in mentioned]) for part in (0, 1)
        )

    def possible(self, lefts: Positions, rights: Positions) -> tuple[Positions, Positions]:
        """The pairs without those of the wrong databases and those with saved indexes.

        A saved index is not a reference, and is referenced only by columns with its name.
        """
        index = np.array([column.counts_rows for column in self._columns])
        database = self.facts.database
        is_possible = ((database[lefts] != database[rights]) == self._across) & ~index[lefts]
        is_possible &= ~index[rights] | self._fits.same_words(lefts, rights)
        return lefts[is_possible], rights[is_possible]

    def scored(self, lefts: Positions, rights: Positions, floor: float) -> list[Candidate]:
        """The pairs that may have these log odds at least."""
        blocks = range(0, len(lefts), _AT_ONCE)
        return [
            one for at in blocks for one in self._scored(lefts[at : at + _AT_ONCE], rights[at : at + _AT_ONCE], floor)
        ]

    def _scored(self, lefts: Positions, rights: Positions, floor: float) -> Iterator[Candidate]:
        facts, weights, across = self.facts, self._weights, self._across
        about, matches = self._fits.of(lefts, rights)
        score = np.array([match.score for match in matches])
        chosen = np.flatnonzero((score > 0) | (facts.table[lefts] != facts.table[rights]))
        lefts, rights, about, score = lefts[chosen], rights[chosen], about[chosen], score[chosen]
        matches = [matches[at] for at in chosen]
        left, right = facts.at(lefts), facts.at(rights)
        mentioned = self._tables_meant[lefts]
        elsewhere = (mentioned != left.table[:, None]) & (mentioned != right.table[:, None])
        named_elsewhere = np.where(elsewhere, self._sure[lefts], 0.0).max(axis=1, initial=0.0)
        of_names = name_terms(left, right, matches, about, named_elsewhere, across=across)
        logit = weighted_sum(of_names, weights.of_names)
        counted = right.low <= 10
        most = np.where(counted, weights.most_of_values(_MOST_OF_COUNTED), weights.most_of_values(MOST))
        chosen = np.flatnonzero(logit + most + _MOST_COMPANY * (score > 0) >= floor)
        contained, covered = self._contained(lefts[chosen], rights[chosen])
        stays = np.where(contained.known, contained.share >= SHARE, not across)
        stays &= ~(contained.known & counted[chosen] & self._coded[lefts[chosen]])
        stays &= contained.known | self._convince_alone(lefts[chosen], rights[chosen], score[chosen])
        chosen, contained, covered = chosen[stays], contained.at(stays), covered.at(stays)
        lefts, rights, left, right = lefts[chosen], rights[chosen], left.at(chosen), right.at(chosen)
        ratio = log_ratio(left, right, contained, self._ends[lefts])
        texts = np.flatnonzero(contained.known & (ratio > 0) & (left.family == "text") & (right.family == "text"))
        ratio[texts] = [
            min(ratio[at], 0.0) if _differ_in_case(self._columns[lefts[at]], self._columns[rights[at]]) else ratio[at]
            for at in texts
        ]  # "a" is no "A"
        if across:
            ratio[counted[chosen]] = np.minimum(ratio[counted[chosen]], 0.0)  # every database counts from 1
        of_values = value_terms(left, right, score[chosen], contained, covered, ratio)
        logit = logit[chosen] + weighted_sum(of_values, weights.of_values)
        terms = np.column_stack([*(term[chosen] for term in of_names), *of_values])
        shares = contained.listed(), covered.listed()
        rows = zip(lefts, rights, chosen, *shares, ratio.tolist(), logit.tolist(), terms, strict=True)
        for one, other, at, share_inside, back, of_ratio, odds, each in rows:
            by_values = None if share_inside is None else of_ratio
            yield Candidate(
                self._columns[one], self._columns[other], matches[at], share_inside, back, by_values, odds, each
            )

    def _contained(self, lefts: Positions, rights: Positions) -> tuple[Overlaps, Overlaps]:
        """The share of the left columns' values that the right ones hold, and the reverse."""
        contained, covered = overlaps(self._sketches, lefts, rights)
        left, right = self.facts.at(lefts), self.facts.at(rights)
        # Without values there is no overlap to measure.
        empty = ~(right.distinct > 0) & np.array([sketch is not None for sketch in self._sketches])[rights]
        # A run without gaps holds every integer between its ends: no sketch is needed.
        whole = (right.density == 1.0) & (right.low <= left.low) & (left.high <= right.high)
        whole &= ~(contained.known & (contained.error == 0))
        seen = np.where(left.distinct > 0, left.distinct, 1.0)
        parts = (
            np.where(whole, full, part)
            for full, part in ((1.0, contained.share), (seen, contained.seen), (0.0, contained.error))
        )
        return Overlaps((contained.known | whole) & ~empty, *parts), covered

    def _convince_alone(self, lefts: Positions, rights: Positions, score: Floats) -> npt.NDArray[np.bool_]:
        """Whether names are enough without values: with a key word, or if they are clearly those of a thing.

        They are not if most of the left column's range of integers is outside the right one's, as the ranges alone
        show, or for an empty column of days, which is none of the calendar's keys.
        """
        left, right = self.facts.at(lefts), self.facts.at(rights)
        generic = np.array([column.name.generic for column in self._columns])[lefts]
        is_key = np.array([column.is_natural_key for column in self._columns])[rights]
        convinces = (score >= 0.55) & ((left.key_word > 0) | ((score > 0.6) & (~generic | is_key)))
        inside = np.minimum(left.high, right.high) - np.maximum(left.low, right.low) + 1
        outside = inside < 0.5 * (left.high - left.low + 1)
        empty = (left.distinct == 0) & (left.key_word == 0) & left.ends_in_day
        alone: npt.NDArray[np.bool_] = convinces & ~outside & ~empty
        return alone


_LONG_CODE = 16
"""Characters of a code that no other code equals by accident."""


def _differ_in_case(left: Column, right: Column) -> bool:
    """Whether the texts of two columns are equal only if letter case is ignored, as far as samples show it.

    Addresses and long codes, such as UUIDs, mean the same in either case.
    """
    mine, theirs = ({text for text in column.profile.samples if text} for column in (left, right))
    if mine & theirs or not mine or not theirs:
        return False
    if all("@" in text or (len(text) >= _LONG_CODE and not text.isalpha()) for text in mine | theirs):
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
    codes = [text for text in column.profile.samples if text and text.isalnum()]
    return sum(not text.isalpha() and not text.isdigit() for text in codes) > 1
