"""Semantic operators: a frame and an instruction in, a frame and each row's outcome out.

A new operator is a file with its steps, its record and its two public functions, and a line in :data:`OPERATORS`.
"""

from tagframe.operators.aggregate import AGG, asem_agg, sem_agg
from tagframe.operators.cascade import Cascade, CascadeReport
from tagframe.operators.drivers import arun, quote, run, run_many
from tagframe.operators.extract import EXTRACT, asem_extract, sem_extract
from tagframe.operators.filter import FILTER, RowsPerCall, asem_filter, sem_filter
from tagframe.operators.filters import FILTERS, asem_filters, sem_filters
from tagframe.operators.join import JOIN, ClaimPlan, ClaimReport, NoLabels, asem_join, plan_sem_join, sem_join
from tagframe.operators.limiting import LimitOrder
from tagframe.operators.map import MAP, SCORE, asem_map, asem_score, sem_map, sem_score
from tagframe.operators.operator import Operator
from tagframe.operators.outcome import OnError, Outcome
from tagframe.operators.search import SEARCH, SIM_JOIN, asem_search, asem_sim_join, sem_search, sem_sim_join
from tagframe.operators.steps import Step, gather, together
from tagframe.operators.topk import TOPK, asem_topk, sem_topk

OPERATORS = {
    record.name: record for record in (FILTER, FILTERS, TOPK, AGG, MAP, SCORE, EXTRACT, JOIN, SEARCH, SIM_JOIN)
}
"""All operators, by name."""

__all__ = [
    "OPERATORS",
    "Cascade",
    "CascadeReport",
    "ClaimPlan",
    "ClaimReport",
    "LimitOrder",
    "NoLabels",
    "OnError",
    "Operator",
    "Outcome",
    "RowsPerCall",
    "Step",
    "arun",
    "asem_agg",
    "asem_extract",
    "asem_filter",
    "asem_filters",
    "asem_join",
    "asem_map",
    "asem_score",
    "asem_search",
    "asem_sim_join",
    "asem_topk",
    "gather",
    "plan_sem_join",
    "quote",
    "run",
    "run_many",
    "sem_agg",
    "sem_extract",
    "sem_filter",
    "sem_filters",
    "sem_join",
    "sem_map",
    "sem_score",
    "sem_search",
    "sem_sim_join",
    "sem_topk",
    "together",
]
