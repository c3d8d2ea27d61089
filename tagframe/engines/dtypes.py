"""Which pandas dtypes hold which values without loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

EXACT = 2**53
"""The largest integer up to which float64 holds every one."""


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
