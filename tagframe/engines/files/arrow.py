"""Parquet and Feather files, one table each, which Arrow reads."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tagframe.engines.base import CHUNK_ROWS, Chunk, TableShape, frame_chunk
from tagframe.engines.cells import from_arrow
from tagframe.engines.files import limits
from tagframe.engines.files.limits import FileEngine, reading_as
from tagframe.errors import UnreadableTable

PARQUET_BUFFER = 2**18
"""Bytes of a column that are read at once where rows are read in pieces; otherwise a row group of it is held."""
_PARQUET_END = 8
"""Bytes at the end of a Parquet file: the size of its footer, and a mark."""
_PARQUET_MARKS = (b"PAR1", b"PARE")
_PARQUET_LISTED = 3 * limits.COLUMNS
"""Columns, groups of them and row groups in a footer: reading stops there, with an error."""
_INDEX_LEVEL = re.compile(r"__index_level_[0-9]+__\Z")
_COMMENTS = (b"comment", b"doc", b"description")


def comment_of(field: Any) -> str:
    """The comment on a field of an Arrow schema, as Delta, Iceberg and BigQuery write it, or nothing."""
    noted = field.metadata or {}
    return next((noted[key].decode("utf-8", "replace") for key in _COMMENTS if key in noted), "")


def arrow_shape(path: Path, fields: Sequence[Any]) -> TableShape:
    """The shape of a file's table from its fields in Arrow.

    Raises:
        UnreadableTable: two columns have one name.
    """
    names = [field.name for field in fields]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise UnreadableTable(f"{path} has more than one column called {', '.join(map(repr, twice))}")
    types = tuple(str(field.type) for field in fields)
    return TableShape(path.stem, tuple(names), types, column_comments=tuple(map(comment_of, fields)))


@dataclass(frozen=True)
class ParquetEngine(FileEngine):
    """A Parquet file: the table is named after the file.

    Columns are read as pandas reads them, except that integers beside nulls are ``Int64`` (or ``UInt64``), never
    floats, and that an index with a name comes back as a column.
    """

    path: Path
    kind: str = "parquet"

    def shapes(self) -> list[TableShape]:
        """The table's names and types, from the head of the file."""
        with self._file() as file:
            limits.check_columns(self.path, file.metadata.num_columns)
            cells = file.metadata.num_rows * file.metadata.num_columns
            size = self.path.stat().st_size
            groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
            self._check_bytes(sum(group.total_byte_size for group in groups))
            most = limits.allowed(limits.FREE_PARQUET_CELLS, limits.PARQUET_CELLS_A_BYTE, size)
            if cells > most:
                raise UnreadableTable(
                    f"{self.path} has {cells:,} cells, and a file of this size has {most:,} at most: nearly all are "
                    "alike. Leave out columns of one value, or have DuckDB read it: open_corpus(…, engine='duckdb')"
                )
            fields = [field for field in file.schema_arrow if not _INDEX_LEVEL.match(field.name)]
            return [arrow_shape(self.path, fields)]

    def chunks(self, shape: TableShape) -> Iterator[Chunk]:
        """The rows in pieces, in dtypes that lose nothing of their meaning."""
        import pyarrow as pa  # type: ignore[import-untyped]

        with self._file() as file:
            metadata, is_text = file.metadata, (pa.types.is_string, pa.types.is_large_string)
            fields = [field for field in file.schema_arrow if any(is_kind(field.type) for is_kind in is_text)]
        texts = _in_dictionaries(metadata) & {field.name for field in fields} & {*shape.columns}
        read = 0
        options = {"metadata": metadata, "read_dictionary": sorted(texts), "buffer_size": PARQUET_BUFFER}
        with self._file(**options) as file:
            for batch in file.iter_batches(CHUNK_ROWS, columns=list(shape.columns)):
                # To Parquet "a" is also the beginning of the name "a.b".
                batch = batch.select(shape.columns)
                for name in texts:
                    column = batch.column(name)
                    if hasattr(column, "dictionary"):
                        read += _bytes_of_texts(column)
                        self._check_bytes(read)
                        batch = batch.set_column(shape.columns.index(name), name, column.dictionary_decode())
                yield frame_chunk(from_arrow(batch))

    def scan(self, table: str, columns: Sequence[str] | None = None, limit: int | None = None) -> pd.DataFrame:
        """The rows of the one table, in the file's order."""
        names = list(self.shapes()[0].columns if columns is None else columns)
        with self._file() as file:
            if limit is None:
                return from_arrow(file.read(columns=names).select(names))
            groups: list[int] = []
            rows = 0
            while len(groups) < file.num_row_groups and rows < limit:
                rows += file.metadata.row_group(len(groups)).num_rows
                groups.append(len(groups))
            return from_arrow(file.read_row_groups(groups, columns=names).select(names).slice(0, limit))

    def _check_bytes(self, read: int) -> None:
        way = "Leave such columns out, or have DuckDB read it: open_corpus(…, engine='duckdb')"
        limits.check_bytes(self.path, read, limits.FREE_PARQUET_BYTES, limits.PARQUET_BYTES_A_BYTE, way)

    @contextmanager
    def _file(self, **options: Any) -> Iterator[Any]:
        with reading_as("Parquet", self.path):
            import pyarrow.parquet as pq  # type: ignore[import-untyped]

            with self.path.open("rb") as opened:
                opened.seek(max(opened.seek(0, os.SEEK_END) - _PARQUET_END, 0))
                end = opened.read(_PARQUET_END)
            footer = int.from_bytes(end[:4], "little") if end[4:] in _PARQUET_MARKS else 0
            if footer > limits.PARQUET_FOOTER:
                raise UnreadableTable(
                    f"{self.path} says {footer / 2**20:,.0f} MB of its columns and row groups, and "
                    f"{limits.PARQUET_FOOTER / 2**20:,.0f} MB are the most: write it with fewer row groups or columns"
                )
            try:
                file = pq.ParquetFile(self.path, thrift_container_size_limit=_PARQUET_LISTED, **options)
            except OSError as error:
                if "Exceeded size limit" not in str(error):
                    raise
                raise UnreadableTable(
                    f"{self.path} has more than {_PARQUET_LISTED:,} columns or row groups; a table of a file has "
                    f"{limits.COLUMNS:,} columns at most: write it with fewer of them"
                ) from error
            with file:
                yield file


def _in_dictionaries(metadata: Any) -> set[str]:
    """The columns of a Parquet file whose texts may be too large: all of them may be one, which is in the file once."""
    most: Counter[str] = Counter()
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for position in range(group.num_columns):
            column = group.column(position)
            if column.physical_type == "BYTE_ARRAY":
                most[column.path_in_schema] += group.num_rows * column.total_uncompressed_size
    return {name for name, size in most.items() if size > limits.FREE_PARQUET_BYTES}


def _bytes_of_texts(column: Any) -> int:
    """How many bytes the texts of a column take, each as often as it is there."""
    import pyarrow.compute as pc

    size = pc.sum(pc.take(pc.binary_length(column.dictionary), column.indices)).as_py()
    return int(size or 0)


@dataclass(frozen=True)
class FeatherEngine(FileEngine):
    """A Feather file of version 2. Columns are read as those of a Parquet file."""

    path: Path
    kind: str = "feather"

    def shapes(self) -> list[TableShape]:
        """The table's names and types, from the head of the file."""
        with self._file() as file:
            limits.check_columns(self.path, len(file.schema))
            return [arrow_shape(self.path, list(file.schema))]

    def chunks(self, shape: TableShape) -> Iterator[Chunk]:
        """The rows in pieces, in dtypes that lose nothing of their meaning."""
        with self._file() as file:
            for batch in self._batches(file):
                yield frame_chunk(from_arrow(batch.select(list(shape.columns))))

    def scan(self, table: str, columns: Sequence[str] | None = None, limit: int | None = None) -> pd.DataFrame:
        """The rows of the one table, in the file's order."""
        import pyarrow as pa  # type: ignore[import-untyped]

        with self._file() as file:
            batches, rows = [], 0
            for batch in self._batches(file):
                batches.append(batch)
                rows += batch.num_rows
                if limit is not None and rows >= limit:
                    break
            part = pa.Table.from_batches(batches, file.schema)
            part = part if columns is None else part.select(list(columns))
            return from_arrow(part if limit is None else part.slice(0, limit))

    @contextmanager
    def _file(self) -> Iterator[Any]:
        with reading_as("Feather", self.path):
            import pyarrow as pa
            from pyarrow import ipc

            with pa.memory_map(str(self.path)) as mapped, ipc.open_file(mapped) as file:
                yield file

    def _batches(self, file: Any) -> Iterator[Any]:
        """Its parts, refused where they take far more memory than the size of the file lets expect."""
        taken = 0
        for number in range(file.num_record_batches):
            batch = file.get_batch(number)
            taken += max(batch.nbytes, batch.num_rows * batch.num_columns)
            limits.check_bytes(
                self.path, taken, limits.FREE_FEATHER_BYTES, limits.FEATHER_BYTES_A_BYTE, "Write it as Parquet"
            )
            yield batch
