"""The usual baselines: the k tables of highest coarse relevance, by meaning, by words, or by both."""

from __future__ import annotations

import numpy as np

from tagframe.retrieval.method import Method, all_tables, by_both, by_meaning, by_words
from tagframe.retrieval.problem import Selection, SelectionProblem, best_first, spanning_forest


def best(problem: SelectionProblem, k: int | None = None) -> Selection:
    """The k tables of highest ``r``, such as a bi-encoder's cosine, BM25, or the caller's own scores.

    >>> best(SelectionProblem(r=np.array([0.2, 0.9, 0.5])), 2).indices
    (1, 2)
    """
    order = best_first(np.where(problem.anchor, -np.inf, problem.r))[: problem.wanted(k)]
    members = [*order.tolist(), *np.flatnonzero(problem.anchor).tolist()]
    edges, _ = spanning_forest(problem.omega, members)
    score = problem.r[order]
    return Selection(tuple(order.tolist()), edges, float(score.sum()), score, {"coarse": score})


DENSE = Method("dense", "ranks tables by the cosine of embeddings", by_meaning, all_tables, best)
LEXICAL = Method("lexical", "ranks tables by the words of their names (BM25)", by_words, all_tables, best)
HYBRID = Method("hybrid", "ranks tables by both", by_both, all_tables, best)
