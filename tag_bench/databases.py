"""The databases of a benchmark, their declared keys, and a comparison of inferred keys with these."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from tag_bench import measured
from tag_bench.data import ANY_ROWS, with_uniqueness
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
            profiles[profile.database].append(replace(profile, primary_key=(), foreign_keys=()))
    uniqueness = {}
    if (folder / "uniqueness.json").is_file():
        uniqueness = json.loads((folder / "uniqueness.json").read_text(encoding="utf-8"))
    found = []
    for entry in json.loads((folder / "schema_with_keys.json").read_text(encoding="utf-8")):
        name, tables = entry["db_id"], entry["table_names_original"]
        columns = entry["column_names_original"]

        def column_id(index: int, name: str = name, tables: Any = tables, columns: Any = columns) -> str:
            table, column = columns[index]
            return f"{name}.{tables[table]}.{column}".lower()

        declared = frozenset(frozenset(map(column_id, pair)) for pair in entry["foreign_keys"])
        schema = {
            table.lower(): tuple(column.lower() for owner, column in columns if owner == number)
            for number, table in enumerate(tables)
        }
        file = folder / "database" / name / f"{name}.sqlite"
        known = tuple(profiles[name]) or tuple(_schema_only(entry, uniqueness))
        found.append(Database(name, known, schema, declared, file if file.is_file() else None))
    return sorted(found, key=lambda database: database.name)


def _schema_only(entry: Mapping[str, Any], uniqueness: Mapping[str, float]) -> Iterable[TableProfile]:
    """Profiles with only names and the share of distinct values."""
    for number, table in enumerate(entry["table_names_original"]):
        names = [name for owner, name in entry["column_names_original"] if owner == number]
        columns = []
        for position, name in enumerate(names):
            column = ColumnProfile(name, position, "text")
            share = uniqueness.get(f"{entry['db_id']}#sep#{table}#sep#{name}")
            columns.append(column if share is None else with_uniqueness(column, float(share)))
        yield TableProfile(f"{entry['db_id']}.{table}", entry["db_id"], table, tuple(columns), ANY_ROWS)


def read_halves(folder: Path) -> dict[str, frozenset[str]]:
    """The databases to ``fit`` on and those to ``report`` on, according to the folder's ``halves.json``."""
    file = folder / "halves.json"
    halves = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return {half: frozenset(names) for half, names in halves.items()}


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
    right = wrong = missed = 0
    extra, absent = [], []
    for database in databases:
        found = {link: key for key in reversed(keys[database.name]) for link in links_of(key)}
        right += len(found.keys() & database.declared)
        wrong += len(found.keys() - database.declared)
        missed += len(database.declared - found.keys())
        extra += [repr(key) for link, key in found.items() if link not in database.declared]
        absent += [" = ".join(sorted(link)) for link in sorted(database.declared - found.keys(), key=sorted)]
    return {
        "precision": percent(right, right + wrong),
        "recall": percent(right, right + missed),
        "declared": right + missed,
        "undeclared": sorted(extra),
        "missed": absent,
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
