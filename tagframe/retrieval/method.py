"""The interface of a retrieval method: relevance, the selection problem that is built from it, and the choice.

Beside it stands what several methods share: coarse relevance, candidates, fine relevance and joinability.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from tagframe.errors import InvalidArgument, TableNotFound, did_you_mean
from tagframe.retrieval.decompose import decompose_with
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.joinability import Omega
from tagframe.retrieval.problem import ColumnProblem, Floats, Selection, SelectionProblem, best_first
from tagframe.retrieval.question import Question
from tagframe.retrieval.signals import Evidence

if TYPE_CHECKING:
    from tagframe.lm import LM


P = TypeVar("P", bound="SelectionProblem | ColumnProblem")


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A way to choose tables: a small frozen object with its own parameters, as ``method=`` of a call.

    A method of your own is a subclass. It needs a ``name``, a ``summary`` and :meth:`select`; its parameters are fields
    of a dataclass. Once :func:`register` knows the class, its name stands for its defaults.

    ``read``, ``relevance``, ``prepare`` and ``select`` run one after the other.

    Attributes:
        name: what ``method=`` calls it.
        summary: what it does, as a phrase after the name.
        chooses_k: whether ``select`` decides how many tables are needed.
    """

    name: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    chooses_k: ClassVar[bool] = False

    @property
    def asks_model(self) -> bool:
        """Whether the method asks the configured model, if there is one; rules take its place if not."""
        return False

    @property
    def needs_model(self) -> bool:
        """Whether the method cannot do without a model."""
        return False

    def read(self, question: Question, lm: LM | None) -> Question:
        """The question with the sub-queries that the method uses; those of rules by default."""
        return question

    def relevance(self, index: RetrievalIndex, question: Question, lm: LM | None) -> Any:
        """The relevance of every table of the corpus to the question: :func:`by_both` by default.

        Args:
            index: of the corpus.
            question: as :meth:`read` returns it.
            lm: the model; None if none is asked.

        Returns:
            Shape (n,), or whatever :meth:`prepare` reads.
        """
        return by_both(index, question)

    def prepare(
        self, index: RetrievalIndex, question: Question, relevance: Any, anchored: int | None, k: int | None
    ) -> Prepared[Any]:
        """The problem over some of the tables: :func:`among_candidates` by default.

        Args:
            index, question: as in :meth:`relevance`.
            relevance: what it returned.
            anchored: the position of the anchor, if there is one.
            k: the largest number of tables, if there is one.
        """
        return among_candidates(index, question, relevance, anchored, k)

    @abstractmethod
    def select(self, problem: Any, k: int | None = None) -> Selection:
        """The choice: a pure function of the problem and k.

        Args:
            problem: the :class:`SelectionProblem` of :meth:`prepare`.
            k: how many tables, anchors not counted; None for all, or for as many as the method considers needed.
        """

    def note(self, index: RetrievalIndex, prepared: Prepared[Any]) -> str:
        """What a user should know of how the method works here, or ""."""
        return ""


@dataclass(frozen=True, kw_only=True)
class WithSubqueries(Method):
    """A method that covers the sub-queries of a question (JAR section 3.1).

    Attributes:
        subqueries: the question's, ``concept:attribute``, if you know them; "model" has the configured model decompose
            the question with JAR's prompt (appendix A.1); None has rules do so.

    Raises:
        InvalidArgument: a text that is not "model".
    """

    subqueries: Sequence[str] | Literal["model"] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.subqueries, str) and self.subqueries != "model":
            raise InvalidArgument(
                f'subqueries must be a list, such as [{self.subqueries!r}], or "model"; got {self.subqueries!r}'
            )

    @property
    def asks_model(self) -> bool:
        """Whether a model decomposes the question."""
        return self.subqueries == "model"

    def read(self, question: Question, lm: LM | None) -> Question:
        """The question with the sub-queries that were given, or those of a model."""
        if self.subqueries is None or self.subqueries == "model":
            return question if lm is None or self.subqueries is None else decompose_with(lm, question)
        return question.with_subqueries(self.subqueries, "given")


@dataclass(frozen=True, kw_only=True)
class ByScores(Method):
    """A method that starts from one score of each table.

    Attributes:
        coarse: relevance of tables by id, from your own scorer, instead of the method's own. Tables that it does not
            name have 0.
    """

    coarse: Mapping[str, float] | None = None

    @abstractmethod
    def scores(self, index: RetrievalIndex, question: Question) -> Floats:
        """The method's own score of each table: shape (n,)."""

    def relevance(self, index: RetrievalIndex, question: Question, lm: LM | None) -> Floats:
        """The scores that were given, or the method's own: shape (n,).

        Raises:
            TableNotFound: the corpus does not have a table that ``coarse`` names.
        """
        return self.scores(index, question) if self.coarse is None else scores_of_tables(index, self.coarse)


def scores_of_tables(index: RetrievalIndex, given: Mapping[str, float]) -> Floats:
    """Scores by table id as an array: shape (n,).

    Raises:
        TableNotFound: the corpus does not have a table that is named.
    """
    position = {table.id: number for number, table in enumerate(index.tables)}
    scores = np.zeros(len(position))
    for table, value in given.items():
        if table not in position:
            raise TableNotFound(f"coarse= names no table {table!r} in {did_you_mean(str(table), position)}")
        scores[position[table]] = value
    return scores


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse a value that is neither None nor one of the choices.

    Raises:
        InvalidArgument: with the choices.
    """
    if value is not None and value not in choices:
        raise InvalidArgument(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")


def check_number(name: str, value: object, what: str) -> None:
    """Refuse a value that is neither None nor a whole number of at least 1.

    Args:
        name: of the parameter.
        value: of the parameter.
        what: what it must be, in words.

    Raises:
        InvalidArgument: with the value.
    """
    is_number = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if value is not None and not (is_number and value >= 1):  # type: ignore[operator]
        raise InvalidArgument(f"{name} must be {what}, at least 1; got {value!r}")


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


def by_words(index: RetrievalIndex, question: Question) -> Floats:
    """BM25 of every table: shape (n,)."""
    return index.lexical.scores(question.terms)


def by_meaning(index: RetrievalIndex, question: Question) -> Floats:
    """Cosine of the question and every table; without an embedder, BM25: shape (n,)."""
    return by_words(index, question) if index.embedder is None else index.dense(question.text)


def by_both(index: RetrievalIndex, question: Question) -> Floats:
    """Cosine plus a share of BM25 divided by that of the best table: shape (n,)."""
    lexical = index.lexical.scores(question.terms)
    return index.dense(question.text) + LEXICAL_WEIGHT * lexical / max(float(lexical.max(initial=0.0)), 1e-12)


def all_tables(
    index: RetrievalIndex, question: Question, ranking: Floats, anchored: int | None = None, k: int | None = None
) -> Prepared[SelectionProblem]:
    """The problem of a ranking: every table, with its coarse relevance only.

    Args:
        index, question: as in :meth:`Method.relevance`.
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
