"""One call under way: started in the caller's thread, sent by the background loop, waited for here."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from tagframe.errors import StoreWarning
from tagframe.lm import background
from tagframe.lm.call import Call
from tagframe.lm.dispatch import Run
from tagframe.lm.progress import SECONDS_BETWEEN_UPDATES, Bar, wanted
from tagframe.lm.prompt import Accept, Completions, Parameters, Prompt
from tagframe.lm.replay import replay
from tagframe.lm.store import ResponseStore
from tagframe.lm.usage import ledger

if TYPE_CHECKING:
    from tagframe.lm.model import LM

_SECONDS_TO_STOP = 0.4


class Pending:
    """A call that is under way: what the store answered is there, the rest is being sent."""

    def __init__(
        self,
        lm: LM,
        prompts: Sequence[Prompt],
        accept: Accept[Any] | None,
        parameters: Parameters,
        description: str,
    ) -> None:
        self.future: Future[None] | None = None
        self._store: ResponseStore | None = None
        self._call = Call(prompts, accept, parameters)
        self._lm = lm
        self._description = description
        self._ended = threading.Event()
        settings = lm.settings()
        if lm.replays:
            store = lm.open_store()
            assert store is not None
            replay(self._call, store)
            return
        self._store = lm.take_stored(self._call)
        jobs = self._call.jobs
        if not jobs:
            return
        self._run: Run[Any] = Run(lm.route(self._store), parameters, accept)
        self._bar = Bar(len(jobs), description, wanted(settings.progress))
        self._pause = SECONDS_BETWEEN_UPDATES if self._bar.shown else 0.5
        self.future = background.submit(self._send(jobs, settings.concurrency))

    async def _send(self, jobs: list[Any], concurrency: int) -> None:
        try:
            await self._run.send(jobs, concurrency)
        finally:
            self._ended.set()

    def wait(self) -> None:
        """Until everything has ended; an interrupt stops the sending and keeps what is answered."""
        assert self.future is not None
        try:
            while not self._ended.wait(self._pause):
                self._bar.update(self._run.done, self._run.dollars)
            self.future.result()
        except BaseException:
            self._abandon()
            raise
        finally:
            self._close_bar()

    async def await_(self) -> None:
        """:meth:`wait`, awaited."""
        assert self.future is not None
        ended = asyncio.wrap_future(self.future)
        try:
            while not ended.done():
                await asyncio.wait((ended,), timeout=self._pause)
                self._bar.update(self._run.done, self._run.dollars)
            await ended
        except BaseException:
            await asyncio.to_thread(self._abandon)
            raise
        finally:
            self._close_bar()

    def _abandon(self) -> None:
        assert self.future is not None
        self.future.cancel()
        self._ended.wait(_SECONDS_TO_STOP)
        if self._store is not None:
            self._store.flush(_SECONDS_TO_STOP)
        ledger.record(self._description, self._lm.model, self._call.usage())

    def _close_bar(self) -> None:
        self._bar.update(self._run.done, self._run.dollars)
        self._bar.close()

    def finish(self) -> Completions[Any]:
        """The completions; what happened to the store is warned of."""
        completions = self._call.completions()
        ledger.record(self._description, self._lm.model, completions.usage)
        if self._store is not None and self.future is not None:
            if self._store.read_only:
                warn_of_store(f"the response store {str(self._store.path)!r} is read-only")
            elif self._store.trouble is not None:
                warn_of_store(self._store.trouble)
        return completions


def warn_of_store(trouble: str) -> None:
    """Warn that answers are not stored."""
    warnings.warn(f"{trouble}; the run goes on, and its answers are not stored", StoreWarning, stacklevel=2)
