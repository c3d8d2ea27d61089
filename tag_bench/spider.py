"""Tables from Spider's and JAR's files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tagframe.corpus.canonical import canonical, hash_texts
from tagframe.corpus.profile import ColumnProfile, Sketch, TableProfile, TypeFamily
from tagframe.engines.base import ForeignKey

_FAMILIES: dict[str, TypeFamily] = {
    "int": "integer", "bigint": "integer", "smallint": "integer", "integer": "integer", "number": "real",
    "real": "real", "double": "real", "float": "real", "decimal": "real", "numeric": "real",
    "date": "date", "time": "date", "datetime": "date", "timestamp": "date",
    "boolean": "boolean", "bool": "boolean", "blob": "blob",
}  # fmt: skip


def read_json(path: Path) -> Any:
    """The content of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def jar_tables(folder: Path) -> list[TableProfile]:
    """JAR's tables, with facts from ``schema_with_keys.json``, ``column_stats.json`` and ``uniqueness.json``."""
    schemas = {}
    if (folder / "schema_with_keys.json").is_file():
        for schema in read_json(folder / "schema_with_keys.json"):
            schemas.update({table.id.lower(): table for table in schema_tables(schema)})
    stats = {}
    if (folder / "column_stats.json").is_file():
        for database in read_json(folder / "column_stats.json"):
            for table in database["tables"]:
                for column in table["columns"]:
                    key = f"{database['name']}.{table['name']}.{column['name']}".lower()
                    stats[key] = {**column, "row_count": table["row_count"]}
    uniqueness = {}
    if (folder / "uniqueness.json").is_file():
        given = read_json(folder / "uniqueness.json")
        uniqueness = {key.replace("#sep#", ".").lower(): float(value) for key, value in given.items()}
    tables = []
    for entry in read_json(folder / "dev_tables.json").values():
        table_id = f"{entry['db_id']}.{entry['table_name_original']}"
        known = schemas.get(table_id.lower())
        types = {column.name: column for column in known.columns} if known else {}
        columns = []
        for position, name in enumerate(entry["column_names_original"]):
            # The file's own column_types are shifted by one. So if the other file is missing, no type is known, and
            # one family for all columns allows every join.
            column = ColumnProfile(name, position, types[name].family if name in types else "text")
            key = f"{table_id}.{name}".lower()
            if key in stats:
                column = _with_stats(column, stats[key])
            elif key in uniqueness:
                column = _with_uniqueness(column, uniqueness[key])
            columns.append(column)
        tables.append(
            TableProfile(
                table_id,
                entry["db_id"],
                entry["table_name_original"],
                tuple(columns),
                max((column.rows for column in columns if column.rows is not None), default=None),
                known.primary_key if known else (),
                known.foreign_keys if known else (),
            )
        )
    return tables


def _with_stats(column: ColumnProfile, stats: Mapping[str, Any]) -> ColumnProfile:
    rows, distinct = int(stats["row_count"]), int(stats["unique_count"] or 0)
    samples = tuple(str(value) for value in stats["sample_values"] or ())
    texts = {text for text, _ in map(canonical, samples) if text is not None}
    # Few values that are all there make a sketch; ten of many are no sample that could be compared with another.
    is_complete = 0 < distinct <= len(texts)
    return replace(
        column,
        rows=rows,
        nulls=round(float(stats["null_fraction"] or 0) * rows),
        distinct=distinct,
        minimum=None if stats["min_value"] is None else str(stats["min_value"]),
        maximum=None if stats["max_value"] is None else str(stats["max_value"]),
        samples=samples,
        sketch=Sketch(np.unique(hash_texts(sorted(texts))), complete=True) if is_complete else None,
    )


def _with_uniqueness(column: ColumnProfile, uniqueness: float) -> ColumnProfile:
    # Only a ratio is given; a profile holds counts, and any number of rows that large keeps the ratio.
    rows = 1_000_000
    return replace(column, rows=rows, nulls=0, distinct=round(uniqueness * rows))


def schema_tables(schema: Mapping[str, Any]) -> list[TableProfile]:
    """The tables of one database in Spider's ``tables.json`` form."""
    names = schema["table_names_original"]
    columns: list[list[ColumnProfile]] = [[] for _ in names]
    ends: dict[int, tuple[int, str]] = {}
    types = schema.get("column_types") or []
    for index, (table, name) in enumerate(schema["column_names_original"]):
        if table < 0:
            continue
        family = _family(str(types[index])) if index < len(types) else "text"
        columns[table].append(ColumnProfile(name, len(columns[table]), family))
        ends[index] = (table, name)
    primary: dict[int, tuple[str, ...]] = {}
    for key in schema.get("primary_keys") or []:
        parts = [ends[index] for index in (key if isinstance(key, list) else [key])]
        primary[parts[0][0]] = tuple(name for _, name in parts)
    foreign: dict[int, list[ForeignKey]] = {}
    for left, right in schema.get("foreign_keys") or []:
        table, column = ends[left]
        other, other_column = ends[right]
        foreign.setdefault(table, []).append(ForeignKey((column,), names[other], (other_column,)))
    database = schema["db_id"]
    return [
        TableProfile(
            f"{database}.{name}",
            database,
            name,
            tuple(columns[table]),
            None,
            primary.get(table, ()),
            tuple(foreign.get(table, ())),
        )
        for table, name in enumerate(names)
    ]


def _family(declared: str) -> TypeFamily:
    word = re.match(r"[a-z]*", declared.lower())
    return _FAMILIES.get(word.group() if word else "", "text")
