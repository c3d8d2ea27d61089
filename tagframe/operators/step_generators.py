"""Operators as generators: a step *yields* batches of prompts and is resumed with the completions that have arrived.

A step does not depend on who answers it, or when: the drivers of :mod:`tagframe.operators.drivers` run any step,
blocking, awaited, for a quote, or many at once. Its prompts may depend on the answers, but never on the order in which
these arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence, Sized
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from tagframe.errors import BudgetExceeded, LMRequestFailed, RunStopped
from tagframe.lm import Arrived, Batch, Bound, Completion

T = TypeVar("T")
Request = TypeVar("Request", bound=Sized)

Step: TypeAlias = Generator[Sequence[Batch[Any]], Arrived, T]
"""Yields further batches (none if it only waits), and is resumed as soon as some of its completions have arrived."""


def gather(batch: Batch[T]) -> Step[list[Completion[T]]]:
    """All completions of one batch, in the order of its prompts."""
    completions: dict[int, Completion[T]] = {}
    batches: Sequence[Batch[Any]] = (batch,)
    while len(completions) < len(batch.prompts):
        completions.update((yield batches).get(batch, {}))
        batches = ()
    return [completions[number] for number in range(len(batch.prompts))]


def gather_alike(
    requests: Sequence[Request],
    batch_of: Callable[[list[Request]], Batch[T]],
    kind: Callable[[Request], Hashable] = len,
) -> Step[list[Completion[T]]]:
    """The completion of each of these, in order; those of one kind are sent as one batch."""
    alike: dict[Hashable, list[int]] = {}
    for number, one in enumerate(requests):
        alike.setdefault(kind(one), []).append(number)
    batches = [batch_of([requests[number] for number in numbers]) for numbers in alike.values()]
    answered = yield from together([gather(batch) for batch in batches])
    answers: dict[int, Completion[T]] = {}
    for numbers, completions in zip(alike.values(), answered, strict=True):
        answers.update(zip(numbers, completions, strict=True))
    return [answers[number] for number in range(len(requests))]


def together(steps: Sequence[Step[T]]) -> Step[list[T]]:
    """All steps at once; each goes on as soon as some of its own answers have arrived. Their results are in order."""
    results: dict[int, T] = {}
    owners: dict[Batch[Any], int] = {}
    waits_for = [0] * len(steps)  # prompts under way

    def resume(number: int, arrived: Arrived | None) -> Sequence[Batch[Any]]:
        """The prompts that the step asks now."""
        waits_for[number] -= sum(len(completions) for completions in (arrived or {}).values())
        new: list[Batch[Any]] = []
        try:
            while True:
                batches = [batch for batch in steps[number].send(arrived) if batch.prompts]  # type: ignore[arg-type]
                new += batches
                waits_for[number] += sum(len(batch.prompts) for batch in batches)
                if waits_for[number]:
                    break
                arrived = {}  # it waits for nothing
        except StopIteration as end:
            results[number] = end.value
        owners.update(dict.fromkeys(new, number))
        return new

    try:
        new_batches = [batch for number in range(len(steps)) for batch in resume(number, None)]
        while len(results) < len(steps):
            arrived = yield new_batches
            by_step: dict[int, dict[Batch[Any], Any]] = {}
            for batch, completions in arrived.items():
                by_step.setdefault(owners[batch], {})[batch] = completions
            new_batches = [
                batch
                for number in sorted(by_step)
                if number not in results
                for batch in resume(number, by_step[number])
            ]
    finally:
        for step in steps:
            step.close()
    return [results[number] for number in range(len(steps))]


def bounded(step: Step[T], bound: Bound) -> Step[T]:
    """The step; in quotes, all its batches together have the bound ``bound`` instead of their own bounds."""
    own: dict[Batch[Any], Batch[Any]] = {}
    arrived: Arrived | None = None
    while True:
        try:
            batches = step.send(arrived)  # type: ignore[arg-type]  # None begins it
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        bound_batches = [replace(batch, bound=bound) for batch in batches]
        own.update(zip(bound_batches, batches, strict=True))
        arrived = {own[batch]: completions for batch, completions in (yield bound_batches).items()}


def counted(step: Step[T]) -> Step[tuple[T, int]]:
    """The step's result, and the number of prompts that it asked."""
    count = 0
    arrived: Arrived | None = None
    while True:
        try:
            batches = step.send(arrived)  # type: ignore[arg-type]  # None begins it
        except StopIteration as end:
            return end.value, count
        count += sum(len(batch.prompts) for batch in batches if batch.sends and batch.known is None)
        arrived = yield batches


def without_model(step: Step[T]) -> T:
    """The result of a step that asks no model."""
    try:
        while True:
            batches = list(next(step))
            assert not batches, "a step that was run without a model asked one"
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def caught(step: Step[T]) -> Step[T | Exception]:
    """The step's result, or the error that ended it, so that one step does not end the others."""
    try:
        return (yield from step)
    except Exception as error:
        return error


def stops_all(error: Exception | None) -> bool:
    """Whether the whole run has stopped, so that further prompts would fail too."""
    return isinstance(error, RunStopped | BudgetExceeded) or (isinstance(error, LMRequestFailed) and error.stops_run)
