"""Small sets of tables and their features, all sets at once."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt

from tagframe.retrieval.problem import LINKED, Floats, RowKind, SelectionProblem, forest_weights
from tagframe.retrieval.signals import SIGNALS

LARGEST = 5
"""Tables in the largest set that is scored."""

_KINDS = (RowKind.WORD, RowKind.ATTRIBUTE, RowKind.NAME, RowKind.VALUE)

SUMMED = (
    "dense", "lexical", "words", "attributes", "name", "name_share", "attribute_name", "value", "only_value", "named",
    "database_words",
)  # fmt: skip
"""The signals whose sum over a set says more than the first stage does."""

_SUMMED = np.array([SIGNALS.index(name) for name in SUMMED], dtype=np.intp)

FEATURES = (
    *(f"sum_{name}" for name in SUMMED),
    "sum_prior",
    "least_prior",
    *(f"{what}_{kind.name.lower()}" for kind in _KINDS for what in ("cover", "cover_least", "cover_alone")),
    "link_tree",
    "unlinked",
    "connected",
    "other_databases",
    "one_database",
    "near_duplicate",
    *(f"size_{size}" for size in range(2, LARGEST + 1)),
)
"""The features of a set S, in order.

sum_*: the sum of a signal over S. prior: the first stage's score. cover_*: what S covers of the rows of a kind;
cover_least: what the table that adds least to it adds, cover_alone: what single tables of S cover that no other does.
link_tree: the maximum spanning tree over link scores. unlinked: how many links are missing to
connect S; connected: 1 where none is. other_databases: how many beside the first; one_database: 1 for several of one.
near_duplicate: the most similar pair. size_*: 1 for sets of that size.
"""


@lru_cache(maxsize=32)
def index_sets(count: int) -> tuple[npt.NDArray[np.intp], ...]:
    """The subsets of ``count`` places by size, 1 to :data:`LARGEST`, each of shape (subsets, size)."""
    return tuple(
        np.array(list(combinations(range(count), size)), dtype=np.intp).reshape(-1, size)
        for size in range(1, min(LARGEST, count) + 1)
    )


def set_masks(count: int) -> npt.NDArray[np.int64]:
    """The sets of :func:`index_sets` as masks: bit b of a mask stands for place b."""
    masks = [np.bitwise_or.reduce(1 << sets, axis=1) for sets in index_sets(count)]
    return np.asarray(np.concatenate(masks), dtype=np.int64)


def set_features(problem: SelectionProblem, places: npt.NDArray[np.intp]) -> Floats:
    """The features of every set of up to :data:`LARGEST` of some tables.

    Args:
        problem: with the first stage's score, of which the best is 0, as ``r``.
        places: the tables to make sets of.

    Returns:
        Shape (sets, len(FEATURES)), in the order of :func:`index_sets`.
    """
    rows = [problem.row_weight[of][:, None] * problem.fine[of][:, places] for of in map(problem.kind.__eq__, _KINDS)]
    link = problem.link[np.ix_(places, places)]
    similarity = problem.similarity[np.ix_(places, places)]
    linked = (link >= LINKED).astype(float)
    additive = np.concatenate([problem.signals[np.ix_(places, _SUMMED)], problem.r[places, None]], axis=1)
    blocks = []
    for sets in index_sets(len(places)):
        count, size = sets.shape
        features = np.zeros((count, len(FEATURES)))
        parts = [additive[sets].sum(axis=1), problem.r[places][sets].min(axis=1)[:, None]]
        parts += [_cover(block, sets) for block in rows]
        missing = size - 1 - forest_weights(linked, sets)[1]
        source = np.sort(problem.source[places][sets], axis=1)
        others = (np.diff(source, axis=1) != 0).sum(axis=1)
        pair = similarity[sets[:, :, None], sets[:, None, :]].max(axis=(1, 2))
        several = float(size > 1)
        parts.append(
            np.stack(
                [
                    forest_weights(link, sets)[0],
                    missing,
                    missing == 0,
                    others,
                    (others == 0) * several,
                    pair,
                ],
                axis=1,
            )
        )
        known = np.concatenate(parts, axis=1)
        features[:, : known.shape[1]] = known
        if size > 1:
            features[:, known.shape[1] + size - 2] = 1.0
        blocks.append(features)
    return np.concatenate(blocks)


def _cover(rows: Floats, sets: npt.NDArray[np.intp]) -> Floats:
    """What each set covers of some rows, what its least table adds, and what its tables cover alone: (sets, 3)."""
    count, size = sets.shape
    if not len(rows):
        return np.zeros((count, 3))
    values = [rows.T[sets[:, member]] for member in range(size)]  # each (sets, rows)
    best, second = values[0], np.full_like(values[0], -np.inf)
    for value in values[1:]:
        second = np.maximum(second, np.minimum(best, value))
        best = np.maximum(best, value)
    total = best.sum(axis=1)
    if size == 1:
        return np.stack([total, total, total], axis=1)
    lead = best - second
    alone = np.stack([np.where(value == best, lead, 0.0).sum(axis=1) for value in values])
    return np.stack([total, alone.min(axis=0), alone.sum(axis=0)], axis=1)
