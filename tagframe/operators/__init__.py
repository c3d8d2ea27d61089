"""Semantic operators: a frame and an instruction in, a frame and each row's outcome out.

To add an operator, write a file that declares it (:func:`tagframe.operators.operator.declare`), add the file's name to
the import below, and run ``python tools/write_stubs.py``, which writes the stubs for type checkers.
"""

from typing import TYPE_CHECKING

from tagframe.blocks import FENCE_RULE as FENCE_RULE
from tagframe.blocks import fence as fence
from tagframe.operators import aggregate, dedup, extract, filter, join, map, search, topk  # noqa: F401  # the declarations
from tagframe.operators.cascade import Cascade as Cascade
from tagframe.operators.cascade import CascadeReport as CascadeReport
from tagframe.operators.cells import FIELD_RULE as FIELD_RULE
from tagframe.operators.cells import Instruction as Instruction
from tagframe.operators.cells import encode_rows as encode_rows
from tagframe.operators.drivers import Step as Step
from tagframe.operators.drivers import arun as arun
from tagframe.operators.drivers import gather as gather
from tagframe.operators.drivers import quote as quote
from tagframe.operators.drivers import run as run
from tagframe.operators.drivers import run_many as run_many
from tagframe.operators.drivers import together as together
from tagframe.operators.join import ClaimPlan as ClaimPlan
from tagframe.operators.join import ClaimReport as ClaimReport
from tagframe.operators.join import NoLabels as NoLabels
from tagframe.operators.join import plan_sem_join as plan_sem_join
from tagframe.operators.map import known as known
from tagframe.operators.operator import OPERATORS as OPERATORS
from tagframe.operators.operator import Operator as Operator
from tagframe.operators.operator import declare as declare
from tagframe.operators.outcome import AddedColumn as AddedColumn
from tagframe.operators.outcome import OnError as OnError
from tagframe.operators.outcome import Outcome as Outcome
from tagframe.operators.outcome import finish as finish
from tagframe.operators.packing import LimitOrder as LimitOrder
from tagframe.operators.packing import RowsPerCall as RowsPerCall

if TYPE_CHECKING:
    from tagframe.operators.functions import *  # noqa: F403
else:
    from tagframe.operators.functions import __getattr__ as __getattr__
