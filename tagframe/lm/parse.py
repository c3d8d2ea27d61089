"""Answers are parsed in a thread of each call, not on the event loop that all calls share.

A parser that takes half a second would block every other caller on the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any, Generic, NamedTuple, TypeVar

from tagframe.errors import AnswerRejected
from tagframe.lm.prompt import Accept, accepted

T = TypeVar("T")

_SECONDS_TOGETHER = 0.002
"""Answers that are parsed within this many seconds are reported together."""


class Parsed(NamedTuple, Generic[T]):
    """An answer's value, or the reason why it has none."""

    of: T
    value: Any
    rejection: AnswerRejected | None


class Parser(Generic[T]):
    """Parses the answers of one call, one after the other, in the context of the caller.

    Args:
        report: called on the loop with the results.
    """

    def __init__(self, report: Callable[[Sequence[Parsed[T]]], None]) -> None:
        self._report = report
        self._context = copy_context()
        self._queue: queue.SimpleQueue[list[tuple[T, str, Accept[Any]]] | None] = queue.SimpleQueue()
        self._new: list[tuple[T, str, Accept[Any]]] = []
        self._thread: threading.Thread | None = None

    def put(self, of: T, text: str, accept: Accept[Any]) -> None:
        """Add an answer to parse; called on the loop. Those of one turn of it are handed over together."""
        if not self._new:
            asyncio.get_running_loop().call_soon(self._hand_over)
        self._new.append((of, text, accept))

    def _hand_over(self) -> None:
        if self._thread is None:
            work = (self._run, asyncio.get_running_loop())
            self._thread = threading.Thread(target=self._context.run, args=work, name="tagframe-parse", daemon=True)
            self._thread.start()
        items, self._new = self._new, []
        self._queue.put(items)

    def close(self) -> None:
        """End the thread after the answers that it is parsing."""
        self._queue.put(None)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        while (items := self._queue.get()) is not None:
            items.reverse()
            while items:
                until = time.monotonic() + _SECONDS_TOGETHER
                together = []
                while items and time.monotonic() < until:
                    together.append(_parsed(*items.pop()))
                with contextlib.suppress(RuntimeError):  # the loop is closed: the process ends
                    loop.call_soon_threadsafe(self._report, together)


def _parsed(of: T, text: str, accept: Accept[Any]) -> Parsed[T]:
    try:
        return Parsed(of, accepted(text, accept), None)
    except AnswerRejected as rejection:
        return Parsed(of, None, rejection)
    except BaseException as error:  # an exit, say: whoever waits for this answer must not wait for ever
        return Parsed(of, None, AnswerRejected(f"{type(error).__name__}: {error}"))
