"""The best few of many by comparisons of two: a knock-out in rounds, in which losers stay in.

Each round compares pairs whose order is not known yet, neither directly nor by transitivity. Items with the fewest
known better ones come first. An item is out once K others are known to be better. If answers do not contradict each
other, the first K are exact and in order, after about n + K log n comparisons (a tournament tree, Knuth, The Art of
Computer Programming, vol. 3, section 5.3.3) in about 2 log n rounds.

It is used for rows too long for lists, and with ``compare="pair"``. In simulations, lists cost a twentieth and are as
good (``tag_bench ranking``). This module does not depend on rows or models: items are numbers, and a judge compares
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from tagframe.operators.ranked_lists import dealt
from tagframe.operators.step_generators import Step, together

Pair: TypeAlias = tuple[int, int]

FILL = 16
"""The fewest comparisons of a round, if enough are left: fewer rounds for a few more comparisons."""
LARGE = 1_500
"""The most items that are compared with each other at once. More items are divided into groups, whose best ones are
then compared: the pairs of all of them would not fit into memory."""


class Judge(Protocol):
    """Compares items, and remembers the results.

    Attributes:
        aside: items that cannot be compared.
        stopped: why nothing more can be asked, or None.
        short: set if no comparisons were left before the order was certain.
    """

    aside: dict[int, Exception]
    stopped: Exception | None
    short: bool

    @property
    def left(self) -> int:
        """How many comparisons may still be asked."""

    def compare(self, pairs: Sequence[Pair]) -> Step[list[float | None]]:
        """For each pair: 1 if the first is better, 0 if the second is, 0.5 if neither is, None if that is not known."""

    def answers(self, items: Sequence[int]) -> Iterable[Pair]:
        """The known results for pairs of these items so far: better, worse."""


def comparisons_needed(n: int, k: int) -> int:
    """About the largest number of comparisons that the first ``k`` of ``n`` take."""
    return max(math.ceil(1.25 * n), n + k * math.ceil(math.log2(max(n, 2))))


def best(items: Sequence[int], k: int, judge: Judge) -> Step[list[int]]:
    """The items that were not set aside, best first; the first ``k`` are in order."""
    found, size = list(items), max(LARGE, 2 * k)
    while len(found) > size:
        groups = yield from together([_knock_out(group, k, judge) for group in dealt(found, size)])
        found = [item for group in groups for item in group[:k]]
    order = yield from _knock_out(found, k, judge)
    return [item for item in order if item not in judge.aside]


def _knock_out(items: list[int], k: int, judge: Judge) -> Step[list[int]]:
    known = _Known(items)
    for better, worse in judge.answers(items):
        known.add(better, worse)
    fill = FILL if judge.left >= comparisons_needed(len(items), k) else 1
    while judge.stopped is None and (pairs := known.open_pairs(k, judge.aside, fill)):
        if judge.left <= 0:
            judge.short = True
            break
        pairs = pairs[: judge.left]
        values = yield from judge.compare(pairs)
        for (first, second), value in zip(pairs, values, strict=True):
            if value is None or value == 0.5:
                known.leave(first, second)
            else:
                known.add(*((first, second) if value else (second, first)))
    return known.order()


class _Known:
    """All known results, with everything that follows from them.

    Attributes:
        better: shape (n, n): whether the item of the row is better than that of the column.
    """

    def __init__(self, items: Sequence[int]) -> None:
        self._items = list(items)
        self._numbers = {item: number for number, item in enumerate(items)}
        self.better: npt.NDArray[np.bool_] = np.zeros((len(items), len(items)), dtype=bool)
        self._left: npt.NDArray[np.bool_] = np.eye(len(items), dtype=bool)

    def add(self, better: int, worse: int) -> None:
        """Add an answer; it is ignored if it contradicts a known result."""
        first, second = self._numbers[better], self._numbers[worse]
        if self.better[first, second] or self.better[second, first]:
            return
        above, below = self.better[:, first].copy(), self.better[second].copy()
        above[first] = below[second] = True
        self.better[np.ix_(above, below)] = True

    def leave(self, first: int, second: int) -> None:
        """Do not ask about this pair again."""
        one, other = self._numbers[first], self._numbers[second]
        self._left[one, other] = self._left[other, one] = True

    def open_pairs(self, k: int, aside: Iterable[int], fill: int) -> list[Pair]:
        """Pairs to compare next, each item in at most one; none if the first ``k`` are in order.

        They are made of all items with the fewest better ones, and of others if these make fewer than ``fill`` pairs.
        """
        over, under = self.better.sum(0), self.better.sum(1)
        still = over < k
        still[[self._numbers[item] for item in aside if item in self._numbers]] = False
        alive = np.flatnonzero(still)
        alive = alive[np.lexsort((alive, -under[alive], over[alive]))]
        unknown = ~(self.better | self.better.T | self._left)[np.ix_(alive, alive)]
        alive, unknown = alive[unknown.any(1)], unknown[np.ix_(unknown.any(1), unknown.any(1))]
        if not len(alive):
            return []
        fewest = over[alive[0]]
        free = np.ones(len(alive), dtype=bool)
        pairs: list[Pair] = []
        for row, one in enumerate(alive):
            if len(pairs) >= fill and over[one] > fewest:
                break
            if not free[row]:
                continue
            partners = np.flatnonzero(unknown[row, row + 1 :] & free[row + 1 :])
            if not len(partners):
                continue
            other = row + 1 + int(partners[0])
            if len(pairs) >= fill and over[alive[other]] > fewest + 1:
                continue
            free[[row, other]] = False
            # Models prefer the first or the second; alternating keeps this from favouring one half of the rows.
            pair = self._items[one], self._items[alive[other]]
            pairs.append(pair if len(pairs) % 2 == 0 else pair[::-1])
        return pairs

    def order(self) -> list[int]:
        """The items by how many are better, then by how many are worse, then in their first order."""
        over, under = self.better.sum(0), self.better.sum(1)
        return [self._items[number] for number in np.lexsort((np.arange(len(over)), -under, over))]
