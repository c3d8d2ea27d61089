"""Which pandas dtypes hold which values without loss, and frames as Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tagframe.errors import SQLFailed

if TYPE_CHECKING:
    import pyarrow as pa

EXACT = 2**53
"""The largest integer up to which float64 holds every one."""
_TEXT = pd.Series(["text"]).dtype


def nullable(dtype: np.dtype[Any]) -> Any:
    """The dtype that holds the same values beside missing ones: ``Int64`` for int64, ``boolean`` for bool, ….

    Other dtypes are returned unchanged.

    >>> print(nullable(np.dtype("uint8")), nullable(np.dtype("bool")), nullable(np.dtype("float32")))
    UInt8 boolean float32
    """
    if dtype.kind == "b":
        return pd.BooleanDtype()
    if dtype.kind not in "iu":
        return dtype
    return pd.api.types.pandas_dtype(dtype.name.replace("uint", "UInt").replace("int", "Int"))


def typed_series(values: Sequence[Any]) -> pd.Series:
    """Cells of a database as a column whose dtype loses nothing.

    Integers are ``int64``, or ``Int64`` beside nulls. Floats are ``float64``, with integers among them where float64
    can hold those exactly. Text has pandas' own text dtype. Columns of bytes, of mixed types and of nulls only are
    ``object``.
    """
    types = set(map(type, values)) - {type(None)}
    if types == {int}:
        return pd.Series(values, dtype="Int64" if None in values else "int64")
    if types in ({float}, {int, float}) and all(abs(v) <= EXACT for v in values if type(v) is int):
        return pd.Series(values, dtype="float64")
    return pd.Series(values) if types == {str} else pd.Series(values, dtype=object)


def typed_frame(cells: Sequence[tuple[Any, ...]], columns: Sequence[str]) -> pd.DataFrame:
    """Rows of a database as a frame of such columns."""
    values = zip(*cells, strict=True) if cells else ((),) * len(columns)
    data = {name: typed_series(column) for name, column in zip(columns, values, strict=True)}
    return pd.DataFrame(data, index=pd.RangeIndex(len(cells)))


def plain_dtype(column: pd.Series) -> pd.Series:
    """A column in the dtype that users expect, if that can hold its values; else in the nullable dtype of reading."""
    dtype: Any = column.dtype
    if isinstance(dtype, pd.StringDtype):
        return pd.Series([None if cell is pd.NA else cell for cell in column], index=column.index, dtype=_TEXT)
    if pd.api.types.is_float_dtype(dtype):
        return column.astype("float64")
    if column.isna().all():
        return pd.Series([None] * len(column), index=column.index, dtype=object)
    is_plain = isinstance(dtype, np.dtype) or not hasattr(dtype, "numpy_dtype")
    return column if is_plain or column.isna().any() else column.astype(dtype.numpy_dtype)


def plain_dtypes(frame: pd.DataFrame) -> pd.DataFrame:
    """The same for all columns; their names become texts."""
    return pd.DataFrame({str(name): plain_dtype(frame[name]) for name in frame.columns}, index=frame.index)


def from_arrow(table: Any) -> pd.DataFrame:
    """Arrow rows as a frame; integers beside nulls are ``Int64``, never floats."""
    import pyarrow as pa  # type: ignore[import-untyped]

    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True, integer_object_nulls=True)
    for field, position in zip(table.schema, range(frame.shape[1]), strict=True):
        if pa.types.is_integer(field.type) and frame.iloc[:, position].dtype == object:
            width = pd.UInt64Dtype() if pa.types.is_unsigned_integer(field.type) else pd.Int64Dtype()
            frame[field.name] = frame.iloc[:, position].astype(width)
    return frame


# --- as Arrow tables, which are sent with a statement ----------------------------------------------------------------

LOOKUP = b"looked up by"
"""In the metadata of a table: the column that has an index wherever it is copied to."""
_PLAIN: tuple[Any, ...] = (bool, int, float, str, bytes)


def relation(frame: pd.DataFrame) -> pa.Table:
    """A frame as a table whose columns are numbers, texts or bytes: dates are ISO texts, and other objects their texts.

    Raises:
        SQLFailed: an integer beyond 64 bits.
    """
    import pyarrow as pa

    arrays = []
    for name, cells in frame.items():
        try:
            arrays.append(pa.array(storable(cells), from_pandas=True))
        except OverflowError as error:
            raise SQLFailed(f"column {str(name)!r} holds an integer beyond 64 bits") from error
    return pa.Table.from_arrays(arrays, names=list(map(str, frame.columns)))


def looked_up_by(table: pa.Table, column: str) -> pa.Table:
    """The table, with an index on a column wherever it is copied to."""
    return table.replace_schema_metadata({LOOKUP: column})


def storable(values: pd.Series) -> pd.Series | list[Any]:
    """A column whose cells are numbers, or all texts, or all bytes, beside nulls."""
    if values.dtype.kind in "iufb":
        return values
    cells = [None if null else _cell(cell) for cell, null in zip(values, values.isna(), strict=True)]
    kinds = set(map(type, cells)) - {type(None)}
    if kinds == {int, float}:
        return [None if cell is None else float(cell) for cell in cells]
    if kinds == {str} or len(kinds) > 1:
        return [None if cell is None else _text(cell) for cell in cells]
    return cells


def _cell(value: Any) -> Any:
    """A number, text or bytes of Python's own."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Decimal):  # SQLite would compare its text as a text; one with a point divides as a real number
        is_whole = value.is_finite() and value.as_tuple().exponent == 0
        return int(value) if is_whole and abs(value) < 2**63 else float(value)
    plain = next((kind for kind in _PLAIN if isinstance(value, kind)), None)
    if plain is not None:
        return value if type(value) is plain else plain(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _text(value: Any) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def check_names(what: str, names: Iterable[str], fold: Callable[[str], str]) -> None:
    """Refuse two names that are equal for an engine.

    Raises:
        SQLFailed: two of them are.
    """
    first: dict[str, str] = {}
    for name in names:
        other = first.setdefault(fold(name), name)
        if other != name:
            raise SQLFailed(
                f"the {what} {other!r} and {name!r} have the same name in SQL, which ignores case: rename one"
            )
