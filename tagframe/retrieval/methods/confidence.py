"""How sure a set is to hold all that a question needs: the posterior's chance, corrected by what was seen of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tagframe.retrieval.problem import Floats

COMPLETE = ("one", "logit", "size", "log_tables", "dense", "words", "known")
"""What the chance of a set to be complete is computed from, in order: a constant; the log odds of the posterior's
chance; the tables of the set; and of the facts of a question those that say how much there is to confuse it with, and
how well the best fits."""

_LEAST = 1e-3


def complete_features(contained: Floats, sizes: Floats, facts: Mapping[str, float]) -> Floats:
    """The features of some sets of one question.

    Args:
        contained: shape (sets,), the posterior's chance that a set holds all that is needed.
        sizes: shape (sets,), how many tables it has.
        facts: of the question; what is not known is 0.

    Returns:
        Shape (sets, len(COMPLETE)).
    """
    chance = np.clip(contained, _LEAST, 1 - _LEAST)
    columns = {"one": np.ones(len(sizes)), "logit": np.log(chance / (1 - chance)), "size": sizes}
    return np.stack([columns.get(name, np.full(len(sizes), facts.get(name, 0.0))) for name in COMPLETE], axis=1)
