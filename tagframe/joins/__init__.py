"""How a set of tables connects: the plan that joins them."""

from tagframe.joins.aggregates import Aggregate
from tagframe.joins.infer import accepted_keys, corpus_keys, keys_between, plan_tables
from tagframe.joins.key_text import On, keys_on
from tagframe.joins.plan import JoinPlan
from tagframe.joins.planner import MIN_CHANCE, plan_joins
from tagframe.joins.steps import How, JoinStep, MergeHow, PlanTable
from tagframe.keys.components import Components

__all__ = [
    "MIN_CHANCE",
    "Aggregate",
    "Components",
    "How",
    "JoinPlan",
    "JoinStep",
    "MergeHow",
    "On",
    "PlanTable",
    "accepted_keys",
    "corpus_keys",
    "keys_between",
    "keys_on",
    "plan_joins",
    "plan_tables",
]
