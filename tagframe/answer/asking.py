"""``tagframe.ask``: from a question to an answer over tables that nobody named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from tagframe import config
from tagframe.answer.answer import Answer
from tagframe.answer.execution import exec_sql
from tagframe.answer.generation import Generator
from tagframe.answer.synthesis import Synthesizer
from tagframe.answer.tag import TAG
from tagframe.engines.base import SQLLimits
from tagframe.retrieval import RetrievedTables

if TYPE_CHECKING:
    from tagframe.corpus import Corpus

HowMany = int | Literal["auto"] | None


def automatic(
    corpus: Corpus | RetrievedTables,
    *,
    k: HowMany = None,
    method: str | None = None,
    limits: SQLLimits | None = None,
) -> TAG:
    """The pipeline that :func:`ask` runs: ``automatic(corpus)("Which …?")``; the arguments are those of :func:`ask`."""
    if isinstance(corpus, RetrievedTables):
        return TAG(Synthesizer(corpus.corpus, found=corpus), exec_sql(corpus.corpus, limits=limits), Generator())
    return TAG(Synthesizer(corpus, k, method), exec_sql(corpus, limits=limits), Generator())


def ask(
    question: str,
    corpus: Corpus | RetrievedTables | None = None,
    *,
    k: HowMany = None,
    method: str | None = None,
    limits: SQLLimits | None = None,
    **settings: Any,
) -> Answer:
    """Answer a question from the tables of a corpus.

    ``syn`` asks the model for one SELECT over the tables: all of them where their schemas fit 8,000 tokens, else the
    ten best for the question. ``exec`` runs it under the guard of :mod:`tagframe.answer.guard`. Where it gives no rows,
    the model is told which condition left none, and may write another one. ``gen`` asks the model to answer from the
    rows, with a text and with plain values.

    Args:
        question: in plain language.
        corpus: where to look; the configured corpus where None. Tables that ``retrieve_tables`` has found are those
            that are asked.
        k: how many tables ``syn`` is shown, as in ``retrieve_tables``.
        method: how they are chosen, as in ``retrieve_tables``.
        limits: rows, seconds and memory that a statement may take.
        **settings: as in :func:`tagframe.configure`, for this call.

    Raises:
        NotConfigured: no model or no corpus is given or configured.
        EmptyQuestion: the question has no words.
        EmptyCorpus: no table has rows.
        LMError: the model gave no query that can run, or no answer.
        SQLFailed: the SQL passed its limits.
        RowsFailed: an LM function has values without an answer.
    """
    with config.context(**settings):
        found = config.require_corpus(corpus) if not isinstance(corpus, RetrievedTables) else corpus
        return automatic(found, k=k, method=method, limits=limits)(question)


async def aask(
    question: str,
    corpus: Corpus | RetrievedTables | None = None,
    *,
    k: HowMany = None,
    method: str | None = None,
    limits: SQLLimits | None = None,
    **settings: Any,
) -> Answer:
    """:func:`ask`, awaited: the event loop goes on, and cancelling stops what is not sent."""
    with config.context(**settings):
        found = config.require_corpus(corpus) if not isinstance(corpus, RetrievedTables) else corpus
        return await automatic(found, k=k, method=method, limits=limits).awaited(question)


def ask_many(
    questions: Sequence[str],
    corpus: Corpus | RetrievedTables | None = None,
    *,
    k: HowMany = None,
    method: str | None = None,
    limits: SQLLimits | None = None,
    **settings: Any,
) -> list[Answer | Exception]:
    """:func:`ask` of many questions that advance together: what all of them ask of the model at once is sent at once.

    Returns:
        An answer a question, in order; where one fails, its error stands in its place.

    Raises:
        NotConfigured: no corpus is given or configured.
        ReplayMiss: with ``lm="replay:STORE"``, once all that can be asked of all questions is noted, so that one export
            serves them all; each request names its stage and question.
    """
    with config.context(**settings):
        found = config.require_corpus(corpus) if not isinstance(corpus, RetrievedTables) else corpus
        return automatic(found, k=k, method=method, limits=limits).many(questions)
