"""Doubts about an answer: named reasons with their facts, found without a model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pandas as pd
from sqlglot import exp

from tagframe import results
from tagframe.answer.guard import Reader
from tagframe.answer.readings import other_readings
from tagframe.answer.sql_tree import written
from tagframe.answer.statement_facts import ColumnOf, StatementFacts, facts_of_statement
from tagframe.engines.base import SQLLimits
from tagframe.errors import CorpusError, SQLFailed, UnsafeSQL
from tagframe.joins import Components, keys_between
from tagframe.retrieval import RetrievedTables
from tagframe.retrieval.links import home_of, tables_around

if TYPE_CHECKING:
    from tagframe.answer.execution import Execution

Reason = Literal["table", "database", "value", "empty", "join", "unsure", "reading"]

LIKELY = 0.5
"""From this chance on, a table is likely to be needed."""
RIVAL = 0.1
"""From this chance on, a table of another database is reported: of fifty answers, it caught the one from a wrong
database."""
_LEAST_KEY = 0.3
_MOST_VALUES = 12
_RIVALS = 3
_LIMITS = SQLLimits(rows=1, seconds=1.0)


@dataclass(frozen=True)
class Doubt:
    """One reason to doubt an answer.

    Attributes:
        reason: "table" (a likelier table is not read), "database" (another database may be meant), "value" (a column is
            compared with a value that no cell has), "empty" (no rows, or only NULL), "join" (a join on a low-confidence
            key), "unsure" (LM functions could not judge some values), "reading" (another reading of the question gives
            other rows).
        facts: in a sentence.
    """

    reason: Reason
    facts: str

    def __str__(self) -> str:
        return self.facts


def doubts_of(rows: pd.DataFrame, retrieved: RetrievedTables | None) -> tuple[Doubt, ...]:
    """The doubts about the result of a statement.

    No model is asked. Further statements are run, for at most a second each: whether a value is in a column, and the
    result of other readings of the question.

    Args:
        rows: the result of :func:`tagframe.exec_sql`; for other frames there are no doubts.
        retrieved: the tables that were shown for writing the statement, if they were retrieved.
    """
    execution = results.recall(rows, "execution")
    if execution is None or execution.reader is None:
        return ()
    found: list[Doubt] = []
    if retrieved is not None:
        found += _of_tables(execution, retrieved)
    asked = facts_of_statement(execution.query.sql, execution.reader)
    with suppress(CorpusError):  # a source that is gone meanwhile costs no answer
        found += _of_joins(asked, execution.reader)
    found += _of_values(asked, execution.reader)
    if bool(rows.isna().all(axis=None)):
        found.append(Doubt("empty", f"the statement gives {'only NULL' if len(rows) else 'no rows'}"))
    found += [
        Doubt("unsure", f"{stage.unsure + stage.failed:,} of {stage.values:,} values of {stage.call} were not judged")
        for stage in execution.stages
        if stage.unsure + stage.failed
    ]
    found += [Doubt("reading", text) for text in other_readings(execution.sql, rows, execution.reader)]
    return tuple(found)


def _of_tables(execution: Execution, retrieved: RetrievedTables) -> Iterator[Doubt]:
    """Doubts about likely tables that are not read, and about the database."""
    corpus, used = retrieved.corpus, set(execution.tables)
    chances = {part: hit.probability or 0.0 for hit in retrieved.tables for part in (hit.id, *hit.parts)}
    if not used or not used <= set(chances):
        return  # the user's own choice, or a table that was looked for afterwards
    databases = {home_of(corpus, id) for id in used}
    best: dict[str, tuple[float, str]] = defaultdict(lambda: (0.0, ""))
    for hit in retrieved.tables:
        if not used & {hit.id, *hit.parts}:
            database = home_of(corpus, hit.id)
            best[database] = max(best[database], (hit.probability or 0.0, hit.id))
    weakest = min(used, key=lambda id: chances[id])
    own = max((best[database] for database in databases), default=(0.0, ""))
    if own[0] >= LIKELY > chances[weakest]:
        yield Doubt(
            "table", f"{own[1]} ({own[0]:.0%} likely) is not read; {weakest} ({chances[weakest]:.0%} likely) is"
        )
    rivals = sorted(known for database, known in best.items() if database not in databases and known[0] >= RIVAL)
    if rivals:
        candidates = ", ".join(f"{id} ({chance:.0%} likely)" for chance, id in rivals[: -_RIVALS - 1 : -1])
        yield Doubt("database", f"another database may be meant: {candidates}")


def _of_joins(asked: StatementFacts, reader: Reader) -> Iterator[Doubt]:
    """Doubts about joined columns that are probably not a key."""
    tables = sorted({table for pair in asked.joined for table, _ in pair})
    if len(tables) < 2:
        return
    keys = keys_between(reader.corpus, tables, tables_around(reader.corpus, tables)).keys
    parts = Components(column for pair in asked.joined for column in pair)
    chances: dict[frozenset[ColumnOf], float] = defaultdict(float)
    for key in keys:
        for mine, theirs in zip(key.left_columns, key.right_columns, strict=True):
            ends = (key.left_table, mine), (key.right_table, theirs)
            chances[frozenset(ends)] = max(chances[frozenset(ends)], key.score)
            if key.score >= _LEAST_KEY:
                for end in ends:
                    parts.parent.setdefault(end, end)
                parts.join(*ends)
    for one, other in asked.joined:
        if parts.root(one) == parts.root(other):
            continue
        facts = f"low-confidence key {_dotted(one)} = {_dotted(other)} ({chances[frozenset((one, other))]:.0%})"
        rival = max((key for key in keys if key.tables == {one[0], other[0]}), key=lambda key: key.score, default=None)
        if rival is not None and rival.score >= LIKELY:
            facts += f"; likelier: {rival.left} = {rival.right} ({rival.score:.0%})"
        yield Doubt("join", facts)


def _dotted(column: ColumnOf) -> str:
    return ".".join(column)


def _of_values(asked: StatementFacts, reader: Reader) -> Iterator[Doubt]:
    """Doubts about texts that a column is compared with and that no cell has."""
    for held in asked.held[:_MOST_VALUES]:
        one = exp.alias_(exp.Literal.number(1), "one")
        table = exp.Table(this=exp.to_identifier(held.table, quoted=True))
        select = exp.Select(expressions=[one]).from_(table).where(held.test.copy()).limit(1)
        try:
            is_there = len(reader.run(written(select, reader.engine.dialect.name), _LIMITS)) > 0
        except (SQLFailed, UnsafeSQL, CorpusError):
            return  # the table is too large to look, or gone
        if not is_there:
            words = ", ".join(repr(word) for word in held.words[:3])
            yield Doubt("value", f"no cell of {held.table}.{held.column} has the value {words}")
