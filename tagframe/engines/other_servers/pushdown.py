"""The parts of a merge that a server behind SQLAlchemy runs: whole joins on integers, and in PostgreSQL on texts.

sqlglot writes statements in the server's dialect. What a server rejects runs in memory. So does everything in dialects
in which names of tables and columns differ from SQLAlchemy's (Oracle, Snowflake).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe.engines.base import quoted
from tagframe.engines.cell_tests import Kind
from tagframe.engines.other_servers.connection import ServerTable, frame_of
from tagframe.engines.pushdown import Pushdown, Refused, Statement

if TYPE_CHECKING:
    import sqlalchemy as sa
    from sqlglot import exp

SPOKEN = {"sqlite": "sqlite", "postgresql": "postgres", "mysql": "mysql", "mariadb": "mysql", "mssql": "tsql"}
"""By SQLAlchemy's name of a dialect: sqlglot's."""
_WITHOUT_OUTER = ("mysql",)
_INTEGER = re.compile(r"(TINY|SMALL|MEDIUM|BIG)?INT(EGER|2|4|8)?(\(\d+\))?")
_ISOLATED = "REPEATABLE READ"


def sqlglot_name(dialect: sa.Dialect) -> str | None:
    """What sqlglot calls a dialect in which joins are written; None where none are."""
    return None if dialect.requires_name_normalize else SPOKEN.get(dialect.name)


def pushdown_on(connection: sa.Connection, tables: Mapping[str, ServerTable]) -> OtherServerPushdown:
    """Statements on a connection, over one state of the tables if the server supports that."""
    levels = connection.dialect.get_isolation_level_values(connection.connection.dbapi_connection)  # type: ignore[arg-type]
    if _ISOLATED in levels:
        connection = connection.execution_options(isolation_level=_ISOLATED)
    return OtherServerPushdown(connection, tables)


class OtherServerPushdown(Pushdown):
    """Rows of tables with a key of one integer are sorted by that; others have no order."""

    kind = "sqlalchemy"
    takes_keys = False
    sorts_texts = False

    def __init__(self, connection: sa.Connection, tables: Mapping[str, ServerTable]) -> None:
        self._connection, self._tables = connection, tables
        self.dialect = sqlglot_name(connection.dialect) or ""
        self.joins_outer = self.dialect not in _WITHOUT_OUTER

    def key_kind(self, table: str, column: str) -> str:
        """By the declared type; in SQLite, which does not enforce that, also by the values in the rows."""
        known = self._tables[table]
        known.column(column)  # raises where the table has it no more
        declared = known.shape.declared_types[known.shape.columns.index(column)].upper()
        if _INTEGER.fullmatch(declared):
            return "integer" if self.dialect != "sqlite" or self._holds_integers(table, column) else ""
        is_text = declared.startswith(("VARCHAR", "TEXT")) and "COLLATE" not in declared
        return "text" if is_text and self.dialect == "postgres" else ""

    def _holds_integers(self, table: str, column: str) -> bool:
        odd = f"typeof(t.{quoted(column)}) NOT IN ('integer', 'null')"
        return not self.values(f"SELECT 1 AS k FROM {self.from_item(table)} AS t WHERE {odd} LIMIT 1", table)

    def cell_kind(self, table: str, column: str) -> Kind:
        """Of integers, and of texts that are compared by their characters."""
        kinds: dict[str, Kind] = {"integer": "integer", "text": "text"}
        return kinds.get(self.key_kind(table, column), "")

    def lets_none_repeat(self, table: str, columns: Sequence[str]) -> bool:
        """As it is declared."""
        shape = self._tables[table].shape
        return any(unique and {*unique} <= {*columns} for unique in (shape.primary_key, *shape.unique))

    def item(self, table: str, alias: str, *, numbered: bool = False, first: int | None = None) -> exp.Expr:
        from sqlglot import exp

        known = self._tables[table]
        found = exp.table_(known.shape.called, db=known.schema, quoted=True)
        return exp.alias_(found, exp.to_identifier(alias, quoted=True), table=True)

    def number(self, table: str, alias: str) -> exp.Expr | None:
        """Its key of one integer."""
        from sqlglot import exp

        key = self._tables[table].number
        return None if key is None else exp.column(key, table=alias, quoted=True)

    def rows(self, statement: Statement) -> pd.DataFrame:
        """With the dtypes that :meth:`OtherServerEngine.scan` gives."""
        found = self._run(statement.query).fetchall()
        return statement.frame(lambda names: frame_of(found, names), len(found))

    def numbers(self, query: str, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
        found = self._run(query)
        return dict(zip(found.keys(), found.one(), strict=True))

    def size(self, table: str) -> int:
        return int(self.values(f"SELECT count(*) AS n FROM {self.from_item(table)} AS t", table)[0])

    def values(self, sql: str, table: str) -> list[Any]:
        """As they are; the statement is written with the server's quotes."""
        import sqlglot

        (query,) = sqlglot.transpile(sql, read="postgres", write=self.dialect)
        return [value for (value,) in self._run(query)]

    def from_item(self, table: str) -> str:
        known = self._tables[table]
        return f"{f'{quoted(known.schema)}.' if known.schema else ''}{quoted(known.shape.called)}"

    def _run(self, query: str) -> sa.CursorResult[Any]:
        import sqlalchemy as sa

        try:
            return self._connection.exec_driver_sql(query, execution_options={"no_parameters": True})
        except sa.exc.DBAPIError as error:
            if error.connection_invalidated:
                raise
            raise Refused(f"{self._connection.dialect.name} does not take the statement") from None
