"""What a corpus can do by rooms above it: ``corpus.retrieve_tables(question)``."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from tagframe import config, retrieval
from tagframe.config import CallSettings
from tagframe.corpus import Corpus
from tagframe.doors import shown_as
from tagframe.learning import forget, learn
from tagframe.lm import Quote
from tagframe.retrieval import RetrievedTables, RetrieveOptions

if TYPE_CHECKING:
    from tagframe.agents.schemas import Format
    from tagframe.agents.tools import Tools
    from tagframe.answer.annotating import Annotated
    from tagframe.lm import Budget

__all__ = ["annotate", "forget", "learn", "retrieve_tables", "tools"]


@overload
def retrieve_tables(
    self: Corpus,
    question: str,
    *,
    anchor: str | None = ...,
    quote: Literal[False] = ...,
    **options: Unpack[RetrieveOptions],
) -> RetrievedTables: ...
@overload
def retrieve_tables(
    self: Corpus, question: str, *, anchor: str | None = ..., quote: Literal[True], **options: Unpack[RetrieveOptions]
) -> Quote: ...
@overload
def retrieve_tables(
    self: Corpus, question: str, *, anchor: str | None = ..., quote: bool, **options: Unpack[RetrieveOptions]
) -> RetrievedTables | Quote: ...
@shown_as(retrieval.retrieve_tables, "corpus")
def retrieve_tables(
    self: Corpus, question: str, *, anchor: str | None = None, quote: bool = False, **options: Unpack[RetrieveOptions]
) -> RetrievedTables | Quote:
    """The tables of this corpus that answer a question together, as :func:`tagframe.retrieve_tables` finds them."""
    return retrieval.retrieve_tables(question, self, anchor=anchor, quote=quote, **options)


@overload
def annotate(self: Corpus, *, quote: Literal[False] = ..., **settings: Unpack[CallSettings]) -> Annotated: ...
@overload
def annotate(self: Corpus, *, quote: Literal[True], **settings: Unpack[CallSettings]) -> Quote: ...
def annotate(self: Corpus, *, quote: bool = False, **settings: Unpack[CallSettings]) -> Annotated | Quote:
    """Have a model write what each table holds, and each column whose name does not say it.

    It reads names, types, a few values of columns that are not hidden, keys, and what was learned of statements. What
    it writes is searched and shown to models like a description, begins with "≈", and stands below what a person says.
    A table that is annotated is not asked about again while its columns stay, and one in pieces is asked about once.

    Args:
        quote: what it would cost instead, sending nothing.
        **settings: as in :func:`tagframe.configure`, for this call: ``lm="openai/gpt-4.1"``.

    Returns:
        How many tables and columns it wrote of, and of which tables it gave no usable answer. What was answered is
        kept, also where a budget, an interruption or a store that lacks answers ends it.

    Raises:
        NotConfigured: there is no model.
        ReplayMiss: ``lm="replay:STORE"`` lacks answers: the prompts are noted in it, for ``tagframe lm export``.
    """
    from tagframe.answer.annotating import annotated, quoted
    from tagframe.lm import get_lm

    with config.of_call(annotate, settings):
        model = get_lm()
        return quoted(self, model) if quote else annotated(self, model)


@overload
def tools(
    self: Corpus,
    *,
    format: None = ...,
    ask: bool = ...,
    learn: bool = ...,
    budget: Budget | float | None = ...,
    to: str | PathLike[str] | None = ...,
) -> Tools: ...
@overload
def tools(
    self: Corpus,
    *,
    format: Format,
    ask: bool = ...,
    learn: bool = ...,
    budget: Budget | float | None = ...,
    to: str | PathLike[str] | None = ...,
) -> list[dict[str, Any]]: ...
def tools(
    self: Corpus,
    *,
    format: Format | None = None,
    ask: bool = False,
    learn: bool = False,
    budget: Budget | float | None = None,
    to: str | PathLike[str] | None = None,
) -> Tools | list[dict[str, Any]]:
    """This corpus as tools for an agent: find tables, describe them, plan joins, run SQL, merge, look for values.

    Each tool is a plain function with types and a docstring that is made for a model, so that any framework takes it;
    it gives a plain dictionary of 8,000 tokens at most. ``tools.call(name, arguments)`` runs one as a model asks for
    it. None writes to a source, and of hidden columns, also those that are hidden from models only, none tells a cell.

    >>> import pandas as pd, tagframe as tf
    >>> tools = tf.open_corpus({"film": pd.DataFrame({"title": ["Low Tide", "Salt Road"]})}).tools()
    >>> [tool.__name__ for tool in tools][:4]
    ['find_tables', 'describe_tables', 'plan_joins', 'run_sql']
    >>> tools.call("run_sql", {"sql": "SELECT COUNT(*) AS n FROM film"})["rows"]
    [[2]]

    Args:
        format: "openai" or "anthropic" gives the list of dictionaries instead that the API of a provider takes.
        ask: whether there is a tool that has the configured model answer a question; it needs a budget.
        learn: whether there is a tool that keeps a statement as the answer to a question.
        budget: what the model may cost, all calls of all tools together; a number is dollars. Without one no model is
            asked, nor do statements have LM functions.
        to: a folder in which new Parquet files may be written; without one there are none.

    Raises:
        InvalidArgument: no such format, ``ask`` without a budget, or ``to`` is no folder.
    """
    from tagframe.agents.tools import Tools
    from tagframe.lm import Budget

    account = budget if isinstance(budget, Budget | None) else Budget(dollars=budget)
    made = Tools(self, ask, learn, account, None if to is None else Path(to).expanduser())
    return made if format is None else made.schemas(format)
