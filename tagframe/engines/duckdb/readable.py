"""Frames as DuckDB reads them: as Arrow datasets, whose columns are made on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tagframe.engines.relations import check_names, storable
from tagframe.errors import SQLFailed

if TYPE_CHECKING:
    import pyarrow as pa

_CELLS = ("string", "boolean", "integer", "floating", "mixed-integer-float", "bytes", "date", "datetime", "datetime64",
          "time", "decimal", "empty")  # fmt: skip
"""What a column of objects may hold to become a DuckDB column, in pandas' words."""


def readable(frame: pd.DataFrame, hidden: Sequence[str] = ()) -> Any:
    """A frame as DuckDB reads it; columns of numbers are not copied, texts are copied on demand.

    Args:
        frame: not changed.
        hidden: names of columns that are left out.

    Returns:
        An Arrow dataset.

    Raises:
        SQLFailed: an integer beyond 64 bits, or two columns whose names differ in case alone.
    """
    import pyarrow as pa

    from tagframe.engines.duckdb.scanned import Scanned

    columns = {str(name): cells for name, cells in frame.items() if str(name) not in hidden}
    # A table has one column at least.
    columns = columns or {"nothing": pd.Series(np.nan, index=frame.index)}
    check_names("columns", columns, str.lower)
    made: dict[str, pa.Array] = {}
    fields = []
    for name, values in columns.items():
        type = _plain_type(values)
        if type is None:
            made[name] = array_of(name, values)
            type = made[name].type
        fields.append(pa.field(name, type))

    def read(names: Sequence[str], condition: object) -> pa.Table:
        for name in names:
            if name not in made:
                made[name] = array_of(name, columns[name])
        return pa.table({name: made[name] for name in names})

    return Scanned(pa.schema(fields), read)


def _plain_type(values: pd.Series) -> pa.DataType | None:
    """The type that a column has in Arrow, where that is known before its values are looked at one by one."""
    import pyarrow as pa

    dtype = values.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "iufbM" and dtype != np.float16:
        return pa.from_numpy_dtype(dtype)
    is_text = pd.api.types.is_object_dtype(dtype) and pd.api.types.infer_dtype(values, skipna=True) == "string"
    return pa.string() if is_text else None


def array_of(name: str, values: pd.Series) -> pa.Array:
    """A column of a frame as Arrow has it."""
    import pyarrow as pa

    type = _plain_type(values)
    cells = values if type is not None or _is_column(values) else storable(values)
    if type is None and pd.api.types.is_float_dtype(values.dtype):
        # Such columns can hold NaN beside nulls; for DuckDB, NaN is the greatest of all numbers.
        cells = pd.Series(values.to_numpy(dtype=np.float64, na_value=np.nan))
    try:
        found = pa.array(cells, type, from_pandas=True)
    except OverflowError as error:
        raise SQLFailed(f"column {name!r} holds an integer beyond 64 bits") from error
    except (UnicodeEncodeError, pa.ArrowException):  # lone surrogates, or cells that only look alike
        found = pa.array(storable(values), from_pandas=True)
    return _comparable(name, found)


def _comparable(name: str, found: pa.Array) -> pa.Array:
    """Nanoseconds with a zone as microseconds, where that loses nothing: DuckDB cannot compare nanoseconds with other
    moments. Decimals as those of 38 digits, the longest that it has.

    Raises:
        SQLFailed: a decimal is longer.
    """
    import pyarrow as pa

    if pa.types.is_decimal256(found.type):
        try:
            return found.cast(pa.decimal128(38, min(found.type.scale, 38)))
        except pa.ArrowException as error:
            raise SQLFailed(
                f"column {name!r} holds decimals of more than 38 digits, the most that DuckDB has: open the frame with "
                f"it as text, frame.astype({{{name!r}: str}}), or without it, or without engine='duckdb'"
            ) from error
    if pa.types.is_timestamp(found.type) and found.type.tz is not None and found.type.unit == "ns":
        try:
            return found.cast(pa.timestamp("us", found.type.tz))
        except pa.ArrowInvalid:
            return found
    return found


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
    import pyarrow as pa

    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
