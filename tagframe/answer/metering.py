"""Counts and labels the prompts of a step."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from tagframe.answer.answer import StepUse
from tagframe.lm import Arrived, Batch, Label, Prompt, Usage
from tagframe.lm.usage import total
from tagframe.operators import Step

T = TypeVar("T")


def as_step(function: Any, *arguments: Any) -> Step[Any]:
    """The result of a function for these arguments, as a step; a plain value becomes one."""
    steps = getattr(function, "steps", None)
    result = function(*arguments) if steps is None else steps(*arguments)
    return (yield from result) if inspect.isgenerator(result) else result


def metered(step: Step[T], name: str, question: str, account: Callable[[StepUse], None]) -> Step[T]:
    """The step, whose cost is reported to ``account`` at the end, also if it fails.

    Its prompts are labelled with the question and the stage ``name``, unless they have a label.
    """
    began = time.monotonic()
    usages: list[Usage] = []

    def took(arrived: Arrived) -> None:
        usages.extend(completion.usage for completions in arrived.values() for completion in completions.values())

    try:
        return (yield from _relayed(step, Label(name.split()[0], question), seen=took))
    finally:
        account(StepUse(name, replace(total(usages), seconds=time.monotonic() - began)))


def labelled(step: Step[T], stage: str, guess: Callable[[Prompt], str] | None = None) -> Step[T]:
    """The step, with a stage label on its prompts, and guesses for quotes."""
    return (yield from _relayed(step, Label(stage), guess))


def _relayed(
    step: Step[T],
    label: Label,
    guess: Callable[[Prompt], str] | None = None,
    seen: Callable[[Arrived], None] = lambda arrived: None,
) -> Step[T]:
    """The step; its batches are passed on with a label, and completions are given back for its own batches."""
    known: dict[Batch[Any], Batch[Any]] = {}

    def out(batch: Batch[Any]) -> Batch[Any]:
        given, guessed = batch.label, batch.guess
        if guessed is None and guess is not None and batch.prompts:
            guessed = guess(batch.prompts[0])
        ours = Label(given.stage or label.stage, given.question or label.question)
        known[sent := replace(batch, label=ours, guess=guessed)] = batch
        return sent

    arrived: Arrived | None = None
    try:
        while True:
            try:
                asked = step.send(arrived)  # type: ignore[arg-type]
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            answers = yield [out(batch) for batch in asked]
            arrived = {known[sent]: completions for sent, completions in answers.items()}
            seen(arrived)
    finally:
        step.close()
