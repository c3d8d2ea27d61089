"""The cells of a table as SQL sees them: how they are stored, and which values there are."""

from __future__ import annotations

import re
import threading
import weakref
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from tagframe.corpus import Corpus, TableProfile
from tagframe.engines.sqlite.statement import relation
from tagframe.errors import CorpusError, SQLFailed

FEW_VALUES = 150
"""A column with at most this many distinct values is read completely, so that a prompt can show all of them."""
_ROWS_LOOKED_AT = 1_000
_ROWS_READ_WHOLE = 1_000_000
_SAMPLES = 5
_LONGEST = 80
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


@dataclass(frozen=True)
class CellLiterals:
    """One column.

    Attributes:
        types: storage classes, "INTEGER", "REAL", "TEXT" or "BLOB", the most frequent first.
        values: as SQL literals, the most frequent first; texts are cut at 80 characters.
        complete: whether these are all values except NULL.
        digits: whether it is text that contains only numbers.
    """

    types: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    complete: bool = False
    digits: bool = False

    @property
    def texts(self) -> list[str]:
        """The values that are texts."""
        return [value[1:-1].replace("''", "'") for value in self.values if value.startswith("'")]


_known: weakref.WeakKeyDictionary[Corpus, dict[str, tuple[TableProfile, dict[str, CellLiterals]]]]
_known = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def cell_literals(corpus: Corpus, profile: TableProfile) -> dict[str, CellLiterals]:
    """The facts of a table's columns, by name; looked up once. Empty if its rows cannot be read."""
    with _lock:
        of_corpus = _known.setdefault(corpus, {})
        if (known := of_corpus.get(profile.id)) is not None and known[0] is profile:
            return known[1]
    try:
        found = _looked_up(corpus, profile)
    except (CorpusError, SQLFailed):
        found = {}
    with _lock:
        of_corpus[profile.id] = (profile, found)
    return found


def _looked_up(corpus: Corpus, profile: TableProfile) -> dict[str, CellLiterals]:
    engine = corpus.engine(profile.id)
    visible = list(profile.for_prompts)
    if engine is None or not visible:
        return {}
    first = corpus.read(profile.id, [column.name for column in visible], limit=_ROWS_LOOKED_AT)
    few = [column.name for column in visible if column.distinct is not None and column.distinct <= FEW_VALUES]
    rows = profile.rows or 0
    whole = first if rows <= len(first) else None
    if whole is None and few and rows <= _ROWS_READ_WHOLE:
        whole = corpus.read(profile.id, few)
    in_place = engine.kind == "sqlite"
    found = {}
    for column in visible:
        complete = column.name in few and whole is not None
        cells = _cells((whole if complete and whole is not None else first)[column.name], in_place)
        known = _column(cells, complete)
        if engine.dialect.name != "sqlite":
            # Its types are those of columns, and strict.
            words = {"1": "true", "0": "false"} if column.family == "boolean" else {}
            values = tuple(words.get(value, value) for value in known.values)
            known = replace(known, types=(column.declared_type,), values=values)
        found[column.name] = known
    return found


def _cells(column: pd.Series, in_place: bool) -> list[tuple[Any, int]]:
    """The cells that are not null, as a statement sees them: in the file, or in a copy of the table; and how often.

    Cells of one type are converted once, however often they are there; a mixed column may have 1 beside 1.0.
    """
    column = column.dropna()
    if column.dtype == object:
        counts = [1] * len(column)
    else:
        counted = column.value_counts(sort=False)
        column, counts = pd.Series(counted.index, name=column.name), counted.tolist()
    if in_place:
        return list(zip(column.astype(object), counts, strict=True))
    try:
        copied = relation(column.to_frame()).column(0).to_pylist()
    except SQLFailed:  # a number that SQLite does not have: a statement that reads the column is refused
        copied = list(column.astype(str))
    return [(cell, count) for cell, count in zip(copied, counts, strict=True) if cell is not None]


def _column(cells: Sequence[tuple[Any, int]], complete: bool) -> CellLiterals:
    plain = [(cell.item() if isinstance(cell, np.generic) else cell, count) for cell, count in cells]
    if not plain:
        return CellLiterals(complete=complete)
    types = _frequent((_type(cell), count) for cell, count in plain)
    # By type and value: 1 and '1' are two, 1 and 1.0 as well.
    literals = _frequent((_literal(cell), count) for cell, count in plain)
    digits = set(types) == {"TEXT"} and all(_NUMBER.fullmatch(cell.strip()) for cell, _ in plain)
    rest = literals if complete and len(literals) <= FEW_VALUES else literals[:_SAMPLES]
    return CellLiterals(tuple(types), tuple(rest), complete and len(rest) == len(literals), digits)


def _frequent(texts: Iterable[tuple[str, int]]) -> list[str]:
    """The distinct values, the most frequent first; equally frequent ones in order of appearance."""
    counts = Counter[str]()
    for text, count in texts:
        counts[text] += count
    return [text for text, _ in counts.most_common()]


def _type(cell: Any) -> str:
    if isinstance(cell, bool | int):
        return "INTEGER"
    return "REAL" if isinstance(cell, float) else "BLOB" if isinstance(cell, bytes) else "TEXT"


def _literal(cell: Any) -> str:
    if isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, int | float):
        return repr(cell)
    if isinstance(cell, bytes):
        return f"a blob of {len(cell)} bytes"
    text = " ".join(str(cell).split()) if len(str(cell)) > _LONGEST else str(cell)
    visible = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    if not visible.isprintable():
        # A cell of NUL would reach the model as nothing, or as an end of the text.
        codes = {code for code in map(ord, visible) if not chr(code).isprintable()}
        return f"a text with {', '.join(f'char({code})' for code in sorted(codes)[:3])}"
    return "'" + visible.replace("'", "''") + "'"
