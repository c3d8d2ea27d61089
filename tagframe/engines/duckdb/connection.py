"""DuckDB over the files of a lake, for our own statements: a database in memory that can reach nothing else.

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
from typing import TYPE_CHECKING, Any, NamedTuple

from tagframe.engines.duckdb.csv import csv_source, labels_of
from tagframe.engines.duckdb.tables import LakeTable, Logged, logged, need_duckdb
from tagframe.engines.files.arrow import comment_of
from tagframe.engines.sql_text import quoted, quoted_text, quoted_texts
from tagframe.errors import ColumnFormatWarning, TagframeError, UnreadableTable, warn

if TYPE_CHECKING:
    import pyarrow as pa

MEMORY = "1GB"
"""The memory of DuckDB for our own queries; larger sorts and joins use files in the temporary folder."""
_DIGITS = 38
"""Of decimals in DuckDB."""
_SAMPLED = 20_480
"""The rows of a JSON file by which DuckDB tells its types."""
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
        logged: what the log tells, for Delta and Iceberg tables.
        facts: found by reading its rows.
        state: of its files, or of those of its log, when it was opened.
        copies: what is read in place of its files.
    """

    table: LakeTable
    source: str
    columns: list[LakeColumn]
    number: str = ""
    begins: str = ""
    logged: Logged | None = None
    facts: dict[Any, Any] = field(default_factory=dict)
    state: list[tuple[str, int, int]] = field(default_factory=list)
    copies: Sequence[str] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that are read, and their patterns."""
        return tuple(self.copies) or (*self.table.files, *self.table.patterns)

    def footers(self) -> list[Any] | None:
        """The footers of its Parquet files, as :func:`pyarrow.parquet.read_metadata` gives them; None if footers alone
        do not tell the rows."""
        import pyarrow.parquet as pq  # type: ignore[import-untyped]

        if self.logged is not None:
            return None if self.logged.footers is None else self.logged.footers()
        return [pq.read_metadata(file) for file in self.table.files] if self.table.format == "parquet" else None

    def comments(self) -> dict[str, str]:
        """The comments on columns in the log, in the first of its Parquet files, or in CSV files."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self.table.format == "csv":
            return labels_of(self.table)
        if self.logged is None and self.table.format != "parquet":
            return {}
        with suppress(pa.ArrowException):  # DuckDB reads what Arrow does not
            fields = pq.read_schema(self.table.files[0]) if self.logged is None else self.logged.source.schema
            return {field.name: comment_of(field) for field in fields}
        return {}


class Lake:
    """A DuckDB database over tables; see the module. Its methods are called from any thread."""

    def __init__(self, tables: Sequence[LakeTable] = (), memory: str = MEMORY, file: Path | None = None) -> None:
        need_duckdb("a folder" if file is None else str(file))
        self._tables = {table.name: table for table in tables}
        self._opened: dict[str, Opened] = {}
        self._registered: dict[str, Any] = {}
        self._lock = threading.RLock()
        self._memory, self._file = memory, file
        self.folder = tempfile.mkdtemp(prefix="tagframe-")
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self._connect()

    def _connect(self) -> None:
        """A new database, which knows nothing of what files held before."""
        import duckdb

        from tagframe.engines.duckdb.worker import OPTIONS, SETTINGS

        options = {**OPTIONS, "memory_limit": self._memory, "temp_directory": self.folder}
        self.connection = duckdb.connect(":memory:", config=options)
        self.run(SETTINGS)
        if self._file is not None:
            self.run(f"ATTACH {quoted_text(str(self._file))} AS {quoted(IN_FILE)} (READ_ONLY)")
        # All files of all tables: a table is opened when it is first read.
        paths = {file for table in self._tables.values() for file in (*table.files, *table.patterns)}
        self.run(f"SET allowed_paths = {quoted_texts(sorted(paths))}")
        self.run(f"SET allowed_directories = {quoted_texts([self.folder])}")
        self.run("SET enable_external_access = false")
        self.run("SET lock_configuration = true")

    def _cursor(self, sent: Mapping[str, Any] | None = None) -> Any:
        """A connection to the database, for one thread; tables registered on one connection are not visible on
        others."""
        cursor = self.connection.cursor()
        for name, source in {**self._registered, **(sent or {})}.items():
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
            if name in self._opened and self._opened[name].state != state:
                # DuckDB keeps footers, by times in whole seconds.
                self._opened.clear()
                self._connect()
            if name not in self._opened:
                self._opened[name] = replace(self._open(table), state=state)
            return self._opened[name]

    def _open(self, table: LakeTable) -> Opened:
        with named_errors(table):
            if not table.files:
                log = logged(table)
                name = f"tagframe {table.format} {table.name}"
                self._registered[name] = log.source
                columns = self.columns(quoted(name))
                return Opened(table, quoted(name), columns, logged=log)
            if table.format == "parquet":
                source = f"read_parquet({quoted_texts(table.patterns)}, {self._options(table)})"
                number = "(file_index::BIGINT * 1099511627776 + file_row_number)"
                columns = self.columns(source)
                self._say_others(table, columns)
                return Opened(table, source, columns, number, "file_index = 0 AND file_row_number < {}")
            if table.format == "duckdb":
                source = f"{quoted(IN_FILE)}.{quoted(table.home)}.{quoted(table.called)}"
                columns = self.columns(source)
                if any(column.name.lower() == "rowid" for column in columns):
                    return Opened(table, source, columns)
                return Opened(table, source, columns, "rowid", "rowid < {}")
            if table.format == "json":
                source = f"read_json({quoted_texts(table.patterns)}, {self._options(table)})"
                columns = self.columns(source)
                if floats := [column.name for column in columns if column.type == "DOUBLE"]:
                    self._say_rounded(table, floats)
                return Opened(table, source, columns)
            source, copies = csv_source(self, table)
            return Opened(table, source, self.columns(source), copies=copies)

    def _say_others(self, table: LakeTable, columns: Sequence[LakeColumn]) -> None:
        """Warn of decimals of more than 38 digits, which DuckDB reads as floats, and of Arrow's durations."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        types = {column.type for column in columns}
        if "DOUBLE" in types:
            long = (
                f"SELECT DISTINCT name FROM parquet_schema({quoted_texts(table.patterns)}) WHERE precision > {_DIGITS}"
            )
            if names := sorted(row["name"] for row in self.fetch(long).to_pylist()):
                warn(
                    f"{table.called}: DuckDB has decimals of {_DIGITS} digits at most, and reads those of "
                    f"{', '.join(names)} as floats of 15 to 17 digits",
                    ColumnFormatWarning,
                )
        if "BIGINT" in types:
            with suppress(pa.ArrowException, OSError):
                spans = [field for field in pq.read_schema(table.files[0]) if pa.types.is_duration(field.type)]
                for field in spans:
                    what = f"the durations of column {field.name!r} as integers, in {field.type.unit}"
                    warn(f"{table.called}: DuckDB reads {what}", ColumnFormatWarning)

    def _say_rounded(self, table: LakeTable, floats: Sequence[str]) -> None:
        """Warn of integers of JSON that DuckDB reads as floats; they are looked for where it looks for types."""
        texts = ", ".join(f"{quoted_text(name)}: 'VARCHAR'" for name in floats)
        rows = f"read_json({quoted_texts(table.patterns)}, {self._options(table)}, columns={{{texts}}})"
        is_rounded = (
            "regexp_full_match({0}, '-?[1-9][0-9]*') AND TRY_CAST({0}::DOUBLE AS HUGEINT)::VARCHAR IS DISTINCT FROM {0}"
        )
        tests = (f"coalesce(bool_or({is_rounded.format(quoted(name))}), false) AS {quoted(name)}" for name in floats)
        found = self.fetch(f"SELECT {', '.join(tests)} FROM (FROM {rows} LIMIT {_SAMPLED})").to_pylist()[0]
        if names := [repr(name) for name in floats if found[name]]:
            what = f"integers of {', '.join(names)} as floats, which do not hold all of their digits"
            warn(f"{table.called}: DuckDB reads {what}", ColumnFormatWarning)

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
