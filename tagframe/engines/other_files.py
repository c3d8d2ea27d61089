"""JSON files: a list of objects, or an object a line; and Feather files, which are Arrow's own. Each is one table."""

from __future__ import annotations

import codecs
import json
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tagframe.engines import file_limits as limits
from tagframe.engines.base import Chunk, TableShape, frame_chunk
from tagframe.engines.file_limits import DAMAGED, blocks, ending_of, stem_of
from tagframe.engines.files import FileEngine, WholeFileEngine, arrow_shape, from_arrow, plain_dtypes
from tagframe.errors import TagframeError, UnreadableTable

_EXACT = 2**53
"""Beyond this, floats cannot represent every integer."""


@dataclass(frozen=True)
class JSONEngine(WholeFileEngine):
    """A file of JSON objects, each a row: the table is named after the file.

    A column is a name of the objects; an object without it has a null there. Lists and objects in a cell are JSON text.
    """

    path: Path
    kind: str = "json"

    def shapes(self) -> list[TableShape]:
        """The table's names; the whole file is read for them."""
        frame = self.frame()
        return [TableShape(stem_of(self.path), tuple(frame.columns), ("",) * frame.shape[1])]

    def frame(self, table: str = "") -> pd.DataFrame:
        """The whole table."""
        try:
            rows = self._objects(self._text())
            names = list(dict.fromkeys(name for row in rows for name in row))
            limits.check_names(self.path, names)
            most = limits.allowed(limits.FREE_JSON_CELLS, limits.JSON_CELLS_A_BYTE, self.path.stat().st_size)
            if len(names) * len(rows) > most:
                raise UnreadableTable(
                    f"{self.path} has {len(rows):,} objects with {len(names):,} names in all, and a file of this size "
                    f"has {most:,} cells at most: write one file for each kind of objects"
                )
            columns = {name: _column([_cell(row.get(name)) for row in rows]) for name in names}
        except (*DAMAGED, ValueError, RecursionError, MemoryError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise UnreadableTable(f"{self.path} cannot be read as JSON: {reason}") from error
        return plain_dtypes(pd.DataFrame(columns, index=pd.RangeIndex(len(rows))))

    def _text(self) -> str:
        parts, size = [], 0
        for block in blocks(self.path):
            size += len(block)
            if size > limits.JSON_BYTES:
                raise UnreadableTable(
                    f"{self.path} has more than {limits.JSON_BYTES / 2**20:,.0f} MB, the most that is read of a "
                    "JSON file. open_corpus(…, engine='duckdb') reads larger ones; or write it as Parquet"
                )
            parts.append(block)
        data = b"".join(parts)
        is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        return data.decode("utf-16" if is_wide else "utf-8-sig")

    def _objects(self, text: str) -> list[dict[str, Any]]:
        """The objects of the file.

        Raises:
            ValueError: it is no JSON.
            UnreadableTable: it has something else.
        """
        if ending_of(self.path) == ".json":
            try:
                found = json.loads(text)
            except json.JSONDecodeError as error:
                if error.msg != "Extra data":
                    raise
                found = None  # an object a line, in spite of its name
            if found is not None:
                if isinstance(found, list) and all(isinstance(row, dict) for row in found):
                    return found
                raise UnreadableTable(
                    f"{self.path} is no table: it is {_what(found)}, not a list of objects. Make frames of its parts "
                    "with pandas.json_normalize, and open those"
                )
        rows = []
        for number, line in enumerate(text.split("\n"), start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise UnreadableTable(f"{self.path} cannot be read as JSON: line {number:,}: {error}") from error
            if not isinstance(row, dict):
                raise UnreadableTable(
                    f"{self.path} is no table: line {number:,} is {_what(row)}, not an object. Write an object a line"
                )
            rows.append(row)
        return rows


def _what(value: Any) -> str:
    if isinstance(value, dict):
        return f"one object, with {', '.join(map(repr, list(value)[:3]))}{', …' * (len(value) > 3)}"
    return "a list of other things" if isinstance(value, list) else "a single value"


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _column(cells: list[Any]) -> pd.Series:
    """The cells in the dtype that holds them: no integer becomes a float that cannot hold it."""
    column = pd.Series(cells, dtype=object)
    kinds = {type(cell) for cell in cells if cell is not None}
    most = max((abs(cell) for cell in cells if type(cell) is int), default=0)
    if kinds == {int}:
        return column.astype("Int64") if most < 2**63 else column
    return column if most > _EXACT else column.convert_dtypes()


_MAGIC = b"ARROW1\0\0"
_DICTIONARIES, _ROWS = 2, 3
"""Kinds of messages that hold columns."""


@dataclass(frozen=True)
class FeatherEngine(FileEngine):
    """A Feather file of version 2. Columns are read as those of a Parquet file."""

    path: Path
    kind: str = "feather"

    def shapes(self) -> list[TableShape]:
        """The table's names and types, from the head of the file; its size in memory is checked before any column."""
        with self._file() as file:
            self._check()
            fields = list(file.schema)
            limits.check_columns(self.path, len(fields))
            return [arrow_shape(self.path, fields)]

    def chunks(self, shape: TableShape) -> Iterator[Chunk]:
        """The rows in pieces, in dtypes that lose nothing of their meaning."""
        with self._file() as file:
            self._check()
            for number in range(file.num_record_batches):
                yield frame_chunk(from_arrow(file.get_batch(number)))

    def scan(self, table: str, columns: Sequence[str] | None = None, limit: int | None = None) -> pd.DataFrame:
        """The rows of the one table, in the file's order."""
        import pyarrow as pa  # type: ignore[import-untyped]

        with self._file() as file:
            self._check()
            names = list(file.schema.names if columns is None else columns)
            batches, rows = [], 0
            for number in range(file.num_record_batches):
                if limit is not None and rows >= limit:
                    break
                batches.append(file.get_batch(number).select(names))
                rows += batches[-1].num_rows
            schema = pa.schema([file.schema.field(name) for name in names])
            found = pa.Table.from_batches(batches, schema)
            return from_arrow(found if limit is None else found.slice(0, limit))

    @contextmanager
    def _file(self) -> Iterator[Any]:
        try:
            import pyarrow as pa
            from pyarrow import ipc

            with pa.memory_map(str(self.path)) as mapped, ipc.open_file(mapped) as file:
                yield file
        except TagframeError:
            raise
        except (ImportError, OSError, ValueError, LookupError, TypeError, NotImplementedError, struct.error) as error:
            raise UnreadableTable(f"{self.path} cannot be read as Feather: {error}") from error

    def _check(self) -> None:
        """Refuse a file whose columns take far more memory than its size lets expect: they may be compressed."""
        size = self.path.stat().st_size
        most = limits.allowed(limits.FREE_FEATHER_BYTES, limits.FEATHER_BYTES_A_BYTE, size)
        taken = 0
        for needed in self._sizes():
            taken += needed
            if taken > most:
                raise UnreadableTable(
                    f"{self.path} has more than {most / 2**20:,.0f} MB when it is unpacked, too many for a file of "
                    "this size: nearly all of its cells are alike. Write it as Parquet"
                )

    def _sizes(self) -> Iterator[int]:
        """The bytes that each batch takes in memory, and at least one for each cell."""
        import pyarrow as pa
        from pyarrow import ipc

        with pa.memory_map(str(self.path)) as mapped:
            mapped.seek(len(_MAGIC))
            width = 0
            for message in ipc.MessageReader.open_stream(mapped):
                head = memoryview(message.metadata)
                root = _at(head, "<I", 0)
                kind_at, table_at = _field(head, root, 1), _field(head, root, 2)
                kind = _at(head, "<B", kind_at) if kind_at else 0
                if kind not in (_DICTIONARIES, _ROWS):
                    continue
                batch = table_at + _at(head, "<I", table_at)
                if kind == _DICTIONARIES:
                    data = _field(head, batch, 1)
                    batch = data + _at(head, "<I", data)
                yield _size_of(head, batch, memoryview(message.body))
                rows_at = _field(head, batch, 0)
                width = width or len(_vector(head, batch, 1))
                yield (_at(head, "<q", rows_at) if rows_at else 0) * width


def _at(data: memoryview, form: str, offset: int) -> int:
    return int(struct.unpack_from(form, data, offset)[0])


def _field(head: memoryview, table: int, number: int) -> int:
    """Where a field of a FlatBuffers table is; 0 if it is not there (https://flatbuffers.dev/internals)."""
    offsets = table - _at(head, "<i", table)
    if 4 + 2 * number >= _at(head, "<H", offsets):
        return 0
    offset = _at(head, "<H", offsets + 4 + 2 * number)
    return table + offset if offset else 0


def _vector(head: memoryview, table: int, number: int) -> range:
    """Where the items of a vector of two 64-bit numbers each are."""
    found = _field(head, table, number)
    if not found:
        return range(0)
    start = found + _at(head, "<I", found)
    return range(start + 4, start + 4 + 16 * _at(head, "<I", start), 16)


def _size_of(head: memoryview, batch: int, body: memoryview) -> int:
    """The bytes of a batch's buffers; a compressed one begins with its size (Arrow's format, "Compression")."""
    buffers = [(_at(head, "<q", one), _at(head, "<q", one + 8)) for one in _vector(head, batch, 2)]
    if not _field(head, batch, 3):
        return sum(length for _, length in buffers)
    sizes = [(_at(body, "<q", offset), length) for offset, length in buffers if length >= 8]
    return sum(length if size < 0 else size for size, length in sizes)
