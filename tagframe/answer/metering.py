"""What a step asks, counted and labelled on its way to whoever answers it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from tagframe.answer.answer import StepUse
from tagframe.lm import Arrived, Batch, Label, Usage
from tagframe.lm.usage import total
from tagframe.operators import Step

T = TypeVar("T")


def metered(step: Step[T], name: str, question: str, account: Callable[[StepUse], None]) -> Step[T]:
    """The step, with what it took told to ``account`` in the end, also where it fails.

    What it asks says of which question and stage it is: ``name``, or what was said of it already.
    """
    began = time.monotonic()
    usages: list[Usage] = []
    relay = _Relay(Label(name.split()[0], question))
    arrived: Arrived | None = None
    try:
        while True:
            try:
                asked = step.send(arrived)  # type: ignore[arg-type]
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            arrived = relay.back((yield [relay.out(batch) for batch in asked]))
            usages += [completion.usage for completions in arrived.values() for completion in completions.values()]
    finally:
        step.close()
        account(StepUse(name, replace(total(usages), seconds=time.monotonic() - began)))


def labelled(step: Step[T], stage: str) -> Step[T]:
    """The step, whose prompts say of which stage they are."""
    relay = _Relay(Label(stage))
    arrived: Arrived | None = None
    try:
        while True:
            try:
                asked = step.send(arrived)  # type: ignore[arg-type]
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            arrived = relay.back((yield [relay.out(batch) for batch in asked]))
    finally:
        step.close()


class _Relay:
    """Passes batches on under a label, and what arrives of them back under the names that the step knows."""

    def __init__(self, label: Label) -> None:
        self._label = label
        self._known: dict[Batch[Any], Batch[Any]] = {}

    def out(self, batch: Batch[Any]) -> Batch[Any]:
        given = batch.label
        label = Label(given.stage or self._label.stage, given.question or self._label.question)
        sent = replace(batch, label=label)
        self._known[sent] = batch
        return sent

    def back(self, arrived: Arrived) -> Arrived:
        return {self._known[sent]: completions for sent, completions in arrived.items()}
