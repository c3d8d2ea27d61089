"""A plan as statements that an engine runs over its own tables: what repeats rows, and what loses them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from tagframe.corpus import Corpus
from tagframe.engines.base import Engine, quoted
from tagframe.errors import FanOut, RowsLost
from tagframe.joins.plan import JoinPlan
from tagframe.joins.steps import How, JoinStep
from tagframe.merging import advice
from tagframe.merging.advice import Reaction

SHOWN_ROWS = 1_000
"""Rows of the start table that an error carries at most."""
TIMES = '"tagframe times"'


def one_engine(plan: JoinPlan, corpus: Corpus) -> Engine | None:
    """The engine that holds all tables of a plan; None where there are several, or none, or tables are stacked."""
    if any(source.parts for source in plan.sources):
        return None
    engines = [corpus.engine(table) for table in plan.tables]
    return engines[0] if all(engine is engines[0] or engine == engines[0] for engine in engines) else None


class StatementMerge(ABC):
    """A plan over one engine's tables, which go by an alias each.

    Args:
        plan: how the tables are joined.
        how: the kind of every join.
        kind: of the engine.
    """

    def __init__(self, plan: JoinPlan, how: How, kind: str) -> None:
        self.plan, self.how, self.kind = plan, how, kind
        self.aliases = {table: f"t{place}" for place, table in enumerate(plan.tables)}
        self.names = plan.column_names()
        self.sharing: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for key, name in self.names.items():
            self.sharing[name].append(key)

    @abstractmethod
    def place(self, table: str) -> str:
        """A table as it stands after FROM, without its alias."""

    @abstractmethod
    def is_unique(self, step: JoinStep) -> bool:
        """Whether no key of the table that a step brings in repeats, nulls aside."""

    @abstractmethod
    def numbers(self, sql: str, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The one row of a statement that counts; ``values`` are those of its placeholders."""

    @abstractmethod
    def start_rows(self, rest: str) -> pd.DataFrame:
        """The first :data:`SHOWN_ROWS` rows of the start table of a query, which is given from FROM on."""

    def item(self, table: str) -> str:
        """A table in FROM or JOIN, under its alias."""
        return f"{self.place(table)} AS {self.aliases[table]}"

    def column(self, table: str, column: str) -> str:
        """A column of a table, by the table's alias."""
        return f"{self.aliases[table]}.{quoted(column)}"

    def value(self, key: tuple[str, str]) -> str:
        """A column of the joined rows: of an outer join, from whichever table of those that it is equal in has it."""
        same = [key, *(other for other in self.sharing[self.names[key]] if other != key)]
        if self.how != "outer" or len(same) == 1:
            return self.column(*key)
        return f"coalesce({', '.join(self.column(*one) for one in same)})"

    @property
    def join_word(self) -> str:
        """The join of the plan's kind."""
        return {"inner": "JOIN", "left": "LEFT JOIN", "outer": "FULL JOIN"}[self.how]

    def joined(self, steps: Sequence[JoinStep], word: str, *, start: str = "", only_alive: bool = False) -> str:
        """What stands after FROM: the start table and those of some steps.

        Args:
            steps: of the plan, from the first one on.
            word: the join.
            start: what stands for the start table, where it is not the whole of it.
            only_alive: whether a row that an inner join loses finds no later partner either.
        """
        parts = [start or self.item(self.plan.start)]
        alive: list[str] = []
        for step in steps:
            equal = [
                f"{self.column(step.base, mine)} = {self.column(step.table, theirs)}"
                for mine, theirs in zip(step.base_columns, step.columns, strict=True)
            ]
            parts.append(f"{word} {self.item(step.table)} ON {' AND '.join([*equal, *alive])}")
            if only_alive and self.how == "inner":
                alive = [self.found(step)]
        return " ".join(parts)

    def repeats_nothing(self, reaction: Reaction) -> bool:
        """Whether no step repeats rows of the start table.

        Args:
            reaction: "raise" refuses a step that does.

        Raises:
            FanOut: there is one; the first of the rows are on it.
        """
        for step in self.plan.steps:
            if self.is_unique(step):
                continue
            repeated = self._repeated(step)
            found = self.numbers(f"SELECT count(*) AS n, max(twice.{TIMES}) AS most {repeated}")
            if not found["n"]:
                continue
            if reaction == "raise":
                message = advice.fan_out(self.plan, step, int(found["n"]), int(found["most"]), are_all=False)
                raise FanOut(message, self.start_rows(repeated))
            return False
        return True

    def _repeated(self, step: JoinStep) -> str:
        """From FROM on: the rows so far that have several partners in the step's table."""
        before = self.plan.steps[: self.plan.steps.index(step)]
        names = [quoted(column) for column in step.columns]
        twice = (
            f"(SELECT {', '.join(names)}, count(*) AS {TIMES} FROM {self.place(step.table)} "
            f"WHERE {' AND '.join(f'{name} IS NOT NULL' for name in names)} "
            f"GROUP BY {', '.join(names)} HAVING count(*) > 1) AS twice"
        )
        pairs = zip(step.base_columns, names, strict=True)
        equal = " AND ".join(f"{self.column(step.base, mine)} = twice.{name}" for mine, name in pairs)
        return f"FROM {self.joined(before, self.join_word)} JOIN {twice} ON {equal}"

    def refuse_loss(self) -> None:
        """Raise where rows of the start table find no partner on their way.

        Raises:
            RowsLost: the first of them are on it.
        """
        if self.how != "inner" or not self.plan.steps:
            return
        found = " AND ".join(map(self.found, self.plan.steps))
        lost = f"FROM {self.joined(self.plan.steps, 'LEFT JOIN')} WHERE NOT ({found})"
        start = self.place(self.plan.start)
        counts = self.numbers(f"SELECT count(*) AS lost, (SELECT count(*) FROM {start}) AS n {lost}")
        if counts["lost"]:
            message = advice.loss(self.plan.start, int(counts["lost"]), int(counts["n"]))
            raise RowsLost(
                f"{message}. The first of them are on this error as .rows. how='left' keeps them", self.start_rows(lost)
            )

    def found(self, step: JoinStep) -> str:
        """Whether a row has a partner in the step's table, whose keys are none of them null."""
        return f"{self.column(step.table, step.columns[0])} IS NOT NULL"
