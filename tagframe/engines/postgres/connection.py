"""Read-only connections to a PostgreSQL server, and the messages of their errors.

A connection is made with ADBC, which gives rows as Arrow tables, or with psycopg, which can stop between rows and
starts at once: ADBC first reads the types of the whole database, one of them for each table. Every connection is first
set to read only, to stop a statement after a time and not to wait for locks. The server enforces that, whatever a
statement says.

Connections wait for the next call of the process: psycopg's in a pool of psycopg_pool, ADBC's, which that cannot have,
in a list. A child process has pools of its own: it must neither use nor
close its parent's connections.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import sys
import threading
import urllib.parse
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import adbc_driver_postgresql.dbapi
import psycopg
import pyarrow as pa
from psycopg import conninfo
from psycopg.postgres import types
from psycopg.rows import dict_row
from psycopg.types.datetime import DateLoader, TimestampLoader, TimestamptzLoader
from psycopg.types.string import TextLoader
from psycopg_pool import ConnectionPool, PoolTimeout

from tagframe.config import current
from tagframe.engines import passwords
from tagframe.errors import ConnectionRefusedByServer, InvalidArgument, ServerGone, UnreadableTable

T = TypeVar("T")
SECONDS = 600.0
"""The time limit of our own statements; those of profiles have a lower one."""
MOST_SPILLED = 16 * 1024
"""Megabytes that one of our own statements may write to files in the server; untrusted ones have a lower limit."""
_LOCK_SECONDS = 10
_CONNECT_SECONDS = 10
_GRACE = 5.0
"""Seconds to wait for a server after its time limit for a statement."""
SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_PUBLIC = frozenset("user host hostaddr port dbname application_name sslrootcert sslcert sslkey sslcrl".split())
"""Options whose values may stand in messages: where the server is, and files."""
_LONG = 6
"""A value of this many letters is never in a message by chance."""
_KEYWORDS = {"postgresql", "postgres"}
_WITHOUT_PASSWORD = ". A pickle of a corpus has no password: set PGPASSWORD or TAGFRAME_PASSWORD to load it"


class TookTooLong(UnreadableTable):
    """The server stopped a statement of ours, or its user did."""


@dataclass(frozen=True)
class Server:
    """A database of a server, and how to reach it.

    Attributes:
        conninfo: as libpq takes it, with the password; never shown.
        identity: the same for a reader, without password.
        role: the role in which a model's statements run; "" for the role that connects.
    """

    conninfo: str = field(repr=False)
    identity: str
    role: str = ""

    @classmethod
    def of(cls, url: str) -> Server:
        """From ``postgresql://user:password@host:port/database?role=reader``; libpq fills in what it leaves out
        (``PGPASSWORD``, …).

        Raises:
            InvalidArgument: it does not parse; the message shows no part of it, because a password may be anywhere in
                it.
        """
        scheme, _, rest = url.partition("://")
        rest, role = _without_role(rest)
        authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
        parsed = None
        # An unescaped character could make a part of the password the host or the port, which are shown.
        if rest.count("@") == authority.count("@") <= 1 and scheme.partition("+")[0] in _KEYWORDS:
            with suppress(Exception):
                parsed = conninfo.conninfo_to_dict(f"postgresql://{rest}")
        # So would a URL without its host: user:password would be host:port.
        ports = str((parsed or {}).get("port") or "0").split(",")
        if parsed is None or not all(port.isdecimal() and int(port) < 2**16 for port in ports if port):
            raise InvalidArgument(
                "a server is given as postgresql://user:password@host:port/database; in a user or password the "
                "characters @ : / ? # % are written %40 %3A %2F %3F %23 %25 (urllib.parse.quote(password, safe='') "
                "does it)"
            )
        given = {name: str(value) for name, value in parsed.items() if value is not None}
        parts = {name: urllib.parse.quote(given.get(name, ""), safe="") for name in ("user", "dbname")}
        where = given.get("host") or given.get("hostaddr") or "localhost"
        port = f":{given['port']}" if "port" in given else ""
        user = f"{parts['user']}@" if parts["user"] else ""
        settings = {"connect_timeout": _CONNECT_SECONDS, "application_name": "tagframe", **given}
        identity = f"postgresql://{user}{where}{port}/{parts['dbname']}"
        if given.get("password"):
            passwords.keep(identity, given["password"])
        return cls(conninfo.make_conninfo("", **settings), identity, role)

    def without_options(self, message: str) -> str:
        """A message without the values of options: a password that was typed for one would be in it."""
        for name, value in conninfo.conninfo_to_dict(self.conninfo).items():
            if name not in _PUBLIC:
                for part in {str(value), *str(value).split()}:
                    message = message.replace(f'"{part}"', '"…"') if len(part) < _LONG else message.replace(part, "…")
        return message

    def __getstate__(self) -> dict[str, Any]:
        # A pickle is written to files and sent to others: it has no password.
        given = conninfo.conninfo_to_dict(self.conninfo)
        public = {name: value for name, value in given.items() if not passwords.is_secret(name, value)}
        state = {"conninfo": conninfo.make_conninfo("", **public), "identity": self.identity, "role": self.role}
        return {**state, "asks": "password" in given}

    def __setstate__(self, state: dict[str, Any]) -> None:
        address = state["conninfo"]
        if state.get("asks"):
            password = passwords.password_again(state["identity"])
            # Without one, libpq looks for it itself: PGPASSWORD, the file of passwords.
            address = conninfo.make_conninfo(address, **({"password": password} if password else {}))
        self.__dict__.update(conninfo=address, identity=state["identity"], role=state["role"])


def _without_role(rest: str) -> tuple[str, str]:
    """A URL after its scheme, without the option ``role``, which libpq does not have; and the role."""
    place, mark, options = rest.partition("?")
    parts = options.split("&")
    others = "&".join(part for part in parts if not part.startswith("role="))
    roles = [urllib.parse.unquote(part.removeprefix("role=")) for part in parts if part.startswith("role=")]
    return f"{place}{mark if others else ''}{others}", "".join(roles[-1:])


def lowered(setting: str, seconds: float, *, local: bool = False) -> str:
    """A statement that lowers a time limit, which may be lower already: of the role, the database or the URL."""
    now = f"(extract(epoch FROM current_setting('{setting}')::interval) * 1000)::int8"
    least = f"least({max(1, int(seconds * 1000))}, nullif({now}, 0))"  # 0 is no limit
    return f"SELECT set_config('{setting}', {least}::text, {str(local).lower()})"


def settings(version: int) -> str:
    """The first statements of a connection to a server of this version.

    Text of dates, numbers and intervals is the same everywhere; rows of one statement come in the same order each time:
    no parallel workers, no scan that starts where another one is.
    """
    return "; ".join(
        [
            "SET default_transaction_read_only = on",
            f"SET idle_in_transaction_session_timeout = {int(2 * SECONDS * 1000)}",
            # A name without a schema is looked up here alone: tables are sent with theirs, and no more than these need
            # it. Functions, operators and types that others made in a schema are not found, however well they fit the
            # arguments, as none of them is in pg_catalog; hashing and sorting go by a type's own operators, for which
            # a superuser made them. Only casts are found by their types, wherever they are: see _COLUMNS in
            # pg_catalog.py.
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
            spilling(version, MOST_SPILLED),
        ]
    )


def spilling(version: int, megabytes: int, *, local: bool = False) -> str:
    """A statement that lowers ``temp_file_limit``, if the role may: a superuser, or one to whom SET on it was granted.

    Args:
        version: of the server, as its ``server_version_num``.
        megabytes: that the server may write to files at the same time for this connection.
        local: whether the limit ends with the transaction.
    """
    granted = " OR has_parameter_privilege('temp_file_limit', 'SET')" if version >= 150000 else ""
    return (
        f"SELECT set_config('temp_file_limit', '{megabytes}MB', {str(local).lower()}) "
        "WHERE pg_size_bytes(current_setting('temp_file_limit')) NOT BETWEEN 0 AND "
        f"{megabytes * 2**20} AND (current_setting('is_superuser') = 'on'{granted})"
    )


def in_time(work: Callable[[], T], seconds: float | None, server: Server, left: Callable[[Future[T]], object]) -> T:
    """What a wait on the server gives.

    The drivers wait in C, for as long as the network says that the server is there. So they wait in a thread, which is
    left behind if the server does not answer in time.

    Args:
        work: the wait.
        seconds: the most that it may take; None for no limit.
        server: which one, for the message.
        left: gets the outcome of a wait that was left behind.

    Raises:
        ServerGone: there is no answer in time.
    """
    done: Future[T] = Future()
    gave_up = threading.Event()

    def wait() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)
        if gave_up.is_set():
            with suppress(Exception):
                left(done)

    threading.Thread(target=wait, name="tagframe postgres", daemon=True).start()
    try:
        return done.result(seconds)
    except BaseException:
        if done.done():
            raise
        gave_up.set()
        if sys.exc_info()[0] is not FutureTimeoutError:
            raise  # an interruption by the user
    raise ServerGone(
        f"{server.identity} did not answer within {seconds:g} seconds. Finished work is kept; the same call connects "
        "again, and timeout= of tagframe.configure sets how long it waits"
    )


def time_limits(seconds: float) -> tuple[float, float]:
    """The seconds after which the server stops a statement, and after which we do not wait for it any more."""
    timeout = current().timeout
    if timeout is None:
        return seconds, seconds + _GRACE
    return min(seconds, 0.9 * timeout), min(seconds + _GRACE, timeout)


class Session(ABC):
    """One connection, used by one call.

    Args:
        connection: of a driver.
        server: that it is to.
        give_back: what becomes of the connection after the call.
    """

    def __init__(self, connection: Any, server: Server, give_back: Callable[[], object]) -> None:
        self.connection, self.server, self._give_back = connection, server, give_back
        self._waits, self._is_busy = time_limits(_CONNECT_SECONDS)[1], False

    @abstractmethod
    def _run(self, sql: str) -> None: ...

    def run(self, sql: str) -> None:
        """Statements without rows, of our own, in one round trip."""
        self.in_time(lambda: self._run(sql))

    def in_time(self, work: Callable[[], T]) -> T:
        """What the driver gives; raises ServerGone if it does not in time."""

        def busy() -> T:
            try:
                return work()
            finally:
                self._is_busy = False

        self._is_busy = True
        return in_time(busy, self._waits, self.server, lambda _: self.close())

    @abstractmethod
    def rows(self, sql: str, what: str = "pg_catalog") -> list[dict[str, Any]]:
        """The rows of a query of our own, which are few or small; ``what`` names it in messages.

        Raises:
            ConnectionRefusedByServer: it does not accept the connection.
            ServerGone: it cannot be reached, or went away.
            UnreadableTable: it cannot answer.
        """

    def close(self) -> None:
        """Give the connection back, whatever its state; later, if a wait on it was left behind."""
        if not self._is_busy:
            with suppress(Exception):
                self._give_back()

    def limit(self, seconds: float, *, snapshot: bool = False) -> None:
        """Set the time limit of later statements, and what the arguments ask for, in one round trip.

        The server's own limit holds if it is lower.

        Args:
            seconds: the time limit.
            snapshot: whether all later statements see one state; a transaction is begun for that.
        """
        seconds, self._waits = time_limits(seconds)
        script = [
            "RESET statement_timeout",
            "RESET lock_timeout",
            *([SNAPSHOT] if snapshot else ()),
            lowered("statement_timeout", seconds, local=snapshot),
            # A lock is waited for less long: a table that is locked is another error than one that takes too long.
            lowered("lock_timeout", min(_LOCK_SECONDS, seconds / 2), local=snapshot),
        ]
        self.run("; ".join(script))

    @contextmanager
    def errors(self, what: str = "") -> Iterator[None]:
        """A block in which the drivers' errors become ours."""
        try:
            yield
        except Exception as error:
            raise named(error, self.server, what) from None


class Looking(Session):
    """A connection of psycopg's, for the system catalogs and for untrusted statements."""

    def _run(self, sql: str) -> None:
        self.connection.execute(sql)

    def rows(self, sql: str, what: str = "pg_catalog") -> list[dict[str, Any]]:
        def fetched() -> list[dict[str, Any]]:
            rows: list[dict[str, Any]] = self.connection.cursor(row_factory=dict_row).execute(sql).fetchall()
            return rows

        with self.errors(what):
            return self.in_time(fetched)


class Reading(Session):
    """A connection of ADBC's, for rows. Each statement runs by itself, unless a transaction is begun.

    Raises:
        Exception: what the driver raises if there is no connection.
    """

    def __init__(self, server: Server) -> None:
        made = adbc_driver_postgresql.dbapi.connect(server.conninfo, autocommit=True)
        super().__init__(made, server, made.close)
        try:
            self.run(settings(int(made.adbc_get_info()["vendor_version"])))
        except BaseException:
            self.close()
            raise

    def _run(self, sql: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.executescript(sql)

    def rows(self, sql: str, what: str = "pg_catalog") -> list[dict[str, Any]]:
        """As :meth:`fetch`, of few rows."""
        rows: list[dict[str, Any]] = self.fetch(sql, what, few=True).to_pylist()
        return rows

    def fetch(self, sql: str, what: str = "", *, few: bool = False) -> pa.Table:
        """The rows of a query of our own.

        Args:
            sql: trusted.
            what: what is read, for messages.
            few: whether few rows come: then COPY is not used, for which the server would plan the query again.

        Raises:
            ServerGone: it cannot be reached, or went away.
            UnreadableTable: it cannot answer.
        """

        def fetched() -> pa.Table:
            with self.connection.cursor() as cursor:
                if few:
                    cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "false"})
                cursor.execute(sql)
                return cursor.fetch_arrow_table()

        with self.errors(what):
            return self.in_time(fetched)


_LOADED = frozenset(
    "bool int2 int4 int8 float4 float8 numeric text varchar bpchar name date timestamp timestamptz bytea oid".split()
)


def connected(server: Server) -> Any:
    """A new connection of psycopg's; raises what the driver raises."""
    made = psycopg.connect(server.conninfo, autocommit=True, prepare_threshold=None)
    try:
        set_up(made)
    except BaseException:
        made.close()
        raise
    return made


def set_up(connection: Any) -> None:
    """Set a new connection of psycopg's up: values without a pandas type come as the server's text."""
    connection.execute(settings(connection.info.server_version))
    for info in types:
        if info.name not in _LOADED:
            connection.adapters.register_loader(info.oid, TextLoader)
        if info.array_oid:
            connection.adapters.register_loader(info.array_oid, TextLoader)

    def forgiving(base: Any) -> Any:
        class Loader(base):  # type: ignore[misc]
            """An infinity, or a year that Python does not have, stays text."""

            def load(self, data: Any) -> Any:
                try:
                    return super().load(data)
                except psycopg.DataError:
                    return bytes(data).decode()

        return Loader

    for name, base in (("date", DateLoader), ("timestamp", TimestampLoader), ("timestamptz", TimestamptzLoader)):
        connection.adapters.register_loader(name, forgiving(base))


def named(error: Exception, server: Server, what: str = "") -> Exception:
    """A driver's error as one of ours; other errors are returned unchanged."""
    module = type(error).__module__
    if not module.startswith(("adbc_driver_manager", "psycopg", "pyarrow")):
        return error
    state = getattr(error, "sqlstate", None) or ""
    if module.startswith("pyarrow"):
        # The error of a stream is the driver's message, with the state at its end.
        match = re.search(r"SQLSTATE: (\w{5})", str(error))
        state = match[1] if match else ""
    message = server.without_options(without_cells(state, _words(error)))
    if state[:2] in ("28", "3D") or state == "57P04" or (not state and _is_refused(str(error))):
        return ConnectionRefusedByServer(
            f"{server.identity} does not accept the connection: {message}. The same call fails again: correct the URL "
            f"or the rights of its user{_WITHOUT_PASSWORD if 'password' in message else ''}"
        )
    if not state or state[:2] == "08" or state in ("53300", "57P01", "57P02", "57P03", "57P05"):
        return ServerGone(
            f"{server.identity} cannot be reached, or the connection was lost: {message}. Finished work is kept; the "
            "same call connects again"
        )
    about = f"{what} of {server.identity}" if what else server.identity
    refusal = _of_state(state, about, message)
    refusal.retryable = is_passing(state)
    return refusal


def is_passing(state: str) -> bool:
    """Whether the same statement may succeed later: a conflict (class 40), no lock, or resources that were used up."""
    return state[:2] == "40" or state in ("53000", "53100", "53200", "55006", "55P03", "58030")


# libpq gives no SQLSTATE for a connection that is not made.
_FOR_NOW = ("starting up", "shutting down", "recovery", "too many", "connection slots", "terminat", "reserved for")
_UNMET = ("no password supplied", "does not support SSL", "certificate", "authentication method")


def _is_refused(message: str) -> bool:
    """Whether a server did not accept a connection, whatever the language of its messages, and will not later."""
    by_server = re.search(r"failed: \w+:  ", message) is not None and not any(word in message for word in _FOR_NOW)
    return by_server or any(word in message for word in _UNMET)


def _of_state(state: str, about: str, message: str) -> UnreadableTable:
    if state == "57014":
        return TookTooLong(f"{about} was not read to the end: {message}")
    if state == "55P03":
        return UnreadableTable(f"{about} is locked by another session: {message}. Try again when that has ended")
    if state in ("42P01", "42703", "3F000"):
        return UnreadableTable(f"{about} has changed: {message}. Call tagframe.open_corpus again")
    return UnreadableTable(f"{about} cannot be read: {message}")


def without_cells(state: str, message: str) -> str:
    """What the server said without cells that it may quote: of any column, as a view may cast another one."""
    if state.startswith("P0"):  # a function's own words
        return "a function there raised an error"
    return re.sub('".*', '"…"', message, flags=re.DOTALL) if state[:2] in ("22", "23") else message


def _words(error: BaseException) -> str:
    """What the server said, without the statement."""
    text = str(error).partition("\n\nQuery was:")[0]
    match = re.search(r"(?:ERROR|FATAL):\s+(.*)", text)
    line = match[1] if match else (text.strip().splitlines() or ["no word"])[0]
    return line.strip().rstrip(".")


# --- pools ------------------------------------------------------------------------------------------------------------

_MOST_OPEN = 16
"""Connections in psycopg's pool; more are made beside it."""
_MOST_FREE = 4
"""Connections of ADBC's that wait; as many as are needed are made."""
_PATIENCE = 0.5
"""Seconds after which a connection is made beside the pool: the pool does not say why it has none."""
_Key = tuple[int, str]
"""The process and the server."""
_looking: dict[_Key, ConnectionPool[Any]] = {}
_reading: defaultdict[_Key, list[Reading]] = defaultdict(list)
# Errors are raised here; without a handler Python would print those of the pool's own threads, too.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())


def close_connections() -> None:
    """Close the connections that wait for a next call."""
    for key in [key for key in list(_looking) if key[0] == os.getpid()]:
        _looking.pop(key).close()
    for key in [key for key in list(_reading) if key[0] == os.getpid()]:
        for session in _reading.pop(key):
            session.close()


atexit.register(close_connections)


@contextmanager
def looking(server: Server, seconds: float = SECONDS) -> Iterator[Looking]:
    """A connection of psycopg's for a block, in which statements are stopped after so many seconds.

    Raises:
        ConnectionRefusedByServer: the server does not accept it.
        ServerGone: none can be made.
    """
    try:
        connection, give_back = in_time(
            partial(_of_psycopg, server), current().timeout, server, lambda late: late.result()[1]()
        )
        session = Looking(connection, server, give_back)
    except Exception as error:
        raise named(error, server) from None
    try:
        with session.errors():
            session.limit(seconds)
        yield session
    finally:
        session.close()


def _of_psycopg(server: Server) -> tuple[Any, Callable[[], object]]:
    """A connection, and what gives it back."""
    key = os.getpid(), server.conninfo
    if (pool := _looking.get(key)) is not None:
        with suppress(PoolTimeout):
            connection = pool.getconn(_PATIENCE)
            return connection, partial(pool.putconn, connection)
    connection = connected(server)
    pool = _looking.setdefault(
        key,
        ConnectionPool(
            server.conninfo, kwargs={"autocommit": True, "prepare_threshold": None}, min_size=0, max_size=_MOST_OPEN,
            num_workers=1, open=False, configure=set_up, check=ConnectionPool.check_connection,
            reconnect_timeout=_PATIENCE,
        ),
    )  # fmt: skip
    pool.open()
    return connection, connection.close


@contextmanager
def reading(server: Server, seconds: float = SECONDS, *, snapshot: bool = False) -> Iterator[Reading]:
    """A connection of ADBC's for a block, in which statements are stopped after so many seconds.

    Args:
        server: which one.
        seconds: after which the server stops a statement.
        snapshot: whether all statements see one state.

    Raises:
        ConnectionRefusedByServer: the server does not accept it.
        ServerGone: none can be made.
    """
    session, is_whole = _of_adbc(server, seconds, snapshot), False
    try:
        yield session
        with suppress(Exception):  # all that was wanted is there
            if snapshot:
                session.run("COMMIT")
            is_whole = True
    finally:
        free = _reading[os.getpid(), server.conninfo]
        if is_whole and len(free) < _MOST_FREE:
            free.append(session)
        else:
            session.close()


def _of_adbc(server: Server, seconds: float, snapshot: bool) -> Reading:
    free = _reading[os.getpid(), server.conninfo]
    while True:
        session = None
        with suppress(IndexError):
            session = free.pop()
        try:
            made = session or in_time(
                partial(Reading, server), current().timeout, server, lambda late: late.result().close()
            )
            made.limit(seconds, snapshot=snapshot)  # fails if the server has closed it
            return made
        except Exception as error:
            if session is None:
                raise named(error, server) from None
            session.close()
