"""What a query would cost, before it is paid."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

from tagframe import results
from tagframe.answer.metering import as_step, metered
from tagframe.answer.step_models import QuotingModels, driver
from tagframe.engines.base import SQLLimits
from tagframe.errors import RowsFailed, TooManyRowsWarning, warn
from tagframe.lm import Quote, QuoteEnds, quoted_embeddings
from tagframe.operators import run

_GUESS = '{"text": "an answer of some twenty words, with a name and a number in it", "values": ["a name"]}'


_ROWS = 10**7
"""Of a result in a quote, of which no more is known than what might be in it."""


def quote_of(query: Any, execute: Any, gen: Any = None, question: str = "") -> Quote:
    """What a query that is written already would cost; nothing is sent.

    What an LM function would leave is not known before it is asked: a filter is taken to hold for all, so that what
    follows it is asked at most so much; and where LIMIT allows to ask about the first rows only, as many are counted as
    would do if all passed. A warning says where that gives more rows than the limits allow.

    Args:
        query: what ``exec`` takes.
        execute: ``exec``.
        gen: ``gen``, or None.
        question: what ``gen`` would be asked.

    Raises:
        UnsafeSQL, SQLFailed: as ``exec`` does.
        NotConfigured: there is something to ask, and no model is set.
    """
    quoting = QuotingModels(lambda prompt: _GUESS)
    limits = getattr(execute, "limits", None)
    if isinstance(limits, SQLLimits):
        execute = replace(execute, limits=replace(limits, rows=_ROWS))
    stages: tuple[Any, ...] = ()
    with contextlib.suppress(QuoteEnds, RowsFailed), quoted_embeddings() as embedded:
        rows = run(as_step(execute, query), driver(quoting))
        if isinstance(limits, SQLLimits) and len(rows) > limits.rows:
            told = f"the statement may give {len(rows):,} rows, and is refused if it gives more than {limits.rows:,}"
            warn(f"{told}: narrow it, or raise SQLLimits(rows=…)", TooManyRowsWarning)
        execution = results.recall(rows, "execution")
        # What an audit would find is not known before it is paid.
        stages = () if execution is None else tuple(replace(stage, remarks=()) for stage in execution.stages)
        if gen is not None:
            run(metered(as_step(gen, question, rows), "gen", question, lambda use: None), driver(quoting))
    return replace(sum(embedded, quoting.quote), query=query, stages=stages)
