"""Finds the tables of a corpus that answer a question together."""

from tagframe.retrieval import methods as methods
from tagframe.retrieval.checked_plan import Proposal
from tagframe.retrieval.method import Prepared, Setup, all_tables, among_candidates, by_both, by_meaning, by_words
from tagframe.retrieval.methods import METHODS, Method, method_named, register
from tagframe.retrieval.problem import GreedyWeights, JarWeights, Selection, SelectionProblem
from tagframe.retrieval.question import Question
from tagframe.retrieval.retrieve import RetrieveOptions, retrieve_tables
from tagframe.retrieval.retrieved import RetrievedTables, TableHit

__all__ = [
    "METHODS",
    "GreedyWeights",
    "JarWeights",
    "Method",
    "Prepared",
    "Proposal",
    "Question",
    "RetrieveOptions",
    "RetrievedTables",
    "Selection",
    "SelectionProblem",
    "Setup",
    "TableHit",
    "all_tables",
    "among_candidates",
    "by_both",
    "by_meaning",
    "by_words",
    "method_named",
    "register",
    "retrieve_tables",
]
