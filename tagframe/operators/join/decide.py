"""How the pairs of a join are decided: by labels if they can decide the claim, otherwise by questions about pairs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from tagframe.display import Displayable
from tagframe.lm import Bound
from tagframe.lm.prompt import tokens_of
from tagframe.operators.drivers import Step, bounded, prompts_of
from tagframe.operators.join.labels import SAMPLE_PAIRS, Audit, ClaimPlan, Labels, ask_by_labels, ask_plan, joined_by
from tagframe.operators.join.pairs import Block, Judge, Verdicts, ask_candidates, packs
from tagframe.operators.packing import max_prompts, next_round

Way: TypeAlias = Literal["auto", "blocks", "pairs"]

Pair = tuple[int, int]

CALL_TOKENS = 300
"""What a request costs beside its rows, as tokens: its instructions, its answer, and the wait for it."""
PLAN_TOKENS = 900
"""The cost of the request for a plan."""


@dataclass(frozen=True, repr=False)
class ClaimReport(Displayable):
    """``result.tag.claim_report`` of ``sem_join``.

    Attributes:
        way: "labels" if both sides were labelled, "blocks" if many pairs were asked together, "pairs" if each pair was
            asked alone.
        left_rows: distinct rows of the left frame that are not empty.
        right_rows: the same for the right frame.
        matched: pairs of distinct rows for which the claim is true.
        prompts: the number of prompts by stage; a prompt counts twice if both sides have it.
        plan: the model's labels for the claim; None if it was not asked, or said that labels cannot decide the claim.
        audit: the labels compared with direct answers; None without labels.
        dropped: why labels were not used, or "".
        recall: the share of the true pairs that were found: for labels estimated by the audit, for blocks bounded by
            the calibration; 1 if every pair was asked.
        candidates: how they were chosen, or "".
    """

    way: str
    left_rows: int
    right_rows: int
    matched: int
    prompts: dict[str, int]
    plan: ClaimPlan | None = None
    audit: Audit | None = None
    dropped: str = ""
    recall: float = 1.0
    candidates: str = ""

    def __str__(self) -> str:
        pairs = self.left_rows * self.right_rows
        lines = [f"{self.left_rows:,} x {self.right_rows:,} distinct rows, {pairs:,} pairs, {self.matched:,} joined."]
        if self.plan is not None:
            lines.append(f"Labels: {self.plan}")
        if self.audit is not None:
            lines.append(f"  {self.audit}.")
        if self.dropped:
            lines.append(f"Labels were not used: {self.dropped}.")
        if self.candidates:
            lines.append(f"Pairs: {self.candidates}.")
        lines.append(f"Prompts: {', '.join(f'{count:,} {stage}' for stage, count in self.prompts.items()) or 'none'}.")
        return "\n".join(lines)


@dataclass
class Decision:
    """Which pairs of distinct rows go together.

    Attributes:
        left: the left row of each pair, in order.
        right: its right row.
        reasons: the reason for each pair, if reasons were requested.
        unsure: left rows about which, or about a pair of which, the model cannot tell.
        failed_left: left rows without an answer, or with a pair without one.
        failed_right: right rows without an answer.
        not_asked: left rows that were not asked about, since enough pairs were found before.
        report: the report of the join.
    """

    left: npt.NDArray[np.intp]
    right: npt.NDArray[np.intp]
    report: ClaimReport
    reasons: dict[Pair, str | None] = field(default_factory=dict)
    unsure: set[int] = field(default_factory=set)
    failed_left: dict[int, Exception] = field(default_factory=dict)
    failed_right: dict[int, Exception] = field(default_factory=dict)
    not_asked: set[int] = field(default_factory=set)

    def to_frame(self) -> pd.DataFrame:
        """The pairs: columns ``left``, ``right`` and ``reason``."""
        pairs = zip(self.left.tolist(), self.right.tolist(), strict=True)
        explained = any(reason is not None for reason in self.reasons.values())
        reasons = [self.reasons.get(pair) for pair in pairs] if explained else [None] * len(self.left)
        return pd.DataFrame({"left": self.left, "right": self.right, "reason": pd.array(reasons, dtype="string")})


def decide(judge: Judge, plan: ClaimPlan | Way, recall: float, size: int = 1) -> Step[Decision]:
    """Decide all pairs of the two sides; arguments as of :func:`_decide`.

    If the plan is "auto" and there are no more pairs than the audit of labels would ask, each pair is asked. That is
    what labels and blocks are measured by.
    """
    rows, pairs = len(judge.left) + len(judge.right), len(judge.left) * len(judge.right)
    if plan == "pairs" or (plan == "auto" and pairs <= SAMPLE_PAIRS):
        every = [(one, other) for one in range(len(judge.left)) for other in range(len(judge.right))]
        (verdicts, remark), count = yield from prompts_of(judge.judge_each(every, size))
        return _decided(verdicts, _report(judge, "pairs", len(verdicts.true), {"pairs": count}, candidates=remark))
    dropped = ""
    if plan == "auto" and (costs := _costs(judge, size))["blocks"] <= costs["labels"]:
        plan, dropped = "blocks", f"they would cost about {costs['labels']:,} tokens, and blocks {costs['blocks']:,}"
    # The plan, labels, the sample and pairs of equal rows; then blocks, if the labels cannot decide the claim.
    labelled = (
        0 if plan == "blocks" else 1 + max_prompts(rows, size) + SAMPLE_PAIRS + min(len(judge.left), len(judge.right))
    )
    return (yield from bounded(_decide(judge, plan, recall, size, dropped), Bound(labelled + judge.allow())))


def _decide(judge: Judge, plan: ClaimPlan | Way, recall: float, size: int, dropped: str) -> Step[Decision]:
    """Decide all pairs by labels or blocks.

    Args:
        judge: asks about pairs.
        plan: "auto" asks the model for labels, "blocks" does not.
        recall: the share of the true pairs to find, if labels cannot decide the claim.
        size: rows that are labelled in one prompt.
        dropped: why labels are not used, or "".
    """
    prompts: dict[str, int] = {}
    label_plan: ClaimPlan | None = plan if isinstance(plan, ClaimPlan) else None
    audit = None
    if plan == "auto":
        answer = yield from ask_plan(judge.claim, judge.left, judge.right)
        prompts["plan"] = 1
        if isinstance(answer, ClaimPlan):
            label_plan = answer
        else:
            dropped = (
                f"the plan failed: {answer}"
                if isinstance(answer, Exception)
                else "the model says that labels cannot decide this claim"
            )
    if label_plan is not None:
        labels, audit = yield from ask_by_labels(judge, label_plan, size)
        prompts |= {"labels": labels.prompts, "pairs of the sample": audit.prompts}
        if audit.agrees:
            return (yield from _by_labels(judge, labels, audit, prompts))
        dropped = "they disagree with direct answers"
    candidates = yield from ask_candidates(judge, recall)
    prompts["blocks"] = candidates.prompts
    chosen = {"recall": candidates.recall, "candidates": candidates.how}
    labelled = {"plan": label_plan, "audit": audit, "dropped": dropped}
    report = _report(judge, "blocks", len(candidates.verdicts.true), prompts, **labelled, **chosen)
    return _decided(candidates.verdicts, report)


def _costs(judge: Judge, size: int) -> dict[str, int]:
    """About how many tokens labels with their audit cost, and blocks of all pairs; a request counts as some tokens."""
    tokens = [sum(map(tokens_of, side.lines)) for side in judge.sides]
    left, right = (len(packs(range(len(side)), side)) for side in judge.sides)
    blocks = left * right * CALL_TOKENS + tokens[0] * right + tokens[1] * left
    lines = {*judge.left.alone, *judge.right.alone}  # a row that is on both sides is labelled once
    of_pair = sum(count // max(len(side), 1) for count, side in zip(tokens, judge.sides, strict=True))
    labels = math.ceil(len(lines) / size) * CALL_TOKENS + sum(map(tokens_of, lines))
    return {"labels": PLAN_TOKENS + labels + SAMPLE_PAIRS * (CALL_TOKENS + of_pair), "blocks": blocks}


def decide_some(judge: Judge, limit: int) -> Step[Decision]:
    """Ask about pairs, in blocks over both sides in turn, until ``limit`` true ones are found.

    Blocks far from the diagonal come first: if both sides are one frame, pairs of a row with itself come last.
    """
    lefts, rights = (packs(range(len(side)), side) for side in judge.sides)
    across = len(rights)
    blocks = [
        Block(one, rights[(number + shift + across // 2) % across])
        for shift in range(across)
        for number, one in enumerate(lefts)
    ]
    verdicts, done, pairs = Verdicts(), 0, 0
    bound = Bound(judge.allow())
    guess = json.dumps([["L1", "R1", *["both say so"] * judge.explained]])
    while done < len(blocks) and len(verdicts.true) < limit:
        several, some = next_round(pairs, len(verdicts.true), limit), 0
        while done + some < len(blocks) and sum(map(len, blocks[done : done + some])) < several:
            some += 1
        verdicts.add((yield from bounded(judge.judge_blocks(blocks[done : done + some], guess), bound)))
        pairs += sum(map(len, blocks[done : done + some]))
        done += some
    remark = f"{done:,} of {len(blocks):,} blocks were asked, until {limit:,} pairs were found"
    decision = _decided(verdicts, _report(judge, "blocks", len(verdicts.true), {"blocks": done}, candidates=remark))
    decision.not_asked = set(range(len(judge.left))) - {row for block in blocks[:done] for row in block.left}
    return decision


def _report(judge: Judge, way: str, matched: int, prompts: dict[str, int], **facts: Any) -> ClaimReport:
    stages = prompts if way == "blocks" else {stage: count for stage, count in prompts.items() if count}
    return ClaimReport(way, len(judge.left), len(judge.right), matched, stages, **facts)


def _decided(verdicts: Verdicts, report: ClaimReport) -> Decision:
    """The decision from pairs that were asked."""
    pairs = np.array(sorted(verdicts.true), dtype=np.intp).reshape(-1, 2)
    decision = Decision(pairs[:, 0], pairs[:, 1], report, reasons=verdicts.true)
    decision.unsure = {left for left, _ in verdicts.unsure}
    for block, error in verdicts.failed:
        decision.failed_left |= dict.fromkeys(block.left, error)
    return decision


def _by_labels(judge: Judge, labels: Labels, audit: Audit, prompts: dict[str, int]) -> Step[Decision]:
    """The decision from valid labels; pairs that were asked directly keep their answers."""
    plan = labels.plan
    allowed = plan.allowed()
    answers, reasons = dict(audit.answers), dict(audit.reasons)
    failed_left: dict[int, Exception] = {}
    rights_of = {line: row for row, line in enumerate(judge.right.alone)}
    equal = ((row, rights_of[line]) for row, line in enumerate(judge.left.alone) if line in rights_of)
    same = [pair for pair in equal if pair not in answers]
    if audit.same == "asked":
        verdicts, _ = yield from judge.judge_each(same)
        prompts["pairs of equal rows"] = len(same)
        answers |= {pair: pair in verdicts.true for pair in same}
        reasons |= verdicts.true
        for block, error in verdicts.failed:
            failed_left |= dict.fromkeys(block.left, error)
    elif audit.same == "turned":
        for left, right in same:
            known = labels.left[left] >= 0 and labels.right[right] >= 0
            answers[left, right] = bool(known and not allowed[labels.left[left], labels.right[right]])
    lefts, rights = _overruled(joined_by(labels), answers)
    if judge.explained:
        for pair in zip(lefts.tolist(), rights.tolist(), strict=True):
            one, other = (plan.labels[codes[row]] for codes, row in zip((labels.left, labels.right), pair, strict=True))
            reasons.setdefault(pair, one if one == other else f"{one}; {other}")
    report = _report(judge, "labels", len(lefts), prompts, plan=plan, audit=audit, recall=audit.recall)
    failed_left |= labels.failed["left"]
    unsure = set(np.flatnonzero(labels.left < 0).tolist()) - set(failed_left)
    return Decision(lefts, rights, report, reasons, unsure, failed_left, labels.failed["right"])


def _overruled(
    pairs: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]], answers: dict[Pair, bool]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The pairs, corrected by direct answers: false ones removed, true ones added."""
    if not answers:
        return pairs
    width = 1 + max(int(pairs[1].max(initial=0)), *(right for _, right in answers))
    keys = pairs[0] * width + pairs[1]
    no = _keys([pair for pair, truth in answers.items() if not truth], width)
    yes = _keys([pair for pair, truth in answers.items() if truth], width)
    keys = np.union1d(np.setdiff1d(keys, no), yes)
    return keys // width, keys % width


def _keys(pairs: Sequence[Pair], width: int) -> npt.NDArray[np.intp]:
    return np.array([left * width + right for left, right in pairs], dtype=np.intp)
