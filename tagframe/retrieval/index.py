"""What retrieval knows of a corpus before any question: lexical index, vectors, joinability, links."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tagframe.corpus.profile import TableProfile
from tagframe.retrieval.joinability import Joinability
from tagframe.retrieval.lexical import LexicalIndex
from tagframe.retrieval.links import Links
from tagframe.retrieval.problem import Floats
from tagframe.retrieval.words import terms

if TYPE_CHECKING:
    from tagframe.corpus import CorpusVectors
    from tagframe.embed import Embedder

_REMEMBERED = 8


class Searchable(Protocol):
    """What of a corpus retrieval looks at; :class:`tagframe.Corpus` is one."""

    @property
    def profiles(self) -> tuple[TableProfile, ...]:
        """The profile of every table, sorted by id."""

    def vectors(self, embedder: Embedder, *, hide_database: bool = False) -> CorpusVectors:
        """The vectors of all tables and columns."""


class RetrievalIndex:
    """The tables of a corpus, ready for questions. What costs is made at first use and kept.

    Args:
        corpus: what to search.
        embedder: None leaves lexical relevance alone.
        declared_keys: whether keys that the source declares are taken as links.
    """

    def __init__(self, corpus: Searchable, embedder: Embedder | None, *, declared_keys: bool = True) -> None:
        self.tables = corpus.profiles
        self.embedder = embedder
        self.declared_keys = declared_keys
        # The name of the only database sets no table apart from another.
        self.one_database = len({table.database for table in self.tables}) == 1
        self.vectors = None if embedder is None else corpus.vectors(embedder, hide_database=self.one_database)
        self._starts = np.cumsum([0, *(len(table.columns) for table in self.tables)])

    @cached_property
    def lexical(self) -> LexicalIndex:
        """BM25 over the tables."""
        return LexicalIndex(self.tables, with_database=not self.one_database)

    @cached_property
    def joinability(self) -> Joinability:
        """ω of JAR section 3.3."""
        return Joinability(self.tables, None if self.vectors is None else self.vectors.columns)

    @cached_property
    def links(self) -> Links:
        """Key pairs."""
        return Links(self.tables, declared=self.declared_keys)

    @cached_property
    def _column_terms(self) -> list[frozenset[str]]:
        return [frozenset(terms(f"{table.name} {column.name}")) for table in self.tables for column in table.columns]

    def encode(self, texts: Sequence[str]) -> Floats:
        """Unit vectors of the texts: shape (len(texts), d)."""
        assert self.embedder is not None
        return np.asarray(self.embedder.encode(texts), dtype=np.float64)

    def dense(self, question: str) -> Floats:
        """Cosine of the question and every table: shape (n,); zeros without an embedder."""
        if self.vectors is None:
            return np.zeros(len(self.tables))
        return np.asarray(self.vectors.tables @ self.encode([question])[0], dtype=np.float64)

    def fine(self, subqueries: Sequence[str], tables: Sequence[int]) -> tuple[Floats, list[Floats]]:
        """Fine relevance F, and r_qik behind it: cosines, or without an embedder the share of a sub-query's words.

        Returns:
            F of shape (q, len(tables)): each sub-query's best column of each table, 0 for a table of no columns; and
            for each table r_qik, shape (q, columns of the table).
        """
        rows = [slice(self._starts[table], self._starts[table + 1]) for table in tables]
        if self.vectors is not None and subqueries:
            queries = self.encode([plain(subquery) for subquery in subqueries])
            each = [queries @ self.vectors.columns[part].T for part in rows]
        else:
            wanted = [frozenset(terms(plain(subquery))) for subquery in subqueries]
            each = [
                np.array([[_share(words, held) for held in self._column_terms[part]] for words in wanted])
                for part in rows
            ]
        each = [
            np.asarray(scores, dtype=np.float64).reshape(len(subqueries), part.stop - part.start)
            for scores, part in zip(each, rows, strict=True)
        ]
        best = [part.max(axis=1) if part.size else np.zeros(len(subqueries)) for part in each]
        return np.array(best).reshape(len(tables), len(subqueries)).T.copy(), each


def _share(wanted: frozenset[str], held: frozenset[str]) -> float:
    return len(wanted & held) / max(len(wanted), 1)


def plain(subquery: str) -> str:
    """A sub-query as the embedder reads it: ``concept attribute``, as columns are ``table column``."""
    return subquery.replace(":", " ")


_indexes: OrderedDict[tuple[int, ...], RetrievalIndex] = OrderedDict()
_lock = threading.Lock()


def index_of(corpus: Searchable, embedder: Embedder | None) -> RetrievalIndex:
    """The index of a corpus, made once: narrowed corpora are made anew at every call, their profiles are not."""
    key = (id(embedder), *map(id, corpus.profiles))
    with _lock:
        if key in _indexes:
            _indexes.move_to_end(key)
            return _indexes[key]
    index = RetrievalIndex(corpus, embedder)  # holds the profiles and the embedder, so that their ids stay theirs
    with _lock:
        _indexes[key] = index
        while len(_indexes) > _REMEMBERED:
            _indexes.popitem(last=False)
    return index
