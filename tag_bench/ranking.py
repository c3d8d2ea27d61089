"""``tag_bench ranking``: a simulation of the top K of many rows, with a judge that is wrong in a share of its answers.

There is no model and no server: rows are numbers. Our method (lists of 30) is compared with quick-select
with random pivots, the default of LOTUS 1.2.4 (``llm_quicksort``). A list is sorted by the same judge. The cost of a
prompt is its instruction and the rows in it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import click
import numpy as np

from tag_bench import benchmark, number
from tagframe.operators import ranked_lists
from tagframe.operators.step_generators import Step
from tagframe.operators.topk import LIST_ROWS

IN_FLIGHT = 64


class Oracle:
    """Compares by number (the smaller one is better), and is wrong at random.

    Args:
        wrong: the share of wrong answers.
        seed: for the choice of wrong answers.
        firm: whether a pair always gets the same answer, in either order.
    """

    def __init__(self, wrong: float, seed: int, firm: bool) -> None:
        self.aside: dict[int, Exception] = {}
        self.asked = 0
        self.shown = 0
        self.waves = 0
        self._wrong, self._rng, self._firm = wrong, np.random.default_rng(seed), firm
        self._known: dict[frozenset[int], bool] = {}

    def judge(self, pairs: Sequence[tuple[int, int]]) -> list[bool]:
        """Whether the judge prefers the first of each pair."""
        self._count(len(pairs), 2 * len(pairs))
        return self._said(pairs)

    def _count(self, prompts: int, rows: int) -> None:
        self.asked += prompts
        self.shown += rows
        self.waves += -(-prompts // IN_FLIGHT)

    def _said(self, pairs: Sequence[tuple[int, int]]) -> list[bool]:
        said = []
        for first, second in pairs:
            wrong = bool(self._rng.random() < self._wrong)
            if self._firm:
                wrong = self._known.setdefault(frozenset((first, second)), wrong)
            said.append((first < second) != wrong)
        return said

    def rank(
        self, lists: Sequence[Sequence[int]], shared: Sequence[int] = (), wanted: int | None = None
    ) -> Step[list[list[list[int]]]]:
        """As :class:`tagframe.operators.ranked_lists.Lister` has it."""
        yield from ()
        whole = [[*shared, *listed] for listed in lists]
        self._count(len(whole), sum(map(len, whole)))

        def compared(one: int, other: int) -> int:
            return -1 if self._said([(one, other)])[0] else 1

        return [[sorted(listed, key=functools.cmp_to_key(compared))[:wanted]] for listed in whole]


def quick_select(n: int, k: int, oracle: Oracle, seed: int) -> list[int]:
    """The first ``k``, by LOTUS's method."""
    rng = np.random.default_rng(seed)
    order = [int(item) for item in rng.permutation(n)]

    def sort(low: int, high: int, wanted: int) -> None:
        if high <= low:
            return
        at = int(rng.integers(low, high + 1))
        order[at], order[high] = order[high], order[at]
        pivot, rest = order[high], order[low:high]
        said = oracle.judge([(item, pivot) for item in rest])
        better = [item for item, is_better in zip(rest, said, strict=True) if is_better]
        worse = [item for item, is_better in zip(rest, said, strict=True) if not is_better]
        order[low : high + 1] = [*better, pivot, *worse]
        middle = low + len(better)
        if len(better) + 1 >= wanted:
            sort(low, middle - 1, wanted)
        else:
            sort(low, middle - 1, len(better))
            sort(middle + 1, high, wanted - len(better) - 1)

    sort(0, n - 1, k)
    return order[:k]


def by_lists(n: int, k: int, oracle: Oracle, seed: int) -> list[int]:
    """The first ``k``, by ``sem_topk``."""
    return _ended(ranked_lists.best(_mixed(n, seed), k, oracle, LIST_ROWS))[:k]


def _mixed(n: int, seed: int) -> list[int]:
    return [int(item) for item in np.random.default_rng(seed).permutation(n)]


def _ended(step: Step[list[int]]) -> list[int]:
    try:
        while True:
            next(step)
    except StopIteration as end:
        found: list[int] = end.value
        return found


def _summary(runs: Sequence[tuple[list[int], Oracle]], k: int) -> dict[str, float]:
    overlap = [len(set(found) & set(range(k))) / k for found, _ in runs]
    asked = [oracle.asked for _, oracle in runs]
    return {
        "overlap": round(float(np.mean(overlap)), 4),
        "exact": round(float(np.mean([found == list(range(k)) for found, _ in runs])), 4),
        "prompts": round(float(np.mean(asked)), 1),
        "prompts_at_most": max(asked),
        "rows_shown": round(float(np.mean([oracle.shown for _, oracle in runs])), 1),
        "waves": round(float(np.mean([oracle.waves for _, oracle in runs])), 1),
    }


def simulate(n: int, k: int, wrong: float, seeds: int, firm: bool) -> dict[str, Any]:
    """Both methods."""
    ways = {"lists": by_lists, "peer": quick_select}
    cases: dict[str, Any] = {"wrong": wrong, "firm": firm}
    for name, way in ways.items():
        runs = []
        for seed in range(seeds):
            oracle = Oracle(wrong, seed, firm)
            runs.append((way(n, k, oracle, seed), oracle))
        cases[name] = _summary(runs, k)
    return cases


@benchmark("ranking")
@number("--rows", 1000, "", least=2)
@number("-k", 10, "", called="--keep")
@click.option(
    "--wrong", type=click.FloatRange(0, 0.5), default=0.05, show_default=True, help="The share of wrong answers."
)
@number("--seeds", 200, "")
def command(rows: int, keep: int, wrong: float, seeds: int) -> dict[str, Any]:
    """Simulate the top K of many rows with some wrong answers.

    Example: python -m tag_bench ranking --json -
    """
    cases = [simulate(rows, keep, share, seeds, firm) for share, firm in ((0.0, True), (wrong, False), (wrong, True))]
    return {"rows": rows, "k": keep, "seeds": seeds, "cases": cases}
