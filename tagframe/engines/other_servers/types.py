"""How the values that drivers give become columns of a frame."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pandas as pd

from tagframe.engines.dtypes import typed_series

_WORDS: dict[type, Callable[[Any], Any]] = {
    **dict.fromkeys((dict, list, tuple), lambda value: json.dumps(value, ensure_ascii=False, default=str)),
    set: lambda value: json.dumps(sorted(map(str, value)), ensure_ascii=False),
    **dict.fromkeys((UUID, dt.time, dt.timedelta), str),
    **dict.fromkeys((memoryview, bytearray), bytes),
}
"""Values without a pandas type are given as text; the declared type of the column says what they are."""


def frame_of(rows: Sequence[Sequence[Any]], names: Sequence[str]) -> pd.DataFrame:
    """Rows as drivers give them. Numbers, booleans, text, dates, moments, bytes and decimals are kept."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    data = {name: column_of(values) for name, values in zip(names, columns, strict=True)}
    return pd.DataFrame(data, index=pd.RangeIndex(len(rows)), columns=list(names))


def column_of(values: Sequence[Any]) -> pd.Series:
    """One column; see :func:`frame_of`."""
    types = set(map(type, values)) - {type(None)}
    if types == {bool}:
        return pd.Series(values, dtype="boolean" if None in values else "bool")
    if types == {dt.datetime} and len({value.tzinfo is None for value in values if value is not None}) == 1:
        aware = any(value is not None and value.tzinfo is not None for value in values)
        # Microseconds hold every day of Python's calendar.
        utc = [value.astimezone(dt.UTC) if aware and value is not None else value for value in values]
        return pd.Series(utc, dtype="datetime64[us, UTC]" if aware else "datetime64[us]")
    odd = next((word for kind, word in _WORDS.items() if kind in types), None)
    if odd is None:
        # A driver may give text and numbers of types of its own.
        return typed_series(values)
    return column_of([_WORDS[type(value)](value) if type(value) in _WORDS else value for value in values])
