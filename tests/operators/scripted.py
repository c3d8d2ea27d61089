from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from tagframe.errors import AnswerRejected
from tagframe.lm import Completion, Prompt, Usage


class Scripted:
    """A model whose answers a function makes from the user's message; an exception stands for a failed request.

    Operators see nothing but ``complete``, so that is all there is. ``rounds`` holds the messages of every call.
    """

    def __init__(self, answer: Callable[[str], str]) -> None:
        self.answer = answer
        self.rounds: list[list[str]] = []

    @property
    def asked(self) -> list[str]:
        return [message for one in self.rounds for message in one]

    def complete(self, prompts: Sequence[Prompt], accept: Callable[[str], Any], **_: Any) -> list[Completion]:
        self.rounds.append([prompt.messages[-1].content for prompt in prompts])
        return [self._one(message, accept) for message in self.rounds[-1]]

    def _one(self, message: str, accept: Callable[[str], Any]) -> Completion:
        try:
            text = self.answer(message)
            return Completion(text, accept(text), None, Usage(rows=1), None, "sent")
        except (AnswerRejected, ConnectionError) as error:
            return Completion(None, None, error, Usage(rows=1, failed=1), None, "sent")


def shown_rows(message: str) -> list[dict[str, Any]]:
    """The rows of a prompt, as a reader of the JSON sees them."""
    return [json.loads(line) for line in re.findall(r"^\{.*\}$", message, flags=re.MULTILINE)]
