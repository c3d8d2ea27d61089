"""``sem_map``: one typed value for each row; ``sem_score``: one from 0 to 1; ``known``: one for all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pandas as pd

from tagframe.errors import InvalidArgument, NotKnown, spared
from tagframe.operators.cells import Instruction, encode_rows
from tagframe.operators.drivers import Step
from tagframe.operators.operator import declare
from tagframe.operators.outcome import AddedColumn, OnError, Outcome, finish, refuse_taken
from tagframe.operators.packing import RowsPerCall, ask_rows, rows_per_call_of
from tagframe.operators.row_question import UNKNOWN_WHERE, WORLD, Question, answer_text, example_turns, joined_notes
from tagframe.operators.values import Unsure, Value, choice_value, model_value, reading, score_value, value_of_dtype

Settle: TypeAlias = Callable[[tuple[Any, ...], str], tuple[tuple[Any, ...], str | None]]


@dataclass(frozen=True)
class MapOptions:
    """The options that :func:`sem_map`, :func:`sem_score` and ``sem_extract`` share; they are described there."""

    suffix: str
    return_explanations: bool = False
    examples: pd.DataFrame | None = None
    rows_per_call: RowsPerCall = None
    on_error: OnError = "raise"
    window: int | None = None


_MAP_TASK = f"Do what the instruction says for a row of a table. {WORLD}"
_SCORE_TASK = f"Score a row of a table: 0 where what is asked is not at all so, 1 where it is wholly so. {WORLD}"
_PACKED_SCORE_TASK = _SCORE_TASK.replace(", 1 where", ", 100 where")


@declare(guess=lambda prompt: "some words of an answer")
def sem_map(
    frame: pd.DataFrame,
    instruction: str,
    *,
    dtype: Any = None,
    response_format: Any = None,
    choices: Sequence[str] | None = None,
    return_explanations: bool = False,
    examples: pd.DataFrame | None = None,
    rows_per_call: RowsPerCall = None,
    suffix: str = "_map",
    on_error: OnError = "raise",
    window: int | None = None,
) -> Step[pd.DataFrame]:
    """A value for each row: a text, a number, a boolean, a date, one of a few choices, or the fields of a model.

    Rows with the same shown values are asked about once. A row whose shown cells are all blank is not asked about. If
    the model says that it does not know, the value is ``<NA>`` and the row's outcome is "unsure".

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: the value to produce, with columns in braces: ``"The sentiment of {review} in one word"``; if it
            names none, the model is shown all columns but ids, with a warning.
        dtype: of the value: ``str``, ``float``, ``int``, ``bool``, ``datetime.date``, or one of pandas' names; the
            column has pandas' nullable dtype for it; ``string`` if None.
        response_format: a pydantic model instead of ``dtype``; its fields become columns of the same names.
        choices: the allowed texts, instead of ``dtype``.
        return_explanations: add a column ``explanation_map`` with the model's reasons.
        examples: solved rows to show first: the named columns and a column ``Answer``; with ``response_format``, it has
            instances of the model, dicts or JSON.
        rows_per_call: rows in one prompt, audited as for :func:`sem_filter`; texts count as the same if they share half
            of their words, numbers if they differ by at most a twentieth.
        suffix: the name of the value's column.
        on_error: how to treat rows without an answer: ``"raise"`` once all others are done, ``"keep"`` as ``<NA>`` with
            a column ``map_error``, or ``"drop"``.

    Returns:
        The frame with the column ``_map``, or with one for each field of ``response_format``; index, dtypes and
        subclass kept. ``.tag.outcomes`` has the outcome of each row.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a named column does not exist.
        InvalidArgument: the instruction has no words, the type is unknown, or the name of an added column is taken.
        NotConfigured: no model is set.
    """
    types = {"dtype=": dtype, "response_format=": response_format, "choices=": choices}
    given = [name for name, wanted in types.items() if wanted is not None]
    if len(given) > 1:
        raise InvalidArgument(f"a value has one type; give only one of {' and '.join(given)}")
    if choices is not None:
        value = choice_value(choices)
    else:
        value = value_of_dtype(dtype) if response_format is None else model_value(response_format)
    resolved = Instruction.resolve(instruction, frame)
    options = MapOptions(suffix, return_explanations, examples, rows_per_call, on_error, window)
    return (yield from mapped("sem_map", frame, resolved, value, _MAP_TASK, options))


@declare(guess=lambda prompt: "0.35")
def sem_score(
    frame: pd.DataFrame,
    instruction: str,
    *,
    return_explanations: bool = False,
    examples: pd.DataFrame | None = None,
    rows_per_call: RowsPerCall = None,
    suffix: str = "_score",
    on_error: OnError = "raise",
    window: int | None = None,
) -> Step[pd.DataFrame]:
    """A score from 0 to 1 for each row. Each row is scored by itself, as in :func:`sem_map`.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: what to score, with columns in braces: ``"How hopeful is {review}?"``.
        return_explanations: add a column ``explanation_score`` with the model's reasons.
        examples: solved rows to show first: the named columns and a column ``Answer``.
        rows_per_call: rows in one prompt, audited as for :func:`sem_filter`; scores count as the same within .2. Packs
            have whole numbers from 0 to 100, and audited rows keep the score of their pack.
        suffix: the name of the score's column.
        on_error: as for :func:`sem_map`; the error column is ``score_error``.

    Returns:
        The frame with the column ``_score`` of dtype Float64.

    Raises:
        RowsFailed, ColumnNotFound, InvalidArgument, NotConfigured: as :func:`sem_map`.
    """
    options = MapOptions(suffix, return_explanations, examples, rows_per_call, on_error, window)
    resolved = Instruction.resolve(instruction, frame)
    in_packs = score_value(hundredths=True), _PACKED_SCORE_TASK
    return (yield from mapped("sem_score", frame, resolved, score_value(), _SCORE_TASK, options, in_packs=in_packs))


def mapped(
    operator: str,
    frame: pd.DataFrame,
    resolved: Instruction,
    value: Value,
    task: str,
    options: MapOptions,
    *,
    settle: Settle | None = None,
    in_packs: tuple[Value, str] | None = None,
) -> Step[pd.DataFrame]:
    """The frame with columns for a value of each row.

    Args:
        operator: its name, for messages.
        frame: any.
        resolved: the question about a row.
        value: the kind of answer.
        task: the beginning of the system message.
        options: of the call.
        in_packs: the kind of answer and the task of a prompt of several rows, if otherwise; for one number.
        settle: checks a row's cells against the row as it was shown; it returns the cells and a note for the outcome.
    """
    size, suffix = rows_per_call_of(options.rows_per_call), options.suffix
    names = [suffix if name is None else name for name in value.columns]
    if taken := [name for name in names if name != suffix and name in frame.columns]:
        raise InvalidArgument(f"the frame already has a column {taken[0]!r}; rename it, or drop it")
    explanation = f"explanation{suffix}"
    refuse_taken(
        frame, [suffix] * (suffix in names) + [explanation] * options.return_explanations, suffix, options.on_error
    )
    read = reading(value)

    def solved(answer: Any) -> str:
        """An example's answer as the model should write it; it must be of the requested kind."""
        text = answer_text(answer)
        read(text)
        return f"Answer: {text}" if options.return_explanations else text

    def solved_in_packs(answer: Any) -> str:
        solved(answer)
        return f"{100 * float(answer):.0f}"

    question = Question(
        task,
        f"Instruction: {resolved.text}",
        value.form,
        UNKNOWN_WHERE,
        read,
        value.guess,
        value.tokens,
        tuple(example_turns(options.examples, resolved, solved)),
        options.return_explanations,
        options.window,
        value.alike,
        details=value.details,
        shape=value.shape,
        free=value.is_text or None not in value.columns,
    )
    if in_packs is not None and size > 1:
        of_packs, its_task = in_packs
        packed = replace(
            question,
            task=its_task,
            form=of_packs.form,
            read=reading(of_packs),
            guess=of_packs.guess,
            turns=tuple(example_turns(options.examples, resolved, solved_in_packs)),
            details=of_packs.details,
            shape=of_packs.shape,
        )
        question = replace(question, in_packs=packed, write=lambda cells: f"{cells[0]:g}")
    rows = encode_rows(frame, resolved.positions, resolved.names)
    replies = yield from ask_rows(question, [row for row in rows if row is not None], size)

    answers: list[tuple[Any, ...]] = [(None,) * len(names)] * len(rows)
    reasons: list[str | None] = [None] * len(rows)
    outcomes = [Outcome("null")] * len(rows)
    for number, row in enumerate(rows):
        if row is None:
            continue
        reply = replies.of[row]
        cells, note, reasons[number] = reply.value, reply.note, reply.reason
        if cells is None:
            outcomes[number] = Outcome("failed", reply.error, note)
        elif isinstance(cells, Unsure):
            outcomes[number] = Outcome("unsure", note=note)
        else:
            unchecked: tuple[tuple[Any, ...], str | None] = (cells, None)
            answers[number], remark = (
                unchecked if settle is None else spared("the check of an answer", unchecked, settle, cells, row)
            )
            outcomes[number] = Outcome("answered", note=joined_notes(remark, note))
    added = [
        AddedColumn(name, [answer[at] for answer in answers], dtype)
        for at, (name, dtype) in enumerate(zip(names, value.columns.values(), strict=True))
    ]
    if options.return_explanations:
        added.append(AddedColumn(explanation, reasons, "string"))
    return finish(
        operator,
        frame,
        outcomes,
        range(len(rows)),
        added,
        on_error=options.on_error,
        suffix=suffix,
        remarks=replies.remarks,
        facts={"rows_per_call": replies.size},
    )


def known(instruction: str, dtype: Any = None, **given: Any) -> Any:
    """Ask for one fact of the world, to compare it with all rows; a claim about each row would ask for it every time.

    >>> import tagframe as tf
    >>> opened = tf.known("the year in which {what} was opened", int, what="the Suez Canal")  # doctest: +SKIP
    >>> ships[ships["launched"] < opened]  # doctest: +SKIP

    It is :func:`tagframe.sem_map` on one row. For a fact about each value of a column, use ``df.tag.sem_map``, which
    asks about each distinct value once.

    Args:
        instruction: the fact, with its subject as names in braces.
        dtype: of the fact, as for :func:`tagframe.sem_map`; a text if None.
        **given: the subject, by the names in the instruction; at least one.

    Returns:
        The fact: a text, a number, a boolean or a date.

    Raises:
        NotKnown: the model says that it does not know the fact.
        RowsFailed: the model gave no usable answer.
        ColumnNotFound, InvalidArgument, NotConfigured: as :func:`tagframe.sem_map`.
    """
    if not given:
        raise InvalidArgument(
            f"say what the fact is about, as in known('the capital of {{what}}', what='Peru'); got {instruction!r}"
        )
    fact = sem_map(pd.DataFrame([given]), instruction, dtype=dtype)["_map"].iloc[0]
    if fact is pd.NA or fact is pd.NaT:
        raise NotKnown(
            f"the model does not know {instruction!r} for {given}; ask another model, or use a value of your own"
        )
    return fact
