"""How sure a set is to hold all that a question needs: the posterior's chance, corrected by what was seen of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tagframe.retrieval.methods.posterior import Posterior
from tagframe.retrieval.problem import LINKED, Floats, SelectionProblem

COMPLETE = ("one", "logit", "size", "entropy", "beyond", "log_tables", "words", "known")
"""What the chance of a set to be complete is computed from, in order: a constant; the log odds of the posterior's
chance; the tables of the set; what the posterior doubts (:func:`doubts`); and of the facts of a question those that say
how much there is to confuse it with, and how well the best fits."""

NAMES = ("one", "sure", "log_tables", "unlinked")
"""What it is brought down by, in order, where names are all that is known of one large database: a constant, the log
odds of the chance as it is elsewhere, how many tables there are, and how many of the likely ones nothing links to
others. The databases of a fit say little of another warehouse. With more of the facts the chance holds less well in one
that was left out."""

ONE_WAY = {"sure": 1, "log_tables": -1, "unlinked": -1}
"""Which way each of these can count at all."""

BARE = 0.5
"""The share of tables without a known row, beyond which names are taken to be all that is known."""

_LEAST = 1e-3

_PROMISING = 14
"""The table of which rank says how much may be needed beyond those that sets are made of."""


def doubts(problem: SelectionProblem, known: Posterior) -> dict[str, float]:
    """What the posterior of a question says of its own doubts.

    Args:
        problem: with the first stage's score, of which the best is 0, as ``r``.
        known: the posterior.

    Returns:
        entropy: of the posterior over sets, in nats; beyond: the odds of the last table that sets are made of against
        the best one, 0 where there are fewer tables; unlinked: the share of the tables that sets are made of which
        none of the others is linked to.
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
        contained: shape (sets,), the posterior's chance that a set holds all that is needed.
        sizes: shape (sets,), how many tables it has.
        facts: of the question, and :func:`doubts` of it; what is not known is 0.

    Returns:
        Shape (sets, len(COMPLETE)).
    """
    columns = {"one": np.ones(len(sizes)), "logit": log_odds(contained), "size": sizes}
    return np.stack([columns.get(name, np.full(len(sizes), facts.get(name, 0.0))) for name in COMPLETE], axis=1)


def names_features(chance: float, facts: Mapping[str, float]) -> Floats:
    """The features of a set of such a chance where names are all that is known: shape (len(NAMES),)."""
    known = {**facts, "one": 1.0, "sure": float(log_odds(np.array([chance]))[0])}
    return np.array([known.get(name, 0.0) for name in NAMES])


def log_odds(chances: Floats) -> Floats:
    """The log odds of some chances, of which none is quite sure."""
    chances = np.clip(chances, _LEAST, 1 - _LEAST)
    return np.asarray(np.log(chances / (1 - chances)))
