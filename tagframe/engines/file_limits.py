"""How much a file may make of itself: a small file may claim far more rows, columns and text than memory can hold.

The limits are far above what tables of people's own hold. A file that passes one is left out and named in
``corpus.problems``; what it says there tells how the file can be read nevertheless. Limits that grow with the file are
of the form "so much free, beyond it so much for each byte of the file": a large file may be large.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tagframe.errors import UnreadableTable

COLUMNS = 10_000
"""Columns of a table of a file. Each costs about half a millisecond wherever it is looked at."""

SAME_NAMES = 1_000
"""Columns of a file that have one name: pandas compares each with all others."""

CSV_FIRST_ROWS = 8 * 2**20
"""Characters of the first two rows of a CSV file, which tell its columns: 400 for each of so many columns and rows."""

PARQUET_FOOTER = 32 * 2**20
"""Bytes of what a Parquet file says of itself, all of which is read before any row; 30 times as many of memory."""

FREE_PARQUET_BYTES, PARQUET_BYTES_A_BYTE = 256 * 2**20, 100
"""Bytes of a Parquet file without its compression, and of its texts. One that is in many rows is in the file once."""

FREE_PARQUET_CELLS, PARQUET_CELLS_A_BYTE = 20_000_000, 100
"""Cells of a Parquet file. A run of one value takes no room in it, so that a thousand bytes may be a billion rows."""

WORKBOOK_SHEETS = 1_000
"""Sheets of a workbook, each of which is a table."""

FREE_WORKBOOK_CELLS, WORKBOOK_CELLS_A_BYTE = 1_000_000, 1
"""Cells of all sheets of a workbook, each from A1 to its last row and column: what lies between is in memory, too.
Those of ordinary workbooks take two bytes each, and more."""

FREE_WORKBOOK_BYTES, WORKBOOK_BYTES_A_BYTE = 64 * 2**20, 100
"""Bytes of a workbook without its compression, and of the cells of all its sheets as text. Ordinary ones are
compressed to a fifth or a twentieth."""

FREE_WORKBOOK_MEMORY, WORKBOOK_MEMORY_A_BYTE = 512 * 2**20, 64
"""Bytes of memory that the process which reads a workbook may take."""

FREE_WORKBOOK_SECONDS, WORKBOOK_BYTES_A_SECOND = 4.0, 2**19
"""Seconds of the processor after which that process is ended. Ordinary workbooks are read several times as fast."""


def allowed(free: int, a_byte: int, size: int) -> int:
    """What a file of so many bytes may have of something."""
    return max(free, a_byte * size)


def check_names(path: object, names: Sequence[object]) -> None:
    """Refuse a table of too many columns, or of too many of one name.

    Raises:
        UnreadableTable: it is such.
    """
    check_columns(path, len(names))
    for name, count in Counter(filter(None, names)).most_common(1):
        if count > SAME_NAMES:
            raise UnreadableTable(
                f"{path} has {count:,} columns called {str(name)[:99]!r}, and {SAME_NAMES:,} of one name are the most: "
                "give the columns names of their own"
            )


def check_columns(path: object, columns: int) -> None:
    """Refuse a table of too many columns.

    Raises:
        UnreadableTable: it has.
    """
    if columns > COLUMNS:
        raise UnreadableTable(
            f"{path} has {columns:,} columns; a table of a file has {COLUMNS:,} at most. Split it by columns, or turn "
            "it so that columns are rows (pandas.melt), and open the result"
        )
