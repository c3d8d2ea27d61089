"""Cells: which pandas dtypes hold them without loss, and what tests of them mean.

Tests mean the same in every engine and in memory. A value is compared in the type of the column. A number equals its
text, whatever its type; a boolean is 0 or 1; a day equals its ISO text and its midnight; a UUID equals its text.
``None``, NaN, NaT and ``pandas.NA`` all mean a missing value. A value without a meaning in the type of the column is
refused: a text that is no number or no date, a number in a column of texts, a moment without a time zone in a column
with time zones, and the other way round. A number that the type does not have, such as 0.5 among integers, is in no
row.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from tagframe.errors import InvalidArgument

NULL_WORDS = ("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A",
              "NA", "NULL", "NaN", "None", "n/a", "nan", "null")  # fmt: skip
"""pandas' words for missing values, so that a CSV file has the same nulls whoever reads it."""

EXACT = 2**53
"""The largest integer up to which float64 holds every one."""
_TEXT = pd.Series(["text"]).dtype
Bound = Literal["<", "<=", ">", ">=", "between"]
Kind = Literal["integer", "real", "real32", "decimal", "boolean", "text", "date", "moment", "instant", ""]
"""What the cells of a column are compared as: "moment" is without a time zone and "instant" with one; "" for a mixture,
or anything else."""
_SIGNS = ("<", "<=", ">", ">=", "==", "between")
_NOT_SIGNS = ("!=", "<>", "=", "=<", "=>")


@dataclass(frozen=True)
class CellTest:
    """One test of a column.

    Attributes:
        column: (table id, column).
        values: the cell has one of these; a bound has exactly one, and "between" the two ends, which fit, too.
        null: whether an empty cell fits, too.
        bound: how the cell compares with the value, if not by equality.
    """

    column: tuple[str, str]
    values: tuple[Any, ...] = ()
    null: bool = False
    bound: Bound | None = None


@dataclass(frozen=True)
class Either:
    """Tests of which at least one has to be true."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Every:
    """Tests that all have to be true."""

    parts: tuple[Condition, ...]


Condition = CellTest | Either | Every


def tests_of(condition: Condition) -> Iterator[CellTest]:
    """All tests in it."""
    if isinstance(condition, CellTest):
        yield condition
        return
    for part in condition.parts:
        yield from tests_of(part)


def is_missing(value: Any) -> bool:
    """Whether a value means a missing one."""
    return value is None or value is pd.NA or value is pd.NaT or bool(pd.api.types.is_scalar(value) and pd.isna(value))


def own(value: Any) -> Any:
    """A numpy value as a Python or pandas value."""
    if isinstance(value, np.datetime64):
        return pd.Timestamp(value)
    if isinstance(value, np.timedelta64):
        return pd.Timedelta(value)
    return value.item() if isinstance(value, np.generic) else value


def cells(values: Iterable[Any], kind: Kind) -> list[Any]:
    """The values as a column of this kind holds them, without those that it cannot hold.

    >>> cells([1, 2.5, "1", True], "integer"), cells(["2024-01-05"], "date")
    ([1, 1, 1], [datetime.date(2024, 1, 5)])
    """
    return [cell for value in values for cell in _cells(value, kind)]


def cells_of(test: CellTest, kind: Kind) -> list[Any]:
    """The values of a test as a column of this kind holds them; those of a bound as they are compared with it.

    Raises:
        InvalidArgument: a value that has no meaning in a column of this kind.
    """
    for value in test.values:
        if kind and not is_read(value, kind):
            raise InvalidArgument(
                f"where= compares column {test.column[1]!r}, which holds {_HOLD[kind]}, with {value!r} of type "
                f"{type(value).__name__}: {_GIVE[kind]}"
            )
    if not test.bound:
        return cells(test.values, kind)
    # 2.5 is no integer, but bounds integers.
    wide: Kind = "decimal" if kind in ("integer", "boolean") else "real" if kind == "real32" else kind
    ends = [_cells(value, wide)[:1] for value in test.values]
    if not all(ends):
        raise InvalidArgument(f"where= cannot order column {test.column[1]!r} by {test.values!r}: {_GIVE[kind]}")
    return [_whole(cell) if wide != kind and kind == "integer" else cell for (cell,) in ends]


def _whole(number: Decimal) -> int | Decimal:
    return int(number) if number.is_finite() and number == number.to_integral_value() else number


def is_read(value: Any, kind: Kind) -> bool:
    """Whether a value has a meaning in a column of a kind."""
    if kind == "text":
        return isinstance(value, str | dt.date | uuid.UUID) and getattr(value, "tzinfo", None) is None
    if kind in ("date", "moment", "instant"):
        moment = _moment(value)
        return moment is not None and (moment.tzinfo is not None) == (kind == "instant")
    return _as_number(value) is not None


_HOLD: dict[Kind, str] = {
    "integer": "integers", "real": "numbers", "real32": "numbers", "decimal": "numbers", "boolean": "booleans",
    "text": "texts", "date": "dates", "moment": "moments without a time zone", "instant": "moments with a time zone",
}  # fmt: skip
_GIVE: dict[Kind, str] = {
    **dict.fromkeys(("integer", "real", "real32", "decimal"), "give a number"), "boolean": "give True or False",
    "text": "give a text", "date": "give a date, or its ISO text",
    "moment": "give a moment without a time zone, or its ISO text",
    "instant": "give a moment with a time zone, such as '2024-06-01T00:00+00:00'",
}  # fmt: skip


def _cells(value: Any, kind: Kind) -> list[Any]:
    if kind in ("integer", "real", "real32", "decimal", "boolean"):
        number = _number(value, kind)
        return [] if number is None else [number]
    if kind == "text":
        return _texts(value)
    if kind in ("date", "moment", "instant"):
        moment = _moment(value)
        if moment is None or (moment.tzinfo is not None) != (kind == "instant"):
            return []
        if kind == "date":
            return [moment.date()] if moment == moment.normalize() else []
        return [moment]
    return [value, *(text for text in _texts(value) if text != value)]


def _number(value: Any, kind: Kind) -> Any:
    value = _as_number(value)
    if value is None:
        return None
    if kind == "decimal":
        return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if kind == "boolean":
        return bool(value) if value in (0, 1) else None
    if kind == "integer":
        return int(value) if math.isfinite(value) and value == int(value) else None
    try:
        number = float(value)
    except OverflowError:
        return None
    if not isinstance(value, Decimal) and number != value:
        return None
    return float(np.float32(number)) if kind == "real32" else number


def _as_number(value: Any) -> bool | int | float | Decimal | None:
    if isinstance(value, str):
        try:
            number = Decimal(value)
        except InvalidOperation:
            return None
        return number if number.is_finite() else None
    return value if isinstance(value, bool | int | float | Decimal) else None


def _texts(value: Any) -> list[str]:
    if isinstance(value, uuid.UUID):
        return [str(value)]
    if isinstance(value, str):
        return [str(value)]
    if isinstance(value, dt.datetime):
        return [] if value.tzinfo else [value.isoformat(" "), value.isoformat("T")]
    return [value.isoformat()] if isinstance(value, dt.date) else []


def _moment(value: Any) -> pd.Timestamp | None:
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value)
        except ValueError:
            return None
    return pd.Timestamp(value) if isinstance(value, dt.date) else None


def kind_of(column: pd.Series) -> Kind:
    """What the cells of a column in memory are compared as."""
    dtype: Any = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return kind_of(pd.Series(column.cat.categories))
    for is_kind, kind in _DTYPES:
        if is_kind(dtype):
            if kind == "real" and getattr(dtype, "itemsize", 8) == 4:
                return "real32"
            return kind
    return _INFERRED.get(pd.api.types.infer_dtype(column, skipna=True), "")


_DTYPES: list[tuple[Any, Kind]] = [
    (pd.api.types.is_bool_dtype, "boolean"),
    (pd.api.types.is_integer_dtype, "integer"),
    (pd.api.types.is_float_dtype, "real"),
    (lambda dtype: isinstance(dtype, pd.DatetimeTZDtype), "instant"),
    (pd.api.types.is_datetime64_dtype, "moment"),
]
_INFERRED: dict[str, Kind] = {
    "string": "text", "boolean": "boolean", "integer": "integer", "floating": "real", "decimal": "decimal",
    "date": "date", "empty": "text",
}  # fmt: skip


def fits(column: pd.Series, test: CellTest) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which cells of a column in memory fit a test."""
    kind = "" if column.isna().all() else kind_of(column)  # without a cell, nothing is known of its type
    values: Any = cells_of(test, kind)
    if test.bound is not None:
        return _within(column, test.bound, values, kind)
    if kind == "real32":
        values = np.array(values, dtype=np.float32)
    mask: np.ndarray[Any, np.dtype[np.bool_]] = np.zeros(len(column), dtype=bool)
    if len(values):
        mask = np.asarray(column.isin(values), dtype=bool)
    missing: np.ndarray[Any, np.dtype[np.bool_]] = np.asarray(column.isna(), dtype=bool)
    return mask | missing if test.null else mask & ~missing


def _within(column: pd.Series, bound: Bound, ends: list[Any], kind: Kind) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which cells are within a bound: none that is missing, or of another type than the ends."""
    mask: np.ndarray[Any, np.dtype[np.bool_]] = np.zeros(len(column), dtype=bool)
    filled = np.flatnonzero(~np.asarray(column.isna(), dtype=bool))
    here = column.iloc[filled]
    compare = [(_COMPARE[">="], ends[0]), (_COMPARE["<="], ends[-1])] if bound == "between" else [
        (_COMPARE[bound], ends[0])]  # fmt: skip
    is_fast = kind in ("moment", "instant") or (
        kind in ("integer", "real") and all(isinstance(end, int | float) for end in ends)
    )
    if is_fast and not isinstance(column.dtype, pd.CategoricalDtype):
        mask[filled] = np.logical_and.reduce([np.asarray(one(here, end), dtype=bool) for one, end in compare])
        return mask

    def fits(cell: Any) -> bool:
        try:
            return all(one(cell, end) for one, end in compare)
        except TypeError:  # in a mixture of types
            return False

    mask[filled] = [fits(cell) for cell in here.tolist()]
    return mask


_COMPARE: dict[Bound, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def fitting(column: pd.Series, test: CellTest | Callable[[pd.Series], Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which rows of a column fit a test, or a function."""
    if isinstance(test, CellTest):
        return fits(column, test)
    mask = pd.array(np.asarray(test(column), dtype=object), dtype="boolean")
    if len(mask) != len(column):
        raise InvalidArgument(f"a function in where= must return {len(column)} booleans, one per row; got {len(mask)}")
    return mask.to_numpy(dtype=bool, na_value=False)


def test_of(column: tuple[str, str], value: Any) -> CellTest:
    """The test that a cell is a value, or one of a list of values, which may include a missing one; or that it is
    ordered: ``(">=", 3)``, ``("between", 3, 5)``.

    Raises:
        InvalidArgument: another operator, or one without its value.
    """
    if isinstance(value, tuple) and value and isinstance(value[0], str) and value[0] in (*_SIGNS, *_NOT_SIGNS):
        sign, *ends = value
        if sign not in _SIGNS or len(ends) != (2 if sign == "between" else 1) or any(map(is_missing, ends)):
            raise InvalidArgument(
                f"where= takes ('<', x), ('<=', x), ('>', x), ('>=', x), ('==', x) and ('between', low, high), and a "
                f"list of values; got {value!r} for column {column[1]!r}"
            )
        known = tuple(map(own, ends))
        return CellTest(column, known) if sign == "==" else CellTest(column, known, bound=sign)
    several = [own(one) for one in value] if pd.api.types.is_list_like(value) else [own(value)]
    known = tuple(one for one in several if not is_missing(one))
    return CellTest(column, known, null=len(known) < len(several))


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
    can hold those exactly. Booleans and moments have dtypes of their own, moments with a zone that of UTC; text has
    pandas' own text dtype. Columns of bytes, of mixed types and of nulls only are ``object``.
    """
    types = set(map(type, values)) - {type(None)}
    if types == {bool}:
        return pd.Series(values, dtype="boolean" if None in values else "bool")
    if types == {dt.datetime} and len({value.tzinfo is None for value in values if value is not None}) == 1:
        utc = [value.astimezone(dt.UTC) if value is not None and value.tzinfo else value for value in values]
        is_aware = any(value is not None and value.tzinfo for value in values)
        # Microseconds hold every day of Python's calendar.
        return pd.Series(utc, dtype="datetime64[us, UTC]" if is_aware else "datetime64[us]")
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
        texts: Any = column.array
        return pd.Series(texts.to_numpy(dtype=object, na_value=None), index=column.index, dtype=_TEXT)
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
    """Arrow rows as a frame; integers beside nulls are ``Int64``, never floats. Intervals of hours are durations."""
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True, integer_object_nulls=True)
    for field, position in zip(table.schema, range(frame.shape[1]), strict=True):
        if pa.types.is_integer(field.type) and frame.iloc[:, position].dtype == object:
            width = pd.UInt64Dtype() if pa.types.is_unsigned_integer(field.type) else pd.Int64Dtype()
            frame[field.name] = frame.iloc[:, position].astype(width)
        if pa.types.is_interval(field.type):
            frame[field.name] = _durations(table.column(position).to_pylist())
    return frame


def _durations(intervals: Sequence[Any]) -> pd.Series:
    """Arrow's intervals as durations; as texts where one has months, which are of no fixed length."""
    if not any(one is not None and one.months for one in intervals):
        spans = [None if one is None else one.days * _DAY + one.nanoseconds for one in intervals]
        return pd.Series(spans, dtype="timedelta64[ns]")
    texts = [
        None if one is None else f"{one.months} months {pd.Timedelta(one.days * _DAY + one.nanoseconds, unit='ns')}"
        for one in intervals
    ]
    return pd.Series(texts, dtype=_TEXT)


_DAY = 86_400 * 10**9
