"""When the next request to a server may be sent: the number in flight, pauses, requests and tokens a minute.

The number in flight is halved after a 429 and grows by one a round of answers (additive increase, multiplicative
decrease, as in TCP); ``rpm`` and ``tpm`` are token buckets.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakSet

from tagframe.errors import ConnectionFailed, LMRequestFailed, RateLimited, RequestTimedOut
from tagframe.lm.retry import AWAY
from tagframe.lm.structure import Form, Way
from tagframe.lm.transport import Reply

if TYPE_CHECKING:
    from tagframe.lm.model import LM

Sleep: TypeAlias = Callable[[float], Awaitable[bool]]
"""Waits some seconds; False if the run has stopped, so that waiting is of no use."""

MAX_UNCOUNTED_TOKENS = 16
"""Tokens by which an answer may pass ``max_tokens``: servers differ in counting the first and last tokens."""
CUT_FACTOR = 0.5
"""The factor for the number in flight after a 429."""
MAX_SECONDS_BETWEEN_CHECKS = 2.0
"""The most seconds between two requests that check whether a server is back."""
DOWN_AFTER = 8
"""Rows in a row that fail after all their retries, in runs to which a server gave no answer: it is down."""
SECONDS_OF_REST = 5.0
"""Seconds for which a server that is down is sent nothing, or as long as it took to find that it still is."""
MAX_TIMER_SECONDS = 86_400.0
"""The most seconds of a timer."""
MAX_ANSWER_TIMES = 4096
"""The times of so many answers are stored."""


class AdaptiveLimit:
    """Limits the number of requests in flight: halved after a 429, plus one after each round of answers.

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


@dataclass(slots=True, eq=False)
class Sent:
    """A request in flight.

    Attributes:
        at: when it was sent.
        ahead: the requests that were in flight then.
        answers: the answers that had come by then.
        task: sends it, and is cancelled once the request has had its own time.
        seconds: of its own time.
        begun: when the first byte of its answer came; 0 until then.
        timed_out: whether it was cancelled for that.
    """

    at: float
    ahead: int
    answers: int
    task: asyncio.Task[object] | None = None
    seconds: float = math.inf
    begun: float = 0.0
    timed_out: bool = False

    def begins(self) -> None:
        """Register the first byte."""
        self.begun = time.monotonic()


class OwnTimes:
    """Cancels requests that have had their own time; one timer for all that a server is sent.

    A request's time never ends earlier than it was thought to, so that each is looked at when that time has come.
    """

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._due: list[tuple[float, int, Sent]] = []
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, sent: Sent) -> None:
        """Have a request cancelled in time."""
        while self._due and self._due[0][2].task is None:
            heapq.heappop(self._due)
        self._count += 1
        heapq.heappush(self._due, (sent.at + sent.seconds, self._count, sent))
        if self._due[0][2] is sent:
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        wait = max(0.0, self._due[0][0] - time.monotonic())
        self._timer = loop.call_later(min(wait, MAX_TIMER_SECONDS), self._look)

    def _look(self) -> None:
        self._timer = None
        now = time.monotonic()
        while self._due and (self._due[0][2].task is None or self._due[0][0] <= now):
            _, _, sent = heapq.heappop(self._due)
            if sent.task is None:  # it has ended
                continue
            due = self._answers.turn_of(sent) + sent.seconds
            if due > now:
                self._count += 1
                heapq.heappush(self._due, (due, self._count, sent))
                continue
            sent.timed_out = True
            sent.task.cancel()
            sent.task = None
        if self._due:
            self._set_timer()


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
        reasoning: the tokens that its answers need beyond ``max_tokens``; 0 until one was cut off inside its reasoning.
        gives_logprobs: whether it gives log probabilities; None until it has, or has refused or failed to.
        without_logprobs: answers that came without log probabilities after the same request with them had failed.
        fields: the names that it has for fields of a request's body that it refuses; None for one that it lacks.
        most_answer: the most tokens of an answer that it takes as a limit; None until it has refused one.
        model: the name that its replies give the model.
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
        self.reasoning = 0
        self.gives_logprobs: bool | None = None
        self.without_logprobs = 0
        self.fields: dict[str, str | None] = {}
        self.most_answer: int | None = None
        self.model: str | None = None
        self.structured: Way | None = None
        self.keeps_form = False
        self.probing: asyncio.Event | None = None
        self.refused: WeakSet[Form] = WeakSet()
        self.lengths = Lengths()
        self.answers = Answers()
        self._own_times = OwnTimes(self.answers)
        self._paused_until = 0.0
        self._answers_at_cut = -1  # by the last cut after a timeout
        self._reached = False  # whether there was ever a server
        self._away_since: float | None = None
        self._checks = 0  # requests since then
        self._next_check = 0.0  # the time of the next

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

    async def enter(self, lm: LM, sleep: Sleep) -> Sent:
        """Wait until a request may be sent; gives what :meth:`leave` takes.

        Raises:
            RateLimited: the server has asked for a pause that lasts longer than the model's patience from now.
        """
        await self.gate.acquire()
        try:
            while (wait := max(self._paused_until, self._next_check) - time.monotonic()) > 0:
                if self._paused_until - time.monotonic() > lm.retry.patience:
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
        sent = Sent(time.monotonic(), self.gate.in_flight - 1, self.answers.count, asyncio.current_task(), lm.timeout)
        self._own_times.watch(sent)
        return sent

    def leave(self, sent: Sent, outcome: Reply | LMRequestFailed | None, lm: LM) -> None:
        """Register the end of a request: with a reply, an error, or neither if it was cancelled."""
        sent.task = None
        if outcome is None:
            pass
        elif isinstance(outcome, LMRequestFailed):
            self._failed(sent, outcome, lm)
        else:
            self._is_there()
            self.down, self._down_rows = None, 0
            self.answers.add()
            self.gate.answered()
        self.gate.release()

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
