"""Free connections to PostgreSQL servers are kept for the next call of the process."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TypeVar

from tagframe.config import current
from tagframe.engines.postgres.connection import SECONDS, Held, Looking, Reading, Server, in_time, named

_WAITING = 4
"""Free connections of a kind that are kept."""


UNLIKE = "22012"
"""How a check says that something has changed: a division by zero."""


class Unlike(Exception):
    """Something has changed."""


# One pool per process: a child must neither use nor close its parent's connections. They are psycopg's and, for rows,
# ADBC's, which psycopg_pool cannot hold.
_free: dict[tuple[int, str, type[Held]], list[Held]] = {}


def close_connections() -> None:
    """Close the connections that wait for a next call."""
    for known_as in [known_as for known_as in list(_free) if known_as[0] == os.getpid()]:
        for held in _free.pop(known_as, ()):
            held.close()


atexit.register(close_connections)


def reading(
    server: Server, seconds: float = SECONDS, *, snapshot: bool = False, check: str = ""
) -> AbstractContextManager[Reading]:
    """A connection for rows for a block, in which statements are stopped after so many seconds.

    Args:
        server: which one.
        seconds: after which the server stops a statement.
        snapshot: whether all statements see one state.
        check: what is run before them in the same round trip.

    Raises:
        ServerGone: none can be made.
        Unlike: the check fails.
    """
    return _lent(Reading, server, seconds, snapshot, check)


def looking(server: Server, seconds: float = SECONDS) -> AbstractContextManager[Looking]:
    """A connection for the system catalogs; see :func:`reading`."""
    return _lent(Looking, server, seconds, False, "")


H = TypeVar("H", bound=Held)


@contextmanager
def _lent(kind: type[H], server: Server, seconds: float, snapshot: bool, check: str) -> Iterator[H]:
    known_as = (os.getpid(), server.conninfo, kind)
    held = _taken(_free.setdefault(known_as, []), kind, server, seconds, snapshot, check)
    try:
        yield held
    except BaseException:
        held.close()
        raise
    try:
        if snapshot:
            held.run("COMMIT")
    except Exception:  # all that was asked for is there
        held.close()
        return
    free = _free.setdefault(known_as, [])
    if len(free) < _WAITING:
        free.append(held)
    else:
        held.close()


def _taken(free: list[Held], kind: type[H], server: Server, seconds: float, snapshot: bool, check: str) -> H:
    while free:
        with suppress(IndexError):  # another thread has taken it
            known = free.pop()
            try:
                known.limit(seconds, snapshot=snapshot, check=check)  # tells too whether it is still there
            except Exception as error:
                known.close()
                _say_unlike(error)
            else:
                assert isinstance(known, kind)
                return known
    fresh = None
    try:
        fresh = in_time(lambda: kind.made(server), current().timeout, server, lambda late: late.result().close())
        fresh.begin()
        fresh.limit(seconds, snapshot=snapshot, check=check)
    except Exception as error:
        if fresh is not None:
            fresh.close()
        _say_unlike(error)
        raise named(error, server) from None
    return fresh


def _say_unlike(error: Exception) -> None:
    if getattr(error, "sqlstate", None) == UNLIKE:
        raise Unlike from None
