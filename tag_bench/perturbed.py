"""Perturbed databases, with shortened or prefixed names and fewer rows, to test keys on unseen names.

A fit on known databases adapts to their names. Here the columns of declared keys are renamed in the style of other
schemas, and tables keep only some of their rows.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace

import pandas as pd

from tag_bench.databases import Database
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.profiler import profile_table
from tagframe.engines.base import Chunk, TableShape, quoted
from tagframe.engines.sqlite.engine import connect_readonly

RENAMED = 0.4
"""The share of declared keys with a renamed column."""
EMPTIED = 0.35
"""The share of tables that lose all rows."""
FEW = 30
MOST_ROWS = 20_000
"""The most rows that are read of a table."""

_KEY_WORDS = frozenset({"id", "code", "key", "no", "number", "cd"})
_ROLES = ("main", "src", "dest", "parent", "billing", "lead", "home", "assigned")
_OTHER = ("owner", "belongs_to", "made_by", "ref", "link", "used_in", "held_at")

Renaming = Callable[[str, str, random.Random], str]
"""Gives a new name, from a column, its table and a random generator."""


def _parts(name: str) -> list[str]:
    return [word for word in re.split(r"[_\s]|(?<=[a-z])(?=[A-Z])", name) if word]


def _shortened(name: str, shorten: Callable[[str], str]) -> str:
    return "_".join(word if word.lower() in _KEY_WORDS else shorten(word) for word in _parts(name))


def _consonants(word: str) -> str:
    return word[:1] + "".join(letter for letter in word[1:] if letter.lower() not in "aeiou")


def _bare(name: str) -> str:
    return "_".join(word for word in _parts(name) if word.lower() not in _KEY_WORDS) or name


RENAMINGS: Mapping[str, Renaming] = {
    "consonants": lambda name, table, chance: _shortened(name, _consonants),
    "four letters": lambda name, table, chance: _shortened(name, lambda word: word[:4]),
    "role": lambda name, table, chance: f"{chance.choice(_ROLES)}_{name}",
    "prefix": lambda name, table, chance: f"{''.join(word[0] for word in _parts(table))[:3]}_{name}",
    "no key word": lambda name, table, chance: _bare(name),
    "opaque": lambda name, table, chance: f"f{chance.randint(1, 9)}{chance.choice('abcxyz')}",
    "other word": lambda name, table, chance: chance.choice(_OTHER),
}
"""The renamings, by their labels."""

SAMPLES: Mapping[str, Callable[[pd.DataFrame, random.Random], pd.DataFrame]] = {
    "a tenth gone": lambda rows, chance: rows.sample(frac=0.9, random_state=chance.randrange(2**31)),
    "half gone": lambda rows, chance: rows.sample(frac=0.5, random_state=chance.randrange(2**31)),
    "few rows": lambda rows, chance: rows.sample(min(FEW, len(rows)), random_state=chance.randrange(2**31)),
    "some tables empty": lambda rows, chance: rows.head(0 if chance.random() < EMPTIED else len(rows)),
}
"""The changes of the rows of each table, by their labels."""

HARD = ("opaque", "other word", "half gone")
"""Prefixes of the labels of changes after which even a human reader would not be sure."""


def perturbations(database: Database) -> Iterator[tuple[str, Database]]:
    """The variants of the database, with the label of each; always the same for the same database."""
    for kind, renaming in RENAMINGS.items():
        for side, which in enumerate(("referencing", "referenced")):
            yield (
                f"{kind}, {which}",
                _renamed(database, renaming, side, random.Random(f"{database.name} {kind} {side}")),
            )
    if database.file is not None:
        for kind, sample in SAMPLES.items():
            yield kind, _sampled(database, sample, random.Random(f"{database.name} {kind}"))


def _renamed(database: Database, renaming: Renaming, side: int, chance: random.Random) -> Database:
    """New names for columns of some declared keys, on the side (0 or 1) whose values repeat more, or less."""
    uniqueness = {_id(table, column.name): _unique(table, column.name) for table in database.tables
                  for column in table.columns}  # fmt: skip
    chosen: set[str] = set()
    for link in sorted(database.declared, key=sorted):
        ends = sorted(link, key=lambda column: (uniqueness.get(column, 0.5), column))
        if len(ends) == 2 and chance.random() < RENAMED:
            chosen.add(ends[side])
    names: dict[str, str] = {}
    tables = []
    for table in database.tables:
        used = {column.name.lower() for column in table.columns}
        columns = []
        for column in table.columns:
            old = _id(table, column.name)
            new = renaming(column.name, table.name, chance) if old in chosen else column.name
            if new.lower() not in used:
                used.add(new.lower())
                names[old] = _id(table, new)
                column = replace(column, name=new)
            columns.append(column)
        tables.append(replace(table, columns=tuple(columns)))
    declared = frozenset(frozenset(names.get(column, column) for column in link) for link in database.declared)
    return replace(database, tables=tuple(tables), declared=declared)


def _id(table: TableProfile, column: str) -> str:
    return f"{table.id}.{column}".lower()


def _unique(table: TableProfile, name: str) -> float:
    column = next(column for column in table.columns if column.name == name)
    return (column.distinct or 0) / column.rows if column.rows else 0.5


def _sampled(
    database: Database, sample: Callable[[pd.DataFrame, random.Random], pd.DataFrame], chance: random.Random
) -> Database:
    assert database.file is not None
    tables = []
    with closing(connect_readonly(database.file)) as connection:
        for table in database.tables:
            rows = pd.read_sql(f"SELECT * FROM {quoted(table.name)} LIMIT {MOST_ROWS}", connection, dtype=object)
            rows = sample(rows, chance)
            shape = TableShape(
                table.name,
                tuple(column.name for column in table.columns),
                tuple(column.declared_type for column in table.columns),
            )
            columns = [rows.iloc[:, position].tolist() for position in range(rows.shape[1])]
            tables.append(profile_table(table.database, shape, [Chunk(len(rows), columns)], name=table.name))
    return replace(database, tables=tuple(tables))
