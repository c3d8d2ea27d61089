"""``sem_filter`` of several claims about a row, the cheapest way first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from tagframe.errors import InvalidArgument
from tagframe.operators.answer_grammar import UNSURE
from tagframe.operators.cells import encode_rows
from tagframe.operators.instruction import Instruction
from tagframe.operators.judging import claim_question
from tagframe.operators.outcome import Added, OnError, Outcome, finish, refuse_taken
from tagframe.operators.packing import RowsPerCall, ask_packed, rows_per_call_of
from tagframe.operators.row_question import Question, Reply
from tagframe.operators.steps import Step, together

SAMPLED, SAMPLED_SHARE = 20, 10
"""Rows that all claims are asked of first; one in :data:`SAMPLED_SHARE` where there are few."""


@dataclass(frozen=True)
class _Claim:
    """A claim, and what it is asked of.

    Attributes:
        text: as the user wrote it.
        lines: each row of the frame as it shows it; None where all of its named cells are null.
        size: rows of a prompt at most.
    """

    text: str
    question: Question[bool]
    lines: Sequence[str | None]
    size: int

    def ask(self, places: Sequence[int], known: dict[str, Reply[bool]]) -> Step[None]:
        """Have the rows at these places judged; what is known already is not asked again."""
        found = (self.lines[place] for place in places)
        new = [line for line in dict.fromkeys(found) if line is not None and line not in known]
        verdicts = yield from ask_packed(self.question, new, self.size)
        known.update(zip(new, verdicts, strict=True))

    def outcome(self, place: int, known: dict[str, Reply[bool]]) -> Outcome:
        line = self.lines[place]
        if line is None:
            return Outcome("null", note=f"by {self.text!r}")
        verdict = known[line]
        note = f"by {self.text!r}" if verdict.note is None else f"by {self.text!r}; {verdict.note}"
        if verdict.value is None:
            return Outcome("failed", verdict.error, note)
        kind: Literal["yes", "no", "unsure"] = "unsure" if verdict.value is UNSURE else "yes" if verdict.value else "no"
        return Outcome(kind, note=note)

    def rank(self, places: Sequence[int], known: dict[str, Reply[bool]]) -> float:
        """Cost over the share of rows that it ends, by a sample: the claim with the least goes first.

        With independent claims no order is cheaper (Hellerstein and Stonebraker, SIGMOD 1993, section 4.1).
        """
        ended = sum(self.outcome(place, known).kind != "yes" for place in places)
        cost = len(self.question.text) / self.size + sum(len(self.lines[place] or "") for place in places) / len(places)
        return cost / ((ended + 0.5) / (len(places) + 1))


def passing_all(
    frame: pd.DataFrame,
    texts: Sequence[str],
    *,
    all_cols: bool,
    rows_per_call: RowsPerCall,
    return_all: bool,
    suffix: str,
    on_error: OnError,
    window: int | None,
) -> Step[pd.DataFrame]:
    """The rows of which all claims are true; arguments as of :func:`tagframe.sem_filter`."""
    if not texts:
        raise InvalidArgument("sem_filter needs at least one claim, as ['{city} is on a coast', …]; got none")
    size = rows_per_call_of(rows_per_call)
    stem = suffix.strip("_")
    label, ended_by, error_name = f"{stem}_label", f"{stem}_ended_by", f"{stem}_error"
    promised = ([label, ended_by] if return_all else []) + ([label, error_name] if on_error == "keep" else [])
    claims = []
    for text in texts:
        resolved = Instruction.resolve(text, frame, all_cols=all_cols)
        lines = encode_rows(frame, resolved.positions, resolved.names)
        claims.append(_Claim(text, claim_question(resolved.text, window=window), lines, size))
    refuse_taken(frame, promised, suffix)

    known: list[dict[str, Reply[bool]]] = [{} for _ in claims]
    order = list(range(len(claims)))
    remarks = []
    count = min(SAMPLED, len(frame) // SAMPLED_SHARE)
    if len(claims) > 1 and count:
        sample = np.sort(np.random.default_rng(0).choice(len(frame), count, replace=False)).tolist()
        yield from together([claim.ask(sample, of) for claim, of in zip(claims, known, strict=True)])
        order.sort(key=lambda place: claims[place].rank(sample, known[place]))
        remarks.append(f"Asked in the order {', '.join(repr(texts[place]) for place in order)}, by {count} rows.")
    outcomes = [Outcome("yes")] * len(frame)
    ended: list[str | None] = [None] * len(frame)
    left = list(range(len(frame)))
    for which in order:
        claim, of = claims[which], known[which]
        yield from claim.ask(left, of)
        for place in left:
            outcome = claim.outcome(place, of)
            if outcome.kind != "yes":
                outcomes[place], ended[place] = outcome, claim.text
        left = [place for place in left if ended[place] is None]
    labels = [{"yes": True, "no": False}.get(outcome.kind) for outcome in outcomes]
    added = [Added(label, labels, "boolean", with_failures=not return_all)]
    if return_all:
        added.append(Added(ended_by, ended, "string"))
    return finish(
        "sem_filter",
        frame,
        outcomes,
        [place for place, outcome in enumerate(outcomes) if return_all or outcome.kind in ("yes", "failed")],
        added,
        on_error=on_error,
        error_name=error_name,
        remarks=remarks,
    )
