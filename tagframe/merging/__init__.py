"""Run join plans: merges that account for every row, and stacks of tables with the same columns."""

from tagframe.joins import plan_tables
from tagframe.merging.advice import Reaction
from tagframe.merging.frames import infer_keys, join_plan, merge, stack
from tagframe.merging.report import MergeReport, StepReport
from tagframe.merging.run import MergeArguments, MergeBatches, Where, merge_batches, run_plan

__all__ = [
    "MergeArguments",
    "MergeBatches",
    "MergeReport",
    "Reaction",
    "StepReport",
    "Where",
    "infer_keys",
    "join_plan",
    "merge",
    "merge_batches",
    "plan_tables",
    "run_plan",
    "stack",
]
