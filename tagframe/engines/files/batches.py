"""Rows of files in batches, for what is too large to be in memory at once."""

from __future__ import annotations

import glob
import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from tagframe.engines.cells import from_arrow, plain_dtypes
from tagframe.engines.files.arrow import PARQUET_BUFFER
from tagframe.engines.files.csv import CSVEngine, CSVRows
from tagframe.engines.files.limits import files_below, found_by, reading_as
from tagframe.errors import ColumnNotFound, InvalidArgument, SourceNotFound, UnreadableTable, did_you_mean, shown_path

BATCH_ROWS = 20_000
"""Rows of a batch; a prompt for each of them takes some kilobytes while an operator runs."""

_CSV, _PARQUET = (".csv", ".tsv"), (".parquet", ".pq")


def read_batches(
    source: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    rows: int = BATCH_ROWS,
) -> Iterator[pd.DataFrame]:
    """Read the rows of Parquet or CSV files as an iterator of frames, with no more than one batch in memory.

    Every operator takes such an iterator in place of a frame: ``tf.sem_filter(tf.read_batches("reviews/"), "…")``.

    Args:
        source: a file, a folder of files of one kind, or a pattern such as ``"reviews/*.parquet"``. Files are read in
            the order of their paths, as one table: a column that one of them lacks is null there. Names of folders such
            as ``year=2024`` are columns of Parquet files below them.
        columns: which columns to read, in this order; None for all.
        rows: how many rows a batch has; the last one may have fewer.

    Returns:
        Frames with the dtypes of :func:`tagframe.open_corpus`'s files: integers beside nulls are ``Int64``, numbers
        written with leading zeros stay text. The index continues from one batch to the next. CSV files are read twice,
        because the type of a column is known only after the last row.

    Raises:
        SourceNotFound: no such file, or none in the folder.
        ColumnNotFound: ``columns`` name no column.
        UnreadableTable: the files are of no known kind, of two kinds, damaged, or do not go together.
        InvalidArgument: another argument has a wrong value.
    """
    if isinstance(columns, str):
        raise InvalidArgument(f"columns must be a list of names; got the text {columns!r}: write [{columns!r}]")
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise InvalidArgument(f"rows must be the number of rows of a batch, at least 1; got {rows!r}")
    base, files = _files(source)
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1:
        raise UnreadableTable(f"{source} has Parquet and CSV files: read each kind by itself, such as {base}/*.parquet")
    read = _ParquetRows(base, files) if kinds == {"parquet"} else _CSVRows(base, files)
    for column in columns or ():
        if column not in read.columns:
            raise ColumnNotFound(f"no column {column!r} in {source}: {did_you_mean(str(column), read.columns)}")
    return _batches(read, list(read.columns if columns is None else columns), rows)


def _batches(read: _ParquetRows | _CSVRows, columns: list[str], rows: int) -> Iterator[pd.DataFrame]:
    empty = True
    for frame in regrouped(read.frames(columns, rows), rows):
        empty = False
        yield frame
    if empty:
        yield read.empty(columns)


def regrouped(frames: Iterator[pd.DataFrame], rows: int) -> Generator[pd.DataFrame, None, None]:
    """The same rows, in frames of this many, whose index continues from one to the next."""
    done = 0
    for frame in _of_rows(frames, rows):
        frame.index = pd.RangeIndex(done, done + len(frame))
        done += len(frame)
        yield frame


def _of_rows(frames: Iterable[pd.DataFrame], rows: int) -> Iterator[pd.DataFrame]:
    waiting: pd.DataFrame | None = None
    given = False
    for frame in frames:
        if waiting is None or not len(waiting):
            waiting = frame
        elif len(frame):
            waiting = _joined([waiting, frame])
        while len(waiting) >= rows:
            yield waiting if len(waiting) == rows else waiting.iloc[:rows].copy()
            given, waiting = True, waiting.iloc[rows:]
    if waiting is not None and (len(waiting) or not given):
        yield waiting.copy()


def _joined(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    if len(frames) == 1:
        return frames[0]
    data = {}
    for name in frames[0].columns:
        parts = [frame[name] for frame in frames]
        # Columns that are all null do not determine a dtype.
        filled = [part for part in parts if not part.isna().all()] or parts[:1]
        dtype = filled[0].dtype if len({str(part.dtype) for part in filled}) == 1 else None
        if dtype is not None and (isinstance(dtype, pd.api.extensions.ExtensionDtype) or dtype.kind in "OfmM"):
            parts = [part.astype(dtype) if part.dtype != dtype else part for part in parts]
        data[name] = pd.concat(parts, ignore_index=True)
    return pd.DataFrame(data)


def _files(source: str | os.PathLike[str]) -> tuple[Path, list[Path]]:
    """The folder that the files are below, and the files in order."""
    if not isinstance(source, str | os.PathLike):
        raise InvalidArgument(f"batches are read from a path; got a {type(source).__name__}")
    path = Path(source).expanduser()
    if path.is_file():
        return path.parent, [path]
    if path.is_dir():
        if (path / "_delta_log").is_dir() or (path / "metadata").is_dir():
            raise UnreadableTable(
                f"{path} is a Delta or Iceberg table, so some of its files may be outdated: open it with tf.open_corpus"
            )
        matches, base = files_below(path), path
    else:
        if not glob.has_magic(str(path)):
            raise SourceNotFound(f"there is no file or folder {shown_path(path)}")
        base, matches = found_by(str(path))
    files = [file for file in matches if _kind(file) is not None and file.is_file()]
    if not files:
        raise SourceNotFound(f"no Parquet or CSV file in {shown_path(source)}; looked for {', '.join(_PARQUET + _CSV)}")
    return base, files


def _kind(file: Path) -> str | None:
    suffix = file.suffix.lower()
    return "parquet" if suffix in _PARQUET else "csv" if suffix in _CSV else None


class _ParquetRows:
    """Parquet files as one table."""

    def __init__(self, base: Path, files: Sequence[Path]) -> None:
        with reading_as("Parquet", base):
            import pyarrow.dataset as ds

            with reading_as("Parquet", files[0]):  # the one that tells the schema, at first
                dataset = ds.dataset(
                    [str(file) for file in files],
                    format=ds.ParquetFileFormat(),
                    partitioning=ds.HivePartitioning.discover(),
                    partition_base_dir=str(base),
                )
            schemas = [dataset.schema]
            for part in dataset.get_fragments():
                with reading_as("Parquet", Path(part.path)):
                    schemas.append(part.physical_schema)
            whole = pa.unify_schemas(schemas, promote_options="permissive")
            self._dataset = dataset.replace_schema(whole.remove_metadata())
        self.columns = [str(name) for name in self._dataset.schema.names]
        twice = sorted({name for name in self.columns if self.columns.count(name) > 1})
        if twice:
            raise UnreadableTable(f"{base} has more than one column called {', '.join(map(repr, twice))}")

    def frames(self, columns: list[str], rows: int) -> Iterator[pd.DataFrame]:
        """The rows in these columns."""
        import pyarrow.dataset as ds
        import pyarrow.parquet as pq

        schema = pa.schema([self._dataset.schema.field(name) for name in columns])
        for part in self._dataset.get_fragments():
            with reading_as("Parquet", Path(part.path)):
                folders = ds.get_partition_keys(part.partition_expression)
                # The dataset's own scanner reads ahead of a slow consumer, without a bound.
                with pq.ParquetFile(part.path, pre_buffer=False, buffer_size=PARQUET_BUFFER) as file:
                    for batch in file.iter_batches(rows, columns=columns, use_threads=False):
                        cells = [_typed(batch, field, folders.get(field.name)) for field in schema]
                        yield from_arrow(pa.table(cells, schema=schema))
                        # Otherwise what decoding has taken grows to several times a batch.
                        pa.default_memory_pool().release_unused()

    def empty(self, columns: list[str]) -> pd.DataFrame:
        fields = [self._dataset.schema.field(name) for name in columns]
        return from_arrow(pa.schema(fields).empty_table())


def _typed(batch: pa.RecordBatch, field: pa.Field, of_folder: Any) -> pa.Array:
    """A column of a file as the table has it; a file may lack it, and its folder may tell it."""
    if field.name in batch.schema.names:
        return batch.column(field.name).cast(field.type)
    return pa.repeat(pa.scalar(of_folder, field.type), len(batch))


class _CSVRows(CSVRows):
    """CSV files as one table."""

    def __init__(self, base: Path, files: Sequence[Path]) -> None:
        partitioned = next((file for file in files if any("=" in part for part in file.relative_to(base).parts)), None)
        if partitioned is not None:
            raise UnreadableTable(
                f"{partitioned} is in a folder whose name holds a column's value. Only Parquet files may be in such "
                "folders here; tf.open_corpus reads such CSV files with DuckDB"
            )
        super().__init__([*map(CSVEngine, files)])

    def frames(self, columns: list[str], rows: int) -> Iterator[pd.DataFrame]:
        for engine in self.engines:
            yield from map(plain_dtypes, self.typed(engine, columns, rows))
