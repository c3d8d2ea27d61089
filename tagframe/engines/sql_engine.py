"""What sources that speak SQL do alike: reading a table, and giving some values of its columns.

A source says how one table is read (:class:`TableRows`), and what of a merge it runs
(:mod:`tagframe.engines.pushdown`). Keys are inferred from values of columns if rows are not read.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import pandas as pd

from tagframe.engines.base import ColumnStatistics, Engine, RowNumbers, quoted
from tagframe.engines.pushdown import Pushdown, Statement, compared, named_column
from tagframe.errors import ColumnNotFound, UnreadableTable, did_you_mean


class TableRows(Protocol):
    """Tables that can be read now."""

    def selected(
        self,
        table: str,
        columns: Sequence[str],
        *,
        limit: int | None = None,
        number: str = "",
        among: RowNumbers | None = None,
    ) -> pd.DataFrame:
        """The rows in the source's order, or the first of them.

        Args:
            table: which.
            columns: of it.
            limit: of rows.
            number: by which the rows are sorted; it is the first column.
            among: only the rows with these numbers.
        """


class ReadTable(NamedTuple):
    """A table that can be read now: its rows, its columns in order, and what numbers its rows, if they have numbers by
    which they can be found again, whatever else is written.
    """

    rows: TableRows
    columns: Sequence[str]
    number: str | None


class SQLEngine(Engine):
    """A source whose tables are read by statements."""

    picks_rows = True
    numbers_are = "key of one integer"
    """What a table needs for its rows to have numbers."""
    numbers_at_once: ClassVar[int] = 2**31
    """Rows are picked by this many numbers in a statement."""

    @abstractmethod
    def reading(self, table: str) -> AbstractContextManager[ReadTable]:
        """A block in which a table is read.

        Raises:
            UnreadableTable: it cannot be, or is not there any more.
        """

    def scan(self, table: str, columns: Sequence[str] | None = None, limit: int | None = None) -> pd.DataFrame:
        """The rows of a table; all columns where None.

        Raises:
            UnreadableTable: the rows cannot be read.
            ColumnNotFound: it does not have one of the columns any more.
        """
        with self.reading(table) as source:
            return source.rows.selected(table, source.columns if columns is None else columns, limit=limit)

    def numbered(self, table: str, columns: Sequence[str]) -> tuple[RowNumbers, pd.DataFrame] | None:
        """Numbers and rows of a whole table; None where its rows have no numbers."""
        with self.reading(table) as source:
            if source.number is None:
                return None
            frame = source.rows.selected(table, columns, number=source.number)
        return frame.iloc[:, 0].to_numpy(dtype=np.int64), frame.iloc[:, 1:]

    def pick(self, table: str, columns: Sequence[str], numbers: RowNumbers) -> pd.DataFrame:
        """The rows of these numbers."""
        with self.reading(table) as source:
            if source.number is None:
                raise UnreadableTable(f"rows of {table!r} cannot be read one by one: it has no {self.numbers_are}")
            step = self.numbers_at_once
            starts = range(0, max(1, len(numbers)), step)
            among = [numbers[start : start + step] for start in starts]
            read = partial(source.rows.selected, table, columns, number=source.number)
            parts = [read(among=some).iloc[:, 1:] for some in among]
        frame = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
        if len(frame) != len(numbers):
            raise UnreadableTable(f"table {table!r} of {self.identity} changed while it was read: try again")
        return frame


def table_gone(table: str, where: str) -> UnreadableTable:
    """The error for a table that a server does not have any more."""
    return UnreadableTable(f"table {table!r} is no longer in {where}, or was renamed; call tagframe.open_corpus again")


def column_gone(table: str, column: str, there: Iterable[str], also: str = "") -> ColumnNotFound:
    """The error for a column that a table does not have any more; ``also`` is another reason that there may be."""
    return ColumnNotFound(
        f"{table} has no column {column!r} any more{also}: {did_you_mean(column, list(there))}; call "
        "tagframe.open_corpus again"
    )


def column_of_sample(
    cells: pd.Series,
    rows: int,
    nulls: int | None = None,
    *,
    is_unique: bool = False,
    low: object = None,
    high: object = None,
) -> ColumnStatistics:
    """What some cells of a column tell about it.

    Args:
        cells: from all over the column.
        rows: of the whole column.
        nulls: of the whole column; None to estimate them.
        is_unique: whether its values are.
        low, high: the least and the greatest value of the whole column; None if they are unknown.
    """
    filled = cells.dropna()
    seen = len(cells)
    if nulls is None:
        nulls = round((seen - len(filled)) * rows / seen) if seen else 0
    nulls = min(nulls, rows)
    most = rows - nulls
    try:
        counts = filled.value_counts()
    except TypeError:  # lists and structs
        counts = filled.astype(str).value_counts()
    distinct = most if is_unique else distinct_of_sample(len(filled), len(counts), int((counts == 1).sum()), most)
    whole = seen >= rows
    if type(low) is int and type(high) is int:
        distinct = min(distinct, high - low + 1)
        # Rare values may not be in a sample, unless there is no room for others.
        whole |= high - low + 1 == len(counts)
    return ColumnStatistics(counts.index.tolist(), whole, nulls, max(min(distinct, most), len(counts)), low, high)


def distinct_of_sample(seen: int, distinct: int, once: int, filled: int) -> int:
    """How many distinct values a column has: Haas and Stokes' Duj1, with which PostgreSQL's ANALYZE estimates.

    P. J. Haas, L. Stokes, "Estimating the number of classes in a finite population", JASA 93 (1998).

    Args:
        seen: cells of the sample that are not null.
        distinct: their distinct values.
        once: those among them that occur once.
        filled: cells of the whole column that are not null.

    >>> distinct_of_sample(100, 7, 0, 10_000), distinct_of_sample(100, 100, 100, 10_000)
    (7, 10000)
    """
    return round(seen * distinct / (seen - once + once * seen / max(1, filled))) if seen else distinct


SAMPLED = 50_000
"""From this many rows on, distinct values are taken from a sample of about as many rows."""


class SampledValues(Pushdown):
    """A source that also gives some values of its columns."""

    def distinct(self, table: str, column: str) -> pd.Series | None:
        """The distinct values of a column as its rows have them; None where its type has no equality everywhere."""
        from sqlglot import exp

        cells = self.cells(table, column)
        if not (cells.key or cells.kind):
            return None
        query = exp.select(named_column(column, "t")).distinct().from_(self.item(table, "t"))
        sql = query.sql(dialect=self.dialect)
        return self.rows(Statement(sql, [(table, column, column)], f"table {table!r}"))[column]

    @abstractmethod
    def from_item(self, table: str) -> str:
        """The table in FROM."""

    def compared(self, table: str, column: str) -> str:
        """A key column of ``t`` as it is compared."""
        return compared(self, table, column, "t").sql(dialect=self.dialect)

    @abstractmethod
    def stop_after(self, seconds: float) -> None:
        """Later statements are stopped after this time, if the source can stop them."""

    def some(self, table: str, column: str, most: int) -> str:
        """A query for at most this many distinct values of a column that are not null, as ``k``.

        They have the smallest hashes among :data:`SAMPLED` rows from all over the table, so they are not just the first
        ones.
        """
        rows, ending = self.sample(table)
        read = f"{self.from_item(table)} AS t{rows}"
        some = f"SELECT {self.compared(table, column)} AS k FROM {read} WHERE t.{quoted(column)} IS NOT NULL{ending}"
        once = f"SELECT DISTINCT s.k FROM ({some}) AS s"
        return f"SELECT d.k FROM ({once}) AS d ORDER BY md5(CAST(d.k AS varchar)) LIMIT {most}"

    @abstractmethod
    def sample(self, table: str) -> tuple[str, str]:
        """SQL that takes some of the rows of a large table, the same ones each time: a part before WHERE, and one after
        it."""

    def contained(self, table: str, column: str, other: str, other_column: str, most: int) -> tuple[int, int]:
        """Some distinct values of a column, and how many of them another column of the source holds."""
        theirs = f"SELECT DISTINCT {self.compared(other, other_column)} AS k FROM {self.from_item(other)} AS t"
        query = (
            f"WITH v AS MATERIALIZED ({self.some(table, column, most)}) "
            f"SELECT count(*) AS seen, count(o.k) AS found FROM v LEFT JOIN "
            f"({theirs} WHERE {self.compared(other, other_column)} IN (SELECT k FROM v)) AS o ON o.k = v.k"
        )
        numbers = [("", "integer", "seen"), ("", "integer", "found")]
        found = self.rows(Statement(query, numbers, f"table {other!r}", counts=True))
        return int(found["seen"].iloc[0]), int(found["found"].iloc[0])

    def keys(self, table: str, column: str, most: int) -> pd.Index:
        """Some distinct values of a column that are not null."""
        query = Statement(self.some(table, column, most), [(table, column, "k")], f"table {table!r}")
        found = self.rows(query)["k"].tolist()
        return pd.Index(list(map(int, found)) if self.cells(table, column).key == "integer" else found)

    def count_keys(self, table: str, column: str, keys: pd.Index) -> int:
        """How many of these keys a column holds."""
        values: dict[str, Any] = {}
        key, cells = compared(self, table, column, "t"), self.cells(table, column)
        condition = self.among(key, cells, keys, values).sql(dialect=self.dialect)
        query = f"SELECT DISTINCT {key.sql(dialect=self.dialect)} AS k FROM {self.from_item(table)} AS t"
        counted = f"SELECT count(*) AS n FROM ({query} WHERE {condition}) AS s"
        found = self.rows(Statement(counted, [("", "integer", "n")], f"table {table!r}", values, counts=True))
        return int(found["n"].iloc[0])
