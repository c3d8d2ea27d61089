"""The words of names, and how rare each is in a corpus."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from tagframe.corpus.documents import identifier_words
from tagframe.corpus.profile import TableProfile
from tagframe.keys.names import singular
from tagframe.retrieval.problem import Floats
from tagframe.retrieval.words import terms


class Vocabulary:
    """The words of table and column names, each with its rarity in (0, 1]: 1 where one table of all has it.

    Where a user says what a name means, the words of that stand for the name too.
    """

    def __init__(self, tables: Sequence[TableProfile]) -> None:
        names = [_Name(table.name, table.description) for table in tables]
        columns = [_Name(column.name, column.description) for table in tables for column in table.columns]
        owner = [position for position, table in enumerate(tables) for _ in table.columns]
        having: dict[str, set[int]] = defaultdict(set)
        for position, name in [*enumerate(names), *zip(owner, columns, strict=True)]:
            for word in name.stems | name.said:
                having[word].add(position)
        most = math.log1p(max(len(tables), 1))
        self.rarity = {word: math.log1p(len(tables) / len(found)) / most for word, found in having.items()}
        self.names = _Postings(names, self.rarity)
        self.columns = _Postings(columns, self.rarity)

    def explains(self, text: str) -> bool:
        """Whether names have all the words of a text, which then need be no value."""
        words = terms(text)
        return bool(words) and all(word in self.rarity for word in words)


class _Name:
    """The stems of a name, and those of what its user says of it."""

    def __init__(self, name: str, description: str) -> None:
        self.stems = frozenset(singular(word) for word in identifier_words(name))
        self.said = frozenset(terms(description)) if description else frozenset()


class _Postings:
    """Where words stand in names."""

    def __init__(self, named: Sequence[_Name], rarity: dict[str, float]) -> None:
        self._rarity = rarity
        places: dict[str, list[int]] = defaultdict(list)
        for position, name in enumerate(named):
            for word in name.stems | name.said:
                places[word].append(position)
        self._places = {word: np.array(found, dtype=np.intp) for word, found in places.items()}
        self._total = np.maximum([sum(sorted(rarity[word] for word in name.stems)) for name in named], 1e-9)

    def matched(self, words: Sequence[str]) -> tuple[Floats, Floats]:
        """Of each name the rarity of the words that it has, and their share of the name's rarity, at most 1."""
        found = np.zeros(len(self._total))
        for word in words:
            if word in self._places:
                found[self._places[word]] += self._rarity[word]
        return found, np.minimum(found / self._total, 1.0)
