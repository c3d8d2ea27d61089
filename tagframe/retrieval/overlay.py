"""Tables laid over an index: those that are new or have changed are put among tables that are indexed already.

It takes what the new tables take: a frame that a question is anchored at, or what has changed of a lake since its index
was kept.
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
    """Where a row of things is cut open.

    Attributes:
        positions: of each that was there the position that it has now, ascending; -1 for those that go.
        new: the positions of those that come, ascending.
    """

    positions: npt.NDArray[np.int64]
    new: npt.NDArray[np.int64]

    @classmethod
    def at(cls, position: int, gone: int, new: int, of: int) -> Cut:
        """A cut at one position of so many things, where some go and some come."""
        positions = np.arange(of, dtype=np.int64)
        positions[position + gone :] += new - gone
        positions[position : position + gone] = -1
        return cls(positions, np.arange(position, position + new, dtype=np.int64))

    @classmethod
    def between(cls, before: list[bytes], now: list[bytes]) -> Cut:
        """What makes a row of things another one in which those that are in both have the same order."""
        position = {thing: number for number, thing in enumerate(now)}
        positions = np.array([position.get(thing, -1) for thing in before], dtype=np.int64)
        is_new = np.ones(len(now), dtype=bool)
        is_new[positions[positions >= 0]] = False
        return cls(positions, np.flatnonzero(is_new))

    @property
    def count(self) -> int:
        """How many there are then."""
        return int((self.positions >= 0).sum()) + len(self.new)

    def of_parts(self, widths: Numbers, new: Numbers) -> Cut:
        """The cut of what these things are made of, such as the columns of tables.

        Args:
            widths: how many parts each has that was there.
            new: how many each has that comes.
        """
        stay = self.positions >= 0
        now = self.into(widths, new)
        starts = np.cumsum(now) - now
        return Cut(
            np.where(np.repeat(stay, widths), _runs(np.where(stay, starts[self.positions], 0), widths), -1),
            _runs(starts[self.new], new),
        )

    def into(self, values: npt.NDArray[T], new: npt.NDArray[Any]) -> npt.NDArray[T]:
        """The values with the new ones in place of those that go."""
        stay = self.positions >= 0
        found = np.empty((self.count, *values.shape[1:]), dtype=values.dtype)
        found[self.positions[stay]] = values[stay]
        found[self.new] = new
        return found

    def moved(self, positions: Numbers) -> tuple[npt.NDArray[np.bool_], Numbers]:
        """Which of some positions stay, and where they are then."""
        now = self.positions[positions]
        return now >= 0, now[now >= 0]


def _runs(starts: Numbers, widths: Numbers) -> npt.NDArray[np.int64]:
    """The numbers that follow each start, so many of each, one run after the other."""
    ends = np.cumsum(widths)
    return np.asarray(np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - widths), widths), np.int64)


class Beside:
    """The rows of an array and some more, of which no copy is made: the vectors of a lake are large.

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
        """The products of some vectors, shape (q, d), and all rows: shape (q, m + n)."""
        found = vectors @ self._first.T
        return np.concatenate([found, vectors @ self._more.T], axis=1) if len(self._more) else np.asarray(found)
