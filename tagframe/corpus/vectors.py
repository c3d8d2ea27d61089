"""Vectors of tables and columns, encoded once."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tagframe.corpus.catalogue import Catalogue
from tagframe.corpus.documents import column_document, table_document
from tagframe.corpus.profile import TableProfile
from tagframe.embed import ANONYMOUS
from tagframe.errors import CatalogueWarning, UnreadableCatalogue
from tagframe.progress import shown

if TYPE_CHECKING:
    from tagframe.embed import Embedder

_CHUNK = 256
"""Documents that are encoded at a time, between two steps of the bar."""


@dataclass(frozen=True)
class CorpusVectors:
    """The vectors of a corpus' tables and columns; rows are of length 1.

    Attributes:
        tables: shape (n_tables, d), float32, in the order of ``corpus.profiles``.
        columns: shape (n_columns, d), float32: all columns of the first table, then those of the second, …
        column_table: shape (n_columns,), the row in ``tables`` of each column's table.
    """

    tables: npt.NDArray[np.float32]
    columns: npt.NDArray[np.float32]
    column_table: npt.NDArray[np.intp]


@dataclass
class VectorStore:
    """The vectors of documents by embedder, in memory and in the catalogue if there is one.

    Shared by a corpus and its subsets; safe to use from several threads.
    """

    catalogue: Catalogue | None = None
    _vectors: dict[str, dict[str, npt.NDArray[np.float32]]] = field(default_factory=dict, repr=False)
    _documents: dict[str, set[str]] = field(default_factory=dict, repr=False)
    _lock: Any = field(default_factory=threading.RLock, repr=False, compare=False)

    def encode(self, embedder: Embedder, documents: Sequence[str]) -> npt.NDArray[np.float32]:
        """The vectors of the documents, shape (n, d); only those that were never encoded are."""
        with self._lock:
            known = self._vectors.setdefault(embedder.name, {})
            missing = [document for document in dict.fromkeys(documents) if document not in known]
            catalogue = None if _is_anonymous(embedder.name) else self.catalogue
            if missing and catalogue is not None:
                known.update(_stored(catalogue, embedder, missing))
                missing = [document for document in missing if document not in known]
            if missing:
                fresh = _encoded(embedder, missing)
                known.update(fresh)
                if catalogue is not None:
                    _store(catalogue, embedder, fresh)
            if not documents:
                return np.empty((0, embedder.dimension), dtype=np.float32)
            return np.stack([known[document] for document in documents])

    def belong(self, table: str, documents: Iterable[str]) -> None:
        """These are documents of a table, under whatever names."""
        with self._lock:
            self._documents.setdefault(table, set()).update(documents)

    def known(self, tables: Iterable[str]) -> dict[str, dict[str, npt.NDArray[np.float32]]]:
        """What is in memory of the documents of these tables, by embedder, for a catalogue."""
        with self._lock:
            documents = {document for table in tables for document in self._documents.get(table, ())}
            return {
                name: {document: vectors[document] for document in documents if document in vectors}
                for name, vectors in self._vectors.items()
                if not _is_anonymous(name)
            }

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())


def corpus_vectors(
    profiles: Sequence[TableProfile], embedder: Embedder, store: VectorStore, *, hide_database: bool
) -> CorpusVectors:
    """Encode the tables and columns of ``profiles``."""
    tables = [table_document(profile, hide_database=hide_database) for profile in profiles]
    columns = [[column_document(profile, column) for column in profile.columns] for profile in profiles]
    for profile, table, its_columns in zip(profiles, tables, columns, strict=True):
        store.belong(profile.id, [table, *its_columns])
    widths = [len(its_columns) for its_columns in columns]
    vectors = store.encode(embedder, [*tables, *chain.from_iterable(columns)])
    return CorpusVectors(
        tables=vectors[: len(tables)],
        columns=vectors[len(tables) :],
        column_table=np.repeat(np.arange(len(tables)), widths),
    )


def _encoded(embedder: Embedder, documents: Sequence[str]) -> dict[str, npt.NDArray[np.float32]]:
    """The vectors of the documents, with a bar where it takes long; those of one length are encoded together."""
    ordered = sorted(documents, key=len, reverse=True)
    chunks = [ordered[start : start + _CHUNK] for start in range(0, len(ordered), _CHUNK)]
    found: dict[str, npt.NDArray[np.float32]] = {}
    work = ((len(chunk), chunk) for chunk in chunks)
    for chunk in shown(work, len(ordered), "reading names of tables and columns", "name"):
        found.update(zip(chunk, embedder.encode(chunk), strict=True))
    return found


def _is_anonymous(name: str) -> bool:
    """Whether the embedder is an object of this process only: in another one its name may be another's."""
    return name.startswith(ANONYMOUS)


def _stored(catalogue: Catalogue, embedder: Embedder, documents: Sequence[str]) -> dict[str, npt.NDArray[np.float32]]:
    try:
        return catalogue.vectors(embedder.name, documents)
    except UnreadableCatalogue as error:
        warnings.warn(f"vectors are computed again: {error}", CatalogueWarning, stacklevel=5)
        return {}


def _store(catalogue: Catalogue, embedder: Embedder, vectors: Mapping[str, npt.NDArray[np.float32]]) -> None:
    try:
        catalogue.add_vectors(embedder.name, vectors)
    except UnreadableCatalogue as error:
        warnings.warn(f"vectors are kept in memory only: {error}", CatalogueWarning, stacklevel=5)
