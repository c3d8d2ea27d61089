"""From a question and a corpus to the tables that answer it together."""

from tagframe.retrieval.problem import Selection, SelectionProblem
from tagframe.retrieval.result import RetrievedTables, TableHit
from tagframe.retrieval.retrieve import METHODS, retrieve_tables

__all__ = ["METHODS", "RetrievedTables", "Selection", "SelectionProblem", "TableHit", "retrieve_tables"]
