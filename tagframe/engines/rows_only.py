"""What engines that only hold rows share: frames, CSV and Parquet files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from tagframe.engines.base import EngineDefaults, TableShape, UntrustedStatement
from tagframe.engines.relations import relation
from tagframe.engines.sqlite.statement import SQLITE, run_statement


class RowsOnly(EngineDefaults, ABC):
    """Tables that are read whole; statements run over a copy of them in SQLite's memory."""

    dialect = SQLITE

    @abstractmethod
    def shapes(self) -> list[TableShape]:
        """The tables, without their rows."""

    @abstractmethod
    def scan(self, table: str, columns: Sequence[str] | None = None, limit: int | None = None) -> pd.DataFrame:
        """The rows of a table."""

    def execute(self, statement: UntrustedStatement) -> pd.DataFrame:
        shapes = {shape.name: shape for shape in self.shapes()}
        copies = {}
        for name, readable in statement.tables.items():
            columns = [column for column in shapes[readable.table].columns if column not in readable.hidden]
            copies[name] = relation(self.scan(readable.table, columns, 1 if statement.explain else None))
        return run_statement(replace(statement, tables={}, relations={**copies, **statement.relations}), file=None)
