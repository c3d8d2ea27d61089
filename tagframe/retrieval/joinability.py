"""Joinability ω of two tables and the pair of columns that gives it, from profiles alone.

The form is that of JAR section 3.3; the schema similarity is our own. :class:`TextOmega` and :class:`CodeOmega` have
those of the paper's text (section 3.3) and of its authors' code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tagframe.corpus.documents import identifier_words, singular
from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.retrieval.problem import Floats
from tagframe.retrieval.segment import WordsApart

DEVIATIONS = {
    "JAR: section 3.3": (
        "ω is halved, to lie in [0, 1], and 0 where it is negative, and for columns of bytes and empty ones; each "
        "of the three segments has a third, because no weights are printed; instances are equal by meaning (7, 7.0 "
        'and "007"; texts in any case), not letter by letter; the Jaccard similarity of large columns is estimated; of '
        "a sample and without rows it is 0, and uniqueness 1 where no file says it; two slips of the authors' code are "
        "not followed"
    ),
}
"""What is not as printed, or not printed, by paper and place; ``docs/papers.md`` has the same."""

INSTANCE_SHARE = 0.5
"""The share of the instance similarity in ω; the rest is the schema similarity's (as in the authors' code)."""

SEMANTIC_SHARE = 0.5
"""The share of the embeddings' similarity in the schema similarity; the rest is the words' overlap."""

_ALL = np.uint64(np.iinfo(np.uint64).max)
_NUMERIC = frozenset({"integer", "real", "boolean"})


class Joinability:
    """ω between the tables of a corpus; each pair is computed when it is needed, and then kept.

    ω of two columns is (schema similarity + instance similarity) × the larger uniqueness of the two, scaled to [0, 1],
    and zero across types (numbers and the rest). The instance similarity is the Jaccard similarity of the columns'
    values, estimated from their sketches; it is 0 where a column has none.

    Args:
        tables: the profiles, in the order that indices refer to.
        vectors: unit vectors, shape (m, d), in memory or read when needed; None compares words only.
        rows: shape (columns,), the row in ``vectors`` of each column, table after table; None if ``vectors`` has that
            order.
        declared: whether keys that the source declares get 1 (JAR-G).
    """

    typed = True
    """Whether ω is zero between a column of numbers and another one."""

    def __init__(
        self,
        tables: Sequence[TableProfile],
        vectors: npt.NDArray[Any] | None = None,
        rows: npt.NDArray[np.intp] | None = None,
        *,
        declared: bool = False,
    ) -> None:
        self._tables = tables
        self._vectors = vectors
        self._declared = declared
        self._first = np.cumsum([0, *(len(table.columns) for table in tables)])
        self._rows = np.arange(self._first[-1]) if rows is None else rows
        self._facts: dict[int, _TableFacts] = {}
        self._best: dict[tuple[int, int], tuple[float, int, int]] = {}

    def columns(self, left: int, right: int) -> Floats:
        """ω_ij^kl of two tables: shape (columns of ``left``, columns of ``right``)."""
        a, b = self._of(left), self._of(right)
        relevance = INSTANCE_SHARE * _jaccard(a, b) + (1 - INSTANCE_SHARE) * self.schema(left, right)
        scores = relevance * np.maximum(a.uniqueness[:, None], b.uniqueness[None, :])
        if self.typed:
            scores[a.numeric[:, None] != b.numeric[None, :]] = 0.0
        scores[:, b.useless] = 0.0
        scores[a.useless, :] = 0.0
        if self._declared:
            self._give_declared(scores, left, right)
            self._give_declared(scores.T, right, left)
        return np.asarray(np.clip(scores, 0.0, 1.0))

    def schema(self, left: int, right: int) -> Floats:
        """The schema similarity of the columns of two tables: shape (columns of ``left``, columns of ``right``)."""
        schema = overlap(self._of(left).words, self._of(right).words)
        if self._vectors is not None:
            cosine = np.clip(self._columns_of(left) @ self._columns_of(right).T, 0.0, 1.0)
            schema = SEMANTIC_SHARE * cosine + (1 - SEMANTIC_SHARE) * schema
        return schema

    def best(self, left: int, right: int) -> tuple[float, int, int]:
        """ω of two tables, and the positions of its columns in ``left`` and in ``right``."""
        if left > right:
            value, k, other = self.best(right, left)
            return value, other, k
        known = self._best.get((left, right))
        if known is None:
            scores = self.columns(left, right)
            position = int(np.argmax(scores)) if scores.size else 0
            k, other = divmod(position, max(scores.shape[1], 1))
            known = (float(scores[k, other]) if scores.size else 0.0, k, other)
            self._best[left, right] = known
        return known

    def matrix(self, tables: Sequence[int]) -> Floats:
        """ω among some tables: shape (n, n), symmetric, zero diagonal."""
        n = len(tables)
        omega = np.zeros((n, n))
        for i in range(n):
            for j in range(i + 1, n):
                omega[i, j] = omega[j, i] = self.best(tables[i], tables[j])[0]
        return omega

    def _columns_of(self, table: int) -> Floats:
        assert self._vectors is not None
        rows = self._rows[self._first[table] : self._first[table + 1]]
        return np.asarray(self._vectors[rows], dtype=np.float64)

    def _of(self, table: int) -> _TableFacts:
        if table not in self._facts:
            self._facts[table] = _TableFacts(self._tables[table].columns)
        return self._facts[table]

    def _give_declared(self, scores: Floats, left: int, right: int) -> None:
        table, other = self._tables[left], self._tables[right]
        if table.database != other.database:
            return
        position = {column.name: column.position for column in table.columns}
        other_position = {column.name: column.position for column in other.columns}
        for key in table.foreign_keys:
            if key.other_table.casefold() == other.name.casefold():
                for name, other_name in zip(key.columns, key.other_columns, strict=False):
                    if name in position and other_name in other_position:
                        scores[position[name], other_position[other_name]] = 1.0


class _TableFacts:
    """The columns of one table as arrays, for ω."""

    def __init__(self, columns: Sequence[ColumnProfile]) -> None:
        # If only the schema is known, there is no evidence against a column being unique.
        known = [column.uniqueness for column in columns]
        self.uniqueness = np.array([1.0 if value is None else value for value in known])
        self.numeric = np.array([column.family in _NUMERIC for column in columns], dtype=bool)
        self.useless = np.array([column.family in ("blob", "empty") for column in columns], dtype=bool)
        self.words = [frozenset(singular(word) for word in identifier_words(column.name)) for column in columns]
        none = np.zeros(0, np.uint64)
        # A sample does not show which values a column lacks, but half of ω depends on that.
        sketches = [None if column.sketch is None or column.sketch.sampled else column.sketch for column in columns]
        self.hashes = [none if sketch is None else sketch.hashes for sketch in sketches]
        cut = [sketch is not None and not sketch.complete and len(sketch.hashes) > 0 for sketch in sketches]
        # An incomplete sketch has all hashes up to its largest one, and none above.
        self.limit = [hashes[-1] if is_cut else _ALL for hashes, is_cut in zip(self.hashes, cut, strict=True)]
        values = np.concatenate([none, *self.hashes])
        owner = np.repeat(np.arange(len(columns)), [len(part) for part in self.hashes])
        order = np.argsort(values, kind="stable")
        self.values, self.owner = values[order], owner[order]


def overlap(left: Sequence[frozenset[str]], right: Sequence[frozenset[str]]) -> Floats:
    """Jaccard similarity of all pairs of sets of words: shape (len(left), len(right))."""
    position = {word: number for number, word in enumerate(frozenset().union(*left))}
    has = np.zeros((len(left), len(position)))
    for row, words in zip(has, left, strict=True):
        row[[position[word] for word in words]] = 1.0
    # Words that are only on the right side are in no intersection.
    has_right = np.zeros((len(right), len(position)))
    for row, words in zip(has_right, right, strict=True):
        row[[position[word] for word in words if word in position]] = 1.0
    both = has @ has_right.T
    union = np.add.outer(np.array([len(words) for words in left]), [len(words) for words in right]) - both
    shared: Floats = np.divide(both, union, out=np.zeros_like(both), where=union > 0)
    return shared


def _jaccard(a: _TableFacts, b: _TableFacts) -> Floats:
    """Jaccard similarity of the values of all column pairs: shape (columns of a, columns of b).

    It is exact for complete sketches. Otherwise only hashes below the smaller limit of the two columns are used, where
    both sketches are complete: an unbiased sample of the union (bottom-k sketches, Cohen and Kaplan, PODC 2007).
    """
    shape = (len(a.hashes), len(b.hashes))
    start = np.searchsorted(b.values, a.values, side="left")
    count = np.searchsorted(b.values, a.values, side="right") - start
    mine = np.repeat(np.arange(len(a.values)), count)
    offset = np.arange(len(mine)) - np.repeat(np.cumsum(count) - count, count)
    theirs = start[mine] + offset
    left, right = a.owner[mine], b.owner[theirs]
    limit = np.minimum.outer(np.array(a.limit, np.uint64), np.array(b.limit, np.uint64)).reshape(shape)
    seen = a.values[mine] <= limit[left, right]
    both = np.bincount((left * shape[1] + right)[seen], minlength=shape[0] * shape[1]).reshape(shape).astype(float)
    union = _below(a.hashes, limit) + _below(b.hashes, limit.T).T - both
    shared: Floats = np.divide(both, union, out=np.zeros(shape), where=union > 0)
    return shared


def _below(hashes: Sequence[npt.NDArray[np.uint64]], limit: npt.NDArray[np.uint64]) -> Floats:
    """How many hashes of each column are within each limit: shape of ``limit``, a row for each column."""
    rows = [np.searchsorted(known, most, side="right") for known, most in zip(hashes, limit, strict=True)]
    return np.array(rows, dtype=np.float64).reshape(limit.shape)


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
