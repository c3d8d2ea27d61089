"""The probability that a set is complete: the posterior's value, corrected by how often it was right."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tagframe.retrieval.methods.posterior import Posterior
from tagframe.retrieval.problem import LINKED, Floats, SelectionProblem

COMPLETE = ("one", "logit", "size", "entropy", "beyond", "log_tables", "words", "known")
"""The features of the probability that a set is complete, in order: a constant; the log odds of the posterior's value;
the number of tables; the posterior's own doubts (:func:`doubts`); and those facts of a question that show how many
similar tables there are, and how well the best one fits."""

NAMES = ("one", "sure", "log_tables", "unlinked")
"""The features that lower it if only the names of one large database are known, in order: a constant, the log odds of
the usual value, the number of tables, and the share of likely tables without links. The databases of a fit say little
about another warehouse: with more features, the value is worse on a database that was left out."""

ONE_WAY = {"sure": 1, "log_tables": -1, "unlinked": -1}
"""The signs that the weights of these may have."""

BARE = 0.5
"""If a larger share of the tables has no known row, only names count as known."""

_LEAST = 1e-3

_PROMISING = 14
"""The rank of the table whose odds show whether tables outside all sets may be needed."""


def doubts(problem: SelectionProblem, known: Posterior) -> dict[str, float]:
    """How uncertain the posterior of a question is.

    Args:
        problem: with the first stage's score as ``r``; the best is 0.
        known: the posterior.

    Returns:
        entropy: of the posterior over sets, in nats; beyond: the odds of the last table of which sets are made against
        the best one, 0 if there are fewer tables; unlinked: the share of these tables that are linked to none of the
        others.
    """
    sure = known.probability[known.probability > 0]
    last = np.sort(problem.r)[-_PROMISING] if len(problem.r) >= _PROMISING else -np.inf
    linked = problem.link[np.ix_(known.positions, known.positions)] >= LINKED
    np.fill_diagonal(linked, False)
    return {
        "entropy": float(-sure @ np.log(sure)),
        "beyond": float(np.exp(last)),
        "unlinked": 1 - float(linked.any(axis=0).mean()) if len(linked) > 1 else 0.0,
    }


def complete_features(contained: Floats, sizes: Floats, facts: Mapping[str, float]) -> Floats:
    """The features of some sets of one question.

    Args:
        contained: shape (sets,), the posterior's probability that a set is complete.
        sizes: shape (sets,), how many tables it has.
        facts: of the question, with its :func:`doubts`; unknown ones are 0.

    Returns:
        Shape (sets, len(COMPLETE)).
    """
    columns = {"one": np.ones(len(sizes)), "logit": log_odds(contained), "size": sizes}
    return np.stack([columns.get(name, np.full(len(sizes), facts.get(name, 0.0))) for name in COMPLETE], axis=1)


def names_features(chance: float, facts: Mapping[str, float]) -> Floats:
    """The features of a set with this probability if only names are known: shape (len(NAMES),)."""
    known = {**facts, "one": 1.0, "sure": float(log_odds(np.array([chance]))[0])}
    return np.array([known.get(name, 0.0) for name in NAMES])


def log_odds(chances: Floats) -> Floats:
    """The log odds of some probabilities, which are clipped away from 0 and 1."""
    chances = np.clip(chances, _LEAST, 1 - _LEAST)
    return np.asarray(np.log(chances / (1 - chances)))
