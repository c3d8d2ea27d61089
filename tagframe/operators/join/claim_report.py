"""What a join by a claim did: which way it went, why, and what that cost."""

from __future__ import annotations

from dataclasses import dataclass, field

from tagframe.display import Shown
from tagframe.operators.join.label_plan import ClaimPlan
from tagframe.operators.join.labels import Audit


@dataclass(frozen=True, repr=False)
class ClaimReport(Shown):
    """``result.tag.claim_report`` of ``sem_join``.

    Attributes:
        way: "labels": both sides were labelled; "blocks": pairs were asked, many together; "pairs": each was.
        plan: the labels of the claim, as the model cut it; None where it was not asked, or said that none carries it.
        audit: what direct answers said of the labels; None where there were none.
        dropped: why labels were not used, or "".
        left_rows: distinct rows of the left frame that show something.
        right_rows: the same of the right.
        matched: pairs of distinct rows of which the claim is true.
        recall: share of the true pairs that are found: of labels as estimated by the audit, of blocks as bounded by the
            calibration; 1 where every pair was asked.
        prompts: by stage: what was asked, the same prompt twice where both sides have it.
        told: how candidates were chosen, or "".
    """

    way: str
    plan: ClaimPlan | None
    audit: Audit | None
    dropped: str
    left_rows: int
    right_rows: int
    matched: int
    recall: float
    prompts: dict[str, int] = field(default_factory=dict)
    told: str = ""

    def __str__(self) -> str:
        pairs = self.left_rows * self.right_rows
        lines = [f"{self.left_rows:,} x {self.right_rows:,} distinct rows, {pairs:,} pairs, {self.matched:,} joined."]
        if self.plan is not None:
            lines.append(f"Labels: {self.plan}")
        if self.audit is not None:
            lines.append(f"  {self.audit}.")
        if self.dropped:
            lines.append(f"Labels were not used: {self.dropped}.")
        if self.told:
            lines.append(f"Pairs: {self.told}.")
        lines.append(f"Prompts: {', '.join(f'{count:,} {stage}' for stage, count in self.prompts.items()) or 'none'}.")
        return "\n".join(lines)
