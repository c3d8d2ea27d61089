"""How strong is the evidence if one column's values are found in another?

Most ids are 1, 2, 3, …, n, so "all values of A are in B" holds for half of all pairs of integer columns. The evidence
is a likelihood ratio: the probability of the overlap if A references B, over its probability if it does not.

* Values of a *sparse* column (text, or integers that leave out most of their range) do not match by accident: every
  contained value is evidence.
* Values of a *dense* run of integers do. There only the ends of the runs are evidence. A run of high numbers
  (1001 … 1035) does not match by accident, a run from 1 does. A referencing column usually reaches nearly to the end of
  the run that it refers to, while a count or a rank stays below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tagframe.corpus.profile import Sketch
from tagframe.keys.key_columns import Facts, Floats

_HIT = 0.985
"""The chance that a value of a referencing column has a target; the others dangle."""
_LOOSE = 0.1
"""The share of referencing columns with more dangling values: any share of the values, small shares likelier."""
_LOOSE_HITS = 4.0
"""How much likelier: the first parameter of a beta distribution whose second is 1."""
_VALUES = 40
"""More values than this add no evidence: they are not independent draws."""
MOST = 8.0
"""The strongest evidence of an overlap, for or against: columns may share values for reasons outside the model."""
_SMALL = 100
"""Integers up to this are found in all ids that start at 1, even if these are sparse later on."""
_LOG_RANGE = math.log(1e9)
_YEARS = (1800, 2100)
_AT_ONCE = 1024
"""So many columns are compared with another one at once."""
_SHORT = 1.5
"""The mean length of texts of about one letter."""
_NUMBERS_ALIKE, _TEXTS_ALIKE = 0.3, 0.1
"""The chance that two columns with one value each hold the same value by choice. It falls with the square of the number
of values (90, 91, 92), and only linearly for everyday values: counts, years, A, B, C."""


@dataclass(frozen=True)
class Overlap:
    """How many of a column's distinct values another column holds.

    Attributes:
        share: contained share of the distinct values, in [0, 1].
        seen: the number of distinct values that ``share`` was counted over.
        error: one standard error of ``share``; 0 if it is exact.
    """

    share: float
    seen: int
    error: float


def overlap(column: Sketch | None, other: Sketch | None) -> Overlap | None:
    """The share of ``column``'s distinct values that ``other`` holds, from their sketches; None if they cannot tell.

    Both keep the smallest hashes of the same hash function. Up to the smaller of the two largest kept hashes, both are
    complete; the share among those values is an unbiased estimate of the whole.
    """
    # As `overlaps` counts it, without arrays of pairs: these take a hundred times as long for one pair.
    if column is None or other is None or other.sampled:
        return None
    mine, theirs, exact = column.hashes, other.hashes, column.complete and other.complete
    if not exact:
        cut = [one.hashes for one in (column, other) if not (one.complete or one.sampled)]
        ends = [hashes[-1] for hashes in cut if len(hashes)]
        mine = mine[: np.searchsorted(mine, min(ends), side="right")] if ends else mine
    seen = len(mine)
    if not seen:
        return None
    few, many = sorted((mine, theirs), key=len)
    hits = int((many[np.minimum(np.searchsorted(many, few), len(many) - 1)] == few).sum())
    smooth = (hits + 1) / (seen + 2)
    return Overlap(hits / seen, seen, 0.0 if exact else math.sqrt(smooth * (1 - smooth) / seen))


@dataclass(frozen=True)
class Overlaps:
    """The overlaps of n pairs of columns, as arrays of shape (n,).

    Attributes:
        known: whether there is one; the numbers of the others have no meaning.
        share, seen, error: as those of :class:`Overlap`.
    """

    known: npt.NDArray[np.bool_]
    share: Floats
    seen: Floats
    error: Floats

    @classmethod
    def of(cls, overlaps: Sequence[Overlap | None]) -> Overlaps:
        """Overlaps as arrays; None for those that are not known."""
        numbers = [(one.share, float(one.seen), one.error) if one else (0.0, 0.0, 0.0) for one in overlaps]
        share, seen, error = np.array(numbers).reshape(-1, 3).T
        return cls(np.array([one is not None for one in overlaps], dtype=bool), share, seen, error)

    def at(self, positions: npt.NDArray[Any]) -> Overlaps:
        """Those of some of the pairs."""
        return Overlaps(self.known[positions], self.share[positions], self.seen[positions], self.error[positions])

    def listed(self) -> list[Overlap | None]:
        """Each of them; None for those that are not known."""
        parts = (self.known.tolist(), self.share.tolist(), self.seen.astype(int).tolist(), self.error.tolist())
        return [Overlap(*numbers) if known else None for known, *numbers in zip(*parts, strict=True)]


def overlaps(
    sketches: Sequence[Sketch | None], lefts: npt.NDArray[np.int64], rights: npt.NDArray[np.int64]
) -> tuple[Overlaps, Overlaps]:
    """The overlaps of n pairs of columns in both directions, as for :func:`overlap`.

    Args:
        sketches: of all columns.
        lefts, rights: shape (n,), positions of the pairs' columns.
    """
    none = np.zeros(0, dtype=np.uint64)
    used = np.unique(np.concatenate([lefts, rights]))
    read = {at: none if (one := sketches[at]) is None else one.hashes for at in used.tolist()}
    size, start, end = (np.zeros(len(sketches), dtype=kind) for kind in (np.int64, np.int64, np.uint64))
    size[used] = [len(hashes) for hashes in read.values()]
    start[used] = np.cumsum(size[used]) - size[used]
    every = np.concatenate([*read.values(), none])
    complete, sampled = (
        np.array([one is not None and getattr(one, what) for one in sketches], dtype=bool)
        for what in ("complete", "sampled")
    )
    # All values of a sample are in the column, so a sample has no end to compare up to.
    no_end = np.uint64(np.iinfo(np.uint64).max)
    end[:] = no_end
    cut = used[~complete[used] & ~sampled[used] & (size[used] > 0)]
    end[cut] = every[start[cut] + size[cut] - 1]
    exact = complete[lefts] & complete[rights]
    limit = np.where(exact, no_end, np.minimum(end[lefts], end[rights]))
    hits, mine, theirs = (np.zeros(len(lefts), dtype=np.int64) for _ in range(3))
    order = np.argsort(rights, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(rights[order])) + 1):
        for first in range(0, len(group), _AT_ONCE):
            part = group[first : first + _AT_ONCE]
            right = read[int(rights[part[0]])]
            counts, limits = size[lefts[part]], limit[part]
            stops = np.cumsum(counts)
            values = every[np.arange(counts.sum()) + np.repeat(start[lefts[part]] - stops + counts, counts)]
            inside = values <= np.repeat(limits, counts)
            if len(right):
                at = np.minimum(np.searchsorted(right, values), len(right) - 1)
                hits[part] = _sums((right[at] == values) & inside, counts, stops)
            mine[part] = _sums(inside, counts, stops)
            theirs[part] = np.searchsorted(right, limits, side="right")

    def shares(seen: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> Overlaps:
        # A sample does not show which values the column lacks.
        known = (seen > 0) & ~sampled[other] & has_sketch[other]
        share = hits / np.maximum(seen, 1)
        # Laplace's rule keeps the error above 0 if a handful of values all agree.
        smooth = (hits + 1) / (seen + 2)
        error = np.where(exact, 0.0, np.sqrt(smooth * (1 - smooth) / np.maximum(seen, 1)))
        return Overlaps(known, share, seen.astype(np.float64), error)

    has_sketch = np.array([one is not None for one in sketches], dtype=bool)
    return shares(mine, rights), shares(theirs, lefts)


def _sums(flags: npt.NDArray[np.bool_], counts: npt.NDArray[Any], stops: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The number of flags in each of several runs, of which each has a length and a stop."""
    sums = np.concatenate([[0], np.cumsum(flags)])
    totals: npt.NDArray[np.int64] = sums[stops] - sums[stops - counts]
    return totals


def _drawn(hits: Floats, misses: Floats) -> Floats:
    """The log likelihood of these hits and misses if a column references another.

    A mixture: in most columns hardly a value dangles; in some any share does, for example after rows were deleted.
    """
    strict = math.log(1 - _LOOSE) + hits * math.log(_HIT) + misses * math.log(1 - _HIT)
    loose = math.log(_LOOSE * _LOOSE_HITS) + _log_beta(hits + _LOOSE_HITS, misses + 1.0)
    likelier: Floats = np.maximum(strict, loose) + np.log1p(np.exp(-np.abs(strict - loose)))
    return likelier


def _by_accident(hits: Floats, misses: Floats, accident: Floats) -> Floats:
    """The log likelihood of these hits and misses if it does not: each value matches with the chance ``accident``.

    For dense ids the chance is unknown: it depends on how far each table has counted. Any share may match, large ones
    likelier, as with dangling columns.
    """
    likely = math.log(_LOOSE_HITS) + _log_beta(hits + _LOOSE_HITS, misses + 1.0)
    each = hits * np.log(accident) + misses * np.log(1 - accident)
    return np.where((misses > 0) & (accident > 0.5), likely, each)


def _log_beta(a: Floats, b: Floats) -> Floats:
    first, second, both = (np.array([*map(math.lgamma, each.tolist())]) for each in (a, b, a + b))
    logs: Floats = first + second - both
    return logs


def _inside_by_accident(low: Floats, high: Floats) -> Floats:
    """The chance that an unrelated column of integers lies within a run."""
    width = np.where(high >= 0, np.log((np.maximum(high, 0) + 2) / (np.maximum(low, 0) + 1)) / _LOG_RANGE, 0.5)
    chance: Floats = np.clip(np.where(low <= 1, 0.5, 0.0) + 0.5 * width, 1e-3, 0.95)
    return chance


def _reaches_the_end(values: Floats, end: Floats, low: Floats, high: Floats, ends_there: Floats) -> Floats:
    """Log likelihood ratio of a column's largest value, given that it lies within a dense run.

    ``values`` draws from a run of n have their maximum at m with density about d/n (m/n)^(d-1). An unrelated column
    ends at m with density about 1/m, or as often as the surrounding columns end there.
    """
    size = np.maximum(1, high - np.maximum(low, 0) + 1)
    reach = np.minimum(size, np.maximum(1, end - np.maximum(low, 0) + 1))
    draws = np.minimum(np.minimum(values, size), _VALUES)
    drawn = np.log(draws / size) + (draws - 1) * np.log(reach / size)
    ratio: Floats = drawn - np.log(np.maximum(ends_there, 0.3 / reach))
    return ratio


def log_ratio(left: Facts, right: Facts, overlaps: Overlaps, ends_there: Floats | float = 0.0) -> Floats:
    """Log likelihood ratio of n overlaps: above 0 it is evidence that the left column references the right one.

    Args:
        left, right: the referencing and the referenced columns.
        found: the overlaps.
        ends_there: the share of the surrounding columns of integers that end where the left one does.

    Returns:
        Shape (n,), within ± :data:`MOST`; of no meaning where an overlap is not known.
    """
    seen = np.minimum(overlaps.seen, _VALUES)
    hits, misses = seen * overlaps.share, seen * (1 - overlaps.share)
    with np.errstate(invalid="ignore", divide="ignore"):  # columns without a run of integers have no numbers
        is_run = ~np.isnan(left.low)
        runs = is_run & ~np.isnan(right.low)
        # Ids that were counted up and partly deleted later are still dense at the small end.
        counted = (right.low <= 10) & ((right.density > 0.1) | (left.high <= _SMALL))
        by_chance = np.where(counted, 0.95, np.minimum(0.98, np.maximum(right.density, 1e-4)))
        # A short code ("F", "3") matches by accident more easily than a long one.
        by_length = np.where(left.letters <= _SHORT, 0.4, np.where(left.letters <= 3, 0.25, 0.1))
        accident = np.where(np.isnan(right.low), by_length, by_chance)
        ratio = _drawn(hits, misses) - _by_accident(hits, misses, accident)
        inside = runs & (right.low <= left.low) & (left.high <= right.high)
        ratio = np.where(inside, ratio - np.log(_inside_by_accident(right.low, right.high)), ratio)
        # A run of high numbers that ends early is not a count: facts often hold the first ids only.
        least = np.where(right.low <= 10, -4.0, -1.0)
        values = np.where(left.distinct > 0, left.distinct, 1.0)
        reach = _reaches_the_end(values, left.high, right.low, right.high, np.asarray(ends_there))
        ratio = np.where(inside & (accident > 0.5), ratio + np.maximum(least, reach), ratio)
        # The strongest evidence of a column's values, however unlikely an accidental match is.
        in_years = (_YEARS[0] <= left.low) & (left.low <= left.high) & (left.high <= _YEARS[1])
        everyday = np.where(is_run, (left.high <= _SMALL) | in_years, left.letters <= _SHORT)
        alike = np.where(is_run | everyday, math.log(_NUMBERS_ALIKE), math.log(_TEXTS_ALIKE))
        many = np.log(np.maximum(1, np.where(left.distinct > 0, left.distinct, seen)))
        most = np.where(everyday, 1.0, 2.0) * many - alike
    bounded: Floats = np.minimum(np.minimum(MOST, most), np.maximum(-MOST, ratio))
    return bounded
