"""Names that a question says in whole, and the tables that have them.

"each order" says the table ``orders``, "street" a column ``Street``. The default method weighs such names against all
other evidence, and may return a smaller set that seems likely enough. With ``k="auto"`` such a set is extended
(:mod:`tagframe.retrieval.methods.auto`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tagframe.corpus.documents import identifier_words
from tagframe.corpus.profile import TableProfile
from tagframe.keys.column_names import GENERIC
from tagframe.retrieval.problem import LINKED, Floats
from tagframe.retrieval.question import Question
from tagframe.retrieval.words import forms, known_form, stem, words_in
from tagframe.retrieval.years import years_meant

if TYPE_CHECKING:
    from tagframe.retrieval.cell_values import ValueHit
    from tagframe.retrieval.index import RetrievalIndex

_NOUNS = frozenset("order list show display number count".split())
"""Stop words that are nouns after one of :data:`_EACH`: "each order", but not "in order of"."""
_EACH = frozenset("each every per any which an".split())

Name = tuple[str, ...]


class Names(NamedTuple):
    """The names of a table and its columns, in stems.

    Attributes:
        of_table: the table's own.
        of_columns: those of columns that are not keys, except generic ones such as "city".
        words: all words of the table's and the columns' names.
        attributes: the same without the names of keys.
    """

    of_table: frozenset[Name]
    of_columns: frozenset[Name]
    words: frozenset[str]
    attributes: frozenset[str]

    @classmethod
    def of(cls, table: TableProfile, keys: Sequence[bool]) -> Names:
        """The names of a table; ``keys`` says of each column whether it is a key."""
        name = _name(table.name)
        columns = [_name(column.name) for column in table.columns]
        apart = [column for column, is_key in zip(columns, keys, strict=True) if not is_key]
        return cls(
            frozenset({name, tuple(word for word in name if not word.isdecimal())} - {()}),
            frozenset(column for column in apart if not GENERIC.issuperset(column)),
            frozenset(name).union(*columns),
            frozenset(name).union(*apart),
        )


def mentioned_names(
    index: RetrievalIndex, question: Question, tables: Sequence[int], values: Sequence[ValueHit] = ()
) -> Floats:
    """For each name that the question says in whole: 1 for the tables that have it, 0.5 for those with its words.

    Args:
        index: of the corpus.
        question: as asked.
        tables: positions, in order.
        values: of the question that are in cells.

    Returns:
        Shape (names, len(tables)): first the names of tables, then those of columns that are not keys.
    """
    of_tables, of_columns, words, attributes = zip(*map(index.names_of, tables), strict=True) if tables else [()] * 4
    # An id of a thing is not the thing.
    rows = [
        *_rows(of_tables, attributes, _words_of(question, frozenset[str]().union(*attributes), question.initials)),
        *_rows(of_columns, words, _words_of(question, frozenset[str]().union(*words))),
    ]
    rows += _of_counted(index, question, tables)
    rows += _of_years(index, question, tables, values)
    return np.array(rows).reshape(-1, len(tables))


def _of_counted(index: RetrievalIndex, question: Question, tables: Sequence[int]) -> Iterator[list[float]]:
    """The table of the thing that is counted, if no name has its word, because they are in another language: the only
    one that no word of the question names, and that has several rows for one of another table."""
    names = [index.names_of(table) for table in tables]
    known = frozenset[str]().union(*(one.words for one in names))
    if not question.is_foreign or not question.counted or known_form(stem(question.counted), known):
        return
    spoken = {form for word in question.stems if (form := known_form(word, known))}
    is_named = np.array([not spoken.isdisjoint(chain(*one.of_table)) for one in names], dtype=bool)
    rows = np.array([index.tables[table].rows or 0 for table in tables])
    refers = (index.links.matrix(tables) >= LINKED) & index.links.refers(tables)
    finer = (refers & (rows[:, None] > rows)).any(axis=1) & ~is_named
    if finer.sum() == 1:
        yield finer.astype(float).tolist()


def _of_years(
    index: RetrievalIndex, question: Question, tables: Sequence[int], values: Sequence[ValueHit]
) -> Iterator[list[float]]:
    """The tables with a year in their names that the question means, if others are of other years or of none: "the
    projects of 2017" is ``proyectos_2017``, unless another table has the year in its cells."""
    years = [index.families[table].years for table in tables]
    chosen = years_meant(question.text, frozenset[int]().union(*years))
    holding = {table for hit in values if hit.text in {*map(str, chosen)} for table in hit.tables}
    row = [1.0 if own & chosen else 0.5 * (table in holding) for table, own in zip(tables, years, strict=True)]
    if chosen and min(row) < 1:
        yield row


@lru_cache(maxsize=65536)
def _name(name: str) -> Name:
    return tuple(map(stem, identifier_words(name)))


def _words_of(question: Question, known: frozenset[str], initials: Iterable[str] = ()) -> list[str]:
    """The question's words in order, each in the form in which names have it; "" for a stop word.

    Those with hyphens follow, each as one word, and initials.
    """
    words, before = [], ""
    for word in question.words:
        for piece in identifier_words(word.text):
            is_noun = piece not in question.stop_words or (piece in _NOUNS and before in _EACH)
            one = stem(piece)
            if is_noun and one not in known:
                one = next((form for form in forms(one) if form in known), one)
            words.append(one if is_noun else "")
            before = piece
    return [*words, *(part for word in (*question.joined, *initials) for part in ("", word))]


def _rows(
    named: Sequence[frozenset[Name]], words: Sequence[frozenset[str]], question_words: Sequence[str]
) -> Iterator[list[float]]:
    places = {name: places_of(question_words, name) for names in named for name in names if name}
    # Of "the constructor results", ``results`` is no other name.
    inside = {place: len(name) for name in sorted(places, key=len) for place in places[name]}
    whole = {name for name, at in places.items() if any(inside[place] <= len(name) for place in at)}
    for name in sorted(name for name in whole if not all(map(str.isdecimal, name))):
        yield [1.0 if name in names else 0.5 * own.issuperset(name) for names, own in zip(named, words, strict=True)]


def places_of(question_words: Sequence[str], name: Name) -> set[int]:
    """The places of a name whose words are side by side, or one word: "playlists" is a name that was split.

    >>> sorted(places_of(["point", "constructor", "result"], ("constructor", "result")))
    [1, 2]
    """
    runs = [at for at, word in enumerate(question_words) if tuple(question_words[at : at + len(name)]) == name]
    whole = [at for at, word in enumerate(question_words) if word == "".join(name)]
    return {*whole, *(place for at in runs for place in range(at, at + len(name)))}


def has_name(text: str, name: str) -> bool:
    """Whether all words of a name stand in a text, side by side.

    >>> has_name("Rows of the sales report", "sales_report"), has_name("Report all sales", "sales_report")
    (True, False)
    """
    return bool(
        places_of([stem(piece) for word in words_in(text) for piece in identifier_words(word.text)], _name(name))
    )
