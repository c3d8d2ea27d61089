"""When the next request to a server may be sent: the number in flight, pauses, requests and tokens a minute.

The number in flight is halved after a 429 or a timeout and grows by one a round of answers (additive increase,
multiplicative decrease, as in TCP); ``rpm`` and ``tpm`` are token buckets.
"""

from __future__ import annotations

import asyncio
import math
import random
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from weakref import WeakSet

from tagframe.errors import ConnectionFailed, InvalidArgument, LMRequestFailed, RateLimited, RequestTimedOut
from tagframe.lm.background import after_fork
from tagframe.lm.prompt import Form

if TYPE_CHECKING:
    from tagframe.lm.model import LM
    from tagframe.lm.openai_http import Served

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
        InvalidArgument: for a negative number, or none.
    """

    faults: int = 5
    refusals: int = 12
    first_wait: float = 0.5
    longest_wait: float = 30.0
    patience: float = 300.0
    outage: float = 120.0

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if not (isinstance(value, int | float) and value >= 0):
                raise InvalidArgument(f"RetryPolicy.{name} must be a number, 0 or more; got {value!r}")

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


Sleep: TypeAlias = Callable[[float], Awaitable[bool]]
"""Waits some seconds; False if the run has stopped, so that waiting is of no use."""

MAX_UNCOUNTED_TOKENS = 16
"""Tokens by which an answer may pass ``max_tokens``: servers differ in counting the first and last tokens."""
CUT_FACTOR = 0.5
"""The factor for the number in flight after a 429 or a timeout."""


class AdaptiveLimit:
    """Limits the number of requests in flight: halved after a 429 or a timeout, plus one after each round of answers.

    The limit is never above the highest concurrency of the calls in progress. Used from one event loop only.
    """

    def __init__(self) -> None:
        self.in_flight = 0
        self._ceilings: list[int] = []  # the concurrencies of the calls in progress
        self._limit = math.inf  # what the server takes, as far as a 429 has shown
        self._last_cut = -math.inf
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def limit(self) -> int:
        """The current limit on requests in flight."""
        return self.at_once(max(self._ceilings, default=1))

    def at_once(self, concurrency: int) -> int:
        """How many requests a call of this concurrency may have in flight, by what the server has shown so far."""
        return max(1, int(min(self._limit, concurrency)))

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

    def refused(self, sent_at: float) -> None:
        """Register a 429, or another sign of too many; requests that were sent before the last cut do not cut again."""
        if sent_at > self._last_cut:
            self._limit = max(1.0, min(self._limit, float(self.in_flight)) * CUT_FACTOR)
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
        self._requests, self._tokens = _Bucket(rpm or math.inf), _Bucket(tpm or math.inf)

    async def take(self, tokens: int, sleep: Sleep) -> None:
        """Wait until a request with this number of tokens is within the rates."""
        for bucket, amount in ((self._requests, 1), (self._tokens, tokens)):
            if (wait := bucket.take(amount)) > 0:
                await sleep(wait)

    def settle(self, more: int) -> None:
        """Correct the count by the tokens that a request used beyond its estimate; negative if it used fewer."""
        self._tokens.take(more)


class _Bucket:
    """A rate limit, by the time at which everything taken has drained (the generic cell rate algorithm).

    The bucket holds one second's share: a bucket of a minute would release a minute's share at once, and then another
    one during that minute.
    """

    def __init__(self, per_minute: float) -> None:
        self._seconds_each = 60 / per_minute
        self._burst_seconds = max(1.0, self._seconds_each)
        self._empty_at = 0.0

    def take(self, amount: float) -> float:
        """Take an amount; gives the seconds to wait for it."""
        now = time.monotonic()
        self._empty_at = max(self._empty_at, now) + amount * self._seconds_each
        return max(0.0, self._empty_at - self._burst_seconds - now)


class ServerState:
    """The shared state of all requests of this process to one model of one server.

    Attributes:
        gate: limits the number of requests in flight.
        reasoning: the tokens that its answers need beyond ``max_tokens``; 0 until one was cut off inside its reasoning.
        gives_logprobs: whether it gives log probabilities; None until it has, or has refused or failed to.
        without_logprobs: answers that came without log probabilities after the same request with them had failed.
        fields: the names that it has for fields of a request's body that it refuses; None for one that it lacks.
        most_answer: the most tokens of an answer that it takes as a limit; None until it has refused one.
        model: the name that its replies give the model.
        served: what its list of models says; None until it was asked, at ``listed_at``, under the lock ``listing``.
        structured: whether it holds answers to the form that it is asked for; None until it is known.
        keeps_form: whether an answer had that form.
        refused: forms that a server refused which takes others.
        seen: requests that have ended since an answer last passed its limit: some servers ignore ``max_tokens``.
        longest: the tokens of the longest such answer; 0 if there was none.
        paused_until: when the pause ends that it has asked for.
    """

    def __init__(self) -> None:
        self.gate = AdaptiveLimit()
        self.reasoning = 0
        self.gives_logprobs: bool | None = None
        self.without_logprobs = 0
        self.fields: dict[str, str | None] = {}
        self.most_answer: int | None = None
        self.model: str | None = None
        self.served: Served | None = None
        self.listed_at = -math.inf
        self.listing = threading.Lock()
        self.structured: bool | None = None
        self.keeps_form = False
        self.refused: WeakSet[Form] = WeakSet()
        self.seen = 0
        self.longest = 0
        self.paused_until = 0.0
        self._reached = False  # whether there was ever a server

    def learn_length(self, allowed: int, tokens: int) -> None:
        """Register the end of a request, with the tokens of its answer."""
        self.seen += 1
        if tokens > allowed + MAX_UNCOUNTED_TOKENS:
            self.longest, self.seen = max(self.longest, tokens), 0

    async def enter(self, lm: LM, sleep: Sleep) -> float:
        """Wait until a request may be sent; gives the time, which :meth:`leave` takes.

        Raises:
            RateLimited: the server has asked for a pause that lasts longer than the model's patience from now.
        """
        await self.gate.acquire()
        try:
            while (wait := self.paused_until - time.monotonic()) > 0:
                if wait > lm.retry.patience:
                    raise RateLimited(
                        f"not sent: the server asked to wait {wait:.0f} s more; the patience is"
                        f" {lm.retry.patience:g} s",
                        429,
                        wait,
                    )
                if not await sleep(wait):
                    break
        except BaseException:
            self.gate.release()
            raise
        return time.monotonic()

    def leave(self, sent_at: float, error: LMRequestFailed | None, lm: LM, *, answered: bool) -> None:
        """Register the end of a request: answered, or with an error, or neither if it was cancelled."""
        if answered:
            self.gate.answered()
        elif error is not None:
            self._failed(sent_at, error, lm)
        self._reached = self._reached or answered or (error is not None and error.status is not None)
        self.gate.release()

    def _failed(self, sent_at: float, error: LMRequestFailed, lm: LM) -> None:
        gone = isinstance(error, ConnectionFailed) and not error.connected and self._reached
        if gone:
            error.retryable, error.stops_run = True, False
        error.away = gone or isinstance(error, RateLimited) or error.status in AWAY
        # A server that answers few at a time lets the others wait for too long.
        if (error.away and not gone) or error.status == 504 or isinstance(error, RequestTimedOut):
            self.gate.refused(sent_at)
        # A pause holds for all requests, unless it is too long to wait for: then only this request ends, and others
        # are refused by the server themselves.
        if error.away and error.retry_after is not None and error.retry_after <= lm.retry.patience:
            self.paused_until = max(self.paused_until, time.monotonic() + error.retry_after)


_states: dict[tuple[str, str], ServerState] = {}
_rates: dict[tuple[str, str, float | None, float | None], Rates] = {}


def server_state(endpoint: str, model: str) -> ServerState:
    """The shared state of a model: later calls use what earlier calls learned about the server's limits."""
    state = _states.get((endpoint, model))
    return _states.setdefault((endpoint, model), ServerState()) if state is None else state


def rates_of(endpoint: str, model: str, rpm: float | None, tpm: float | None) -> Rates | None:
    """The rates of a model, shared by all calls with the same settings; None if none are set."""
    if rpm is None and tpm is None:
        return None
    return _rates.setdefault((endpoint, model, rpm, tpm), Rates(rpm, tpm))


def forget() -> None:
    """Forget everything about all models, as in a new process. After a fork, requests in flight are the parent's."""
    _states.clear()
    _rates.clear()


after_fork(forget)
