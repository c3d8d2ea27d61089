"""``sem_agg``: one answer from many rows (or from the rows of each group), with the rows that it rests on."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import pandas as pd

from tagframe.errors import InvalidArgument
from tagframe.operators.cells import encode_rows
from tagframe.operators.digest import KNOWLEDGE_MARK, Digest, Found, Style
from tagframe.operators.groups import group_keys, group_rows
from tagframe.operators.instruction import Instruction
from tagframe.operators.operator import declare
from tagframe.operators.outcome import Added, OnError, Outcome, error_name, finish, free_name, refuse_taken
from tagframe.operators.pydantic_models import model_value
from tagframe.operators.step_generators import Step, caught, together
from tagframe.operators.values import Value


@declare(guess=lambda prompt: f"{'some answer ' * 80}\nSources: all", over="whole")
def sem_agg(
    frame: pd.DataFrame,
    instruction: str,
    *,
    all_cols: bool = False,
    group_by: Hashable | Sequence[Hashable] | None = None,
    response_format: Any = None,
    knowledge: bool = False,
    suffix: str = "_output",
    on_error: OnError = "raise",
    window: int | None = None,
) -> Step[pd.DataFrame]:
    """Answer one request from all rows, or from the rows of each group.

    Rows that do not fit into one prompt are answered in parts, and the partial answers combined, round by round, each
    group at its own pace. A prompt holds about 10,000 tokens of rows, and no more than fits the model's window: that of
    the setting ``context_window``, of litellm's table, or, where neither knows it, what the server does not refuse. A
    row that alone is too long is cut, and the group's outcome says so. Parts carry their numbers of rows; a mean, a sum
    or a share is better computed by pandas, from what :func:`sem_score` or :func:`sem_map` says of each row.

    The model is asked to name the rows that its answer rests on, by the numbers that they are shown with. If it names
    a number that was not shown, it is asked once more. If it names none, all rows that were shown are the sources, and
    the outcome says so.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: a request that names columns in braces, ``"Summarise the {review}s"``; where it names none, the
            model is shown all columns.
        all_cols: show all columns even where some are named (LOTUS' keyword).
        group_by: columns; one answer for each group, groups in order of first appearance.
        response_format: a pydantic model class that the answer is an instance of (LOTUS' keyword): checked, asked for
            once more where it is none, and spread into a column for each field; ``_output`` has it as JSON.
        knowledge: let the model add what it knows of the world, each such statement between ``[beyond the rows: …]``;
            by default it answers from the rows alone.
        suffix: the name of the answer's column.
        on_error: ``"raise"`` once all groups are done, ``"keep"`` a failed group as ``<NA>`` with a column
            ``output_error``, or ``"drop"`` it.

    Returns:
        A frame of one row and the column ``_output``, or a row a group with the group's columns before it. A frame
        without rows has nothing to say: ``<NA>``, or no groups. ``.tag.sources`` has the rows behind each answer,
        ``.tag.outcomes`` what became of each group.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all groups have been tried.
        ColumnNotFound: a named column is not there.
        InvalidArgument: an instruction without words, or a ``response_format`` that is no pydantic model class.
        NotConfigured: no model is set.
    """
    value = None if response_format is None else model_value(response_format)
    resolved = Instruction.resolve(instruction, frame, all_cols=all_cols)
    keys = group_keys(group_by)
    groups = group_rows(frame, keys)
    fields = [] if value is None else list(map(str, value.columns))
    own = [suffix, error_name(suffix)]
    refuse_taken(frame[keys], [*own, *fields], suffix)
    if len({*own, *fields}) < 2 + len(fields):
        raise InvalidArgument(f"a field of {response_format.__name__} is called {own[0]!r} or {own[1]!r}")
    style = Style(resolved.text, value, knowledge, window)
    lines = encode_rows(frame, resolved.positions, resolved.names)
    members = [[row for row in rows if lines[row] is not None] for rows in groups]
    digests = [Digest([lines[row] or "" for row in rows], style) for rows in members]
    answers = yield from together([caught(digest.steps()) for digest in digests])

    outcomes = [_outcome(digest, answer) for digest, answer in zip(digests, answers, strict=True)]
    firsts = frame.iloc[[rows[0] for rows in groups]][keys] if keys else pd.DataFrame(index=range(len(groups)))
    texts = [answer.cited.text if isinstance(answer, Found) else None for answer in answers]
    behind = [
        [rows[number] for number in answer.rows] if isinstance(answer, Found) else []
        for rows, answer in zip(members, answers, strict=True)
    ]
    return finish(
        "sem_agg",
        firsts.reset_index(drop=True),
        outcomes,
        range(len(groups)),
        [Added(suffix, texts, "string"), *_fields(value, answers)],
        on_error=on_error,
        suffix=suffix,
        index=pd.MultiIndex.from_frame(firsts) if len(keys) > 1 else pd.Index(firsts[keys[0]]) if keys else None,
        row_facts=lambda kept: {"sources": _sources(frame, [behind[group] for group in kept])},
        of="groups",
        remarks=_remarks(digests, answers),
    )


def _fields(value: Value | None, answers: Sequence[Found | Exception | None]) -> list[Added]:
    """The columns of the fields of a model."""
    if value is None:
        return []
    cells = [answer.cited.cells if isinstance(answer, Found) else None for answer in answers]
    return [
        Added(str(name), [None if row is None else row[at] for row in cells], dtype)
        for at, (name, dtype) in enumerate(value.columns.items())
    ]


def _outcome(digest: Digest, answer: Found | Exception | None) -> Outcome:
    if isinstance(answer, Exception):
        return Outcome("failed", answer)
    if answer is None:
        return Outcome("null")
    notes = []
    if not digest.named:
        notes.append("names no sources: they are all rows that were shown")
    if added := answer.cited.text.count(KNOWLEDGE_MARK):
        notes.append(f"{added:,} statements are beyond the rows")
    return Outcome("cut" if digest.cut else "answered", None, "; ".join(notes) or None)


def _remarks(digests: Sequence[Digest], answers: Sequence[Found | Exception | None]) -> list[str]:
    both = zip(digests, answers, strict=True)
    unnamed = sum(isinstance(answer, Found) and not digest.named for digest, answer in both)
    return (
        [f"{unnamed:,} of {len(digests):,} answers name no sources: all rows shown stand for them"] if unnamed else []
    )


def _sources(frame: pd.DataFrame, answers: Sequence[Sequence[int]]) -> pd.DataFrame:
    """The rows behind each answer: those of the input, with the label of the answer before their columns."""
    sources = frame.iloc[[row for rows in answers for row in rows]].copy()
    numbers = [number for number, rows in enumerate(answers) for _ in rows]
    sources.insert(0, free_name(frame, "answer"), numbers)
    return sources
