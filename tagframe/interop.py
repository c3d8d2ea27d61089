"""Frames of other libraries: Polars, Arrow and DuckDB come in as pandas frames, and go back as what they were.

They are converted where public functions are called, by :mod:`narwhals`; nothing behind that knows of them. Columns
become pandas' Arrow dtypes, which keep the types of all three and share their memory. Only texts of Polars, and what a
lazy frame or a relation computes, are copied. A result is of the kind of the first frame among the arguments; what
tagframe knows of it is read by ``tagframe.tag(result)``. A relation comes back on DuckDB's default connection.
"""

from __future__ import annotations

import functools
import re
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ParamSpec, Protocol, TypeVar, cast

import pandas as pd

from tagframe.errors import InvalidArgument, TagframeError, needing


class ForeignFrame(Protocol):
    """A frame of another library that gives its rows as Arrow does."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


ForeignFrameT = TypeVar("ForeignFrameT", bound=ForeignFrame)
P = ParamSpec("P")
T = TypeVar("T")

_KINDS = (("polars", "DataFrame"), ("polars", "LazyFrame"), ("pyarrow", "Table"), ("duckdb", "DuckDBPyRelation"))

_LOSSY = re.compile(r"\b(BIT|TIME WITH TIME ZONE|UNION|Object)\b")
"""Types of DuckDB and Polars that are others after a way through Arrow, or that pandas cannot select from."""

_RETURNED: dict[int, tuple[Any, pd.DataFrame, Any]] = {}
"""What is behind each result that has gone back and still lives, by its id: a copy of it, if it can be changed in place
as Polars can (which copies nothing), the frame, and its Arrow table."""


def is_foreign(value: Any) -> bool:
    """Whether a value is a frame of another library."""
    if isinstance(value, pd.DataFrame):
        return False
    classes = (getattr(sys.modules.get(module), name, None) for module, name in _KINDS)
    return any(isinstance(value, kind) for kind in classes if kind is not None)


def any_foreign(*values: Any) -> bool:
    """Whether any of these is a frame of another library; none is imported for this."""
    return any(map(is_foreign, values))


def to_pandas(foreign: Any) -> pd.DataFrame:
    """A foreign frame as a pandas frame; for a result that has gone back as this frame, the result itself.

    Raises:
        InvalidArgument: it cannot be computed, two columns have one name, or a type has no form in Arrow.
        MissingExtra: narwhals is not installed.
    """
    return _received(foreign)[0]


def _received(foreign: Any) -> tuple[pd.DataFrame, Any]:
    """A foreign frame as a pandas frame, and its Arrow table."""
    import pyarrow as pa

    copy, frame, table = _RETURNED.get(id(foreign), (None, None, None))
    if frame is not None and (copy is None or foreign.equals(copy)):
        return frame, table
    table = _arrow(foreign)
    try:
        plain = _without_views(table)
        plain.take(pa.array([], pa.int64()))
    except NotImplementedError as error:
        raise InvalidArgument(f"a {named(foreign)} has a type of which pandas cannot select rows: {error}") from error
    return plain.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True), table


def _narwhals() -> Any:
    with needing('frames of Polars, Arrow and DuckDB need narwhals: pip install "tagframe[narwhals]"'):
        import narwhals
    return narwhals


def _arrow(foreign: Any) -> Any:
    narwhals = _narwhals()
    try:
        frame = narwhals.from_native(foreign)
        types = _types(foreign) if frame.implementation.is_duckdb() else frame.collect_schema()
        lossy = {name: str(type) for name, type in types.items() if _LOSSY.search(str(type))}
        if not lossy:
            return (frame.collect("pyarrow") if isinstance(frame, narwhals.LazyFrame) else frame).to_arrow()
    except Exception as error:  # of the other library, when it computes the frame
        raise InvalidArgument(f"a {named(foreign)} cannot be read as an Arrow table: {error}") from error
    raise InvalidArgument(f"the types of the columns {lossy} are none that pandas has by way of Arrow: cast them first")


def _views() -> dict[Any, Any]:
    """Arrow's types of views, which pandas cannot select from, with those that stand in for them."""
    import pyarrow as pa

    return {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def _without_views(table: Any) -> Any:
    views = _views()
    for position, field in enumerate(table.schema):
        if field.type in views:
            table = table.set_column(position, field.name, table.column(position).cast(views[field.type]))
    return table


def named(foreign: Any) -> str:
    """The class of a frame, with its library."""
    return f"{type(foreign).__module__.partition('.')[0]}.{type(foreign).__name__}"


class ConvertedCall:
    """The arguments of a call, with pandas frames in place of foreign frames; a context manager around the call.

    Args:
        arguments: positional and by name.
        inside: whether foreign frames may be inside lists and mappings, too.
    """

    def __init__(self, arguments: Sequence[Any], keywords: Mapping[str, Any], *, inside: bool = False) -> None:
        self._inside = inside
        self._foreign: list[tuple[Any, Any]] = []  # with their Arrow tables
        self._returns: bool | None = None  # whether the first frame is foreign
        self.arguments = [self._converted(value) for value in arguments]
        self.keywords = {name: self._converted(value) for name, value in keywords.items()}

    def _converted(self, value: Any) -> Any:
        if is_foreign(value):
            frame, table = _received(value)
            self._foreign.append((value, table))
            self._returns = self._returns is not False
            return frame
        if isinstance(value, pd.DataFrame):
            self._returns = bool(self._returns)
        elif self._inside and isinstance(value, Mapping) and any(map(is_foreign, value.values())):
            return {name: self._converted(one) for name, one in value.items()}
        elif self._inside and isinstance(value, list | tuple) and any(map(is_foreign, value)):
            return [self._converted(one) for one in value]
        return value

    def back(self, result: T) -> T:
        """A result; if it is a frame, as the first of the given frames was."""
        if self._returns and isinstance(result, pd.DataFrame):
            return cast(T, _returned(result, self._foreign))
        return result

    @contextmanager
    def errors(self) -> Iterator[None]:
        """A block in which the finished part on an error goes back, too."""
        try:
            yield
        except TagframeError as error:
            if isinstance(frame := getattr(error, "frame", None), pd.DataFrame):
                error.frame = self.back(frame)  # type: ignore[attr-defined]
            raise


def accepts_foreign(function: Callable[P, T]) -> Callable[P, T]:
    """A function of frames that also takes foreign frames: alone, in a list, or in a mapping from names."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        converted = ConvertedCall(args, kwargs, inside=True)
        with converted.errors():
            return converted.back(function(*converted.arguments, **converted.keywords))

    return call


def _returned(frame: pd.DataFrame, sources: Sequence[tuple[Any, Any]]) -> Any:
    """The frame as what the first of the foreign frames is; columns that they have keep their types."""
    import pyarrow as pa

    narwhals, (first, first_table) = _narwhals(), sources[0]
    given, views = narwhals.from_native(first), _views()
    was = {name: other.column(name) for _, other in reversed(sources) for name in other.column_names}
    known = {field.name: field for _, other in reversed(sources) for field in other.schema}
    columns, unchanged = {}, {}
    for position, name in enumerate(map(str, frame.columns)):
        cells = _column(frame.iloc[:, position])
        if name in was and views.get(was[name].type) == cells.type:
            cells = cells.cast(was[name].type)
        if name in was and was[name].type == cells.type and _categories(cells) <= _categories(was[name]):
            unchanged[name] = known[name]
        columns[name] = cells
    fields = [unchanged.get(name) or pa.field(name, cells.type) for name, cells in columns.items()]
    table = pa.table([*columns.values()], schema=pa.schema(fields, first_table.schema.metadata))
    if not isinstance(given, narwhals.LazyFrame):
        back = narwhals.from_arrow(table, backend=given.implementation)
    else:
        back = narwhals.from_native(table).lazy(given.implementation)
    native = back.to_native()
    if given.implementation.is_duckdb():
        types = {name: type for other, _ in reversed(sources) for name, type in _types(other).items()}
        native = _as_it_was(native, {name: type for name, type in types.items() if name in unchanged})
    changes = given.implementation.is_polars() and not isinstance(given, narwhals.LazyFrame)
    _RETURNED[id(native)] = (native.clone() if changes else None, frame, table)
    weakref.finalize(native, _RETURNED.pop, id(native), None).atexit = False
    return native


def _column(cells: pd.Series) -> Any:
    """The cells of a column as Arrow has them; as text, if it has no type for them together."""
    import pyarrow as pa

    if isinstance(cells.dtype, pd.ArrowDtype):
        return pa.chunked_array(cells.array.__arrow_array__())  # type: ignore[attr-defined]
    try:
        return pa.chunked_array([pa.array(cells, from_pandas=True)])
    except pa.ArrowException:
        return pa.chunked_array([pa.array(cells.map(str, na_action="ignore"), pa.string(), from_pandas=True)])


def _categories(cells: Any) -> set[Any]:
    """The values that a column of a dictionary type may have; the type of an enumeration does not name them."""
    return {value for chunk in cells.chunks for value in getattr(chunk, "dictionary", None) or ()}


def _as_it_was(relation: Any, types: Mapping[str, str]) -> Any:
    """The relation with these types of its columns, such as enumerations, for which Arrow has others."""
    parts = []
    for name, now in _types(relation).items():
        quoted, was = '"' + name.replace('"', '""') + '"', types.get(name, now)
        parts.append(quoted if was == now else f"CAST({quoted} AS {was}) AS {quoted}")
    if all(part.startswith('"') for part in parts):
        return relation
    try:
        relation.project(", ".join(parts)).to_arrow_table()
    except sys.modules["duckdb"].Error:  # in a stack, another frame's cells of this name may be none of the type
        return relation
    return relation.project(", ".join(parts))


def _types(foreign: Any) -> dict[str, str]:
    """The types of the columns of a relation, as DuckDB writes them; of other frames, none."""
    types = getattr(foreign, "types", ()) if type(foreign).__name__ == "DuckDBPyRelation" else ()
    return dict(zip(foreign.columns, map(str, types), strict=True)) if types else {}
