"""What retrieval knows of a corpus before any question: lexical index, vectors, joinability, links."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from tagframe.corpus.facts import FactStore
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.stored_profiles import columns_at_hand
from tagframe.embed import TextVectors, encode_words, vocabulary
from tagframe.retrieval.families import families
from tagframe.retrieval.joinability import Joinability
from tagframe.retrieval.lexical import LexicalIndex, WordIndex, database_index, said_terms
from tagframe.retrieval.links import Links
from tagframe.retrieval.once import once
from tagframe.retrieval.problem import Floats
from tagframe.retrieval.question import Question
from tagframe.retrieval.segment import Segmenter, with_words_apart
from tagframe.retrieval.values import ValueIndex
from tagframe.retrieval.vocabulary import Vocabulary
from tagframe.retrieval.words import terms

if TYPE_CHECKING:
    from tagframe.corpus import CorpusVectors
    from tagframe.embed import Embedder

_LAKE = 20_000
"""Columns beyond which all is made at once, while they are at hand."""
_REMEMBERED = 8
_REMEMBERED_QUESTIONS = 256


class Searchable(Protocol):
    """What of a corpus retrieval looks at; :class:`tagframe.Corpus` is one."""

    @property
    def profiles(self) -> tuple[TableProfile, ...]:
        """The profile of every table, sorted by id."""

    @property
    def facts(self) -> FactStore:
        """Where is kept what is worked out of the tables."""

    def vectors(
        self, embedder: Embedder, *, hide_database: bool = False, named: Sequence[TableProfile] | None = None
    ) -> CorpusVectors:
        """The vectors of all tables and columns, under other names where given."""


@dataclass(frozen=True, eq=False)
class Relevance:
    """How near all tables of a corpus are to one question; n tables, w words.

    Attributes:
        table: shape (n,), cosine of the question and each table.
        column: shape (n,), of the question and each table's best column.
        words: shape (w, n), of each word in its question and each table's best column.
        attributes: shape (w, n), the same over columns that are no keys.
        labels: the words.
    """

    table: Floats
    column: Floats
    words: Floats
    attributes: Floats
    labels: tuple[str, ...]


class RetrievalIndex:
    """The tables of a corpus, ready for questions. What costs is made at first use and kept.

    Args:
        corpus: what to search.
        embedder: None leaves lexical relevance alone.
        declared_keys: whether keys that the source declares are taken: as links, and with an ω of 1 (JAR-G).
        described: the same tables in the same order under readable names, where there are such: their words are
            searched instead.
        apart: id of a table that stands for itself, although it may be a piece of a family.

    Attributes:
        families: the candidates: tables, and those that are one table in pieces as one.
        tables: the profile of each candidate; of a family that of its first piece.
    """

    def __init__(
        self,
        corpus: Searchable,
        embedder: Embedder | None,
        *,
        declared_keys: bool = True,
        described: Searchable | None = None,
        apart: str | None = None,
    ) -> None:
        with columns_at_hand():
            self._prepare(corpus, embedder, declared_keys, described, apart)

    def _prepare(
        self,
        corpus: Searchable,
        embedder: Embedder | None,
        declared_keys: bool,
        described: Searchable | None,
        apart: str | None,
    ) -> None:
        self._facts = corpus.facts
        self.families = families(corpus.profiles, corpus.facts, apart=apart)
        self.tables = tuple(family.table for family in self.families)
        self.embedder = embedder
        self.declared_keys = declared_keys
        readable = corpus if described is None else described
        shown = readable.profiles
        if len(self.tables) < len(corpus.profiles):
            place = {table.id: position for position, table in enumerate(corpus.profiles)}
            shown = tuple(
                shown[place[one.table.id]].called(one.name) if one.parts else shown[place[one.table.id]]
                for one in self.families
            )
        self.named = with_words_apart(shown, Segmenter(vocabulary(embedder)))
        numbers = {name: number for number, name in enumerate(sorted({table.database for table in self.tables}))}
        self.database = np.array([numbers[table.database] for table in self.tables], dtype=np.intp)
        # The name of the only database sets no table apart from another.
        self.one_database = len(numbers) == 1
        self.vectors = (
            None if embedder is None else readable.vectors(embedder, hide_database=self.one_database, named=self.named)
        )
        widths = [len(table.columns) for table in self.tables]
        self._starts = np.cumsum([0, *widths])
        self._filled = np.flatnonzero(widths)
        self._questions: OrderedDict[str, TextVectors] = OrderedDict()
        self._questions_lock = threading.Lock()
        if self._starts[-1] > _LAKE:
            _ = self.lexical, self.said, self.database_words, self.vocabulary, self.values, self.is_key

    def place(self, id: str) -> int:
        """The position of a candidate among ``tables``, by its id."""
        return self._places[id]

    @once
    def _places(self) -> dict[str, int]:
        return {table.id: position for position, table in enumerate(self.tables)}

    @once
    def lexical(self) -> LexicalIndex:
        """BM25 over the tables."""
        return LexicalIndex(self.named, with_database=not self.one_database)

    @once
    def said(self) -> WordIndex:
        """BM25 over the descriptions of the tables and their columns."""
        return WordIndex([said_terms(table) for table in self.named])

    @once
    def database_words(self) -> WordIndex:
        """BM25 over whole databases."""
        return database_index(self.named, self.database.tolist())

    @once
    def _by_database(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The tables, database by database, and where each database begins."""
        order = np.argsort(self.database, kind="stable")
        return order, np.searchsorted(self.database[order], np.arange(self.database.max(initial=-1) + 1))

    def by_database(self, values: Floats) -> Floats:
        """The largest value of the tables of each table's database: shape (…, n)."""
        order, first = self._by_database
        return np.asarray(np.maximum.reduceat(values[..., order], first, axis=-1)[..., self.database])

    @once
    def vocabulary(self) -> Vocabulary:
        """The words of names."""
        return Vocabulary(self.named)

    @once
    def values(self) -> ValueIndex:
        """The values in cells; of a lake they are kept, since it takes seconds to gather them."""
        if self._starts[-1] <= _LAKE:
            return ValueIndex(self.tables)
        state = self._facts.state(self.tables, "values")
        kept = self._facts.get("values", "corpus", state, partial(ValueIndex, self.tables))
        if kept is not None:
            return kept
        made = ValueIndex(self.tables)
        self._facts.put("values", "corpus", state, made.to_text())
        return made

    @once
    def joinability(self) -> Joinability:
        """ω of JAR section 3.3."""
        if self.vectors is None:
            return Joinability(self.tables, declared=self.declared_keys)
        return Joinability(self.tables, self.vectors.distinct, self.vectors.column_row, declared=self.declared_keys)

    @once
    def links(self) -> Links:
        """Key pairs."""
        return Links(self.tables, declared=self.declared_keys, facts=self._facts)

    @once
    def is_key(self) -> npt.NDArray[np.bool_]:
        """Whether each column of the corpus is part of a key pair that links tables: shape (columns,)."""
        keys = self.links.key_columns()
        return np.array(
            [(position, column.name) in keys for position, table in enumerate(self.tables) for column in table.columns],
            dtype=bool,
        )

    @once
    def _column_terms(self) -> list[frozenset[str]]:
        return [
            frozenset(terms(f"{table.name} {column.name} {column.description}"))
            for table in self.named
            for column in table.columns
        ]

    def by_table(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The largest value of each table's columns: (…, columns) to (…, n); 0 for a table of no columns."""
        found = np.zeros((*values.shape[:-1], len(self.tables)), dtype=values.dtype)
        if len(self._filled):
            found[..., self._filled] = np.maximum.reduceat(values, self._starts[self._filled], axis=-1)
        return found

    def encode(self, texts: Sequence[str]) -> Floats:
        """Unit vectors of the texts: shape (len(texts), d)."""
        assert self.embedder is not None
        return np.asarray(self.embedder.encode(texts), dtype=np.float64)

    def dense(self, question: str) -> Floats:
        """Cosine of the question and every table: shape (n,); zeros without an embedder."""
        if self.vectors is None:
            return np.zeros(len(self.tables))
        return np.asarray(self.vectors.tables @ self.encode([question])[0], dtype=np.float64)

    def similarities(self, texts: Sequence[str]) -> Floats:
        """Cosine of each text and every table, or without an embedder BM25 over that of the best table.

        Returns:
            Shape (len(texts), n).
        """
        if self.vectors is not None:
            return np.asarray(self.encode(texts) @ self.vectors.tables.T, dtype=np.float64)
        scores = np.array([self.lexical.scores(terms(text)) for text in texts]).reshape(len(texts), len(self.tables))
        return np.asarray(scores / np.maximum(scores.max(axis=1, initial=0.0), 1e-12)[:, None])

    def relevance(self, question: Question) -> Relevance:
        """Dense relevance of the question, of its words, and of sub-queries that say more, to every table."""
        count = len(self.tables)
        if self.vectors is None:
            return Relevance(np.zeros(count), np.zeros(count), np.zeros((0, count)), np.zeros((0, count)), ())
        known = self._question(question)
        each, labels = known.words, tuple(word.text for word in question.content)
        if question.told:
            each = np.concatenate([each, self.encode([plain(subquery) for subquery in question.told])])
            labels = (*labels, *question.told)
        # Of each distinct text once, and as narrow as the vectors are: a lake has a hundred thousand columns.
        near = np.concatenate([known.text[None, :], each]).astype(np.float32) @ self.vectors.distinct.T
        near = np.take(near, self.vectors.column_row, axis=1)  # row after row, as the maxima are taken
        best = self.by_table(near).astype(np.float64)
        near[:, self.is_key] = 0.0
        return Relevance(
            (self.vectors.tables @ known.text.astype(np.float32)).astype(np.float64),
            best[0],
            best[1:],
            self.by_table(near[1:]).astype(np.float64),
            labels,
        )

    def best_fit(self, question: Question, table: int) -> tuple[str, int, float] | None:
        """The word of the question and the column of a table that are nearest, and their cosine."""
        part = slice(self._starts[table], self._starts[table + 1])
        if self.vectors is None or part.start == part.stop or not question.content:
            return None
        near = self._question(question).words @ self._columns_of(part).T
        word, column = divmod(int(near.argmax()), near.shape[1])
        return question.content[word].text, column, float(near[word, column])

    def _columns_of(self, part: slice) -> npt.NDArray[np.float32]:
        """The vectors of some columns: shape (columns, d)."""
        assert self.vectors is not None
        return np.asarray(self.vectors.distinct[self.vectors.column_row[part]])

    def _question(self, question: Question) -> TextVectors:
        assert self.embedder is not None
        with self._questions_lock:
            known = self._questions.get(question.text)
        if known is None:
            spans = [(word.start, word.end) for word in question.content]
            known = encode_words(self.embedder, question.text, spans)
            with self._questions_lock:
                self._questions[question.text] = known
                while len(self._questions) > _REMEMBERED_QUESTIONS:
                    self._questions.popitem(last=False)
        return known

    def fine(self, subqueries: Sequence[str], tables: Sequence[int]) -> tuple[Floats, list[Floats]]:
        """Fine relevance F, and r_qik behind it: cosines, or without an embedder the share of a sub-query's words.

        Returns:
            F of shape (q, len(tables)): each sub-query's best column of each table, 0 for a table of no columns; and
            for each table r_qik, shape (q, columns of the table).
        """
        rows = [slice(self._starts[table], self._starts[table + 1]) for table in tables]
        if self.vectors is not None and subqueries:
            queries = self.encode([plain(subquery) for subquery in subqueries])
            each = [queries @ self._columns_of(part).T for part in rows]
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


class _Slot:
    """The place of an index that is made by the first thread that asks for it, while others wait."""

    def __init__(self, corpus: Searchable, embedder: Embedder | None, apart: str | None) -> None:
        self._corpus, self._embedder, self._apart = corpus, embedder, apart

    @once
    def index(self) -> RetrievalIndex:
        return RetrievalIndex(self._corpus, self._embedder, apart=self._apart)


_slots: OrderedDict[tuple[object, ...], _Slot] = OrderedDict()
_lock = threading.Lock()


def index_of(corpus: Searchable, embedder: Embedder | None, apart: str | None = None) -> RetrievalIndex:
    """The index of a corpus, made once; corpora that are equal, such as those narrowed at each call, share one.

    Args:
        corpus: what to search.
        embedder: None leaves lexical relevance alone.
        apart: as for :class:`RetrievalIndex`.
    """
    # Where the table is of no family the index is everybody's. The slot holds the embedder, so that its id stays.
    apart = apart if apart is not None and any(letter.isdecimal() for letter in apart) else None
    key = (id(embedder), corpus.profiles, apart)
    with _lock:
        slot = _slots.setdefault(key, _Slot(corpus, embedder, apart))
        _slots.move_to_end(key)
        while len(_slots) > _REMEMBERED:
            _slots.popitem(last=False)
    return slot.index
