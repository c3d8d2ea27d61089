"""How PostgreSQL's types become columns of a frame.

Numbers, booleans, text, dates, moments and bytes are kept. A ``numeric`` of no fraction is an integer where 64 bits
hold it, any other one a column of exact ``decimal.Decimal``. What has no pandas type (arrays, ``jsonb``, ranges,
intervals, times, UUIDs, addresses, geometry, enumerations, composites) is given as the server's own text for it; the
column's declared type, such as ``jsonb``, says what it is. A column of dates or moments that holds an infinity, or a
day that Python's calendar does not have, is given as text too.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe.engines.base import quoted
from tagframe.engines.postgres.pg_catalog import INTEGERS, ServerColumn

if TYPE_CHECKING:
    import pyarrow as pa

FLOATS = frozenset(("float4", "float8"))
TEXTS = frozenset(("text", "varchar", "bpchar", "name"))
MOMENTS = frozenset(("date", "timestamp", "timestamptz"))
_KEPT = INTEGERS | FLOATS | MOMENTS | {"bool", "text", "varchar", "name", "bytea"}
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
    return name if column.base in _KEPT else f"{name}::text"


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

    found = []
    for at, column in enumerate(table.columns):
        if pa.types.is_date32(column.type) or pa.types.is_timestamp(column.type):
            first, last = _CALENDAR[column.type.bit_width]
            low, high = (end.value for end in pc.min_max(column).values())
            if low is not None and not first <= low <= high <= last:
                found.append(at)
    return found


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
