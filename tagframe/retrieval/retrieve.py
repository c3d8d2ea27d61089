"""``retrieve_tables``: a question and a corpus in, the tables that answer it together out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from tagframe import config
from tagframe.errors import EmptyCorpus, EmptyQuestion, InvalidArgument, did_you_mean
from tagframe.retrieval.decompose import Decomposition, decompose, decompose_with
from tagframe.retrieval.index import RetrievalIndex, index_of
from tagframe.retrieval.problem import Floats, Selection, SelectionProblem, best_first
from tagframe.retrieval.reasons import reasons_for
from tagframe.retrieval.result import RetrievedTables, TableHit
from tagframe.retrieval.selectors import dense, greedy
from tagframe.retrieval.words import question_words

if TYPE_CHECKING:
    from tagframe.corpus import Corpus
    from tagframe.embed import Embedder
    from tagframe.lm import LM

CANDIDATES = 20
"""Tables of highest coarse relevance that the set selectors choose from, as in both papers."""

NEIGHBOURS = 10
"""Further candidates: tables that are linked to one of those, such as a bridge table that no word names."""

LEXICAL_WEIGHT = 0.15
"""What the best lexical match of a question adds to its cosine in the coarse relevance of the set selectors."""

DEFAULT_K = 5
DEFAULT_METHOD = "greedy"

_Selector = Callable[[SelectionProblem], Selection]
_SET_SELECTORS: dict[str, _Selector] = {"greedy": greedy}
METHODS = ("dense", "lexical", "hybrid", *_SET_SELECTORS)
"""The values of ``method``."""


def retrieve_tables(
    corpus: Corpus,
    question: str,
    *,
    k: int | Literal["auto"] | None = None,
    method: str | None = None,
    anchor: str | None = None,
    decomposition: Sequence[str] | None = None,
    lm: LM | None = None,
    embedder: Embedder | None = None,
) -> RetrievedTables:
    """Find the tables that answer a question together.

    >>> import pandas as pd, tagframe as tf
    >>> singers = pd.DataFrame({"singer_id": [1, 2], "name": ["Ann", "Bo"]})
    >>> concerts = pd.DataFrame({"concert_id": [1, 2], "singer_id": [1, 1], "year": [2020, 2021]})
    >>> parts = pd.DataFrame({"part": ["bolt"], "price": [1.5]})
    >>> corpus = tf.open_corpus({"music.singer": singers, "music.concert": concerts, "shop.part": parts})
    >>> found = retrieve_tables(corpus, "Which singers gave a concert in 2020?", k=2)
    >>> sorted(hit.id for hit in found.tables)
    ['music.concert', 'music.singer']

    Args:
        corpus: what to search.
        question: in plain language.
        k: how many tables, the anchor not counted; all of them where the corpus has fewer.
        method: "greedy" (iterative join-aware retrieval, the default), or a baseline that ranks tables one by one:
            "dense" (cosine of embeddings), "lexical" (BM25), "hybrid" (their sum).
        anchor: id of a table that is in the set already; the join plan starts from its rows.
        decomposition: the question's sub-queries (``concept:attribute``) where they are known. Otherwise a language
            model takes the question apart where one is configured, and rules where not.
        lm: the model to decompose with; the configured one where None.
        embedder: the embedding model; the configured one where None.

    Raises:
        EmptyQuestion: the question has no words.
        EmptyCorpus: there is no table to search.
        InvalidArgument: an unknown method, or a k below 1.
        TableNotFound: the corpus has no such anchor.
    """
    method, size = _checked(question, k, method)
    if not corpus.profiles:
        raise EmptyCorpus("there is no table to search: the corpus, or what is left of its catalogue, is empty")
    index = index_of(corpus, embedder if embedder is not None else _configured_embedder())
    anchored = None if anchor is None else corpus.profiles.index(corpus.profile(anchor))
    prepared = prepare(index, question, method=method, anchored=anchored, decomposition=decomposition, lm=lm)
    selection = choose(prepared, k=size)
    why = reasons_for(index, question, prepared.subqueries, prepared.tables, selection, anchored)
    hits = [
        TableHit(
            index.tables[prepared.tables[place]].id,
            float(selection.score[rank]),
            tuple(why[rank]),
            None if selection.probability is None else float(selection.probability[place]),
        )
        for rank, place in enumerate(selection.indices)
    ]
    notes = [selection.note] if selection.note else []
    available = len(index.tables) - (anchored is not None)
    if size > available:
        notes.append(f"k={size}, and there are {available} tables to choose from: these are all of them")
    anchor_id = None if anchored is None else index.tables[anchored].id
    return RetrievedTables(question, hits, corpus, anchor_id, method, "; ".join(notes), index)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A question over the tables of an index, ready for a selector.

    Attributes:
        tables: positions in the index of the problem's tables, ascending.
        problem: without its k.
        method: the selector to use.
        subqueries: what the rows of the problem's fine relevance stand for.
    """

    tables: tuple[int, ...]
    problem: SelectionProblem
    method: str
    subqueries: tuple[str, ...] = ()


def prepare(
    index: RetrievalIndex,
    question: str,
    *,
    method: str = DEFAULT_METHOD,
    anchored: int | None = None,
    decomposition: Sequence[str] | None = None,
    lm: LM | None = None,
) -> Prepared:
    """Everything before the choice: relevance, decomposition, candidates, the selection problem."""
    ranking = _coarse(index, question, method)
    if method not in _SET_SELECTORS:
        tables = tuple(range(len(index.tables)))
        anchor = np.array([table == anchored for table in tables], dtype=bool)
        return Prepared(tables, SelectionProblem(r=ranking, anchor=anchor), method)
    subqueries = _decomposed(question, decomposition, lm).subqueries
    tables = tuple(candidates(index, ranking, anchored))
    return Prepared(tables, build_problem(index, tables, ranking, subqueries, anchored), method, subqueries)


def choose(prepared: Prepared, *, k: int | None) -> Selection:
    """The tables that the method chooses, as positions in ``prepared.tables``."""
    return _SET_SELECTORS.get(prepared.method, dense)(replace(prepared.problem, k=k))


def candidates(index: RetrievalIndex, ranking: Floats, anchored: int | None) -> list[int]:
    """The tables that a set selector chooses from, ascending: the best ones, their join neighbours, the anchor."""
    best = best_first(ranking)[:CANDIDATES].tolist()
    if anchored is not None and anchored not in best:
        best.append(anchored)
    return sorted({*best, *index.links.neighbours(best, NEIGHBOURS)})


def build_problem(
    index: RetrievalIndex,
    tables: Sequence[int],
    ranking: Floats,
    subqueries: Sequence[str],
    anchored: int | None = None,
) -> SelectionProblem:
    """The selection problem over some tables (ascending) of the index, without a k."""
    databases = {table.database: number for number, table in enumerate(index.tables)}
    fine, _ = index.fine(subqueries, tables)
    return SelectionProblem(
        r=ranking[list(tables)],
        fine=fine,
        omega=index.joinability.matrix(tables),
        source=np.array([databases[index.tables[table].database] for table in tables], dtype=np.int64),
        link=index.links.matrix(tables),
        anchor=np.array([table == anchored for table in tables], dtype=bool),
    )


def _checked(question: str, k: int | str | None, method: str | None) -> tuple[str, int]:
    if not isinstance(question, str) or not question_words(question):
        raise EmptyQuestion(f"a question needs words; got {question!r}")
    method = DEFAULT_METHOD if method is None else method
    if method not in METHODS:
        raise InvalidArgument(f"no method {method!r} in {did_you_mean(method, METHODS)}")
    size = DEFAULT_K if k is None or k == "auto" else k
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise InvalidArgument(f"k is a number of tables, at least 1; got {k!r}")
    return method, size


def _coarse(index: RetrievalIndex, question: str, method: str) -> Floats:
    if method == "dense" and index.embedder is not None:
        return index.dense(question)
    lexical = index.lexical.scores(question)
    if method in ("lexical", "dense"):
        return lexical
    return index.dense(question) + LEXICAL_WEIGHT * lexical / max(float(lexical.max()), 1e-12)


def _decomposed(question: str, given: Sequence[str] | None, lm: LM | None) -> Decomposition:
    if given is not None:
        if isinstance(given, str):
            raise InvalidArgument(f"decomposition is a list of sub-queries; got the text {given!r}, say [{given!r}]")
        return Decomposition(tuple(given), origin="given")
    if lm is None and config.current().lm is not None:
        from tagframe.lm import get_lm

        lm = get_lm()
    return decompose(question) if lm is None else decompose_with(lm, question)


def _configured_embedder() -> Embedder | None:
    from tagframe.embed import get_embedder

    return get_embedder()
