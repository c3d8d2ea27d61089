"""Rows that DuckDB asks for while it reads: only the columns and conditions that a statement needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.dataset as ds  # type: ignore[import-untyped]

Read = Callable[[Sequence[str], "ds.Expression | None"], "pa.Table | pa.RecordBatchReader"]


class Scanned(ds.Dataset):  # type: ignore[misc]
    """What DuckDB accepts as an Arrow dataset, and scans again wherever a statement names it.

    Args:
        schema: of all columns; their names are unique.
        read: takes names of columns and a condition, and gives rows in their order, with at least these columns. It may
            leave out rows for which the condition is not true, but does not have to.
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
        rows = self._read(self._needed(names, filter), filter)
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


Comparison = tuple[str, str, int | str]
"""A column, one of ``==``, ``<``, ``<=``, ``>``, ``>=``, and what it is compared with."""

_COMPARISON = re.compile(r'([A-Za-z_]\w*) (==|<=|>=|<|>) (?:(-?\d{1,18})|"([^"\\]*)")')


def comparisons(condition: ds.Expression | None, schema: pa.Schema) -> list[Comparison]:
    """Some comparisons with whole numbers and texts that must be true of a row if the condition is true.

    A reader may leave out rows by these: it never leaves out a row for which the condition is true.
    """
    pairs: list[Comparison] = []
    for part in _parts("" if condition is None else str(condition)):
        match = _COMPARISON.fullmatch(part)
        if match is None or match[1] not in schema.names:
            continue
        name, sign, number, text = match.groups()
        type = schema.field(name).type
        if number is not None and pa.types.is_integer(type):
            pairs.append((name, sign, int(number)))
        elif text is not None and (pa.types.is_string(type) or pa.types.is_large_string(type)):
            pairs.append((name, sign, text))
    return pairs


def _parts(text: str) -> Iterator[str]:
    """The parts that ``and`` joins in an expression as Arrow writes it, each in parentheses."""
    if not (text.startswith("(") and text.endswith(")")) or "\\" in text:
        return
    depth = start = 0
    quoted, inner, parts = False, text[1:-1], []
    for position, letter in enumerate(inner):
        if letter == '"':
            quoted = not quoted
        elif not quoted:
            depth += (letter == "(") - (letter == ")")
            if depth < 0:
                return
            if depth == 0 and inner.startswith(" and ", position):
                parts.append(inner[start:position])
                start = position + 5
    if not parts:
        yield inner
    for part in [*parts, inner[start:]] if parts else ():
        yield from _parts(part)
