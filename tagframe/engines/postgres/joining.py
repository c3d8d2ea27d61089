"""Joins that PostgreSQL runs: what merges have to know of its tables, and their statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe.engines.base import quoted
from tagframe.engines.postgres.pg_catalog import ServerColumn, ServerTable
from tagframe.engines.postgres.types import INTEGERS, TEXTS, is_whole

if TYPE_CHECKING:
    from tagframe.engines.postgres.connection import Reading
    from tagframe.engines.postgres.engine import PostgresEngine

_FEW_ROWS = 1_000
_COMPARED = {"date": "date", "timestamp": "moment", "timestamptz": "zoned moment", "uuid": "uuid", "bool": "boolean"}


class PostgresJoining:
    """Statements over some tables of a server, all in one transaction that only reads.

    Args:
        engine: of the tables.
        reads: a connection.
        tables: by what the engine calls them, as they are now.
    """

    def __init__(self, engine: PostgresEngine, reads: Reading, tables: dict[str, ServerTable]) -> None:
        self._engine, self._reads, self._tables = engine, reads, tables

    @property
    def kind(self) -> str:
        """Of the engine."""
        return self._engine.kind

    @property
    def dialect(self) -> str:
        """Of its SQL, as sqlglot calls it."""
        return self._engine.dialect.name

    def key_kind(self, table: str, column: str) -> str:
        """What the column holds; two of one kind are equal where SQL says so. "" where SQL and pandas may differ.

        Floats are not compared: NaN is equal to itself in PostgreSQL. Neither are texts of a collation that takes
        unlike ones for equal.
        """
        known = self._column(table, column)
        if known.base in INTEGERS or is_whole(known):
            return "integer"
        if known.base in TEXTS:
            return "text" if known.exact else ""
        return _COMPARED.get(known.base, "")

    def is_number(self, table: str, column: str) -> bool:
        """Whether the column holds numbers, of whatever type."""
        return self._column(table, column).base in INTEGERS | {"numeric", "float4", "float8"}

    def is_unique(self, table: str, columns: Sequence[str]) -> bool:
        """Whether no key repeats, nulls aside: by a constraint or an index, else by the rows."""
        known = self._tables[table]
        if any(set(unique) <= set(columns) for unique in known.unique):
            return True
        names = ", ".join(f"t.{quoted(column)}" for column in columns)
        filled = " AND ".join(f"t.{quoted(column)} IS NOT NULL" for column in columns)
        place = f"{quoted(known.schema)}.{quoted(known.name)}"
        query = f"SELECT 1 AS one FROM {place} AS t WHERE {filled} GROUP BY {names} HAVING count(*) > 1 LIMIT 1"
        return not self._reads.fetch(query, f"table {table!r}").num_rows

    def frame(
        self, sql: str, columns: Sequence[tuple[str, str, str]], what: str, most: int | None = None
    ) -> pd.DataFrame:
        """The rows of a statement.

        Args:
            sql: of ours; run as it stands, inside of what gives its columns the types that travel.
            columns: (table, column, name in the statement) of each column that it selects, in order.
            what: is read, for messages.
            most: rows that may come, where that is known.
        """
        shown = [replace(self._column(table, column), name=name) for table, column, name in columns]
        return self._engine.fetched(
            self._reads, shown, f"FROM ({sql}) AS t", what, few=most is not None and most <= _FEW_ROWS
        )

    def numbers(self, sql: str) -> dict[str, Any]:
        """The one row of a statement that counts, in whatever order: the server's workers may share its rows."""
        self._reads.run("SET LOCAL max_parallel_workers_per_gather TO DEFAULT")
        found = self._reads.rows(sql, "the counts")
        self._reads.run("SET LOCAL max_parallel_workers_per_gather = 0")
        return found[0]

    def _column(self, table: str, column: str) -> ServerColumn:
        # Raises as a scan does where the table has it no more.
        return self._engine.columns_of(self._tables[table], [column])[0]
