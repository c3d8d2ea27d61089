"""Check in the source whether one column's values are in another one, if profiles cannot tell.

The sketch of a sample does not show which values a column lacks. So for a doubtful pair, some distinct values of the
referencing column are looked up in the referenced one: by one statement within a source, and by sending the values
between two sources.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace

import numpy as np

from tagframe.corpus import Corpus
from tagframe.corpus.profiler import session_of
from tagframe.engines.pushdown import SampledValues
from tagframe.errors import ColumnNotFound, UnreadableTable
from tagframe.keys.candidates import SHARE
from tagframe.keys.containment import Overlap, Overlaps, log_ratio
from tagframe.keys.key_columns import Facts
from tagframe.keys.scoring import Candidate
from tagframe.keys.terms import KeyWeights, value_terms, weighted_sum

Contains = Callable[[str, str, str, str], Overlap | None]
"""(table id, column, other table's id, its column) → the share of the first that the second holds; None if unknown."""

MOST_VALUES = 1_000
"""The largest number of distinct values of a referencing column that are looked up."""
MOST_CHECKS = 50
"""The largest number of pairs that are checked, the likeliest first."""


def contains_in(corpus: Corpus) -> Contains:
    """A function that asks the sources of a corpus; it raises :class:`~tagframe.errors.ServerGone` if one is gone."""

    def contains(table: str, column: str, other: str, other_column: str) -> Overlap | None:
        engine, other_engine = corpus.engine(table), corpus.engine(other)
        mine, theirs = corpus.source_table(table), corpus.source_table(other)
        with suppress(UnreadableTable, ColumnNotFound), ExitStack() as opened:
            if engine == other_engine:
                here = there = session_of(engine, [mine, theirs], opened)
            else:
                here, there = session_of(engine, [mine], opened), session_of(other_engine, [theirs], opened)
            if here is None or there is None:
                return None
            kind = here.cells(mine, column).key
            if kind != there.cells(theirs, other_column).key or kind not in ("integer", "text"):
                return None
            return _overlap(here, there, (mine, column), (theirs, other_column), kind)
        return None

    return contains


def _overlap(
    here: SampledValues, there: SampledValues, mine: tuple[str, str], theirs: tuple[str, str], kind: str
) -> Overlap | None:
    keys = here.keys(*mine, MOST_VALUES)
    seen = len(keys)
    if not seen:
        return None
    shared = there.count_keys(*theirs, keys)
    share = shared / seen
    if kind == "text" and share < SHARE:
        return None  # the values may be written differently
    smooth = (shared + 1) / (seen + 2)
    return Overlap(share, seen, math.sqrt(smooth * (1 - smooth) / seen))


def checked(candidates: Sequence[Candidate], contains: Contains, weights: KeyWeights) -> list[Candidate]:
    """The candidates, with values looked up where profiles say nothing; without those that turn out wrong."""
    open_ones = [candidate for candidate in candidates if candidate.contained is None and _is_open(candidate)]
    doubtful = {id(one) for one in sorted(open_ones, key=lambda one: -one.logit)[:MOST_CHECKS]}
    candidates_with_values = []
    for candidate in candidates:
        if id(candidate) in doubtful:
            left, right = candidate.left, candidate.right
            overlap = contains(left.owner.id, left.profile.name, right.owner.id, right.profile.name)
            if overlap is not None and overlap.share < SHARE:
                continue
            candidate = candidate if overlap is None else _with_values(candidate, overlap, weights)
        candidates_with_values.append(candidate)
    return candidates_with_values


def _is_open(candidate: Candidate) -> bool:
    """Whether only some values of the referenced column are known."""
    sketch = candidate.right.profile.sketch
    return bool(candidate.right.owner.rows) and (sketch is None or sketch.sampled)


def _with_values(candidate: Candidate, overlap: Overlap, weights: KeyWeights) -> Candidate:
    left, right = Facts.of([candidate.left]), Facts.of([candidate.right])
    contained, covered = Overlaps.of([overlap]), Overlaps.of([candidate.covered])
    ratio = log_ratio(left, right, contained)
    of_values = value_terms(left, right, np.array([candidate.match.score]), contained, covered, ratio)
    names = len(weights.of_names)
    before = candidate.terms[names:, None]
    gained = weighted_sum(of_values, weights.of_values) - weighted_sum(before, weights.of_values)
    terms = np.concatenate([candidate.terms[:names], *of_values])
    logit = candidate.logit + float(gained[0])
    return replace(candidate, contained=overlap, ratio=float(ratio[0]), terms=terms, logit=logit)
