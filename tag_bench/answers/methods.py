"""The paper's five methods (Biswal et al., CIDR 2025, section 4.2 and appendix C) and ours."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import tagframe as tf
from pipelines import PIPELINES, Tables
from tag_bench import baselines
from tag_bench.answers.databases import Databases, Question
from tag_bench.answers.records import answered, unanswered
from tag_bench.records import Record, model_name
from tagframe.answer import Generated
from tagframe.errors import ReplayMiss
from tagframe.lm import total_usage

DEVIATIONS = {
    "TAG: appendix C": "the pipelines are our own, with tagframe's operators in place of those of LOTUS",
    "TAG: section 4.1, time": "not printed: what counts; opening a database and making the vectors of its rows do not",
}
"""What is not as printed, or not printed, by paper and place; ``docs/papers.md`` has the same."""


def record_of(method: Method, question: Question, databases: Databases) -> Record:
    """The record of a question; that of a failed one has its error, so that all others are asked.

    Its seconds are those of section 4.1: opening a database and making the vectors of its rows do not count. Warnings
    are in the record.
    """
    if missing := databases.missing(question):
        return unanswered(question, "not_run", missing)
    databases.corpus(question.database)  # opened beforehand: the paper's time is that of a question
    before, began = total_usage(), time.perf_counter()
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            record = answered(question, method(question, databases))
    except ReplayMiss as error:
        record = unanswered(question, "error", f"ReplayMiss: {error}", missing=True)
    except Exception as error:
        record = unanswered(question, "error", f"{type(error).__name__}: {error}")
    seconds, after = time.perf_counter() - began, total_usage()
    prompts = after.prompts - before.prompts
    is_live = after.stored == before.stored and not (model_name(None) or "").startswith("replay:")
    tokens = after.tokens_in + after.tokens_out - before.tokens_in - before.tokens_out
    return {
        **record,
        "seconds": round(seconds, 4) if is_live else None,
        "calls": prompts - (after.deduplicated - before.deduplicated),
        "tokens": tokens if is_live else None,
        "rows_asked": prompts,
        "warnings": list(dict.fromkeys(f"{one.category.__name__}: {one.message}" for one in warned)),
    }


Method: TypeAlias = Callable[[Question, Databases], tf.Answer | Generated]


def handwritten(question: Question, databases: Databases) -> Generated:
    """The question's hand-written pipeline in :mod:`pipelines`."""
    answer = PIPELINES[question.id](Tables(databases.corpus(question.database)))
    if question.type == "aggregation" and isinstance(answer, str):
        return Generated(answer)
    return Generated("", answer if isinstance(answer, list) else [answer])


def ask(question: Question, databases: Databases) -> tf.Answer:
    """:func:`tagframe.ask`."""
    return tf.ask(question.text, databases.corpus(question.database))


def text2sql(question: Question, databases: Databases) -> tf.Answer:
    """SQL over all tables, with BIRD's prompt; its rows are the answer."""
    return baselines.text2sql(databases.corpus(question.database))(question.text)


def text2sql_lm(question: Question, databases: Databases) -> tf.Answer:
    """SQL for the relevant rows, from which the model answers (with appendix B.2's prompts, as RAG does)."""
    corpus = databases.corpus(question.database)
    sql = baselines.text2sql(corpus)
    syn = _Instead(sql.syn, question.retrieval)
    gen = baselines.rag(corpus, aggregate=question.type == "aggregation").gen
    return tf.TAG(syn, sql.exec, gen)(question.text)


def rag(question: Question, databases: Databases) -> tf.Answer:
    """The model answers from the ten rows with the nearest embeddings."""
    return _nearest(question, databases, rerank=False)(question.text)


def rerank(question: Question, databases: Databases) -> tf.Answer:
    """RAG, with rows sorted by the model's relevance scores."""
    return _nearest(question, databases, rerank=True)(question.text)


def _nearest(question: Question, databases: Databases, *, rerank: bool) -> tf.TAG:
    """RAG over a database, whose rows are embedded once."""
    tag = baselines.rag(databases.corpus(question.database), aggregate=question.type == "aggregation")
    searched = databases.nearest_rows(question.database)
    return replace(tag, exec=replace(searched, rerank=rerank))


@dataclass(frozen=True)
class _Instead:
    """A ``syn`` that gets another request than the question."""

    syn: Any
    request: str

    def __call__(self, request: str) -> Any:
        return self.syn(self.request)

    def steps(self, request: str) -> Any:
        """As for ``syn``."""
        return self.syn.steps(self.request)


METHODS: Mapping[str, Method] = {
    "text2sql": text2sql,
    "rag": rag,
    "rerank": rerank,
    "text2sql_lm": text2sql_lm,
    "handwritten": handwritten,
    "ask": ask,
}

OF_ROWS = ("rag", "rerank")
"""The methods that search rows by their vectors."""
