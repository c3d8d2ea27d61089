"""One call of ``complete``: its distinct prompts, what answered each, and the completions in order."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from tagframe.errors import AnswerRejected, InvalidArgument
from tagframe.lm.dispatch import Job
from tagframe.lm.prompt import Accept, Completion, Completions, Parameters, Prompt, accepted, request_keys
from tagframe.lm.store import StoredAnswer
from tagframe.lm.usage import DUPLICATE, FAILED_DUPLICATE, FROM_STORE, Usage, total

T = TypeVar("T")


class Call(Generic[T]):
    """The prompts of a call, deduplicated; each distinct one is a :class:`Job`.

    Raises:
        InvalidArgument: for something among the prompts that is none, or that has no JSON form.
    """

    def __init__(self, prompts: Sequence[Prompt], accept: Accept[T] | None, parameters: Parameters) -> None:
        self.started = time.monotonic()
        self.accept = accept
        self.parameters = parameters
        for prompt in prompts:
            if not isinstance(prompt, Prompt):
                raise InvalidArgument(f"complete takes Prompts, see Prompt.of(user, system); got {prompt!r}")
        try:
            self._keys = request_keys(prompts, parameters)
        except (TypeError, AttributeError) as error:
            raise InvalidArgument(f"a prompt or parameter has no JSON form: {error}") from error
        self._jobs: dict[bytes, Job[T]] = {}
        for key, prompt in zip(self._keys, prompts, strict=True):
            if key not in self._jobs:
                self._jobs[key] = Job(key, prompt)

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def distinct(self) -> int:
        """How many of the prompts differ."""
        return len(self._jobs)

    @property
    def jobs(self) -> list[Job[T]]:
        """The distinct prompts that have no completion yet."""
        return [job for job in self._jobs.values() if job.completion is None]

    def take(self, stored: Mapping[bytes, StoredAnswer]) -> None:
        """Complete what the store has an acceptable answer for; one that ``accept`` now rejects is asked anew."""
        for key, answer in stored.items():
            try:
                value = accepted(answer.text, self.accept)
            except AnswerRejected:
                continue
            self._jobs[key].completion = Completion(answer.text, value, None, FROM_STORE, answer.logprobs, "store")

    def usage(self) -> Usage:
        """What the answers that there are have cost so far."""
        done = (job.completion.usage for job in self._jobs.values() if job.completion is not None)
        return replace(total(done), seconds=time.monotonic() - self.started)

    def completions(self) -> Completions[T]:
        """All completions, in the order of the prompts."""
        seen: set[bytes] = set()
        ordered: list[Completion[T]] = []
        for key in self._keys:
            completion = self._jobs[key].completion
            assert completion is not None
            if key in seen:
                repeat = DUPLICATE if completion.ok else FAILED_DUPLICATE
                completion = replace(completion, usage=repeat, origin="duplicate")
            seen.add(key)
            ordered.append(completion)
        return Completions(ordered, replace(total(c.usage for c in ordered), seconds=time.monotonic() - self.started))
