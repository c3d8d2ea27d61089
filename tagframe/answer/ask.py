"""``tagframe.ask``: answers a question from a corpus, without naming tables.

A question goes from :func:`ask` to :meth:`TAG.steps <tagframe.answer.tag.TAG.steps>` of the pipeline that
:func:`automatic` makes. There ``syn`` (:meth:`Synthesizer.steps <tagframe.answer.synthesis.Synthesizer.steps>`) writes
a query for it, ``exec`` (:meth:`ExecSQL.steps <tagframe.answer.execution.ExecSQL.steps>`) runs the query, and ``gen``
(:meth:`Generator.steps <tagframe.answer.generation.Generator.steps>`) answers from its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, TypeAlias, Unpack, overload

from tagframe import config
from tagframe.answer.answer import Answer
from tagframe.answer.execution import exec_sql
from tagframe.answer.generation import Generator
from tagframe.answer.synthesis import Synthesizer
from tagframe.answer.tag import TAG
from tagframe.config import SearchSettings
from tagframe.corpus import Corpus
from tagframe.engines.base import SQLLimits
from tagframe.errors import EmptyQuestion, FactUnknown, InvalidArgument
from tagframe.lm import Quote
from tagframe.operators import OnError, RowsPerCall
from tagframe.retrieval import RetrievedTables

Searched: TypeAlias = "Corpus | RetrievedTables"
"""Where to look for an answer."""


class AskOptions(SearchSettings, total=False):
    """The keywords of :func:`ask`, except ``quote``."""

    limits: SQLLimits | None
    on_error: OnError
    rows_per_call: RowsPerCall
    text: bool
    evidence: str


_OWN = AskOptions.__annotations__.keys() - SearchSettings.__annotations__.keys()


def automatic(
    corpus: Searched,
    *,
    limits: SQLLimits | None = None,
    on_error: OnError = "raise",
    rows_per_call: RowsPerCall = "auto",
    text: bool = False,
    evidence: str = "",
) -> TAG:
    """The pipeline that :func:`ask` runs: ``automatic(corpus)("Which …?")``; the arguments are those of :func:`ask`."""
    if not isinstance(evidence, str):
        raise InvalidArgument(f"evidence must be a text; got {evidence!r:.200}")
    if isinstance(corpus, RetrievedTables):
        syn, whole = Synthesizer(corpus.corpus, found=corpus), corpus.corpus
    else:
        syn, whole = Synthesizer(corpus), corpus
    runs = exec_sql(whole, limits=limits, on_error=on_error, rows_per_call=rows_per_call)
    return TAG(replace(syn, evidence=evidence), runs, Generator(text))


@overload
def ask(
    question: str, corpus: Searched | None = ..., *, quote: Literal[False] = ..., **options: Unpack[AskOptions]
) -> Answer: ...
@overload
def ask(
    question: str, corpus: Searched | None = ..., *, quote: Literal[True], **options: Unpack[AskOptions]
) -> Quote: ...
def ask(
    question: str,
    corpus: Corpus | RetrievedTables | None = None,
    *,
    limits: SQLLimits | None = None,
    on_error: OnError = "raise",
    rows_per_call: RowsPerCall = "auto",
    text: bool = False,
    evidence: str = "",
    quote: bool = False,
    **settings: Unpack[SearchSettings],
) -> Answer | Quote:
    """Answer a question from the tables of a corpus.

    ``syn`` asks the model for one SELECT over the tables, or for a verified statement (:meth:`tagframe.Corpus.verify`)
    with its parameters. The prompt shows all tables if the names of their columns fit 12,000 characters, in the
    same words for every question, else the twelve best for the question.
    ``exec`` checks the statement and runs it under limits (:mod:`tagframe.answer.guard`). If it gives no rows, the
    model is shown which condition left none, and may write another statement. ``gen`` asks the model to answer from
    the rows, with a text and with plain values. If ``syn`` marks the rows as the answer, no further call is made.
    If all tables were shown and lack what the question needs, the answer says so, without a value, as a doubt
    (:attr:`Answer.lacking`).

    Args:
        question: in plain language.
        corpus: where to look; None for the configured corpus. The result of ``retrieve_tables`` limits the question to
            its tables, as in ``ask(question, corpus.tables.tag.retrieve_tables(question, k=3))``.
        limits: the most rows, seconds and memory of a statement.
        on_error: what happens to values for which an LM function of the statement has no answer: ``"raise"`` an error
            after all others are asked, ``"keep"`` them as NULL, or ``"drop"`` their rows.
        rows_per_call: values of LM functions in one prompt, as in :func:`tagframe.exec_sql`; None for one.
        text: have the model write a text even if the rows are the answer.
        evidence: what words of the question mean in these data, in a sentence, as in ``retrieve_tables``; the tables
            are searched for with it, and ``syn`` is told.
        quote: give a :class:`~tagframe.lm.Quote` instead: the statement (``syn`` is asked for it), the calls of its LM
            functions, and the cost of these and of the answer.
        **settings: as in :func:`tagframe.configure`, for this call.

    Raises:
        NotConfigured: no model or no corpus is given or configured.
        InvalidArgument: ``evidence`` is no text.
        EmptyQuestion: the question has no words.
        EmptyCorpus: no table has rows.
        LMError: the model gave no query that can run, or no answer.
        SQLFailed: the SQL exceeded its limits.
        RowsFailed: an LM function has values without an answer.
    """
    own = AskOptions(limits=limits, on_error=on_error, rows_per_call=rows_per_call, text=text, evidence=evidence)
    with _pipeline(ask, corpus, {**own, **settings}) as tag:
        return tag(question, quote=True) if quote else tag(question)


def follow_up(answer: Answer, question: str, options: AskOptions, *, quote: bool) -> Answer | Quote:
    """See :meth:`tagframe.answer.Answer.follow_up`."""
    reader = None if answer.execution is None else answer.execution.reader
    if reader is None:
        raise FactUnknown(
            "the corpus of this answer is not known here: it was pickled, or not answered by tagframe.ask"
        )
    if not question.strip():
        raise EmptyQuestion(f"the question has no words: {question!r}")
    with _pipeline(ask, reader.corpus, options) as tag:
        syn = replace(tag.syn, before=answer.query, before_rows=answer.rows)  # type: ignore[type-var]
        after = replace(tag, syn=syn)
        whole = f"{answer.question.strip()} Then: {question.strip()}"
        return after(whole, quote=True) if quote else after(whole)


@overload
async def aask(
    question: str, corpus: Searched | None = ..., *, quote: Literal[False] = ..., **options: Unpack[AskOptions]
) -> Answer: ...
@overload
async def aask(
    question: str, corpus: Searched | None = ..., *, quote: Literal[True], **options: Unpack[AskOptions]
) -> Quote: ...
async def aask(
    question: str, corpus: Searched | None = None, *, quote: bool = False, **options: Unpack[AskOptions]
) -> Answer | Quote:
    """:func:`ask`, awaited, with the same keywords; the event loop is not blocked; cancelling stops new requests."""
    with _pipeline(aask, corpus, options) as tag:
        return await (tag.awaited(question, quote=True) if quote else tag.awaited(question))


@overload
def ask_many(
    questions: Sequence[str],
    corpus: Searched | None = ...,
    *,
    quote: Literal[False] = ...,
    **options: Unpack[AskOptions],
) -> list[Answer | Exception]: ...
@overload
def ask_many(
    questions: Sequence[str], corpus: Searched | None = ..., *, quote: Literal[True], **options: Unpack[AskOptions]
) -> Quote: ...
def ask_many(
    questions: Sequence[str], corpus: Searched | None = None, *, quote: bool = False, **options: Unpack[AskOptions]
) -> list[Answer | Exception] | Quote:
    """:func:`ask` for many questions at once: the prompts of all questions are sent concurrently.

    The keywords are those of :func:`ask`.

    Returns:
        One answer per question, in order; if one fails, its error takes its place. With ``quote=True``, the sum of the
        cost of each question alone; a question without a query adds nothing.

    Raises:
        NotConfigured: no corpus is given or configured.
        ReplayMiss: with ``lm="replay:STORE"``, after the missing requests of all questions are noted, so that one
            export contains them all; each request names its stage and question.
    """
    with _pipeline(ask_many, corpus, options) as tag:
        return tag.many(questions, quote=True) if quote else tag.many(questions)


@contextmanager
def _pipeline(function: Callable[..., Any], corpus: Searched | None, options: Mapping[str, Any]) -> Iterator[TAG]:
    """The pipeline for the arguments of a call, within its settings."""
    own = {name: value for name, value in options.items() if name in _OWN}
    with config.of_call(function, {name: value for name, value in options.items() if name not in own}, also=_OWN):
        found = corpus if isinstance(corpus, RetrievedTables) else config.require_corpus(corpus)
        yield automatic(found, **own)
