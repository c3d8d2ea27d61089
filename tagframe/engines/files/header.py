"""Which row of a sheet or of a delimited text names the columns: reports have titles and notes above their tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

LOOKED_AT = 20
"""Rows from the first one on among which the names of columns are looked for."""
_EVEN = 0.9
"""The share of rows, from the header on, that are as long as the header."""
_VALUE = re.compile(r"[-+(]?[^\w\s]?\s*[0-9][0-9.,:/\s'%-]*[^\w\s]?\)?", re.ASCII)
"""A cell that is no name: a number, an amount, a date or a time."""
_LONGEST = 300
"""The most characters of a title."""
_WORDS = 12
"""The most words of a column's name: one of a survey is its question."""
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")


def title_rows(rows: Sequence[Sequence[Any]]) -> int:
    """How many rows are above the one that names the columns.

    Above it each row has a cell in a third of the columns at most, or is shorter: a title, a note, or nothing. It names
    more than half of them, with texts or years that differ. Numbers or dates stand below it, as a column of sentences
    has commas, too. 0 if there is no such row, or if the first one is it.

    >>> title_rows([["Staff, 2024"], [], ["name", "born"], ["Ann", 1990], ["Bo", 1985]])
    2

    Args:
        rows: the first ones, cell by cell; empty cells are None or "".
    """
    filled = [[cell for cell in row if cell is not None and str(cell).strip()] for row in rows]
    width = max(map(len, filled[:LOOKED_AT]), default=0)
    # A row that is one shorter than those below may be names without that of an index.
    may_be_title = [
        len(cells) <= max(1, width // 3) or len(row) < width - 1 for cells, row in zip(filled, rows, strict=True)
    ]
    above = [*may_be_title[:LOOKED_AT], False].index(False)
    if not above or width < 2 or above + 1 >= len(rows):
        return 0
    if width == 2 and filled[0] and not str(rows[0][0] or "").strip():  # a saved index, and the name of a column
        return 0
    lengths = [len(row) for row in rows[above:] if row]
    is_even = lengths.count(len(rows[above])) >= _EVEN * len(lengths)
    names, cells = filled[above], (cell for below in filled[above + 1 :] for cell in below)
    is_header = len(names) > width / 2 and are_names(names)
    return above if is_even and is_header and any(map(_is_value, cells)) else 0


def are_names(cells: Sequence[Any]) -> bool:
    """Whether cells may name columns: years or texts of a few words, no two alike."""
    names = [*map(str, cells)]
    are_texts = all(_YEAR.fullmatch(name) or not _is_value(cell) for cell, name in zip(cells, names, strict=True))
    return are_texts and len({*names}) == len(names) and all(len(name.split()) <= _WORDS for name in names)


def _is_value(cell: Any) -> bool:
    return not isinstance(cell, str) or _VALUE.fullmatch(cell.strip()) is not None


def title_text(rows: Iterable[Sequence[Any]]) -> str:
    """What rows of titles say, in one line: a comment on the table.

    >>> title_text([["Staff, 2024", ""], [], ["in thousands of", "EUR"]])
    'Staff, 2024; in thousands of EUR'
    """
    lines = (" ".join(" ".join(str(cell) for cell in row if cell is not None).split()) for row in rows)
    return "; ".join(filter(None, lines))[:_LONGEST]


def below_titles(rows: int) -> str:
    """The sentence that says that the names of columns stand below so many rows of titles."""
    left = "the row above it is the title" if rows == 1 else f"the {rows} rows above it are the title"
    return f"row {rows + 1} names the columns, and {left} of the table"
