"""Sending: the prompts of one call that no store answered, as fast as the lane and the budget allow."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tagframe.errors import (
    AnswerCut,
    AnswerRejected,
    BudgetExceeded,
    ConnectionFailed,
    LMError,
    LMRequestFailed,
    RateLimited,
    RequestTimedOut,
    RunStopped,
    ServerFailed,
)
from tagframe.lm.budget import NOTHING, NOTHING_BUT_A_CALL, Budget, Cost, dollars_of
from tagframe.lm.call import Job
from tagframe.lm.lane import Lane, Rates
from tagframe.lm.pricing import Price, estimate_answer, estimate_tokens, most_tokens
from tagframe.lm.prompt import Completion, Parameters, Prompt, accepted
from tagframe.lm.retry import RetryPolicy
from tagframe.lm.store import ResponseStore, StoredAnswer
from tagframe.lm.transport import Reply, Transport
from tagframe.lm.usage import Usage

T = TypeVar("T")

SERVER_IS_ILL = (ConnectionFailed, RateLimited, RequestTimedOut, ServerFailed)
HOPELESS = 100
"""So many rows that fail like this one after the other, each after all its retries, stop the run."""


@dataclass(frozen=True)
class Route:
    """Where the requests of a call go, and under which rules.

    Attributes:
        rates: requests and tokens a minute, or None.
        timeout: seconds for one request.
        hedge_after: seconds after which a second request is sent beside a slow one, or None.
        store: where accepted answers are kept, or None.
        source: the id of this endpoint and model in that store.
    """

    transport: Transport
    lane: Lane
    rates: Rates | None
    retry: RetryPolicy
    timeout: float
    hedge_after: float | None
    budget: Budget | None
    price: Price | None
    store: ResponseStore | None
    source: int


class _Meter:
    """How one job is asked, and what it has cost so far."""

    __slots__ = ("dollars", "parameters", "repaired", "retried", "seconds", "sent", "tokens_in", "tokens_out")

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.sent = self.retried = self.repaired = self.tokens_in = self.tokens_out = 0
        self.dollars: float | None = 0.0
        self.seconds = 0.0

    def usage(self, failed: int = 0) -> Usage:
        return Usage(
            rows=1,
            sent=self.sent,
            retried=self.retried,
            repaired=self.repaired,
            failed=failed,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            dollars=self.dollars,
            seconds=self.seconds,
        )


class Run:
    """One call's sending.

    Args:
        route: where to, and under which rules.
        concurrency: jobs under way at most.
        ended: told of each job, on the loop, as soon as it has its completion.

    Attributes:
        done: prompts that have ended, for the progress bar.
        dollars: what they cost; None where the price is unknown.
    """

    def __init__(self, route: Route, concurrency: int, ended: Callable[[Job[Any]], None]) -> None:
        self.done = 0
        self.dollars: float | None = 0.0 if route.price is not None else None
        self._route = route
        self._concurrency = concurrency
        self._ended = ended
        self._waiting: deque[Job[Any]] = deque()
        self._working = 0
        self._stopped: LMError | None = None
        self._stopping = asyncio.Event()
        self._failed_in_a_row = 0
        self._answers: list[tuple[bytes, int, StoredAnswer]] = []
        self._on_disk: asyncio.Future[None]

    async def send(self, jobs: Sequence[Job[Any]]) -> None:
        """Complete these jobs too; nothing but cancellation is raised.

        All jobs of the run wait in one line, so that some of these may end after this, sent by the workers of others.
        """
        self._waiting.extend(jobs)
        with self._route.lane.gate.serving(self._concurrency):
            async with asyncio.TaskGroup() as workers:
                for _ in range(min(self._concurrency - self._working, len(jobs))):
                    self._working += 1
                    workers.create_task(self._work())

    async def _work(self) -> None:
        while self._waiting:
            job = self._waiting.popleft()
            job.completion = await self._complete(job)
            self.done += 1
            self._ended(job)
        self._working -= 1

    async def _complete(self, job: Job[Any]) -> Completion[Any]:
        meter = _Meter(job.parameters)
        text: str | None = None
        try:
            reply = await self._ask(job.prompt, meter)
            text = reply.text
            try:
                value = _value(job, reply)
            except AnswerRejected as rejection:
                if reply.unfinished:
                    raise  # there is no answer to repair
                self._log(job, "rejected", rejection, text)
                meter.repaired = 1
                reply = await self._ask(job.prompt.repair(text, str(rejection)), meter)
                text = reply.text
                value = _value(job, reply)
        except LMError as error:
            return self._failed(job, error, text, meter)
        except Exception as error:  # a fault of ours or of a library, which must not take the other rows with it
            unexpected = LMRequestFailed(f"the request could not be made: {type(error).__name__}: {error}")
            unexpected.__cause__ = error
            return self._failed(job, unexpected, text, meter)
        self._failed_in_a_row = 0
        await self._keep(job.key, reply, meter)
        return Completion(text, value, None, meter.usage(), reply.logprobs, "sent")

    def _failed(self, job: Job[Any], error: LMError, text: str | None, meter: _Meter) -> Completion[Any]:
        self._log(job, "failed", error, text)
        if isinstance(error, SERVER_IS_ILL):
            self._failed_in_a_row += 1
            if self._failed_in_a_row >= HOPELESS:
                self._stop(error)
        return Completion(text, None, error, meter.usage(failed=1), None, "sent")

    async def _ask(self, prompt: Prompt, meter: _Meter) -> Reply:
        """The reply to a prompt, after as many attempts as the policy allows."""
        try:
            return await self._attempt(prompt, meter)
        except LMRequestFailed as error:
            if not error.retryable:
                raise

            async def again() -> Reply:
                meter.retried += 1
                return await self._attempt(prompt, meter)

            return await self._route.retry.again(error, again, self._sleep)

    async def _sleep(self, seconds: float) -> bool:
        """Wait; a run that stops does not wait for its backoffs, and is told so by False."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        return not self._stopping.is_set()

    def _stop(self, cause: LMError) -> None:
        self._stopped = self._stopped or cause
        self._stopping.set()

    async def _attempt(self, prompt: Prompt, meter: _Meter) -> Reply:
        if self._route.hedge_after is None:
            return await self._send_one(prompt, meter)
        return await self._hedged(prompt, meter, self._route.hedge_after)

    async def _hedged(self, prompt: Prompt, meter: _Meter, hedge_after: float) -> Reply:
        """The first usable reply of two requests, the second sent only where the first is slow."""
        running = {asyncio.create_task(self._send_one(prompt, meter))}
        try:
            done, _ = await asyncio.wait(running, timeout=hedge_after)
            if not done:
                running.add(asyncio.create_task(self._send_one(prompt, meter)))
            while True:
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                usable = [task for task in done if task.exception() is None]
                if usable or not running:
                    return (usable or list(done))[0].result()
        finally:
            for task in running:
                task.cancel()

    async def _send_one(self, prompt: Prompt, meter: _Meter) -> Reply:
        route = self._route
        reserved = await self._reserve(prompt, meter, route.budget) if route.budget is not None else None
        spent: Cost | None = None
        try:
            if route.rates is not None:
                await route.rates.take(estimate_tokens(prompt) + estimate_answer(meter.parameters), self._sleep)
            started = await route.lane.enter(route.retry.patience, self._sleep)
            error: LMRequestFailed | None = None
            try:
                if self._stopped is not None:
                    raise self._not_sent(self._stopped)
                meter.sent += 1
                spent = reserved  # what was sent counts as paid, until the server says what it took
                reply = await route.transport.send(prompt, meter.parameters, route.timeout)
                spent = self._charge(prompt, reply, meter)
                return reply
            except LMRequestFailed as failed:
                error = failed
                if failed.stops_run:
                    self._stop(failed)
                if failed.status not in (None, 200):
                    spent = NOTHING_BUT_A_CALL
                raise
            finally:
                route.lane.leave(started, error, route.retry.patience)
                meter.seconds += time.monotonic() - started
        finally:
            if route.budget is not None and reserved is not None:
                route.budget.settle(reserved, spent or NOTHING)

    async def _reserve(self, prompt: Prompt, meter: _Meter, budget: Budget) -> Cost:
        """Set aside the most that a request can cost; where that passes the budget, nothing more is sent."""
        if self._stopped is not None:
            raise self._not_sent(self._stopped)
        tokens_in, tokens_out = most_tokens(prompt), estimate_answer(meter.parameters)
        try:
            cost = budget.cost(tokens_in + tokens_out, dollars_of(self._route.price, tokens_in, tokens_out))
            await budget.reserve(cost)
        except BudgetExceeded as exceeded:
            self._stop(exceeded)
            raise
        return cost

    @staticmethod
    def _not_sent(cause: LMError) -> LMError:
        if isinstance(cause, BudgetExceeded):
            return cause
        stopped = RunStopped(f"not sent, since every request would fail alike: {cause}")
        stopped.__cause__ = cause
        return stopped

    def _charge(self, prompt: Prompt, reply: Reply, meter: _Meter) -> Cost:
        """Count a reply's tokens; those that the server does not give are estimated by length."""
        price = self._route.price
        tokens_in = estimate_tokens(prompt) if reply.tokens_in is None else reply.tokens_in
        tokens_out = estimate_tokens(Prompt.of(reply.text)) if reply.tokens_out is None else reply.tokens_out
        meter.tokens_in += tokens_in
        meter.tokens_out += tokens_out
        dollars = dollars_of(price, tokens_in, tokens_out)
        meter.dollars = None if dollars is None or meter.dollars is None else meter.dollars + dollars
        if dollars is not None and self.dollars is not None:
            self.dollars += dollars
        return Cost(1, tokens_in + tokens_out, dollars or 0.0)

    async def _keep(self, key: bytes, reply: Reply, meter: _Meter) -> None:
        """Store an accepted answer, and wait until it is on disk.

        Only then is its worker free for the next prompt: a process that is killed loses no more answers than it had
        requests in flight.
        """
        if self._route.store is None or not self._route.store.writable:
            return
        answer = StoredAnswer(reply.text, reply.logprobs, reply.tokens_in, reply.tokens_out, meter.seconds)
        if not self._answers:  # all that arrive in one turn of the loop are handed over together
            self._on_disk = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(self._hand_over, self._route.store)
        self._answers.append((key, self._route.source, answer))
        await asyncio.shield(self._on_disk)

    def _hand_over(self, store: ResponseStore) -> None:
        answers, on_disk, self._answers = self._answers, self._on_disk, []
        if store.put_now(answers):
            on_disk.set_result(None)
        else:
            loop = asyncio.get_running_loop()
            store.put(answers, lambda: _resolve_soon(loop, on_disk))

    def _log(self, job: Job[Any], kind: str, reason: LMError, answer: str | None) -> None:
        store = self._route.store
        if store is not None and store.writable and not isinstance(reason, BudgetExceeded | RunStopped):
            store.put_log(job.key, self._route.source, kind, str(reason), answer, job.prompt.to_dicts())


def _value(job: Job[T], reply: Reply) -> T:
    if reply.truncated:
        limit = job.parameters.limit
        where = "the server's limit of tokens" if limit is None else f"its limit of {limit} tokens"
        raise AnswerCut(f"it was cut off at {where}: answer in fewer, or raise max_tokens")
    return accepted(reply.text, job.accept)


def _resolve_soon(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: the process ends
        loop.call_soon_threadsafe(lambda: None if future.done() else future.set_result(None))
