"""The words of names, and how rare each is in a corpus."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from tagframe.corpus.documents import identifier_words
from tagframe.corpus.mapped import Arrays, text_array, texts_of
from tagframe.corpus.profile import TableProfile
from tagframe.keys.names import singular
from tagframe.retrieval.lexical import Terms
from tagframe.retrieval.overlay import Cut
from tagframe.retrieval.problem import Floats
from tagframe.retrieval.words import terms

Numbers = npt.NDArray[np.int64]


class Vocabulary:
    """The words of table and column names, each with its rarity in (0, 1]: 1 where one table of all has it.

    Where a user says what a name means, the words of that stand for the name too.

    Args:
        tables: of the corpus.
        cut: the terms of texts that are known.
        kept: what :meth:`arrays` gave of the same tables, in place of them.

    Attributes:
        rarity: by word.
        names: of tables.
        columns: of columns, table after table.
    """

    def __init__(self, tables: Sequence[TableProfile], cut: Terms | None = None, *, kept: Arrays | None = None) -> None:
        if kept is not None:
            words = texts_of(kept["words"], len(kept["rarity"]))
            rarity = kept["rarity"]
            self.names, self.columns = (
                _Postings(words, rarity, *(kept[f"{of}.{name}"] for name in _KEPT)) for of in ("names", "columns")
            )
        else:
            # Names come again and again: of a lake's columns one in five is called as no other.
            distinct: dict[tuple[str, str], int] = {}
            of_table, of_column = (
                np.array([distinct.setdefault(name, len(distinct)) for name in names], dtype=np.int64)
                for names in (
                    [(table.name, table.description) for table in tables],
                    [(column.name, column.description) for table in tables for column in table.columns],
                )
            )
            names = _Names(list(distinct), Terms() if cut is None else cut)
            words = list(names.words)
            owner = np.repeat(np.arange(len(tables)), [len(table.columns) for table in tables])
            (table, table_words), (column, column_words) = names.words_of(of_table), names.words_of(of_column)
            having = np.concatenate([table_words, column_words]) * max(len(tables), 1)
            once = np.unique(having + np.concatenate([table, owner[column]]))
            count = np.bincount(once // max(len(tables), 1), minlength=len(words)).tolist()
            most = math.log1p(max(len(tables), 1))
            rarity = np.array([math.log1p(len(tables) / found) / most for found in count], dtype=np.float64)
            totals = names.totals(rarity)
            self.names = _Postings.of(words, rarity, table, table_words, totals[of_table])
            self.columns = _Postings.of(words, rarity, column, column_words, totals[of_column])
        self.rarity: dict[str, float] = dict(zip(words, rarity.tolist(), strict=True))

    def arrays(self) -> dict[str, Any]:
        """The words and where they stand, to be kept."""
        found = {"words": text_array(list(self.rarity)), "rarity": np.array(list(self.rarity.values()))}
        parts = {"names": self.names, "columns": self.columns}
        return found | {f"{of}.{name}": getattr(part, name) for of, part in parts.items() for name in _KEPT}

    def laid_over(self, table: TableProfile, tables: Cut, columns: Cut) -> Vocabulary:
        """The words with those of one table more, or another; a word that no other has is as rare as can be.

        Args:
            table: under its readable names.
            tables: their order.
            columns: their order.
        """
        said = [(table.name, table.description), *((column.name, column.description) for column in table.columns)]
        names = _Names(said, Terms(), self.rarity)
        rarity = {word: self.rarity.get(word, 1.0) for word in names.words}
        totals = names.totals(np.array(list(rarity.values())))
        made = Vocabulary(())
        made.rarity = rarity
        for of, cut, mine in (("names", tables, slice(0, 1)), ("columns", columns, slice(1, None))):
            setattr(
                made,
                of,
                getattr(self, of).laid_over(rarity, cut, names.words_of(np.arange(len(said))[mine]), totals[mine]),
            )
        return made

    def explains(self, text: str) -> bool:
        """Whether names have all the words of a text, which then need be no value."""
        words = terms(text)
        return bool(words) and all(word in self.rarity for word in words)


class _Names:
    """Names that differ, and their words by numbers: the stems of each, and those of what its user says of it."""

    def __init__(self, names: Sequence[tuple[str, str]], cut: Terms, known: Iterable[str] = ()) -> None:
        self.words = {word: number for number, word in enumerate(known)}
        number = self.words.setdefault
        self._stems: list[list[int]] = []
        every: list[list[int]] = []
        for name, description in names:
            stems = dict.fromkeys(singular(word) for word in identifier_words(name))
            mine = [number(stem, len(self.words)) for stem in stems]
            said = dict.fromkeys(cut[description]) if description else {}
            self._stems.append(mine)
            every.append([*mine, *(number(word, len(self.words)) for word in said if word not in stems)])
        self._starts = np.cumsum([0, *map(len, every)])
        self._flat = np.fromiter(chain.from_iterable(every), dtype=np.int64, count=self._starts[-1])

    def words_of(self, names: Numbers) -> tuple[Numbers, Numbers]:
        """The words of each of some names, once each: the places among them, ascending, and the words."""
        starts = self._starts[names]
        counts = self._starts[names + 1] - starts
        places = np.repeat(np.arange(len(names)), counts)
        within = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        return places, self._flat[starts[places] + within]

    def totals(self, rarity: Floats) -> Floats:
        """The rarity of the stems of each name."""
        every = rarity.tolist()
        return np.maximum([sum(sorted(every[stem] for stem in stems)) for stems in self._stems], 1e-9)


_KEPT = ("starts", "places", "total")


class _Postings:
    """Where words stand in names.

    Args:
        words: all there are.
        rarity: of each, shape (words,).
        starts: where the names of each word begin among ``places``: shape (words + 1,).
        places: of the names that have each word, word after word, ascending.
        total: the rarity of each name's words: shape (names,).
    """

    def __init__(
        self, words: Sequence[str], rarity: Floats, starts: Numbers, places: npt.NDArray[np.int32], total: Floats
    ) -> None:
        self._number = {word: number for number, word in enumerate(words)}
        self._rarity = rarity
        self.starts, self.places, self.total = starts, places, total

    @classmethod
    def of(cls, words: Sequence[str], rarity: Floats, places: Numbers, numbers: Numbers, total: Floats) -> _Postings:
        """Of words by number, and the name that each is in."""
        order = np.argsort(numbers, kind="stable")
        starts = np.searchsorted(numbers[order], np.arange(len(words) + 1))
        return cls(words, rarity, starts, places[order].astype(np.int32), total)

    def laid_over(
        self, rarity: Mapping[str, float], cut: Cut, new: tuple[Numbers, Numbers], total: Floats
    ) -> _Postings:
        """Where the words stand with some names more, or others.

        Args:
            rarity: of all words, those that were known first.
            cut: the names' order.
            new: the places of words among the new names, and the words.
            total: of the new names.
        """
        stay, places = cut.moved(self.places.astype(np.int64))
        numbers = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))[stay]
        places, numbers = np.concatenate([places, new[0] + cut.at]), np.concatenate([numbers, new[1]])
        values = np.fromiter(rarity.values(), dtype=np.float64, count=len(rarity))
        return _Postings.of(list(rarity), values, places, numbers, cut.into(self.total, total))

    def matched(self, words: Sequence[str]) -> tuple[Floats, Floats]:
        """Of each name the rarity of the words that it has, and their share of the name's rarity, at most 1."""
        found = np.zeros(len(self.total))
        for word in words:
            number = self._number.get(word)
            if number is not None:
                found[self.places[self.starts[number] : self.starts[number + 1]]] += self._rarity[number]
        return found, np.minimum(found / self.total, 1.0)
