"""``sem_filter``: the rows of which a claim is true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from tagframe.errors import InvalidArgument, UnsureWarning, warn
from tagframe.operators.answer_grammar import UNSURE, parse_word
from tagframe.operators.cascade import Cascade, decided_by, scores_of
from tagframe.operators.cells import encode_rows
from tagframe.operators.examples import example_turns
from tagframe.operators.instruction import Instruction
from tagframe.operators.judging import TRUTH, Truth, claim_question
from tagframe.operators.limiting import LimitOrder, ask_until, check_limit, likeliest_first
from tagframe.operators.operator import declare
from tagframe.operators.outcome import (
    Added,
    OnError,
    Outcome,
    OutcomeKind,
    check_on_error,
    error_text,
    finish,
    refuse_taken,
)
from tagframe.operators.packing import RowsPerCall, ask_packed, ask_rows, rows_per_call_of
from tagframe.operators.row_question import Reply
from tagframe.operators.several_claims import passing_all
from tagframe.operators.steps import Step

_KINDS: dict[Truth, OutcomeKind] = {True: "yes", False: "no", UNSURE: "unsure"}


def _needs_all(given: Mapping[str, Any]) -> str | None:
    asked = given.get("limit") is not None or given.get("cascade") is not None
    return "limit= and cascade= of sem_filter look at all rows" if asked else None


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

    Rows that show the same values are asked about once. A row whose shown cells are all missing is not asked about and
    does not pass. A row for which the model cannot say does not pass either, and a warning counts such rows.

    A list of claims keeps what one filter after the other would keep, for less. All claims are asked about a few rows
    first. Then the claim goes first that rules out most rows for the least text, and each row is asked only until a
    claim rules it out. Prompts of several rows are not audited then. ``return_all`` adds ``filter_label`` and
    ``filter_ended_by``, the claim that ruled the row out. ``return_explanations``, ``examples``, ``cascade`` and
    ``limit`` are for one claim.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: a claim that names columns in braces, ``"{city} lies on a large river"``; where it names none, the
            model is shown all columns. Or a list of claims.
        all_cols: show the model all columns, also where the claim names some.
        return_all: all rows, with the columns ``filter_label`` (boolean; ``<NA>`` where unsure, failed or not asked, so
            that its ``mean()`` and ``sum()`` leave such rows out; ``fillna(False)`` counts them),
            ``filter_outcome``, ``filter_reason`` and ``filter_confidence`` (the probability of the answer, where the
            provider gives log probabilities).
        return_explanations: a column ``explanation_filter`` with the model's reasons.
        examples: solved rows to show first: the named columns and a boolean column ``Answer``.
        rows_per_call: rows of one prompt. More than one is cheaper and a little less exact; "auto" is 16 at most. 50
            rows (of few rows, a quarter) are asked singly too, and packs halved while more than 5 % of them differ;
            ``.tag.outcomes`` and its ``remarks`` tell of it.
        cascade: have a proxy decide the clear rows, with recall and precision promised; see
            :class:`tagframe.Cascade`. ``.tag.cascade`` says what it saved.
        limit: stop as soon as so many rows are found; small rounds, each a little larger than the one before. Not
            audited where ``rows_per_call`` is given too.
        limit_order: which rows to ask first: "rows" in their order, so that the first ``limit`` rows that pass are
            found, or "likeliest", those nearest to the claim by the embedder. The result is in the rows' order.
        suffix: the end of the added columns' names.
        on_error: what a row without an answer does: ``"raise"`` once all others are done, ``"keep"`` as ``<NA>`` with
            a column ``filter_error``, or ``"drop"``.

    Returns:
        The rows that pass, in order, with index, dtypes and subclass kept; ``.tag.outcomes`` says what became of each.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a named column is not there.
        InvalidArgument: an instruction without words, an added column's name that is taken, an argument for one claim
            given with several.
        NotConfigured: no model is set.
    """
    check_on_error(on_error)
    if not isinstance(instruction, str) and isinstance(instruction, Sequence):
        for name, given in {
            "return_explanations": return_explanations,
            "examples": examples is not None,
            "cascade": cascade is not None,
            "limit": limit is not None,
        }.items():
            if given:
                raise InvalidArgument(
                    f"{name}= is for one claim; give it to a sem_filter of its own, got {instruction!r:.200}"
                )
        return (
            yield from passing_all(
                frame,
                instruction,
                all_cols=all_cols,
                rows_per_call=rows_per_call,
                return_all=return_all,
                suffix=suffix,
                on_error=on_error,
                window=window,
            )
        )
    check_limit(limit, limit_order)
    size = rows_per_call_of(rows_per_call)
    if cascade is not None and limit is not None:
        raise InvalidArgument("a cascade judges all rows, and limit= as few as it can: give one of them")
    resolved = Instruction.resolve(instruction, frame, all_cols=all_cols)
    names = _Names(suffix)
    refuse_taken(frame, names.promised(return_all, return_explanations, on_error), suffix)
    question = claim_question(
        resolved.text,
        example_turns(examples, resolved, _solved),
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
        if limit_order == "likeliest":
            order = [order[place] for place in likeliest_first(resolved.text, order)]
        verdicts = yield from ask_until(order, [counts[line] for line in order], limit, ask, size)
        if size > 1:
            remarks.append(f"Rows were asked {size} at a time, not audited: limit={limit} asks of as few as it can.")
    else:
        replies = yield from ask_rows(question, lines, size)
        verdicts, remarks, facts["rows_per_call"] = replies.of, replies.remarks, replies.size

    found = [None if row is None else verdicts.get(row) for row in rows]
    outcomes = [
        _outcome(verdict) if verdict is not None else Outcome("null" if row is None else "not asked")
        for row, verdict in zip(rows, found, strict=True)
    ]
    passing = [place for place, outcome in enumerate(outcomes) if outcome.kind == "yes"]
    for place in passing[limit:] if limit is not None else ():
        outcomes[place] = Outcome("yes", note="beyond the limit")
    kept = {*passing[:limit], *(place for place, outcome in enumerate(outcomes) if outcome.kind == "failed")}
    finished = finish(
        "sem_filter",
        frame,
        outcomes,
        [place for place in range(len(rows)) if return_all or place in kept],
        names.added(found, outcomes, return_all, return_explanations),
        on_error=on_error,
        error_name=names.error,
        remarks=remarks,
        facts=facts,
    )
    if not return_all:
        _say_unsure(outcomes)
    return finished


def _solved(answer: Any) -> str:
    return str(parse_word(str(answer), TRUTH, "True or False"))


def _outcome(verdict: Reply[bool]) -> Outcome:
    if verdict.value is None:
        return Outcome("failed", verdict.error, verdict.note)
    return Outcome(_KINDS[verdict.value], note=verdict.note)


class _Names:
    """The columns that ``sem_filter`` adds, by the end of their names."""

    def __init__(self, suffix: str) -> None:
        stem = suffix.strip("_")
        self.label, self.outcome, self.reason = f"{stem}_label", f"{stem}_outcome", f"{stem}_reason"
        self.confidence, self.error = f"{stem}_confidence", f"{stem}_error"
        self.explanation = f"explanation{suffix}"

    def promised(self, return_all: bool, return_explanations: bool, on_error: OnError) -> list[str]:
        """Those that the result has whatever the answers are."""
        names = [self.label, self.outcome, self.reason, self.confidence] if return_all else []
        names += [self.explanation] if return_explanations else []
        names += [self.error] if on_error == "keep" else []
        return [*names, *([self.label] if on_error == "keep" and not return_all else [])]

    def added(
        self,
        found: Sequence[Reply[bool] | None],
        outcomes: Sequence[Outcome],
        return_all: bool,
        return_explanations: bool,
    ) -> list[Added]:
        """The columns with their cells, one a row of the input."""
        truths = [verdict.value if verdict is not None else None for verdict in found]
        labels = [None if truth is UNSURE else truth for truth in truths]
        reasons = [verdict.reason if verdict is not None else None for verdict in found]
        columns = [Added(self.label, labels, "boolean", with_failures=not return_all)]
        if return_all:
            why = [reason or _reason(outcome) for reason, outcome in zip(reasons, outcomes, strict=True)]
            confidences = [verdict.confidence if verdict is not None else None for verdict in found]
            columns += [
                Added(self.outcome, [outcome.kind for outcome in outcomes], "string"),
                Added(self.reason, why, "string"),
                Added(self.confidence, confidences, "Float64"),
            ]
        if return_explanations:
            columns.append(Added(self.explanation, reasons, "string"))
        return columns


def _reason(outcome: Outcome) -> str | None:
    """Why a row has the outcome that it has, where the model did not explain."""
    if outcome.error is not None:
        return error_text(outcome.error)
    if outcome.kind == "null":
        return "all of its named cells are missing"
    if outcome.kind == "not asked":
        return "enough rows were found before"
    return outcome.note


def _say_unsure(outcomes: Sequence[Outcome]) -> None:
    unsure = sum(outcome.kind == "unsure" for outcome in outcomes)
    if unsure:
        warn(
            f"sem_filter: of {unsure:,} of {len(outcomes):,} rows the model could not say whether the claim is true; "
            'they are left out. .tag.outcomes has them as "unsure", return_all=True keeps them as <NA>.',
            UnsureWarning,
        )
