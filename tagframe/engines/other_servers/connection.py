"""Connections made by SQLAlchemy, the messages of their errors, which contain no password, and what a server says about
its tables.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tagframe.config import current
from tagframe.engines import passwords
from tagframe.engines.base import ForeignKey, TableShape
from tagframe.engines.postgres.connection import lowered
from tagframe.engines.sql_text import schema_and_name, table_key
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

if TYPE_CHECKING:
    import sqlalchemy as sa


SPOKEN = {"sqlite": "sqlite", "postgresql": "postgres", "mysql": "mysql", "mariadb": "mysql", "mssql": "tsql"}
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
            MissingExtra: SQLAlchemy or the dialect's driver is not installed.
        """
        scheme, _, rest = url.partition("://")
        authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
        # An unescaped character could make a part of the password the host or the database, which are shown.
        if authority and not rest.count("@") == authority.count("@") <= 1:
            raise InvalidArgument(_NO_URL)
        try:
            import sqlalchemy as sa
        except ImportError as error:
            raise MissingExtra(f'reading {scheme}:// needs SQLAlchemy: pip install "tagframe[sqlalchemy]"') from error
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
        # A pickle is written to files and sent to others: it says where the password comes from, not what it is.
        import sqlalchemy as sa

        parsed = sa.make_url(self.url)
        query = {name: value for name, value in parsed.query.items() if not passwords.is_secret(name, value)}
        public = sa.URL.create(
            parsed.drivername, parsed.username, None, parsed.host, parsed.port, parsed.database, query
        )
        state = {"url": public.render_as_string(False), "identity": self.identity}
        return {**state, "asks": parsed.password is not None, "source": passwords.source_of(self.identity)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        url = state["url"]
        if state.get("asks"):
            import sqlalchemy as sa

            password = passwords.password_again(state["identity"], state["source"])
            url = sa.make_url(url).set(password=password).render_as_string(False) if password else url
        self.__dict__.update(url=url, identity=state["identity"])

    def pool(self) -> sa.Engine:
        """SQLAlchemy's engine of this process; raises MissingExtra where the driver is not installed."""
        import sqlalchemy as sa

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
        import sqlalchemy as sa

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
        import sqlalchemy as sa

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
    known = {
        "postgresql": (lowered("statement_timeout", seconds), "SET default_transaction_read_only = on"),
        "mysql": mysql,
        "mariadb": mysql,
        "sqlite": ("PRAGMA query_only = ON",),
    }
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
    import sqlalchemy as sa

    inspector = sa.inspect(connection)
    known = inspector.get_schema_names()
    for name in schemas or ():
        if name not in known:
            raise SourceNotFound(f"no schema {name!r} in this server: {did_you_mean(name, known)}")
    return _shapes(inspector, [inspector.default_schema_name] if schemas is None else schemas, {})


def shape_of(connection: sa.Connection, key: str) -> SchemaAndShape | None:
    """One table, by its key; None where it is not there."""
    import sqlalchemy as sa

    inspector = sa.inspect(connection)
    database, name = schema_and_name(key)
    schema = database if inspector.default_schema_name is not None else None
    return _shapes(inspector, [schema], {"filter_names": [name]}).get(key)


def _shapes(inspector: sa.Inspector, schemas: Sequence[str | None], only: dict[str, Any]) -> dict[str, SchemaAndShape]:
    from sqlalchemy.engine.reflection import ObjectKind

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
    import sqlalchemy as sa
    from sqlalchemy.engine.reflection import ObjectKind

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
