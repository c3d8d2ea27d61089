"""An open call: prompts are added over time, and completions are taken as they arrive.

The caller's thread (or task) adds and waits; the background loop sends.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from tagframe.errors import NotStored, ReportWarning, spared, warn
from tagframe.lm import background
from tagframe.lm.dispatch import Arrived, Batch, Call, Job, Run, in_flight
from tagframe.lm.prompt import Completion, Completions, Parameters
from tagframe.lm.store import PACKED, ResponseStore, StoredAnswer, warn_of_store, warned
from tagframe.lm.usage import Usage, record
from tagframe.progress import is_wanted, new_bar

if TYPE_CHECKING:
    from tagframe.lm.model import LM

T = TypeVar("T")

_SECONDS_BETWEEN_ARRIVALS = 0.1
"""A complete batch is delivered at once; completions of incomplete batches, and the progress bar, this often."""
_SECONDS_TO_STOP = 0.4
_NOT_STORED = NotStored("the response store has no answer")


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
    """

    def __init__(self, lm: LM, description: str) -> None:
        self._lm = lm
        self._description = description
        self._call = Call()
        self._settings = lm.settings()
        self._store: ResponseStore | None = lm.open_store()
        self._run: Run | None = None
        self._bar = Bar(description, is_wanted(self._settings.progress))
        self._sendings: list[_Sending] = []
        self._opened: int | None = None
        self._open = True
        self._lock = threading.Lock()
        self._awaited: tuple[Future[None], asyncio.Future[None]] | None = None

    # --- asking ---------------------------------------------------------------------------------------------------

    def put(self, batch: Batch[Any]) -> None:
        """Add prompts: stored answers arrive at once, the rest is sent.

        Raises:
            InvalidArgument: something is not a prompt.
            NotConfigured: the model needs a key or a URL and none is set.
        """
        parameters = Parameters(batch.temperature, self._limit(batch), batch.logprobs, self._lm.extra_body, batch.form)
        jobs = self._call.add(batch, parameters)
        if batch.known is not None:
            self._keep(jobs, batch.known)
        elif not batch.sends:
            self._look_up(jobs)
        else:
            self._answer(jobs, batch)

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
        self._call.end(jobs)

    def _look_up(self, jobs: Sequence[Job[Any]]) -> None:
        """Complete jobs from the store, and the others with the error :class:`~tagframe.errors.NotStored`."""
        self._take_stored(jobs)
        for job in jobs:
            if job.completion is None:
                job.completion = Completion(None, None, _NOT_STORED, Usage(), None, "store")
        self._call.end(jobs)

    def _take_stored(self, jobs: Sequence[Job[Any]]) -> None:
        """Complete jobs from the store."""
        if self._store is not None and jobs and not self._lm.take_stored(jobs, self._store):
            self._store = None

    def _answer(self, jobs: list[Job[Any]], batch: Batch[Any]) -> None:
        """Start the jobs, so that each ends, now or later."""
        with self._lock:
            if not self._open:  # left from another thread, as a task is that is cancelled
                return
            if self._opened is None:
                self._opened = in_flight.open()
        self._take_stored(jobs)
        self._call.end(job for job in jobs if job.completion is not None)
        jobs = [job for job in jobs if job.completion is None]
        if not jobs:
            return
        if self._run is None:
            settings = self._settings
            self._run = Run(
                self._lm.route(self._store), settings.concurrency, self._opened, self._call.end, settings.max_failed
            )
        self._bar.grow(len(jobs))
        ended = threading.Event()
        with self._lock:
            if not self._open:  # left meanwhile: nothing more is sent
                return
            self._sendings = [sending for sending in self._sendings if not sending.ended.is_set()]
            future = background.submit(self._send(self._run, jobs, ended))
            self._sendings.append(_Sending(future, ended))
        future.add_done_callback(self._wake_where_it_failed)

    def _wake_where_it_failed(self, sending: Future[None]) -> None:
        if sending.cancelled() or sending.exception() is not None:
            self._call.wake()

    @staticmethod
    async def _send(run: Run, jobs: Sequence[Job[Any]], ended: threading.Event) -> None:
        try:
            await run.send(jobs)
        finally:
            ended.set()

    # --- waiting --------------------------------------------------------------------------------------------------

    def take(self) -> Arrived:
        """The completions since the last call; waits if there are none. Empty if nothing is in progress.

        Waits until a batch is complete, but at most a tenth of a second if part of it has arrived.
        """
        while self._call.waiting:
            with contextlib.suppress(TimeoutError):
                self._call.turn.result(_SECONDS_BETWEEN_ARRIVALS)
            if arrived := self._taken():
                return arrived
        return {}

    async def atake(self) -> Arrived:
        """:meth:`take`, awaited."""
        while self._call.waiting:
            await asyncio.wait((self._awaitable(self._call.turn),), timeout=_SECONDS_BETWEEN_ARRIVALS)
            if arrived := self._taken():
                return arrived
        return {}

    def _awaitable(self, turn: Future[None]) -> asyncio.Future[None]:
        if self._awaited is None or turn is not self._awaited[0]:
            self._awaited = (turn, asyncio.wrap_future(turn))
        return self._awaited[1]

    def _taken(self) -> Arrived:
        for sending in self._sendings:
            if sending.future.done():
                sending.future.result()  # raises what would otherwise be waited for without end
        if self._run is not None:
            self._bar.update(self._run.done, self._run.attempts.dollars)
        return self._call.take()

    def arrived(self) -> Arrived:
        """The completions since the last call, without waiting."""
        return self._call.take()

    def complete(self, batch: Batch[T]) -> Completions[T]:
        """All completions of one batch, in the order of its prompts; the usage is the stream's."""
        self.put(batch)
        completions: dict[int, Completion[T]] = {}
        while arrived := self.take():
            completions.update(arrived.get(batch, {}))
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
        return self._call.usage()

    # --- leaving --------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        self._bar.close(self._call.usage().failed)
        if self._call.unanswered:
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
        self._call.forget()

    def _record(self) -> None:
        unended = Usage() if self._run is None else self._run.unended()
        spared("the usage", None, record, self._description, self._lm.model, self.usage() + unended)
        if self._run is None:
            return
        if self._store is not None and self._store.read_only:
            warn_of_store(f"the response store {str(self._store.path)!r} is read-only")
        elif self._store is not None and self._store.trouble is not None:
            warn_of_store(self._store.trouble)


class Bar:
    """A tqdm bar of rows, with their rate and dollars; shows nothing if not ``wanted``, or without rows.

    A bar that cannot be drawn, as on a terminal that is gone, ends no call: it is not drawn any more.
    """

    def __init__(self, description: str, wanted: bool) -> None:
        self._description = description
        self._wanted = wanted
        self._bar: Any = None
        self._done = 0

    def grow(self, rows: int) -> None:
        """Add to the total number of rows."""
        with self._drawing():
            if self._bar is not None:
                self._bar.total += rows
                self._bar.refresh()
            elif self._wanted:
                self._bar = new_bar(rows, self._description, "row")

    def update(self, done: int, dollars: float | None) -> None:
        """Show the number of finished rows, and their dollars."""
        with self._drawing():
            if self._bar is not None and done != self._done:
                self._bar.set_postfix_str("price unknown" if dollars is None else f"${dollars:.4f}", refresh=False)
                self._bar.update(done - self._done)
                self._done = done

    def close(self, failed: int = 0) -> None:
        """Stop updating the bar; if prompts failed, it turns red and shows how many."""
        with self._drawing():
            if self._bar is not None and failed:
                self._bar.colour = "red"
                self._bar.set_postfix_str(", ".join(part for part in (self._bar.postfix, f"{failed} failed") if part))
            if self._bar is not None:
                self._bar.close()

    @contextlib.contextmanager
    def _drawing(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._wanted, self._bar = False, None
            warn(f"the progress bar is not drawn any more: {type(error).__name__}: {error}", ReportWarning)
