"""What a query would cost, shown before it is paid."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tagframe import results
from tagframe.answer.metering import as_step
from tagframe.errors import RowsFailed
from tagframe.lm import Prompt, Quote, QuoteEnds, QuotingLM, get_lm
from tagframe.operators import run

if TYPE_CHECKING:
    from tagframe.answer.lm_sql import StageReport

_GUESS = '{"text": "an answer of some twenty words, with a name and a number in it", "values": ["a name"]}'


@dataclass(frozen=True)
class Plan:
    """A query, what its LM functions are asked, and what that would cost; nothing but the query has been paid.

    Attributes:
        question: of which the query is, or "".
        query: as ``syn`` wrote it.
        stages: each LM function with its distinct values. What a function would leave is not known before it is asked:
            a filter is taken to hold for all, so that what follows it is asked at most so much; and where LIMIT allows
            to ask about the first rows only, as many are counted as would do if all passed.
        quote: of the stages, and of the answer that is written from the rows.
    """

    question: str
    query: Any
    stages: tuple[StageReport, ...]
    quote: Quote

    def __repr__(self) -> str:
        lines = [str(self.query), *(f"  {stage}" for stage in self.stages), f"  {self.quote}"]
        return "\n".join(lines)


def plan_of(query: Any, execute: Any, gen: Any = None, question: str = "") -> Plan:
    """The plan of a query that is written already; nothing is sent.

    Args:
        query: what ``exec`` takes.
        execute: ``exec``.
        gen: ``gen``, or None.
        question: what ``gen`` would be asked.

    Raises:
        UnsafeSQL, SQLFailed: as ``exec`` does.
        NotConfigured: no model is set.
    """
    quoting = QuotingLM(get_lm(), _guess)
    stages: tuple[StageReport, ...] = ()
    with contextlib.suppress(QuoteEnds, RowsFailed):
        rows = run(as_step(execute, query), quoting)
        execution = results.recall(rows, "execution")
        # What an audit would find is not known before it is paid.
        stages = () if execution is None else tuple(replace(stage, remarks=()) for stage in execution.stages)
        if gen is not None:
            run(as_step(gen, question, rows), quoting)
    return Plan(question, query, stages, quoting.quote)


def _guess(prompt: Prompt) -> str:
    return _GUESS
