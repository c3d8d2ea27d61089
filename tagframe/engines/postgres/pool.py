"""Connections to PostgreSQL servers wait for the next call of the process.

psycopg's are in a pool of psycopg_pool. ADBC's, which that cannot have, are in one of SQLAlchemy's, as ADBC's own guide
recommends. A child process has pools of its own: it must neither use nor close its parent's connections.
"""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from tagframe.config import current
from tagframe.engines.postgres.connection import (
    SECONDS,
    Looking,
    Reading,
    Server,
    connected,
    driver,
    in_time,
    named,
    set_up,
)

if TYPE_CHECKING:
    from psycopg_pool import ConnectionPool
    from sqlalchemy.pool import PoolProxiedConnection, QueuePool

_MOST_OPEN = 16
"""Connections in psycopg's pool; more are made beside it."""
_MOST_FREE = 4
"""Connections of ADBC's that wait; as many as are needed are made."""
_PATIENCE = 0.5
"""Seconds after which a connection is made beside the pool: the pool does not say why it has none."""
_Key = tuple[int, str]
"""The process and the server."""
_looking: dict[_Key, ConnectionPool[Any]] = {}
_reading: dict[_Key, QueuePool] = {}
# Errors are raised here; without a handler Python would print those of the pool's own threads, too.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())


def close_connections() -> None:
    """Close the connections that wait for a next call."""
    for key in [key for key in list(_looking) if key[0] == os.getpid()]:
        _looking.pop(key).close()
    for key in [key for key in list(_reading) if key[0] == os.getpid()]:
        _reading.pop(key).dispose()


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
        with suppress(driver("psycopg_pool").PoolTimeout):
            connection = pool.getconn(_PATIENCE)
            return connection, partial(pool.putconn, connection)
    connection = connected(server)
    made = driver("psycopg_pool").ConnectionPool
    pool = _looking.setdefault(
        key,
        made(
            server.conninfo, kwargs={"autocommit": True, "prepare_threshold": None}, min_size=0, max_size=_MOST_OPEN,
            num_workers=1, open=False, configure=set_up, check=made.check_connection, reconnect_timeout=_PATIENCE,
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
    lent, is_whole = _of_adbc(server, seconds, snapshot), False
    session: Any = lent.dbapi_connection
    try:
        yield session
        with suppress(Exception):  # all that was wanted is there
            if snapshot:
                session.run("COMMIT")
            is_whole = True
    finally:
        if is_whole:
            lent.close()
        else:
            lent.invalidate()


def _of_adbc(server: Server, seconds: float, snapshot: bool) -> PoolProxiedConnection:
    key = os.getpid(), server.conninfo
    if (pool := _reading.get(key)) is None:
        made = driver("sqlalchemy.pool").QueuePool
        fresh = made(partial(Reading, server), pool_size=_MOST_FREE, max_overflow=-1, reset_on_return=None)
        pool = _reading.setdefault(key, fresh)
    while True:
        try:
            lent = in_time(pool.connect, current().timeout, server, lambda late: late.result().close())
        except Exception as error:
            raise named(error, server) from None
        session: Any = lent.dbapi_connection
        is_new, lent.info["is used"] = not lent.info, True
        try:
            session.limit(seconds, snapshot=snapshot)  # fails if the server has closed it
        except Exception as error:
            lent.invalidate()
            if is_new:
                raise named(error, server) from None
        else:
            return lent
