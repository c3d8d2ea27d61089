"""How sure a set is to hold all that a question needs: the posterior's chance, corrected by what was seen of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tagframe.retrieval.methods.posterior import Posterior
from tagframe.retrieval.problem import Floats

COMPLETE = ("one", "logit", "size", "entropy", "beyond", "log_tables", "words", "known", "bare", "bare_words")
"""What the chance of a set to be complete is computed from, in order: a constant; the log odds of the posterior's
chance; the tables of the set; what the posterior doubts (:func:`doubts`); and of the facts of a question those that say
how much there is to confuse it with, how well the best fits, and whether names are all that is known of one large
database, as of a warehouse, where the posterior is too sure. More of the facts together tell no more of a warehouse
that was left out: how alike its tables are, how many keys link them, or how many are near the best one."""

_LEAST = 1e-3

_PROMISING = 14
"""The table of which rank says how much may be needed beyond those that sets are made of."""


def doubts(prior: Floats, known: Posterior) -> dict[str, float]:
    """What the posterior of a question says of its own doubts.

    Args:
        prior: shape (n,), the first stage's score of each table, of which the best is 0.
        known: the posterior.

    Returns:
        entropy: of the posterior over sets, in nats; beyond: the odds of the last table that sets are made of against
        the best one, 0 where there are fewer tables.
    """
    sure = known.probability[known.probability > 0]
    last = np.sort(prior)[-_PROMISING] if len(prior) >= _PROMISING else -np.inf
    return {"entropy": float(-sure @ np.log(sure)), "beyond": float(np.exp(last))}


def complete_features(contained: Floats, sizes: Floats, facts: Mapping[str, float]) -> Floats:
    """The features of some sets of one question.

    Args:
        contained: shape (sets,), the posterior's chance that a set holds all that is needed.
        sizes: shape (sets,), how many tables it has.
        facts: of the question, and :func:`doubts` of it; what is not known is 0.

    Returns:
        Shape (sets, len(COMPLETE)).
    """
    chance = np.clip(contained, _LEAST, 1 - _LEAST)
    facts = {**facts, "bare_words": facts.get("bare", 0.0) * facts.get("words", 0.0)}
    columns = {"one": np.ones(len(sizes)), "logit": np.log(chance / (1 - chance)), "size": sizes}
    return np.stack([columns.get(name, np.full(len(sizes), facts.get(name, 0.0))) for name in COMPLETE], axis=1)
