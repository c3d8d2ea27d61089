"""Looks in the cells themselves for names of a question that no profile has.

A profile holds all values of a small column as they are, but only some values of a large one. It does not show that
``Iron Maiden Live`` contains ``Iron Maiden``, that ``Bjork`` means ``Björk``, that ``Anna Maier`` means ``MAIER,
ANNA``, or that a column has the last of a hundred thousand names. So before retrieval reports that nothing fits a
question, it reads the short texts of the likeliest tables. They stay in memory as long as their corpus.
"""

from __future__ import annotations

import re
import unicodedata
import weakref
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tagframe.corpus import Corpus
from tagframe.corpus.canonical import canonical
from tagframe.corpus.profile import TableProfile
from tagframe.errors import CorpusError
from tagframe.retrieval.cell_values import ValueHit, is_name, rarity_of, without_possessive
from tagframe.retrieval.methods.auto import MIN_FIT, is_knowable
from tagframe.retrieval.methods.weights import shipped_weights
from tagframe.retrieval.problem import best_first
from tagframe.retrieval.question import Question
from tagframe.retrieval.signals import Evidence, gather
from tagframe.retrieval.words import STOP_WORDS

if TYPE_CHECKING:
    from tagframe.retrieval.index import RetrievalIndex

MOST_CELLS = 1_000_000
"""The most cells that are read for one corpus; those of the likeliest tables first."""
LONGEST = 200
"""The most characters of a cell that is searched for names; a long text contains some name by chance."""
_MIN_PART_LETTERS = 3
"""A name of fewer letters must be the whole cell: ``US`` is not found in ``Leave Us Leap``."""
_BETWEEN = re.compile(r"[\s&.,'’/-]+\Z")
_WORD = re.compile(r"[^\W_]+")
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"})
"""Letters that Unicode does not decompose into a letter and a sign."""


@dataclass(frozen=True, eq=False)
class _Column:
    """The texts of a column, each once.

    Attributes:
        position: of the column in its table.
        cells: as stored.
        text: all cells, folded (see :func:`folded`), one line each.
        starts: the position in ``text`` where each line starts.
    """

    position: int
    cells: Sequence[str]
    text: str
    starts: Sequence[int]

    def cells_with(self, words: Sequence[str], *, whole: bool) -> list[str]:
        """The first two cells that have these words side by side, in any order; with ``whole``, and no other words."""
        wanted, count, cells = sorted(words), len(words), list[str]()
        rarest = max(words, key=len)
        start = self.text.find(rarest)
        while start >= 0 and len(cells) < 2:
            line = bisect_right(self.starts, start)
            cell_words = _words(self.cells[line - 1])
            runs = (
                [cell_words]
                if whole
                else [cell_words[first : first + count] for first in range(len(cell_words) - count + 1)]
            )
            if any(sorted(run) == wanted for run in runs):
                cells.append(self.cells[line - 1])
            start = self.text.find(rarest, self.starts[line])
        return cells


_read: weakref.WeakKeyDictionary[Corpus, dict[str, tuple[TableProfile, tuple[_Column, ...]]]]
_read = weakref.WeakKeyDictionary()


def with_names_read(corpus: Corpus, index: RetrievalIndex, question: Question, evidence: Evidence) -> Evidence:
    """The evidence; if nothing seems to fit the question, cells are read for its names."""
    weights = shipped_weights()
    if not is_knowable(evidence.facts) or weights.fit(evidence.facts) >= MIN_FIT:
        return evidence
    values = read_hits(corpus, index, question, evidence.values, best_first(weights.prior(evidence.signals)).tolist())
    return gather(index, question, values) if values else evidence


def read_hits(
    corpus: Corpus, index: RetrievalIndex, question: Question, known: Sequence[ValueHit], order: Iterable[int]
) -> list[ValueHit]:
    """The values of a question, with the names that are found by reading cells; empty if none is found.

    A word in lower case is a name too, if the cells of only one table have it and no column name does.

    Args:
        corpus: of the index.
        index: its tables.
        question: as asked.
        known: the values of the question that are in profiles.
        order: positions of tables, the likeliest first.
    """
    small = [
        replace(hit, is_name=True) for hit in known if _may_be_name(hit) and not index.vocabulary.explains(hit.text)
    ]
    there = {word for hit in known for word in _words(hit.text)}
    runs = [run for run in names_of(question) if not (there.issuperset(_words(run)) or index.vocabulary.explains(run))]
    columns = _columns(corpus, index, order) if runs else {}
    hits = [hit for run in runs for hit in _hits(run, columns)]
    new = {word for hit in (*small, *hits) for word in _words(hit.text)}
    return [*(hit for hit in known if not new.issuperset(_words(hit.text))), *small, *hits] if new else []


def _may_be_name(hit: ValueHit) -> bool:
    return not hit.is_name and len(hit.tables) == 1 and not any(map(str.isdigit, hit.text))


def names_of(question: Question) -> list[str]:
    """Runs of words that are written like names or codes; a longer run comes before the runs inside it.

    >>> names_of(Question.of("Which songs of Os Paralamas Do Sucesso did Peacock's customers buy?"))
    ['Os Paralamas Do Sucesso', 'Peacock']
    """
    words, text = question.words, question.text
    runs: list[list[int]] = []
    for number, word in enumerate(words):
        begins = number == 0 and word.text == without_possessive(word.text)
        if not is_name(word.text, at_start=begins) or (number == 0 and word.text.lower() in STOP_WORDS):
            continue
        if runs and runs[-1][-1] == number - 1 and _BETWEEN.match(text[words[number - 1].end : word.start]):
            runs[-1].append(number)
        else:
            runs.append([number])
    if runs and runs[0][0] == 1 and words[0].text.lower() not in STOP_WORDS and words[0].text[0].isupper():
        runs[0].insert(0, 0)  # "Anna Maier's orders"
    spans = [text[words[run[0]].start : words[run[-1]].end] for run in runs]
    return list(dict.fromkeys([*question.quoted, *map(without_possessive, spans)]))


def folded(text: str) -> str:
    """A text in lower case without diacritics.

    >>> folded("Antônio Łódź STRASSE Bjørn")
    'antonio lodz strasse bjorn'
    """
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text.casefold().translate(_LETTERS))
    return "".join(letter for letter in apart if not unicodedata.combining(letter))


def _words(text: str) -> list[str]:
    return _WORD.findall(folded(text))


def _hits(run: str, columns: dict[int, tuple[_Column, ...]]) -> list[ValueHit]:
    """The hits of a name as a whole, of its parts between commas, or of all its words in separate columns."""
    hit = _hit(run, columns, whole=len(run) < _MIN_PART_LETTERS or run.lower() in STOP_WORDS)
    if hit is not None:
        return [hit]
    if "," in run:
        return [hit for part in run.split(",") for hit in _hits(part.strip(), columns)]
    parts = [_hit(part, columns, whole=True) for part in run.split()]
    return [hit for hit in parts if hit is not None] if None not in parts else []


def _hit(name: str, columns: dict[int, tuple[_Column, ...]], *, whole: bool) -> ValueHit | None:
    words = _words(name)
    cells_of_table: dict[int, tuple[int, str]] = {}
    for table, of_table in columns.items() if len("".join(words)) > 1 else ():  # one letter is no name
        for column in of_table:
            cells = column.cells_with(words, whole=whole)
            if cells:
                cell = cells[0] if len(cells) == 1 else f"…{name}…"
                cells_of_table[table] = column.position, "" if canonical(cells[0]) == canonical(name) else cell
                break
    tables = tuple(sorted(cells_of_table))
    places = tuple(cells_of_table[table][0] for table in tables), tuple(cells_of_table[table][1] for table in tables)
    return ValueHit(name, tables, places[0], rarity_of(len(tables)), True, places[1]) if tables else None


def _columns(corpus: Corpus, index: RetrievalIndex, order: Iterable[int]) -> dict[int, tuple[_Column, ...]]:
    """The texts of tables, by position, up to the limit of cells."""
    stored, left = _read.setdefault(corpus, {}), MOST_CELLS
    columns: dict[int, tuple[_Column, ...]] = {}
    for table in order:
        for id in index.families[table].parts or (index.tables[table].id,):
            profile = corpus.profile(id)
            texts = [column for column in profile.columns if column.family == "text" and not column.private]
            left -= (cells := len(texts) * (profile.rows or 0))
            if left < 0 or not cells:
                left += cells if left < 0 else 0
                continue
            if id not in stored or stored[id][0] is not profile:
                stored[id] = profile, _texts_of(corpus, profile, [column.position for column in texts])
            columns[table] = (*columns.get(table, ()), *stored[id][1])
    return columns


def _texts_of(corpus: Corpus, profile: TableProfile, positions: Sequence[int]) -> tuple[_Column, ...]:
    try:
        frame = corpus.read(profile.id, [profile.columns[position].name for position in positions])
    except CorpusError:
        return ()
    texts = []
    for number, position in enumerate(positions):
        every = frame.iloc[:, number].dropna().unique().tolist()
        cells = [cell for cell in every if isinstance(cell, str) and len(cell) <= LONGEST]
        lines = [folded(cell).replace("\n", " ") for cell in cells]
        starts = np.cumsum([0, *(len(line) + 1 for line in lines)]).tolist()
        texts.append(_Column(position, cells, "\n".join(lines), starts))
    return tuple(texts)
