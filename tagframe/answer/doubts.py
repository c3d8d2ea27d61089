"""Doubts about an answer: other statements with other results, and facts; found without a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import pandas as pd
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tagframe.answer.alternatives import Doubt
from tagframe.answer.other_statements import alternatives
from tagframe.answer.other_statements.limits import with_order
from tagframe.answer.other_statements.repeats import repeated_rows
from tagframe.answer.other_statements.subject import Subject
from tagframe.answer.other_statements.values import values
from tagframe.answer.sql_tree import written
from tagframe.answer.unmet import numbers_unmet, words_unmet
from tagframe.errors import CorpusError, SQLFailed, UnsafeSQL
from tagframe.retrieval.words import words_in


def doubts_of(rows: pd.DataFrame, question: str = "") -> tuple[Doubt, ...]:
    """The doubts about the result of a statement.

    No model is asked. Other statements are run and compared (:mod:`tagframe.answer.alternatives`).

    Args:
        rows: the result of :func:`tagframe.exec_sql`; for other frames there are no doubts.
        question: that the statement answers.
    """
    if (subject := Subject.of(rows, question)) is None:
        return ()
    facts: list[Doubt] = []
    with suppress(CorpusError, UnsafeSQL):  # a source that is gone meanwhile costs no answer
        facts += subject.comparison.doubts(alternatives(subject))  # first, since their time is limited
        facts = [*(Doubt("lacking", text) for text in _lacks(subject)), *facts]
    subject.reader.drop_copies()
    facts += [
        Doubt("unsure", f"{stage.unsure + stage.failed:,} of {stage.values:,} values of {stage.call} were not judged")
        for stage in subject.execution.stages
        if stage.unsure + stage.failed
    ]
    return tuple(facts)


def repeats_of(rows: pd.DataFrame) -> tuple[Doubt, ...]:
    """The doubts about rows that a join repeats and the statement adds up."""
    if (subject := Subject.of(rows)) is None:
        return ()
    found = tuple(subject.comparison.doubts(repeated_rows(subject)))
    subject.reader.drop_copies()
    return found


def unmatched_of(rows: pd.DataFrame) -> list[str]:
    """The texts that a statement without rows compares with and no cell has, each with the nearest cell."""
    subject, texts = Subject.of(rows), dict[str, str]()
    with suppress(CorpusError, SQLFailed, UnsafeSQL, SqlglotError):
        for one in () if subject is None else values(subject, optional=True):
            texts.setdefault(one.facts.partition(";")[0], re.split("[;:] with", one.facts)[0])
    return [text for text in texts.values() if text.startswith("no cell")]


def with_measure(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with what their statement is ordered by, where that is a number and they have none."""
    if (subject := Subject.of(rows)) is None or not rows.select_dtypes("number").empty:
        return rows
    ordered = None if subject.select is None else with_order(subject.select)
    more = None if ordered is None else subject.comparison.run(subject.sql(ordered))
    return rows if more is None else more


def _lacks(subject: Subject) -> Iterator[str]:
    """What the tables seem to lack: nothing stands for words of the question, or the statement makes the answer up."""
    statement = subject.statement
    if not statement.reads_tables:
        yield "the statement reads no table"
        return
    made = [item for item in statement.items if not item.find(exp.Column, exp.Star, exp.Query, exp.Anonymous)]
    if made and not isinstance(statement.tree.parent, exp.Subquery):
        yield f"the statement itself gives {', '.join(written(item.unalias()) for item in made)}, read from no column"
    if numbers := numbers_unmet(subject.question, f"{statement.tree.sql()} {subject.execution.query.sql}"):
        yield f"nothing in the statement stands for {' or '.join(map(repr, numbers))}"
    if words_in(subject.question) and (unmet := words_unmet(subject.question, statement, subject.reader.corpus)):
        yield f"nothing in the tables or the statement stands for {' or '.join(map(repr, unmet))}"


def unread_values(values: Sequence[Any], rows: pd.DataFrame, question: str) -> Iterator[Doubt]:
    """The texts among a model's values that stand in no row of the result, nor in the question."""
    cells = [str(cell).casefold() for name in rows for cell in rows[name].dropna() if isinstance(cell, str)]
    for value in dict.fromkeys(one for one in values if isinstance(one, str) and one.strip()):
        word = value.strip().casefold()
        is_read = word in question.casefold() or any(word in cell or cell in word for cell in cells if cell)
        if cells and not is_read:
            yield Doubt("text", f"{value!r:.80} stands in no row of the result")
