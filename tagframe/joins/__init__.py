"""How a set of tables connects: the plan that joins them."""

from tagframe.joins.plan import JoinPlan, JoinStep, PlanTable
from tagframe.joins.planner import plan_joins

__all__ = ["JoinPlan", "JoinStep", "PlanTable", "plan_joins"]
