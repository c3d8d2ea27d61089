"""An answer and its sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import pandas as pd

from tagframe import results
from tagframe.display import Public
from tagframe.errors import FactUnknown, counted
from tagframe.lm import Quote, Usage

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tagframe.answer.alternatives import Doubt
    from tagframe.answer.ask import AskOptions
    from tagframe.answer.execution import Execution
    from tagframe.joins import JoinPlan
    from tagframe.retrieval import RetrievedTables


@dataclass(frozen=True)
class StepUse:
    """The cost of one of the three steps.

    Attributes:
        name: "syn", "exec" or "gen"; "syn again" and "exec again" if the first query gave no rows.
        usage: of the model; its ``seconds`` are the step's wall-clock time.
    """

    name: str
    usage: Usage

    @property
    def calls(self) -> int:
        """The number of requests: those that were sent, with repairs, and those that the store answered."""
        return self.usage.sent + self.usage.stored

    def __str__(self) -> str:
        return f"{self.name}: {counted(self.calls, 'call')}, {self.usage.seconds:.2f} s"


@dataclass(frozen=True)
class Generated:
    """The output of ``gen``.

    Attributes:
        text: for a person.
        values: the answer as plain Python values, in order; empty if it is only a text.
    """

    text: str
    values: Sequence[Any] = ()


@dataclass(frozen=True)
class Answer(Public):
    """The answer to one question.

    Attributes:
        question: as asked.
        text: for a person.
        values: the answer as plain Python values (text, numbers, booleans, None), in order.
        query: the output of ``syn``; its text is the SQL statement.
        rows: the output of ``exec``, from which ``gen`` answered: the paper's T.
        steps: the cost of each step.
        retrieved: the tables that were found, and why; None if ``syn`` was shown all tables alike.
        doubts: reasons to doubt the answer: other statements with other results (``doubt.statement``, ``doubt.rows``),
            and facts. They are found by queries, without a model. Empty if the query was not run by
            :func:`tagframe.exec_sql`.
    """

    question: str
    text: str
    values: list[Any]
    query: Any
    rows: pd.DataFrame
    steps: tuple[StepUse, ...] = ()
    retrieved: RetrievedTables | None = field(default=None, repr=False)
    doubts: tuple[Doubt, ...] = ()

    @property
    def value(self) -> Any:
        """The answer if it is one value; None if there is no value, or several."""
        return self.values[0] if len(self.values) == 1 else None

    @property
    def usage(self) -> Usage:
        """Usage of the model in all steps."""
        return sum((step.usage for step in self.steps), Usage())

    @property
    def calls(self) -> int:
        """The number of requests in all steps: sent, or answered from the store."""
        return sum(step.calls for step in self.steps)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """How ``syn`` read an ambiguous question, in its words."""
        return tuple(getattr(self.query, "assumptions", ()))

    @property
    def verified(self) -> str:
        """Who verified the statement, for which question and with which parameters; "" if it is not a verified one."""
        return str(getattr(self.query, "verified", ""))

    @property
    def lacking(self) -> tuple[str, ...]:
        """What the question needs and the tables lack, in the words of ``syn``."""
        return tuple(getattr(self.query, "lacking", ()))

    @property
    def execution(self) -> Execution | None:
        """How the query was run, if :func:`tagframe.exec_sql` ran it."""
        found: Execution | None = results.recall(self.rows, "execution")
        return found

    @property
    def tables(self) -> list[str]:
        """The ids of the tables that the query reads."""
        return [] if self.execution is None else list(self.execution.tables)

    @property
    def made_of(self) -> str:
        """The tables, and the number of rows, behind the answer, in words."""
        rows = counted(len(self.rows), "row")
        return f"{rows} of {', '.join(self.tables)}" if self.tables else rows

    @cached_property
    def sources(self) -> pd.DataFrame:
        """The rows behind the answer, by their keys; see :meth:`tagframe.answer.Execution.sources`.

        Raises:
            FactUnknown: the query was not run by ``exec_sql``, or the answer was pickled.
        """
        if self.execution is None:
            raise FactUnknown("the sources of this answer are not known: its query was not run by exec_sql")
        return self.execution.sources()

    @property
    def join_plan(self) -> JoinPlan | None:
        """How the query joins its tables; None if it does not join them all by columns, or there is only one."""
        from tagframe.answer.execution import plan_of

        return None if self.execution is None else plan_of(self.execution)

    @overload
    def follow_up(self, question: str, *, quote: Literal[False] = ..., **options: Unpack[AskOptions]) -> Answer: ...
    @overload
    def follow_up(self, question: str, *, quote: Literal[True], **options: Unpack[AskOptions]) -> Quote: ...
    def follow_up(self, question: str, *, quote: bool = False, **options: Unpack[AskOptions]) -> Answer | Quote:
        """Ask further, ``answer.follow_up("and by month?")``: ``syn`` reads the same tables, the statement of this
        answer, its reading and a page of its rows. A *why* is answered by what differs between two groups, column by
        column. The new answer's question is both, and can be followed up again.

        Args:
            question: the next one.
            quote: as in :func:`tagframe.ask`.
            **options: as in :func:`tagframe.ask`.

        Raises:
            FactUnknown: the answer was pickled, or its query was not run by ``exec_sql``.
            EmptyQuestion: the question has no words.
            Exception: as :func:`tagframe.ask`.
        """
        from tagframe.answer.ask import follow_up

        return follow_up(self, question, options, quote=quote)

    def correct(self, sql: str) -> None:
        """Give the statement that answers the question. It is used when the same question is asked again, and as an
        example for similar questions.

        The corpus keeps it with its literals, and lists it in ``corpus.learned``.

        Raises:
            UnreadStatement: it cannot be parsed, or reads tables that do not exist.
            InvalidArgument: a verified statement answers exactly this question.
            FactUnknown: the answer was pickled, or its query was not run by ``exec_sql``.
        """
        from tagframe.answer.learned_statements import right_statement
        from tagframe.learning import add_statements

        reader = None if self.execution is None else self.execution.reader
        if reader is None:
            raise FactUnknown("the corpus of this answer is not known here: use corpus.learn(question, sql) instead")
        add_statements(reader.corpus, [right_statement(self.question, sql, reader.corpus, reader.engine.dialect.name)])

    def accept(self) -> None:
        """Confirm the answer: its statement is used when the same question is asked again; see :meth:`correct`. A
        verified statement needs no confirmation.

        Raises:
            FactUnknown: as :meth:`correct`.
        """
        if not self.verified:
            self.correct(str(self.query))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the rows, with the question as the title: lines over times, for each label where labels repeat; points
        of two columns of numbers; how often one number has which values; else bars, with times in their labels.

        At most 30 bars, eight series and three columns of numbers are drawn; numbers of another scale are points with
        an axis on the right. A ranking without numbers is drawn with what it is ordered by. Rows without a value are
        left out; the axis says how many rows are not drawn. Change what you like on the axes, or draw ``answer.rows``
        yourself.

        Args:
            ax: matplotlib's axes to draw on; None for a new figure.

        Returns:
            The axes.

        Raises:
            MissingExtra: matplotlib is not installed.
            NothingToPlot: there are no rows, or no column of numbers.
        """
        from tagframe.answer.doubts import with_measure
        from tagframe.display import plot_rows

        return plot_rows(with_measure(self.rows), self.question, ax)

    def explain(self) -> str:
        """The steps of the answer: the query, its stages, the tables and rows behind it, calls and seconds."""
        from tagframe.display import answer_text

        return answer_text(self)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        from tagframe.display import fitted

        remarks = f"\nanswered by a verified statement of {self.verified}" if self.verified else ""
        remarks += "".join(f"\nassumed: {one}" for one in self.assumptions)
        remarks += "".join(f"\ndoubt: {one}" for one in self.doubts)
        return fitted(f"{self.text}\n{remarks}\nfrom {self.made_of}\nby {self.query}")

    def _repr_html_(self) -> str:
        from tagframe.display import answer_html

        return answer_html(self, self.join_plan)

    def to_dict(self, rows: int = 20) -> dict[str, Any]:
        """The answer as JSON values, with the first ``rows`` rows."""
        query = self.query.to_dict() if hasattr(self.query, "to_dict") else str(self.query)
        found = [] if self.retrieved is None else self.retrieved.to_dict()["tables"]
        return {
            "question": self.question,
            "answer": self.text,
            "values": self.values,
            "assumptions": list(self.assumptions),
            "doubts": [doubt.to_dict(rows) for doubt in self.doubts],
            "lacking": list(self.lacking),
            "query": query,
            "tables": self.tables,
            "retrieved": found,
            "steps": [
                {
                    "name": step.name,
                    "calls": step.calls,
                    "tokens": step.usage.tokens_in + step.usage.tokens_out,
                    "seconds": round(step.usage.seconds, 3),
                }
                for step in self.steps
            ],
            "row_count": len(self.rows),
            "rows": self.rows.head(rows).to_dict("records"),
        }
