"""When the next request to a server may be sent: the number in flight, pauses, requests and tokens a minute."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet

from tagframe.errors import LMRequestFailed, RateLimited
from tagframe.lm.quota import Quota, Sleep
from tagframe.lm.structure import Form, Way
from tagframe.lm.transport import Reply

UNCOUNTED = 16
"""Tokens by which an answer may pass ``max_tokens``: servers differ in counting the first and last tokens."""
CUT = 0.5
"""The factor for the number in flight after a 429 (additive increase, multiplicative decrease, as in TCP)."""


class AdaptiveLimit:
    """Limits the number of requests in flight: halved after a 429, plus one after each round of answers.

    The limit is never above the highest concurrency of the calls in progress. Used from one event loop only.
    """

    def __init__(self) -> None:
        self.in_flight = 0
        self._ceilings: list[int] = []
        self._limit = math.inf  # what the server takes, as far as a 429 has told
        self._ceiling_at_cut = 0
        self._last_cut = -math.inf
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def ceiling(self) -> int:
        """The highest concurrency of the calls in progress."""
        return max(self._ceilings, default=1)

    @property
    def limit(self) -> int:
        """The current limit on requests in flight."""
        return max(1, int(min(self._limit, self.ceiling)))

    @contextmanager
    def serving(self, ceiling: int) -> Iterator[None]:
        """Register a call with this concurrency, for the duration of the block."""
        self._ceilings.append(ceiling)
        self._wake()
        try:
            yield
        finally:
            self._ceilings.remove(ceiling)

    async def acquire(self) -> None:
        """Wait until one more request may be in flight, in order of arrival."""
        if self.in_flight < self.limit and not self._waiting:
            self.in_flight += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn  # whoever wakes it has counted it in
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Register the end of a request."""
        self.in_flight -= 1
        self._wake()

    def answered(self) -> None:
        """Register a success; the limit grows if it is all that prevents more requests."""
        if self.in_flight >= self._limit - 1:
            self._limit += 1 / self._limit
            if self._limit >= self._ceiling_at_cut:
                self._limit = math.inf

    def refused(self, sent_at: float) -> None:
        """Register a 429; requests that were sent before the last cut do not cut again."""
        if sent_at > self._last_cut:
            self._ceiling_at_cut = self.ceiling
            self._limit = max(1.0, min(self._limit, float(self.in_flight)) * CUT)
            self._last_cut = time.monotonic()

    def _wake(self) -> None:
        while self._waiting and self.in_flight < self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)


class Rates:
    """Limits requests and tokens a minute; requests are spread evenly, one second's share at once.

    Args:
        rpm: requests a minute at most, or None.
        tpm: tokens a minute at most, or None.
    """

    def __init__(self, rpm: float | None, tpm: float | None) -> None:
        self._requests = None if rpm is None else _Bucket(rpm)
        self._tokens = None if tpm is None else _Bucket(tpm)

    async def take(self, tokens: int, sleep: Sleep) -> None:
        """Wait until a request with this number of tokens is within the rates."""
        for bucket, amount in ((self._requests, 1), (self._tokens, tokens)):
            if bucket is not None and (wait := bucket.take(amount)) > 0:
                await sleep(wait)

    def settle(self, more: int) -> None:
        """Correct the count by the tokens that a request used beyond its estimate; negative if it used fewer."""
        if self._tokens is not None:
            self._tokens.take(more)


class _Bucket:
    """A rate limit, by the time at which everything taken has drained (the generic cell rate algorithm).

    The bucket holds one second's share: a bucket of a minute would release a minute's share at once, and then another
    one during that minute.
    """

    def __init__(self, per_minute: float) -> None:
        self._seconds_each = 60 / per_minute
        self._held = max(1.0, self._seconds_each)
        self._empty_at = 0.0

    def take(self, amount: float) -> float:
        """Take an amount; gives the seconds to wait for it."""
        now = time.monotonic()
        self._empty_at = max(self._empty_at, now) + amount * self._seconds_each
        return max(0.0, self._empty_at - self._held - now)


class Lengths:
    """The length of a server's answers compared with their limits: some servers ignore ``max_tokens``.

    Attributes:
        seen: requests that have ended since an answer last passed its limit.
        longest: the tokens of the longest such answer; 0 if there was none.
    """

    def __init__(self) -> None:
        self.seen = 0
        self.longest = 0

    def learn(self, allowed: int, tokens: int) -> None:
        """Register the end of a request, with the tokens of its answer."""
        if tokens > allowed + UNCOUNTED:
            self.longest = max(self.longest, tokens)
            self.seen = 0
        else:
            self.seen += 1

    def most(self, allowed: int) -> int:
        """The most tokens to expect of an answer, as far as is known."""
        return max(allowed, self.longest)


class ServerState:
    """The shared state of all requests of this process to one model of one server.

    Attributes:
        gate: limits the number of requests in flight.
        quota: the server's own limits a minute, from its headers.
        reasoning: the tokens that its answers need beyond ``max_tokens``; 0 until one was cut off inside its reasoning.
        gives_logprobs: whether it gives log probabilities; True until a request for them was refused.
        structured: the way in which it takes the form of answers, "off" if it takes none; None until it is known.
        probing: set at the end of the first request that asks for a form.
        refused: forms that a server refused which takes others.
        lengths: the lengths of its answers.
    """

    def __init__(self) -> None:
        self.gate = AdaptiveLimit()
        self.quota = Quota()
        self.reasoning = 0
        self.gives_logprobs = True
        self.structured: Way | None = None
        self.probing: asyncio.Event | None = None
        self.refused: WeakSet[Form] = WeakSet()
        self.lengths = Lengths()
        self._paused_until = 0.0

    @property
    def paused(self) -> bool:
        """Whether the server has asked for a pause that is not over."""
        return time.monotonic() < self._paused_until

    async def enter(self, patience: float, sleep: Sleep, tokens: int) -> float:
        """Wait until a request with this number of tokens may be sent; gives the time for :meth:`leave`.

        Raises:
            RateLimited: the server has asked for a pause that lasts longer than ``patience`` seconds from now.
        """
        await self.gate.acquire()
        try:
            while (wait := self._paused_until - time.monotonic()) > 0:
                if wait > patience:
                    raise RateLimited(
                        f"not sent: the server asked to wait {wait:.0f} s more; the patience is {patience:g} s",
                        429,
                        wait,
                    )
                if not await sleep(wait):
                    break
            await self.quota.take(tokens, sleep)
        except BaseException:
            self.gate.release()
            raise
        return time.monotonic()

    def leave(self, sent_at: float, told: Reply | LMRequestFailed | None, patience: float, tokens: int) -> None:
        """Register the end of a request: with a reply, an error, or neither if it was cancelled."""
        self.quota.give_back(tokens)
        if told is not None:
            self.quota.learn(told.limits)
        if isinstance(told, RateLimited):
            self.gate.refused(sent_at)
            # A pause holds for all requests, unless it is too long to wait for: then only this request ends, and others
            # are refused by the server themselves.
            if told.retry_after is not None and told.retry_after <= patience:
                self._paused_until = max(self._paused_until, time.monotonic() + told.retry_after)
        elif not isinstance(told, LMRequestFailed):
            self.gate.answered()
        self.gate.release()


_states: dict[tuple[str, str], ServerState] = {}
_rates: dict[tuple[str, str, float | None, float | None], Rates] = {}


def server_state(endpoint: str, model: str) -> ServerState:
    """The shared state of a model: later calls use what earlier calls learned about the server's limits."""
    return _states.setdefault((endpoint, model), ServerState())


def rates_of(endpoint: str, model: str, rpm: float | None, tpm: float | None) -> Rates | None:
    """The rates of a model, shared by all calls with the same settings; None if none are set."""
    if rpm is None and tpm is None:
        return None
    return _rates.setdefault((endpoint, model, rpm, tpm), Rates(rpm, tpm))


def forget() -> None:
    """Forget everything about all models, as in a new process. After a fork, requests in flight are the parent's."""
    _states.clear()
    _rates.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)
