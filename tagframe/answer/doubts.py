"""Doubts about an answer: other statements with other results, and facts; found without a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pandas as pd
from sqlglot import exp

from tagframe import results
from tagframe.answer.alternatives import Comparison, Doubt
from tagframe.answer.generation import is_empty
from tagframe.answer.guard import Reader
from tagframe.answer.metrics import defined_twice, is_called_as_data, uses
from tagframe.answer.other_statements import Subject, alternatives, repeated_rows
from tagframe.answer.sql_tree import written
from tagframe.engines.sql_reader import ReadStatement
from tagframe.errors import CorpusError
from tagframe.retrieval import RetrievedTables
from tagframe.retrieval.methods.auto import NOTHING_FITS

if TYPE_CHECKING:
    from tagframe.answer.query import Query


def doubts_of(rows: pd.DataFrame, retrieved: RetrievedTables | None, question: str = "") -> tuple[Doubt, ...]:
    """The doubts about the result of a statement.

    No model is asked. Other statements are run and compared (:mod:`tagframe.answer.alternatives`).

    Args:
        rows: the result of :func:`tagframe.exec_sql`; for other frames there are no doubts.
        retrieved: the tables that were retrieved for the question, if they were.
        question: that the statement answers.
    """
    if (subject := _subject_of(rows, question)) is None:
        return ()
    execution, reader = subject.execution, subject.reader
    facts = [Doubt("lacking", text) for text in _lacks(subject.statement, retrieved)]
    with suppress(CorpusError):  # a source that is gone meanwhile costs no answer
        facts += subject.comparison.doubts(alternatives(subject))
    if is_empty(rows) and not execution.is_rightly_empty(rows):
        facts.append(Doubt("empty", f"the statement gives {'only NULL' if len(rows) else 'no rows'}"))
    facts += [
        Doubt("unsure", f"{stage.unsure + stage.failed:,} of {stage.values:,} values of {stage.call} were not judged")
        for stage in execution.stages
        if stage.unsure + stage.failed
    ]
    return (*facts, *(Doubt("metric", text) for text in _of_metrics(execution.query, reader)))


def repeats_of(rows: pd.DataFrame) -> tuple[Doubt, ...]:
    """The doubts about rows that a join repeats and the statement adds up."""
    subject = _subject_of(rows, "")
    return () if subject is None else tuple(subject.comparison.doubts(repeated_rows(subject)))


def _subject_of(rows: pd.DataFrame, question: str) -> Subject | None:
    execution = results.recall(rows, "execution")
    if execution is None or execution.reader is None:
        return None
    comparison = Comparison(rows, execution.reader, execution.seconds)
    return Subject(execution, rows, question, comparison, execution.reader)


def _of_metrics(query: Query, reader: Reader) -> Iterator[str]:
    """Metrics that the question names and that have several definitions, or that the statement does not compute."""
    yield from (twice := defined_twice(query.metrics))
    dialect = reader.engine.dialect.name
    for metric in query.metrics if not twice else ():
        if uses(query.sql, metric, dialect) is False and not is_called_as_data(metric, reader.corpus):
            yield f"the question names the metric {metric}, which the statement does not compute"


def lacks_of(query: Any) -> Iterator[Doubt]:
    """What ``syn`` says that the tables lack."""
    for what in getattr(query, "lacking", ()):
        yield Doubt("lacking", f"the tables lack: {what}")


def _lacks(statement: ReadStatement | None, retrieved: RetrievedTables | None) -> Iterator[str]:
    """What the tables seem to lack: nothing fits the question, or the statement makes the answer up."""
    if retrieved is not None and retrieved.note.startswith(NOTHING_FITS):
        yield retrieved.note.partition(";")[0]
    if statement is None:
        return
    if not statement.reads_tables:
        yield "the statement reads no table"
        return
    made = [item for item in statement.items if not item.find(exp.Column, exp.Star, exp.Query, exp.Anonymous)]
    if made and not isinstance(statement.tree.parent, exp.Subquery):
        yield f"the statement itself gives {', '.join(written(item.unalias()) for item in made)}, read from no column"


def unread_values(values: Sequence[Any], rows: pd.DataFrame, question: str) -> Iterator[Doubt]:
    """The texts among a model's values that stand in no row of the result, nor in the question."""
    cells = [str(cell).casefold() for name in rows for cell in rows[name].dropna() if isinstance(cell, str)]
    for value in dict.fromkeys(one for one in values if isinstance(one, str) and one.strip()):
        word = value.strip().casefold()
        if (
            cells
            and word not in question.casefold()
            and not any(word in cell or cell in word for cell in cells if cell)
        ):
            yield Doubt("text", f"{value!r:.80} stands in no row of the result")
