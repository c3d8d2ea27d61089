"""The baseline of every paper: the k tables of highest coarse relevance."""

from __future__ import annotations

import numpy as np

from tagframe.retrieval.problem import Selection, SelectionProblem, best_first, spanning_forest


def dense(problem: SelectionProblem) -> Selection:
    """The k tables of highest ``r``, whatever ``r`` is: a bi-encoder's cosine, BM25, or scores of the caller's own.

    >>> dense(SelectionProblem(r=np.array([0.2, 0.9, 0.5]), k=2)).indices
    (1, 2)
    """
    order = best_first(np.where(problem.anchor, -np.inf, problem.r))[: problem.size]
    members = [*order.tolist(), *np.flatnonzero(problem.anchor).tolist()]
    edges, _ = spanning_forest(problem.omega, members)
    score = problem.r[order]
    return Selection(tuple(order.tolist()), edges, float(score.sum()), score, {"coarse": score})
