"""DuckDB over the files of a lake, for our own statements: a database in memory that can reach nothing else.

DuckDB itself reads Parquet and JSON files, and its own. All other rows are copied into Parquet files in the temporary
folder of the database, once for each state of their table: those of CSV files, which have one reader
(:mod:`tagframe.engines.files.csv`), and those of Delta and Iceberg tables whose files have other rows, too.

``enable_external_access`` is off except for the files of the tables, and the configuration is locked. Only extensions
that are part of DuckDB are loaded. It runs in this process; untrusted statements do not:
:mod:`tagframe.engines.duckdb.statement`.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from tagframe.engines.base import CHUNK_ROWS
from tagframe.engines.duckdb.tables import LakeTable, Logged, literal, logged, need_duckdb
from tagframe.engines.files.arrow import comment_of
from tagframe.engines.files.csv import CSVEngine, CSVRows
from tagframe.engines.sql_text import quoted, quoted_text, quoted_texts
from tagframe.errors import ColumnFormatWarning, TagframeError, UnreadableTable, warn

MEMORY = "1GB"
"""The memory of DuckDB for our own queries; larger sorts and joins use files in the temporary folder."""
_KEPT_LAKES = 16
IN_FILE = "tagframe file"
"""What a database file is called in a lake."""


class LakeColumn(NamedTuple):
    """A column as DuckDB has it."""

    name: str
    type: str


@dataclass
class Opened:
    """A table that DuckDB can read.

    Attributes:
        table: which.
        source: SQL for FROM.
        columns: in order.
        number: SQL for the number of a row, in row order; "" if there is none.
        begins: SQL for the rows at the beginning, where they have numbers; with the place of how many.
        files: that are read, if they are not those of the table: of its log, or copies.
        comments: on its columns, in its files or its log.
        facts: found by reading its rows.
        state: of its files, or of those of its log, when it was opened.
    """

    table: LakeTable
    source: str
    columns: list[LakeColumn]
    number: str = ""
    begins: str = ""
    files: Sequence[str] = ()
    comments: Mapping[str, str] = field(default_factory=dict)
    facts: dict[Any, Any] = field(default_factory=dict)
    state: list[tuple[str, int, int]] = field(default_factory=list)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that are read, and their patterns."""
        return (*(self.files or self.table.files), *map(literal, self.files or self.table.files))

    def footers(self) -> list[Any] | None:
        """The footers of the Parquet files that are read, as :func:`pyarrow.parquet.read_metadata` gives them.

        None for JSON files, which have none.
        """
        import pyarrow.parquet as pq  # type: ignore[import-untyped]

        if self.table.format == "json":
            return None
        return [pq.read_metadata(file) for file in self.files or self.table.files]


class Lake:
    """A DuckDB database over tables; see the module. Its methods are called from any thread."""

    def __init__(self, tables: Sequence[LakeTable] = (), file: Path | None = None) -> None:
        need_duckdb("a folder" if file is None else str(file))
        self._tables = {table.name: table for table in tables}
        self._opened: dict[str, Opened] = {}
        self._of_logs: set[str] = set()
        self._lock = threading.RLock()
        self._file = file
        self.folder = tempfile.mkdtemp(prefix="tagframe-")
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self._connect()

    def _connect(self) -> None:
        """A new database, which knows nothing of what files held before."""
        import duckdb

        from tagframe.engines.duckdb.worker import OPTIONS, SETTINGS

        options = {**OPTIONS, "memory_limit": MEMORY, "temp_directory": self.folder}
        self.connection = duckdb.connect(":memory:", config=options)
        self.run(SETTINGS)
        if self._file is not None:
            self.run(f"ATTACH {quoted_text(str(self._file))} AS {quoted(IN_FILE)} (READ_ONLY)")
        # All files of all tables: a table is opened when it is first read.
        files = {file for table in self._tables.values() for file in table.files} | self._of_logs
        self.run(f"SET allowed_paths = {quoted_texts(sorted({*files, *map(literal, files)}))}")
        self.run(f"SET allowed_directories = {quoted_texts([self.folder])}")
        self.run("SET enable_external_access = false")
        self.run("SET lock_configuration = true")

    def _cursor(self, sent: Mapping[str, Any] | None = None) -> Any:
        """A connection to the database, for one thread; tables registered on it are not visible on others."""
        cursor = self.connection.cursor()
        for name, source in (sent or {}).items():
            cursor.register(name, source)
        return cursor

    def add(self, tables: Sequence[LakeTable]) -> None:
        """Tables of the file."""
        self._tables.update({table.name: table for table in tables})

    def run(self, sql: str) -> None:
        self._cursor().execute(sql).fetchall()

    def close(self) -> None:
        self.connection.close()

    def opened(self, name: str) -> Opened:
        """A table with its columns; they are looked up again if its files have changed.

        Raises:
            UnreadableTable: it cannot be read.
        """
        with self._lock:
            if name not in self._tables:
                raise UnreadableTable(f"there is no table {name!r} any more")
            table = self._tables[name]
            with named_errors(table):
                state = table.listing()
                for file in self._opened[name].files if name in self._opened else ():
                    os.stat(file)
            if name in self._opened and self._opened[name].state != state:
                # DuckDB keeps footers, by times in whole seconds.
                self._opened.clear()
                self._connect()
            if name not in self._opened:
                self._opened[name] = replace(self._open(table), state=state)
            return self._opened[name]

    def _open(self, table: LakeTable) -> Opened:
        with named_errors(table):
            if table.format == "csv":
                source, files, comments = csv_copies(self, table)
                return Opened(table, source, self.columns(source), files=files, comments=comments)
            if not table.files:
                return self._of_log(table)
            if table.format == "duckdb":
                source = f"{quoted(IN_FILE)}.{quoted(table.home)}.{quoted(table.called)}"
                columns = self.columns(source)
                is_numbered = all(column.name.lower() != "rowid" for column in columns)
                return Opened(table, source, columns, *(("rowid", "rowid < {}") if is_numbered else ()))
            source = f"read_{table.format}({quoted_texts(table.patterns)}, {self._options(table)})"
            columns = self.columns(source)
            if table.format == "json":
                return Opened(table, source, columns)
            number = "(file_index::BIGINT * 1099511627776 + file_row_number)"
            begins = "file_index = 0 AND file_row_number < {}"
            return Opened(table, source, columns, number, begins, comments=_comments_of(table))

    def _of_log(self, table: LakeTable) -> Opened:
        """A Delta or Iceberg table, with the types of its log."""
        import duckdb

        log = logged(table)
        if log.files and not self._of_logs.issuperset(log.files):
            self._of_logs.update(log.files)
            self._connect()
        types = self.connection.from_arrow(log.schema.empty_table()).types
        items = ", ".join(f"CAST({one} AS {type}) AS {one}"
                          for one, type in zip(map(quoted, log.schema.names), types, strict=True))  # fmt: skip

        def opened(files: Sequence[str], options: str) -> Opened:
            source = f"(SELECT {items} FROM read_parquet({quoted_texts(map(literal, files))}, {options}))"
            comments = {field.name: comment_of(field) for field in log.schema}
            return Opened(table, source, self.columns(source), files=files, comments=comments)

        if log.files:
            with suppress(duckdb.BinderException):  # a column that no file has
                folders = f"hive_partitioning={bool(log.partitions)}, hive_types_autocast=false"
                return opened(log.files, f"union_by_name=true, {folders}")
        return opened([self._copy(log)], "hive_partitioning=false")

    def _copy(self, log: Logged) -> str:
        """The rows of a log in a Parquet file of our own."""
        import pyarrow.parquet as pq

        copy = str(Path(tempfile.mkdtemp(dir=self.folder)) / "rows.parquet")
        with pq.ParquetWriter(copy, log.schema) as writer:
            for batch in log.batches():
                writer.write_table(pa.Table.from_batches([batch]).cast(log.schema))
        return copy

    def _options(self, table: LakeTable) -> str:
        return f"union_by_name={len(table.files) > 1}, hive_partitioning={table.partitioned}"

    def columns(self, source: str) -> list[LakeColumn]:
        """The columns of what may follow FROM."""
        rows = self._cursor().execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
        return [LakeColumn(name, type) for name, type, *_ in rows]

    def fetch(
        self, sql: str, values: Mapping[str, Any] | None = None, sent: Mapping[str, pa.Table] | None = None
    ) -> pa.Table:
        """The rows of a query.

        Args:
            sql: the query.
            values: of its named placeholders.
            sent: tables that are sent with it, by their names in it.
        """
        with self._cursor(sent) as cursor:
            return cursor.sql(sql, params=dict(values) if values else None).to_arrow_table()

    def reading(self, sql: str, rows: int, values: Mapping[str, Any] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a query, in batches of this many."""
        with self._cursor() as cursor:
            yield from cursor.sql(sql, params=dict(values) if values else None).to_arrow_reader(rows)


def _comments_of(table: LakeTable) -> dict[str, str]:
    """The comments on columns in the first file of a Parquet table."""
    import pyarrow.parquet as pq

    comments = {}
    with suppress(pa.ArrowException):  # DuckDB reads what Arrow does not
        for field in pq.read_schema(table.files[0]):
            comments[field.name] = comment_of(field)
            if pa.types.is_duration(field.type):
                what = f"the durations of column {field.name!r} as integers, in {field.type.unit}"
                warn(f"{table.called}: DuckDB reads {what}", ColumnFormatWarning)
    return comments


@contextmanager
def named_errors(*tables: LakeTable) -> Iterator[None]:
    """A block that reads tables: its errors become :class:`UnreadableTable`, which names the file."""
    import duckdb

    try:
        yield
    except TagframeError:
        raise
    except (duckdb.Error, OSError, ValueError, OverflowError) as error:  # also Arrow's own, for days after 9999
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        for table in tables:
            for file in table.files:
                if not os.path.exists(file):
                    raise UnreadableTable(
                        f"table {table.called!r} cannot be read: {file} no longer exists; call tagframe.open_corpus "
                        "again"
                    ) from error
        names = ", ".join(repr(table.called) for table in tables)
        named = next((file for table in tables for file in table.files if file in str(error)), "")
        where = named or ", ".join(str(table.place) for table in tables)
        raise UnreadableTable(f"table {names} of {where} cannot be read: {reason}") from error


_lakes: OrderedDict[tuple[LakeTable, ...], Lake] = OrderedDict()
_lock = threading.Lock()


def lake_of(tables: tuple[LakeTable, ...]) -> Lake:
    """The database of these tables; the last ones used are kept open."""
    with _lock:
        lake = _lakes.pop(tables, None) or Lake(tables)
        _lakes[tables] = lake
        while len(_lakes) > _KEPT_LAKES:
            _lakes.popitem(last=False)
        return lake


_inherited: list[object] = []


def _after_fork() -> None:
    # DuckDB's threads do not survive a fork, and its files are the parent's.
    global _lock
    _inherited.append(dict(_lakes))
    _lakes.clear()
    _lock = threading.Lock()


@atexit.register
def _close_all() -> None:
    # Otherwise its binding reports every object that a frame or an error still holds.
    with _lock:
        for lake in _lakes.values():
            lake.close()
        _lakes.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# --- CSV files: their rows are read as those of any CSV file, once, into Parquet files --------------------------------

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
