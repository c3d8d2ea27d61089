"""How PostgreSQL's types become columns of a frame, and what a server knows of columns without a pass over their rows.

Numbers, booleans, text, dates, moments and bytes are kept. A ``numeric`` of no fraction is an integer where 64 bits
hold it, any other one a column of exact ``decimal.Decimal``. What has no pandas type (arrays, ``jsonb``, ranges,
intervals, times, UUIDs, addresses, geometry, enumerations, composites) is given as the server's own text for it; the
column's declared type, such as ``jsonb``, says what it is. A column of dates or moments that holds an infinity, or a
day that Python's calendar does not have, is given as text too.

If ANALYZE has run and little was written since, the server's statistics are used: rows, the share of nulls, distinct
values, the most common ones and the bounds of its histogram. Otherwise a table of few rows is read, and a sample of a
larger one.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe.engines.base import ColumnStatistics, TableStatistics, quoted
from tagframe.engines.postgres.connection import TookTooLong
from tagframe.engines.postgres.pg_catalog import INTEGERS, ServerColumn, ServerTable, literal
from tagframe.engines.pushdown import column_of_sample
from tagframe.errors import UnreadableTable

if TYPE_CHECKING:
    import pyarrow as pa

    from tagframe.engines.postgres.connection import Reading


FLOATS = frozenset(("float4", "float8"))
TEXTS = frozenset(("text", "varchar", "bpchar", "name"))
MOMENTS = frozenset(("date", "timestamp", "timestamptz"))
_UNCHANGED = INTEGERS | FLOATS | MOMENTS | {"bool", "text", "varchar", "name", "bytea"}
_WHOLE_DIGITS = 18
"""Digits that any number of 64 bits has."""
_MOST_DIGITS = 38
"""Digits of Arrow's exact numbers."""
_FEW_ROWS = 10_000
_CALENDAR = {32: (-719162, 2932896), 64: (-(2**62), 2**63)}
"""By the bits of Arrow's type: the first and last value. For days since 1970, those of Python's calendar; for
microseconds, those that are not the server's infinities, which the driver gives as other values far outside."""


def travels_as(column: ServerColumn, alias: str = "", *, as_text: bool = False) -> str:
    """What is selected of a column."""
    name = f"{alias}{quoted(column.name)}"
    if as_text:
        return f"{name}::text"
    if column.base == "numeric" and is_whole(column):
        return f"{name}::int8"
    return name if column.base in _UNCHANGED else f"{name}::text"


def is_whole(column: ServerColumn) -> bool:
    """Whether a numeric has no fraction and fits 64 bits."""
    if column.base != "numeric" or column.modifier is None or column.modifier < 4:
        return False
    precision, scale = _digits(column.modifier)
    return scale == 0 and precision <= _WHOLE_DIGITS


def _digits(modifier: int) -> tuple[int, int]:
    """Precision and scale; a negative scale is one of more than a thousand."""
    return (modifier - 4) >> 16, (modifier - 4) & 0x7FF


def out_of_calendar(table: pa.Table) -> list[int]:
    """Which columns have dates and moments that Python cannot represent."""
    import pyarrow as pa
    import pyarrow.compute as pc

    positions = []
    for at, column in enumerate(table.columns):
        if pa.types.is_date32(column.type) or pa.types.is_timestamp(column.type):
            first, last = _CALENDAR[column.type.bit_width]
            low, high = (end.value for end in pc.min_max(column).values())
            if low is not None and not first <= low <= high <= last:
                positions.append(at)
    return positions


def frame_of(table: pa.Table, columns: Sequence[ServerColumn]) -> pd.DataFrame:
    """Rows as the driver brought them, as a frame.

    Args:
        table: its columns in the order of ``columns``.
        columns: what they are in the server.
    """
    numbers = list(map(str, range(len(columns))))  # pyarrow mixes up columns of one name
    for at, column in enumerate(columns):
        if (exact := _decimals(table.column(at), column)) is not None:
            table = table.set_column(at, numbers[at], exact)
    # Several times as fast as a column at a time. To wake threads takes longer than to make few rows.
    frame: pd.DataFrame = table.rename_columns(numbers).to_pandas(use_threads=table.num_rows > _FEW_ROWS)
    for at, column in enumerate(columns):
        if (special := _special(table.column(at), column)) is not None:
            frame.isetitem(at, special.array)
    frame.columns = pd.Index([column.name for column in columns])
    return frame


def _decimals(values: pa.ChunkedArray, column: ServerColumn) -> pa.ChunkedArray | None:
    """A ``numeric`` of some digits, of which all are declared, as exact numbers; None for any other column."""
    import pyarrow as pa

    if column.base != "numeric" or column.modifier is None or not pa.types.is_string(values.type):
        return None
    precision, scale = _digits(column.modifier)
    if not 0 <= scale <= precision <= _MOST_DIGITS:
        return None
    try:
        return values.cast(pa.decimal128(precision, scale))
    except pa.ArrowInvalid:  # NaN
        return None


def _special(values: pa.ChunkedArray, column: ServerColumn) -> pd.Series | None:
    """A column that needs another series than Arrow makes of it; None for the others."""
    import pyarrow as pa

    if values.null_count and values.null_count == len(values):
        return pd.Series([None] * len(values), dtype=object)
    if column.base == "numeric" and pa.types.is_string(values.type):
        return pd.Series([None if cell is None else Decimal(cell) for cell in values.to_pylist()], dtype=object)
    if not values.null_count:
        return None
    masked = {
        pa.int16(): pd.Int16Dtype(), pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
    }  # fmt: skip
    return values.to_pandas(types_mapper=masked.get) if values.type in masked else None


_READ: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(INTEGERS, int),
    **dict.fromkeys(FLOATS, float),
    "numeric": Decimal,
    "bool": lambda text: text in ("t", "true"),
    "date": dt.date.fromisoformat,
    "timestamptz": lambda text: f"{text}:00" if text[-3:-2] in "+-" else text,
    "bytea": lambda text: bytes.fromhex(text.removeprefix("\\x")),
}


def read_text(column: ServerColumn, text: str) -> Any:
    """The value of a text in the server's statistics."""
    try:
        return _READ.get(column.base, str)(text)
    except ValueError:  # an infinity, a year before the first
        return text


AT_ONCE = 500
"""Tables whose statistics are asked for together."""
SECONDS = 10.0
"""The time limit of a table's sample: a view has to be computed for it."""
_FEW_BYTES = 256 * 1024
"""Tables of at most this many bytes are read whole."""
_SAMPLE = 10_000
"""Rows of a sample, about."""
_PAGES, _MOST_OF_PAGES = 100, 50_000
"""Pages of a sample if rows are not known, and the rows that may be on them."""
_VALUES = 600_000
"""Values of the statistics that are read in total; for thousands of tables, a few of each column."""
_LEAST_VALUES = 12


def statistics_of(reads: Reading, tables: Sequence[ServerTable]) -> Iterator[TableStatistics | UnreadableTable]:
    """What the server knows about each."""
    values = max(_LEAST_VALUES, _VALUES // max(1, sum(len(table.columns) for table in tables)))
    for start in range(0, len(tables), AT_ONCE):
        some = tables[start : start + AT_ONCE]
        known = _stored(reads, [table for table in some if table.fresh], values)
        for table in some:
            if table.key in known and (statistics := _of_stored(table, known[table.key])) is not None:
                yield statistics
            elif table.kind in ("r", "m", "p") and table.size <= _FEW_BYTES:
                yield TableStatistics(int(table.rows or 0), None)
            else:
                try:
                    yield _of_sample(reads, table)
                except TookTooLong:
                    yield TableStatistics(None, ())
                except UnreadableTable as error:
                    yield error


def _stored(
    reads: Reading, tables: Sequence[ServerTable], values: int
) -> dict[str, dict[str, tuple[float, float, list[str], list[str], bool]]]:
    """The statistics that are stored, by table and column; tables without any are left out.

    Of a column: the share of nulls, ``n_distinct`` (below 0 a share of the rows), common values and bounds of the
    histogram, as many as may be read of each, and whether they are all.
    """
    if not tables:
        return {}
    by_schema: dict[str, list[str]] = defaultdict(list)
    for table in tables:
        by_schema[table.shape.database].append(table.shape.called)
    sought = " OR ".join(
        f"(schemaname = {literal(schema)} AND tablename IN ({', '.join(map(literal, names))}))"
        for schema, names in by_schema.items()
    )
    thinned = [
        f"CASE WHEN cardinality({name}) > {values} THEN ARRAY(SELECT {name}[1 + round(i * (cardinality({name}) - 1) / "
        f"{values - 1}.0)::int] FROM generate_series(0, {values - 1}) AS i) ELSE {name} END AS {name}"
        for name in ("common", "bounds")
    ]
    stored = f"""
SELECT schemaname::text AS s, tablename::text AS t, attname::text AS a, null_frac::float8 AS nulls,
    n_distinct::float8 AS n, coalesce(most_common_vals::text::text[], '{{}}') AS common,
    coalesce(histogram_bounds::text::text[], '{{}}') AS bounds, inherited
FROM pg_stats WHERE {sought}"""
    rows = reads.fetch(
        f"SELECT s, t, a, nulls, n, {', '.join(thinned)}, greatest(cardinality(common), cardinality(bounds)) "
        f"<= {values} AS whole FROM ({stored}) AS q ORDER BY inherited",  # of a partitioned table all parts win
        "the statistics",
    )
    keys = {(table.shape.database, table.shape.called): table.key for table in tables}
    known: dict[str, dict[str, tuple[float, float, list[str], list[str], bool]]] = {}
    for schema, name, column, *facts in zip(*(part.to_pylist() for part in rows.columns), strict=True):
        known.setdefault(keys[schema, name], {})[column] = (*facts,)
    return known


def _of_stored(
    table: ServerTable, known: Mapping[str, tuple[float, float, list[str], list[str], bool]]
) -> TableStatistics | None:
    """None if they say too little about a table that is small enough to be read."""
    rows = round(table.rows or 0)
    columns = []
    for column in table.columns:
        stored = known.get(column.name)
        if stored is None:  # a type that has no order, as json
            columns.append(ColumnStatistics(nulls=0 if column.filled else None))
            continue
        null_share, estimate, common_texts, bound_texts, complete = stored
        nulls = 0 if column.filled else round(null_share * rows)
        distinct = min(rows - nulls, round(estimate if estimate >= 0 else -estimate * rows))
        if (column.name,) in table.shape.unique:
            distinct = rows - nulls
        common, bounds = (
            [value for text in texts if text is not None and (value := read_text(column, text)) == value]  # NaN is not
            for texts in (common_texts, bound_texts)
        )
        values = list(dict.fromkeys([*common, *bounds]))
        if distinct and not values and table.size <= _FEW_BYTES:
            return None
        distinct = max(distinct, len(values)) if rows else 0
        is_whole = complete and bool(values) and distinct <= len(values)
        columns.append(
            ColumnStatistics(values, is_whole, nulls, distinct, *_ends([*common, *bounds[:1], *bounds[-1:]]))
        )
    return TableStatistics(rows, tuple(columns))


def _ends(known: Sequence[Any]) -> tuple[Any, Any]:
    """The histogram leaves out the most common values."""
    try:
        return (min(known), max(known)) if known else (None, None)
    except TypeError:
        return None, None


def _of_sample(reads: Reading, table: ServerTable) -> TableStatistics:
    rows, percent = table.rows, 100.0
    if table.kind in ("r", "m"):
        # Of a table that was never analysed only its size is known.
        percent = 100.0 * (1.5 * _SAMPLE / max(rows, 1.0) if rows is not None else _PAGES * 8192 / table.size)
    share = f" TABLESAMPLE SYSTEM ({percent:.6f}) REPEATABLE (1)" if percent < 50 else ""
    most = _SAMPLE if rows is not None or table.kind not in ("r", "m") else _MOST_OF_PAGES
    names = ", ".join(travels_as(column, as_text=column.base in MOMENTS) for column in table.columns)
    what = f"table {table.key!r}"
    sample = reads.fetch(f"SELECT {names or 'NULL'} FROM {table.in_sql}{share} LIMIT {most}", what)
    seen = sample.num_rows
    if rows is None:
        rows = seen * 100 / percent if share else seen if seen < most else _counted(reads, table.in_sql, what, seen)
    frame = frame_of(sample, table.columns) if table.columns else pd.DataFrame(index=range(seen))
    total = max(round(rows), seen)
    columns = tuple(_of_column(column, frame[column.name], total, table) for column in table.columns)
    return TableStatistics(total, columns)


def _counted(reads: Reading, table: str, what: str, seen: int) -> float:
    """The rows of a view, or of a table that may not be sampled."""
    try:
        return float(reads.fetch(f"SELECT count(*) AS n FROM {table}", what)["n"][0].as_py())
    except TookTooLong:  # at least what was seen
        return seen


def _of_column(column: ServerColumn, cells: pd.Series, total: int, table: ServerTable) -> ColumnStatistics:
    is_unique = (column.name,) in table.shape.unique
    statistics = column_of_sample(cells, total, 0 if column.filled else None, is_unique=is_unique)
    values = [read_text(column, value) if isinstance(value, str) else value for value in statistics.values]
    low, high = (min(values), max(values)) if values and len({*map(type, values)}) == 1 else (None, None)
    return replace(statistics, values=values, minimum=low, maximum=high)
