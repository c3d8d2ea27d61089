"""``sem_join``: by labels if they can decide the claim, otherwise by questions about pairs, many in a prompt."""

from tagframe.operators.join.decide import ClaimReport
from tagframe.operators.join.labels import ClaimPlan, NoLabels
from tagframe.operators.join.semantic_join import plan_sem_join

__all__ = ["ClaimPlan", "ClaimReport", "NoLabels", "plan_sem_join"]
