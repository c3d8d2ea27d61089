"""SQLite files as a source of tables, opened so that they cannot be changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from tagframe.engines.base import CHUNK_ROWS, Chunk, ForeignKey, TableShape
from tagframe.errors import UnreadableTable

_MAGIC = b"SQLite format 3\x00"
_CHUNK_BYTES = 128 * 2**20


def is_sqlite_file(path: Path) -> bool:
    """Whether the file starts as SQLite files do. An empty file is a database of no tables to SQLite; not here."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def quoted(identifier: str) -> str:
    """An identifier as SQL text, whatever it holds.

    >>> quoted('order by"x')
    '"order by""x"'
    """
    return '"' + identifier.replace('"', '""') + '"'


def _qualified(column: str) -> str:
    # Without the table's name SQLite takes a quoted name that is no column for a text.
    return f"t.{quoted(column)}"


def connect_readonly(path: Path) -> sqlite3.Connection:
    """A connection that can only read, and leaves no file beside the database.

    Text that is not UTF-8 is read with U+FFFD in place of what cannot be decoded.

    Raises:
        sqlite3.OperationalError: the file cannot be opened.
    """
    options = "mode=ro"
    with path.open("rb") as file:
        header = file.read(20)
    if header[18:20] == b"\x02\x02" and not Path(f"{path}-wal").exists():
        # Even a reader of a database in WAL mode makes -wal and -shm files, unless it is told that nobody writes.
        options += "&immutable=1"
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?{options}", uri=True, check_same_thread=False)
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    return connection


@dataclass(frozen=True)
class SQLiteSource:
    """The tables of one SQLite file; views, virtual tables and SQLite's own tables are left out."""

    path: Path
    kind: str = "sqlite"

    def shapes(self) -> list[TableShape]:
        """The tables by name, with their declared types and keys."""
        if not is_sqlite_file(self.path):
            raise UnreadableTable(f"{self.path} is not a SQLite database: it is encrypted, damaged or another format")
        with self._connection() as connection:
            tables = {name: _columns(connection, name) for name in _table_names(connection)}
            return [
                TableShape(
                    name,
                    columns=tuple(column for column, _, _ in columns),
                    declared_types=tuple(declared for _, declared, _ in columns),
                    primary_key=_primary_key(columns),
                    foreign_keys=_foreign_keys(connection, name, tables),
                )
                for name, columns in tables.items()
            ]

    def chunks(self, shape: TableShape) -> Iterator[Chunk]:
        """The rows of a table in pieces of some 128 MB at most."""
        names = [_qualified(column) for column in shape.columns]
        with self._connection(shape.name) as connection:
            rows = CHUNK_ROWS
            if self.path.stat().st_size > _CHUNK_BYTES:  # cells may be of many megabytes
                widths = "+".join(f"coalesce(max(length({name})), 0)" for name in names)
                (widest,) = connection.execute(f"SELECT {widths} FROM {quoted(shape.name)} AS t").fetchone()
                rows = min(max(_CHUNK_BYTES // max(widest, 1), 1), CHUNK_ROWS)
            cursor = connection.execute(f"SELECT {', '.join(names)} FROM {quoted(shape.name)} AS t")
            while cells := cursor.fetchmany(rows):
                yield Chunk(len(cells), list(zip(*cells, strict=True)))

    def read(self, table: str, columns: Sequence[str] | None, limit: int | None) -> pd.DataFrame:
        """The rows of a table; see :func:`typed_series` for their dtypes."""
        with self._connection(table) as connection:
            if columns is None:
                columns = [name for name, _, _ in _columns(connection, table)]
            selected = ", ".join(map(_qualified, columns)) or "NULL"
            rows = connection.execute(
                f"SELECT {selected} FROM {quoted(table)} AS t LIMIT ?", [-1 if limit is None else limit]
            ).fetchall()
        if not columns:
            return pd.DataFrame(index=pd.RangeIndex(len(rows)))
        cells = zip(*rows, strict=True) if rows else ((),) * len(columns)
        return pd.DataFrame({name: typed_series(values) for name, values in zip(columns, cells, strict=True)})

    @contextmanager
    def _connection(self, table: str | None = None) -> Iterator[sqlite3.Connection]:
        place = f"table {table!r} of {self.path}" if table else str(self.path)
        try:
            with closing(connect_readonly(self.path)) as connection:
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise UnreadableTable(f"{place} cannot be read: {error}") from error


def typed_series(values: Sequence[Any]) -> pd.Series:
    """Cells of SQLite as a column whose dtype loses nothing.

    Integers are ``int64``, or ``Int64`` beside nulls. Floats are ``float64``, with integers among them where float64
    can hold those exactly. Text has pandas' own text dtype. Columns of bytes, of mixed types and of nulls only are
    ``object``.
    """
    types = set(map(type, values)) - {type(None)}
    if types == {int}:
        return pd.Series(values, dtype="Int64" if None in values else "int64")
    if types in ({float}, {int, float}) and all(abs(v) <= 2**53 for v in values if type(v) is int):
        return pd.Series(values, dtype="float64")
    return pd.Series(values) if types == {str} else pd.Series(values, dtype=object)


def _table_names(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("PRAGMA table_list").fetchall()
    if rows:
        names = [name for schema, name, kind, *_ in rows if schema == "main" and kind == "table"]
    else:  # before SQLite 3.37
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        names = [name for (name,) in connection.execute(query)]
    return sorted(name for name in names if not name.lower().startswith("sqlite_"))


def _columns(connection: sqlite3.Connection, table: str) -> list[tuple[str, str, int]]:
    """(name, declared type, place in the primary key or 0) of each column, generated ones too, hidden ones not."""
    rows = connection.execute(f"PRAGMA table_xinfo({quoted(table)})")
    return [(name, declared, key) for _, name, declared, _, _, key, hidden in rows if hidden != 1]


def _primary_key(columns: list[tuple[str, str, int]]) -> tuple[str, ...]:
    return tuple(name for _, name in sorted((key, name) for name, _, key in columns if key))


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
