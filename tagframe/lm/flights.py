"""Requests in flight: if several calls ask the same at once, one of them sends it, and all use its reply."""

from __future__ import annotations

import asyncio
import copy
import math
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeAlias

from tagframe.errors import LMRequestFailed
from tagframe.lm.store import ResponseStore
from tagframe.lm.transport import Reply

Key: TypeAlias = tuple[int, int | None, bytes]
"""The rules of a request (see :func:`rules`), its limit of tokens, and its key."""

_KEPT = 100_000
"""The most replies that are kept for calls that began before they arrived."""


class Landed(NamedTuple):
    """A reply, the seconds that its requests took, and the store that has it, if any."""

    reply: Reply
    seconds: float
    store: ResponseStore | None


class _Flight(asyncio.Future[Landed | LMRequestFailed | None]):
    """A request in flight, or its reply, which came at the time ``landed``."""

    landed: float = math.inf


class Flights:
    """The requests of this process that are in flight, by key.

    A call could look into the response store before an answer arrives, and send the same request after that; the answer
    would be paid for twice. So a reply is kept as long as any call is open that was open when it arrived. Requests of
    other processes that share the store are known by their claims (:mod:`tagframe.lm.claims`).

    Calls open and close from any thread; everything else happens on the loop.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all requests, in the child of a fork: they are the parent's."""
        self._flights: dict[Key, _Flight] = {}
        self._landed: deque[tuple[Key, _Flight]] = deque()
        self._open: dict[int, None] = {}  # the calls, by the time at which they opened: the oldest first
        self._time = 0
        self._lock = threading.Lock()

    def open(self) -> int:
        """Register a call that is about to look into the store; gives a time for the other methods."""
        with self._lock:
            self._time += 1
            self._open[self._time] = None
            return self._time

    def close(self, opened: int) -> None:
        """Register the end of the call."""
        with self._lock:
            self._open.pop(opened, None)  # in the child of a fork it is not there
            oldest = next(iter(self._open), math.inf)
            while self._landed and self._landed[0][1].landed < oldest:
                self._forget(*self._landed.popleft())

    @property
    def kept(self) -> int:
        """How many requests are in flight, or kept for a call that was open when they arrived."""
        return len(self._flights)

    async def share(self, key: Key, opened: int, ask: Callable[[], Awaitable[Landed]]) -> Landed:
        """The result of ``ask``, or of another call that asks the same already.

        Raises:
            LMRequestFailed: raised by ``ask``, here or in the other call. (If the other call's request ended for
                another reason, such as its budget, this call asks by itself.)
        """
        while (flight := self._flights.get(key)) is not None and flight.landed >= opened:
            landed = await asyncio.shield(flight)
            if isinstance(landed, LMRequestFailed):
                raise copy.copy(landed)
            if landed is not None:
                return landed
        flight = self._flights[key] = _Flight(loop=asyncio.get_running_loop())
        landed = None
        try:
            landed = await ask()
            return landed
        except LMRequestFailed as error:
            landed = error
            raise
        finally:
            self._land(key, flight, keep=isinstance(landed, Landed))
            flight.set_result(landed)

    def _land(self, key: Key, flight: _Flight, keep: bool) -> None:
        with self._lock:
            if not keep or len(self._open) < 2:
                self._forget(key, flight)
                return
            flight.landed = self._time
            self._landed.append((key, flight))
            if len(self._landed) > _KEPT:
                self._forget(*self._landed.popleft())

    def _forget(self, key: Key, flight: _Flight) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]


flights = Flights()
_rules: dict[object, int] = {}


def rules(*of: object) -> int:
    """A number for the things that two calls must have in common to share a request: endpoint, model, patience, …"""
    return _rules.setdefault(of, len(_rules))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=flights.reset)
