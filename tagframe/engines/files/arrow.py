"""Parquet and Feather files, one table each, which Arrow reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from tagframe.engines.base import CHUNK_ROWS, Chunk, TableShape
from tagframe.engines.cells import from_arrow
from tagframe.engines.files import limits
from tagframe.engines.files.limits import FileEngine, reading_as

PARQUET_BUFFER = 2**18
"""Bytes of a column that are read at once where rows are read in pieces; otherwise a row group of it is held."""
_INDEX_LEVEL = re.compile(r"__index_level_[0-9]+__\Z")
_COMMENTS = (b"comment", b"doc", b"description")


def comment_of(field: Any) -> str:
    """The comment on a field of an Arrow schema, as Delta, Iceberg and BigQuery write it, or nothing."""
    noted = field.metadata or {}
    return next((noted[key].decode("utf-8", "replace") for key in _COMMENTS if key in noted), "")


@dataclass(frozen=True)
class ArrowEngine(FileEngine):
    """A Parquet file, or a Feather file of version 2: the table is named after the file.

    Columns are read as pandas reads them, except that integers beside nulls are ``Int64`` (or ``UInt64``), never
    floats, and that an index with a name comes back as a column.
    """

    path: Path
    kind: str = "parquet"

    def shapes(self) -> list[TableShape]:
        """The table's names and types, from the head of the file."""
        with reading_as(self.kind.title(), self.path):
            fields = [field for field in self._dataset().schema if not _INDEX_LEVEL.match(field.name)]
        limits.check_columns(self.path, len(fields))
        names = tuple(field.name for field in fields)
        types = tuple(str(field.type) for field in fields)
        return [TableShape(self.path.stem, names, types, column_comments=tuple(map(comment_of, fields)))]

    def chunks(self, shape: TableShape) -> Iterator[Chunk]:
        """The rows in pieces, in dtypes that lose nothing of their meaning."""
        with reading_as(self.kind.title(), self.path):
            read = 0
            for batch in self._batches(list(shape.columns)):
                read += max(batch.nbytes, batch.num_rows * batch.num_columns)
                way = "Leave out what is alike, or have DuckDB read it: open_corpus(…, engine='duckdb')"
                limits.check_bytes(self.path, read, way)
                yield Chunk.of(from_arrow(batch))

    def scan(self, table: str, columns: Sequence[str] | None = None, limit: int | None = None) -> pd.DataFrame:
        """The rows of the one table, in the file's order."""
        names = list(self.shapes()[0].columns if columns is None else columns)
        with reading_as(self.kind.title(), self.path):
            dataset = self._dataset()
            return from_arrow(dataset.to_table(names) if limit is None else dataset.head(limit, names))

    def _dataset(self) -> Any:
        import pyarrow.dataset as ds  # type: ignore[import-untyped]

        return ds.dataset(str(self.path), format=self.kind)

    def _batches(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        """One after the other; a dataset would read ahead."""
        if self.kind == "parquet":
            import pyarrow.parquet as pq  # type: ignore[import-untyped]

            with pq.ParquetFile(self.path, buffer_size=PARQUET_BUFFER) as file:
                for batch in file.iter_batches(CHUNK_ROWS, columns=names):
                    yield batch.select(names)  # to Parquet "a" is also the beginning of the name "a.b"
        else:
            with pa.memory_map(str(self.path)) as mapped, pa.ipc.open_file(mapped) as file:
                for number in range(file.num_record_batches):
                    yield file.get_batch(number).select(names)
