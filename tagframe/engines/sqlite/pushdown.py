"""The parts of a merge that SQLite runs; see :mod:`tagframe.engines.pushdown`.

SQLite's types are those of values, not of columns: what a column holds is looked up in its rows.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe.engines.base import quoted
from tagframe.engines.cells import typed_frame
from tagframe.engines.pushdown import Cells, Pushdown, Statement, named_item
from tagframe.errors import UnreadableTable

if TYPE_CHECKING:
    from sqlglot import exp


_CELLS = {
    frozenset[str](): Cells("null", ""),
    frozenset({"integer"}): Cells("integer", "integer"),
    frozenset({"real"}): Cells("", "real"),
    frozenset({"integer", "real"}): Cells("", "real"),
    frozenset({"text"}): Cells("text", "text"),
}
"""What a column holds, by SQLite's names for what is in its cells."""


def table_columns(connection: sqlite3.Connection, table: str) -> list[tuple[str, str, int]]:
    """(name, declared type, position in the primary key or 0) of each column, generated ones too, hidden ones not."""
    rows = connection.execute(f"PRAGMA table_xinfo({quoted(table)})")
    return [(name, declared, key) for _, name, declared, _, _, key, hidden in rows if hidden != 1]


def rowid_name(connection: sqlite3.Connection, table: str) -> str | None:
    """What SQLite calls the row ids of a table; None where it has none, or its columns have taken all the names."""
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
    most_rows = 10_000
    joins_outer = sqlite3.sqlite_version_info >= (3, 39)
    collation = "BINARY"
    is_odd = "{} GLOB '*[^ -~]*'"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
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

    def number(self, table: str) -> str | None:
        """What SQLite calls its row ids."""
        with _named_errors():
            return rowid_name(self._connection, table)

    def lets_none_repeat(self, table: str, columns: Sequence[str]) -> bool:
        """By the table's indexes."""
        if self._row_id_column(table) in columns:
            return True
        for _, index, unique, _, partial in self._indexes(table):
            parts = {part for _, _, part in self._fetch(f"PRAGMA index_info({quoted(index)})")}
            if unique and not partial and parts <= set(columns):
                return True
        return False

    def among(self, column: exp.Expr, cells: Cells, keys: pd.Index, values: dict[str, Any]) -> exp.Expr:
        """Keys are sent as JSON."""
        from sqlglot import exp

        name = f"k{len(values)}"
        values[name] = json.dumps(keys.tolist())
        sent = exp.select("value").from_(exp.Table(this=exp.func("json_each", exp.Placeholder(this=name))))
        return exp.In(this=column, query=sent.subquery())

    def rows(self, statement: Statement) -> pd.DataFrame:
        """See :func:`~tagframe.engines.cells.typed_series` for their dtypes."""
        found = self._fetch(statement.query, statement.values)
        return statement.frame(lambda names: typed_frame(found, names), len(found))

    def _row_id_column(self, table: str) -> str | None:
        """The column that is the row id (INTEGER PRIMARY KEY), which can only hold integers."""
        with _named_errors():
            keys = [(name, declared) for name, declared, key in table_columns(self._connection, table) if key]
        is_alias = len(keys) == 1 and keys[0][1].upper() == "INTEGER"
        return keys[0][0] if is_alias and all(origin != "pk" for _, _, _, origin, _ in self._indexes(table)) else None

    def _indexes(self, table: str) -> list[tuple[Any, ...]]:
        return self._fetch(f"PRAGMA index_list({quoted(table)})")

    def _fetch(self, sql: str, values: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        with _named_errors():
            return self._connection.execute(sql, values or {}).fetchall()


@contextmanager
def _named_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise UnreadableTable(f"SQLite cannot answer: {error}") from error
