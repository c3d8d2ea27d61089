"""Keys of whole warehouses: a folder of Parquet files with ``FOLDER_keys.json`` beside it, or a schema's names alone.

The keys are pairs of ``table.column``. ``FOLDER_queries.json``, if it exists, has statements in DuckDB's dialect.
Nothing is declared in the data.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from tag_bench.databases import links_of, percent
from tag_bench.gold_joins import GoldJoins, gold_joins
from tagframe.corpus import open_corpus
from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.corpus.schema_only import schema_profiles
from tagframe.keys import KeyPair, infer_key_pairs

Link = frozenset[str]
"""Both columns as ``table.column`` in lower case, without a direction."""


def beside(folder: Path, part: str) -> Path:
    """The file of a warehouse's keys or queries."""
    return folder.parent / f"{folder.name}_{part}.json"


def warehouse(folder: Path, *, own_names: bool) -> dict[str, Any]:
    """Keys of a folder of Parquet files with rows, unless ``own_names`` leaves them out, and without."""
    corpus = open_corpus(folder)
    tables = [replace(table, primary_key=(), foreign_keys=()) for table in corpus.profiles]
    gold = read_keys(beside(folder, "keys"))
    bare = infer_key_pairs([_names_only(table) for table in tables], declared=False)
    found = bare if own_names else infer_key_pairs(tables, declared=False, read=corpus.read)
    queries = beside(folder, "queries")
    gold_of = read_statements(queries, tables) if queries.is_file() else []
    return {
        "dataset": folder.name,
        "tables": len(tables),
        "columns": sum(len(table.columns) for table in tables),
        "keys": None if own_names else scores(found, gold),
        "keys_without_rows": scores(bare, gold),
        "statements": statements(gold_of, found) if gold_of else None,
    }


def schema_alone(schema: Path, keys: Path) -> dict[str, Any]:
    """Keys of a file of CREATE TABLE statements."""
    tables = schema_profiles(schema)
    return {
        "dataset": schema.stem,
        "tables": len(tables),
        "columns": sum(len(table.columns) for table in tables),
        "keys": None,
        "keys_without_rows": scores(infer_key_pairs(tables, declared=False), read_keys(keys)),
    }


def read_keys(file: Path) -> set[Link]:
    """The single keys of a file.

    Raises:
        click.ClickException: an entry is no pair of columns.
    """
    found = set()
    for entry in json.loads(file.read_text(encoding="utf-8")):
        if not isinstance(entry, list) or len(entry) != 2:
            raise click.ClickException(f"{file} has {entry!r}; a key is a pair like ['orders.customer', 'customer.id']")
        if all(isinstance(side, str) for side in entry):
            found.add(frozenset(side.lower() for side in entry))
    return found


def scores(keys: Sequence[KeyPair], gold: set[Link]) -> dict[str, Any]:
    """Precision, recall and F1 of single keys in percent, and the differences."""
    found = {link for key in keys if len(key.left_columns) == 1 for link in _parts(key)}
    right = len(found & gold)
    precision, recall = percent(right, len(found)), percent(right, len(gold))
    return {
        "precision": precision,
        "recall": recall,
        "f1": round(2 * precision * recall / (precision + recall), 3) if right else 0.0,
        "gold": len(gold),
        "wrong": _texts_of(found - gold),
        "missed": _texts_of(gold - found),
    }


def read_statements(file: Path, tables: Sequence[TableProfile]) -> list[GoldJoins]:
    """The joins of each statement of a file."""
    schema = {table.name.lower(): tuple(column.name.lower() for column in table.columns) for table in tables}
    queries = json.loads(file.read_text(encoding="utf-8"))
    return [gold_joins(query["sql"], schema, dialect="duckdb") for query in queries]


def statements(every: Sequence[GoldJoins], keys: Sequence[KeyPair]) -> dict[str, Any]:
    """How many of the distinct joins of the statements are among the keys, or follow from two keys to one column."""
    links = {link for key in keys for link in _parts(key)}
    joins = {
        frozenset(".".join(side) for side in pair)
        for gold in every
        for pair in gold.pairs
        if len({t for t, _ in pair}) == 2
    }
    parents: dict[str, set[str]] = {}
    for link in links:
        for side in link:
            parents.setdefault(side, {side}).update(link)
    among = {join for join in joins if join in links or len(set.intersection(*(parents.get(s, {s}) for s in join)))}
    return {
        "count": len(every),
        "joins": len(joins),
        "among_keys": len(among),
        "tables_twice": sum(gold.twice for gold in every),
        "missed": _texts_of(joins - among),
    }


def _parts(key: KeyPair) -> list[Link]:
    """The pairs of columns of a key, without the database."""
    return [frozenset(side.partition(".")[2] for side in link) for link in links_of(key)]


def _texts_of(links: Iterable[Link]) -> list[str]:
    return sorted(" = ".join(sorted(link)) for link in links)


def _names_only(table: TableProfile) -> TableProfile:
    columns = tuple(ColumnProfile(column.name, column.position, column.family) for column in table.columns)
    return TableProfile(table.id, table.database, table.name, columns)
