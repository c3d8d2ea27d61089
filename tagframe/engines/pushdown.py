"""The SQL middle: what sources that speak SQL give, so that one builder writes the statements for all of them.

A source says what its columns hold, how a table stands in FROM, and runs a statement (:class:`Pushdown`). Here are
written the statements that read its tables and some values of their columns, from which keys are inferred; merges write
their own (:mod:`tagframe.merging.in_engine`, :mod:`tagframe.merging.semi_join`). Tables have the names that the engine
gives them.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pandas as pd
from sqlglot import exp

from tagframe.engines.base import ColumnStatistics, Engine, quoted
from tagframe.engines.cells import EXACT, Bound, CellTest, Kind, cells_of, is_read
from tagframe.errors import ColumnNotFound, UnreadableTable, did_you_mean

NUMBER = "tagframe row number"
"""The column of the numbers of rows, where they are given."""
MAX_VALUES = 1_000
"""At most this many values are written into a statement."""
_INTEGER_END = 2**63
_BOUNDS: dict[Bound, str] = {"<": "LT", "<=": "LTE", ">": "GT", ">=": "GTE"}


class Refused(UnreadableTable):
    """A source rejects a statement of ours: the merge takes another way."""


@dataclass(frozen=True)
class Cells:
    """What a column holds.

    Attributes:
        key: as a key: "integer" of 64 bits, "text" that is compared by its characters, "null" for no values. Columns
            with the same other word are comparable; "" is for what SQL and pandas may compare differently.
        kind: what tests compare its cells as.
        cast: the type that a statement casts the column to before it compares it, as sqlglot calls it; "" for none.
    """

    key: str
    kind: Kind
    cast: str = ""


@dataclass(frozen=True)
class Statement:
    """A statement of ours that gives rows.

    Attributes:
        query: its text.
        columns: (table, column, name) of what it selects, in order; of what is counted or summed ("", "integer" or
            "real", name).
        what: what is read, for messages.
        values: of its placeholders, and of the keys that are sent with it.
        limit: the most rows, if the query has such a limit.
        counts: whether it gives one row of numbers, so that the order in which rows are read does not matter.
    """

    query: str
    columns: Sequence[tuple[str, str, str]]
    what: str
    values: Mapping[str, Any] | None = None
    limit: int | None = None
    counts: bool = False


class Pushdown(ABC):
    """One state of some tables of a source.

    Every method raises :class:`~tagframe.errors.UnreadableTable` where the source cannot answer,
    :class:`~tagframe.errors.ColumnNotFound` for a column that a table no longer has, and
    :class:`~tagframe.errors.ServerGone` where the source is gone.

    Attributes:
        kind: of the engine.
        dialect: of its SQL, as sqlglot calls it.
        binds: whether values are sent beside a statement, not in it.
        as_in_memory: whether rows come in the order that they have in memory, and texts without a partner are first
            compared in canonical form. If not, keys are compared as the server compares them, and rows come in its
            order.
        is_typed: whether columns have types; if not, each cell has its own.
        joins_outer: whether it has full outer joins.
        joins_in_order: whether an inner join without tests is written as a cross join, whose tables the source reads in
            the written order, until there are enough rows.
        sorts_texts: whether texts are ordered by their characters, not by the rules of a language.
        starts_early: whether a limited query tries a table's first rows before it reads all.
        takes_keys: whether rows of single tables are selected there by keys that are sent: :meth:`among`.
        collation: by which keys are compared, if not by that of their columns.
        nan_kinds: the kinds of cells that may be NaN, which counts as missing.
        stored: the :meth:`number` that says where a row is stored, by which a limited statement is not sorted; "".
    """

    kind: str
    dialect: str
    binds = False
    as_in_memory = True
    is_typed = True
    joins_outer = True
    joins_in_order = False
    sorts_texts = True
    starts_early = False
    takes_keys = True
    collation = ""
    nan_kinds: tuple[Kind, ...] = ()
    stored = ""

    @abstractmethod
    def cells(self, table: str, column: str) -> Cells:
        """What the column holds."""

    @abstractmethod
    def item(self, table: str, alias: str, *, numbered: bool = False, first: int | None = None) -> exp.Expr:
        """The table in FROM or JOIN.

        Args:
            table: which.
            alias: what the statement calls it.
            numbered: whether its rows are sorted by :meth:`number`.
            first: only so many rows, from its beginning; see :attr:`starts_early`.
        """

    @abstractmethod
    def names(self, table: str) -> list[str]:
        """The columns of the table, in order."""

    def selected(self, table: str, columns: Sequence[str], *, limit: int | None = None) -> pd.DataFrame:
        """The rows of a table in the source's order, or the first of them.

        Args:
            table: which.
            columns: of it.
            limit: of rows.
        """
        parts: list[exp.Expr] = [named_column(name, "t") for name in columns]
        own = [(table, name, name) for name in columns]
        query = exp.select(*(parts or [exp.null()])).from_(self.item(table, "t"))
        query = query if limit is None else query.limit(limit)
        return self.rows(Statement(query.sql(dialect=self.dialect), own, f"table {table!r}", {}, limit))

    @abstractmethod
    def rows(self, statement: Statement) -> pd.DataFrame:
        """What a statement of ours gives."""

    def number(self, table: str) -> str | None:
        """The column that sorts the rows of a table into the order of its source; None without one."""
        return None

    def unique(self, table: str) -> Sequence[Sequence[str]]:
        """The sets of columns that the source itself keeps unique."""
        return ()

    def lets_none_repeat(self, table: str, columns: Sequence[str]) -> bool:
        """Whether the source itself keeps the keys of these columns unique."""
        return any(one and {*one} <= {*columns} for one in self.unique(table))

    def facts(self, table: str) -> dict[Any, Any]:
        """Where facts about the rows of a table are noted for as long as the rows do not change."""
        return {}

    def among(self, column: exp.Expr, cells: Cells, keys: pd.Index, values: dict[str, Any]) -> exp.Expr:
        """Whether a key of integers or text is one of these; ``values`` gets what is sent with the statement."""
        raise NotImplementedError


def compared(pushdown: Pushdown, table: str, column: str, alias: str) -> exp.Expr:
    """A column in the form in which keys and tests compare it, and keys are grouped."""
    node: exp.Expr = named_column(column, alias)
    if pushdown.collation:
        return exp.Collate(this=node, expression=exp.Var(this=pushdown.collation))
    return exp.cast(node, cast) if (cast := pushdown.cells(table, column).cast) else node


def named_column(column: str, alias: str) -> exp.Column:
    """A column by its name and its table's alias."""
    return exp.column(exp.to_identifier(column, quoted=True), table=exp.to_identifier(alias, quoted=True))


def named_item(source: str, alias: str) -> exp.Expr:
    """An item in FROM, as SQL, with a name."""
    return exp.Table(this=exp.Var(this=source), alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))


def can_test(pushdown: Pushdown, table: str, test: CellTest) -> bool:
    """Whether a statement can express a test, so that the same rows fit it as in memory."""
    cells = pushdown.cells(table, test.column[1])
    kind = cells.kind
    if test.bound and kind == "text" and not pushdown.sorts_texts:
        return False
    if cells.key == "null":
        return True
    if not pushdown.is_typed:
        # Memory decides what a value without a meaning among such cells is, and compares large numbers with floats.
        small = all(abs(value) < EXACT for value in test.values if isinstance(value, int | float))
        if not (small and all(is_read(value, kind) for value in test.values)):
            return False
    return can_be_written(test, kind)


def can_be_written(test: CellTest, kind: Kind) -> bool:
    """Whether SQL can express the test for a column of this kind."""
    if not test.values:
        return True
    if not kind or len(test.values) > MAX_VALUES:
        return False
    if test.bound is not None and kind in ("real32", "boolean"):
        return False
    return all(map(_is_writable, cells_of(test, kind)))


def _is_writable(cell: Any) -> bool:
    if isinstance(cell, str):
        return "\x00" not in cell and "\ufffd" not in cell and not any("\ud800" <= sign <= "\udfff" for sign in cell)
    if isinstance(cell, int):
        return -_INTEGER_END <= cell < _INTEGER_END
    if isinstance(cell, pd.Timestamp):
        return not cell.nanosecond
    return math.isfinite(cell) if isinstance(cell, float | Decimal) else True


def condition(
    pushdown: Pushdown, column: exp.Expr, table: str, test: CellTest, values: dict[str, Any] | None
) -> exp.Expr:
    """The test of a column in a statement.

    Args:
        pushdown: that runs the statement.
        column: as it is compared.
        table: of the column.
        test: one that a statement can express.
        values: collects the values of the statement's placeholders; None to write them into the statement.
    """
    cells = pushdown.cells(table, test.column[1])
    kind, missing = cells.kind, is_missing(pushdown, column, cells.kind)
    if cells.key == "null":
        return missing if test.null else exp.false()
    known = [_written(cell, values) for cell in cells_of(test, kind)]
    if test.bound is not None:
        inside = within(column, test.bound, known)
        return exp.and_(inside, missing.not_()) if kind in ("real", "decimal") else inside
    return one_of(column, known, missing if test.null else None)


def is_missing(pushdown: Pushdown, column: exp.Expr, kind: Kind) -> exp.Expr:
    """Whether a cell is empty. NaN counts as empty; where it exists, it is equal to itself and the greatest number."""
    null = column.is_(exp.null())
    if kind not in pushdown.nan_kinds:
        return null
    type = "DECIMAL" if kind == "decimal" else "DOUBLE"
    return exp.or_(null, column.eq(exp.cast(exp.Literal.string("NaN"), type)))


def within(column: exp.Expr, bound: Bound, ends: list[exp.Expr]) -> exp.Expr:
    """Whether a cell is within a bound."""
    if bound == "between":
        return exp.Between(this=column, low=ends[0], high=ends[1])
    node: exp.Expr = getattr(exp, _BOUNDS[bound])(this=column, expression=ends[0])
    return node


def one_of(column: exp.Expr, known: list[exp.Expr], missing: exp.Expr | None) -> exp.Expr:
    """Whether a cell is one of some values, or empty where that is allowed."""
    parts: list[exp.Expr] = [] if missing is None else [missing]
    if len(known) == 1:
        parts.append(column.eq(known[0]))
    elif known:
        parts.append(exp.In(this=column, expressions=known))
    return exp.or_(*parts) if parts else exp.false()


def _written(cell: Any, values: dict[str, Any] | None) -> exp.Expr:
    if values is not None and isinstance(cell, bool | int | float | str):
        name = f"v{len(values)}"
        values[name] = cell
        return exp.Placeholder(this=name)
    return literal(cell)


def literal(value: Any) -> exp.Expr:
    """A value in SQL."""
    if isinstance(value, Decimal):
        return exp.Literal.number(f"{value:f}")
    if isinstance(value, uuid.UUID):
        return exp.Literal.string(str(value))
    if isinstance(value, dt.datetime):
        kind = "TIMESTAMPTZ" if value.tzinfo else "TIMESTAMP"
        return exp.cast(exp.Literal.string(value.isoformat(" ")), kind)
    if isinstance(value, dt.date):
        return exp.cast(exp.Literal.string(value.isoformat()), "DATE")
    return exp.convert(value)


# --- engines ----------------------------------------------------------------------------------------------------------


class SQLEngine(Engine):
    """A source whose tables are read by statements."""

    picks_rows = True

    @abstractmethod
    def reading(self, table: str) -> AbstractContextManager[Pushdown]:
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
            return source.selected(table, source.names(table) if columns is None else columns, limit=limit)


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
        cells = self.cells(table, column)
        if not (cells.key or cells.kind):
            return None
        query = exp.select(named_column(column, "t")).distinct().from_(self.item(table, "t"))
        sql = query.sql(dialect=self.dialect)
        return self.rows(Statement(sql, [(table, column, column)], f"table {table!r}"))[column]

    @abstractmethod
    def from_item(self, table: str) -> str:
        """The table in FROM."""

    def item(self, table: str, alias: str, *, numbered: bool = False, first: int | None = None) -> exp.Expr:
        """The same with a name."""
        return named_item(self.from_item(table), alias)

    def stop_after(self, seconds: float) -> None:
        """Later statements are stopped after this time, if the source can stop them."""

    @abstractmethod
    def sample(self, table: str) -> tuple[str, str]:
        """SQL that takes some of the rows of a large table, the same ones each time: a part before WHERE, and one after
        it."""

    def keys(self, table: str, column: str, most: int) -> pd.Index:
        """At most so many distinct values of a column that are not null.

        They have the smallest hashes among :data:`SAMPLED` rows from all over the table, so they are not just the first
        ones.
        """
        rows, ending = self.sample(table)
        key = compared(self, table, column, "t").sql(dialect=self.dialect)
        source = f"{self.from_item(table)} AS t{rows} WHERE t.{quoted(column)} IS NOT NULL{ending}"
        once = f"SELECT DISTINCT s.k FROM (SELECT {key} AS k FROM {source}) AS s"
        query = f"SELECT d.k FROM ({once}) AS d ORDER BY md5(CAST(d.k AS varchar)) LIMIT {most}"
        keys = self.rows(Statement(query, [(table, column, "k")], f"table {table!r}"))["k"].tolist()
        return pd.Index(list(map(int, keys)) if self.cells(table, column).key == "integer" else keys)

    def count_keys(self, table: str, column: str, keys: pd.Index) -> int:
        """How many of these keys a column holds."""
        values: dict[str, Any] = {}
        key, cells = compared(self, table, column, "t"), self.cells(table, column)
        condition = self.among(key, cells, keys, values).sql(dialect=self.dialect)
        query = f"SELECT DISTINCT {key.sql(dialect=self.dialect)} AS k FROM {self.from_item(table)} AS t"
        counted = f"SELECT count(*) AS n FROM ({query} WHERE {condition}) AS s"
        found = self.rows(Statement(counted, [("", "integer", "n")], f"table {table!r}", values, counts=True))
        return int(found["n"].iloc[0])
