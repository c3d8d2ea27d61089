"""The best few of many by comparisons of two: a knock-out whose losers stay in, round by round, and what it teaches.

Each round compares pairs of which nothing is known yet, directly or by what follows (better than what is better), the
items with the fewest better ones first. An item that K others are known to be better than is out. With answers that
contradict each other nowhere the first K are exact and in order, after about n + K log n comparisons (a tournament
tree, Knuth, The Art of Computer Programming, vol. 3, section 5.3.3) in about 2 log n rounds; comparisons that may still
be asked are spent on the first ones, each with each, whose order is then the one that the fewest answers contradict
(Kemeny, Daedalus 88, 1959; the likeliest one where all answers are wrong equally often: Young, APSR 82, 1988).

Nothing here knows of rows or models: items are numbers, and a judge compares them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from tagframe.operators.steps import Step, together

Pair: TypeAlias = tuple[int, int]

FILL = 16
"""Comparisons that a round has at least, where there are so many to make: fewer rounds for a few more comparisons."""
LARGE = 1_500
"""So many items are first divided by comparisons with one of them: all pairs of more are too many to keep."""
MANY = 48
"""So many to be kept, of twice as many, are sorted in parts at once: one after the other, they would take a round or
more each."""
WINNERS = 8
"""Winners of small groups, among which the item is that the others are compared with."""
ROOMY = 1.5
"""Comparisons an item that make it worth while to divide fewer items too: one wrong answer in ten rounds is enough to
lose a knock-out, and to be divided from the others is one round. It needs more where all answers are right."""
RISK = 0.003
"""Chance, for items in no order, that fewer than K turn out better than that item, and the rest is gone through too."""


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

    @property
    def spare(self) -> int:
        """Comparisons that may be asked although the order does not need them; below 0 where none."""

    def compare(self, pairs: Sequence[Pair]) -> Step[list[float | None]]:
        """For each pair: 1 where the first is better, 0 the second, 0.5 neither, None where that is not known."""

    def answers(self, items: Sequence[int]) -> Iterable[tuple[int, int, float]]:
        """What is known of pairs of these items so far: better, worse, by how many answers."""


def comparisons_needed(n: int, k: int) -> int:
    """Comparisons that the first ``k`` of ``n`` take at most, about: with spare ones at 1.25 an item."""
    return max(math.ceil(1.25 * n), n + k * math.ceil(math.log2(max(n, 2))))


def best(items: Sequence[int], k: int, judge: Judge) -> Step[list[int]]:
    """All items that were not set aside, the first ``k`` of them in order, best first."""
    order = yield from _order(list(items), k, judge)
    order = yield from _checked(order, k, judge)
    return [item for item in order if item not in judge.aside]


def _order(items: list[int], k: int, judge: Judge) -> Step[list[int]]:
    while judge.left > 0 and judge.stopped is None:
        n = len(items)
        roomy = n >= 8 * WINNERS and k <= n // 16 and judge.spare >= ROOMY * n
        if n <= LARGE and not roomy and not (k > MANY and n > 2 * MANY):
            return (yield from _knock_out(items, k, judge))
        above, middle, below = yield from _divided(items, k, judge)
        if middle and len(above) >= k:
            return [*(yield from _order(above, k, judge)), *middle, *below]
        if middle and len(above) == k - 1:
            return [*(yield from _order(above, k, judge)), *middle, *below]
        if middle:
            parts = [_order(above, len(above), judge), _order(below, k - len(above) - 1, judge)]
            first, then = yield from together(parts)
            return [*first, *middle, *then]
        items = below  # without those that it was tried with
    judge.short = judge.short or (len(items) > 1 and judge.stopped is None)
    return items


def _knock_out(items: list[int], k: int, judge: Judge) -> Step[list[int]]:
    known = _Known(items)
    for better, worse, _ in judge.answers(items):
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
        self._places = {item: place for place, item in enumerate(items)}
        self.better: npt.NDArray[np.bool_] = np.zeros((len(items), len(items)), dtype=bool)
        self._left: npt.NDArray[np.bool_] = np.eye(len(items), dtype=bool)

    def add(self, better: int, worse: int) -> None:
        """Take in an answer; one that contradicts what is known already says nothing here."""
        first, second = self._places[better], self._places[worse]
        if self.better[first, second] or self.better[second, first]:
            return
        above, below = self.better[:, first].copy(), self.better[second].copy()
        above[first] = below[second] = True
        self.better[np.ix_(above, below)] = True

    def leave(self, first: int, second: int) -> None:
        """Do not ask for this pair again."""
        one, other = self._places[first], self._places[second]
        self._left[one, other] = self._left[other, one] = True

    def open_pairs(self, k: int, aside: Iterable[int], fill: int) -> list[Pair]:
        """Pairs to compare next, each item in one at most; none where the first ``k`` are in order.

        All of the items that have the fewest better ones, and others where these make fewer than ``fill`` pairs.
        """
        over, under = self.better.sum(0), self.better.sum(1)
        alive = over < k
        alive[[self._places[item] for item in aside if item in self._places]] = False
        places = np.flatnonzero(alive)
        places = places[np.lexsort((places, -under[places], over[places]))]
        unknown = ~(self.better | self.better.T | self._left)[np.ix_(places, places)]
        places, unknown = places[unknown.any(1)], unknown[np.ix_(unknown.any(1), unknown.any(1))]
        if not len(places):
            return []
        fewest = over[places[0]]
        free = np.ones(len(places), dtype=bool)
        pairs: list[Pair] = []
        for row, place in enumerate(places):
            if len(pairs) >= fill and over[place] > fewest:
                break
            if not free[row]:
                continue
            partners = np.flatnonzero(unknown[row, row + 1 :] & free[row + 1 :])
            if not len(partners):
                continue
            other = row + 1 + int(partners[0])
            if len(pairs) >= fill and over[places[other]] > fewest + 1:
                continue
            free[[row, other]] = False
            # Models favour a place; taking turns keeps that from pushing the rows of one half one way.
            pair = self._items[place], self._items[places[other]]
            pairs.append(pair if len(pairs) % 2 == 0 else pair[::-1])
        return pairs

    def order(self) -> list[int]:
        """The items by how many are better, then by how many are worse, then as they came."""
        over, under = self.better.sum(0), self.better.sum(1)
        return [self._items[place] for place in np.lexsort((np.arange(len(over)), -under, over))]


def _divided(items: list[int], k: int, judge: Judge) -> Step[tuple[list[int], list[int], list[int]]]:
    """Items better than one of them, that one, and the others; it is chosen to stand not far behind the ``k``-th.

    The one is a winner among winners of small groups, spread evenly over the items. Items that lost to it, or to those
    that it is better than, are not compared again.
    """
    n = len(items)
    size = 8 if k <= n // 32 and n >= 400 else 4 if k <= n // 16 else 1
    step = n / (WINNERS * size)
    sample = [items[int(place * step)] for place in range(WINNERS * size)]
    groups = [sample[number::WINNERS] for number in range(WINNERS)]
    beaten: dict[int, list[int]] = {item: [] for item in sample}
    while any(len(group) > 1 for group in groups):
        pairs = [(group[at], group[at + 1]) for group in groups for at in range(0, len(group) - 1, 2)]
        values = yield from judge.compare(pairs)
        lost = set()
        for (first, second), value in zip(pairs, values, strict=True):
            winner, loser = (second, first) if value == 0 or first in judge.aside else (first, second)
            beaten[winner] += [loser, *beaten[loser]] if value in (0, 1) else []
            lost.add(loser)
        groups = [[item for item in group if item not in lost] for group in groups]
    winners = yield from _each_with_each([group[0] for group in groups if group[0] not in judge.aside], judge)
    if not winners:
        return [], [], [item for item in items if item not in judge.aside]
    place = _place(k, n, len(sample), len(winners)) if size > 1 else round(len(winners) * min(k / n, 0.5))
    middle, above = winners[place], winners[:place]
    out = {item for worse in winners[place:] for item in (worse, *beaten[worse])} | {middle}
    others = [item for item in items if item not in out and item not in above and item not in judge.aside]
    pairs = [(item, middle) if number % 2 == 0 else (middle, item) for number, item in enumerate(others)]
    below = [item for item in items if item in out and item != middle and item not in judge.aside]
    values = yield from judge.compare(pairs[: max(judge.left, 0)])
    for number, item in enumerate(others):
        value = values[number] if number < len(values) else None
        better = value in (None, 0.5) or (value == 1) == (number % 2 == 0)  # what is not known may be among the first
        if item not in judge.aside:
            (above if better else below).append(item)
    return above, [middle], below


def _place(k: int, n: int, sampled: int, winners: int) -> int:
    """The place among the winners behind which fewer than ``k`` of ``n`` items stand with a chance of :data:`RISK`."""
    share = sampled / n
    chance = 0.0
    for count in range(winners):
        chance += math.comb(k, count) * share**count * (1 - share) ** (k - count)
        if 1 - chance <= RISK:
            return max(1, count)
    return winners - 1


def _each_with_each(items: list[int], judge: Judge) -> Step[list[int]]:
    """The items in the order that the fewest answers contradict, all pairs of which nothing is known compared."""
    asked = {frozenset((better, worse)) for better, worse, _ in judge.answers(items)}
    pairs = [pair for pair in _all_pairs(items) if frozenset(pair) not in asked]
    yield from judge.compare(pairs[: max(judge.left, 0)])
    return kemeny([item for item in items if item not in judge.aside], judge)


def _all_pairs(items: Sequence[int]) -> list[Pair]:
    return [
        (one, other) if (row + column) % 2 else (other, one)
        for row, one in enumerate(items)
        for column, other in enumerate(items[:row])
    ]


def _checked(order: list[int], k: int, judge: Judge) -> Step[list[int]]:
    """The order after as many of its first items as can be afforded were compared each with each."""
    if judge.stopped is not None:
        return order
    order = [item for item in order if item not in judge.aside]
    asked = {frozenset((better, worse)) for better, worse, _ in judge.answers(order)}
    pairs: list[Pair] = []
    count = 1
    while count < min(len(order), 8 * k):
        more = [
            (item, order[count]) if (number + count) % 2 else (order[count], item)
            for number, item in enumerate(order[:count])
            if frozenset((item, order[count])) not in asked
        ]
        if len(pairs) + len(more) > min(judge.spare, judge.left):
            break
        pairs += more
        count += 1
    if pairs:
        yield from judge.compare(pairs)
    head = [item for item in order[:count] if item not in judge.aside]
    return [*kemeny(head, judge), *order[count:]]


def kemeny(items: list[int], judge: Judge) -> list[int]:
    """The items in an order that no item's move to another place would make fewer answers contradict.

    What is found first stays: without contradictions that is the order of the answers, ties as they came.
    """
    places = {item: place for place, item in enumerate(items)}
    wins = np.zeros((len(items), len(items)))
    for better, worse, weight in judge.answers(items):
        wins[places[better], places[worse]] += weight
    margin = wins - wins.T
    order = sorted(range(len(items)), key=lambda place: (-float(np.sign(margin[place]).sum()), place))
    moved = True
    while moved:
        moved = False
        for place in list(order):
            at = order.index(place)
            rest = order[:at] + order[at + 1 :]
            passed = np.concatenate([[0.0], np.cumsum(margin[place, rest])])
            gains = passed[-1] - 2 * passed  # of standing before rest[j]: answers for it, less those against
            to = int(gains.argmax())
            if gains[to] > gains[at] + 1e-9:
                order = [*rest[:to], place, *rest[to:]]
                moved = True
    return [items[place] for place in order]
