"""Tables that DuckDB reads in place: of files and of its own database files, and frames.

Files are Parquet, CSV and JSON, in parts, Delta and Iceberg.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, count
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from sqlglot import exp

from tagframe.engines import pushdown
from tagframe.engines.base import (
    CHUNK_ROWS,
    Chunk,
    ForeignKey,
    Stamp,
    TableShape,
    TableStatistics,
    UntrustedStatement,
    quoted,
)
from tagframe.engines.cells import Kind, from_arrow
from tagframe.engines.duckdb.connection import Lake, Opened, lake_of, named_errors
from tagframe.engines.duckdb.statement import DUCKDB, decoded, run_statement
from tagframe.engines.duckdb.tables import LakeTable, has_duckdb, lake_tables, need_duckdb, stamp_of, table_of_pattern
from tagframe.engines.files.limits import file_stamp
from tagframe.engines.pushdown import Cells, SampledValues, SQLEngine, Statement
from tagframe.engines.sql_text import quoted_text
from tagframe.engines.sqlite.statement import RowsOnly
from tagframe.errors import TagframeError, UnreadableTable, UnreadableTableWarning, shown_path, warn


class _ReadByDuckDB(SQLEngine):
    """A source whose tables DuckDB reads in place."""

    def chunks(self, shape: TableShape) -> Iterator[Chunk]:
        """The rows of a table in pieces."""
        with self.pushdown([shape.name]) as source:
            columns = [(shape.name, name, name) for name in shape.columns]
            query = f"SELECT {', '.join(map(quoted, shape.columns))} FROM {source.from_item(shape.name)}"
            yield from map(Chunk.of, source.batches(Statement(query, columns, f"table {shape.name!r}"), CHUNK_ROWS))

    @abstractmethod
    def pushdown(self, tables: Sequence[str]) -> AbstractContextManager[LakePushdown]:
        """Notices files that are replaced meanwhile."""

    def reading(self, table: str) -> AbstractContextManager[LakePushdown]:
        """Its files, with its columns as they are now."""
        return self.pushdown([table])


@dataclass(frozen=True)
class LakeEngine(_ReadByDuckDB):
    """Tables of files, queried by DuckDB without being loaded.

    Rows of Parquet files are numbered by their positions in their files. Integers beside nulls are ``Int64``, as those
    of files that pandas reads.

    Attributes:
        path: the folder.
        tables: in it.
    """

    path: Path
    tables: tuple[LakeTable, ...]
    kind: str = "duckdb"
    joins = "all"
    dialect = DUCKDB

    @property
    def lake(self) -> Lake:
        return lake_of(self.tables)

    def holds(self, file: Path) -> bool:
        """Whether a file, by its path, is of one of the tables."""
        at = file.absolute()
        logged = {table.place for table in self.tables if not table.files}
        return str(at) in self._files or not logged.isdisjoint(at.parents)

    @cached_property
    def _files(self) -> frozenset[str]:
        return frozenset(file for table in self.tables for file in table.files)

    @property
    def csv_files(self) -> tuple[Path, ...]:
        """Those of its tables."""
        return tuple(Path(file) for table in self.tables if table.format == "csv" for file in table.files)

    def only(self, columns: Mapping[str, Collection[str]]) -> LakeEngine:
        """The lake without other tables; those that cannot be read are still told."""
        closed = [table for table in self.tables if isinstance(self._shape(table), UnreadableTable)]
        return replace(self, tables=tuple(one for one in self.tables if one.name in columns or one in closed))

    def shapes(self) -> list[TableShape]:
        """The tables by name, with DuckDB's types; without those that cannot be read."""
        return [shape for shape in map(self._shape, self.tables) if isinstance(shape, TableShape)]

    def closed(self) -> list[UnreadableTable]:
        """The tables that cannot be read; one damaged file does not exclude the others."""
        return [error for error in map(self._shape, self.tables) if isinstance(error, UnreadableTable)]

    def _shape(self, table: LakeTable) -> TableShape | UnreadableTable:
        try:
            opened = self.lake.opened(table.name)
            columns, comments = opened.columns, opened.comments
            with named_errors(table):
                state = table.state()
        except UnreadableTable as error:
            return error
        names = [column.name for column in columns]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            return UnreadableTable(f"{table.place} has more than one column called {', '.join(map(repr, twice))}")
        types = tuple(column.type for column in columns)
        return TableShape(
            table.name,
            tuple(names),
            types,
            called=table.called,
            database=table.home,
            column_comments=tuple(comments.get(name, "") for name in names),
            state=state,
        )

    def statistics(self, shapes: Sequence[TableShape]) -> Iterator[TableStatistics | UnreadableTable]:
        """From the footers of Parquet files and the logs of Delta tables, and a bounded sample; see the module."""
        for shape in shapes:
            try:
                opened = self.lake.opened(shape.name)
                with named_errors(opened.table):
                    yield statistics_of(self.lake, opened)
            except UnreadableTable as error:
                yield error

    def fingerprint(self, known: Stamp | None = None) -> Stamp:
        """Paths, sizes and times of all files; what is in them is not read."""
        return stamp_of(self.tables)

    def pushdown(self, tables: Sequence[str]) -> AbstractContextManager[LakePushdown]:
        """Notices files that are replaced meanwhile."""
        return pushdown_in(self.lake, tables)

    def execute(self, statement: UntrustedStatement) -> pd.DataFrame:
        """In a process that can read the named tables' files and nothing else."""
        tables = statement.tables.items()
        return run_statement(statement, {name: (self.lake.opened(one.table), one.columns) for name, one in tables})


def folder_engine(folder: Path, *, is_wanted: bool, follow_links: bool, csv: str = "") -> LakeEngine | None:
    """The engine for the tables of a folder that are read in place (:func:`lake_tables`); None if there are none.

    Raises:
        MissingExtra: DuckDB was asked for and is not installed. If it was not asked for but is needed, there is a
            warning.
    """
    if is_wanted:
        need_duckdb("engine='duckdb'")
    tables = lake_tables(folder, is_wanted=is_wanted, follow_links=follow_links, csv=csv)
    if tables and not has_duckdb():
        for table in tables:
            if table.gathered:
                warn(
                    f"{table.place} is one table in several files ({table.format}). Reading it as one needs DuckDB: "
                    "pip install 'tagframe[duckdb]'. Without it, each file is a table of its own",
                    UnreadableTableWarning,
                )
        return None
    return LakeEngine(folder.absolute(), tuple(tables)) if tables else None


def pattern_engine(pattern: str, *, follow_links: bool, csv: str = "") -> LakeEngine:
    """The engine that reads the files of a pattern as one table.

    Raises:
        SourceNotFound: it finds none.
        MissingExtra: DuckDB is not installed.
    """
    need_duckdb(f"the pattern {shown_path(pattern)}")
    base, table = table_of_pattern(pattern, follow_links=follow_links, csv=csv)
    return LakeEngine(base, (table,))


_MAIN = "main"


@dataclass(frozen=True)
class DuckDBFileEngine(_ReadByDuckDB, RowsOnly):
    """A database file of DuckDB. Tables of other schemas than ``main`` are called ``schema.table``.

    Rows are numbered by their row ids. The file is open only while it is read, because nobody can write to it then.
    Views are not read: they may read any file.
    """

    path: Path
    kind: str = "duckdb file"
    is_database = True
    joins = "all"

    def fingerprint(self, known: Stamp | None = None) -> Stamp:
        """Size, time and content of the file, and of what was written and is not in it yet."""
        written = self.path.with_name(f"{self.path.name}.wal")
        return file_stamp([self.path, *([written] if written.exists() else [])], known)

    def closed(self) -> list[UnreadableTable]:
        """The views."""
        return [
            UnreadableTable.named(
                name,
                f"the view {name!r} of {self.path} is not read: make it a table (CREATE TABLE … AS), or open its rows "
                "as a frame",
            )
            for name, column in self.definitions()
            if not column
        ]

    def definitions(self) -> dict[tuple[str, str], str]:
        """Of views and generated columns."""
        with self._lake() as lake:
            rows = lake.fetch(_DEFINITIONS).to_pylist()
        return {(_name(row["schema"], row["name"]), row["column"]): row["definition"] for row in rows}

    def shapes(self) -> list[TableShape]:
        """The tables with their keys, by name."""
        with self._lake() as lake:
            tables, columns, keys = (lake.fetch(query).to_pylist() for query in (_TABLES, _COLUMNS, _KEYS))
        columns_of, keys_of = defaultdict(list), defaultdict(list)
        for row in columns:
            columns_of[row["schema"], row["name"]].append(row)
        for row in keys:
            keys_of[row["schema"], row["name"], row["kind"]].append(row)
        shapes = []
        for row in tables:
            table = row["schema"], row["name"]
            shapes.append(
                TableShape(
                    _name(*table),
                    tuple(one["column"] for one in columns_of[table]),
                    tuple(one["type"] for one in columns_of[table]),
                    primary_key=next((tuple(one["names"]) for one in keys_of[*table, "PRIMARY KEY"]), ()),
                    foreign_keys=tuple(
                        ForeignKey(tuple(one["names"]), _name(table[0], one["other"]), tuple(one["others"]))
                        for one in keys_of[*table, "FOREIGN KEY"]
                    ),
                    unique=tuple(tuple(one["names"]) for one in keys_of[*table, "UNIQUE"]),
                    comment=row["comment"],
                    column_comments=tuple(one["comment"] for one in columns_of[table]),
                )
            )
        return shapes

    @contextmanager
    def pushdown(self, tables: Sequence[str]) -> Iterator[LakePushdown]:
        """Nobody can write to the file meanwhile."""
        with self._lake() as lake, pushdown_in(lake, tables) as source:
            yield source

    @contextmanager
    def _lake(self) -> Iterator[Lake]:
        if not has_duckdb():
            raise UnreadableTable(
                f"{self.path} is a database of DuckDB, and only DuckDB reads it: pip install 'tagframe[duckdb]'"
            )
        import duckdb

        try:
            with closing(Lake(file=self.path)) as lake:
                lake.add([self._table(row["schema"], row["name"]) for row in lake.fetch(_TABLES).to_pylist()])
                yield lake
        except TagframeError:
            raise
        except (duckdb.Error, OSError, ValueError, RuntimeError) as error:
            first = (str(error).splitlines() or [""])[0]
            if "already attached" in first or "set lock" in first:  # by the caller, or by another process
                raise UnreadableTable(
                    f"{self.path} is open in another connection: close it, or give the tables themselves, as in "
                    f"open_corpus({{'orders': connection.table('orders')}}); DuckDB says: {first}"
                ) from error
            raise UnreadableTable(f"{self.path} cannot be read as a database of DuckDB: {first}") from error

    def _table(self, schema: str, name: str) -> LakeTable:
        return LakeTable(_name(schema, name), name, schema, "duckdb", self.path, (str(self.path),))


def _name(schema: str, table: str) -> str:
    return table if schema == _MAIN else f"{schema}.{table}"


_TABLES = """SELECT schema_name AS schema, table_name AS name, coalesce(comment, '') AS comment FROM duckdb_tables()
WHERE NOT internal AND NOT temporary ORDER BY 1, 2"""
_COLUMNS = """SELECT schema_name AS schema, table_name AS name, column_name AS column, data_type AS type,
coalesce(comment, '') AS comment FROM duckdb_columns() WHERE NOT internal ORDER BY 1, 2, column_index"""
# What computes a generated column stands where others have their default, which reads no column.
_DEFINITIONS = """SELECT schema_name AS schema, view_name AS name, '' AS column, sql AS definition FROM duckdb_views()
WHERE NOT internal UNION ALL SELECT schema_name, table_name, column_name, column_default FROM duckdb_columns()
WHERE NOT internal AND column_default IS NOT NULL ORDER BY 1, 2, 3"""
_KEYS = """SELECT schema_name AS schema, table_name AS name, constraint_type AS kind, constraint_column_names AS names,
referenced_table AS other, referenced_column_names AS others FROM duckdb_constraints()"""


# --- what DuckDB runs of a merge: see tagframe.engines.pushdown -------------------------------------------------------

_INTEGERS = frozenset("TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER".split())
_KINDS: dict[str, Kind] = {
    **dict.fromkeys([*_INTEGERS, "UBIGINT"], "integer"),
    "DOUBLE": "real", "FLOAT": "real32", "DECIMAL": "decimal", "VARCHAR": "text", "BOOLEAN": "boolean", "DATE": "date",
    "TIMESTAMP": "moment", "TIMESTAMP WITH TIME ZONE": "instant",
}  # fmt: skip
_KEY_TYPES = {"VARCHAR": "text", "UBIGINT": "unsigned", "DATE": "date", "TIMESTAMP": "moment"}
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
            raise pushdown.column_gone(f"{table!r} of {self._opened[table].table.place}", column, names)
        return found

    def cells(self, table: str, column: str) -> Cells:
        """By the column's type."""
        type = self._type(table, column)
        key = "integer" if type in _INTEGERS else _KEY_TYPES.get(type, "")
        return Cells(key, _KINDS.get(type.partition("(")[0], ""))

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
        return pushdown.named_item(source, alias)

    def number(self, table: str) -> str:
        """A column that :meth:`item` adds."""
        taken = {column.name for column in self._opened[table].columns}
        return next(name for n in count() if (name := f"{_NUMBER}{f' {n}' * (n > 0)}") not in taken)

    def names(self, table: str) -> list[str]:
        return [column.name for column in self._opened[table].columns]

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
        return "", f" USING SAMPLE reservoir({pushdown.SAMPLED} ROWS) REPEATABLE (1)"

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


# --- what files tell of their tables: footers of Parquet files, and a sample ------------------------------------------

FEW_CELLS = 500_000
"""Tables of at most this many cells are read, and counted."""
SAMPLE = 20_000
"""Rows of a sample at most."""
_PARTS = 8
"""Of a table, from which the rows of a sample are taken."""
_MAX_FOOTERS = 200_000
"""Columns of row groups whose footers are looked at one by one."""
_IN_FOOTERS = frozenset((*_KINDS, "HUGEINT"))
Known = tuple[int | None, Any, Any]
"""Nulls, minimum and maximum of a column."""


def statistics_of(lake: Lake, opened: Opened) -> TableStatistics:
    """What is known about a table without a pass over its rows; for one of few rows, that it should be read.

    Rows, nulls and extremes come from the footers of Parquet files; JSON files have none, and are read. The number of
    distinct values is estimated from a sample.
    """
    if (footers := opened.footers()) is None:
        return TableStatistics(None, None)
    rows = sum(file.num_rows for file in footers)
    if rows * len(opened.columns) <= FEW_CELLS:
        return TableStatistics(rows, None)
    described = {column.name for column in opened.columns if column.type.partition("(")[0] in _IN_FOOTERS}
    known = _of_footers(footers, described)
    frame = _sample(lake, opened, footers)
    columns = []
    for name in frame.columns:
        nulls, low, high = known.get(name, (None, None, None))
        columns.append(pushdown.column_of_sample(frame[name], rows, nulls, low=low, high=high))
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


def _sample(lake: Lake, opened: Opened, footers: Sequence[Any]) -> pd.DataFrame:
    """Rows from a few parts of a table: in a sorted table neighbouring rows are similar, and a few parts cost
    little."""
    names = [column.name for column in opened.columns]
    if opened.table.format == "parquet":
        return from_arrow(_of_row_groups(lake, opened, names, footers))
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
