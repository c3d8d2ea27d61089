"""Whether a cascade reaches its targets, and how many calls it saves, on synthetic scores.

Each run draws new rows, scores of a proxy, and the truth. It decides the rows as ``sem_filter(cascade=…)`` does, and
compares the decision with the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tagframe.operators.cascade import Decision, Positions, Targets, Truths, calibrated, decide

Drawn: TypeAlias = tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]
"""The scores and the truth of the rows."""


def binormal(random: np.random.Generator, rows: int, prevalence: float, auc: float = 0.9) -> Drawn:
    """Scores from two normal distributions of variance 1, with an area under the ROC curve of ``auc``."""
    true = random.permutation(rows) < round(rows * prevalence)
    apart = np.sqrt(2) * NormalDist().inv_cdf(auc)
    return random.normal(size=rows) + apart * true, true


def _few_values(random: np.random.Generator, rows: int, prevalence: float) -> Drawn:
    scores, true = binormal(random, rows, prevalence)
    return np.digitize(scores, [-0.5, 0.8, 1.8]).astype(float), true


def _ties_in_order(random: np.random.Generator, rows: int, prevalence: float) -> Drawn:
    """Scores with many ties, in a frame that begins with the true rows."""
    scores, true = binormal(random, rows, prevalence)
    order = np.argsort(~true, kind="stable")
    return np.round(scores[order]), true[order]


def _wrong_at_the_ends(random: np.random.Generator, rows: int, prevalence: float) -> Drawn:
    """Some of the rows with the highest certainty are wrong, as if the proxy did not understand the claim."""
    scores, true = binormal(random, rows, prevalence)
    return scores, true ^ (random.random(rows) < 0.02)


PROXIES: dict[str, Callable[[np.random.Generator, int, float], Drawn]] = {
    "binormal": binormal,
    "constant": lambda random, rows, prevalence: (np.zeros(rows), random.random(rows) < prevalence),
    "reversed": lambda random, rows, prevalence: (lambda drawn: (-drawn[0], drawn[1]))(
        binormal(random, rows, prevalence)
    ),
    "few_values": _few_values,
    "ties_in_order": _ties_in_order,
    "wrong_at_the_ends": _wrong_at_the_ends,
    "all_true": lambda random, rows, prevalence: (random.normal(size=rows), np.ones(rows, dtype=bool)),
    "all_false": lambda random, rows, prevalence: (random.normal(size=rows), np.zeros(rows, dtype=bool)),
}
"""Proxies for which the targets must be reached; their savings differ."""


def answered(deciding: Generator[Positions, Truths, Decision], oracle: Callable[[Positions], Truths]) -> Decision:
    """The decision, with an oracle that judges the rows at some positions."""
    positions = next(deciding)
    while True:
        try:
            positions = deciding.send(oracle(positions))
        except StopIteration as end:
            decision: Decision = end.value
            return decision


def decided(scores: npt.NDArray[np.float64], true: npt.NDArray[np.bool_], targets: Targets, seed: int) -> Decision:
    """The decision over rows with a known truth."""
    deciding = decide(np.ones(len(true), dtype=np.intp), calibrated(scores), targets, seed)
    return answered(deciding, lambda positions: true[positions].astype(np.int8))


def reached(decision: Decision, true: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Recall and precision; 1 if there is nothing to find, or nothing was kept."""
    kept = decision.truths == 1
    right = int((kept & true).sum())
    return right / max(int(true.sum()), 1) if true.any() else 1.0, right / int(kept.sum()) if kept.any() else 1.0


def simulate(proxy: str, rows: int, prevalence: float, targets: Targets, runs: int) -> tuple[float, float]:
    """The share of runs that missed a target, and of rows that need a call, over runs with seeds 0, 1, …"""
    misses, shares = 0, []
    for seed in range(runs):
        random = np.random.default_rng([seed, 1])  # not the stream of the samples
        scores, true = PROXIES[proxy](random, rows, prevalence)
        decision = decided(scores, true, targets, seed)
        recall, precision = reached(decision, true)
        misses += recall < targets.recall - 1e-12 or precision < targets.precision - 1e-12
        shares.append(float(decision.judged.mean()))
    return misses / runs, float(np.mean(shares))
