"""Calls of a model, with their stage and question, which exported prompts name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from tagframe.lm import LM, Completions, Prompt

T = TypeVar("T")


def ask(lm: LM, question: str, prompts: Sequence[Prompt], accept: Callable[[str], T]) -> Completions[T]:
    """The completions of some prompts about a question; the question of an enclosing call goes first."""
    from tagframe.lm.prompt import about, question_in_force

    with about(question_in_force() or question):
        return lm.complete(prompts, accept=accept, description="retrieve")
