"""Doubts about an answer: named reasons with their facts, found without a model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
from sqlglot import exp

from tagframe import results
from tagframe.answer.generation import is_empty
from tagframe.answer.guard import Reader
from tagframe.answer.lm_sql import has_functions
from tagframe.answer.metrics import defined_twice, is_called_as_data, uses
from tagframe.answer.readings import difference, other_readings, same_rows, ties_of
from tagframe.answer.rival_columns import rival_columns
from tagframe.answer.sql_tree import written
from tagframe.answer.tables_confidence import confidence_in
from tagframe.corpus import Corpus
from tagframe.engines.base import SQLLimits
from tagframe.engines.sql_reader import ColumnPair, ReadStatement, SourceColumn, TextTest
from tagframe.errors import CorpusError, SQLFailed, UnsafeSQL
from tagframe.joins import Components, keys_between
from tagframe.retrieval import RetrievedTables
from tagframe.retrieval.links import schema_of, tables_around
from tagframe.retrieval.methods.auto import NOTHING_FITS

if TYPE_CHECKING:
    from tagframe.answer.execution import Execution
    from tagframe.answer.query import Query

Compared = Sequence[tuple[SourceColumn, TextTest]]
"""Columns, and the texts that they are compared with."""
Reason = Literal["lacking", "table", "database", "value", "empty", "join", "unsure", "reading", "tie", "metric"]

LIKELY = 0.5
"""From this chance on, a table is likely to be needed."""
RIVAL = 0.1
"""From this chance on, a table of another database is reported: of fifty answers, it caught the one from a wrong
database."""
UNSURE = 0.15
"""With a lower chance of the tables that are read, a likelier table is reported in any case."""
_LEAST_KEY = 0.3
_MOST_VALUES = 12
_RIVALS = 3
_OTHER_SECONDS = 5.0
_LIMITS = SQLLimits(rows=1, seconds=1.0)


@dataclass(frozen=True)
class Doubt:
    """One reason to doubt an answer.

    Attributes:
        reason: "lacking" (the tables lack what the question needs, or a part of it), "table" (a likelier table is not
            read), "database" (another database may be meant), "value" (a column is compared with a value that no cell
            has), "empty" (no rows, or only NULL), "join" (a join on a low-confidence key), "unsure" (LM functions could
            not judge some values), "reading" (another reading of the question gives other rows), "tie" (rows that LIMIT
            leaves out rank like the last one that it keeps, or almost so), "metric" (a metric that the question
            names has two definitions, or the statement does not compute it).
        facts: in a sentence.
    """

    reason: Reason
    facts: str

    def __str__(self) -> str:
        return self.facts


def doubts_of(
    rows: pd.DataFrame, retrieved: RetrievedTables | None, question: str = "", shown: bool = True
) -> tuple[Doubt, ...]:
    """The doubts about the result of a statement.

    No model is asked. Further statements are run, for at most a second each: whether a value is in a column, and the
    result of other readings of the question.

    Args:
        rows: the result of :func:`tagframe.exec_sql`; for other frames there are no doubts.
        retrieved: the tables that were retrieved for the question, if they were.
        question: that the statement answers; its words exclude some readings.
        shown: whether only these tables were shown for writing the statement.
    """
    execution = results.recall(rows, "execution")
    if execution is None or execution.reader is None:
        return ()
    reader, query = execution.reader, execution.query
    statement = reader.read(query.sql)
    compared = [] if statement is None else statement.compared_columns()
    found = [Doubt("lacking", text) for text in _lacks(statement, retrieved)]
    if retrieved is not None and shown:
        found += _of_tables(execution, retrieved, compared)
    with suppress(CorpusError):  # a source that is gone meanwhile costs no answer
        found += _of_joins([] if statement is None else statement.joined_columns(), reader)
    found += _of_values(compared, reader)
    if is_empty(rows) and not execution.is_rightly_empty(rows):
        found.append(Doubt("empty", f"the statement gives {'only NULL' if len(rows) else 'no rows'}"))
    found += [
        Doubt("unsure", f"{stage.unsure + stage.failed:,} of {stage.values:,} values of {stage.call} were not judged")
        for stage in execution.stages
        if stage.unsure + stage.failed
    ]
    found += [Doubt("metric", text) for text in _of_metrics(query, reader)]
    readings = [
        *_said_otherwise(query.others, rows, reader),
        *rival_columns([] if statement is None else statement.read_columns(), execution.tables, query.sql, reader),
        *other_readings(execution.sql, rows, reader, question),
    ]
    ties = ties_of(execution.sql, rows, reader, query.sql)
    return (*found, *(Doubt("reading", text) for text in readings), *(Doubt("tie", text) for text in ties))


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


def _said_otherwise(others: Sequence[tuple[str, str]], rows: pd.DataFrame, reader: Reader) -> Iterator[str]:
    """The other readings that ``syn`` has written statements for, if their rows differ."""
    for words, sql in others:
        if has_functions(sql):  # it would have to be paid for
            yield f"it can be read otherwise, {words}; that statement was not run"
            continue
        try:
            other = reader.run(sql, replace(reader.limits, seconds=min(_OTHER_SECONDS, reader.limits.seconds)))
        except (SQLFailed, UnsafeSQL, CorpusError):
            continue
        if not same_rows(other, rows):
            yield f"it can be read otherwise, {words}: {difference(rows, other)}"


def _of_tables(execution: Execution, retrieved: RetrievedTables, compared: Compared) -> Iterator[Doubt]:
    """Doubts about likely tables that are not read, and about the database."""
    corpus, used = retrieved.corpus, set(execution.tables)
    chances = {part: hit.probability or 0.0 for hit in retrieved.tables for part in (hit.id, *hit.parts)}
    if not used or not used <= set(chances):
        return  # the user's own choice, or a table that was looked for afterwards
    databases = {schema_of(corpus, id) for id in used}
    best: dict[str, tuple[float, str]] = defaultdict(lambda: (0.0, ""))
    words = {hit.id: {text.casefold() for _, text in hit.cells} for hit in retrieved.tables}
    own_words = {word.strip("%").casefold() for _, test in compared for word in test.texts}
    own_words |= {word for id, texts in words.items() if id in used for word in texts}
    own_words = {word for word in own_words if word in retrieved.question.casefold()}
    likely = [hit for hit in retrieved.tables if not used & {hit.id, *hit.parts}]
    for hit in likely:
        database = schema_of(corpus, hit.id)
        best[database] = max(best[database], (hit.probability or 0.0, hit.id))
    weakest = min(used, key=lambda id: chances[id])
    own = max((best[database] for database in databases), default=(0.0, ""))
    sure = confidence_in(used, retrieved)
    if own[0] >= LIKELY > chances[weakest] and not _is_held(own[1], used, words.get(own[1], set()), corpus):
        yield Doubt(
            "table", f"{own[1]} ({own[0]:.0%} likely) is not read; {weakest} ({chances[weakest]:.0%} likely) is"
        )
    elif own[0] and sure is not None and sure < UNSURE:
        yield Doubt("table", f"{own[1]} ({own[0]:.0%} likely) is not read; the tables are {sure:.0%} likely right")
    rivals = []
    for database, known in best.items():
        theirs = {word for id, texts in words.items() if schema_of(corpus, id) == database for word in texts}
        if database not in databases and known[0] >= RIVAL and not own_words - theirs:
            rivals.append(known)
    if rivals:
        candidates = ", ".join(f"{id} ({chance:.0%} likely)" for chance, id in sorted(rivals, reverse=True)[:_RIVALS])
        yield Doubt("database", f"another database may be meant: {candidates}")


def _is_held(table: str, used: Collection[str], words: Collection[str], corpus: Corpus) -> bool:
    """Whether tables that are read hold the key of one that is not, or it only connects others; not if its cells have a
    word of the question."""
    if words:
        return False
    ids = sorted({table, *used})
    with suppress(CorpusError):
        keys = [key for key in keys_between(corpus, ids, tables_around(corpus, ids)).keys if key.score >= LIKELY]
        return any(key.right_table == table and key.left_table in used for key in keys) or (
            len({key.right_table for key in keys if key.left_table == table}) > 1
        )
    return False


def _of_joins(joined: Sequence[ColumnPair], reader: Reader) -> Iterator[Doubt]:
    """Doubts about joined columns that are probably not a key."""
    pairs = [(left[:2], right[:2]) for left, right in joined]
    tables = sorted({table for pair in pairs for table, _ in pair})
    if len(tables) < 2:
        return
    keys = keys_between(reader.corpus, tables, tables_around(reader.corpus, tables)).keys
    parts = Components(column for pair in pairs for column in pair)
    chances: dict[frozenset[tuple[str, str]], float] = defaultdict(float)
    for key in keys:
        for mine, theirs in zip(key.left_columns, key.right_columns, strict=True):
            ends = (key.left_table, mine), (key.right_table, theirs)
            chances[frozenset(ends)] = max(chances[frozenset(ends)], key.score)
            if key.score >= _LEAST_KEY:
                for end in ends:
                    parts.parent.setdefault(end, end)
                parts.join(*ends)
    for one, other in pairs:
        if parts.root(one) == parts.root(other):
            continue
        facts = f"low-confidence key {_dotted(one)} = {_dotted(other)} ({chances[frozenset((one, other))]:.0%})"
        rival = max((key for key in keys if key.tables == {one[0], other[0]}), key=lambda key: key.score, default=None)
        if rival is not None and rival.score >= LIKELY:
            facts += f"; likelier: {rival.left} = {rival.right} ({rival.score:.0%})"
        yield Doubt("join", facts)


def _dotted(column: tuple[str, str]) -> str:
    return ".".join(column)


def _of_values(compared: Compared, reader: Reader) -> Iterator[Doubt]:
    """Doubts about texts that a column is compared with and that no cell has."""
    names = {id: name for name, id in reader.tables.items()}
    for column, test in compared[:_MOST_VALUES]:
        name = names[column.table]
        one = exp.alias_(exp.Literal.number(1), "one")
        select = exp.Select(expressions=[one]).from_(exp.Table(this=exp.to_identifier(name, quoted=True)))
        try:
            text = written(select.where(_alone(test.test)).limit(1), reader.engine.dialect.name)
            is_there = len(reader.run(text, _LIMITS)) > 0
        except (SQLFailed, UnsafeSQL, CorpusError):
            return  # the table is too large to look, or gone
        if not is_there:
            words = ", ".join(repr(word) for word in test.texts[:3])
            yield Doubt("value", f"no cell of {name}.{column.column} has the value {words}")


def _alone(test: exp.Expr) -> exp.Expr:
    """A comparison for its table alone, without the table's alias; its opposite if it excludes rows."""
    alone = test.copy()
    if isinstance(test, exp.NEQ):
        alone = exp.EQ(this=alone.this, expression=alone.expression)
    for node in alone.find_all(exp.Column):
        node.set("table", None)
    return alone
