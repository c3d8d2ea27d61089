"""Finds the tables of a corpus that answer a question together."""

from tagframe.retrieval.column_problem import JarWeights
from tagframe.retrieval.methods import METHODS, Method
from tagframe.retrieval.methods.greedy import GreedyWeights
from tagframe.retrieval.problem import Selection, SelectionProblem
from tagframe.retrieval.question import Question
from tagframe.retrieval.retrieve import RetrieveOptions, retrieve_tables
from tagframe.retrieval.retrieved import RetrievedTables, TableHit

__all__ = [
    "METHODS",
    "GreedyWeights",
    "JarWeights",
    "Method",
    "Question",
    "RetrieveOptions",
    "RetrievedTables",
    "Selection",
    "SelectionProblem",
    "TableHit",
    "retrieve_tables",
]
