"""Files that are read as a whole, JSON and workbooks; and those that are not read.

A JSON file is a list of objects, or an object a line.
"""

from __future__ import annotations

import codecs
import json
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tagframe.engines.base import Chunk, Stamp, TableShape, frame_chunks
from tagframe.engines.cells import EXACT, plain_dtypes
from tagframe.engines.files import limits
from tagframe.engines.files.header import LOOKED_AT, head_of, numbered_names, sentences, title_text
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
            limits.check_names(self.path, names)
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
        if ending_of(self.path) == ".json":
            try:
                content = json.loads(text)
            except json.JSONDecodeError as error:
                if error.msg != "Extra data":
                    raise
                content = None  # an object a line, in spite of its name
            if content is not None:
                if isinstance(content, list) and all(isinstance(row, dict) for row in content):
                    return content
                raise UnreadableTable(
                    f"{self.path} is no table: it is {_what(content)}, not a list of objects. Make frames of its parts "
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
    return column if most > EXACT else column.convert_dtypes()


def sheet_frame(rows: list[list[Any]]) -> pd.DataFrame:
    """Rows of a sheet as a frame; the first one below titles has the names of its columns."""
    from pandas.io.parsers import TextParser  # type: ignore[attr-defined]  # what read_excel gives its rows to

    head = head_of(rows[:LOOKED_AT])
    names = numbered_names(head.names, max(map(len, rows), default=0)) if not head.is_plain else []
    rows = rows[head.above if head.is_plain else head.rows :]
    if not rows and not names:
        return pd.DataFrame()
    # As objects, so that text in cells stays text: '00501' is no number.
    options: dict[str, Any] = {"header": None, "names": names} if names else {"header": 0}
    frame = TextParser(rows, dtype=object, skip_blank_lines=False, **options).read()
    return plain_dtypes(frame.convert_dtypes())


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
            titles[name] = rows[: head_of(rows).above]
            limits.check_names(f"sheet {name!r} of {self.path}", rows[len(titles[name])] if rows else [])
        frames = {name: sheet_frame(rows) for name, rows in heads.items()}
        return [
            TableShape(name, tuple(frame.columns), ("",) * frame.shape[1], comment=title_text(titles[name]))
            for name, frame in frames.items()
            if frame.shape[1]
        ]

    def chunks(self, shape: TableShape) -> Iterator[Chunk]:
        """The rows in pieces, in dtypes that lose nothing of their meaning."""
        rows = workbook_rows(self.path, shape.name)[shape.name]
        if notes := sentences(head_of(rows[:LOOKED_AT])):
            way = "pandas.read_excel reads the first row as names and all others as rows"
            warn(f"sheet {shape.name!r} of {self.path}: {'; '.join(notes)}; {way}", ColumnFormatWarning)
        return frame_chunks(sheet_frame(rows)[list(shape.columns)])

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
