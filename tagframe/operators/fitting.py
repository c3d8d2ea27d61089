"""Rows that are too long for a model: cut to its window, by tokens, and told.

One way for all operators. A row is cut before it is sent where the model's window is known
(:attr:`tagframe.lm.LM.context_window`), and to half, again and again, where the server says that it is too long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from tagframe.errors import ContextTooLong
from tagframe.lm import Accept, Batch, Completion, Prompt, Stored
from tagframe.operators.cells import shortened
from tagframe.operators.steps import Step, gather

T = TypeVar("T")

BYTES_PER_TOKEN = 2
"""On the safe side, where a model's window must not be passed: JSON and numbers have fewer than prose."""
ANSWER_SHARE = 4
"""One in so many tokens of the window is left for the answer."""
SHORTEST = 200
"""Bytes of a row that are worth showing; where a model does not take even these, the row fails."""


def room(window: int | None, *told: str) -> int | None:
    """Bytes of data that a prompt may hold; None where the model's window is not known.

    Args:
        window: tokens that the model reads and writes in one request.
        told: what else stands in the prompt.
    """
    if window is None:
        return None
    return max(
        SHORTEST,
        BYTES_PER_TOKEN * (window - window // ANSWER_SHARE) - sum(len(text.encode(errors="replace")) for text in told),
    )


@dataclass(frozen=True, slots=True)
class Fitted(Generic[T]):
    """What came of a row.

    Attributes:
        completion: to the prompt that was answered.
        note: how much of the row was shown, where that is not all; None where it is. For the row's outcome.
    """

    completion: Completion[T]
    note: str | None = None


def ask_fitted(
    rows: Sequence[str],
    prompt_of: Callable[[str], Prompt],
    accept: Accept[T],
    *,
    bytes_at_most: int | None = None,
    max_tokens: int | None = None,
    logprobs: bool | Literal["optional"] = False,
    guess: str | tuple[str, ...] | None = None,
    stored: Stored = "any",
) -> Step[list[Fitted[T]]]:
    """One prompt a row, each with as much of the row as the model takes.

    Args:
        rows: lines of JSON, of :func:`~tagframe.operators.cells.encode_rows`.
        prompt_of: the prompt for a line.
        accept: as in :class:`~tagframe.lm.Batch`, as are ``max_tokens``, ``logprobs``, ``guess`` and ``stored``.
        bytes_at_most: of a line, by :func:`room`; None where that is not known.
    """
    shown = [row if bytes_at_most is None else shortened(row, bytes_at_most) for row in rows]
    found: list[Completion[T] | None] = [None] * len(rows)
    waiting = list(range(len(rows)))
    while waiting:
        prompts = [prompt_of(shown[place]) for place in waiting]
        completions = yield from gather(
            Batch(prompts, accept, max_tokens=max_tokens, logprobs=logprobs, guess=guess, stored=stored)
        )
        found_now = dict(zip(waiting, completions, strict=True))
        waiting = []
        for place, completion in found_now.items():
            found[place] = completion
            size = len(shown[place].encode())
            if isinstance(completion.error, ContextTooLong) and size > SHORTEST:
                shown[place] = shortened(shown[place], max(SHORTEST, size // 2))
                waiting.append(place)
    return [
        Fitted(completion, cut_note(row, line))
        for row, line, completion in zip(rows, shown, found, strict=True)
        if completion is not None
    ]


def cut_note(row: str, shown: str) -> str | None:
    """What an outcome says of a row that was shown cut; None for one that was shown whole."""
    if shown is row or shown == row:
        return None
    return f"cut to {len(shown):,} of {len(row):,} characters, to fit the model's context"
