"""Values of the question found in cells: "Alameda" is in schools.County, so the question may need schools."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tagframe.corpus import Corpus
from tagframe.corpus.canonical import canonical, canonical_all, hash_texts
from tagframe.corpus.documents import singular
from tagframe.corpus.once import once
from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.corpus.stored_profiles import Arrays
from tagframe.errors import CorpusError
from tagframe.retrieval.problem import MIN_REFERENCE, Floats
from tagframe.retrieval.question import Question
from tagframe.retrieval.words import MEASURES, SHORTEST, accented, forms, terms, unelided, words_in

if TYPE_CHECKING:
    from tagframe.retrieval.index import RetrievalIndex


Hashes = tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]
"""Values by their hashes, ascending, and the position of a column that has each."""

LONGEST = 6
"""The most words that a value may have to be looked for."""

_POSSESSIVE = re.compile(r"['’]s?\Z")
_ENDINGS = frozenset(".!)")
"""Signs after a word that may belong to a value; other signs belong to the sentence."""
_FAMILIES = frozenset({"text", "date"})
_LAKE_COLUMNS = 50_000
"""In a corpus of more columns, numbers are not looked for either: they are in too many columns to mean anything. Of a
column with more values than its sketch holds, only the samples are looked for: the others were chosen at random."""
_MOST_CELLS = 500_000
"""So many cells of larger columns are read, for names that no profile has."""
_SMALLEST_NUMBER = 1000
"""Smaller numbers are in too many columns to mean anything."""


@dataclass(frozen=True)
class ValueHit:
    """Words of the question that occur as a value in cells.

    Attributes:
        text: the words.
        tables: positions of the tables that hold the value, ascending.
        columns: for each of ``tables``, the position of its first column that holds the value.
        rarity: in [0, 1]: 1 if one table of the corpus holds the value, less if more do.
        is_name: whether it is written like a name or a code: with capital letters, letters among digits, or quotation
            marks.
        cells: for each of ``tables``, the words as its cells have them, in another form; empty if in this one.
    """

    text: str
    tables: tuple[int, ...]
    columns: tuple[int, ...]
    rarity: float
    is_name: bool
    cells: tuple[str, ...] = ()


class ValueIndex:
    """The values in the profiles, by hash: all values of columns with a complete sketch, a sample of larger ones.

    A name that none of these is, and a word that nobody knows, is looked for in the cells of the larger columns, which
    are read for the first one.
    """

    def __init__(
        self,
        tables: Sequence[TableProfile],
        stored: Arrays | None = None,
        corpus: Corpus | None = None,
        knows: Callable[[str], bool] = lambda word: True,
    ) -> None:
        """An index of the tables' values.

        Args:
            tables: the profiles.
            stored: the result of :meth:`arrays` for the same tables; then these are not read.
            corpus: of the tables, if cells may be read.
            knows: whether a word in lower case is one of the language, rather than a term ("shoegaze").
        """
        self._tables, self._corpus, self._knows = tables, corpus, knows
        if stored is None:
            self._widths = np.array([len(table.columns) for table in tables], dtype=np.int64)
            self._hashes, self._owners = hashes_of_cells([column for table in tables for column in table.columns])
        else:
            self._widths, self._hashes, self._owners = stored["widths"], stored["hashes"], stored["owners"]
        count = len(self._widths)
        self._table = np.repeat(np.arange(count, dtype=np.int32), self._widths)
        first = np.cumsum(self._widths) - self._widths
        self._column = (np.arange(self._widths.sum()) - np.repeat(first, self._widths)).astype(np.int32)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The index, to be stored."""
        return {"widths": self._widths, "hashes": self._hashes, "owners": self._owners}

    def hits(self, question: Question) -> list[ValueHit]:
        """The longest runs of the question's words that are values, left to right; no run is inside another."""
        text, quoted = question.text, question.quoted
        words = [word.text for word in question.words]
        stops = _stop_words(words, question.stop_words | MEASURES if question.is_foreign else question.stop_words)
        texts, spans = list(quoted), [_span_of(value, words) for value in quoted]
        for length in range(min(LONGEST, len(words)), 0, -1):
            for start in range(len(words) - length + 1):
                span = (start, start + length)
                if _may_be_value(words[slice(*span)], stops[slice(*span)]):
                    written = without_possessive(text[question.words[start].start : question.words[span[1] - 1].end])
                    plain = " ".join(word.text for word in words_in(written))
                    found_as = [written] if plain == written else [written, plain]  # "TR_1", or "TR 1"
                    if (bare := unelided(written, question.stop_words)) != written:  # "l'Oise", or "L'Aquila"
                        found_as.append(bare)
                    if length > 1:  # "Flying Wyverns"
                        head, _, last = plain.rpartition(" ")
                        found_as += [f"{head} {singular(last.lower())}"]
                    if (sign := text[question.words[span[1] - 1].end :][:1]) in _ENDINGS:
                        found_as.append(written + sign)  # "Live (Remaster)"
                    texts += found_as
                    spans += [span] * len(found_as)
        canonicals = [canonical(value)[0] or "" for value in texts]
        keys = hash_texts(canonicals) if texts else np.zeros(0, dtype=np.uint64)
        taken = [False] * len(words)
        hits: list[tuple[int, ValueHit]] = []
        for position, (value, span, owners) in enumerate(zip(texts, spans, self._owners_of(keys), strict=True)):
            if any(taken[span[0] : span[1]]):
                continue
            at_start = span[0] == 0 and words[span[1] - 1] == without_possessive(words[span[1] - 1])
            written_so = position < len(quoted) or is_name(value, at_start=at_start)
            is_written = position < len(quoted) or (written_so and _are_capital(words[slice(*span)]))
            if not len(owners) and (is_written or (span[1] - span[0] == 1 and self._is_term(value))):
                owners = self._owners_of(keys[position : position + 1], self._larger)[0]
            if not len(owners):
                continue
            taken[span[0] : span[1]] = [True] * (span[1] - span[0])
            hits.append((span[0], self._hit(value, owners, written_so)))
        hits += self._inflected([unelided(word, question.stop_words) for word in words], stops, taken)
        return [hit for _, hit in sorted(hits, key=lambda entry: entry[0])]

    def _is_term(self, word: str) -> bool:
        return word.isalpha() and len(word) >= SHORTEST and not self._knows(word)

    def _inflected(
        self, words: Sequence[str], stops: Sequence[bool], taken: Sequence[bool]
    ) -> list[tuple[int, ValueHit]]:
        """Single words that no cell has as they are, where cells have another form of them; none is a name."""
        hits: list[tuple[int, ValueHit]] = []
        for position, (word, is_stop) in enumerate(zip(words, stops, strict=True)):
            if is_stop or taken[position] or len(word) < SHORTEST or not word.isalpha():
                continue
            others, keys = _other_forms(word)
            known = ((form, owners) for form, owners in zip(others, self._owners_of(keys), strict=True) if len(owners))
            hits += [(position, self._hit(word, owners, False, form)) for form, owners in islice(known, 1)]
        return hits

    def _owners_of(self, keys: npt.NDArray[np.uint64], known: Hashes | None = None) -> list[npt.NDArray[np.int32]]:
        """The columns that hold each value, by its hash, ascending."""
        hashes, owners = known or (self._hashes, self._owners)
        ends = (np.searchsorted(hashes, keys, side=side).tolist() for side in ("left", "right"))
        return [owners[first:last] for first, last in zip(*ends, strict=True)]

    @once
    def _larger(self) -> Hashes:
        """The texts of the columns that have more of them than their sketches, those of small tables first."""
        first, left = np.cumsum(self._widths) - self._widths, _MOST_CELLS
        hashes, owners = [np.zeros(0, dtype=np.uint64)], [np.zeros(0, dtype=np.int32)]
        for number in sorted(range(len(self._tables)), key=lambda one: self._tables[one].rows or 0):
            table = self._tables[number]
            columns = [one for one in table.for_prompts if one.family == "text" and one.sketch is not None]
            columns = [one for one in columns if one.sketch is not None and not one.sketch.complete]
            left -= (table.rows or 0) * len(columns)
            if not columns or left < 0 or self._corpus is None or len(self._table) > _LAKE_COLUMNS:
                continue
            with suppress(CorpusError):
                frame = self._corpus.read(table.id, [one.name for one in columns])
                for column in columns:
                    cells = frame[column.name].dropna().unique()
                    hashes.append(hash_texts([text or "" for text in canonical_all(cells.tolist())[0]]))
                    owners.append(np.full(len(hashes[-1]), first[number] + column.position, dtype=np.int32))
        every, places = np.concatenate(hashes), np.concatenate(owners)
        order = np.lexsort((places, every))
        return every[order], places[order]

    def _hit(self, text: str, owners: npt.NDArray[np.int32], is_name: bool, cell: str = "") -> ValueHit:
        """The hit of words that these columns hold: the first column of each table, the owners being ascending."""
        tables, first = np.unique(self._table[owners], return_index=True)
        columns, cells = self._column[owners[first]], (cell,) * len(tables) if cell else ()
        return ValueHit(text, tuple(tables.tolist()), tuple(columns.tolist()), rarity_of(len(tables)), is_name, cells)


def cells_of(hits: Sequence[ValueHit], table: int, profile: TableProfile) -> tuple[tuple[str, str], ...]:
    """The values of a question that are in a table's cells: (column, words as in the cell), left to right.

    Args:
        hits: the values of the question.
        table: the position of the table.
        profile: its profile.
    """
    places = [(hit, hit.tables.index(table)) for hit in hits if table in hit.tables]
    return tuple(
        (profile.columns[hit.columns[position]].name, hit.cells[position] if hit.cells else hit.text)
        for hit, position in places
    )


def hashes_of_cells(
    columns: Sequence[ColumnProfile],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]:
    """The hashes of all values, ascending, and the position of the column that has each."""
    plain = np.array([column.family not in _FAMILIES for column in columns], dtype=bool)
    # All columns at once: a lake has a hundred thousand of them.
    none = np.zeros(0, dtype=np.uint64)
    sketches = [column.sketch for column in columns]
    if len(columns) > _LAKE_COLUMNS:
        sketches = [
            sketch if sketch is not None and sketch.complete and not is_plain else None
            for sketch, is_plain in zip(sketches, plain.tolist(), strict=True)
        ]
    sketched = [none if sketch is None else sketch.hashes for sketch in sketches]
    samples = [
        [text for text, _ in map(canonical, column.samples) if text is not None]
        if sketch is None or not sketch.complete
        else []
        for column, sketch in zip(columns, sketches, strict=True)
    ]
    every = np.concatenate([none, *sketched, hash_texts(chain.from_iterable(samples))])
    positions = np.arange(len(columns), dtype=np.int32)
    owners = np.concatenate([np.repeat(positions, list(map(len, part))) for part in (sketched, samples)])
    del sketched
    counts = ~(plain[owners] & np.isin(every, _small_numbers())) if len(every) else np.zeros(0, dtype=bool)
    every, owners = every[counts], owners[counts]
    order = np.lexsort((owners, every))
    every, owners = every[order], owners[order]
    again = np.zeros(len(every), dtype=bool)
    again[1:] = (every[1:] == every[:-1]) & (owners[1:] == owners[:-1])
    return every[~again], owners[~again]


def _stop_words(words: Sequence[str], known: Collection[str]) -> list[bool]:
    """Which words are stop words; not so one that, unlike its neighbours, is written as a name: ``in the US``."""
    names = [False, *(len(word) > 1 and word[0].isupper() for word in words[1:]), False]
    return [
        word.lower() in known and not (names[number] and not names[number - 1] and not names[number + 1])
        for number, word in enumerate(words)
    ]


def _are_capital(words: Sequence[str]) -> bool:
    """Whether the first and the last of some words begin with a capital letter."""
    return words[0][:1].isupper() and words[-1][:1].isupper()


def _may_be_value(words: Sequence[str], stops: Sequence[bool]) -> bool:
    if all(stops) or (stops[0] and stops[-1] and len(words) < 4):
        return False
    return not (len(words) == 1 and words[0].isdigit() and int(words[0]) < _SMALLEST_NUMBER)


@lru_cache(maxsize=4096)
def _other_forms(word: str) -> tuple[tuple[str, ...], npt.NDArray[np.uint64]]:
    """The other forms of a word, likely ones first, and the hash of each."""
    others = accented(word) + forms(word)
    return others, hash_texts(others) if others else np.zeros(0, dtype=np.uint64)


def rarity_of(tables: int) -> float:
    """The rarity, in (0, 1], of a value that so many tables hold."""
    return 1 / (1 + math.log(tables))


def without_possessive(text: str) -> str:
    """``Iron Maiden's`` without its ending."""
    return _POSSESSIVE.sub("", text)


def is_name(text: str, *, at_start: bool) -> bool:
    """Whether words are written like a name; a capital letter does not count at the beginning of a sentence.

    A year or a count is not a name: plain digits are in many unrelated columns.
    """
    letters = text[1:] if at_start else text
    has_capital = any(letter.isupper() for letter in letters)
    return has_capital or (any(map(str.isdigit, text)) and any(map(str.isalpha, text)))


def _span_of(text: str, words: list[str]) -> tuple[int, int]:
    """The position of quoted text among the words; an empty span if it is inside of punctuation."""
    wanted = [word.text for word in words_in(text)]
    for start in range(len(words) - len(wanted) + 1):
        if words[start : start + len(wanted)] == wanted:
            return start, start + len(wanted)
    return 0, 0


@cache
def _small_numbers() -> npt.NDArray[np.uint64]:
    return hash_texts([str(number) for number in range(_SMALLEST_NUMBER)])


_MOST_LABELS = 100
"""A table of more rows does not only give labels."""
_MOST_JOINED_TABLES = 50
"""If more tables hold a name, tables that are joined to them are not looked up: that takes long and helps little."""


def cell_name_rows(
    index: RetrievalIndex, hits: Sequence[ValueHit], named: Mapping[str, Floats]
) -> tuple[Floats, Floats]:
    """Which tables hold the names among some values of a question. As a rule, the question needs one of them.

    A table holds a name if its cells have it, or if a key joins it to the column that has it: a long column's profile
    may lack some values. If the names of a database's tables and columns contain the words of the name, it may not be a
    value at all; then all tables of that database count as holding it. Several words in capitals are a value.

    Args:
        index: of the corpus.
        hits: the values.
        named: for each word in names of tables or columns, shape (n,): above 0 if a name of that table has it.

    Returns:
        Shape (names, tables), 1 for each table that holds a name; and shape (tables,), how many names this table alone
        holds in its database. Names that table or column names explain do not count. A key column and the columns that
        refer to it share such a name.
    """
    names = [hit for hit in hits if hit.is_name]
    rows, here = np.zeros((len(names), len(index.tables))), np.zeros(len(index.tables))
    for row, hit in zip(rows, names, strict=True):
        words = terms(hit.text)
        is_written_so = len(words) > 1 and hit.text.isupper()  # "STAR BAKER"
        if words and all(word in named for word in words) and not is_written_so:
            has = np.stack([named[word] > 0 for word in words]).astype(np.float64)
            row[:] = index.by_database(has).min(axis=0)
        of_database: dict[int, dict[int, frozenset[int]]] = {}
        for table, column in zip(hit.tables, hit.columns, strict=True):
            database = of_database.setdefault(int(index.database[table]), {})
            others = index.joined_on(table, column, hit.tables) if len(hit.tables) <= _MOST_JOINED_TABLES else ()
            database[table] = frozenset({table, *others})
        for roles in of_database.values():
            if row[next(iter(roles))]:
                continue  # explained
            every = frozenset[int]().union(*roles.values())
            row[list(every)] = 1.0
            if any(role >= roles.keys() for role in roles.values()):
                here[list(every)] += 1 / len(every)
    return rows, here


def cell_term_rows(index: RetrievalIndex, hits: Sequence[ValueHit], tables: Sequence[int]) -> Floats:
    """The rarity of values that are not names, such as ``jazz``, in the tables that hold them; 0 in other tables.

    A word that names have is no value, unless it is a label: a whole cell of a small table to which others refer, which
    is there to give its labels ("plants under construction", though there is a column ``construction_start``).

    Args:
        index: of the corpus.
        hits: the values of a question.
        tables: positions, in order.

    Returns:
        Shape (values, len(tables)).
    """
    positions = {table: position for position, table in enumerate(tables)}
    refers = index.links.refers(tables) & (index.links.matrix(tables) >= MIN_REFERENCE)
    labelling = {
        table
        for table, referring in zip(tables, refers.T, strict=True)
        if referring.any() and (index.tables[table].rows or math.inf) <= _MOST_LABELS
    }
    rows = []
    for hit in hits:
        holding = [*zip(hit.tables, hit.columns, strict=True)]
        if index.vocabulary.explains(hit.text):
            holding = [(table, column) for table, column in holding if table in labelling]
        if hit.is_name or not holding:
            continue
        row = np.zeros(len(positions))
        for table, column in holding:
            if table in positions:
                having = {table, *index.joined_on(table, column, hit.tables)} & positions.keys()
                row[[positions[one] for one in having]] = hit.rarity
        rows.append(row)
    return np.array(rows).reshape(-1, len(positions))
