"""The thread that writes a response store: many answers to a transaction, and no request waits for a lock."""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Write: TypeAlias = tuple[str, tuple[Any, ...]]
"""A statement and its row."""

_WRITES_BETWEEN_UPKEEPS = 1000


class _Item:
    """Writes that were handed over together."""

    __slots__ = ("last", "then", "writes")

    def __init__(self, writes: Sequence[Write], then: Callable[[], None] | None, last: bool = False) -> None:
        self.writes = writes
        self.then = then
        self.last = last


class Writer:
    """Runs from the first write to :meth:`close`; started anew where more is written after that.

    Args:
        connect: makes the thread's own connection.
        upkeep: called with the connection now and then, to keep the file small.

    Attributes:
        trouble: the error that ended all writing, or None.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], upkeep: Callable[[sqlite3.Connection], None]) -> None:
        self.trouble: Exception | None = None
        self._connect = connect
        self._upkeep = upkeep
        self._queue: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._since_upkeep = 0

    def write(self, writes: Sequence[Write], then: Callable[[], None] | None = None) -> None:
        """Queue writes; ``then`` is called from the thread when they are on disk, or never will be."""
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tagframe-store", daemon=True)
                self._thread.start()
            self._queue.put(_Item(writes, then))

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all that was queued is on disk; False where that took longer than ``timeout`` seconds."""
        if self._thread is None:
            return True
        done = threading.Event()
        self.write([], done.set)
        return done.wait(timeout)

    def close(self) -> None:
        """Write what is queued and end the thread."""
        with self._starting:
            if self._thread is not None:
                self._queue.put(_Item([], None, last=True))
                self._thread.join(timeout=5)
                self._thread = None

    def _run(self) -> None:
        connection: sqlite3.Connection | None = None
        last = False
        while not last:
            items = [self._queue.get()]
            while not self._queue.empty():  # whatever has come in the meantime shares the transaction
                items.append(self._queue.get())
            writes = [write for item in items for write in item.writes]
            if writes and self.trouble is None:
                try:
                    connection = connection or self._connect()
                    self._commit(connection, writes)
                except (sqlite3.Error, OSError) as error:
                    self.trouble = error
            for item in items:
                if item.then is not None:
                    item.then()
                last = last or item.last
        if connection is not None:
            connection.close()

    def _commit(self, connection: sqlite3.Connection, writes: Sequence[Write]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement, row in writes:
                connection.execute(statement, row)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._since_upkeep += len(writes)
        if self._since_upkeep >= _WRITES_BETWEEN_UPKEEPS:
            self._since_upkeep = 0
            self._upkeep(connection)
