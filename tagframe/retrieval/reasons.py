"""Why each table was chosen: its words, values, columns and joins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tagframe.keys import evidence_share
from tagframe.retrieval.cell_values import ValueHit, cells_of
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.method import Prepared
from tagframe.retrieval.problem import LINKED, Selection
from tagframe.retrieval.question import Question

_MOST_REASONS = 3


def reasons_for(
    index: RetrievalIndex, question: Question, prepared: Prepared[Any], selection: Selection, anchored: int | None
) -> list[list[str]]:
    """The reasons of each chosen table, in the order of the selection: its words, values, columns and joins."""
    chosen = [prepared.tables[position] for position in selection.indices]
    together = chosen if anchored is None else [*chosen, anchored]
    hits = () if prepared.evidence is None else prepared.evidence.values
    return [
        _words(index, table, question.stems)
        + _values(index, table, hits)
        + _columns(index, question, table, prepared)
        + _joins(index, table, together)
        for table in chosen
    ]


def _values(index: RetrievalIndex, table: int, hits: Sequence[ValueHit]) -> list[str]:
    reasons = []
    inside = [hit for hit in hits if table in hit.tables]
    for hit, (column, words) in zip(inside, cells_of(hits, table, index.tables[table]), strict=True):
        here = [other for other in hit.tables if index.database[other] == index.database[table]]
        # "found", since only a sample of a large column's values is known
        alone = ", found in no other table" if hit.is_name and here == [table] else ""
        instead = "" if hit.text == words else f" (for {hit.text!r})"
        reasons.append(f"{words!r} is in {column}{instead}{alone}")
    return reasons[:_MOST_REASONS]


def _words(index: RetrievalIndex, table: int, stems: Sequence[str]) -> list[str]:
    shared = index.lexical.words_of(table, stems)
    return [f"named in the question: {', '.join(shared[:_MOST_REASONS])}"] if shared else []


def _columns(index: RetrievalIndex, question: Question, table: int, prepared: Prepared[Any]) -> list[str]:
    columns = index.tables[table].columns
    if prepared.subqueries and columns:
        _, (scores,) = index.fine(prepared.subqueries, [table])
        query, column = divmod(int(scores.argmax()), scores.shape[1])
        part, value = prepared.subqueries[query], float(scores[query, column])
    elif prepared.evidence is not None and (fit := index.best_fit(question, table)) is not None:
        part, column, value = fit
    else:
        return []
    return [f"{columns[column].name} fits {part!r} ({value:.2f})"] if value > 0 else []


def _joins(index: RetrievalIndex, table: int, together: Sequence[int]) -> list[str]:
    reasons = []
    for other in together:
        key = index.links.best(table, other) if other != table else None
        if key is not None and evidence_share(key.score) >= LINKED:
            columns, other_id = (
                (key.left_columns, key.right_table)
                if key.left_table == index.tables[table].id
                else (key.right_columns, key.left_table)
            )
            reasons.append((-key.score, f"joins {other_id} on {', '.join(columns)}"))
    return [text for _, text in sorted(reasons)[:_MOST_REASONS]]
