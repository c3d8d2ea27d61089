"""The best few of many by lists that are put in order, a model's whole answer at a time.

While twice K fit into a list, it is a tournament of lists: each keeps its first K, until one is left. Otherwise the
items of all lists are sorted among a few that stand in every list, and what lies between two of these is sorted
further (sample sort: Frazer and McKellar, JACM 17, 1970). With answers that contradict each other nowhere the first K
are exact and in order, either way.

Nothing here knows of rows or models: items are numbers, and a lister puts lists of them in order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from tagframe.operators.step_generators import Step, together

Chain: TypeAlias = list[int]
"""Items, best first."""
Otherwise: TypeAlias = Callable[[list[int], int], Step[list[int]]]
"""Finds the first of items that lists do not put in order."""

SHARED = 6
"""One in so many positions of a list is for items that stand in all of them."""


class Lister(Protocol):
    """Puts lists in order.

    Attributes:
        longest: items that a list may hold.
        aside: items that cannot be put in order.
    """

    longest: int
    aside: dict[int, Exception]

    def rank(
        self, lists: Sequence[Sequence[int]], shared: Sequence[int] = (), wanted: int | None = None
    ) -> Step[list[list[Chain]]]:
        """For each list its chains: one of all its items, or several of parts of it, where it had to be divided.

        Items that were set aside are in none. The ``shared`` ones, which belong to every list, are in every chain. Of
        each chain the first ``wanted`` are enough.
        """


def best(items: Sequence[int], k: int, lister: Lister, otherwise: Otherwise) -> Step[list[int]]:
    """The first ``k`` items in order, best first, and others after them; none that was set aside."""
    if len(items) < 2:
        return list(items)
    if len(items) <= lister.longest or 2 * k <= lister.longest:
        found = yield from _tournament(list(items), k, lister, otherwise)
    else:
        found = yield from _sample_sort(list(items), k, lister, otherwise)
    return [item for item in found if item not in lister.aside]


def dealt(items: Sequence[int], longest: int) -> list[list[int]]:
    """The items as lists of almost one length, dealt out in turn so that neighbours come into different ones."""
    count = math.ceil(len(items) / longest)
    return [list(items[number::count]) for number in range(count)]


def _tournament(items: list[int], k: int, lister: Lister, otherwise: Otherwise) -> Step[list[int]]:
    while len(items) > 1:
        ranked = yield from lister.rank(dealt(items, lister.longest), wanted=k)
        chains = [chain for listed in ranked for chain in listed]
        if len(chains) == 1:
            return chains[0]
        kept = {item for chain in chains for item in chain[:k]}
        before, items = len(items), [item for item in items if item in kept]
        if len(items) == before:  # parts of a list that cannot be read whole
            return (yield from otherwise(items, k))
    return items


def _sample_sort(items: list[int], k: int, lister: Lister, otherwise: Otherwise) -> Step[list[int]]:
    step = len(items) / lister.longest
    sample = [items[int(number * step)] for number in range(lister.longest)]
    (chains,) = yield from lister.rank([sample])
    first = chains[0] if len(chains) == 1 else []
    if len(first) < 2:
        return (yield from otherwise([item for item in items if item not in lister.aside], k))
    count = min(max(1, lister.longest // SHARED), len(first) - 1)
    pivots = [first[(number + 1) * len(first) // (count + 1)] for number in range(count)]
    between: list[list[int]] = [[] for _ in range(count + 1)]
    _sort_in(first, pivots, between)
    known = set(sample)
    rest = [item for item in items if item not in known]
    ranked = yield from lister.rank(dealt(rest, lister.longest - count), pivots)
    for chain in (chain for listed in ranked for chain in listed):
        _sort_in(chain, pivots, between)
    parts, start = [], 0
    for part in between:
        if start >= k:
            break
        parts.append((sorted(part), k - start))
        start += len(part) + 1
    sorted_parts = yield from together([best(part, wanted, lister, otherwise) for part, wanted in parts])
    found: list[int] = []
    for number, part in enumerate(sorted_parts):
        found += part if number == count else [*part, pivots[number]]
    return found


def _sort_in(chain: Chain, pivots: Sequence[int], between: list[list[int]]) -> None:
    """Put what a chain holds beside the pivots where as many of them stand before it."""
    passed = 0
    for item in chain:
        if item in pivots:
            passed += 1
        else:
            between[passed].append(item)
