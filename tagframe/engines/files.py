"""CSV and Parquet files, one table each, and workbooks, a table for each sheet."""

from __future__ import annotations

import ast
import codecs
import csv
import fnmatch
import io
import os
import re
import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tagframe.engines import file_limits as limits
from tagframe.engines.base import CHUNK_ROWS, Chunk, Stamp, TableShape, frame_chunk
from tagframe.engines.column_formats import AMBIGUOUS, Column, Formats, Order, formats_of, is_known
from tagframe.engines.file_limits import DAMAGED, blocks, ending_of, file_stamp, is_packed, opened, stem_of
from tagframe.engines.header import LOOKED_AT, are_names, say_titles, title_rows, title_text
from tagframe.engines.sqlite.statement import RowsOnly
from tagframe.engines.workbooks import workbook_rows
from tagframe.errors import (
    ColumnFormatWarning,
    InvalidArgument,
    NumbersAsTextWarning,
    TagframeError,
    UnreadableTable,
    did_you_mean,
    warn,
)

CSV_OPTIONS = frozenset(
    "sep delimiter encoding encoding_errors decimal thousands quotechar quoting doublequote escapechar comment "
    "skiprows skipinitialspace na_values keep_default_na true_values false_values parse_dates dayfirst date_format "
    "on_bad_lines".split()
)
"""Options of :func:`pandas.read_csv` that say how a file is written; the other options would change the table."""
_DATES = ("parse_dates", "dayfirst", "date_format")
_DATE = re.compile(r"\s*[0-9]{1,4}([./-])[0-9]{1,2}\1[0-9]{1,4}(?![0-9])")
_SEPARATORS = ("decimal", "thousands")
_MAY_BE_WRITTEN = (
    rb"[0-9][ \xa0]?(?:[%$\x80-\xff]|[A-Z]{3}(?![A-Za-z]))|(?<![A-Z])(?:[A-Z]{3} |[$\x80-\xff] ?|\( ?[-$]?)-?[0-9]"
    rb"|[0-9]'[0-9]{3}|[0-9] [0-9]{3}(?![0-9])|[0-9]\.[0-9]{3}\.[0-9]{3}"
    rb"|(?<![0-9])[0-9]{1,2}([./-])[0-9]{1,2}\1[0-9]{2}"
)
"""Bytes without which no number of a column has a format of its own, nor a date its year last."""
_COMMA, _QUOTED_COMMA = rb"[0-9],[0-9]", rb'"[^"\n]{0,40}[0-9],[0-9]'
_DELIMITERS = (",", ";", "\t", "|")
_SNIFFED_BYTES = 2**18
_SNIFFED_ROWS = 200
_HEAD_ROWS = 1_000
PARQUET_BUFFER = 2**18
"""Bytes of a column that are read at once where rows are read in pieces; otherwise a row group of it is held."""
_PARQUET_END = 8
"""Bytes at the end of a Parquet file: the size of its footer, and a mark."""
_PARQUET_MARKS = (b"PAR1", b"PARE")
_PARQUET_LISTED = 3 * limits.COLUMNS
"""Columns, groups of them and row groups in a footer: reading stops there, with an error."""
PADDED = re.compile(r"\s*[+-]?0[0-9]")
_MAYBE_PADDED = re.compile(rb"(?:^|[,;\t|\"\n\r ])[+-]?0[0-9]")
_INDEX_LEVEL = re.compile(r"__index_level_[0-9]+__\Z")
_TEXT = pd.Series(["text"]).dtype


class FileEngine(RowsOnly):
    """A file whose tables are read whole."""

    path: Path

    def fingerprint(self, known: Stamp | None = None) -> Stamp:
        """Size, time and content of the file."""
        return file_stamp([self.path], known)


class WholeFileEngine(FileEngine):
    """A file that is read as a whole, whatever is wanted of it."""

    @abstractmethod
    def frame(self, table: str) -> pd.DataFrame:
        """All rows of a table, in the file's order."""

    def scan(self, table: str, columns: Sequence[str] | None = None, limit: int | None = None) -> pd.DataFrame:
        """The rows of a table, in the file's order."""
        frame = self.frame(table)
        frame = frame if columns is None else frame[list(columns)]
        return frame if limit is None else frame.head(limit)


@dataclass(frozen=True)
class CSVEngine(FileEngine):
    """A delimited text file: the table is named after the file.

    The encoding is UTF-8 (with a byte order mark or without), UTF-16 with one, else Windows-1252. The delimiter is a
    comma, semicolon, tab or bar, whichever splits the first rows most evenly. Empty cells, and pandas' words for
    missing values in them ("NA", "null", …), are nulls. Columns of whole numbers are ``int64`` (``Int64`` beside
    nulls), other numbers ``float64``; numbers written with leading zeros ("00501") stay text, as the zeros would be
    lost. A repeated header is read as pandas reads it, ``x`` and ``x.1``.

    Attributes:
        path: the file.
        told: options of :func:`pandas.read_csv` that its user gave, of :data:`CSV_OPTIONS`, as the text of a
            dictionary; "" for none. If they tell how dates are written but not in which columns, these are the columns
            whose first cells all look like dates.
    """

    path: Path
    kind: str = "csv"
    told: str = ""

    def fingerprint(self, known: Stamp | None = None) -> Stamp:
        """Size, time and content of the file, and how it is read."""
        how = f" {self.told}" if self.told else ""
        if known is None or how != known.sha256[64:]:
            known = None
        stamp = super().fingerprint(known)
        return stamp if stamp is known else replace(stamp, sha256=stamp.sha256 + how)

    def shapes(self) -> list[TableShape]:
        """The table's names and types, from the head of the file."""
        with csv_errors(self.path):
            options = self._options(dates=False)
            header = pd.read_csv(self.path, nrows=0, **options)
        names = tuple(map(str, header.columns))
        return [TableShape(stem_of(self.path), names, ("",) * len(names), comment=self._title(options))]

    def chunks(self, shape: TableShape) -> Iterator[Chunk]:
        """The rows in pieces, in dtypes that lose nothing of their meaning."""
        self._say_formats()
        for frame in self.frames(CHUNK_ROWS):
            yield frame_chunk(frame)

    def frames(self, rows: int, **options: Any) -> Iterator[pd.DataFrame]:
        """Frames of this many rows, in nullable dtypes, numbers and dates as :attr:`formats` says.

        Args:
            rows: of a frame.
            options: more of those of :func:`pandas.read_csv`.
        """
        with csv_errors(self.path):
            text = dict.fromkeys(self.formats.as_text, str)
            for frame in csv_batches(
                self.path, rows, dtype=text, dtype_backend="numpy_nullable", **{**self._options(), **options}
            ):
                yield self.formats.typed(frame)

    def scan(self, table: str, columns: Sequence[str] | None = None, limit: int | None = None) -> pd.DataFrame:
        """The rows of the one table, in the file's order."""
        with csv_errors(self.path):
            options: dict[str, Any] = {"nrows": limit, "low_memory": False, **self._options()}
            formats = self.formats
            text = dict.fromkeys(formats.as_text, str)
            frame = pd.read_csv(self.path, dtype=text, dtype_backend="numpy_nullable", **options)
            frame = frame if columns is None else frame[list(columns)]
            padded = self._padded(frame.drop(columns=list(formats.as_text), errors="ignore"), options)
            frame = formats.typed(frame)
        plain = {str(name): padded[name] if name in padded else plain_dtype(frame[name]) for name in frame.columns}
        return pd.DataFrame(plain, index=frame.index)

    @property
    def formats(self) -> Formats:
        """How numbers and dates of the columns are written: decided over all rows, once for each state of the file."""
        stat = self.path.stat()
        return _formats_of(self, stat.st_size, stat.st_mtime_ns)

    @property
    def date_orders(self) -> Mapping[str, Order]:
        """Columns of dates that stay text, and whether day or month comes first in them."""
        return {name: order for name, order in self.formats.orders.items() if order is not None}

    def find_formats(self) -> Formats:
        """:attr:`formats`, from the file."""
        told = {name: value for name, value in self._told.items() if name in (*_SEPARATORS, *_DATES)}
        if not is_known(told):
            told = {name: value for name, value in told.items() if name not in _SEPARATORS}
        if "date_format" in told:
            told = {name: value for name, value in told.items() if name not in _DATES}
        with csv_errors(self.path):
            options = self._options(dates=False)
            if not told and not self._may_be_written(options["sep"], options["encoding"]):
                return Formats()
            head = pd.read_csv(self.path, dtype=str, nrows=_HEAD_ROWS, **options)
            names = list(map(str, head.columns))
            columns = {name: Column() for name in names}
            _see(columns, head)
            still = [position for position, name in enumerate(names) if columns[name].is_open]
            if len(head) == _HEAD_ROWS and still:
                for frame in csv_batches(self.path, CHUNK_ROWS, dtype=str, usecols=still, **options):
                    _see(columns, frame.set_axis([names[position] for position in still], axis="columns"))
                    if not any(columns[names[position]].is_open for position in still):
                        break
        if isinstance(dates := told.get("parse_dates"), list | tuple):
            told["parse_dates"] = [names[one] if isinstance(one, int) and one < len(names) else one for one in dates]
        return formats_of(columns, told)

    def _padded(self, frame: pd.DataFrame, options: dict[str, Any]) -> pd.DataFrame:
        """The columns that were read as numbers although some of their text starts with a zero, as text."""
        numbers = [name for name in frame.columns if pd.api.types.is_numeric_dtype(frame[name].dtype)]
        if not numbers or not (options["encoding"] == "utf-16" or self._may_be_padded()):
            return frame.iloc[:, :0]
        plain = {name: value for name, value in options.items() if name not in _DATES}
        text: pd.DataFrame = pd.read_csv(self.path, dtype=str, **plain)
        padded = [name for name in numbers if any(map(PADDED.match, text[name].dropna()))]
        return text[padded]

    @property
    def _told(self) -> dict[str, Any]:
        """The options for this file."""
        told: dict[str, Any] = ast.literal_eval(self.told or "{}")
        if not _is_by_pattern(told):
            return told
        patterns = sorted(told, key=lambda pattern: pattern == "*")  # which is for the others, wherever it stands
        return dict(next((told[pattern] for pattern in patterns if is_of(self.path, pattern)), {}))

    def _title(self, options: dict[str, Any]) -> str:
        """What stands above the names of the columns."""
        rows = options.get("skiprows", 0)
        if not isinstance(rows, int) or not rows:
            return ""
        with opened(self.path) as raw:
            head = raw.read(_SNIFFED_BYTES).decode(options["encoding"], "replace")
        return title_text(_first_rows(head, options["sep"])[:rows])

    def _check_width(self, options: dict[str, Any]) -> None:
        """Refuse a file whose first row, or second one, has too many columns, before pandas makes them."""
        delimiter = options["sep"]
        if len(delimiter) != 1:
            return  # a regular expression, of its user's own
        written = {name: options[name] for name in ("quotechar", "quoting", "escapechar") if name in options}
        left, delimiters = limits.CSV_FIRST_ROWS, 0
        with (
            opened(self.path) as raw,
            io.TextIOWrapper(raw, encoding=options["encoding"], errors="replace", newline="") as file,
        ):

            def lines() -> Iterator[str]:
                nonlocal left, delimiters
                while line := file.readline(left + 1):
                    left, delimiters = left - len(line), delimiters + line.count(delimiter)
                    if left < 0:
                        raise UnreadableTable(
                            f"the first two rows of {self.path} have more than {limits.CSV_FIRST_ROWS:,} characters, "
                            f"and a table of a file has {limits.COLUMNS:,} columns at most: check that the first row "
                            "names the columns, and that quotes are closed"
                        )
                    yield line

            try:
                rows = csv.reader(lines(), delimiter=delimiter, **written)
                limits.check_names(self.path, next(rows, []))
                limits.check_columns(self.path, len(next(rows, [])))
            except csv.Error:  # of a long text in a cell it tells no columns
                limits.check_columns(self.path, delimiters + 1)

    def _options(self, *, dates: bool = True) -> dict[str, Any]:
        """How pandas has to read the file; separators and dates that :attr:`formats` has are left to it."""
        told = self._told
        found = {**csv_options(self.path, told.get("encoding"), told.pop("delimiter", None)), **told}
        self._check_width(found)
        if is_known(told):
            found = {name: value for name, value in found.items() if name not in _SEPARATORS}
        plain = {name: value for name, value in found.items() if name not in _DATES}
        if not dates or "date_format" not in told:
            return plain
        if "parse_dates" not in told:
            head = pd.read_csv(self.path, dtype=str, nrows=_SNIFFED_ROWS, **plain)
            cells = {name: head[name].dropna() for name in head.columns}
            found["parse_dates"] = [name for name, seen in cells.items() if len(seen) and all(map(_DATE.match, seen))]
        return found

    def _say_formats(self) -> None:
        """Say which columns are numbers in a format that was not given, and which are not as they look."""
        self._say_header()
        formats, told = self.formats, self._told
        given = [f"{name}={told[name]!r}" for name in _SEPARATORS if name in told]
        asked = told.get("decimal") or ("," if told.get("thousands") == "." else "."), told.get("thousands") or ""
        read = [
            f"{name!r} ({one})"
            for name, one in formats.numbers.items()
            if one.unit or not given or (one.decimal, one.thousands) != asked
        ]
        if read:
            warn(
                f"{self.path}: these columns of text are read as numbers: {', '.join(read)}"
                + ("; 12 % is 12" if any(one.unit == "%" for one in formats.numbers.values()) else ""),
                ColumnFormatWarning,
            )
        for name, why in formats.mixed.items():
            way = (
                f". csv={{{self.path.name!r}: {{'decimal': ','}}}} reads decimal commas (in the shell: --csv decimal=,)"
            )
            warn(
                f"{self.path}: the numbers of column {name!r} stay text, because {why}{way * (why == AMBIGUOUS)}",
                NumbersAsTextWarning,
            )
        if formats.unfit:
            warn(
                f"{self.path}: {_listed(formats.unfit)} {'is' if len(formats.unfit) == 1 else 'are'} read with decimal "
                f"points, because not all cells have the format of csv= ({', '.join(given)})",
                ColumnFormatWarning,
            )
        if formats.thousands:
            warn(
                f"{self.path}: the points in {_listed(formats.thousands)} are read as decimal points, though other "
                f"columns of the file have decimal commas; csv={{{self.path.name!r}: {{'decimal': ',', "
                "'thousands': '.'}} reads them as thousands",
                ColumnFormatWarning,
            )
        for name, order in formats.orders.items():
            if name in formats.dates:
                found = "read month first, as nothing says otherwise; csv={'dayfirst': True} reads them day first"
            elif order is None:
                found = "with the day first in some cells and the month first in others: they stay text"
            else:
                way = f"csv={{{self.path.name!r}: {{'dayfirst': {order == 'day first'}}}}}"
                found = f"with the {order}: they stay text; {way} reads them as dates"
            warn(f"{self.path}: column {name!r} has dates {found}", ColumnFormatWarning)
        if formats.not_dates:
            stay = "stays" if len(formats.not_dates) == 1 else "stay"
            warn(
                f"{self.path}: {_listed(formats.not_dates)} {stay} text, because not all cells are dates",
                ColumnFormatWarning,
            )

    def _say_header(self) -> None:
        """Say which row names the columns, if it is not the first, or if most columns have no name."""
        names = self.shapes()[0].columns
        unnamed = sum(name.startswith("Unnamed: ") for name in names)
        lines = 0 if "skiprows" in self._told else self._options(dates=False).get("skiprows", 0)
        if lines:
            say_titles(self.path, lines, f"csv={{{self.path.name!r}: {{'skiprows': 0}}}} reads all as rows")
        elif unnamed and unnamed >= len(names) / 2:
            warn(
                f"{self.path}: the first row names {len(names) - unnamed} of {len(names)} columns. If the names are in "
                f"a row below, csv={{{self.path.name!r}: {{'skiprows': 2}}}} leaves out two rows before it",
                ColumnFormatWarning,
            )

    def _may_be_written(self, delimiter: str, encoding: str) -> bool:
        """Whether any number may have a format of its own: as for :meth:`_may_be_padded`."""
        if encoding.lower().startswith(("utf-16", "utf-32")):
            return True
        wanted = re.compile(b"|".join((_MAY_BE_WRITTEN, _QUOTED_COMMA if delimiter == "," else _COMMA)))
        return self._has(wanted, 64)

    def _may_be_padded(self) -> bool:
        """Whether any cell may start with a zero: this check of the bytes saves most files a second pass."""
        return self._has(_MAYBE_PADDED, 4)

    def _has(self, wanted: re.Pattern[bytes], longest: int) -> bool:
        """Whether the bytes match, also across blocks; ``longest`` is the length that a match may have."""
        tail = b""
        for block in blocks(self.path):
            if wanted.search(tail + block):
                return True
            tail = block[-longest:]
        return False


@lru_cache(maxsize=4096)
def _formats_of(engine: CSVEngine, size: int, mtime_ns: int) -> Formats:
    return engine.find_formats()


def _see(columns: Mapping[str, Column], frame: pd.DataFrame) -> None:
    for position, name in enumerate(map(str, frame.columns)):
        if columns[name].is_open:
            columns[name].see(frame.iloc[:, position].dropna().unique())


def _listed(names: Sequence[str]) -> str:
    return ("column " if len(names) == 1 else "columns ") + ", ".join(map(repr, names))


def told_of_csv(csv: Mapping[str, Any] | None) -> str:
    """The user's options for CSV files, checked, in the form of :attr:`CSVEngine.told`.

    Raises:
        InvalidArgument: an option that pandas does not have, or that would change the table.
    """
    if csv is None:
        return ""
    if not isinstance(csv, Mapping):
        raise InvalidArgument(f"csv= must be a mapping such as {{'decimal': ','}}; got {csv!r}")
    plain = {name: dict(value) if isinstance(value, Mapping) else value for name, value in csv.items()}
    for options in plain.values() if _is_by_pattern(plain) else [plain]:
        for name in options:
            if name not in CSV_OPTIONS:
                raise InvalidArgument(
                    f"csv= takes the options of pandas.read_csv for a file's format, or these by file or pattern "
                    f"({{'de_*.csv': {{'decimal': ','}}}}): no option {name!r} in "
                    + did_you_mean(str(name), sorted(CSV_OPTIONS))
                )
    try:
        if ast.literal_eval(repr(plain)) == plain:
            return repr(plain if _is_by_pattern(plain) else dict(sorted(plain.items())))
    except (ValueError, SyntaxError):
        pass  # a function, say, which no catalogue can remember
    raise InvalidArgument(f"values in csv= must be texts, numbers, or lists or dictionaries of them; got {csv!r}")


def _is_by_pattern(told: Mapping[str, Any]) -> bool:
    """Whether options are given by file: then no name is that of an option."""
    return bool(told) and all(isinstance(one, dict) for one in told.values()) and not CSV_OPTIONS.issuperset(told)


def is_of(path: Path, pattern: str) -> bool:
    """Whether a pattern such as ``"de_*.csv"`` or ``"germany/*"`` is for a file: of its name, or the end of its path.

    >>> is_of(Path("sales/de_2024.csv"), "de_*.csv")
    True
    """
    return fnmatch.fnmatch(path.name, pattern) or fnmatch.fnmatch(path.as_posix(), f"*/{pattern}")


def patterns_of(told: str) -> list[str]:
    """The patterns for which options were given, except the one for all other files."""
    options = ast.literal_eval(told or "{}")
    return [pattern for pattern in options if pattern != "*"] if _is_by_pattern(options) else []


def told_before(stamp: Stamp | None) -> str:
    """The options with which a CSV file was read last, from its stamp."""
    return "" if stamp is None else stamp.sha256[65:]


def csv_options(path: Path, encoding: str | None = None, delimiter: str | None = None) -> dict[str, Any]:
    """How pandas has to read the file: its delimiter and its encoding, if they are not given.

    Raises:
        UnreadableTable: it is not a text file.
    """
    with opened(path) as file:
        start = file.read(_SNIFFED_BYTES)
    if is_packed(path):
        for _ in blocks(path):
            pass
    encoding = encoding or _encoding(path, start)
    if not encoding.lower().startswith(("utf-16", "utf-32")) and b"\x00" in start:
        raise UnreadableTable(f"{path} is not a text file: it holds zero bytes")
    text = codecs.getincrementaldecoder(encoding)("replace").decode(start)
    delimiter = delimiter or ("\t" if ending_of(path) == ".tsv" else sniff_delimiter(text))
    # Without index_col=False pandas would take the first column for an index where rows end with a delimiter.
    options = {"sep": delimiter, "encoding": encoding, "index_col": False}
    above = title_rows(_first_rows(text, delimiter))
    return {**options, "skiprows": above} if above else options


@contextmanager
def csv_errors(path: Path) -> Iterator[None]:
    """A block that reads the file: its errors become :class:`UnreadableTable`."""
    try:
        with warnings.catch_warnings():
            # pandas only warns where rows are longer than the header, and drops the rest of them.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield
    except UnreadableTable:
        raise
    except (ValueError, TypeError, LookupError, *DAMAGED, csv.Error, pd.errors.ParserWarning) as error:
        raise UnreadableTable(f"{path} cannot be read as CSV: {str(error).strip()}") from error


def csv_batches(path: Path, rows: int, **options: Any) -> Iterator[pd.DataFrame]:
    """Frames of this many rows; ``options`` are those of :func:`pandas.read_csv`."""
    with csv_errors(path), pd.read_csv(path, chunksize=rows, low_memory=False, **options) as reader:
        yield from reader


def sniff_delimiter(text: str) -> str:
    r"""The delimiter that splits the first rows of ``text`` most evenly; a comma if none splits them.

    >>> sniff_delimiter("name;price\nbread;1,50\nmilk;0,90\n")
    ';'
    """
    best, best_score = ",", (0.0, False, 0)
    for delimiter in _DELIMITERS:
        rows = _first_rows(text, delimiter)
        above = title_rows(rows)
        widths = [len(row) for row in rows[above:] if row]
        if not widths or widths[0] < 2:
            continue
        score = widths.count(widths[0]) / len(widths), not above, widths[0]
        if score > best_score:
            best, best_score = delimiter, score
    return best


def is_delimited(path: Path) -> bool:
    """Whether a text is a table: its rows, three at least, are as long as the first one, which has names."""
    if not path.is_file():  # a pipe, whose reading might never end
        return False
    try:
        with path.open("rb") as file:
            start = file.read(_SNIFFED_BYTES)
    except OSError:
        return False
    is_wide = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = start.decode("utf-16" if is_wide else "utf-8-sig", "replace")
    if "\0" in text:
        return False
    rows = [row for row in _first_rows(text, sniff_delimiter(text)) if row]
    return len(rows) > 2 and {*map(len, rows)} == {max(len(rows[0]), 2)} and are_names(rows[0])


def _first_rows(text: str, delimiter: str) -> list[list[str]]:
    """The rows at the start of a text; none if several characters separate cells, or quotes are wrong."""
    lines = text.splitlines(keepends=True)
    whole = lines[:-1] if len(lines) > 1 and not lines[-1].endswith(("\n", "\r")) else lines
    try:
        return list(islice(csv.reader(whole, delimiter=delimiter), _SNIFFED_ROWS))
    except (csv.Error, TypeError):
        return []


def _encoding(path: Path, start: bytes) -> str:
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for block in blocks(path):
            decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        # Windows-1252 has no character for five bytes; Latin-1 has one for each.
        undefined = any(byte in block for block in blocks(path) for byte in b"\x81\x8d\x8f\x90\x9d")
        return "latin-1" if undefined else "cp1252"
    return "utf-8-sig"


def plain_dtype(column: pd.Series) -> pd.Series:
    """A column in the dtype that users expect, if that can hold its values; else in the nullable dtype of reading."""
    dtype: Any = column.dtype
    if isinstance(dtype, pd.StringDtype):
        return pd.Series([None if cell is pd.NA else cell for cell in column], index=column.index, dtype=_TEXT)
    if pd.api.types.is_float_dtype(dtype):
        return column.astype("float64")
    if column.isna().all():
        return pd.Series([None] * len(column), index=column.index, dtype=object)
    is_plain = isinstance(dtype, np.dtype) or not hasattr(dtype, "numpy_dtype")
    return column if is_plain or column.isna().any() else column.astype(dtype.numpy_dtype)


def plain_dtypes(frame: pd.DataFrame) -> pd.DataFrame:
    """The same for all columns; their names become texts."""
    return pd.DataFrame({str(name): plain_dtype(frame[name]) for name in frame.columns}, index=frame.index)


def sheet_frame(rows: list[list[Any]]) -> pd.DataFrame:
    """Rows of a sheet as a frame; the first one below titles has the names of its columns."""
    from pandas.io.parsers import TextParser  # type: ignore[attr-defined]  # what read_excel gives its rows to

    rows = rows[title_rows(rows[:LOOKED_AT]) :]
    if not rows:
        return pd.DataFrame()
    # As objects, so that text in cells stays text: '00501' is no number.
    frame = TextParser(rows, header=0, dtype=object, skip_blank_lines=False).read()
    return plain_dtypes(frame.convert_dtypes())


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


_COMMENTS = (b"comment", b"doc", b"description")


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
            self._check_bytes(sum(group.total_byte_size for group in groups), size)
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
        with self._file(buffer_size=PARQUET_BUFFER) as file:
            texts = _in_dictionaries(file.metadata)
            if not texts:
                for batch in file.iter_batches(CHUNK_ROWS, columns=list(shape.columns)):
                    # To Parquet "a" is also the beginning of the name "a.b".
                    yield frame_chunk(from_arrow(batch.select(shape.columns)))
                return
            texts &= {field.name for field in file.schema_arrow if _is_text(field.type)}
        size, read = self.path.stat().st_size, 0
        with self._file(read_dictionary=sorted(texts), buffer_size=PARQUET_BUFFER) as file:
            for batch in file.iter_batches(CHUNK_ROWS, columns=list(shape.columns)):
                batch = batch.select(shape.columns)
                for position, name in enumerate(shape.columns):
                    column = batch.column(position)
                    if name in texts and hasattr(column, "dictionary"):
                        read += _bytes_of_texts(column)
                        self._check_bytes(read, size)
                        batch = batch.set_column(position, name, column.dictionary_decode())
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

    def _check_bytes(self, read: int, size: int) -> None:
        most = limits.allowed(limits.FREE_PARQUET_BYTES, limits.PARQUET_BYTES_A_BYTE, size)
        if read > most:
            raise UnreadableTable(
                f"{self.path} has more than {most / 2**20:,.0f} MB without its compression, the most of a file of this "
                "size: nearly all of its texts are alike. Leave them out, or have DuckDB read it: "
                "open_corpus(…, engine='duckdb')"
            )

    @contextmanager
    def _file(self, **options: Any) -> Iterator[Any]:
        with parquet_errors(self.path):
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


def _is_text(type: Any) -> bool:
    import pyarrow as pa

    return any(test(type) for test in (pa.types.is_string, pa.types.is_large_string))


def _bytes_of_texts(column: Any) -> int:
    """How many bytes the texts of a column take, each as often as it is there."""
    import pyarrow.compute as pc

    found = pc.sum(pc.take(pc.binary_length(column.dictionary), column.indices)).as_py()
    return int(found or 0)


@contextmanager
def parquet_errors(path: Path, files: Sequence[Path] = ()) -> Iterator[None]:
    """A block that loads pyarrow and reads the file, or the files below it; errors become :class:`UnreadableTable`.

    pyarrow cannot be imported with a numpy that is too old for it. Its exceptions inherit from those here.
    """
    try:
        yield
    except TagframeError:
        raise
    except (ImportError, OSError, ValueError, LookupError, TypeError, NotImplementedError) as error:
        raise UnreadableTable(f"{next(filter(_is_damaged, files), path)} cannot be read as Parquet: {error}") from error


def _is_damaged(file: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        pq.ParquetFile(file).close()
    except (OSError, pa.ArrowException):
        return True
    return False


def from_arrow(table: Any) -> pd.DataFrame:
    """Arrow rows as a frame; integers beside nulls are ``Int64``, never floats."""
    import pyarrow as pa  # type: ignore[import-untyped]

    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True, integer_object_nulls=True)
    for field, position in zip(table.schema, range(frame.shape[1]), strict=True):
        if pa.types.is_integer(field.type) and frame.iloc[:, position].dtype == object:
            width = pd.UInt64Dtype() if pa.types.is_unsigned_integer(field.type) else pd.Int64Dtype()
            frame[field.name] = frame.iloc[:, position].astype(width)
    return frame


@dataclass(frozen=True)
class WorkbookEngine(WholeFileEngine):
    """An Excel or OpenDocument workbook: a database named after the file, with a table for each sheet that has rows.

    A sheet's first row, or the first one below titles and notes, has the names of its columns. Cells are read as
    ``python-calamine`` gives them.
    """

    path: Path
    kind: str = "workbook"
    is_database = True

    def shapes(self) -> list[TableShape]:
        """The sheets that have a header."""
        heads, titles = workbook_rows(self.path), dict[str, list[list[Any]]]()
        for name, rows in heads.items():
            titles[name] = rows[: title_rows(rows)]
            limits.check_names(f"sheet {name!r} of {self.path}", rows[len(titles[name])] if rows else [])
        frames = {name: sheet_frame(rows) for name, rows in heads.items()}
        return [
            TableShape(name, tuple(frame.columns), ("",) * frame.shape[1], comment=title_text(titles[name]))
            for name, frame in frames.items()
            if frame.shape[1]
        ]

    def chunks(self, shape: TableShape) -> Iterator[Chunk]:
        """The rows in pieces, in dtypes that lose nothing of their meaning."""
        if above := title_rows(workbook_rows(self.path)[shape.name]):
            way = "pandas.read_excel reads all as rows"
            say_titles(f"sheet {shape.name!r} of {self.path}", above, way)
        return super().chunks(shape)

    def frame(self, table: str) -> pd.DataFrame:
        """The rows of a sheet; it has at most 1,048,576."""
        return sheet_frame(workbook_rows(self.path, table)[table])


@dataclass(frozen=True)
class UnreadEngine(FileEngine):
    """A file with a table that is not read here: it is named, with what reads it.

    Attributes:
        path: the file.
        way: how to open it.
    """

    path: Path
    way: str = ""
    kind: str = "unread"

    def fingerprint(self, known: Stamp | None = None) -> Stamp:
        """None: it is not read."""
        raise self._unread

    def shapes(self) -> list[TableShape]:
        """None: they are not read."""
        raise self._unread

    def scan(self, table: str, columns: Sequence[str] | None = None, limit: int | None = None) -> pd.DataFrame:
        """None: they are not read."""
        raise self._unread

    @property
    def _unread(self) -> UnreadableTable:
        return UnreadableTable(f"{self.path} is not read here: {self.way}")
