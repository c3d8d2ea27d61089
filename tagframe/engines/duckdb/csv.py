"""CSV files for DuckDB: their rows are read as those of any CSV file, once, into Parquet files in the temporary folder
of the database."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from tagframe.engines.base import CHUNK_ROWS
from tagframe.engines.duckdb.tables import LakeTable, literal
from tagframe.engines.files.csv import CSVEngine, CSVRows
from tagframe.engines.sql_text import quoted, quoted_texts
from tagframe.errors import warn

if TYPE_CHECKING:
    from tagframe.engines.duckdb.connection import Lake

_TYPED = {
    "DATE": "[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "TIMESTAMP": "[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?",
    "TIME": "[0-9]{2}:[0-9]{2}:[0-9]{2}",
}
"""Types that texts of one form become."""


def csv_copies(lake: Lake, table: LakeTable) -> tuple[str, list[str], dict[str, str]]:
    """SQL for the rows of a table, the copies that it reads, and what the files say of their columns.

    The copies are below a folder of their own, so that names of folders are columns there, too.

    Raises:
        UnreadableTable: its reader cannot read a file.
    """
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    engines = _engines(table)
    rows, folder = CSVRows(engines), Path(tempfile.mkdtemp(dir=lake.folder))
    schema = pa.Schema.from_pandas(rows.empty(rows.columns), preserve_index=False).remove_metadata()
    copies = []
    for engine in rows.engines:
        below = engine.path.relative_to(table.place) if engine.path != table.place else Path(engine.path.name)
        copy = folder / below.with_name(f"{below.name}.parquet")
        copy.parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(copy, schema) as writer:
            for frame in rows.typed(engine, rows.columns, CHUNK_ROWS):
                writer.write_table(pa.Table.from_pandas(frame, schema, preserve_index=False))
        copies.append(str(copy))
    notes = {what.replace(engine.path.name, ""): (engine, what, category)
             for engine in reversed(engines) for what, category in engine.notes(engine.layout.columns)}  # fmt: skip
    for engine, what, category in notes.values():
        warn(f"{engine.path}: {what}", category)
    source = f"read_parquet({quoted_texts(map(literal, copies))}, hive_partitioning={table.partitioned})"
    labels = {name: text for engine in reversed(engines) for name, text in engine.layout.labels.items()}
    return _with_times(lake, source), copies, labels


def _with_times(lake: Lake, source: str) -> str:
    """The rows, with texts that are all days or times as those."""
    texts = [column.name for column in lake.columns(source) if column.type == "VARCHAR"]
    tests = {
        (name, type): f"coalesce(bool_and(regexp_full_match({quoted(name)}, '{form}') "
        f"AND TRY_CAST({quoted(name)} AS {type}) IS NOT NULL), false)"
        for name in texts
        for type, form in _TYPED.items()
    }
    items = ", ".join(f"{test} AS c{at}" for at, test in enumerate(tests.values()))
    if not items:
        return source
    (found,) = lake.fetch(f"SELECT {items} FROM {source}").to_pylist()
    typed = [one for one, holds in zip(tests, found.values(), strict=True) if holds]
    casts = ", ".join(f"CAST({quoted(name)} AS {type}) AS {quoted(name)}" for name, type in typed)
    return f"(SELECT * REPLACE ({casts}) FROM {source})" if casts else source


def _engines(table: LakeTable) -> list[CSVEngine]:
    """What reads each file. Parts of a table where the first one, or they, have no names have its names."""
    files = [file for file in table.files if os.path.getsize(file)] or [*table.files[:1]]
    engines = [CSVEngine(Path(file), given=table.csv) for file in files]
    first = engines[0].layout

    def named(engine: CSVEngine) -> CSVEngine:
        layout = engine.layout
        is_alike = layout.names == first.names or len(layout.names) != len(first.names)
        if is_alike or not (first.is_nameless or layout.is_nameless):
            return engine
        return replace(engine, given=repr({**engine.given_options, "header": None, "names": [*first.names]}))

    return [*map(named, engines)]
