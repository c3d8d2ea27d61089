"""Paging for a model's context: a result has at most some thousand tokens, and a cursor for the next page."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pandas as pd

from tagframe.answer.schema_text import CHARACTERS_A_TOKEN
from tagframe.corpus.stored_profiles import AtHand
from tagframe.errors import InvalidArgument
from tagframe.operators.cells import json_cells

T = TypeVar("T")

MAX_RESULT_TOKENS = 8_000
"""The most tokens of one result."""
_BYTES_A_TOKEN = 1.3
"""Bytes per token of text that is not ASCII: an emoji of four bytes has at most three tokens."""
_MAX_CELL_LETTERS = (1_000, 200, 40, 8)
"""The most characters of a cell; smaller limits are tried if not even one row fits."""
_MAX_EXACT_INTEGER = 2**53
"""Larger integers are given as text, because clients that read JSON numbers as floats would change them."""
MAX_STORED_RESULTS = 8
"""The latest results are kept, so that the next page has the same rows."""


def tokens_of(value: Any) -> float:
    """The estimated tokens of a value as JSON, rather too many than too few."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    plain = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    others = len(text.encode("utf-8", "replace")) - plain
    return plain / CHARACTERS_A_TOKEN + others / _BYTES_A_TOKEN


def offset_of(cursor: str | None) -> int:
    """The position at which the page of a cursor begins.

    Raises:
        InvalidArgument: the cursor is not valid.
    """
    if cursor is None or cursor == "":
        return 0
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > 9:
        raise InvalidArgument(f"pass the cursor of the previous result, or leave it out; got {cursor!r:.80}")
    return int(cursor)


def page_of(rows: Sequence[list[Any]], start: int, room: float) -> tuple[list[list[Any]], str | None, bool]:
    """The rows from ``start`` that fit, the cursor of the next page, and whether cells were cut.

    Raises:
        InvalidArgument: there are no such rows, or a single row is too wide.
    """
    if start and start >= len(rows):
        raise InvalidArgument(f"the cursor {start} is past the end: there are {len(rows):,} rows")
    for longest in _MAX_CELL_LETTERS:
        page: list[list[Any]] = []
        left, is_cut = room, False
        for row in rows[start:]:
            short = [_cut(cell, longest) for cell in row]
            left -= tokens_of(short) + 1
            if left < 0:
                break
            page.append(short)
            is_cut |= short != row
        if page or start >= len(rows):
            end = start + len(page)
            return page, str(end) if end < len(rows) else None, is_cut
    raise InvalidArgument(f"a row of {len(rows[start])} columns is too wide to show: name the columns that are needed")


def _cut(cell: Any, longest: int) -> Any:
    text = cell if isinstance(cell, str) else "" if isinstance(cell, int | float | None) else json.dumps(cell)
    return cell if len(text) <= longest else f"{text[:longest]}… (cut, {len(text):,} characters)"


def rows_of(frame: pd.DataFrame) -> list[list[Any]]:
    """The rows of a frame as JSON values."""
    columns = [json_cells(column) for _, column in frame.items()]
    return [
        [str(cell) if isinstance(cell, int) and abs(cell) > _MAX_EXACT_INTEGER else cell for cell in row]
        for row in zip(*columns, strict=True)
    ]


def at_hand(stored: AtHand, key: object, start: int, make: Callable[[], T]) -> T:
    """The stored result of this key, for a page after the first one; else the result of ``make``."""
    return stored.get(json.dumps(key, default=str), make, afresh=not start)
