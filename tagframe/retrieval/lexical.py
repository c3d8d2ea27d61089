"""Lexical relevance: BM25 over the words of tables, of their descriptions, and of whole databases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tagframe.corpus.profile import TableProfile
from tagframe.corpus.stored_profiles import Arrays, text_array, texts_of
from tagframe.quiet import quiet
from tagframe.retrieval.problem import Floats
from tagframe.retrieval.words import known_form, terms

Numbers = npt.NDArray[Any]


_cut = lru_cache(maxsize=65536)(terms)  # many columns have the same name


def table_terms(table: TableProfile, *, with_database: bool = True) -> list[str]:
    """The words by which a table is found: those of its database (unless left out), its name and its columns.

    Descriptions of the table and its columns are included.
    """
    texts = [table.name, *(column.name for column in table.columns), *_of_descriptions(table)]
    return [term for text in ([table.database, *texts] if with_database else texts) for term in _cut(text)]


def description_terms(table: TableProfile) -> list[str]:
    """The words of the descriptions of a table and of its columns."""
    return [term for text in _of_descriptions(table) for term in _cut(text)]


def _of_descriptions(table: TableProfile) -> list[str]:
    return [text for text in (table.description, *(column.description for column in table.columns)) if text]


class WordIndex:
    """BM25 (Lucene's variant, searched by bm25s) over documents.

    Only the counts of words are saved. The weight of a word depends on all documents, and is computed again when some
    of them change.

    Args:
        documents: the words of each.
        stored: a result of :meth:`arrays`, instead of documents.
    """

    def __init__(self, documents: Sequence[Sequence[str]], stored: Arrays | None = None) -> None:
        if stored is not None:
            self._lengths = stored["lengths"]
            self._words = {word: n for n, word in enumerate(texts_of(stored["words"], len(stored["starts"]) - 1))}
            self._starts, self._documents, self._often = stored["starts"], stored["documents"], stored["often"]
        else:
            self._lengths = np.array([len(document) for document in documents], dtype=np.int64)
            self._words = {}
            words, where, often = _pairs(documents, self._words)
            order = np.lexsort((where, words))
            self._starts = np.searchsorted(words[order], np.arange(len(self._words) + 1)).astype(np.int64)
            self._documents, self._often = where[order].astype(np.int32), often[order].astype(np.int32)
        self._index = self._weighed()

    def _weighed(self) -> Any:
        # bm25s's own index() counts the words of all documents again: 0.17 s instead of 0.003 s for 6,000 documents of
        # 60 words, each time that a table or its description changes.
        with quiet():  # it loads tqdm, which warns in a notebook without ipywidgets
            import bm25s

        count, having = len(self._lengths), np.diff(self._starts)
        rarity = np.log1p((count - having + 0.5) / (having + 0.5))
        mean = float(self._lengths.mean()) if self._lengths.any() else 1.0
        often = self._often.astype(np.float64)
        long = _K1 * (1 - _B + _B * self._lengths / mean)
        scores = np.repeat(rarity, having) * often / (long[self._documents] + often)
        index: Any = bm25s.BM25(method="lucene", k1=_K1, b=_B)
        matrix = {"data": scores.astype(np.float32), "indices": self._documents, "indptr": self._starts}
        index.scores = {**matrix, "num_docs": count}
        index.nonoccurrence_array = None
        return index

    def arrays(self) -> dict[str, Any]:
        """The index as arrays, to be saved; words have no line breaks."""
        arrays = {"starts": self._starts, "documents": self._documents, "often": self._often, "lengths": self._lengths}
        return {"words": text_array(list(self._words)), **arrays}

    def scores(self, terms: Sequence[str]) -> Floats:
        """BM25 of every document for the terms of a text: shape (n,), 0 for documents without any of them."""
        known = [self._words[form] for form in self._forms(terms)]
        if not known:
            return np.zeros(len(self._lengths))
        return np.asarray(self._index.get_scores(known), dtype=np.float64)

    def words_of(self, document: int, terms: Iterable[str]) -> list[str]:
        """The words among these that a document has."""
        return [form for form in self._forms(terms) if self._has(self._words[form], document)]

    def _forms(self, terms: Iterable[str]) -> list[str]:
        """The words, each as the documents have it, if they do."""
        return [form for word in terms if (form := known_form(word, self._words)) is not None]

    def _has(self, word: int, document: int) -> bool:
        part = self._documents[self._starts[word] : self._starts[word + 1]]
        position = int(np.searchsorted(part, document))
        return position < len(part) and int(part[position]) == document


def _pairs(documents: Sequence[Sequence[str]], words: dict[str, int]) -> tuple[Numbers, Numbers, Numbers]:
    """Numbers of words, the document of each, and how often it occurs there; new words get new numbers."""
    lengths = list(map(len, documents))
    numbers = (words.setdefault(word, len(words)) for document in documents for word in document)
    every = np.fromiter(numbers, dtype=np.int64, count=sum(lengths))
    several = every * max(len(documents), 1) + np.repeat(np.arange(len(documents)), lengths)
    distinct, often = np.unique(several, return_counts=True)
    return distinct // max(len(documents), 1), distinct % max(len(documents), 1), often


_K1, _B = 1.5, 0.75
"""The defaults of bm25s."""


class LexicalIndex(WordIndex):
    """BM25 over the tables of a corpus, identifiers split."""

    def __init__(self, tables: Sequence[TableProfile], *, with_database: bool = True) -> None:
        super().__init__([table_terms(table, with_database=with_database) for table in tables])


def database_index(tables: Sequence[TableProfile], database: Sequence[int]) -> WordIndex:
    """BM25 over databases. Each word counts once per database, since many of its tables share words.

    Args:
        tables: the tables of the corpus.
        database: for each table the number of its database, from 0.
    """
    members: list[dict[str, None]] = [{} for _ in range(max(database, default=-1) + 1)]
    for table, number in zip(tables, database, strict=True):
        members[number].update(dict.fromkeys(table_terms(table, with_database=False)))
    return WordIndex([[*words] for words in members])
