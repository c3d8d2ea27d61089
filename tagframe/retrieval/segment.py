"""Splits names without separators ("HASLASTTRADEDVALUE") into words of the embedding model's own vocabulary.

Such a name is one word to BM25 and nonsense to an embedding model. Dynamic programming finds the cheapest way to write
it in known words; common words and few words are cheap.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, lru_cache

from tagframe.corpus.documents import identifier_words
from tagframe.corpus.once import once
from tagframe.corpus.profile import TableProfile
from tagframe.retrieval.words import forms

SHORTEST = 8
"""Words with fewer letters are not split."""

_LEADING = frozenset({"has", "is", "non", "new", "max", "min", "num", "per", "sub", "top", "tax", "net", "zip"})
_INNER = frozenset({"of", "to", "by", "in", "on", "or", "at", "and", "for", "the", "per", "non", "is", "has", "tax"})
_CLOSING = frozenset({"id", "key", "tax", "day", "fee", "num", "sum", "per"})
"""Short words with which a name may begin, which it may contain, and with which it may end. Other short words are
usually the ends of longer words."""
_SHORT = _LEADING | _INNER | _CLOSING
_LONGEST = 24
_MIN_FORM = 6
"""The fewest letters of another form by which a word is known."""
_PER_WORD = 1.0
_PER_SHORT_WORD = 1.5
_LETTERS = re.compile(r"[a-z]+\Z")


class Segmenter:
    """Splits words that are written together.

    Args:
        ranked: known words, the most common first: the vocabulary of a tokenizer.

    >>> segmenter = Segmenter(["value", "trade", "traded", "last", "lasting", "has"])
    >>> segmenter.words("haslasttradedvalue")
    ['has', 'last', 'traded', 'value']
    >>> segmenter.words("tradedxyz")
    ['tradedxyz']
    """

    def __init__(self, ranked: Iterable[str]) -> None:
        known = [word for word in ranked if _LETTERS.match(word) and (len(word) > 3 or word in _SHORT)]
        most = math.log1p(max(len(known), 1))
        self._apart: dict[str, list[str]] = {}
        self._cost = {
            word: (_PER_WORD if len(word) > 3 else _PER_SHORT_WORD) + math.log1p(rank) / most
            for rank, word in reversed(list(enumerate(known)))
        }

    def words(self, word: str) -> list[str]:
        """The words in a word; the word itself if it is known, short, or has an unknown part."""
        if len(word) < SHORTEST or self.knows(word):
            return [word]
        if word not in self._apart:
            self._apart[word] = self._taken_apart(word)
        return self._apart[word]

    def _taken_apart(self, word: str) -> list[str]:
        best: list[tuple[float, list[str]] | None] = [(0.0, [])]  # of the letters before each position
        for end in range(1, len(word) + 1):
            options = [
                (before[0] + self._cost[piece], [*before[1], piece])
                for start in range(max(0, end - _LONGEST), end)
                if (before := best[start]) is not None
                and (piece := word[start:end]) in self._cost
                and _may_stand(piece, start, end == len(word))
            ]
            best.append(min(options, key=lambda option: option[0], default=None))
        return [word] if best[-1] is None else best[-1][1]

    def knows(self, word: str) -> bool:
        """Whether a word, or another form of it, is known: "alternation" is no nation, as there is "alternate". Where
        no words are known, every word is."""
        known = (one in self._cost for one in forms(word) if len(one) >= _MIN_FORM)
        return not self._cost or word in self._cost or any(known)

    def name(self, name: str) -> str:
        """A name with its words separated; unchanged if there is nothing to split."""
        words = identifier_words(name)
        apart = [piece for word in words for piece in self.words(word)]
        return " ".join(apart) if len(apart) > len(words) else name


def _may_stand(piece: str, start: int, is_last: bool) -> bool:
    allowed = _LEADING if start == 0 else _CLOSING if is_last else _INNER
    return len(piece) > 3 or piece in allowed


def with_words_apart(tables: Sequence[TableProfile], segmenter: Segmenter) -> tuple[TableProfile, ...]:
    """The tables under names that are split into words. The ids stay; tables whose names stay are the same objects."""
    apart = cache(segmenter.name)

    def split(table: TableProfile) -> TableProfile:
        names = [column.name for column in table.columns]
        if list(map(apart, names)) == names:
            return table if apart(table.name) == table.name else table.called(apart(table.name))
        columns = tuple(
            column if apart(column.name) == column.name else replace(column, name=apart(column.name))
            for column in table.columns
        )
        return replace(table, name=apart(table.name), columns=columns)

    return tuple(map(split, tables))


@lru_cache(2)
def _segmenter_of(ranked: tuple[str, ...]) -> Segmenter:
    return Segmenter(ranked)  # of 30,000 words in some 30 ms: once for all corpora of an embedder


class WordsApart:
    """Tables under names that are split into words; each is made when it is needed, and not kept.

    Args:
        tables: the tables under their own names.
        ranked: returns the known words, the most common first; it is called when they are needed.
    """

    def __init__(self, tables: Sequence[TableProfile], ranked: Callable[[], Iterable[str]]) -> None:
        self._own, self._ranked = tables, ranked

    @once
    def _segmenter(self) -> Segmenter:
        return _segmenter_of(tuple(self._ranked()))

    def whole(self) -> tuple[TableProfile, ...]:
        """All tables."""
        return with_words_apart(self._own, self._segmenter)

    def knows(self, word: str) -> bool:
        """See :meth:`Segmenter.knows`."""
        return self._segmenter.knows(word.lower())

    def __getitem__(self, position: int) -> TableProfile:
        return with_words_apart([self._own[position]], self._segmenter)[0]
