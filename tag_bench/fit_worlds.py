"""Worlds for ``tag_bench fit`` that are as warehouses are: one large database, of which only names are known."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from tag_bench.data import Dataset, Question, drawn, read_dataset
from tag_bench.fit_examples import OF_NAMES, Example, Maker, bare, has_rows
from tagframe.corpus import Corpus
from tagframe.corpus.documents import identifier_words
from tagframe.corpus.profile import TableProfile

WIDEST = 1_300
"""Columns of a database of Spider 2 beyond which it is left out: a few hold most of all columns, and few questions."""

_VOWELS = "aeiou"
_WHOLE = 3
"""Letters of a word up to which it is not shortened."""


def read_worlds(folder: Path, count: int, cache: Path | None = None) -> list[Example]:
    """The questions of a benchmark asked of one database without rows and keys, and once more with names shortened.

    The databases of a benchmark with rows are one; of Spider 2 each is by itself, as it is and shortened.

    Args:
        folder: as for :func:`tag_bench.data.read_dataset`.
        count: of questions of each way, drawn at random.
        cache: as for :func:`tag_bench.fit_examples.read_examples`.
    """
    data = read_dataset(folder)
    if has_rows(data):
        whole = read_dataset(folder, hide_database=True)
        parts = [_of(whole, lambda tables: tuple(map(bare, tables)))]
    else:
        parts = _by_database(data, count)
    maker = Maker.of(cache)
    short = [_of(part, lambda tables: tuple(map(shortened, tables))) for part in parts]
    found = maker.examples(data.name, "world", parts, count, OF_NAMES, None)
    return found + maker.examples(data.name, "short", short, count, OF_NAMES, None)


def _by_database(data: Dataset, count: int) -> list[Dataset]:
    asked: dict[str, list[Question]] = defaultdict(list)
    for question in drawn(data.questions, count):
        asked[question.database].append(question)
    parts = [replace(data.of(name), questions=tuple(questions)) for name, questions in sorted(asked.items())]
    return [part for part in parts if sum(len(table.columns) for table in part.corpus.profiles) <= WIDEST]


def _of(data: Dataset, change: Callable[[Sequence[TableProfile]], Iterable[TableProfile]]) -> Dataset:
    corpus, described = (Corpus(change(one.profiles)) for one in (data.corpus, data.described))
    return Dataset(data.name, corpus, described, data.questions)


def shortened(table: TableProfile) -> TableProfile:
    """The table as a warehouse calls it, without descriptions and samples.

    >>> short_name("customer order_date"), short_name("TransactionAmount")
    ('CUS_ORDER_DATE', 'TRANSACTION_AMO')
    """
    columns = tuple(replace(column, name=short_name(column.name), description="") for column in bare(table).columns)
    names: dict[str, int] = {}
    told = []
    for column in columns:  # shortened names may meet
        names[column.name] = names.get(column.name, 0) + 1
        told.append(column if names[column.name] == 1 else replace(column, name=f"{column.name}_{names[column.name]}"))
    return replace(bare(table), name=short_name(table.name), columns=tuple(told), description="")


def short_name(name: str) -> str:
    """Most of the words cut to their first letters or to consonants, each word the same way everywhere."""
    return "_".join(_short(word) for word in identifier_words(name)).upper()


def _short(word: str) -> str:
    way = hashlib.md5(word.encode(), usedforsecurity=False).digest()[0] % 4
    if len(word) <= _WHOLE or way == 0:
        return word
    if way == 1:
        return word[:3]
    kept = word[0] + "".join(letter for letter in word[1:] if letter not in _VOWELS)
    return kept[:4] if way == 2 else word[:4]
