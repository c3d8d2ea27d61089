"""The likelihoods of ``tag_bench fit``, and their maxima."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize

from tag_bench.data import SEED
from tag_bench.fit import shares
from tag_bench.fit.examples import Example
from tag_bench.records import with_progress
from tagframe.retrieval.methods.sets import FEATURES, index_sets, set_features
from tagframe.retrieval.methods.weights import Weights
from tagframe.retrieval.problem import Floats
from tagframe.retrieval.signals import SIGNALS

TABLE_PENALTY, SET_PENALTY = 1e-2, 1e-3
"""The L2 penalties of the first and of the second stage, per standard deviation. The first is stronger: with less, a
gain on the databases of the fit is a loss on others. The second is weaker: with more, sets cover too little of a
question in data unlike that of the fit (FIBEN)."""

_SOME_PENALTY = 1e-3  # logistic regressions have few weights and many rows

SET_POOL = 10
"""The number of tables for the sets of the second stage."""

SETS = 160
"""The number of sets per question for the second stage: the needed one, the hardest others, and some at random."""

RANDOM_SETS = 40
_ROUGH_SIZE = 1.2  # what a further table is worth when the hardest sets are picked
_SIZES = np.array([position for position, name in enumerate(FEATURES) if name.startswith("size_")])

_Step = tuple[float, Floats]


def minimised(step: Any, size: int, bounds: Sequence[tuple[float, float]] | None = None) -> Floats:
    """The minimum of a smooth convex function, which gives its value and gradient, within bounds (L-BFGS)."""
    options = {"maxiter": 300}
    result = optimize.minimize(step, np.zeros(size), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.asarray(result.x, dtype=np.float64)


def of_examples(group: Sequence[Example]) -> Floats:
    """The weight of each question; a benchmark counts as the square root of its questions."""
    return shares([(one.data, one.variant) for one in group], 0.5, [one.weight for one in group])


def fit_tables(group: Sequence[Example]) -> dict[str, float]:
    """The first stage: every needed table against the tables that are not needed."""
    known = [example for example in group if example.gold]
    weight = of_examples(known)
    counts = np.array([len(example.ids) for example in known])
    first, owner = np.cumsum(counts) - counts, np.repeat(np.arange(len(known)), counts)
    rows = np.concatenate([example.problem.signals for example in known])
    scale = rows.std(axis=0) + 1e-9
    rows = rows / scale
    gold = np.zeros(len(rows), dtype=bool)
    for start, example in zip(first.tolist(), known, strict=True):
        gold[start + np.array(example.gold)] = True
    each = (weight / np.add.reduceat(gold.astype(float), first))[owner]

    def step(weights: Floats) -> _Step:
        scores = rows @ weights
        odds = np.exp(scores - np.maximum.reduceat(scores, first)[owner])
        rest = (np.add.reduceat(np.where(gold, 0.0, odds), first) + 1e-300)[owner]
        share = np.where(gold, odds / (odds + rest), 1.0)
        loss = -float(each[gold] @ np.log(share[gold] + 1e-300)) + TABLE_PENALTY * float(weights @ weights)
        lacking = np.where(gold, each * (1 - share), 0.0)
        slope = np.where(gold, -lacking, odds / rest * np.add.reduceat(lacking, first)[owner])
        return loss, slope @ rows + 2 * TABLE_PENALTY * weights

    return dict(zip(SIGNALS, (minimised(step, len(SIGNALS)) / scale).tolist(), strict=True))


def fit_sets(group: Sequence[Example], first_stage: Weights) -> dict[str, float]:
    """The second stage: the needed set against all small sets, and again against those of its size.

    The first comparison fits how many tables are needed, the second which ones. If a user gives k, only the second
    matters.
    """
    random = np.random.default_rng(SEED)
    parts, needed, kept = [], [], []
    for example in with_progress(group, "sets"):
        found = _sets_of(example, first_stage, random)
        if found is not None:
            parts.append(found[0])
            needed.append(found[1])
            kept.append(example)
    weight = of_examples(kept)
    counts = np.array([len(part) for part in parts])
    first = np.cumsum(counts) - counts
    every = np.concatenate(parts)
    goal = first + np.array(needed)
    size = every[:, _SIZES] @ np.arange(1, len(_SIZES) + 1)
    alike = size == np.repeat(size[goal], counts)
    scale = every.std(axis=0) + 1e-6
    every = every / scale

    def step(weights: Floats) -> _Step:
        scores = (every @ weights.astype(np.float32)).astype(np.float64)
        odds = np.exp(scores - np.repeat(np.maximum.reduceat(scores, first), counts))
        loss, slope = SET_PENALTY * float(weights @ weights), np.zeros(len(every))
        for among in (odds, np.where(alike, odds, 0.0)):
            total = np.add.reduceat(among, first)
            loss -= float(weight @ np.log(np.maximum(among[goal] / total, 1e-300)))
            slope += among * np.repeat(weight / total, counts)
        slope[goal] -= 2 * weight
        return loss, (every.T @ slope.astype(np.float32)).astype(np.float64) + 2 * SET_PENALTY * weights

    return dict(zip(FEATURES, (minimised(step, len(FEATURES)) / scale).tolist(), strict=True))


def _sets_of(
    example: Example, weights: Weights, random: np.random.Generator
) -> tuple[npt.NDArray[np.float32], int] | None:
    """The features of the needed set, the hardest others and some more, and which one is needed."""
    positions, problem = example.scored(weights, SET_POOL)
    held = positions.tolist()
    if not example.gold or not set(example.gold) <= set(held):
        return None
    wanted = [held.index(table) for table in example.gold]
    start, goal = 0, None
    for sets in index_sets(len(held)):
        if sets.shape[1] == len(wanted):
            goal = start + int(np.flatnonzero((sets == wanted).all(axis=1))[0])
        start += len(sets)
    if goal is None:  # more tables than the largest sets have
        return None
    features = set_features(problem, np.arange(len(held), dtype=np.intp)).astype(np.float32)
    rough = features[:, FEATURES.index("sum_prior")] + 0.5 * features[:, FEATURES.index("link_tree")]
    rough = rough + _ROUGH_SIZE * (features[:, _SIZES] @ np.arange(1, len(_SIZES) + 1))
    hardest = np.argsort(-rough, kind="stable")[: SETS - RANDOM_SETS]
    drawn = random.choice(len(rough), min(RANDOM_SETS, len(rough)), replace=False)
    kept = np.unique(np.concatenate([[goal], hardest, drawn]))
    return features[kept], int(np.flatnonzero(kept == goal)[0])


def fit_logistic(
    features: Floats,
    truth: npt.NDArray[np.bool_],
    weight: Floats,
    names: Sequence[str],
    penalty: float | Floats = _SOME_PENALTY,
    one_way: Mapping[str, int] | None = None,
    fixed: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Logistic regression with an L2 penalty.

    Args:
        features: shape (n, len(names)).
        truth, weight: shape (n,).
        names: of the features.
        penalty: the L2 penalty per standard deviation, for each weight or for all.
        one_way: the fixed sign of some weights, by name.
        fixed: weights that are not fitted, by name.
    """
    fixed = fixed or {}
    stays = features @ np.array([fixed.get(name, 0.0) for name in names])
    scale = features.std(axis=0)
    scale[scale < 1e-9] = 1.0  # of what is constant
    rows = np.where([name in fixed for name in names], 0.0, features / scale)
    share, sign = weight / weight.sum(), np.where(truth, 1.0, -1.0)

    def step(weights: Floats) -> _Step:
        margin = sign * (stays + rows @ weights)
        loss = float(share @ np.logaddexp(0.0, -margin)) + float(np.sum(penalty * weights**2))
        slope = -(share * sign / (1 + np.exp(np.clip(margin, -700, 700)))) @ rows
        return loss, slope + 2 * penalty * weights

    ends = {0: (-np.inf, np.inf), 1: (0.0, np.inf), -1: (-np.inf, 0.0)}
    bounds = [ends[(one_way or {}).get(name, 0)] for name in names]
    return {**dict(zip(names, (minimised(step, len(names), bounds) / scale).tolist(), strict=True)), **fixed}
