"""The interface of a retrieval method: relevance, the selection problem that is built from it, and the choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tagframe.retrieval.decompose import Decomposer
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.prepare import Prepared
from tagframe.retrieval.problem import Selection
from tagframe.retrieval.question import Question

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
