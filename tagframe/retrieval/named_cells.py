"""The filter that a question names: cells of the joined tables whose words stand in the question."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from tagframe.corpus import Corpus
from tagframe.corpus.documents import identifier_words, without_accents
from tagframe.corpus.profile import ColumnProfile
from tagframe.errors import CorpusError
from tagframe.joins import JoinPlan
from tagframe.joins.steps import PlanTable
from tagframe.keys.column_names import column_name
from tagframe.keys.terms import CALENDAR
from tagframe.merging.where import Filter, Implied
from tagframe.retrieval.denied import after_denial
from tagframe.retrieval.words import BETWEEN, STOP_WORDS, stem, words_in
from tagframe.retrieval.years import year_of

_MOST_CELLS = 5_000_000
"""A table with more cells of text and integers is not searched."""
_SHORTEST = 4
"""A cell of fewer letters counts only as it is written in the question, and not in lower case: it may be any word."""
_MOST_WORDS = 12
"""A cell of more words is no name."""
_DIFFERENT = (
    "different",
    "distinct",
    "unique",
    "verschieden",
    "unterschiedlich",
    "diferent",
    "distint",
    "divers",
    "verschillend",
)
"""The beginnings of words that ask for different things, in English, German, French, Spanish, Italian and Dutch."""
_EXTREME = tuple(
    """highest largest greatest biggest longest tallest lowest smallest shortest earliest latest maxim minim max. min.
    hochste grosste langste niedrigste kleinste kurzeste mayor menor massim maggior maior hoogste grootste langste
    laagste kleinste kortste""".split()
)
"""The beginnings of words that ask for the largest or the smallest, in these languages and Portuguese."""
_ADDS = tuple(
    """total sum number count average mean many anzahl gesamt durchschnitt viele cantidad cuantos cuantas promedio media
    nombre somme moyen combien numero quanti quante somma quantos quantas soma aantal gemiddeld hoeveel""".split()
)
"""The beginnings of words that ask for what repeated rows change."""
_SMALLEST_NUMBER = 1000
"""A smaller number counts only if the question names its column, too."""


def cells_named(question: str, plan: JoinPlan, corpus: Corpus) -> dict[str, Any]:
    """The conditions on the joined rows that a question names, by column of the merged frame.

    A cell is named if all its words stand in the question, side by side and in their order. If another cell has these
    words and more, only that one is.

    Args:
        question: in plain language.
        plan: over the tables that are joined.
        corpus: of these tables.

    Returns:
        Column → the cell, or a list of cells; as for ``where`` in :func:`tagframe.merging.run_plan`.
    """
    words = [stem(word.text.casefold()) for word in words_in(question)]
    written = {word.text for word in words_in(question)}
    found: dict[str, dict[tuple[str, ...], list[Any]]] = {}
    # The other columns of a key may write its cells in another way.
    names = {key: name for name, key in plan.named_columns(None).items()}
    for source in plan.sources:
        for column, cells in _cells_of(source, corpus).items():
            named = _named(cells, words, column, written) if (source.id, column) in names else ()
            for run, cell in named:
                found.setdefault(names[source.id, column], {}).setdefault(run, []).append(cell)
    runs = {run for by_run in found.values() for run in by_run}
    whole = {run for run in runs if not any(len(other) > len(run) and _is_within(run, other) for other in runs)}
    conditions = {
        name: list(dict.fromkeys(cell for run, cells in by_run.items() if run in whole for cell in cells))
        for name, by_run in found.items()
    }
    return {name: cells[0] if len(cells) == 1 else cells for name, cells in conditions.items() if cells}


def _cells_of(source: PlanTable, corpus: Corpus) -> dict[str, list[Any]]:
    """The distinct texts and integers of a table, by column; none of private columns and of large tables."""
    found: dict[str, dict[Any, None]] = {}
    for part in source.parts or (source,):
        profile = corpus.profile(part.id)
        columns = [column.name for column in profile.columns if column.name in source.columns and _may_name(column)]
        if not columns or (profile.rows or 0) * len(columns) > _MOST_CELLS:
            continue
        with suppress(CorpusError):
            frame = corpus.read(part.id, columns)
            for column in columns:
                found.setdefault(column, {}).update(dict.fromkeys(frame[column].dropna().unique().tolist()))
    return {column: [*cells] for column, cells in found.items()}


def _may_name(column: ColumnProfile) -> bool:
    return column.family in ("text", "integer") and not column.private


def _named(
    cells: Iterable[Any], words: Sequence[str], column: str, written: Container[str]
) -> Iterable[tuple[tuple[str, ...], Any]]:
    """The cells whose words stand in the question, each with these words."""
    known = {*words}
    is_named = known.issuperset(stem(word.text.casefold()) for word in words_in(column.replace("_", " ")))
    for cell in cells:
        if isinstance(cell, str):
            if (
                len(cell) < 2
                or cell.casefold() in STOP_WORDS
                or (len(cell) < _SHORTEST and (cell not in written or cell.islower()))
            ):
                continue
        elif not isinstance(cell, int | float) or (isinstance(cell, float) and not cell.is_integer()):
            continue  # a workbook's texts may have durations among them
        elif cell < _SMALLEST_NUMBER and not is_named:
            continue
        text = cell if isinstance(cell, str) else str(int(cell))
        run = tuple(stem(word.text.casefold()) for word in words_in(text))
        if 0 < len(run) <= _MOST_WORDS and known.issuperset(run) and _is_within(run, words):
            yield run, cell


def _is_within(run: Sequence[str], words: Sequence[str]) -> bool:
    """Whether some words stand in others, side by side and in their order."""
    size = len(run)
    return any([*words[start : start + size]] == [*run] for start in range(len(words) - size + 1))


def tables_measured(question: str, plan: JoinPlan) -> frozenset[str]:
    """The ids of the tables of which a question names a column of numbers that is no key, year or day.

    A number that it only compares ("a capacity of more than 400", "at least 10 seats") chooses rows and is not counted.
    """
    spoken = [word.text.casefold() for word in words_in(question)]
    stems = [stem(word) for word in spoken]
    keys = {(table, column) for group in plan.classes() for table, column in group}

    def is_named(column: str) -> bool:
        words = {stem(word) for word in identifier_words(column)}
        if not words <= {*stems} or words <= CALENDAR or column_name(column).key_word:
            return False
        return not all(_is_compared(place, spoken, words) for place, word in enumerate(stems) if word in words)

    return frozenset(
        source.id
        for source in plan.sources
        if any((source.id, column) not in keys and is_named(column) for column in source.numbers)
    )


def _is_compared(place: int, spoken: Sequence[str], own: Container[str]) -> bool:
    """Whether a number that is no year precedes a word of a column, or follows it with only function words between."""
    before = (word for word in spoken[:place][::-1] if stem(word) not in own)
    after = (word for word in spoken[place + 1 :] if stem(word) not in own and word not in BETWEEN)
    bounds = (next(before, ""), next(after, ""))
    return any(word.isdecimal() and year_of(word) is None for word in bounds)


_BOTH = frozenset("both beide beiden sowohl tanto ambos ambas entrambi entrambe zowel".split())


def cells_at_once(question: str, plan: JoinPlan, corpus: Corpus) -> Iterator[tuple[str, list[Any], str]]:
    """Cells of one column that a thing shall have at once, "customers who bought both tea and coffee".

    Yields:
        The column of the merged frame, the cells, and the column that tells the things.
    """
    parts = words_in(question)
    start = next((place for place, word in enumerate(parts) if word.text.casefold() in _BOTH), None)
    if start is None or any(source.role for source in plan.sources):
        return
    spoken = {stem(word.text.casefold()) for word in parts[:start]}
    names = plan.column_names()
    for name, cells in cells_named(question[parts[start].end :], plan, corpus).items():
        own, _ = plan.find_column(name)
        of_cell = {names[own, column] for column in plan.by_id[own].unique}
        keys = [key for key in names if column_name(key[1]).key_word and names[key] not in {name, *of_cell}]
        keys.sort(key=lambda key: spoken.isdisjoint(map(stem, column_name(key[1]).entity)))
        if isinstance(cells, list) and keys:
            yield name, cells, names[keys[0]]


def filter_of(question: str) -> Implied | None:
    """The conditions and measures of a question, for ``implied`` of :func:`tagframe.merging.run_plan`."""
    if not question:
        return None

    def implied(plan: JoinPlan, corpus: Corpus) -> Filter:
        words = [without_accents(word.text.casefold()) for word in words_in(question)]
        adds, is_extreme, is_of_different = (
            any(word.startswith(some) for word in words) for some in (_ADDS, _EXTREME, _DIFFERENT)
        )
        denied = cells_named(after_denial(question), plan, corpus) if plan.absent else {}
        return Filter(
            cells_named(question, plan, corpus),
            tables_measured(question, plan),
            is_of_different or (is_extreme and not adds),
            denied,
        )

    return implied
