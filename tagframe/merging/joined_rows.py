"""The joined rows of a merge, as row numbers.

What is kept between steps is one row number a table for each joined row, so that columns are copied once, at the end,
and a step repeats nothing but numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tagframe.engines.dtypes import nullable
from tagframe.keys.matching import Counts, Matches, Positions

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Matched:
    """How the rows before a step match the table that it brings in.

    Attributes:
        starts, counts: shape (rows,): the partners of row i are ``partners[starts[i]:starts[i] + counts[i]]``.
        partners: rows of the table; None where each row has one at most, ``starts[i]``.
        null_keys, coerced: how many rows have a null key, and how many match only in canonical form.
    """

    starts: Positions
    counts: Counts
    partners: Positions | None
    null_keys: int
    coerced: int

    @property
    def matched(self) -> int:
        """Rows that have a partner."""
        return int(np.count_nonzero(self.counts))

    @property
    def pairs(self) -> int:
        """Rows and partners, each with each."""
        return int(self.counts.sum())


class JoinedRows:
    """For each table joined so far, the row of it that stands in each joined row; -1 where it has none."""

    def __init__(self, start: str, length: int) -> None:
        self.length = length
        # None stands for 0, 1, 2, …: the start table, as long as no step has moved its rows.
        self._of: dict[str, Positions | None] = {start: None}

    def of(self, table: str) -> Positions | None:
        """Row numbers of a table; None where they are 0, 1, 2, …."""
        return self._of[table]

    def numbers(self, table: str) -> Positions:
        """Row numbers of a table, shape (length,)."""
        known = self._of[table]
        return np.arange(self.length, dtype=np.int64) if known is None else known

    def present(self, table: str, size: int) -> Mask:
        """Which of the table's ``size`` rows are among the joined rows."""
        known = self._of[table]
        if known is None:
            return np.ones(size, dtype=bool)
        found = np.zeros(size, dtype=bool)
        found[known[known >= 0]] = True
        return found

    def select(self, chosen: Positions) -> None:
        """Keep the rows at these places, in this order; a place may be repeated."""
        self._of = {table: chosen if known is None else known[chosen] for table, known in self._of.items()}
        self.length = len(chosen)

    def match(self, base: str, matches: Matches) -> Matched:
        """What the base table's matches mean for the joined rows."""
        at = self._of[base]
        if at is None:
            counts, starts, nulls, coerced = matches.counts, matches.starts, matches.nulls, matches.coerced
        else:
            # A row without a row of the base table (outer joins) reads the place added at the end: no match.
            counts, starts = np.append(matches.counts, np.int8(0))[at], np.append(matches.starts, -1)[at]
            nulls, coerced = np.append(matches.nulls, True)[at], np.append(matches.coerced, False)[at]
        return Matched(starts, counts, matches.partners, int(np.count_nonzero(nulls)), int(np.count_nonzero(coerced)))

    def join(self, table: str, matched: Matched, size: int, *, keep_left: bool, keep_right: bool) -> int:
        """Bring in a table of ``size`` rows.

        Args:
            table: its id.
            matched: which of its rows each joined row matches.
            size: its rows.
            keep_left: keep rows without a partner.
            keep_right: add the table's rows that no row matches, at the end.

        Returns:
            How many of the table's rows no row matches.
        """
        counts = matched.counts
        if counts.max(initial=0) > 1:
            new = self._multiply(matched, keep_left=keep_left)
        else:
            new = self._look_up(matched, keep_left=keep_left)
        used = np.zeros(size, dtype=bool)
        used[new[new >= 0]] = True
        unused = np.flatnonzero(~used)
        if keep_right and len(unused):
            nowhere = np.full(len(unused), -1, dtype=np.int64)
            self._of = {other: np.concatenate([self.numbers(other), nowhere]) for other in self._of}
            new = np.concatenate([new, unused])
            self.length += len(unused)
        self._of[table] = new
        return len(unused)

    def _look_up(self, matched: Matched, *, keep_left: bool) -> Positions:
        """At most one partner for each row."""
        new = matched.starts
        if matched.partners is not None:
            last = max(0, len(matched.partners) - 1)
            found = matched.partners[np.minimum(new, last)] if len(matched.partners) else new
            new = np.where(matched.counts > 0, found, -1)
        if not keep_left and matched.matched < self.length:
            kept = np.flatnonzero(matched.counts)
            self.select(kept)
            new = new[kept]
        return new

    def _multiply(self, matched: Matched, *, keep_left: bool) -> Positions:
        """Several partners for some rows: those rows are repeated."""
        counts, partners = matched.counts, matched.partners
        assert partners is not None  # each row would have one partner at most
        repeats = np.maximum(counts, 1) if keep_left else counts
        chosen = np.repeat(np.arange(self.length, dtype=np.int64), repeats)
        within = np.arange(len(chosen), dtype=np.int64) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        place = np.minimum(matched.starts[chosen] + within, len(partners) - 1)
        new = np.where(counts[chosen] > 0, partners[place], -1)
        self.select(chosen)
        return new


def taken(series: pd.Series, rows: Positions | None) -> pd.Series:
    """The values at these rows, with a fresh index; missing at -1. Always a copy.

    Dtypes are kept, but for integers and booleans beside missing rows: those become ``Int64`` and the like, and
    ``boolean``, which lose nothing.
    """
    if rows is None:
        return pd.Series(series.array.copy(), copy=False)
    is_missing = bool(len(rows)) and int(rows.min()) < 0
    if is_missing and isinstance(series.dtype, np.dtype) and series.dtype.kind in "iub":
        series = series.astype(nullable(series.dtype))
    # An array of numpy's own is taken as such: wrapped ones are looked through for missing values on the way.
    values: Any = series.to_numpy() if isinstance(series.dtype, np.dtype) else series.array
    found = pd.api.extensions.take(values, rows, allow_fill=True) if is_missing else values.take(rows)
    return pd.Series(found, dtype=series.dtype, copy=False)
