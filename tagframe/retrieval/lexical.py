"""Lexical relevance: BM25 over the words of tables, of what is said of them, and of whole databases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tagframe.corpus.mapped import Arrays, text_array, texts_of
from tagframe.corpus.profile import TableProfile
from tagframe.retrieval.overlay import Cut
from tagframe.retrieval.problem import Floats
from tagframe.retrieval.words import terms


class Terms(dict[str, list[str]]):
    """The terms of texts, each cut once: names of columns come again and again."""

    def __missing__(self, text: str) -> list[str]:
        self[text] = found = terms(text)
        return found

    def of(self, texts: Iterable[str]) -> list[str]:
        """The terms of some texts, one after the other; no word reaches from one into the next."""
        return [term for text in texts for term in self[text]]


def table_terms(table: TableProfile, *, with_database: bool = True, cut: Terms | None = None) -> list[str]:
    """The words that a table is found by: those of its database (unless left out), its name and its columns.

    What its user says of the table and its columns is searched as well.
    """
    names = [table.name, *(column.name for column in table.columns)]
    return (Terms() if cut is None else cut).of([*([table.database] if with_database else []), *names, *_said(table)])


def said_terms(table: TableProfile, cut: Terms | None = None) -> list[str]:
    """The words of the descriptions of a table and of its columns."""
    return (Terms() if cut is None else cut).of(_said(table))


def _said(table: TableProfile) -> list[str]:
    return [text for text in (table.description, *(column.description for column in table.columns)) if text]


class WordIndex:
    """BM25 (Lucene's variant, by bm25s) over documents.

    Args:
        documents: the words of each.
        kept: what :meth:`arrays` gave, in place of documents.
    """

    def __init__(self, documents: Sequence[Sequence[str]], kept: Arrays | None = None) -> None:
        import bm25s

        self._index: Any = bm25s.BM25(method="lucene", k1=_K1, b=_B)
        if kept is not None:
            self._count, words, self._length = kept["counts"].tolist()
            self._words = {word: number for number, word in enumerate(texts_of(kept["words"], words))}
            self._index.scores = {**{name: kept[name] for name in _MATRIX}, "num_docs": self._count}
            self._index.nonoccurrence_array = None
            return
        self._count, self._length = len(documents), sum(map(len, documents))
        self._words = {}
        numbered = [[self._words.setdefault(word, len(self._words)) for word in document] for document in documents]
        if self._words:
            self._index.index((numbered, self._words), create_empty_token=False, show_progress=False)

    def arrays(self) -> dict[str, Any]:
        """The index, to be kept; words have no line breaks."""
        counts = np.array([self._count, len(self._words), self._length])
        found = {"counts": counts, "words": text_array(list(self._words))}
        nothing = {name: np.zeros(0, dtype=np.float32) for name in _MATRIX}
        return {**found, **({name: self._index.scores[name] for name in _MATRIX} if self._words else nothing)}

    def laid_over(self, cut: Cut, document: Sequence[str]) -> WordIndex:
        """The index with one document more, or another, that is weighed by what is known of all.

        Args:
            cut: the documents' order.
            document: its words.
        """
        kept = self.arrays()
        starts, words = kept["indptr"].astype(np.int64), dict(self._words)
        stay, places = cut.moved(kept["indices"].astype(np.int64))
        numbers = np.repeat(np.arange(len(self._words)), np.diff(starts))[stay]
        mine = Counter(words.setdefault(word, len(words)) for word in document)
        found = np.fromiter(mine, dtype=np.int64, count=len(mine))
        having = np.maximum(np.diff(starts)[np.minimum(found, len(starts) - 2)] if len(self._words) else found * 0, 1)
        having = np.where(found < len(self._words), having, 1)
        rarity = np.log1p((self._count - having + 0.5) / (having + 0.5))
        often = np.fromiter(mine.values(), dtype=np.float64, count=len(mine))
        mean = self._length / max(self._count, 1) or 1.0
        scores = rarity * often / (_K1 * (1 - _B + _B * len(document) / mean) + often)
        every = np.concatenate([numbers, found])
        order = np.argsort(every, kind="stable")
        length = self._length + len(document)
        return WordIndex(
            (),
            {
                "counts": np.array([self._count + cut.new - cut.gone, len(words), length]),
                "words": text_array(list(words)),
                "data": np.concatenate([kept["data"][stay], scores])[order].astype(np.float32),
                "indices": np.concatenate([places, np.full(len(found), cut.at)])[order].astype(np.int32),
                "indptr": np.searchsorted(every[order], np.arange(len(words) + 1)),
            },
        )

    def scores(self, asked: Sequence[str]) -> Floats:
        """BM25 of every document for the terms of a text: shape (n,), 0 for those that have none of them."""
        known = [self._words[word] for word in asked if word in self._words]
        if not known:
            return np.zeros(self._count)
        return np.asarray(self._index.get_scores(known), dtype=np.float64)


_K1, _B = 1.5, 0.75
"""What bm25s takes where nothing is said."""
_MATRIX = ("data", "indices", "indptr")


class LexicalIndex(WordIndex):
    """BM25 over the tables of a corpus, identifiers split."""

    def __init__(self, tables: Sequence[TableProfile], *, with_database: bool = True, cut: Terms | None = None) -> None:
        cut = Terms() if cut is None else cut
        super().__init__([table_terms(table, with_database=with_database, cut=cut) for table in tables])


def database_index(tables: Sequence[TableProfile], database: Sequence[int], cut: Terms | None = None) -> WordIndex:
    """BM25 over databases, each word of one counted once: many tables say the same.

    Args:
        tables: of the corpus.
        database: the number of each table's, from 0.
        cut: the terms of texts that are known.
    """
    cut = Terms() if cut is None else cut
    words: list[dict[str, None]] = [{} for _ in range(max(database, default=-1) + 1)]
    for table, number in zip(tables, database, strict=True):
        words[number].update(dict.fromkeys(table_terms(table, with_database=False, cut=cut)))
    return WordIndex([list(found) for found in words])
