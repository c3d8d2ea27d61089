"""``sem_dedup``: rows without their near-duplicates."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from tagframe.errors import InvalidArgument
from tagframe.operators.cells import Instruction, encode_rows, position_of
from tagframe.operators.drivers import Step
from tagframe.operators.operator import declare
from tagframe.operators.outcome import OnError, Outcome, finish, label_of
from tagframe.operators.packing import RowsPerCall, ask_rows, rows_per_call_of
from tagframe.operators.row_question import claim_question, example_turns, no_use_for_examples, truth_text
from tagframe.operators.text_nearness import row_text, vectors_of

CLAIM = "{one} and {other} are the same but for how they are written"
_PAIR = ("one", "other")
_CHUNK_ROWS = 512


def _text_column(frame: pd.DataFrame, given: Mapping[str, Any]) -> tuple[int, ...]:
    return (position_of(frame, given["col_name"]),)


@declare(
    guess=lambda prompt: "True", over="alike", embeds=True, asks=lambda given: given["border"] > 0, shows=_text_column
)
def sem_dedup(
    frame: pd.DataFrame,
    col_name: Hashable,
    threshold: float = 0.9,
    *,
    border: float = 0.0,
    examples: pd.DataFrame | None = None,
    rows_per_call: RowsPerCall = "auto",
    suffix: str = "_dedup",
    on_error: OnError = "raise",
    window: int | None = None,
) -> Step[pd.DataFrame]:
    """Drop the rows whose text is nearly the same as that of an earlier row.

    The embedding model compares all texts with each other. Texts that are similar, directly or through others, form a
    group, and the first row of each group is kept. Rows without text are kept.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        col_name: the column to compare.
        threshold: texts are similar from this cosine on.
        border: the model decides pairs whose cosine is at most this far from the threshold; with 0 it is not asked.
        examples: solved pairs to show the model first: columns ``one`` and ``other`` with texts, and a boolean column
            ``Answer``, whether they are the same.
        rows_per_call: pairs in one prompt, audited as for :func:`sem_filter`.
        suffix: the beginning of the name of the column of errors.
        on_error: as for :func:`sem_filter`; a row fails if its pair with an earlier row has no answer. The column of
            errors is ``dedup_error``.

    Returns:
        The rows that are kept, in order, with index, dtypes and subclass; for each other row, ``.tag.outcomes``
        names the row that it duplicates.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all pairs have been tried; the finished frame is on it.
        ColumnNotFound: there is no such column.
        InvalidArgument: ``threshold`` or ``border`` is not from 0 to 1; or two columns have that name.
        NotConfigured: no embedding model is available, or a model is needed and none is set.
    """
    size = rows_per_call_of(rows_per_call)
    for name, given in (("threshold", threshold), ("border", border)):
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
            raise InvalidArgument(f"{name} must be a cosine from 0 to 1; got {given!r}")
    if not border:
        no_use_for_examples(examples, "border=0 lets the embedder decide all pairs")
    turns = example_turns(examples, Instruction(CLAIM, _PAIR, (0, 1), _PAIR), truth_text)
    position = position_of(frame, col_name)
    lines = [line if line and row_text(line).strip() else None for line in encode_rows(frame, [position])]
    first: dict[str, int] = {}
    for row, line in enumerate(lines):
        if line is not None:
            first.setdefault(line, row)
    texts = list(first)
    groups = _Groups(len(texts))
    near = _near(texts, threshold - border) if len(texts) > 1 else []
    for one, other, cosine in near:
        if cosine >= threshold + border:
            groups.join(one, other)
    pairs = [(one, other) for one, other, _ in near if groups.of(one) != groups.of(other)]
    cells = frame.iloc[:, position].astype(object)
    cells_of_pairs = [(cells.iloc[first[texts[one]]], cells.iloc[first[texts[other]]]) for one, other in pairs]
    prompt_rows = [
        line or "{}" for line in encode_rows(pd.DataFrame(cells_of_pairs, columns=list(_PAIR), dtype=object), [0, 1])
    ]
    replies = yield from ask_rows(claim_question(CLAIM, turns, window=window), prompt_rows, size)
    failed: dict[int, Exception] = {}
    for (one, other), line in zip(pairs, prompt_rows, strict=True):
        reply = replies.of[line]
        if reply.value is True:
            groups.join(one, other)
        elif reply.error is not None:
            failed[other] = reply.error
    numbers = {line: number for number, line in enumerate(texts)}
    outcomes = []
    for row, line in enumerate(lines):
        number = -1 if line is None else numbers[line]
        first_row = row if line is None else first[texts[groups.of(number)]]
        if line is None:
            outcomes.append(Outcome("null"))
        elif first_row != row:
            outcomes.append(
                Outcome("left out", note=f"a duplicate of the row with index {label_of(frame.index, first_row)!r}")
            )
        else:
            error = failed.get(number)
            outcomes.append(Outcome("kept") if error is None else Outcome("failed", error))
    order = [row for row, outcome in enumerate(outcomes) if outcome.kind != "left out"]
    return finish(
        "sem_dedup",
        frame,
        outcomes,
        order,
        [],
        on_error=on_error,
        suffix=suffix,
        remarks=replies.remarks if pairs else [],
    )


def _near(lines: list[str], least: float) -> list[tuple[int, int, float]]:
    """The pairs whose cosine is at least ``least``, the nearest first."""
    vectors = vectors_of(lines)
    pairs = []
    for start in range(0, len(lines), _CHUNK_ROWS):
        cosines = vectors[start : start + _CHUNK_ROWS] @ vectors.T
        for row, other in np.argwhere(cosines >= least).tolist():
            if start + row < other:
                pairs.append((start + row, other, float(cosines[row, other])))
    return sorted(pairs, key=lambda pair: (-pair[2], pair[:2]))


class _Groups:
    """Groups of similar texts; the first of a group represents it."""

    def __init__(self, count: int) -> None:
        self._first = list(range(count))

    def of(self, number: int) -> int:
        while self._first[number] != number:
            number = self._first[number]
        return number

    def join(self, one: int, other: int) -> None:
        first, second = sorted((self.of(one), self.of(other)))
        self._first[second] = first
