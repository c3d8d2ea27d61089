"""From a question to a selector's problem: coarse relevance, candidates, fine relevance and joinability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from tagframe.keys import evidence_share
from tagframe.retrieval.column_problem import ColumnProblem
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.problem import Floats, SelectionProblem, best_first
from tagframe.retrieval.question import Question
from tagframe.retrieval.signals import Evidence

if TYPE_CHECKING:
    from tagframe.lm import LM

P = TypeVar("P")

CANDIDATES = 20
"""The number of tables of highest coarse relevance among which the papers' selectors choose."""

NEIGHBOURS = 10
"""The number of further candidates, linked to one of those, such as a bridge table that no word names."""

LEXICAL_WEIGHT = 0.15
"""The weight of the lexical score beside the cosine in the coarse relevance of the papers' selectors."""


@dataclass(frozen=True, eq=False)
class Prepared(Generic[P]):
    """A question over the tables of an index, ready for a selector.

    Attributes:
        tables: positions in the index of the problem's tables, ascending.
        problem: over them.
        subqueries: those that the problem uses.
        evidence: the evidence, if the method gathers any.
    """

    tables: tuple[int, ...]
    problem: P
    subqueries: tuple[str, ...] = ()
    evidence: Evidence | None = None


def by_words(index: RetrievalIndex, question: Question, lm: LM | None = None) -> Floats:
    """BM25 of every table: shape (n,)."""
    return index.lexical.scores(question.terms)


def by_meaning(index: RetrievalIndex, question: Question, lm: LM | None = None) -> Floats:
    """Cosine of the question and every table; without an embedder, BM25: shape (n,)."""
    return by_words(index, question) if index.embedder is None else index.dense(question.text)


def by_both(index: RetrievalIndex, question: Question, lm: LM | None = None) -> Floats:
    """Cosine plus a share of BM25 divided by that of the best table: shape (n,)."""
    return both(index, question.text, question.terms)


def both(index: RetrievalIndex, text: str, words: Sequence[str]) -> Floats:
    """As :func:`by_both`, for any text and its terms."""
    lexical = index.lexical.scores(words)
    return index.dense(text) + LEXICAL_WEIGHT * lexical / max(float(lexical.max(initial=0.0)), 1e-12)


def all_tables(
    index: RetrievalIndex, question: Question, ranking: Floats, anchored: int | None = None, k: int | None = None
) -> Prepared[SelectionProblem]:
    """The problem of a ranking: every table, with its coarse relevance only."""
    tables = tuple(range(len(index.tables)))
    return Prepared(tables, SelectionProblem(r=ranking, anchor=anchors(tables, anchored)))


def among_candidates(
    index: RetrievalIndex, question: Question, ranking: Floats, anchored: int | None = None, k: int | None = None
) -> Prepared[SelectionProblem]:
    """The problem of a set selector: the best tables, how they cover the sub-queries, and how they join."""
    tables = tuple(candidates(index, ranking, anchored, k))
    fine, _ = index.fine(question.subqueries, tables)
    problem = SelectionProblem(
        r=ranking[list(tables)],
        fine=fine,
        omega=index.joinability.matrix(tables),
        source=index.database[list(tables)],
        link=index.links.matrix(tables),
        anchor=anchors(tables, anchored),
    )
    return Prepared(tables, problem, question.subqueries)


def column_by_column(
    index: RetrievalIndex,
    question: Question,
    ranking: Floats,
    anchored: int | None = None,
    k: int | None = None,
    *,
    link_share: float = 0.0,
) -> Prepared[ColumnProblem]:
    """JAR's problem before its reduction, over the candidates of :func:`among_candidates`."""
    tables = tuple(candidates(index, ranking, anchored, k))
    _, fine = index.fine(question.subqueries, tables)
    joins = column_joins(index, tables, link_share)
    problem = ColumnProblem(ranking[list(tables)], fine, joins, anchors(tables, anchored))
    return Prepared(tables, problem, question.subqueries)


def candidates(index: RetrievalIndex, ranking: Floats, anchored: int | None, k: int | None = None) -> list[int]:
    """The tables among which a set selector chooses, ascending: the best ones, their join neighbours, the anchor.

    There are at least k of them beside the anchor, if the corpus has that many.
    """
    best = best_first(ranking)[: max(CANDIDATES, (k or 0) + (anchored is not None))].tolist()
    if anchored is not None and anchored not in best:
        best.append(anchored)
    return sorted({*best, *index.links.neighbours(best, NEIGHBOURS)})


def column_joins(index: RetrievalIndex, tables: Sequence[int], link_share: float = 0.5) -> Floats:
    """The mean of ω and link scores for every pair of columns of the tables: shape (columns, columns)."""
    first = np.cumsum([0, *(len(index.tables[table].columns) for table in tables)])
    joins = np.zeros((first[-1], first[-1]))
    for i, left in enumerate(tables):
        for j in range(i + 1, len(tables)):
            scores = (1 - link_share) * index.joinability.columns(left, tables[j])
            key = index.links.best(left, tables[j])
            if key is not None and len(key.left_columns) == 1:
                ends = {key.left_table: key.left_columns[0], key.right_table: key.right_columns[0]}
                k, other = (
                    next(column.position for column in profile.columns if column.name == ends[profile.id])
                    for profile in (index.tables[left], index.tables[tables[j]])
                )
                scores[k, other] += link_share * evidence_share(key.score)
            joins[first[i] : first[i + 1], first[j] : first[j + 1]] = scores
    return joins + joins.T


def anchors(tables: Sequence[int], anchored: int | None) -> npt.NDArray[np.bool_]:
    """Which of the tables is the anchor: shape (n,)."""
    return np.array([table == anchored for table in tables], dtype=bool)
