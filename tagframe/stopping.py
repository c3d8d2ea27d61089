"""Stops work that nobody waits for any more, for example after the task that awaited it was cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar


class Stopped(Exception):
    """Nobody waits for this any more."""


class Stopping:
    """The running work of one caller, in any threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[object, Callable[[], object]] = {}
        self._is_stopped = False

    def stop(self) -> None:
        """Stop the running work, and whatever is begun later."""
        with self._lock:
            self._is_stopped = True
            under_way = list(self._under_way.values())
        for stop in under_way:
            with suppress(Exception):  # it may have ended by itself, or its server be gone
                stop()

    def check(self) -> None:
        """For work in Python, between two units of it.

        Raises:
            Stopped: it was stopped.
        """
        if self._is_stopped:
            raise Stopped

    @contextmanager
    def here(self) -> Iterator[None]:
        """A block, and the threads that get its context: what runs there is stopped by :meth:`stop`."""
        token = _here.set(self)
        try:
            yield
        finally:
            _here.reset(token)

    @contextmanager
    def under_way(self, stop: Callable[[], object]) -> Iterator[None]:
        """A block that ``stop``, called from another thread, ends with an error; it becomes :class:`Stopped`.

        Raises:
            Stopped: it was stopped, or would have been.
        """
        key = object()
        with self._lock:
            if self._is_stopped:
                raise Stopped
            self._under_way[key] = stop
        try:
            yield
        except Exception as error:
            if self._is_stopped and not isinstance(error, Stopped):
                raise Stopped from error
            raise
        finally:
            with self._lock:
                del self._under_way[key]


_here: ContextVar[Stopping | None] = ContextVar("tagframe_stopping", default=None)


@contextmanager
def stopped_by(stop: Callable[[], object]) -> Iterator[None]:
    """A block that takes long, and the function that ends it; see :meth:`Stopping.under_way`."""
    stopping = _here.get()
    if stopping is None:
        yield
        return
    with stopping.under_way(stop):
        yield
