"""Overlays: new or changed tables are put among tables that are indexed already.

The cost depends on the new tables only: an anchor frame, or the tables of a lake that have changed since its index was
saved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T", bound=np.generic)
Numbers = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Cut:
    """How the order of items changes when some are removed and others are added.

    Attributes:
        positions: for each old item its new position, ascending; -1 for an item that is removed.
        new: the positions of the items that are added, ascending.
    """

    positions: npt.NDArray[np.int64]
    new: npt.NDArray[np.int64]

    @classmethod
    def at(cls, position: int, gone: int, new: int, of: int) -> Cut:
        """The change of ``of`` items at one position, where ``gone`` items are removed and ``new`` items are added."""
        positions = np.arange(of, dtype=np.int64)
        positions[position + gone :] += new - gone
        positions[position : position + gone] = -1
        return cls(positions, np.arange(position, position + new, dtype=np.int64))

    @classmethod
    def between(cls, before: list[bytes], now: list[bytes]) -> Cut:
        """The change from one list of items to another one; the items in both have the same order."""
        position = {thing: number for number, thing in enumerate(now)}
        positions = np.array([position.get(thing, -1) for thing in before], dtype=np.int64)
        is_new = np.ones(len(now), dtype=bool)
        is_new[positions[positions >= 0]] = False
        return cls(positions, np.flatnonzero(is_new))

    @property
    def count(self) -> int:
        """The number of items after the change."""
        return int((self.positions >= 0).sum()) + len(self.new)

    def of_parts(self, widths: Numbers, new: Numbers) -> Cut:
        """The change of the parts of these items, such as the columns of tables.

        Args:
            widths: the number of parts of each old item.
            new: the number of parts of each added item.
        """
        stay = self.positions >= 0
        now = self.into(widths, new)
        starts = np.cumsum(now) - now
        return Cut(
            np.where(np.repeat(stay, widths), _runs(np.where(stay, starts[self.positions], 0), widths), -1),
            _runs(starts[self.new], new),
        )

    def into(self, values: npt.NDArray[T], new: npt.NDArray[Any]) -> npt.NDArray[T]:
        """The values after the change: removed ones left out, new ones put in."""
        stay = self.positions >= 0
        merged = np.empty((self.count, *values.shape[1:]), dtype=values.dtype)
        merged[self.positions[stay]] = values[stay]
        merged[self.new] = new
        return merged

    def moved(self, positions: Numbers) -> tuple[npt.NDArray[np.bool_], Numbers]:
        """Which of some positions stay, and their new positions."""
        now = self.positions[positions]
        return now >= 0, now[now >= 0]


def _runs(starts: Numbers, widths: Numbers) -> npt.NDArray[np.int64]:
    """For each start, a run of so many consecutive numbers; all runs one after another."""
    ends = np.cumsum(widths)
    return np.asarray(np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - widths), widths), np.int64)


class Beside:
    """The rows of one array followed by those of another, without a copy: the vectors of a lake are large.

    Args:
        first: shape (m, d).
        more: shape (n, d): the rows from m on.
    """

    def __init__(self, first: npt.NDArray[Any], more: npt.NDArray[Any]) -> None:
        self._first, self._more = first, more

    def __getitem__(self, rows: Numbers) -> npt.NDArray[Any]:
        if not len(self._more):
            return np.asarray(self._first[rows])
        inside = rows < len(self._first)
        found = np.empty((len(rows), self._first.shape[1]), dtype=self._first.dtype)
        found[inside] = self._first[rows[inside]]
        found[~inside] = self._more[rows[~inside] - len(self._first)]
        return found

    def products(self, vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The products of some vectors, shape (q, d), with all rows: shape (q, m + n)."""
        found = vectors @ self._first.T
        return np.concatenate([found, vectors @ self._more.T], axis=1) if len(self._more) else np.asarray(found)
