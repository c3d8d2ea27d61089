"""``sem_filter``: the rows for which a claim is true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from tagframe.errors import AnswerRejected, InvalidArgument, UnsureWarning, warn
from tagframe.operators.cascade import Cascade, decided_by, scores_of
from tagframe.operators.cells import Instruction, encode_rows
from tagframe.operators.drivers import Step, together
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
    Question,
    Reply,
    claim_question,
    example_turns,
    joined_notes,
    outcome_of,
    truth_text,
)
from tagframe.operators.text_nearness import similarities
from tagframe.operators.values import UNSURE

_NO_REPLY: Reply[bool] = Reply(None)
"""The outcome of rows that were not asked about."""
SAMPLED_ROWS, SAMPLED_ONE_IN = 20, 10
"""All claims are asked about so many rows first; if there are few rows, about one in :data:`SAMPLED_ONE_IN`."""


def _needs_all(given: Mapping[str, Any]) -> str | None:
    reads_all = given.get("limit") is not None or given.get("cascade") is not None
    return "limit= and cascade= of sem_filter look at all rows" if reads_all else None


@declare(guess=lambda prompt: "True", needs_all=_needs_all)
def sem_filter(
    frame: pd.DataFrame,
    instruction: str | Sequence[str],
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
    """Keep the rows for which the claim is true; with several claims, those for which all are true.

    Rows with the same shown values are asked about once. A row whose shown cells are all blank is not asked about and
    does not pass. A row for which the model cannot tell does not pass either, and a warning counts such rows.

    A list of claims keeps the same rows as one filter after another, at a lower cost. All claims are asked about a few
    rows first. The claims are then ordered: first the one that rules out most rows for the least text. Each row is
    asked about only until a claim rules it out. Prompts of several rows are not audited then. ``return_all`` adds
    ``filter_label`` and ``filter_ended_by``, the claim that ruled the row out. ``return_explanations``, ``cascade`` and
    ``limit`` work with one claim only.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: a claim that names columns in braces, ``"{city} lies on a large river"``; if it names none, the
            model is shown all columns but ids, with a warning. Or a list of claims.
        all_cols: show the model all columns, even if the claim names some.
        return_all: return all rows, with the columns ``filter_label`` (boolean; ``<NA>`` if unsure, failed or not
            asked, so that its ``mean()`` and ``sum()`` leave such rows out; ``fillna(False)`` counts them),
            ``filter_outcome``, ``filter_reason`` and ``filter_confidence`` (the probability of the answer, if the
            provider gives log probabilities).
        return_explanations: add a column ``explanation_filter`` with the model's reasons.
        examples: solved rows to show first: the named columns and a boolean column ``Answer``; with several claims,
            each ``Answer`` is a list with a boolean for each claim.
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
        InvalidArgument: the instruction has no words, the name of an added column is taken, or an argument that works
            with one claim is given with several.
        NotConfigured: no model is set.
    """
    if not isinstance(instruction, str) and isinstance(instruction, Sequence):
        given = {"return_explanations": return_explanations, "cascade": cascade is not None, "limit": limit is not None}
        for name in (name for name, is_given in given.items() if is_given):
            raise InvalidArgument(
                f"{name}= is for one claim; use a separate sem_filter for it; got {instruction!r:.200}"
            )
        size = rows_per_call_of(rows_per_call)
        options = all_cols, size, return_all, examples
        return (yield from _passing_all(frame, instruction, *options, suffix, on_error, window))
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
        Outcome("null" if row is None else "not asked") if reply is _NO_REPLY else outcome_of(reply, reply.note)
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


# --- several claims about a row, the cheapest way first ---------------------------------------------------------------


@dataclass(frozen=True)
class _Claim:
    """A claim, and the rows that it is asked about.

    Attributes:
        text: as the user wrote it.
        lines: each row of the frame as shown to the model; None if all named cells are blank.
        size: the most rows in a prompt.
    """

    text: str
    question: Question[bool]
    lines: Sequence[str | None]
    size: int

    def ask(self, rows: Sequence[int], known: dict[str, Reply[bool]]) -> Step[None]:
        """Ask about these rows; rows with a known answer are not asked again."""
        lines = (self.lines[row] for row in rows)
        new = [line for line in dict.fromkeys(lines) if line is not None and line not in known]
        verdicts = yield from ask_packed(self.question, new, self.size)
        known.update(zip(new, verdicts, strict=True))

    def outcome(self, row: int, known: dict[str, Reply[bool]]) -> Outcome:
        line = self.lines[row]
        if line is None:
            return Outcome("null", note=f"by {self.text!r}")
        return outcome_of(known[line], joined_notes(f"by {self.text!r}", known[line].note))

    def rank(self, rows: Sequence[int], known: dict[str, Reply[bool]]) -> float:
        """Cost divided by the share of rows that the claim rules out, on a sample; the lowest rank goes first.

        For independent claims no order is cheaper (Hellerstein and Stonebraker, SIGMOD 1993, section 4.1).
        """
        ended = sum(self.outcome(row, known).kind != "yes" for row in rows)
        cost = len(self.question.text) / self.size + sum(len(self.lines[row] or "") for row in rows) / len(rows)
        return cost / ((ended + 0.5) / (len(rows) + 1))


def _of_claim(answer: Any, number: int, count: int) -> str:
    """The answer to one of several claims in an example's list of answers."""
    if not isinstance(answer, list | tuple | np.ndarray) or len(answer) != count:
        raise AnswerRejected(f"expected a list with True or False for each of the {count} claims, got {answer!r:.80}")
    return truth_text(answer[number])


def _passing_all(
    frame: pd.DataFrame,
    texts: Sequence[str],
    all_cols: bool,
    size: int,
    return_all: bool,
    examples: pd.DataFrame | None,
    suffix: str,
    on_error: OnError,
    window: int | None,
) -> Step[pd.DataFrame]:
    """The rows for which all claims are true; arguments as for :func:`tagframe.sem_filter`, ``size`` rows a prompt."""
    if not texts:
        raise InvalidArgument("sem_filter needs at least one claim, such as ['{city} is on a coast', …]; got none")
    label, ended_by = (f"{suffix.strip('_')}_{name}" for name in ("label", "ended_by"))
    claims = []
    for number, text in enumerate(texts):
        resolved = Instruction.resolve(text, frame, all_cols=all_cols)
        lines = encode_rows(frame, resolved.positions, resolved.names)
        turns = example_turns(examples, resolved, partial(_of_claim, number=number, count=len(texts)))
        claims.append(_Claim(text, claim_question(resolved.text, turns, window=window), lines, size))
    promised = [label] * (return_all or on_error == "keep") + [ended_by] * return_all
    refuse_taken(frame, promised, suffix, on_error)

    known: list[dict[str, Reply[bool]]] = [{} for _ in claims]
    order = list(range(len(claims)))
    remarks = []
    count = min(SAMPLED_ROWS, len(frame) // SAMPLED_ONE_IN)
    if len(claims) > 1 and count:
        sample = np.sort(np.random.default_rng(0).choice(len(frame), count, replace=False)).tolist()
        yield from together([claim.ask(sample, of) for claim, of in zip(claims, known, strict=True)])
        order.sort(key=lambda which: claims[which].rank(sample, known[which]))
        names = ", ".join(repr(texts[which]) for which in order)
        remarks.append(f"Claims were asked in the order {names}, chosen by a sample of {count} rows.")
    outcomes = [Outcome("yes")] * len(frame)
    ended: list[str | None] = [None] * len(frame)
    left = list(range(len(frame)))
    for which in order:
        claim, of = claims[which], known[which]
        yield from claim.ask(left, of)
        for row in left:
            outcome = claim.outcome(row, of)
            if outcome.kind != "yes":
                outcomes[row], ended[row] = outcome, claim.text
        left = [row for row in left if ended[row] is None]
    labels = [{"yes": True, "no": False}.get(outcome.kind) for outcome in outcomes]
    added = [AddedColumn(label, labels, "boolean", with_failures=not return_all)]
    if return_all:
        added.append(AddedColumn(ended_by, ended, "string"))
    return finish(
        "sem_filter",
        frame,
        outcomes,
        [row for row, outcome in enumerate(outcomes) if return_all or outcome.kind in ("yes", "failed")],
        added,
        on_error=on_error,
        suffix=suffix,
        remarks=remarks,
    )
