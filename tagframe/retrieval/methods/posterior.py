"""The probability of every small set of tables, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from tagframe.retrieval.problem import LINKED, Floats, SelectionProblem

_SHARE_OF_COMPLETE = 0.5
"""The weight of P(all tables are in the set) against the expected recall."""

_MIN_GAIN = 1e-4
"""If the best further table adds less, the first stage chooses the table, not the posterior."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """The probability of every small set.

    Attributes:
        positions: shape (p,), ascending: the tables of which sets are made.
        masks: shape (sets,): bit b of a mask stands for ``positions[b]``.
        probability: shape (sets,), sums to 1.
    """

    positions: npt.NDArray[np.intp]
    masks: npt.NDArray[np.int64]
    probability: Floats

    @cached_property
    def members(self) -> Floats:
        """Shape (sets, p): 1 if a set has a table."""
        return (self.masks[:, None] >> np.arange(len(self.positions)) & 1).astype(np.float64)

    @cached_property
    def sizes(self) -> Floats:
        """Shape (sets,): how many tables each set has."""
        return np.asarray(self.members.sum(axis=1))

    @cached_property
    def _contained(self) -> Floats:
        """For every mask of ``positions``, the probability that it is complete: shape (2 ** p,)."""
        contained = np.zeros(1 << len(self.positions))
        contained[self.masks] = self.probability
        for bit in reversed(range(len(self.positions))):  # sums over subsets, one table at a time
            halves = contained.reshape(-1, 2, 1 << bit)
            halves[:, 1] += halves[:, 0]
        return contained

    def given_at_least(self, size: int) -> Posterior:
        """The posterior given that at least so many tables are needed, up to the size of the largest sets."""
        probability = self.probability * (self.sizes >= min(size, int(self.sizes.max(initial=0))))
        return Posterior(self.positions, self.masks, probability / max(float(probability.sum()), 1e-300))

    def tables(self) -> Floats:
        """The probability of each of ``positions``."""
        return np.asarray(self.probability @ self.members)

    def best(self, size: int, fixed: int = 0) -> tuple[int, float]:
        """The mask of ``size`` tables that best contains what is needed, and its value.

        The value of a set is half the probability that it is complete plus half the expected recall.

        Args:
            size: how many tables, those of ``fixed`` counted.
            fixed: a mask of tables that are in the set in any case.
        """
        allowed, bits = _masks_of(len(self.positions), size, fixed)
        recall = (self.probability / self.sizes) @ self.members
        value = _SHARE_OF_COMPLETE * self._contained[allowed] + (1 - _SHARE_OF_COMPLETE) * (bits @ recall)
        # If all needed tables are surely included, likelier tables go first.
        value = value + 1e-9 * (bits @ self.tables())
        position = int(value.argmax())
        return int(allowed[position]), float(value[position])

    def mask(self, tables: Iterable[int]) -> int:
        """The mask of some tables; tables that are not in ``positions`` are left out."""
        wanted = set(tables)
        return sum(1 << bit for bit, position in enumerate(self.positions.tolist()) if position in wanted)

    def contained(self, mask: int) -> float:
        """The probability that a set is complete."""
        return float(self.probability[(self.masks & ~mask) == 0].sum())

    def extended(self, mask: int, prior: Floats, fixed: int = 0) -> list[int]:
        """The bits of further tables, in the order of what each adds to the value of :meth:`best`.

        It ends when no table adds a noticeable amount.

        Args:
            mask: the tables that are in the set.
            prior: shape (p,), which of equal tables goes first.
            fixed: a mask of tables that are in the set in any case.
        """
        members = self.members
        inside = ((mask | fixed) >> np.arange(len(self.positions)) & 1).astype(bool)
        recall = (1 - _SHARE_OF_COMPLETE) * ((self.probability / self.sizes) @ members)
        bits: list[int] = []
        while not inside.all():
            last = self.probability * (members @ ~inside == 1)  # of sets that lack one table only
            gain = np.where(inside, -np.inf, recall + _SHARE_OF_COMPLETE * (last @ members))
            bit = int(np.lexsort((-prior, -gain.round(9)))[0])
            if gain[bit] < _MIN_GAIN:
                break
            inside[bit] = True
            bits.append(bit)
        return bits


@lru_cache(maxsize=32)
def _masks_of(count: int, size: int, fixed: int) -> tuple[npt.NDArray[np.int64], Floats]:
    """All masks of ``size`` of ``count`` tables that contain ``fixed``, and their bits: shape (masks, count)."""
    every = np.arange(1 << count, dtype=np.int64)
    bits = every[:, None] >> np.arange(count) & 1
    allowed = np.flatnonzero((bits.sum(axis=1) == size) & ((every & fixed) == fixed))
    return allowed.astype(np.int64), bits[allowed].astype(np.float64)


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

_MIN_CHANCE = 1e-3

_LAST_PROMISING_RANK = 14
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
    last = np.sort(problem.r)[-_LAST_PROMISING_RANK] if len(problem.r) >= _LAST_PROMISING_RANK else -np.inf
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
    chances = np.clip(chances, _MIN_CHANCE, 1 - _MIN_CHANCE)
    return np.asarray(np.log(chances / (1 - chances)))
