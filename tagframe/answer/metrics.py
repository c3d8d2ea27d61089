"""Metrics of semantic models that a question names, for ``syn``'s prompt and for agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tagframe.corpus import Corpus
from tagframe.corpus.corpus import fact_store
from tagframe.corpus.documents import identifier_words
from tagframe.corpus.semantic_model import Metric
from tagframe.engines.registry import DIALECTS
from tagframe.engines.sql_reader import first_tree
from tagframe.operators.cells import one_line
from tagframe.retrieval.words import stem, words_in
from tagframe.semantic.ossie import SQL, tree_of

if TYPE_CHECKING:
    from sqlglot import exp

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
    metrics = metrics_of(corpus)
    if not metrics:
        return ()
    queried = [stem(piece) for word in words_in(question) for piece in identifier_words(word.text)]
    spans: list[tuple[int, int, Metric]] = []
    for metric in metrics:
        for name in (metric.name, *metric.synonyms):
            words = [stem(word) for word in identifier_words(name)]
            size = len(words)
            spans += [
                (at, at + size, metric)
                for at in range(len(queried) - size + 1)
                if size and queried[at : at + size] == words
            ]
    whole = [
        (start, metric)
        for start, end, metric in spans
        if not any(one <= start and end <= other and other - one > end - start for one, other, _ in spans)
    ]
    ordered = [metric for _, metric in sorted(whole, key=lambda one: one[0])]
    return tuple(metric for place, metric in enumerate(ordered) if metric not in ordered[:place])[:MOST]


def is_called_as_data(metric: Metric, corpus: Corpus) -> bool:
    """Whether a name of a metric is that of its table or of a column, too: a question may then mean these."""
    profiles = [corpus.profile(id) for id in metric.sources.values()]
    names = {_spoken(name) for one in profiles for name in (one.name, *(column.name for column in one.columns))}
    return not names.isdisjoint(map(_spoken, (metric.name, *metric.synonyms)))


def defined_twice(metrics: Sequence[Metric]) -> list[str]:
    """The metrics whose name, or one of whose names, stands for another definition, too; a sentence each."""
    named: dict[str, list[Metric]] = {}
    for metric in metrics:
        for name in {_spoken(name) for name in (metric.name, *metric.synonyms)}:
            named.setdefault(name, []).append(metric)
    remarks = {
        f"the metric {name!r} is defined {len(several)} times: {'; '.join(map(str, several))}": None
        for name, several in named.items()
        if len({metric.definition for metric in several}) > 1
    }
    return list(remarks)


def _spoken(name: str) -> str:
    return " ".join(map(stem, identifier_words(name)))


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


def uses(sql: str, metric: Metric, dialect: str) -> bool | None:
    """Whether a statement has the aggregates of a metric's expression; None if that cannot be told."""
    from sqlglot import exp

    if metric.dialect not in SQL:
        return None
    tree = tree_of(metric.expression, metric.dialect)
    statement = first_tree(sql, dialect if dialect in DIALECTS else "")
    if statement is None:
        return None
    wanted = [node for node in tree.find_all(exp.AggFunc) if node.find_ancestor(exp.AggFunc) is None]
    there = {_bare(node) for node in statement.find_all(exp.AggFunc)}
    return bool(wanted) and all(_bare(node) in there for node in wanted)


def _bare(node: exp.Expr) -> str:
    """An expression without the names of tables, casts, quotes and case."""
    from sqlglot import exp

    def put(one: exp.Expr) -> exp.Expr:
        if isinstance(one, exp.Column) and not isinstance(one.this, exp.Star):
            return exp.column(one.name.casefold())
        return one.this if isinstance(one, exp.Paren | exp.Cast) else one

    return node.copy().transform(put).sql().casefold()
