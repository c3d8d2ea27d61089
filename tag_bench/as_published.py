"""Benchmarks in the form in which their authors publish them, given as a file.

BEAVER (Chen et al., 2024): ``dev_dw.json`` or ``dev_nw.json``, with ``dev_tables.json`` and ``dw_join_keys.json``
beside it. MMQA (Wu et al., ICLR 2025): ``Synthesized_two_table.json`` or ``Synthesized_three_table.json``, whose
questions hold their tables with all rows; a table that several questions hold is one table. Its keys are not read: they
are names without the tables that they are of.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pandas as pd

from tagframe.corpus import open_corpus
from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.corpus.schema_only import declared_family
from tagframe.engines.base import ForeignKey

SEPARATOR = "#sep#"
Entries = list[dict[str, Any]]


def name_of(file: Path) -> str:
    """The name of a data set: ``beaver_dw``, ``mmqa_two_table``; of a folder its own."""
    if file.is_dir():
        return file.resolve().name
    stem = file.stem.lower()
    return f"beaver_{stem.removeprefix('dev_')}" if stem.startswith("dev_") else stem.replace("synthesized", "mmqa")


def read_published(file: Path) -> tuple[Entries, list[TableProfile]]:
    """The questions of a file, with ``question``, ``db_id``, ``gold_tables`` and ``sql``, and their tables.

    Raises:
        click.ClickException: the file has neither form.
    """
    try:
        entries = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        entries = None
    first = entries[0] if isinstance(entries, list) and entries and isinstance(entries[0], dict) else {}
    if {"Question", "table_names", "tables"} <= first.keys():
        return _mmqa(entries)
    if {"question", "db_id", "gold_tables"} <= first.keys() and (file.parent / "dev_tables.json").is_file():
        return entries, _beaver(file.parent, {str(entry["db_id"]) for entry in entries})
    raise click.ClickException(
        f"{file} is no benchmark: it needs BEAVER's form, a list of question, db_id and gold_tables beside "
        "dev_tables.json, or MMQA's, a list of Question, table_names and tables"
    )


def _beaver(folder: Path, databases: set[str]) -> list[TableProfile]:
    """The tables of some databases, with their keys."""
    given = json.loads((folder / "dev_tables.json").read_text(encoding="utf-8"))
    tables = [_beaver_table(entry) for entry in given.values() if entry["db_id"] in databases]
    pairs = folder / "dw_join_keys.json"
    joined = json.loads(pairs.read_text(encoding="utf-8")) if pairs.is_file() else []
    keys: dict[str, list[ForeignKey]] = {}
    for left, right in joined:
        (table, column), (other, other_column) = left.split("."), right.split(".")
        keys.setdefault(f"dw.{table}".lower(), []).append(ForeignKey((column,), other, (other_column,)))
    return [_with_keys(table, keys.get(table.id.lower(), ())) for table in tables]


def _beaver_table(entry: Mapping[str, Any]) -> TableProfile:
    names = entry["column_names_original"]
    types = entry.get("column_types") or ["text"] * len(names)
    columns = tuple(
        ColumnProfile(name, position, declared_family(str(kind).split(" ")[0]))
        for position, (name, kind) in enumerate(zip(names, types, strict=True))
    )
    foreign = tuple(
        ForeignKey((key["column_name"],), key["referenced_table_name"].split(SEPARATOR)[-1],
                   (key["referenced_column_name"],))
        for key in entry.get("foreign_key") or ()
    )  # fmt: skip
    database, name = entry["db_id"], entry["table_name_original"]
    return TableProfile(
        f"{database}.{name}", database, name, columns, None, tuple(entry.get("primary_key") or ()), foreign
    )


def _with_keys(table: TableProfile, keys: Sequence[ForeignKey]) -> TableProfile:
    return replace(table, foreign_keys=(*table.foreign_keys, *keys)) if keys else table


def _mmqa(entries: Entries) -> tuple[Entries, list[TableProfile]]:
    """The questions and distinct tables: those of one name and other columns are other tables, with a number."""
    ids: dict[tuple[str, ...], str] = {}
    frames: dict[str, pd.DataFrame] = {}
    questions: Entries = []
    for entry in entries:
        # A name without a table stays: nothing can find it.
        gold = [f"mmqa.{name}" for name in entry["table_names"][len(entry["tables"]) :]]
        for name, table in zip(entry["table_names"], entry["tables"], strict=False):
            shape = (name.lower(), *(str(column).lower() for column in table["table_columns"]))
            if shape not in ids:
                ids[shape] = _free(f"mmqa.{name}", frames)
                names: dict[str, None] = {}
                for column in map(str, table["table_columns"]):
                    names[_free(column, names)] = None
                frames[ids[shape]] = _frame(ids[shape], [*names], table["table_content"])
            gold.append(ids[shape])
        question = {"question": entry["Question"], "db_id": "mmqa", "gold_tables": gold, "sql": entry.get("SQL", "")}
        questions.append(question)
    return questions, list(open_corpus(frames).profiles)


def _frame(id: str, names: list[str], rows: Sequence[Sequence[Any]]) -> pd.DataFrame:
    """The rows of a table; the cells that a row lacks at its end are null.

    Raises:
        click.ClickException: a row has more cells than the table has columns.
    """
    for number, row in enumerate(rows, start=1):
        if len(row) > len(names):
            raise click.ClickException(
                f"{id}: row {number} has {len(row)} cells for {len(names)} columns ({', '.join(names)}): {row!r}"
            )
    whole = [[*row, *[None] * (len(names) - len(row))] for row in rows]
    return pd.DataFrame(whole, columns=names)


def _free(id: str, taken: Mapping[str, Any]) -> str:
    """The id, or the name, with a number if it is taken."""
    known = {one.lower() for one in taken}
    numbered = (id if count == 1 else f"{id}_{count}" for count in range(1, len(known) + 2))
    return next(one for one in numbered if one.lower() not in known)
