"""Connections to PostgreSQL servers that are free again wait for the next call of the process."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from tagframe.engines.postgres.connection import SECONDS, Held, Looking, Reading, Server, named, settings
from tagframe.errors import MissingExtra

_WAITING = 4
"""Free connections of a kind that are kept."""


UNLIKE = "22012"
"""How a check says that something has changed: a division by zero."""


class Unlike(Exception):
    """Something is not as it was."""


class _Pool:
    """Connections of this process that are free: psycopg's and, for rows, ADBC's, which psycopg_pool cannot hold."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: dict[tuple[str, type[Held]], list[Held]] = {}
        self._inherited: list[dict[tuple[str, type[Held]], list[Held]]] = []
        self._process = os.getpid()

    def taken(self, server: Server, kind: type[Held]) -> Held | None:
        """One that is free, or None."""
        with self._lock:
            self._mine()
            free = self._free.get((server.conninfo, kind))
            return free.pop() if free else None

    def put(self, held: Held) -> None:
        """Keep one that is free again, or close it."""
        with self._lock:
            self._mine()
            free = self._free.setdefault((held.server.conninfo, type(held)), [])
            if len(free) < _WAITING:
                free.append(held)
                return
        held.close()

    def close(self) -> None:
        with self._lock:
            self._mine()
            gone = [held for free in self._free.values() for held in free]
            self._free.clear()
        for held in gone:
            held.close()

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


@contextmanager
def reading(server: Server, seconds: float = SECONDS, *, snapshot: bool = False, check: str = "") -> Iterator[Reading]:
    """A connection for rows for a block, in which statements are stopped after so many seconds.

    Args:
        server: whose.
        seconds: after which the server stops a statement.
        snapshot: whether all statements see one state.
        check: what is run before them in the same round trip.

    Raises:
        ServerGone: there is none.
        Unlike: the check fails.
    """
    with _lent(Reading, server, seconds, snapshot, check) as held:
        yield held


@contextmanager
def looking(server: Server, seconds: float = SECONDS) -> Iterator[Looking]:
    """A connection for the catalogue; see :func:`reading`."""
    with _lent(Looking, server, seconds, False, "") as held:
        yield held


H = TypeVar("H", bound=Held)


@contextmanager
def _lent(kind: type[H], server: Server, seconds: float, snapshot: bool, check: str) -> Iterator[H]:
    held = _taken(kind, server, seconds, snapshot, check)
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
    else:
        _pool.put(held)


def _taken(kind: type[H], server: Server, seconds: float, snapshot: bool, check: str) -> H:
    while (known := _pool.taken(server, kind)) is not None:
        try:
            known.limit(seconds, snapshot=snapshot, check=check)  # tells too whether it is still there
        except Exception as error:
            known.close()
            _say_unlike(error)
        else:
            assert isinstance(known, kind)
            return known
    try:
        fresh = kind.made(server)
    except MissingExtra:
        raise
    except Exception as error:
        raise named(error, server) from None
    try:
        fresh.run("; ".join(settings(SECONDS)))
        fresh.limit(seconds, snapshot=snapshot, check=check)
    except Exception as error:
        fresh.close()
        _say_unlike(error)
        raise named(error, server) from None
    return fresh


def _say_unlike(error: Exception) -> None:
    if getattr(error, "sqlstate", None) == UNLIKE:
        raise Unlike from None
