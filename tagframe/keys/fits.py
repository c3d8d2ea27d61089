"""How well the names of many pairs of columns fit.

Most have nothing in common: their values led to each other, or the name of a table. Words as
numbers tell it for all pairs at once, so that rules are applied only to pairs whose names have something in common.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tagframe.keys import column_names as names
from tagframe.keys.key_columns import Column, Floats, is_unnamed
from tagframe.keys.terms import is_plainly_the_key, name_match

Positions = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]


class Fits:
    """How well the names of pairs of columns fit.

    Args:
        columns: all columns.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        known: dict[Hashable, int] = {}

        def numbers(of: Callable[[Column], Hashable]) -> Positions:
            return np.array([known.setdefault(of(column), len(known)) for column in columns])

        self._spelt = numbers(lambda column: column.spelt)
        self._table = numbers(lambda column: column.owner.name)
        self._last = numbers(lambda column: column.name.words[-1:])
        self._ends = {
            part: _Ends([getattr(column.name, part) for column in columns], known) for part in ("words", "entity")
        }
        self._texts = [*known]
        flags = [
            (
                column.own >= 0.55 or is_plainly_the_key(column),
                names.calls(column.spelt, column.owner.name),
                column.own == 0,
                column.name.key_word > 0,
                is_unnamed(column.owner.name) or _numbers_days(column),
                len(column.name.words) == 1 and not column.name.generic,
            )
            for column in columns
        ]
        self._is_key, self._calls, self._is_not_own, self._has_key_word, self._is_special, self._is_word = np.array(
            flags, dtype=bool
        ).T

    def same_words(self, lefts: Positions, rights: Positions) -> _Flags:
        """Whether the names have the same words."""
        every = self._ends["words"].whole
        same: _Flags = every[lefts] == every[rights]
        return same

    def of(self, lefts: Positions, rights: Positions) -> tuple[Floats, list[names.NameMatch]]:
        """How surely each left column's name means the right one's table, in [0, 1], and how well the names fit."""
        about = self._each(names.about, self._spelt[lefts], self._table[rights])
        bare = ~self._has_key_word[lefts]
        means = (about > 0) & self._is_key[rights]
        means |= (about >= 0.8) & bare & self._is_not_own[rights]
        means |= self._calls[rights] & bare
        within = (self._table[lefts] == self._table[rights]) & self._has_key_word[rights]
        words, entity = self._ends["words"], self._ends["entity"]
        common = (
            self.same_words(lefts, rights)
            | words.end_in(lefts, rights)
            | words.end_in(rights, lefts)
            | entity.end_in(lefts, rights)
        )
        one = np.flatnonzero(self._is_word[rights])
        common[one] |= self._each(_ends_in, self._last[lefts[one]], self._last[rights[one]]) > 0
        matches = [names.NO_MATCH] * len(lefts)
        for at in np.flatnonzero(means | within | common | self._is_special[rights]).tolist():
            matches[at] = name_match(self._columns[lefts[at]], self._columns[rights[at]])
        return about, matches

    def _each(self, of: Callable[[Any, Any], float], ones: Positions, others: Positions) -> Floats:
        """A number for each pair of texts, counted once for each distinct pair."""
        count = len(self._texts)
        distinct, which = np.unique(ones * count + others, return_inverse=True)
        found = [of(self._texts[code // count], self._texts[code % count]) for code in distinct.tolist()]
        numbers: Floats = np.array(found, dtype=np.float64)[which]
        return numbers


class _Ends:
    """The ends of tuples of words as numbers."""

    def __init__(self, every: Sequence[tuple[str, ...]], known: dict[Hashable, int]) -> None:
        self._length = np.array([len(words) for words in every])
        most = int(self._length.max(initial=0)) + 1
        self._end = np.full((len(every), most), -1)
        for row, words in enumerate(every):
            for length in range(len(words) + 1):
                self._end[row, length] = known.setdefault(words[len(words) - length :], len(known))
        self.whole = self._end[np.arange(len(every)), self._length]

    def end_in(self, ones: Positions, others: Positions) -> _Flags:
        """Whether the words of each one end in those of the other, which has some."""
        length = self._length[others]
        found: _Flags = (length > 0) & (self._end[ones, length] == self.whole[others])
        return found


def _ends_in(last: tuple[str, ...], word: tuple[str, ...]) -> bool:
    return last != word and last[:1] != () and last[0].endswith(word[0])


def _numbers_days(column: Column) -> bool:
    return column.unique == 1.0 and names.CALENDAR.issuperset(column.name.words)
