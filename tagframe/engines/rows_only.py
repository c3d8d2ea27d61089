"""What engines share that only hold rows: frames, CSV and Parquet files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import pandas as pd

from tagframe.engines.base import Joins, Readable, RowNumbers, SQLLimits, TableShape, TableStatistics
from tagframe.engines.derivations import Derivations
from tagframe.engines.sqlite.statement import SQLITE, run_statement
from tagframe.errors import UnreadableTable

if TYPE_CHECKING:
    import pyarrow as pa

    from tagframe.engines.pushdown import Pushdown


class RowsOnly(ABC):
    """Tables that are read whole; statements run over a copy of them in SQLite's memory."""

    is_database = False
    picks_rows = False
    is_asked = False
    joins: Joins = ""
    dialect = SQLITE

    @abstractmethod
    def shapes(self) -> list[TableShape]:
        """The tables, without their rows."""

    @abstractmethod
    def scan(self, table: str, columns: Sequence[str] | None = None, limit: int | None = None) -> pd.DataFrame:
        """The rows of a table."""

    def closed(self) -> list[UnreadableTable]:
        """Nothing: a file is read as a whole, or not at all."""
        return []

    def statistics(self, shapes: Sequence[TableShape]) -> Iterator[TableStatistics | UnreadableTable] | None:
        return None

    def numbered(self, table: str, columns: Sequence[str]) -> tuple[RowNumbers, pd.DataFrame] | None:
        return None

    def pick(self, table: str, columns: Sequence[str], numbers: RowNumbers) -> pd.DataFrame:
        """There is nothing to pick by."""
        raise UnreadableTable(f"rows of {table!r} cannot be read one by one")

    def derivations(self, columns: Collection[tuple[str, str]]) -> Derivations:
        return Derivations()

    def kept_open(self) -> AbstractContextManager[None]:
        """Nothing is to be kept."""
        return nullcontext()

    def pushdown(self, tables: Sequence[str]) -> AbstractContextManager[Pushdown] | None:
        return None

    def execute(
        self,
        sql: str,
        *,
        tables: Mapping[str, Readable],
        relations: Mapping[str, pa.Table],
        limits: SQLLimits,
        explain: bool = False,
    ) -> pd.DataFrame:
        from tagframe.engines.relations import relation

        shapes = {shape.name: shape for shape in self.shapes()}
        copies = {}
        for name, readable in tables.items():
            columns = [column for column in shapes[readable.table].columns if column not in readable.hidden]
            copies[name] = relation(self.scan(readable.table, columns, 1 if explain else None))
        return run_statement(
            sql, file=None, tables={}, relations={**copies, **relations}, limits=limits, explain=explain
        )
