"""What a case of ``tag_bench speed sources`` is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

Figures = dict[str, float]
"""By name, the unit in the name: ``seconds``, ``peak_mb``, ``bytes``, ``ratio``, …."""


@dataclass(frozen=True)
class SourceCase:
    """Work over tables that stay where they are.

    Attributes:
        name: as ``--case`` takes it.
        source: makes the tables, not measured: from an empty folder that the case may use, and from a share of the
            sizes that the issue names (1 for all), to what a step is told of where they are (a path, a URL).
        steps: by name, in this order, each in a fresh process that shares the folder with the others: from the source
            and the folder to figures. The runner adds ``peak_mb``, what the process took beyond what it began with.
    """

    name: str
    source: Callable[[Path, float], AbstractContextManager[str]]
    steps: Mapping[str, Callable[[str, Path], Figures]]
