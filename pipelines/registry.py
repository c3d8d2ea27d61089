"""The pipelines by question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd

Frames: TypeAlias = Mapping[str, pd.DataFrame]
"""The tables of a database, by name."""


@dataclass(frozen=True)
class Pipeline:
    """The pipeline for one question of TAG-Bench.

    Attributes:
        id: of the question.
        database: whose tables it reads.
        reads: the tables that it needs, or ``table.column`` for columns that a copy of the database may lack.
        answer: the function.
    """

    id: int
    database: str
    reads: tuple[str, ...]
    answer: Callable[[Frames], Any]

    def __call__(self, tables: Frames) -> Any:
        """The answer: a list of values, one value, or a text."""
        return self.answer(tables)


PIPELINES: dict[int, Pipeline] = {}
"""All pipelines by question id; filled when the modules are imported."""


def answers(id: int, reads: str) -> Callable[[Callable[[Frames], Any]], Callable[[Frames], Any]]:
    """Register a function as the pipeline of a question; its module is named after the database.

    Args:
        id: of the question.
        reads: as :attr:`Pipeline.reads`, separated by blanks.
    """

    def enter(function: Callable[[Frames], Any]) -> Callable[[Frames], Any]:
        if id in PIPELINES:
            raise ValueError(f"question {id} has a pipeline already: {PIPELINES[id].answer.__name__}")
        PIPELINES[id] = Pipeline(id, function.__module__.rpartition(".")[2], tuple(reads.split()), function)
        return function

    return enter
