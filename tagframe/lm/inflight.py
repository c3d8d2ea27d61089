"""Requests in flight: if several calls ask the same at once, one of them sends it, and all use its reply."""

from __future__ import annotations

import asyncio
import copy
import itertools
import math
import os
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeAlias

from tagframe.errors import LMRequestFailed
from tagframe.lm.reply import Reply
from tagframe.lm.store import ResponseStore

Key: TypeAlias = tuple[int, int | None, bytes]
"""The rules of a request (see :func:`rules`), its limit of tokens, and its key."""

MAX_RETAINED_REPLIES = 4096
"""Replies that are retained for calls that began before they arrived."""


class SharedReply(NamedTuple):
    """A reply, the seconds that its requests took, and the store that has it, if any."""

    reply: Reply
    seconds: float
    store: ResponseStore | None


class _Request(asyncio.Future[SharedReply | LMRequestFailed | None]):
    """A request in flight, or its reply, which came at the time ``arrived``."""

    arrived: float = math.inf


class InFlight:
    """The requests of this process that are in flight, by key.

    A call could look into the response store before an answer arrives, and send the same request after that; the answer
    would be paid for twice. So the newest replies are retained, for calls that were open when they arrived.

    Calls open from any thread; everything else happens on the loop.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all requests, in the child of a fork: they are the parent's."""
        self._requests: dict[Key, _Request] = {}
        self._replied: deque[tuple[Key, _Request]] = deque()
        self._time = itertools.count(1)

    def open(self) -> int:
        """Register a call that is about to look into the store; gives a time for :meth:`share`."""
        return next(self._time)

    @property
    def size(self) -> int:
        """The number of requests in flight, and of retained replies."""
        return len(self._requests)

    async def share(self, key: Key, opened: int, ask: Callable[[], Awaitable[SharedReply]]) -> SharedReply:
        """The result of ``ask``, or of another call that asks the same already.

        Raises:
            LMRequestFailed: raised by ``ask``, here or in the other call. (If the other call's request ended for
                another reason, such as its budget, this call asks by itself.)
        """
        while (request := self._requests.get(key)) is not None and request.arrived >= opened:
            reply = await asyncio.shield(request)
            if isinstance(reply, LMRequestFailed):
                raise copy.copy(reply)
            if reply is not None:
                return reply
        request = self._requests[key] = _Request(loop=asyncio.get_running_loop())
        reply = None
        try:
            reply = await ask()
            return reply
        except LMRequestFailed as error:
            reply = error
            raise
        finally:
            if isinstance(reply, SharedReply):
                request.arrived = next(self._time)
                self._replied.append((key, request))
                if len(self._replied) > MAX_RETAINED_REPLIES:
                    self._forget(*self._replied.popleft())
            else:
                self._forget(key, request)
            request.set_result(reply)

    def _forget(self, key: Key, request: _Request) -> None:
        if self._requests.get(key) is request:
            del self._requests[key]


in_flight = InFlight()
_rules: dict[object, int] = {}


def rules(*of: object) -> int:
    """A number for the things that two calls must have in common to share a request: endpoint, model, patience, …"""
    return _rules.setdefault(of, len(_rules))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=in_flight.reset)
