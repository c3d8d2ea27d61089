"""What engines share that hold rows and run nothing: frames, CSV and Parquet files."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from tagframe.engines.base import RowNumbers
from tagframe.errors import UnreadableTable


class RowsOnly:
    """Tables that are read whole, and have no session of their own."""

    picks_rows = False

    def numbered(self, table: str, columns: Sequence[str]) -> None:
        """None: rows cannot be picked."""

    def pick(self, table: str, columns: Sequence[str], numbers: RowNumbers) -> pd.DataFrame:
        """There is nothing to pick by."""
        raise UnreadableTable(f"rows of {table!r} cannot be read one by one")

    def session(self) -> None:
        """None: nothing runs here."""
