"""LM functions in SQL: a statement that calls a model is run in stages; each stage asks only about distinct values.

``calls`` finds the functions of a statement, ``blocks`` takes a query block apart and refuses what cannot be staged,
``staging`` asks the model, keeps its answers, and runs the statement.
"""

from tagframe.answer.lm_sql.blocks import check_staged
from tagframe.answer.lm_sql.calls import FUNCTIONS, has_functions
from tagframe.answer.lm_sql.staging import Done, Staged, StageReport

__all__ = ["FUNCTIONS", "Done", "StageReport", "Staged", "check_staged", "has_functions"]
