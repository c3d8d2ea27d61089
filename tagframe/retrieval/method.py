"""The interface of a retrieval method: relevance, the selection problem that is built from it, and the choice.

Beside it stands what several methods share: coarse relevance, candidates, fine relevance and joinability.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from tagframe.retrieval.decompose import Decomposer
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.joinability import Omega
from tagframe.retrieval.problem import ColumnProblem, Floats, Selection, SelectionProblem, best_first
from tagframe.retrieval.question import Question
from tagframe.retrieval.signals import Evidence

if TYPE_CHECKING:
    from tagframe.lm import LM
    from tagframe.retrieval.form import Form


R = TypeVar("R")
"""The relevance of all tables: coarse relevance as an array, or evidence."""
P = TypeVar("P")
"""A SelectionProblem, or a ColumnProblem."""


@dataclass(frozen=True, eq=False)
class Method(Generic[R, P]):
    """A way to choose tables: as ``method=`` of a call, or by its name once it is registered.

    ``relevance``, ``prepare`` and ``select`` run one after the other. The first two are usually functions of
    :mod:`tagframe.retrieval`: ``by_meaning``, ``by_words`` or ``by_both``; and ``all_tables``, which fills ``r`` and
    ``anchor`` of the problem, or ``among_candidates``, which also fills ``fine``, ``omega``, ``link`` and ``source``.

    Attributes:
        name: the value of ``method=``.
        summary: what it does, as a phrase after the name.
        relevance: the relevance of every table of the corpus to the question; its model is None if no model is asked.
        prepare: builds the problem over some of the tables from the relevance. Its last arguments are the position of
            the anchor, or None, and the largest number of tables, or None.
        select: the choice, a pure function of the problem and k, which does not count anchors. With k None it returns
            all tables, or as many as the method considers needed.
        decomposer: takes ``decomposition=`` and asks a model for sub-queries; None if they always come from rules.
        takes_coarse: whether relevance from elsewhere, shape (n,), may replace ``relevance``.
        asks_model: whether the method works with answers of a model, so that it asks the configured model by default.
        says_k: whether ``select`` decides how many tables are needed.
        refines: whether a model's second look may add to the relevance, which is an ``Evidence`` then.
        form: the method in a form of its paper, for a method that has several; None for others.
        said: the form as it is printed and noted: setting → value.
    """

    name: str
    summary: str
    relevance: Callable[[RetrievalIndex, Question, LM | None], R]
    prepare: Callable[[RetrievalIndex, Question, R, int | None, int | None], Prepared[P]]
    select: Callable[[P, int | None], Selection]
    decomposer: Decomposer | None = None
    takes_coarse: bool = True
    asks_model: bool = False
    says_k: bool = False
    refines: bool = False
    form: Callable[[Form], Method[R, P]] | None = None
    said: Mapping[str, Any] = field(default_factory=dict)

    @property
    def may_ask(self) -> bool:
        """Whether the method can use a model."""
        return self.decomposer is not None or self.asks_model

    def prepared(
        self,
        index: RetrievalIndex,
        question: Question,
        *,
        anchored: int | None = None,
        lm: LM | None = None,
        k: int | None = None,
    ) -> Prepared[P]:
        """All steps before the choice of up to k tables: relevance (which may ask ``lm``), candidates, and the problem.

        ``anchored`` is the position of the anchor in the index, if there is one.
        """
        return self.prepare(index, question, self.relevance(index, question, lm), anchored, k)


CANDIDATES = 20
"""The number of tables of highest coarse relevance among which the papers' selectors choose (iterative JAR, section 4).

JAR re-ranks twenty, too (section 4.3); iterative JAR uses thirty for FIBEN.
"""

NEIGHBOURS = 10
"""The number of further candidates, linked to one of those, such as a bridge table that no word names; ours."""

LEXICAL_WEIGHT = 0.15
"""The weight of the lexical score beside the cosine in our form of coarse relevance; the papers use cosine alone."""


@dataclass(frozen=True)
class Setup:
    """What the problem of a set selector is made of; the defaults are ours.

    Attributes:
        candidates: the number of tables of highest coarse relevance.
        links: whether link scores and :data:`NEIGHBOURS` are used; the papers have neither.
        omega: whose ω: that of JAR's text or of its authors' code; None for ours.
        declared: whether declared keys are used (JAR-G); None as in the index.
    """

    candidates: int = CANDIDATES
    links: bool = True
    omega: Omega | None = None
    declared: bool | None = None


OURS = Setup()


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
    """BM25 of every table: shape (n,); ``lm`` is not asked."""
    return index.lexical.scores(question.terms)


def by_meaning(index: RetrievalIndex, question: Question, lm: LM | None = None) -> Floats:
    """Cosine of the question and every table; without an embedder, BM25: shape (n,); ``lm`` is not asked."""
    return by_words(index, question) if index.embedder is None else index.dense(question.text)


def by_both(index: RetrievalIndex, question: Question, lm: LM | None = None) -> Floats:
    """Cosine plus a share of BM25 divided by that of the best table: shape (n,); ``lm`` is not asked."""
    return both(index, question.text, question.terms)


def both(index: RetrievalIndex, text: str, words: Sequence[str]) -> Floats:
    """As :func:`by_both`, for any text and its terms."""
    lexical = index.lexical.scores(words)
    return index.dense(text) + LEXICAL_WEIGHT * lexical / max(float(lexical.max(initial=0.0)), 1e-12)


def all_tables(
    index: RetrievalIndex, question: Question, ranking: Floats, anchored: int | None = None, k: int | None = None
) -> Prepared[SelectionProblem]:
    """The problem of a ranking: every table, with its coarse relevance only.

    Args:
        index, question: as in :attr:`Method.relevance`.
        ranking: the relevance of every table, shape (n,).
        anchored: the position of the anchor, if there is one.
        k: how many tables are asked for.
    """
    tables = tuple(range(len(index.tables)))
    return Prepared(tables, SelectionProblem(r=ranking, anchor=anchors(tables, anchored)))


def among_candidates(
    index: RetrievalIndex,
    question: Question,
    ranking: Floats,
    anchored: int | None = None,
    k: int | None = None,
    *,
    setup: Setup = OURS,
) -> Prepared[SelectionProblem]:
    """The problem of a set selector: the best tables, how they cover the sub-queries, and how they join.

    Args:
        index, question, ranking, anchored, k: as in :func:`all_tables`.
        setup: how many tables, which ω, and whether links and declared keys count.
    """
    tables = tuple(candidates(index, ranking, anchored, k, setup))
    fine, _ = index.fine(question.subqueries, tables)
    problem = SelectionProblem(
        r=ranking[list(tables)],
        fine=fine,
        omega=index.joinability_in(setup.omega, setup.declared).matrix(tables),
        source=index.database[list(tables)],
        link=index.links_in(setup.declared).matrix(tables) if setup.links else np.zeros((0, 0)),
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
    setup: Setup = OURS,
) -> Prepared[ColumnProblem]:
    """The problem of :func:`among_candidates` column by column, before JAR's reduction."""
    tables = tuple(candidates(index, ranking, anchored, k, setup))
    _, fine = index.fine(question.subqueries, tables)
    joins = column_joins(index, tables, link_share, setup)
    problem = ColumnProblem(ranking[list(tables)], fine, joins, anchors(tables, anchored))
    return Prepared(tables, problem, question.subqueries)


def candidates(
    index: RetrievalIndex, ranking: Floats, anchored: int | None, k: int | None = None, setup: Setup = OURS
) -> list[int]:
    """The tables among which a set selector chooses, ascending: the best ones, their join neighbours, the anchor.

    There are at least k of them beside the anchor, if the corpus has that many.
    """
    best = best_first(ranking)[: max(setup.candidates, (k or 0) + (anchored is not None))].tolist()
    if anchored is not None and anchored not in best:
        best.append(anchored)
    near = index.links_in(setup.declared).neighbours(best, NEIGHBOURS) if setup.links else []
    return sorted({*best, *near})


def column_joins(index: RetrievalIndex, tables: Sequence[int], link_share: float = 0.5, setup: Setup = OURS) -> Floats:
    """ω of every pair of columns of the tables, and the link score of two tables at the pair with the largest ω.

    The largest value of two tables is thus their mean of ω and link score, as in :func:`among_candidates`.

    Returns:
        Shape (columns, columns), symmetric.
    """
    omega = index.joinability_in(setup.omega, setup.declared)
    links = index.links_in(setup.declared).matrix(tables) if link_share else np.zeros((len(tables), len(tables)))
    first = np.cumsum([0, *(len(index.tables[table].columns) for table in tables)])
    joins = np.zeros((first[-1], first[-1]))
    for i, left in enumerate(tables):
        for j in range(i + 1, len(tables)):
            scores = (1 - link_share) * omega.columns(left, tables[j])
            if scores.size:
                scores.flat[int(scores.argmax())] += link_share * links[i, j]
            joins[first[i] : first[i + 1], first[j] : first[j + 1]] = scores
    return joins + joins.T


def anchors(tables: Sequence[int], anchored: int | None) -> npt.NDArray[np.bool_]:
    """Which of the tables is the anchor: shape (n,)."""
    return np.array([table == anchored for table in tables], dtype=bool)
