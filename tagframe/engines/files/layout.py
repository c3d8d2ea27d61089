"""How a delimited text is a table: its encoding, its delimiter, the rows that name its columns, and cells beyond them.

One pass over the bytes tells what has to be known of all rows before pandas reads them; rows are only parsed here where
some of them may have more cells than there are names.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tagframe.engines.cells import NULL_WORDS
from tagframe.engines.files import header, limits
from tagframe.engines.files.limits import blocks, ending_of, is_packed, opened
from tagframe.errors import UnreadableTable

_ONES = bytes.maketrans(b"023456789", b"111111111")
_DELIMITERS = (",", ";", "\t", "|", "^", "~", "\x01", "\x1f")
_SNIFFED_BYTES = 2**18
_WHOLE = _SNIFFED_BYTES // 4
"""A text of fewer letters is a whole file."""
SNIFFED_ROWS = 200
_LONGEST_ROW = 8 * 2**20
"""Bytes without the end of a row from which on rows are counted by the parser."""
_QUOTING = ("quotechar", "quoting", "escapechar", "doublequote", "skipinitialspace")
"""Options that :mod:`csv` has, too."""
_SIGN = rb"[\xa2-\xa8\xac-\xaf\xb1-\xb3\xb5\xb6\xb8\xb9\xbc-\xbe\xd0\xdd\xde\xf0\xfd\xfe]"
_FOREIGN = re.compile(
    rb"[\x80-\xff\w]*(?:[\x80-\xff]{3}|[a-zA-Z][\x81-\x84\x86-\x90\x98\x9a-\x9f]|[a-zA-Z]" + _SIGN + rb"|"
    + _SIGN + rb"[a-zA-Z]|\xc3[\x80-\xbf])[\x80-\xff\w]*"
)  # fmt: skip
"""A word with letters of Windows-1252 as hardly a language has them that is written in it."""
_STEMS = (b"NA", b"N/A", b"NULL", b"NaN", b"None", b"n/a", b"nan", b"null", b"#IND", b"#QNAN")
"""One of them is in each word for missing values."""
_ENDS = re.escape("".join(_DELIMITERS)).encode() + rb'"\n\r'
_NULL = re.compile(rb"[%b]\\N(?:[%b]|\Z)" % (_ENDS, _ENDS))
_COMMENTS = ("#", "//", "%", "--")
"""How lines of comments among rows begin."""
_MISSING_OPTIONS = ("na_values", "keep_default_na")
_INDEX = "column_1"


@dataclass(frozen=True)
class Layout:
    """How a file is read.

    Attributes:
        options: of :func:`pandas.read_csv`; ``usecols`` leaves out columns without a name and a cell.
        columns: the names of those that are read, in order.
        names: of all columns, in order.
        title: what stands above the names.
        labels: what the file says of columns, by their names.
        notes: sentences on what is not read as pandas would read it.
        has_odd_numbers: whether cells may be numbers of which pandas would not keep all letters.
        has_words: whether cells may be words for missing values.
        end: where notes below the rows begin, in bytes; None for the end of the file.
    """

    options: Mapping[str, Any]
    columns: tuple[str, ...]
    names: tuple[str, ...]
    title: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    has_odd_numbers: bool = True
    has_words: bool = True
    end: int | None = None

    @property
    def is_nameless(self) -> bool:
        """Whether no row names the columns, so that they are numbered."""
        return "names" in self.options and [*self.names] == header.numbered_names([], len(self.names))


def layout_of(path: Path, given: Mapping[str, Any]) -> Layout:
    """The layout of a file, with the options that its user gave.

    Raises:
        UnreadableTable: it is no text, it has too many columns, or rows have more cells than there are names.
        ValueError, LookupError: an option has no sense.
    """
    given = dict(given)
    start = _start(path)
    encoding = given.get("encoding")
    text = _decoded(start, encoding)
    if markup := re.match(r"\s*<(!doctype html|html|table|\?xml)\b", text, re.IGNORECASE):
        raise UnreadableTable(
            f"{path} is a page, not CSV, as it begins with {markup[0].strip()!r}: open the frames of pandas.read_html, "
            "or of pandas.read_xml"
        )
    if len(start) == _SNIFFED_BYTES and not re.search("[\r\n]", text):
        raise UnreadableTable(f"the first line of {path} has more than {len(text):,} characters: check that lines end")
    delimiter = given.pop("delimiter", None) or given.get("sep")
    is_sniffed = not delimiter
    delimiter = delimiter or ("\t" if ending_of(path) == ".tsv" else sniff_delimiter(text))
    notes: list[str] = []
    if not {*_QUOTING} & {*given}:
        notes += _written_so(path, text, delimiter, given)
    written = {name: given[name] for name in _QUOTING if name in given}
    skipped, skipped_last = given.get("skiprows", 0), given.pop("skipfooter", None)
    is_free = isinstance(skipped, int) and not isinstance(skipped, bool) and "comment" not in given
    rows = first_rows(text, delimiter, written)[skipped if is_free else 0 :]
    limits.check_columns(path, max(map(len, rows), default=0))
    blank = next((at for at, row in enumerate(rows) if row), 0)
    may_have_titles = "skiprows" not in given
    head = _given_head(rows, given) or (
        header.head_of(rows[0 if may_have_titles else blank :], may_have_titles=may_have_titles)
        if is_free and rows
        else header.Head()
    )
    if blank and not head.above and head.depth:
        head = replace(head, above=blank)
    for row in rows[head.above :][: head.depth]:
        limits.check_names(path, row)
    is_checked = is_free and len(delimiter) == 1 and not {"on_bad_lines", "names", "header"} & {*given}
    width = len(rows[head.above]) if is_checked and head.above < len(rows) else 0
    heads = rows[head.above :][: head.depth] if is_checked and width > 1 else []
    above = (skipped if is_free else 0) + head.above
    scan = _Scan(path, start, delimiter, encoding, width, b"".join(start.splitlines()[above:][: bool(heads)]))
    # Without index_col=False pandas would take the first column for an index where rows end with a delimiter.
    options = {"sep": delimiter, "encoding": scan.encoding, "index_col": False, **given}
    if scan.is_damaged and "encoding_errors" not in given:
        options["encoding_errors"] = "replace"
        notes.append(
            f"some bytes of it are no UTF-8, and are read as \ufffd; {option(path, encoding='cp1252')} reads others"
        )
    if isinstance(head, header.Head) and not isinstance(given.get("header", 0), int):
        options.pop("header", None)
    if head.is_plain:
        options = {**options, **({"skiprows": above} if is_free and above else {})}
        names = rows[head.above] if width and scan.encoding == "utf-8-sig" else ()
        if names and not any(
            name.startswith(("Unnamed: ", "\ufeff")) for name in names
        ):  # pandas takes ten times as long
            columns = header.numbered_names(names, width, "Unnamed: {}", first=0)
        else:
            columns = [*map(str, pd.read_csv(path, nrows=0, **_untyped(options)).columns)]
    else:
        columns = header.numbered_names(
            head.names, max(map(len, rows), default=0) if not head.depth else len(head.names)
        )
        options = {**options, "header": None, "skiprows": above - head.above + head.rows, "names": columns}
    if is_free and given.get("on_bad_lines") == "skip":  # pandas would take the first row for as long as all may be
        at, before = head.rows, above - head.above
        good = next((one for one in range(at, len(rows)) if len(rows[one]) <= len(columns)), at)
        options = {**options, "skiprows": [*range(options.get("skiprows", 0)), *range(before + at, before + good)]}
    described = dict(zip(columns, head.labels, strict=False))
    left_out: set[int] = set()
    is_unnamed = [name.startswith("Unnamed: ") or not name.strip() for name in columns]
    unnamed = [at for at, is_one in enumerate(is_unnamed) if is_one and head.is_plain]
    if not head.depth:
        unnamed = [at for at, cell in enumerate(rows[head.above] if rows else []) if not cell.strip()]
    left: dict[str, list[int]] = {}
    if is_checked and (scan.is_long or unnamed or scan.has_comments):
        first = above + head.depth + head.below
        cells = _Cells(path, delimiter, scan.encoding, written, first, len(columns), unnamed, heads)
        left = {"of comments among the rows": cells.comments, "that repeat the names": cells.again}
        named = len(columns)
        columns, left_out = _beyond(path, cells, columns, notes)
        if len(columns) > named:
            options = {**options, "header": None, "names": columns, "skiprows": above + head.depth + head.below}
    kept_names = [name for at, name in enumerate(columns) if at not in left_out]
    if left_out:
        options = {**options, "usecols": kept_names}
    if not {"header", "names"} & {*given}:
        titled = replace(head, above=0) if head.above == blank else head
        notes = [*_notes(path, rows, titled, kept_names, given), *notes]
    if is_sniffed and len(columns) == 1 and (mark := other_delimiter(text)):
        notes.append(f"it has one column, and {mark!r} splits its rows evenly; {option(path, sep=mark)} reads several")
    notes += header.second_table(rows, head.rows)
    if encoding is None and scan.foreign:
        way = f"{option(path, encoding='cp1251')}, for example, reads Cyrillic"
        if "\u00c3" in scan.foreign:
            way = f"{option(path, encoding='utf-8', encoding_errors='replace')} reads those that are UTF-8"
        notes.append(f"it is not UTF-8, and is read as {scan.encoding}, with words such as {scan.foreign!r}; {way}")
    if scan.has_nulls and not {*_MISSING_OPTIONS} & {*given}:
        way = option(path, na_values=["\\N"])
        notes.append(f"cells of \\N, which dumps of databases have for a missing value, are texts; {way} reads them so")
    if scan.drops_quotes and not {"quoting", "escapechar"} & {*written}:
        notes.append(
            f"cells go on behind closing quotes, which are left out; {option(path, quoting=3)} reads quotes as letters"
        )
    end = None
    if is_free and len(delimiter) == 1 and not scan.is_wide and not is_packed(path):
        end = _end(path, delimiter, scan.encoding, written, rows[head.rows :], len(columns), skipped_last, notes)
    if end is not None:  # the notes below are no rows
        left = {what: [one for one in some if one < cells.last] for what, some in left.items()}
    for what, some in left.items() if "skiprows" not in given else ():
        if some:
            how = f"left out, the first one after {some[0]} others; {option(path, skiprows=above)} reads rows"
            notes.append(f"{len(some)} line{'s' * (len(some) > 1)} {what} are {how}")
            before = options.get("skiprows", 0)
            before = [*range(before)] if isinstance(before, int) else before
            options = {**options, "skiprows": sorted([*before, *some])}
    title = header.title_text(rows[: head.above]) if head.above else ""
    has_words = scan.has_words and not {*_MISSING_OPTIONS} & {*given}
    has_odd = scan.has_odd_numbers
    return Layout(options, tuple(kept_names), tuple(columns), title, described, tuple(notes), has_odd, has_words, end)


def _written_so(path: Path, text: str, delimiter: str, given: dict[str, Any]) -> list[str]:
    """Add the options for backslashes before quotes, and for blanks after delimiters; gives sentences on them."""
    notes = []
    if re.search(rf'\\"[^{re.escape(delimiter[:1])}\r\n"]', text):
        given["escapechar"] = "\\"
        notes.append(f"backslashes stand before quotes in cells; {option(path, escapechar=None)} reads them as letters")
    after = [cell for row in first_rows(text, delimiter) for cell in row[1:] if cell]
    if len(after) > 1 and all(cell[0] == " " and cell.strip() for cell in after):
        given["skipinitialspace"] = True
        notes.append(f"the blanks after delimiters are left out; {option(path, skipinitialspace=False)} keeps them")
    return notes


def _end(
    path: Path, delimiter: str, encoding: str, written: Mapping[str, Any], rows: Sequence[Sequence[str]], width: int,
    skipped: int | None, notes: list[str],
) -> int | None:  # fmt: skip
    """Where notes below the rows begin, in bytes: lines of one text each, below a blank line or unlike the first cells.

    Args:
        path, delimiter, encoding, written: of the file.
        rows: the first ones.
        width: their cells.
        skipped: how many of the last lines the user leaves out; None for nobody knows.
        notes: gets a sentence on what is left out.
    """
    with opened(path) as file:
        size = file.seek(0, 2)
        start = max(size - _TAIL_BYTES, 0)
        file.seek(start)
        lines = file.read().splitlines(keepends=True)[1 if start else 0 :]
    texts = [line.decode(encoding, "replace").strip() for line in lines]
    if skipped is None:
        last = next(filter(None, reversed(texts)), "")
        cells = next(iter(first_rows(last, delimiter, written)), [])
        if len([*filter(str.strip, cells)]) > 1 and not header.is_split_note(cells):
            return None  # by far the most frequent
        # A line with one quote is a part of a cell of several lines.
        tail = ["12" if text.count('"') % 2 else next(iter(first_rows(text, delimiter, written)), []) for text in texts]
        skipped = header.notes_below(tail, rows, width)
        if not skipped:
            return None
        lines_below = header.title_text([text] for text in texts[-skipped:])
        notes.append(
            f"the notes below the rows are left out ({lines_below!r}); {option(path, skipfooter=0)} reads them as rows"
        )
    return size - sum(map(len, lines[len(lines) - skipped :])) if skipped else None


_TAIL_BYTES = 2**14


def _untyped(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in ("parse_dates", "dayfirst")}


def _given_head(rows: Sequence[Sequence[str]], given: Mapping[str, Any]) -> header.Head | None:
    """What the user says of the names; None for nothing."""
    if "names" in given:
        return header.Head()
    if "header" not in given:
        return None
    at = given["header"]
    if at is None:
        return header.Head(depth=0)
    if isinstance(at, list | tuple) and at and all(isinstance(one, int) for one in at):
        return header.names_in(rows, at[0], at[-1] - at[0] + 1)
    return header.Head()


def _notes(
    path: Path, rows: Sequence[Sequence[str]], head: header.Head, columns: Sequence[str], given: Mapping[str, Any]
) -> list[str]:
    """Sentences on the rows before the data, with the options that read them otherwise."""
    others: dict[str, Any] = {"skiprows": 0} if head.above else {"header": 0} if head.depth != 1 else {}
    how = "reads all as rows" if head.above else "takes the names from the first row"
    if head.is_unsure:
        others, how = {"header": None}, "reads it as one of them"
    notes = header.sentences(head)
    if notes and others:
        notes[-1] += f"; {option(path, **others)} {how}"
    if not head.depth:
        notes[-1] += f", {option(path, names=columns[:3])} gives other names"
    unnamed = sum(name.startswith("Unnamed: ") for name in columns)
    if head.is_plain and not head.above and unnamed and unnamed >= len(columns) / 2:
        below, way = header.first_names(rows), "names=[…] in csv= gives names"
        if below is not None:
            there = option(path, skiprows=below + given.get("skiprows", 0))
            way = f"If the names are in a row below, {there} reads them there"
        notes.append(f"the first row names {len(columns) - unnamed} of {len(columns)} columns. {way}")
    return notes


def option(path: Path, **options: Any) -> str:
    """How to give options for a file."""
    return f"csv={ ({path.name: options}) }"


def _beyond(path: Path, cells: _Cells, columns: list[str], notes: list[str]) -> tuple[list[str], set[int]]:
    """Names of all columns, with those that nothing names, and the columns that are left out as they have no cell."""
    named, extra = len(columns), max(cells.most - len(columns), 0)
    filled = sum(cells.beyond.values())
    if cells.is_indexed:
        notes.append(f"rows have a cell more than there are names: the first one, as R writes it, is called {_INDEX!r}")
        return header.numbered_names(["", *columns], named + 1), set()
    if filled and cells.rows_beyond <= cells.rows / 2:
        raise UnreadableTable(
            f"{path} cannot be read as CSV: line {cells.first_line} has {cells.first_width} cells, and there are names "
            f"of {named} columns: a delimiter in a cell has to be in quotes. "
            f"csv={ {path.name: {'on_bad_lines': 'skip'}} } leaves out such rows"
        )
    empty = {at for at in cells.unnamed if not cells.filled[at]}
    empty |= {named + at for at in range(extra) if not cells.beyond[named + at]}
    if empty:
        which = ", ".join(str(at + 1) for at in sorted(empty)[:10])
        several = "s" * (len(empty) > 1)
        verb = "have no name and no cell, and are" if several else "has no name and no cell, and is"
        notes.append(f"column{several} {which} {verb} left out")
    unnamed = [at for at in range(named, named + extra) if at not in empty]
    if unnamed:
        called = ", ".join(repr(f"column_{at + 1}") for at in unnamed[:10])
        notes.append(f"rows have more cells than there are names; those without one are called {called}")
    return header.numbered_names(columns, named + extra), empty


class _Scan:
    """What one pass over the bytes of a file tells; all may be there in a text of two bytes a letter."""

    def __init__(
        self, path: Path, start: bytes, delimiter: str, encoding: str | None, width: int, names: bytes
    ) -> None:
        self.has_odd_numbers = self.has_words = self.is_long = self.is_wide = self.has_comments = True
        self.foreign, self.drops_quotes, self.has_nulls, self.is_damaged = "", False, False, False
        encoding = encoding or _wide_encoding(start)
        if encoding is not None and codecs.lookup(encoding).name.startswith(("utf-16", "utf-32")):
            for _ in blocks(path):  # too many bytes are refused
                pass
            self.encoding = encoding
            return
        if b"\x00" in start:
            way = f"{option(path, encoding='utf-16-le')} reads a text of two bytes a letter"
            raise UnreadableTable(f"{path} is not a text file: it holds zero bytes. {way}")
        self._delimiter = ord(delimiter) if len(delimiter) == 1 and delimiter.isascii() else 0
        self._width = width if self._delimiter else 0
        self._words = re.compile(_words(delimiter))
        marks = [*map(str.encode, _COMMENTS), names.removeprefix(codecs.BOM_UTF8)]
        self._marks = [b"\n" + mark for mark in filter(None, marks)]
        self.has_odd_numbers = self.has_words = self.is_long = self.is_wide = self.has_comments = False
        is_utf8 = self._pass(path)
        self.is_damaged = encoding is None and not is_utf8 and _is_damaged(next(blocks(path), b""))
        self.encoding = encoding or ("utf-8-sig" if is_utf8 or self.is_damaged else _one_byte_encoding(path))
        if encoding is None and not is_utf8 and not self.is_damaged:
            words = (match[0] for block in blocks(path) for match in _FOREIGN.finditer(block))
            self.foreign = next(words, b"").decode(self.encoding, "replace")

    def _pass(self, path: Path) -> bool:
        """Whether the bytes are UTF-8."""
        decoder, is_utf8, tail, rest = codecs.getincrementaldecoder("utf-8")(), True, b"\n", b""
        for block in blocks(path):
            is_utf8 = is_utf8 and _decodes(decoder, block)
            # A match may begin in one block and end in the next.
            near, tail = tail + block, block[-max(64, *map(len, self._marks)) :]
            self.has_odd_numbers = self.has_odd_numbers or _has_odd_numbers(near)
            self.has_words = self.has_words or (
                any(stem in near for stem in _STEMS) and self._words.search(near) is not None
            )
            self.has_nulls = self.has_nulls or (b"\\N" in near and _NULL.search(near) is not None)
            self.has_comments = self.has_comments or any(mark in near for mark in self._marks)
            if self._width and not self.is_long:
                rest = self._after_lines(rest + block)
                self.is_long = self.is_long or len(rest) > _LONGEST_ROW
        if self._width and not self.is_long:
            self._after_lines(rest + b"\n")
        return is_utf8 and _decodes(decoder, b"", final=True)

    def _after_lines(self, text: bytes) -> bytes:
        """Look for rows with more cells than there are names; gives what is after the last whole row."""
        letters = np.frombuffer(text, dtype=np.uint8)
        is_end, is_mark = letters == ord("\n"), letters == self._delimiter
        if b'"' in text:
            is_quote = letters == ord('"')
            is_out = np.cumsum(is_quote) % 2 == 0
            self.drops_quotes = self.drops_quotes or self._goes_on(letters, np.flatnonzero(is_quote))
            is_end, is_mark = is_end & is_out, is_mark & is_out
        ends = np.flatnonzero(is_end)
        marks = np.searchsorted(np.flatnonzero(is_mark), ends)
        self.is_long = bool((np.diff(marks, prepend=0) >= self._width).any())
        if not len(ends) and b"\r" in text:  # which ends the lines of old files
            self.is_long = True
        return text[ends[-1] + 1 :] if len(ends) else text

    def _goes_on(self, letters: npt.NDArray[np.uint8], quotes: npt.NDArray[np.intp]) -> bool:
        """Whether a cell that begins with a quote goes on behind the closing one: both would be left out."""
        first, last = quotes[: len(quotes) // 2 * 2 : 2], quotes[1::2]
        outside = [ord(sign) for sign in "\r\n"] + [self._delimiter]
        begins = (first == 0) | np.isin(letters[first - 1], outside)
        ends = np.isin(np.append(letters, ord("\n"))[last + 1], [*outside, ord('"')])
        if not begins.all():  # quotes in cells that none begins: the next ones are no pairs
            mark = re.escape(bytes([self._delimiter]))
            cells = re.finditer(rb"(?:\A|(?<=[\r\n" + mark + rb']))"(?:[^"]|"")*"', letters.tobytes())
            return any(letters[cell.end() : cell.end() + 1].tobytes() not in b"\r\n" + mark for cell in cells)
        return bool((begins & ~ends).any())


def _has_odd_numbers(text: bytes) -> bool:
    """Whether a number begins with a zero or a plus, has as many digits as floats hardly hold, or may be a code."""
    ones, letters = text.translate(_ONES), np.frombuffer(text, dtype=np.uint8)
    at = np.flatnonzero((letters[1:-1] == ord("0")) | (letters[1:-1] == ord("+")))
    before, after = np.where(letters[at] == ord(" "), letters[at - 1], letters[at]), letters[at + 2]
    is_padded = np.isin(before, [*b',;\t|"\n\r']) & (after >= ord("0")) & (after <= ord("9"))
    return bool(is_padded.any()) or any(one in ones for one in (16 * b"1", b"1e1", b"1E1"))


class _Cells:
    """The rows of a file below its names, as far as they have cells that nothing names.

    Attributes:
        rows, rows_beyond: how many there are, and how many of them have a cell beyond the names.
        most: the most cells of a row.
        beyond: how many cells each column beyond the names has.
        filled: how many cells each column without a name has.
        first_line, first_width: where the first cell beyond the names is, and the cells of its row.
        is_indexed: whether all rows have one cell more than there are names, and the first ones differ.
        comments: the numbers of rows of one text that begins as comments do; none where other rows begin so, too.
        again: the numbers of rows that are written as those above the first one, from one of the names on.
        last: the number of the last row that is none of them.
    """

    def __init__(
        self, path: Path, delimiter: str, encoding: str, written: Mapping[str, Any], skip: int, width: int,
        unnamed: Sequence[int], heads: Sequence[Sequence[str]],
    ) -> None:  # fmt: skip
        self.unnamed = unnamed
        self.rows = self.rows_beyond = self.most = self.first_line = self.first_width = self.last = 0
        self.beyond: Counter[int] = Counter()
        self.filled: Counter[int] = Counter()
        self.comments: list[int] = []
        self.again: list[int] = []
        first: set[str] = set()
        least = width + 1
        with (
            opened(path) as raw,
            io.TextIOWrapper(raw, encoding=encoding, errors="replace", newline="") as file,
        ):
            reader = csv.reader(file, delimiter=delimiter, **written)
            begin_so = False
            try:
                for at, row in islice(enumerate(reader), skip, None):
                    limits.check_columns(path, len(row))
                    if row and width > 1 and row[0].lstrip().startswith(_COMMENTS) and header.is_comment(row):
                        if not any(map(str.strip, row[1:])):
                            self.comments.append(at)
                            continue
                        begin_so = True
                    if row in heads and (self.again or row == heads[0]):
                        self.again.append(at)
                    elif row:
                        self._see(row, width, reader.line_num)
                        least, self.last = min(least, len(row)), at
                        first.add(row[0])
            except csv.Error:  # of a cell that is too long for it; pandas reads it
                pass
        if begin_so:
            self.comments = []
        self.is_indexed = (
            width > 0 and least == self.most == width + 1 and self.rows_beyond == self.rows == len(first) > 0
        )

    def _see(self, row: Sequence[str], width: int, line: int) -> None:
        self.rows += 1
        self.most = max(self.most, len(row))
        for at in self.unnamed:
            self.filled[at] += at < len(row) and bool(row[at].strip())
        beyond = [at for at in range(width, len(row)) if row[at].strip()]
        if beyond:
            self.beyond.update(beyond)
            self.rows_beyond += 1
            if not self.first_line:
                self.first_line, self.first_width = line, len(row)


def _start(path: Path) -> bytes:
    with opened(path) as file:
        return file.read(_SNIFFED_BYTES)


def _wide_encoding(start: bytes) -> str | None:
    """The encoding of several bytes a letter whose mark a text begins with; UTF-32's begins like UTF-16's."""
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    return "utf-16" if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else None


def _decoded(start: bytes, encoding: str | None) -> str:
    is_utf8 = _decodes(codecs.getincrementaldecoder("utf-8")(), start) or _is_damaged(start)
    encoding = encoding or _wide_encoding(start) or ("utf-8-sig" if is_utf8 else "cp1252")
    return codecs.getincrementaldecoder(encoding)("replace").decode(start)


def _decodes(decoder: codecs.IncrementalDecoder, block: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(block, final)
    except UnicodeDecodeError:
        return False
    return True


def _is_damaged(start: bytes) -> bool:
    """Whether a text that is not UTF-8 was: more of its letters are than bytes are none."""
    text = start.decode("utf-8", "surrogateescape")
    wrong = len(re.findall("[\udc80-\udcff]", text))
    return sum(not one.isascii() for one in text) > 2 * wrong


def _one_byte_encoding(path: Path) -> str:
    # Windows-1252 has no character for five bytes; Latin-1 has one for each.
    undefined = any(byte in block for block in blocks(path) for byte in b"\x81\x8d\x8f\x90\x9d")
    return "latin-1" if undefined else "cp1252"


def _words(delimiter: str) -> bytes:
    """Finds the words for missing values that are whole cells."""
    words = b"|".join(re.escape(word.encode()) for word in sorted(NULL_WORDS, key=len, reverse=True) if word)
    mark = re.escape(delimiter[:1].encode())
    return rb'(?:^|[,;\t|"\n\r' + mark + rb"])(?:" + words + rb')(?=[,;\t|"\n\r' + mark + rb"]|$)"


def sniff_delimiter(text: str) -> str:
    r"""The delimiter that splits the first rows of ``text`` most evenly; a comma if none splits them.

    >>> sniff_delimiter("name;price\nbread;1,50\nmilk;0,90\n")
    ';'
    """
    best, best_score = ",", (0.0, False, False, 0)
    for delimiter in _DELIMITERS:
        rows = first_rows(text, delimiter)
        if max(map(len, rows), default=0) < 2:
            continue
        above = header.comments_above(rows)
        if head := header.head_below_titles(rows[above:]):
            above += head.above
        widths = [len(row) for row in rows[above:] if row]
        if not widths or widths[0] < 2:
            continue
        is_decimal = not re.search(rf"(?<![0-9]){re.escape(delimiter)}|{re.escape(delimiter)}(?![0-9])", text)
        score = widths.count(widths[0]) / len(widths), not above, not is_decimal, widths[0]
        if score > best_score:
            best, best_score = delimiter, score
    return best


def other_delimiter(text: str) -> str:
    """What splits the first lines evenly where no usual delimiter does, as a regular expression; "" for nothing."""
    lines = [line.strip() for line in text.splitlines()[:SNIFFED_ROWS] if line.strip()]
    marks: tuple[str, ...] = (*_DELIMITERS, r"\s+", *":!")
    for mark in marks:
        split = [
            re.split(mark if mark == r"\s+" else re.escape(mark), line) for line in lines[: max(len(lines) - 1, 2)]
        ]
        has_values = any(header.is_value(cell) for row in split[1:] for cell in row)
        is_usual = mark in _DELIMITERS and len(split) > 1
        if split and (has_values or is_usual) and len(split[0]) > 1 and {*map(len, split)} == {len(split[0])}:
            return mark
    return ""


def delimiter_of(path: Path) -> str:
    """What may separate the cells of a text that :func:`not_delimited` refuses; "" for nothing that is known."""
    try:
        text = _decoded(_start(path), None) if path.is_file() else ""
        usual = sniff_delimiter(text)
        return usual if usual != "," else other_delimiter(text)
    except limits.DAMAGED:
        return ""


def not_delimited(path: Path, *, is_strict: bool = False) -> str:
    """Why a text is no table; "" for one whose rows are at most as long as the first one, which has names.

    Args:
        path: of the file.
        is_strict: whether all rows, three at least, have to be as long as the first one.
    """
    if not path.is_file():  # a pipe, whose reading might never end
        return "it is no regular file"
    try:
        start = _start(path)
    except limits.DAMAGED as error:
        return str(error)
    text = _decoded(start, None)
    if "\0" in text:
        return "it is not a text file: it holds zero bytes"
    rows = [row for row in first_rows(text, sniff_delimiter(text)) if row]
    head = header.head_of(rows) if rows else header.Head()
    rows = rows[head.above :]
    width = len(rows[0]) if rows else 0
    lengths = [len(row) for row in rows[head.depth :]]
    if width < 2:
        return "commas, semicolons, tabs or bars do not split its rows"
    if head.depth == 1 and not header.are_names([*dict.fromkeys(filter(None, rows[0]))]):
        return "its first row has no names of columns"
    if any(length > width and any(map(str.strip, row[width:])) for length, row in zip(lengths, rows[1:], strict=False)):
        return "rows have more cells than the first one"
    if is_strict and (len(rows) < _FEW or {*map(len, rows)} != {width}):
        return "its rows are few, or not of one length"
    if not lengths and not _are_words(rows[0]):
        return "it has one row, which may be a sentence"
    if sum(length < 2 for length in lengths) > len(lengths) / 2 or (len(lengths) < _FEW and _is_prose(rows)):
        return "most of its rows are not split"
    return ""


_FEW = 3


def _are_words(cells: Sequence[str]) -> bool:
    return all(len(cell.split()) <= 1 for cell in cells)


def _is_prose(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows are sentences with commas: cells begin with a blank, and not all names are a word each."""
    cells = [cell for row in rows for cell in row[1:] if cell]
    if {*map(len, rows)} == {len(rows[0])} and all(cell.strip().isidentifier() for cell in rows[0]):
        return False
    return bool(cells) and sum(cell.startswith(" ") for cell in cells) > len(cells) / 2


def first_rows(text: str, delimiter: str, written: Mapping[str, Any] | None = None) -> list[list[str]]:
    """The rows at the start of a text, so many below comments; none if several characters separate cells, or quotes are
    wrong."""
    # The last line may be cut where the text is a part of a file.
    lines = io.StringIO(text if len(text) < _WHOLE else text[: text.rfind("\n") + 1], newline="")
    try:
        rows, left = [], SNIFFED_ROWS
        for row in csv.reader(lines, delimiter=delimiter, **(written or {})):
            left -= not (row and row[0].startswith(_COMMENTS))
            if left < 0:
                break
            rows.append(row)
        return rows
    except (csv.Error, TypeError):
        return []
