"""``tag_bench ranking``: the first K of many by a judge of whom a share of the answers is wrong, simulated.

No model and no server: rows are numbers. Beside ours stands quick-select with random pivots, as LOTUS 1.2.4 does it
by default (``llm_quicksort``); what it asks in each run is what ours is given in the same run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click
import numpy as np

from tagframe.operators.knockout import Pair, best, comparisons_needed
from tagframe.operators.steps import Step

IN_FLIGHT = 64


class Oracle:
    """Compares by number, the smaller one is better, and is wrong at random.

    Args:
        wrong: share of the answers.
        seed: of what is wrong.
        firm: whether one pair gets one answer, however often and in whatever order it is asked.
        limit: comparisons at most.
        enough: comparisons up to which what is in order is asked again.
    """

    def __init__(self, wrong: float, seed: int, firm: bool, limit: int = 10**9, enough: int = 0) -> None:
        self.aside: dict[int, Exception] = {}
        self.stopped: Exception | None = None
        self.short = False
        self.asked = 0
        self.waves = 0
        self._wrong, self._rng, self._firm = wrong, np.random.default_rng(seed), firm
        self._limit, self._enough = limit, enough
        self._known: dict[frozenset[int], bool] = {}
        self._wins: dict[int, dict[int, float]] = {}

    @property
    def left(self) -> int:
        """Comparisons that may still be asked."""
        return self._limit - self.asked

    @property
    def spare(self) -> int:
        """Comparisons that may be asked for certainty."""
        return self._enough - self.asked

    def judge(self, pairs: Sequence[Pair]) -> list[bool]:
        """Whether the first of each pair is said to be better."""
        self.asked += len(pairs)
        self.waves += -(-len(pairs) // IN_FLIGHT)
        said = []
        for first, second in pairs:
            wrong = bool(self._rng.random() < self._wrong)
            if self._firm:
                wrong = self._known.setdefault(frozenset((first, second)), wrong)
            said.append((first < second) != wrong)
        return said

    def compare(self, pairs: Sequence[Pair]) -> Step[list[float | None]]:
        """As :class:`tagframe.operators.knockout.Judge` has it."""
        yield from ()
        said = self.judge(pairs)
        for (first, second), better in zip(pairs, said, strict=True):
            known = self._wins.setdefault(first if better else second, {})
            worse = second if better else first
            known[worse] = known.get(worse, 0.0) + 1.0
        return [float(better) for better in said]

    def answers(self, items: Sequence[int]) -> list[tuple[int, int, float]]:
        """As :class:`tagframe.operators.knockout.Judge` has it."""
        among = set(items)
        return [
            (better, worse, weight)
            for better in items
            for worse, weight in self._wins.get(better, {}).items()
            if worse in among
        ]


def quick_select(n: int, k: int, oracle: Oracle, seed: int) -> list[int]:
    """The first ``k`` as LOTUS finds them."""
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


def knock_out(n: int, k: int, oracle: Oracle, seed: int) -> list[int]:
    """The first ``k`` as ``sem_topk(compare="pair")`` finds them."""
    items = [int(item) for item in np.random.default_rng(seed).permutation(n)]
    step = best(items, k, oracle)
    try:
        while True:
            next(step)
    except StopIteration as end:
        found: list[int] = end.value
    return found[:k]


def _summary(runs: Sequence[tuple[list[int], Oracle]], k: int) -> dict[str, float]:
    overlap = [len(set(found) & set(range(k))) / k for found, _ in runs]
    asked = [oracle.asked for _, oracle in runs]
    return {
        "overlap": round(float(np.mean(overlap)), 4),
        "exact": round(float(np.mean([found == list(range(k)) for found, _ in runs])), 4),
        "comparisons": round(float(np.mean(asked)), 1),
        "comparisons_at_most": max(asked),
        "waves": round(float(np.mean([oracle.waves for _, oracle in runs])), 1),
    }


def simulate(n: int, k: int, wrong: float, seeds: int, firm: bool) -> dict[str, Any]:
    """Both ways, and ours without being given as much."""
    peers, given, own = [], [], []
    for seed in range(seeds):
        peer = Oracle(wrong, seed, firm)
        peers.append((quick_select(n, k, peer, seed + 10**6), peer))
        same = Oracle(wrong, seed, firm, peer.asked, peer.asked)
        given.append((knock_out(n, k, same, seed), same))
        alone = Oracle(wrong, seed, firm, 3 * comparisons_needed(n, k), comparisons_needed(n, k))
        own.append((knock_out(n, k, alone, seed), alone))
    return {
        "wrong": wrong,
        "firm": firm,
        "ours": _summary(own, k),
        "ours_given_as_many": _summary(given, k),
        "peer": _summary(peers, k),
    }


@click.command("ranking", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rows", type=click.IntRange(min=2), default=1000, show_default=True)
@click.option("-k", "--keep", type=click.IntRange(min=1), default=10, show_default=True)
@click.option("--wrong", type=click.FloatRange(0, 0.5), default=0.05, show_default=True, help="Share of the answers.")
@click.option("--seeds", type=click.IntRange(min=1), default=200, show_default=True)
@click.option("--json", "output", type=click.File("w"), default="-", help="Where the JSON goes; - for standard output.")
def command(rows: int, keep: int, wrong: float, seeds: int, output: Any) -> None:
    """Simulate the top K of many with answers of which some are wrong.

    Example: python -m tag_bench ranking --json -
    """
    cases = [simulate(rows, keep, share, seeds, firm) for share, firm in ((0.0, True), (wrong, False), (wrong, True))]
    json.dump({"rows": rows, "k": keep, "seeds": seeds, "cases": cases}, output, indent=2)
    output.write("\n")
