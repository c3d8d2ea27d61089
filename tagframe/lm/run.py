"""The run of a call: its jobs are sent, stored, parsed and repaired, until each has an answer or a named error.

What several calls ask at once is sent once. Answers are parsed in a thread of each call, not on the event loop that all
calls share: a parser that takes half a second would block every other caller.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import itertools
import math
import secrets
import sqlite3
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from tagframe import errors
from tagframe.config import too_many
from tagframe.errors import counted
from tagframe.lm.attempts import CONCERNS_A_ROW, Attempts, is_endless
from tagframe.lm.background import after_fork
from tagframe.lm.prompt import Completion, Job, Origin, accepted, request_keys
from tagframe.lm.reply import Billed, Reply, shorten
from tagframe.lm.store import ResponseStore, StoredAnswer, warned
from tagframe.lm.usage import DUPLICATE

if TYPE_CHECKING:
    from tagframe.lm.model import LM

Key: TypeAlias = tuple[str, str, bytes]
"""The endpoint and the model of a request, and its key."""
Rules: TypeAlias = tuple[Any, ...]
"""The most tokens of an answer, and how long and how often a request is tried."""

MAX_RETAINED_REPLIES = 4096
"""Replies that are retained for calls that began before they arrived."""


@dataclass(slots=True, eq=False)
class Flight:
    """A request of this process.

    Attributes:
        key: what it asks.
        rules: by which it is asked.
        opened: when its call began.
        store: where its reply is stored, or None.
        sender: the task that sends it.
        reply: as soon as it is read.
        seconds: that its requests took.
        error: why it has failed.
        arrived: the time at which it ended.
        ended: set once its reply is stored, or once it has failed.
    """

    key: Key
    rules: Rules
    opened: int
    store: ResponseStore | None
    sender: asyncio.Task[Any] | None
    reply: Reply | None = None
    seconds: float = 0.0
    error: errors.LMRequestFailed | None = None
    arrived: float = math.inf
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class InFlight:
    """The requests of this process that are in flight, by key.

    A call could look into the response store before an answer arrives, and send the same request after that; the answer
    would be paid for twice. So the newest replies are retained, for calls that were open when they arrived.

    Calls open and close from any thread; everything else happens on the loop.

    Attributes:
        awaited: the tasks whose requests other calls wait for, too.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all requests, in the child of a fork: they are the parent's."""
        self._requests: dict[Key, Flight] = {}
        self._replied: deque[Flight] = deque()
        self._time = itertools.count(1)
        self._open: set[int] = set()  # the times at which the calls began that have not ended
        self.awaited: set[asyncio.Task[Any] | None] = set()

    def open(self) -> int:
        """Register a call, before it looks into the store; gives a time for :meth:`share`."""
        time = next(self._time)
        self._open.add(time)
        return time

    def close(self, opened: int) -> None:
        """Register the end of a call."""
        self._open.discard(opened)

    async def share(
        self,
        key: Key,
        rules: Rules,
        opened: int,
        store: ResponseStore | None,
        ask: Callable[[], Awaitable[tuple[Reply, float]]],
    ) -> tuple[Flight, Reply]:
        """A request, and its reply: of another call that asks the same already, or by ``ask``. Once its reply is
        stored, :meth:`end` gives it to the others.

        Raises:
            LMError: there is none. (If the other call's request ended for another reason than a failure, such as its
                budget, or failed or was cut off by other rules, this call asks by itself.)
        """
        while (flight := self._requests.get(key)) is not None and flight.arrived >= opened:
            if flight.reply is None:
                self.awaited.add(flight.sender)
            await flight.ended.wait()
            alike = flight.rules == rules
            if alike and flight.error is not None:
                raise copy.copy(flight.error)
            if flight.reply is not None and (alike or not flight.reply.truncated):
                return flight, flight.reply
            if flight is self._requests.get(key):
                break
        flight = self._requests[key] = Flight(key, rules, opened, store, asyncio.current_task())
        try:
            flight.reply, flight.seconds = reply, _ = await ask()
        except BaseException as error:
            flight.error = error if isinstance(error, errors.LMRequestFailed) else None
            self.end(flight)
            raise
        finally:
            self.awaited.discard(flight.sender)
        return flight, reply

    def end(self, flight: Flight) -> None:
        """Let the calls that wait for a request go on, unless it has ended."""
        if flight.ended.is_set():
            return
        if flight.reply is None or self._open <= {flight.opened}:
            self._forget(flight)
        else:
            flight.arrived = next(self._time)
            self._replied.append(flight)
            if len(self._replied) > MAX_RETAINED_REPLIES:
                self._forget(self._replied.popleft())
        flight.ended.set()

    def _forget(self, flight: Flight) -> None:
        if self._requests.get(flight.key) is flight:
            del self._requests[flight.key]


in_flight = InFlight()
after_fork(in_flight.reset)


JUDGED_ROWS = 20
"""A run stops if the answers of more than half of its last rows, this many, are rejected: the model does not follow the
prompt."""
UNSTORED_SHARE = 4
"""Replies that are read and not stored at most, unless another process writes to the store: one for so many that may be
in flight. A process that is killed loses these, and those in flight."""
SECONDS_UNSTORED = 0.02
"""How long a reply is neither stored nor parsed at most while others are in flight: a transaction and a turn of the
parser's thread for each reply would take as long as to send a request."""
MAX_FAILED_REPAIRS = 2
"""Repairs that may fail in a run; more may where repairs help, so that one in three does."""

Answered: TypeAlias = list[tuple[Job[Any], Reply, Flight]]
Value: TypeAlias = tuple[Any, errors.AnswerRejected | None]
"""The value of an answer, or the reason why it has none; of one that was cut off, neither."""


class Run:
    """Sends the jobs of one call.

    Args:
        lm: the model.
        store: where answers are looked up and stored, or None.
        opened: when the call began, by :meth:`InFlight.open`, and the ``version`` of the store then.
        end: takes jobs that have a completion.

    Attributes:
        attempts: the requests.
        done: prompts that have ended, for the progress bar.
    """

    def __init__(
        self, lm: LM, store: ResponseStore | None, opened: int, version: int, end: Callable[[Sequence[Job[Any]]], None]
    ) -> None:
        settings, self._store, self._opened, self._version, self._give = lm.settings(), store, opened, version, end
        self._concurrency, self._max_failed = settings.concurrency, settings.max_failed
        self._prompts, self._failed = 0.0, 0
        self.attempts = Attempts(lm, store)
        self.done = 0
        self._context = copy_context()  # of the caller, in which answers are parsed, one after the other
        self._thread = ThreadPoolExecutor(1, "tagframe-parse")
        self._answered: Answered = []  # and not stored yet
        self._most_unstored = self._concurrency // UNSTORED_SHARE
        self._server, self._patience = (lm.transport.endpoint, lm.model), (lm.retry, lm.timeout)
        self._ready: deque[Job[Any]] = deque()  # to be sent
        self._sending: list[asyncio.Task[None]] = []
        self._working = self._asking = 0
        self._unsettled = 0
        self._turn = asyncio.Event()  # set, and another one from then on, when something was parsed, or has come in
        self._ended = False
        self._others_write = False  # another process has stored answers since the call began
        self._last_accepted: deque[bool] = deque(maxlen=JUDGED_ROWS)  # whether answers were accepted
        self._repairs = MAX_FAILED_REPAIRS  # that may fail

    async def stop(self) -> None:
        """Cancel what is sent, and send and parse nothing more."""
        self._ended = True
        self._settle()
        self._thread.shutdown(wait=False)
        while self._sending:  # the traceback of a cancelled task refers to this run
            self._sending.pop().cancel()

    async def send(self, jobs: Sequence[Job[Any]]) -> None:
        """Complete these jobs too.

        All jobs of the run share one queue, so workers of another call to this method may complete some of them later.
        """
        loop = asyncio.get_running_loop()
        self._sending.append(cast("asyncio.Task[None]", asyncio.current_task()))
        self._ready.extend(jobs)
        # Rows of packs are asked again in other prompts: how many there are, and fail, is known at the end.
        self._prompts += sum(math.inf if job.batch.keeps_rejected else 1 for job in jobs)
        self._look_for_others()
        self._wake()
        workers = [loop.create_task(self._work()) for _ in range(min(self._concurrency - self._working, len(jobs)))]
        self._working += len(workers)
        try:
            with self.attempts.state.gate.serving(self._concurrency):
                if workers:  # they end with their call, but where others wait for them
                    await asyncio.wait(workers)
        except BaseException:
            self._ended = True
            left = [worker for worker in workers if worker not in in_flight.awaited]  # other calls wait for the rest
            for worker in left:
                worker.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            raise

    async def _work(self) -> None:
        try:
            while (self._ready or self._unsettled) and not self._ended:
                # An answer that is being parsed may have to be repaired; and no more answers wait for a slow disk or
                # parser than requests may be in flight, and those that are to be parsed together.
                if self._ready and self._unsettled < self._concurrency + self._concurrency // 2:
                    self._asking += 1
                    if self._others_write:  # another process stores answers, and may be at the same rows
                        self._ready.rotate(secrets.randbelow(len(self._ready)))  # random's own state is the user's
                    await self._ask(self._ready.popleft())
                    self._asking -= 1
                    continue
                await self._turn.wait()
        finally:
            self._working -= 1
        self._wake()

    def _wake(self) -> None:
        self._turn.set()
        self._turn = asyncio.Event()

    def _look_for_others(self) -> None:
        if self._store is not None and not self._others_write:
            self._others_write = self._store.version() != self._version

    async def _ask(self, job: Job[Any]) -> None:
        key, rules = (*self._server, job.current_key), (job.parameters.limit, *self._patience)

        async def ask() -> tuple[Reply, float]:
            return self._stored(job) or (await self.attempts.ask(job), job.seconds)

        try:
            flight, reply = await in_flight.share(key, rules, self._opened, self.attempts.store, ask)
        except errors.LMError as error:
            self._fail(job, error)
        except Exception as error:  # a fault of ours or of a library, which must not take the other rows with it
            failed = errors.LMRequestFailed(f"the request could not be sent: {type(error).__name__}: {error}")
            failed.__cause__ = error
            self._fail(job, failed)
        else:
            job.reply = reply
            self._unsettled += 1
            self._answered.append((job, reply, flight))
            if len(self._answered) == self._most_unstored or self._asking == 1:
                asyncio.get_running_loop().call_soon(self._settle)  # with all that are read in this turn of the loop
            elif len(self._answered) == 1:
                asyncio.get_running_loop().call_later(SECONDS_UNSTORED, self._settle)

    # --- the store ------------------------------------------------------------------------------------------------

    def _stored(self, job: Job[Any]) -> tuple[Reply, float] | None:
        """The answer to a job that another process has stored since the call looked it up, with its seconds."""
        store = self._store
        if store is None or not self._others_write or job.repaired:
            return None
        with contextlib.suppress(sqlite3.Error):
            if stored := store.lookup([job.key], *self.attempts.stored_as, "alone").get(job.key):
                count = Billed(stored.tokens_in, stored.tokens_out)
                return Reply(stored.text, billed=count, logprobs=stored.logprobs), stored.seconds or 0.0
        return None

    def _settle(self) -> None:
        """Store what was answered, and have it parsed, together with what is answered a little later.

        (An answer that is rejected stays in the store: another call may accept it, and this one rejects it whenever it
        looks it up.)
        """
        answered, self._answered = self._answered, []
        if self._put(answered, wait=False) or self._ended:
            _land(answered)
        if answered and not self._ended:
            self._look_for_others()
            loop = asyncio.get_running_loop()
            work = functools.partial(self._context.run, functools.partial(self._values, answered))
            try:
                parsing = loop.run_in_executor(self._thread, work)
            except RuntimeError:  # the main thread has ended, this call's has not: no thread is started any more
                parsing = loop.create_future()
                parsing.set_result(work())
            parsing.add_done_callback(functools.partial(self._take_values, answered))

    def _put(self, answered: Answered, wait: bool = True) -> bool:
        """Store complete answers that are not in the store yet, in one transaction; False if another process writes."""
        store = self.attempts.store
        if store is None or not store.writable:
            return True
        answers: list[tuple[bytes, int, StoredAnswer]] = []
        with warned(store, "written"):
            for job, reply, flight in answered:
                if not reply.truncated and (flight.store is not store if flight.ended.is_set() else job.sent):
                    if not (source := self.attempts.source_of(reply, wait)):
                        return False
                    tokens = reply.billed.tokens_in, reply.billed.tokens_out
                    answer = StoredAnswer(reply.text, reply.logprobs, *tokens, flight.seconds)
                    answers.append((job.key, source, answer))
            return not answers or store.put(answers, wait)
        return True

    # --- how a job ends -------------------------------------------------------------------------------------------

    def _values(self, answered: Answered) -> list[Value]:
        """The values of answers; those that are not stored, since another process wrote, are stored first."""
        self._put(answered)
        return [_value(job, reply) for job, reply, _ in answered]

    def _take_values(self, answered: Answered, parsing: asyncio.Future[list[Value]]) -> None:
        self._unsettled -= len(answered)
        _land(answered)
        for (job, reply, _), (value, rejection) in zip(answered, parsing.result(), strict=True):
            if reply.truncated:
                with_form = job.parameters.form is not None and self.attempts.state.structured is True
                rejection = _cut(job.parameters.limit, with_form)
            if rejection is not None:
                self._reject(job, reply, rejection)
                continue
            self._last_accepted.append(True)
            usage, origin = (job.usage(), "sent") if job.sent else (DUPLICATE, "duplicate")
            self._end(job, Completion(reply.text, value, None, usage, reply.logprobs, cast(Origin, origin)))
        self._wake()

    def _reject(self, job: Job[Any], reply: Reply, rejection: errors.AnswerRejected) -> None:
        """Ask once for a repair, if there is an answer to repair."""
        endless = reply.truncated and is_endless(reply.text)
        if job.repaired or reply.unfinished or endless or self.attempts.stopped or self._repairs < 1:
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
        self._give((job,))
        if job.repaired:
            self._repairs += 2 if completion.ok else -1


def _value(job: Job[Any], reply: Reply) -> Value:
    try:
        return None if reply.truncated else accepted(reply.text, job.batch.accept), None
    except errors.AnswerRejected as rejection:
        return None, rejection
    except BaseException as error:  # an exit, say: whoever waits for this answer must not wait for ever
        return None, errors.AnswerRejected(f"{type(error).__name__}: {error}")


def _land(answered: Answered) -> None:
    """Let the calls go on that wait for these answers."""
    for _, _, flight in answered:
        in_flight.end(flight)


def _cut(limit: int | None, with_form: bool) -> errors.AnswerCut:
    of, way = "the server's limit of tokens", "raise that limit"
    if limit is not None:
        of, way = f"its limit of {limit} tokens", "give a larger max_tokens= in the call or in tagframe.configure"
    form = '; if the model only fills the form that it is held to, use LM(…, structured="off")' if with_form else ""
    return errors.AnswerCut(f"it was cut off at {of}: answer in fewer, or {way}{form}")
