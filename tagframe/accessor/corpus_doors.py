"""Methods of a corpus that higher packages add: ``corpus.retrieve_tables(question)``."""

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
from tagframe.semantic.describe import describe
from tagframe.semantic.writing import to_ossie

if TYPE_CHECKING:
    from tagframe.agents.schemas import Format
    from tagframe.agents.tools import Tools
    from tagframe.answer.annotating import Annotated
    from tagframe.answer.checked_keys import CheckedKeys
    from tagframe.lm import Budget

__all__ = ["annotate", "check_keys", "describe", "forget", "learn", "retrieve_tables", "to_ossie", "tools"]


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
    """Find the tables of this corpus that answer a question together; see :func:`tagframe.retrieve_tables`."""
    return retrieval.retrieve_tables(question, self, anchor=anchor, quote=quote, **options)


@overload
def annotate(self: Corpus, *, quote: Literal[False] = ..., **settings: Unpack[CallSettings]) -> Annotated: ...
@overload
def annotate(self: Corpus, *, quote: Literal[True], **settings: Unpack[CallSettings]) -> Quote: ...
def annotate(self: Corpus, *, quote: bool = False, **settings: Unpack[CallSettings]) -> Annotated | Quote:
    """Have a model describe each table, and each column whose name does not explain it.

    The model reads names, types, a few values of columns that are not hidden, keys, and learned statements. Its
    descriptions begin with "≈". They are searched and shown to models like other descriptions, but a person's
    description counts more. An annotated table is not asked about again unless its columns change; a table in pieces is
    asked about once.

    Args:
        quote: return the cost instead; nothing is sent.
        **settings: as in :func:`tagframe.configure`, for this call: ``lm="openai/gpt-4.1"``.

    Returns:
        How many tables and columns were described, and the tables without a usable answer. Answers are kept even if a
        budget, an interruption or a replayed store without some answers ends the call.

    Raises:
        NotConfigured: no model is set.
        ReplayMiss: ``lm="replay:STORE"`` lacks answers; the prompts are noted in it for ``tagframe lm export``.
    """
    from tagframe.answer.annotating import annotated, quoted
    from tagframe.lm import get_lm

    with config.of_call(annotate, settings):
        model = get_lm()
        return quoted(self, model) if quote else annotated(self, model)


@overload
def check_keys(self: Corpus, *, quote: Literal[False] = ..., **settings: Unpack[CallSettings]) -> CheckedKeys: ...
@overload
def check_keys(self: Corpus, *, quote: Literal[True], **settings: Unpack[CallSettings]) -> Quote: ...
def check_keys(self: Corpus, *, quote: bool = False, **settings: Unpack[CallSettings]) -> CheckedKeys | Quote:
    """Have a model judge the keys of which names and values leave a doubt.

    These are the pairs of columns with a chance between 0.2 and 0.8, and those of a column with several almost equally
    likely ones. The model reads names, types, counts, a few values of columns that are not hidden, and the known keys
    of both tables; a dozen pairs are one prompt. It says yes, no, or that it cannot tell, and why. Its word is
    evidence: it moves every chance by the same odds, and ``corpus.keys.frame()`` shows it as ``origin`` "model". A
    person's word (``corpus.keys.add``, ``corpus.keys.forbid``) stands above it; ``corpus.keys.forget`` removes it. A
    pair is asked about once. It also works for schemas without rows.

    Args:
        quote: return the cost instead; nothing is sent.
        **settings: as in :func:`tagframe.configure`, for this call: ``lm="openai/gpt-4.1"``, ``budget=0.5``.

    Returns:
        How many pairs were judged, and those without a usable answer. Answers are kept even if a budget, an
        interruption or a replayed store without some answers ends the call.

    Raises:
        NotConfigured: no model is set.
        ReplayMiss: ``lm="replay:STORE"`` lacks answers; the prompts are noted in it for ``tagframe lm export``.
    """
    from tagframe.answer.checked_keys import checked, quoted
    from tagframe.lm import get_lm

    with config.of_call(check_keys, settings):
        model = get_lm()
        return quoted(self, model) if quote else checked(self, model)


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

    Each tool is a plain function with types and a docstring for a model, so any framework can use it. It returns a
    plain dictionary of at most 8,000 tokens. ``tools.call(name, arguments)`` runs a tool as a model requests it. Tools
    never write to a source, and never show cells of hidden columns, even if they are hidden from models only.

    >>> import pandas as pd, tagframe as tf
    >>> tools = tf.open_corpus({"film": pd.DataFrame({"title": ["Low Tide", "Salt Road"]})}).tools()
    >>> [tool.__name__ for tool in tools][:4]
    ['find_tables', 'describe_tables', 'plan_joins', 'run_sql']
    >>> tools.call("run_sql", {"sql": "SELECT COUNT(*) AS n FROM film"})["rows"]
    [[2]]

    Args:
        format: "openai" or "anthropic" returns a list of dictionaries in the format of that provider's API instead.
        ask: add a tool that has the configured model answer a question; it needs a budget.
        learn: add a tool that keeps a statement as the answer to a question.
        budget: the limit on the model's cost, for all calls of all tools together; a number is in dollars. Without a
            budget, no model is asked, and statements have no LM functions.
        to: a folder in which tools may write new Parquet files; without it, they write none.

    Raises:
        InvalidArgument: an unknown format, ``ask`` without a budget, or ``to`` is not a folder.
    """
    from tagframe.agents.tools import Tools
    from tagframe.lm import Budget

    account = budget if isinstance(budget, Budget | None) else Budget(dollars=budget)
    made = Tools(self, ask, learn, account, None if to is None else Path(to).expanduser())
    return made if format is None else made.schemas(format)
