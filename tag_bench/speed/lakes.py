"""Lakes for indexing: folders of SQLite files, one file per database, with a few rows in each table."""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from sqlite_utils import Database

import tagframe as tf
from tag_bench.measured import memory_mb, peak_mb, spread, timed
from tagframe.embed import get_embedder
from tagframe.engines.sql_text import quoted
from tagframe.retrieval import retrieve_tables
from tagframe.retrieval.index import index_of


def index(folder: Path, catalogue: Path, questions: list[str]) -> dict[str, Any]:
    """From files to the first answer: seconds, in total and by part, and peak memory."""
    opened, corpus = timed(lambda: tf.open_corpus(folder, catalogue=catalogue))
    first, _ = timed(lambda: retrieve_tables(questions[0], corpus, k=5))
    return {
        "seconds": round(opened + first, 1),
        "profiling_seconds": round(opened, 1),
        "cpu_seconds": round(time.process_time(), 1),
        "peak_mb": round(peak_mb()),
        "catalogue_mb": round(catalogue.stat().st_size / 1e6),
    }


def ask(folder: Path, catalogue: Path, questions: list[str]) -> dict[str, Any]:
    """Open again, with the times of the first question and of later ones."""
    before = memory_mb()
    opened, corpus = timed(lambda: tf.open_corpus(folder, catalogue=catalogue))
    first, _ = timed(lambda: retrieve_tables(questions[0], corpus, k=5))
    times, cpu = [], []
    for question in questions[1:]:
        used = time.process_time()
        times.append(1000 * timed(partial(retrieve_tables, question, corpus, k=5))[0])
        cpu.append(1000 * (time.process_time() - used))
    return {
        "open_seconds": round(opened, 2),
        "first_seconds": round(first, 2),
        "question_ms": spread(times, 1),
        "question_cpu_ms": spread(cpu, 1),
        "resident_mb": round(memory_mb() - before),
        "families": len(index_of(corpus, get_embedder()).families),
    }


def refresh(folder: Path, catalogue: Path, questions: list[str]) -> dict[str, Any]:
    """Open a lake after one table has changed, until the new state of that table is known."""
    opened, corpus = timed(lambda: tf.open_corpus(folder, catalogue=catalogue))
    first, _ = timed(lambda: retrieve_tables(questions[0], corpus, k=5))
    return {"refresh_one_seconds": round(opened, 2), "refresh_and_first_seconds": round(opened + first, 2)}


SYNTHETIC = "synthetic"
"""The name of the synthetic lake."""

ADJECTIVES = (
    "regional national local annual monthly daily pending archived active draft primary shared public private inbound "
    "outbound internal external partner retail wholesale online seasonal premium standard legacy global urban rural "
    "mobile certified joint interim"
).split()
NOUNS = (
    "customer order invoice product supplier shipment payment account branch employee contract claim policy vehicle "
    "driver route station sensor reading device ticket campaign budget project task patient visit drug trial sample "
    "course student teacher exam book author library museum artwork match player team league referee stadium city"
).split()
_TABLES, _DATABASES, _COLUMNS, _ROWS = 10_000, 200, 20, 20
_TYPES = {"NUMBER": "INTEGER", "FLOAT": "REAL", "BOOLEAN": "INTEGER"}


@dataclass(frozen=True)
class Table:
    """A table to write.

    Attributes:
        database, name: of the table.
        columns: name and SQLite's type of each.
        rows: of its cells.
    """

    database: str
    name: str
    columns: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[Any]]


def write(tables: Iterator[Table], folder: Path) -> tuple[int, int]:
    """Write tables that are sorted by database; gives the number of tables and of all columns."""
    count = columns = 0
    for database, group in groupby(tables, key=lambda table: table.database):
        with closing(Database(folder / f"{database}.sqlite")) as file:
            file.execute("PRAGMA synchronous = OFF")
            for table in group:
                file.table(table.name).create(dict(table.columns))
                marks = ", ".join("?" * len(table.columns))  # sqlite-utils inserts 999 columns at most
                with file.conn:
                    file.conn.executemany(f"INSERT INTO {quoted(table.name)} VALUES ({marks})", table.rows)
                count, columns = count + 1, columns + len(table.columns)
    return count, columns


def change_one(folder: Path) -> None:
    """Give the first table of the first file one more column."""
    path = min(folder.glob("*.sqlite"))
    with closing(Database(path)) as file:
        file.table(min(file.table_names())).add_column("changed_just_now", str)


def spider2_tables(folder: Path) -> Iterator[Table]:
    """Every table of Spider 2's warehouses, with its samples as rows; all tables of a family have the same samples."""
    with gzip.open(folder / "tables.jsonl.gz", "rt", encoding="utf-8") as lines:
        families = sorted(map(json.loads, lines), key=lambda family: str(family["database"]))
    for family in families:
        # SQLite ignores case: of names that differ only in it, the first one stays.
        columns = list({column["name"].casefold(): column for column in reversed(family["columns"])}.values())[::-1]
        names = [(column["name"], _TYPES.get(column["type"].split("(")[0].upper(), "TEXT")) for column in columns]
        samples = [[str(value)[:200] for value in column.get("samples") or ()] for column in columns]
        rows = [
            [values[row] if row < len(values) else None for values in samples]
            for row in range(max(map(len, samples), default=0))
        ]
        for table in family["tables"]:
            name = table.removeprefix(f"{family['database']}.")
            # SQLite reserves names with this prefix.
            name = f"_{name}" if name.casefold().startswith("sqlite_") else name
            yield Table(family["database"], name, names, rows)


def spider2_questions(folder: Path) -> list[str]:
    """The questions of the warehouses."""
    return [entry["question"] for entry in json.loads((folder / "dev.json").read_text(encoding="utf-8"))]


def synthetic_tables(tables: int = _TABLES, databases: int = _DATABASES, columns: int = _COLUMNS) -> Iterator[Table]:
    """Tables of everyday things; some reference others in their database.

    Args:
        tables: how many.
        databases: how many.
        columns: of each table.
    """
    random = np.random.default_rng(0)
    names = [f"{adjective}_{noun}" for noun in NOUNS for adjective in ADJECTIVES]
    attributes = [f"{noun}_{word}" for noun in NOUNS for word in ("name", "status", "amount", "date", "note", "count")]
    for number in range(databases):
        mine = tables * (number + 1) // databases - tables * number // databases
        things = [str(name) for name in random.choice(names, mine, replace=mine > len(names))]
        things = [f"{name}_{things[:position].count(name) + 1}" if name in things[:position] else name
                  for position, name in enumerate(things)]  # fmt: skip
        for thing in things:
            others = [str(other) for other in random.choice(things, 2) if other != thing]
            own = [f"{thing}_id", *(f"{other}_id" for other in dict.fromkeys(others))]
            more = random.choice(attributes, columns - len(own), replace=False)
            kinds = [(name, "INTEGER") for name in own] + [
                (str(name), "INTEGER" if str(name).endswith(("amount", "count")) else "TEXT") for name in more
            ]
            rows = [[_cell(random, row, name, kind) for name, kind in kinds] for row in range(_ROWS)]
            yield Table(f"db{number:03}", thing, kinds, rows)


def _cell(random: np.random.Generator, row: int, name: str, kind: str) -> Any:
    if name.endswith("_id"):
        return row + 1
    value = int(random.integers(1, 1000))
    return value if kind == "INTEGER" else f"{name.rpartition('_')[0]} {value}"


def synthetic_questions(count: int) -> list[str]:
    """Questions about two things."""
    random = np.random.default_rng(1)
    return [
        f"Which {random.choice(ADJECTIVES)} {random.choice(NOUNS)} has the highest {random.choice(NOUNS)} amount "
        f"of a {random.choice(ADJECTIVES)} {random.choice(NOUNS)} with status {random.choice(NOUNS)} 7?"
        for _ in range(count)
    ]


STEPS = {step.__name__: step for step in (index, ask, refresh)}

if __name__ == "__main__":
    name, folder, catalogue, questions = sys.argv[1:]
    embedder = get_embedder()
    if embedder is not None:
        embedder.encode(["a question of no table"])
    figures = STEPS[name](Path(folder), Path(catalogue), json.loads(Path(questions).read_text(encoding="utf-8")))
    json.dump(figures, sys.stdout)
