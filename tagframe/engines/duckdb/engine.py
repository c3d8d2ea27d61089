"""Tables of files that DuckDB reads in place: Parquet, CSV and JSON, in parts, Delta and Iceberg."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from tagframe.engines.base import (
    CHUNK_ROWS,
    Chunk,
    Dialect,
    RowNumbers,
    Stamp,
    TableShape,
    TableStatistics,
    UntrustedStatement,
    frame_chunk,
    quoted,
)
from tagframe.engines.duckdb.connection import Lake, Opened, lake_of, named_errors
from tagframe.engines.duckdb.pushdown import LakePushdown, pushdown_in
from tagframe.engines.duckdb.readable import readable
from tagframe.engines.duckdb.statement import DUCKDB, run_statement
from tagframe.engines.duckdb.statistics import statistics_of
from tagframe.engines.duckdb.tables import LakeTable, has_duckdb, lake_tables, need_duckdb, stamp_of, table_of_pattern
from tagframe.engines.files import from_arrow
from tagframe.engines.frame_engine import FrameEngine
from tagframe.engines.sql_engine import SQLEngine
from tagframe.errors import UnreadableTable, UnreadableTableWarning, shown_path, warn


@dataclass(frozen=True)
class LakeEngine(SQLEngine):
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
    numbers_are = "positions, which only those of Parquet files have"
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

    @contextmanager
    def reading(self, table: str) -> Iterator[_Rows]:
        """Its files, with its columns as they are now."""
        opened = self.lake.opened(table)
        with named_errors(opened.table):
            yield _Rows(self.lake, opened)

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


class _Rows:
    """A table of a lake, in the order of its files."""

    def __init__(self, lake: Lake, opened: Opened) -> None:
        self._lake, self._opened = lake, opened
        self.columns = [column.name for column in opened.columns]
        self.is_numbered = bool(opened.number)

    def rows(self, columns: Sequence[str], limit: int | None) -> pd.DataFrame:
        tail = "" if limit is None else f" LIMIT {int(limit)}"
        shown = ", ".join(map(quoted, columns)) or "NULL"
        found = from_arrow(self._lake.fetch(f"SELECT {shown} FROM {self._opened.source}{tail}"))
        return found if columns else found.iloc[:, :0]

    def numbered(self, columns: Sequence[str], among: RowNumbers | None = None) -> tuple[RowNumbers, pd.DataFrame]:
        import pyarrow as pa

        number, source = self._opened.number, self._opened.source
        sent = {} if among is None else {"wanted rows": pa.table({"number": among})}
        chosen = "" if among is None else f' SEMI JOIN "wanted rows" AS w ON {number} = w.number'
        shown = ", ".join([f"{number} AS number", *(f"{quoted(name)} AS c{i}" for i, name in enumerate(columns))])
        found = self._lake.fetch(f"SELECT {shown} FROM {source}{chosen} ORDER BY {number}", sent=sent)
        frame = from_arrow(found)
        numbers = frame.pop("number").to_numpy(dtype=np.int64)
        return numbers, frame.set_axis(list(columns), axis="columns")


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
