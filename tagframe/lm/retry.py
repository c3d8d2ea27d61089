"""When a failed request is sent again."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from tagframe.errors import InvalidArgument, LMRequestFailed, RateLimited

T = TypeVar("T")

AWAY = (502, 503, 529)
"""What a server, or a proxy before it, answers while it is loading, restarting or overloaded."""


@dataclass(frozen=True)
class RetryPolicy:
    """How often, and after which waits, a failed request is sent again.

    The wait grows exponentially with full jitter; a ``Retry-After`` is a lower bound of it.

    Attributes:
        faults: retries after a timeout, a dropped connection, a 408, 409 or 5xx, or a malformed,
            empty or broken-off answer.
        refusals: retries after a 429 (too many requests), a 502, 503 or 529, or if a server that has answered before
            is gone: it is overloaded, loading or restarting.
        outage: the seconds for which such a server is waited for.
        first_wait: seconds before the first retry at most; doubled for each further one.
        longest_wait: the longest wait in seconds, unless the server asks for more.
        patience: if the server asks for a longer wait than these seconds, the request fails instead.

    Raises:
        InvalidArgument: for a negative number.
    """

    faults: int = 5
    refusals: int = 12
    first_wait: float = 0.5
    longest_wait: float = 30.0
    patience: float = 300.0
    outage: float = 120.0

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            if getattr(self, name) < 0:
                raise InvalidArgument(f"RetryPolicy.{name} must be 0 or more; got {getattr(self, name)!r}")

    async def again(
        self,
        first: LMRequestFailed,
        attempt: Callable[[], Awaitable[T]],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> T:
        """The result of ``attempt``, retried after a first failure; ``sleep`` waits between attempts.

        Raises:
            LMRequestFailed: the last failure, when the policy allows no further attempt.
        """
        error, faults, refusals, most = first, 0, 0, self.first_wait
        began = time.monotonic()
        while error.retryable and (error.retry_after or 0.0) <= self.patience:
            refusals, faults = refusals + error.away, faults + (not error.away)
            is_gone = error.away and not isinstance(error, RateLimited)
            is_over = is_gone and time.monotonic() - began > self.outage
            if refusals > self.refusals or faults > self.faults or is_over:
                break
            await sleep((error.retry_after or 0.0) + random.uniform(0.0, most))
            most = min(2 * most, self.longest_wait)
            try:
                return await attempt()
            except LMRequestFailed as failed:
                error = failed
        raise error
