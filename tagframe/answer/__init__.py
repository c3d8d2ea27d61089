"""Table-augmented generation: ``syn`` writes a query, ``exec`` runs it, ``gen`` answers from the rows."""

from tagframe.answer.answer import Answer
from tagframe.answer.guard import check_sql
from tagframe.answer.query import OperatorCall, Query
from tagframe.answer.steps import aask, answer_from, answer_steps, ask
from tagframe.answer.tag import TAG
from tagframe.engines.base import SQLLimits

__all__ = [
    "TAG",
    "Answer",
    "OperatorCall",
    "Query",
    "SQLLimits",
    "aask",
    "answer_from",
    "answer_steps",
    "ask",
    "check_sql",
]
