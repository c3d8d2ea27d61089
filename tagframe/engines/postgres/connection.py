"""Connections to a PostgreSQL server that can only read, and what is said where one fails.

A connection is made with ADBC, which brings rows as Arrow tables, or with psycopg, which can stop between rows. Each is
told, before anything else, to read only, to stop a statement after a time and not to wait for locks; the server holds
to that, whatever a statement says. Connections that are free again wait for the next call of the process.
"""

from __future__ import annotations

import atexit
import os
import re
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tagframe.errors import InvalidArgument, MissingExtra, ServerGone, UnreadableTable

if TYPE_CHECKING:
    import pyarrow as pa

SECONDS = 600.0
"""A statement of our own may take so long; those of profiles, less."""
_LOCK_SECONDS = 10
_CONNECT_SECONDS = 10
_WAITING = 4
"""Free connections of a kind that are kept."""
_KEYWORDS = {"postgresql", "postgres"}


class TookTooLong(UnreadableTable):
    """The server stopped a statement of ours, or its user did."""


@dataclass(frozen=True)
class Server:
    """A database of a server, and how to reach it.

    Attributes:
        conninfo: as libpq takes it, the password in it; never shown.
        identity: the same for a reader, without password.
    """

    conninfo: str = field(repr=False)
    identity: str

    @classmethod
    def of(cls, url: str) -> Server:
        """From ``postgresql://user:password@host:port/database``; what it leaves out libpq knows (``PGPASSWORD``, …).

        Raises:
            InvalidArgument: it does not parse; the message holds nothing of it, as a password may be anywhere in it.
            MissingExtra: the drivers are not installed.
        """
        conninfo = _psycopg().conninfo
        scheme, _, rest = url.partition("://")
        authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
        parsed = None
        # A sign of the password that is not escaped would make a part of it the host or the port, which are shown.
        if rest.count("@") == authority.count("@") <= 1 and scheme.partition("+")[0] in _KEYWORDS:
            with suppress(Exception):
                parsed = conninfo.conninfo_to_dict(f"postgresql://{rest}")
        if parsed is None:
            raise InvalidArgument(
                "a server is given as postgresql://user:password@host:port/database; in a user or password the signs "
                "@ : / ? # % are written %40 %3A %2F %3F %23 %25 (urllib.parse.quote(password, safe='') does it)"
            )
        given = {name: str(value) for name, value in parsed.items() if value is not None}
        shown = {name: urllib.parse.quote(given.get(name, ""), safe="") for name in ("user", "dbname")}
        where = given.get("host") or given.get("hostaddr") or "localhost"
        port = f":{given['port']}" if "port" in given else ""
        user = f"{shown['user']}@" if shown["user"] else ""
        settings = {"connect_timeout": _CONNECT_SECONDS, "application_name": "tagframe", **given}
        return cls(conninfo.make_conninfo("", **settings), f"postgresql://{user}{where}{port}/{shown['dbname']}")


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtra('PostgreSQL needs its drivers: pip install "tagframe[postgres]"') from error
    return psycopg


def _adbc() -> Any:
    try:
        import adbc_driver_postgresql.dbapi as adbc
    except ImportError as error:
        raise MissingExtra('PostgreSQL needs its drivers: pip install "tagframe[postgres]"') from error
    return adbc


def settings(seconds: float) -> list[str]:
    """What a connection is told first.

    Text of dates, numbers and intervals is the same everywhere; rows of one statement come in the same order each time:
    no workers beside each other, no scan that begins where another one is.
    """
    return [
        "SET default_transaction_read_only = on",
        f"SET statement_timeout = {max(1, int(seconds * 1000))}",
        f"SET lock_timeout = {_LOCK_SECONDS * 1000}",
        f"SET idle_in_transaction_session_timeout = {int(2 * SECONDS * 1000)}",
        "SET search_path = pg_catalog",
        "SET client_encoding = 'UTF8'",
        "SET timezone = 'UTC'",
        "SET datestyle = 'ISO, YMD'",
        "SET intervalstyle = 'postgres'",
        "SET bytea_output = 'hex'",
        "SET standard_conforming_strings = on",
        "SET extra_float_digits = 1",
        "SET synchronize_seqscans = off",
        "SET max_parallel_workers_per_gather = 0",
    ]


class Reading:
    """One connection of ADBC's, in the hands of one call."""

    def __init__(self, connection: Any, server: Server) -> None:
        self.connection, self.server = connection, server

    def close(self) -> None:
        """Whatever has become of it."""
        with suppress(Exception):
            self.connection.close()

    def run(self, sql: str) -> None:
        """Statements without rows, of our own, in one round trip."""
        with self.connection.cursor() as cursor:
            cursor.executescript(sql)

    def limit(self, seconds: float, then: str = "") -> None:
        """From here on the server stops statements after so long; ``then`` is run in the same round trip."""
        self.run(f"SET statement_timeout = {max(1, int(seconds * 1000))}{f'; {then}' if then else ''}")

    def fetch(self, sql: str, what: str = "", *, few: bool = False) -> pa.Table:
        """The rows of a query of our own.

        Args:
            sql: trusted.
            what: is read, for messages.
            few: whether few rows come: then they are not copied, for which the server would plan the query again.

        Raises:
            ServerGone: it cannot be reached, or went away.
            UnreadableTable: it cannot answer.
        """
        with self.errors(what), self.connection.cursor() as cursor:
            if few:
                cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "false"})
            cursor.execute(sql)
            return cursor.fetch_arrow_table()

    @contextmanager
    def batches(self, sql: str, what: str = "") -> Iterator[Iterator[pa.RecordBatch]]:
        """As :meth:`fetch`, a part at a time."""
        with self.errors(what), self.connection.cursor() as cursor:
            cursor.execute(sql)
            yield cursor.fetch_record_batch()

    @contextmanager
    def errors(self, what: str = "") -> Iterator[None]:
        """The drivers' errors by our names."""
        try:
            yield
        except Exception as error:
            raise named(error, self.server, what) from None


def named(error: Exception, server: Server, what: str = "") -> Exception:
    """An error of a driver by our names; others are themselves."""
    module = type(error).__module__
    if not module.startswith(("adbc_driver_manager", "psycopg", "pyarrow")):
        return error
    state = getattr(error, "sqlstate", None) or ""
    if module.startswith("pyarrow"):
        # What a stream says of its end: the driver's own words, with the state at their end.
        found = re.search(r"SQLSTATE: (\w{5})", str(error))
        state = found[1] if found else ""
    said = _words(error)
    if not state or state.startswith("08") or state in ("57P01", "57P02", "57P03", "53300"):
        return ServerGone(
            f"{server.identity} cannot be reached, or went away: {said}. What is done is kept; the same call again "
            "connects anew"
        )
    about = f"{what} of {server.identity}" if what else server.identity
    if state == "57014":
        return TookTooLong(f"{about} was not read to the end: {said}")
    if state in ("42P01", "42703", "3F000"):
        return UnreadableTable(f"{about} is not as it was: {said}. tagframe.open_corpus looks at it again")
    return UnreadableTable(f"{about} cannot be read: {said}")


def _words(error: BaseException) -> str:
    """What the server said, without the statement."""
    text = str(error).partition("\n\nQuery was:")[0]
    match = re.search(r"(?:ERROR|FATAL):\s+(.*)", text)
    line = match[1] if match else (text.strip().splitlines() or ["no word"])[0]
    return line.strip().rstrip(".")


class _Pool:
    """Connections of this process that are free."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: dict[str, list[Reading]] = {}
        self._inherited: list[dict[str, list[Reading]]] = []
        self._process = os.getpid()

    def taken(self, server: Server) -> Reading | None:
        """One that is free, or None."""
        with self._lock:
            self._mine()
            free = self._free.get(server.conninfo)
            return free.pop() if free else None

    def put(self, reads: Reading) -> None:
        """Keep one that is free again, or close it."""
        with self._lock:
            self._mine()
            free = self._free.setdefault(reads.server.conninfo, [])
            if len(free) < _WAITING:
                free.append(reads)
                return
        reads.close()

    def close(self) -> None:
        """Close all."""
        with self._lock:
            self._mine()
            gone = [reads for free in self._free.values() for reads in free]
            self._free.clear()
        for reads in gone:
            reads.close()

    def _mine(self) -> None:
        if self._process != os.getpid():
            # A child must not speak on its parent's connections, nor close them, as forgetting them would.
            self._inherited.append(self._free)
            self._free, self._process = {}, os.getpid()


_pool = _Pool()


def close_connections() -> None:
    """Close the connections that wait for a next call."""
    _pool.close()


atexit.register(close_connections)


_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


@contextmanager
def reading(server: Server, seconds: float = SECONDS, *, snapshot: bool = False) -> Iterator[Reading]:
    """A connection for a block, in which statements are stopped after so many seconds.

    Args:
        server: whose.
        seconds: after which the server stops a statement.
        snapshot: whether all statements see one state.

    Raises:
        ServerGone: there is none.
    """
    reads = _lent(server, seconds, _SNAPSHOT if snapshot else "")
    try:
        yield reads
    except BaseException:
        reads.close()
        raise
    try:
        if snapshot:
            reads.run("COMMIT")
    except Exception:  # all that was asked for is there
        reads.close()
    else:
        _pool.put(reads)


def _lent(server: Server, seconds: float, then: str) -> Reading:
    while (known := _pool.taken(server)) is not None:
        try:
            known.limit(seconds, then)  # tells too whether it is still there
            return known
        except Exception:
            known.close()
    fresh = _connected(server)
    with fresh.errors():
        fresh.limit(seconds, then)
    return fresh


def _connected(server: Server) -> Reading:
    try:
        connection = _adbc().connect(server.conninfo, autocommit=True)
        reads = Reading(connection, server)
        reads.run("; ".join(settings(SECONDS)))
    except MissingExtra:
        raise
    except Exception as error:
        raise named(error, server) from None
    return reads


@contextmanager
def stepping(server: Server, seconds: float) -> Iterator[Any]:
    """A connection of psycopg's for a block, in a transaction that only reads; closed after it.

    Raises:
        ServerGone: there is none.
    """
    psycopg = _psycopg()
    try:
        connection = psycopg.connect(server.conninfo, autocommit=True)
    except Exception as error:
        raise named(error, server) from None
    try:
        connection.execute("; ".join(settings(seconds)))
        connection.execute(_SNAPSHOT)
        yield connection
    finally:
        with suppress(Exception):
            connection.close()
