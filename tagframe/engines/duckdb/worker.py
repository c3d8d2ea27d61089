"""Runs in a process of its own: an untrusted statement, in a DuckDB that can only read the named tables.

:mod:`tagframe.engines.worker_program` runs it, with DuckDB and Arrow and without pandas. These barriers hold a
statement here: its parse by DuckDB's own parser, in which each table is resolved by scope and each function is known;
DuckDB's binder, which finds only our views and common table expressions (so that no file is opened by its name); the
locked configuration, which reaches only the files of the tables; empty views in place of those that describe the
database; the memory of the process, and the rows and bytes of the result. The pool limits its time and kills the
process.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]

from tagframe.engines import worker_program as protocol
from tagframe.engines.sql_text import quoted, quoted_texts
from tagframe.engines.worker_program import Answer, Block, Caller, Request, bound

OPTIONS: dict[str, Any] = {
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "preserve_insertion_order": True,
    "threads": max(1, min(os.cpu_count() or 1, 8)),
}
"""Of every database of ours."""
# DuckDB 2.0 fails where it reads columns late of the first rows by file_row_number, which is filtered too.
SETTINGS = (
    "SET GLOBAL TimeZone = 'UTC'; SET GLOBAL parquet_metadata_cache = true; "
    "SET GLOBAL late_materialization_max_rows = 0"
)

_MEGABYTE = 2**20
_OWN = 96 * _MEGABYTE
"""Memory of the process in addition to that of a statement."""
_RESULT_SHARE = 4
_ROWS_AT_ONCE = 2_048
_NESTED_CELL = 64
"""Bytes that a value inside a list or a struct takes in Python, at least."""
_LONGEST_REASON = 300


class Worker:
    """Has a database for each statement; the next one is made while there is nothing to do."""

    def __init__(self, memory: int, caller: Caller) -> None:
        self._memory = memory
        self._caller = caller
        pa.set_cpu_count(1)
        pa.set_io_thread_count(1)
        self._columns: list[str] = []
        self.rest()
        self._at_rest = resident, data = taken()
        # Memory that was freed can be used again and still counts: the limit is one for all statements.
        self._most = data + max(memory * 3 // 4, memory + _OWN - resident) if data else None
        bound("RLIMIT_FSIZE", 0)

    @property
    def is_spent(self) -> bool:
        """Whether it still holds much memory of earlier statements."""
        spare = max(32 * _MEGABYTE, self._memory // 8)
        return any(now > then + spare for now, then in zip(taken(), self._at_rest, strict=True))

    def rest(self) -> None:
        """Make the next statement's database, with empty views in place of those that describe it."""
        options = {**OPTIONS, "memory_limit": f"{self._memory}B", "temp_directory": ""}
        self._connection = duckdb.connect(":memory:", config=options)
        self._run(SETTINGS)
        system = self._connection.execute("SELECT DISTINCT view_name FROM duckdb_views() WHERE internal").fetchall()
        self._run("; ".join(f"CREATE VIEW main.{quoted(name)} AS SELECT NULL AS nothing" for (name,) in system))

    def answer(self, request: Request) -> Answer:
        """Run a statement: its rows are sent as Arrow's streams, a part a batch."""
        try:
            bound("RLIMIT_DATA", self._most)
            return self._answer(request)
        except (duckdb.Error, pa.ArrowException, OSError, ValueError, RuntimeError) as error:
            return failure(error, self._columns)
        except MemoryError:
            return protocol.OUT_OF_MEMORY, ""
        finally:
            bound("RLIMIT_DATA", None)
            self._connection.close()

    def _answer(self, request: Request) -> Answer:
        self._run(f"SET allowed_paths = {quoted_texts(request['paths'])}")
        self._run("SET enable_external_access = false")
        self._run("SET lock_configuration = true")
        sql, names = request["sql"], frozenset(map(str.lower, request["tables"]))
        self._present(request["tables"], is_empty=True)
        if reason := refusal(self._connection, sql, names, request["calls"]):
            return protocol.REFUSED, reason
        self._present(request["tables"])
        if request["explain"]:
            described = self._connection.execute(f"DESCRIBE {sql}").fetchall()
            return protocol.ROWS, [name for name, *_ in described]
        return self._rows(sql, request["rows"])

    def _run(self, sql: str) -> None:
        self._connection.execute(sql)

    def _present(self, tables: Mapping[str, tuple[str, Sequence[str]]], *, is_empty: bool = False) -> None:
        """Make the tables, or empty ones, readable by these names, in these columns, and nothing else."""
        self._columns = list(dict.fromkeys(column for _, columns in tables.values() for column in columns))
        for name, (source, columns) in tables.items():
            selected = ", ".join(f"{'NULL AS ' * is_empty}{quoted(column)}" for column in columns) or "NULL AS nothing"
            rows = "" if is_empty else f" FROM {source}"
            self._run(f"CREATE OR REPLACE VIEW {quoted(name)} AS SELECT {selected}{rows}")

    def _rows(self, sql: str, most: int) -> Answer:
        reader = self._connection.sql(sql).to_arrow_reader(_ROWS_AT_ONCE)
        self._caller.send(stream_of(pa.RecordBatch.from_pylist([], schema=reader.schema)))
        rows = size = 0
        for batch in reader:
            rows, size = rows + batch.num_rows, size + batch.nbytes + sum(map(_nested, batch.columns))
            if rows > most:
                return protocol.ROWS, [], rows
            if size > self._memory // _RESULT_SHARE:
                return protocol.TOO_LARGE, f"the rows take more than {self._memory // _RESULT_SHARE // _MEGABYTE} MB"
            self._caller.send(stream_of(batch))
        return protocol.ROWS, [], rows


def _nested(array: pa.Array) -> int:
    """Bytes that the values inside lists and structs take in Python in addition to their own."""
    kind = array.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        inner = [array.flatten()]
    elif pa.types.is_map(kind):
        inner = [array.keys, array.items]
    elif pa.types.is_struct(kind):
        inner = array.flatten()
    elif pa.types.is_union(kind):
        inner = [array.field(number) for number in range(kind.num_fields)]
    else:
        return 0
    return sum(_NESTED_CELL * len(one) + _nested(one) for one in inner)


def taken() -> tuple[int, int]:
    """Bytes that the process has in memory, and those of its data; zeros if the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = list(map(int, file.read().split()))
    except OSError:
        return 0, 0
    size = os.sysconf("SC_PAGE_SIZE")
    return pages[1] * size, pages[5] * size


def stream_of(batch: pa.RecordBatch) -> Block:
    """A batch as a stream of Arrow's."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return memoryview(sink.getvalue())


def failure(error: Exception, columns: Sequence[str]) -> Answer:
    """What went wrong, in DuckDB's words, without the statement again; ``columns`` are those that it may read."""
    text = str(error)
    first = (text.splitlines() or [""])[0]
    reason = first if len(first) <= _LONGEST_REASON else f"{first[:_LONGEST_REASON]}…"
    if isinstance(error, duckdb.OutOfMemoryException) or "Out of Memory Error" in first or "bad_alloc" in first:
        return protocol.OUT_OF_MEMORY, ""
    if isinstance(error, duckdb.PermissionException) or "Permission Error" in first:
        return protocol.REFUSED, reason
    if isinstance(error, duckdb.IOException) or "IO Error" in first:
        return protocol.UNREADABLE, reason
    if 'Referenced column "' in first:
        return protocol.NO_COLUMN, first.partition('Referenced column "')[2].partition('"')[0], list(columns)
    return protocol.FAILED, reason


# --- what may run -----------------------------------------------------------------------------------------------------


def refusal(connection: Any, sql: str, tables: Set[str], functions: Set[str]) -> str:
    """Why a statement is not allowed; "" for one SELECT that uses only these tables and functions.

    Args:
        connection: to a database that has empty views in place of the tables.
        sql: the statement.
        tables, functions: names, in lower case.

    Raises:
        duckdb.Error: it cannot be read.
    """
    statements = connection.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        return "it is not one SELECT"
    (text,) = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()[0]
    tree = json.loads(text)
    if tree.get("error"):
        return str(tree.get("error_message", "it cannot be parsed"))
    if reason := next(_refused(tree, frozenset(tables), functions), ""):
        return reason
    # The binder would take any name that is neither in the statement nor here for the name of a file.
    unknown = sorted(connection.get_table_names(sql))
    return f"no table {unknown[0]!r}" if unknown else ""


def _refused(tree: Any, tables: frozenset[str], functions: Set[str]) -> Iterator[str]:
    """What is not allowed in a statement."""
    for node, known in _nodes(tree, tables):
        kind, name = node.get("type"), str(node.get("function_name", ""))
        is_qualified = bool(node.get("schema") or node.get("schema_name") or node.get("catalog_name"))
        is_qualified |= len((node.get("qualified_name") or {}).get("path", ())) > 1
        if kind in ("TABLE_FUNCTION", "SHOW_REF", "COLUMN_DATA", "DELIM_GET"):
            yield "a table-valued function may not run"
        if kind == "BASE_TABLE" and (is_qualified or str(node.get("table_name")).lower() not in known):
            yield f"no table {node.get('table_name')!r}"
        if name and (is_qualified or name.lower() not in functions):
            yield f"the function {name!r} may not run"


def _nodes(tree: Any, tables: frozenset[str]) -> Iterator[tuple[Mapping[str, Any], frozenset[str]]]:
    """Each node, with the names of tables that are visible there.

    An entry of a WITH is visible in the entries after it and in the query after the WITH; in itself only if DuckDB
    treats it as recursive, and then only after the UNION. Elsewhere DuckDB would look for its name among files.
    """
    waiting = [(tree, tables)]
    while waiting:
        one, known = waiting.pop()
        if isinstance(one, Mapping):
            yield one, known
            entries = one.get("cte_map")
            for entry in entries.get("map", []) if isinstance(entries, Mapping) else []:
                waiting.append((entry, known))
                known |= {str(entry["key"]).lower()}
            for key, part in one.items():
                if key == "right" and one.get("type") == "RECURSIVE_CTE_NODE":
                    waiting.append((part, known | {str(one["cte_name"]).lower()}))
                elif key != "cte_map":
                    waiting.append((part, known))
        elif isinstance(one, list):
            waiting += [(part, known) for part in one]
