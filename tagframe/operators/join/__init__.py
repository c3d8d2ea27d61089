"""``sem_join``: by labels where they carry the claim, else by asking about pairs, many in a prompt."""

from tagframe.operators.join.operator import JOIN, asem_join, plan_sem_join, sem_join
from tagframe.operators.join.plan import ClaimPlan, NoLabels
from tagframe.operators.join.report import ClaimReport

__all__ = ["JOIN", "ClaimPlan", "ClaimReport", "NoLabels", "asem_join", "plan_sem_join", "sem_join"]
