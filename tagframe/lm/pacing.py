"""When the next request to a server may go out: the number in flight, pauses, requests and tokens a minute."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from tagframe.errors import LMRequestFailed, RateLimited
from tagframe.lm.quota import Quota, Sleep
from tagframe.lm.transport import Reply

UNCOUNTED = 16
"""Tokens by which an answer may be longer than ``max_tokens``: servers count its first and last ones differently."""
CUT = 0.5
"""What a 429 multiplies the number in flight by (additive increase, multiplicative decrease, as TCP does)."""


class AdaptiveLimit:
    """The number of requests in flight: halved by a 429, grown by one a round of answers.

    It is never above the ceiling, the largest number that a call under way asks for. Used from one event loop only.
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
        """The largest number in flight that a call under way asks for."""
        return max(self._ceilings, default=1)

    @property
    def limit(self) -> int:
        """The number in flight at most, now."""
        return max(1, int(min(self._limit, self.ceiling)))

    @contextmanager
    def serving(self, ceiling: int) -> Iterator[None]:
        """For as long as a call that asks for so many in flight is under way."""
        self._ceilings.append(ceiling)
        self._wake()
        try:
            yield
        finally:
            self._ceilings.remove(ceiling)

    async def acquire(self) -> None:
        """Wait until one more may be in flight, in order of arrival."""
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
        """One request is in flight no more."""
        self.in_flight -= 1
        self._wake()

    def answered(self) -> None:
        """A request came through; the limit grows where it is what keeps more from going out."""
        if self.in_flight >= self._limit - 1:
            self._limit += 1 / self._limit
            if self._limit >= self._ceiling_at_cut:
                self._limit = math.inf

    def refused(self, sent_at: float) -> None:
        """A request was told to slow down; those that went out before the last cut do not cut again."""
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
    """Requests and tokens a minute; they go out evenly, a second's worth at once.

    Args:
        rpm: requests a minute at most, or None.
        tpm: tokens a minute at most, or None.
    """

    def __init__(self, rpm: float | None, tpm: float | None) -> None:
        self._requests = None if rpm is None else _Bucket(rpm)
        self._tokens = None if tpm is None else _Bucket(tpm)

    async def take(self, tokens: int, sleep: Sleep) -> None:
        """Wait until a request of so many tokens is within the rates."""
        for bucket, amount in ((self._requests, 1), (self._tokens, tokens)):
            if bucket is not None and (wait := bucket.take(amount)) > 0:
                await sleep(wait)

    def settle(self, more: int) -> None:
        """A request took so many more tokens than were taken for it, or fewer where this is below 0."""
        if self._tokens is not None:
            self._tokens.take(more)


class _Bucket:
    """A rate, by the time at which all that was taken has flowed out (the generic cell rate algorithm).

    A bucket of one second: one of a minute would let a whole minute's worth out at once, and another during it.
    """

    def __init__(self, per_minute: float) -> None:
        self._seconds_each = 60 / per_minute
        self._held = max(1.0, self._seconds_each)
        self._empty_at = 0.0

    def take(self, amount: float) -> float:
        """Take so much, and give the seconds to wait for it."""
        now = time.monotonic()
        self._empty_at = max(self._empty_at, now) + amount * self._seconds_each
        return max(0.0, self._empty_at - self._held - now)


class Lengths:
    """How long a server's answers are, against what they were allowed: not every server keeps to ``max_tokens``.

    Attributes:
        seen: requests that have ended since an answer was last longer than it was allowed to be.
        longest: the tokens of the longest such answer; 0 where there was none.
    """

    def __init__(self) -> None:
        self.seen = 0
        self.longest = 0

    def learn(self, allowed: int, tokens: int) -> None:
        """A request has ended, with an answer of so many tokens."""
        if tokens > allowed + UNCOUNTED:
            self.longest = max(self.longest, tokens)
            self.seen = 0
        else:
            self.seen += 1

    def most(self, allowed: int) -> int:
        """The tokens that an answer may have, as far as is known."""
        return max(allowed, self.longest)


class Lane:
    """All requests of this process to one model of one server pass through its lane.

    Attributes:
        gate: the number of requests in flight.
        quota: what the server says of its limits a minute.
        reasoning: the tokens that its answers need beyond ``max_tokens``; 0 until one was cut off inside its reasoning.
        gives_logprobs: whether it gives log probabilities; True until a request was refused for asking.
        lengths: of its answers.
    """

    def __init__(self) -> None:
        self.gate = AdaptiveLimit()
        self.quota = Quota()
        self.reasoning = 0
        self.gives_logprobs = True
        self.lengths = Lengths()
        self._paused_until = 0.0

    @property
    def paused(self) -> bool:
        """Whether the server has asked for a pause that is not over."""
        return time.monotonic() < self._paused_until

    async def enter(self, patience: float, sleep: Sleep, tokens: int) -> float:
        """Wait until a request of so many tokens may go out; gives the time for :meth:`leave`.

        Raises:
            RateLimited: where the server has asked for a pause that lasts longer than ``patience`` seconds from now.
        """
        await self.gate.acquire()
        try:
            while (wait := self._paused_until - time.monotonic()) > 0:
                if wait > patience:
                    raise RateLimited(
                        f"not sent: the server asked to wait {wait:.0f} s more, beyond the patience of {patience:g} s",
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
        """A request has ended with a reply or an error, or with neither where it was cancelled."""
        self.quota.give_back(tokens)
        if told is not None:
            self.quota.learn(told.limits)
        if isinstance(told, RateLimited):
            self.gate.refused(sent_at)
            # What one request is told holds for all, unless nobody would wait for it: then it ends that request alone,
            # and the others find out for themselves.
            if told.retry_after is not None and told.retry_after <= patience:
                self._paused_until = max(self._paused_until, time.monotonic() + told.retry_after)
        elif not isinstance(told, LMRequestFailed):
            self.gate.answered()
        self.gate.release()


_lanes: dict[tuple[str, str], Lane] = {}
_rates: dict[tuple[str, str, float | None, float | None], Rates] = {}


def lane_of(endpoint: str, model: str) -> Lane:
    """The lane of a model: what one call learns of the server's limits serves the next."""
    return _lanes.setdefault((endpoint, model), Lane())


def rates_of(endpoint: str, model: str, rpm: float | None, tpm: float | None) -> Rates | None:
    """The rates of a model, which all calls share that set the same; None where there are none."""
    if rpm is None and tpm is None:
        return None
    return _rates.setdefault((endpoint, model, rpm, tpm), Rates(rpm, tpm))


def forget() -> None:
    """Know nothing of any model, as a process that begins. After a fork, what is in flight is the parent's."""
    _lanes.clear()
    _rates.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)
