"""``sem_filter`` of several claims about a row, the cheapest way first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tagframe.errors import InvalidArgument
from tagframe.operators.cells import encode_rows
from tagframe.operators.instruction import Instruction
from tagframe.operators.judging import claim_question, outcome_of
from tagframe.operators.outcome import Added, OnError, Outcome, finish, refuse_taken
from tagframe.operators.packing import ask_packed
from tagframe.operators.row_question import Question, Reply, joined_notes
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

    def ask(self, rows: Sequence[int], known: dict[str, Reply[bool]]) -> Step[None]:
        """Have these rows judged; what is known already is not asked again."""
        found = (self.lines[row] for row in rows)
        new = [line for line in dict.fromkeys(found) if line is not None and line not in known]
        verdicts = yield from ask_packed(self.question, new, self.size)
        known.update(zip(new, verdicts, strict=True))

    def outcome(self, row: int, known: dict[str, Reply[bool]]) -> Outcome:
        line = self.lines[row]
        if line is None:
            return Outcome("null", note=f"by {self.text!r}")
        return outcome_of(known[line], joined_notes(f"by {self.text!r}", known[line].note))

    def rank(self, rows: Sequence[int], known: dict[str, Reply[bool]]) -> float:
        """Cost over the share of rows that it ends, by a sample: the claim with the least goes first.

        With independent claims no order is cheaper (Hellerstein and Stonebraker, SIGMOD 1993, section 4.1).
        """
        ended = sum(self.outcome(row, known).kind != "yes" for row in rows)
        cost = len(self.question.text) / self.size + sum(len(self.lines[row] or "") for row in rows) / len(rows)
        return cost / ((ended + 0.5) / (len(rows) + 1))


def passing_all(
    frame: pd.DataFrame,
    texts: Sequence[str],
    all_cols: bool,
    size: int,
    return_all: bool,
    suffix: str,
    on_error: OnError,
    window: int | None,
) -> Step[pd.DataFrame]:
    """The rows of which all claims are true; arguments as of :func:`tagframe.sem_filter`, ``size`` rows of a prompt."""
    if not texts:
        raise InvalidArgument("sem_filter needs at least one claim, as ['{city} is on a coast', …]; got none")
    label, ended_by = (f"{suffix.strip('_')}_{name}" for name in ("label", "ended_by"))
    claims = []
    for text in texts:
        resolved = Instruction.resolve(text, frame, all_cols=all_cols)
        lines = encode_rows(frame, resolved.positions, resolved.names)
        claims.append(_Claim(text, claim_question(resolved.text, window=window), lines, size))
    promised = [label] * (return_all or on_error == "keep") + [ended_by] * return_all
    refuse_taken(frame, promised, suffix, on_error)

    known: list[dict[str, Reply[bool]]] = [{} for _ in claims]
    order = list(range(len(claims)))
    remarks = []
    count = min(SAMPLED, len(frame) // SAMPLED_SHARE)
    if len(claims) > 1 and count:
        sample = np.sort(np.random.default_rng(0).choice(len(frame), count, replace=False)).tolist()
        yield from together([claim.ask(sample, of) for claim, of in zip(claims, known, strict=True)])
        order.sort(key=lambda which: claims[which].rank(sample, known[which]))
        remarks.append(f"Asked in the order {', '.join(repr(texts[which]) for which in order)}, by {count} rows.")
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
    added = [Added(label, labels, "boolean", with_failures=not return_all)]
    if return_all:
        added.append(Added(ended_by, ended, "string"))
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
