"""A server's own rate limits, as its response headers give them, and waiting so that they are not passed.

OpenAI and compatible servers send ``x-ratelimit-limit-requests``, ``-remaining-requests``, ``-reset-requests`` and the
same for tokens; Anthropic sends ``anthropic-ratelimit-requests-limit``, …. The reset is the time until the whole limit
is available again: as ``6m0s`` or ``12ms``, in seconds, or as a date.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

Sleep: TypeAlias = Callable[[float], Awaitable[bool]]
"""Waits some seconds; False if the run has stopped, so that waiting is of no use."""

PERIOD = 60.0
"""Seconds that a limit is for."""
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:([\d.]+)s)?(?:([\d.]+)ms)?")
_UNITS = (86400, 3600, 60, 1, 0.001)


@dataclass(frozen=True, slots=True)
class Allowance:
    """One of a server's limits, from its headers.

    Attributes:
        limit: per minute.
        remaining: how much is left now.
        reset: seconds until the whole limit is available again; None if not given.
    """

    limit: float
    remaining: float
    reset: float | None = None


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """The limits in a response's headers; None for those that are not given."""

    requests: Allowance | None = None
    tokens: Allowance | None = None


def limits_of(headers: Mapping[str, str]) -> ServerLimits | None:
    """The limits in a response's headers; None if there are none, as with most servers. The names must be in lower
    case, or the mapping must ignore case.

    >>> limits_of({"x-ratelimit-limit-tokens": "60000", "x-ratelimit-remaining-tokens": "59000"}).tokens.remaining
    59000.0
    """
    requests = _allowance(headers, "x-ratelimit-{}-requests", "anthropic-ratelimit-requests-{}")
    tokens = _allowance(headers, "x-ratelimit-{}-tokens", "anthropic-ratelimit-tokens-{}")
    return None if requests is None and tokens is None else ServerLimits(requests, tokens)


def _allowance(headers: Mapping[str, str], *names: str) -> Allowance | None:
    for name in names:
        limit, remaining = (_number(headers.get(name.format(what))) for what in ("limit", "remaining"))
        if limit and remaining is not None:  # Azure has sent -1 and 0 for "does not apply"
            return Allowance(limit, remaining, _seconds(headers.get(name.format("reset"))))
    return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < math.inf else None


def _seconds(text: str | None) -> float | None:
    """The seconds until a reset."""
    if not text:
        return None
    if (seconds := _number(text)) is not None:
        return seconds
    parts = _DURATION.fullmatch(text.strip())
    try:
        if parts is not None:
            return sum(float(part) * unit for part, unit in zip(parts.groups(), _UNITS, strict=True) if part)
        date = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return max(0.0, date.timestamp() - time.time()) if date.tzinfo is not None else None


class _Left:
    """The rest of one limit: the last reported value, less what was used since."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._in_flight = 0.0
        self._limit = math.inf
        self._left = math.inf
        self._at = 0.0
        self._at_once = False  # whether all comes back at once, and nothing before
        self._full_in: float | None = None

    def learn(self, reported: Allowance) -> None:
        # What is in flight may be counted in already: better to count it twice than to pass the limit.
        self._limit, self._left, self._at = reported.limit, reported.remaining - self._in_flight, self._clock()
        evenly = (
            max(reported.limit - reported.remaining, 1.0) * PERIOD / reported.limit
        )  # of a bucket that fills up in a minute
        reset = evenly if reported.reset is None else reported.reset
        self._at_once = self._at_once or reset > 2 * evenly + 1
        # Beyond a minute it is another limit than one a minute, and the server says best itself what it takes.
        self._full_in = min(reset, PERIOD) if self._at_once else None

    def wait(self, amount: float) -> float:
        """Seconds until this amount is available, as far as is known."""
        self._refill()
        short = min(amount, self._limit) - self._left  # what is never left cannot be waited for
        if short <= 0:
            return 0.0
        return min(PERIOD, short * PERIOD / self._limit) if self._full_in is None else self._full_in

    def take(self, amount: float) -> None:
        self._in_flight += amount
        self._left -= min(amount, self._limit)

    def give_back(self, amount: float) -> None:
        self._in_flight -= amount

    def _refill(self) -> None:
        now = self._clock()
        passed, self._at = now - self._at, now
        if math.isinf(self._limit):
            return
        if self._full_in is None:
            self._left = min(self._limit, self._left + passed * self._limit / PERIOD)
        elif passed >= self._full_in:
            self._left, self._full_in = self._limit - self._in_flight, None
        else:
            self._full_in -= passed


class Quota:
    """The limits that a server reports for one model; requests wait while the server would refuse them.

    Used from one event loop only.

    Args:
        clock: gives the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._requests, self._tokens = _Left(clock), _Left(clock)

    def learn(self, limits: ServerLimits | None) -> None:
        """Update the limits from a response."""
        if limits is None:
            return
        for left, reported in ((self._requests, limits.requests), (self._tokens, limits.tokens)):
            if reported is not None:
                left.learn(reported)

    async def take(self, tokens: int, sleep: Sleep) -> None:
        """Wait until a request with this number of tokens fits; it is in flight until :meth:`give_back`."""
        while (wait := max(self._requests.wait(1), self._tokens.wait(tokens))) > 0:
            if not await sleep(wait):
                break
        self._requests.take(1)
        self._tokens.take(tokens)

    def give_back(self, tokens: int) -> None:
        """Register the end of the request."""
        self._requests.give_back(1)
        self._tokens.give_back(tokens)
