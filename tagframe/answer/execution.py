"""``exec``: a statement over a corpus, under the guard, and the account of how it was run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pandas as pd

from tagframe import results
from tagframe.answer.guard import Reader
from tagframe.answer.models import driver
from tagframe.answer.query import Query, names_of
from tagframe.answer.sources import sources_of, why_empty
from tagframe.engines.base import SQLLimits
from tagframe.operators import Step, run

if TYPE_CHECKING:
    from tagframe.corpus import Corpus


@dataclass(frozen=True)
class Execution:
    """How a query was run.

    Attributes:
        query: as written.
        tables: the ids of the tables that it names.
        sql: the statement that gave the rows in the end: that of the query, with answers in place of LM functions.
    """

    query: Query
    tables: tuple[str, ...]
    sql: str
    reader: Reader = field(repr=False)

    def sources(self) -> pd.DataFrame:
        """The rows that the result was made of, by their keys; see :func:`tagframe.answer.sources.sources_of`."""
        return sources_of(self.sql, self.reader)


@dataclass(frozen=True)
class ExecSQL:
    """``exec``: runs a SELECT over the tables of a corpus; made by :func:`exec_sql`."""

    corpus: Corpus = field(repr=False)
    limits: SQLLimits = field(default_factory=SQLLimits)

    def __call__(self, query: Query | str) -> pd.DataFrame:
        """The rows; see :meth:`steps`. The thread waits for them."""
        return run(self.steps(query), driver(), "exec_sql")

    def steps(self, query: Query | str) -> Step[pd.DataFrame]:
        """The rows of a statement, which know how they were made (:class:`Execution`), as a step.

        Raises:
            UnsafeSQL: it is not one plain read of these tables.
            SQLFailed: it does not compile, or passes its limits.
        """
        asked = query if isinstance(query, Query) and query.tables else Query(str(query), names_of(self.corpus))
        reader = Reader(self.corpus, asked.tables, self.limits)
        yield ()
        rows = reader.run(asked.sql)
        tables = tuple(dict.fromkeys(reader.named(asked.sql).values()))
        results.remember(rows, execution=Execution(asked, tables, asked.sql, reader))
        return rows

    def why_empty(self, rows: pd.DataFrame) -> str:
        """Which conditions of the statement behind these rows leave none, in words for the model that wrote it."""
        execution = results.recall(rows, "execution")
        return "The statement gave no rows." if execution is None else why_empty(execution.sql, execution.reader)


def exec_sql(corpus: Corpus, *, limits: SQLLimits | None = None) -> ExecSQL:
    """``exec`` over a corpus: ``exec_sql(corpus)("SELECT …")`` gives the rows, under the guard.

    Tables go by their names; one whose name another shares goes by its id (``"database.table"``).

    >>> import pandas as pd, tagframe as tf
    >>> corpus = tf.open_corpus({"film": pd.DataFrame({"title": ["Low Tide", "Salt Road"], "year": [1998, 2015]})})
    >>> exec_sql(corpus)("SELECT title FROM film WHERE year > 2000")["title"].tolist()
    ['Salt Road']

    Args:
        corpus: whose tables may be read.
        limits: rows, seconds and memory of a statement.
    """
    return ExecSQL(corpus, limits or SQLLimits())
