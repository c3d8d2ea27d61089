"""What the files of a lake tell about their tables: footers of Parquet files, and a sample."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe.engines.base import TableStatistics, quoted
from tagframe.engines.dtypes import from_arrow
from tagframe.engines.duckdb.connection import Lake, LakeColumn, Opened
from tagframe.engines.sql_engine import column_of_sample
from tagframe.engines.sql_text import quoted_text

if TYPE_CHECKING:
    import pyarrow as pa

FEW_CELLS = 500_000
"""Tables of at most this many cells are read, and counted."""
SAMPLE = 20_000
"""Rows of a sample at most."""
_PARTS = 8
"""Of a table, from which the rows of a sample are taken."""
_MOST_FOOTERS = 200_000
"""Columns of row groups whose footers are looked at one by one."""
_PLAIN = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
          "FLOAT", "DOUBLE", "DATE", "BOOLEAN", "VARCHAR")  # fmt: skip
_TOLD_BY_FOOTERS = (*_PLAIN, "DECIMAL", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")

Told = tuple[int | None, Any, Any]
"""Nulls, minimum and maximum of a column."""


def statistics_of(lake: Lake, opened: Opened) -> TableStatistics:
    """What is known about a table without a pass over its rows; for one of few rows, that it should be read.

    Rows, nulls and extremes come from footers, also those of the files in a Delta log. CSV and JSON files have none,
    and are counted in one pass. The number of distinct values is estimated from a sample.
    """
    footers = opened.footers()
    if footers is not None:
        rows = sum(file.num_rows for file in footers)
    else:
        (rows,) = lake.fetch(f"SELECT count(*) AS n FROM {opened.source}")["n"].to_pylist()
    if rows * len(opened.columns) <= FEW_CELLS:
        return TableStatistics(rows, None)
    if footers is not None:
        told = {column.name for column in opened.columns if column.type.partition("(")[0] in _TOLD_BY_FOOTERS}
        known = _of_footers(footers, told)
    else:
        known = {} if opened.logged is not None else _counted(lake, opened)
    frame = _sample(lake, opened, rows, footers)
    columns = []
    for name in frame.columns:
        nulls, low, high = known.get(name, (None, None, None))
        columns.append(column_of_sample(frame[name], rows, nulls, low=low, high=high))
    return TableStatistics(rows, tuple(columns))


def _of_footers(footers: Sequence[Any], names: Collection[str]) -> dict[str, Told]:
    """For columns that every row group describes."""
    if sum(file.num_row_groups * file.num_columns for file in footers) > _MOST_FOOTERS:
        return {}
    groups = [group for file in footers for group in map(file.row_group, range(file.num_row_groups)) if group.num_rows]
    told: dict[str, list[Any]] = defaultdict(list)
    for group in groups:
        for column in map(group.column, range(group.num_columns)):
            if column.path_in_schema in names:
                told[column.path_in_schema].append(column.statistics)
    found = {}
    for name, some in told.items():
        if len(some) < len(groups) or not all(one is not None and one.has_null_count for one in some):
            continue
        filled = [one for one in some if one.num_values]
        ends = (None, None)
        if filled and all(one.has_min_max for one in filled):
            ends = min(one.min for one in filled), max(one.max for one in filled)
        found[name] = (sum(one.null_count for one in some), *ends)
    return found


def _counted(lake: Lake, opened: Opened) -> dict[str, Told]:
    """In one pass."""
    plain = [column for column in opened.columns if column.type in _PLAIN]
    names = [quoted(column.name) for column in plain]
    shown = ", ".join(
        f"count(*) - count({name}) AS n{i}, min({name})::VARCHAR AS l{i}, max({name})::VARCHAR AS h{i}"
        for i, name in enumerate(names)
    )
    (found,) = lake.fetch(f"SELECT {shown or 'NULL'} FROM {opened.source}").to_pylist()
    return {
        column.name: (found[f"n{i}"], _typed(column, found[f"l{i}"]), _typed(column, found[f"h{i}"]))
        for i, column in enumerate(plain)
    }


def _typed(column: LakeColumn, cell: str | None) -> Any:
    if cell is None or column.type in ("VARCHAR", "DATE"):
        return cell
    if column.type == "BOOLEAN":
        return cell == "true"
    return float(cell) if column.type in ("FLOAT", "DOUBLE") else int(cell)


def _sample(lake: Lake, opened: Opened, rows: int, footers: Sequence[Any] | None) -> pd.DataFrame:
    """Rows from a few parts of a table: in a sorted table neighbouring rows are similar, and a few parts cost
    little."""
    names = [column.name for column in opened.columns]
    if opened.table.format == "parquet":
        return from_arrow(_of_row_groups(lake, opened, names, footers or ()))
    shown = ", ".join(map(quoted, names))
    return from_arrow(
        lake.fetch(f"SELECT {shown} FROM {opened.source} USING SAMPLE reservoir({SAMPLE} ROWS) REPEATABLE (1)")
    )


def _of_row_groups(lake: Lake, opened: Opened, names: list[str], footers: Sequence[Any]) -> pa.Table:
    """The first rows of some row groups, evenly spaced; the rest of those is not decoded."""
    import pyarrow as pa

    starts: list[tuple[str, int]] = []
    for file, footer in zip(opened.table.patterns, footers, strict=True):
        sizes = [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]
        starts += [(file, start) for start in accumulate(sizes[:-1], initial=0) if sizes]
    step = max(1, len(starts) // _PARTS)
    chosen = starts[::step][: 2 * _PARTS]
    each = max(1, SAMPLE // len(chosen))
    # One query per file: over all files DuckDB would also read what the conditions leave out.
    parts = (
        f"SELECT * FROM read_parquet({quoted_text(file)}, hive_partitioning={opened.table.partitioned}) "
        f"WHERE file_row_number BETWEEN {start} AND {start + each - 1}"
        for file, start in chosen
    )
    found = lake.fetch(" UNION ALL BY NAME ".join(parts))
    missing = [name for name in names if name not in found.column_names]
    for name in missing:
        found = found.append_column(name, pa.nulls(found.num_rows))
    return found.select(names)
