"""The words of names, and how rare each is in a corpus."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress
from typing import Any

import numpy as np
import numpy.typing as npt

from tagframe.corpus.arrays import Arrays, text_array, texts_of
from tagframe.corpus.documents import identifier_words
from tagframe.corpus.profile import TableProfile
from tagframe.retrieval.overlay import Cut
from tagframe.retrieval.problem import Floats
from tagframe.retrieval.words import known_form, stem, terms

Numbers = npt.NDArray[np.int64]

_FULL_WEIGHT_WORDS = 12
"""Up to so many different words of a description count in full for the name; in a longer one, each counts less."""


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
        names = _Names(tables)
        owner = np.repeat(np.arange(len(tables)), [len(table.columns) for table in tables])
        self._put(list(names.words), names.of_tables, names.of_columns, owner, len(tables))

    def _put(self, words: Sequence[str], names: _Places, columns: _Places, owner: Numbers, count: int) -> None:
        """Store which words are in which names; words that are in no name are left out.

        Args:
            words: by number.
            names: their places in table names.
            columns: their places in column names.
            owner: shape (columns,), the table of each column.
            count: the number of tables.
        """
        having = np.concatenate([names.words, columns.words]) * max(count, 1)
        once = np.unique(having + np.concatenate([names.positions, owner[columns.positions]]))
        tables = np.bincount(once // max(count, 1), minlength=len(words))
        there = tables > 0
        number = np.cumsum(there) - 1
        words = list(compress(words, there.tolist()))
        rarity = np.log1p(count / tables[there]) / math.log1p(max(count, 1))
        self.names = _Postings.of(words, rarity, replace(names, words=number[names.words]), count)
        self.columns = _Postings.of(words, rarity, replace(columns, words=number[columns.words]), len(owner))
        self.rarity = dict(zip(words, rarity.tolist(), strict=True))

    def arrays(self) -> dict[str, Any]:
        """The words and their places, to be saved."""
        arrays = {"words": text_array(list(self.rarity)), "rarity": np.array(list(self.rarity.values()))}
        parts = {"names": self.names, "columns": self.columns}
        return arrays | {f"{of}.{name}": getattr(part, name) for of, part in parts.items() for name in _ARRAYS}

    def laid_over(
        self, named: Sequence[TableProfile], tables: Cut, columns: Cut, widths: npt.NDArray[np.int64]
    ) -> Vocabulary:
        """The vocabulary with changed tables, equal to one that is made from scratch.

        Args:
            named: the tables that are added, under their readable names.
            tables: how the order of tables changes.
            columns: how the order of columns changes.
            widths: the number of columns of each table after the change.
        """
        names = _Names(named, self.rarity)
        made = Vocabulary(())
        made._put(
            list(names.words),
            self.names.places(tables).beside(names.of_tables, tables.new),
            self.columns.places(columns).beside(names.of_columns, columns.new),
            np.repeat(np.arange(len(widths)), widths),
            len(widths),
        )
        return made

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

    def beside(self, other: _Places, positions: Numbers) -> _Places:
        """The same with the words of further names at these positions."""
        return _Places(
            np.concatenate([self.words, other.words]),
            np.concatenate([self.positions, positions[other.positions]]),
            np.concatenate([self.own, other.own]),
        )


class _Names:
    """The words of names by number: the stems of each name, and those of its description.

    Args:
        tables: the tables with these names.
        known: words that have numbers already, from 0.

    Attributes:
        words: the number of each word.
        of_tables: the words of tables' names, once each.
        of_columns: the words of columns' names, table after table.
    """

    def __init__(self, tables: Sequence[TableProfile], known: Iterable[str] = ()) -> None:
        self.words = {word: number for number, word in enumerate(known)}
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

    def places(self, cut: Cut) -> _Places:
        """The words of the names that stay after a change.

        Args:
            cut: how the order of names changes.
        """
        stay, positions = cut.moved(self.positions)
        words = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))[stay]
        return _Places(words, positions, self.own[stay])

    def matched(self, words: Sequence[str]) -> tuple[Floats, Floats]:
        """For each name, the rarity of the words that it has, and its share of the name's rarity, at most 1."""
        rarity = np.zeros(len(self.total))
        for word in words:
            form = known_form(word, self._number)
            if form is not None:
                number = self._number[form]
                part = slice(self.starts[number], self.starts[number + 1])
                rarity[self.positions[part]] += self._rarity[number] * self._weight[part]
        return rarity, np.minimum(rarity / self.total, 1.0)
