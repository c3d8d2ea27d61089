"""Candidate pairs of columns, found without comparing all pairs.

The columns of a key share a name or rare values. Indexes find both, so the work grows with the number of pairs that
have something in common, not with the square of the number of columns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from itertools import chain

import numpy as np
import numpy.typing as npt

from tagframe.keys import column_names as names
from tagframe.keys.conventions import Mentions
from tagframe.keys.key_columns import Column

COMMON = 64
"""A value in more target columns than this is no evidence: it is a small number, a year, a "yes"."""
SHARE = 0.3
"""Columns that share less of the referencing side's values are not candidates by values."""
_DENSE = 0.3
"""The least density of a run of ids."""
_COUNTED = 10
"""A run of ids that begins at most here was counted from 1."""
_PLAINLY = 0.75
"""From this score on, a column's name means a table."""
_MENTIONS = 16
"""A column is compared with at most so many tables that its name may mean."""
_CROWD = 50
"""Columns with a name such as "city" are compared by name if at most this many tables have it."""


def candidate_pairs(
    columns: Sequence[Column], targets: Sequence[int], mentions: Mentions
) -> dict[int, npt.NDArray[np.int64]]:
    """For each referencing column, by position: the positions of the columns that it may reference, ascending.

    Args:
        columns: all columns.
        targets: positions of the columns that may be referenced.
        mentions: of the columns' tables.
    """
    partners: dict[int, set[int]] = defaultdict(set)
    settled = {left for left, column in enumerate(columns) if _is_settled(column, mentions)}
    ways = (
        _by_name(columns, targets, mentions),
        _by_values(columns, targets, settled),
        _by_runs(columns, targets, settled),
    )
    for left, rights in chain(*ways):
        partners[left].update(rights)
    return {
        left: np.array(sorted(rights - {left}), dtype=np.int64) for left, rights in sorted(partners.items()) if rights
    }


def _is_settled(column: Column, mentions: Mentions) -> bool:
    """Whether the name decides what a column of everyday integers refers to, or that it refers to nothing.

    Such integers are found in every column of ids, so the values could only choose among those that the name means.
    """
    run = column.run
    if run is None or run.low > _COUNTED or run.density <= _DENSE:
        return False
    if column.is_surrogate or names.is_measure(column.spelt):
        return True
    return any(sure >= _PLAINLY and table != column.table for table, sure in mentions.of(column.spelt))


def _may_be_meant(column: Column) -> bool:
    """Whether a column that names the table may mean this one: its key, or what its rows are called."""
    return column.may_be_target or column.own > 0 or names.calls(column.spelt, column.owner.name)


def _by_name(
    columns: Sequence[Column], targets: Sequence[int], mentions: Mentions
) -> Iterator[tuple[int, Sequence[int]]]:
    of_table: dict[int, list[int]] = defaultdict(list)
    by_words: dict[tuple[str, ...], list[int]] = defaultdict(list)
    by_entity: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for position in targets:
        name = columns[position].name
        if _may_be_meant(columns[position]):
            of_table[columns[position].table].append(position)
        by_words[name.words].append(position)
        if name.entity and name.key_word:
            by_entity[name.entity].append(position)
    # If many columns have the same name, the name is evidence only if few of them can be referenced.
    for index in (by_words, by_entity):
        for key, crowd in index.items():
            if len(crowd) > _CROWD:
                index[key] = [
                    position for position in crowd if columns[position].unique == 1.0 and columns[position].own >= 0.75
                ]
    for left, column in enumerate(columns):
        name = column.name
        for table, _ in mentions.of(column.spelt)[:_MENTIONS]:
            yield left, of_table[table]
        if not name.entity and column.is_surrogate:
            continue
        for start in range(max(1, len(name.entity))):
            yield left, by_words.get(name.words[start:], ())
        for start in range(len(name.entity)):
            yield left, by_entity.get(name.entity[start:], ())
        if any(word in names.SELF_ROLES for word in name.entity):
            yield left, of_table[column.table]


def _by_values(
    columns: Sequence[Column], targets: Sequence[int], settled: Set[int]
) -> Iterator[tuple[int, Sequence[int]]]:
    # A sample does not show which values a column lacks.
    known = {position: columns[position].profile.sketch for position in targets}
    sketches = {
        position: sketch for position, sketch in known.items() if sketch and not sketch.sampled and len(sketch.hashes)
    }
    if not sketches:
        return
    hashes = np.concatenate([sketch.hashes for sketch in sketches.values()])
    owners = np.repeat(np.array([*sketches]), [len(sketch.hashes) for sketch in sketches.values()])
    order = np.argsort(hashes, kind="stable")
    values, starts, lengths = np.unique(hashes[order], return_index=True, return_counts=True)
    owners = owners[order]
    rare = lengths <= COMMON
    values, starts, lengths = values[rare], starts[rare], lengths[rare]
    if not len(values):
        return
    # A sketch is complete up to its last hash; a whole sketch is complete everywhere.
    ends = np.full(len(columns), np.iinfo(np.uint64).max, dtype=np.uint64)
    for position, whole in sketches.items():
        if not whole.complete:
            ends[position] = whole.hashes[-1]
    for left, column in enumerate(columns):
        sketch = column.profile.sketch
        if left in settled or sketch is None or not len(sketch.hashes):
            continue
        at = np.minimum(np.searchsorted(values, sketch.hashes), len(values) - 1)
        at = at[values[at] == sketch.hashes]
        if not len(at):
            continue
        counts = lengths[at]
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        hits = np.bincount(owners[np.repeat(starts[at], counts) + within], minlength=len(columns))
        positions = np.flatnonzero(hits)
        seen = np.searchsorted(sketch.hashes, ends[positions], side="right")
        yield left, positions[hits[positions] >= SHARE * seen].tolist()


def _by_runs(
    columns: Sequence[Column], targets: Sequence[int], settled: Set[int]
) -> Iterator[tuple[int, Sequence[int]]]:
    """Columns of integers that match a dense run: near the end of a run from 1, or within a run of high numbers."""
    dense = [
        position for position in targets if (run := columns[position].run) and run.density > _DENSE and run.low >= 0
    ]
    if not dense:
        return
    runs = [columns[position].run for position in dense]
    low = np.array([run.low for run in runs if run], dtype=np.float64)
    high = np.array([run.high for run in runs if run], dtype=np.float64)
    positions = np.array(dense)
    for left, column in enumerate(columns):
        if left in settled or column.run is None or column.name.key_word < 1.0 or column.is_surrogate:
            continue
        inside = (column.run.low >= low) & (column.run.high <= high)
        near_end = np.where(low > 10, True, column.run.high >= 0.9 * high)
        yield left, positions[inside & near_end].tolist()
