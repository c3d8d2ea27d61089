"""One call: batches of prompts come in, each distinct prompt is one job, and its completion goes out.

Prompts that no store answered are sent; each ends with an answer or a named error.

If several calls ask the same at once, one of them sends it. Answers are parsed in a thread of each call, not on the
event loop that all calls share: a parser that takes half a second would block every other caller.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import itertools
import math
import os
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from tagframe import logs
from tagframe.config import too_many
from tagframe.errors import (
    AnswerCut,
    AnswerRejected,
    InvalidArgument,
    LMError,
    LMRequestFailed,
    RunStopped,
    counted,
)
from tagframe.lm import background
from tagframe.lm.attempts import CONCERNS_A_ROW, Attempts, Meter, Route, is_endless
from tagframe.lm.prompt import (
    UNLABELLED,
    Accept,
    Completion,
    Form,
    Label,
    Logprobs,
    Origin,
    Parameters,
    Prompt,
    Stored,
    accepted,
    request_keys,
)
from tagframe.lm.reply import Reply, shorten
from tagframe.lm.store import ResponseStore, StoredAnswer, warned
from tagframe.lm.usage import DUPLICATE, FAILED_DUPLICATE, FAILED_IN_STORE, FROM_STORE, Usage, total

T = TypeVar("T")


@dataclass(eq=False)
class Bound:
    """An upper bound on the calls of several batches together, for quotes; it is counted with the first batch quoted.

    Attributes:
        calls: at most, without repairs.
        every: the calls if all rows are asked and each answer is usable; None if that is ``calls``.
        tokens_in, tokens_out: the most tokens that these calls read and write together, without repairs; None if each
            call may be as long as the longest prompt of the batch.
        quoted: whether it has been counted.
    """

    calls: int
    every: int | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    quoted: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Batch(Generic[T]):
    """Prompts with the same parameters, which are waited for together.

    Attributes:
        prompts: any number, in any order; identical ones are asked once.
        accept: parses an answer's text into a value, or raises :class:`~tagframe.errors.AnswerRejected`.
        temperature: of sampling.
        max_tokens: of an answer.
        logprobs: whether to ask for the log probabilities of the answer's tokens; "optional" also accepts a stored
            answer without them, and a server that gives none.
        guess: a typical answer to these prompts, for quotes; or several, used in turn; None for the quote's own guess.
        label: the stage and question of the prompts, for exported requests.
        bound: an upper bound on calls that is shared with other batches, for quotes.
        stored: which stored answers are accepted.
        sends: False only looks the prompts up in the store: prompts without an answer there end with
            :class:`~tagframe.errors.NotStored`, and are neither sent nor noted as missing.
        known: answers to the prompts that came from packs of rows: they are stored, and nothing is sent.
        form: of an answer, for servers that can hold a model to it.
        free: whether answers are texts of any length: then the setting ``max_tokens`` replaces the batch's own, and
            else only raises it.
        keeps_rejected: whether an answer that ``accept`` rejects is stored too, so that the same prompt ends with the
            same rejection later, and is not paid for again: of a pack, whose rows are asked again in other prompts.
    """

    prompts: Sequence[Prompt]
    accept: Accept[T] | None = None
    temperature: float = 0.0
    max_tokens: int | None = None
    logprobs: Logprobs = False
    guess: str | tuple[str, ...] | None = None
    label: Label = UNLABELLED
    bound: Bound | None = None
    stored: Stored = "any"
    sends: bool = True
    known: Sequence[str] | None = None
    form: Form | None = None
    free: bool = False
    keeps_rejected: bool = False


Arrived: TypeAlias = Mapping[Batch[Any], Mapping[int, Completion[Any]]]
"""Completions as they arrive, each with its batch and the position of its prompt there."""


@dataclass(slots=True)
class Job(Generic[T]):
    """A distinct prompt of a call, and later its completion.

    Attributes:
        batch: the first batch that contains it, at ``position``.
        repeats: its other positions, until it has a completion. (None instead of an empty list: most jobs have one
            position, and fewer objects mean less work for the garbage collector.)
    """

    key: bytes
    prompt: Prompt
    accept: Accept[T] | None
    parameters: Parameters
    batch: Batch[T]
    position: int
    repeats: list[tuple[Batch[T], int]] | None = None
    completion: Completion[T] | None = None

    def take_stored(self, answer: StoredAnswer) -> AnswerRejected | None:
        """Complete the job with a stored answer; gives the reason if ``accept`` rejects it."""
        try:
            value = accepted(answer.text, self.accept)
        except AnswerRejected as rejection:
            if self.batch.keeps_rejected:
                self.completion = Completion(answer.text, None, rejection, FAILED_IN_STORE, None, "store")
            return rejection
        self.completion = stored_completion(self.batch, answer, value)
        return None


def stored_completion(batch: Batch[T], answer: StoredAnswer, value: T) -> Completion[T]:
    """A completion that the store gave, with what ``accept`` made of it."""
    origin: Origin = "pack" if answer.packed else "store"
    # To look whether there is one, alone or in a pack, is not to ask.
    usage = FROM_STORE if batch.sends or batch.stored == "any" else Usage()
    return Completion(answer.text, value, None, usage, answer.logprobs, origin)


class Call:
    """The jobs of a call, and the completions that have arrived and were not taken yet.

    Used from two threads: the caller's, which adds and takes, and the one that completes the jobs.

    Attributes:
        turn: done as soon as a further batch is complete since :meth:`take` was last called.
    """

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.turn: Future[None] = Future()
        # By the id of accept, since another one makes another value, and by what may answer.
        self._jobs: dict[tuple[int, Stored, bool, bool], dict[bytes, Job[Any]]] = {}
        self._left: dict[Batch[Any], int] = {}  # prompts of each batch that have no completion yet
        self._arrived: dict[Batch[Any], dict[int, Completion[Any]]] = {}
        self._usages: list[Usage] = []  # of what has arrived since they were last summed
        self._used = Usage()
        self._lock = threading.Lock()

    def add(self, batch: Batch[Any], parameters: Parameters) -> list[Job[Any]]:
        """Add a batch; gives the jobs of its prompts that are new to the call, each once.

        Raises:
            InvalidArgument: something is not a prompt, or has no JSON form.
        """
        for prompt in batch.prompts:
            if not isinstance(prompt, Prompt):
                raise InvalidArgument(
                    f"prompts must be Prompt objects, such as Prompt.of(user, system); got {prompt!r}"
                )
        try:
            keys = request_keys(batch.prompts, parameters)
        except (TypeError, AttributeError) as error:
            raise InvalidArgument(f"a prompt or parameter has no JSON form: {error}") from error
        accept, new = batch.accept, []
        with self._lock:
            if keys:
                self._left[batch] = len(keys)
            # Its jobs keep accept alive, so that no other has its id.
            jobs = self._jobs.setdefault((id(accept), batch.stored, batch.sends, batch.known is not None), {})
            for position, (key, prompt) in enumerate(zip(keys, batch.prompts, strict=True)):
                job = jobs.get(key)
                if job is None:
                    job = jobs[key] = Job(key, prompt, accept, parameters, batch, position)
                    new.append(job)
                elif job.completion is None:
                    job.repeats = job.repeats or []
                    job.repeats.append((batch, position))
                else:
                    self._deliver(batch, position, _repeated(job.completion))
        return new

    def end(self, jobs: Iterable[Job[Any]]) -> None:
        """Deliver the completions of these jobs to all their positions."""
        with self._lock:
            for job in jobs:
                completion = job.completion
                assert completion is not None
                self._deliver(job.batch, job.position, completion)
                if job.repeats is not None:
                    for batch, position in job.repeats:
                        self._deliver(batch, position, _repeated(completion))
                    job.repeats = None

    def _deliver(self, batch: Batch[Any], position: int, completion: Completion[Any]) -> None:
        self._arrived.setdefault(batch, {})[position] = completion
        self._usages.append(completion.usage)
        left = self._left[batch] = self._left[batch] - 1
        if not left:
            del self._left[batch]
            self._wake()

    def _wake(self) -> None:
        if not self.turn.done():
            self.turn.set_result(None)

    def wake(self) -> None:
        """Mark :attr:`turn` as done, since nothing more will arrive."""
        with self._lock:
            self._wake()

    @property
    def waiting(self) -> bool:
        """Whether completions are still to arrive, or to be taken."""
        return bool(self._left or self._arrived)

    @property
    def unanswered(self) -> bool:
        """Whether completions are still to arrive."""
        return bool(self._left)

    def take(self) -> Arrived:
        """The completions that have arrived since the last call."""
        with self._lock:
            arrived, self._arrived = self._arrived, {}
            if self.turn.done():
                self.turn = Future()
        return arrived

    def forget(self) -> None:
        """Drop the jobs; nothing more is added."""
        self._jobs.clear()

    def usage(self) -> Usage:
        """The cost of the answers so far."""
        with self._lock:
            self._used = total((self._used, *self._usages))
            self._usages.clear()
            return replace(self._used, seconds=time.monotonic() - self.started)


def _repeated(completion: Completion[T]) -> Completion[T]:
    if not completion.usage.prompts:  # nothing was sent: the answer came from the store, or from a pack
        return replace(completion, origin="duplicate")
    usage = DUPLICATE if completion.ok else FAILED_DUPLICATE
    return replace(completion, usage=usage, origin="duplicate")


# --- what several calls ask at once ---------------------------------------------------------------------------------

Key: TypeAlias = tuple[int, int | None, bytes]
"""The rules of a request (see :func:`rules`), its limit of tokens, and its key."""

MAX_RETAINED_REPLIES = 4096
"""Replies that are retained for calls that began before they arrived."""


class SharedReply(NamedTuple):
    """A reply, the seconds that its requests took, and the store that has it, if any."""

    reply: Reply
    seconds: float
    store: ResponseStore | None


class _Flight(asyncio.Future[SharedReply | LMRequestFailed | None]):
    """A request in flight, or its reply, which came at the time ``arrived``."""

    arrived: float = math.inf


class InFlight:
    """The requests of this process that are in flight, by key.

    A call could look into the response store before an answer arrives, and send the same request after that; the answer
    would be paid for twice. So the newest replies are retained, for calls that were open when they arrived.

    Calls open from any thread; everything else happens on the loop.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all requests, in the child of a fork: they are the parent's."""
        self._requests: dict[Key, _Flight] = {}
        self._replied: deque[tuple[Key, _Flight]] = deque()
        self._time = itertools.count(1)

    def open(self) -> int:
        """Register a call that is about to look into the store; gives a time for :meth:`share`."""
        return next(self._time)

    @property
    def size(self) -> int:
        """The number of requests in flight, and of retained replies."""
        return len(self._requests)

    async def share(self, key: Key, opened: int, ask: Callable[[], Awaitable[SharedReply]]) -> SharedReply:
        """The result of ``ask``, or of another call that asks the same already.

        Raises:
            LMRequestFailed: raised by ``ask``, here or in the other call. (If the other call's request ended for
                another reason, such as its budget, this call asks by itself.)
        """
        while (request := self._requests.get(key)) is not None and request.arrived >= opened:
            reply = await asyncio.shield(request)
            if isinstance(reply, LMRequestFailed):
                raise copy.copy(reply)
            if reply is not None:
                return reply
        request = self._requests[key] = _Flight(loop=asyncio.get_running_loop())
        reply = None
        try:
            reply = await ask()
            return reply
        except LMRequestFailed as error:
            reply = error
            raise
        finally:
            if isinstance(reply, SharedReply):
                request.arrived = next(self._time)
                self._replied.append((key, request))
                if len(self._replied) > MAX_RETAINED_REPLIES:
                    self._forget(*self._replied.popleft())
            else:
                self._forget(key, request)
            request.set_result(reply)

    def _forget(self, key: Key, request: _Flight) -> None:
        if self._requests.get(key) is request:
            del self._requests[key]


in_flight = InFlight()
_rules: dict[object, int] = {}


def rules(*of: object) -> int:
    """A number for the things that two calls must have in common to share a request: endpoint, model, patience, …"""
    return _rules.setdefault(of, len(_rules))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=in_flight.reset)


JUDGED_ROWS = 20
"""A run stops if the answers of more than half of its last rows, this many, are rejected: the model does not follow the
prompt."""
MAX_FAILED_REPAIRS = 2
"""Repairs that may fail in a run; more may where repairs help, so that one in three does."""


@dataclass(slots=True, eq=False)
class _Request:
    """A job that is being sent: its current prompt (its own, or the repair of an answer), and the reply so far."""

    job: Job[Any]
    prompt: Prompt
    key: bytes
    meter: Meter
    shared: SharedReply | None = None

    @property
    def text(self) -> str | None:
        """The latest answer."""
        return None if self.shared is None else self.shared.reply.text


class Run:
    """Sends the jobs of one call.

    Args:
        route: where to, and under which rules.
        concurrency: the most jobs at once.
        opened: when the call was opened, by :data:`~tagframe.lm.dispatch.in_flight`.
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
        self._context = copy_context()  # of the caller, in which answers are parsed, one after the other
        self._thread = ThreadPoolExecutor(1, "tagframe-parse")
        self._answered: list[_Request] = []  # in this turn of the loop
        # Two calls share a request only if they are alike in these.
        of = (route.transport.endpoint, route.lm.model, route.lm.retry, route.lm.timeout, id(route.rates))
        self._rules = rules(*of)
        self._ready: deque[_Request] = deque()  # to be sent
        self._working = 0
        self._unparsed = 0
        self._turn: asyncio.Future[None] | None = None  # done when something was parsed, or has come in
        self._last_accepted: deque[bool] = deque(maxlen=JUDGED_ROWS)  # whether answers were accepted
        self._useful_repairs = self._failed_repairs = 0  # that have ended
        self._sent: set[_Request] = set()  # that have not ended
        self._answers: list[tuple[bytes, int, StoredAnswer]] = []
        self._on_disk: asyncio.Future[None]

    def close(self) -> None:
        """Stop sending; done once."""
        self._thread.shutdown(wait=False)

    async def send(self, jobs: Sequence[Job[Any]]) -> None:
        """Complete these jobs too; raises nothing but cancellation.

        All jobs of the run share one queue, so workers of another call to this method may complete some of them later.
        """
        self._ready.extend(_Request(job, job.prompt, job.key, Meter(job.parameters)) for job in jobs)
        # Rows of packs are asked again in other prompts: how many there are, and fail, is known at the end.
        self._prompts += sum(math.inf if job.batch.keeps_rejected else 1 for job in jobs)
        self._wake()
        try:
            with self._route.state.gate.serving(self._concurrency), background.uncollected():
                async with asyncio.TaskGroup() as workers:
                    for _ in range(min(self._concurrency - self._working, len(jobs))):
                        self._working += 1
                        workers.create_task(self._work())
        finally:
            logs.record_metrics()

    async def _work(self) -> None:
        try:
            while self._ready or self._unparsed:
                # An answer that is being parsed may have to be repaired; and no more answers wait for a slow parser
                # than requests may be in flight.
                if self._ready and self._unparsed < self._concurrency:
                    await self._ask(self._ready.popleft())
                else:
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
                with_form = request.job.parameters.form is not None and self._route.state.structured is True
                self._reject(request, _cut(request.job.parameters.limit, with_form))
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
                if not self._answered:  # those of one turn of the loop are handed over together
                    asyncio.get_running_loop().call_soon(self._parse)
                self._answered.append(request)

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

    def _parse(self) -> None:
        answered, self._answered = self._answered, []
        with contextlib.suppress(RuntimeError):  # the call was left
            parsing = asyncio.get_running_loop().run_in_executor(self._thread, self._context.run, _parsed, answered)
            parsing.add_done_callback(lambda done: self._take_parsed(done.result()))

    def _take_parsed(self, answers: Sequence[tuple[_Request, Any, AnswerRejected | None]]) -> None:
        self._unparsed -= len(answers)
        for request, value, rejection in answers:
            assert request.shared is not None
            if rejection is None:
                self._accept(request, request.shared, value)
            else:
                if not request.job.batch.keeps_rejected:
                    self._forget(request.job.key, request.shared)
                self._reject(request, rejection)
        self._wake()

    def _accept(self, request: _Request, shared: SharedReply, value: Any) -> None:
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
        endless = reply.truncated and is_endless(reply.text)
        helps = self._failed_repairs < MAX_FAILED_REPAIRS + 2 * self._useful_repairs
        if request.meter.repaired or reply.unfinished or endless or self.attempts.stopped or not helps:
            self._fail(request, rejection)
            return
        request.meter.repaired = 1
        request.prompt = request.job.prompt.repair(reply.text, str(rejection))
        request.key = request_keys([request.prompt], request.job.parameters)[0]
        self._ready.appendleft(request)
        self._wake()

    def _fail(self, request: _Request, error: LMError) -> None:
        self._failed += not request.job.batch.keeps_rejected
        if too_many(self._failed, max(self._prompts, JUDGED_ROWS), self._max_failed) and not self.attempts.stopped:
            reason = f"{counted(self._failed, 'prompt')} failed; max_failed={self._max_failed:g}"
            self.attempts.stop(RunStopped(f"not sent, because {reason}; the last failure was {error}"))
        if isinstance(error, LMRequestFailed) and error.stops_run:
            self.attempts.stop(error)
        if isinstance(error, LMRequestFailed) and not isinstance(error, CONCERNS_A_ROW):
            self.attempts.row_failed(error, request.meter)
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
        self._ended((job,))
        self._useful_repairs += request.meter.repaired and completion.ok
        self._failed_repairs += request.meter.repaired and not completion.ok

    def unended(self) -> Usage:
        """The cost of the requests whose prompts have not ended, as of a call that was interrupted."""
        return total(request.meter.usage(failed=1) for request in self._sent if request.meter.sent)

    # --- the store ------------------------------------------------------------------------------------------------

    async def _keep(self, key: bytes, shared: SharedReply) -> None:
        """Store a complete answer, and wait until it is on disk."""
        store, reply = self._route.store, shared.reply
        if store is None or not store.writable or reply.truncated:
            return
        if not self._answers:  # the answers of one turn of the loop are written together
            self._on_disk = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(self._write_answers, store)
        answer = StoredAnswer(
            reply.text, reply.logprobs, reply.billed.tokens_in, reply.billed.tokens_out, shared.seconds
        )
        self._answers.append((key, self._route.source, answer))
        await asyncio.shield(self._on_disk)

    def _write_answers(self, store: ResponseStore) -> None:
        answers, self._answers = self._answers, []
        with warned(store, "written"):
            store.put(answers)
        self._on_disk.set_result(None)

    def _forget(self, key: bytes, shared: SharedReply) -> None:
        store = self._route.store
        if store is not None and store.writable:
            with warned(store, "written"):
                store.forget(key, self._route.source, shared.reply.text)


def _parsed(answered: Sequence[_Request]) -> list[tuple[_Request, Any, AnswerRejected | None]]:
    """Each answer's value, or the reason why it has none."""
    parsed: list[tuple[_Request, Any, AnswerRejected | None]] = []
    for request in answered:
        try:
            parsed.append((request, accepted(request.text or "", request.job.accept), None))
        except AnswerRejected as rejection:
            parsed.append((request, None, rejection))
        except BaseException as error:  # an exit, say: whoever waits for this answer must not wait for ever
            parsed.append((request, None, AnswerRejected(f"{type(error).__name__}: {error}")))
    return parsed


def _cut(limit: int | None, with_form: bool) -> AnswerCut:
    form = '; if the model only fills the form that it is held to, use LM(…, structured="off")' if with_form else ""
    if limit is None:
        return AnswerCut(f"it was cut off at the server's limit of tokens: answer in fewer, or raise that limit{form}")
    return AnswerCut(
        f"it was cut off at its limit of {limit} tokens: answer in fewer, or give a larger max_tokens= in the call or"
        f" in tagframe.configure{form}"
    )
