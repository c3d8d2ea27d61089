"""Limits on the content of files: a small file may claim far more rows, columns and text than memory can hold.

The limits are far above ordinary tables. A file that exceeds one is left out and named in ``corpus.problems``, with a
way to read it. A limit that grows with the file is a pair: a free amount, and an amount for each byte of the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tagframe.errors import UnreadableTable

COLUMNS = 10_000
"""The most columns of a table in a file. Profiling takes about half a millisecond for each."""

SAME_NAMES = 1_000
"""The most columns with the same name: pandas compares each with all others."""

CSV_FIRST_ROWS = 8 * 2**20
"""The most characters in the first two rows of a CSV file: about 400 for each cell of :data:`COLUMNS` columns."""

PARQUET_FOOTER = 32 * 2**20
"""The largest footer of a Parquet file in bytes. It is read before any row and takes 30 times as much memory."""

FREE_PARQUET_BYTES, PARQUET_BYTES_A_BYTE = 256 * 2**20, 100
"""Uncompressed bytes of a Parquet file, and bytes of its texts. A repeated text may be in the file only once."""

FREE_PARQUET_CELLS, PARQUET_CELLS_A_BYTE = 20_000_000, 100
"""Cells of a Parquet file. A run of one value takes almost no space, so a thousand bytes may be a billion rows."""

FREE_PACKED_BYTES, PACKED_BYTES_A_BYTE = 256 * 2**20, 100
"""Uncompressed bytes of a compressed CSV or JSON file. Ordinary ones are compressed to a third or a fiftieth."""

JSON_BYTES = 256 * 2**20
"""The most bytes of a JSON file, uncompressed: it is in memory as a whole, and takes about ten times as much there."""

FREE_JSON_CELLS, JSON_CELLS_A_BYTE = 20_000_000, 1
"""Cells of a JSON file: an object without most of the names takes three bytes and has a cell for each name."""

FREE_FEATHER_BYTES, FEATHER_BYTES_A_BYTE = 256 * 2**20, 100
"""Bytes of the columns of a Feather file in memory, and its cells."""

WORKBOOK_SHEETS = 1_000
"""The most sheets of a workbook; each is a table."""

FREE_WORKBOOK_CELLS, WORKBOOK_CELLS_A_BYTE = 1_000_000, 1
"""Cells of all sheets of a workbook. Each sheet counts from A1 to its last row and column, as empty cells between are
in memory, too. A cell of an ordinary workbook takes two bytes or more."""

FREE_WORKBOOK_BYTES, WORKBOOK_BYTES_A_BYTE = 64 * 2**20, 100
"""Uncompressed bytes of a workbook, and bytes of all its cells as text. Ordinary workbooks are compressed to between a
fifth and a twentieth."""

FREE_WORKBOOK_MEMORY, WORKBOOK_MEMORY_A_BYTE = 512 * 2**20, 64
"""The memory, in bytes, of the process that reads a workbook."""

FREE_WORKBOOK_SECONDS, WORKBOOK_BYTES_A_SECOND = 4.0, 2**19
"""CPU seconds after which that process is ended. Ordinary workbooks are read several times as fast."""


def allowed(free: int, a_byte: int, size: int) -> int:
    """The limit for a file of ``size`` bytes."""
    return max(free, a_byte * size)


def check_names(path: object, names: Sequence[object]) -> None:
    """Refuse a table with too many columns, or too many of one name.

    Raises:
        UnreadableTable: it has too many.
    """
    check_columns(path, len(names))
    for name, count in Counter(filter(None, names)).most_common(1):
        if count > SAME_NAMES:
            raise UnreadableTable(
                f"{path} has {count:,} columns called {str(name)[:99]!r}; at most {SAME_NAMES:,} may have one name. "
                "Give the columns different names"
            )


def check_columns(path: object, columns: int) -> None:
    """Refuse a table with too many columns.

    Raises:
        UnreadableTable: it has too many.
    """
    if columns > COLUMNS:
        raise UnreadableTable(
            f"{path} has {columns:,} columns; a table of a file has {COLUMNS:,} at most. Split it by columns, or turn "
            "it so that columns are rows (pandas.melt), and open the result"
        )
