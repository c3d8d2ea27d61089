"""Tables of files that DuckDB reads in place: Parquet, CSV and JSON, in parts, Delta and Iceberg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tagframe.engines.base import (
    CHUNK_ROWS,
    Chunk,
    Dialect,
    EngineDefaults,
    RowNumbers,
    Stamp,
    TableShape,
    TableStatistics,
    UntrustedStatement,
    quoted,
)
from tagframe.engines.duckdb.connection import Lake, Opened, lake_of, named_errors
from tagframe.engines.duckdb.pushdown import LakePushdown, pushdown_in
from tagframe.engines.duckdb.readable import readable
from tagframe.engines.duckdb.statement import DUCKDB, run_statement
from tagframe.engines.duckdb.statistics import statistics_of
from tagframe.engines.duckdb.tables import LakeTable, has_duckdb, lake_tables, need_duckdb, stamp_of, table_of_pattern
from tagframe.engines.files import from_arrow
from tagframe.engines.frame_engine import FrameEngine, frame_chunk
from tagframe.errors import UnreadableTable, UnreadableTableWarning, shown_path, warn


@dataclass(frozen=True)
class LakeEngine(EngineDefaults):
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
    picks_rows = True
    is_asked = True
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

    def shapes(self) -> list[TableShape]:
        """The tables by name, with DuckDB's types; without those that cannot be read."""
        return [shape for shape in map(self._shape, self.tables) if isinstance(shape, TableShape)]

    def closed(self) -> list[UnreadableTable]:
        """The tables that cannot be read; one damaged file does not exclude the others."""
        return [error for error in map(self._shape, self.tables) if isinstance(error, UnreadableTable)]

    def _shape(self, table: LakeTable) -> TableShape | UnreadableTable:
        try:
            opened = self.lake.opened(table.name)
            columns = opened.columns
            with named_errors(table):
                state, comments = table.state(), opened.comments()
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

    def chunks(self, shape: TableShape) -> Iterator[Chunk]:
        """The rows of a table in pieces."""
        opened = self.lake.opened(shape.name)
        shown = ", ".join(map(quoted, shape.columns))
        with named_errors(opened.table):
            for batch in self.lake.reading(f"SELECT {shown} FROM {opened.source}", CHUNK_ROWS):
                yield frame_chunk(from_arrow(batch))

    def scan(self, table: str, columns: Sequence[str] | None = None, limit: int | None = None) -> pd.DataFrame:
        """The rows of a table, in the order of its files."""
        opened = self.lake.opened(table)
        names = [column.name for column in opened.columns] if columns is None else list(columns)
        tail = "" if limit is None else f" LIMIT {int(limit)}"
        shown = ", ".join(map(quoted, names)) or "NULL"
        found = self._rows(opened, f"SELECT {shown} FROM {opened.source}{tail}")
        return found if names else found.iloc[:, :0]

    def numbered(self, table: str, columns: Sequence[str]) -> tuple[RowNumbers, pd.DataFrame] | None:
        """The rows of these columns, and their positions; None unless the files are Parquet, the only ones with
        positions."""
        opened = self.lake.opened(table)
        if not opened.number:
            return None
        shown = ", ".join(
            [f"{opened.number} AS number", *(f"{quoted(name)} AS c{i}" for i, name in enumerate(columns))]
        )
        frame = self._rows(opened, f"SELECT {shown} FROM {opened.source} ORDER BY number")
        numbers = frame.pop("number").to_numpy(dtype=np.int64)
        return numbers, frame.set_axis(list(columns), axis="columns")

    def pick(self, table: str, columns: Sequence[str], numbers: RowNumbers) -> pd.DataFrame:
        """The rows at these positions."""
        import pyarrow as pa

        opened = self.lake.opened(table)
        if not opened.number:
            raise UnreadableTable(f"rows of {table!r} cannot be read one by one: only those of Parquet files can")
        shown = ", ".join(f"{quoted(name)} AS c{i}" for i, name in enumerate(columns))
        query = (
            f'SELECT {shown or "NULL"} FROM {opened.source} SEMI JOIN "wanted rows" AS w '
            f"ON {opened.number} = w.number ORDER BY {opened.number}"
        )
        frame = self._rows(opened, query, {"wanted rows": pa.table({"number": numbers})})
        if len(frame) != len(numbers):
            raise UnreadableTable(f"table {table!r} of {self.path} changed while it was read: try again")
        return frame.set_axis(list(columns), axis="columns") if columns else frame.iloc[:, :0]

    def fingerprint(self, known: Stamp | None = None) -> Stamp:
        """Paths, sizes and times of all files; what is in them is not read."""
        return stamp_of(self.tables)

    def pushdown(self, tables: Sequence[str]) -> AbstractContextManager[LakePushdown]:
        """Notices files that are replaced meanwhile."""
        return pushdown_in(self.lake, tables)

    def execute(self, statement: UntrustedStatement) -> pd.DataFrame:
        """In a process that can read the named tables' files and nothing else."""
        tables = statement.tables.items()
        return run_statement(statement, {name: (self.lake.opened(one.table), one.hidden) for name, one in tables})

    def _rows(self, opened: Opened, sql: str, sent: Mapping[str, Any] | None = None) -> pd.DataFrame:
        with named_errors(opened.table):
            return from_arrow(self.lake.fetch(sql, sent=sent))


def folder_engine(folder: Path, *, asked: bool, follow_links: bool) -> LakeEngine | None:
    """The engine for the tables of a folder that are read in place (:func:`lake_tables`); None if there are none.

    Raises:
        MissingExtra: DuckDB was asked for and is not installed. If it was not asked for but is needed, there is a
            warning.
    """
    if asked:
        need_duckdb("engine='duckdb'")
    tables = lake_tables(folder, asked=asked, follow_links=follow_links)
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


def pattern_engine(pattern: str, *, follow_links: bool) -> LakeEngine:
    """The engine that reads the files of a pattern as one table.

    Raises:
        SourceNotFound: it finds none.
        MissingExtra: DuckDB is not installed.
    """
    need_duckdb(f"the pattern {shown_path(pattern)}")
    base, table = table_of_pattern(pattern, follow_links=follow_links)
    return LakeEngine(base, (table,))


@dataclass(frozen=True, eq=False)
class DuckDBFrames(FrameEngine):
    """Frames in memory, by their names in the source, that DuckDB reads in place, copying only what a statement needs.

    Statements over frames are in SQLite's dialect unless ``tagframe.open_corpus({…}, engine="duckdb")`` asks for
    DuckDB. DuckDB does not copy a million rows, and its answers differ where the dialects differ: ``7 / 2`` is 3.5 and
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
                empty = readable(frame).schema.empty_table()
                types = [str(type) for type in connection.from_arrow(empty).types] if frame.shape[1] else []
                shapes.append(TableShape(name, tuple(map(str, frame.columns)), tuple(types)))
        return shapes

    def execute(self, statement: UntrustedStatement) -> pd.DataFrame:
        """Over the frames as they are now; see :mod:`tagframe.engines.duckdb.statement`."""
        frames = {name: readable(self.frames[one.table], one.hidden) for name, one in statement.tables.items()}
        return run_statement(replace(statement, tables={}, relations={**frames, **statement.relations}), {})
