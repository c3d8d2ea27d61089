"""Answers are parsed in a thread of each call, not on the event loop that all calls share.

A parser that takes half a second would block every other caller on the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from tagframe.errors import AnswerRejected
from tagframe.lm.prompt import Accept, accepted

T = TypeVar("T")
_Item: TypeAlias = tuple[T, str, Accept[Any]]


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
        self._thread = ThreadPoolExecutor(1, "tagframe-parse")
        self._new: list[_Item[T]] = []

    def put(self, of: T, text: str, accept: Accept[Any]) -> None:
        """Add an answer to parse; called on the loop. Those of one turn of it are handed over together."""
        if not self._new:
            asyncio.get_running_loop().call_soon(self._hand_over, asyncio.get_running_loop())
        self._new.append((of, text, accept))

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        items, self._new = self._new, []

        def report(future: Future[list[Parsed[T]]]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the process ends
                loop.call_soon_threadsafe(self._report, future.result())

        with contextlib.suppress(RuntimeError):  # the call was left
            self._thread.submit(self._context.run, _parsed, items).add_done_callback(report)

    def close(self) -> None:
        """End the thread after the answers that it is parsing."""
        self._thread.shutdown(wait=False)


def _parsed(items: Sequence[_Item[T]]) -> list[Parsed[T]]:
    parsed: list[Parsed[T]] = []
    for of, text, accept in items:
        try:
            parsed.append(Parsed(of, accepted(text, accept), None))
        except AnswerRejected as rejection:
            parsed.append(Parsed(of, None, rejection))
        except BaseException as error:  # an exit, say: whoever waits for this answer must not wait for ever
            parsed.append(Parsed(of, None, AnswerRejected(f"{type(error).__name__}: {error}")))
    return parsed
