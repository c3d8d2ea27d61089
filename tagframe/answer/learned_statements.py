"""Learned statements for ``syn``: the examples in its prompt, and the statements that a person gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tagframe.answer.query import Query, names_in_sql
from tagframe.corpus import Corpus, vectors_of
from tagframe.corpus.corpus import private_of, statements_of
from tagframe.corpus.statements import Statement, spoken
from tagframe.embed import encoded, get_embedder
from tagframe.learning.reading import Names, read_statement, with_names
from tagframe.operators.cells import one_line

MOST_EXAMPLES = 3
"""The most examples that are shown."""

NEAR = 0.5
"""The lowest cosine similarity of a question whose statement is shown."""


def examples_for(request: str, corpus: Corpus, tables: Mapping[str, str], dialect: str) -> list[str]:
    """The nearest questions whose statements read tables that are shown, with their SQL: two lines each.

    If two have the same SQL, the nearer one is shown. Statements with private columns are left out.

    Args:
        request: the question.
        corpus: that has the statements.
        tables: that are shown: name in SQL → table id.
        dialect: of the statement to be written.
    """
    private, visible = private_of(corpus), {*tables.values()}
    usable = [
        one
        for one in statements_of(corpus)
        if one.question and one.text and visible.issuperset(one.tables) and not one.reads(private)
    ]
    embedder = get_embedder() if usable else None
    if embedder is None:
        return []
    vectors, rows = vectors_of(corpus).encode(embedder, [one.question for one in usable])
    near = vectors[rows] @ encoded(embedder, [request], "query")[0]
    names, called, lines = Names(corpus), {id: name for name, id in tables.items()}, dict[str, str]()
    for position in np.argsort(-near, kind="stable").tolist():
        if near[position] < NEAR or len(lines) == MOST_EXAMPLES:
            break
        one = usable[position]
        sql = with_names(one.text, one.tables, names, called, dialect)
        if sql is not None:
            lines.setdefault(one_line(sql), one_line(one.question))
    return [line for sql, question in lines.items() for line in (f"-- {question}", sql)]


def answered(request: str, corpus: Corpus) -> Query | None:
    """The statement that a person confirmed for exactly this question; None if there is none."""
    remarks = [
        one
        for one in statements_of(corpus)
        if one.by == "user" and one.text and spoken(one.question) == spoken(request)
    ]
    return Query(remarks[-1].text, names_in_sql(map(corpus.profile, remarks[-1].tables))) if remarks else None


def right_statement(question: str, sql: str, corpus: Corpus, dialect: str) -> Statement:
    """Learn a statement that a person gave as the answer to a question.

    Raises:
        UnreadStatement: it cannot be parsed, or reads tables that do not exist.
    """
    read = read_statement(sql, Names(corpus), [dialect], cells=True)
    return replace(read, question=question.strip(), cells=sql.strip().rstrip(";"), by="user", runs={"": 1})
