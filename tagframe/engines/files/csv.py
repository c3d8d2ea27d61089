"""CSV files, one table each."""

from __future__ import annotations

import ast
import fnmatch
import io
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import IO, Any, TypeVar

import pandas as pd

from tagframe.engines.base import CHUNK_ROWS, Chunk, Stamp, TableShape
from tagframe.engines.cells import plain_dtypes
from tagframe.engines.files import column_formats
from tagframe.engines.files.layout import Layout, layout_of, option
from tagframe.engines.files.limits import FileEngine, reading_as, stem_of
from tagframe.errors import (
    ColumnFormatWarning,
    InvalidArgument,
    NumbersAsTextWarning,
    UnreadableTable,
    counted,
    did_you_mean,
    warn,
)

CSV_OPTIONS = frozenset(
    "sep delimiter encoding encoding_errors decimal thousands quotechar quoting doublequote escapechar comment "
    "header names skiprows skipfooter skipinitialspace na_values keep_default_na true_values false_values parse_dates "
    "dayfirst on_bad_lines".split()
)
"""Options of :func:`pandas.read_csv` that say how a file is written; the other options would change the table."""
_DATES = ("parse_dates", "dayfirst")
_DATE = re.compile(r"\s*[0-9]{1,4}([./-])[0-9]{1,2}\1[0-9]{1,4}(?![0-9])")
_YEAR_FIRST = "[0-9]{4}[-/.][0-9]{2}[-/.][0-9]{2}(?:[T ][0-9:.]*)?"
_SEPARATORS = ("decimal", "thousands")
_HEAD_ROWS = 1_000
MAX_NAMED_COLUMNS = 5
"""Columns that a note names; of others it gives the number."""
_EXACT: dict[str, Any] = {} if int(pd.__version__.split(".")[0]) > 2 else {"float_precision": "round_trip"}
"""Before version 3 pandas may read a number as the float next to it."""

V = TypeVar("V")


@dataclass(frozen=True)
class CSVEngine(FileEngine):
    """A delimited text file: the table is named after the file.

    The encoding is UTF-8 (with a byte order mark or without), UTF-16 with one, else Windows-1252. The delimiter is a
    comma, semicolon, tab or bar, whichever splits the first rows most evenly. The names of columns may be in several
    rows, below titles; a first row that is like the others is data, and columns without a name are called
    ``column_1``, …. Empty cells, and pandas' words for missing values in them ("NA", "null", …), are nulls; a word is
    not if it is written like the codes of one length that its column has. Columns of whole numbers are ``int64``
    (``Int64`` beside nulls), other numbers ``float64``; numbers written with leading zeros ("00501") stay text, as the
    zeros would be lost. A repeated header is read as pandas reads it, ``x`` and ``x.1``.

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
        layout = self.layout
        labels = tuple(layout.labels.get(name, "") for name in layout.columns)
        types = ("",) * len(layout.columns)
        return [TableShape(stem_of(self.path), layout.columns, types, comment=layout.title, column_comments=labels)]

    def chunks(self, shape: TableShape) -> Iterator[Chunk]:
        """The rows in pieces, in dtypes that lose nothing of their meaning."""
        for frame in self.frames(CHUNK_ROWS):
            yield Chunk.of(frame[list(shape.columns)])
        for what, category in self.notes(shape.columns):
            warn(f"{self.path}: {what}", category)

    def frames(self, rows: int, as_text: Collection[str] = (), **options: Any) -> Iterator[pd.DataFrame]:
        """Frames of this many rows, in nullable dtypes, numbers and dates as :attr:`formats` says.

        Args:
            rows: of a frame.
            as_text: columns that stay text, as they are written.
            options: more of those of :func:`pandas.read_csv`.
        """
        with csv_errors(self.path):
            for frame in self.batches(rows, **{**self._typed_options(as_text), **options}):
                yield self.formats.typed(frame, as_text)

    def scan(self, table: str, columns: Sequence[str] | None = None, limit: int | None = None) -> pd.DataFrame:
        """The rows of the one table, in the file's order."""
        with csv_errors(self.path), self._opened() as file:
            frame = pd.read_csv(file, nrows=limit, low_memory=False, **self._typed_options())
            return plain_dtypes(self.formats.typed(frame if columns is None else frame[list(columns)]))

    @property
    def csv_files(self) -> tuple[Path, ...]:
        """The file."""
        return (self.path,)

    @property
    def layout(self) -> Layout:
        """How the text of the file is a table: found once for each state of the file."""
        return _layout_of(self, *_state(self.path))

    @property
    def formats(self) -> column_formats.Formats:
        """How numbers and dates of the columns are written: decided over all rows, once for each state of the file."""
        return _formats_of(self, *_state(self.path))

    def find_layout(self) -> Layout:
        """:attr:`layout`, from the file."""
        given = {name: value for name, value in self.given_options.items() if name not in _DATES}
        with csv_errors(self.path):
            return layout_of(self.path, given)

    def find_formats(self) -> column_formats.Formats:
        """:attr:`formats`, from the file."""
        given = {name: value for name, value in self.given_options.items() if name in (*_SEPARATORS, *_DATES)}
        if not column_formats.is_known(given):
            given = {name: value for name, value in given.items() if name not in _SEPARATORS}
        layout = self.layout
        names = layout.columns
        columns = {name: column_formats.Column(has_words=layout.has_words) for name in names}
        options = self._options()
        if layout.has_words:
            options |= {"keep_default_na": False, "na_values": [""]}
        with csv_errors(self.path):
            rows = 0
            for frame in self.batches(_HEAD_ROWS, dtype=str, nrows=_HEAD_ROWS, **options):
                rows += len(frame)
                _see(columns, frame)
            still = [name for name in names if columns[name].is_open]
            if rows == _HEAD_ROWS and still:
                is_read_whole = given or layout.has_odd_numbers or layout.has_words or options["sep"] == ";"
                texts = {name: str for name in still if is_read_whole or not columns[name].is_plain}
                for frame in self.batches(CHUNK_ROWS, **{**options, "dtype": texts, "usecols": still}):
                    _see(columns, frame, is_quick=not is_read_whole)
                    if not any(columns[name].is_open for name in still):
                        break
        if isinstance(dates := given.get("parse_dates"), list | tuple):
            given["parse_dates"] = [names[one] if isinstance(one, int) and one < len(names) else one for one in dates]
        return column_formats.formats_of(
            columns, given, has_commas=layout.options["sep"] == ";" and not self.given_options
        )

    @contextmanager
    def _opened(self) -> Iterator[Path | IO[bytes]]:
        """What pandas reads: the file, or its bytes before the notes at its end."""
        if self.layout.end is None:
            yield self.path
        else:
            with _Part(self.path, self.layout.end) as part:
                yield io.BufferedReader(part)

    def batches(self, rows: int, **options: Any) -> Iterator[pd.DataFrame]:
        """Frames of this many rows; ``options`` are those of :func:`pandas.read_csv`."""
        with self._opened() as file, pd.read_csv(file, chunksize=rows, low_memory=False, **options) as reader:
            yield from reader

    @property
    def given_options(self) -> dict[str, Any]:
        """The options for this file."""
        given: dict[str, Any] = ast.literal_eval(self.given or "{}")
        if not _is_by_pattern(given):
            return given
        patterns = sorted(given, key=lambda pattern: pattern == "*")  # which is for the others, wherever it stands
        return dict(next((given[pattern] for pattern in patterns if is_of(self.path, pattern)), {}))

    def _options(self) -> dict[str, Any]:
        """How pandas has to read the file; separators and dates are left to :attr:`formats`."""
        options = dict(self.layout.options)
        if column_formats.is_known(self.given_options):
            options = {name: value for name, value in options.items() if name not in _SEPARATORS}
        return options

    def _typed_options(self, as_text: Collection[str] = ()) -> dict[str, Any]:
        """:meth:`_options` for nullable dtypes, with columns of a format of their own, and these, as text."""
        formats = self.formats
        text = dict.fromkeys({*formats.as_text, *as_text}, "string")
        missing, options = formats.missing_options(self.layout.columns), self._options()
        exact = _EXACT if options["sep"] == r"\s+" or len(options["sep"]) == 1 else {}  # others are read by Python
        return {"dtype": text, "dtype_backend": "numpy_nullable", **exact, **options, **missing}

    def notes(self, names: Sequence[str]) -> list[tuple[str, type[UserWarning]]]:
        """What is not read as it looks: rows of names, words for missing values, and formats of these columns."""
        notes: list[tuple[str, type[UserWarning]]] = []

        def say(what: str, category: type[UserWarning] = ColumnFormatWarning) -> None:
            notes.append((what, category))

        layout, formats, given = self.layout, self.formats.of(names), self.given_options
        for note in layout.notes:
            say(note)
        for words, columns in by_value(formats.codes).items():
            way = option(self.path, na_values=list(words) if len(columns) > 1 else {columns[0]: list(words)})
            of = "its" if len(columns) == 1 else "their"
            say(
                f"{either(words)} in {named_columns(columns)} is read as a code, as all {of} cells are of one length; "
                f"{way} reads it as missing"
            )
        if formats.missing:
            by_words = by_value(formats.missing)
            missing = ", ".join(f"{either(words)} in {_some(columns)}" for words, columns in by_words.items())
            way = option(self.path, keep_default_na=False, na_values=[""])
            say(f"read as missing: {missing}; {way} reads them as text")
        separators = [f"{name}={given[name]!r}" for name in _SEPARATORS if name in given]
        wanted = given.get("decimal") or ("," if given.get("thousands") == "." else "."), given.get("thousands") or ""
        read = {
            name: str(one)
            for name, one in formats.numbers.items()
            if one.unit or not separators or (one.decimal, one.thousands) != wanted
        }
        if read:
            percent = "; 12 % is 12" * any(one.unit == "%" for one in formats.numbers.values())
            which = ", ".join(f"{_some(columns)} ({one})" for one, columns in by_value(read).items())
            say(f"these columns of text are read as numbers: {which}{percent}")
        reasons = {name: (why, name in formats.words) for name, why in formats.mixed.items()}
        for (why, _), columns in by_value(reasons).items():
            beside = sorted({word for name in columns for word in formats.words.get(name, ())})
            way = self._way(why, beside, columns)
            say(f"the numbers of {named_columns(columns)} stay text, because {why}{way}", NumbersAsTextWarning)
        if formats.unfit:
            are = "is" if len(formats.unfit) == 1 else "are"
            fit = f"not all cells have the format of csv= ({', '.join(separators)})"
            say(f"{named_columns(formats.unfit)} {are} read with decimal points, because {fit}")
        if formats.thousands:
            say(
                f"the points in {named_columns(formats.thousands)} are read as decimal points, though the file has "
                f"semicolons or decimal commas elsewhere; {option(self.path, decimal=',', thousands='.')} reads them "
                "as thousands"
            )
        if formats.rounded:
            which = named_columns(formats.rounded)
            say(f"numbers of {which} have more digits than floats hold (15 to 17), and are rounded")
        if formats.exponents:
            which = named_columns(formats.exponents)
            say(f"cells such as 1E5 in {which}, which may be codes, are read as numbers (100000)")
        orders = {name: (order, name in formats.dates) for name, order in formats.orders.items()}
        for (order, is_read), columns in by_value(orders).items():
            if is_read:
                found = "read month first, as nothing says otherwise; csv={'dayfirst': True} reads them day first"
            elif order == column_formats.EITHER:
                way = option(self.path, dayfirst=True)
                found = (
                    f"of which nothing tells whether the day comes first: they stay text; {way} reads them day first"
                )
            elif order is None:
                found = "with the day first in some cells and the month first in others: they stay text"
            else:
                way = option(self.path, dayfirst=order == "day first")
                found = f"with the {order}: they stay text; {way} reads them as dates"
            say(f"{named_columns(columns)} {'has' if len(columns) == 1 else 'have'} dates {found}")
        if formats.not_dates:
            stay = "stays" if len(formats.not_dates) == 1 else "stay"
            say(f"{named_columns(formats.not_dates)} {stay} text, because not all cells are dates")
        return notes

    def _way(self, why: str, words: list[str], columns: Sequence[str]) -> str:
        """How the numbers of columns that stay text are read, if there is a way."""
        if words:
            way = option(self.path, na_values=words if len(columns) > 1 else {columns[0]: words})
            return f". {way} reads {either(words)} as missing"
        if why == column_formats.AMBIGUOUS:
            return (
                f". {option(self.path, decimal=',')} reads decimal commas (in the shell: --csv decimal=,), and "
                "thousands=',' or thousands='.' in its place commas or points between thousands"
            )
        if why == column_formats.GROUPED:
            return f". {option(self.path, thousands=' ')} reads blanks as thousands, and thousands='.' points"
        if why in (column_formats.OTHER_CELLS, column_formats.OTHER_UNITS):
            how = ".str.replace(',', '').str.extract('(-?[0-9]*[.]?[0-9]+)')[0].astype(float)"
            return f". A frame in which {how} makes numbers of them has them (replace(',', '.') of decimal commas)"
        return ""


def _state(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


@lru_cache(maxsize=4096)
def _formats_of(engine: CSVEngine, size: int, mtime_ns: int) -> column_formats.Formats:
    return engine.find_formats()


@lru_cache(maxsize=4096)
def _layout_of(engine: CSVEngine, size: int, mtime_ns: int) -> Layout:
    return engine.find_layout()


def either(words: Sequence[str]) -> str:
    """Words, as a sentence names them."""
    return " or ".join(map(repr, words))


def _see(columns: Mapping[str, column_formats.Column], frame: pd.DataFrame, *, is_quick: bool = False) -> None:
    """Look at the cells of a frame; ``is_quick`` leaves out dates that begin with the year where all were such ones."""
    for position, column in enumerate(columns[str(name)] for name in frame.columns):
        cells = frame.iloc[:, position]
        if column.is_open and not pd.api.types.is_numeric_dtype(cells.dtype):
            column.has_null |= cells.hasnans
            texts = cells.dropna().astype(str)
            if is_quick and column.is_date and not column.year_last:
                texts = texts[~texts.str.fullmatch(_YEAR_FIRST)]
            column.see(texts.unique())


def by_value(columns: Mapping[str, V]) -> dict[V, list[str]]:
    """The columns of each value, so that a note has one line for a kind, whatever number of columns it is of."""
    found: dict[V, list[str]] = {}
    for name, value in columns.items():
        found.setdefault(value, []).append(name)
    return found


def _some(names: Sequence[str]) -> str:
    more = len(names) - MAX_NAMED_COLUMNS
    named = ", ".join(map(repr, names[:MAX_NAMED_COLUMNS]))
    return f"{named} and {counted(more, 'more column')}" if more > 0 else named


def named_columns(names: Sequence[str]) -> str:
    """Columns, as a sentence names them: the first of many, and the number of the others."""
    return f"column{'s' * (len(names) > 1)} {_some(names)}"


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


@contextmanager
def _way_out(path: Path) -> Iterator[None]:
    """A block whose error on quotes that are not closed says how to read the file."""
    try:
        yield
    except UnreadableTable as error:
        if "EOF inside string" not in str(error):
            raise
        raise UnreadableTable(f"{error}. {option(path, quoting=3)} reads quotes as letters") from error


@contextmanager
def csv_errors(path: Path) -> Iterator[None]:
    """A block that reads the file: its errors become :class:`UnreadableTable`."""
    with _way_out(path), reading_as("CSV", path), warnings.catch_warnings():
        # pandas only warns where rows are longer than the header, and drops the rest of them.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        yield


class _Part(io.FileIO):
    """The first bytes of a file."""

    def __init__(self, path: Path, end: int) -> None:
        super().__init__(path)
        self._end = end

    def readinto(self, buffer: Any) -> int | None:
        left = max(self._end - self.tell(), 0)
        return super().readinto(memoryview(buffer)[:left])


class CSVRows:
    """CSV files as one table, in types that hold all its rows.

    Attributes:
        engines: read the files.
        columns: of all files; a file may lack some.
    """

    def __init__(self, engines: Sequence[CSVEngine]) -> None:
        codes = {name: words for engine in engines for name, words in engine.formats.codes.items()}
        self.engines = [_with_codes(engine, codes) for engine in engines]
        self.columns = list(dict.fromkeys(name for engine in engines for name in engine.layout.columns))

    @cached_property
    def types(self) -> dict[str, Any]:
        """The dtype of each column, found in a pass over all files."""
        dtypes: dict[str, set[str]] = {name: set() for name in self.columns}
        for engine in self.engines:
            for frame in engine.frames(CHUNK_ROWS):
                for name in frame.columns:
                    if not frame[name].isna().all():
                        dtypes[name].add(str(frame[name].dtype))
        return {name: _dtype_of(seen) for name, seen in dtypes.items()}

    def typed(self, engine: CSVEngine, columns: Sequence[str], rows: int) -> Iterator[pd.DataFrame]:
        """The rows of a file, in frames of so many."""
        texts = [name for name in columns if self.types[name] == "string"]
        there = [name for name in engine.layout.columns if name in columns]
        some = {} if len(there) == len(engine.layout.columns) else {"usecols": there}
        for frame in engine.frames(rows, texts, **some):
            yield frame.reindex(columns=[*columns]).astype({name: self.types[name] for name in columns})

    def empty(self, columns: Sequence[str]) -> pd.DataFrame:
        """No rows, in these types."""
        return pd.DataFrame({name: pd.Series([], dtype=self.types[name]) for name in columns})


def _with_codes(engine: CSVEngine, codes: Mapping[str, tuple[str, ...]]) -> CSVEngine:
    """The reader of a file in which words are no codes, that reads them as the codes that they are in another file."""
    if not any({*words} & {*codes.get(name, ())} for name, words in engine.formats.missing.items()):
        return engine
    words = column_formats.Formats(codes=codes).missing_options(engine.layout.columns)
    return replace(engine, given=repr({**engine.given_options, **words}))


def _dtype_of(seen: set[str]) -> Any:
    if seen <= {"Int64", "Float64"}:
        return "Float64" if "Float64" in seen else "Int64"
    return seen.pop() if len(seen) == 1 else "string"
