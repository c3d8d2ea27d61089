"""Queries of our own inside a SQLite file, and what they have to know of its columns.

SQLite's types are those of values, not of columns: what a column holds is looked up in its rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from tagframe.engines.base import ColumnKind, quoted
from tagframe.errors import UnreadableTable

if TYPE_CHECKING:
    from sqlglot import exp


def table_columns(connection: sqlite3.Connection, table: str) -> list[tuple[str, str, int]]:
    """(name, declared type, place in the primary key or 0) of each column, generated ones too, hidden ones not."""
    rows = connection.execute(f"PRAGMA table_xinfo({quoted(table)})")
    return [(name, declared, key) for _, name, declared, _, _, key, hidden in rows if hidden != 1]


def rowid_name(connection: sqlite3.Connection, table: str) -> str | None:
    """What SQLite calls the row ids of a table; None where its columns have taken all the names."""
    rows = connection.execute(f"PRAGMA table_xinfo({quoted(table)})")
    names = {name.casefold() for _, name, *_ in rows}
    return next((name for name in ("rowid", "_rowid_", "oid") if name not in names), None)


class SQLiteSession:
    """One transaction of a connection that can only read."""

    kind = "sqlite"
    ordered_join = "cross"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def fetch(self, query: exp.Query, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """The rows of a query; ``values`` are those of its named placeholders."""
        return self._fetch(query.sql(dialect="sqlite"), values)

    def size(self, table: str) -> int:
        """Rows of a table."""
        return int(self._fetch(f"SELECT count(*) FROM {quoted(table)}")[0][0])

    def row_number(self, table: str) -> str:
        """What SQLite calls its row ids."""
        with _named_errors():
            name = rowid_name(self._connection, table)
        if name is None:
            raise UnreadableTable(f"the row ids of {table!r} are hidden by columns of their names")
        return name

    def column_kind(self, table: str, column: str) -> tuple[ColumnKind | None, bool]:
        """Looked up in the rows, unless the column is the row id (``INTEGER PRIMARY KEY``), which is an integer."""
        if column == self._numbered_by(table):
            return "integer", False
        name = f"t.{quoted(column)}"
        first = self._first(table, f"typeof({name})", f"{name} IS NOT NULL")
        if first not in ("integer", "text"):
            return ("null" if first is None else None), True
        kind: ColumnKind = first
        if self._first(table, "1", f"typeof({name}) <> '{kind}'") is None:
            return kind, False
        is_pure = self._first(table, "1", f"typeof({name}) NOT IN ('{kind}', 'null')") is None
        return (kind if is_pure else None), True

    def is_unique(self, table: str, columns: Sequence[str]) -> bool:
        """By the table's indexes, else by its rows."""
        if self._numbered_by(table) in columns:
            return True
        for _, index, unique, _, partial in self._indexes(table):
            parts = {part for _, _, part in self._fetch(f"PRAGMA index_info({quoted(index)})")}
            if unique and not partial and parts <= set(columns):
                return True
        names = [f"t.{quoted(column)}" for column in columns]
        filled = " AND ".join(f"{name} IS NOT NULL" for name in names)
        grouped = ", ".join(f"{name} COLLATE BINARY" for name in names)
        twice = f"SELECT 1 FROM {quoted(table)} AS t WHERE {filled} GROUP BY {grouped} HAVING count(*) > 1 LIMIT 1"
        return not self._fetch(twice)

    def holds(self, column: exp.Column, kind: Literal["number", "text"]) -> exp.Condition:
        """By SQLite's ``typeof``."""
        from sqlglot import exp

        types = ("integer", "real") if kind == "number" else ("text",)
        return exp.In(this=exp.func("typeof", column), expressions=[exp.Literal.string(name) for name in types])

    def exact(self, column: exp.Column) -> exp.Condition:
        """With the collation BINARY."""
        from sqlglot import exp

        return exp.Collate(this=column, expression=exp.Var(this="BINARY"))

    def _numbered_by(self, table: str) -> str | None:
        """The column that is the row id (INTEGER PRIMARY KEY), which nothing but integers can be in."""
        with _named_errors():
            keys = [(name, declared) for name, declared, key in table_columns(self._connection, table) if key]
        is_alias = len(keys) == 1 and keys[0][1].upper() == "INTEGER"
        return keys[0][0] if is_alias and all(origin != "pk" for _, _, _, origin, _ in self._indexes(table)) else None

    def _indexes(self, table: str) -> list[tuple[Any, ...]]:
        return self._fetch(f"PRAGMA index_list({quoted(table)})")

    def _first(self, table: str, shown: str, condition: str) -> Any:
        rows = self._fetch(f"SELECT {shown} FROM {quoted(table)} AS t WHERE {condition} LIMIT 1")
        return rows[0][0] if rows else None

    def _fetch(self, sql: str, values: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        with _named_errors():
            return self._connection.execute(sql, values or {}).fetchall()


@contextmanager
def _named_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise UnreadableTable(f"SQLite cannot answer: {error}") from error
