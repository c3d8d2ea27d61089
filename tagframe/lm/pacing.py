"""When the next request to a server may be sent: the number in flight, pauses, requests and tokens a minute."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakSet

from tagframe.errors import ConnectionFailed, LMRequestFailed, RateLimited, RequestTimedOut
from tagframe.lm.quota import Quota, Sleep
from tagframe.lm.retry import AWAY
from tagframe.lm.structure import Form, Way
from tagframe.lm.transport import Reply

if TYPE_CHECKING:
    from tagframe.lm.model import LM

MAX_UNCOUNTED_TOKENS = 16
"""Tokens by which an answer may pass ``max_tokens``: servers differ in counting the first and last tokens."""
CUT_FACTOR = 0.5
"""The factor for the number in flight after a 429 (additive increase, multiplicative decrease, as in TCP)."""
MAX_SECONDS_BETWEEN_CHECKS = 2.0
"""The most seconds between two requests that check whether a server is back."""
QUEUED_SLOWDOWN = 4
"""A server has a queue if answers take this many times as long as the quickest of equal work."""
MIN_RATE_AT_HALF = 0.9
"""With half the requests in flight, a server that has a queue answers at least this share as many a second."""
MIN_ANSWERS_A_ROUND = 24
"""The fewest answers by which a server is judged."""
ROUNDS_WITHOUT_TRIAL = 16
"""After a trial in which it did not."""
DOWN_AFTER = 8
"""Rows in a row that fail after all their retries, in runs to which a server gave no answer: it is down."""
SECONDS_OF_REST = 5.0
"""Seconds for which a server that is down is sent nothing, or as long as it took to find that it still is."""
MAX_ANSWER_TIMES = 4096
"""The times of so many answers are stored."""


class AdaptiveLimit:
    """Limits the number of requests in flight: halved after a 429, plus one after each round of answers.

    It is halved for a trial, too, where answers take several times as long as they could: the requests then wait in a
    queue of the server. If fewer come a second, as from a server that computes many at once, the trial ends.

    The limit is never above the highest concurrency of the calls in progress. Used from one event loop only.

    Attributes:
        away: whether the server answers nothing at present, so that one request at a time checks whether it is back.
    """

    def __init__(self) -> None:
        self.in_flight = 0
        self.away = False
        self._ceilings: list[int] = []
        self._limit = math.inf  # what the server takes, as far as a 429 has shown
        self._ceiling_at_cut = 0
        self._last_cut = -math.inf
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._rounds = _Rounds()

    @property
    def ceiling(self) -> int:
        """The highest concurrency of the calls in progress."""
        return max(self._ceilings, default=1)

    @property
    def limit(self) -> int:
        """The current limit on requests in flight."""
        return 1 if self.away else self.at_once(self.ceiling)

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

    def back(self) -> None:
        """Register that the server answers again."""
        self.away = False
        self._wake()

    def took(self, times: float) -> None:
        """Register a success that took so many times the seconds of the quickest of equal work."""
        limit = self.limit
        if self.in_flight < limit / 2 or limit == 1:
            self._rounds = _Rounds()  # it is not this limit that makes them wait
            return
        better = self._rounds.judge(limit, times)
        if better is not None:
            self._ceiling_at_cut, self._limit = self.ceiling, better
            self._last_cut = time.monotonic()

    def answered(self) -> None:
        """Register a success; the limit grows if it is all that prevents more requests."""
        if self.in_flight >= self._limit - 1:
            self._limit += 1 / self._limit
            if self._limit >= self._ceiling_at_cut:
                self._limit = math.inf

    def refused(self, sent_at: float, least: float = 1.0) -> None:
        """Register a 429, or another sign of too many; requests that were sent before the last cut do not cut again.

        The limit is not cut below ``least``.
        """
        if sent_at > self._last_cut:
            self._ceiling_at_cut = self.ceiling
            before = min(self._limit, float(self.in_flight))
            self._limit = max(before * CUT_FACTOR, min(before, least))
            self._last_cut = time.monotonic()

    def _wake(self) -> None:
        while self._waiting and self.in_flight < self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)


class _Rounds:
    """Answers by rounds of as many as are in flight: how many a second, and how long they took."""

    def __init__(self) -> None:
        self._began = 0.0
        self._answers = 0
        self._times = 0.0
        self._before: tuple[float, int] | None = None  # a trial's answers a second and limit until it began
        self._resting = 0

    def judge(self, limit: int, times: float) -> float | None:
        """Count an answer while so many are in flight; the better limit, where a round has shown one."""
        now = time.monotonic()
        if not self._answers:
            self._began = now
        self._answers += 1
        self._times += times
        if self._answers <= max(limit, MIN_ANSWERS_A_ROUND):
            return None
        rate, queued = (
            (self._answers - 1) / max(now - self._began, 1e-9),
            self._times / self._answers >= QUEUED_SLOWDOWN,
        )
        self._answers, self._times = 0, 0.0
        before, self._before = self._before, None
        if before is not None and rate < MIN_RATE_AT_HALF * before[0]:
            self._resting = ROUNDS_WITHOUT_TRIAL
            return float(before[1])
        self._resting = max(0, self._resting - 1)
        if not queued or self._resting:
            return None
        self._before = rate, limit
        return max(1.0, limit * CUT_FACTOR)


class Answers:
    """When a server's answers came, for requests that waited behind others in its queue."""

    def __init__(self) -> None:
        self.count = 0
        self._times: deque[float] = deque(maxlen=MAX_ANSWER_TIMES)

    def add(self) -> None:
        """Register an answer."""
        self.count += 1
        self._times.append(time.monotonic())

    def turn_of(self, sent: Sent) -> float:
        """When a request's own time began, as far as is known.

        That is the time of the answer that made room for it: of as many as were in flight when it was sent, the latest
        so far. So a request times out only if nothing has moved for that long, or if others have overtaken it.
        """
        since = min(self.count - sent.answers, sent.ahead)
        back = self.count - sent.answers - since  # answers after that one
        return max(sent.at, sent.begun, self._times[-1 - min(back, len(self._times) - 1)] if since else sent.at)


@dataclass(slots=True)
class Sent:
    """A request in flight.

    Attributes:
        at: when it was sent.
        ahead: the requests that were in flight then.
        answers: the answers that had come by then.
        begun: when the first byte of its answer came; 0 until then.
    """

    at: float
    ahead: int
    answers: int
    begun: float = 0.0

    def begins(self) -> None:
        """Register the first byte."""
        self.begun = time.monotonic()


@asynccontextmanager
async def own_time(seconds: float, answers: Answers, sent: Sent) -> AsyncIterator[None]:
    """A block that is cancelled, with TimeoutError, when a request has had its own time.

    Args:
        seconds: of the request's own.
        answers: of its server.
        sent: the request.
    """
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle

    def look() -> None:
        nonlocal timer
        left = answers.turn_of(sent) + seconds - time.monotonic()
        if left > 0:
            timer = loop.call_later(left, look)
        else:
            timeout.reschedule(loop.time())

    timer = loop.call_later(seconds, look)
    try:
        async with asyncio.timeout(None) as timeout:
            yield
    finally:
        timer.cancel()


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
        self._burst_seconds = max(1.0, self._seconds_each)
        self._empty_at = 0.0

    def take(self, amount: float) -> float:
        """Take an amount; gives the seconds to wait for it."""
        now = time.monotonic()
        self._empty_at = max(self._empty_at, now) + amount * self._seconds_each
        return max(0.0, self._empty_at - self._burst_seconds - now)


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
        if tokens > allowed + MAX_UNCOUNTED_TOKENS:
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
        keeps_form: whether an answer had the form that it was asked for in this way.
        probing: set at the end of the first request that asks for a form.
        refused: forms that a server refused which takes others.
        lengths: the lengths of its answers.
        answers: when they came.
        down: the failure by which the server was found to be down; None once it has answered again. A run that begins
            then sends one request first, without retries, and none while the server rests.
    """

    def __init__(self) -> None:
        self.down: LMRequestFailed | None = None
        self._down_rows = 0
        self._rests_until = 0.0
        self.gate = AdaptiveLimit()
        self.quota = Quota()
        self.reasoning = 0
        self.gives_logprobs = True
        self.structured: Way | None = None
        self.keeps_form = False
        self.probing: asyncio.Event | None = None
        self.refused: WeakSet[Form] = WeakSet()
        self.lengths = Lengths()
        self.answers = Answers()
        self._paused_until = 0.0
        self._answers_at_cut = -1  # by the last cut after a timeout
        self._reached = False  # whether there was ever a server
        self._away_since: float | None = None
        self._checks = 0  # requests since then
        self._next_check = 0.0  # the time of the next
        self._least: dict[tuple[int, int], float] = {}  # seconds, by the work

    @property
    def paused(self) -> bool:
        """Whether the server has asked for a pause that is not over."""
        return time.monotonic() < self._paused_until

    @property
    def rests(self) -> bool:
        """Whether the server is down, and is sent nothing now."""
        return self.down is not None and time.monotonic() < self._rests_until

    def is_down(self, error: LMRequestFailed, seconds: float = 0.0) -> None:
        """Register that the server is down, after checking for ``seconds`` whether it is back."""
        self.down, self._rests_until = error, time.monotonic() + max(SECONDS_OF_REST, seconds)

    def row_failed(self, error: LMRequestFailed) -> None:
        """Register a row that failed after its retries, in a run to which the server gave no answer."""
        self._down_rows += 1
        if self._down_rows >= DOWN_AFTER:
            self.is_down(error)

    async def enter(self, patience: float, sleep: Sleep, tokens: int) -> Sent:
        """Wait until a request with this number of tokens may be sent; gives what :meth:`leave` takes.

        Raises:
            RateLimited: the server has asked for a pause that lasts longer than ``patience`` seconds from now.
        """
        await self.gate.acquire()
        try:
            while (wait := max(self._paused_until, self._next_check) - time.monotonic()) > 0:
                if self._paused_until - time.monotonic() > patience:
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
        return Sent(time.monotonic(), self.gate.in_flight - 1, self.answers.count)

    def leave(self, sent: Sent, outcome: Reply | LMRequestFailed | None, lm: LM, tokens: int) -> None:
        """Register the end of a request: with a reply, an error, or neither if it was cancelled."""
        self.quota.give_back(tokens)
        if outcome is not None:
            self.quota.learn(outcome.limits)
        if isinstance(outcome, Reply):
            self._answered(sent, outcome, lm.timeout, tokens)
        elif outcome is not None:
            self._failed(sent, outcome, lm)
        self.gate.release()

    def _answered(self, sent: Sent, reply: Reply, timeout: float, tokens: int) -> None:
        self._is_there()
        self.down, self._down_rows = None, 0
        self.answers.add()
        seconds = time.monotonic() - sent.at
        work = (reply.tokens_in or tokens).bit_length(), (reply.tokens_out or len(reply.text)).bit_length()
        least = self._least[work] = min(seconds, self._least.get(work, seconds))
        if seconds > timeout / 2 and seconds > 2 * least:  # soon they would time out
            self.gate.refused(sent.at)
        else:
            self.gate.answered()
            self.gate.took(seconds / max(least, 1e-9))

    def _failed(self, sent: Sent, error: LMRequestFailed, lm: LM) -> None:
        if isinstance(error, RateLimited) or error.status in AWAY:
            self.gate.refused(sent.at)
            # A pause holds for all requests, unless it is too long to wait for: then only this request ends, and others
            # are refused by the server themselves.
            if error.retry_after is not None and error.retry_after <= lm.retry.patience:
                self._paused_until = max(self._paused_until, time.monotonic() + error.retry_after)
        if error.status in AWAY or (isinstance(error, ConnectionFailed) and not error.connected and self._reached):
            self._is_away(error, lm)
        elif isinstance(error, RequestTimedOut) or error.status == 504:
            # Where others were answered, it hangs alone; and where none is since the last cut, fewer do not help. A
            # server that has not answered yet may be at work for others, and on what timed out.
            answered = self.answers.count
            if answered - sent.answers < sent.ahead and (not answered or answered != self._answers_at_cut):
                self._answers_at_cut = answered
                self.gate.refused(sent.at, least=4)
        elif error.status is not None and not isinstance(error, RateLimited):
            self._is_there()
            self.answers.add()
        self._reached = self._reached or error.status is not None

    def _is_away(self, error: LMRequestFailed, lm: LM) -> None:
        """Have one request at a time check whether the server is back, after waits that grow."""
        now = time.monotonic()
        if self._away_since is None:
            self._away_since, self._checks, self.gate.away = now, 0, True
        error.away, error.retryable, error.stops_run = now - self._away_since, True, False
        if now >= self._next_check:
            self._next_check = now + min(
                lm.retry.first_wait * 2**self._checks, lm.retry.longest_wait, MAX_SECONDS_BETWEEN_CHECKS
            )
            self._checks = min(self._checks + 1, 10)

    def _is_there(self) -> None:
        self._reached = True
        if self._away_since is not None:
            self._away_since, self._next_check = None, 0.0
            self.gate.back()


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


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)
