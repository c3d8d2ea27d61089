"""``exec``: runs a statement over a corpus, under the guard, and records how it was run."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import pandas as pd

from tagframe import config, results
from tagframe.answer.alternatives import Doubt
from tagframe.answer.cited_rows import sources_of, why_empty
from tagframe.answer.doubts import doubts_of, repeats_of
from tagframe.answer.guard import Reader
from tagframe.answer.lm_sql import Done, Staged, StageReport, has_functions
from tagframe.answer.query import Query, names_of
from tagframe.answer.steps import driver, quote_of
from tagframe.config import CallSettings
from tagframe.corpus import Corpus, TableProfile
from tagframe.corpus.references import JoinColumns
from tagframe.engines.base import SQLLimits
from tagframe.errors import DoubtWarning, FactUnknown, InvalidArgument, NotConnected, warn
from tagframe.joins import JoinPlan, keys_between
from tagframe.joins.infer import plan_tables
from tagframe.keys import KeyPair
from tagframe.keys.key_pair import Evidence
from tagframe.operators import OnError, RowsPerCall, Step, run
from tagframe.operators.outcome import check_on_error
from tagframe.operators.packing import rows_per_call_of
from tagframe.retrieval.links import tables_around

if TYPE_CHECKING:
    from tagframe.lm import Quote


@dataclass(frozen=True)
class Execution:
    """How a query was run.

    Attributes:
        query: as written.
        tables: the ids of the tables that it names.
        sql: the final statement: that of the query, with answers in place of LM functions.
        reader: that ran it; None after pickling, because a pickle has no corpus.
        stages: the calls of each LM function, with the number of unsure and failed answers (these are NULL).
        seconds: that the statement took, without those of a model.
    """

    query: Query
    tables: tuple[str, ...]
    sql: str
    reader: Reader | None = field(repr=False)
    stages: tuple[StageReport, ...] = ()
    seconds: float = 0.0

    def sources(self) -> pd.DataFrame:
        """The source rows of the result, by their keys; see :func:`tagframe.answer.cited_rows.sources_of`.

        Raises:
            FactUnknown: it was pickled.
        """
        if self.reader is None:
            raise FactUnknown("sources are known only in the process that made the result: a pickle has no corpus")
        return sources_of(self.sql, self.reader)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "reader": None, "query": replace(self.query, retrieved=None)}


@dataclass(frozen=True)
class ExecSQL:
    """``exec``: runs a SELECT over the tables of a corpus; made by :func:`exec_sql`."""

    corpus: Corpus = field(repr=False)
    limits: SQLLimits = field(default_factory=SQLLimits)
    on_error: OnError = "raise"
    rows_per_call: RowsPerCall = "auto"

    @overload
    def __call__(
        self, query: Query | str, *, quote: Literal[False] = ..., **settings: Unpack[CallSettings]
    ) -> pd.DataFrame: ...
    @overload
    def __call__(self, query: Query | str, *, quote: Literal[True], **settings: Unpack[CallSettings]) -> Quote: ...
    def __call__(
        self, query: Query | str, *, quote: bool = False, **settings: Unpack[CallSettings]
    ) -> pd.DataFrame | Quote:
        """The rows; the thread waits for them.

        Args:
            query: one SELECT.
            quote: give the calls and the cost of the statement's LM functions instead; nothing is sent.
            **settings: as in :func:`tagframe.configure`, for this call.

        Raises:
            UnsafeSQL, SQLFailed, RowsFailed: as :meth:`steps`.
            NotConfigured: the statement has an LM function, and no model is set.
        """
        with config.context(**settings):
            if quote:
                return quote_of(query, self)
            rows = run(self.steps(query), driver(), "exec_sql")
        for doubt in repeats_of(rows):
            once = f" (the statement that counts them once: {doubt.statement})" if doubt.statement else ""
            warn(f"{doubt}{once}", DoubtWarning)
        return rows

    def steps(self, query: Query | str) -> Step[pd.DataFrame]:
        """The rows of a statement, with a record of how they were made (:class:`Execution`), as a step.

        Raises:
            UnsafeSQL: it is not a single SELECT over these tables.
            SQLFailed: it does not compile, or exceeds its limits.
            RowsFailed: with ``on_error="raise"``, an LM function has values without an answer.
        """
        wanted = query if isinstance(query, Query) and query.tables else Query(str(query), names_of(self.corpus))
        reader, start = Reader(self.corpus, wanted.tables, self.limits), time.monotonic()
        if has_functions(wanted.sql):
            done = yield from Staged(wanted.sql, reader, self.on_error, self.rows_per_call).steps()
        else:
            done = Done(reader.run(wanted.sql), wanted.sql, reader)
        seconds = 0.0 if done.reports else time.monotonic() - start
        tables = tuple(dict.fromkeys(reader.named(wanted.sql).values()))
        execution = Execution(wanted, tables, done.sql, done.reader, done.reports, seconds)
        results.remember(done.rows, execution=execution)
        if remarks := _described(done.rows, map(self.corpus.profile, tables)):
            results.remember(done.rows, descriptions=remarks)
        return done.rows

    def doubts(self, query: Any, rows: pd.DataFrame, question: str) -> tuple[Doubt, ...]:
        """The doubts about these rows as an answer.

        Args:
            query: that gave the rows.
            rows: its result, or no rows if it has no statement.
            question: that they answer.
        """
        lacking = (Doubt("lacking", f"the tables lack: {what}") for what in getattr(query, "lacking", ()))
        return (*lacking, *doubts_of(rows, question))

    def why_empty(self, rows: pd.DataFrame) -> str:
        """The conditions of the statement that leave no rows, in words for the model that wrote it."""
        execution = results.recall(rows, "execution")
        if execution is None or execution.reader is None:
            return "The statement gave no rows."
        return why_empty(execution.sql, execution.reader, execution.seconds)


def _described(rows: pd.DataFrame, tables: Iterable[TableProfile]) -> dict[str, str]:
    """Descriptions for the columns of a result, if all source columns of that name have the same one."""
    texts: dict[str, set[str]] = defaultdict(set)
    for column in (column for table in tables for column in table.for_prompts):
        texts[column.name.casefold()].add(column.description)
    found = {name: texts[name.casefold()] for name in map(str, rows.columns)}
    return {name: text for name, one in found.items() if len(one) == 1 for text in one if text}


def exec_sql(
    corpus: Corpus, *, limits: SQLLimits | None = None, on_error: OnError = "raise", rows_per_call: RowsPerCall = "auto"
) -> ExecSQL:
    """``exec`` over a corpus (TAG, section 2.2): ``exec_sql(corpus)("SELECT …")`` gives the rows, under the guard.

    The statement may call LM functions (:mod:`tagframe.answer.lm_sql`), with columns in braces:
    ``sem_filter('{f.title} is a romance')`` as a condition, ``sem_score('how sad {plot} is')``,
    ``sem_map('the country of {city}', 'text')`` (or ``'number'``, ``'integer'``, ``'date'``, ``'boolean'``), and the
    aggregate ``sem_agg('what critics praise: {review}')``. They are asked once for each distinct value that the other
    conditions leave. If the model cannot tell, the value is NULL. ``ORDER BY sem_topk('{title} is the saddest', 5)
    LIMIT 5`` compares these values in lists, as :func:`tagframe.sem_topk`: places 1 to 5, and 6 for all others.

    Tables are named by their names; a table that shares its name with another is named by its id
    (``"database.table"``).

    >>> import pandas as pd, tagframe as tf
    >>> corpus = tf.open_corpus({"film": pd.DataFrame({"title": ["Low Tide", "Salt Road"], "year": [1998, 2015]})})
    >>> exec_sql(corpus)("SELECT title FROM film WHERE year > 2000")["title"].tolist()
    ['Salt Road']

    Args:
        corpus: whose tables may be read.
        limits: rows, seconds and memory of a statement.
        on_error: what happens to values without an answer: ``"raise"`` an error after all others are asked, ``"keep"``
            them as NULL, or ``"drop"`` their rows.
        rows_per_call: values in one prompt, audited, as in :func:`tagframe.sem_filter`; "auto" is at most 16. The
            answer's stages say how often packs gave other answers.

    Raises:
        InvalidArgument: a wrong ``on_error`` or ``rows_per_call``.
    """
    check_on_error(on_error)
    rows_per_call_of(rows_per_call)
    return ExecSQL(corpus, limits or SQLLimits(), on_error, rows_per_call)


# --- the joins of a statement, for its picture ----------------------------------------------------------------------


_LEAST = 0.001
_WRITTEN = Evidence(origin="given", reason="no key, but the statement has it")


def plan_of(execution: Execution) -> JoinPlan | None:
    """The plan of a statement's joins; None if they do not connect its tables, or go round in a circle."""
    if execution.reader is None or len(execution.tables) < 2:
        return None
    keys = list(_keys(execution))
    try:
        return plan_tables(
            execution.reader.corpus, execution.tables, given=keys, keys=keys, stack_unions=False, min_chance=0.0
        )
    except (NotConnected, InvalidArgument):
        return None


def _keys(execution: Execution) -> Iterator[KeyPair]:
    """A key pair for each two tables that the statement joins, with the chance that is known of it."""
    assert execution.reader is not None
    statement, corpus = execution.reader.read(execution.query.sql), execution.reader.corpus
    pairs: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for left, right in [] if statement is None else statement.joined_columns():
        (one, mine), (other, theirs) = sorted([left[:2], right[:2]])
        pairs[one, other].append((mine, theirs))
    ids = sorted(execution.tables)
    known = keys_between(corpus, ids, tables_around(corpus, ids)).keys
    for (one, other), columns in pairs.items():
        own, others = (tuple(pair[side] for pair in columns) for side in (0, 1))
        pair = KeyPair(one, own, other, others, _LEAST, _WRITTEN)
        sides = JoinColumns.of(vars(pair)).sides
        yield next((key for key in known if not key.signs and JoinColumns.of(vars(key)).sides == sides), pair)
