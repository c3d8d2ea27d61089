"""Frames of Polars, Arrow and DuckDB come in as pandas frames, where public functions are called.

Nothing behind that knows of them, and results are pandas frames. Columns become pandas' Arrow dtypes, which keep the
types of all three and share their memory. Only texts of Polars, and what a lazy frame or a relation computes, are
copied.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, Protocol, TypeVar

import pandas as pd

from tagframe.errors import InvalidArgument


class ForeignFrame(Protocol):
    """A frame of another library that gives its rows as Arrow does."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


P = ParamSpec("P")
T = TypeVar("T")

_KINDS = (("polars", "DataFrame"), ("polars", "LazyFrame"), ("pyarrow", "Table"), ("duckdb", "DuckDBPyRelation"))

_LOSSY = re.compile(r"\b(BIT|TIME WITH TIME ZONE|UNION|Object)\b")
"""Types of DuckDB and Polars that are others after a way through Arrow, or that pandas cannot select from."""


def is_foreign(value: Any) -> bool:
    """Whether a value is a frame of another library; none is imported for this."""
    classes = (getattr(sys.modules.get(module), name, None) for module, name in _KINDS)
    return any(isinstance(value, kind) for kind in classes if kind is not None)


def accepts_foreign(function: Callable[P, T]) -> Callable[P, T]:
    """A function of frames that also takes foreign frames: alone, in a list, or in a mapping from names."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return function(*map(with_pandas, args), **{name: with_pandas(one) for name, one in kwargs.items()})

    return call


def with_pandas(value: Any) -> Any:
    """An argument, with pandas frames in place of foreign ones; raises as :func:`to_pandas`."""
    if isinstance(value, Mapping) and any(map(is_foreign, value.values())):
        return {name: with_pandas(one) for name, one in value.items()}
    if isinstance(value, list | tuple) and any(map(is_foreign, value)):
        return [with_pandas(one) for one in value]
    return to_pandas(value) if is_foreign(value) else value


def to_pandas(foreign: Any) -> pd.DataFrame:
    """A foreign frame as a pandas frame.

    Raises:
        InvalidArgument: it cannot be computed, or a type has no form in Arrow.
    """
    import pyarrow as pa

    named = f"{type(foreign).__module__.partition('.')[0]}.{type(foreign).__name__}"
    try:
        frame = foreign.collect() if named == "polars.LazyFrame" else foreign
        types = dict(zip(getattr(frame, "columns", ()), map(str, getattr(frame, "dtypes", ())), strict=False))
        if lossy := {name: type for name, type in types.items() if _LOSSY.search(type)}:
            raise InvalidArgument(f"its columns {lossy} have types that Arrow has not: cast them first")
        # Polars' own way makes types that Arrow can compute with.
        table = _without_views(frame.to_arrow() if named.startswith("polars") else pa.table(frame))
        table.take(pa.array([], pa.int64()))  # pandas selects rows so
    except Exception as error:  # of the other library, when it computes the frame
        raise InvalidArgument(f"a {named} cannot be read as an Arrow table: {error}") from error
    made: pd.DataFrame = table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
    return made


def _without_views(table: Any) -> Any:
    """The table with other types in place of views, which pandas cannot select from."""
    import pyarrow as pa

    views = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return table.cast(pa.schema([one.with_type(views.get(one.type, one.type)) for one in table.schema]))
