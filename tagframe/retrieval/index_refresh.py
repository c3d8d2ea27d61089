"""Saves the index of a lake, and updates it from that of an earlier state: only changed tables are indexed again.

An unchanged table keeps its words, values, vectors and links. What depends on all tables, such as how rare a word is,
is computed again from saved counts. The result equals an index that is made from scratch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tagframe.corpus import Corpus, vectors_of
from tagframe.corpus.arrays import Arrays
from tagframe.corpus.canonical import hash_texts
from tagframe.corpus.documents import column_document, table_document
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.stored_profiles import digest_of
from tagframe.retrieval.cell_values import ValueIndex, is_lake
from tagframe.retrieval.lexical import WordIndex, database_terms, description_terms, table_terms
from tagframe.retrieval.overlay import Cut
from tagframe.retrieval.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tagframe.retrieval.index import RetrievalIndex

_PARTS = ("lexical", "descriptions", "database_words", "vocabulary", "values", "links")
"""The parts of an index that are saved beside vectors, families and keys."""

_MAX_CHANGED_SHARE = 0.5
"""If at least this share of the tables is new, the whole index is made again."""

_MAX_UNUSED_FACTOR = 2
"""Unused vectors are removed once fewer than one in so many belongs to a column."""

_DIGEST = 16

Numbers = npt.NDArray[np.int64]


def part_of(arrays: Arrays, name: str) -> dict[str, npt.NDArray[Any]]:
    """The arrays of one part."""
    return {key.partition(".")[2]: array for key, array in arrays.items() if key.startswith(f"{name}.")}


def arrays_of(index: RetrievalIndex, kind: str) -> dict[str, npt.NDArray[Any]]:
    """All parts of an index as arrays.

    Args:
        index: the index; missing parts of it are made.
        kind: a text for what else the arrays depend on: code and embedder.
    """
    parts = {name: getattr(index, name).arrays() for name in _PARTS}
    arrays_by_name = {f"{part}.{name}": array for part, arrays in parts.items() for name, array in arrays.items()}
    arrays_by_name |= {"widths": index.widths, "is_key": index.is_key, "pieces": _pieces(index), **_state(index, kind)}
    if index.vectors is not None:
        vectors = index.vectors
        of_tables, of_columns = _documents(index.readable, not index.one_name)
        documents = np.zeros(len(vectors.distinct), dtype=np.uint64)
        documents[vectors.column_row] = hash_texts(of_columns)
        arrays_by_name |= {
            "tables": vectors.tables,
            "distinct": vectors.distinct,
            "column_row": vectors.column_row.astype(np.int32),
            "table_documents": hash_texts(of_tables),
            "documents": documents,
        }
    return arrays_by_name


def refreshed(index: RetrievalIndex, before: Arrays, corpus: Corpus, kind: str) -> dict[str, Any] | None:
    """The arrays of an index, updated from an earlier state; None if that has another kind or most tables are new.

    Args:
        index: the new index, of which only the list of tables is made.
        before: the result of :func:`arrays_of` for the earlier state.
        corpus: the corpus, for the vectors of new texts.
        kind: as for :func:`arrays_of`.
    """
    state = _state(index, kind)
    if "kind" not in before or not np.array_equal(state["kind"], before["kind"]):
        return None  # another tagframe's, or another embedder's
    tables = Cut.between(_digests(before["states"]), _digests(state["states"]))
    if len(tables.new) > _MAX_CHANGED_SHARE * len(index.tables):
        return None
    # Keys of a database are inferred from all its tables.
    databases = Cut.between(_digests(before["databases"]), _digests(state["databases"]))
    changed = sorted({*np.flatnonzero(np.isin(index.database, databases.new)).tolist(), *tables.new.tolist()})
    profiles = index.named.of([index.named.own[position] for position in changed]).whole()
    named = dict(zip(changed, profiles, strict=True))
    new = _New(index, tables, [named[position] for position in tables.new.tolist()])
    columns = tables.of_parts(before["widths"], new.widths)
    widths = tables.into(before["widths"], new.widths)
    of_lake = is_lake(int(widths.sum()))
    if of_lake != is_lake(int(before["widths"].sum())):
        return None
    of_database: dict[int, list[TableProfile]] = {}
    for position, table in named.items():
        of_database.setdefault(int(index.database[position]), []).append(table)
    of_words = {
        "lexical": (tables, [table_terms(table, with_database=not index.one_name) for table in new.named]),
        "descriptions": (tables, list(map(description_terms, new.named))),
        "database_words": (databases, [database_terms(of_database[number]) for number in databases.new.tolist()]),
    }
    parts: dict[str, dict[str, Any]] = {
        **{name: WordIndex((), part_of(before, name)).laid_over(*over).arrays() for name, over in of_words.items()},
        "vocabulary": Vocabulary((), stored=part_of(before, "vocabulary"))
        .laid_over(new.named, tables, columns, widths)
        .arrays(),
        "values": ValueIndex((), part_of(before, "values"))
        .laid_over(new.own, tables, columns, of_lake=of_lake)
        .arrays(),
        "links": index.links.arrays(part_of(before, "links"), tables, changed),
    }
    arrays_by_name = {f"{part}.{name}": array for part, arrays in parts.items() for name, array in arrays.items()}
    arrays_by_name |= {"widths": widths, "pieces": _pieces(index), **state}
    arrays_by_name["is_key"] = columns.into(before["is_key"], np.zeros(len(columns.new), dtype=bool))
    keys = index.links.key_columns({index.links.schema(position) for position in changed})
    starts = np.cumsum(widths) - widths
    for position in changed:
        in_keys = [(position, column.name) in keys for column in index.tables[position].columns]
        arrays_by_name["is_key"][starts[position] : starts[position] + len(in_keys)] = in_keys
    return arrays_by_name | (_vectors(before, new, columns, corpus) if index.embedder is not None else {})


@dataclass(frozen=True)
class _New:
    """The tables that are new or have changed.

    Attributes:
        index: the index of all tables.
        cut: where these tables stand among all.
        named: these tables under readable names.
    """

    index: RetrievalIndex
    cut: Cut
    named: Sequence[TableProfile]

    @property
    def own(self) -> list[TableProfile]:
        """These tables under their own names."""
        return [self.index.tables[position] for position in self.cut.new.tolist()]

    @property
    def widths(self) -> Numbers:
        """How many columns each of these tables has."""
        return np.array([len(table.columns) for table in self.named], dtype=np.int64)


def _vectors(before: Arrays, new: _New, columns: Cut, corpus: Corpus) -> dict[str, Any]:
    """The vectors; only texts that are new to the index are encoded."""
    embedder = new.index.embedder
    assert embedder is not None
    of_tables, of_columns = _documents(new.named, not new.index.one_name)
    tables, own = (
        _rows_of(before[name], texts) for name, texts in zip(_DOCUMENTS, (of_tables, of_columns), strict=True)
    )
    apart = [text for text, row in zip(of_tables, tables.tolist(), strict=True) if row < 0]
    more = list(dict.fromkeys(text for text, row in zip(of_columns, own.tolist(), strict=True) if row < 0))
    encoded = vectors_of(corpus).encode_more(embedder, [*apart, *more])
    vectors = np.asarray(before["tables"][tables])
    vectors[tables < 0] = encoded[: len(apart)]
    position = {text: len(before["distinct"]) + number for number, text in enumerate(more)}
    rows = np.array(
        [position.get(text, row) for text, row in zip(of_columns, own.tolist(), strict=True)], dtype=np.int32
    )
    arrays = {
        "tables": new.cut.into(before["tables"], vectors),
        "table_documents": new.cut.into(before["table_documents"], hash_texts(of_tables)),
        "column_row": columns.into(before["column_row"], rows),
        "distinct": before["distinct"],
        "documents": before["documents"],
    }
    if more:
        arrays["distinct"] = np.concatenate([before["distinct"], encoded[len(apart) :]])
        arrays["documents"] = np.concatenate([before["documents"], hash_texts(more)])
    used = np.unique(arrays["column_row"])
    if _MAX_UNUSED_FACTOR * len(used) < len(arrays["distinct"]):
        arrays["column_row"] = np.searchsorted(used, arrays["column_row"]).astype(np.int32)
        arrays["distinct"], arrays["documents"] = arrays["distinct"][used], arrays["documents"][used]
    return arrays


_DOCUMENTS = ("table_documents", "documents")
"""Hashes of the texts behind ``tables`` and ``distinct``."""


def _rows_of(known: npt.NDArray[np.uint64], texts: Sequence[str]) -> Numbers:
    """The row of each text among known texts; -1 for an unknown one."""
    hashes, order = hash_texts(texts), np.argsort(known, kind="stable")
    rows = order[np.minimum(np.searchsorted(known, hashes, sorter=order), len(known) - 1)]
    return np.where(known[rows] == hashes, rows, -1)


def _documents(named: Sequence[TableProfile], with_database: bool) -> tuple[list[str], list[str]]:
    """The texts of tables and of their columns that are encoded."""
    of_columns = [column_document(table, column) for table in named for column in table.columns]
    return [table_document(table, with_database=with_database) for table in named], of_columns


def _pieces(index: RetrievalIndex) -> npt.NDArray[np.int64]:
    """As for :func:`~tagframe.retrieval.families.families_at`."""
    position = {table.id: number for number, table in enumerate(index.profiles)}
    pieces = [(number, position[id]) for number, one in enumerate(index.families) for id in one.parts]
    return np.array(pieces, dtype=np.int64).reshape(-1, 2)


def _state(index: RetrievalIndex, kind: str) -> dict[str, npt.NDArray[Any]]:
    """Hashes of everything that the arrays depend on.

    Returns:
        ``kind``, for all tables; ``states`` of the tables, and of their ``databases`` with their keys: shape (n, 16).
    """
    links = index.links.states()
    return {
        "kind": _rows([f"{kind}\n{index.one_name}"]),
        "states": _rows(
            [
                f"{one.table.id}\n{profile.name}\n{digest_of(one.table)}"
                for one, profile in zip(index.families, index.named.own, strict=True)
            ]
        ),
        "databases": _rows([f"{name}\n{links[name]}" for name in sorted(links)]),
    }


def _rows(texts: Sequence[str]) -> npt.NDArray[np.uint8]:
    digests = [hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).digest() for text in texts]
    return np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, _DIGEST)


def _digests(rows: npt.NDArray[np.uint8]) -> list[bytes]:
    return [row.tobytes() for row in rows]
