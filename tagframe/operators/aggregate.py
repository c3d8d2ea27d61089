"""``sem_agg``: one answer from many rows (or from the rows of each group), with the rows behind it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import pandas as pd

from tagframe.errors import InvalidArgument
from tagframe.operators.cells import Instruction, encode_rows, group_keys, group_rows
from tagframe.operators.digest import KNOWLEDGE_MARK, CitedAnswer, Digest, Style, cited_reader
from tagframe.operators.drivers import Step, caught, together
from tagframe.operators.operator import declare
from tagframe.operators.outcome import AddedColumn, OnError, Outcome, error_name, finish, free_name, refuse_taken
from tagframe.operators.row_question import answer_text, solved_rows
from tagframe.operators.values import Value, model_value


@declare(guess=lambda prompt: f"{'some answer ' * 80}\nSources: all", over="whole")
def sem_agg(
    frame: pd.DataFrame,
    instruction: str,
    *,
    all_cols: bool = False,
    group_by: Hashable | Sequence[Hashable] | None = None,
    response_format: Any = None,
    knowledge: bool = False,
    examples: pd.DataFrame | None = None,
    suffix: str = "_output",
    on_error: OnError = "raise",
    window: int | None = None,
) -> Step[pd.DataFrame]:
    """Answer one request from all rows, or from the rows of each group.

    If the rows do not fit into one prompt, they are answered in parts, and the partial answers are combined round by
    round, each group at its own pace. A prompt holds about 10,000 tokens of rows, and never more than the model's
    window: the setting ``context_window``, or the window in litellm's table; if neither is known, as much as the server
    accepts. A single row that is too long is cut, with a warning, and the group's outcome says so. Each part carries
    its number of rows. For a mean, a sum or a share, use pandas on the results of :func:`sem_score` or :func:`sem_map`.

    The model is asked to cite the rows behind its answer by the numbers that they are shown with. If it cites a number
    that was not shown, it is asked once more. If the answer, or a part of it, cites none, no rows are its sources, and
    the outcome says so.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: a request that names columns in braces, ``"Summarise the {review}s"``; if it names none, the model
            is shown all columns but ids, with a warning.
        all_cols: show all columns even if some are named (LOTUS' keyword).
        group_by: columns; one answer for each group, groups in order of first appearance.
        response_format: a pydantic model class for the answer (LOTUS' keyword). The answer is checked, and asked for
            once more if it does not match. Each field becomes a column; ``_output`` has the answer as JSON.
        knowledge: let the model add knowledge of the world, each such statement between ``[beyond the rows: …]``; by
            default it answers from the rows only.
        examples: solved requests to show first: the named columns and a column ``Answer``; rows with the same
            ``Answer`` belong to one request. With ``response_format``, it has instances of the model, dicts or JSON.
        suffix: the name of the answer's column.
        on_error: ``"raise"`` once all groups are done, ``"keep"`` a failed group as ``<NA>`` with a column
            ``output_error``, or ``"drop"`` it.

    Returns:
        A frame with one row and the column ``_output``; with ``group_by``, one row for each group, with the group's
        columns first. For a frame without rows: ``<NA>``, or no groups. ``.tag.sources`` has the rows behind each
        answer, ``.tag.outcomes`` the outcome of each group.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all groups have been tried.
        ColumnNotFound: a named column does not exist.
        InvalidArgument: the instruction has no words, or ``response_format`` is not a pydantic model class.
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
        raise InvalidArgument(f"a field of {response_format.__name__} must not be called {own[0]!r} or {own[1]!r}")
    style = Style(resolved.text, value, knowledge, window, _solved(examples, resolved, value))
    lines = encode_rows(frame, resolved.positions, resolved.names)
    members = [[row for row in rows if lines[row] is not None] for rows in groups]
    digests = [Digest([lines[row] or "" for row in rows], style) for rows in members]
    answers = yield from together([caught(digest.steps()) for digest in digests])

    outcomes = [_outcome(digest, answer) for digest, answer in zip(digests, answers, strict=True)]
    firsts = frame.iloc[[rows[0] for rows in groups]][keys] if keys else pd.DataFrame(index=range(len(groups)))
    texts = [answer.cited.text if isinstance(answer, CitedAnswer) else None for answer in answers]
    behind = [
        [rows[number] for number in answer.rows] if isinstance(answer, CitedAnswer) else []
        for rows, answer in zip(members, answers, strict=True)
    ]
    return finish(
        "sem_agg",
        firsts.reset_index(drop=True),
        outcomes,
        range(len(groups)),
        [AddedColumn(suffix, texts, "string"), *_fields(value, answers)],
        on_error=on_error,
        suffix=suffix,
        index=pd.MultiIndex.from_frame(firsts) if len(keys) > 1 else pd.Index(firsts[keys[0]]) if keys else None,
        row_facts=lambda positions: {"sources": _sources(frame, [behind[group] for group in positions])},
        of="groups",
        remarks=_remarks(digests, answers),
    )


def _solved(
    examples: pd.DataFrame | None, resolved: Instruction, value: Value | None
) -> tuple[tuple[tuple[str, ...], str], ...]:
    """The rows of each solved request, and its answer."""

    def message(answer: Any) -> str:
        text = answer_text(answer)
        cited_reader(1, None if value is None else value.read)(text)
        return text

    requests: dict[str, list[str]] = {}
    for line, answer in solved_rows(examples, resolved, message):
        requests.setdefault(answer, []).append(line)
    return tuple((tuple(lines), answer) for answer, lines in requests.items())


def _fields(value: Value | None, answers: Sequence[CitedAnswer | Exception | None]) -> list[AddedColumn]:
    """The columns of the fields of a model."""
    if value is None:
        return []
    cells = [answer.cited.cells if isinstance(answer, CitedAnswer) else None for answer in answers]
    return [
        AddedColumn(str(name), [None if row is None else row[at] for row in cells], dtype)
        for at, (name, dtype) in enumerate(value.columns.items())
    ]


def _outcome(digest: Digest, answer: CitedAnswer | Exception | None) -> Outcome:
    if isinstance(answer, Exception):
        return Outcome("failed", answer)
    if answer is None:
        return Outcome("null")
    notes = [note] if (note := digest.cut_note()) else []
    if not digest.named:
        notes.append("the answer, or a part of it, names no sources, so none are listed for it")
    if added := answer.cited.text.count(KNOWLEDGE_MARK):
        notes.append(f"statements beyond the rows: {added:,}")
    return Outcome("cut" if digest.cut else "answered", None, "; ".join(notes) or None)


def _remarks(digests: Sequence[Digest], answers: Sequence[CitedAnswer | Exception | None]) -> list[str]:
    both = zip(digests, answers, strict=True)
    unnamed = sum(isinstance(answer, CitedAnswer) and not digest.named for digest, answer in both)
    return [f"{unnamed:,} of {len(digests):,} answers, or parts of them, name no sources"] if unnamed else []


def _sources(frame: pd.DataFrame, answers: Sequence[Sequence[int]]) -> pd.DataFrame:
    """The input rows behind each answer; the label of the answer is the first column."""
    sources = frame.iloc[[row for rows in answers for row in rows]].copy()
    numbers = [number for number, rows in enumerate(answers) for _ in rows]
    sources.insert(0, free_name(frame, "answer"), numbers)
    return sources
