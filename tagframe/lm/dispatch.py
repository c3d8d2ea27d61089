"""Sends the prompts of one call that no store answered; each ends with an answer or a named error."""

from __future__ import annotations

import asyncio
import contextlib
import math
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tagframe import traces
from tagframe.config import too_many
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
    counted,
)
from tagframe.lm.attempts import MAX_FAILURES_IN_A_ROW, SERVER_IS_DOWN, Attempts, Meter, Route
from tagframe.lm.call import Job, stored_completion
from tagframe.lm.claims import BEAT_SECONDS, Claim
from tagframe.lm.inflight import SharedReply, in_flight, rules
from tagframe.lm.parse import Parsed, Parser
from tagframe.lm.prompt import Completion, Prompt, Stored, request_keys
from tagframe.lm.store import ResponseStore, StoredAnswer, warned
from tagframe.lm.transport import shorten
from tagframe.lm.usage import DUPLICATE, Usage, total

SERVER_IS_ILL = (ConnectionFailed, RateLimited, RequestTimedOut, ResponseTooLong, ServerFailed)

_MAX_SECONDS_FOR_A_CLAIM = 5.0
"""How long a claim waits for a lock of the store, which a process on a loaded machine holds for long; then it is not
made, and the prompt may be paid twice."""
_SECONDS_BETWEEN_CLAIMS = 0.002
_SECONDS_BETWEEN_CHECKS = 0.1
_MAX_LOOKED_UP = 500
"""Prompts of other processes that are looked up together."""
JUDGED_ROWS = 20
"""A run stops if the answers of more than half of its last rows, this many, are rejected: the model does not follow the
prompt."""
MAX_FAILED_REPAIRS = 2
"""Repairs that may fail in a run; more may where repairs help, so that one in three does."""
_REPEATED_CHARACTERS = 40
"""Characters at the end of an answer that is cut off; with three copies of them in it, it would never have ended."""


@dataclass(slots=True, eq=False)
class _Request:
    """A job that is being sent: its current prompt (its own, or the repair of an answer), and the replies so far.

    Attributes:
        claim: the claim of the request in the store; None if another process has it, or no claim is needed.
        found: the stored answer that another process or call has written meanwhile.
        refused: the text of such an answer that ``accept`` rejected.
    """

    job: Job[Any]
    prompt: Prompt
    key: bytes
    meter: Meter
    shared: SharedReply | None = None
    claim: Claim | None = None
    found: StoredAnswer | None = None
    refused: str | None = None

    @property
    def text(self) -> str | None:
        """The latest answer."""
        return None if self.shared is None else self.shared.reply.text


class Run:
    """Sends the jobs of one call.

    Args:
        route: where to, and under which rules.
        concurrency: the most jobs at once.
        opened: when the call was opened, by :data:`~tagframe.lm.inflight.in_flight`.
        ended: called on the loop with jobs as soon as they have their completion.
        max_failed: the prompts that may fail, see :class:`~tagframe.config.Settings`; if more do, it stops.

    Attributes:
        attempts: the requests.
        done: prompts that have ended, for the progress bar.
    """

    def __init__(
        self,
        route: Route,
        concurrency: int,
        opened: int,
        ended: Callable[[Sequence[Job[Any]]], None],
        max_failed: float | None = None,
    ) -> None:
        self._max_failed = max_failed
        self._prompts, self._failed = 0.0, 0
        self.attempts = Attempts(route)
        self.done = 0
        self._route = route
        self._concurrency = concurrency
        self._opened = opened
        self._ended = ended
        self._parser: Parser[_Request] = Parser(self._parsed)
        # Two calls share a request only if they are alike in these.
        of = (route.transport.endpoint, route.lm.model, route.lm.retry, route.lm.timeout, id(route.rates))
        self._rules = rules(*of)
        self._waiting: deque[_Request] = deque()  # until they are claimed
        self._ready: deque[_Request] = deque()  # to be sent
        self._elsewhere: list[_Request] = []  # claimed by another process
        self._claims: set[Claim] = set()
        self._ended_claims: list[Claim] = []
        self._claiming = False
        self._claims_task: asyncio.Task[None] | None = None
        self._progressed_at = 0.0  # when a prompt last ended, here or elsewhere, by the monotonic clock
        self._working = 0
        self._unparsed = 0
        self._turn: asyncio.Future[None] | None = None  # done when something was parsed, or has come in
        self._failed_in_a_row = 0
        self._last_accepted: deque[bool] = deque(maxlen=JUDGED_ROWS)  # whether answers were accepted
        self._useful_repairs = 0  # whose answers were accepted
        self._failed_repairs = 0  # whose answers were not, and those that have not ended
        self._to_repair: deque[tuple[_Request, AnswerRejected]] = deque()  # until it is known whether repairs help
        self._sent: set[_Request] = set()  # that have not ended
        self._answers: list[tuple[bytes, int, StoredAnswer]] = []
        self._on_disk: asyncio.Future[None]

    def close(self) -> None:
        """Stop sending; done once."""
        self._parser.close()

    async def send(self, jobs: Sequence[Job[Any]]) -> None:
        """Complete these jobs too; raises nothing but cancellation.

        All jobs of the run share one queue, so workers of another call to this method may complete some of them later.
        """
        self._waiting.extend(_Request(job, job.prompt, job.key, Meter(job.parameters)) for job in jobs)
        # Rows of packs are asked again in other prompts: how many there are, and fail, is known at the end.
        self._prompts += sum(math.inf if job.batch.keeps_rejected else 1 for job in jobs)
        self._wake()
        try:
            with self._route.state.gate.serving(self._concurrency):
                async with asyncio.TaskGroup() as workers:
                    for _ in range(min(self._concurrency - self._working, len(jobs))):
                        self._working += 1
                        workers.create_task(self._work())
                    if self._claims_task is None and self._claims_in is not None:
                        self._claims_task = asyncio.create_task(self._watch_claims(self._claims_in))
        except BaseException:
            self._drop_claims()
            raise
        finally:
            traces.record()
        if not self._working:
            self._drop_claims()

    async def _work(self) -> None:
        try:
            while self._waiting or self._ready or self._elsewhere or self._unparsed or self._to_repair:
                # An answer that is being parsed may have to be repaired; and no more answers wait for a slow parser
                # than requests may be in flight.
                if self._unparsed < self._concurrency:
                    if not self._ready and self._waiting and not self._claiming:
                        await self._claim()
                        continue
                    if self._ready:
                        await self._ask(self._ready.popleft())
                        continue
                await self._next_turn()
        finally:
            self._working -= 1
        self._wake()

    async def _next_turn(self) -> None:
        if self._turn is None:
            self._turn = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._turn)

    def _wake(self) -> None:
        if self._turn is not None:
            self._turn.set_result(None)
            self._turn = None

    async def _ask(self, request: _Request) -> None:
        self._sent.add(request)
        try:
            shared = request.shared = await self._reply(request)
            if shared.reply.truncated:
                self._reject(request, _cut(request.job.parameters.limit))
                return
        except LMError as error:
            self._fail(request, error)
        except Exception as error:  # a fault of ours or of a library, which must not take the other rows with it
            unexpected = LMRequestFailed(f"the request could not be made: {type(error).__name__}: {error}")
            unexpected.__cause__ = error
            self._fail(request, unexpected)
        else:
            if request.job.accept is None:
                self._accept(request, shared, shared.reply.text)
            else:
                self._unparsed += 1
                self._parser.put(request, shared.reply.text, request.job.accept)

    async def _reply(self, request: _Request) -> SharedReply:
        """The reply, already stored on disk; another call may have requested it.

        It is stored before it is parsed, and the worker takes the next prompt only after that. So a process that is
        killed loses at most the answers in flight. (If the answer is rejected, it is deleted again. If the process is
        killed before that, the answer is rejected when it is next looked up.)
        """
        store = self._route.store

        async def ask() -> SharedReply:
            reply = await self.attempts.ask(request.prompt, request.meter)
            shared = SharedReply(reply, request.meter.seconds, store)
            await self._keep(request.job.key, shared)
            return shared

        key = self._rules, request.job.parameters.limit, request.key
        shared = await in_flight.share(key, self._opened, ask)
        if shared.store is not store:
            await self._keep(request.job.key, shared)
        return shared

    # --- how a job ends -------------------------------------------------------------------------------------------

    def _parsed(self, answers: Sequence[Parsed[_Request]]) -> None:
        self._unparsed -= len(answers)
        for request, value, rejection in answers:
            if request.found is not None:
                self._parsed_found(request, request.found, value, rejection)
                continue
            assert request.shared is not None
            if rejection is None:
                self._accept(request, request.shared, value)
            else:
                if not request.job.batch.keeps_rejected:
                    self._forget(request.job.key, request.shared)
                self._reject(request, rejection)
        self._wake()

    def _accept(self, request: _Request, shared: SharedReply, value: Any) -> None:
        self._failed_in_a_row = 0
        self._last_accepted.append(True)
        text, logprobs = shared.reply.text, shared.reply.logprobs
        if request.meter.sent:
            completion = Completion(text, value, None, request.meter.usage(), logprobs, "sent")
        else:
            completion = Completion(text, value, None, DUPLICATE, logprobs, "duplicate")
        self._end(request, completion)

    def _reject(self, request: _Request, rejection: AnswerRejected) -> None:
        """Ask once for a repair, if there is an answer to repair."""
        assert request.shared is not None
        reply = request.shared.reply
        endless = reply.truncated and reply.text.count(reply.text[-_REPEATED_CHARACTERS:]) > 2  # and would be so again
        if request.meter.repaired or reply.unfinished or endless or self.attempts.stopped:
            self._fail(request, rejection)
        elif self._repairs_help:
            self._repair(request, rejection)
        elif any(one.meter.repaired for one in self._sent):
            self._to_repair.append((request, rejection))
        else:
            self._fail(request, rejection)

    @property
    def _repairs_help(self) -> bool:
        return self._failed_repairs < MAX_FAILED_REPAIRS + 2 * self._useful_repairs

    def _repair(self, request: _Request, rejection: AnswerRejected) -> None:
        assert request.shared is not None
        reply = request.shared.reply
        self._log(request, "rejected", rejection)
        self._failed_repairs += 1
        request.meter.repaired = 1
        request.prompt = request.job.prompt.repair(reply.text, str(rejection))
        request.key = request_keys([request.prompt], request.job.parameters)[0]
        self._ready.appendleft(request)

    def _fail(self, request: _Request, error: LMError) -> None:
        self._log(request, "failed", error)
        self._failed += not request.job.batch.keeps_rejected
        if too_many(self._failed, max(self._prompts, JUDGED_ROWS), self._max_failed) and not self.attempts.stopped:
            reason = f"{counted(self._failed, 'prompt')} failed; max_failed={self._max_failed:g}"
            self.attempts.stop(RunStopped(f"not sent, because {reason}; the last failure was {error}"))
        if isinstance(error, LMRequestFailed) and error.stops_run:
            self.attempts.stop(error)
        if isinstance(error, SERVER_IS_DOWN) and not self.attempts.replied:
            self._route.state.row_failed(error)
        if isinstance(error, SERVER_IS_ILL):
            self._failed_in_a_row += 1
            if self._failed_in_a_row >= MAX_FAILURES_IN_A_ROW:
                self.attempts.stop(error)
        if isinstance(error, AnswerRejected) and not request.job.batch.keeps_rejected:
            self._last_accepted.append(False)
            rejected = self._last_accepted.count(False)
            if len(self._last_accepted) == JUDGED_ROWS and rejected > JUDGED_ROWS / 2:
                reason = shorten(request.text or "")
                fact = f"{rejected} of the last {JUDGED_ROWS} answers were rejected; the last was {reason!r} ({error})"
                self.attempts.stop(AnswerRejected(fact))
        self._end(request, Completion(request.text, None, error, request.meter.usage(failed=1), None, "sent"))

    def _end(self, request: _Request, completion: Completion[Any]) -> None:
        job = request.job
        job.completion = completion
        self._sent.discard(request)
        self.done += 1
        self._progressed_at = time.monotonic()
        if request.claim is not None:
            self._end_claim(request.claim, job.key, completion.ok)
        self._ended((job,))
        if request.meter.repaired:
            if completion.ok:
                self._useful_repairs, self._failed_repairs = self._useful_repairs + 1, self._failed_repairs - 1
            self._continue_repairs()

    def _continue_repairs(self) -> None:
        """Repair answers that wait for it, if repairs help; fail them if no repair is under way that could show it."""
        while self._to_repair and self._repairs_help and not self.attempts.stopped:
            self._repair(*self._to_repair.popleft())
        if self._to_repair and not any(one.meter.repaired for one in self._sent):
            waiting, self._to_repair = self._to_repair, deque()
            for request, rejection in waiting:
                self._fail(request, rejection)
        self._wake()

    def unended(self) -> Usage:
        """The cost of the requests whose prompts have not ended, as of a call that was interrupted."""
        return total(request.meter.usage(failed=1) for request in self._sent if request.meter.sent)

    # --- other processes ------------------------------------------------------------------------------------------

    @property
    def elsewhere(self) -> int:
        """Prompts that another process is asking now."""
        return len(self._elsewhere)

    @property
    def _claims_in(self) -> ResponseStore | None:
        """The store in which requests are claimed, unless nothing is sent any more."""
        store = self._route.store
        return store if store is not None and store.writable and not self.attempts.stopped else None

    async def _claim(self) -> None:
        """Claim the next prompts, and make those ready that no other process is asking or has answered meanwhile."""
        self._claiming = True
        try:
            taken, store = None, self._claims_in
            until = time.monotonic() + _MAX_SECONDS_FOR_A_CLAIM
            while store is not None and taken is None and time.monotonic() < until:
                keys = (request.job.key for request in self._waiting)
                taken = store.claims.take(keys, self._route.source, self._concurrency, self._ended_claims)
                if taken is None:
                    await asyncio.sleep(_SECONDS_BETWEEN_CLAIMS)
                    store = self._claims_in
            if store is None or taken is None:  # such as if the store cannot be written: claims only save money
                self._ready.extend(self._waiting.popleft() for _ in range(min(self._concurrency, len(self._waiting))))
                return
            self._ended_claims.clear()
            claimed = []
            for elsewhere in taken.elsewhere:
                request = self._waiting.popleft()
                if elsewhere:
                    self._elsewhere.append(request)
                else:
                    request.claim = taken.claim
                    claimed.append(request)
            if taken.claim is not None:
                self._claims.add(taken.claim)
            answers = self._look_up(store, claimed)
            self._ready.extend(request for request in claimed if not self._take_found(request, answers))
        finally:
            self._claiming = False
            self._wake()

    def _look_up(self, store: ResponseStore, requests: Sequence[_Request]) -> dict[tuple[Stored, bytes], StoredAnswer]:
        """The stored answers to these, by which may answer, and key."""
        lm = self._route.lm
        by_key: dict[tuple[Stored, bytes], StoredAnswer] = {}
        for stored in {one.job.batch.stored for one in requests}:
            keys = [one.job.key for one in requests if one.job.batch.stored == stored]
            with contextlib.suppress(sqlite3.Error):  # the store cannot be read: the prompts are sent
                answers = store.lookup(keys, *lm.stored_as, stored)
                by_key |= {(stored, key): answer for key, answer in answers.items()}
        return by_key

    def _take_found(self, request: _Request, answers: Mapping[tuple[Stored, bytes], StoredAnswer]) -> bool:
        """Have an answer parsed that the store has by now; gives whether there is one."""
        answer = answers.get((request.job.batch.stored, request.job.key))
        if answer is None or answer.text == request.refused:
            return False
        request.found = answer
        if request.job.accept is None:
            self._parsed_found(request, answer, answer.text, None)
        else:
            self._unparsed += 1
            self._parser.put(request, answer.text, request.job.accept)
        return True

    def _parsed_found(
        self, request: _Request, answer: StoredAnswer, value: Any, rejection: AnswerRejected | None
    ) -> None:
        request.found = None
        if rejection is None:
            self._end(request, stored_completion(request.job.batch, answer, value))
            return
        # If another process had this answer, it has rejected it too, and is repairing it now.
        request.refused = answer.text
        if request.claim is None:
            self._elsewhere.append(request)
        else:
            self._ready.append(request)

    async def _watch_claims(self, store: ResponseStore) -> None:
        """While this run sends: give signs of life, and watch the prompts that other processes have claimed."""
        beaten = self._progressed_at = time.monotonic()
        while True:
            await asyncio.sleep(_SECONDS_BETWEEN_CHECKS)
            if time.monotonic() - beaten > BEAT_SECONDS:
                beaten = time.monotonic()
                store.claims.beat()
            if self._elsewhere:
                try:
                    await self._take_from_others(store)
                except Exception:  # whatever it is: those who wait for this task must not wait for ever
                    self._waiting.extend(self._elsewhere)
                    self._elsewhere = []
                    self._wake()

    async def _take_from_others(self, store: ResponseStore) -> None:
        """Take the answers of other processes; prompts that they claim no longer are asked here."""
        requests = self._elsewhere[:_MAX_LOOKED_UP]

        def look() -> tuple[set[bytes] | None, dict[tuple[Stored, bytes], StoredAnswer]]:
            try:  # in this order, or an answer whose claim ends in between is missed
                return store.claimed_elsewhere(self._route.source), self._look_up(store, requests)
            except sqlite3.Error:
                return None, {}

        claimed, answers = await asyncio.to_thread(look)
        # No process waits for another for ever, such as if nothing has ended here or there for too long.
        alone = claimed is None or time.monotonic() - self._progressed_at > 2 * self._route.lm.timeout
        elsewhere, self._elsewhere = self._elsewhere, []
        for request in elsewhere:
            if self._take_found(request, answers):
                self._progressed_at = time.monotonic()
            elif alone:
                self._ready.append(request)
            elif claimed and request.job.key in claimed:
                self._elsewhere.append(request)
            else:
                self._waiting.append(request)
        self._wake()

    def _end_claim(self, claim: Claim, key: bytes, answered: bool) -> None:
        claim.left.discard(key)
        if not claim.left:
            self._claims.discard(claim)
            self._ended_claims.append(claim)  # dropped when the next is made
        elif not answered and (store := self._claims_in) is not None:
            store.claims.shrink(claim)  # another process may ask for it

    def _drop_claims(self) -> None:
        """End all claims of this run."""
        if self._claims_task is not None:
            self._claims_task.cancel()
            self._claims_task = None
        claims = [*self._ended_claims, *self._claims]
        self._ended_claims.clear()
        self._claims.clear()
        store = self._route.store
        if store is not None and store.writable:
            store.claims.drop(claims)

    # --- the store ------------------------------------------------------------------------------------------------

    async def _keep(self, key: bytes, shared: SharedReply) -> None:
        """Store a complete answer, and wait until it is on disk."""
        store, reply = self._route.store, shared.reply
        if store is None or not store.writable or reply.truncated:
            return
        if not self._answers:  # the answers of one turn of the loop are written together
            self._on_disk = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(self._write_answers, store)
        answer = StoredAnswer(reply.text, reply.logprobs, reply.tokens_in, reply.tokens_out, shared.seconds)
        self._answers.append((key, self._route.source, answer))
        await asyncio.shield(self._on_disk)

    def _write_answers(self, store: ResponseStore) -> None:
        answers, on_disk, self._answers = self._answers, self._on_disk, []
        loop = asyncio.get_running_loop()
        written = True  # what cannot be stored is not waited for
        with warned(store, "written"):
            written = store.put(answers, lambda: _resolve_soon(loop, on_disk))
        if written:
            on_disk.set_result(None)

    def _forget(self, key: bytes, shared: SharedReply) -> None:
        store = self._route.store
        if store is not None and store.writable:
            with warned(store, "written"):
                store.forget(key, self._route.source, shared.reply.text)

    def _log(self, request: _Request, kind: str, reason: LMError) -> None:
        store, job = self._route.store, request.job
        if store is not None and store.writable and not isinstance(reason, BudgetExceeded | RunStopped):
            with warned(store, "written"):
                store.put_log(job.key, self._route.source, kind, str(reason), request.text, job.prompt.to_dicts())


def _cut(limit: int | None) -> AnswerCut:
    if limit is None:
        return AnswerCut("it was cut off at the server's limit of tokens: answer in fewer, or raise that limit")
    return AnswerCut(
        f"it was cut off at its limit of {limit} tokens: answer in fewer, or give a larger max_tokens= in the call or"
        " in tagframe.configure"
    )


def _resolve_soon(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: the process ends
        loop.call_soon_threadsafe(lambda: None if future.done() else future.set_result(None))
