"""DuckDB's own database files: each is a database, and its tables are read whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tagframe.engines.base import CHUNK_ROWS, Chunk, ForeignKey, Stamp, TableShape, file_stamp, frame_chunk
from tagframe.engines.duckdb.tables import has_duckdb
from tagframe.engines.files import from_arrow
from tagframe.engines.sql_text import quoted
from tagframe.engines.sqlite.statement import RowsOnly
from tagframe.errors import TagframeError, UnreadableTable

_MAIN = "main"


@dataclass(frozen=True)
class DuckDBFileEngine(RowsOnly):
    """A database file of DuckDB. Tables of other schemas than ``main`` are called ``schema.table``.

    Views are not read: they may read any file, and show cells of hidden columns.
    """

    path: Path
    kind: str = "duckdb file"
    is_database = True

    def fingerprint(self, known: Stamp | None = None) -> Stamp:
        """Size, time and content of the file, and of what was written and is not in it yet."""
        written = self.path.with_name(f"{self.path.name}.wal")
        return file_stamp([self.path, *([written] if written.exists() else [])], known)

    def closed(self) -> list[UnreadableTable]:
        """The views."""
        with self._connection() as connection:
            views = _rows(connection, "SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1")
        return [
            UnreadableTable(
                f"the view {view!r} of {self.path} is not read: make it a table (CREATE TABLE … AS), or open its rows "
                "as a frame"
            )
            for (view,) in views
        ]

    def shapes(self) -> list[TableShape]:
        """The tables with their keys, by name."""
        with self._connection() as connection:
            tables = _rows(
                connection,
                "SELECT schema_name, table_name, coalesce(comment, '') FROM duckdb_tables() "
                "WHERE NOT internal AND NOT temporary ORDER BY 1, 2",
            )
            columns: dict[tuple[str, str], list[tuple[str, str, str]]] = defaultdict(list)
            for schema, table, *column in _rows(
                connection,
                "SELECT schema_name, table_name, column_name, data_type, coalesce(comment, '') FROM duckdb_columns() "
                "WHERE NOT internal ORDER BY schema_name, table_name, column_index",
            ):
                columns[schema, table].append(tuple(column))
            keys: dict[tuple[str, str], dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
            for schema, table, kind, names, other, others in _rows(
                connection,
                "SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table, "
                "referenced_column_names FROM duckdb_constraints()",
            ):
                keys[schema, table][kind].append((tuple(names or ()), other, tuple(others or ())))
        found = []
        for schema, table, comment in tables:
            names, types, comments = zip(*columns[schema, table], strict=True)
            known = keys[schema, table]
            found.append(
                TableShape(
                    _name(schema, table),
                    names,
                    types,
                    primary_key=next((of for of, *_ in known["PRIMARY KEY"]), ()),
                    foreign_keys=tuple(
                        ForeignKey(of, _name(schema, other), others) for of, other, others in known["FOREIGN KEY"]
                    ),
                    unique=tuple(of for of, *_ in known["UNIQUE"]),
                    comment=comment,
                    column_comments=comments,
                )
            )
        return found

    def chunks(self, shape: TableShape) -> Iterator[Chunk]:
        """The rows of a table in pieces."""
        with self._connection() as connection:
            reader = connection.sql(self._query(connection, shape.name, shape.columns)).to_arrow_reader(CHUNK_ROWS)
            for batch in reader:
                yield frame_chunk(from_arrow(batch))

    def scan(self, table: str, columns: Sequence[str] | None = None, limit: int | None = None) -> pd.DataFrame:
        """The rows of a table."""
        with self._connection() as connection:
            tail = "" if limit is None else f" LIMIT {int(limit)}"
            found = from_arrow(connection.sql(self._query(connection, table, columns) + tail).to_arrow_table())
        return found if columns is None or len(columns) else found.iloc[:, :0]

    def _query(self, connection: Any, name: str, columns: Sequence[str] | None) -> str:
        shown = "*" if columns is None else ", ".join(map(quoted, columns)) or "NULL"
        tables = _rows(connection, "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal")
        schema, table = next((one for one in tables if _name(*one) == name), (_MAIN, name))
        return f"SELECT {shown} FROM {quoted(schema)}.{quoted(table)}"

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        if not has_duckdb():
            raise UnreadableTable(
                f"{self.path} is a database of DuckDB, and only DuckDB reads it: pip install 'tagframe[duckdb]'"
            )
        import duckdb

        from tagframe.engines.duckdb.connection import MEMORY
        from tagframe.engines.duckdb.worker import OPTIONS

        options = {**OPTIONS, "memory_limit": MEMORY, "temp_directory": "", "enable_external_access": False}
        try:
            connection = duckdb.connect(str(self.path), read_only=True, config=options)
            with connection:
                connection.execute("SET TimeZone = 'UTC'; SET lock_configuration = true")
                yield connection
        except TagframeError:
            raise
        except (duckdb.Error, OSError, ValueError, RuntimeError) as error:
            first = (str(error).splitlines() or [""])[0]
            raise UnreadableTable(f"{self.path} cannot be read as a database of DuckDB: {first}") from error


def _name(schema: str, table: str) -> str:
    return table if schema == _MAIN else f"{schema}.{table}"


def _rows(connection: Any, query: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = connection.execute(query).fetchall()
    return found
