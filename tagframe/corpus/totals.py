"""Rows of a table that are sums of its other rows: whoever sums a column counts them twice.

They have a word such as "Total", or a cell that is empty or the same in all of them ("all", 0), and their numbers are
the sums of the others, of all or of those with the same cell of another column: a row of a district beside its schools.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tagframe.engines.base import Chunk

WORDS = frozenset(
    "total totals total: subtotal sub-total insgesamt gesamt gesamtsumme summe zwischensumme totale totaal totalt "
    "toplam celkem razem ogółem összesen yhteensä итого всего 合計 合计 总计 小計 計".split()
).union(("grand total", "sub total", "sum total", "overall total", "total general", "i alt", "i alles", "all total"))
"""Cells, trimmed and in lower case, that name a sum."""
_MARKS = WORDS.union("all overall sum alle tous todos 0 00 000 0000 99 999 9999 - * district state country".split())
_MOST_ROWS, _MOST_CELLS = 50_000, 2_000_000
_MOST_VALUES, _FEW_VALUES, _MOST_COLUMNS, _LEAST_PARTS = 1_000, 5, 12, 3
_SHARE = 0.9
"""The share of rows whose numbers have to be sums."""
_SMALL = 20
"""Numbers up to this are sums of others by chance, too."""


@dataclass(frozen=True)
class TotalRows:
    """Rows that are sums of other rows of their table.

    Attributes:
        column, value: the cell that tells them from the others; None for an empty one.
        rows: how many there are.
        within: the column within whose values they sum; "" if they sum all rows, or only a word says so.
        checked: the columns whose numbers are the sums; none if only a word says so.
    """

    column: str
    value: str | None
    rows: int
    within: str = ""
    checked: tuple[str, ...] = ()

    def __str__(self) -> str:
        cell = "is empty" if self.value is None else f"is {self.value!r}"
        of = f" of each {self.within}" if self.within else ""
        why = f": sums{of} of the others in {', '.join(self.checked)}" if self.checked else ""
        return f"{self.rows:,} {'row' if self.rows == 1 else 'rows'} whose {self.column} {cell}{why}"


def totals_text(totals: Sequence[TotalRows]) -> str:
    """As a catalogue stores them."""
    return json.dumps([asdict(one) for one in totals]) if totals else ""


def totals_of(text: str) -> tuple[TotalRows, ...]:
    """From such a text."""
    return tuple(TotalRows(**{**one, "checked": tuple(one["checked"])}) for one in (json.loads(text) if text else []))


class Totals:
    """Finds such rows in the chunks of a table; of a large one only those with a word."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = columns
        self._chunks: list[list[Any]] | None = []
        self._rows = 0

    def add(self, chunk: Chunk) -> None:
        """More rows."""
        self._rows += chunk.rows
        if self._rows > _MOST_ROWS or self._rows * len(self._columns) > _MOST_CELLS:
            self._chunks = None
        elif self._chunks is not None:
            self._chunks.append(list(chunk.columns))

    def rows(self, words: Sequence[tuple[str, str, int]]) -> tuple[TotalRows, ...]:
        """The rows that are sums.

        Args:
            words: cells of :data:`WORDS`: their columns, as they are written, and in how many rows.
        """
        sums = list(self._sums()) if self._chunks and self._rows >= _LEAST_PARTS else []
        known = {(one.column, one.value) for one in sums}
        named = [TotalRows(*word) for word in words if word[:2] not in known and word[2] < self._rows]
        return tuple(dict.fromkeys([*sums, *named]))

    def _sums(self) -> Iterator[TotalRows]:
        cells = _Cells(self._columns, self._chunks or [])
        for column in cells.codes if cells.numbers else ():
            groups = [name for name in cells.codes if name != column and cells.is_group(name)]
            for value, is_total in cells.marked(column):
                for within in ["", *groups]:
                    if checked := cells.sums(is_total, within, is_named=value is None or value.casefold() in _MARKS):
                        yield TotalRows(column, value, int(is_total.sum()), within, checked)
                        break


class _Cells:
    """The cells of a small table: its numbers, and the columns that may tell rows apart."""

    def __init__(self, columns: Sequence[str], chunks: Sequence[Sequence[Any]]) -> None:
        self.numbers: dict[str, npt.NDArray[np.float64]] = {}
        self.codes: dict[str, npt.NDArray[np.intp]] = {}
        self._texts: dict[str, list[str | None]] = {}
        for at, name in enumerate(columns):
            parts = [pd.Series(chunk[at]).reset_index(drop=True) for chunk in chunks]
            parts = [part for part in parts if len(part)] or parts[:1]  # pandas 2 warns of empty ones
            whole = parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True).infer_objects()
            if pd.api.types.is_numeric_dtype(whole.dtype) and not pd.api.types.is_bool_dtype(whole.dtype):
                self.numbers[name] = whole.to_numpy(dtype=np.float64, na_value=np.nan)
                if not pd.api.types.is_integer_dtype(whole.dtype):
                    continue
            if len(self.codes) < _MOST_COLUMNS:
                with suppress(TypeError, NotImplementedError):  # lists in cells, of Arrow, too
                    codes, values = pd.factorize(whole)
                    if len(values) <= _MOST_VALUES or (codes < 0).any():
                        self.codes[name] = codes
                        self._texts[name] = [str(value).strip() or None for value in values[:_MOST_VALUES]]

    def is_group(self, name: str) -> bool:
        """Whether several rows have each value of a column."""
        return int(self.codes[name].max(initial=-1)) < len(self.codes[name]) / 2

    def marked(self, name: str) -> Iterator[tuple[str | None, npt.NDArray[np.bool_]]]:
        """The cells of a column that may mark sums, and in which rows they are: at most half of them."""
        codes, texts = self.codes[name], self._texts[name]
        is_short = name not in self.numbers and len(texts) <= _FEW_VALUES
        candidates: list[tuple[str | None, npt.NDArray[np.bool_]]] = [(None, codes < 0)]
        candidates += [
            (text, codes == code)
            for code, text in enumerate(texts)
            if text is None or is_short or text.casefold() in _MARKS
        ]
        for text, mask in candidates:
            if 0 < mask.sum() <= len(mask) / 2:
                yield text, mask

    def sums(self, is_total: npt.NDArray[np.bool_], within: str, *, is_named: bool) -> tuple[str, ...]:
        """The columns in which these rows are the sums of the others; none if they are not.

        Args:
            is_total: the rows.
            within: the column in whose groups they sum; "" for all rows.
            is_named: whether the cell that they have in common speaks for sums.
        """
        if not within and is_total.sum() > 1:
            return ()
        codes = self.codes[within] if within else np.zeros(len(is_total), dtype=np.intp)
        is_part = ~is_total & (codes >= 0)
        of_parts, size = codes[is_part], int(codes.max(initial=0)) + 1
        parts = np.bincount(of_parts, minlength=size)
        # A row of the whole among those of the groups has a group of its own.
        if is_total.sum() > 2 * size:
            return ()
        rows = np.flatnonzero(is_total & (codes >= 0) & (parts[codes] > 1))
        groups = codes[rows]
        is_each_once = len(rows) > bool(within) and len({*groups.tolist()}) == len(groups)
        if not is_each_once or len(rows) < is_total.sum() / 2 or len(of_parts) < _LEAST_PARTS - is_named:
            return ()
        checked, weight = [], 0.0
        for name, numbers in self.numbers.items():
            one, expected = numbers[rows], np.bincount(of_parts, np.nan_to_num(numbers[is_part]), size)[groups]
            counts = ~np.isnan(one) & ((one != 0) | (expected != 0))
            fits = np.isclose(one, expected, rtol=1e-6, atol=1e-9)[counts]
            if counts.any() and fits.mean() >= _SHARE:
                checked.append(name)
                weight += float(np.where(np.abs(expected[counts]) > _SMALL, 1, 0.5).sum())
        return tuple(checked) if weight >= (1 if is_named else 1.5) else ()
