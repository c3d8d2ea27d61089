"""Statements that nobody trusts, in DuckDB: over the files of the named tables, and nothing else.

A statement runs in a database of its own, which has a view for each table, without hidden columns. Three things hold
it, none of which trusts the others: the guard's allow-list over what sqlglot parses; an allow-list over what DuckDB's
own parser makes of it, which is here (one SELECT, the named tables, no table function, known functions only); and the
database's configuration, locked, which reaches no file but those of the tables. It can write nothing: what is no SELECT
is refused before it runs. It runs in this process, see :mod:`tagframe.engines.duckdb.connection`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe.engines.base import Dialect, SQLLimits, quoted
from tagframe.engines.dtypes import typed_series
from tagframe.engines.duckdb.connection import Lake, Opened, named_errors
from tagframe.engines.files import from_arrow
from tagframe.engines.sqlite.statement import unique_names
from tagframe.errors import SQLFailed, UnreadableTable, UnsafeSQL, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

# Functions that compute from their arguments alone, by DuckDB's names for them.
_FUNCTIONS = frozenset(
    "abs acos add age any_value approx_count_distinct approx_quantile arg_max arg_min array_agg array_length asin "
    "atan atan2 avg bit_and bit_or bool_and bool_or cbrt ceil ceiling century chr coalesce concat concat_ws contains "
    "corr cos cot count count_if count_star covar_pop covar_samp cume_dist current_date current_time "
    "current_timestamp date date_add date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day "
    "dayname dayofmonth dayofweek dayofyear decade degrees dense_rank divide ends_with epoch epoch_ms era even exp "
    "extract factorial favg first first_value floor format fsum gcd geomean greatest group_concat hour if ifnull in "
    "instr isfinite isinf isnan isodow isoyear json_array_length json_extract json_extract_string json_type "
    "json_valid kurtosis lag last last_day last_value lcase lcm lead least left len length levenshtein like_escape "
    "list list_aggregate list_contains list_extract ln localtime localtimestamp log log10 log2 lower lpad ltrim mad "
    "make_date make_time make_timestamp max max_by mean median millennium min min_by minute mod mode month monthname "
    "multiply not_ilike_escape not_like_escape now nth_value ntile nullif percent_rank pi position pow power prefix "
    "product quantile quantile_cont quantile_disc quarter radians rank regexp_extract regexp_extract_all "
    "regexp_full_match regexp_matches regexp_replace regexp_split_to_array replace reverse right round row row_number "
    "rpad rtrim second sign sin skewness split_part sqrt starts_with stddev stddev_pop stddev_samp strftime "
    "string_agg string_split strip_accents strlen strpos strptime struct_extract struct_pack substr substring "
    "subtract suffix sum tan time_bucket to_days to_hours to_minutes to_months to_seconds to_timestamp to_years today "
    "trim trunc try_strptime typeof ucase unicode upper var_pop var_samp variance week weekday weekofyear year "
    "yearweek".split()
)
_OPERATORS = frozenset(
    ["+", "-", "*", "/", "//", "%", "^", "**", "||", "~~", "!~~", "~~*", "!~~*", "~~~", "~", "!~", "&", "|", "<<", ">>",
     "->", "->>", "list_value", "array_extract", "^@", "@", "!"]
)  # fmt: skip


def _fold(name: str) -> str:
    return name.lower()


DUCKDB = Dialect("duckdb", _FUNCTIONS, _fold)
"""How DuckDB speaks."""

_READING = "reading the stream registered"
"""How DuckDB says that what gives it rows of a Delta or Iceberg table has failed."""
_RESULT_SHARE = 4
_ROWS_AT_ONCE = 2_048


def run_statement(
    sql: str,
    *,
    tables: Mapping[str, tuple[Opened, tuple[str, ...]]],
    relations: Mapping[str, pa.Table],
    limits: SQLLimits,
    explain: bool = False,
) -> pd.DataFrame:
    """The rows of one SELECT; see :meth:`tagframe.engines.base.Engine.execute`.

    Args:
        sql: in DuckDB's words.
        tables: name in the statement → the table, and the columns of it that are not to be seen.
        relations: further tables, by name.
        limits: rows, seconds, and megabytes for DuckDB's buffers.
        explain: compile it only.
    """
    import duckdb

    shown = f"{sql[:200]!r}"
    opened = [one for one, _ in tables.values()]
    seen = [column.name for one, hidden in tables.values() for column in one.columns if column.name not in hidden]
    with named_errors(*(one.table for one in opened)):
        lake = Lake([one.table for one in opened], memory=f"{limits.memory}MB", spills=False)
        for name, (one, hidden) in tables.items():
            source = lake.opened(one.table.name).source
            kept = ", ".join(quoted(column.name) for column in one.columns if column.name not in hidden)
            lake.run(f"CREATE VIEW {quoted(name)} AS SELECT {kept or 'NULL AS nothing'} FROM {source}")
    for name, relation in relations.items():
        lake.register(name, relation)
    _check(lake, sql, {*map(_fold, tables), *map(_fold, relations)})
    cursor = lake.cursor()
    expired = threading.Event()

    def stop() -> None:
        expired.set()
        cursor.interrupt()

    timer = threading.Timer(limits.seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        if explain:
            return _empty(cursor, sql)
        return _rows(cursor, sql, limits)
    except duckdb.InterruptException:
        raise SQLFailed(f"the SQL was stopped after {limits.seconds:g} seconds: {shown}") from None
    except duckdb.OutOfMemoryException:
        raise SQLFailed(f"the SQL needs more than SQLLimits(memory={limits.memory}) megabytes: {shown}") from None
    except duckdb.PermissionException as error:
        raise UnsafeSQL(f"DuckDB refused the SQL: {_said(error)}: {shown}") from error
    except duckdb.IOException as error:
        raise UnreadableTable(
            f"the SQL cannot be answered: {_said(error)}; tagframe.open_corpus looks again"
        ) from error
    except duckdb.Error as error:
        if expired.is_set():
            raise SQLFailed(f"the SQL was stopped after {limits.seconds:g} seconds: {shown}") from None
        if _READING in str(error):
            raise UnreadableTable(
                f"the SQL cannot be answered: {_said(error)}; a file may be gone or damaged"
            ) from error
        raise SQLFailed(f"DuckDB could not run the SQL: {_said(error, seen)}: {shown}") from error
    finally:
        timer.cancel()
        cursor.close()
        lake.close()


def _said(error: Exception, columns: Sequence[str] = ()) -> str:
    """What DuckDB says, without the statement again."""
    first = str(error).splitlines()[0]
    if 'Referenced column "' in first:
        name = first.partition('Referenced column "')[2].partition('"')[0]
        return f"no such column: {name} in {did_you_mean(name, columns)}"
    return first


def _check(lake: Lake, sql: str, names: set[str]) -> None:
    """Refuse what DuckDB's own parser does not take for one SELECT over these tables, of known functions."""
    import duckdb

    cursor = lake.cursor()
    try:
        statements = cursor.extract_statements(sql)
    except duckdb.Error as error:
        raise SQLFailed(f"DuckDB could not read the SQL: {_said(error)}: {sql[:200]!r}") from error
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise UnsafeSQL(f"DuckDB refused the SQL: it is not one SELECT: {sql[:200]!r}")
    (text,) = cursor.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()[0]
    tree = json.loads(text)
    if tree.get("error"):
        raise UnsafeSQL(f"DuckDB refused the SQL: {tree.get('error_message', 'it cannot be parsed')}: {sql[:200]!r}")
    for node, known in _nodes(tree, frozenset(names)):
        kind, name = node.get("type"), str(node.get("function_name", ""))
        if kind in ("TABLE_FUNCTION", "SHOW_REF", "COLUMN_DATA", "DELIM_GET"):
            raise UnsafeSQL(f"DuckDB refused the SQL: a table-valued function may not run: {sql[:200]!r}")
        if kind == "BASE_TABLE" and (
            node.get("schema_name") or node.get("catalog_name") or _fold(str(node.get("table_name"))) not in known
        ):
            raise UnsafeSQL(f"DuckDB refused the SQL: no table {node.get('table_name')!r}: {sql[:200]!r}")
        if name and (node.get("schema") or node.get("catalog") or _fold(name) not in _FUNCTIONS | _OPERATORS):
            raise UnsafeSQL(f"DuckDB refused the SQL: the function {name!r} may not run: {sql[:200]!r}")


def _entries(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The common table expressions of a node."""
    found = node.get("cte_map")
    return list(found.get("map", [])) if isinstance(found, Mapping) else []


def _nodes(tree: Any, names: frozenset[str]) -> Iterator[tuple[Mapping[str, Any], frozenset[str]]]:
    """Each node, with the names of tables that count where it is.

    An entry of a WITH counts in the entries after it and in the query that the WITH stands before; in itself only where
    DuckDB takes it for recursive, and there only after the UNION. Elsewhere its name would be looked for among files.
    """
    waiting = [(tree, names)]
    while waiting:
        one, known = waiting.pop()
        if isinstance(one, Mapping):
            yield one, known
            for entry in _entries(one):
                waiting.append((entry, known))
                known |= {_fold(str(entry["key"]))}
            for place, part in one.items():
                if place == "right" and one.get("type") == "RECURSIVE_CTE_NODE":
                    waiting.append((part, known | {_fold(str(one["cte_name"]))}))
                elif place != "cte_map":
                    waiting.append((part, known))
        elif isinstance(one, list):
            waiting += [(part, known) for part in one]


def _empty(cursor: Any, sql: str) -> pd.DataFrame:
    described = cursor.execute(f"DESCRIBE {sql}").fetchall()
    return pd.DataFrame({name: typed_series(()) for name in unique_names([name for name, *_ in described])})


def _rows(cursor: Any, sql: str, limits: SQLLimits) -> pd.DataFrame:
    import pyarrow as pa

    relation = cursor.sql(sql)
    reader = relation.to_arrow_reader(_ROWS_AT_ONCE)
    batches: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in reader:
        rows, size = rows + batch.num_rows, size + batch.nbytes
        batches.append(batch)
        if rows > limits.rows:
            raise SQLFailed(
                f"the SQL gives more than {limits.rows:,} rows; narrow it, or raise SQLLimits(rows=…): {sql[:200]!r}"
            )
        if size > limits.memory * 2**20 // _RESULT_SHARE:
            raise SQLFailed(
                f"the SQL passes SQLLimits(memory={limits.memory}) megabytes: the rows take more than "
                f"{limits.memory // _RESULT_SHARE} MB: {sql[:200]!r}"
            )
    table = pa.Table.from_batches(batches, reader.schema)
    columns = [_plain(column) for column in table.columns]
    names = unique_names(table.column_names)
    # Arrow tables may have a name twice, frames of ours not.
    return from_arrow(pa.Table.from_arrays(columns, names=names))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Sums of integers are integers again, where 64 bits hold them; other decimals are floats."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    if not pa.types.is_decimal(column.type):
        return column
    if column.type.scale == 0:
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid:
            return column.cast(pa.float64())
    return column
