"""``sem_filter``: the rows for which a claim is true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from tagframe.errors import InvalidArgument, UnsureWarning, warn
from tagframe.operators.cascade import Cascade, decided_by, scores_of
from tagframe.operators.cells import Instruction, encode_rows
from tagframe.operators.drivers import Step
from tagframe.operators.operator import declare
from tagframe.operators.outcome import AddedColumn, OnError, Outcome, error_text, finish, refuse_taken
from tagframe.operators.packing import (
    LimitOrder,
    RowsPerCall,
    ask_packed,
    ask_rows,
    ask_until,
    check_limit,
    rows_per_call_of,
)
from tagframe.operators.row_question import (
    Reply,
    claim_question,
    example_turns,
    outcome_of,
    truth_text,
)
from tagframe.operators.text_nearness import similarities
from tagframe.operators.values import UNSURE

_NO_REPLY: Reply[bool] = Reply(None)
"""The outcome of rows that were not asked about."""


def _needs_all(given: Mapping[str, Any]) -> str | None:
    reads_all = given.get("limit") is not None or given.get("cascade") is not None
    return "limit= and cascade= of sem_filter look at all rows" if reads_all else None


@declare(guess=lambda prompt: "True", needs_all=_needs_all)
def sem_filter(
    frame: pd.DataFrame,
    instruction: str,
    *,
    all_cols: bool = False,
    return_all: bool = False,
    return_explanations: bool = False,
    examples: pd.DataFrame | None = None,
    rows_per_call: RowsPerCall = None,
    cascade: Cascade | None = None,
    limit: int | None = None,
    limit_order: LimitOrder = "rows",
    suffix: str = "_filter",
    on_error: OnError = "raise",
    window: int | None = None,
) -> Step[pd.DataFrame]:
    """Keep the rows for which the claim is true. Of several claims, filter by the one that most rows fail first.

    Rows with the same shown values are asked about once. A row whose shown cells are all blank is not asked about and
    does not pass. A row for which the model cannot tell does not pass either, and a warning counts such rows.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: a claim that names columns in braces, ``"{city} lies on a large river"``; if it names none, the
            model is shown all columns but ids, with a warning.
        all_cols: show the model all columns, even if the claim names some.
        return_all: return all rows, with the columns ``filter_label`` (boolean; ``<NA>`` if unsure, failed or not
            asked, so that its ``mean()`` and ``sum()`` leave such rows out; ``fillna(False)`` counts them),
            ``filter_outcome``, ``filter_reason`` and ``filter_confidence`` (the probability of the answer, if the
            provider gives log probabilities).
        return_explanations: add a column ``explanation_filter`` with the model's reasons.
        examples: solved rows to show first: the named columns and a boolean column ``Answer``.
        rows_per_call: rows in one prompt. More than one is cheaper and a little less exact; "auto" is up to 16, or 32
            if an audit finds no difference. Of more than four such packs, 32 rows (a quarter, if there are few) are
            also asked one by one. While more than 5 % of these (and more than one) get another answer, packs are
            halved. An audit is kept for its claim, size and model. ``.tag.outcomes`` and its ``remarks`` report this.
        cascade: let a proxy decide the clear rows, with guaranteed recall and precision; see :class:`tagframe.Cascade`.
            ``.tag.cascade`` says what it saved.
        limit: stop as soon as so many rows are found. Rows are asked in small rounds that grow a little each time.
            Packs are not audited if ``rows_per_call`` is given too.
        limit_order: which rows to ask first: "rows" in their order, so that the first ``limit`` rows that pass are
            found, or "likeliest", those nearest to the claim by the embedder. The result is in the rows' order.
        suffix: the end of the added columns' names.
        on_error: how to treat rows without an answer: ``"raise"`` once all others are done, ``"keep"`` as ``<NA>`` with
            a column ``filter_error``, or ``"drop"``.

    Returns:
        The rows that pass, in order, with index, dtypes and subclass kept; ``.tag.outcomes`` has the outcome of each.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a named column does not exist.
        InvalidArgument: the instruction has no words, or the name of an added column is taken.
        NotConfigured: no model is set.
    """
    check_limit(limit, limit_order)
    size = rows_per_call_of(rows_per_call)
    if cascade is not None and limit is not None:
        raise InvalidArgument("cascade= judges all rows, and limit= as few as possible: give only one of them")
    resolved = Instruction.resolve(instruction, frame, all_cols=all_cols)
    label, *weighed = (f"{suffix.strip('_')}_{name}" for name in ("label", "outcome", "reason", "confidence"))
    explanation = f"explanation{suffix}"
    promised = [label] * (return_all or on_error == "keep") + weighed * return_all + [explanation] * return_explanations
    refuse_taken(frame, promised, suffix, on_error)
    question = claim_question(
        resolved.text,
        example_turns(examples, resolved, truth_text),
        explains=return_explanations,
        weighs=return_all,
        guess="True" if limit is None else ("True", "False"),
        window=window,
    )
    rows = encode_rows(frame, resolved.positions, resolved.names)
    lines = [row for row in rows if row is not None]
    verdicts: dict[str, Reply[bool]]
    remarks: list[str] = []
    facts: dict[str, Any] = {}
    ask = partial(ask_packed, question, size=size)
    if cascade is not None:
        scores = scores_of(cascade, frame)
        verdicts, facts["cascade"] = yield from decided_by(cascade, scores, resolved.text, rows, ask, size)
        remarks.append(str(facts["cascade"]))
        if size > 1:
            remarks.append(f"Rows were asked {size} at a time, not audited.")
    elif limit is not None:
        counts = Counter(lines)
        order = list(counts)
        if limit_order == "likeliest":  # to the claim, by the embedder; ties in their order
            order = [order[at] for at in np.argsort(-similarities(resolved.text, order), kind="stable")]
        verdicts = yield from ask_until(order, [counts[line] for line in order], limit, ask, size)
        if size > 1:
            remarks.append(f"Rows were asked {size} at a time, not audited: limit={limit} asks as few as possible.")
    else:
        replies = yield from ask_rows(question, lines, size)
        verdicts, remarks, facts["rows_per_call"] = replies.of, replies.remarks, replies.size

    replies_by_row = [verdicts.get(row or "", _NO_REPLY) for row in rows]
    outcomes = [
        Outcome("null" if row is None else "not asked") if reply is _NO_REPLY else outcome_of(reply)
        for row, reply in zip(rows, replies_by_row, strict=True)
    ]
    passing = [row for row, outcome in enumerate(outcomes) if outcome.kind == "yes"]
    for row in passing[limit:] if limit is not None else ():
        outcomes[row] = Outcome("yes", note="beyond the limit")
    stays = {*passing[:limit], *(row for row, outcome in enumerate(outcomes) if outcome.kind == "failed")}
    labels = [None if reply.value is UNSURE else reply.value for reply in replies_by_row]
    added = [AddedColumn(label, labels, "boolean", with_failures=not return_all)]
    if return_all:
        why = [reply.reason or _reason(outcome) for reply, outcome in zip(replies_by_row, outcomes, strict=True)]
        added.append(AddedColumn(weighed[0], [outcome.kind for outcome in outcomes], "string"))
        added.append(AddedColumn(weighed[1], why, "string"))
        added.append(AddedColumn(weighed[2], [reply.confidence for reply in replies_by_row], "Float64"))
    if return_explanations:
        added.append(AddedColumn(explanation, [reply.reason for reply in replies_by_row], "string"))
    finished = finish(
        "sem_filter",
        frame,
        outcomes,
        [row for row in range(len(rows)) if return_all or row in stays],
        added,
        on_error=on_error,
        suffix=suffix,
        remarks=remarks,
        facts=facts,
    )
    unsure = sum(outcome.kind == "unsure" for outcome in outcomes)
    if unsure and not return_all:
        warn(
            f"sem_filter: for {unsure:,} of {len(outcomes):,} rows the model could not say whether the claim is true; "
            'they are left out. .tag.outcomes marks them as "unsure"; return_all=True keeps them as <NA>.',
            UnsureWarning,
        )
    return finished


def _reason(outcome: Outcome) -> str | None:
    """The reason for a row's outcome if the model gave no explanation."""
    if outcome.error is not None:
        return error_text(outcome.error)
    if outcome.kind == "null":
        return "all of its named cells are blank"
    if outcome.kind == "not asked":
        return "enough rows were found before"
    return outcome.note
