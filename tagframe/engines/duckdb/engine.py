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
from pathlib import Path

import pandas as pd

from tagframe.engines.base import (
    CHUNK_ROWS,
    Chunk,
    Dialect,
    ForeignKey,
    Stamp,
    TableShape,
    TableStatistics,
    UntrustedStatement,
    quoted,
)
from tagframe.engines.duckdb.connection import Lake, lake_of, named_errors
from tagframe.engines.duckdb.pushdown import LakePushdown, pushdown_in, statistics_of
from tagframe.engines.duckdb.statement import DUCKDB, readable, run_statement
from tagframe.engines.duckdb.tables import LakeTable, has_duckdb, lake_tables, need_duckdb, stamp_of, table_of_pattern
from tagframe.engines.files.limits import file_stamp
from tagframe.engines.frames import FrameEngine
from tagframe.engines.pushdown import SQLEngine, Statement
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


@dataclass(frozen=True, eq=False)
class DuckDBFrames(FrameEngine):
    """Frames in memory, by their names in the source, of which DuckDB gets a copy of what a statement needs.

    Statements over frames are in SQLite's dialect unless ``tagframe.open_corpus({…}, engine="duckdb")`` asks for
    DuckDB. Its answers differ where the dialects differ: ``7 / 2`` is 3.5 and
    not 3, ``LIKE`` is case-sensitive, a text and a number are not compared, dates are not texts, and NULL is sorted
    last. Values that cannot form a column there (cells of several types, periods, lists) become text, as in SQLite.
    """

    dialect: Dialect = DUCKDB
    identity: str = "frames in memory, by DuckDB"

    def shapes(self) -> list[TableShape]:
        """The frames' names, with DuckDB's types."""
        import duckdb

        need_duckdb("engine='duckdb'")
        shapes = []
        with duckdb.connect(":memory:") as connection:
            for name, frame in self.frames.items():
                empty = readable(frame).slice(0, 0)
                types = [str(type) for type in connection.from_arrow(empty).types] if frame.shape[1] else []
                shapes.append(TableShape(name, tuple(map(str, frame.columns)), tuple(types)))
        return shapes

    def execute(self, statement: UntrustedStatement) -> pd.DataFrame:
        """Over the frames as they are now; see :mod:`tagframe.engines.duckdb.statement`."""
        frames = {name: readable(self.frames[one.table], one.columns) for name, one in statement.tables.items()}
        return run_statement(replace(statement, tables={}, relations={**frames, **statement.relations}), {})


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
        with self._lake() as lake:
            views = lake.fetch("SELECT view_name AS name FROM duckdb_views() WHERE NOT internal ORDER BY 1").to_pylist()
        return [
            UnreadableTable.named(
                view["name"],
                f"the view {view['name']!r} of {self.path} is not read: make it a table (CREATE TABLE … AS), or open "
                "its rows as a frame",
            )
            for view in views
        ]

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
_KEYS = """SELECT schema_name AS schema, table_name AS name, constraint_type AS kind, constraint_column_names AS names,
referenced_table AS other, referenced_column_names AS others FROM duckdb_constraints()"""
