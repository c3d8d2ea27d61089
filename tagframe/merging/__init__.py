"""Plans carried out: merges that account for every row, and tables of one shape stacked."""

from tagframe.merging.execution import run_plan
from tagframe.merging.frames import infer_keys, join_plan, merge, merge_frames_with_report
from tagframe.merging.report import MergeReport, StepReport
from tagframe.merging.stacking import stack

__all__ = [
    "MergeReport",
    "StepReport",
    "infer_keys",
    "join_plan",
    "merge",
    "merge_frames_with_report",
    "run_plan",
    "stack",
]
