"""Where a merge takes its rows from.

Where the engine can pick rows, only the key columns are read whole; of the others, only rows of the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pandas as pd

from tagframe.corpus import Corpus
from tagframe.corpus.corpus import read_keys
from tagframe.engines.base import RowNumbers
from tagframe.keys.matching import Positions


class Rows(Protocol):
    """Columns of tables, whole or some rows of them. A row's number is its place in what ``whole`` gives."""

    def may_pick(self, table: str) -> bool:
        """Whether some rows of the table can be read without the others."""

    def whole(self, table: str, columns: Sequence[str]) -> pd.DataFrame:
        """All rows of these columns, in an order that is the same for all columns of the table."""

    def some(self, table: str, columns: Sequence[str], numbers: Positions) -> pd.DataFrame | None:
        """These rows (ascending, no duplicates), or None where there is no way to read some only."""


class CorpusRows:
    """Rows of a corpus' tables."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._numbers: dict[str, RowNumbers] = {}

    def may_pick(self, table: str) -> bool:
        """Where its engine can."""
        engine = self._corpus.engine(table)
        return engine is not None and engine.picks_rows

    def whole(self, table: str, columns: Sequence[str]) -> pd.DataFrame:
        """All rows of these columns; in the order of their numbers where rows can be picked."""
        engine = self._corpus.engine(table)
        found = None if engine is None else engine.numbered(self._corpus.source_table(table), columns)
        if found is None:
            return read_keys(self._corpus, table, columns)
        self._numbers[table], frame = found
        return frame

    def some(self, table: str, columns: Sequence[str], numbers: Positions) -> pd.DataFrame | None:
        """These rows; None where they cannot be picked."""
        engine = self._corpus.engine(table)
        if engine is None or table not in self._numbers:
            return None
        return engine.pick(self._corpus.source_table(table), columns, self._numbers[table][numbers])
