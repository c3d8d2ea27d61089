"""Small sets of tables and their features, all sets at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise

import numpy as np
import numpy.typing as npt

from tagframe.keys.components import Components
from tagframe.retrieval.problem import LINKED, Floats, RowKind, SelectionProblem, forest_weights
from tagframe.retrieval.signals import SIGNALS

LARGEST = 5
"""The number of tables in the largest sets that are scored."""

_KINDS = (
    RowKind.WORD, RowKind.ATTRIBUTE, RowKind.NAME, RowKind.VALUE, RowKind.CELL, RowKind.TERM, RowKind.MEASURE
)  # fmt: skip

FEATURES = (
    *(f"sum_{name}" for name in SIGNALS),
    "sum_prior",
    "least_prior",
    *(f"{what}_{kind.name.lower()}" for kind in _KINDS for what in ("cover", "cover_least", "cover_alone")),
    "lacking",
    "link_tree",
    "unlinked",
    "connected",
    "other_databases",
    "one_database",
    "near_duplicate",
    "mixed",
    *(f"size_{size}" for size in range(2, LARGEST + 1)),
)
"""The features of a set S, in order.

sum_*: the sum of a signal over S. prior: the first stage's score. cover_*: how much S covers of the rows of a kind;
cover_least: the smallest addition of one table to that; cover_alone: the part that only one table of S covers. lacking:
how many names S lacks that other tables of its databases hold. link_tree: the maximum spanning tree over link scores.
unlinked: how many links are missing to connect S; connected: 1 if none is. other_databases: how many databases beside
the first; one_database: 1 for several tables of one database. near_duplicate: the most similar pair. mixed: the
pairs of different families of near-copies. size_*: 1 for sets of that size.
"""


@lru_cache(maxsize=32)
def index_sets(count: int) -> tuple[npt.NDArray[np.intp], ...]:
    """The subsets of ``count`` positions by size, 1 to :data:`LARGEST`, each of shape (subsets, size)."""
    return tuple(
        np.array(list(combinations(range(count), size)), dtype=np.intp).reshape(-1, size)
        for size in range(1, min(LARGEST, count) + 1)
    )


@lru_cache(maxsize=32)
def smaller_sets(count: int) -> tuple[npt.NDArray[np.intp], ...]:
    """For each of :func:`index_sets`, the index of the same set without its last table among the sets of that size;
    for the sets of one table, where the empty one does."""
    positions = [np.zeros(count, dtype=np.intp)]
    for smaller, sets in pairwise(index_sets(count)):
        position = {tuple(members): row for row, members in enumerate(smaller.tolist())}
        positions.append(np.array([position[tuple(members[:-1])] for members in sets.tolist()], dtype=np.intp))
    return tuple(positions)


def set_masks(count: int) -> npt.NDArray[np.int64]:
    """The sets of :func:`index_sets` as masks: bit b of a mask stands for position b."""
    masks = [np.bitwise_or.reduce(1 << sets, axis=1) for sets in index_sets(count)]
    return np.asarray(np.concatenate(masks), dtype=np.int64)


def set_features(problem: SelectionProblem, positions: npt.NDArray[np.intp]) -> Floats:
    """The features of every set of up to :data:`LARGEST` of some tables.

    A set is a smaller set and one more table, so its features are computed from those of the smaller set.

    Args:
        problem: with the first stage's score as ``r``; the best is 0.
        positions: the tables of which sets are made.

    Returns:
        Shape (sets, len(FEATURES)), in the order of :func:`index_sets`.
    """
    rows = [problem.row_weight[of][:, None] * problem.fine[of][:, positions] for of in map(problem.kind.__eq__, _KINDS)]
    link = problem.link[np.ix_(positions, positions)]
    similarity, copies = (part[np.ix_(positions, positions)] for part in (problem.similarity, problem.mixed))
    source, prior = problem.source[positions], problem.r[positions]
    additive = np.concatenate([problem.signals[positions], prior[:, None]], axis=1)
    summed, least = additive, prior
    covered = [_Covered.of_one(block) for block in rows]
    names = rows[_KINDS.index(RowKind.CELL)]
    near = np.stack([names[:, source == own].max(axis=1) for own in source.tolist()])
    around = near  # the names that the databases of each set hold
    databases, pair, mixed = np.ones(len(positions)), similarity.diagonal(), np.zeros(len(positions))
    blocks = []
    for sets, smaller in zip(index_sets(len(positions)), smaller_sets(len(positions)), strict=True):
        count, size = sets.shape
        last = sets[:, -1]
        if size > 1:
            summed = summed[smaller] + additive[last]
            least = np.minimum(least[smaller], prior[last])
            covered = [known.with_one_more(smaller, last) for known in covered]
            around = np.maximum(around[smaller], near[last])
            same, alike, mixed = np.zeros(count, dtype=bool), pair[smaller], mixed[smaller]
            for member in sets[:, :-1].T:
                same |= source[member] == source[last]
                alike = np.maximum(alike, similarity[member, last])
                mixed = mixed + copies[member, last]
            databases, pair = databases[smaller] + ~same, alike
        tree, linked = forest_weights(link, sets, least=LINKED)
        features = np.zeros((count, len(FEATURES)))
        parts = [
            summed,
            least[:, None],
            *(known.features() for known in covered),
            (around - covered[_KINDS.index(RowKind.CELL)].best).sum(axis=1)[:, None],
            np.stack([tree, size - 1 - linked, linked == size - 1], axis=1),
            np.stack([databases - 1, (databases == 1) & (size > 1), pair, mixed], axis=1),
        ]
        known = np.concatenate(parts, axis=1)
        features[:, : known.shape[1]] = known
        if size > 1:
            features[:, known.shape[1] + size - 2] = 1.0
        blocks.append(features)
    return np.concatenate(blocks)


def joined_directly(link: Floats, refers: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which two of n tables can be joined without others: shape (n, n).

    Those that are linked, and those that both refer to the same table: then the references are equal without it.

    Args:
        link: shape (n, n), link scores.
        refers: shape (n, n), which table refers to which.
    """
    linked = link >= LINKED
    referring = (linked & refers).astype(np.float64)
    return linked | (referring @ referring.T > 0)


def missing_joins(problem: SelectionProblem, positions: npt.NDArray[np.intp]) -> Floats:
    """How many joins each set lacks that further tables could make, in the order of :func:`index_sets`: shape (sets,).

    Tables that can be joined directly lack none.
    """
    among = np.ix_(positions, positions)
    joined = joined_directly(problem.link[among], problem.refers[among])
    parts = Components(range(len(positions)))
    for one, other in np.argwhere(joined).tolist():
        parts.join(one, other)
    part = np.array([1 << parts.root(table) for table in range(len(positions))])
    lacking = []
    for sets in index_sets(len(positions)):
        _, joins = forest_weights(joined.astype(np.float64), sets)
        whole = [mask.bit_count() for mask in np.bitwise_or.reduce(part[sets], axis=1).tolist()]
        lacking.append(sets.shape[1] - joins - np.array(whole, dtype=np.float64))
    return np.concatenate(lacking)


@dataclass(frozen=True, eq=False)
class _Covered:
    """How much sets of one size cover of some rows.

    Attributes:
        values: shape (tables, rows), the coverage of each table.
        best: shape (sets, rows), the coverage of the best table of each set.
        second: the same for the second best.
        who: shape (sets, rows), which of the set's tables is the best.
        size: the number of tables in a set.
    """

    values: Floats
    best: Floats
    second: Floats
    who: npt.NDArray[np.intp]
    size: int = 1

    @classmethod
    def of_one(cls, rows: Floats) -> _Covered:
        """The coverage of the sets of one table."""
        values = np.ascontiguousarray(rows.T)
        return cls(values, values, np.full(values.shape, -np.inf), np.zeros(values.shape, dtype=np.intp))

    def with_one_more(self, smaller: npt.NDArray[np.intp], last: npt.NDArray[np.intp]) -> _Covered:
        """The coverage of sets that are one of these (``smaller``) and one more table."""
        value, best = self.values[last], self.best[smaller]
        return _Covered(
            self.values,
            np.maximum(best, value),
            np.maximum(self.second[smaller], np.minimum(best, value)),
            np.where(value > best, self.size, self.who[smaller]),
            self.size + 1,
        )

    def features(self) -> Floats:
        """The coverage of each set, the smallest addition of a table, and what only one table covers: (sets, 3)."""
        count, rows = self.best.shape
        total = self.best @ np.ones(rows)
        if self.size == 1 or not rows:
            return np.stack([total, total, total], axis=1)
        of_table = self.who * count + np.arange(count)[:, None]
        lead = (self.best - self.second).ravel()
        alone = np.bincount(of_table.ravel(), lead, minlength=self.size * count).reshape(self.size, count)
        return np.stack([total, alone.min(axis=0), alone.sum(axis=0)], axis=1)
