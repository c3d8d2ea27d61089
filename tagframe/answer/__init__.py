"""Table-augmented generation: ``syn`` writes a query, ``exec`` runs it, ``gen`` answers from the rows."""

from tagframe.answer.answer import Answer
from tagframe.answer.ask import answer, ask
from tagframe.answer.query import OperatorCall, Query
from tagframe.answer.sql import SQLLimits, check_sql
from tagframe.answer.tag import TAG

__all__ = ["TAG", "Answer", "OperatorCall", "Query", "SQLLimits", "answer", "ask", "check_sql"]
