"""The indexes of corpora that were asked last, each made once."""

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
    """The position of an index that is made by the first thread that asks for it, while others wait."""

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
    """Tables that a corpus is known by. Their hash is that of so many tables: it is made once for the same tuple."""

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
    """The index of a corpus, made once; corpora that are equal, such as those narrowed at each call, share one.

    Args:
        corpus: what to search.
        embedder: None leaves lexical relevance alone.
        anchor: id of a table that stands for itself, although it may be a piece of a family.
    """
    apart = anchor
    if under(corpus) is None and anchor is not None:
        # Where the table is of no family the index is everybody's.
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
    """Let go of the indexes that this process holds; the next question of a corpus opens its own or makes it."""
    with _lock:
        _slots.clear()
