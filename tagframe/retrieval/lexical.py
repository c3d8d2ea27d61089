"""Lexical relevance: BM25 over the words of tables, of what is said of them, and of whole databases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tagframe.corpus.profile import TableProfile
from tagframe.retrieval.problem import Floats
from tagframe.retrieval.words import terms


def table_terms(table: TableProfile, *, with_database: bool = True) -> list[str]:
    """The words that a table is found by: those of its database (unless left out), its name and its columns.

    What its user says of the table and its columns is searched as well.
    """
    names = [table.name, *(column.name for column in table.columns)]
    said = [text for text in (table.description, *(column.description for column in table.columns)) if text]
    return terms(" ".join([*([table.database] if with_database else []), *names, *said]))


def said_terms(table: TableProfile) -> list[str]:
    """The words of the descriptions of a table and of its columns."""
    return terms(" ".join([table.description, *(column.description for column in table.columns)]))


class WordIndex:
    """BM25 (Lucene's variant, by bm25s) over documents.

    Args:
        documents: the words of each.
    """

    def __init__(self, documents: Sequence[Sequence[str]]) -> None:
        import bm25s

        self._count = len(documents)
        self._words = {word for document in documents for word in document}
        if self._words:
            self._index = bm25s.BM25(method="lucene")
            self._index.index([list(document) for document in documents], show_progress=False)

    def scores(self, asked: Sequence[str]) -> Floats:
        """BM25 of every document for the terms of a text: shape (n,), 0 for those that have none of them."""
        known = [word for word in asked if word in self._words]
        if not known:
            return np.zeros(self._count)
        return np.asarray(self._index.get_scores(known), dtype=np.float64)


class LexicalIndex(WordIndex):
    """BM25 over the tables of a corpus, identifiers split."""

    def __init__(self, tables: Sequence[TableProfile], *, with_database: bool = True) -> None:
        super().__init__([table_terms(table, with_database=with_database) for table in tables])


def database_index(tables: Sequence[TableProfile], database: Sequence[int]) -> WordIndex:
    """BM25 over databases, each word of one counted once: many tables say the same.

    Args:
        tables: of the corpus.
        database: the number of each table's, from 0.
    """
    words: list[dict[str, None]] = [{} for _ in range(max(database, default=-1) + 1)]
    for table, number in zip(tables, database, strict=True):
        words[number].update(dict.fromkeys(table_terms(table, with_database=False)))
    return WordIndex([list(found) for found in words])
