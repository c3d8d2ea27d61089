"""Vectors of tables and columns, encoded once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tagframe.corpus.catalogue import Catalogue
from tagframe.corpus.documents import column_document, table_document
from tagframe.corpus.profile import TableProfile
from tagframe.embed import ANONYMOUS, encoded, expect
from tagframe.errors import CatalogueWarning, UnreadableCatalogue, warn
from tagframe.progress import track

if TYPE_CHECKING:
    from tagframe.embed import Embedder

_CHUNK_LETTERS = 32768
"""The letters of the documents that are encoded at a time, between two steps of the bar: a second's work or two."""

STORED_EVERY = 5.0
"""Seconds of encoding between two writes of finished vectors to the catalogue."""

_SPARSE = 2
"""A corpus that needs less than one in this many of the vectors in memory gets a copy of its own."""


@dataclass(frozen=True)
class CorpusVectors:
    """The vectors of a corpus' tables and columns; rows are of length 1.

    Columns with the same text share a vector: in a lake, half of the columns have the name of another one.

    Attributes:
        tables: shape (n_tables, d), float32, in the order of ``corpus.profiles``.
        distinct: shape (m, d), float32: the vectors of the columns' texts, and possibly of others.
        column_row: shape (n_columns,), the row in ``distinct`` of each column: all columns of the first table, then
            those of the second, …
        column_table: shape (n_columns,), the row in ``tables`` of each column's table.
    """

    tables: npt.NDArray[np.float32]
    distinct: npt.NDArray[np.float32]
    column_row: npt.NDArray[np.intp]
    column_table: npt.NDArray[np.intp]


@dataclass
class _InMemory:
    """The vectors of one embedder that are in memory: ``rows`` has the row of each document in ``vectors``."""

    vectors: npt.NDArray[np.float32] | None = None
    rows: dict[str, int] = field(default_factory=dict)
    read: int = 0  # vectors of the catalogue up to this number are here

    def missing(self, documents: Iterable[str]) -> list[str]:
        return [document for document in dict.fromkeys(documents) if document not in self.rows]

    def add(self, documents: Sequence[str], vectors: npt.NDArray[np.float32]) -> None:
        if len(documents):
            before = 0 if self.vectors is None else len(self.vectors)
            self.rows.update(zip(documents, range(before, before + len(documents)), strict=True))
            self.vectors = vectors if self.vectors is None else np.concatenate([self.vectors, vectors])

    def read_on(self, catalogue: Catalogue, embedder: Embedder) -> None:
        try:
            documents, vectors, self.read = catalogue.vectors(embedder.name, self.read)
        except UnreadableCatalogue as error:
            warn(f"vectors are computed again: {error}", CatalogueWarning)
            return
        self.add(documents, vectors)


@dataclass
class VectorStore:
    """The vectors of documents by embedder, in memory and in the catalogue if there is one.

    Shared by a corpus and its subsets; safe to use from several threads.
    """

    catalogue: Catalogue | None = None
    _memory: dict[str, _InMemory] = field(default_factory=dict, repr=False)
    _documents: dict[str, set[str]] = field(default_factory=dict, repr=False)
    _promised: list[Callable[[], object]] = field(default_factory=list, repr=False)
    _lock: Any = field(default_factory=threading.RLock, repr=False, compare=False)

    def encode(
        self, embedder: Embedder, documents: Sequence[str]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.intp]]:
        """The vectors of the documents; only new documents are encoded.

        Returns:
            Vectors, shape (m, d), and for each document its row there, shape (n,).
        """
        with self._lock:
            memory = self._memory.setdefault(embedder.name, _InMemory())
            catalogue = None if _is_anonymous(embedder.name) else self.catalogue
            missing = memory.missing(documents)
            if missing and catalogue is not None:
                memory.read_on(catalogue, embedder)
                missing = memory.missing(missing)
            if missing:
                memory.add(*_encoded(embedder, missing, catalogue))
            if memory.vectors is None:
                return np.empty((0, embedder.dimension), dtype=np.float32), np.zeros(0, dtype=np.intp)
            rows = np.array([memory.rows[document] for document in documents], dtype=np.intp)
            return memory.vectors, rows

    def belong(self, table: str, documents: Iterable[str]) -> None:
        """Note that these are documents of a table."""
        with self._lock:
            self._documents.setdefault(table, set()).update(documents)

    def forget(self, table: str) -> None:
        """Drop the documents of a table."""
        with self._lock:
            documents = self._documents.pop(table, set())
            for memory in self._memory.values():
                memory.rows = {document: row for document, row in memory.rows.items() if document not in documents}

    def promise(self, read: Callable[[], object]) -> None:
        """Call ``read`` before :meth:`known` is answered; until then, other readers get the vectors from elsewhere."""
        with self._lock:
            self._promised.append(read)

    def known(self, tables: Iterable[str]) -> dict[str, tuple[list[str], npt.NDArray[np.float32]]]:
        """The documents of these tables in memory and their vectors, by embedder, for a catalogue."""
        by_embedder = {}
        with self._lock:
            while self._promised:
                self._promised.pop()()
            documents = {document for table in tables for document in self._documents.get(table, ())}
            for name, memory in self._memory.items():
                rows = {document: row for document, row in memory.rows.items() if document in documents}
                if rows and memory.vectors is not None and not _is_anonymous(name):
                    by_embedder[name] = list(rows), memory.vectors[list(rows.values())]
        return by_embedder

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_promised": [], "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())


def corpus_vectors(
    profiles: Sequence[TableProfile], embedder: Embedder, store: VectorStore, *, with_database: bool = True
) -> CorpusVectors:
    """The vectors of tables and their columns, each text encoded once.

    Args:
        profiles: the tables.
        embedder: see :func:`tagframe.embed.get_embedder`.
        store: of the vectors, see :func:`tagframe.corpus.vectors_of`.
        with_database: whether the texts of tables have their database's name.
    """
    tables = [table_document(profile, with_database=with_database) for profile in profiles]
    columns = [[column_document(profile, column) for column in profile.columns] for profile in profiles]
    for profile, table, its_columns in zip(profiles, tables, columns, strict=True):
        store.belong(profile.id, [table, *its_columns])
    widths = [len(its_columns) for its_columns in columns]
    vectors, rows = store.encode(embedder, [*tables, *chain.from_iterable(columns)])
    distinct, column_row = vectors, rows[len(tables) :]
    used = np.unique(column_row)
    if _SPARSE * len(used) < len(vectors):  # a small part of a large corpus
        distinct, column_row = vectors[used], np.searchsorted(used, column_row)
    return CorpusVectors(
        tables=vectors[rows[: len(tables)]],
        distinct=distinct,
        column_row=column_row,
        column_table=np.repeat(np.arange(len(tables)), widths),
    )


def _encoded(
    embedder: Embedder, documents: Sequence[str], catalogue: Catalogue | None
) -> tuple[list[str], npt.NDArray[np.float32]]:
    """The documents, in another order, and their vectors."""
    chunks = [*_encoded_in_chunks(embedder, documents, catalogue)]
    return [document for listed, _ in chunks for document in listed], np.concatenate([rows for _, rows in chunks])


def _encoded_in_chunks(
    embedder: Embedder,
    documents: Sequence[str],
    catalogue: Catalogue | None,
) -> Iterator[tuple[list[str], npt.NDArray[np.float32]]]:
    """Documents and their vectors in chunks, with a bar if it takes long; documents of similar length come together.

    They are saved to the catalogue while the work goes on, so that a killed process does not lose them.

    Args:
        embedder: see :func:`tagframe.embed.get_embedder`.
        documents: distinct texts.
        catalogue: None to keep nothing.
    """
    ordered = sorted(documents, key=len, reverse=True)
    expect(embedder, ordered)
    ends = accumulate(len(document) + 1 for document in ordered)
    parts = groupby(zip(ordered, ends, strict=True), lambda one: one[1] // _CHUNK_LETTERS)
    chunks = [[document for document, _ in part] for _, part in parts]
    waiting: list[tuple[list[str], npt.NDArray[np.float32]]] = []
    since = time.monotonic()
    for chunk in track(
        ((len(chunk), chunk) for chunk in chunks), len(ordered), "reading names of tables and columns", "name"
    ):
        vectors = encoded(embedder, chunk, "passage")
        if catalogue is not None:
            waiting.append((chunk, vectors))
            if time.monotonic() - since >= STORED_EVERY or chunk is chunks[-1]:
                names = [document for listed, _ in waiting for document in listed]
                try:
                    catalogue.add_vectors(embedder.name, names, np.concatenate([rows for _, rows in waiting]))
                except UnreadableCatalogue as error:
                    warn(f"vectors are kept in memory only: {error}", CatalogueWarning)
                    catalogue = None
                waiting, since = [], time.monotonic()
        yield chunk, vectors


def _is_anonymous(name: str) -> bool:
    """Whether the embedder exists in this process only: in another process its name may belong to another one."""
    return name.startswith(ANONYMOUS)
