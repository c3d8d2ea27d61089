"""Prompts on their way: what several calls ask at once is sent by one of them, and answers all."""

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
"""Under what rules a request is sent, see :func:`rules`, with what limit of tokens, and the request's key."""

_KEPT = 100_000
"""Replies that are kept at most for calls that began before they came."""


class Landed(NamedTuple):
    """A reply, the seconds that its requests took, and the store that it was put into, if any."""

    reply: Reply
    seconds: float
    store: ResponseStore | None


class _Flight(asyncio.Future[Landed | LMRequestFailed | None]):
    """A request under way, or the reply that it brought at the time ``landed``."""

    landed: float = math.inf


class Flights:
    """The requests of this process that are under way, by key.

    A call that looked into the response store before an answer came, and asks after, would pay for it once more: so
    what has come is kept for as long as a call is open that was open then. What
    other processes are asking that share the store is told by their claims in it (:mod:`tagframe.lm.claims`).

    Calls open and close from any thread; everything else happens on the loop.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all, as in the child of a fork: what is under way is the parent's."""
        self._flights: dict[Key, _Flight] = {}
        self._landed: deque[tuple[Key, _Flight]] = deque()
        self._open: dict[int, None] = {}  # the calls, by the time at which they opened: the oldest first
        self._time = 0
        self._lock = threading.Lock()

    def open(self) -> int:
        """A call begins, and is about to look into the store; gives the time for the other methods."""
        with self._lock:
            self._time += 1
            self._open[self._time] = None
            return self._time

    def close(self, opened: int) -> None:
        """The call has ended."""
        with self._lock:
            self._open.pop(opened, None)  # in the child of a fork it is not there
            oldest = next(iter(self._open), math.inf)
            while self._landed and self._landed[0][1].landed < oldest:
                self._forget(*self._landed.popleft())

    @property
    def kept(self) -> int:
        """How many requests are under way, or kept for a call that was open when they came."""
        return len(self._flights)

    async def share(self, key: Key, opened: int, ask: Callable[[], Awaitable[Landed]]) -> Landed:
        """What ``ask`` returns, here or where another call has asked it already.

        Raises:
            LMRequestFailed: what ``ask`` raised, here or there. (What else ended the other call's request, its budget
                for one, is no reason for this one, which then asks itself.)
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
    """A number for what must be alike for two calls to share a request: endpoint, model, patience, …"""
    return _rules.setdefault(of, len(_rules))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=flights.reset)
