"""What fits a model's context: results are cut to some thousand tokens, and a cursor gives what follows."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pandas as pd

from tagframe.answer.schema_text import CHARACTERS_A_TOKEN
from tagframe.errors import InvalidArgument
from tagframe.operators.cells import json_cells

T = TypeVar("T")

TOKENS = 8_000
"""Of one result, at most."""
_BYTES_A_TOKEN = 1.3
"""Of text that is not ASCII: an emoji of four bytes is of three tokens at worst."""
_LENGTHS = (1_000, 200, 40, 8)
"""Characters of a cell at most: fewer where not even one row fits otherwise."""
_EXACT = 2**53
"""Beyond it a client that reads JSON numbers as floats would change an integer: it is given as text."""
_REMEMBERED = 8


def tokens_of(value: Any) -> float:
    """About how many tokens a value is of as JSON, and rather too many than too few."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    plain = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    others = len(text.encode("utf-8", "replace")) - plain
    return plain / CHARACTERS_A_TOKEN + others / _BYTES_A_TOKEN


def offset_of(cursor: str | None) -> int:
    """Where the page of a cursor begins.

    Raises:
        InvalidArgument: no result has had such a cursor.
    """
    if cursor is None or cursor == "":
        return 0
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > 9:
        raise InvalidArgument(f"a cursor is passed as the result before had it, or left out; got {cursor!r:.80}")
    return int(cursor)


def page_of(rows: Sequence[list[Any]], start: int, room: float) -> tuple[list[list[Any]], str | None, bool]:
    """The rows from ``start`` on that fit, the cursor of those that follow, and whether cells were cut for it.

    Raises:
        InvalidArgument: there are no rows from there on, or one row alone is too wide.
    """
    if start and start >= len(rows):
        raise InvalidArgument(f"the cursor {start} is past the end: there are {len(rows):,} rows")
    for longest in _LENGTHS:
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
    """The rows of a frame as JSON has them."""
    columns = [json_cells(column) for _, column in frame.items()]
    return [
        [str(cell) if isinstance(cell, int) and abs(cell) > _EXACT else cell for cell in row]
        for row in zip(*columns, strict=True)
    ]


class Remembered:
    """The results that were given last, so that a page that follows is of the same rows."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: object, start: int, make: Callable[[], T]) -> T:
        """What was made under this key, for a page after the first one; else what ``make`` gives."""
        name = json.dumps(key, default=str)
        with self._lock:
            if start and name in self._known:
                self._known.move_to_end(name)
                known: T = self._known[name]
                return known
        made = make()
        with self._lock:
            self._known[name] = made
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return made
