"""``sem_filter``: the rows of which a claim is true."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import pandas as pd

from tagframe.errors import ColumnNotFound, InvalidArgument, UnsureWarning, did_you_mean
from tagframe.lm import Message, Prompt, get_lm
from tagframe.operators.answers import (
    UNSURE,
    UNSURE_RULE,
    Unsure,
    parse_labelled_word_or_unsure,
    parse_word,
    parse_word_or_unsure,
)
from tagframe.operators.cells import FENCE_RULE, encode_rows, fence
from tagframe.operators.drivers import arun
from tagframe.operators.fitting import ask_fitted, room
from tagframe.operators.instruction import FIELD_RULE, Instruction
from tagframe.operators.operator import Operator
from tagframe.operators.outcome import Added, OnError, Outcome, OutcomeKind, check_on_error, finish, refuse_taken
from tagframe.operators.steps import Step

_TASK = (
    "You judge the rows of a table, one at a time. Decide whether the claim is true of the row, from the row and from "
    f"what you know of the world. {FENCE_RULE} {FIELD_RULE}"
)
_ANSWER_ONLY = f"Answer with one word, True or False. {UNSURE_RULE}"
_ANSWER_EXPLAINED = (
    "Explain in one or two sentences. Then, on a line of its own, end with 'Answer: True' or 'Answer: False'; where "
    "neither the row nor what you know decides it, with 'Answer: Unsure'."
)

ANSWER_TOKENS = 16
"""Room for one word, "Answer:" and markdown; where a model reasons first, the LM layer gives it more."""
EXPLAINED_TOKENS = 256
"""Room for two sentences beside that."""

Truth: TypeAlias = bool | Literal[Unsure.UNSURE]
_KINDS: dict[Truth, OutcomeKind] = {True: "yes", False: "no", UNSURE: "unsure"}
_TRUTH = {"true": True, "yes": True, "false": False, "no": False}


def parse_truth(text: str) -> Truth:
    """An answer as True, False or unsure, and nothing in between; see :mod:`tagframe.operators.answers`.

    >>> parse_truth("**True.**"), parse_truth("It is a river.\\nAnswer: False"), parse_truth("Maybe")
    (True, False, <Unsure.UNSURE: 'unsure'>)

    Raises:
        AnswerRejected: anything else.
    """
    return parse_word_or_unsure(text, _TRUTH, "True or False")


def parse_explained_truth(text: str) -> tuple[Truth, str]:
    """An answer with its explanation: ``(truth, explanation)``.

    Raises:
        AnswerRejected: its last line is neither "Answer: True" nor "Answer: False" nor says that it cannot say.
    """
    return parse_labelled_word_or_unsure(text, _TRUTH, "'Answer: True' or 'Answer: False'")


def _parse_unexplained(text: str) -> tuple[Truth, None]:
    return parse_truth(text), None


def steps(
    frame: pd.DataFrame,
    instruction: str,
    *,
    return_all: bool = False,
    return_explanations: bool = False,
    examples: pd.DataFrame | None = None,
    suffix: str = "_filter",
    on_error: OnError = "raise",
    window: int | None = None,
) -> Step[pd.DataFrame]:
    """:func:`sem_filter` as a step; ``window`` is the tokens that the model reads and writes in one request."""
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

    rows = encode_rows(frame, resolved.positions, resolved.names)
    answer_form = _ANSWER_EXPLAINED if return_explanations else _ANSWER_ONLY
    # What is the same for all rows comes first: providers keep the beginnings of prompts, and charge less for them.
    system = f"{_TASK} {answer_form}\n\nClaim: {resolved.text}"
    opening = (Message("system", system), *_turns(examples, resolved))
    answers = yield from ask_fitted(
        [row for row in rows if row is not None],
        lambda line: Prompt((*opening, Message("user", fence(line)))),
        parse_explained_truth if return_explanations else _parse_unexplained,
        bytes_at_most=room(window, *(str(message.content) for message in opening)),
        max_tokens=EXPLAINED_TOKENS if return_explanations else ANSWER_TOKENS,
    )

    labels: list[bool | None] = [None] * len(rows)
    reasons: list[str | None] = [None] * len(rows)
    outcomes = [Outcome("null")] * len(rows)
    asked = (place for place, row in enumerate(rows) if row is not None)
    for place, answer in zip(asked, answers, strict=True):
        if answer.completion.value is None:
            outcomes[place] = Outcome("failed", answer.completion.error, answer.note)
            continue
        truth, reasons[place] = answer.completion.value
        labels[place] = None if truth is UNSURE else truth
        outcomes[place] = Outcome(_KINDS[truth], note=answer.note)
    explanations = [Added(explanation_name, reasons, "string")] if return_explanations else []
    finished = finish(
        "sem_filter",
        frame,
        outcomes,
        [place for place, outcome in enumerate(outcomes) if return_all or outcome.kind in ("yes", "failed")],
        [Added(label_name, labels, "boolean", with_failures=not return_all), *explanations],
        on_error=on_error,
        error_name=error_name,
    )
    if not return_all:
        _say_unsure(outcomes)
    return finished


def _say_unsure(outcomes: Sequence[Outcome]) -> None:
    unsure = sum(outcome.kind == "unsure" for outcome in outcomes)
    if unsure:
        warnings.warn(
            f"sem_filter: of {unsure:,} of {len(outcomes):,} rows the model could not say whether the claim is true; "
            'they are left out. .tag.outcomes has them as "unsure", return_all=True keeps them as <NA>.',
            UnsureWarning,
            stacklevel=2,
        )


def _turns(examples: pd.DataFrame | None, resolved: Instruction) -> list[Message]:
    """Solved rows as turns of a conversation, so that they cannot be mistaken for the row in question."""
    if examples is None:
        return []
    labels = [str(label) for label in examples.columns]
    for name in [*map(str, resolved.columns), "Answer"]:
        if name not in labels:
            raise ColumnNotFound(f"the examples have no column {name!r} in {did_you_mean(name, labels)}")
    if examples["Answer"].isna().any():
        raise InvalidArgument("the examples' column 'Answer' has nulls; each example needs True or False")
    rows = encode_rows(examples, [labels.index(str(name)) for name in resolved.columns], resolved.names)
    turns = []
    for row, answer in zip(rows, examples["Answer"], strict=True):
        turns.append(Message("user", fence(row or "{}")))
        turns.append(Message("assistant", str(parse_word(str(answer), _TRUTH, "True or False"))))
    return turns


def _guess(prompt: Prompt) -> str:
    explained = str(prompt.messages[0].content).startswith(f"{_TASK} {_ANSWER_EXPLAINED}")
    return "The row says where it is, and a map of that country shows it there.\nAnswer: True" if explained else "True"


FILTER = Operator(
    name="sem_filter",
    steps=steps,
    guess=_guess,
    told="a claim about one row, such as {city} is on a coast",
    fits_window=True,
)


def sem_filter(
    frame: pd.DataFrame,
    instruction: str,
    *,
    return_all: bool = False,
    return_explanations: bool = False,
    examples: pd.DataFrame | None = None,
    suffix: str = "_filter",
    on_error: OnError = "raise",
    **settings: Any,
) -> pd.DataFrame:
    """Keep the rows of which the claim is true, one question to the model a row.

    Rows of which every named column is null are not asked about and do not pass.

    Args:
        frame: any frame; it is not changed.
        instruction: a claim that names columns in braces, ``"{city} is in the Bay Area"``; where it names none, the
            model is shown all columns.
        return_all: all rows, with a boolean column ``filter_label`` (``<NA>``: null row or failed row).
        return_explanations: a column ``explanation_filter`` with the model's reasons.
        examples: solved rows to show first: the named columns and a boolean column ``Answer``.
        suffix: the end of the added columns' names.
        on_error: what a row without an answer does: ``"raise"`` once all others are done, ``"keep"`` as ``<NA>`` with
            a column ``filter_error``, or ``"drop"``.
        **settings: those of :func:`tagframe.configure`, for this call: ``lm``, ``store``, ``budget``, ….

    Returns:
        The rows that pass, in order, with index, dtypes and subclass kept; ``.tag.outcomes`` says what became of each.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a named column is not there.
        InvalidArgument: an instruction without words, an added column's name that is taken.
        NotConfigured: no model is set.
    """
    return FILTER.run(
        get_lm("sem_filter", **settings),
        frame,
        instruction,
        return_all=return_all,
        return_explanations=return_explanations,
        examples=examples,
        suffix=suffix,
        on_error=on_error,
    )


async def asem_filter(
    frame: pd.DataFrame,
    instruction: str,
    *,
    return_all: bool = False,
    return_explanations: bool = False,
    examples: pd.DataFrame | None = None,
    suffix: str = "_filter",
    on_error: OnError = "raise",
    **settings: Any,
) -> pd.DataFrame:
    """:func:`sem_filter`, awaited: the event loop goes on, and cancelling stops what is not sent."""
    lm = get_lm("sem_filter", **settings)
    step = FILTER.step(
        lm,
        frame,
        instruction,
        return_all=return_all,
        return_explanations=return_explanations,
        examples=examples,
        suffix=suffix,
        on_error=on_error,
    )
    return await arun(step, lm, FILTER.name)
