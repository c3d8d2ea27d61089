"""Iterative join-aware retrieval: tables are chosen one by one, each by what it adds to those chosen before.

Boutaleb, Amann, Angarita, Naacke: Exploring Multi-Table Retrieval Through Iterative Search (AI for Tabular Data, 2025).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tagframe.retrieval.decompose import Decomposer
from tagframe.retrieval.form import Form
from tagframe.retrieval.method import Method, among_candidates, by_both
from tagframe.retrieval.problem import Floats, Selection, SelectionProblem, spanning_forest


@dataclass(frozen=True)
class GreedyWeights:
    """λ of equation 3; the defaults of the three are the paper's (section 4, appendix A), that of the share is ours.

    Attributes:
        coverage, join, coarse: the weights of the three gains.
        link_share: the share of the link score in a join's gain; the rest is ω. The paper uses ω only (0).
    """

    coverage: float = 2.0
    join: float = 1.0
    coarse: float = 4.0
    link_share: float = 0.5


OURS = GreedyWeights()

GREEDY_WEIGHTS: Mapping[str, GreedyWeights] = dict.fromkeys(("spider", "bird", "fiben"), GreedyWeights(link_share=0.0))
"""The paper's λ by data set: the same for all (section 4)."""


@dataclass(frozen=True, eq=False)
class Context:
    """C_k of section 2: the tables chosen so far, and how well they cover each sub-query.

    Attributes:
        selected: the chosen tables in order of choice, the anchors first.
        coverage: shape (q,), the best fine relevance for each sub-query so far (0 at the start).
    """

    selected: tuple[int, ...]
    coverage: Floats


def gains(
    problem: SelectionProblem, context: Context, link_share: float = 0.0, *, seed_as_printed: bool = False
) -> dict[str, Floats]:
    """The three marginal gains of every table, each of shape (n,), unweighted (section 3, equation 2).

    With ``seed_as_printed``, the coverage that a first table adds is the sum of its F, negative ones included (equation
    4). Equation 2 and the authors' code count a negative F as 0; so do we by default.
    """
    added = problem.fine - context.coverage[:, None]
    if context.selected or not seed_as_printed:
        added = np.maximum(added, 0.0)
    selected = list(context.selected)
    return {
        "coarse": problem.r,
        "coverage": problem.row_weight @ added,
        "join": ((1 - link_share) * problem.omega[:, selected] + link_share * problem.link[:, selected]).sum(axis=1),
    }


def update(problem: SelectionProblem, context: Context, table: int) -> Context:
    """Ψ of section 2: the context after a further table."""
    return Context((*context.selected, table), np.maximum(context.coverage, problem.fine[:, table]))


def greedy(
    problem: SelectionProblem,
    k: int | None = None,
    weights: GreedyWeights = OURS,
    *,
    covered_at: float | None = None,
    seed_as_printed: bool = False,
) -> Selection:
    """Choose tables one by one, each the best addition to those chosen so far (equations 3 and 4).

    Args:
        problem: see :class:`SelectionProblem`; anchors are the first context.
        k: how many; None for all, ranked.
        weights: λ.
        covered_at: θ of section 2: stop as soon as every sub-query is covered this well. None never stops early.
        seed_as_printed: whether a negative F counts in the first choice, as in equation 4; see :func:`gains`.

    >>> omega = np.array([[0, 0, 0.9], [0, 0, 0], [0.9, 0, 0]])
    >>> greedy(SelectionProblem(r=np.array([0.5, 0.4, 0.3]), omega=omega), 2, GreedyWeights(link_share=0)).indices
    (0, 2)
    """
    scale = {"coarse": weights.coarse, "coverage": weights.coverage, "join": weights.join}
    context = Context((), np.zeros(len(problem.fine)))
    for table in np.flatnonzero(problem.anchor).tolist():
        context = update(problem, context, table)
    anchors = len(context.selected)
    chosen: list[dict[str, float]] = []
    for _ in range(problem.wanted(k)):
        found = gains(problem, context, weights.link_share, seed_as_printed=seed_as_printed)
        parts = {name: scale[name] * gain for name, gain in found.items()}
        utility = np.sum(list(parts.values()), axis=0)
        utility[list(context.selected)] = -np.inf
        table = int(np.argmax(utility))
        chosen.append({name: float(part[table]) for name, part in parts.items()})
        context = update(problem, context, table)
        if covered_at is not None and len(problem.fine) and context.coverage.min() >= covered_at:
            break
    edges, _ = spanning_forest(problem.omega, context.selected)
    contributions = {name: np.array([parts[name] for parts in chosen]) for name in scale}
    score = np.sum(list(contributions.values()), axis=0) if chosen else np.zeros(0)
    return Selection(context.selected[anchors:], edges, float(score.sum()), score, contributions)


def _formed(form: Form) -> Method[Floats, SelectionProblem]:
    weights = form.weights_of(GREEDY_WEIGHTS, OURS)
    if not form.joined:
        weights = replace(weights, join=0.0)
    return replace(
        GREEDY,
        relevance=form.relevance,
        prepare=partial(among_candidates, setup=form.setup),
        select=partial(greedy, weights=weights, covered_at=form.covered_at, seed_as_printed=form.as_printed),
        said=form.said(weights),
    )


GREEDY: Method[Floats, SelectionProblem] = Method(
    "greedy",
    "takes tables one by one, each the best addition to those chosen so far (iterative join-aware retrieval)",
    by_both,
    among_candidates,
    greedy,
    decomposer=Decomposer(),
    form=_formed,
)
