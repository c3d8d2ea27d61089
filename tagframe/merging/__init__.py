"""Run join plans: merges that account for every row, and stacks of tables with the same columns."""

from tagframe.joins import plan_tables
from tagframe.merging.advice import Reaction
from tagframe.merging.frames import infer_keys, join_plan, merge, stack
from tagframe.merging.report import MergeReport, StepReport
from tagframe.merging.run import MergeArguments, Where, run_plan

__all__ = [
    "MergeArguments",
    "MergeReport",
    "Reaction",
    "StepReport",
    "Where",
    "infer_keys",
    "join_plan",
    "merge",
    "plan_tables",
    "run_plan",
    "stack",
]
