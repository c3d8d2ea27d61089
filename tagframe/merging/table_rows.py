"""Where a merge takes its rows from: a function that reads columns, or a corpus.

From a SQLite file only the key columns are read whole; of the others, only the rows that are in the result.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import compress
from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd

from tagframe.corpus import Corpus
from tagframe.corpus.profile import TableProfile
from tagframe.engines.sqlite import connect_readonly, quoted, typed_series
from tagframe.keys.composite import Read
from tagframe.keys.matching import Positions

SPARSE = 0.25
"""Rows are picked one by one where they are fewer than this share of the table; else they are picked from all."""
_AT_ONCE = 500
_CHUNK_ROWS = 50_000


def rowid_name(table: TableProfile) -> str | None:
    """What SQLite calls the row ids of a table; None where its columns have taken all the names."""
    names = {column.name.casefold() for column in table.columns}
    return next((name for name in ("rowid", "_rowid_", "oid") if name not in names), None)


class Rows(Protocol):
    """Columns of tables, whole or some rows of them. A row's number is its place in what ``whole`` gives."""

    def may_pick(self, table: str) -> bool:
        """Whether some rows of the table can be read without the others."""

    def whole(self, table: str, columns: Sequence[str]) -> pd.DataFrame:
        """All rows of these columns, in an order that is the same for all columns of the table."""

    def some(self, table: str, columns: Sequence[str], numbers: Positions) -> pd.DataFrame | None:
        """These rows (ascending, no duplicates), or None where there is no way to read some only."""


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
        rowid = rowid_name(self._corpus.profile(table))
        if path is None or rowid is None:
            return self._corpus.read(table, columns)
        source = self._corpus.source_table(table)
        try:
            with closing(connect_readonly(path)) as connection:
                ids, frame = _streamed(connection, source, rowid, columns)
        except (sqlite3.Error, OSError):
            # A table without row ids, or a file that cannot be opened: the corpus says what is wrong, if anything.
            return self._corpus.read(table, columns)
        self._numbered[table] = (path, source, rowid, ids)
        return frame

    def some(self, table: str, columns: Sequence[str], numbers: Positions) -> pd.DataFrame | None:
        """These rows, by row id; None where the table has none."""
        if table not in self._numbered:
            return None
        path, source, rowid, ids = self._numbered[table]
        query = f"SELECT {', '.join(map(quoted, columns))} FROM {quoted(source)}"
        cells: list[tuple[object, ...]] = []
        with closing(connect_readonly(path)) as connection:
            if len(numbers) > SPARSE * len(ids):
                is_wanted = np.zeros(len(ids), dtype=bool)
                is_wanted[numbers] = True
                cells += compress(connection.execute(f"{query} ORDER BY {rowid}"), is_wanted.tolist())
                return _frame(cells, columns)
            wanted: list[int] = ids[numbers].tolist()
            for start in range(0, len(wanted), _AT_ONCE):
                some = ", ".join(map(str, wanted[start : start + _AT_ONCE]))
                cells += connection.execute(f"{query} WHERE {rowid} IN ({some}) ORDER BY {rowid}").fetchall()
        return _frame(cells, columns)


def _streamed(
    connection: sqlite3.Connection, table: str, rowid: str, columns: Sequence[str]
) -> tuple[Positions, pd.DataFrame]:
    """Row ids and columns of a whole table. Numbers are packed a chunk at a time: as Python's they take ten times the
    memory."""
    query = f"SELECT {', '.join([rowid, *map(quoted, columns)])} FROM {quoted(table)} ORDER BY {rowid}"
    cursor = connection.execute(query)
    ids: list[Positions] = []
    chunks: list[list[pd.Series]] = [[] for _ in columns]
    while cells := cursor.fetchmany(_CHUNK_ROWS):
        numbers, *values = zip(*cells, strict=True)
        ids.append(np.array(numbers, dtype=np.int64))
        for series, column in zip(chunks, values, strict=True):
            series.append(typed_series(column))
    joined = [_joined(series) for series in chunks]
    if any(series is None for series in joined):
        whole = connection.execute(query).fetchall()
        return np.array([row[0] for row in whole], dtype=np.int64), _frame([row[1:] for row in whole], columns)
    data = dict(zip(columns, joined, strict=True))
    rowids = np.concatenate(ids) if ids else np.empty(0, dtype=np.int64)
    return rowids, pd.DataFrame(data, index=pd.RangeIndex(len(rowids)), copy=False)


def _joined(chunks: Sequence[pd.Series]) -> pd.Series | None:
    """The chunks as the column that :func:`typed_series` would have made of all their cells; None where it may be
    another."""
    dtypes = {str(chunk.dtype) for chunk in chunks}
    if dtypes == {"int64", "Int64"}:
        return pd.concat([chunk.astype("Int64") for chunk in chunks], ignore_index=True)
    if not chunks:
        return typed_series(())
    return pd.concat(chunks, ignore_index=True) if len(dtypes) == 1 else None


def _frame(cells: Sequence[tuple[object, ...]], columns: Sequence[str]) -> pd.DataFrame:
    values = zip(*cells, strict=True) if cells else ((),) * len(columns)
    data = {name: typed_series(column) for name, column in zip(columns, values, strict=True)}
    return pd.DataFrame(data, index=pd.RangeIndex(len(cells)))
