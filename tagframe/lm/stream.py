"""An open call: batches of prompts are added over time, each distinct prompt is one job, and completions are taken as
they arrive. Each job ends with an answer or a named error.

The caller's thread (or task) adds and waits; the background loop sends. If several calls ask the same at once, X
Answers are parsed in a thread of each call, not on the event loop that all calls share: a parser that takes half a
second would block every other caller.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import itertools
import math
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, TypeVar, cast

from tagframe import errors
from tagframe.config import too_many
from tagframe.errors import counted, spared
from tagframe.lm import background
from tagframe.lm.attempts import CONCERNS_A_ROW, Attempts, is_endless
from tagframe.lm.background import after_fork
from tagframe.lm.prompt import (
    Arrived,
    Batch,
    Completion,
    Completions,
    Job,
    Origin,
    Parameters,
    Prompt,
    Stored,
    accepted,
    request_keys,
)
from tagframe.lm.reply import Reply, shorten
from tagframe.lm.store import PACKED, ResponseStore, StoredAnswer, warn_of_store, warned
from tagframe.lm.usage import DUPLICATE, FAILED_DUPLICATE, Usage, record, total
from tagframe.progress import RowsBar

if TYPE_CHECKING:
    from tagframe.lm.model import LM

# --- what several calls ask at once ---------------------------------------------------------------------------------

Key: TypeAlias = tuple[int, int | None, bytes]
"""The number of a request's rules, its limit of tokens, and its key."""

MAX_RETAINED_REPLIES = 4096
"""Replies that are retained for calls that began before they arrived."""


class Flight(asyncio.Future[None]):
    """A request of this process, done once its reply is stored, or once it has failed.

    Attributes:
        key: what it asks.
        store: where its reply is stored, or None.
        reply: as soon as it is read.
        seconds: that its requests took.
        error: why it has failed.
        arrived: the time at which it was done.
    """

    def __init__(self, key: Key, store: ResponseStore | None) -> None:
        super().__init__(loop=asyncio.get_running_loop())
        self.key, self.store = key, store
        self.reply: Reply | None = None
        self.seconds, self.arrived = 0.0, math.inf
        self.error: errors.LMRequestFailed | None = None


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
        self._requests: dict[Key, Flight] = {}
        self._replied: deque[Flight] = deque()
        self._time = itertools.count(1)

    def open(self) -> int:
        """Register a call, before it looks into the store; gives a time for :meth:`share`."""
        return next(self._time)

    async def share(
        self, key: Key, opened: int, store: ResponseStore | None, ask: Callable[[], Awaitable[tuple[Reply, float]]]
    ) -> Flight:
        """A request that has its reply: of another call that asks the same already, or by ``ask``. Once its reply is
        stored, :meth:`end` gives it to the others.

        Raises:
            LMError: there is none. (If the other call's request ended for another reason than a failure, such as its
                budget, this call asks by itself.)
        """
        while (flight := self._requests.get(key)) is not None and flight.arrived >= opened:
            await asyncio.shield(flight)
            if flight.error is not None:
                raise copy.copy(flight.error)
            if flight.reply is not None:
                return flight
        flight = self._requests[key] = Flight(key, store)
        try:
            flight.reply, flight.seconds = await ask()
        except BaseException as error:
            flight.error = error if isinstance(error, errors.LMRequestFailed) else None
            self.end(flight)
            raise
        return flight

    def end(self, flight: Flight) -> None:
        """Let the calls that wait for a request go on, unless it has ended."""
        if flight.done():
            return
        if flight.reply is None:
            self._forget(flight)
        else:
            flight.arrived = next(self._time)
            self._replied.append(flight)
            if len(self._replied) > MAX_RETAINED_REPLIES:
                self._forget(self._replied.popleft())
        flight.set_result(None)

    def _forget(self, flight: Flight) -> None:
        if self._requests.get(flight.key) is flight:
            del self._requests[flight.key]


in_flight = InFlight()
_rules: dict[object, int] = {}  # a number for what two calls must have in common to share a request


after_fork(in_flight.reset)


JUDGED_ROWS = 20
"""A run stops if the answers of more than half of its last rows, this many, are rejected: the model does not follow the
prompt."""
MAX_UNSTORED = 16
"""Replies that are read and not stored at most: a process that is killed loses these, and those in flight."""
MAX_FAILED_REPAIRS = 2
"""Repairs that may fail in a run; more may where repairs help, so that one in three does."""


class Run:
    """Sends the jobs of one call.

    Args:
        stream: the call.

    Attributes:
        attempts: the requests.
        done: prompts that have ended, for the progress bar.
        broken: what went wrong where answers are settled, a warning that is an error, say; it ends the call.
    """

    def __init__(self, stream: Stream) -> None:
        lm, settings = stream._lm, stream._settings
        self._stream = stream
        self._concurrency, self._max_failed = settings.concurrency, settings.max_failed
        self._prompts, self._failed = 0.0, 0
        self.attempts = Attempts(lm, stream._store)
        self.done = 0
        self.broken: Exception | None = None
        self._context = copy_context()  # of the caller, in which answers are parsed, one after the other
        self._thread = ThreadPoolExecutor(1, "tagframe-parse")
        self._answered: list[tuple[Job[Any], Flight]] = []  # in this turn of the loop
        # Two calls share a request only if they are alike in these.
        of = lm.transport.endpoint, lm.model, lm.retry, lm.timeout, id(self.attempts.rates)
        self._rules = _rules.setdefault(of, len(_rules))
        self._ready: deque[Job[Any]] = deque()  # to be sent
        self._working = 0
        self._unsettled = 0
        self._turn: asyncio.Future[None] | None = None  # done when something was parsed, or has come in
        self._last_accepted: deque[bool] = deque(maxlen=JUDGED_ROWS)  # whether answers were accepted
        self._useful_repairs = self._failed_repairs = 0  # that have ended

    def close(self) -> None:
        """Stop sending; done once."""
        self._thread.shutdown(wait=False)

    async def send(self, jobs: Sequence[Job[Any]], ended: threading.Event) -> None:
        """Complete these jobs too, and then set the event; raises nothing but cancellation.

        All jobs of the run share one queue, so workers of another call to this method may complete some of them later.
        """
        self._ready.extend(jobs)
        # Rows of packs are asked again in other prompts: how many there are, and fail, is known at the end.
        self._prompts += sum(math.inf if job.batch.keeps_rejected else 1 for job in jobs)
        self._wake()
        try:
            with self.attempts.state.gate.serving(self._concurrency):
                async with asyncio.TaskGroup() as workers:
                    for _ in range(min(self._concurrency - self._working, len(jobs))):
                        self._working += 1
                        workers.create_task(self._work())
        finally:
            ended.set()

    async def _work(self) -> None:
        try:
            while (self._ready or self._unsettled) and self.broken is None:
                # An answer that is being parsed may have to be repaired; and no more answers wait for a slow disk or
                # parser than requests may be in flight.
                if self._ready and self._unsettled < self._concurrency:
                    await self._ask(self._ready.popleft())
                    continue
                self._turn = self._turn or asyncio.get_running_loop().create_future()
                await asyncio.shield(self._turn)
        finally:
            self._working -= 1
        self._wake()

    def _wake(self) -> None:
        if self._turn is not None:
            self._turn.set_result(None)
            self._turn = None

    async def _ask(self, job: Job[Any]) -> None:
        key = self._rules, job.parameters.limit, job.current_key

        async def ask() -> tuple[Reply, float]:
            return await self.attempts.ask(job), job.seconds

        try:
            flight = await in_flight.share(key, self._stream._opened, self.attempts.store, ask)
        except errors.LMError as error:
            self._fail(job, error)
        except Exception as error:  # a fault of ours or of a library, which must not take the other rows with it
            unexpected = errors.LMRequestFailed(f"the request could not be made: {type(error).__name__}: {error}")
            unexpected.__cause__ = error
            self._fail(job, unexpected)
        else:
            job.reply = flight.reply
            self._unsettled += 1
            self._answered.append((job, flight))
            if len(self._answered) == 1:  # those of one turn of the loop are stored, and parsed, together
                asyncio.get_running_loop().call_soon(self._settle)
            elif len(self._answered) == MAX_UNSTORED:
                self._settle()

    # --- how a job ends -------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Store what was answered, and have it parsed.

        (An answer that is rejected is deleted again. If the process is killed before that, it is rejected when it is
        next looked up.)
        """
        answered, self._answered = self._answered, []
        if not answered:
            return
        with self._breaking():
            self._store_answers(answered)
            jobs = [job for job, _ in answered]
            with contextlib.suppress(RuntimeError):  # the call was left
                parsing = asyncio.get_running_loop().run_in_executor(self._thread, self._context.run, _parsed, jobs)
                parsing.add_done_callback(self._parsing_done)

    @contextlib.contextmanager
    def _breaking(self) -> Iterator[None]:
        """A block that nobody awaits: what it raises ends the call, or its rows would be awaited for ever."""
        try:
            yield
        except Exception as error:
            self.broken = self.broken or error
            self._wake()
            self._stream._wake()

    def _parsing_done(self, done: asyncio.Future[list[tuple[Job[Any], Any, errors.AnswerRejected | None]]]) -> None:
        with self._breaking():
            self._take_parsed(done.result())

    def _take_parsed(self, answers: Sequence[tuple[Job[Any], Any, errors.AnswerRejected | None]]) -> None:
        self._unsettled -= len(answers)
        rejected: list[tuple[bytes, int, str]] = []
        for job, value, rejection in answers:
            reply = job.reply
            assert reply is not None
            if reply.truncated:
                with_form = job.parameters.form is not None and self.attempts.state.structured is True
                self._reject(job, reply, _cut(job.parameters.limit, with_form))
            elif rejection is None:
                self._accept(job, reply, value)
            else:
                if not job.batch.keeps_rejected:
                    rejected.append((job.key, self.attempts.source, reply.text))
                self._reject(job, reply, rejection)
        store = self.attempts.store
        if store is not None and store.writable and rejected:
            with warned(store, "written"):
                store.forget(rejected)
        self._wake()

    def _accept(self, job: Job[Any], reply: Reply, value: Any) -> None:
        self._last_accepted.append(True)
        usage, origin = (job.usage(), "sent") if job.sent else (DUPLICATE, "duplicate")
        self._end(job, Completion(reply.text, value, None, usage, reply.logprobs, cast(Origin, origin)))

    def _reject(self, job: Job[Any], reply: Reply, rejection: errors.AnswerRejected) -> None:
        """Ask once for a repair, if there is an answer to repair."""
        endless = reply.truncated and is_endless(reply.text)
        helps = self._failed_repairs < MAX_FAILED_REPAIRS + 2 * self._useful_repairs
        if job.repaired or reply.unfinished or endless or self.attempts.stopped or not helps:
            self._fail(job, rejection)
            return
        job.repaired = 1
        job.current = job.prompt.repair(reply.text, str(rejection))
        job.current_key = request_keys([job.current], job.parameters)[0]
        self._ready.appendleft(job)
        self._wake()

    def _fail(self, job: Job[Any], error: errors.LMError) -> None:
        text = None if job.reply is None else job.reply.text  # the latest answer
        self._failed += not job.batch.keeps_rejected
        if too_many(self._failed, max(self._prompts, JUDGED_ROWS), self._max_failed) and not self.attempts.stopped:
            reason = f"{counted(self._failed, 'prompt')} failed; max_failed={self._max_failed:g}"
            self.attempts.stop(errors.RunStopped(f"not sent, because {reason}; the last failure was {error}"))
        if isinstance(error, errors.LMRequestFailed):
            if error.stops_run:
                self.attempts.stop(error)
            if not isinstance(error, CONCERNS_A_ROW):
                self.attempts.row_failed(error, job)
        if isinstance(error, errors.AnswerRejected) and not job.batch.keeps_rejected:
            self._last_accepted.append(False)
            rejected = self._last_accepted.count(False)
            if len(self._last_accepted) == JUDGED_ROWS and rejected > JUDGED_ROWS / 2:
                last = shorten(text or "")
                fact = f"{rejected} of the last {JUDGED_ROWS} answers were rejected; the last was {last!r} ({error})"
                self.attempts.stop(errors.AnswerRejected(fact))
        self._end(job, Completion(text, None, error, job.usage(failed=1), None, "sent"))

    def _end(self, job: Job[Any], completion: Completion[Any]) -> None:
        job.completion, job.reply = completion, None  # fewer objects for the garbage collector
        self.done += 1
        self._stream._end((job,))
        self._useful_repairs += job.repaired and completion.ok
        self._failed_repairs += job.repaired and not completion.ok

    # --- the store ------------------------------------------------------------------------------------------------

    def _store_answers(self, answered: Sequence[tuple[Job[Any], Flight]]) -> None:
        """Store complete answers that are not in the store yet, in one transaction."""
        store, source = self.attempts.store, self.attempts.source
        answers: list[tuple[bytes, int, StoredAnswer]] = []
        for job, flight in answered:
            reply = flight.reply
            assert reply is not None
            if not reply.truncated and not (flight.store is store and flight.done()):
                tokens = reply.billed.tokens_in, reply.billed.tokens_out
                answer = StoredAnswer(reply.text, reply.logprobs, *tokens, flight.seconds)
                answers.append((job.key, source, answer))
        try:
            if store is not None and store.writable and answers:
                with warned(store, "written"):
                    store.put(answers)
        finally:  # a warning may be an error
            for _, flight in answered:
                in_flight.end(flight)


def _parsed(answered: Sequence[Job[Any]]) -> list[tuple[Job[Any], Any, errors.AnswerRejected | None]]:
    """Each answer's value, or the reason why it has none; of one that was cut off, neither."""
    parsed: list[tuple[Job[Any], Any, errors.AnswerRejected | None]] = []
    for job in answered:
        value, rejection, reply = None, None, job.reply
        assert reply is not None
        try:
            value = None if reply.truncated else accepted(reply.text, job.batch.accept)
        except errors.AnswerRejected as rejected:
            rejection = rejected
        except BaseException as error:  # an exit, say: whoever waits for this answer must not wait for ever
            rejection = errors.AnswerRejected(f"{type(error).__name__}: {error}")
        parsed.append((job, value, rejection))
    return parsed


def _cut(limit: int | None, with_form: bool) -> errors.AnswerCut:
    form = '; if the model only fills the form that it is held to, use LM(…, structured="off")' if with_form else ""
    if limit is None:
        return errors.AnswerCut(
            f"it was cut off at the server's limit of tokens: answer in fewer, or raise that limit{form}"
        )
    return errors.AnswerCut(
        f"it was cut off at its limit of {limit} tokens: answer in fewer, or give a larger max_tokens= in the call or"
        f" in tagframe.configure{form}"
    )


# --- an open call ----------------------------------------------------------------------------------------------------


T = TypeVar("T")

_SECONDS_BETWEEN_ARRIVALS = 0.1
"""A complete batch is delivered at once; completions of incomplete batches, and the progress bar, this often."""
_SECONDS_TO_STOP = 0.4
_NOT_STORED = errors.NotStored("the response store has no answer")


class _Sending(NamedTuple):
    future: Future[None]
    ended: threading.Event  # a cancelled future is done before what it stands for has ended


class Stream:
    """An open call of a model; made by :meth:`LM.stream`.

    Use it as a context manager (``with`` for :meth:`take`, ``async with`` for :meth:`atake`). When the block is left,
    nothing more is sent, and answers are kept::

        with lm.stream("colours") as stream:
            stream.put(Batch(prompts))
            while arrived := stream.take():
                …

    Used from two threads: the caller's, which adds and takes, and the one that completes the jobs.
    """

    def __init__(self, lm: LM, description: str) -> None:
        self._lm = lm
        self._description = description
        self._settings = lm.settings()
        self._store: ResponseStore | None = lm.open_store()
        self._run: Run | None = None
        self._bar = RowsBar(description, self._settings.progress)
        self._sendings: list[_Sending] = []
        self._opened = in_flight.open()
        self._open = True
        self._lock = threading.Lock()
        self._started = time.monotonic()
        # By the id of accept, since another one makes another value, and by what may answer.
        self._jobs: dict[tuple[int, Stored, bool, bool], dict[bytes, Job[Any]]] = {}
        self._left: dict[Batch[Any], int] = {}  # prompts of each batch that have no completion yet
        self._arrived: dict[Batch[Any], dict[int, Completion[Any]]] = {}
        self._usages: list[Usage] = []  # of what has arrived since they were last summed
        self._used = Usage()
        self._turn: Future[None] = Future()  # done once a further batch is complete since something was last taken
        self._awaited: tuple[Future[None], asyncio.Future[None]] | None = None

    # --- asking ---------------------------------------------------------------------------------------------------

    def put(self, batch: Batch[Any]) -> None:
        """Add prompts: stored answers arrive at once, the rest is sent.

        Raises:
            InvalidArgument: something is not a prompt, or has no JSON form.
            NotConfigured: the model needs a key or a URL and none is set.
        """
        jobs = self._add(batch)
        if batch.known is not None:
            self._keep(jobs, batch.known)
        elif not batch.sends:
            self._look_up(jobs)
        else:
            self._answer(jobs, batch)

    def _add(self, batch: Batch[Any]) -> list[Job[Any]]:
        """The jobs of a batch's prompts that are new to the call, each once."""
        for prompt in batch.prompts:
            if not isinstance(prompt, Prompt):
                raise errors.InvalidArgument(
                    f"prompts must be Prompt objects, such as Prompt.of(user, system); got {prompt!r}"
                )
        parameters = Parameters(batch.temperature, self._limit(batch), batch.logprobs, self._lm.extra_body, batch.form)
        try:
            keys = request_keys(batch.prompts, parameters)
        except (TypeError, AttributeError) as error:
            raise errors.InvalidArgument(f"a prompt or parameter has no JSON form: {error}") from error
        new: list[Job[Any]] = []
        with self._lock:
            if keys:
                self._left[batch] = len(keys)
            # Its jobs keep accept alive, so that no other has its id.
            jobs = self._jobs.setdefault((id(batch.accept), batch.stored, batch.sends, batch.known is not None), {})
            for position, (key, prompt) in enumerate(zip(keys, batch.prompts, strict=True)):
                job = jobs.get(key)
                if job is None:
                    job = jobs[key] = Job(key, prompt, parameters, batch, position, prompt, key)
                    new.append(job)
                elif job.completion is None:
                    job.repeats = job.repeats or []
                    job.repeats.append((batch, position))
                else:
                    self._deliver(batch, position, _repeated(job.completion))
        return new

    def _limit(self, batch: Batch[Any]) -> int | None:
        """The most tokens of an answer: the setting for free texts, and where it is more than the batch's own."""
        own, setting = batch.max_tokens, self._settings.max_tokens
        return own if setting is None else setting if batch.free or own is None else max(own, setting)

    def _keep(self, jobs: Sequence[Job[Any]], answers: Sequence[str]) -> None:
        """Store the answers about rows of packs; a later pack, added as soon as these are taken, looks them up."""
        store = self._store
        if store is not None and store.writable and jobs:
            with warned(store, "written"):
                source = store.source(*self._lm.stored_as, PACKED)
                store.put([(job.key, source, StoredAnswer(answers[job.position])) for job in jobs])
        for job in jobs:
            job.completion = Completion(answers[job.position], None, None, Usage(), None, "pack")
        self._end(jobs)

    def _look_up(self, jobs: Sequence[Job[Any]]) -> None:
        """Complete jobs from the store, and the others with the error :class:`~tagframe.errors.NotStored`."""
        self._take_stored(jobs)
        for job in jobs:
            if job.completion is None:
                job.completion = Completion(None, None, _NOT_STORED, Usage(), None, "store")
        self._end(jobs)

    def _take_stored(self, jobs: Sequence[Job[Any]]) -> list[Job[Any]]:
        """Complete jobs from the store; gives those that it does not answer."""
        if self._store is not None and jobs and not self._lm.take_stored(jobs, self._store):
            self._store = None
        return [job for job in jobs if job.completion is None]

    def _answer(self, jobs: list[Job[Any]], batch: Batch[Any]) -> None:
        """Start the jobs, so that each ends, now or later."""
        with self._lock:
            if not self._open:  # left from another thread, as a task is that is cancelled
                return
        unknown = self._take_stored(jobs)
        self._end(job for job in jobs if job.completion is not None)
        if not unknown:
            return
        if self._run is None:
            self._run = Run(self)
        self._bar.grow(len(unknown))
        ended = threading.Event()
        with self._lock:
            if not self._open:  # left meanwhile: nothing more is sent
                return
            self._sendings = [sending for sending in self._sendings if not sending.ended.is_set()]
            future = background.submit(self._run.send(unknown, ended))
            self._sendings.append(_Sending(future, ended))
        future.add_done_callback(self._wake_where_it_failed)

    # --- what arrives -----------------------------------------------------------------------------------------------

    def _end(self, jobs: Iterable[Job[Any]]) -> None:
        """Deliver the completions of these jobs to all their positions."""
        with self._lock:
            for job in jobs:
                completion = job.completion
                assert completion is not None
                self._deliver(job.batch, job.position, completion)
                for batch, position in job.repeats or ():
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
        with contextlib.suppress(InvalidStateError):  # it is awake
            self._turn.set_result(None)

    def _wake_where_it_failed(self, sending: Future[None]) -> None:
        if sending.cancelled() or sending.exception() is not None:
            self._wake()  # since nothing more will arrive

    # --- waiting --------------------------------------------------------------------------------------------------

    def take(self) -> Arrived:
        """The completions since the last call; waits if there are none. Empty if nothing is in progress.

        Waits until a batch is complete, but at most a tenth of a second if part of it has arrived.
        """
        while self._left or self._arrived:
            with contextlib.suppress(TimeoutError):
                self._turn.result(_SECONDS_BETWEEN_ARRIVALS)
            if arrived := self._taken():
                return arrived
        return {}

    async def atake(self) -> Arrived:
        """:meth:`take`, awaited."""
        while self._left or self._arrived:
            if self._awaited is None or self._turn is not self._awaited[0]:
                self._awaited = self._turn, asyncio.wrap_future(self._turn)
            await asyncio.wait((self._awaited[1],), timeout=_SECONDS_BETWEEN_ARRIVALS)
            if arrived := self._taken():
                return arrived
        return {}

    def _taken(self) -> Arrived:
        for sending in self._sendings:
            if sending.future.done():
                sending.future.result()  # raises what would otherwise be waited for without end
        if self._run is not None:
            self._bar.update(self._run.done, self._run.attempts.dollars)
            if self._run.broken is not None:
                raise self._run.broken
        return self.arrived()

    def arrived(self) -> Arrived:
        """The completions since the last call, without waiting."""
        with self._lock:
            arrived, self._arrived = self._arrived, {}
            if self._turn.done():
                self._turn = Future()
        return arrived

    def complete(self, batch: Batch[T]) -> Completions[T]:
        """All completions of one batch, in the order of its prompts; the usage is the stream's."""
        self.put(batch)
        completions: dict[int, Completion[T]] = {}
        while arrived := self.take():
            completions |= arrived.get(batch, {})
        return Completions([completions[position] for position in range(len(batch.prompts))], self.usage())

    async def acomplete(self, batch: Batch[T]) -> Completions[T]:
        """:meth:`complete`, awaited."""
        await asyncio.to_thread(self.put, batch)
        completions: dict[int, Completion[T]] = {}
        while arrived := await self.atake():
            completions.update(arrived.get(batch, {}))
        return Completions([completions[position] for position in range(len(batch.prompts))], self.usage())

    def usage(self) -> Usage:
        """The cost of the answers so far."""
        with self._lock:
            self._used = total((self._used, *self._usages))
            self._usages.clear()
            return replace(self._used, seconds=time.monotonic() - self._started)

    # --- leaving --------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        if self._awaited is not None:
            self._awaited[1].cancel()  # its loop may end before what it stands for
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        """Stop requests in flight, and warn if answers were not stored; a stream is closed once."""
        with self._lock:
            self._open = False
            sendings = self._sendings
        if self._run is not None:
            self._bar.update(self._run.done, self._run.attempts.dollars)
        self._bar.close(self.usage().failed)
        if self._left:
            for sending in sendings:
                sending.future.cancel()
            deadline = time.monotonic() + _SECONDS_TO_STOP
            for sending in sendings:
                sending.ended.wait(max(0.0, deadline - time.monotonic()))
        self._record()
        if self._run is not None:
            self._run.close()
        # What holds this stream, in a circle or from another thread, shall not keep the jobs.
        self._run = None
        self._sendings = []
        self._jobs.clear()

    def _record(self) -> None:
        jobs = (job for of_a_kind in self._jobs.values() for job in of_a_kind.values())
        # Of a call that was interrupted, what was sent is paid for, too.
        unended = total(job.usage(failed=1) for job in jobs if job.sent and job.completion is None)
        spared("the usage", None, record, self._description, self._lm.model, self.usage() + unended)
        if self._run is None:
            return
        if self._store is not None and self._store.read_only:
            warn_of_store(f"the response store {str(self._store.path)!r} is read-only")
        elif self._store is not None and self._store.trouble is not None:
            warn_of_store(self._store.trouble)


def _repeated(completion: Completion[T]) -> Completion[T]:
    if not completion.usage.prompts:  # nothing was sent: the answer came from the store, or from a pack
        return replace(completion, origin="duplicate")
    usage = DUPLICATE if completion.ok else FAILED_DUPLICATE
    return replace(completion, usage=usage, origin="duplicate")
