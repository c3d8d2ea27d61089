"""``tagframe.ask``: from a question to an answer over tables that nobody named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pandas as pd

from tagframe import config, results
from tagframe.answer.answer import Answer
from tagframe.answer.guard import dry_run, run_sql
from tagframe.answer.prompts import gen_prompt, syn_prompt
from tagframe.answer.query import Query, parse_query
from tagframe.engines.base import SQLLimits
from tagframe.errors import JoinError, LMError
from tagframe.lm import LM, Accept, Batch, Prompt, get_lm
from tagframe.operators import Step, arun, gather, run
from tagframe.operators.answers import parse_text
from tagframe.retrieval import RetrievedTables, retrieve_tables

if TYPE_CHECKING:
    from tagframe.corpus import Corpus

T = TypeVar("T")


def ask(
    question: str,
    corpus: Corpus | None = None,
    *,
    k: int | Literal["auto"] | None = None,
    method: str | None = None,
    limits: SQLLimits | None = None,
    **settings: Any,
) -> Answer:
    """Answer a question from the tables of a corpus.

    The tables are retrieved; ``syn`` asks the model for a :class:`~tagframe.answer.Query` over their schemas; ``exec``
    runs its SQL under the guard of :mod:`tagframe.answer.guard` (or merges the tables along their join plan) and then
    its operators; ``gen`` asks the model to answer from the rows, unless a last ``sem_agg`` has already written the
    answer.

    Args:
        question: in plain language.
        corpus: where to look; the configured corpus where None.
        k: how many tables, as in ``retrieve_tables``.
        method: the selector, as in ``retrieve_tables``.
        limits: rows and seconds that the SQL may take.
        **settings: as in :func:`tagframe.configure`, for this call.

    Raises:
        NotConfigured: no model or no corpus is given or configured.
        EmptyQuestion: the question has no words.
        LMError: the model gave no query that can run, or no answer.
        SQLFailed: the SQL passed its limits.
        RowsFailed: an operator has rows without an answer; what is finished is on the error.
    """
    with config.context(**settings):
        lm = get_lm()
        return run(_asked(question, corpus, k, method, lm, limits), lm, "ask")


async def aask(
    question: str,
    corpus: Corpus | None = None,
    *,
    k: int | Literal["auto"] | None = None,
    method: str | None = None,
    limits: SQLLimits | None = None,
    **settings: Any,
) -> Answer:
    """:func:`ask`, awaited: the event loop goes on, and cancelling stops what is not sent."""
    with config.context(**settings):
        lm = get_lm()
        return await arun(_asked(question, corpus, k, method, lm, limits), lm, "ask")


def answer_from(question: str, found: RetrievedTables, *, lm: LM, limits: SQLLimits | None = None) -> Answer:
    """Answer a question from tables that were retrieved already; see :func:`ask`, which raises the same."""
    return run(answer_steps(question, found, lm, limits), lm, "ask")


def _asked(
    question: str,
    corpus: Corpus | None,
    k: int | Literal["auto"] | None,
    method: str | None,
    lm: LM,
    limits: SQLLimits | None,
) -> Step[Answer]:
    found = retrieve_tables(config.require_corpus(corpus), question, k=k, method=method, lm=lm)
    return (yield from answer_steps(question, found, lm, limits))


def answer_steps(question: str, found: RetrievedTables, lm: LM, limits: SQLLimits | None = None) -> Step[Answer]:
    """:func:`answer_from` as a step, for the drivers of :mod:`tagframe.operators`: ``syn``, ``exec`` and ``gen``."""
    tag = _TAG(found, lm, limits or SQLLimits())
    query = yield from tag.syn(question)
    executed = yield from tag.exec(query)
    return (yield from tag.gen(question, executed))


@dataclass(frozen=True)
class _Executed:
    """What ``exec`` hands to ``gen``: the rows, and the text that a last ``sem_agg`` made of them."""

    query: Query
    rows: pd.DataFrame
    text: str | None


@dataclass(frozen=True)
class _TAG:
    """``syn``, ``exec`` and ``gen`` over one set of tables, each a step."""

    found: RetrievedTables
    lm: LM
    limits: SQLLimits

    @property
    def table_ids(self) -> dict[str, str]:
        """Name in SQL → table id: the table's own name, or its id where two tables share a name."""
        profiles = [self.found.corpus.profile(hit.id) for hit in self.found.tables]
        names = [profile.name.casefold() for profile in profiles]
        return {
            profile.name if names.count(profile.name.casefold()) == 1 else profile.id: profile.id
            for profile in profiles
        }

    def syn(self, question: str) -> Step[Query]:
        """The query that the model writes; only one that compiles is taken."""
        corpus, table_ids = self.found.corpus, self.table_ids
        joins, merged_columns = self._merge()
        prompt = syn_prompt(
            question, {name: corpus.profile(table_id) for name, table_id in table_ids.items()}, joins, merged_columns
        )

        def accept(text: str) -> Query:
            return parse_query(text, check=lambda sql: dry_run(sql, corpus, table_ids), merged_columns=merged_columns)

        return (yield from _value(prompt, accept))

    def exec(self, query: Query) -> Step[_Executed]:
        """The rows of the query's SQL (or of the merged tables), after its operators."""
        if query.sql is None:
            rows = self.found.merge()
        else:
            rows = run_sql(query.sql, self.found.corpus, self.table_ids, self.limits)
        text, report = None, results.recall(rows, "merge_report")
        for call in query.operators:
            output = yield from call.step(rows, self.lm)
            if call.operator.ends:
                text = output.iat[0, 0]
            else:
                rows = output
        results.remember(rows, merge_report=report)
        return _Executed(query, rows, text if isinstance(text, str) else None)

    def gen(self, question: str, executed: _Executed) -> Step[Answer]:
        """The answer: the text of ``sem_agg``, or one that the model writes from the rows."""
        text = executed.text
        if text is None:
            prompt = gen_prompt(question, executed.rows)
            text = yield from _value(prompt, parse_text)
        report = results.recall(executed.rows, "merge_report")
        return Answer(question, text, executed.rows, executed.query, self.found, report)

    def _merge(self) -> tuple[list[str], list[str] | None]:
        """How the tables join, and the columns of the merged table; None where rows would repeat, or none connect."""
        joins = [f"{pair.left} = {pair.right}" for pair in self.found.joins]
        try:
            # What is lost is warned of when the merge is made, if it is.
            merged = self.found.merge(limit=1, on_loss="allow")
        except JoinError:
            return joins, None
        return joins, [str(column) for column in merged.columns]


def _value(prompt: Prompt, accept: Accept[T]) -> Step[T]:
    """The answer to one prompt.

    Raises:
        LMError: there is none.
    """
    completion = (yield from gather(Batch([prompt], accept)))[0]
    if completion.value is None:
        raise completion.error or LMError("the model gave neither an answer nor an error")
    return completion.value
