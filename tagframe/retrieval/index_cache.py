"""The indexes of the corpora that were used last; each is made once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from tagframe.corpus import Corpus, under
from tagframe.corpus.once import once
from tagframe.corpus.profile import TableProfile
from tagframe.retrieval.index import RetrievalIndex

if TYPE_CHECKING:
    from tagframe.embed import Embedder

_REMEMBERED = 8


class _Slot:
    """The place of one index: the first thread that asks for it makes it, and others wait."""

    def __init__(self, corpus: Corpus, embedder: Embedder | None, apart: str | None) -> None:
        self._corpus, self._embedder, self._apart = corpus, embedder, apart

    @once
    def index(self) -> RetrievalIndex:
        beneath = under(self._corpus)
        if beneath is not None and under(beneath) is None and self._apart is not None:
            known = index_of(beneath, self._embedder)
            if not known.is_piece(self._apart):
                return RetrievalIndex(self._corpus, self._embedder, over=(known, self._apart))
        return RetrievalIndex(self._corpus, self._embedder, apart=self._apart)


class _Tables:
    """The tables that identify a corpus. There may be many, so their hash is computed once for the same tuple."""

    def __init__(self, tables: tuple[TableProfile, ...]) -> None:
        self.tables = tables
        self._hash: int = next((known._hash for _, known, _ in _slots if known.tables is tables), None) or hash(tables)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Tables) and (self.tables is other.tables or self.tables == other.tables)


_slots: OrderedDict[tuple[int, _Tables, str | None], _Slot] = OrderedDict()
_lock = threading.Lock()


def index_of(corpus: Corpus, embedder: Embedder | None, anchor: str | None = None) -> RetrievalIndex:
    """The index of a corpus, made once. Equal corpora share one, such as a corpus that is narrowed anew at each call.

    Args:
        corpus: the corpus to search.
        embedder: None leaves lexical relevance only.
        anchor: id of a table that is a candidate of its own, although it may be a piece of a family.
    """
    apart = anchor
    if under(corpus) is None and anchor is not None:
        # If the table belongs to no family, the index is the shared one.
        may_be = any(letter.isdecimal() for letter in anchor)
        apart = anchor if may_be and index_of(corpus, embedder).is_piece(anchor) else None
    with _lock:
        # The slot holds the embedder, so that its id stays.
        key = (id(embedder), _Tables(corpus.profiles), apart)
        slot = _slots.setdefault(key, _Slot(corpus, embedder, apart))
        _slots.move_to_end(key)
        while len(_slots) > _REMEMBERED:
            _slots.popitem(last=False)
    return slot.index


def forget() -> None:
    """Release the indexes in this process's memory; the next question opens or makes the index that it needs."""
    with _lock:
        _slots.clear()
