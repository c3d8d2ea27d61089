"""Rows that DuckDB asks for while it reads: only the columns that a statement needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.dataset as ds  # type: ignore[import-untyped]

Read = Callable[[Sequence[str]], "pa.Table | pa.RecordBatchReader"]


class Scanned(ds.Dataset):  # type: ignore[misc]
    """What DuckDB accepts as an Arrow dataset, and scans again wherever a statement names it.

    Args:
        schema: of all columns; their names are unique.
        read: takes names of columns, and gives all rows in their order, in these columns.
    """

    def __init__(self, schema: pa.Schema, read: Read) -> None:
        self._all, self._read = schema, read

    @property
    def schema(self) -> pa.Schema:
        return self._all

    def scanner(
        self, columns: Sequence[str] | None = None, filter: ds.Expression | None = None, **options: Any
    ) -> ds.Scanner:
        """The rows for which the condition is true."""
        names = self._all.names if columns is None else list(columns)
        rows = self._read(self._needed(names, filter))
        if isinstance(rows, pa.Table):
            return ds.dataset(rows).scanner(columns=names, filter=filter)
        return ds.Scanner.from_batches(rows, columns=names, filter=filter)

    def _needed(self, names: Sequence[str], filter: ds.Expression | None) -> list[str]:
        """The columns that are shown, and those that the condition is on."""
        if filter is None:
            return list(names)
        # Arrow does not say which these are; all of them have their names in its text.
        text = str(filter)
        needed = [name for name in self._all.names if name in names or name in text]
        try:
            part = pa.schema([self._all.field(name) for name in needed])
            ds.dataset(part.empty_table()).scanner(filter=filter)
        except pa.ArrowInvalid:  # a name that is written otherwise there
            return list(self._all.names)
        return needed
