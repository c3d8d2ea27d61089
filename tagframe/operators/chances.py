"""Each row's probability of being true, from a proxy and the answers so far; a cascade samples by it."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from tagframe.operators.proxy_rows import Estimate, Floats, Positions, Truths

FOLDS = 5
COMPONENTS = 128
"""Principal components of the vectors that a classifier is trained on."""
_PENALTY = 1.0
"""On the weights (L2) of vectors that are a unit away from their mean."""
_NEWTON_STEPS = 40
_MAX_LOGIT = 30.0


def calibrated(scores: Floats) -> Estimate:
    """Probabilities from fixed scores without assumptions: a higher score may mean true, or false.

    A logistic regression on the scores' ranks as normal deviates, and their squares.

    Args:
        scores: shape (n,), finite.
    """
    deviates = _deviates(scores)

    def estimate(rows: Positions, truths: Truths) -> Floats:
        return _calibration(deviates[rows], truths, deviates)

    return estimate


def trained(vectors: Floats) -> Estimate:
    """Probabilities from a classifier that is trained on the answers: a logistic regression on vectors.

    A classifier is too sure of its training rows. So each fifth of these is scored by a classifier that was trained
    without it. Then scores are turned into probabilities as in :func:`calibrated`.

    Args:
        vectors: shape (n, d), rows of about the same length.
    """
    centred = vectors - vectors.mean(axis=0)
    if centred.shape[1] > COMPONENTS:
        _, directions = np.linalg.eigh(centred.T @ centred)
        centred = centred @ directions[:, -COMPONENTS:]
    centred = centred / (np.sqrt((centred**2).sum(axis=1).mean()) or 1.0)
    features = np.column_stack([np.ones(len(vectors)), centred])
    penalties = np.full(features.shape[1], _PENALTY)
    penalties[0] = 1e-3

    def estimate(rows: Positions, truths: Truths) -> Floats:
        true = truths == 1
        whole = fit_logistic(features[rows], true, penalties)
        scores = features @ whole
        order = np.argsort(scores, kind="stable")
        deviates = _deviates(scores)
        unseen = np.empty(len(rows))
        for fold in range(FOLDS):
            tested = np.arange(len(rows)) % FOLDS == fold
            weights = fit_logistic(features[rows[~tested]], true[~tested], penalties, near=whole)
            unseen[tested] = features[rows[tested]] @ weights
        predicted = np.interp(unseen, scores[order], deviates[order])
        return _calibration(predicted, truths, deviates)

    return estimate


def fit_logistic(features: Floats, true: Truths, penalties: Floats, near: Floats | None = None) -> Floats:
    """The weights of a logistic regression with L2 penalties, by Newton's method.

    Args:
        features: shape (n, d).
        true: shape (n,), of 0 and 1 or of booleans.
        penalties: shape (d,), above 0.
        near: initial weights; they affect the speed, not the result.
    """
    weights = np.zeros(features.shape[1]) if near is None else near.copy()
    for _ in range(_NEWTON_STEPS):
        chances = _chances(features @ weights)
        slopes = chances * (1 - chances) + 1e-9
        gradient = features.T @ (true - chances) - penalties * weights
        curvature = (features * slopes[:, None]).T @ features + np.diag(penalties)
        step = np.linalg.solve(curvature, gradient)
        step *= min(1.0, 8.0 / max(float(np.abs(step).max()), 1e-12))  # a full step from far away may diverge
        weights += step
        if float(np.abs(step).max()) < 1e-5:
            break
    return weights


def _calibration(predicted: Floats, truths: Truths, deviates: Floats) -> Floats:
    def powers(values: Floats) -> Floats:
        return np.stack([np.ones(len(values)), values, values**2 - 1], axis=1)

    weights = fit_logistic(powers(predicted), truths == 1, np.array([1e-3, 0.1, 0.5]))
    return _chances(powers(deviates) @ weights)


def _chances(logits: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -_MAX_LOGIT, _MAX_LOGIT))))


def _deviates(scores: Floats) -> Floats:
    """Ranks of scores as normal deviates; equal scores have equal deviates."""
    _, which, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2) / len(scores)
    normal = NormalDist()
    return np.array([normal.inv_cdf(rank) for rank in ranks])[which]
