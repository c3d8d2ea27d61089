"""ω of JAR by name: as the paper's text defines it (section 3.3), and as its authors' code computes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from tagframe.corpus.documents import identifier_words
from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.retrieval.joinability import SEMANTIC_SHARE, Joinability
from tagframe.retrieval.problem import Floats
from tagframe.retrieval.segment import WordsApart

Omega = Literal["text", "code"]
"""Whose ω: that of the paper's text, or that of its authors' code."""

Encode = Callable[[Sequence[str]], Floats]
Named = Sequence[TableProfile] | WordsApart


class _PaperOmega(Joinability):
    """What both need: the tables under the names that are encoded, and the encoder."""

    def __init__(
        self, tables: Sequence[TableProfile], named: Named, encode: Encode | None, *, declared: bool = False
    ) -> None:
        super().__init__(tables, declared=declared)
        self._named, self._encode = named, encode
        self._segments: dict[int, Floats] = {}
        self._texts: dict[int, tuple[Floats | None, list[frozenset[str]]]] = {}


class TextOmega(_PaperOmega):
    """ω as the text of section 3.3 has it: ω = (e + j) · max(u, u'), scaled to [0, 1].

    e, the schema similarity, is the weighted sum of the cosines of three segments: the header, the name of the table,
    and the other columns of the table. The paper prints no weights; here each is 1/3. j is the Jaccard similarity of
    the values, u the uniqueness. The paper does not scale ω. Here it is halved, because a declared key has 1 (JAR-G,
    section 4.1), and because iterative JAR (section 3) gives its range as [0, 1]. Columns of any types may join.

    Args:
        tables: the profiles, in the order that indices refer to.
        named: the same tables under the names that are encoded.
        encode: unit vectors of texts, shape (n, d); None compares the words of the headers only.
        declared: whether keys that the source declares get 1 (JAR-G).
    """

    typed = False

    def schema(self, left: int, right: int) -> Floats:
        """e of the columns of two tables."""
        if self._encode is None:
            return super().schema(left, right)
        return np.asarray(np.einsum("skd,sld->kl", self._of_table(left), self._of_table(right)) / 3)

    def _of_table(self, table: int) -> Floats:
        """The vectors of the three segments of each column: shape (3, columns, d)."""
        assert self._encode is not None
        if table not in self._segments:
            named = self._named[table]
            headers = [_words(column.name) for column in named.columns]
            others = [", ".join([*headers[:at], *headers[at + 1 :]]) for at in range(len(headers))]
            vectors = self._encode([*headers, *others, _words(named.name)])
            count = len(headers)
            context = vectors[count : 2 * count] if count > 1 else np.zeros_like(vectors[:count])
            whole = np.broadcast_to(vectors[-1], (count, vectors.shape[1]))
            self._segments[table] = np.stack([vectors[:count], whole, context])
        return self._segments[table]


class CodeOmega(_PaperOmega):
    """ω as the authors' code computes it: (.5 j + .5 (.5 cosine + .5 word overlap)) · max(u, u'), zero across types.

    Cosine and overlap compare the texts "database table column". The overlap is the number of common words over the
    smaller number of words. Two slips of that code are not followed: its j divides by the values of one side only, and
    its types are those of the neighbouring columns.

    Args:
        tables, named, encode, declared: as for :class:`TextOmega`; without ``encode``, the overlap is all.
    """

    def schema(self, left: int, right: int) -> Floats:
        """The schema similarity of the columns of two tables."""
        (vectors, words), (others, other_words) = self._of_table(left), self._of_table(right)
        overlap = np.array([[len(one & two) / max(min(len(one), len(two)), 1) for two in other_words] for one in words])
        overlap = overlap.reshape(len(words), len(other_words))
        if vectors is None or others is None:
            return overlap
        return np.asarray(SEMANTIC_SHARE * (vectors @ others.T) + (1 - SEMANTIC_SHARE) * overlap)

    def _of_table(self, table: int) -> tuple[Floats | None, list[frozenset[str]]]:
        if table not in self._texts:
            named = self._named[table]
            texts = [_serialised(named, column) for column in named.columns]
            vectors = None if self._encode is None else self._encode(texts)
            self._texts[table] = vectors, [frozenset(text.split()) for text in texts]
        return self._texts[table]


def _serialised(table: TableProfile, column: ColumnProfile) -> str:
    return f"{table.database} {table.name} {column.name}".replace("_", " ").replace(".", "").lower()


def _words(name: str) -> str:
    return " ".join(identifier_words(name)) or name
