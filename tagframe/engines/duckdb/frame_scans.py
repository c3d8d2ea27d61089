"""Frames that DuckDB reads in place, without copying what a statement does not need.

Statements over frames are in SQLite's dialect unless ``tagframe.open_corpus({…}, engine="duckdb")`` asks for DuckDB.
DuckDB does not copy a million rows, and its answers differ where the dialects differ: ``7 / 2`` is 3.5 and not 3,
``LIKE`` is case-sensitive, a text and a number are not compared, dates are not texts, and NULL is sorted last. Values
that cannot form a column there (cells of several types, periods, lists) become text, as in SQLite.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd

from tagframe.engines.base import Dialect, TableShape, UntrustedStatement
from tagframe.engines.duckdb.readable import readable
from tagframe.engines.duckdb.statement import DUCKDB, run_statement
from tagframe.engines.duckdb.tables import need_duckdb
from tagframe.engines.frame_engine import FrameEngine


@dataclass(frozen=True, eq=False)
class DuckDBFrames(FrameEngine):
    """Frames in memory, by their names in the source, queried by DuckDB."""

    dialect: Dialect = DUCKDB
    identity: str = "frames in memory, by DuckDB"

    def shapes(self) -> list[TableShape]:
        """The frames' names, with DuckDB's types."""
        import duckdb

        need_duckdb("engine='duckdb'")
        shapes = []
        with duckdb.connect(":memory:") as connection:
            for name, frame in self.frames.items():
                empty = readable(frame).schema.empty_table()
                types = [str(type) for type in connection.from_arrow(empty).types] if frame.shape[1] else []
                shapes.append(TableShape(name, tuple(map(str, frame.columns)), tuple(types)))
        return shapes

    def execute(self, statement: UntrustedStatement) -> pd.DataFrame:
        """Over the frames as they are now; see :mod:`tagframe.engines.duckdb.statement`."""
        frames = {name: readable(self.frames[one.table], one.hidden) for name, one in statement.tables.items()}
        return run_statement(replace(statement, tables={}, relations={**frames, **statement.relations}), {})
