"""When the next request to a server may go out: the number in flight, pauses, requests and tokens a minute."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from typing import TYPE_CHECKING

from tagframe.errors import InvalidArgument, LMRequestFailed, RateLimited

if TYPE_CHECKING:
    from aiolimiter import AsyncLimiter

CUT = 0.5
"""What a 429 multiplies the number in flight by (additive increase, multiplicative decrease, as TCP does)."""


class AdaptiveLimit:
    """The number of requests in flight: halved by a 429, grown by one a round of answers, never above ``ceiling``.

    Used from one event loop only.
    """

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.in_flight = 0
        self._limit = float(ceiling)
        self._last_cut = float("-inf")
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def limit(self) -> int:
        """The number in flight at most, now."""
        return max(1, int(self._limit))

    def resize(self, ceiling: int) -> None:
        """Change the ceiling; a limit that no 429 has lowered moves with it."""
        if self._limit >= self.ceiling or ceiling < self._limit:
            self._limit = float(ceiling)
        self.ceiling = ceiling
        self._wake()

    async def acquire(self) -> None:
        """Wait for a place, in order of arrival."""
        if self.in_flight < self.limit and not self._waiting:
            self.in_flight += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place  # whoever wakes it has counted it in
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Give a place back."""
        self.in_flight -= 1
        self._wake()

    def answered(self) -> None:
        """A request came through."""
        if self._limit < self.ceiling:
            self._limit = min(float(self.ceiling), self._limit + 1 / self._limit)

    def refused(self, sent_at: float) -> None:
        """A request was told to slow down; those that went out before the last cut do not cut again."""
        if sent_at > self._last_cut:
            self._limit = max(1.0, min(self._limit, float(self.in_flight)) * CUT)
            self._last_cut = time.monotonic()

    def _wake(self) -> None:
        while self._waiting and self.in_flight < self.limit:
            place = self._waiting.popleft()
            if not place.done():
                self.in_flight += 1
                place.set_result(None)


class Lane:
    """All requests of this process to one model of one server pass through its lane.

    Args:
        requests_per_minute: at most; they go out evenly, a second's worth at once.
        tokens_per_minute: at most, by the estimate of prompt and answer.

    Raises:
        InvalidArgument: for a rate that is not positive.
    """

    def __init__(self, requests_per_minute: float | None = None, tokens_per_minute: float | None = None) -> None:
        for name, rate in (("requests_per_minute", requests_per_minute), ("tokens_per_minute", tokens_per_minute)):
            if rate is not None and not rate > 0:
                raise InvalidArgument(f"{name} is above 0, or None for no limit; got {rate!r}")
        self.gate = AdaptiveLimit(1)
        self._requests = _bucket(requests_per_minute)
        self._tokens = _bucket(tokens_per_minute)
        self._paused_until = 0.0

    @property
    def counts_tokens(self) -> bool:
        """Whether tokens a minute are limited."""
        return self._tokens is not None

    async def enter(self, tokens: int) -> float:
        """Wait until a request of so many tokens may go out; gives the time for :meth:`leave`."""
        await self.gate.acquire()
        try:
            while (wait := self._paused_until - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            if self._requests is not None:
                await _take(self._requests, 1)
            if self._tokens is not None:
                await _take(self._tokens, tokens)
        except BaseException:
            self.gate.release()
            raise
        return time.monotonic()

    def leave(self, sent_at: float, error: LMRequestFailed | None) -> None:
        """A request has ended."""
        if error is None:
            self.gate.answered()
        elif isinstance(error, RateLimited):
            self.gate.refused(sent_at)
            if error.retry_after is not None:  # what one request is told holds for all
                self._paused_until = max(self._paused_until, time.monotonic() + error.retry_after)
        self.gate.release()


def _bucket(per_minute: float | None) -> AsyncLimiter | None:
    if per_minute is None:
        return None
    from aiolimiter import AsyncLimiter

    # A bucket of one second: one of a minute would let a whole minute's worth out at once, and another during it.
    rate = max(1.0, per_minute / 60)
    return AsyncLimiter(rate, rate * 60 / per_minute)


async def _take(bucket: AsyncLimiter, amount: float) -> None:
    while amount > 0:  # a bucket takes no more at once than it holds
        part = min(amount, bucket.max_rate)
        await bucket.acquire(part)
        amount -= part


_shared: dict[tuple[str, str], Lane] = {}


def shared_lane(endpoint: str, model: str) -> Lane:
    """The lane of a model that no rate limits: what one call learns of the server's limits serves the next."""
    return _shared.setdefault((endpoint, model), Lane())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shared.clear)  # its places are held by requests of the parent
