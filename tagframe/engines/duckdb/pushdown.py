"""What DuckDB runs of a merge over the tables of a lake; see :mod:`tagframe.engines.pushdown`.

And what its files tell about their tables: footers of Parquet files, and a sample.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate, count
from typing import Any

import pandas as pd
import pyarrow as pa
from sqlglot import exp

from tagframe.engines.base import TableStatistics, quoted
from tagframe.engines.cells import Kind, from_arrow
from tagframe.engines.duckdb.connection import Lake, Opened, named_errors
from tagframe.engines.duckdb.statement import decoded
from tagframe.engines.pushdown import (
    SAMPLED,
    Cells,
    SampledValues,
    Statement,
    column_gone,
    column_of_sample,
    named_item,
)
from tagframe.engines.sql_text import quoted_text
from tagframe.errors import UnreadableTable

_INTEGERS = frozenset("TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER".split())
_KINDS: dict[str, Kind] = {
    **dict.fromkeys([*_INTEGERS, "UBIGINT"], "integer"),
    "DOUBLE": "real", "FLOAT": "real32", "DECIMAL": "decimal", "VARCHAR": "text", "BOOLEAN": "boolean", "DATE": "date",
    "TIMESTAMP": "moment", "TIMESTAMP WITH TIME ZONE": "instant",
}  # fmt: skip
_KEYS = {"VARCHAR": "text", "UBIGINT": "unsigned", "DATE": "date", "TIMESTAMP": "moment"}
_NUMBER = "tagframe row"


@contextmanager
def pushdown_in(lake: Lake, tables: Sequence[str]) -> Iterator[LakePushdown]:
    """Rows of these tables.

    Raises:
        UnreadableTable: a file cannot be read, or was replaced meanwhile.
    """
    opened = {table: lake.opened(table) for table in tables}
    read = [one.table for one in opened.values()]
    with named_errors(*read):
        before = [table.state() for table in read]
    yield LakePushdown(lake, opened)
    with named_errors(*read):
        after = [table.state() for table in read]
    for table, one, other in zip(read, before, after, strict=True):
        if one != other:
            raise UnreadableTable(f"table {table.name!r} of {table.place} changed while it was read: try again")


class LakePushdown(SampledValues):
    """Keys are relations that statements read. Rows of Parquet files are numbered; those of others come in an
    order that is the same each time."""

    kind = dialect = "duckdb"
    binds = True
    starts_early = True
    nan_kinds = ("real", "real32")

    def __init__(self, lake: Lake, opened: dict[str, Opened]) -> None:
        self._lake, self._opened = lake, opened
        self._types = {(table, column.name): column.type for table, one in opened.items() for column in one.columns}

    def _type(self, table: str, column: str) -> str:
        found = self._types.get((table, column))
        if found is None:
            names = [name for owner, name in self._types if owner == table]
            raise column_gone(f"{table!r} of {self._opened[table].table.place}", column, names)
        return found

    def cells(self, table: str, column: str) -> Cells:
        """By the column's type."""
        type = self._type(table, column)
        return Cells("integer" if type in _INTEGERS else _KEYS.get(type, ""), _KINDS.get(type.partition("(")[0], ""))

    def item(self, table: str, alias: str, *, numbered: bool = False, first: int | None = None) -> exp.Expr:
        """With a column that numbers its rows, where they are sorted by that."""
        opened = self._opened[table]
        source = opened.source
        if numbered or first is not None:
            rest = ""
            if first is not None:
                rest = f" WHERE {opened.begins.format(first)}" if opened.number else f" LIMIT {first}"
            number = opened.number or "row_number() OVER ()"
            source = f"(SELECT *, {number} AS {quoted(self.number(table))} FROM {opened.source}{rest})"
        return named_item(source, alias)

    def number(self, table: str) -> str:
        """A column that :meth:`item` adds."""
        taken = {column.name for column in self._opened[table].columns}
        return next(name for n in count() if (name := f"{_NUMBER}{f' {n}' * (n > 0)}") not in taken)

    def names(self, table: str) -> list[str]:
        return [column.name for column in self._opened[table].columns]

    def lasting_number(self, table: str) -> str | None:
        """Of rows with numbers of their own, as those of Parquet files and of DuckDB's own."""
        return self.number(table) if self._opened[table].number else None

    def facts(self, table: str) -> dict[Any, Any]:
        """As long as the files do not change."""
        return self._opened[table].facts

    def among(self, column: exp.Expr, cells: Cells, keys: pd.Index, values: dict[str, Any]) -> exp.Expr:
        """Keys are a relation of their own."""
        name = f"tagframe keys {len(values)}"
        values[name] = pa.table({"k": pa.array(keys, type=pa.int64() if cells.key == "integer" else pa.string())})
        sent = exp.select(exp.column("k")).from_(exp.Table(this=exp.to_identifier(name, quoted=True)))
        return exp.In(this=column, query=sent.subquery())

    def rows(self, statement: Statement) -> pd.DataFrame:
        """With the dtypes that :meth:`LakeEngine.scan` gives."""
        return _frame(statement, self._fetch(statement.query, statement.values))

    def batches(self, statement: Statement, rows: int) -> Iterator[pd.DataFrame]:
        """As DuckDB makes them."""
        with named_errors(*(one.table for one in self._opened.values())):
            for batch in self._lake.reading(statement.query, rows, statement.values):
                yield _frame(statement, pa.Table.from_batches([batch]))

    def _fetch(self, sql: str, values: Mapping[str, Any] | None = None) -> pa.Table:
        sent = {name: value for name, value in (values or {}).items() if isinstance(value, pa.Table)}
        bound = {name: value for name, value in (values or {}).items() if name not in sent}
        with named_errors(*(one.table for one in self._opened.values())):
            return self._lake.fetch(sql, bound, sent)

    # --- values of columns --------------------------------------------------------------------------------------------

    def sample(self, table: str) -> tuple[str, str]:
        """Rows from all over its files."""
        return "", f" USING SAMPLE reservoir({SAMPLED} ROWS) REPEATABLE (1)"

    def from_item(self, table: str) -> str:
        return self._opened[table].source


def _frame(statement: Statement, table: pa.Table) -> pd.DataFrame:
    if not statement.columns:
        return pd.DataFrame(index=pd.RangeIndex(table.num_rows))
    return from_arrow(_renamed(table)).set_axis([name for _, _, name in statement.columns], axis="columns")


def _renamed(table: pa.Table) -> pa.Table:
    """Columns by their positions, because two names may be equal for DuckDB, and texts of few values as texts."""
    return pa.Table.from_arrays(
        list(map(decoded, table.columns)), names=[f"c{number}" for number in range(table.num_columns)]
    )


FEW_CELLS = 500_000
"""Tables of at most this many cells are read, and counted."""
SAMPLE = 20_000
"""Rows of a sample at most."""
_PARTS = 8
"""Of a table, from which the rows of a sample are taken."""
_MAX_FOOTERS = 200_000
"""Columns of row groups whose footers are looked at one by one."""
_PLAIN = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
          "FLOAT", "DOUBLE", "DATE", "BOOLEAN", "VARCHAR")  # fmt: skip
_IN_FOOTERS = (*_PLAIN, "DECIMAL", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
Known = tuple[int | None, Any, Any]
"""Nulls, minimum and maximum of a column."""


def statistics_of(lake: Lake, opened: Opened) -> TableStatistics:
    """What is known about a table without a pass over its rows; for one of few rows, that it should be read.

    Rows, nulls and extremes come from the footers of Parquet files. Other rows are counted in one pass. The number of
    distinct values is estimated from a sample.
    """
    footers = opened.footers()
    if footers is not None:
        rows = sum(file.num_rows for file in footers)
    else:
        (rows,) = lake.fetch(f"SELECT count(*) AS n FROM {opened.source}")["n"].to_pylist()
    if rows * len(opened.columns) <= FEW_CELLS:
        return TableStatistics(rows, None)
    if footers is not None:
        described = {column.name for column in opened.columns if column.type.partition("(")[0] in _IN_FOOTERS}
        known = _of_footers(footers, described)
    else:
        known = _counted(lake, opened)
    frame = _sample(lake, opened, rows, footers)
    columns = []
    for name in frame.columns:
        nulls, low, high = known.get(name, (None, None, None))
        columns.append(column_of_sample(frame[name], rows, nulls, low=low, high=high))
    return TableStatistics(rows, tuple(columns))


def _of_footers(footers: Sequence[Any], names: Collection[str]) -> dict[str, Known]:
    """For columns that every row group describes."""
    if sum(file.num_row_groups * file.num_columns for file in footers) > _MAX_FOOTERS:
        return {}
    groups = [group for file in footers for group in map(file.row_group, range(file.num_row_groups)) if group.num_rows]
    statistics: dict[str, list[Any]] = defaultdict(list)
    for group in groups:
        for column in map(group.column, range(group.num_columns)):
            if column.path_in_schema in names:
                statistics[column.path_in_schema].append(column.statistics)
    found = {}
    for name, some in statistics.items():
        if len(some) < len(groups) or not all(one is not None and one.has_null_count for one in some):
            continue
        filled = [one for one in some if one.num_values]
        ends = (None, None)
        if filled and all(one.has_min_max for one in filled):
            ends = min(one.min for one in filled), max(one.max for one in filled)
        found[name] = (sum(one.null_count for one in some), *ends)
    return found


def _counted(lake: Lake, opened: Opened) -> dict[str, Known]:
    """In one pass."""
    plain = [column.name for column in opened.columns if column.type in _PLAIN]
    # As texts: Python has no days after 9999.
    as_text = {column.name: "::VARCHAR" * (column.type == "DATE") for column in opened.columns}
    selected = ", ".join(
        f"count(*) - count({name}) AS n{i}, min({name}){text} AS l{i}, max({name}){text} AS h{i}"
        for i, (name, text) in enumerate((quoted(name), as_text[name]) for name in plain)
    )
    (found,) = lake.fetch(f"SELECT {selected or 'NULL'} FROM {opened.source}").to_pylist()
    return {name: (found[f"n{i}"], found[f"l{i}"], found[f"h{i}"]) for i, name in enumerate(plain)}


def _sample(lake: Lake, opened: Opened, rows: int, footers: Sequence[Any] | None) -> pd.DataFrame:
    """Rows from a few parts of a table: in a sorted table neighbouring rows are similar, and a few parts cost
    little."""
    names = [column.name for column in opened.columns]
    if opened.table.format == "parquet":
        return from_arrow(_of_row_groups(lake, opened, names, footers or ()))
    selected = ", ".join(map(quoted, names))
    return from_arrow(
        lake.fetch(f"SELECT {selected} FROM {opened.source} USING SAMPLE reservoir({SAMPLE} ROWS) REPEATABLE (1)")
    )


def _of_row_groups(lake: Lake, opened: Opened, names: list[str], footers: Sequence[Any]) -> pa.Table:
    """The first rows of some row groups, evenly spaced; the rest of those is not decoded."""
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
