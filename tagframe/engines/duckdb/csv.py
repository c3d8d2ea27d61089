"""CSV files for DuckDB, which reads plain ones where they are, and of others a copy.

A file is plain if nothing in it depends on how its reader (:mod:`tagframe.engines.files.csv`) takes it: its names, its
words for missing values, its numbers and dates. The rows of others are read by that reader, once, into Parquet files in
the temporary folder of the database.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tagframe.engines.base import CHUNK_ROWS
from tagframe.engines.duckdb.tables import LakeTable, literal
from tagframe.engines.files.column_formats import Formats
from tagframe.engines.files.csv import CSVEngine, CSVRows
from tagframe.engines.sql_text import quoted, quoted_text, quoted_texts
from tagframe.errors import warn

if TYPE_CHECKING:
    from tagframe.engines.duckdb.connection import Lake

_TYPED = {
    "DATE": "[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "TIMESTAMP": "[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?",
    "TIME": "[0-9]{2}:[0-9]{2}:[0-9]{2}",
}
"""Types whose texts DuckDB reads in plain files, too."""


def csv_source(lake: Lake, table: LakeTable) -> tuple[str, list[str]]:
    """SQL for the rows of a table, and the files that it reads, if these are copies.

    Raises:
        UnreadableTable: its reader cannot read a file.
    """
    import duckdb

    engines = _engines(table)
    if all(map(_is_plain, engines)) and len({engine.layout.options["sep"] for engine in engines}) == 1:
        layout = engines[0].layout
        names = f", names={quoted_texts(layout.names)}" * (len({engine.layout.names for engine in engines}) == 1)
        source = (
            f"read_csv({quoted_texts(map(literal, table.files))}, delim={quoted_text(layout.options['sep'])}, "
            f"quote='\"', comment='', header=true, sample_size=-1, nullstr='', union_by_name={len(table.files) > 1}, "
            f"hive_partitioning={table.partitioned}{names})"
        )
        try:
            lake.fetch(f"SELECT count(COLUMNS(*)) FROM {source}")
            return source, []
        except duckdb.Error:  # rows have fewer cells than there are names, say
            pass
    return _copied(lake, table, engines)


def labels_of(table: LakeTable) -> dict[str, str]:
    """What the files say of their columns."""
    return {name: text for engine in reversed(_engines(table)) for name, text in engine.layout.labels.items()}


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


def _is_plain(engine: CSVEngine) -> bool:
    """Whether DuckDB reads a file as its reader does."""
    layout = engine.layout
    return not (
        engine.given_options
        or layout.notes
        or layout.has_words
        or engine.formats != Formats()
        or layout.options["encoding"] != "utf-8-sig"
        or len({*map(str.lower, layout.names)}) < len(layout.names)
    )


def _copied(lake: Lake, table: LakeTable, engines: Sequence[CSVEngine]) -> tuple[str, list[str]]:
    """Below a folder of their own, so that names of folders are columns there, too."""
    import pyarrow as pa
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

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
    return _with_times(lake, source), copies


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
