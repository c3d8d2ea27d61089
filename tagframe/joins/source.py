"""Where a merge takes its rows from: a function that reads columns, or a corpus.

From a SQLite file only the key columns are read whole; of the others, only the rows that are in the result.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd

from tagframe.corpus import Corpus
from tagframe.corpus.sqlite import connect_readonly, quoted, typed_series
from tagframe.joins.matching import Positions

Read = Callable[[str, Sequence[str]], pd.DataFrame]
"""Reads columns of a table, by the table's id."""

_SPARSE = 0.25
"""Rows are picked one by one where they are fewer than this share of the table; else the columns are read whole."""
_AT_ONCE = 500


class Rows(Protocol):
    """Columns of tables, whole or some rows of them. A row's number is its place in what ``whole`` gives."""

    def may_pick(self, table: str) -> bool:
        """Whether some rows of the table can be read without the others."""

    def whole(self, table: str, columns: Sequence[str]) -> pd.DataFrame:
        """All rows of these columns, in an order that is the same for all columns of the table."""

    def some(self, table: str, columns: Sequence[str], numbers: Positions) -> pd.DataFrame | None:
        """These rows (ascending, no duplicates), or None where reading all of them is the better way."""


class FunctionRows:
    """Rows that a function gives; there is no way to read some of them only."""

    def __init__(self, read: Read) -> None:
        self._read = read

    def may_pick(self, table: str) -> bool:
        """Never."""
        return False

    def whole(self, table: str, columns: Sequence[str]) -> pd.DataFrame:
        """What the function gives."""
        return self._read(table, columns)

    def some(self, table: str, columns: Sequence[str], numbers: Positions) -> pd.DataFrame | None:
        """None."""
        return None


class CorpusRows:
    """Rows of a corpus' tables."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._numbered: dict[str, tuple[Path, str, str, Positions]] = {}

    def may_pick(self, table: str) -> bool:
        """Where it is in a SQLite file."""
        return self._corpus.sqlite_file(table) is not None

    def whole(self, table: str, columns: Sequence[str]) -> pd.DataFrame:
        """All rows of these columns; from a SQLite file by row id."""
        path = self._corpus.sqlite_file(table)
        names = {column.name.casefold() for column in self._corpus.profile(table).columns}
        rowid = next((name for name in ("rowid", "_rowid_", "oid") if name not in names), None)
        if path is None or rowid is None:
            return self._corpus.read(table, columns)
        source = self._corpus.source_table(table)
        shown = ", ".join([rowid, *map(quoted, columns)])
        try:
            with closing(connect_readonly(path)) as connection:
                cells = connection.execute(f"SELECT {shown} FROM {quoted(source)} ORDER BY {rowid}").fetchall()
        except (sqlite3.Error, OSError):
            # A table without row ids, or a file that cannot be opened: the corpus says what is wrong, if anything.
            return self._corpus.read(table, columns)
        self._numbered[table] = (path, source, rowid, np.array([row[0] for row in cells], dtype=np.int64))
        return _frame([row[1:] for row in cells], columns)

    def some(self, table: str, columns: Sequence[str], numbers: Positions) -> pd.DataFrame | None:
        """These rows, by row id; None where they are many, or the table has no row ids."""
        if table not in self._numbered:
            return None
        path, source, rowid, ids = self._numbered[table]
        if len(numbers) > _SPARSE * len(ids):
            return None
        shown = ", ".join(map(quoted, columns))
        wanted: list[int] = ids[numbers].tolist()
        cells: list[tuple[object, ...]] = []
        with closing(connect_readonly(path)) as connection:
            for start in range(0, len(wanted), _AT_ONCE):
                some = ", ".join(map(str, wanted[start : start + _AT_ONCE]))
                query = f"SELECT {shown} FROM {quoted(source)} WHERE {rowid} IN ({some}) ORDER BY {rowid}"
                cells += connection.execute(query).fetchall()
        return _frame(cells, columns)


def _frame(cells: Sequence[tuple[object, ...]], columns: Sequence[str]) -> pd.DataFrame:
    values = zip(*cells, strict=True) if cells else ((),) * len(columns)
    data = {name: typed_series(column) for name, column in zip(columns, values, strict=True)}
    return pd.DataFrame(data, index=pd.RangeIndex(len(cells)))
