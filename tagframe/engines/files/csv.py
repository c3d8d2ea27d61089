"""CSV files, one table each."""

from __future__ import annotations

import ast
import codecs
import csv
import fnmatch
import io
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from tagframe.engines.base import CHUNK_ROWS, Chunk, Stamp, TableShape, frame_chunk
from tagframe.engines.cells import plain_dtypes
from tagframe.engines.files import limits
from tagframe.engines.files.column_formats import AMBIGUOUS, Column, Formats, Order, formats_of, is_known
from tagframe.engines.files.header import are_names, below_titles, title_rows, title_text
from tagframe.engines.files.limits import FileEngine, blocks, ending_of, is_packed, opened, reading_as, stem_of
from tagframe.errors import (
    ColumnFormatWarning,
    InvalidArgument,
    NumbersAsTextWarning,
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
    rb"|(?:^|[,;\t|\"\n\r ])[+-]?0[0-9]"
)
"""Bytes without which no number of a column has a format of its own or begins with a zero, nor a date its year last."""
_COMMA, _QUOTED_COMMA = rb"[0-9],[0-9]", rb'"[^"\n]{0,40}[0-9],[0-9]'
_DELIMITERS = (",", ";", "\t", "|")
_SNIFFED_BYTES = 2**18
_SNIFFED_ROWS = 200
_HEAD_ROWS = 1_000


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
        given: options of :func:`pandas.read_csv` that its user gave, of :data:`CSV_OPTIONS`, as the text of a
            dictionary; "" for none. If they tell how dates are written but not in which columns, these are the columns
            whose first cells all look like dates.
    """

    path: Path
    kind: str = "csv"
    given: str = ""

    def fingerprint(self, known: Stamp | None = None) -> Stamp:
        """Size, time and content of the file, and how it is read."""
        how = f" {self.given}" if self.given else ""
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
        self._say_formats(shape.columns)
        for frame in self.frames(CHUNK_ROWS):
            yield frame_chunk(frame[list(shape.columns)])

    def frames(self, rows: int, as_text: Collection[str] = (), **options: Any) -> Iterator[pd.DataFrame]:
        """Frames of this many rows, in nullable dtypes, numbers and dates as :attr:`formats` says.

        Args:
            rows: of a frame.
            as_text: columns that stay text, as they are written.
            options: more of those of :func:`pandas.read_csv`.
        """
        with csv_errors(self.path):
            text = dict.fromkeys({*self.formats.as_text, *as_text}, "string")
            for frame in csv_batches(
                self.path, rows, dtype=text, dtype_backend="numpy_nullable", **{**self._options(), **options}
            ):
                yield self.formats.typed(frame, as_text)

    def scan(self, table: str, columns: Sequence[str] | None = None, limit: int | None = None) -> pd.DataFrame:
        """The rows of the one table, in the file's order."""
        with csv_errors(self.path):
            options: dict[str, Any] = {"nrows": limit, "low_memory": False, **self._options()}
            text = dict.fromkeys(self.formats.as_text, "string")
            frame = pd.read_csv(self.path, dtype=text, dtype_backend="numpy_nullable", **options)
            return plain_dtypes(self.formats.typed(frame if columns is None else frame[list(columns)]))

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
        given = {name: value for name, value in self._given.items() if name in (*_SEPARATORS, *_DATES)}
        if not is_known(given):
            given = {name: value for name, value in given.items() if name not in _SEPARATORS}
        if "date_format" in given:
            given = {name: value for name, value in given.items() if name not in _DATES}
        with csv_errors(self.path):
            options = self._options(dates=False)
            if not given and not self._may_be_written(options["sep"], options["encoding"]):
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
        if isinstance(dates := given.get("parse_dates"), list | tuple):
            given["parse_dates"] = [names[one] if isinstance(one, int) and one < len(names) else one for one in dates]
        return formats_of(columns, given)

    @property
    def _given(self) -> dict[str, Any]:
        """The options for this file."""
        given: dict[str, Any] = ast.literal_eval(self.given or "{}")
        if not _is_by_pattern(given):
            return given
        patterns = sorted(given, key=lambda pattern: pattern == "*")  # which is for the others, wherever it stands
        return dict(next((given[pattern] for pattern in patterns if is_of(self.path, pattern)), {}))

    def _title(self, options: dict[str, Any]) -> str:
        """What stands above the names of the columns."""
        rows = options.get("skiprows", 0)
        if not isinstance(rows, int) or not rows:
            return ""
        with opened(self.path) as raw:
            head = raw.read(_SNIFFED_BYTES).decode(options["encoding"], "replace")
        return title_text(_first_rows(head, options["sep"])[:rows])

    def _check_width(self, options: dict[str, Any]) -> None:
        """Refuse a file whose header, or the row below it, has too many columns, before pandas makes them."""
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
                titles = options.get("skiprows", 0)
                rows = islice(
                    csv.reader(lines(), delimiter=delimiter, **written), titles * isinstance(titles, int), None
                )
                limits.check_names(self.path, next(rows, []))
                limits.check_columns(self.path, len(next(rows, [])))
            except csv.Error:  # of a long text in a cell it tells no columns
                limits.check_columns(self.path, delimiters + 1)

    def _options(self, *, dates: bool = True) -> dict[str, Any]:
        """How pandas has to read the file; separators and dates that :attr:`formats` has are left to it."""
        given = self._given
        delimiter = given.pop("delimiter", None) or given.get("sep")
        options = {**csv_options(self.path, given.get("encoding"), delimiter), **given}
        self._check_width(options)
        if is_known(given):
            options = {name: value for name, value in options.items() if name not in _SEPARATORS}
        plain = {name: value for name, value in options.items() if name not in _DATES}
        if not dates or "date_format" not in given:
            return plain
        if "parse_dates" not in given:
            head = pd.read_csv(self.path, dtype=str, nrows=_SNIFFED_ROWS, **plain)
            cells = {name: head[name].dropna() for name in head.columns}
            options["parse_dates"] = [name for name, seen in cells.items() if len(seen) and all(map(_DATE.match, seen))]
        return options

    def _say_formats(self, names: Sequence[str]) -> None:
        """Say which of these columns are numbers in a format that was not given, and which are not as they look."""

        def say(what: str, category: type[UserWarning] = ColumnFormatWarning) -> None:
            warn(f"{self.path}: {what}", category)

        (shape,), formats, given = self.shapes(), self.formats.of(names), self._given
        unnamed = sum(name.startswith("Unnamed: ") for name in names)
        if shape.comment and "skiprows" not in given:
            titles = self._options(dates=False)["skiprows"]
            say(f"{below_titles(titles)}; {self._option(skiprows=0)} reads all as rows")
        elif unnamed and unnamed >= len(names) / 2:  # the first row is a title, and names are further below
            say(
                f"the first row names {len(names) - unnamed} of {len(names)} columns. If the names are in a row below, "
                f"{self._option(skiprows=2)} leaves out two rows before it"
            )
        separators = [f"{name}={given[name]!r}" for name in _SEPARATORS if name in given]
        wanted = given.get("decimal") or ("," if given.get("thousands") == "." else "."), given.get("thousands") or ""
        read = [
            f"{name!r} ({one})"
            for name, one in formats.numbers.items()
            if one.unit or not separators or (one.decimal, one.thousands) != wanted
        ]
        if read:
            percent = "; 12 % is 12" * any(one.unit == "%" for one in formats.numbers.values())
            say(f"these columns of text are read as numbers: {', '.join(read)}{percent}")
        for name, why in formats.mixed.items():
            way = f". {self._option(decimal=',')} reads decimal commas (in the shell: --csv decimal=,)"
            found = f"the numbers of column {name!r} stay text, because {why}{way * (why == AMBIGUOUS)}"
            say(found, NumbersAsTextWarning)
        if formats.unfit:
            are = "is" if len(formats.unfit) == 1 else "are"
            fit = f"not all cells have the format of csv= ({', '.join(separators)})"
            say(f"{_listed(formats.unfit)} {are} read with decimal points, because {fit}")
        if formats.thousands:
            say(
                f"the points in {_listed(formats.thousands)} are read as decimal points, though other columns of the "
                f"file have decimal commas; {self._option(decimal=',', thousands='.')} reads them as thousands"
            )
        for name, order in formats.orders.items():
            if name in formats.dates:
                found = "read month first, as nothing says otherwise; csv={'dayfirst': True} reads them day first"
            elif order is None:
                found = "with the day first in some cells and the month first in others: they stay text"
            else:
                way = self._option(dayfirst=order == "day first")
                found = f"with the {order}: they stay text; {way} reads them as dates"
            say(f"column {name!r} has dates {found}")
        if formats.not_dates:
            stay = "stays" if len(formats.not_dates) == 1 else "stay"
            say(f"{_listed(formats.not_dates)} {stay} text, because not all cells are dates")

    def _option(self, **options: Any) -> str:
        """How to give options for this file."""
        return f"csv={ ({self.path.name: options}) }"

    def _may_be_written(self, delimiter: str, encoding: str) -> bool:
        """Whether any number may have a format of its own: this check of the bytes saves most files a second pass."""
        if encoding.lower().startswith(("utf-16", "utf-32")):
            return True
        wanted = re.compile(b"|".join((_MAY_BE_WRITTEN, _QUOTED_COMMA if delimiter == "," else _COMMA)))
        tail = b""
        for block in blocks(self.path):
            if wanted.search(tail + block):
                return True
            tail = block[-64:]  # a match may begin in one block and end in the next
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


def csv_option_text(csv: Mapping[str, Any] | None) -> str:
    """The user's options for CSV files, checked, in the form of :attr:`CSVEngine.given`.

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


def _is_by_pattern(options: Mapping[str, Any]) -> bool:
    """Whether options are given by file: then no name is that of an option."""
    return (
        bool(options) and all(isinstance(one, dict) for one in options.values()) and not CSV_OPTIONS.issuperset(options)
    )


def is_of(path: Path, pattern: str) -> bool:
    """Whether a pattern such as ``"de_*.csv"`` or ``"germany/*"`` is for a file: of its name, or the end of its path.

    >>> is_of(Path("sales/de_2024.csv"), "de_*.csv")
    True
    """
    return fnmatch.fnmatch(path.name, pattern) or fnmatch.fnmatch(path.as_posix(), f"*/{pattern}")


def patterns_of(given: str) -> list[str]:
    """The patterns for which options were given, except the one for all other files."""
    options = ast.literal_eval(given or "{}")
    return [pattern for pattern in options if pattern != "*"] if _is_by_pattern(options) else []


def options_before(stamp: Stamp | None) -> str:
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
    with reading_as("CSV", path), warnings.catch_warnings():
        # pandas only warns where rows are longer than the header, and drops the rest of them.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        yield


def csv_batches(path: Path, rows: int, **options: Any) -> Iterator[pd.DataFrame]:
    """Frames of this many rows; ``options`` are those of :func:`pandas.read_csv`."""
    with pd.read_csv(path, chunksize=rows, low_memory=False, **options) as reader:
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
    width = len(rows[0]) if len(rows) > 2 else 0
    return width > 1 and all(len(row) == width for row in rows) and are_names(rows[0])


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
