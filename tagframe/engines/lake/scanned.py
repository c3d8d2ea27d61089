"""Rows that DuckDB asks for as it reads them: of the columns and conditions that a statement needs, and no others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.dataset as ds  # type: ignore[import-untyped]

Read = Callable[[Sequence[str], "ds.Expression | None"], "pa.Table | pa.RecordBatchReader"]


class Scanned(ds.Dataset):  # type: ignore[misc]
    """What DuckDB takes for a dataset of Arrow's, and scans afresh wherever a statement names it.

    Args:
        schema: of all columns; no two of one name.
        read: from names of columns, and a condition, to rows in their order, with these columns at least. It may leave
            out rows of which the condition is not true, and need not.
    """

    def __init__(self, schema: pa.Schema, read: Read) -> None:
        self._all, self._read = schema, read

    @property
    def schema(self) -> pa.Schema:
        """Of all columns."""
        return self._all

    def scanner(
        self, columns: Sequence[str] | None = None, filter: ds.Expression | None = None, **options: Any
    ) -> ds.Scanner:
        """The rows of which the condition is true."""
        shown = self._all.names if columns is None else list(columns)
        rows = self._read(self._needed(shown, filter), filter)
        if isinstance(rows, pa.Table):
            return ds.dataset(rows).scanner(columns=shown, filter=filter)
        return ds.Scanner.from_batches(rows, columns=shown, filter=filter)

    def _needed(self, shown: Sequence[str], filter: ds.Expression | None) -> list[str]:
        """The columns that are shown, and those that the condition is on."""
        if filter is None:
            return list(shown)
        # Arrow does not say which these are: those whose names its text has are among them.
        told = str(filter)
        needed = [name for name in self._all.names if name in shown or name in told]
        try:
            part = pa.schema([self._all.field(name) for name in needed])
            ds.dataset(part.empty_table()).scanner(filter=filter)
        except pa.ArrowInvalid:  # a name that is written otherwise there
            return list(self._all.names)
        return needed
