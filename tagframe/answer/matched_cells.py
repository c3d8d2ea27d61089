"""Words of a question that occur in cells, for ``syn``'s prompt: their columns, and their spelling in the data."""

from __future__ import annotations

from collections.abc import Iterator

from tagframe.answer.guard import Reader
from tagframe.answer.query import Query
from tagframe.answer.schema_text import NAMES_ALONE, sql_name
from tagframe.answer.stored import stored_columns
from tagframe.corpus import Corpus
from tagframe.corpus.canonical import canonical
from tagframe.engines.base import SQLLimits, quoted
from tagframe.engines.rows_only import RowsOnly
from tagframe.errors import SQLFailed, UnsafeSQL
from tagframe.retrieval import Question
from tagframe.retrieval.cell_values import ValueIndex, cells_of

_MOST = 8
_LIMITS = SQLLimits(rows=10, seconds=2.0)
_MOST_ROWS = 1_000_000
"""The spelling of a value is looked up in tables with at most this many rows."""


def matched_cells(request: str, query: Query, reader: Reader) -> list[str]:
    """The words of a request that occur in cells of the tables, one line each: ``venues.city has 'Turin'``.

    Args:
        request: the question.
        query: the tables that are shown.
        reader: that reads them.
    """
    names = {id: name for name, id in query.tables.items()}
    dialect, lines = reader.engine.dialect.name, []
    for id, column, words in _found(request, query, reader.corpus):
        profile = reader.corpus.profile(id)
        if profile.column(column).for_models:
            literal = _spelled(words, names[id], id, column, reader)
            lines.append(f"{sql_name(names[id], dialect)}.{sql_name(column, dialect)} has {literal}")
    return list(dict.fromkeys(lines))[:_MOST]


def _found(request: str, query: Query, corpus: Corpus) -> Iterator[tuple[str, str, str]]:
    """Table, column and words, the likeliest tables first."""
    if query.retrieved is not None:
        for hit in query.retrieved.tables:
            if hit.id in query.tables.values() and (hit.probability is None or hit.probability >= NAMES_ALONE):
                yield from ((hit.id, column, words) for column, words in hit.cells)
        return
    profiles = [corpus.profile(id) for id in query.tables.values()]
    hits = ValueIndex(profiles).hits(Question.of(request))
    for position, profile in enumerate(profiles):
        yield from ((profile.id, column, words) for column, words in cells_of(hits, position, profile))


def _spelled(words: str, name: str, id: str, column: str, reader: Reader) -> str:
    """The words as a literal, spelled as in the column if a lookup is cheap."""
    corpus, meant = reader.corpus, canonical(words)[0]
    profile = corpus.profile(id)
    stored = stored_columns(corpus, profile).get(column)
    for literal in () if stored is None else stored.values:
        if canonical(literal.strip("'").replace("''", "'"))[0] == meant:
            return literal
    plain = "'" + words.replace("'", "''") + "'"
    engine = corpus.engine(id)
    if engine is None or isinstance(engine, RowsOnly) or (profile.rows or 0) > _MOST_ROWS:
        return plain
    if engine != reader.engine or profile.column(column).family != "text":
        return plain
    table = quoted(name)
    sql = f"SELECT DISTINCT {quoted(column)} AS v FROM {table} WHERE lower({quoted(column)}) = lower({plain}) LIMIT 2"
    try:
        rows = reader.run(sql, _LIMITS)
    except (SQLFailed, UnsafeSQL):
        return plain
    return "'" + str(rows["v"].iloc[0]).replace("'", "''") + "'" if len(rows) else plain
