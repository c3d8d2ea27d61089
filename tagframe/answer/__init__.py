"""Table-augmented generation: ``syn`` writes a query, ``exec`` runs it, ``gen`` answers from the rows."""

from tagframe.answer.alternatives import Doubt
from tagframe.answer.answer import Answer, Generated, StepUse
from tagframe.answer.ask import aask, ask, ask_many, automatic
from tagframe.answer.execution import ExecSQL, Execution, exec_sql
from tagframe.answer.generation import Generator, one_value
from tagframe.answer.guard import check_sql
from tagframe.answer.query import Query
from tagframe.answer.synthesis import Synthesizer
from tagframe.answer.tag import TAG, Exec, Gen, Syn
from tagframe.engines.base import SQLLimits

__all__ = [
    "TAG",
    "Answer",
    "Doubt",
    "Exec",
    "ExecSQL",
    "Execution",
    "Gen",
    "Generated",
    "Generator",
    "Query",
    "SQLLimits",
    "StepUse",
    "Syn",
    "Synthesizer",
    "aask",
    "ask",
    "ask_many",
    "automatic",
    "check_sql",
    "exec_sql",
    "one_value",
]
