"""A table laid over an index: a frame that a question is anchored at is put among tables that are indexed already.

How rare a word is, how long tables are and what is known of every other table stay what they are for the corpus: one
table more would change them by little, and to work them out anew takes as long as the first question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T", bound=np.generic)
Numbers = npt.NDArray[Any]


@dataclass(frozen=True)
class Cut:
    """Where a row of things is cut open.

    Attributes:
        at: the place of the first that is new.
        gone: how many of those that were there go.
        new: how many come.
    """

    at: int
    gone: int
    new: int

    def into(self, values: npt.NDArray[T], new: npt.NDArray[Any]) -> npt.NDArray[T]:
        """The values with the new ones in place of those that go."""
        parts = [values[: self.at], new.astype(values.dtype), values[self.at + self.gone :]]
        return np.concatenate(parts)

    def moved(self, places: Numbers) -> tuple[npt.NDArray[np.bool_], Numbers]:
        """Which of some places stay, and where they are then."""
        stay = (places < self.at) | (places >= self.at + self.gone)
        kept = places[stay]
        return stay, np.where(kept >= self.at, kept + (self.new - self.gone), kept)


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
