"""When a failed request is sent again (with tenacity)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import tenacity

from tagframe.errors import InvalidArgument, LMRequestFailed, RateLimited

T = TypeVar("T")


@dataclass(frozen=True)
class RetryPolicy:
    """How often, and after which waits, a failed request is sent again.

    The wait grows exponentially with full jitter; a ``Retry-After`` is a lower bound of it.

    Attributes:
        faults: retries after a timeout, a dropped connection, a 408, 409 or 5xx, or a malformed,
            empty or broken-off answer.
        refusals: retries after a 429 (too many requests).
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

        (The first attempt is made without tenacity: its 70 µs per call would be a seventh of the cost of a row.)

        Raises:
            LMRequestFailed: the last failure, when the policy allows no further attempt.
        """
        failures: list[LMRequestFailed] = [first]
        refusals = 0

        async def attempt_after_first() -> T:
            if failures:
                raise failures.pop()
            return await attempt()

        async def rest(seconds: float) -> None:
            await sleep(seconds)

        def stop(state: tenacity.RetryCallState) -> bool:
            nonlocal refusals
            error = _failure(state)
            if (error.retry_after or 0.0) > self.patience:
                return True
            if isinstance(error, RateLimited):
                refusals += 1
                return refusals > self.refusals
            return state.attempt_number - refusals > self.faults

        backoff = tenacity.wait_random_exponential(multiplier=self.first_wait, max=self.longest_wait)
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, LMRequestFailed) and error.retryable),
            stop=stop,
            wait=lambda state: (_failure(state).retry_after or 0.0) + backoff(state),
            sleep=rest,
            reraise=True,
        )
        return await retrying(attempt_after_first)


def _failure(state: tenacity.RetryCallState) -> LMRequestFailed:
    error = state.outcome.exception() if state.outcome is not None else None
    assert isinstance(error, LMRequestFailed)  # retry_if_exception lets nothing else come this far
    return error
