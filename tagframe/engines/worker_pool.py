"""Worker processes that run untrusted statements; they are kept warm, and killed at their time limit.

Nothing inside a process can stop SQLite or DuckDB in the middle of one function (``instr`` or ``levenshtein`` of long
texts take minutes), and only a process has memory of its own that can be limited.
"""

from __future__ import annotations

import atexit
import datetime
import io
import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tagframe.engines
from tagframe.engines import worker_program as protocol
from tagframe.engines.base import UntrustedStatement
from tagframe.errors import SQLFailed, UnreadableTable, UnsafeSQL, did_you_mean
from tagframe.progress import stopped_by

_MOST_IDLE = 2
"""Of each kind."""
_MOST_RUNNING = 8
_MOST_SECONDS_TO_START = 60.0
_ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "1",  # an arena for each thread would take 64 MB of the address space
    "MALLOC_TRIM_THRESHOLD_": "131072",  # what is freed goes back to the system
    "MALLOC_MMAP_THRESHOLD_": "131072",
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # others reserve memory, so its use is unknown
    "OPENBLAS_NUM_THREADS": "1",
}
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")


class Expired(Exception):
    """The statement exceeded its time, and its process was killed."""


class Died(SQLFailed):
    """The process died of what it was asked for; ``status`` is its exit status."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Kind:
    """What runs in a process.

    Attributes:
        modules: that are loaded at the start; the last one has its ``Worker``, see
            :class:`tagframe.engines.worker_program.Worker`.
        paths: folders of the packages that it imports; they are used for nothing else.
        is_slow: whether it starts slowly; if a process of this kind is killed, the next one is started at once.
    """

    modules: tuple[str, ...]
    paths: tuple[str, ...] = ()
    is_slow: bool = False


class Process:
    """One worker process with a memory limit."""

    def __init__(self, kind: Kind, memory: int) -> None:
        self.kind, self.memory = kind, memory
        self.is_spent = False
        self._is_ready = False
        passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        package, modules = Path(tagframe.engines.__file__).parent.parent, ",".join(kind.modules)
        try:
            # -I and -S: nothing of the user's settings or packages is loaded. A session of its own: a Ctrl-C of the
            # terminal is the caller's to handle.
            self._popen = subprocess.Popen(
                [sys.executable, "-I", "-S", protocol.__file__, modules, str(package), str(memory), *kind.paths],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd=package,
                env={**passed_on, **_ENVIRONMENT},
                start_new_session=True,
            )
        except OSError as error:
            raise SQLFailed(f"no process can be started to run SQL: {error}") from error
        _alive.add(self)

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._popen.poll() is None

    def ask(self, request: protocol.Request, seconds: float) -> tuple[protocol.Answer, list[protocol.Block]]:
        """The answer, and the parts that came before it; if this raises, the process cannot be used any more."""
        parts: list[protocol.Block] = []
        with stopped_by(self._popen.kill):
            if not self._is_ready:
                # The start of a process does not count as time of the statement.
                with _deadline(self._popen, _MOST_SECONDS_TO_START):
                    self._message()
                self._is_ready = True
            with _deadline(self._popen, seconds):
                protocol.write_block(self._popen.stdin, pickle.dumps(request))  # type: ignore[arg-type]
                while (message := self._message())[0] != protocol.END:
                    parts.append(protocol.read_block(self._popen.stdout))  # type: ignore[arg-type]
        _, self.is_spent, answer = message
        return answer, parts

    def _message(self) -> protocol.Answer:
        message: protocol.Answer = plain(protocol.read_block(self._popen.stdout))  # type: ignore[arg-type]
        return message

    def kill(self) -> None:
        """End the process, whatever it does."""
        self._popen.kill()
        self._popen.wait()
        self._close()

    def disown(self) -> None:
        """In a forked child: the process is the parent's. Our end of its pipe is closed, so that it ends with the
        parent."""
        self._close()
        self._popen.returncode = 0

    def _close(self) -> None:
        _alive.discard(self)
        for stream in (self._popen.stdin, self._popen.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


@contextmanager
def _deadline(process: subprocess.Popen[bytes], seconds: float) -> Iterator[None]:
    """A block that waits for a process: it is killed at the deadline, and its end becomes a named error."""
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        process.kill()

    timer = threading.Timer(seconds, expire)
    timer.daemon = True
    timer.start()
    try:
        try:
            yield
        finally:
            timer.cancel()
            timer.join()  # the program may fork next, and must have no thread of ours then
    except (EOFError, OSError, MemoryError, OverflowError) as error:
        if expired.is_set():
            raise Expired from error
        process.kill()
        process.wait()
        status = process.returncode
        raise Died(f"the process that ran the SQL died (exit status {status})", status) from error


class _Plain(pickle.Unpickler):
    """Reads numbers, texts, bytes, times and tuples: anything else from the process is not trusted."""

    def find_class(self, module: str, name: str) -> Any:
        if module == "datetime" and name in ("datetime", "date", "time", "timedelta"):
            return getattr(datetime, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not a plain value")


def plain(block: protocol.Block) -> Any:
    """What a worker pickled.

    Raises:
        SQLFailed: it has more than numbers, texts, bytes, times, lists and tuples.
    """
    try:
        return _Plain(io.BytesIO(block)).load()
    except pickle.UnpicklingError as error:
        raise SQLFailed(f"the process that ran the SQL sent an answer that is not plain data: {error}") from error


class Pool:
    """Processes that wait for the next statement; as many run at once as callers ask, up to a few."""

    def __init__(self) -> None:
        self._idle: list[Process] = []
        self._lock = threading.Lock()
        self._running = threading.BoundedSemaphore(_MOST_RUNNING)

    def run(
        self, kind: Kind, request: protocol.Request, *, seconds: float, memory: int
    ) -> tuple[protocol.Answer, list[protocol.Block]]:
        """The answer of a worker, and the parts that it sent before.

        Args:
            kind: of worker.
            request: what the worker of this kind takes.
            seconds: the time limit, from the moment at which the request is sent.
            memory: bytes that the process may take.

        Raises:
            Expired: it took longer.
            SQLFailed: no process can be started, or it died (:class:`Died`).
        """
        with self._running:
            process = self._taken(kind, memory)
            try:
                answer, parts = process.ask(request, seconds)
            except BaseException as error:  # a Ctrl-C, too: work that nobody waits for must end
                self._end(process, is_next_wanted=isinstance(error, Exception))
                raise
            if process.is_spent:
                self._end(process, is_next_wanted=True)
            else:
                self._put_back(process)
            return answer, parts

    def _end(self, process: Process, *, is_next_wanted: bool) -> None:
        process.kill()
        if process.kind.is_slow and is_next_wanted:
            self._put_back(Process(process.kind, process.memory))

    def close(self) -> None:
        """End the processes that wait for work; the next statement starts another."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.kill()

    def _taken(self, kind: Kind, memory: int) -> Process:
        with self._lock:
            fitting = (one for one in self._idle if (one.kind, one.memory) == (kind, memory))
            if (chosen := next(fitting, None)) is not None:
                self._idle.remove(chosen)
        if chosen is not None and not chosen.is_alive:
            chosen.kill()
            return self._taken(kind, memory)
        return chosen or Process(kind, memory)

    def _put_back(self, process: Process) -> None:
        with self._lock:
            self._idle.append(process)
            alike = [other for other in self._idle if other.kind == process.kind]
            surplus = alike[0] if len(alike) > _MOST_IDLE else None
            if surplus is not None:
                self._idle.remove(surplus)
        if surplus is not None:
            surplus.kill()


def answered(
    kind: Kind, request: protocol.Request, statement: UntrustedStatement, title: str
) -> tuple[list[Any], list[protocol.Block]]:
    """A worker's answer to a statement, and the parts that it sent before.

    Args:
        kind, request: as for :meth:`Pool.run`.
        statement: of the request.
        title: of the engine's SQL, for messages.

    Raises:
        UnsafeSQL, SQLFailed, UnreadableTable: it did not finish.
    """
    limits, excerpt = statement.limits, statement.excerpt
    try:
        (state, *details), parts = pool().run(
            kind, request, seconds=statement.seconds_left, memory=limits.memory * 2**20
        )
    except Died as error:
        raise SQLFailed(str(error)) from error
    except Expired:
        raise SQLFailed(f"the SQL was stopped after {limits.seconds:g} seconds: {excerpt}") from None
    if state == protocol.ROWS:
        return details, parts
    reason = str(details[0])
    if state == protocol.OUT_OF_MEMORY:
        raise SQLFailed(f"the SQL needs more than SQLLimits(memory={limits.memory}) megabytes: {excerpt}")
    if state == protocol.TOO_LARGE:
        raise SQLFailed(f"the SQL exceeds SQLLimits(memory={limits.memory}) megabytes: {reason}: {excerpt}")
    if state == protocol.REFUSED:
        raise UnsafeSQL(f"{title} refused the SQL: {reason}: {excerpt}")
    if state == protocol.UNREADABLE:
        raise UnreadableTable(f"the SQL cannot be run: {reason}; call tagframe.open_corpus again")
    if state == protocol.NO_COLUMN:
        hint = " (text stands in single quotes)" if f'"{reason}"' in statement.sql else ""
        reason = f"no such column: {reason}{hint} in {did_you_mean(reason.rpartition('.')[2], details[1])}"
    raise SQLFailed(f"{title} could not run the SQL: {reason}: {excerpt}")


_alive: weakref.WeakSet[Process] = weakref.WeakSet()
_pool = Pool()


def pool() -> Pool:
    """The pool of this process."""
    return _pool


def _end() -> None:
    for process in list(_alive):
        process.kill()


def _begin_anew() -> None:
    """After a fork: the processes are the parent's, and a lock may have been held there."""
    global _pool
    for process in list(_alive):
        process.disown()
    _pool = Pool()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
