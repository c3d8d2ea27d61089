"""Lexical relevance: BM25 over the words of a table's and its columns' names, identifiers split."""

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


class LexicalIndex:
    """BM25 (Lucene's variant, by bm25s) over the tables of a corpus."""

    def __init__(self, tables: Sequence[TableProfile], *, with_database: bool = True) -> None:
        import bm25s

        self._tables = len(tables)
        documents = [table_terms(table, with_database=with_database) for table in tables]
        self._words = {word for document in documents for word in document}
        if self._words:
            self._index = bm25s.BM25(method="lucene")
            self._index.index(documents, show_progress=False)

    def scores(self, asked: Sequence[str]) -> Floats:
        """BM25 of every table for the terms of a text: shape (n,), 0 for tables that have none of them."""
        known = [word for word in asked if word in self._words]
        if not known:
            return np.zeros(self._tables)
        return np.asarray(self._index.get_scores(known), dtype=np.float64)
