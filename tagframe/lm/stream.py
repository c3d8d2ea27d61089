"""An open call: batches of prompts are added over time, each distinct prompt is one job, and completions are taken as
they arrive. Each job ends with an answer or a named error.

The caller's thread (or task) adds and waits; the background loop sends (:mod:`tagframe.lm.run`).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Hashable, Iterable, Sequence
from concurrent.futures import Future, InvalidStateError, wait
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

from tagframe import errors
from tagframe.errors import spared
from tagframe.lm import background
from tagframe.lm.prompt import (
    Arrived,
    Batch,
    Completion,
    Completions,
    Job,
    Parameters,
    Prompt,
    RowPrompts,
    request_keys,
)
from tagframe.lm.run import Run, in_flight
from tagframe.lm.store import PACKED, ResponseStore, StoredAnswer, warn_of_store, warned
from tagframe.lm.usage import DUPLICATE, FAILED_DUPLICATE, Usage, record, total
from tagframe.progress import RowsBar

if TYPE_CHECKING:
    from tagframe.lm.model import LM

T = TypeVar("T")

_SECONDS_BETWEEN_ARRIVALS = 0.1
"""A complete batch is delivered at once; completions of incomplete batches, and the progress bar, this often."""
_SECONDS_TO_STOP = 0.4
PROMPTS_AT_ONCE = 512
"""Prompts of a batch whose keys are made, and that are looked up, before they are sent, while others are prepared."""
_NOT_STORED = errors.NotStored("the response store has no answer")


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
        self._sendings: list[Future[None]] = []
        self._opened = in_flight.open()
        self._version = 0 if self._store is None else self._store.version()
        self._open = True
        self._lock = threading.Lock()
        self._started = time.monotonic()
        # By accept, since another one makes another value, and by what may answer; of a job that has ended, its
        # completion alone: fewer objects mean less work for the garbage collector.
        self._jobs: dict[Hashable, dict[bytes, Job[Any] | Completion[Any]]] = {}
        self._accepts: dict[int, Any] = {}  # by id, so that no other has it
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
        for prompt in () if isinstance(batch.prompts, RowPrompts) else batch.prompts:
            if not isinstance(prompt, Prompt):
                raise errors.InvalidArgument(
                    f"prompts must be Prompt objects, such as Prompt.of(user, system); got {prompt!r}"
                )
        parameters = Parameters(batch.temperature, self._limit(batch), batch.logprobs, self._lm.extra_body, batch.form)
        if batch.prompts:
            self._left[batch] = len(batch.prompts)
        start, size = 0, min(PROMPTS_AT_ONCE, self._settings.concurrency)  # so many are sent before others are made
        if type(self) is not Stream:
            size = len(batch.prompts)  # replays and quotes count batches
        while start < len(batch.prompts):
            jobs = self._add(batch, start, batch.prompts[start : start + size], parameters)
            start, size = start + size, PROMPTS_AT_ONCE
            if batch.known is not None:
                self._keep(jobs, batch.known)
            elif not batch.sends:
                self._look_up(jobs)
            else:
                self._answer(jobs, batch)

    def _add(self, batch: Batch[Any], start: int, prompts: Sequence[Prompt], parameters: Parameters) -> list[Job[Any]]:
        """The jobs of a part of a batch's prompts that are new to the call, each once."""
        try:
            keys = request_keys(prompts, parameters)
        except (TypeError, AttributeError) as error:
            del self._left[batch]  # nobody waits for the rest of it
            raise errors.InvalidArgument(f"a prompt or parameter has no JSON form: {error}") from error
        new: list[Job[Any]] = []
        with self._lock:
            self._accepts[id(batch.accept)] = batch.accept
            jobs = self._jobs.setdefault(_kind(batch), {})
            for position, (key, prompt) in enumerate(zip(keys, prompts, strict=True), start):
                known = jobs.get(key)
                if known is None:
                    jobs[key] = job = Job(key, prompt, parameters, batch, position, prompt, key)
                    new.append(job)
                elif isinstance(known, Job):
                    known.repeats = known.repeats or []
                    known.repeats.append((batch, position))
                else:
                    self._deliver(batch, position, _repeated(known))
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
            self._run = Run(self._lm, self._store, self._opened, self._version, self._end)
        self._bar.grow(len(unknown))
        with self._lock:
            if not self._open:  # left meanwhile: nothing more is sent
                return
            self._sendings = [sending for sending in self._sendings if not sending.done() or sending.exception()]
            future = background.submit(self._run.send(unknown))
            self._sendings.append(future)
        future.add_done_callback(lambda _: self._wake())  # if it failed, nothing more will arrive

    # --- what arrives -----------------------------------------------------------------------------------------------

    def _end(self, jobs: Iterable[Job[Any]]) -> None:
        """Deliver the completions of these jobs to all their positions."""
        with self._lock:
            for job in jobs:
                completion = job.completion
                assert completion is not None
                self._jobs.setdefault(_kind(job.batch), {})[job.key] = completion
                self._deliver(job.batch, job.position, completion)
                for batch, position in job.repeats or ():
                    self._deliver(batch, position, _repeated(completion))

    def _deliver(self, batch: Batch[Any], position: int, completion: Completion[Any]) -> None:
        self._arrived.setdefault(batch, {})[position] = completion
        self._usages.append(completion.usage)
        left = self._left.pop(batch, 0) - 1
        if left > 0:
            self._left[batch] = left
        else:
            self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(InvalidStateError):  # it is awake
            self._turn.set_result(None)

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
            if sending.cancelled():
                raise SystemExit  # the process ends, and this is a daemon thread of it
            if sending.done():
                sending.result()  # raises what would otherwise be waited for without end
        if self._run is not None:
            self._bar.update(self._run.done, self._run.attempts.dollars)
        if arrived := self.arrived():
            self.usage()  # summed up while others are awaited
        return arrived

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
        if self._run is not None:
            self._bar.update(self._run.done, self._run.attempts.dollars)
            background.submit(self._run.stop())
            wait(self._sendings, _SECONDS_TO_STOP if self._left else 0)
        self._bar.close(self.usage().failed)
        self._record()
        in_flight.close(self._opened)
        # What holds this stream, in a circle or from another thread, shall not keep the jobs.
        self._run = None
        self._sendings = []
        self._jobs.clear()

    def _record(self) -> None:
        jobs = (job for of_a_kind in self._jobs.values() for job in of_a_kind.values() if isinstance(job, Job))
        # Of a call that was interrupted, what was sent is paid for, too.
        unended = total(job.usage(failed=1) for job in jobs if job.sent)
        spared("the usage", None, record, self._description, self._lm.model, self.usage() + unended)
        if self._run is None:
            return
        if self._store is not None and self._store.read_only:
            warn_of_store(f"the response store {str(self._store.path)!r} is read-only")
        elif self._store is not None and self._store.trouble is not None:
            warn_of_store(self._store.trouble)


def _kind(batch: Batch[Any]) -> Hashable:
    return id(batch.accept), batch.stored, batch.sends, batch.known is not None


def _repeated(completion: Completion[T]) -> Completion[T]:
    if not completion.usage.prompts:  # nothing was sent: the answer came from the store, or from a pack
        return replace(completion, origin="duplicate")
    return replace(completion, usage=DUPLICATE if completion.ok else FAILED_DUPLICATE, origin="duplicate")
