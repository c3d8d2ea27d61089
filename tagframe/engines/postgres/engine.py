"""The tables of a PostgreSQL database, read in place."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from sqlglot import exp

from tagframe.engines.base import Stamp, TableShape, TableStatistics, UntrustedStatement, quoted
from tagframe.engines.cells import Kind
from tagframe.engines.postgres import POSTGRES, pg_catalog
from tagframe.engines.postgres.connection import Reading, Server, Session, looking, reading
from tagframe.engines.postgres.statement import run_statement
from tagframe.engines.pushdown import SAMPLED, Cells, SampledValues, SQLEngine, Statement, column_gone, table_gone
from tagframe.engines.sql_text import table_key
from tagframe.errors import SourceNotFound, UnreadableTable, did_you_mean

_DEFINITIONS = """
SELECT n.nspname::text AS schema, c.relname::text AS name, '' AS column_name, pg_get_viewdef(c.oid) AS definition
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('v', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
UNION ALL
SELECT n.nspname::text, c.relname::text, a.attname::text, pg_get_expr(d.adbin, d.adrelid)
FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attgenerated <> '' AND NOT a.attisdropped
"""


@dataclass(frozen=True)
class PostgresEngine(SQLEngine):
    """Tables, views, materialised views and partitioned tables of some schemas of a database.

    Rows are numbered by a primary key that is one integer column; other tables can only be read whole. A table counts
    as changed if the server's counters of rows written, the file that it is stored in, its definition or the time of
    its last ANALYZE differ. This misses what was written in the last second, or not yet counted; rows under a view or a
    foreign table; writes while ``track_counts`` is off. The server resets them after a crash, which counts as a change.

    Attributes:
        server: which, and how to reach it.
        schemas: whose tables are read; None for all that may be read.
    """

    server: Server
    schemas: tuple[str, ...] | None = None
    kind: str = "postgres"
    path: None = field(default=None, init=False)
    joins = "all"
    default_schema = "public"
    dialect = POSTGRES

    @property
    def identity(self) -> str:
        """The server's address, without password."""
        return self.server.identity

    def look(self) -> list[pg_catalog.ServerTable]:
        """All that may be read.

        Raises:
            ServerGone: it cannot be reached.
            SourceNotFound: a schema that was asked for is not there.
        """
        with looking(self.server) as session:
            tables, there = pg_catalog.contents_of(session, self.schemas)
        for name in self.schemas or ():
            if name not in there:
                raise SourceNotFound(f"no schema {name!r} in {self.identity}: {did_you_mean(name, there)}")
        return tables

    def shapes(self) -> list[TableShape]:
        """The tables by schema and name."""
        return [table.shape for table in self.look()]

    def closed(self) -> list[UnreadableTable]:
        """Schemas, and tables and columns of the others, that the user who connects may not read, or should not."""
        with looking(self.server) as session:
            return [
                UnreadableTable(f"{self.identity}: {problem}")
                for problem in pg_catalog.closed_to(session, self.schemas)
            ]

    def statistics(self, shapes: Sequence[TableShape]) -> Iterator[TableStatistics | UnreadableTable]:
        """The server's statistics, if they are fresh; else a sample."""
        known = {table.key: table for table in self.look()}
        with reading(self.server, pg_catalog.SECONDS) as reads:
            yield from pg_catalog.statistics_of(reads, [known[shape.name] for shape in shapes])

    def reading(self, table: str) -> AbstractContextManager[PostgresPushdown]:
        """A connection, and the table as it is now."""
        return self._of_tables([table], snapshot=False)

    def definitions(self) -> dict[tuple[str, str], str]:
        """Of views, materialised ones too, and of generated columns."""
        with looking(self.server) as session:
            rows = session.rows(_DEFINITIONS, "the definitions of views")
        return {(table_key(row["schema"], row["name"]), row["column_name"]): row["definition"] or "" for row in rows}

    def fingerprint(self, known: Stamp | None = None) -> Stamp:
        """The state of the system catalogs and of the counters of all tables."""
        with looking(self.server) as session:
            return Stamp(0, 0, pg_catalog.state_of(session, self.schemas))

    def pushdown(self, tables: Sequence[str]) -> AbstractContextManager[PostgresPushdown]:
        """All statements see one state of the tables."""
        return self._of_tables(tables, snapshot=True)

    @contextmanager
    def _of_tables(self, tables: Sequence[str], *, snapshot: bool) -> Iterator[PostgresPushdown]:
        with reading(self.server, snapshot=snapshot) as reads:
            yield PostgresPushdown(self.identity, reads, self._now(reads, tables))

    def execute(self, statement: UntrustedStatement) -> pd.DataFrame:
        """In a transaction of its own that only reads; ``relations`` go along as values."""
        with looking(self.server, statement.seconds_left) as session:
            now = self._now(session, {one.table for one in statement.tables.values()})
            schemas = [row["name"] for row in session.rows("SELECT nspname::text AS name FROM pg_namespace")]
            tables = {
                name: (now[one.table], [c.name for c in now[one.table].columns if c.name in one.columns])
                for name, one in statement.tables.items()
            }
            return run_statement(statement, session=session, tables=tables, schemas=schemas)

    def _now(self, session: Session, tables: Collection[str]) -> dict[str, pg_catalog.ServerTable]:
        known = pg_catalog.tables_now(session, tables)
        for table in tables:
            if table not in known:
                raise table_gone(table, self.identity)
        return known


def postgres_engine(url: str, schemas: Sequence[str] | None) -> PostgresEngine:
    """The engine of a URL; raises as :meth:`~tagframe.engines.postgres.connection.Server.of`."""
    return PostgresEngine(Server.of(url), None if schemas is None else tuple(schemas))


# --- merges -----------------------------------------------------------------------------------------------------------

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(pg_catalog.INTEGERS, "integer"), **dict.fromkeys(pg_catalog.TEXTS, "text"),
    "numeric": "decimal", "float8": "real", "float4": "real32", "bool": "boolean", "date": "date",
    "timestamp": "moment", "timestamptz": "instant",
}  # fmt: skip
_COMPARED = {"date": "date", "timestamp": "moment", "timestamptz": "zoned moment", "uuid": "uuid", "bool": "boolean"}
_MADE = {"integer": "int8", "real": "float8"}
_MAX_FEW_ROWS = 1_000
_PADDED = ("bpchar", "name")
"""Texts of types that compare differently from text."""


class PostgresPushdown(SampledValues):
    """In one read-only transaction. Keys are sent as an array, because nothing may be written there.

    Args:
        identity: of the server.
        reads: a connection.
        tables: by what the engine calls them, as they are now.
    """

    kind = dialect = "postgres"
    as_in_memory = False
    sorts_texts = False
    nan_kinds = ("real", "real32", "decimal")
    stored = "ctid"

    def __init__(self, identity: str, reads: Reading, tables: dict[str, pg_catalog.ServerTable]) -> None:
        self._identity, self._reads, self._tables = identity, reads, tables

    def _column(self, table: str, column: str) -> pg_catalog.ServerColumn:
        """A column of a table as it is now; raises ColumnNotFound where it no longer has that."""
        known = self._tables[table]
        called = f"{known.key!r} of {self._identity}"
        if not known.columns:
            raise UnreadableTable(
                f"{called} has no column that its user may read any more: grant SELECT on it again, or call "
                "tagframe.open_corpus again, which leaves it out"
            )
        if (here := known.column(column)) is None:
            raise column_gone(called, column, known.shape.columns, ", or its user may not read it")
        return here

    def cells(self, table: str, column: str) -> Cells:
        """By the column's type.

        Floats are no keys: NaN is equal to itself in PostgreSQL. Neither are texts of a collation that takes unlike
        ones for equal. Of a padded text what travels is compared.
        """
        known = self._column(table, column)
        if known.base in pg_catalog.INTEGERS or pg_catalog.is_whole(known):
            return Cells("integer", "integer")
        if known.base in pg_catalog.TEXTS:
            return Cells("text", "text", "TEXT" * (known.base in _PADDED)) if known.exact else Cells("", "")
        return Cells(_COMPARED.get(known.base, ""), _KINDS.get(known.base, ""))

    def names(self, table: str) -> list[str]:
        return [column.name for column in self._tables[table].columns]

    def number(self, table: str) -> str | None:
        """Its key of one integer, or where its rows are stored, the usual reading order."""
        known = self._tables[table]
        if known.number is not None:
            return known.number.name
        return self.stored if known.kind in ("r", "m") else None

    def unique(self, table: str) -> Sequence[Sequence[str]]:
        """By a constraint or an index."""
        return self._tables[table].shape.unique

    def among(self, column: exp.Expr, cells: Cells, keys: pd.Index, values: dict[str, Any]) -> exp.Expr:
        """An array as a text, which the server hashes."""
        if cells.key == "integer":
            type, sent = "BIGINT[]", ",".join(map(str, keys.to_numpy(dtype=np.int64).tolist()))
        else:
            type, sent = "TEXT[]", ",".join(f'"{_escaped(key)}"' for key in keys if _may_be_there(key))
        array = exp.cast(exp.Literal.string(f"{{{sent}}}"), type, dialect="postgres")
        return exp.EQ(this=column, expression=exp.Any(this=exp.paren(array)))

    def rows(self, statement: Statement) -> pd.DataFrame:
        """Inside a query that gives its columns the types that are sent."""
        columns = self._server_columns(statement)
        start = f"FROM ({statement.query}) AS t"
        if statement.counts:  # in whatever order
            with self._workers():
                return self._fetched(columns, start, statement.what, few=True)
        few = statement.limit is not None and statement.limit <= _MAX_FEW_ROWS
        return self._fetched(columns, start, statement.what, few=few)

    def _server_columns(self, statement: Statement) -> list[pg_catalog.ServerColumn]:
        return [
            replace(self._column(table, column), name=name)
            if table
            else pg_catalog.ServerColumn(name, _MADE[column], None, exact=True, filled=False)
            for table, column, name in statement.columns
        ]

    def _fetched(
        self, columns: Sequence[pg_catalog.ServerColumn], rest: str, what: str, *, few: bool = False
    ) -> pd.DataFrame:
        """The rows of a query, with the dtypes of its columns.

        Args:
            columns: of the server, that are selected.
            rest: the query from FROM on.
            what: what is read, for messages.
            few: whether few rows come.
        """
        as_text: set[int] = set()
        while True:
            rows = self._reads.fetch(f"SELECT {_selected(columns, as_text)} {rest}", what, few=few)
            if not columns:
                return pd.DataFrame(index=pd.RangeIndex(rows.num_rows))
            odd = set(pg_catalog.out_of_calendar(rows)) - as_text
            if not odd:
                return pg_catalog.frame_of(rows, columns)
            as_text |= odd

    @contextmanager
    def _workers(self) -> Iterator[None]:
        """The server's workers may share the rows of a statement."""
        self._reads.run("SET LOCAL max_parallel_workers_per_gather TO DEFAULT")
        yield
        self._reads.run("SET LOCAL max_parallel_workers_per_gather = 0")

    # --- values of columns --------------------------------------------------------------------------------------------

    def stop_after(self, seconds: float) -> None:
        self._reads.limit(seconds)

    def sample(self, table: str) -> tuple[str, str]:
        """Some of its pages; of a view, which has none, the first rows."""
        known = self._tables[table]
        if known.kind not in ("r", "m"):
            return "", f" LIMIT {SAMPLED}"
        # Of a table that was never analysed the size is known; rows of a hundred bytes are a guess.
        share = SAMPLED / max(1.0, known.size / 100 if known.rows is None else known.rows)
        return (f" TABLESAMPLE SYSTEM ({100 * share:.6f}) REPEATABLE (1)" if share < 1 else ""), ""

    def from_item(self, table: str) -> str:
        return self._tables[table].in_sql


def _selected(columns: Sequence[pg_catalog.ServerColumn], as_text: Collection[int] = ()) -> str:
    """The SELECT list for :meth:`PostgresPushdown._fetched`."""
    parts = []
    for number, column in enumerate(columns):
        travels = pg_catalog.travels_as(column, '"t".', as_text=number in as_text and column.base in pg_catalog.MOMENTS)
        name = quoted(column.name)
        parts.append(travels if travels.endswith(f".{name}") else f"{travels} AS {name}")
    return ", ".join(parts) or "NULL"


def _may_be_there(key: str) -> bool:
    return "\x00" not in key and not any("\ud800" <= sign <= "\udfff" for sign in key)


def _escaped(key: str) -> str:
    return key.replace("\\", "\\\\").replace('"', '\\"')
