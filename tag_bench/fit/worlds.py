"""Synthetic warehouses for ``tag_bench fit names``: one large database of which only names are known.

Randomly drawn databases of a benchmark are combined into one (:data:`KINDS`), with their own names or with names as in
warehouses (:data:`HABITS`).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from tag_bench.data import Dataset, Question, drawn, in_one_database, read_dataset
from tag_bench.fit.examples import OF_NAMES, Example, Maker, bare, has_rows
from tagframe.corpus import Corpus
from tagframe.corpus.documents import identifier_words
from tagframe.corpus.profile import ColumnProfile, TableProfile

WIDEST = 1_300
"""Databases of Spider 2 with more columns are left out: a few have most of all columns, but few questions."""

SMALLEST, LARGEST = 40, 400
"""The number of tables of a synthetic warehouse."""

QUESTIONS = 25
"""The number of questions of a synthetic warehouse."""

KINDS = ("whole", "pairs", "apart", "unlinked")
"""The kinds of synthetic warehouses: tables as they are; the same with two questions combined into one; each table
split into several, as in a normalised schema; and the same with keys that names do not show."""

_RELATIONS = ("refers", "belongs", "has", "is", "holds", "relates")

_PART = 3
"""The number of columns, besides the key, of each part of a split table."""

_VOWELS = "aeiou"
_WHOLE = 3
"""Words with at most this many letters are not shortened."""


def read_worlds(folder: Path, cache: Path | None = None) -> list[Example]:
    """The questions of a benchmark over synthetic warehouses of its databases (:func:`made`).

    Args:
        folder: as for :func:`tag_bench.data.read_dataset`.
        cache: as for :func:`tag_bench.fit.examples.read_examples`.

    Returns:
        Examples of the variant "made"; the question's database is the name of the synthetic warehouse.
    """
    data = read_dataset(folder)
    return Maker.of(cache).examples(data.name, "made", list(made(data)), QUESTIONS, OF_NAMES, None)


def _width(data: Dataset) -> int:
    return sum(len(table.columns) for table in data.corpus.profiles)


def made(data: Dataset) -> Iterator[Dataset]:
    """Synthetic warehouses of a benchmark, with each of :data:`HABITS`.

    For data with rows there is one of each of :data:`KINDS`; for other data tables are kept as they are.
    """
    databases = sorted({table.database for table in data.corpus.profiles})
    narrow = [name for name in databases if _width(data.of(name)) <= WIDEST]
    kinds = KINDS if has_rows(data) else ("whole",)
    for number, (kind, habit) in enumerate(product(kinds, HABITS)):
        is_apart = kind in ("apart", "unlinked")
        random = np.random.default_rng([number, len(databases)])
        size = np.exp(random.uniform(np.log(SMALLEST), np.log(LARGEST)))
        chosen: list[str] = []
        tables = 0
        asked_of = {question.database.lower() for question in data.questions}
        for name in random.permutation(narrow).tolist():
            part = data.of(name)
            count = sum(_parts_of(table) for table in part.corpus.profiles) if is_apart else len(part.corpus.profiles)
            if tables + count <= max(size, count) and (tables or name.lower() in asked_of):
                chosen.append(name)
                tables += count
        yield _world(data, chosen, habit, kind, number)


def _world(data: Dataset, databases: Sequence[str], habit: Habit, kind: str, number: int) -> Dataset:
    inside = {name.lower() for name in databases}
    there = [question for question in data.questions if question.database.lower() in inside]
    questions = list(drawn(_pairs(there, number) if kind in ("pairs", "unlinked") else there, QUESTIONS))

    def of(corpus: Corpus) -> list[TableProfile]:
        return [bare(table) for table in corpus.profiles if table.database.lower() in inside]

    tables, described = of(data.corpus), of(data.described)
    if kind in ("apart", "unlinked"):
        questions = [replace(one, gold=frozenset(_needed(tables, one))) for one in questions]
        tables, described = ([part for table in each for part in apart(table)] for each in (tables, described))
    if kind == "unlinked":
        tables, described = _unlinked(tables), _unlinked(described)
    questions = [replace(one, database=f"{kind} {number}") for one in questions]
    return in_one_database(data.name, tables, described, questions, habit.of)


def _pairs(questions: Sequence[Question], seed: int) -> list[Question]:
    """Each question combined with another one of its database."""
    by_database: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        by_database[question.database].append(question)
    random = np.random.default_rng(seed)
    found = []
    for group in by_database.values():
        others = (group[at] for at in random.permutation(len(group)).tolist())
        found += [
            replace(one, text=f"{one.text} {other.text}", gold=one.gold | other.gold)
            for one, other in zip(group, others, strict=True)
        ]
    return found


def _parts_of(table: TableProfile) -> int:
    return max(-(-(len(table.columns) - 1) // _PART), 1)


def apart(table: TableProfile) -> list[TableProfile]:
    """Split a table into tables of a few columns; all have the first column, which is assumed to be the key."""
    key, *others = table.columns
    if _parts_of(table) == 1:
        return [table]
    parts = [others[start : start + _PART] for start in range(0, len(others), _PART)]
    return [
        replace(
            table,
            id=f"{table.id} {number}",
            name=f"{table.name} {part[0].name}",
            columns=tuple(replace(column, position=at) for at, column in enumerate([key, *part])),
        )
        for number, part in enumerate(parts)
    ]


def _unlinked(tables: Sequence[TableProfile]) -> list[TableProfile]:
    """The tables, with shared column names replaced by names of relations."""
    count = Counter((table.database, column.name.lower()) for table in tables for column in table.columns)

    def called(table: TableProfile, column: ColumnProfile) -> ColumnProfile:
        if count[table.database, column.name.lower()] == 1:
            return column
        digest = hashlib.md5(f"{table.id} {column.name}".encode(), usedforsecurity=False).hexdigest()
        letters = digest.translate(str.maketrans("0123456789", "ghijklmnop"))
        return replace(column, name=f"{_RELATIONS[int(digest[:4], 16) % len(_RELATIONS)]}_{letters[4:8]}")

    return [replace(table, columns=tuple(called(table, column) for column in table.columns)) for table in tables]


def _needed(tables: Iterable[TableProfile], question: Question) -> Iterator[str]:
    """The parts of the gold tables whose columns the SQL names; the first part if it names none."""
    words = set(re.findall(r"\w+", question.sql.lower()))
    for table in tables:
        if table.id.lower() in question.gold:
            parts = apart(table)
            named = [
                part.id.lower()
                for part in parts
                for columns in [part.columns[1:]]
                if any(set(re.findall(r"\w+", column.name.lower())) <= words for column in columns)
            ]
            yield from named or [parts[0].id.lower()]


@dataclass(frozen=True)
class Habit:
    """How a warehouse names its tables and columns.

    Attributes:
        short: how a word is shortened.
        prefix: whether columns begin with some letters of their table's name, and tables with a number.
        coded: whether a table is named only by a number.
    """

    short: Callable[[str], str]
    prefix: bool = False
    coded: bool = False

    def of(self, table: TableProfile, number: int) -> TableProfile:
        """The table with the warehouse's names, without descriptions and samples."""
        name = self._name(table.name)
        start = name.replace("_", "")[:3] + "_" if self.prefix else ""
        if self.coded:
            name = f"TB{number:04}"
        elif self.prefix:
            name = f"{'DFT'[number % 3]}{number % 40:02}_{name}"
        names: Counter[str] = Counter()
        columns = []
        for column in bare(table).columns:
            called = start + self._name(column.name)
            names[called] += 1  # shortened names may meet
            if names[called] > 1:
                called = f"{called}_{names[called]}"
            columns.append(replace(column, name=called, description=""))
        return replace(bare(table), name=name, columns=tuple(columns), description="")

    def _name(self, name: str) -> str:
        return "_".join(self.short(word) for word in identifier_words(name)).upper() or name


def _first_letters(word: str) -> str:
    return word if len(word) <= _WHOLE else word[:4]


def _consonants(word: str) -> str:
    consonants = word[:1] + "".join(letter for letter in word[1:] if letter not in _VOWELS)
    return word if len(word) <= _WHOLE else consonants[:5]


def _mixed(word: str) -> str:
    """The short form of each word, the same everywhere."""
    way = hashlib.md5(word.encode(), usedforsecurity=False).digest()[0] % 4
    if len(word) <= _WHOLE or way == 0:
        return word
    if way == 1:
        return word[:3]
    return _consonants(word)[:4] if way == 2 else word[:4]


HABITS = (
    Habit(str), Habit(_mixed), Habit(_consonants), Habit(_mixed, prefix=True), Habit(str, prefix=True),
    Habit(_first_letters), Habit(str, coded=True), Habit(_mixed, coded=True),
)  # fmt: skip
"""Naming styles, from the names of the data to unreadable ones."""
