"""The tables of any server that SQLAlchemy has a dialect for, and the parts of a merge that it runs.

These are whole joins on integers. sqlglot writes them in the server's dialect. What a server rejects runs in memory. So
does everything in dialects in which names of tables and columns differ from SQLAlchemy's (Oracle, Snowflake). Only our
own SELECTs run there, and messages of their errors contain no password.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from uuid import UUID

import pandas as pd
import sqlalchemy as sa
from sqlalchemy.engine.reflection import ObjectKind
from sqlglot import exp

from tagframe.config import current
from tagframe.engines import passwords
from tagframe.engines.base import CHUNK_ROWS, Chunk, ForeignKey, Stamp, TableShape, TableStatistics
from tagframe.engines.cells import typed_frame
from tagframe.engines.pushdown import (
    Cells,
    Pushdown,
    Refused,
    SQLEngine,
    Statement,
    column_gone,
    column_of_sample,
    named_column,
    table_gone,
)
from tagframe.engines.sql_text import schema_and_name, table_key
from tagframe.engines.sqlite.statement import RowsOnly
from tagframe.errors import (
    ConnectionRefusedByServer,
    InvalidArgument,
    MissingExtra,
    ServerGone,
    SourceNotFound,
    UnreadableTable,
    did_you_mean,
)
from tagframe.quiet import quiet

SPOKEN = {"sqlite": "sqlite", "mysql": "mysql", "mariadb": "mysql", "mssql": "tsql"}
"""By SQLAlchemy's name of a dialect: sqlglot's."""
_POOL_SIZE = {"pool_size": 4}
"""Free connections that wait for the next call; SQLite, which SQLAlchemy reads too, has a pool of its own kind."""
SECONDS = 600.0
"""The time limit of a statement, in servers that can be told one."""
_REFUSED = re.compile(
    r"^\W{0,2}(?:1044|1045|1049|1698)\b|\b(?:28000|28P01|3D000|ORA-01017)\b|authentication failed|"
    r"no password supplied|FATAL: .* does not exist", re.IGNORECASE
)  # fmt: skip
"""In the words of drivers, MySQL's by their numbers: a wrong password, an unknown user or database."""
_NO_URL = (
    "a server is given as dialect+driver://user:password@host:port/database; in a user or password the "
    "characters @ : / ? # % are written %40 %3A %2F %3F %23 %25"
)


@dataclass(frozen=True)
class Address:
    """The address of a server.

    Attributes:
        url: as SQLAlchemy takes it, the password in it; never shown.
        identity: the same without password and options.
    """

    url: str = field(repr=False)
    identity: str

    @classmethod
    def of(cls, url: str) -> Address:
        """From ``dialect+driver://user:password@host:port/database``.

        Raises:
            InvalidArgument: it does not parse (the message shows no part of it, because a password may be anywhere in
                it), or SQLAlchemy knows no such dialect.
            MissingExtra: the dialect's driver is not installed.
        """
        scheme, _, rest = url.partition("://")
        authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
        # An unescaped character could make a part of the password the host or the database, which are shown.
        if authority and not rest.count("@") == authority.count("@") <= 1:
            raise InvalidArgument(_NO_URL)
        try:
            parsed = sa.make_url(url)
            parsed.get_dialect()
        except sa.exc.NoSuchModuleError:
            raise InvalidArgument(
                f"cannot read from {scheme.partition('+')[0]}://…: SQLAlchemy has no such dialect or driver (a package "
                "may provide it)"
            ) from None
        except (sa.exc.ArgumentError, ValueError):
            raise InvalidArgument(_NO_URL) from None
        address = cls(url, parsed.set(password=None, query={}).render_as_string())
        if parsed.password:
            passwords.keep(address.identity, str(parsed.password))
        address.pool()
        return address

    def __getstate__(self) -> dict[str, Any]:
        # A pickle is written to files and sent to others: it has no password.
        parsed = sa.make_url(self.url)
        query = {name: value for name, value in parsed.query.items() if not passwords.is_secret(name, value)}
        public = sa.URL.create(
            parsed.drivername, parsed.username, None, parsed.host, parsed.port, parsed.database, query
        )
        state = {"url": public.render_as_string(False), "identity": self.identity}
        return {**state, "asks": parsed.password is not None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        url = state["url"]
        if state.get("asks"):
            password = passwords.password_again(state["identity"])
            url = sa.make_url(url).set(password=password).render_as_string(False) if password else url
        self.__dict__.update(url=url, identity=state["identity"])

    def pool(self) -> sa.Engine:
        """SQLAlchemy's engine of this process; raises MissingExtra where the driver is not installed."""
        with _lock:
            if self.url not in _pools:
                try:
                    size = {} if self.url.startswith("sqlite") else _POOL_SIZE
                    with quiet():  # warnings about an option contain its value
                        made = sa.create_engine(self.url, pool_pre_ping=True, **size)
                    sa.event.listen(made, "connect", lambda connection, _: _begin(connection, made.dialect.name))
                    _pools[self.url] = made
                except ImportError as error:
                    raise MissingExtra(
                        f"the driver of {self.identity} is not installed ({error}): install it with pip, or name "
                        "another one in the URL, such as mysql+pymysql://…"
                    ) from error
                except (sa.exc.ArgumentError, ValueError, TypeError):
                    raise InvalidArgument(
                        f"an option after the ? in the URL of {self.identity} has a value that its driver rejects"
                    ) from None
            return _pools[self.url]

    @contextmanager
    def reading(self, what: str) -> Iterator[sa.Connection]:
        """A connection; whatever was done on it is rolled back.

        Args:
            what: what is read, for messages.

        Raises:
            ConnectionRefusedByServer: it does not accept the connection.
            ServerGone: it cannot be reached, or the connection was lost.
            UnreadableTable: it refuses a statement, or stops it at its time limit.
        """
        try:
            connection = self.pool().connect()
        except sa.exc.SQLAlchemyError as error:
            if _REFUSED.search(str(getattr(error, "orig", ""))):
                raise ConnectionRefusedByServer(
                    f"{self.identity} does not accept the connection: {self._message(error)}. The same call fails "
                    "again: correct the URL or the rights of its user"
                ) from None
            raise ServerGone(f"{self.identity} cannot be reached: {self._message(error)}") from None
        except (TypeError, ValueError):  # a driver that does not know an option, or its value
            raise InvalidArgument(
                f"the driver of {self.identity} does not accept the options after the ? in its URL"
            ) from None
        try:
            yield connection
        except sa.exc.SQLAlchemyError as error:
            if isinstance(error, sa.exc.DBAPIError) and error.connection_invalidated:
                raise ServerGone(f"lost {self.identity} while reading {what}: {self._message(error)}") from None
            raise UnreadableTable(f"{what} of {self.identity} cannot be read: {self._message(error)}") from None
        finally:
            connection.close()

    def _message(self, error: Exception) -> str:
        """What the driver said, without the statement, cells that it quotes and the values of options."""
        message = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        if isinstance(error, sa.exc.DataError):
            message = re.sub("[\"'].*", "'…'", message)
        for values in sa.make_url(self.url).normalized_query.values():
            for value in filter(None, values):
                message = message.replace(value, "…")
        return message


def _limits(dialect: str) -> tuple[str, ...]:
    """What stops a statement in time, where no lower limit is set, and lets it only read.

    Args:
        dialect: as SQLAlchemy calls it. Of MySQL's statements the first is its own, the second MariaDB's.
    """
    seconds = max(1, int(min(SECONDS, current().timeout or SECONDS)))
    mysql = (
        *(
            f"SET SESSION {name} = IF(@@{name} > 0, LEAST(@@{name}, {limit}), {limit})"
            for name, limit in (("max_execution_time", 1000 * seconds), ("max_statement_time", seconds))
        ),
        "SET SESSION TRANSACTION READ ONLY",
    )
    known = {"mysql": mysql, "mariadb": mysql, "sqlite": ("PRAGMA query_only = ON",)}
    return known.get(dialect, ())


def _begin(connection: Any, dialect: str) -> None:
    """Tell the server the limits of a new connection; one that does not know a statement goes on without it."""
    for statement in _limits(dialect):
        cursor = connection.cursor()
        try:
            cursor.execute(statement)
            connection.commit()
        except Exception:
            connection.rollback()
        finally:
            cursor.close()


_pools: dict[str, sa.Engine] = {}
_lock = threading.Lock()


def _after_fork() -> None:
    """After a fork: connections belong to the process that made them."""
    global _lock
    _lock = threading.Lock()
    for pool in _pools.values():
        pool.dispose(close=False)
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


_PLAIN_DATABASE = "main"
SchemaAndShape = tuple[str | None, TableShape]
"""A table's schema, or None where the server has none, and its shape."""


def shapes_of(connection: sa.Connection, schemas: Sequence[str] | None) -> dict[str, SchemaAndShape]:
    """Tables and views by key, sorted.

    Args:
        connection: to the server.
        schemas: which ones; None for the default schema of the connection.

    Raises:
        SourceNotFound: a schema is not there.
    """
    inspector = sa.inspect(connection)
    known = inspector.get_schema_names()
    for name in schemas or ():
        if name not in known:
            raise SourceNotFound(f"no schema {name!r} in this server: {did_you_mean(name, known)}")
    return _shapes(inspector, [inspector.default_schema_name] if schemas is None else schemas, {})


def shape_of(connection: sa.Connection, key: str) -> SchemaAndShape | None:
    """One table, by its key; None where it is not there."""
    inspector = sa.inspect(connection)
    database, name = schema_and_name(key)
    schema = database if inspector.default_schema_name is not None else None
    return _shapes(inspector, [schema], {"filter_names": [name]}).get(key)


def _shapes(inspector: sa.Inspector, schemas: Sequence[str | None], only: dict[str, Any]) -> dict[str, SchemaAndShape]:
    shapes = {}
    for schema in schemas:
        options: dict[str, Any] = {"schema": schema, "kind": ObjectKind.ANY, **only}
        columns = inspector.get_multi_columns(**options)
        primary, foreign = inspector.get_multi_pk_constraint(**options), inspector.get_multi_foreign_keys(**options)
        unique = _if_supported(inspector.get_multi_unique_constraints, **options)
        comments = _if_supported(inspector.get_multi_table_comment, **options)
        for known_as, of_table in columns.items():
            name = str(known_as[1])
            database = schema or _PLAIN_DATABASE
            shape = TableShape(
                table_key(database, name),
                tuple(str(column["name"]) for column in of_table),
                tuple(_type(column["type"]) for column in of_table),
                tuple((primary.get(known_as) or {}).get("constrained_columns") or ()),
                tuple(_foreign_key(key, schema) for key in foreign.get(known_as, ()) if key["constrained_columns"]),
                called=name,
                database=database,
                unique=tuple(tuple(key["column_names"]) for key in unique.get(known_as) or ()),
                comment=(comments.get(known_as) or {}).get("text") or "",
                column_comments=tuple(column.get("comment") or "" for column in of_table),
            )
            shapes[shape.name] = (schema, shape)
    return dict(sorted(shapes.items()))


def _foreign_key(key: Mapping[str, Any], schema: str | None) -> ForeignKey:
    other = "" if key["referred_schema"] in (None, schema) else key["referred_schema"]
    return ForeignKey(tuple(key["constrained_columns"]), key["referred_table"], tuple(key["referred_columns"]), other)


def definitions_of(connection: sa.Connection, schemas: Sequence[str] | None) -> dict[tuple[str, str], str]:
    """The SQL of views and generated columns, by table and column; see :meth:`tagframe.engines.base.Engine`."""
    inspector = sa.inspect(connection)
    definitions: dict[tuple[str, str], str] = {}
    for schema in [inspector.default_schema_name] if schemas is None else schemas:
        materialized = _if_supported(inspector.get_materialized_view_names, schema=schema)
        for view in [*inspector.get_view_names(schema), *materialized]:
            key = table_key(schema or _PLAIN_DATABASE, view), ""
            definitions[key] = ""
            with suppress(sa.exc.SQLAlchemyError, NotImplementedError):
                definitions[key] = str(inspector.get_view_definition(view, schema) or "")
        columns = inspector.get_multi_columns(schema=schema, kind=ObjectKind.ANY)
        for (_, table), of_table in columns.items():
            for column in of_table:
                if computed := column.get("computed"):
                    key = table_key(schema or _PLAIN_DATABASE, str(table)), str(column["name"])
                    definitions[key] = str(computed.get("sqltext") or "")
    return definitions


def _if_supported(method: Any, **arguments: Any) -> Any:
    """What not every dialect can tell; nothing if this one cannot."""
    try:
        return method(**arguments)
    except NotImplementedError:
        return {}


def _type(kind: Any) -> str:
    try:
        return str(kind)
    except Exception:  # a type that only this dialect has no word for
        return ""


def digest(parts: Sequence[Any]) -> str:
    """A text that changes when any part does."""
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()


# --- the engine -------------------------------------------------------------------------------------------------------


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
        return sa.table(self.shape.called, *map(sa.column, self.shape.columns), schema=self.schema)

    def column(self, name: str) -> sa.ColumnElement[Any]:
        """One of its columns; raises ColumnNotFound."""
        if name not in self.shape.columns:
            raise column_gone(repr(self.shape.name), name, self.shape.columns)
        column: sa.ColumnElement[Any] = self.selectable.c[name]
        return column

    def select(self, names: Sequence[str]) -> sa.Select[Any]:
        """Its rows, in these columns."""
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
    return typed_frame([tuple(map(_plain, row)) for row in rows] if names else [()] * len(rows), names)


def _plain(value: Any) -> Any:
    """A cell; a driver may give text and numbers of types of its own."""
    return _WORDS[type(value)](value) if type(value) in _WORDS else value


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
                yield Chunk.of(frame_of(rows, shape.columns))

    def statistics(self, shapes: Sequence[TableShape]) -> Iterator[TableStatistics | UnreadableTable]:
        """For a table of many cells: rows and nulls counted in one pass, distinct values estimated from a sample."""
        for shape in shapes:
            try:
                yield self._statistics(self._table(shape.name))
            except UnreadableTable as error:
                yield error

    def _statistics(self, table: ServerTable) -> TableStatistics:
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

    def reading(self, table: str) -> AbstractContextManager[OtherServerPushdown]:
        """The table as it is now."""
        return self._pushdown([table])

    def pushdown(self, tables: Sequence[str]) -> AbstractContextManager[OtherServerPushdown] | None:
        """Whole joins, if statements can be written in the dialect; else None."""
        return self._pushdown(tables) if sqlglot_name(self.address.pool().dialect) is not None else None

    @contextmanager
    def _pushdown(self, tables: Sequence[str]) -> Iterator[OtherServerPushdown]:
        known = {table: self._table(table) for table in tables}
        with self.address.reading(f"table {', '.join(map(repr, tables))}") as connection:
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
    """The engine of a URL; raises as :meth:`~tagframe.engines.other_servers.Address.of`."""
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
        return Cells("", "")

    def _holds_integers(self, table: str, column: str) -> bool:
        odd = exp.func("typeof", named_column(column, "t")).isin("integer", "null").not_()
        query = exp.select("1").from_(self.item(table, "t")).where(odd).limit(1)
        return not self._run(query.sql(dialect=self.dialect)).fetchall()

    def unique(self, table: str) -> Sequence[Sequence[str]]:
        """As it is declared."""
        shape = self._tables[table].shape
        return [shape.primary_key, *shape.unique]

    def item(self, table: str, alias: str, *, numbered: bool = False, first: int | None = None) -> exp.Expr:
        known = self._tables[table]
        found = exp.table_(known.shape.called, db=known.schema, quoted=True)
        return exp.alias_(found, exp.to_identifier(alias, quoted=True), table=True)

    def names(self, table: str) -> list[str]:
        return list(self._tables[table].shape.columns)

    def selected(self, table: str, columns: Sequence[str], *, limit: int | None = None) -> pd.DataFrame:
        """In the order of the primary key where there is one; not by sqlglot, which does not write all dialects."""
        known = self._tables[table]
        query = known.select(columns).order_by(*map(known.column, known.shape.primary_key)).limit(limit)
        return frame_of(self._connection.execute(query).fetchall(), columns)

    def number(self, table: str) -> str | None:
        """Its key of one integer."""
        return self._tables[table].number

    def rows(self, statement: Statement) -> pd.DataFrame:
        """With the dtypes that :meth:`OtherServerEngine.scan` gives."""
        return frame_of(self._run(statement.query).fetchall(), [name for _, _, name in statement.columns])

    def _run(self, query: str) -> sa.CursorResult[Any]:
        try:
            return self._connection.exec_driver_sql(query, execution_options={"no_parameters": True})
        except sa.exc.DBAPIError as error:
            if error.connection_invalidated:
                raise
            raise Refused(f"{self._connection.dialect.name} does not take the statement") from None
