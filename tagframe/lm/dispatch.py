"""Sends the prompts of one call that no store answered; each ends with an answer or a named error."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tagframe.errors import (
    AnswerCut,
    AnswerRejected,
    BudgetExceeded,
    ConnectionFailed,
    LMError,
    LMRequestFailed,
    RateLimited,
    RequestTimedOut,
    ResponseTooLong,
    RunStopped,
    ServerFailed,
)
from tagframe.lm.attempts import HOPELESS, Attempts, Meter, Route
from tagframe.lm.call import Job
from tagframe.lm.flights import Landed, flights, rules
from tagframe.lm.parse import Parsed, Parser
from tagframe.lm.prompt import Completion, Prompt, request_keys
from tagframe.lm.store import ResponseStore, StoredAnswer
from tagframe.lm.transport import shorten
from tagframe.lm.usage import DUPLICATE

SERVER_IS_ILL = (ConnectionFailed, RateLimited, RequestTimedOut, ResponseTooLong, ServerFailed)

REJECTED = 20
"""A run stops if the answers of its first rows, this many, are all rejected: the model does not follow the prompt."""


@dataclass(slots=True, eq=False)
class _Asked:
    """A job that is being sent: its current prompt (its own, or the repair of an answer), and the replies so far."""

    job: Job[Any]
    prompt: Prompt
    key: bytes
    meter: Meter
    landed: Landed | None = None

    @property
    def text(self) -> str | None:
        """The latest answer."""
        return None if self.landed is None else self.landed.reply.text


class Run:
    """Sends the jobs of one call.

    Args:
        route: where to, and under which rules.
        concurrency: the most jobs at once.
        opened: when the call was opened, by :data:`~tagframe.lm.flights.flights`.
        ended: called on the loop with jobs as soon as they have their completion.

    Attributes:
        attempts: the requests.
        done: prompts that have ended, for the progress bar.
    """

    def __init__(
        self, route: Route, concurrency: int, opened: int, ended: Callable[[Sequence[Job[Any]]], None]
    ) -> None:
        self.attempts = Attempts(route)
        self.done = 0
        self._route = route
        self._concurrency = concurrency
        self._opened = opened
        self._ended = ended
        self._parser: Parser[_Asked] = Parser(self._parsed)
        # What must be alike for another call's request to do for one of this call.
        of = (route.transport.endpoint, route.lm.model, route.lm.retry, route.lm.timeout, id(route.rates))
        self._rules = rules(*of)
        self._waiting: deque[_Asked] = deque()
        self._working = 0
        self._unparsed = 0
        self._turn: asyncio.Future[None] | None = None  # done when something was parsed, or has come in
        self._failed_in_a_row = 0
        self._accepted = False
        self._rejected = 0
        self._answers: list[tuple[bytes, int, StoredAnswer]] = []
        self._on_disk: asyncio.Future[None]

    def close(self) -> None:
        """Stop sending; done once."""
        self._parser.close()

    async def send(self, jobs: Sequence[Job[Any]]) -> None:
        """Complete these jobs too; raises nothing but cancellation.

        All jobs of the run share one queue, so workers of another call to this method may complete some of them later.
        """
        self._waiting.extend(_Asked(job, job.prompt, job.key, Meter(job.parameters)) for job in jobs)
        self._wake()
        with self._route.lane.gate.serving(self._concurrency):
            async with asyncio.TaskGroup() as workers:
                for _ in range(min(self._concurrency - self._working, len(jobs))):
                    self._working += 1
                    workers.create_task(self._work())

    async def _work(self) -> None:
        while self._waiting or self._unparsed:
            # An answer that is being parsed may have to be repaired; and no more answers wait for a slow parser than
            # requests may be in flight.
            if not self._waiting or self._unparsed >= self._concurrency:
                await self._next_turn()
                continue
            await self._ask(self._waiting.popleft())
        self._working -= 1

    async def _next_turn(self) -> None:
        if self._turn is None:
            self._turn = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._turn)

    def _wake(self) -> None:
        if self._turn is not None:
            self._turn.set_result(None)
            self._turn = None

    async def _ask(self, asked: _Asked) -> None:
        try:
            landed = asked.landed = await self._reply(asked)
            if landed.reply.truncated:
                self._reject(asked, _cut(asked.job.parameters.limit))
                return
        except LMError as error:
            self._fail(asked, error)
        except Exception as error:  # a fault of ours or of a library, which must not take the other rows with it
            unexpected = LMRequestFailed(f"the request could not be made: {type(error).__name__}: {error}")
            unexpected.__cause__ = error
            self._fail(asked, unexpected)
        else:
            if asked.job.accept is None:
                self._accept(asked, landed, landed.reply.text)
            else:
                self._unparsed += 1
                self._parser.put(asked, landed.reply.text, asked.job.accept)

    async def _reply(self, asked: _Asked) -> Landed:
        """The reply, already stored on disk; another call may have requested it.

        It is stored before it is parsed, and the worker takes the next prompt only after that. So a process that is
        killed loses at most the answers in flight. (If the answer is rejected, it is deleted again. If the process is
        killed before that, the answer is rejected when it is next looked up.)
        """
        store = self._route.store

        async def ask() -> Landed:
            reply = await self.attempts.ask(asked.prompt, asked.meter)
            landed = Landed(reply, asked.meter.seconds, store)
            await self._keep(asked.job.key, landed)
            return landed

        shared = self._rules, asked.job.parameters.limit, asked.key
        landed = await flights.share(shared, self._opened, ask)
        if landed.store is not store:
            await self._keep(asked.job.key, landed)
        return landed

    # --- how a job ends -------------------------------------------------------------------------------------------

    def _parsed(self, answers: Sequence[Parsed[_Asked]]) -> None:
        self._unparsed -= len(answers)
        for asked, value, rejection in answers:
            assert asked.landed is not None
            if rejection is None:
                self._accept(asked, asked.landed, value)
            else:
                self._forget(asked.job.key, asked.landed)
                self._reject(asked, rejection)
        self._wake()

    def _accept(self, asked: _Asked, landed: Landed, value: Any) -> None:
        self._failed_in_a_row = 0
        self._accepted = True
        text, logprobs = landed.reply.text, landed.reply.logprobs
        if asked.meter.sent:
            completion = Completion(text, value, None, asked.meter.usage(), logprobs, "sent")
        else:
            completion = Completion(text, value, None, DUPLICATE, logprobs, "duplicate")
        self._end(asked.job, completion)

    def _reject(self, asked: _Asked, rejection: AnswerRejected) -> None:
        """Ask once for a repair, if there is an answer to repair."""
        assert asked.landed is not None
        reply = asked.landed.reply
        if asked.meter.repaired or reply.unfinished:
            self._fail(asked, rejection)
            return
        self._log(asked, "rejected", rejection)
        asked.meter.repaired = 1
        asked.prompt = asked.job.prompt.repair(reply.text, str(rejection))
        asked.key = request_keys([asked.prompt], asked.job.parameters)[0]
        self._waiting.appendleft(asked)

    def _fail(self, asked: _Asked, error: LMError) -> None:
        self._log(asked, "failed", error)
        if isinstance(error, LMRequestFailed) and error.stops_run:
            self.attempts.stop(error)
        if isinstance(error, SERVER_IS_ILL):
            self._failed_in_a_row += 1
            if self._failed_in_a_row >= HOPELESS:
                self.attempts.stop(error)
        if isinstance(error, AnswerRejected) and not self._accepted:
            self._rejected += 1
            if self._rejected >= REJECTED:
                said = shorten(asked.text or "")
                fact = f"the first {self._rejected} answers were all rejected; the last was {said!r} ({error})"
                self.attempts.stop(AnswerRejected(fact))
        self._end(asked.job, Completion(asked.text, None, error, asked.meter.usage(failed=1), None, "sent"))

    def _end(self, job: Job[Any], completion: Completion[Any]) -> None:
        job.completion = completion
        self.done += 1
        self._ended((job,))

    # --- the store ------------------------------------------------------------------------------------------------

    async def _keep(self, key: bytes, landed: Landed) -> None:
        """Store a complete answer, and wait until it is on disk."""
        store, reply = self._route.store, landed.reply
        if store is None or not store.writable or reply.truncated:
            return
        if not self._answers:  # all that arrive in one turn of the loop are handed over together
            self._on_disk = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(self._hand_over, store)
        answer = StoredAnswer(reply.text, reply.logprobs, reply.tokens_in, reply.tokens_out, landed.seconds)
        self._answers.append((key, self._route.source, answer))
        await asyncio.shield(self._on_disk)

    def _hand_over(self, store: ResponseStore) -> None:
        answers, on_disk, self._answers = self._answers, self._on_disk, []
        loop = asyncio.get_running_loop()
        if store.put(answers, lambda: _resolve_soon(loop, on_disk)):
            on_disk.set_result(None)

    def _forget(self, key: bytes, landed: Landed) -> None:
        store = self._route.store
        if store is not None and store.writable:
            store.forget(key, self._route.source, landed.reply.text)

    def _log(self, asked: _Asked, kind: str, reason: LMError) -> None:
        store, job = self._route.store, asked.job
        if store is not None and store.writable and not isinstance(reason, BudgetExceeded | RunStopped):
            store.put_log(job.key, self._route.source, kind, str(reason), asked.text, job.prompt.to_dicts())


def _cut(limit: int | None) -> AnswerCut:
    where = "the server's limit of tokens" if limit is None else f"its limit of {limit} tokens"
    return AnswerCut(f"it was cut off at {where}: answer in fewer, or raise max_tokens")


def _resolve_soon(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: the process ends
        loop.call_soon_threadsafe(lambda: None if future.done() else future.set_result(None))
