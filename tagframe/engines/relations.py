"""Tables that are sent with a statement: frames as Arrow tables, and Arrow tables as a SQLite database in memory."""

from __future__ import annotations

import hashlib
import io
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tagframe.engines.base import quoted
from tagframe.engines.sqlite.worker import ascii_lower
from tagframe.errors import SQLFailed

if TYPE_CHECKING:
    import pyarrow as pa

_LOOKUP = b"looked up by"
_MOST_KEPT = 256 * 2**20
_kept: dict[str, bytes] = {}
_lock = threading.Lock()
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
    return table.replace_schema_metadata({_LOOKUP: column})


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


def image_of(relations: Mapping[str, pa.Table]) -> tuple[str | None, bytes]:
    """The relations as a serialised SQLite database, and a key that no other relations have; (None, b"") if there are
    none.

    The last images are kept, up to 256 MB: the next statement usually reads the same tables.

    Raises:
        SQLFailed: SQLite cannot hold a value.
    """
    if not relations:
        return None, b""
    key = _digest(relations)
    with _lock:
        image = _kept.pop(key, None) or _serialised(relations)
        _kept[key] = image
        while sum(map(len, _kept.values())) > _MOST_KEPT:
            del _kept[next(iter(_kept))]
    return key, image


def _digest(relations: Mapping[str, pa.Table]) -> str:
    import pyarrow as pa

    digest = hashlib.sha256()
    for name, table in relations.items():
        digest.update(repr(name).encode())
        with pa.PythonFile(_Sink(digest), "w") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    return digest.hexdigest()


class _Sink(io.RawIOBase):
    """A file that keeps nothing but the digest of what is written to it."""

    def __init__(self, digest: Any) -> None:
        self._digest = digest

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._digest.update(data)
        return len(data)


def _serialised(relations: Mapping[str, pa.Table]) -> bytes:
    from sqlite_utils import Database

    check_names("tables", relations, ascii_lower)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        database = Database(connection)
        for name, table in relations.items():
            check_names(f"columns of {name}", table.column_names, ascii_lower)
            columns = dict(zip(table.column_names, map(_declared, table.schema.types), strict=True))
            try:
                connection.execute("BEGIN")
                # A table has one column at least in SQLite.
                made = database.table(name).create(columns or {"nothing": "BLOB"})
                if columns:
                    # Not insert_all, which takes two and a half times as long.
                    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
                    marks = ", ".join("?" * len(columns))
                    connection.executemany(f"INSERT INTO {quoted(name)} VALUES ({marks})", rows)
                if (by := (table.schema.metadata or {}).get(_LOOKUP)) is not None:
                    made.create_index([by.decode()], index_name=f"{name} by key")
                connection.execute("COMMIT")
            except (sqlite3.Error, OverflowError) as error:
                said = "an integer beyond 64 bits, signed" if isinstance(error, OverflowError) else error
                raise SQLFailed(f"table {name!r} cannot be copied into SQLite: {said}") from error
        return connection.serialize()


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


def _declared(kind: Any) -> str:
    """The declared type with which SQLite compares values unchanged."""
    import pyarrow as pa

    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return "INTEGER"
    if pa.types.is_floating(kind):
        return "REAL"
    return "BLOB" if pa.types.is_binary(kind) or pa.types.is_null(kind) else "TEXT"
