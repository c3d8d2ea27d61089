"""Writes to a response store: at once if that is quick, in a background thread if it must wait.

A commit costs some 60 µs and no fsync (WAL, ``synchronous=NORMAL``), less than waking a thread. The thread does the
work that can take long: waiting for another process's lock, checkpoints, and keeping the file small.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")

Write: TypeAlias = tuple[str, tuple[Any, ...]]
"""A statement and its row."""
Connect: TypeAlias = Callable[[float], sqlite3.Connection]
"""Makes a connection in autocommit mode that waits this many seconds for a lock."""

LOCK_SECONDS = 30.0
"""How long the thread waits for another process's lock."""
_WRITES_BETWEEN_UPKEEPS = 1000


class _Item(NamedTuple):
    """Writes that belong together, and a function to call afterwards."""

    writes: Sequence[Write]
    then: Callable[[], None] | None = None
    last: bool = False


class Writer:
    """Writes one store file.

    Args:
        connect: see :data:`Connect`.
        upkeep: called from time to time in the thread, with its connection.

    Attributes:
        trouble: the error that ended all writing, or None.
    """

    def __init__(self, connect: Connect, upkeep: Callable[[sqlite3.Connection], None]) -> None:
        self.trouble: Exception | None = None
        self._connect = connect
        self._upkeep = upkeep
        self._lock = threading.Lock()
        self._now: sqlite3.Connection | None = None
        self._queue: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._since_upkeep = 0
        self._upkeep_due = False

    def write_now_or_soon(self, writes: Sequence[Write], then: Callable[[], None] | None = None) -> bool:
        """Commit at once, or have the thread write; gives whether it is written."""
        is_written = self.do_now(lambda connection: _execute(connection, writes), len(writes))
        if not is_written:
            self.write(writes, then)
        return bool(is_written)

    def do_now(self, work: Callable[[sqlite3.Connection], T], writes: int = 1) -> T | None:
        """What ``work`` returns, done at once in a transaction; None if another connection holds the lock."""
        if self.trouble is not None:
            return None
        with self._lock:
            try:
                if self._now is None:
                    self._now = self._connect(0.0)
                    self._now.execute("PRAGMA wal_autocheckpoint = 0")  # it would wait for the disk; see _run
                with transaction(self._now):
                    done = work(self._now)
            except (sqlite3.Error, OSError) as error:
                if not is_busy(error):
                    self.trouble = error
                return None
            if self._count(writes):
                self._enqueue(_Item(()))
        return done

    def write(self, writes: Sequence[Write], then: Callable[[], None] | None = None) -> None:
        """Queue writes for the thread; it calls ``then`` when they are on disk, or have failed."""
        with self._lock:
            self._enqueue(_Item(writes, then))

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all queued writes are on disk; False if that took longer than ``timeout`` seconds."""
        if self._thread is None:
            return True
        done = threading.Event()
        self.write((), done.set)
        return done.wait(timeout)

    def close(self) -> None:
        """Write the queue, end the thread, and close the connections."""
        with self._lock:
            if self._thread is not None:
                self._queue.put(_Item((), last=True))
                self._thread.join(timeout=5)
                self._thread = None
            if self._now is not None:
                self._now.close()
                self._now = None

    def _enqueue(self, item: _Item) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="tagframe-store", daemon=True)
            self._thread.start()
        self._queue.put(item)

    def _run(self) -> None:
        connection: sqlite3.Connection | None = None
        last = False
        while not last:
            items = [self._queue.get()]
            while not self._queue.empty():  # whatever has come in the meantime shares the transaction
                items.append(self._queue.get())
            writes = [write for item in items for write in item.writes]
            try:
                if self.trouble is None:
                    connection = connection or self._connect(LOCK_SECONDS)
                    if writes:
                        with transaction(connection):
                            _execute(connection, writes)
                    if self._count(len(writes)) or self._upkeep_due:
                        self._upkeep_due = False
                        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()  # stops nobody from writing
                        self._upkeep(connection)
            except Exception as error:  # whatever it is: those who wait for this thread must not wait for ever
                self.trouble = error
            for item in items:
                if item.then is not None:
                    item.then()
                last = last or item.last
        if connection is not None:
            connection.close()

    def _count(self, written: int) -> bool:
        """Count writes; True if an upkeep is due."""
        self._since_upkeep += written
        if self._since_upkeep < _WRITES_BETWEEN_UPKEEPS:
            return False
        self._since_upkeep = 0
        self._upkeep_due = True
        return True


def is_busy(error: BaseException) -> bool:
    """Whether another connection held the lock."""
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF == sqlite3.SQLITE_BUSY


def _execute(connection: sqlite3.Connection, writes: Sequence[Write]) -> bool:
    for statement, row in writes:
        connection.execute(statement, row)
    return True


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing, with the lock from the start."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
