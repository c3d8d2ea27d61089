from __future__ import annotations

import contextlib
import json
import random
import re
from collections.abc import Callable
from typing import Any

from tag_bench.server import rows_of
from tagframe.errors import LMError, NotStored
from tagframe.lm import Arrived, Batch, Completion, Prompt, Usage


class Scripted:
    """A model whose answers a function makes from the user's message; an exception stands for a failed request.

    Operators see nothing but an open call, so that is all there is. ``batches`` holds the messages of every batch.

    Args:
        answer: the text of an answer, or an exception.
        shuffle: the order in which the batches under way are answered, one at a time; None answers each at once.
    """

    def __init__(self, answer: Callable[[str], str], shuffle: random.Random | None = None) -> None:
        self.answer = answer
        self.batches: list[list[str]] = []
        self.prompts: list[Prompt] = []
        self._shuffle = shuffle

    @property
    def asked(self) -> list[str]:
        return [message for one in self.batches for message in one]

    def complete(self) -> None:
        """What tells a model from other objects."""

    def using(self, **_: Any) -> Scripted:
        return self

    def stream(self, description: str) -> _ScriptedStream:
        return _ScriptedStream(self, self._shuffle)

    def completion(self, prompt: Prompt, accept: Callable[[str], Any]) -> Completion:
        try:
            text = self.answer(prompt.messages[-1].content)
            return Completion(text, accept(text), None, Usage(prompts=1), None, "sent")
        except (LMError, ConnectionError) as error:
            return Completion(None, None, error, Usage(prompts=1, failed=1), None, "sent")


class _ScriptedStream(contextlib.AbstractContextManager):
    def __init__(self, lm: Scripted, shuffle: random.Random | None) -> None:
        self._lm = lm
        self._shuffle = shuffle
        self._under_way: list[Batch] = []

    def __exit__(self, *_: object) -> None:
        self._under_way.clear()

    def usage(self) -> Usage:
        return Usage()

    def put(self, batch: Batch) -> None:
        if batch.sends and batch.known is None:
            self._record(batch)
        self._under_way.append(batch)

    def _record(self, batch: Batch) -> None:
        self._lm.batches.append([prompt.messages[-1].content for prompt in batch.prompts])
        self._lm.prompts += batch.prompts

    def take(self) -> Arrived:
        if self._shuffle is None:
            taken, self._under_way = self._under_way, []
        else:
            taken = [self._under_way.pop(self._shuffle.randrange(len(self._under_way)))] if self._under_way else []
        return {batch: {at: self._completion(batch, at) for at in range(len(batch.prompts))} for batch in taken}

    def _completion(self, batch: Batch, at: int) -> Completion:
        """There is no store: nothing is found, and nothing kept."""
        if batch.known is not None:
            return Completion(batch.known[at], None, None, Usage(), None, "pack")
        if not batch.sends:
            return Completion(None, None, NotStored("there is no store"), Usage(), None, "store")
        return self._lm.completion(batch.prompts[at], batch.accept)


def shown_rows(message: str) -> list[dict[str, Any]]:
    """The rows of a prompt, as a reader of the JSON sees them."""
    return [json.loads(line) for line in re.findall(r"^(?:\[\d+\] )?(\{.*\})$", message, flags=re.MULTILINE)]


def packed_rows(message: str) -> list[dict[str, Any]]:
    """The rows of a pack in their order, each with the cells that all of them have; none where one row is shown."""
    return rows_of(message) if re.search(r"^<rows>\n(?:\D.*\n)*\d+ ", message, flags=re.MULTILINE) else []


def each_row(answer: Callable[[str, dict[str, Any]], str], message: str) -> str:
    """What ``answer`` says of the row of a prompt, or on a line of its own of each row of a pack."""
    if rows := packed_rows(message):
        return "\n".join(f"{number}: {answer(message, row)}" for number, row in enumerate(rows, start=1))
    (row,) = shown_rows(message)
    return answer(message, row)
