"""Semantic operators: a frame and an instruction in, a frame and each row's outcome out.

To add an operator, write a file that declares it (:func:`tagframe.operators.operator.declare`), add the file's name to
the import below, and run ``python tools/write_stubs.py``, which writes the stubs for type checkers.
"""

from typing import TYPE_CHECKING

from tagframe.lm.blocks import FENCE_RULE, fence
from tagframe.operators import aggregate, dedup, extract, filter, join, map, search, topk  # noqa: F401  # the declarations
from tagframe.operators.cascade import Cascade, CascadeReport
from tagframe.operators.cells import encode_rows
from tagframe.operators.drivers import Step, arun, gather, quote, run, run_many, together
from tagframe.operators.instruction import FIELD_RULE, Instruction
from tagframe.operators.join import ClaimPlan, ClaimReport, NoLabels, plan_sem_join
from tagframe.operators.map import known
from tagframe.operators.operator import OPERATORS, Operator, declare
from tagframe.operators.outcome import AddedColumn, OnError, Outcome, finish
from tagframe.operators.packing import LimitOrder, RowsPerCall

if TYPE_CHECKING:
    from tagframe.operators.functions import *  # noqa: F403
else:
    from tagframe.operators.functions import __getattr__ as __getattr__

__all__ = [
    "FENCE_RULE",
    "FIELD_RULE",
    "OPERATORS",
    "AddedColumn",
    "Cascade",
    "CascadeReport",
    "ClaimPlan",
    "ClaimReport",
    "Instruction",
    "LimitOrder",
    "NoLabels",
    "OnError",
    "Operator",
    "Outcome",
    "RowsPerCall",
    "Step",
    "arun",
    "declare",
    "encode_rows",
    "fence",
    "finish",
    "gather",
    "known",
    "plan_sem_join",
    "quote",
    "run",
    "run_many",
    "together",
]
