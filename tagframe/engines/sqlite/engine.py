"""SQLite files, opened so that they cannot be changed."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pandas as pd
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from tagframe.engines.base import CHUNK_ROWS, Chunk, ForeignKey, Stamp, TableShape, UntrustedStatement, quoted
from tagframe.engines.cells import typed_frame
from tagframe.engines.files.limits import file_stamp
from tagframe.engines.pushdown import Cells, Pushdown, SQLEngine, Statement, named_item
from tagframe.engines.sqlite.statement import SQLITE, run_statement, with_copies
from tagframe.errors import ColumnFormatWarning, UnreadableTable, warn

_MAGIC = b"SQLite format 3\x00"
CHUNK_BYTES = 128 * 2**20
VIEW_SECONDS = 10.0
"""The time limit of reading a view."""


def is_sqlite_file(path: Path) -> bool:
    """Whether the file starts as SQLite files do. SQLite takes an empty file for a database without tables; this does
    not."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _qualified(column: str) -> str:
    # Without the table's name SQLite reads a quoted name of no column as a text.
    return f"t.{quoted(column)}"


def connect_readonly(path: Path) -> sqlite3.Connection:
    """A connection that can only read, and leaves no file beside the database.

    Text that is not UTF-8 is read with U+FFFD in place of what cannot be decoded.

    Raises:
        sqlite3.OperationalError: the file cannot be opened.
    """
    connection = sqlite3.connect(_readonly_uri(path), uri=True, check_same_thread=False)
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    return connection


def _readonly_uri(path: Path) -> str:
    options = "mode=ro"
    with path.open("rb") as file:
        header = file.read(20)
    if header[18:20] == b"\x02\x02" and not Path(f"{path}-wal").exists():
        # Even a reader of a database in WAL mode makes -wal and -shm files, unless it is told that nobody writes.
        options += "&immutable=1"
    return f"{path.absolute().as_uri()}?{options}"


@dataclass(frozen=True)
class SQLiteEngine(SQLEngine):
    """The tables and views of one SQLite file; virtual tables are named, SQLite's own tables are left out.

    Rows are numbered by their row ids. A table without them (``WITHOUT ROWID``, or all three names taken by columns)
    can only be read whole.
    """

    path: Path
    kind: str = "sqlite"
    is_database = True
    joins = "few"
    dialect = SQLITE

    def shapes(self) -> list[TableShape]:
        """The tables by name, with their declared types and keys."""
        if not is_sqlite_file(self.path):
            raise UnreadableTable(f"{self.path} is not a SQLite database: it is encrypted, damaged or another format")
        with self._connection() as connection:
            names = sorted([*_table_names(connection), *(name for name, why in _views(connection).items() if not why)])
            tables = {name: table_columns(connection, name) for name in names}
            return [
                TableShape(
                    name,
                    columns=tuple(column for column, _, _ in columns),
                    declared_types=tuple(declared for _, declared, _ in columns),
                    primary_key=_primary_key(columns),
                    foreign_keys=_foreign_keys(connection, name, tables),
                    unique=_unique(connection, name),
                    column_comments=_noted(connection, name, columns),
                )
                for name, columns in tables.items()
            ]

    def closed(self) -> list[UnreadableTable]:
        """Views that do not run, and the virtual tables, whose modules may not be here."""
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%' ORDER BY 1"
        with self._connection() as connection:
            views = {name: why for name, why in _views(connection).items() if why}
            virtual = {
                name: f"make it a table (CREATE TABLE … AS SELECT * FROM {quoted(name)}), or open its rows as a frame"
                for (name,) in connection.execute(query)
            }
        return [
            UnreadableTable.named(name, f"the {kind} {name!r} of {self.path} is not read: {why}")
            for kind, tables in (("view", views), ("virtual table", virtual))
            for name, why in tables.items()
        ]

    def chunks(self, shape: TableShape) -> Iterator[Chunk]:
        """The rows of a table in pieces of some 128 MB at most."""
        names = [_qualified(column) for column in shape.columns]
        with self._connection(shape.name, opened=_opened.by_path.get(self.path)) as connection:
            rows = CHUNK_ROWS
            is_view = _limited(connection, shape.name)
            if not is_view and self.path.stat().st_size > CHUNK_BYTES:  # cells may be of many megabytes
                widths = "+".join(f"coalesce(max(length({name})), 0)" for name in names)
                (widest,) = connection.execute(f"SELECT {widths} FROM {quoted(shape.name)} AS t").fetchone()
                rows = min(max(CHUNK_BYTES // max(widest, 1), 1), CHUNK_ROWS)
            cursor = connection.execute(f"SELECT {', '.join(names)} FROM {quoted(shape.name)} AS t")
            try:
                damaged = set[str]()
                while cells := cursor.fetchmany(rows):
                    columns = list(zip(*cells, strict=True))
                    damaged.update(name for name, some in zip(shape.columns, columns, strict=True) if _is_damaged(some))
                    yield Chunk(len(cells), columns)
                if listed := ", ".join(map(repr, sorted(damaged))):
                    what = f"texts of {listed} are not UTF-8, and have � for what cannot be read"
                    warn(f"table {shape.name!r} of {self.path}: {what}", ColumnFormatWarning)
            finally:
                connection.set_progress_handler(None, 0)

    @contextmanager
    def reading(self, table: str) -> Iterator[SQLitePushdown]:
        """The file, opened for one table."""
        with self._connection(table) as connection:
            _limited(connection, table)
            yield SQLitePushdown(connection, self.path)

    def definitions(self) -> dict[tuple[str, str], str]:
        """Of views and generated columns."""
        with self._connection() as connection:
            views = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'view'").fetchall()
            return {(name, ""): sql for name, sql in views} | {
                (table, column): text
                for table in _table_names(connection)
                for column, text in _generated(connection, table).items()
            }

    def fingerprint(self, known: Stamp | None = None) -> Stamp:
        """Size, time and content of the file, and of its log with what a writer has not yet moved into it."""
        log = Path(f"{self.path}-wal")
        return file_stamp([self.path, log] if log.exists() else [self.path], known)

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """Opening a file reads the definitions of all its tables: in a block they are read once."""
        with self._connection() as connection:
            _opened.by_path[self.path] = connection
            try:
                yield
            finally:
                del _opened.by_path[self.path]

    @contextmanager
    def pushdown(self, tables: Sequence[str]) -> Iterator[SQLitePushdown]:
        """All statements see one state of the file."""
        with self._connection() as connection:
            connection.execute("BEGIN")
            yield SQLitePushdown(connection, self.path)

    def execute(self, statement: UntrustedStatement) -> pd.DataFrame:
        """The file is read where it is; views and ``relations`` are copied, as the worker's checks go by tables."""
        stat = self.path.stat()
        with self._connection() as connection:
            views = _views(connection, runs=False)
            file = _readonly_uri(self.path)
            moments = {
                name: sorted(_texts_with_t(self.path, one.table, stat.st_size, stat.st_mtime_ns))
                for name, one in statement.tables.items()
            }
        copied = {name: one for name, one in statement.tables.items() if one.table in views}
        made = with_copies(self, statement, copied)
        return run_statement(made, file=file if made.tables else None, moments=moments)

    @contextmanager
    def _connection(
        self, table: str | None = None, opened: sqlite3.Connection | None = None
    ) -> Iterator[sqlite3.Connection]:
        what = f"table {table!r} of {self.path}" if table else str(self.path)
        with (
            _named_errors(what),
            nullcontext(opened) if opened is not None else closing(connect_readonly(self.path)) as connection,
        ):
            yield connection


def _is_damaged(cells: Sequence[Any]) -> bool:
    """Whether a text has the sign that stands for bytes without a meaning in UTF-8."""
    return any(isinstance(cell, str) and "\ufffd" in cell for cell in cells)


class _Opened(threading.local):
    """The connections that this thread holds open, by their files."""

    def __init__(self) -> None:
        self.by_path: dict[Path, sqlite3.Connection] = {}


_opened = _Opened()


def _table_names(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("PRAGMA table_list").fetchall()
    if rows:
        names = [name for schema, name, kind, *_ in rows if schema == "main" and kind == "table"]
    else:  # before SQLite 3.37
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        names = [name for (name,) in connection.execute(query)]
    return sorted(name for name in names if not name.lower().startswith("sqlite_"))


def _views(connection: sqlite3.Connection, *, runs: bool = True) -> dict[str, str]:
    """The views of a file, and why each cannot be read; "" for those that can, and for all where none is tried."""
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'view' ORDER BY 1")]
    views = dict.fromkeys(names, "")
    for name in names if runs else ():
        try:  # compiled, not run
            connection.execute(f"EXPLAIN SELECT * FROM {quoted(name)}")
        except sqlite3.Error as error:
            views[name] = str(error)
    return views


@lru_cache(maxsize=1024)
def _texts_with_t(path: Path, table: str, size: int, mtime_ns: int) -> frozenset[str]:
    """The columns of a table whose cells are all texts of moments, some with a T before the time."""
    form = f"{'-'.join(['[0-9]' * 4, '[0-9]' * 2, '[0-9]' * 2])}[T ][0-9][0-9]:[0-9][0-9]*"
    with closing(connect_readonly(path)) as connection:
        return frozenset(
            name
            for name, declared, _ in table_columns(connection, table)
            for t in [_qualified(name)]
            for source in [f"FROM {quoted(table)} AS t WHERE {t}"]
            if not _NUMERIC.search(declared)
            and connection.execute(f"SELECT EXISTS (SELECT 1 {source} GLOB '{form.replace('T ', 'T')}')").fetchone()[0]
            and not connection.execute(f"SELECT EXISTS (SELECT 1 {source} NOT GLOB '{form}')").fetchone()[0]
        )


_NUMERIC = re.compile("INT|REAL|FLOA|DOUB|BLOB", re.IGNORECASE)


def _limited(connection: sqlite3.Connection, table: str) -> bool:
    """Whether a table is a view, whose rows have to be computed: that is stopped after some seconds."""
    if table not in _views(connection, runs=False):
        return False
    end = time.monotonic() + VIEW_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > end, 10_000)
    return True


def _generated(connection: sqlite3.Connection, table: str) -> dict[str, str]:
    """The generated columns of a table, and the text that computes each; the whole table's, if that is not clear."""
    rows = connection.execute(f"PRAGMA table_xinfo({quoted(table)})").fetchall()
    names = [name for _, name, *_, kind in rows if kind in (2, 3)]
    definition = _definition(connection, table)
    parts = {column.name.casefold(): column.sql(dialect="sqlite") for column in _written(definition)} if names else {}
    return {name: parts.get(name.casefold(), definition) for name in names}


def _noted(connection: sqlite3.Connection, table: str, columns: list[tuple[str, str, int]]) -> tuple[str, ...]:
    """The comment behind each column in its CREATE TABLE: SQLite has no other comments."""
    definition = _definition(connection, table)
    if "--" not in definition and "/*" not in definition:
        return ()
    noted = {column.name.casefold(): " ".join(column.comments or ()) for column in _written(definition)}
    return tuple(noted.get(name.casefold(), "") for name, _, _ in columns)


def _definition(connection: sqlite3.Connection, table: str) -> str:
    query = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?"
    (definition,) = connection.execute(query, [table]).fetchone() or ("",)
    return str(definition)


def _written(definition: str) -> list[exp.ColumnDef]:
    """The columns in a CREATE TABLE; none if it does not parse."""
    try:
        return list(parse_one(definition, dialect="sqlite").find_all(exp.ColumnDef))
    except SqlglotError:
        return []


def _primary_key(columns: list[tuple[str, str, int]]) -> tuple[str, ...]:
    return tuple(name for _, name in sorted((key, name) for name, _, key in columns if key))


def _unique(connection: sqlite3.Connection, table: str) -> tuple[tuple[str, ...], ...]:
    """The columns of unique indexes, but for those of some rows or of expressions."""
    indexes = connection.execute(f"PRAGMA index_list({quoted(table)})").fetchall()
    whole = [index for _, index, unique, _, is_partial in indexes if unique and not is_partial]
    found = (connection.execute(f"PRAGMA index_info({quoted(index)})").fetchall() for index in whole)
    sets = (tuple(column for _, _, column in parts) for parts in found)
    return tuple(sorted(columns for columns in sets if None not in columns))


def _foreign_keys(
    connection: sqlite3.Connection, table: str, tables: dict[str, list[tuple[str, str, int]]]
) -> tuple[ForeignKey, ...]:
    """The declared foreign keys that lead to a table and columns that exist, names spelled as those are."""
    found: dict[int, list[tuple[str, str, str | None]]] = {}
    rows = connection.execute(f"PRAGMA foreign_key_list({quoted(table)})").fetchall()
    for key, _, other, column, other_column, *_ in sorted(rows):
        found.setdefault(key, []).append((column, other, other_column))
    spelled = {name.casefold(): name for name in tables}
    keys = []
    for parts in found.values():
        other = spelled.get(parts[0][1].casefold())
        if other is None:
            continue
        own = {name.casefold(): name for name, _, _ in tables[table]}
        theirs = {name.casefold(): name for name, _, _ in tables[other]}
        columns = [own.get(column.casefold()) for column, _, _ in parts]
        if any(other_column is None for _, _, other_column in parts):
            other_columns: list[str | None] = list(_primary_key(tables[other]))
        else:
            other_columns = [theirs.get(str(other_column).casefold()) for _, _, other_column in parts]
        if None not in columns and None not in other_columns and len(columns) == len(other_columns):
            keys.append(ForeignKey(tuple(map(str, columns)), other, tuple(map(str, other_columns))))
    return tuple(dict.fromkeys(keys))  # some schemas declare one key twice


# --- merges -----------------------------------------------------------------------------------------------------------
#
# The parts of a merge that SQLite runs; see tagframe.engines.pushdown. Its types are those of values, not of columns:
# what a column holds is looked up in its rows.

_CELLS = {
    frozenset[str](): Cells("null", ""),
    frozenset({"integer"}): Cells("integer", "integer"),
    frozenset({"real"}): Cells("", "real"),
    frozenset({"integer", "real"}): Cells("", "real"),
    frozenset({"text"}): Cells("text", "text"),
}
"""What a column holds, by SQLite's names for what is in its cells."""


def table_columns(connection: sqlite3.Connection, table: str) -> list[tuple[str, str, int]]:
    """(name, declared type, position in the primary key or 0) of each column, also of generated ones."""
    rows = connection.execute(f"PRAGMA table_xinfo({quoted(table)})")
    return [(name, declared, key) for _, name, declared, _, _, key, kind in rows if kind != 1]


def rowid_name(connection: sqlite3.Connection, table: str) -> str | None:
    """What SQLite calls the row ids of a table; None where it has none, or its columns have taken all the names.

    Some versions give a view's row ids as NULL, without an error.
    """
    if connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'view' AND name = ?", [table]).fetchone():
        return None
    rows = connection.execute(f"PRAGMA table_xinfo({quoted(table)})")
    names = {name.casefold() for _, name, *_ in rows}
    free = next((name for name in ("rowid", "_rowid_", "oid") if name not in names), None)
    if free is None:
        return None
    try:
        connection.execute(f"SELECT t.{free} FROM {quoted(table)} AS t LIMIT 0")
    except sqlite3.Error:
        return None
    return free


class SQLitePushdown(Pushdown):
    """One transaction of a connection that can only read. Rows are numbered by their row ids."""

    kind = dialect = "sqlite"
    binds = joins_in_order = True
    is_typed = False
    joins_outer = sqlite3.sqlite_version_info >= (3, 39)
    collation = "BINARY"

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._path = connection, path
        self._cells: dict[tuple[str, str], Cells] = {}

    def cells(self, table: str, column: str) -> Cells:
        """Looked up in the rows, unless the column is the row id (``INTEGER PRIMARY KEY``), which is an integer."""
        if (table, column) not in self._cells:
            types = {"integer"} if column == self._row_id_column(table) else self._types(table, column)
            self._cells[table, column] = _CELLS.get(frozenset(types), Cells("", ""))
        return self._cells[table, column]

    def _types(self, table: str, column: str) -> set[str]:
        """SQLite's names for what is in the cells of a column."""
        name = f"t.{quoted(column)}"
        query = f"SELECT DISTINCT typeof({name}) FROM {quoted(table)} AS t WHERE {name} IS NOT NULL"
        return {type for (type,) in self._fetch(query)}

    def item(self, table: str, alias: str, *, numbered: bool = False, first: int | None = None) -> exp.Expr:
        return named_item(quoted(table), alias)

    def names(self, table: str) -> list[str]:
        return [name for name, _, _ in table_columns(self._connection, table)]

    def number(self, table: str) -> str | None:
        """What SQLite calls its row ids."""
        with _named_errors(str(self._path)):
            return rowid_name(self._connection, table)

    def unique(self, table: str) -> Sequence[Sequence[str]]:
        """Its row ids, and what its indexes keep unique."""
        row_id = self._row_id_column(table)
        with _named_errors(str(self._path)):
            return [*([[row_id]] if row_id else []), *_unique(self._connection, table)]

    def among(self, column: exp.Expr, cells: Cells, keys: pd.Index, values: dict[str, Any]) -> exp.Expr:
        """Keys are sent as JSON."""
        name = f"k{len(values)}"
        values[name] = json.dumps(keys.tolist())
        sent = exp.select("value").from_(exp.Table(this=exp.func("json_each", exp.Placeholder(this=name))))
        return exp.In(this=column, query=sent.subquery())

    def rows(self, statement: Statement) -> pd.DataFrame:
        """See :func:`~tagframe.engines.cells.typed_series` for their dtypes."""
        names, values = [name for _, _, name in statement.columns], statement.values or {}
        with _named_errors(f"{statement.what} of {self._path}"):
            cursor = self._connection.execute(statement.query, values)
            if not names:
                return pd.DataFrame(index=pd.RangeIndex(len(cursor.fetchall())))
            # Packed a part at a time: Python's numbers take ten times the memory.
            parts = [typed_frame(cells, names) for cells in iter(partial(cursor.fetchmany, CHUNK_ROWS), [])]
            if any(len({*map(str, kinds)}) > 1 for kinds in zip(*(part.dtypes for part in parts), strict=True)):
                parts = [typed_frame(self._connection.execute(statement.query, values).fetchall(), names)]
        return pd.concat(parts, ignore_index=True) if len(parts) > 1 else (parts or [typed_frame([], names)])[0]

    def _row_id_column(self, table: str) -> str | None:
        """The column that is the row id (INTEGER PRIMARY KEY), which can only hold integers."""
        with _named_errors(str(self._path)):
            keys = [(name, declared) for name, declared, key in table_columns(self._connection, table) if key]
        is_alias = len(keys) == 1 and keys[0][1].upper() == "INTEGER"
        indexes = self._fetch(f"PRAGMA index_list({quoted(table)})") if is_alias else []
        return keys[0][0] if is_alias and all(origin != "pk" for _, _, _, origin, _ in indexes) else None

    def _fetch(self, sql: str) -> list[tuple[Any, ...]]:
        with _named_errors(str(self._path)):
            return self._connection.execute(sql).fetchall()


@contextmanager
def _named_errors(what: str) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        why = f"it takes more than {VIEW_SECONDS:g} seconds" if str(error) == "interrupted" else error
        raise UnreadableTable(f"{what} cannot be read: {why}") from error
