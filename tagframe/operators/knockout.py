"""The best few of many by comparisons of two: a knock-out whose losers stay in, round by round, and what it teaches.

Each round compares pairs of which nothing is known yet, directly or by what follows (better than what is better), the
items with the fewest better ones first. An item that K others are known to be better than is out. With answers that
contradict each other nowhere the first K are exact and in order, after about n + K log n comparisons (a tournament
tree, Knuth, The Art of Computer Programming, vol. 3, section 5.3.3) in about 2 log n rounds.

It is for rows too long for lists, and for who asks for pairs: simulated, lists cost a twentieth and find no fewer
(``tag_bench ranking``). Nothing here knows of rows or models: items are numbers, and a judge compares them.
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
"""Comparisons that a round has at least, where there are so many to make: fewer rounds for a few more comparisons."""
LARGE = 1_500
"""So many items are compared with each other at most, and the first of such groups then: all pairs of more are too many
to keep."""


class Judge(Protocol):
    """Compares items, and remembers what came of it.

    Attributes:
        aside: items that cannot be compared.
        stopped: why nothing can be asked any more, or None.
        short: set where nothing was left before the order was certain.
    """

    aside: dict[int, Exception]
    stopped: Exception | None
    short: bool

    @property
    def left(self) -> int:
        """Comparisons that may still be asked before the order has to do."""

    def compare(self, pairs: Sequence[Pair]) -> Step[list[float | None]]:
        """For each pair: 1 where the first is better, 0 the second, 0.5 neither, None where that is not known."""

    def answers(self, items: Sequence[int]) -> Iterable[Pair]:
        """What is known of pairs of these items so far: better, worse."""


def comparisons_needed(n: int, k: int) -> int:
    """Comparisons that the first ``k`` of ``n`` take at most, about."""
    return max(math.ceil(1.25 * n), n + k * math.ceil(math.log2(max(n, 2))))


def best(items: Sequence[int], k: int, judge: Judge) -> Step[list[int]]:
    """Items that were not set aside, the first ``k`` of all in order, best first."""
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
    """What is known of which item is better, with all that follows from it.

    Attributes:
        better: shape (n, n): whether the item of the row is better than that of the column.
    """

    def __init__(self, items: Sequence[int]) -> None:
        self._items = list(items)
        self._numbers = {item: number for number, item in enumerate(items)}
        self.better: npt.NDArray[np.bool_] = np.zeros((len(items), len(items)), dtype=bool)
        self._left: npt.NDArray[np.bool_] = np.eye(len(items), dtype=bool)

    def add(self, better: int, worse: int) -> None:
        """Take in an answer; one that contradicts what is known already says nothing here."""
        first, second = self._numbers[better], self._numbers[worse]
        if self.better[first, second] or self.better[second, first]:
            return
        above, below = self.better[:, first].copy(), self.better[second].copy()
        above[first] = below[second] = True
        self.better[np.ix_(above, below)] = True

    def leave(self, first: int, second: int) -> None:
        """Do not ask for this pair again."""
        one, other = self._numbers[first], self._numbers[second]
        self._left[one, other] = self._left[other, one] = True

    def open_pairs(self, k: int, aside: Iterable[int], fill: int) -> list[Pair]:
        """Pairs to compare next, each item in one at most; none where the first ``k`` are in order.

        All of the items that have the fewest better ones, and others where these make fewer than ``fill`` pairs.
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
            # Models favour the first or the second; taking turns keeps that from pushing the rows of one half one way.
            pair = self._items[one], self._items[alive[other]]
            pairs.append(pair if len(pairs) % 2 == 0 else pair[::-1])
        return pairs

    def order(self) -> list[int]:
        """The items by how many are better, then by how many are worse, then as they came."""
        over, under = self.better.sum(0), self.better.sum(1)
        return [self._items[number] for number in np.lexsort((np.arange(len(over)), -under, over))]
