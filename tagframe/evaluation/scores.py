"""How well a set of tables fits the one that is needed: JAR, section 4.1, and MURRE, section 3.1."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple


class Scores(NamedTuple):
    """The scores of one question, in [0, 1].

    Attributes:
        precision: the share of the found tables that are needed.
        recall: the share of the needed tables that are found.
        f1: their harmonic mean, 0 if no needed table is found.
        complete: whether all needed tables are found.
        exact: whether the needed tables and no others are found.
    """

    precision: float
    recall: float
    f1: float
    complete: bool
    exact: bool


def scores_of(retrieved: Collection[str], needed: Collection[str]) -> Scores:
    """Compare two sets of tables.

    >>> scores_of(["film", "actor"], ["film", "cast"])
    Scores(precision=0.5, recall=0.5, f1=0.5, complete=False, exact=False)
    """
    ours, theirs = set(retrieved), set(needed)
    hit = len(ours & theirs)
    precision, recall = hit / max(len(ours), 1), hit / max(len(theirs), 1)
    f1 = 2 * precision * recall / (precision + recall) if hit else 0.0
    return Scores(precision, recall, f1, theirs <= ours, ours == theirs)
