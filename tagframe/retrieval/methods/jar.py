"""JAR's optimum without a solver, by branch and bound over sets of tables.

In the reduced problem (:meth:`~tagframe.retrieval.problem.ColumnProblem.reduce`), at most K - 1 joins have to
connect K tables (constraints 2 and 11 to 15). So the joins of a set S are its maximum spanning tree over ω > 0, and
equations 1 to 15 reduce to

    maximise  Σ_{i∈S} r_i + coverage(S) + tree(S)  over the sets S of K tables,

where coverage is the sum of the |Q| largest values of r_qi, i ∈ S, after α is added to the largest of each sub-query
(equations 7 to 10), each term with its weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tagframe.retrieval.methods.join_aware import JoinAware
from tagframe.retrieval.problem import (
    JAR_WEIGHTS,
    PAPER_WEIGHTS,
    Floats,
    JarWeights,
    Selection,
    SelectionProblem,
    forest_weights,
)

DEVIATIONS = {
    "JAR: equations 1 to 15": (
        "not printed: which of equal sets is chosen (that of the lowest ids), and what is if no tables connect (the"
        " best set without that condition, and the result says so)"
    ),
}
"""What is not as printed, or not printed, by paper and place; ``docs/papers.md`` has the same."""

Sets = npt.NDArray[np.intp]
"""Shape (m, t): m sets of t tables, one per row."""

LINKED_WEIGHTS = JarWeights(link_share=0.5)
"""The weights of our form of the objective: the authors' for BIRD, with the link scores as half of a join."""

_CHUNK = 2048
_SLACK = 1e-12
"""Sets whose bound is this near to the best one found are kept, so that rounding does not lose the optimum; a share of
the sum of all values, since weights may be of any size."""


def exact(
    problem: SelectionProblem, k: int | None = None, weights: JarWeights = PAPER_WEIGHTS, *, joined: bool = True
) -> Selection:
    """The set of k tables with the largest objective; among equal sets, the one with the lowest indices.

    Args:
        problem: see :class:`SelectionProblem`; anchors are in every set, and k does not count them.
        k: how many; None for all.
        weights: of the terms of the objective.
        joined: whether ω counts and the tables must connect over pairs with ω > 0; False is JAR-D.

    If no k tables connect, the best set without that condition is returned; a note and the ``status`` of its facts,
    "infeasible" instead of "optimal", say so.

    >>> omega = np.array([[0, 0, 0.9], [0, 0, 0.1], [0.9, 0.1, 0]])
    >>> exact(SelectionProblem(r=np.array([0.50, 0.49, 0.45]), omega=omega), 2).indices
    (0, 2)
    """
    search = _Search(problem, k, weights, joined)
    best = search.run()
    note, status = "", "optimal"
    if best is None:
        status = "infeasible"
        note = "no joins connect so many tables; they were chosen without requiring joins"
        search = _Search(problem, k, weights, joined=False)
        best = search.run()
        assert best is not None
    chosen, value = best
    # Ordered by what the set would lose without each.
    coarse = weights.coarse * problem.r[list(chosen)]
    alone = np.array([search.fine[:, table].sum() for table in chosen])
    order = np.lexsort((np.array(chosen), -(coarse + alone)))
    score = (coarse + alone)[order]
    return Selection(tuple(chosen[position] for position in order), value, score, note=note, facts={"status": status})


def joinable(problem: SelectionProblem, weights: JarWeights) -> Floats:
    """The join score of two tables, shape (n, n): ω, or its mean with the link scores."""
    return (1 - weights.link_share) * problem.omega + weights.link_share * problem.link


@dataclass
class _Level:
    """Partial sets: ``sets`` of positions in the search's order, and the data for their bounds."""

    sets: Sets
    last: npt.NDArray[np.intp]
    additive: Floats
    largest_join: Floats
    covered: Floats

    def part(self, rows: Any) -> _Level:
        """Some of the partial sets."""
        return _Level(*(part[rows] for part in vars(self).values()))


class _Search:
    """Branch and bound, level by level; the partial sets of a level are arrays."""

    def __init__(self, problem: SelectionProblem, k: int | None, weights: JarWeights, joined: bool) -> None:
        self.joined = joined
        self.anchors = np.flatnonzero(problem.anchor)
        self.size = problem.wanted(k)
        self.coarse = weights.coarse * problem.r
        self.fine = weights.fine * problem.row_weight[:, None] * problem.fine
        self.alpha = weights.coverage
        self.join, self.omega = weights.join, joinable(problem, weights)
        # If the worst first link is above 0 and above every second one, each sub-query has one link, its best.
        self.one_each = self.fine.size == 0 or self.alpha + self.fine.min() >= max(float(self.fine.max()), 0.0)
        count = len(self.coarse)
        self.most_join = self.join * self.omega.max(axis=1) if count and joined else np.zeros(count)
        values = (self.coarse, self.fine, self.join * self.omega, self.alpha * len(self.fine))
        self.slack = _SLACK * float(sum(np.abs(part).sum() for part in values))

    def values(self, sets: Sets) -> Floats:
        """The objective of whole sets (anchors included), shape (m,)."""
        values = self.coarse[sets].sum(axis=1) + self.coverage(sets)
        return np.asarray(values + self.trees(sets) if self.joined else values)

    def coverage(self, sets: Sets) -> Floats:
        """Equations 7 to 10 for whole sets."""
        subqueries = len(self.fine)
        if not subqueries or not sets.shape[1]:
            return np.zeros(len(sets))
        links = self.fine[:, sets]
        if self.one_each:
            return np.asarray((links.max(axis=2) + self.alpha).sum(axis=0))
        links = -np.sort(-links, axis=2)
        links[:, :, 0] += self.alpha
        flat = np.sort(np.moveaxis(links, 1, 0).reshape(len(sets), -1), axis=1)[:, -subqueries:]
        return np.asarray(np.maximum(flat, 0.0).sum(axis=1))

    def trees(self, sets: Sets) -> Floats:
        """The weight of each set's maximum spanning tree over ω > 0; minus infinity if there is none."""
        total, edges = forest_weights(self.omega, sets)
        return np.where(edges == max(sets.shape[1] - 1, 0), self.join * total, -np.inf)

    def run(self) -> tuple[tuple[int, ...], float] | None:
        """The free tables of the best set, ascending, and its objective; None if no set is feasible."""
        free = np.setdiff1d(np.arange(len(self.coarse)), self.anchors)
        if not self.size:
            value = float(self.values(self.anchors[None, :])[0])
            return ((), value) if value > -np.inf else None
        # The most promising tables come first, so that the next few give the bound on all that follow.
        promise = self.coarse + self.most_join
        self.order = free[np.argsort(-promise[free], kind="stable")]
        self.prefix = np.concatenate([[0.0], np.cumsum(promise[self.order])])
        self.later = self._later()
        self.best_value, self.best_set = self._incumbent()
        # Depth first in pieces: memory stays small, and the most promising sets raise the bar for the others.
        open_levels = [(self._root(), 1)]
        while open_levels:
            level, depth = open_levels.pop()
            level = self._pruned(level, depth)
            if depth == self.size:
                self._finish(level)
            elif len(level.sets) > _CHUNK:
                pieces = range(0, len(level.sets), _CHUNK)
                open_levels += [(level.part(slice(start, start + _CHUNK)), depth) for start in reversed(pieces)]
            elif len(level.sets):
                open_levels.append((self._grow(level, depth), depth + 1))
        if self.best_set is None:
            return None
        return tuple(sorted(self.best_set)), self.best_value

    def _later(self) -> Floats:
        """Shape (free + 1, q): the largest value of each sub-query among the tables from a position in the order on."""
        values = self.fine[:, self.order]
        ahead = np.maximum.accumulate(values[:, ::-1], axis=1)[:, ::-1]
        nothing = np.full((len(self.fine), 1), -np.inf)
        return np.asarray(np.concatenate([ahead, nothing], axis=1).T)

    def _incumbent(self) -> tuple[float, tuple[int, ...] | None]:
        """A good set to prune by: the best single steps, then the best exchanges of one table."""
        chosen: list[int] = []
        for _ in range(self.size):
            options = [table for table in self.order.tolist() if table not in chosen]
            sets = np.array([[*self.anchors, *chosen, option] for option in options], dtype=np.intp)
            values = self.values(sets)
            if not np.isfinite(values).any():
                values = self.coarse[sets].sum(axis=1) + self.coverage(sets)
            chosen.append(options[int(values.argmax())])
        best = float(self.values(np.array([[*self.anchors, *chosen]], dtype=np.intp))[0])
        while True:
            outside = [table for table in self.order.tolist() if table not in chosen]
            swaps = [
                [*chosen[:position], table, *chosen[position + 1 :]]
                for position in range(len(chosen))
                for table in outside
            ]
            if not swaps:
                break
            values = self.values(np.array([[*self.anchors, *swap] for swap in swaps], dtype=np.intp))
            position = int(values.argmax())
            if not values[position] > best + self.slack:
                break
            best, chosen = float(values[position]), swaps[position]
        return (best, tuple(sorted(chosen))) if best > -np.inf else (best, None)

    def _root(self) -> _Level:
        positions = np.arange(len(self.order))
        anchored = float(self.coarse[self.anchors].sum() + self.most_join[self.anchors].sum())
        most = float(self.most_join[self.anchors].max()) if len(self.anchors) else 0.0
        covered = self.fine[:, self.order].T
        if len(self.anchors):
            covered = np.maximum(covered, self.fine[:, self.anchors].max(axis=1))
        return _Level(
            positions[:, None],
            positions,
            anchored + np.diff(self.prefix),
            np.maximum(self.most_join[self.order], most),
            covered,
        )

    def _grow(self, level: _Level, depth: int) -> _Level:
        """Every partial set with every later table."""
        width = len(self.order)
        counts = width - 1 - level.last
        parent = np.repeat(np.arange(len(level.sets)), counts)
        offset = np.arange(len(parent)) - np.repeat(np.cumsum(counts) - counts, counts)
        position = level.last[parent] + 1 + offset
        # The bound from sums alone is cheap, so it goes first.
        additive = level.additive[parent] + np.diff(self.prefix)[position]
        joins = np.maximum(level.largest_join[parent], self.most_join[self.order[position]])
        rest = self._completion(position, depth + 1)
        most_covered = self._most_covered(level.covered)[parent]
        rows = np.flatnonzero(additive + rest - joins + most_covered >= self.best_value - self.slack)
        parent, position = parent[rows], position[rows]
        covered = np.maximum(level.covered[parent], self.fine[:, self.order[position]].T)
        sets = np.concatenate([level.sets[parent], position[:, None]], axis=1)
        return _Level(sets, position, additive[rows], joins[rows], covered)

    def _completion(self, last: npt.NDArray[np.intp], depth: int) -> Floats:
        """The largest sum that the tables still to be chosen can have; minus infinity if too few tables follow."""
        end = last + 1 + self.size - depth
        fits = end < len(self.prefix)
        return np.where(fits, self.prefix[np.minimum(end, len(self.prefix) - 1)] - self.prefix[last + 1], -np.inf)

    def _most_covered(self, covered: Floats, last: npt.NDArray[np.intp] | None = None) -> Floats:
        """An upper bound of the coverage of every set that a partial one can become."""
        if not self.one_each:
            whole = np.arange(len(self.coarse), dtype=np.intp)[None, :]
            return np.full(len(covered), self.coverage(whole)[0])
        ahead = self.later[0] if last is None else self.later[last + 1]
        return np.asarray((np.maximum(covered, ahead) + self.alpha).sum(axis=1))

    def _pruned(self, level: _Level, depth: int) -> _Level:
        bound = level.additive - level.largest_join + self._completion(level.last, depth)
        bound = bound + self._most_covered(level.covered, level.last if depth < self.size else None)
        rows = np.flatnonzero(bound >= self.best_value - self.slack)
        level, bound = level.part(rows), bound[rows]
        if self.one_each and depth < self.size and len(level.sets):
            bound = np.minimum(bound, self._by_gains(level, depth))
        rows = np.flatnonzero(bound >= self.best_value - self.slack)
        return level.part(rows[np.argsort(-bound[rows], kind="stable")])

    def _by_gains(self, level: _Level, depth: int) -> Floats:
        """An upper bound from what single tables would add: coverage is submodular, so together they add no more."""
        missing = self.size - depth
        gains = np.empty((len(level.sets), len(self.order)))
        gains[:] = np.diff(self.prefix)
        for covered, values in zip(level.covered.T, self.fine[:, self.order], strict=True):
            gains += np.maximum(values - covered[:, None], 0.0)
        gains[np.arange(len(self.order)) <= level.last[:, None]] = -np.inf
        most = np.partition(gains, -missing, axis=1)[:, -missing:].sum(axis=1)
        covered = (level.covered + self.alpha).sum(axis=1)
        return np.asarray(level.additive - level.largest_join + covered + most)

    def _finish(self, level: _Level) -> None:
        """Compute the objective of the complete sets that are left, the most promising ones first."""
        fixed = np.broadcast_to(self.anchors, (len(level.sets), len(self.anchors)))
        sets = np.concatenate([fixed, self.order[level.sets]], axis=1)
        for start in range(0, len(sets), _CHUNK):
            part = sets[start : start + _CHUNK]
            values = self.values(part)
            top = float(values.max())
            if top < self.best_value - self.slack or top == -np.inf:
                continue
            for row in np.flatnonzero(values >= top - self.slack):
                tables = tuple(sorted(part[row, len(self.anchors) :].tolist()))
                is_better = top > self.best_value + self.slack
                if is_better or self.best_set is None or tables < self.best_set:
                    self.best_value, self.best_set = max(top, self.best_value), tables


@dataclass(frozen=True, kw_only=True)
class JAR(JoinAware):
    """JAR: the optimum of its program, found by branch and bound (:func:`exact`).

    Chen, Zhang, Roth: *Is Table Retrieval a Solved Problem? Exploring Join-Aware Multi-Table Retrieval* (ACL 2024). Its
    parameters are those of :class:`~tagframe.retrieval.methods.join_aware.JoinAware`.

    >>> JAR(as_printed=True, variant="G", weights="spider").parameters["omega"]
    'text'
    """

    name: ClassVar[str] = "jar"
    summary: ClassVar[str] = "finds the optimum of JAR's program by branch and bound"
    published: ClassVar[Mapping[str, JarWeights]] = JAR_WEIGHTS
    ours: ClassVar[JarWeights] = LINKED_WEIGHTS

    weights: str | JarWeights | None = None

    def select(self, problem: Any, k: int | None = None) -> Selection:
        """The optimum of the program over sets of k tables."""
        return exact(problem, k, self._weights(), joined=self.variant != "D")
