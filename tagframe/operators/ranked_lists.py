"""The best few of many by ordered lists; each answer of a model orders one list.

If 2 K items fit into a list, this is a tournament of lists: each keeps its first K, until one list is left. Otherwise
every list has a few shared items, all other items are sorted relative to these, and the items between two of them are
sorted further (sample sort: Frazer and McKellar, JACM 17, 1970). In both ways, if answers do not contradict each other,
the first K are exact and in order.

This module does not depend on rows or models: items are numbers, and a lister puts lists of them in order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from tagframe.operators.step_generators import Step, together

Chain: TypeAlias = list[int]
"""Items, best first."""
Otherwise: TypeAlias = Callable[[list[int], int], Step[list[int]]]
"""Finds the first of items that lists cannot put in order."""

SHARED = 6
"""One in so many positions of a list is for items that are in all lists."""


class Lister(Protocol):
    """Puts lists in order.

    Attributes:
        longest: the most items of a list.
        aside: items that cannot be put in order.
    """

    longest: int
    aside: dict[int, Exception]

    def rank(
        self, lists: Sequence[Sequence[int]], shared: Sequence[int] = (), wanted: int | None = None
    ) -> Step[list[list[Chain]]]:
        """The chains of each list: one of all its items, or several of its parts if it had to be divided.

        Items that were set aside are in none. The ``shared`` items, which belong to every list, are in every chain. The
        first ``wanted`` items of each chain are enough.
        """


def best(items: Sequence[int], k: int, lister: Lister, otherwise: Otherwise) -> Step[list[int]]:
    """The first ``k`` items in order, best first, and others after them; items that were set aside are left out."""
    if len(items) < 2:
        return list(items)
    if len(items) <= lister.longest or 2 * k <= lister.longest:
        found = yield from _tournament(list(items), k, lister, otherwise)
    else:
        found = yield from _sample_sort(list(items), k, lister, otherwise)
    return [item for item in found if item not in lister.aside]


def dealt(items: Sequence[int], longest: int) -> list[list[int]]:
    """The items as lists of nearly equal length, dealt out in turn so that neighbours are in different lists."""
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
        if len(items) == before:  # parts of a list that could not be ordered as a whole
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
    """Put each other item of a chain into the part for the number of pivots before it."""
    passed = 0
    for item in chain:
        if item in pivots:
            passed += 1
        else:
            between[passed].append(item)
