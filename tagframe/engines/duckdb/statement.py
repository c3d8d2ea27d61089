"""Untrusted statements in DuckDB: over the files of the named tables, and nothing else.

A statement runs in its own process and its own database, which has a view for each table, with the columns that may be
read. Several independent barriers hold it: the guard's allow-list over what sqlglot parses; an allow-list over DuckDB's
own parse of it (one SELECT, the named tables by scope, no table function, known functions only); DuckDB's binder, which
opens no file by its name; the locked configuration of the database, which reaches only the files of the tables; the
process, whose memory is limited, and which is killed at its time limit. See :mod:`tagframe.engines.duckdb.worker`. Rows
of frames are sent in Parquet files.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
from sqlglot.dialects.duckdb import DuckDB

from tagframe.engines import worker_program as worker
from tagframe.engines.base import Dialect, UntrustedStatement
from tagframe.engines.cells import from_arrow, typed_series
from tagframe.engines.duckdb.connection import Opened, named_errors
from tagframe.engines.sent_rows import sent_rows
from tagframe.engines.sql_text import quoted, quoted_text
from tagframe.engines.sqlite.statement import check_names, storable, unique_names
from tagframe.engines.worker_pool import Kind, answered
from tagframe.errors import SQLFailed

# --- frames as DuckDB reads them ------------------------------------------------------------------------------------

_CELLS = ("string", "boolean", "integer", "floating", "mixed-integer-float", "bytes", "date", "datetime", "datetime64",
          "time", "decimal", "empty")  # fmt: skip
"""What a column of objects may hold to become a DuckDB column, in pandas' words."""


def readable(frame: pd.DataFrame) -> pa.Table:
    """A frame as DuckDB reads it.

    Raises:
        SQLFailed: a number of more than 38 digits, or two columns whose names differ in case alone.
    """
    columns = {str(name): cells for name, cells in frame.items()}
    # A table has one column at least.
    columns = columns or {"nothing": pd.Series(np.nan, index=frame.index)}
    check_names("columns", columns, str.lower)
    return pa.table({name: array_of(name, values) for name, values in columns.items()})


def array_of(name: str, values: pd.Series) -> pa.Array:
    """A column of a frame as Arrow has it."""
    cells = values
    if pd.api.types.is_float_dtype(values.dtype) and values.dtype not in (np.float32, np.float64):
        # Such columns can hold NaN beside nulls; for DuckDB, NaN is the greatest of all numbers.
        cells = pd.Series(values.to_numpy(dtype=np.float64, na_value=np.nan))
    try:
        array = pa.array(cells if _is_column(cells) else storable(cells), from_pandas=True)
    except OverflowError as error:
        raise _too_long(name) from error
    except (UnicodeEncodeError, pa.ArrowException):  # lone surrogates, or cells that only look alike
        array = pa.array(storable(values), from_pandas=True)
    return _comparable(name, array)


def _comparable(name: str, cells: pa.Array) -> pa.Array:
    """Nanoseconds with a zone as microseconds, where that loses nothing: DuckDB cannot compare nanoseconds with other
    moments. Decimals as those of 38 digits, the longest that it has.

    Raises:
        SQLFailed: a decimal is longer.
    """
    if pa.types.is_decimal256(cells.type):
        try:
            return cells.cast(pa.decimal128(38, min(cells.type.scale, 38)))
        except pa.ArrowException as error:
            raise _too_long(name) from error
    if pa.types.is_timestamp(cells.type) and cells.type.tz is not None and cells.type.unit == "ns":
        with suppress(pa.ArrowInvalid):
            return cells.cast(pa.timestamp("us", cells.type.tz))
    return cells


def _too_long(name: str) -> SQLFailed:
    return SQLFailed(
        f"column {name!r} holds an integer beyond 64 bits, or a decimal of more than 38 digits: give the frame with it "
        f"as text, frame.astype({{{name!r}: str}})"
    )


def _is_column(values: pd.Series) -> bool:
    """Whether the values are of one type that DuckDB has."""
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _is_column(pd.Series(dtype.categories))
    if pd.api.types.is_object_dtype(dtype):
        return pd.api.types.infer_dtype(values, skipna=True) in _CELLS
    odd = (pd.PeriodDtype, pd.IntervalDtype, pd.SparseDtype)
    return not isinstance(dtype, odd) and dtype.kind not in "cV"


def decoded(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts of few values as texts."""
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


# --- statements ------------------------------------------------------------------------------------------------------


class FaithfulDuckDB(DuckDB):
    """DuckDB's dialect, in which a function with plain arguments stays a name and its arguments."""

    class Parser(DuckDB.Parser):  # type: ignore[misc, valid-type]  # made by a metaclass
        """Knows only functions that have a grammar of their own."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: read for name, read in DuckDB.Parser.FUNCTION_PARSERS.items() if name not in ("MAX", "MIN")
        }


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


DUCKDB = Dialect(
    "duckdb",
    "DuckDB",
    FaithfulDuckDB,
    readable,
    _FUNCTIONS,
    str.lower,
    rules="What is compared has to be of one type: cast, as in name = id::VARCHAR. / gives a fraction, // a whole\n"
    "number; LIKE minds case, ILIKE does not.",
    divides_whole=False,
)
"""DuckDB's SQL."""

Table = tuple[Opened, tuple[str, ...]]
"""A table, and those of its columns that a statement may read."""


def run_statement(statement: UntrustedStatement, tables: Mapping[str, Table]) -> pd.DataFrame:
    """The rows of one SELECT; see :meth:`tagframe.engines.base.Engine.execute`.

    Args:
        statement: its relations are sent in files.
        tables: of files, by their names in the statement.
    """
    with ExitStack() as files:
        sent = {
            name: (files.enter_context(sent_rows({name: rows}, _write)), rows)
            for name, rows in statement.relations.items()
        }
        request = {
            "sql": statement.sql,
            "explain": statement.explain,
            "rows": statement.limits.rows,
            "tables": {
                **{name: (one.source, _allowed(one, only)) for name, (one, only) in tables.items()},
                **{name: (_source(path, rows), rows.column_names) for name, (path, rows) in sent.items()},
            },
            "paths": sorted(
                {path for one, _ in tables.values() for path in one.paths} | {str(path) for path, _ in sent.values()}
            ),
            "calls": _FUNCTIONS | _OPERATORS,
        }
        with named_errors(*(one.table for one, _ in tables.values())):
            (names, *rows), parts = answered(_worker(), request, statement, DUCKDB.title)
    if statement.explain:
        return pd.DataFrame({name: typed_series(()) for name in unique_names(names)})
    statement.check_rows(*rows)
    return _frame(parts)


@cache
def _worker() -> Kind:
    """The worker process, with the folders of the packages that it needs."""
    specs = (importlib.util.find_spec(name) for name in ("duckdb", "_duckdb", "pyarrow", "numpy"))
    origins = [Path(spec.origin).resolve() for spec in specs if spec is not None and spec.origin is not None]
    folders = [path.parent.parent if path.name.startswith("__init__.") else path.parent for path in origins]
    return Kind(("tagframe.engines.duckdb.worker",), tuple(dict.fromkeys(map(str, folders))), is_slow=True)


def _allowed(opened: Opened, only: Collection[str]) -> list[str]:
    return [column.name for column in opened.columns if column.name in only]


def _write(relations: Mapping[str, pa.Table], path: Path) -> None:
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    ((_, rows),) = relations.items()
    for at, field in enumerate(rows.schema):
        if pa.types.is_duration(field.type):  # which Parquet does not have
            spans = rows.column(at).cast(pa.duration("us"), safe=False).cast(pa.int64())
            rows = rows.set_column(at, field.name, spans)
    pq.write_table(rows, path, store_schema=False)


def _source(path: Path, rows: pa.Table) -> str:
    spans = [quoted(field.name) for field in rows.schema if pa.types.is_duration(field.type)]
    source = f"read_parquet({quoted_text(str(path))}, hive_partitioning=false)"
    replaced = ", ".join(f"to_microseconds({name}) AS {name}" for name in spans)
    return f"(SELECT * REPLACE ({replaced}) FROM {source})" if spans else source


def _frame(parts: Sequence[worker.Block]) -> pd.DataFrame:
    table = pa.concat_tables([pa.ipc.open_stream(part).read_all() for part in parts])
    table.validate(full=True)
    # Arrow tables may have a name twice, frames of ours not.
    names = unique_names(table.column_names)
    return from_arrow(pa.Table.from_arrays([_plain(column) for column in table.columns], names=names))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Sums of integers are integers again, where 64 bits hold them; other decimals stay."""
    column = decoded(column)
    if pa.types.is_decimal(column.type) and column.type.scale == 0:
        with suppress(pa.ArrowInvalid):
            return column.cast(pa.int64())
    return column
