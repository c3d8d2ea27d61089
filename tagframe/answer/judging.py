"""What is known of an answer without a model: its doubts, and the chance that it is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from tagframe import results
from tagframe.answer.answer_confidence import answer_confidence
from tagframe.answer.doubts import Doubt, doubts_of, lacks_of
from tagframe.answer.synthesis import ranked
from tagframe.answer.tables_confidence import confidence_in
from tagframe.corpus import Corpus


@dataclass(frozen=True)
class Judged:
    """What is known of an answer.

    Attributes:
        doubts: reasons to doubt it.
        confidence: the chance that it is right.
        tables_confidence: the chance that its statement reads the right tables.
    """

    doubts: tuple[Doubt, ...] = ()
    confidence: float | None = None
    tables_confidence: float | None = None


def judge(query: Any, rows: pd.DataFrame, question: str, corpus: Corpus) -> Judged:
    """The doubts about rows as the answer to a question, and the chances of both.

    If no tables were retrieved, they are now: for their chances, and to see whether any fit.

    Args:
        query: that gave the rows.
        rows: its result, or no rows if it has no statement.
        question: as asked.
        corpus: whose tables it may read.
    """
    execution, found = results.recall(rows, "execution"), getattr(query, "retrieved", None)
    shown = found is not None
    if execution is None or execution.reader is None:
        return Judged(tuple(lacks_of(query)))
    if found is None and (found := getattr(query, "ranked", None)) is None:
        ids = set(getattr(query, "tables", {}).values()) & set(corpus.ids)
        found = ranked(question, corpus.subset(sorted(ids)) if ids else corpus)
    doubts = (*lacks_of(query), *doubts_of(rows, found, question, shown=shown))
    tables = None if found is None else confidence_in(execution.tables, found)
    return Judged(doubts, answer_confidence(question, execution, rows, found, tables, doubts), tables)
