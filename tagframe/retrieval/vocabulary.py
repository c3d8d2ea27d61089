"""The words of names, and how rare each is in a corpus."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from tagframe.corpus.documents import identifier_words
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.stored_profiles import Arrays, text_array, texts_of
from tagframe.retrieval.problem import Floats
from tagframe.retrieval.words import known_forms, stem, terms

Numbers = npt.NDArray[np.int64]

_FULL_WEIGHT_WORDS = 12
"""Up to so many different words of a description count in full for the name; in a longer one, each counts less."""


_MIN_SHARING = 3
"""A word of the names of all tables, at least so many, says nothing: ``towns_utf8``, ``lakes_utf8``, ``roads_utf8``."""


class Vocabulary:
    """The words of table and column names, each with its rarity in (0, 1]: 1 if a single table has it.

    If a user describes a name, the words of the description count for the name too.

    Args:
        tables: of the corpus.
        stored: a result of :meth:`arrays` for the same tables, instead of the tables.

    Attributes:
        rarity: by word.
        names: the words of table names.
        columns: the words of column names, table after table.
    """

    def __init__(self, tables: Sequence[TableProfile], *, stored: Arrays | None = None) -> None:
        if stored is not None:
            words = texts_of(stored["words"], len(stored["rarity"]))
            rarity = stored["rarity"]
            self.names, self.columns = (
                _Postings(words, rarity, *(stored[f"{of}.{name}"] for name in _ARRAYS)) for of in ("names", "columns")
            )
            self.rarity: dict[str, float] = dict(zip(words, rarity.tolist(), strict=True))
            return
        names, count = _Names(tables), max(len(tables), 1)
        owner = np.repeat(np.arange(len(tables)), [len(table.columns) for table in tables])
        of_tables, of_columns = names.of_tables, names.of_columns
        having = np.concatenate([of_tables.words, of_columns.words]) * count
        once = np.unique(having + np.concatenate([of_tables.positions, owner[of_columns.positions]]))
        rarity = np.log1p(len(tables) / np.bincount(once // count, minlength=len(names.words))) / math.log1p(count)
        if len(tables) >= _MIN_SHARING:
            own = np.bincount(of_tables.words[of_tables.own], minlength=len(rarity))
            rarity[own == len(tables)] = 0.0
        self.names = _Postings.of(list(names.words), rarity, of_tables, len(tables))
        self.columns = _Postings.of(list(names.words), rarity, of_columns, len(owner))
        self.rarity = dict(zip(names.words, rarity.tolist(), strict=True))

    def arrays(self) -> dict[str, Any]:
        """The words and their places, to be saved."""
        arrays = {"words": text_array(list(self.rarity)), "rarity": np.array(list(self.rarity.values()))}
        parts = {"names": self.names, "columns": self.columns}
        return arrays | {f"{of}.{name}": getattr(part, name) for of, part in parts.items() for name in _ARRAYS}

    def forms(self, word: str, *, is_foreign: bool = False) -> tuple[str, ...]:
        """The words of names that a word of a question means (:func:`~tagframe.retrieval.words.known_forms`)."""
        return known_forms(word, self.rarity, is_foreign=is_foreign)

    def calls_a_table(self, word: str) -> bool:
        """Whether a word is in the name of a table."""
        return word in self.rarity and bool(self.names.matched([(word,)])[0].any())

    def explains(self, text: str) -> bool:
        """Whether names have all words of a text; then the text may not be a value."""
        words = terms(text)
        return bool(words) and all(word in self.rarity for word in words)


@dataclass(frozen=True, eq=False)
class _Places:
    """Words by number, the position of the name of each, and whether the word is in the name itself."""

    words: Numbers
    positions: Numbers
    own: npt.NDArray[np.bool_]


class _Names:
    """The words of names by number: the stems of each name, and those of its description.

    Args:
        tables: the tables with these names.

    Attributes:
        words: the number of each word.
        of_tables: the words of tables' names, once each.
        of_columns: the words of columns' names, table after table.
    """

    def __init__(self, tables: Sequence[TableProfile]) -> None:
        self.words: dict[str, int] = {}
        # Names repeat: of a lake's columns, only one in five has a unique name.
        distinct: dict[tuple[str, str], int] = {}
        of_table, of_column = (
            np.array([distinct.setdefault(name, len(distinct)) for name in names], dtype=np.int64)
            for names in (
                [(table.name, table.description) for table in tables],
                [(column.name, column.description) for table in tables for column in table.columns],
            )
        )
        number = self.words.setdefault
        own: list[int] = []
        every: list[list[int]] = []
        for name, description in distinct:
            stems = dict.fromkeys(stem(word) for word in identifier_words(name))
            mine = [number(stem, len(self.words)) for stem in stems]
            described = dict.fromkeys(terms(description))
            own.append(len(mine))
            every.append([*mine, *(number(word, len(self.words)) for word in described if word not in stems)])
        self._own = np.array(own, dtype=np.int64)
        self._starts = np.cumsum([0, *map(len, every)])
        self._flat = np.fromiter(chain.from_iterable(every), dtype=np.int64, count=self._starts[-1])
        self.of_tables, self.of_columns = self._places(of_table), self._places(of_column)

    def _places(self, names: Numbers) -> _Places:
        starts = self._starts[names]
        counts = self._starts[names + 1] - starts
        positions = np.repeat(np.arange(len(names)), counts)
        within = np.arange(len(positions)) - np.repeat(np.cumsum(counts) - counts, counts)
        return _Places(self._flat[starts[positions] + within], positions, within < self._own[names][positions])


_ARRAYS = ("starts", "positions", "own", "total")


class _Postings:
    """The places of words in names.

    Args:
        words: all words.
        rarity: of each, shape (words,).
        starts: where the names of each word begin in ``positions``: shape (words + 1,).
        positions: the positions of the names that have each word, word after word, ascending.
        own: for each of ``positions``, whether the word is in the name itself, not in its description.
        total: the rarity of each name's own words: shape (names,).
    """

    def __init__(
        self,
        words: Sequence[str],
        rarity: Floats,
        starts: Numbers,
        positions: npt.NDArray[np.int32],
        own: npt.NDArray[np.bool_],
        total: Floats,
    ) -> None:
        self._number = {word: number for number, word in enumerate(words)}
        self._rarity = rarity
        self.starts, self.positions, self.own, self.total = starts, positions, own, total
        described = np.bincount(positions[~own], minlength=len(total))
        self._weight = np.where(own, 1.0, (_FULL_WEIGHT_WORDS / np.maximum(described, _FULL_WEIGHT_WORDS))[positions])

    @classmethod
    def of(cls, words: Sequence[str], rarity: Floats, places: _Places, count: int) -> _Postings:
        """The places of words in ``count`` names."""
        # The rarest last, whatever the numbers of words are, so that equal sums are equal to the last digit.
        own = places.words[places.own]
        order = np.lexsort((rarity[own], places.positions[places.own]))
        total = np.bincount(places.positions[places.own][order], rarity[own][order], minlength=count)
        order = np.lexsort((places.positions, places.words))
        starts = np.searchsorted(places.words[order], np.arange(len(words) + 1))
        positions = places.positions[order].astype(np.int32)
        return cls(words, rarity, starts, positions, places.own[order], np.maximum(total, 1e-9))

    def matched(self, words: Iterable[Sequence[str]]) -> tuple[Floats, Floats]:
        """For each name, the rarity of the words that it has, and its share of the name's rarity, at most 1.

        Args:
            words: the forms of each, as in :meth:`Vocabulary.forms`.
        """
        rarity = np.zeros(len(self.total))
        for forms in words:
            best = np.zeros(len(self.total))
            for number in map(self._number.__getitem__, forms):
                part = slice(self.starts[number], self.starts[number + 1])
                best[self.positions[part]] = np.maximum(
                    best[self.positions[part]], self._rarity[number] * self._weight[part]
                )
            rarity += best
        return rarity, np.minimum(rarity / self.total, 1.0)
