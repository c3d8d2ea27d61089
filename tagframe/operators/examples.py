"""Solved rows that a model is shown before the row in question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from tagframe.errors import AnswerRejected, ColumnNotFound, InvalidArgument, did_you_mean
from tagframe.lm import Message
from tagframe.operators.cells import encode_rows, fence
from tagframe.operators.instruction import Instruction

ANSWER = "Answer"
"""The column of examples that holds what the model should have said (LOTUS' name)."""


def example_turns(examples: pd.DataFrame | None, resolved: Instruction, answer: Callable[[Any], str]) -> list[Message]:
    """Solved rows as turns of a conversation, so that they cannot be mistaken for the row in question.

    Args:
        examples: the columns of the instruction, and a column ``Answer``; None for no examples.
        resolved: the instruction.
        answer: the model's message, from a cell of ``Answer``.

    Raises:
        ColumnNotFound: a column is missing.
        InvalidArgument: an example without an answer, or with one that the model must not give.
    """
    if examples is None:
        return []
    labels = [str(label) for label in examples.columns]
    for name in [*map(str, resolved.columns), ANSWER]:
        if name not in labels:
            raise ColumnNotFound(f"the examples have no column {name!r} in {did_you_mean(name, labels)}")
    answers = examples.iloc[:, labels.index(ANSWER)]
    if answers.isna().any():
        raise InvalidArgument(f"the examples' column {ANSWER!r} has nulls; each example needs an answer")
    rows = encode_rows(examples, [labels.index(str(name)) for name in resolved.columns], resolved.names)
    turns = []
    for row, given in zip(rows, answers.tolist(), strict=True):
        try:
            said = answer(given)
        except AnswerRejected as rejection:
            raise InvalidArgument(f"an example's {ANSWER!r} is none that a model may give: {rejection}") from rejection
        turns += [Message("user", fence(row or "{}")), Message("assistant", said)]
    return turns
