"""Set selectors: pure functions from a :class:`~tagframe.retrieval.problem.SelectionProblem` to a ``Selection``."""

from tagframe.retrieval.selectors.dense import dense
from tagframe.retrieval.selectors.greedy import GreedyWeights, greedy

__all__ = ["GreedyWeights", "dense", "greedy"]
