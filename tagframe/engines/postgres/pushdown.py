"""The parts of a merge that a PostgreSQL server runs; see :mod:`tagframe.engines.pushdown`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tagframe.engines.cells import Kind
from tagframe.engines.postgres.columns import TEXTS, is_whole
from tagframe.engines.postgres.pg_catalog import INTEGERS, ServerColumn, ServerTable, literal
from tagframe.engines.pushdown import Cells, Statement, named_item
from tagframe.engines.sql_engine import SAMPLED, SampledValues

if TYPE_CHECKING:
    from sqlglot import exp

    from tagframe.engines.postgres.connection import Reading
    from tagframe.engines.postgres.engine import PostgresEngine

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(INTEGERS, "integer"), **dict.fromkeys(TEXTS, "text"), "numeric": "decimal", "float8": "real",
    "float4": "real32", "bool": "boolean", "date": "date", "timestamp": "moment", "timestamptz": "instant",
}  # fmt: skip
_COMPARED = {"date": "date", "timestamp": "moment", "timestamptz": "zoned moment", "uuid": "uuid", "bool": "boolean"}
_MADE = {"integer": ("bigint", "int8"), "real": ("double precision", "float8")}
_MAX_FEW_ROWS = 1_000
_PADDED = ("bpchar", "name")
"""Texts of types that compare differently from text."""


class PostgresPushdown(SampledValues):
    """In one read-only transaction. Keys are sent as an array, because nothing may be written there.

    Args:
        engine: of the tables.
        reads: a connection.
        tables: by what the engine calls them, as they are now.
    """

    kind = dialect = "postgres"
    as_in_memory = False
    sorts_texts = False
    nan_kinds = ("real", "real32", "decimal")
    stored = "ctid"

    def __init__(self, engine: PostgresEngine, reads: Reading, tables: dict[str, ServerTable]) -> None:
        self._engine, self._reads, self._tables = engine, reads, tables

    def _column(self, table: str, column: str) -> ServerColumn:
        known = self._tables[table]
        return known.column(column) or self._engine.columns_of(known, [column])[0]  # raises as a scan does

    def cells(self, table: str, column: str) -> Cells:
        """By the column's type.

        Floats are no keys: NaN is equal to itself in PostgreSQL. Neither are texts of a collation that takes unlike
        ones for equal. Of a padded text what travels is compared.
        """
        known = self._column(table, column)
        if known.base in INTEGERS or is_whole(known):
            return Cells("integer", "integer")
        if known.base in TEXTS:
            return Cells("text", "text", "TEXT" * (known.base in _PADDED)) if known.exact else Cells("", "")
        return Cells(_COMPARED.get(known.base, ""), _KINDS.get(known.base, ""))

    def item(self, table: str, alias: str, *, numbered: bool = False, first: int | None = None) -> exp.Expr:
        return named_item(self.from_item(table), alias)

    def number(self, table: str) -> str | None:
        """Its key of one integer, or where its rows are stored, the usual reading order."""
        known = self._tables[table]
        if known.number is not None:
            return known.number.name
        return self.stored if known.kind in ("r", "m") else None

    def lets_none_repeat(self, table: str, columns: Sequence[str]) -> bool:
        """By a constraint or an index."""
        return any(set(unique) <= set(columns) for unique in self._tables[table].unique)

    def among(self, column: exp.Expr, cells: Cells, keys: pd.Index, values: dict[str, Any]) -> exp.Expr:
        """An array as a text, which the server hashes."""
        from sqlglot import exp

        if cells.key == "integer":
            type, sent = "BIGINT[]", ",".join(map(str, keys.to_numpy(dtype=np.int64).tolist()))
        else:
            type, sent = "TEXT[]", ",".join(f'"{_escaped(key)}"' for key in keys if _may_be_there(key))
        array = exp.cast(exp.Literal.string(f"{{{sent}}}"), type, dialect="postgres")
        return exp.EQ(this=column, expression=exp.Any(this=exp.paren(array)))

    def rows(self, statement: Statement) -> pd.DataFrame:
        """Inside a query that gives its columns the types that are sent."""
        columns = self._selected(statement)
        start = f"FROM ({statement.query}) AS t"
        if statement.counts:  # in whatever order
            with self._workers():
                return self._engine.fetched(self._reads, columns, start, statement.what, few=True)
        few = statement.limit is not None and statement.limit <= _MAX_FEW_ROWS
        return self._engine.fetched(self._reads, columns, start, statement.what, few=few)

    def batches(self, statement: Statement, rows: int) -> Iterator[pd.DataFrame]:
        """By a cursor of the server; each step of it is a statement, which has its own time limit."""
        # All rows are read, so the plan that gives the first of them soonest is not the best one.
        self._reads.run("SET LOCAL cursor_tuple_fraction = 1")
        columns, rest = self._selected(statement), f"FROM ({statement.query}) AS t"
        yield from self._engine.stepped(self._reads, columns, rest, statement.what, rows)

    def _selected(self, statement: Statement) -> list[ServerColumn]:
        return [
            replace(self._column(table, column), name=name)
            if table
            else ServerColumn(name, *_MADE[column], None, exact=True, filled=False, comment="")
            for table, column, name in statement.columns
        ]

    @contextmanager
    def _workers(self) -> Iterator[None]:
        """The server's workers may share the rows of a statement."""
        self._reads.run("SET LOCAL max_parallel_workers_per_gather TO DEFAULT")
        yield
        self._reads.run("SET LOCAL max_parallel_workers_per_gather = 0")

    # --- values of columns --------------------------------------------------------------------------------------------

    def values(self, sql: str, table: str) -> list[Any]:
        return list(self._reads.fetch(sql, f"table {table!r}").column(0).to_pylist())

    def stop_after(self, seconds: float) -> None:
        self._reads.limit(seconds)

    def sample(self, table: str) -> tuple[str, str]:
        """Some of its pages; of a view, which has none, the first rows."""
        known = self._tables[table]
        if known.kind not in ("r", "m"):
            return "", f" LIMIT {SAMPLED}"
        oid = f"{literal(self.from_item(table))}::regclass"
        # Of a table that was never analysed the size is known; rows of a hundred bytes are a guess.
        rows = "CASE WHEN c.reltuples >= 0 THEN c.reltuples ELSE pg_relation_size(c.oid) / 100.0 END::float8"
        (known_rows,) = self.values(f"SELECT {rows} FROM pg_class AS c WHERE c.oid = {oid}", table)
        share = SAMPLED / max(1.0, known_rows)
        return (f" TABLESAMPLE SYSTEM ({100 * share:.6f}) REPEATABLE (1)" if share < 1 else ""), ""

    def from_item(self, table: str) -> str:
        return self._tables[table].in_sql


def _may_be_there(key: str) -> bool:
    return "\x00" not in key and not any("\ud800" <= sign <= "\udfff" for sign in key)


def _escaped(key: str) -> str:
    return key.replace("\\", "\\\\").replace('"', '\\"')
