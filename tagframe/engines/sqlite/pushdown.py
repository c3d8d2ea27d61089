"""The parts of a merge that SQLite runs; see :mod:`tagframe.engines.pushdown`.

SQLite's types are those of values, not of columns: what a column holds is looked up in its rows.
"""

from __future__ import annotations

import datetime as dt
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe.engines.base import quoted
from tagframe.engines.cells import EXACT, CellTest, Kind, is_read, typed_frame
from tagframe.engines.pushdown import Pushdown, Statement, can_be_said, said
from tagframe.errors import UnreadableTable

if TYPE_CHECKING:
    from sqlglot import exp


_HOLDING: dict[Kind, tuple[str, ...]] = {"real": ("integer", "real"), "text": ("text",)}
"""What a cell is compared as, by SQLite's name for what is in it."""
_TESTED = (bool, int, float, str, Decimal, dt.date)


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
    """One transaction of a connection that can only read."""

    kind = dialect = "sqlite"
    binds = True
    most_rows = 10_000
    joins_outer = sqlite3.sqlite_version_info >= (3, 39)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._sent: dict[str, str] = {}

    def key_kind(self, table: str, column: str) -> str:
        """Looked up in the rows, unless the column is the row id (``INTEGER PRIMARY KEY``), which is an integer."""
        if column == self._numbered_by(table):
            return "integer"
        name = f"t.{quoted(column)}"
        first = self._first(table, f"typeof({name})", f"{name} IS NOT NULL")
        if first not in ("integer", "text"):
            return "null" if first is None else ""
        other = self._first(table, "1", f"typeof({name}) NOT IN ('{first}', 'null')")
        return str(first) if other is None else ""

    def cell_kind(self, table: str, column: str) -> Kind:
        """A cell is tested by its own type."""
        return ""

    def says(self, table: str, test: CellTest) -> bool:
        """It can express equality with numbers, texts and days; an order only if all cells are of one kind."""
        if not test.is_plain:
            first = self._first(table, f"typeof(t.{quoted(test.column[1])})", f"t.{quoted(test.column[1])} IS NOT NULL")
            kind: Kind = "text" if first == "text" else "real"
            # Memory decides what has no meaning among such cells, and orders them: the others may be of another type.
            if test.bound or not (first is None or all(is_read(value, kind) for value in test.values)):
                return False
            return (
                all(isinstance(value, _TESTED) for value in test.values)
                and all(can_be_said(_read_as(test, kind), kind) for kind in _HOLDING)
                and all(abs(value) < EXACT for value in test.values if isinstance(value, int | float))
            )
        name = f"t.{quoted(test.column[1])}"
        found = {kind for (kind,) in self._fetch(f"SELECT DISTINCT typeof({name}) FROM {quoted(table)} AS t")}
        if found <= {"integer", "real", "null"}:
            return can_be_said(test, "real")
        return found <= {"text", "null"} and can_be_said(test, "text")

    def test(self, column: exp.Expr, table: str, test: CellTest, values: dict[str, Any] | None = None) -> exp.Expr:
        """Numbers among numbers, and texts among texts."""
        from sqlglot import exp

        null = column.is_(exp.null())
        parts: list[exp.Expr] = [null] if test.null else []
        for kind, types in _HOLDING.items():
            one = replace(test if test.is_plain else _read_as(test, kind), null=False)
            if test.bound and (kind == "text") != isinstance(test.values[0], str):
                continue
            holds = exp.In(this=exp.func("typeof", column), expressions=[exp.Literal.string(name) for name in types])
            asked = said(self.as_key(column) if kind == "text" else column, one, kind, values, null)
            if not isinstance(asked, exp.Boolean):
                parts.append(exp.and_(holds, asked))
        return exp.or_(*parts) if parts else exp.false()

    def lets_none_repeat(self, table: str, columns: Sequence[str]) -> bool:
        """By the table's indexes."""
        if self._numbered_by(table) in columns:
            return True
        for _, index, unique, _, partial in self._indexes(table):
            parts = {part for _, _, part in self._fetch(f"PRAGMA index_info({quoted(index)})")}
            if unique and not partial and parts <= set(columns):
                return True
        return False

    # --- whole joins --------------------------------------------------------------------------------------------------

    def number(self, table: str, alias: str) -> exp.Expr | None:
        """What SQLite calls its row ids."""
        from sqlglot import exp

        name = self._row_id(table)
        return None if name is None else exp.column(name, table=alias, quoted=True)

    def _row_id(self, table: str) -> str | None:
        with _named_errors():
            return rowid_name(self._connection, table)

    def join_type(self, how: str, *, is_tested: bool) -> str:
        """Tables are read in the written order, until there are enough rows; with a test, SQLite chooses the order."""
        return "cross" if how == "inner" and not is_tested else super().join_type(how, is_tested=is_tested)

    def as_key(self, column: exp.Expr) -> exp.Expr:
        """By its bytes, whatever the table declares."""
        from sqlglot import exp

        return exp.Collate(this=column, expression=exp.Var(this="BINARY"))

    def rows(self, statement: Statement) -> pd.DataFrame:
        """See :func:`~tagframe.engines.cells.typed_series` for their dtypes."""
        found = self._fetch(statement.query, statement.values)
        return statement.frame(lambda names: typed_frame(found, names), len(found))

    def numbers(self, query: str, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
        with _named_errors():
            cursor = self._connection.execute(query, values or {})
            return dict(zip([column[0] for column in cursor.description], cursor.fetchone(), strict=True))

    # --- rows of single tables ----------------------------------------------------------------------------------------

    def order(self, table: str, limit: int | None = None) -> str:
        name = self._row_id(table)
        return "" if name is None else f"t.{name}"

    def is_odd(self, text: str) -> str:
        """By a pattern."""
        return f"{text} GLOB '*[^ -~]*'"

    def is_dated(self, text: str) -> str:
        """By a pattern for each sign."""
        either = " OR ".join(f"ltrim({text}) GLOB '{'[0-9]' * 4}{sign}*'" for sign in ("-", "/"))
        return f"({either})"

    def values(self, sql: str, table: str) -> list[Any]:
        return [value for (value,) in self._fetch(sql)]

    def from_item(self, table: str) -> str:
        return quoted(table)

    def compared(self, table: str, column: str) -> str:
        """By its bytes, whatever the table declares."""
        return f"t.{quoted(column)} COLLATE BINARY"

    def one_of(self, table: str, column: str, keys: pd.Index) -> str:
        name = f"k{len(self._sent)}"
        self._sent[name] = json.dumps(keys.tolist())
        return f"{self.compared(table, column)} IN (SELECT value FROM json_each(:{name}))"

    # --- SQLite's own -------------------------------------------------------------------------------------------------

    def _numbered_by(self, table: str) -> str | None:
        """The column that is the row id (INTEGER PRIMARY KEY), which can only hold integers."""
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
        sent, self._sent = self._sent, {}
        with _named_errors():
            return self._connection.execute(sql, {**(values or {}), **sent}).fetchall()


@contextmanager
def _named_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise UnreadableTable(f"SQLite cannot answer: {error}") from error


def _read_as(test: CellTest, kind: Kind) -> CellTest:
    """The test of cells of one kind, among which the other values have no meaning."""
    return replace(test, values=tuple(value for value in test.values if is_read(value, kind)))
