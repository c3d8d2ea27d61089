"""The best few of many by ordered lists; each answer of a model orders one list.

If 2 K items fit into a list, this is a tournament of lists: each keeps its first K, until one list is left. Otherwise
every list has a few shared items, all other items are sorted relative to these, and the items between two of them are
sorted further (sample sort: Frazer and McKellar, JACM 17, 1970). In both ways, if answers do not contradict each other,
the first K are exact and in order. Where lists cannot be put in order as a whole, shorter lists are tried.

This module does not depend on rows or models: items are numbers, and a lister puts lists of them in order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, TypeAlias

from tagframe.operators.drivers import Step, together

Chain: TypeAlias = list[int]
"""Items, best first."""
SHARED_ONE_IN = 6
"""One in so many positions of a list is for items that are in all lists."""


class Lister(Protocol):
    """Puts lists in order.

    Attributes:
        aside: items that cannot be put in order.
    """

    aside: dict[int, Exception]

    def rank(
        self, lists: Sequence[Sequence[int]], shared: Sequence[int] = (), wanted: int | None = None
    ) -> Step[list[list[Chain]]]:
        """The chains of each list: one of all its items, or several of its parts if it had to be divided.

        Items that were set aside are in none. The ``shared`` items, which belong to every list, are in every chain. The
        first ``wanted`` items of each chain are enough.
        """


def best(items: Sequence[int], k: int, lister: Lister, longest: int) -> Step[list[int]]:
    """The first ``k`` items in order, best first, and others after them; items that were set aside are left out.

    Args:
        items: numbers.
        k: how many are wanted.
        lister: puts lists in order.
        longest: the most items of a list.
    """
    items = [item for item in items if item not in lister.aside]
    if len(items) < 2 or longest < 2:
        return items
    if len(items) <= longest or 2 * k <= longest:
        ranked = yield from _tournament(items, k, lister, longest)
    else:
        ranked = yield from _sample_sort(items, k, lister, longest)
    return [item for item in ranked if item not in lister.aside]


def _again(items: Sequence[int], k: int, lister: Lister, longest: int, chains: Sequence[Chain]) -> Step[list[int]]:
    """As :func:`best`, where a list gave several chains: without what was set aside since, or with shorter lists.

    These have half the length, or that of the longest chain that the model managed.
    """
    if all(item not in lister.aside for item in items):
        managed = max(map(len, chains), default=0)  # a chain of K items may be the beginning of a longer one
        half = math.ceil(min(longest, len(items)) / 2)
        longest = min(half, max(managed, 2)) if managed < k else half
    return (yield from best(items, k, lister, longest))


def dealt(items: Sequence[int], longest: int) -> list[list[int]]:
    """The items as lists of nearly equal length, dealt out in turn so that neighbours are in different lists."""
    count = math.ceil(len(items) / longest)
    return [list(items[number::count]) for number in range(count)]


def _tournament(items: list[int], k: int, lister: Lister, longest: int) -> Step[list[int]]:
    while len(items) > 1:
        ranked = yield from lister.rank(dealt(items, longest), wanted=k)
        chains = [chain for listed in ranked for chain in listed]
        if len(chains) == 1:
            return chains[0]
        first_ones = {item for chain in chains for item in chain[:k]}
        before, items = len(items), [item for item in items if item in first_ones]
        if len(items) == before:  # parts of a list that could not be ordered as a whole
            return (yield from _again(items, k, lister, longest, chains))
    return items


def _sample_sort(items: list[int], k: int, lister: Lister, longest: int) -> Step[list[int]]:
    step = len(items) / longest
    sample = [items[int(number * step)] for number in range(longest)]
    (chains,) = yield from lister.rank([sample])
    first = chains[0] if len(chains) == 1 else []
    if len(first) < 2:
        return (yield from _again(items, k, lister, longest, chains))
    count = min(max(1, longest // SHARED_ONE_IN), len(first) - 1)
    pivots = [first[(number + 1) * len(first) // (count + 1)] for number in range(count)]
    between: list[list[int]] = [[] for _ in range(count + 1)]
    _sort_in(first, pivots, between)
    known = set(sample)
    rest = [item for item in items if item not in known]
    ranked = yield from lister.rank(dealt(rest, longest - count), pivots)
    for chain in (chain for listed in ranked for chain in listed):
        _sort_in(chain, pivots, between)
    parts, start = [], 0
    for part in between:
        if start >= k:
            break
        parts.append((sorted(part), k - start))
        start += len(part) + 1
    sorted_parts = yield from together([best(part, wanted, lister, longest) for part, wanted in parts])
    in_order: list[int] = []
    for number, part in enumerate(sorted_parts):
        in_order += part if number == count else [*part, pivots[number]]
    return in_order


def _sort_in(chain: Chain, pivots: Sequence[int], between: list[list[int]]) -> None:
    """Put each other item of a chain into the part for the number of pivots before it."""
    passed = 0
    for item in chain:
        if item in pivots:
            passed += 1
        else:
            between[passed].append(item)
