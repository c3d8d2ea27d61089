"""What the files of a lake know of their tables: footers of Parquet files, and a sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe.engines.base import ColumnStatistics, TableStatistics, quoted
from tagframe.engines.duckdb.connection import Lake, LakeColumn, Opened
from tagframe.engines.duckdb.formats import Footers
from tagframe.engines.duckdb.tables import literal
from tagframe.engines.files import from_arrow
from tagframe.engines.sampling import distinct_of_sample

if TYPE_CHECKING:
    import pyarrow as pa

FEW_CELLS = 500_000
"""Tables of so many cells are read, and counted."""
SAMPLE = 20_000
"""Rows of a sample at most."""
_PLACES = 8
"""From where in a table the rows of a sample are taken."""
_PLAIN = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
          "FLOAT", "DOUBLE", "DATE", "BOOLEAN", "VARCHAR")  # fmt: skip


def statistics_of(lake: Lake, opened: Opened) -> TableStatistics:
    """What is known of a table without a pass over its rows; of one of few rows, that it is to be read.

    Rows, nulls and extremes are those of footers, also of the files that a Delta log names; CSV and JSON files have
    none, and are counted in one pass. How many distinct values there are is estimated from a sample.
    """
    footers = None if opened.logged is None or opened.logged.footers is None else opened.logged.footers()
    if footers is not None:
        rows = footers.rows
    elif opened.table.format == "parquet":
        (rows,) = lake.fetch(f"SELECT sum(num_rows) AS n FROM parquet_file_metadata({_files(opened)})")["n"].to_pylist()
    else:
        (rows,) = lake.fetch(f"SELECT count(*) AS n FROM {opened.source}")["n"].to_pylist()
    rows = int(rows or 0)
    if rows * len(opened.columns) <= FEW_CELLS:
        return TableStatistics(rows, None)
    known = _known(lake, opened, footers)
    frame = _sample(lake, opened, rows)
    columns = tuple(
        _column(column, frame[column.name], rows, *known.get(column.name, (None,) * 3)) for column in opened.columns
    )
    return TableStatistics(rows, columns)


def _files(opened: Opened) -> str:
    return "[" + ", ".join("'" + file.replace("'", "''") + "'" for file in opened.table.patterns) + "]"


def _known(lake: Lake, opened: Opened, footers: Footers | None) -> dict[str, tuple[int | None, Any, Any]]:
    """Nulls, minimum and maximum by column, as far as they are written down somewhere."""
    if footers is not None:
        names = [column.name for column in opened.columns]
        return {name: (footers.nulls.get(name), footers.minimum.get(name), footers.maximum.get(name)) for name in names}
    if opened.logged is not None:
        return {}
    plain = [column for column in opened.columns if column.type in _PLAIN]
    if opened.table.format != "parquet":
        shown = ", ".join(
            f"count(*) - count({quoted(column.name)}) AS n{place}, min({quoted(column.name)})::VARCHAR AS l{place}, "
            f"max({quoted(column.name)})::VARCHAR AS h{place}"
            for place, column in enumerate(plain)
        )
        found = lake.fetch(f"SELECT {shown or 'NULL'} FROM {opened.source}").to_pylist()[0]
    else:
        parts = []
        for place, column in enumerate(plain):
            name = column.name.replace("'", "''")
            only = f"FILTER (WHERE path_in_schema = '{name}')"
            low, high = (f"TRY_CAST({end} AS {column.type})" for end in ("stats_min_value", "stats_max_value"))
            # A row group whose footer does not tell makes the whole unknown.
            told = f"CASE WHEN count(*) {only} = count(stats_null_count) {only} THEN sum(stats_null_count) {only} END"
            ends = f"count(*) {only} = count(stats_min_value) {only}"
            parts.append(
                f"{told} AS n{place}, CASE WHEN {ends} THEN min({low}) {only} END::VARCHAR AS l{place}, "
                f"CASE WHEN {ends} THEN max({high}) {only} END::VARCHAR AS h{place}"
            )
        query = f"SELECT {', '.join(parts) or 'NULL'} FROM parquet_metadata({_files(opened)})"
        found = lake.fetch(query).to_pylist()[0]
    return {
        column.name: (
            None if found[f"n{place}"] is None else int(found[f"n{place}"]),
            _typed(column, found[f"l{place}"]),
            _typed(column, found[f"h{place}"]),
        )
        for place, column in enumerate(plain)
    }


def _typed(column: LakeColumn, text: str | None) -> Any:
    if text is None or column.type in ("VARCHAR", "DATE"):
        return text
    if column.type == "BOOLEAN":
        return text == "true"
    return float(text) if column.type in ("FLOAT", "DOUBLE") else int(text)


def _sample(lake: Lake, opened: Opened, rows: int) -> pd.DataFrame:
    """Rows from a few places of a table: near ones are alike where it is sorted, and few places cost little."""
    names = [column.name for column in opened.columns]
    if opened.table.format == "parquet":
        return from_arrow(_of_row_groups(lake, opened, names))
    shown = ", ".join(map(quoted, names))
    return from_arrow(
        lake.fetch(f"SELECT {shown} FROM {opened.source} USING SAMPLE reservoir({SAMPLE} ROWS) REPEATABLE (1)")
    )


def _of_row_groups(lake: Lake, opened: Opened, names: list[str]) -> pa.Table:
    """The first rows of some row groups, evenly spaced; the rest of those is not decoded."""
    import pyarrow as pa

    groups = lake.fetch(
        "SELECT file_name, row_group_id, any_value(row_group_num_rows) AS n "
        f"FROM parquet_metadata({_files(opened)}) GROUP BY ALL ORDER BY ALL"
    ).to_pylist()
    starts: list[tuple[str, int]] = []
    order = {file: place for place, file in enumerate(opened.table.files)}
    at: dict[str, int] = {}
    for group in sorted(groups, key=lambda group: (order.get(group["file_name"], 0), group["row_group_id"])):
        file = group["file_name"]
        starts.append((file, at.get(file, 0)))
        at[file] = at.get(file, 0) + int(group["n"])
    step = max(1, len(starts) // _PLACES)
    chosen = starts[::step][: 2 * _PLACES]
    each = max(1, SAMPLE // len(chosen))
    hive = "true" if opened.table.partitioned else "false"
    # A file each: over all files DuckDB would read what the conditions leave out, too.
    parts = (
        f"SELECT * FROM read_parquet('{literal(file).replace(chr(39), 2 * chr(39))}', hive_partitioning={hive}) "
        f"WHERE file_row_number BETWEEN {start} AND {start + each - 1}"
        for file, start in chosen
    )
    found = lake.fetch(" UNION ALL BY NAME ".join(parts))
    missing = [name for name in names if name not in found.column_names]
    for name in missing:
        found = found.append_column(name, pa.nulls(found.num_rows))
    return found.select(names)


def _column(
    column: LakeColumn, cells: pd.Series, rows: int, nulls: int | None, low: Any, high: Any
) -> ColumnStatistics:
    filled = cells.dropna()
    seen = len(cells)
    if nulls is None and seen:
        nulls = round((seen - len(filled)) * rows / seen)
    nulls = min(nulls or 0, rows)
    try:
        counts = filled.value_counts()
    except TypeError:  # lists and structs
        counts = filled.astype(str).value_counts()
    values = counts.index.tolist()
    distinct = distinct_of_sample(len(filled), len(counts), int((counts == 1).sum()), rows - nulls)
    if low is not None and high is not None and type(low) is int and type(high) is int:
        distinct = min(distinct, high - low + 1)
    distinct = max(min(distinct, rows - nulls), len(values))
    # Rare values may not be in a sample, unless there is no room for others.
    whole = seen >= rows or (type(low) is int and type(high) is int and high - low + 1 == len(values))
    return ColumnStatistics(values, whole, nulls, distinct, low, high)
