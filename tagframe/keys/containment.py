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
from dataclasses import dataclass

import numpy as np

from tagframe.corpus.profile import ColumnProfile, Sketch

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
    if column is None or other is None or other.sampled or not len(column.hashes):
        return None  # a sample does not show which values the column lacks
    mine, theirs, exact = column.hashes, other.hashes, column.complete and other.complete
    if not exact:
        # All values of a sample are in the column, so a sample has no end to compare up to.
        ends = [sketch.hashes[-1] for sketch in (column, other)
                if not sketch.complete and not sketch.sampled and len(sketch.hashes)]  # fmt: skip
        limit = min(ends, default=np.iinfo(np.uint64).max)
        mine = mine[: np.searchsorted(mine, limit, side="right")]
        theirs = theirs[: np.searchsorted(theirs, limit, side="right")]
        if not len(mine):
            return None
    if len(theirs):
        found = np.minimum(np.searchsorted(theirs, mine), len(theirs) - 1)
        hits = int(np.count_nonzero(theirs[found] == mine))
    else:
        hits = 0
    share = hits / len(mine)
    # Laplace's rule keeps the error above 0 if a handful of values all agree.
    smooth = (hits + 1) / (len(mine) + 2)
    error = 0.0 if exact else math.sqrt(smooth * (1 - smooth) / len(mine))
    return Overlap(share, len(mine), error)


@dataclass(frozen=True)
class Run:
    """The integers of a column: where they lie and how densely."""

    low: int
    high: int
    density: float


def integer_run(column: ColumnProfile) -> Run | None:
    """The range of a column of integers; None for other columns, or if it is unknown."""
    if column.family != "integer" or column.minimum is None or column.maximum is None or not column.distinct:
        return None
    try:
        low, high = int(float(column.minimum)), int(float(column.maximum))
    except ValueError:
        return None
    return Run(low, high, min(1.0, column.distinct / max(1, high - low + 1)))


def _inside_by_accident(run: Run) -> float:
    """The chance that an unrelated column of integers lies within ``run``."""
    width = math.log((run.high + 2) / (max(run.low, 0) + 1)) / _LOG_RANGE if run.high >= 0 else 0.5
    small = 0.5 if run.low <= 1 else 0.0
    return min(0.95, max(1e-3, small + 0.5 * width))


def _drawn(hits: float, misses: float) -> float:
    """The log likelihood of these hits and misses if a column references another.

    A mixture: in most columns hardly a value dangles; in some any share does, for example after rows were deleted.
    """
    strict = math.log(1 - _LOOSE) + hits * math.log(_HIT) + misses * math.log(1 - _HIT)
    loose = math.log(_LOOSE * _LOOSE_HITS) + _log_beta(hits + _LOOSE_HITS, misses + 1.0)
    return max(strict, loose) + math.log1p(math.exp(-abs(strict - loose)))


def _by_accident(hits: float, misses: float, accident: float) -> float:
    """The log likelihood of these hits and misses if it does not: each value matches with the chance ``accident``.

    For dense ids the chance is unknown: it depends on how far each table has counted. Any share may match, large ones
    likelier, as with dangling columns.
    """
    if misses and accident > 0.5:
        return math.log(_LOOSE_HITS) + _log_beta(hits + _LOOSE_HITS, misses + 1.0)
    return hits * math.log(accident) + misses * math.log(1 - accident)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _reaches_the_end(values: int, high: int, run: Run, ends_there: float) -> float:
    """Log likelihood ratio of a column's largest value, given that it lies within a dense run.

    ``values`` draws from a run of n have their maximum at m with density about d/n (m/n)^(d-1). An unrelated column
    ends at m with density about 1/m, or as often as the surrounding columns end there.
    """
    size = max(1, run.high - max(run.low, 0) + 1)
    reach = min(size, max(1, high - max(run.low, 0) + 1))
    draws = min(values, size, _VALUES)
    drawn = math.log(draws / size) + (draws - 1) * math.log(reach / size)
    return drawn - math.log(max(ends_there, 0.3 / reach))


def log_ratio(
    column: ColumnProfile,
    other: ColumnProfile,
    run: Run | None,
    target: Run | None,
    found: Overlap,
    ends_there: float = 0.0,
) -> float:
    """Log likelihood ratio of the overlap: above 0 it is evidence that ``column`` references ``other``.

    Args:
        column, other: the referencing and the referenced column.
        run, target: their integers' ranges.
        found: the overlap.
        ends_there: the share of the surrounding columns of integers that end where ``column`` does.

    Returns:
        Within ± :data:`MOST`.
    """
    seen = min(found.seen, _VALUES)
    hits, misses = seen * found.share, seen * (1 - found.share)
    if run is not None and target is not None:
        accident = min(0.98, max(target.density, 1e-4))
        if target.low <= 10 and (target.density > 0.1 or run.high <= _SMALL):
            # Ids that were counted up and partly deleted later are still dense at the small end.
            accident = 0.95
        ratio = _drawn(hits, misses) - _by_accident(hits, misses, accident)
        if target.low <= run.low and run.high <= target.high:
            ratio -= math.log(_inside_by_accident(target))
            if accident > 0.5:
                # A run of high numbers that ends early is not a count: facts often hold the first ids only.
                least = -4.0 if target.low <= 10 else -1.0
                ratio += max(least, _reaches_the_end(column.distinct or 1, run.high, target, ends_there))
    else:
        # A short code ("F", "3") matches by accident more easily than a long one.
        length = _length(column)
        accident = 0.4 if length <= _SHORT else 0.25 if length <= 3 else 0.1
        ratio = _drawn(hits, misses) - _by_accident(hits, misses, accident)
    return float(min(MOST, _most_of(column, run, seen), max(-MOST, ratio)))


def _length(column: ColumnProfile) -> float:
    return float(np.mean([len(sample) for sample in column.samples])) if column.samples else 4.0


def _most_of(column: ColumnProfile, run: Run | None, seen: int) -> float:
    """The strongest evidence of a column's values, however unlikely an accidental match is."""
    everyday = _is_everyday(run) if run is not None else _length(column) <= _SHORT
    alike = _NUMBERS_ALIKE if run is not None or everyday else _TEXTS_ALIKE
    return (1.0 if everyday else 2.0) * math.log(max(1, column.distinct or seen)) - math.log(alike)


def _is_everyday(run: Run) -> bool:
    """Whether the integers are counts, percentages, points or years."""
    return run.high <= _SMALL or _YEARS[0] <= run.low <= run.high <= _YEARS[1]
