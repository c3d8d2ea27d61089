"""``sem_filter``: the rows of which a claim is true."""

from __future__ import annotations

from typing import Any

import pandas as pd

from tagframe.errors import ColumnNotFound, InvalidArgument, did_you_mean
from tagframe.lm import Batch, Message, Prompt, get_lm
from tagframe.operators.answers import parse_labelled_word, parse_word
from tagframe.operators.cells import FENCE_RULE, encode_rows, fence
from tagframe.operators.drivers import arun
from tagframe.operators.instruction import Instruction
from tagframe.operators.operator import Operator
from tagframe.operators.outcome import Added, OnError, Outcome, check_on_error, finish, refuse_taken
from tagframe.operators.steps import Step, gather

_TASK = (
    "You judge the rows of a table, one at a time. Decide whether the claim is true of the row, from the row and from "
    f"what you know of the world. {FENCE_RULE}"
)
_ANSWER_ONLY = "Answer with one word, True or False."
_ANSWER_EXPLAINED = (
    "Explain in one or two sentences. Then, on a line of its own, end with 'Answer: True' or 'Answer: False'."
)

ANSWER_TOKENS = 16
"""Room for one word, "Answer:" and markdown; where a model reasons first, the LM layer gives it more."""
EXPLAINED_TOKENS = 256
"""Room for two sentences beside that."""

_TRUTH = {"true": True, "yes": True, "false": False, "no": False}


def parse_truth(text: str) -> bool:
    """An answer as True or False, and nothing in between; see :func:`tagframe.operators.answers.parse_word`.

    >>> parse_truth("**True.**"), parse_truth("It is a river.\\nAnswer: False")
    (True, False)

    Raises:
        AnswerRejected: anything else.
    """
    return parse_word(text, _TRUTH, "True or False")


def parse_explained_truth(text: str) -> tuple[bool, str]:
    """An answer with its explanation: ``(truth, explanation)``.

    Raises:
        AnswerRejected: its last line is neither "Answer: True" nor "Answer: False".
    """
    return parse_labelled_word(text, _TRUTH, "'Answer: True' or 'Answer: False'")


def _parse_unexplained(text: str) -> tuple[bool, None]:
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
) -> Step[pd.DataFrame]:
    """:func:`sem_filter` as a step."""
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
    opening = (Message("system", f"{_TASK} {answer_form}"), *_turns(examples, resolved))
    asked = [place for place, row in enumerate(rows) if row is not None]
    completions = yield from gather(
        Batch(
            [
                Prompt((*opening, Message("user", f"{fence(row)}\n\nClaim: {resolved.text}")))
                for row in rows
                if row is not None
            ],
            parse_explained_truth if return_explanations else _parse_unexplained,
            max_tokens=EXPLAINED_TOKENS if return_explanations else ANSWER_TOKENS,
        )
    )

    labels: list[bool | None] = [None] * len(rows)
    reasons: list[str | None] = [None] * len(rows)
    outcomes = [Outcome("null")] * len(rows)
    yes, no = Outcome("yes"), Outcome("no")
    for place, completion in zip(asked, completions, strict=True):
        if completion.value is None:
            outcomes[place] = Outcome("failed", completion.error)
        else:
            labels[place], reasons[place] = completion.value
            outcomes[place] = yes if labels[place] else no
    explanations = [Added(explanation_name, reasons, "string")] if return_explanations else []
    return finish(
        "sem_filter",
        frame,
        outcomes,
        [place for place, outcome in enumerate(outcomes) if return_all or outcome.kind in ("yes", "failed")],
        [Added(label_name, labels, "boolean", with_failures=not return_all), *explanations],
        on_error=on_error,
        error_name=error_name,
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
    rows = encode_rows(examples, [labels.index(str(name)) for name in resolved.columns])
    turns = []
    for row, answer in zip(rows, examples["Answer"], strict=True):
        turns.append(Message("user", f"{fence(row or '{}')}\n\nClaim: {resolved.text}"))
        turns.append(Message("assistant", str(parse_truth(str(answer)))))
    return turns


def _guess(prompt: Prompt) -> str:
    explained = str(prompt.messages[0].content).endswith(_ANSWER_EXPLAINED)
    return "The row says where it is, and a map of that country shows it there.\nAnswer: True" if explained else "True"


FILTER = Operator(
    name="sem_filter",
    steps=steps,
    guess=_guess,
    told="a claim about one row, such as {city} is on a coast",
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
