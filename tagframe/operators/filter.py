"""``sem_filter``: the rows of which a claim is true."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe import results
from tagframe.errors import AnswerRejected, ColumnNotFound, InvalidArgument, did_you_mean
from tagframe.operators.cells import FENCE_RULE, encode_rows, fence
from tagframe.operators.instruction import Instruction
from tagframe.operators.outcome import (
    OnError,
    add_columns,
    check_on_error,
    error_column,
    free_name,
    raise_failures,
    refuse_taken,
)

if TYPE_CHECKING:
    from tagframe.lm import LM, Message

_TASK = (
    "You judge the rows of a table, one at a time. Decide whether the claim is true of the row, from the row and from "
    f"what you know of the world. {FENCE_RULE}"
)
_ANSWER_ONLY = "Answer with one word, True or False."
_ANSWER_EXPLAINED = (
    "Explain in one or two sentences. Then, on a line of its own, end with 'Answer: True' or 'Answer: False'."
)

_TRUTH = {"true": True, "yes": True, "false": False, "no": False}
_LABELLED = re.compile(r"answer\s*[:=]\s*(\S+)\s*$", re.IGNORECASE)


def parse_truth(text: str) -> bool:
    """An answer as True or False, and nothing in between.

    The whole answer must be the word (or "Answer: word" its last line): "False. It is not true" is no "True".

    >>> parse_truth("**True.**"), parse_truth("It is a river.\\nAnswer: False")
    (True, False)

    Raises:
        AnswerRejected: anything else.
    """
    labelled = _LABELLED.search(text.strip())
    word = (labelled.group(1) if labelled else text).strip(" \t\r\n.!*\"'`").lower()
    if word not in _TRUTH:
        raise AnswerRejected(f"expected True or False, got {text[:80]!r}")
    return _TRUTH[word]


def parse_explained_truth(text: str) -> tuple[bool, str]:
    """An answer with its explanation: ``(truth, explanation)``.

    Raises:
        AnswerRejected: it does not end with "Answer: True" or "Answer: False".
    """
    labelled = _LABELLED.search(text.strip())
    if labelled is None:
        raise AnswerRejected(f"expected a last line 'Answer: True' or 'Answer: False', got {text[-80:]!r}")
    return parse_truth(text), text.strip()[: labelled.start()].strip(" \t\r\n*")


def sem_filter(
    frame: pd.DataFrame,
    instruction: str,
    *,
    lm: LM,
    return_all: bool = False,
    return_explanations: bool = False,
    examples: pd.DataFrame | None = None,
    suffix: str = "_filter",
    on_error: OnError = "raise",
) -> pd.DataFrame:
    """Keep the rows of which the claim is true, one question to the model a row.

    Rows of which every named column is null are not asked about and do not pass.

    Args:
        frame: any frame; it is not changed.
        instruction: a claim that names columns in braces, ``"{city} is in the Bay Area"``; where it names none, the
            model is shown all columns.
        lm: the model.
        return_all: all rows, with a boolean column ``filter_label`` (``<NA>``: null row or failed row).
        return_explanations: a column ``explanation_filter`` with the model's reasons.
        examples: solved rows to show first: the named columns and a boolean column ``Answer``.
        suffix: the end of the added columns' names.
        on_error: what a row without an answer does: ``"raise"`` once all others are done, ``"keep"`` as ``<NA>`` with
            a column ``filter_error``, or ``"drop"``.

    Returns:
        The rows that pass, in order, with index, dtypes and subclass kept.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a named column is not there.
        InvalidArgument: an instruction without words, an added column's name that is taken.
    """
    from tagframe.lm import Message, Prompt

    check_on_error(on_error)
    resolved = Instruction.resolve(instruction, frame)
    stem = suffix.strip("_")
    label_name, error_name, explanation_name = f"{stem}_label", f"{stem}_error", f"explanation{suffix}"
    promised = {
        label_name: return_all or on_error == "keep",
        explanation_name: return_explanations,
        error_name: on_error == "keep",
    }
    refuse_taken(frame, [name for name, is_promised in promised.items() if is_promised], suffix)

    rows = encode_rows(frame, resolved.positions)
    answer_form = _ANSWER_EXPLAINED if return_explanations else _ANSWER_ONLY
    opening = (Message("system", f"{_TASK} {answer_form}"), *_examples(examples, resolved))

    asked = [place for place, row in enumerate(rows) if row is not None]
    completions = lm.complete(
        [
            Prompt((*opening, Message("user", f"{fence(row)}\n\nClaim: {resolved.text}")))
            for row in rows
            if row is not None
        ],
        accept=parse_explained_truth if return_explanations else lambda text: (parse_truth(text), None),
        description="sem_filter",
    )

    labels: list[bool | None] = [None] * len(rows)
    reasons: list[str | None] = [None] * len(rows)
    errors: list[Exception | None] = [None] * len(rows)
    outcomes = ["null"] * len(rows)
    for place, completion in zip(asked, completions, strict=True):
        errors[place] = completion.error
        if completion.value is not None:
            labels[place], reasons[place] = completion.value
        outcomes[place] = "failed" if completion.error else "yes" if labels[place] else "no"

    keeps_failures = on_error == "keep" or (on_error == "raise" and any(errors))
    wanted = {"yes"} | ({"no", "null"} if return_all else set()) | ({"failed"} if keeps_failures else set())
    places = [place for place, outcome in enumerate(outcomes) if outcome in wanted]
    added: dict[str, Any] = {}
    if return_all or keeps_failures:
        added[free_name(frame, label_name)] = pd.array([labels[place] for place in places], dtype="boolean")
    if return_explanations:
        added[explanation_name] = pd.array([reasons[place] for place in places], dtype="string")
    if keeps_failures:
        added[free_name(frame, error_name)] = error_column(errors[place] for place in places)
    finished = add_columns(frame.iloc[places], added)
    outcome_frame = pd.DataFrame({"outcome": outcomes, "error": error_column(errors)}, index=frame.index)
    results.remember(finished, outcomes=outcome_frame)
    if on_error == "raise":
        raise_failures("sem_filter", finished, errors)
    return finished


def _examples(examples: pd.DataFrame | None, resolved: Instruction) -> list[Message]:
    """Solved rows as turns of a conversation, so that they cannot be mistaken for the row in question."""
    from tagframe.lm import Message

    if examples is None:
        return []
    labels = [str(label) for label in examples.columns]
    for name in [*map(str, resolved.columns), "Answer"]:
        if name not in labels:
            raise ColumnNotFound(f"the examples have no column {name!r} in {did_you_mean(name, labels)}")
    if examples["Answer"].isna().any():
        raise InvalidArgument("the examples' column 'Answer' has nulls; each example needs True or False")
    rows = encode_rows(examples, [labels.index(str(name)) for name in resolved.columns])
    turns = []
    for row, answer in zip(rows, examples["Answer"], strict=True):
        turns.append(Message("user", f"{fence(row or '{}')}\n\nClaim: {resolved.text}"))
        turns.append(Message("assistant", str(parse_truth(str(answer)))))
    return turns
