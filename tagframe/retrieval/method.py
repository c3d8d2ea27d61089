"""What a way to choose tables is: relevance, the problem that is made of it, and the choice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from tagframe.retrieval.decompose import Decomposer
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.prepare import Prepared
from tagframe.retrieval.problem import Selection
from tagframe.retrieval.question import Question

if TYPE_CHECKING:
    from tagframe.lm import LM

R = TypeVar("R")  # what is known of all tables: coarse relevance as an array, or evidence
P = TypeVar("P")  # a SelectionProblem, or a ColumnProblem


@dataclass(frozen=True, eq=False)
class Method(Generic[R, P]):
    """A way to choose tables. A new one is a file in ``methods/`` and a line in its registry.

    Attributes:
        name: the value of ``method=``.
        summary: what it does, to follow the name.
        relevance: of every table of the corpus to the question; the model is None where none is to be asked.
        prepare: the problem over some of the tables, from the relevance on; the last arguments are the position of the
            table that is in the set already, or None, and how many tables are to be had at most, or None.
        select: the choice, a pure function of the problem and k (None for all that are to be had, or as many as the
            method finds needed).
        decomposer: where sub-queries come from; None for a method that looks at none.
        takes_coarse: whether relevance that was computed elsewhere, shape (n,), may take the place of ``relevance``.
        asks_model: whether it is made of what a model says, so that a configured one is asked unbidden.
        says_k: whether ``select`` says how many tables are needed.
        refines: whether a model's second look may add to the relevance, which is evidence then.
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

    @property
    def may_ask(self) -> bool:
        """Whether a model has something to say to it."""
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
        """Everything before the choice of up to k tables: relevance, candidates, the problem."""
        return self.prepare(index, question, self.relevance(index, question, lm), anchored, k)
