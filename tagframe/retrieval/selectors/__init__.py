"""Set selectors: pure functions from a :class:`~tagframe.retrieval.problem.SelectionProblem` to a ``Selection``."""

from tagframe.retrieval.selectors.dense import dense
from tagframe.retrieval.selectors.exact import exact
from tagframe.retrieval.selectors.fitted import Weights, fitted, shipped_weights
from tagframe.retrieval.selectors.greedy import GreedyWeights, greedy
from tagframe.retrieval.selectors.mip import mip

__all__ = ["GreedyWeights", "Weights", "dense", "exact", "fitted", "greedy", "mip", "shipped_weights"]
