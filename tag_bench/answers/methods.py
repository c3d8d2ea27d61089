"""The paper's five methods (Biswal et al., CIDR 2025, section 4.2) and ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import tagframe as tf
from pipelines import PIPELINES, Tables
from tag_bench.answers.databases import Databases
from tag_bench.answers.questions import Question
from tagframe.answer import Generated

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


def text2sql(question: Question, databases: Databases, *, repair: bool = False) -> tf.Answer:
    """SQL over all tables, with BIRD's prompt; its rows are the answer."""
    return tf.text2sql(databases.corpus(question.database), repair=repair)(question.text)


def text2sql_lm(question: Question, databases: Databases, *, repair: bool = False) -> tf.Answer:
    """SQL for the relevant rows, from which the model answers (with appendix B.2's prompts, as RAG does)."""
    corpus = databases.corpus(question.database)
    sql = tf.text2sql(corpus, repair=repair)
    syn = _Instead(sql.syn, question.retrieval)
    gen = tf.rag(corpus, aggregate=question.type == "aggregation").gen
    return tf.TAG(syn, sql.exec, gen)(question.text)


def rag(question: Question, databases: Databases) -> tf.Answer:
    """The model answers from the ten rows with the nearest embeddings."""
    return _nearest(question, databases, rerank=False)(question.text)


def rerank(question: Question, databases: Databases) -> tf.Answer:
    """RAG, with rows sorted by the model's relevance scores."""
    return _nearest(question, databases, rerank=True)(question.text)


def _nearest(question: Question, databases: Databases, *, rerank: bool) -> tf.TAG:
    """RAG over a database, whose rows are embedded once."""
    tag = tf.rag(databases.corpus(question.database), aggregate=question.type == "aggregation")
    searched = databases.nearest_rows(question.database)
    return replace(tag, exec=searched.reranked() if rerank else searched)


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

REPAIRED: Mapping[str, Method] = {
    "text2sql": partial(text2sql, repair=True),
    "text2sql_lm": partial(text2sql_lm, repair=True),
}
"""The methods again, for statements that do not compile: repaired once. The paper does not repair."""

OF_ROWS = ("rag", "rerank")
"""The methods that search rows by their vectors."""
