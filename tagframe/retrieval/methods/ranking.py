"""The usual baselines: the k tables of highest coarse relevance, by meaning, by words, or by both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.method import ByScores, Prepared, all_tables, by_both, by_meaning, by_words
from tagframe.retrieval.problem import Floats, Selection, SelectionProblem, best_first
from tagframe.retrieval.question import Question


def best(problem: SelectionProblem, k: int | None = None) -> Selection:
    """The k tables of highest ``r``, such as a bi-encoder's cosine, BM25, or the caller's own scores.

    >>> best(SelectionProblem(r=np.array([0.2, 0.9, 0.5])), 2).indices
    (1, 2)
    """
    order = best_first(np.where(problem.anchor, -np.inf, problem.r))[: problem.wanted(k)]
    score = problem.r[order]
    return Selection(tuple(order.tolist()), float(score.sum()), score)


@dataclass(frozen=True, kw_only=True)
class _Ranking(ByScores):
    def prepare(
        self, index: RetrievalIndex, question: Question, relevance: Floats, anchored: int | None, k: int | None
    ) -> Prepared[SelectionProblem]:
        """The problem over all tables."""
        return all_tables(index, question, relevance, anchored, k)

    def select(self, problem: Any, k: int | None = None) -> Selection:
        """The k tables of highest relevance."""
        return best(problem, k)


@dataclass(frozen=True, kw_only=True)
class Dense(_Ranking):
    """A baseline: the tables whose embeddings are nearest to the question's.

    Attributes:
        coarse: scores by table id, from your own scorer, instead; tables that it does not name have 0.
    """

    name: ClassVar[str] = "dense"
    summary: ClassVar[str] = "ranks tables by the cosine of embeddings"

    def scores(self, index: RetrievalIndex, question: Question) -> Floats:
        """The cosine of the question and each table: shape (n,)."""
        return by_meaning(index, question)


@dataclass(frozen=True, kw_only=True)
class Lexical(_Ranking):
    """A baseline: the tables whose names have the question's words.

    Attributes:
        coarse: scores by table id, from your own scorer, instead; tables that it does not name have 0.
    """

    name: ClassVar[str] = "lexical"
    summary: ClassVar[str] = "ranks tables by the words of their names (BM25)"

    def scores(self, index: RetrievalIndex, question: Question) -> Floats:
        """BM25 of each table: shape (n,)."""
        return by_words(index, question)


@dataclass(frozen=True, kw_only=True)
class Hybrid(_Ranking):
    """A baseline: tables by both, meaning and words.

    Attributes:
        coarse: scores by table id, from your own scorer, instead; tables that it does not name have 0.
    """

    name: ClassVar[str] = "hybrid"
    summary: ClassVar[str] = "ranks tables by both"

    def scores(self, index: RetrievalIndex, question: Question) -> Floats:
        """The cosine and a share of BM25: shape (n,)."""
        return by_both(index, question)
