"""Connections made by SQLAlchemy, and the messages of their errors, which contain no password."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pandas as pd

from tagframe.config import current
from tagframe.engines import passwords
from tagframe.engines.base import TableShape
from tagframe.engines.dtypes import typed_series
from tagframe.engines.postgres.connection import lowered
from tagframe.engines.sql_engine import column_gone
from tagframe.errors import ConnectionRefusedByServer, InvalidArgument, MissingExtra, ServerGone, UnreadableTable
from tagframe.quiet import quiet

if TYPE_CHECKING:
    import sqlalchemy as sa


SPOKEN = {"sqlite": "sqlite", "postgresql": "postgres", "mysql": "mysql", "mariadb": "mysql", "mssql": "tsql"}
"""By SQLAlchemy's name of a dialect: sqlglot's."""
_KEPT = {"pool_size": 4}
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
        address = cls(url, parsed.set(password=None, query={}).render_as_string(hide_password=True))
        if parsed.password:
            passwords.keep(address.identity, str(parsed.password))
        address.pool()
        return address

    def __getstate__(self) -> dict[str, Any]:
        # A pickle is written to files and sent to others: it says where the password comes from, not what it is.
        import sqlalchemy as sa

        parsed = sa.make_url(self.url)
        query = {name: value for name, value in parsed.query.items() if not passwords.is_secret(name, value)}
        kept = sa.URL.create(parsed.drivername, parsed.username, None, parsed.host, parsed.port, parsed.database, query)
        state = {"url": kept.render_as_string(hide_password=False), "identity": self.identity}
        return {**state, "asks": parsed.password is not None, "source": passwords.source_of(self.identity)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        url = state["url"]
        if state.get("asks"):
            import sqlalchemy as sa

            password = passwords.password_again(state["identity"], state["source"])
            url = sa.make_url(url).set(password=password).render_as_string(hide_password=False) if password else url
        self.__dict__.update(url=url, identity=state["identity"])

    def pool(self) -> sa.Engine:
        """SQLAlchemy's engine of this process; raises MissingExtra where the driver is not installed."""
        import sqlalchemy as sa

        with _lock:
            if self.url not in _pools:
                try:
                    kept = {} if self.url.startswith("sqlite") else _KEPT
                    with quiet():  # warnings about an option contain its value
                        made = sa.create_engine(self.url, pool_pre_ping=True, **kept)
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
                    f"{self.identity} does not accept the connection: {self._said(error)}. The same call fails again: "
                    "correct the URL or the rights of its user"
                ) from None
            raise ServerGone(f"{self.identity} cannot be reached: {self._said(error)}") from None
        except (TypeError, ValueError):  # a driver that does not know an option, or its value
            raise InvalidArgument(
                f"the driver of {self.identity} does not accept the options after the ? in its URL"
            ) from None
        try:
            yield connection
        except sa.exc.SQLAlchemyError as error:
            if isinstance(error, sa.exc.DBAPIError) and error.connection_invalidated:
                raise ServerGone(f"lost {self.identity} while reading {what}: {self._said(error)}") from None
            raise UnreadableTable(f"{what} of {self.identity} cannot be read: {self._said(error)}") from None
        finally:
            connection.close()

    def _said(self, error: Exception) -> str:
        """What the driver said, without the statement, cells that it quotes and the values of options."""
        import sqlalchemy as sa

        said = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        if isinstance(error, sa.exc.DataError):
            said = re.sub("[\"'].*", "'…'", said)
        for values in sa.make_url(self.url).normalized_query.values():
            for value in filter(None, values):
                said = said.replace(value, "…")
        return said


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
