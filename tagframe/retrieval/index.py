"""The index of a corpus, made before any question: lexical index, vectors, joinability and links."""

from __future__ import annotations

import functools
import hashlib
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tagframe.corpus import Corpus, CorpusVectors, computed_of, corpus_vectors, vectors_of
from tagframe.corpus.once import once
from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.corpus.stored_profiles import ARRAYS, COLUMNS, Arrays, packed, unpacked
from tagframe.embed import ANONYMOUS, TextVectors, encode_words, encoded, vocabulary
from tagframe.keys.column_names import STRONG_KEY_WORDS
from tagframe.keys.column_names import words as words_of
from tagframe.keys.database_keys import code_of_keys
from tagframe.retrieval.cell_values import ValueIndex
from tagframe.retrieval.families import LEAST, families, families_at, pieces_of
from tagframe.retrieval.joinability import CodeOmega, Joinability, Omega, TextOmega
from tagframe.retrieval.lexical import (
    LexicalIndex,
    WordIndex,
    database_index,
    description_terms,
)
from tagframe.retrieval.links import Links
from tagframe.retrieval.mentioned_names import Names
from tagframe.retrieval.problem import LINKED, Floats
from tagframe.retrieval.question import USUAL_NAMES, Question
from tagframe.retrieval.segment import WordsApart
from tagframe.retrieval.vocabulary import Vocabulary
from tagframe.retrieval.words import terms

if TYPE_CHECKING:
    from tagframe.embed import Embedder


_NUMBERS = frozenset({"integer", "real"})
LAKE = 20_000
"""An index of more columns is made all at once, while the columns are in memory, and stored in a file."""
_NAME = "the index"
_PARTS = ("lexical", "descriptions", "database_words", "vocabulary", "values", "links")
"""The parts that are saved beside vectors, families and keys."""
_REMEMBERED_QUESTIONS = 256


@dataclass(frozen=True, eq=False)
class Relevance:
    """How near all tables of a corpus are to one question; n tables, w words.

    Attributes:
        table: shape (n,), cosine of the question and each table.
        column: shape (n,), cosine of the question and each table's best column.
        words: shape (w, n), cosine of each word of the question and each table's best column.
        attributes: shape (w, n), the same over columns that are not keys.
        labels: the words.
    """

    table: Floats
    column: Floats
    words: Floats
    attributes: Floats
    labels: tuple[str, ...]


class RetrievalIndex:
    """The tables of a corpus, ready for questions. Expensive parts are made at first use and stay.

    The index of a lake (a large corpus) is made at once, and stored in a file beside its catalogue. The
    next process reads that file, and neither the columns of tables that no question is about nor the texts behind the
    vectors.

    Args:
        corpus: the corpus to search.
        embedder: None leaves lexical relevance only.
        declared_keys: whether keys that the source declares are used: as links, and with an ω of 1 (JAR-G).
        described: the same tables in the same order under readable names, if there are any; then their words are
            searched.
        apart: id of a table that is a candidate of its own, although it may be a piece of a family.

    Attributes:
        families: the candidates; the pieces of one table are one candidate.
        profiles: the profiles of all tables of the corpus.
        tables: the profile of each candidate; for a family, the profile of its first piece.
        named: the same profiles under names that are split into words.
        schemas: for each candidate, one name for the databases of a folder that are one with its own.
        database: their number for each candidate.
        one_database: whether all tables are in one schema.
        one_name: whether all tables are in one database; then its name does not distinguish them.
        vectors: the vectors of the tables and their columns; None without an embedder.
    """

    def __init__(
        self,
        corpus: Corpus,
        embedder: Embedder | None,
        *,
        declared_keys: bool = True,
        described: Corpus | None = None,
        apart: str | None = None,
    ) -> None:
        self._facts, self._corpus = computed_of(corpus), corpus
        self.embedder, self.declared_keys = embedder, declared_keys
        self._questions: OrderedDict[str, TextVectors] = OrderedDict()
        self._questions_lock = threading.Lock()
        self._stored: Arrays | None = None
        self._readable: tuple[TableProfile, ...] | None = None
        self._starts = np.zeros(1, dtype=np.int64)
        kind = state = ""
        is_whole = described is None and apart is None and self._facts.keeps_arrays(corpus.profiles)
        if is_whole and not (embedder is not None and embedder.name.startswith(ANONYMOUS)):
            name = "" if embedder is None else embedder.name
            kind = self._facts.state((), code_of_keys(), code_of_index(), name, str(declared_keys))
            places = {table.place for table in corpus.profiles}
            state = self._facts.state(corpus.profiles, kind, "apart" if places == {""} else "together")
            self._stored = self._facts.get(ARRAYS, _NAME, state, unpacked)
        with COLUMNS.unbounded():
            self._know_tables(corpus, corpus if described is None else described, apart)
            self._prepare(corpus if described is None else described)
            if self._stored is None and self._starts[-1] > LAKE:
                arrays = self._arrays()
                self._readable = None  # everything that needs them has been made
                if state:
                    self._facts.put(ARRAYS, _NAME, state, packed(arrays))

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All parts, to be saved; missing ones are made."""
        parts = {name: getattr(self, name).arrays() for name in _PARTS}
        arrays = {f"{part}.{name}": array for part, of_part in parts.items() for name, array in of_part.items()}
        arrays |= {"widths": self.widths, "is_key": self.is_key, "pieces": pieces_of(self.families, self.profiles)}
        if self.vectors is not None:
            arrays |= {"tables": self.vectors.tables, "distinct": self.vectors.distinct}
            arrays["column_row"] = self.vectors.column_row.astype(np.int32)
        return arrays

    def _know_tables(self, corpus: Corpus, readable: Corpus, apart: str | None) -> None:
        stored, profiles = self._stored, corpus.profiles
        self.profiles = profiles
        if stored is None:
            self.families = families(profiles, self._facts, apart=apart)
        else:
            self.families = families_at(profiles, stored["pieces"])
        self.tables = tuple(family.table for family in self.families)
        named = readable.profiles
        if len(self.tables) < len(profiles):
            position = {table.id: number for number, table in enumerate(profiles)}
            named = tuple(
                named[position[one.table.id]].called(one.name) if one.parts else named[position[one.table.id]]
                for one in self.families
            )
        # Of many tables of one name in a folder, a question means one by the name of its subfolder, file or schema.
        often = Counter((table.place, table.name.casefold()) for table in self.tables if table.place)
        named = tuple(
            one.called(table.database)
            if not family.parts and often[table.place, table.name.casefold()] >= LEAST
            else one
            for one, table, family in zip(named, self.tables, self.families, strict=True)
        )
        self.named = WordsApart(named, partial(vocabulary, self.embedder))
        self.schemas = [self.links.schema(position) for position in range(len(self.tables))]
        numbers = {name: number for number, name in enumerate(sorted({*self.schemas}))}
        self.database = np.array([numbers[name] for name in self.schemas], dtype=np.intp)
        self.one_database = len(numbers) == 1
        self.one_name = len({table.database for table in self.tables}) == 1

    def _prepare(self, readable: Corpus) -> None:
        stored = self._stored
        if stored is None:
            self._readable = self.named.whole()
        widths = np.array([len(table.columns) for table in self.tables]) if stored is None else stored["widths"]
        self._starts = np.cumsum([0, *widths.tolist()])
        self._filled = np.flatnonzero(widths)
        self.vectors: CorpusVectors | None = None
        if self.embedder is not None and stored is None:
            self.vectors = self._read_vectors(readable)
        elif self.embedder is not None and stored is not None:
            owner = np.repeat(np.arange(len(widths)), widths)
            self.vectors = CorpusVectors(
                stored["tables"], stored["distinct"], stored["column_row"].astype(np.intp), owner
            )
            vectors_of(readable).promise(partial(self._read_vectors, readable))

    def is_piece(self, id: str) -> bool:
        """Whether a table is one of the pieces of a family."""
        return id in self._pieces

    @once
    def _pieces(self) -> frozenset[str]:
        return frozenset(id for family in self.families for id in family.parts)

    def _read_vectors(self, corpus: Corpus) -> CorpusVectors:
        assert self.embedder is not None
        return corpus_vectors(self.readable, self.embedder, vectors_of(corpus), with_database=not self.one_name)

    @property
    def readable(self) -> tuple[TableProfile, ...]:
        """All tables under readable names; not stored, as they are rarely needed once the index is made."""
        return self.named.whole() if self._readable is None else self._readable

    @property
    def widths(self) -> npt.NDArray[np.int64]:
        """How many columns each table has: shape (n,)."""
        return np.diff(self._starts)

    def _stored_part(self, name: str) -> dict[str, npt.NDArray[Any]] | None:
        if self._stored is None:
            return None
        return {key.partition(".")[2]: array for key, array in self._stored.items() if key.startswith(f"{name}.")}

    def position(self, id: str) -> int:
        """The position of a candidate among ``tables``, by its id."""
        return self._positions[id]

    @once
    def _positions(self) -> dict[str, int]:
        return {table.id: position for position, table in enumerate(self.tables)}

    def _word_index(self, name: str, make: Callable[[Sequence[TableProfile]], WordIndex]) -> WordIndex:
        stored = self._stored_part(name)
        return make(self.readable) if stored is None else WordIndex((), stored)

    @once
    def lexical(self) -> WordIndex:
        """BM25 over the tables."""
        return self._word_index("lexical", partial(LexicalIndex, with_database=not self.one_name))

    @once
    def descriptions(self) -> WordIndex:
        """BM25 over the descriptions of tables and columns."""
        return self._word_index("descriptions", lambda tables: WordIndex(list(map(description_terms, tables))))

    @once
    def database_words(self) -> WordIndex:
        """BM25 over whole databases."""
        return self._word_index("database_words", partial(database_index, database=self.database.tolist()))

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
        stored = self._stored_part("vocabulary")
        return Vocabulary(self.readable) if stored is None else Vocabulary((), stored=stored)

    @once
    def values(self) -> ValueIndex:
        """The values in cells."""
        return ValueIndex(self.tables, self._stored_part("values"), self._corpus, self.named.knows)

    def joinability_in(self, omega: Omega | None, declared: bool | None) -> Joinability:
        """ω.

        Args:
            omega: of the paper's text or of its authors' code; None for ours.
            declared: whether declared keys get 1; None as in this index.
        """
        form = omega, self.declared_keys if declared is None else declared
        if form not in self._joins:
            self._joins.setdefault(form, self._joinability(*form))
        return self._joins[form]

    def _joinability(self, omega: Omega | None, declared: bool) -> Joinability:
        if omega is not None:
            encode = None if self.vectors is None else self.encode
            made = TextOmega if omega == "text" else CodeOmega
            return made(self.tables, self.named, encode, declared=declared)
        rows = () if self.vectors is None else (self.vectors.distinct, self.vectors.column_row)
        return Joinability(self.tables, *rows, declared=declared)

    @once
    def _joins(self) -> dict[tuple[Omega | None, bool], Joinability]:
        return {}

    def links_in(self, declared: bool | None) -> Links:
        """Key pairs, with or without declared keys; None as in this index."""
        return self.links if declared in (None, self.declared_keys) else self._other_links

    @once
    def _other_links(self) -> Links:
        return Links(self.tables, declared=not self.declared_keys, facts=self._facts)

    @once
    def links(self) -> Links:
        """Key pairs."""
        stored = self._stored_part("links")
        return Links(self.tables, declared=self.declared_keys, facts=self._facts, stored=stored)

    @once
    def has_rows(self) -> npt.NDArray[np.bool_]:
        """Whether any row of each table is known: shape (n,)."""
        return np.array([bool(table.rows) for table in self.tables], dtype=bool)

    @once
    def is_key(self) -> npt.NDArray[np.bool_]:
        """Whether each column of the corpus is part of a key pair that links tables: shape (columns,)."""
        if self._stored is not None:
            return np.asarray(self._stored["is_key"], dtype=bool)
        keys = self.links.key_columns()
        return np.array(
            [(position, column.name) in keys for position, table in enumerate(self.tables) for column in table.columns],
            dtype=bool,
        )

    def names_of(self, table: int) -> Names:
        """The names of a table and its columns."""
        if table not in self._names:
            keys = self.is_key[self._starts[table] : self._starts[table + 1]].tolist()
            self._names[table] = Names.of(self.named[table], keys)
        return self._names[table]

    @once
    def _names(self) -> dict[int, Names]:
        return {}

    def joined_on(self, table: int, column: int, holding: Collection[int] = ()) -> list[int]:
        """The tables that may hold a value of a column (a position) of a table: their best key pair with the table uses
        this one column, and they are among ``holding``, or the profile of their column lacks some values."""
        if not self.is_key[self._starts[table] + column]:
            return []
        id, name = self.tables[table].id, self.tables[table].columns[column].name
        tables = []
        for other, score in self.links.of(table):
            key = self.links.best(table, other) if score >= LINKED else None
            if key is not None and key.columns_of(id) == (name,):
                theirs = key.columns_of(self.tables[other].id)
                sketches = [one.sketch for one in self.tables[other].columns if one.name in theirs]
                is_known = all(sketch is not None and sketch.complete for sketch in sketches)
                if other in holding or self.families[other].parts or not is_known:
                    tables.append(other)
        return tables

    def _column_terms(self, table: int) -> list[frozenset[str]]:
        named = self.named[table]
        return [frozenset(terms(f"{named.name} {column.name} {column.description}")) for column in named.columns]

    @once
    def _parts(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The columns of each table in two parts: those that are not keys, and those that are.

        Returns:
            The rows of their vectors, part after part; the start of each part that has columns; the numbers of these
            parts.
        """
        assert self.vectors is not None
        part = 2 * np.repeat(np.arange(len(self.tables)), np.diff(self._starts)) + self.is_key
        width = np.bincount(part, minlength=2 * len(self.tables))
        filled = np.flatnonzero(width)
        order = np.argsort(part, kind="stable")
        return self.vectors.column_row[order].astype(np.int32), (np.cumsum(width) - width)[filled], filled

    def by_table(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The largest value of each table's columns: (…, columns) to (…, n); 0 for a table without columns."""
        best = np.zeros((*values.shape[:-1], len(self.tables)), dtype=values.dtype)
        if len(self._filled):
            best[..., self._filled] = np.maximum.reduceat(values, self._starts[self._filled], axis=-1)
        return best

    def encode(self, texts: Sequence[str]) -> Floats:
        """Unit vectors of texts that search, such as a question: shape (len(texts), d)."""
        assert self.embedder is not None
        return encoded(self.embedder, texts, "query").astype(np.float64)

    def dense(self, question: str) -> Floats:
        """Cosine of the question and every table: shape (n,); zeros without an embedder."""
        if self.vectors is None:
            return np.zeros(len(self.tables))
        return np.asarray(self.vectors.tables @ self.encode([question])[0], dtype=np.float64)

    def similarities(self, texts: Sequence[str]) -> Floats:
        """Cosine of each text and every table; without an embedder, BM25 divided by that of the best table.

        Returns:
            Shape (len(texts), n).
        """
        if self.vectors is not None:
            return np.asarray(self.encode(texts) @ self.vectors.tables.T, dtype=np.float64)
        scores = np.array([self.lexical.scores(terms(text)) for text in texts]).reshape(len(texts), len(self.tables))
        return np.asarray(scores / np.maximum(scores.max(axis=1, initial=0.0), 1e-12)[:, None])

    def relevance(self, question: Question) -> Relevance:
        """Dense relevance to every table: of the question, of its words, and of sub-queries that add to them."""
        count = len(self.tables)
        if self.vectors is None:
            return Relevance(np.zeros(count), np.zeros(count), np.zeros((0, count)), np.zeros((0, count)), ())
        known = self._question(question)
        each, labels = known.words, tuple(word.text for word in question.content)
        if question.added_subqueries:
            each = np.concatenate([each, self.encode([plain(subquery) for subquery in question.added_subqueries])])
            labels = (*labels, *question.added_subqueries)
        # Once for each distinct text, in the vectors' precision: a lake has a hundred thousand columns. All of them are
        # needed, since signals compare every table with all others. FAISS would only find the nearest ones: among
        # 193,000 texts, 98 % of a thousand in half of the product's 47 ms.
        near = np.concatenate([known.text[None, :], each]).astype(np.float32) @ self.vectors.distinct.T
        rows, first, filled = self._parts
        most = np.full((len(near), 2 * count), -np.inf, dtype=np.float32)
        if len(rows):
            most[:, filled] = np.maximum.reduceat(np.take(near, rows, axis=1), first, axis=1)
        of_others, of_keys = most[:, 0::2], most[:, 1::2]
        best = np.maximum(of_others, of_keys).astype(np.float64)
        best[:, np.isneginf(best[0])] = 0.0
        only = np.isneginf(of_keys) & ~np.isneginf(of_others)  # tables without a key column
        attributes = np.where(only, of_others, np.maximum(of_others, 0.0))[1:]
        return Relevance(
            (self.vectors.tables @ known.text.astype(np.float32)).astype(np.float64),
            best[0],
            best[1:],
            attributes.astype(np.float64),
            labels,
        )

    def measured(self, question: Question, tables: Sequence[int]) -> Floats:
        """Cosine of each measure in a question (or a synonym) and the nearest numeric column of each of some tables.

        Keys and ids do not count; a table without a numeric column has 0.

        Returns:
            Shape (measures, len(tables)).
        """
        if self.vectors is None or not question.measures:
            return np.zeros((0, len(tables)))
        known = {word.text: row for word, row in zip(question.content, self._question(question).words, strict=True)}
        usual = [[USUAL_NAMES[word.lower()]] if word.lower() in USUAL_NAMES else [] for word in question.measures]
        texts = [
            [*([known[word]] if word in known else []), *(self.encode(others) if others else [])]
            for word, others in zip(question.measures, usual, strict=True)
        ]
        best = np.zeros((len(texts), len(tables)))
        for position, table in enumerate(tables):
            part = slice(self._starts[table], self._starts[table + 1])
            numbers = self._measures(table)
            if numbers.any():
                columns = self._columns_of(part)[numbers].T
                best[:, position] = [max(float((vectors @ columns).max()), 0.0) for vectors in map(np.stack, texts)]
        return best

    def _measures(self, table: int) -> npt.NDArray[np.bool_]:
        """Which columns of a table are numbers and no keys: shape (columns,)."""
        keys = self.is_key[self._starts[table] : self._starts[table + 1]]
        return np.array([_is_number(one) for one in self.tables[table].columns], dtype=bool) & ~keys

    def vector(self, question: Question) -> Floats | None:
        """The vector of a question: shape (d,); None without an embedder."""
        return None if self.embedder is None else np.asarray(self._question(question).text, dtype=np.float64)

    def best_fit(self, question: Question, table: int) -> tuple[str, int, float] | None:
        """The nearest pair of a word of the question and a column of a table, and their cosine."""
        part = slice(self._starts[table], self._starts[table + 1])
        if self.vectors is None or part.start == part.stop or not question.content:
            return None
        near = self._question(question).words @ self._columns_of(part).T
        word, column = divmod(int(near.argmax()), near.shape[1])
        return question.content[word].text, column, float(near[word, column])

    def _columns_of(self, part: slice) -> npt.NDArray[np.float32]:
        """The vectors of some columns: shape (columns, d)."""
        assert self.vectors is not None
        return np.asarray(self.vectors.distinct[self.vectors.column_row[part]], dtype=np.float32)

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
        """Fine relevance F and its parts r_qik: cosines; without an embedder, the share of a sub-query's words.

        Returns:
            F of shape (q, len(tables)): each sub-query's best column of each table, 0 for a table without columns; and
            for each table r_qik, shape (q, columns of the table).
        """
        rows = [slice(self._starts[table], self._starts[table + 1]) for table in tables]
        if self.vectors is not None and subqueries:
            queries = self.encode([plain(subquery) for subquery in subqueries])
            each = [queries @ self._columns_of(part).T for part in rows]
        else:
            wanted = [frozenset(terms(plain(subquery))) for subquery in subqueries]
            each = [
                np.array(
                    [[len(one & words) / max(len(one), 1) for words in self._column_terms(table)] for one in wanted]
                )
                for table in tables
            ]
        each = [
            np.asarray(scores, dtype=np.float64).reshape(len(subqueries), part.stop - part.start)
            for scores, part in zip(each, rows, strict=True)
        ]
        best = [part.max(axis=1) if part.size else np.zeros(len(subqueries)) for part in each]
        return np.array(best).reshape(len(tables), len(subqueries)).T.copy(), each


def _is_number(column: ColumnProfile) -> bool:
    """Whether a column may be a measure, judged by its values and its name."""
    return column.family in _NUMBERS and not STRONG_KEY_WORDS.intersection(words_of(column.name)[-1:])


def plain(subquery: str) -> str:
    """A sub-query as text for the embedder: ``concept attribute``, just as columns are ``table column``."""
    return subquery.replace(":", " ")


@functools.cache
def code_of_index() -> str:
    """A hash of the code that makes an index; an index of other code is made again."""
    parts = [resources.files("tagframe.retrieval"), resources.files("tagframe.corpus")]
    files = [part / f"{name}.py" for part, names in zip(parts, _CODE, strict=True) for name in names]
    data = [file.read_bytes() for file in files]
    return hashlib.md5(b"\n".join(data), usedforsecurity=False).hexdigest()


_CODE = (
    "index families lexical segment cell_values vocabulary words links".split(),
    "canonical documents vectors".split(),
)


class _Made:
    """An index; the first thread that asks for it makes it, and others wait. Equal ones have equal tables."""

    def __init__(self, corpus: Corpus, embedder: Embedder | None, apart: str | None) -> None:
        self._corpus, self._embedder, self._apart, self._tables = corpus, embedder, apart, corpus.profiles

    def __hash__(self) -> int:
        # Of the tables only their ids: there may be many.
        return hash((id(self._embedder), self._apart, *(table.id for table in self._tables)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Made)
            and self._embedder is other._embedder
            and self._apart == other._apart
            and self._tables == other._tables
        )

    @once
    def index(self) -> RetrievalIndex:
        return RetrievalIndex(self._corpus, self._embedder, apart=self._apart)


_lock = threading.Lock()


@functools.lru_cache(maxsize=8)
def _shared(made: _Made) -> _Made:
    """The first of equal ones."""
    return made


def index_of(corpus: Corpus, embedder: Embedder | None, anchor: str | None = None) -> RetrievalIndex:
    """The index of a corpus, made once. Equal corpora share one, such as a corpus that is narrowed anew at each call.

    Args:
        corpus: the corpus to search.
        embedder: None leaves lexical relevance only.
        anchor: id of a table that is a candidate of its own, although it may be a piece of a family.
    """
    apart = None
    if anchor is not None and any(letter.isdecimal() for letter in anchor):
        # If the table belongs to no family, the index is the shared one.
        apart = anchor if index_of(corpus, embedder).is_piece(anchor) else None
    with _lock:  # else two threads may each be the first
        made = _shared(_Made(corpus, embedder, apart))
    return made.index


def forget() -> None:
    """Release the indexes in this process's memory; the next question opens or makes the index that it needs."""
    _shared.cache_clear()
