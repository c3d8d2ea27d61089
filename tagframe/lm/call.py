"""The state of one call: batches of prompts come in, each distinct prompt is one job, and its completion goes out."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeAlias, TypeVar

from tagframe.errors import AnswerRejected, InvalidArgument
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
from tagframe.lm.store import StoredAnswer
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
