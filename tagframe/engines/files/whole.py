"""Files that are read as a whole, JSON and workbooks; and those that are not read.

A JSON file is a list of objects, or an object a line.
"""

from __future__ import annotations

import codecs
import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from tagframe.engines.base import Chunk, Stamp, TableShape
from tagframe.engines.cells import EXACT, plain_dtypes
from tagframe.engines.files import header, limits
from tagframe.engines.files.column_formats import EITHER, Column, Formats, formats_of
from tagframe.engines.files.csv import by_value, either, named_columns
from tagframe.engines.files.limits import FileEngine, blocks, ending_of, reading_as, stem_of
from tagframe.engines.files.workbooks import workbook_rows
from tagframe.errors import ColumnFormatWarning, UnreadableTable, warn


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
        with reading_as("JSON", self.path):
            rows = self._objects(self._text())
            names = list(dict.fromkeys(name for row in rows for name in row))
            limits.check_columns(self.path, len(names))
            most = limits.allowed(limits.FREE_JSON_CELLS, limits.JSON_CELLS_A_BYTE, self.path.stat().st_size)
            if len(names) * len(rows) > most:
                raise UnreadableTable(
                    f"{self.path} has {len(rows):,} objects with {len(names):,} names in all, and a file of this size "
                    f"has {most:,} cells at most: write one file for each kind of objects"
                )
            columns = {name: _column([_cell(row.get(name)) for row in rows]) for name in names}
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
        content = None
        if ending_of(self.path) == ".json":
            try:
                content = json.loads(text)
            except json.JSONDecodeError as error:
                if error.msg != "Extra data":  # an object a line, in spite of its name
                    raise
        if content is None:
            content = [self._line(*one) for one in enumerate(text.split("\n"), start=1) if one[1].strip()]
        if isinstance(content, list) and all(isinstance(row, dict) for row in content):
            return content
        raise UnreadableTable(
            f"{self.path} is no table: it is {_what(content)}, not a list of objects. Make frames of its parts with "
            "pandas.json_normalize, and open those"
        )

    def _line(self, number: int, line: str) -> Any:
        try:
            return json.loads(line)
        except json.JSONDecodeError as error:
            raise UnreadableTable(f"{self.path} cannot be read as JSON: line {number:,}: {error}") from error


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
    return column if most > EXACT else column.convert_dtypes()


@dataclass(frozen=True)
class Sheet:
    """A sheet as a table.

    Attributes:
        frame: its rows, without blank ones, notes below them, and columns without a name and a cell.
        title: what stands above the names.
        labels: what the sheet says of each column.
        notes: what is not read as it looks.
    """

    frame: pd.DataFrame
    title: str
    labels: tuple[str, ...]
    notes: tuple[str, ...]


def sheet_of(rows: list[list[Any]]) -> Sheet:
    """Rows of a sheet as a table; the first ones below titles have the names of its columns."""
    cells_down = [
        (at, column) for at, row in enumerate(rows) for column, cell in enumerate(row) if isinstance(cell, bytes)
    ]
    rows = _without_merged(rows)
    head = header.head_of(rows[: header.LOOKED_AT])
    width = max(map(len, rows), default=0)
    notes = header.sentences(head) if any(map(any, rows[: head.above])) or not head.above else []
    down = {column for at, column in cells_down if at > head.rows and _is_filled(rows[at - 1][column])}
    for at, column in cells_down:
        if at > head.rows and isinstance(rows[at - 1][column], str):
            rows[at][column] = rows[at - 1][column]
    title, below = (
        header.title_text(rows[: head.above]),
        [row for row in rows[head.rows :] if any(map(_is_filled, row))],
    )
    heads = rows[head.above :][: head.depth]
    if heads and sum(map(_is_filled, heads[0])) > 1 and (again := below.count(heads[0])):
        below = [row for row in below if row not in heads]
        notes.append(f"{again} row{'s' * (again > 1)} that repeat the names are left out")
    given = [*head.names, *[""] * (width - len(head.names))]
    names = header.numbered_names(given, width)
    if head.is_plain:  # as pandas names them
        names = [name if given[at] else f"Unnamed: {at}" for at, name in enumerate(names)]
    if count := header.notes_below(rows[-header.LOOKED_AT :], below[: header.LOOKED_AT], width):
        last = [row for row in rows[-count:] if any(map(_is_filled, row))]
        notes.append(f"the notes below the rows are left out ({header.title_text(last)!r})")
        below = below[: len(below) - len(last)]
    cells = {
        name: pd.Series([row[at] if _is_filled(row[at]) else None for row in below], dtype=object)
        for at, name in enumerate(names)
        if given[at] or any(_is_filled(row[at]) for row in below)
    }
    merged = "a text stands in each of their rows, a number in the first one"
    notes += [f"cells of column {names[at]!r} are merged: {merged}" for at in sorted(down)]
    blank = [name not in cells for name in names]
    gap = next((at for at in range(1, width - 1) if blank[at] and given[at - 1] and given[at + 1]), 0)
    if gap:
        notes.append(f"column {gap + 1} is empty: the columns from {names[gap + 1]!r} on may be another table")
    notes += header.second_table(rows, head.rows)
    formats = formats_of({name: _seen(column) for name, column in cells.items()}, {})
    for name, words in formats.missing.items():
        cells[name] = cells[name].where(~cells[name].isin(words), None)
    frame = pd.DataFrame(cells, index=pd.RangeIndex(len(below)))
    texts = {name for name, column in cells.items() if all(isinstance(cell, str) for cell in column.dropna())}
    numbers = Formats(numbers=formats.numbers).of(texts)
    for words, some in by_value(formats.codes).items():
        notes.append(f"{either(words)} in {named_columns(some)} is read as a code")
    for words, some in by_value(formats.missing).items():
        notes.append(f"{either(words)} in {named_columns(some)} is read as missing")
    for one, some in by_value({name: str(one) for name, one in numbers.numbers.items()}).items():
        notes.append(f"{named_columns(some)} {'is' if len(some) == 1 else 'are'} read as numbers ({one})")
    for why, some in by_value(formats.mixed).items():
        notes.append(f"the numbers of {named_columns(some)} stay text, because {why}")
    for order, some in by_value(formats.orders).items():
        what = "in two orders" if order is None else "in an order that nothing tells" if order == EITHER else order
        notes.append(f"the dates of {named_columns(some)}, {what}, stay text; pandas.to_datetime reads them")
    kinds = {name: sorted({*map(_kind, column.dropna())}) for name, column in cells.items()}
    mixed = {name: tuple(some) for name, some in kinds.items() if len(some) > 1}
    for types, some in by_value(mixed).items():
        notes.append(f"{named_columns(some)} {'has' if len(some) == 1 else 'have'} {' and '.join(types)}")
    labels = dict(zip(names, head.labels, strict=False))
    typed = plain_dtypes(numbers.typed(frame).convert_dtypes())
    return Sheet(typed, title, tuple(labels.get(name, "") for name in cells), tuple(notes))


def _without_merged(rows: list[list[Any]]) -> list[list[Any]]:
    return [["" if isinstance(cell, bytes) else cell for cell in row] for row in rows]


def _is_filled(cell: Any) -> bool:
    return cell is not None and cell != ""


def _kind(cell: Any) -> str:
    known: list[tuple[Any, str]] = [(str, "texts"), (bool, "booleans"), ((int, float), "numbers")]
    return next((word for kind, word in known if isinstance(cell, kind)), "times")


def _seen(cells: pd.Series) -> Column:
    """What the texts of a column have in common; other cells are no codes."""
    column = Column(has_words=True)
    texts = cells[[isinstance(cell, str) for cell in cells]]
    column.see(texts.unique())
    column.is_coded &= len(texts) == cells.notna().sum()
    return column


@dataclass(frozen=True)
class WorkbookEngine(WholeFileEngine):
    """An Excel or OpenDocument workbook: a database named after the file, with a table for each sheet that has rows.

    A sheet's first row, or the first one below titles and notes, has the names of its columns. Cells are read as
    ``python-calamine`` gives them; texts as those of CSV files.
    """

    path: Path
    kind: str = "workbook"
    is_database = True

    def shapes(self) -> list[TableShape]:
        """The sheets that have a header.

        Raises:
            UnreadableTable: no sheet has a cell.
        """
        shapes, sheets = [], self._sheets()
        for name, sheet in sheets.items():
            limits.check_columns(f"sheet {name!r} of {self.path}", sheet.frame.shape[1])
            if columns := tuple(map(str, sheet.frame.columns)):
                types, labels = ("",) * len(columns), sheet.labels
                shapes.append(TableShape(name, columns, types, comment=sheet.title, column_comments=labels))
        empty = [repr(name) for name in sheets if name not in {shape.name for shape in shapes}]
        if not shapes:
            raise UnreadableTable(f"{self.path} has no table: no cell is filled in {', '.join(empty)}")
        if empty:
            warn(
                f"{self.path}: no cell is filled in {', '.join(empty)}, so no table is made of it", ColumnFormatWarning
            )
        return shapes

    def chunks(self, shape: TableShape) -> Iterator[Chunk]:
        """The rows in pieces, in dtypes that lose nothing of their meaning."""
        sheet = self._sheets()[shape.name]
        others = [repr(name) for name in sheet.frame.columns if name not in shape.columns]
        if notes := [note for note in sheet.notes if not any(name in note for name in others)]:
            way = "pandas.read_excel reads the first row as names and all others as rows"
            warn(f"sheet {shape.name!r} of {self.path}: {'; '.join(notes)}; {way}", ColumnFormatWarning)
        return Chunk.several(sheet.frame[list(shape.columns)])

    def frame(self, table: str) -> pd.DataFrame:
        """The rows of a sheet; it has at most 1,048,576."""
        return self._sheets()[table].frame.copy()

    def _sheets(self) -> Mapping[str, Sheet]:
        try:
            stat = self.path.stat()
        except OSError as error:
            raise UnreadableTable(f"{self.path} cannot be read as a workbook: {error}") from error
        return _sheets(self.path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=4)
def _sheets(path: Path, size: int, mtime_ns: int) -> Mapping[str, Sheet]:
    return {name: sheet_of(rows) for name, rows in workbook_rows(path).items()}


@dataclass(frozen=True)
class UnreadEngine(FileEngine):
    """A file with a table that is not read here, or several of a kind: they are named, with what reads them.

    Attributes:
        path: the file.
        way: how to open it.
        count: of files like it.
    """

    path: Path
    way: str = ""
    count: int = 1
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
        several = f" and {self.count - 1} more {self.path.suffix or 'such'} files are" if self.count > 1 else " is"
        return UnreadableTable(f"{self.path}{several} not read here: {self.way}")
