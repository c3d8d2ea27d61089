"""``sem_join``: by labels where they carry the claim, else by asking about pairs, many in a prompt."""

from tagframe.operators.join.claim_report import ClaimReport
from tagframe.operators.join.label_plan import ClaimPlan, NoLabels
from tagframe.operators.join.operator import JOIN, asem_join, plan_sem_join, sem_join

__all__ = ["JOIN", "ClaimPlan", "ClaimReport", "NoLabels", "asem_join", "plan_sem_join", "sem_join"]
