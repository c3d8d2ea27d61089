"""Why a table was chosen, in words."""

from __future__ import annotations

from collections.abc import Sequence

from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.lexical import table_terms
from tagframe.retrieval.links import LINKED
from tagframe.retrieval.problem import Selection
from tagframe.retrieval.words import terms

_MOST = 3


def reasons_for(
    index: RetrievalIndex,
    question: str,
    subqueries: Sequence[str],
    tables: Sequence[int],
    selection: Selection,
    anchored: int | None,
) -> list[list[str]]:
    """The reasons of each chosen table, in the order of the selection: its words, its columns, its joins."""
    asked = dict.fromkeys(terms(question))
    chosen = [tables[place] for place in selection.indices]
    together = chosen if anchored is None else [*chosen, anchored]
    return [
        _words(index, table, list(asked)) + _columns(index, table, subqueries) + _joins(index, table, together)
        for table in chosen
    ]


def _words(index: RetrievalIndex, table: int, asked: list[str]) -> list[str]:
    held = set(table_terms(index.tables[table]))
    shared = [word for word in asked if word in held]
    return [f"named in the question: {', '.join(shared[:_MOST])}"] if shared else []


def _columns(index: RetrievalIndex, table: int, subqueries: Sequence[str]) -> list[str]:
    if not subqueries or not index.tables[table].columns:
        return []
    _, (scores,) = index.fine(subqueries, [table])
    query, column = divmod(int(scores.argmax()), scores.shape[1])
    value = float(scores[query, column])
    name = index.tables[table].columns[column].name
    return [f"{name} fits {subqueries[query]!r} ({value:.2f})"] if value > 0 else []


def _joins(index: RetrievalIndex, table: int, together: Sequence[int]) -> list[str]:
    found = []
    for other in together:
        key = index.links.best(table, other) if other != table else None
        if key is not None and key.score >= LINKED:
            columns, other_id = (
                (key.left_columns, key.right_table)
                if key.left_table == index.tables[table].id
                else (key.right_columns, key.left_table)
            )
            found.append((-key.score, f"joins {other_id} on {', '.join(columns)}"))
    return [text for _, text in sorted(found)[:_MOST]]
