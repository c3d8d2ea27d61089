"""Estimates of the cost of a query, before it is paid for."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

from tagframe import results
from tagframe.answer.query import can_run
from tagframe.answer.steps import QuotingModels, as_step, driver, metered
from tagframe.embed import quoted_embeddings
from tagframe.engines.base import SQLLimits
from tagframe.errors import RowsFailed, TooManyRowsWarning, warn
from tagframe.lm import Quote, QuoteEnds
from tagframe.operators import run

_GUESS = '{"text": "an answer of some twenty words, with a name and a number in it", "values": ["a name"]}'


_ROWS = 10**7
"""The guess for a result in a quote, of which only the possible rows are known."""


def quote_of(query: Any, execute: Any, gen: Any = None, question: str = "") -> Quote:
    """The cost of a query that is already written; nothing is sent.

    The result of an LM function is not known in advance. So every filter is assumed to pass all rows, which gives an
    upper bound for the calls after it. If LIMIT allows asking about the first rows only, as many rows are counted as
    are needed if all pass. A warning is given if there may be more rows than the limits allow.

    Args:
        query: the input of ``exec``.
        execute: ``exec``.
        gen: ``gen``, or None.
        question: for ``gen``.

    Raises:
        UnsafeSQL, SQLFailed: as ``exec`` does.
        NotConfigured: a model is needed, and none is set.
    """
    if not can_run(query):
        return Quote(query=query)
    quoting = QuotingModels(lambda prompt: _GUESS)
    limits = getattr(execute, "limits", None)
    if isinstance(limits, SQLLimits):
        execute = replace(execute, limits=replace(limits, rows=_ROWS))
    stages: tuple[Any, ...] = ()
    with contextlib.suppress(QuoteEnds, RowsFailed), quoted_embeddings() as embedded:
        rows = run(as_step(execute, query), driver(quoting))
        if isinstance(limits, SQLLimits) and len(rows) > limits.rows:
            fact = f"the statement may give {len(rows):,} rows; at most {limits.rows:,} are allowed"
            warn(f"{fact}. Narrow it, or raise SQLLimits(rows=…)", TooManyRowsWarning)
        execution = results.recall(rows, "execution")
        # The result of an audit is not known before it is paid for.
        stages = () if execution is None else tuple(replace(stage, remarks=()) for stage in execution.stages)
        if gen is not None:
            run(metered(as_step(gen, question, rows), "gen", question, lambda use: None), driver(quoting))
    return replace(sum(embedded, quoting.quote), query=query, stages=stages)
