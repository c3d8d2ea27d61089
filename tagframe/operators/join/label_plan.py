"""A claim about two rows, split into a label of each: the question for each side, and which labels go together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tagframe.errors import AnswerRejected
from tagframe.lm import Batch, Message, Prompt
from tagframe.operators.answer_grammar import parse_json
from tagframe.operators.cells import FENCE_RULE, fence, shortened
from tagframe.operators.instruction import FIELD_RULE
from tagframe.operators.join.sides import Side
from tagframe.operators.step_generators import Step, gather

PLAN_ROWS = 4
"""The number of rows of each side that the model sees for its plan, spread over the frame."""
MAX_ROW_BYTES = 600
PLAN_TOKENS = 1024
"""Room for the longest list of labels, with their pairs."""
MAX_LABELS = 60

_TASK = f"""You plan how to join two tables by a claim about a row of the left and one of the right one. {FIELD_RULE} \
{FENCE_RULE}
Some claims can be cut in two: a question about the left row alone and a question about the right row alone, each of \
which is answered with one label of a closed list, so that the claim is true of two rows exactly where their labels go \
together. Such a claim is "the coat and the hat are worn in the same season": both sides are asked for the season, and \
equal labels go together. "The second comment replies to the first" is none: whether it is true depends on what the \
two say to each other, which no short list of labels holds.
The answer is one JSON object. For a claim that can be cut in two:
{{"left": a question about a left row, "right": a question about a right row (in the same words where it is the same), \
"labels": [every label that an answer may have], "pairs": "equal", or a list of the [left label, right label] that go \
together}}
For any other claim: {{"labels": null}}"""


@dataclass(frozen=True)
class ClaimPlan:
    """How a claim about two rows is decided by a label of each.

    Attributes:
        left: the question about a left row.
        right: the question about a right row.
        labels: the possible answers.
        pairs: ``(left label, right label)`` that go together; None if equal labels do.
    """

    left: str
    right: str
    labels: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...] | None = None

    def __str__(self) -> str:
        questions = f"each row: {self.left}" if self.left == self.right else f"left: {self.left}; right: {self.right}"
        together = "equal labels" if self.pairs is None else ", ".join(f"{a} with {b}" for a, b in self.pairs)
        return f"{questions} One of {', '.join(self.labels)}; {together} go together."

    def allowed(self) -> npt.NDArray[np.bool_]:
        """Which labels go together: shape (labels, labels)."""
        if self.pairs is None:
            return np.eye(len(self.labels), dtype=bool)
        table = np.zeros((len(self.labels), len(self.labels)), dtype=bool)
        for one, other in self.pairs:
            table[self.labels.index(one), self.labels.index(other)] = True
        return table


@dataclass(frozen=True)
class NoLabels:
    """The answer that labels cannot decide a claim."""

    def __str__(self) -> str:
        return "Labels cannot decide this claim: pairs are asked, several in one prompt."


def parse_plan(text: str) -> ClaimPlan | NoLabels:
    """A model's plan.

    Raises:
        AnswerRejected: it is not a plan; the message can be shown to the model.
    """
    plan, body = parse_json(text, "one JSON object")
    if not isinstance(plan, dict) or "labels" not in plan:
        raise AnswerRejected(f'expected an object with "labels", got {body[:80]!r}')
    labels = plan["labels"]
    if labels is None:
        return NoLabels()
    left, right = plan.get("left"), plan.get("right")
    if not isinstance(left, str) or not isinstance(right, str) or not left.strip() or not right.strip():
        raise AnswerRejected(f'"left" and "right" are questions; got {left!r:.100} and {right!r:.100}')
    if (
        not _is_texts(labels)
        or not 2 <= len(labels) <= MAX_LABELS
        or len({one.lower() for one in labels}) < len(labels)
    ):
        raise AnswerRejected(f'"labels" are 2 to {MAX_LABELS} texts, each once; got {labels!r:.200}')
    return ClaimPlan(left, right, tuple(labels), _pairs(plan.get("pairs"), labels))


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and one.strip() == one and one for one in value)


def _pairs(pairs: Any, labels: Sequence[str]) -> tuple[tuple[str, str], ...] | None:
    if pairs == "equal":
        return None
    if not isinstance(pairs, list) or not pairs or not all(_is_texts(pair) and len(pair) == 2 for pair in pairs):
        raise AnswerRejected(f'"pairs" is "equal" or a list of [left label, right label]; got {pairs!r:.200}')
    unknown = {label for pair in pairs for label in pair} - set(labels)
    if unknown:
        raise AnswerRejected(f'"pairs" has labels that are not in "labels": {sorted(unknown)!r:.200}')
    return tuple(dict.fromkeys((one, other) for one, other in pairs))


def ask_plan(claim: str, left: Side, right: Side) -> Step[ClaimPlan | NoLabels | Exception]:
    """The model's plan for a claim as written in a prompt, or the error if that failed."""
    samples = "\n\n".join(f"Some {side.name} rows:\n{fence(_some(side), side.name)}" for side in (left, right))
    prompt = Prompt(
        (Message("system", _TASK), Message("user", f"{samples}\n\nClaim: {claim}\nAnswer with the JSON object:"))
    )
    guess = {"left": "Which is it?", "right": "Which is it?", "labels": ["this", "that"], "pairs": "equal"}
    (completion,) = yield from gather(Batch([prompt], parse_plan, max_tokens=PLAN_TOKENS, guess=json.dumps(guess)))
    if completion.value is None:
        assert completion.error is not None
        return completion.error
    return completion.value


def _some(side: Side) -> list[str]:
    rows = np.unique(np.linspace(0, len(side) - 1, min(PLAN_ROWS, len(side))).round().astype(int))
    return [shortened(side.lines[row], MAX_ROW_BYTES) for row in rows]
