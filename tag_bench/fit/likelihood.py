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


def fit_choices(
    names: Sequence[str],
    parts: Sequence[npt.NDArray[np.floating[Any]]],
    goals: Sequence[Sequence[int]],
    share: Floats,
    penalty: float,
    *,
    apart: bool = False,
    alike: npt.NDArray[Any] | None = None,
    near: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """The weights that give the goals of each part the highest probability: a conditional logit with an L2 penalty.

    Args:
        names: of the weights.
        parts: the rows of each question, shape (rows, len(names)).
        goals: which of them are right.
        share: the weight of each question.
        penalty: per standard deviation.
        apart: whether each of several goals is compared only with rows that are no goals.
        alike: a value for each row of all parts; the goals are compared once more with the rows of their value.
        near: the weights from which the penalty counts; None for zeros.
    """
    rows = np.concatenate(parts)
    scale = rows.std(axis=0) + (1e-9 if rows.dtype == np.float64 else 1e-6)  # what is constant has none
    rows = rows / scale
    known = np.array([(near or {}).get(name, 0.0) for name in names]) * scale
    among: list[npt.NDArray[np.intp]] = []  # the rows that are compared: the goal first
    each: list[float] = []
    starts = np.cumsum([0, *map(len, parts)])
    for start, end, right, weight in zip(starts, starts[1:], goals, share.tolist(), strict=False):
        every = np.arange(start, end)
        for goal in [start + one for one in right]:
            out = start + np.array(right) if apart else goal
            among.append(np.append(goal, np.setdiff1d(every, out)))
            each.append(weight / len(right))
            if alike is not None:
                among.append(among[-1][alike[among[-1]] == alike[goal]])
                each.append(weight)
    position, counts, weight_of = np.concatenate(among), np.array([*map(len, among)]), np.array(each)
    first = np.cumsum(counts) - counts

    def step(weights: Floats) -> _Step:
        scores = (rows @ weights.astype(rows.dtype)).astype(np.float64)[position]
        odds = np.exp(scores - np.repeat(np.maximum.reduceat(scores, first), counts))
        chance = odds / np.repeat(np.add.reduceat(odds, first), counts)
        slope = chance * np.repeat(weight_of, counts)
        slope[first] -= weight_of
        away = weights - known
        loss = penalty * float(away @ away) - float(weight_of @ np.log(chance[first] + 1e-300))
        by_row = np.bincount(position, slope, len(rows)).astype(rows.dtype)
        return loss, (by_row @ rows).astype(np.float64) + 2 * penalty * away

    return dict(zip(names, (minimised(step, len(names)) / scale).tolist(), strict=True))


def fit_tables(group: Sequence[Example]) -> dict[str, float]:
    """The first stage: every needed table against the tables that are not needed."""
    known = [example for example in group if example.gold]
    rows, goals = [example.problem.signals for example in known], [example.gold or () for example in known]
    return fit_choices(SIGNALS, rows, goals, of_examples(known), TABLE_PENALTY, apart=True)


def fit_sets(
    group: Sequence[Example],
    first_stage: Weights,
    penalty: float = SET_PENALTY,
    near: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """The second stage: the needed set against all small sets, and again against those of its size.

    The first comparison fits how many tables are needed, the second which ones. If a user gives k, only the second
    matters.
    """
    random = np.random.default_rng(SEED)
    sets_of = [(example, _sets_of(example, first_stage, random)) for example in with_progress(group, "sets")]
    usable = [(example, *sets) for example, sets in sets_of if sets is not None]
    examples, rows, goals = zip(*usable, strict=True)
    size = np.concatenate([part[:, _SIZES] @ np.arange(1, len(_SIZES) + 1) for part in rows])
    return fit_choices(
        FEATURES, rows, [[goal] for goal in goals], of_examples(examples), penalty, alike=size, near=near
    )


def hard_ones(
    rough: npt.NDArray[Any], goal: int, most: int, at_random: int, random: np.random.Generator
) -> tuple[npt.NDArray[np.intp], int]:
    """The rows to compare a goal with: those with the highest rough scores, and some at random; and where it stands."""
    hardest = np.argsort(-rough, kind="stable")[:most]
    compared = np.unique([goal, *hardest, *random.choice(len(rough), min(at_random, len(rough)), replace=False)])
    return compared, int(np.searchsorted(compared, goal))


def _sets_of(
    example: Example, weights: Weights, random: np.random.Generator
) -> tuple[npt.NDArray[np.float32], int] | None:
    """The features of the needed set, the hardest others and some more, and which one is needed."""
    positions, problem = example.scored(weights, SET_POOL)
    tables = positions.tolist()
    if not example.gold or not set(example.gold) <= set(tables):
        return None
    wanted = [tables.index(table) for table in example.gold]
    start, goal = 0, None
    for sets in index_sets(len(tables)):
        if sets.shape[1] == len(wanted):
            goal = start + int(np.flatnonzero((sets == wanted).all(axis=1))[0])
        start += len(sets)
    if goal is None:  # more tables than the largest sets have
        return None
    features = set_features(problem, np.arange(len(tables), dtype=np.intp)).astype(np.float32)
    rough = features[:, FEATURES.index("sum_prior")] + 0.5 * features[:, FEATURES.index("link_tree")]
    rough = rough + _ROUGH_SIZE * (features[:, _SIZES] @ np.arange(1, len(_SIZES) + 1))
    compared, position = hard_ones(rough, goal, SETS - RANDOM_SETS, RANDOM_SETS, random)
    return features[compared], position


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
