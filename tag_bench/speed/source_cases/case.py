"""The cases of ``tag_bench speed sources``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

Figures = dict[str, float]
"""Figures by name; the name contains the unit: ``seconds``, ``peak_mb``, ``bytes``, ``ratio``, …."""


@dataclass(frozen=True)
class SourceCase:
    """Work over tables that stay in their source.

    Attributes:
        name: for ``--case``.
        source: makes the tables (not measured), from an empty folder for the case and a scale (1 for the full sizes);
            gives their location for the steps (a path, a URL).
        steps: by name, in this order. Each runs in a new process, in the same folder, and gives figures from the
            location and the folder. The runner adds ``peak_mb``, the memory above that at the start of the process.
    """

    name: str
    source: Callable[[Path, float], AbstractContextManager[str]]
    steps: Mapping[str, Callable[[str, Path], Figures]]
