"""CSV and Parquet files: one table each."""

from __future__ import annotations

import codecs
import csv
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tagframe.engines.base import CHUNK_ROWS, Chunk, Stamp, TableShape, file_stamp
from tagframe.engines.frames import frame_chunk
from tagframe.engines.rows_only import RowsOnly
from tagframe.errors import UnreadableTable

_DELIMITERS = (",", ";", "\t", "|")
_SNIFFED_BYTES = 2**18
_SNIFFED_ROWS = 200
_BLOCK = 2**20
PADDED = re.compile(r"\s*[+-]?0[0-9]")
_MAYBE_PADDED = re.compile(rb"(?:^|[,;\t|\"\n\r ])[+-]?0[0-9]")
_INDEX_LEVEL = re.compile(r"__index_level_[0-9]+__\Z")
_TEXT = pd.Series(["text"]).dtype


class _OneTable(RowsOnly):
    """A file with one table, named after it."""

    path: Path

    @property
    def identity(self) -> str:
        """The file."""
        return str(self.path)

    def fingerprint(self, known: Stamp | None = None) -> Stamp:
        """Size, time and content of the file."""
        return file_stamp([self.path], known)


@dataclass(frozen=True)
class CSVEngine(_OneTable):
    """A delimited text file: the table is named after the file.

    The encoding is UTF-8 (with a byte order mark or without), UTF-16 with one, else Windows-1252. The delimiter is a
    comma, semicolon, tab or bar, whichever splits the first rows most evenly. Empty cells, and pandas' words for
    missing values in them ("NA", "null", …), are nulls. Columns of whole numbers are ``int64`` (``Int64`` beside
    nulls), other numbers ``float64``; numbers written with leading zeros ("00501") stay text, as the zeros would be
    lost. A header that is there twice is read as pandas reads it, ``x`` and ``x.1``.
    """

    path: Path
    kind: str = "csv"

    def shapes(self) -> list[TableShape]:
        """The table's names and types, from the head of the file."""
        with csv_errors(self.path):
            header = pd.read_csv(self.path, nrows=0, **csv_options(self.path))
        return [TableShape(self.path.stem, tuple(map(str, header.columns)), ("",) * header.shape[1])]

    def chunks(self, shape: TableShape) -> Iterator[Chunk]:
        """The rows in pieces, in dtypes that lose nothing of their meaning."""
        with (
            csv_errors(self.path),
            pd.read_csv(
                self.path,
                chunksize=CHUNK_ROWS,
                low_memory=False,
                dtype_backend="numpy_nullable",
                **csv_options(self.path),
            ) as reader,
        ):
            for frame in reader:
                yield frame_chunk(frame)

    def scan(self, table: str, columns: Sequence[str] | None = None, limit: int | None = None) -> pd.DataFrame:
        """The rows of the one table, in the file's order."""
        options: dict[str, Any] = {"nrows": limit, "low_memory": False, **csv_options(self.path)}
        with csv_errors(self.path):
            frame = pd.read_csv(self.path, dtype_backend="numpy_nullable", **options)
            frame = frame if columns is None else frame[list(columns)]
            padded = self._padded(frame, options)
        plain = {str(name): padded[name] if name in padded else plain_dtype(frame[name]) for name in frame.columns}
        return pd.DataFrame(plain, index=frame.index)

    def _padded(self, frame: pd.DataFrame, options: dict[str, Any]) -> pd.DataFrame:
        """The columns that were read as numbers although some of their text starts with a zero, as text."""
        numbers = [name for name in frame.columns if pd.api.types.is_numeric_dtype(frame[name].dtype)]
        if not numbers or not (options["encoding"] == "utf-16" or self._may_be_padded()):
            return frame.iloc[:, :0]
        text: pd.DataFrame = pd.read_csv(self.path, dtype=str, **options)
        padded = [name for name in numbers if any(map(PADDED.match, text[name].dropna()))]
        return text[padded]

    def _may_be_padded(self) -> bool:
        """Whether any cell may start with a zero: a look at the bytes that spares most files a second reading."""
        tail = b""
        for block in _blocks(self.path):
            if _MAYBE_PADDED.search(tail + block):
                return True
            tail = block[-4:]
        return False


def csv_options(path: Path) -> dict[str, Any]:
    """How pandas has to read the file: its delimiter and its encoding.

    Raises:
        UnreadableTable: it is no text.
    """
    with path.open("rb") as file:
        start = file.read(_SNIFFED_BYTES)
    encoding = _encoding(path, start)
    if encoding != "utf-16" and b"\x00" in start:
        raise UnreadableTable(f"{path} is not a text file: it holds zero bytes")
    text = codecs.getincrementaldecoder(encoding)("replace").decode(start)
    delimiter = "\t" if path.suffix.lower() == ".tsv" else sniff_delimiter(text)
    # Without index_col=False pandas would take the first column for an index where rows end with a delimiter.
    return {"sep": delimiter, "encoding": encoding, "index_col": False}


@contextmanager
def csv_errors(path: Path) -> Iterator[None]:
    """A block that reads the file: what fails there is an :class:`UnreadableTable`."""
    try:
        with warnings.catch_warnings():
            # pandas only warns where rows are longer than the header, and drops the rest of them.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield
    except UnreadableTable:
        raise
    except (ValueError, OSError, csv.Error, pd.errors.ParserWarning) as error:
        raise UnreadableTable(f"{path} cannot be read as CSV: {str(error).strip()}") from error


def sniff_delimiter(text: str) -> str:
    r"""The delimiter that splits the first rows of ``text`` most evenly; a comma where none splits them.

    >>> sniff_delimiter("name;price\nbread;1,50\nmilk;0,90\n")
    ';'
    """
    lines = text.splitlines(keepends=True)
    whole = lines[:-1] if len(lines) > 1 and not lines[-1].endswith(("\n", "\r")) else lines
    best, best_score = ",", (0.0, 0)
    for delimiter in _DELIMITERS:
        try:
            rows = csv.reader(whole, delimiter=delimiter)
            widths = [len(row) for row, _ in zip(rows, range(_SNIFFED_ROWS), strict=False) if row]
        except csv.Error:
            continue
        if not widths or widths[0] < 2:
            continue
        even = Counter(widths)[widths[0]] / len(widths)
        if (even, widths[0]) > best_score:
            best, best_score = delimiter, (even, widths[0])
    return best


def _encoding(path: Path, start: bytes) -> str:
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for block in _blocks(path):
            decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        # Windows-1252 has no character for five bytes; Latin-1 has one for each.
        undefined = any(byte in block for block in _blocks(path) for byte in b"\x81\x8d\x8f\x90\x9d")
        return "latin-1" if undefined else "cp1252"
    return "utf-8-sig"


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block


def plain_dtype(column: pd.Series) -> pd.Series:
    """From the nullable dtypes, in which reading loses nothing, to those that users expect, where these can hold it."""
    dtype: Any = column.dtype
    if isinstance(dtype, pd.StringDtype):
        return pd.Series([None if cell is pd.NA else cell for cell in column], index=column.index, dtype=_TEXT)
    if pd.api.types.is_float_dtype(dtype):
        return column.astype("float64")
    if column.isna().all():
        return pd.Series([None] * len(column), index=column.index, dtype=object)
    return column if column.isna().any() else column.astype(dtype.numpy_dtype)


@dataclass(frozen=True)
class ParquetEngine(_OneTable):
    """A Parquet file: the table is named after the file.

    Columns are read as pandas reads them, save that integers beside nulls are ``Int64`` (or ``UInt64``), never floats,
    and that an index with a name comes back as a column.
    """

    path: Path
    kind: str = "parquet"

    def shapes(self) -> list[TableShape]:
        """The table's names and types, from the head of the file."""
        with self._file() as file:
            fields = [field for field in file.schema_arrow if not _INDEX_LEVEL.match(field.name)]
            names = [field.name for field in fields]
            twice = sorted(name for name, count in Counter(names).items() if count > 1)
            if twice:
                raise UnreadableTable(f"{self.path} has more than one column called {', '.join(map(repr, twice))}")
            return [TableShape(self.path.stem, tuple(names), tuple(str(field.type) for field in fields))]

    def chunks(self, shape: TableShape) -> Iterator[Chunk]:
        """The rows in pieces, in dtypes that lose nothing of their meaning."""
        with self._file() as file:
            for batch in file.iter_batches(CHUNK_ROWS, columns=list(shape.columns)):
                # To Parquet "a" is also the beginning of the name "a.b".
                yield frame_chunk(from_arrow(batch.select(shape.columns)))

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

    @contextmanager
    def _file(self) -> Iterator[Any]:
        try:
            # pyarrow refuses to be imported beside a numpy that is older than it likes.
            import pyarrow.parquet as pq  # type: ignore[import-untyped]

            with pq.ParquetFile(self.path) as file:
                yield file
        except UnreadableTable:
            raise
        except (ImportError, OSError, ValueError, LookupError, TypeError, NotImplementedError) as error:
            # Arrow's own exceptions inherit from these.
            raise UnreadableTable(f"{self.path} cannot be read as Parquet: {error}") from error


def from_arrow(table: Any) -> pd.DataFrame:
    """Arrow rows as a frame; integers beside nulls are ``Int64``, never floats."""
    import pyarrow as pa  # type: ignore[import-untyped]

    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True, integer_object_nulls=True)
    for field, position in zip(table.schema, range(frame.shape[1]), strict=True):
        if pa.types.is_integer(field.type) and frame.iloc[:, position].dtype == object:
            width = pd.UInt64Dtype() if pa.types.is_unsigned_integer(field.type) else pd.Int64Dtype()
            frame[field.name] = frame.iloc[:, position].astype(width)
    return frame
