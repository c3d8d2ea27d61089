"""One call under way: batches of prompts come in, each distinct prompt is a job, and completions go out as jobs end."""

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
from tagframe.lm.usage import DUPLICATE, FAILED_DUPLICATE, FROM_STORE, Usage, total

T = TypeVar("T")


@dataclass(eq=False)
class Bound:
    """What several batches may ask together at most, for quotes; whichever first asks what is not stored is quoted so.

    Attributes:
        calls: at most.
        every: where all rows are asked, and each prompt is answered as it is meant to be; None where that is ``calls``.
        quoted: whether they have been.
    """

    calls: int
    every: int | None = None
    quoted: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Batch(Generic[T]):
    """Prompts that are asked alike, and waited for together.

    Attributes:
        prompts: any number, in any order; identical ones are asked once.
        accept: parses an answer's text into a value, or raises :class:`~tagframe.errors.AnswerRejected`.
        temperature: of sampling.
        max_tokens: of an answer.
        logprobs: whether to ask for the log probabilities of the answer's tokens; "optional" takes a stored answer
            without them too, and goes on without where the server refuses to give any.
        guess: an answer such as a model would give to these prompts, for quotes, or several, in turns; None for that of
            whoever quotes.
        label: what the prompts are part of, which exported requests say.
        bound: that it shares with other batches, for quotes.
        stored: which stored answers do.
        sends: False only looks the prompts up: those that the store has no answer for end with
            :class:`~tagframe.errors.NotStored`, and are neither sent nor noted as missing.
        known: answers to the prompts, which were given in packs of rows: they are stored as such, and nothing is asked.
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


Arrived: TypeAlias = Mapping[Batch[Any], Mapping[int, Completion[Any]]]
"""Completions as they arrive: of which batch, and of the prompt at which position in it."""


@dataclass(slots=True)
class Job(Generic[T]):
    """A distinct prompt of a call, and in the end its completion.

    Attributes:
        batch: the first in which it stands, at ``position``.
        repeats: where else it stands, as long as it has no completion. (None for none: most jobs stand in one position,
            and what is not made need not be looked at by the garbage collector.)
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
        """Have a stored answer for completion; gives the reason where ``accept`` rejects it."""
        try:
            value = accepted(answer.text, self.accept)
        except AnswerRejected as rejection:
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
    """The jobs of a call, and what has arrived and was not taken yet.

    Used from two threads: the caller's, which adds and takes, and the one that ends the jobs.

    Attributes:
        turn: done as soon as a batch is whole that was not when :meth:`take` was last called.
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
        """Take a batch in; gives its prompts that are new to the call, each once.

        Raises:
            InvalidArgument: for something among the prompts that is none, or that has no JSON form.
        """
        for prompt in batch.prompts:
            if not isinstance(prompt, Prompt):
                raise InvalidArgument(f"complete takes Prompts, see Prompt.of(user, system); got {prompt!r}")
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
        """These jobs have their completion now: it arrives at every position where they stand."""
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
        """Have :attr:`turn` done, for nothing more will arrive by itself."""
        with self._lock:
            self._wake()

    @property
    def waiting(self) -> bool:
        """Whether anything is still to arrive, or to be taken."""
        return bool(self._left or self._arrived)

    @property
    def unanswered(self) -> bool:
        """Whether anything is still to arrive."""
        return bool(self._left)

    def take(self) -> Arrived:
        """What has arrived since the last time."""
        with self._lock:
            arrived, self._arrived = self._arrived, {}
            if self.turn.done():
                self.turn = Future()
        return arrived

    def forget(self) -> None:
        """Let go of the jobs: nothing more is added."""
        self._jobs.clear()

    def usage(self) -> Usage:
        """What the answers that there are have cost so far."""
        with self._lock:
            self._used = total((self._used, *self._usages))
            self._usages.clear()
            return replace(self._used, seconds=time.monotonic() - self.started)


def _repeated(completion: Completion[T]) -> Completion[T]:
    usage = DUPLICATE if completion.ok else FAILED_DUPLICATE
    return replace(completion, usage=usage, origin="duplicate")
