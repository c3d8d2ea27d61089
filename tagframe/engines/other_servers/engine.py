"""The tables of any server that SQLAlchemy has a dialect for, and the parts of a merge that it runs.

These are whole joins on integers, and in PostgreSQL on texts. sqlglot writes them in the server's dialect. What a
server rejects runs in memory. So does everything in dialects in which names of tables and columns differ from
SQLAlchemy's (Oracle, Snowflake).
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pandas as pd

from tagframe.engines.base import CHUNK_ROWS, Chunk, RowNumbers, Stamp, TableShape, TableStatistics
from tagframe.engines.cells import typed_series
from tagframe.engines.other_servers.connection import SPOKEN, Address, definitions_of, digest, shape_of, shapes_of
from tagframe.engines.pushdown import (
    NUMBER,
    Cells,
    Pushdown,
    ReadTable,
    Refused,
    SQLEngine,
    Statement,
    column_gone,
    column_of_sample,
    named_column,
    table_gone,
)
from tagframe.engines.sqlite.statement import RowsOnly
from tagframe.errors import UnreadableTable

if TYPE_CHECKING:
    import sqlalchemy as sa
    from sqlglot import exp


FEW_CELLS = 500_000
"""Tables of at most this many cells are read, and counted."""
SAMPLE, _PARTS = 10_000, 8
"""Rows of a sample, and from how many parts of a table they are taken if it has a single integer key."""
_INTEGERS = ("INT", "SERIAL")


@dataclass(frozen=True)
class ServerTable:
    """A table of the server in statements."""

    shape: TableShape
    schema: str | None

    @cached_property
    def selectable(self) -> sa.TableClause:
        import sqlalchemy as sa

        return sa.table(self.shape.called, *map(sa.column, self.shape.columns), schema=self.schema)

    def column(self, name: str) -> sa.ColumnElement[Any]:
        """One of its columns; raises ColumnNotFound."""
        if name not in self.shape.columns:
            raise column_gone(repr(self.shape.name), name, self.shape.columns)
        column: sa.ColumnElement[Any] = self.selectable.c[name]
        return column

    def select(self, names: Sequence[str]) -> sa.Select[Any]:
        """Its rows, in these columns."""
        import sqlalchemy as sa

        columns = [self.column(name).label(f"c{at}") for at, name in enumerate(names)]
        return sa.select(*(columns or [sa.literal(1)])).select_from(self.selectable)

    @property
    def number(self) -> str | None:
        """The primary key, where it is one column of integers."""
        if len(self.shape.primary_key) != 1:
            return None
        (key,) = self.shape.primary_key
        declared = self.shape.declared_types[self.shape.columns.index(key)].upper()
        return key if any(word in declared for word in _INTEGERS) else None

    def is_unique(self, name: str) -> bool:
        """Whether the server keeps a column free of duplicates."""
        return (name,) in (self.shape.primary_key, *self.shape.unique)


_WORDS: dict[type, Callable[[Any], Any]] = {
    **dict.fromkeys((dict, list, tuple), lambda value: json.dumps(value, ensure_ascii=False, default=str)),
    set: lambda value: json.dumps(sorted(map(str, value)), ensure_ascii=False),
    **dict.fromkeys((UUID, dt.time, dt.timedelta), str),
    **dict.fromkeys((memoryview, bytearray), bytes),
}
"""Values without a pandas type are given as text; the declared type of the column says what they are."""


def frame_of(rows: Sequence[Sequence[Any]], names: Sequence[str]) -> pd.DataFrame:
    """Rows as drivers give them. Numbers, booleans, text, dates, moments, bytes and decimals are kept."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    data = {name: column_of(values) for name, values in zip(names, columns, strict=True)}
    return pd.DataFrame(data, index=pd.RangeIndex(len(rows)), columns=list(names))


def column_of(values: Sequence[Any]) -> pd.Series:
    """One column; see :func:`frame_of`."""
    types = set(map(type, values)) - {type(None)}
    if types == {bool}:
        return pd.Series(values, dtype="boolean" if None in values else "bool")
    if types == {dt.datetime} and len({value.tzinfo is None for value in values if value is not None}) == 1:
        aware = any(value is not None and value.tzinfo is not None for value in values)
        # Microseconds hold every day of Python's calendar.
        utc = [value.astimezone(dt.UTC) if aware and value is not None else value for value in values]
        return pd.Series(utc, dtype="datetime64[us, UTC]" if aware else "datetime64[us]")
    odd = next((word for kind, word in _WORDS.items() if kind in types), None)
    if odd is None:
        # A driver may give text and numbers of types of its own.
        return typed_series(values)
    return column_of([_WORDS[type(value)](value) if type(value) in _WORDS else value for value in values])


@dataclass(frozen=True)
class OtherServerEngine(SQLEngine, RowsOnly):
    """Tables and views of some schemas, each of which is a database of the corpus.

    Only SELECT statements that this module makes are sent, and every transaction is rolled back. Whether the server
    itself allows writing depends on the rights of the user who connects. So a statement that a model wrote is never run
    there: it runs in SQLite, over copies of the tables that it names, like one over frames.

    A table counts as changed if its columns, its number of rows, or the least or greatest value of a single integer key
    differ. This misses rows that were updated in place, and, for a table without such a key, as many new rows as
    deleted ones.

    Attributes:
        address: of the server.
        schemas: whose tables are read; None for the default schema of a connection.
    """

    address: Address
    schemas: tuple[str, ...] | None = None
    kind: str = "sqlalchemy"
    path: None = field(default=None, init=False)
    joins = "all"
    numbers_at_once = 500  # some servers accept at most two thousand parameters

    @property
    def identity(self) -> str:
        """The server's address, without password."""
        return self.address.identity

    def shapes(self) -> list[TableShape]:
        """The tables by schema and name."""
        with self.address.reading("the list of tables") as connection:
            shapes = shapes_of(connection, self.schemas)
        return [self._with_state(shape, schema) for schema, shape in shapes.values()]

    def definitions(self) -> dict[tuple[str, str], str]:
        """Of views and generated columns, as far as the server tells them."""
        with self.address.reading("the list of views") as connection:
            return definitions_of(connection, self.schemas)

    def _with_state(self, shape: TableShape, schema: str | None) -> TableShape:
        try:
            counted = self._counted(ServerTable(shape, schema))
        except UnreadableTable:
            counted = None  # it says so itself when it is profiled
        parts = [shape.columns, shape.declared_types, shape.primary_key, shape.comment, shape.column_comments, counted]
        return replace(shape, state=digest(parts))

    def _counted(self, table: ServerTable) -> list[Any]:
        import sqlalchemy as sa

        key = table.number
        ends = [] if key is None else [sa.func.min(table.column(key)), sa.func.max(table.column(key))]
        return list(self.fetched(sa.select(sa.func.count(), *ends).select_from(table.selectable), table)[0])

    def fingerprint(self, known: Stamp | None = None) -> Stamp:
        """The states of all tables."""
        return Stamp(0, 0, digest([[shape.name, shape.state] for shape in self.shapes()]))

    def chunks(self, shape: TableShape) -> Iterator[Chunk]:
        """The rows of a table in pieces, as they arrive."""
        table = self._table(shape.name)
        with self.address.reading(f"table {shape.name!r}") as connection:
            rows_of_table = connection.execution_options(stream_results=True, max_row_buffer=CHUNK_ROWS).execute(
                table.select(shape.columns)
            )
            for rows in rows_of_table.partitions(CHUNK_ROWS):
                yield Chunk(len(rows), [column_of(values) for values in zip(*rows, strict=True)])

    def statistics(self, shapes: Sequence[TableShape]) -> Iterator[TableStatistics | UnreadableTable]:
        """For a table of many cells: rows and nulls counted in one pass, distinct values estimated from a sample."""
        for shape in shapes:
            try:
                yield self._statistics(self._table(shape.name))
            except UnreadableTable as error:
                yield error

    def _statistics(self, table: ServerTable) -> TableStatistics:
        import sqlalchemy as sa

        rows, *ends = self._counted(table)
        columns = table.shape.columns
        if rows * len(columns) <= FEW_CELLS:
            return TableStatistics(rows, None)
        counts = sa.select(*(sa.func.count(table.column(name)) for name in columns)).select_from(table.selectable)
        filled = self.fetched(counts, table)[0]
        sample = self._sample(table, *ends)
        return TableStatistics(
            rows,
            tuple(
                column_of_sample(sample[name], rows, rows - count, is_unique=table.is_unique(name))
                for name, count in zip(columns, filled, strict=True)
            ),
        )

    def _sample(self, table: ServerTable, low: int = 0, high: int = 0) -> pd.DataFrame:
        columns = table.shape.columns
        if table.number is None or low is None:
            return frame_of(self.fetched(table.select(columns).limit(SAMPLE), table), columns)
        key = table.column(table.number)
        rows: dict[Any, Any] = {}
        for part in range(_PARTS):
            start = low + (high - low) * part // _PARTS
            query = table.select((table.number, *columns)).where(key >= start).order_by(key).limit(SAMPLE // _PARTS)
            rows |= {row[0]: row[1:] for row in self.fetched(query, table)}
        return frame_of(list(rows.values()), columns)

    @contextmanager
    def reading(self, table: str) -> Iterator[ReadTable]:
        """The table as it is now; each statement has a connection of its own."""
        known = self._table(table)
        yield ReadTable(partial(self._selected, known), known.shape.columns, known.number)

    def _selected(
        self,
        known: ServerTable,
        _table: str,
        columns: Sequence[str],
        *,
        limit: int | None = None,
        number: str = "",
        among: RowNumbers | None = None,
    ) -> pd.DataFrame:
        """In the order of the primary key where there is one; not by sqlglot, which does not write all dialects."""
        names = [number, *columns] if number else columns
        query = known.select(names).order_by(*map(known.column, known.shape.primary_key)).limit(limit)
        rows = self.fetched(query if among is None else query.where(known.column(number).in_(among.tolist())), known)
        called = [NUMBER, *columns] if number else columns
        return frame_of(rows, called) if called else pd.DataFrame(index=pd.RangeIndex(len(rows)))

    def pushdown(self, tables: Sequence[str]) -> AbstractContextManager[OtherServerPushdown] | None:
        """Whole joins, if statements can be written in the dialect; else None."""
        return self._pushdown(tables) if sqlglot_name(self.address.pool().dialect) is not None else None

    @contextmanager
    def _pushdown(self, tables: Sequence[str]) -> Iterator[OtherServerPushdown]:
        known = {table: self._table(table) for table in tables}
        with self.address.reading(f"the tables {', '.join(tables)}") as connection:
            yield pushdown_on(connection, known)

    def fetched(self, query: sa.Select[Any], table: ServerTable) -> Sequence[Any]:
        """The rows of a statement of ours."""
        with self.address.reading(f"table {table.shape.name!r}") as connection:
            rows: Sequence[Any] = connection.execute(query).fetchall()
        return rows

    def _table(self, name: str) -> ServerTable:
        """As it is now.

        Raises:
            UnreadableTable: it no longer exists.
        """
        with self.address.reading(f"table {name!r}") as connection:
            table = shape_of(connection, name)
        if table is None:
            raise table_gone(name, self.identity)
        return ServerTable(table[1], table[0])


def other_server_engine(url: str, schemas: Sequence[str] | None) -> OtherServerEngine:
    """The engine of a URL; raises as :meth:`~tagframe.engines.other_servers.connection.Address.of`."""
    return OtherServerEngine(Address.of(url), None if schemas is None else tuple(schemas))


_WITHOUT_OUTER = ("mysql",)
_INTEGER = re.compile(r"(TINY|SMALL|MEDIUM|BIG)?INT(EGER|2|4|8)?(\(\d+\))?")
_ISOLATED = "REPEATABLE READ"


def sqlglot_name(dialect: sa.Dialect) -> str | None:
    """What sqlglot calls a dialect in which joins are written; None where none are."""
    return None if dialect.requires_name_normalize else SPOKEN.get(dialect.name)


def pushdown_on(connection: sa.Connection, tables: Mapping[str, ServerTable]) -> OtherServerPushdown:
    """Statements on a connection, over one state of the tables if the server supports that."""
    levels = connection.dialect.get_isolation_level_values(connection.connection.dbapi_connection)  # type: ignore[arg-type]
    if _ISOLATED in levels:
        connection = connection.execution_options(isolation_level=_ISOLATED)
    return OtherServerPushdown(connection, tables)


class OtherServerPushdown(Pushdown):
    """Rows of tables with a key of one integer are sorted by that; others have no order."""

    kind = "sqlalchemy"
    takes_keys = False
    sorts_texts = False

    def __init__(self, connection: sa.Connection, tables: Mapping[str, ServerTable]) -> None:
        self._connection, self._tables = connection, tables
        self.dialect = sqlglot_name(connection.dialect) or ""
        self.joins_outer = self.dialect not in _WITHOUT_OUTER

    def cells(self, table: str, column: str) -> Cells:
        """By the declared type; in SQLite, which does not enforce that, also by the values in the rows."""
        known = self._tables[table]
        known.column(column)  # raises where the table has it no more
        declared = known.shape.declared_types[known.shape.columns.index(column)].upper()
        if _INTEGER.fullmatch(declared) and (self.dialect != "sqlite" or self._holds_integers(table, column)):
            return Cells("integer", "integer")
        is_text = declared.startswith(("VARCHAR", "TEXT")) and "COLLATE" not in declared
        return Cells("text", "text") if is_text and self.dialect == "postgres" else Cells("", "")

    def _holds_integers(self, table: str, column: str) -> bool:
        from sqlglot import exp

        odd = exp.func("typeof", named_column(column, "t")).isin("integer", "null").not_()
        query = exp.select("1").from_(self.item(table, "t")).where(odd).limit(1)
        return not self._run(query.sql(dialect=self.dialect)).fetchall()

    def lets_none_repeat(self, table: str, columns: Sequence[str]) -> bool:
        """As it is declared."""
        shape = self._tables[table].shape
        return any(unique and {*unique} <= {*columns} for unique in (shape.primary_key, *shape.unique))

    def item(self, table: str, alias: str, *, numbered: bool = False, first: int | None = None) -> exp.Expr:
        from sqlglot import exp

        known = self._tables[table]
        found = exp.table_(known.shape.called, db=known.schema, quoted=True)
        return exp.alias_(found, exp.to_identifier(alias, quoted=True), table=True)

    def number(self, table: str) -> str | None:
        """Its key of one integer."""
        return self._tables[table].number

    def rows(self, statement: Statement) -> pd.DataFrame:
        """With the dtypes that :meth:`OtherServerEngine.scan` gives."""
        found = self._run(statement.query).fetchall()
        return statement.frame(lambda names: frame_of(found, names), len(found))

    def _run(self, query: str) -> sa.CursorResult[Any]:
        import sqlalchemy as sa

        try:
            return self._connection.exec_driver_sql(query, execution_options={"no_parameters": True})
        except sa.exc.DBAPIError as error:
            if error.connection_invalidated:
                raise
            raise Refused(f"{self._connection.dialect.name} does not take the statement") from None
