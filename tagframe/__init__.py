"""tagframe: questions that need several tables and judgement, answered from pandas.

>>> import tagframe as tf
>>> corpus = tf.open_corpus("bank.sqlite")  # doctest: +SKIP
>>> found = corpus.tables.tag.retrieve_tables("Which female account holders have a gold card?")  # doctest: +SKIP
>>> found.merge().tag.sem_filter("{district} is in Bohemia")  # doctest: +SKIP

Importing this module registers ``df.tag`` and loads nothing heavier than pandas; rooms load at first use.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from tagframe import accessor as accessor  # registers df.tag
from tagframe.config import configure, context

if TYPE_CHECKING:
    from tagframe.answer import TAG, Answer, SQLLimits, aask, ask, ask_many, exec_sql, rag, text2sql
    from tagframe.corpus import Corpus, open_corpus
    from tagframe.engines.file_batches import read_batches
    from tagframe.lm import LM, Budget, Price, Prompt, RetryPolicy, usage
    from tagframe.merging import stack
    from tagframe.merging.frames import infer_keys, join_plan, merge
    from tagframe.operators import (
        Cascade,
        asem_agg,
        asem_extract,
        asem_filter,
        asem_filters,
        asem_join,
        asem_map,
        asem_score,
        asem_search,
        asem_sim_join,
        asem_topk,
        plan_sem_join,
        sem_agg,
        sem_extract,
        sem_filter,
        sem_filters,
        sem_join,
        sem_map,
        sem_score,
        sem_search,
        sem_sim_join,
        sem_topk,
    )

__version__ = "0.1.0"

if "dask.dataframe" in sys.modules:
    importlib.import_module("tagframe.dask")  # registers ddf.tag

# Public name → where it is, and what it is called there; loaded at first use.
_HOMES = {
    "Answer": ("tagframe.answer", "Answer"),
    "Budget": ("tagframe.lm", "Budget"),
    "Cascade": ("tagframe.operators", "Cascade"),
    "Corpus": ("tagframe.corpus", "Corpus"),
    "LM": ("tagframe.lm", "LM"),
    "Price": ("tagframe.lm", "Price"),
    "Prompt": ("tagframe.lm", "Prompt"),
    "RetryPolicy": ("tagframe.lm", "RetryPolicy"),
    "SQLLimits": ("tagframe.answer", "SQLLimits"),
    "TAG": ("tagframe.answer", "TAG"),
    "aask": ("tagframe.answer", "aask"),
    "asem_agg": ("tagframe.operators", "asem_agg"),
    "asem_extract": ("tagframe.operators", "asem_extract"),
    "asem_filter": ("tagframe.operators", "asem_filter"),
    "asem_join": ("tagframe.operators", "asem_join"),
    "asem_filters": ("tagframe.operators", "asem_filters"),
    "asem_map": ("tagframe.operators", "asem_map"),
    "asem_score": ("tagframe.operators", "asem_score"),
    "asem_search": ("tagframe.operators", "asem_search"),
    "asem_sim_join": ("tagframe.operators", "asem_sim_join"),
    "asem_topk": ("tagframe.operators", "asem_topk"),
    "ask": ("tagframe.answer", "ask"),
    "ask_many": ("tagframe.answer", "ask_many"),
    "exec_sql": ("tagframe.answer", "exec_sql"),
    "infer_keys": ("tagframe.merging", "infer_keys"),
    "join_plan": ("tagframe.merging", "join_plan"),
    "merge": ("tagframe.merging", "merge"),
    "open_corpus": ("tagframe.corpus", "open_corpus"),
    "plan_sem_join": ("tagframe.operators", "plan_sem_join"),
    "rag": ("tagframe.answer", "rag"),
    "read_batches": ("tagframe.engines.file_batches", "read_batches"),
    "sem_agg": ("tagframe.operators", "sem_agg"),
    "sem_extract": ("tagframe.operators", "sem_extract"),
    "sem_filter": ("tagframe.operators", "sem_filter"),
    "sem_join": ("tagframe.operators", "sem_join"),
    "sem_filters": ("tagframe.operators", "sem_filters"),
    "sem_map": ("tagframe.operators", "sem_map"),
    "sem_score": ("tagframe.operators", "sem_score"),
    "sem_search": ("tagframe.operators", "sem_search"),
    "sem_sim_join": ("tagframe.operators", "sem_sim_join"),
    "sem_topk": ("tagframe.operators", "sem_topk"),
    "stack": ("tagframe.merging", "stack"),
    "text2sql": ("tagframe.answer", "text2sql"),
    "usage": ("tagframe.lm", "usage"),
}

__all__ = [
    "LM",
    "TAG",
    "Answer",
    "Budget",
    "Cascade",
    "Corpus",
    "Price",
    "Prompt",
    "RetryPolicy",
    "SQLLimits",
    "aask",
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
    "ask",
    "ask_many",
    "configure",
    "context",
    "exec_sql",
    "infer_keys",
    "join_plan",
    "merge",
    "open_corpus",
    "plan_sem_join",
    "rag",
    "read_batches",
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
    "stack",
    "text2sql",
    "usage",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tagframe' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
