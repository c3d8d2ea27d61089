"""Words of a question that occur in cells, for a prompt over tables: their columns, and their spelling in the data."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Mapping, Sequence

from tagframe.corpus import Corpus, TableProfile
from tagframe.corpus.canonical import canonical
from tagframe.corpus.documents import identifier_words
from tagframe.retrieval.cell_literals import CellLiterals, cell_literals
from tagframe.retrieval.cell_values import ValueIndex, cells_of
from tagframe.retrieval.question import Question
from tagframe.retrieval.schema_text import sql_name
from tagframe.retrieval.words import stem, words_in

_MOST = 8
_LISTED = 300
"""Characters of the lists of all values of columns."""
_NUMBER = re.compile(r"[-+]?[\d.,]+%?")
_MONTHS = frozenset(name.casefold() for name in (*calendar.month_name, *calendar.month_abbr) if name)


def matched_cells(request: str, corpus: Corpus, tables: Mapping[str, str], dialect: str) -> list[str]:
    """The words of a request that occur in cells of the tables: ``schools.County and schools.City have 'Riverside'``.

    A line names every column of a table that holds the value, or only those that spell it as the request does. Numbers
    and single letters are left out unless they stand in quotation marks, and so is a month that is not among months.

    Args:
        request: the question.
        corpus: where the tables are.
        tables: that are shown: name in SQL → table id.
        dialect: for writing names.
    """
    names = {id: name for name, id in tables.items()}
    lines = []
    by_value: dict[tuple[str, str], str] = {}
    for id, column, words in _found(request, [*map(corpus.profile, names)]):
        by_value.setdefault((id, words), column)
    for (id, words), first in by_value.items():
        if (len(words) < 2 or _NUMBER.fullmatch(words)) and not re.search(f"['\"]{re.escape(words)}['\"]", request):
            continue
        profile = corpus.profile(id)
        if words.casefold().rstrip("s") == profile.name.casefold().rstrip("s"):
            continue  # the table itself is meant
        holders = _holding(words, profile, first, corpus)
        exact = [column for column, literal in holders.items() if literal == _literal(words)]
        by_literal: dict[str, list[str]] = {}
        for column in exact or holders:
            by_literal.setdefault(holders[column], []).append(column)
        for literal, columns in by_literal.items():
            described = [f"{sql_name(names[id], dialect)}.{sql_name(column, dialect)}" for column in columns]
            lines.append(f"{_and(described)} {literal}")
    return list(dict.fromkeys(lines))[:_MOST]


def listed_values(
    request: str, corpus: Corpus, tables: Mapping[str, str], dialect: str, known: Sequence[str]
) -> Iterator[str]:
    """The values of the columns that a request names, where all of them are short texts: ``trade.currency has 'EUR',
    'USD'``. A model that sees them all can choose among them by itself.

    Args:
        request: the question.
        corpus: where the tables are.
        tables: that are shown: name in SQL → table id.
        dialect: for writing names.
        known: the description of the tables, and the lines of :func:`matched_cells`: columns whose values these list,
            or of which they have the value that the request names, are left out.
    """
    words, columns = {stem(word.text) for word in words_in(request)}, dict[str, list[str]]()
    for table, id in tables.items():
        profile = corpus.profile(id)
        for column in profile.for_prompts:
            parts = {stem(part) for part in identifier_words(column.name)}
            stored = cell_literals(corpus, profile).get(column.name) if parts and parts <= words else None
            name = f"{sql_name(table, dialect)}.{sql_name(column.name, dialect)}"
            are_names = column.distinct == (column.rows or 0) - (column.nulls or 0)  # not kinds
            if stored is None or column.family != "text" or not stored.complete or are_names:
                continue
            listed = ", ".join(stored.values)
            if not any(listed in text or name in text.split() for text in known):
                columns.setdefault(listed, []).append(name)
    room = _LISTED
    for line in [f"{_and(names)} {listed}" for listed, names in columns.items()]:
        room -= len(line)
        if room > 0:
            yield line


def _and(columns: Sequence[str]) -> str:
    return f"{' and '.join(columns)} {'has' if len(columns) == 1 else 'have'}"


def _found(request: str, profiles: Sequence[TableProfile]) -> Iterator[tuple[str, str, str]]:
    """Table, column and words."""
    hits = ValueIndex(profiles).hits(Question.of(request))
    for position, profile in enumerate(profiles):
        yield from ((profile.id, column, words) for column, words in cells_of(hits, position, profile))


def _holding(words: str, profile: TableProfile, first: str, corpus: Corpus) -> dict[str, str]:
    """The columns of a table that hold the words, and the words as a literal that is spelled as in the column.

    Args:
        words: as in the question.
        profile: of the table.
        first: a column that is known to hold them.
        corpus: where the table is.
    """
    target, stored, holders = canonical(words)[0] or "", cell_literals(corpus, profile), dict[str, str]()
    for column in profile.for_prompts:
        if column.name != first and column.family != "text":
            continue
        known = stored.get(column.name, CellLiterals())
        months = sum(value.strip("'").casefold() in _MONTHS for value in known.values)
        if words.casefold() in _MONTHS and months * 2 < len(known.values):
            continue
        same = [value for value in known.values if canonical(value.strip("'").replace("''", "'"))[0] == target]
        if same:
            holders[column.name] = min(same, key=lambda value: value != _literal(words))
        elif column.name == first:
            holders[column.name] = _literal(words)
    return holders


def _literal(words: str) -> str:
    return "'" + words.replace("'", "''") + "'"
