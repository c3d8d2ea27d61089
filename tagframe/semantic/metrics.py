"""Metrics of semantic models that a question names, for ``syn``'s prompt and for agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tagframe.corpus import Corpus
from tagframe.corpus.corpus import fact_store
from tagframe.corpus.documents import identifier_words
from tagframe.corpus.facts import Metric
from tagframe.engines.registry import DIALECTS
from tagframe.operators.cells import one_line
from tagframe.retrieval.words import stem, words_in
from tagframe.semantic.ossie import SQL, tree_of

MOST = 8
"""The most metrics that are given for a question."""


def metrics_of(corpus: Corpus) -> list[Metric]:
    """The metrics over tables of a corpus; those that read columns that it does not have are left out."""
    models = fact_store(corpus).facts.semantic
    found = [metric for model in models for metric in model.metrics if _is_there(metric, corpus)] if models else []
    return list({(one.name, str(one.definition)): one for one in found}.values())


def _is_there(metric: Metric, corpus: Corpus) -> bool:
    if not all(id in corpus for id in metric.sources.values()):
        return False
    seen = {(id, one.name) for id in {*metric.sources.values()} for one in corpus.profile(id).for_prompts}
    return seen.issuperset(metric.reads)


def metrics_named(question: str, corpus: Corpus) -> tuple[Metric, ...]:
    """The metrics that a question names, by their names or synonyms; a longer name counts more than one inside it."""
    names = [
        (words, metric)
        for metric in metrics_of(corpus)
        for name in (metric.name, *metric.synonyms)
        if (words := [stem(word) for word in identifier_words(name)])
    ]
    queried = [stem(piece) for word in words_in(question) for piece in identifier_words(word.text)] if names else []
    found: list[Metric] = []
    at = 0
    while at < len(queried):
        here = [(len(words), metric) for words, metric in names if queried[at : at + len(words)] == words]
        longest = max((size for size, _ in here), default=1)
        found += [metric for size, metric in here if size == longest and metric not in found]
        at += longest
    return tuple(found[:MOST])


def sql_of(metric: Metric, tables: Mapping[str, str], dialect: str) -> str | None:
    """The expression in an engine's dialect; None if it is not SQL, or reads another table.

    Args:
        metric: whose.
        tables: name in SQL → table id.
        dialect: of the engine.
    """
    from sqlglot import exp

    names = {id: name for name, id in tables.items()}
    if metric.dialect not in SQL or not {*metric.sources.values()} <= {*names}:
        return None
    tree = tree_of(metric.expression, metric.dialect)
    of_source = {source.casefold(): names[id] for source, id in metric.sources.items()}
    for column in tree.find_all(exp.Column):
        if column.table:
            column.set("table", exp.to_identifier(of_source[column.table.casefold()]))
    return tree.sql(dialect=dialect if dialect in DIALECTS else "")


def metric_lines(metrics: Iterable[Metric], tables: Mapping[str, str], dialect: str) -> list[str]:
    """The definitions of metrics over tables that are shown, a line each.

    Args:
        metrics: to define.
        tables: name in SQL → table id.
        dialect: of the engine that runs statements.
    """
    lines = []
    for metric in metrics:
        expression = sql_of(metric, tables, dialect)
        if expression is None and metric.dialect not in SQL:
            expression = f"{metric.expression} (in {metric.dialect})"
        if expression is not None:
            remarks = "; ".join(filter(None, [metric.description, f"of {metric.model}"]))
            lines.append(one_line(f"{metric.name} = {expression}  -- {remarks}"))
    return lines
