"""Iterative join-aware retrieval: tables are chosen one by one, each by what it adds to those chosen before.

Boutaleb, Amann, Angarita, Naacke: Exploring Multi-Table Retrieval Through Iterative Search (AI for Tabular Data, 2025).

Equations 3 and 4 do not say which of several best tables is chosen. In the authors' code candidates are in the order of
the dense ranking; the first choice is the first of them, every later choice the last. As printed, so do we.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from tagframe.errors import InvalidArgument
from tagframe.retrieval.methods.join_aware import JoinAware
from tagframe.retrieval.problem import (
    GREEDY_WEIGHTS,
    Floats,
    GreedyWeights,
    Selection,
    SelectionProblem,
    best_first,
)

DEVIATIONS = {
    "iterative JAR: equation 3": (
        "not printed: how ties are broken; `as_printed=True` does as the authors' code, where the first choice is "
        "the best of the dense ranking and every later one the last; otherwise the table of the lowest id is taken"
    ),
}
"""What is not as printed, or not printed, by paper and place; ``docs/papers.md`` has the same."""

OURS = GreedyWeights()


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
    as_printed: bool = False,
) -> Selection:
    """Choose tables one by one, each the best addition to those chosen so far (equations 3 and 4).

    Args:
        problem: see :class:`SelectionProblem`; anchors are the first context.
        k: how many; None for all, ranked.
        weights: λ.
        covered_at: θ of section 2: stop as soon as every sub-query is covered this well. None never stops early.
        as_printed: whether a negative F counts in the first choice, as in equation 4 (see :func:`gains`), and ties are
            those of the authors' code: the first choice is the table of highest coarse relevance, every later one that
            of lowest. Otherwise a tie goes to the lowest index.

    >>> omega = np.array([[0, 0, 0.9], [0, 0, 0], [0.9, 0, 0]])
    >>> greedy(SelectionProblem(r=np.array([0.5, 0.4, 0.3]), omega=omega), 2, GreedyWeights(link_share=0)).indices
    (0, 2)
    """
    scale = {"coarse": weights.coarse, "coverage": weights.coverage, "join": weights.join}
    context = Context((), np.zeros(len(problem.fine)))
    for table in np.flatnonzero(problem.anchor).tolist():
        context = update(problem, context, table)
    anchors = len(context.selected)
    order = best_first(problem.r) if as_printed else np.arange(len(problem.r))
    chosen: list[float] = []
    for _ in range(problem.wanted(k)):
        added = gains(problem, context, weights.link_share, seed_as_printed=as_printed)
        utility = np.sum([scale[name] * gain for name, gain in added.items()], axis=0)
        utility[list(context.selected)] = -np.inf
        tied = order[utility[order] == utility.max()]
        table = int(tied[-1] if as_printed and context.selected else tied[0])
        chosen.append(float(utility[table]))
        context = update(problem, context, table)
        if covered_at is not None and len(problem.fine) and context.coverage.min() >= covered_at:
            break
    score = np.array(chosen)
    return Selection(context.selected[anchors:], float(score.sum()), score)


@dataclass(frozen=True, kw_only=True)
class IterativeJAR(JoinAware):
    """Iterative JAR: tables one by one, each the best addition to those chosen so far (:func:`greedy`).

    Its other parameters are those of :class:`~tagframe.retrieval.methods.join_aware.JoinAware`.

    Attributes:
        covered_at: θ (section 2), a cosine: stop as soon as every sub-query is covered this well. None never stops
            before k tables.

    Raises:
        InvalidArgument: as :class:`~tagframe.retrieval.methods.join_aware.JoinAware`, or a θ that is no cosine.
    """

    name: ClassVar[str] = "iterative-jar"
    summary: ClassVar[str] = "takes tables one by one, each the best addition to those chosen so far"
    published: ClassVar[Mapping[str, GreedyWeights]] = GREEDY_WEIGHTS
    ours: ClassVar[GreedyWeights] = OURS

    weights: str | GreedyWeights | None = None
    covered_at: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        is_number = isinstance(self.covered_at, (int, float, np.number)) and not isinstance(self.covered_at, bool)
        if self.covered_at is not None and not (is_number and -1 <= self.covered_at <= 1):
            raise InvalidArgument(f"covered_at must be a cosine, such as 0.6; got {self.covered_at!r}")

    def _weights(self) -> GreedyWeights:
        weights: GreedyWeights = super()._weights()
        return replace(weights, join=0.0) if self.variant == "D" else weights

    def select(self, problem: Any, k: int | None = None) -> Selection:
        """Up to k tables, one by one."""
        return greedy(problem, k, self._weights(), covered_at=self.covered_at, as_printed=self.as_printed)

    @property
    def is_ours(self) -> bool:
        """Whether no parameter changes the form."""
        return super().is_ours and self.covered_at is None

    @property
    def parameters(self) -> dict[str, Any]:
        """The form with everything that it implies: parameter → value."""
        stop = {} if self.covered_at is None else {"covered_at": self.covered_at}
        return super().parameters | stop

    @property
    def in_words(self) -> str:
        """The form as a note."""
        stop = "" if self.covered_at is None else f", stops at a coverage of {self.covered_at:g}"
        return super().in_words + stop
