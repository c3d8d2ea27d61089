"""Aggregates that SQLite lacks and other engines have; registered in the worker's connection.

The names and definitions are those of PostgreSQL and DuckDB: ``stddev`` and ``variance`` are of a sample (n - 1),
``quantile_cont`` interpolates and ``quantile_disc`` does not. NULLs, and texts that are no numbers, are left out.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

NAMES = frozenset(
    "median stddev stddev_samp stddev_pop variance var_samp var_pop corr quantile_cont quantile_disc mode".split()
)


class _Numbers:
    """Collects the rows of one group."""

    def __init__(self, result: Callable[[Sequence[tuple[Any, ...]]], Any]) -> None:
        self._result = result
        self._rows: list[tuple[Any, ...]] = []

    def step(self, *cells: Any) -> None:
        """Take one row."""
        if all(isinstance(cell, int | float) for cell in cells):
            self._rows.append(cells)

    def finalize(self) -> Any:
        """The result of the group; NULL if it is not defined."""
        return self._result(self._rows) if self._rows else None


def register(connection: sqlite3.Connection) -> None:
    """Add the aggregates to a connection."""
    for name, (arguments, result) in _AGGREGATES.items():
        connection.create_aggregate(name, arguments, lambda result=result: _Numbers(result))  # type: ignore[arg-type, misc]


def _quantile(rows: Sequence[tuple[Any, ...]], share: float, *, interpolates: bool) -> Any:
    cells = sorted(row[0] for row in rows)
    place = min(max(share, 0.0), 1.0) * (len(cells) - 1)
    if not interpolates:
        return cells[max(math.ceil(min(max(share, 0.0), 1.0) * len(cells)) - 1, 0)]
    low = math.floor(place)
    high = min(low + 1, len(cells) - 1)
    return cells[low] + (cells[high] - cells[low]) * (place - low)


def _variance(rows: Sequence[tuple[Any, ...]], less: int) -> float | None:
    mean = math.fsum(row[0] for row in rows) / len(rows)
    squares = math.fsum((row[0] - mean) ** 2 for row in rows)
    return squares / (len(rows) - less) if len(rows) > less else None


def _deviation(rows: Sequence[tuple[Any, ...]], less: int) -> float | None:
    variance = _variance(rows, less)
    return None if variance is None else math.sqrt(variance)


def _correlation(rows: Sequence[tuple[Any, ...]]) -> float | None:
    means = [math.fsum(row[side] for row in rows) / len(rows) for side in (0, 1)]
    off = [(row[0] - means[0], row[1] - means[1]) for row in rows]
    product = math.fsum(one * other for one, other in off)
    squares = math.fsum(one * one for one, _ in off) * math.fsum(other * other for _, other in off)
    return product / math.sqrt(squares) if squares > 0 else None


def _most_frequent(rows: Sequence[tuple[Any, ...]]) -> Any:
    cells = sorted(row[0] for row in rows)
    return max(dict.fromkeys(cells), key=cells.count)


_AGGREGATES: dict[str, tuple[int, Callable[[Sequence[tuple[Any, ...]]], Any]]] = {
    "median": (1, lambda rows: _quantile(rows, 0.5, interpolates=True)),
    "quantile_cont": (2, lambda rows: _quantile(rows, rows[0][1], interpolates=True)),
    "quantile_disc": (2, lambda rows: _quantile(rows, rows[0][1], interpolates=False)),
    "corr": (2, _correlation),
    "mode": (1, _most_frequent),
    **{name: (1, lambda rows: _variance(rows, 1)) for name in ("variance", "var_samp")},
    **{name: (1, lambda rows: _deviation(rows, 1)) for name in ("stddev", "stddev_samp")},
    "var_pop": (1, lambda rows: _variance(rows, 0)),
    "stddev_pop": (1, lambda rows: _deviation(rows, 0)),
}
