"""Worker processes that run statements which nobody trusts, kept warm, and killed where they pass their time.

Nothing inside a process can stop SQLite in the middle of one function (``instr`` over a long text takes minutes), and
nothing but a process has a memory of its own that can be bounded.
"""

from __future__ import annotations

import atexit
import io
import os
import pickle
import subprocess
import sys
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

from tagframe.engines.sqlite import worker as protocol
from tagframe.errors import SQLFailed

_MOST_IDLE = 2
_MOST_RUNNING = 8
_ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "1",  # an arena for each thread would take 64 MB of the address space
    "MALLOC_TRIM_THRESHOLD_": "131072",  # what is freed goes back to the system
    "MALLOC_MMAP_THRESHOLD_": "131072",
}
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")


class Expired(Exception):
    """The statement passed its time, and its process was killed."""


class _Process:
    """One worker process, of one limit of memory, that holds the copied tables of its last request."""

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.copied: str | None = None
        kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        try:
            # -I and -S: nothing of the user's settings or packages is loaded. A session of its own: a Ctrl-C of the
            # terminal is the caller's to handle.
            self._popen = subprocess.Popen(
                [sys.executable, "-I", "-S", protocol.__file__, str(memory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd=Path(protocol.__file__).parent,
                env={**kept, **_ENVIRONMENT},
                start_new_session=True,
            )
        except OSError as error:
            raise SQLFailed(f"no process can be started to run SQL in: {error}") from error
        _alive.add(self)

    @property
    def is_alive(self) -> bool:
        return self._popen.poll() is None

    def ask(self, request: protocol.Request, image: bytes, seconds: float) -> protocol.Answer:
        """The answer; the process is of no more use where this raises."""
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            self._popen.kill()

        timer = threading.Timer(seconds, expire)
        timer.daemon = True
        timer.start()
        try:
            protocol.write_block(self._popen.stdin, pickle.dumps(request))
            protocol.write_block(self._popen.stdin, image)
            answer: protocol.Answer = _plain(protocol.read_block(self._popen.stdout))
            if answer[0] == protocol.ROWS:
                state, names, parts = answer
                answer = state, names, [row for part in parts for row in _plain(part)]
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            if expired.is_set():
                raise Expired from error
            self.kill()
            raise SQLFailed(f"the process that ran the SQL died (exit status {self._popen.returncode})") from error
        finally:
            timer.cancel()
            timer.join()  # a program that forks next is to have no thread of ours
        # Beside a file nothing is kept: the file is let go after each statement.
        self.copied = request["copied"] if request["file"] is None else None
        return answer

    def kill(self) -> None:
        """End the process, whatever it does."""
        self._popen.kill()
        self._popen.wait()
        self._close()

    def disown(self) -> None:
        """In a forked child: the process is the parent's, and must not outlive it by our end of its pipe."""
        self._close()
        self._popen.returncode = 0

    def _close(self) -> None:
        _alive.discard(self)
        for stream in (self._popen.stdin, self._popen.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


class _Plain(pickle.Unpickler):
    """Reads numbers, texts, bytes and tuples: the process is not trusted with anything that could do something."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is no plain value")


def _plain(block: bytes) -> Any:
    """What a worker pickled.

    Raises:
        pickle.UnpicklingError: it is more than numbers, texts, bytes, lists and tuples.
    """
    return _Plain(io.BytesIO(block)).load()


class Pool:
    """Processes that wait for the next statement; as many run at once as callers ask, up to a few."""

    def __init__(self) -> None:
        self._idle: list[_Process] = []
        self._lock = threading.Lock()
        self._running = threading.BoundedSemaphore(_MOST_RUNNING)

    def run(self, request: protocol.Request, image: bytes, *, seconds: float, memory: int) -> protocol.Answer:
        """The answer of a worker.

        Args:
            request: see :mod:`tagframe.engines.sqlite.worker`.
            image: the copied tables, as a serialised database; sent where the worker has not got them.
            seconds: from the moment on at which the statement is sent.
            memory: bytes that the process may take.

        Raises:
            Expired: it took longer.
            SQLFailed: no process can be started, or it died.
        """
        with self._running:
            process = self._taken(memory, request["copied"])
            try:
                is_known = process.copied is not None and process.copied == request["copied"]
                answer = process.ask(request, b"" if is_known else image, seconds)
            except BaseException:  # a Ctrl-C too: what nobody waits for shall not go on
                process.kill()
                raise
            if answer[0] == protocol.OUT_OF_MEMORY:
                process.kill()
            else:
                self._put_back(process)
            return answer

    def _taken(self, memory: int, copied: str | None) -> _Process:
        with self._lock:
            fitting = [process for process in self._idle if process.memory == memory]
            best = next((process for process in fitting if process.copied == copied), None)
            chosen = best or (fitting[0] if fitting else None)
            if chosen is not None:
                self._idle.remove(chosen)
        if chosen is not None and not chosen.is_alive:
            chosen.kill()
            return self._taken(memory, copied)
        return chosen or _Process(memory)

    def _put_back(self, process: _Process) -> None:
        with self._lock:
            self._idle.append(process)
            surplus = self._idle.pop(0) if len(self._idle) > _MOST_IDLE else None
        if surplus is not None:
            surplus.kill()


_alive: weakref.WeakSet[_Process] = weakref.WeakSet()
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
