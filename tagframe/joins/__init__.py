"""Keys between tables, the plan that joins them, and merges that account for every row."""

from tagframe.joins.evidence import Evidence, KeyPair
from tagframe.joins.frames import infer_keys_of, join_plan, merge_frames, merge_frames_with_report
from tagframe.joins.keys import infer_keys
from tagframe.joins.merge import merge
from tagframe.joins.plan import JoinPlan, JoinStep, PlanTable
from tagframe.joins.planner import plan_joins
from tagframe.joins.report import MergeReport, StepReport
from tagframe.joins.roles import role_hints
from tagframe.joins.stacking import stack
from tagframe.joins.unions import UnionGroup, infer_unions

__all__ = [
    "Evidence",
    "JoinPlan",
    "JoinStep",
    "KeyPair",
    "MergeReport",
    "PlanTable",
    "StepReport",
    "UnionGroup",
    "infer_keys",
    "infer_keys_of",
    "infer_unions",
    "join_plan",
    "merge",
    "merge_frames",
    "merge_frames_with_report",
    "plan_joins",
    "role_hints",
    "stack",
]
