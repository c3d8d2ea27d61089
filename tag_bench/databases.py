"""The databases of a benchmark, their declared keys, and a comparison of inferred keys with these."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from tag_bench import measured
from tag_bench.data import ANY_ROWS, read_json, read_uniqueness, schema_tables, with_uniqueness
from tag_bench.gold_joins import Schema
from tagframe.corpus import open_corpus
from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.keys import KeyPair

Link = frozenset[str]
"""Both columns of a key as ``database.table.column`` in lower case, without a direction."""


@dataclass(frozen=True)
class Database:
    """One database of a benchmark, with its declared keys as the truth.

    Attributes:
        tables: profiles without declared keys.
        schema: columns by table, lower case.
        declared: the keys that it declares.
        file: its SQLite file; None if it has no rows.
    """

    name: str
    tables: tuple[TableProfile, ...]
    schema: Schema
    declared: frozenset[Link]
    file: Path | None

    @classmethod
    def of(
        cls, name: str, tables: Sequence[TableProfile], known: Sequence[TableProfile], file: Path | None
    ) -> Database:
        """The database with the schema and the keys of some tables; ``known`` are their profiles without keys."""
        declared = frozenset(
            frozenset((f"{table.id}.{mine}".lower(), f"{table.database}.{key.other_table}.{theirs}".lower()))
            for table in tables
            for key in table.foreign_keys
            for mine, theirs in zip(key.columns, key.other_columns, strict=True)
        )
        schema = {table.name.lower(): tuple(column.name.lower() for column in table.columns) for table in tables}
        return cls(name, tuple(known), schema, declared, file)


def read_databases(folder: Path) -> list[Database]:
    """The databases of a folder in JAR's format, sorted by name.

    Raises:
        click.ClickException: ``schema_with_keys.json`` or ``dev.json`` does not exist.
    """
    for name in ("schema_with_keys.json", "dev.json"):
        if not (folder / name).is_file():
            raise click.ClickException(f"no {name} in {folder}; give a folder like shared/bench/spider")
    profiles: dict[str, list[TableProfile]] = defaultdict(list)
    if (folder / "database").is_dir():
        for profile in open_corpus(folder / "database").profiles:
            profiles[profile.database].append(replace(profile, primary_key=(), foreign_keys=(), unique=()))
    uniqueness = read_uniqueness(folder)
    found = []
    for entry in read_json(folder / "schema_with_keys.json"):
        name, tables = entry["db_id"], schema_tables(entry)
        file = folder / "database" / name / f"{name}.sqlite"
        known = profiles[name] or [_names_only(table, uniqueness) for table in tables]
        found.append(Database.of(name, tables, known, file if file.is_file() else None))
    return sorted(found, key=lambda database: database.name)


def _names_only(table: TableProfile, uniqueness: Mapping[str, float]) -> TableProfile:
    """A profile with only names and the share of distinct values."""
    columns = []
    for known in table.columns:
        column = ColumnProfile(known.name, known.position, "text")
        share = uniqueness.get(f"{table.id}.{known.name}".lower())
        columns.append(column if share is None else with_uniqueness(column, share))
    return TableProfile(table.id, table.database, table.name, tuple(columns), ANY_ROWS)


def links_of(key: KeyPair) -> frozenset[Link]:
    """The pairs of columns that a key makes equal; several for a composite key."""
    return frozenset(
        frozenset((f"{key.left_table}.{mine}".lower(), f"{key.right_table}.{theirs}".lower()))
        for mine, theirs in zip(key.left_columns, key.right_columns, strict=True)
    )


def key_scores(databases: Sequence[Database], keys: Mapping[str, Sequence[KeyPair]]) -> dict[str, Any]:
    """Precision and recall of inferred keys against the declared ones, in percent, and the differences.

    A composite key counts as its pairs of columns. Many ``undeclared`` keys are real, so they are listed for review.
    """
    found = {link: key for database in databases for key in reversed(keys[database.name]) for link in links_of(key)}
    declared = {link for database in databases for link in database.declared}
    right = len(found.keys() & declared)
    return {
        "precision": percent(right, len(found)),
        "recall": percent(right, len(declared)),
        "declared": len(declared),
        "undeclared": sorted(repr(key) for link, key in found.items() if link not in declared),
        "missed": sorted(" = ".join(sorted(link)) for link in declared - found.keys()),
    }


def reliability(databases: Sequence[Database], keys: Mapping[str, Sequence[KeyPair]]) -> float:
    """Calibration of scores: the mean distance between score and share declared, over ten bins."""
    links = [
        (key.score, link in database.declared)
        for database in databases
        for key in keys[database.name]
        for link in links_of(key)
    ]
    scores, declared = np.array(links, dtype=float).reshape(-1, 2).T
    return measured.reliability(scores, declared)


def percent(part: float, whole: float) -> float:
    """The share in percent; 0 if there is nothing to count."""
    return round(100 * part / whole, 3) if whole else 0.0
