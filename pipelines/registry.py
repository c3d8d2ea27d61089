"""Which function answers which question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd

Frames: TypeAlias = Mapping[str, pd.DataFrame]
"""The tables of a database, by name."""


@dataclass(frozen=True)
class Pipeline:
    """The answer to one question of TAG-Bench.

    Attributes:
        id: the question's.
        database: whose tables it takes.
        reads: what it takes of them: tables, or ``table.column`` where a database may be given without its texts.
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
"""All of them, by question id; filled as the modules are imported."""


def answers(id: int, reads: str) -> Callable[[Callable[[Frames], Any]], Callable[[Frames], Any]]:
    """Enter a function as the pipeline of a question; its module is named after the database.

    Args:
        id: the question's.
        reads: as :attr:`Pipeline.reads`, with blanks between.
    """

    def enter(function: Callable[[Frames], Any]) -> Callable[[Frames], Any]:
        if id in PIPELINES:
            raise ValueError(f"question {id} has a pipeline already: {PIPELINES[id].answer.__name__}")
        PIPELINES[id] = Pipeline(id, function.__module__.rpartition(".")[2], tuple(reads.split()), function)
        return function

    return enter
