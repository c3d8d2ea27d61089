"""Words of a question that occur in cells, for ``syn``'s prompt: their columns, and their spelling in the data."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from tagframe.answer.cell_literals import CellLiterals, cell_literals
from tagframe.answer.guard import Reader
from tagframe.answer.query import Query
from tagframe.answer.schema_text import sql_name
from tagframe.corpus import Corpus, TableProfile
from tagframe.corpus.canonical import canonical, hash_texts
from tagframe.engines.base import SQLLimits, quoted
from tagframe.errors import SQLFailed, UnsafeSQL
from tagframe.retrieval import Question
from tagframe.retrieval.cell_values import ValueIndex, cells_of

_MOST = 8
_NUMBER = re.compile(r"[-+]?[\d.,]+%?")
_MONTHS = frozenset(name.casefold() for name in (*calendar.month_name, *calendar.month_abbr) if name)
_LIMITS = SQLLimits(rows=10, seconds=2.0)
_MOST_ROWS = 1_000_000
"""The spelling of a value is looked up in tables with at most this many rows."""


def matched_cells(request: str, query: Query, reader: Reader) -> list[str]:
    """The words of a request that occur in cells of the tables: ``schools.County and schools.City have 'Riverside'``.

    A line names every column of a table that holds the value, or only those that spell it as the request does. Numbers
    and single letters are left out unless they stand in quotation marks, and so is a month that is not among months.

    Args:
        request: the question.
        query: the tables that are shown.
        reader: that reads them.
    """
    names = {id: name for name, id in query.tables.items()}
    dialect, lines = reader.engine.dialect.name, []
    by_value: dict[tuple[str, str], str] = {}
    for id, column, words in _found(request, query, reader.corpus):
        by_value.setdefault((id, words), column)
    for (id, words), first in by_value.items():
        if (len(words) < 2 or _NUMBER.fullmatch(words)) and not re.search(f"['\"]{re.escape(words)}['\"]", request):
            continue
        if words.casefold().rstrip("s") == reader.corpus.profile(id).name.casefold().rstrip("s"):
            continue  # the table itself is meant
        holders = _holding(words, names[id], id, first, reader)
        exact = [column for column, literal in holders.items() if literal == _literal(words)]
        by_literal: dict[str, list[str]] = {}
        for column in exact or holders:
            by_literal.setdefault(holders[column], []).append(column)
        for literal, columns in by_literal.items():
            described = [f"{sql_name(names[id], dialect)}.{sql_name(column, dialect)}" for column in columns]
            lines.append(f"{' and '.join(described)} {'has' if len(described) == 1 else 'have'} {literal}")
    return list(dict.fromkeys(lines))[:_MOST]


def _found(request: str, query: Query, corpus: Corpus) -> Iterator[tuple[str, str, str]]:
    """Table, column and words."""
    profiles = [corpus.profile(id) for id in query.tables.values()]
    hits = ValueIndex(profiles).hits(Question.of(request))
    for position, profile in enumerate(profiles):
        yield from ((profile.id, column, words) for column, words in cells_of(hits, position, profile))


def _holding(words: str, name: str, id: str, first: str, reader: Reader) -> dict[str, str]:
    """The columns of a table that hold the words, and the words as a literal that is spelled as in the column.

    Args:
        words: as in the question.
        name: of the table in SQL.
        id: of the table.
        first: a column that is known to hold them.
        reader: of the tables.
    """
    corpus, target = reader.corpus, canonical(words)[0] or ""
    profile, key = corpus.profile(id), hash_texts([target])
    stored, holders, unknown = cell_literals(corpus, profile), dict[str, str](), list[str]()
    for column in profile.columns:
        sketch = column.sketch
        if column.private or (column.name != first and (column.family != "text" or sketch is None)):
            continue
        if column.name != first and sketch is not None and sketch.complete and not np.isin(key, sketch.hashes).all():
            continue
        known = stored.get(column.name, CellLiterals())
        months = sum(value.strip("'").casefold() in _MONTHS for value in known.values)
        if words.casefold() in _MONTHS and months * 2 < len(known.values):
            continue
        same = [value for value in known.values if canonical(value.strip("'").replace("''", "'"))[0] == target]
        if same:
            holders[column.name] = min(same, key=lambda value: value != _literal(words))
        elif not known.complete or column.name == first:
            unknown.append(column.name)
    spelled = _looked_up(words, name, profile, [one for one in unknown if profile.column(one).family == "text"], reader)
    plain = {column: _literal(words) for column in unknown if column == first and column not in spelled}
    found = {**holders, **spelled, **plain}
    return {column.name: found[column.name] for column in profile.columns if column.name in found}


def _looked_up(words: str, name: str, profile: TableProfile, columns: Sequence[str], reader: Reader) -> dict[str, str]:
    """Of these columns, those that hold the words, and how; none if a lookup is not cheap."""
    engine, plain = reader.corpus.engine(profile.id), _literal(words)
    if engine is None or engine.is_copied or (profile.rows or 0) > _MOST_ROWS or not columns:
        return {}
    if engine != reader.engine:
        return {}
    cells = [quoted(column) for column in columns]
    found = [
        f"coalesce(max(CASE WHEN {cell} = {plain} THEN {cell} END), "
        f"max(CASE WHEN lower({cell}) = lower({plain}) THEN {cell} END)) AS v{position}"
        for position, cell in enumerate(cells)
    ]
    try:
        row = reader.run(f"SELECT {', '.join(found)} FROM {quoted(name)}", _LIMITS).iloc[0]
    except (SQLFailed, UnsafeSQL):
        return {}
    return {column: _literal(str(cell)) for column, cell in zip(columns, row, strict=True) if not pd.isna(cell)}


def _literal(words: str) -> str:
    return "'" + words.replace("'", "''") + "'"
