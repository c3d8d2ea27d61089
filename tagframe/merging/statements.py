"""A plan as statements that an engine runs over its own tables: what repeats rows, what loses them, and the counts."""

from __future__ import annotations

import time
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
from tagframe.merging.report import MergeReport, StepReport

SHOWN_ROWS = 1_000
"""Rows of the start table that an error carries at most."""
_TIMES, _ROW = '"tagframe times"', '"tagframe row"'


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
                alive = [self._found(step)]
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
            found = self.numbers(f"SELECT count(*) AS n, max(twice.{_TIMES}) AS most {repeated}")
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
            f"(SELECT {', '.join(names)}, count(*) AS {_TIMES} FROM {self.place(step.table)} "
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
        found = " AND ".join(map(self._found, self.plan.steps))
        lost = f"FROM {self.joined(self.plan.steps, 'LEFT JOIN')} WHERE NOT ({found})"
        start = self.place(self.plan.start)
        counts = self.numbers(f"SELECT count(*) AS lost, (SELECT count(*) FROM {start}) AS n {lost}")
        if counts["lost"]:
            message = advice.loss(self.plan.start, int(counts["lost"]), int(counts["n"]))
            raise RowsLost(
                f"{message}. The first of them are on this error as .rows. how='left' keeps them", self.start_rows(lost)
            )

    def counted(
        self, rows: int, tests: Sequence[str], sql: str, values: Mapping[str, Any] | None = None
    ) -> MergeReport:
        """The report, from one pass over the tables; from one for each step where rows may be repeated or added.

        Args:
            rows: that the merge gave.
            tests: what its ``where`` asks of a row, in SQL.
            sql: of the merge.
            values: of the placeholders of ``tests``.
        """
        if self.how == "outer" or not all(map(self.is_unique, self.plan.steps)):
            return self._counted_by_step(rows, tests, sql, values)
        started = time.perf_counter()
        shown = ["count(*) AS n"]
        alive: list[str] = []
        for place, step in enumerate(self.plan.steps):
            keys = [self.column(step.table, column) for column in step.columns]
            key = keys[0] if len(keys) == 1 else f"({', '.join(keys)})"
            empty = " OR ".join(f"{self.column(step.base, column)} IS NULL" for column in step.base_columns)
            shown += [
                f"count({keys[0]}) AS matched{place}",
                f"count(DISTINCT {key}) FILTER (WHERE {self._found(step)}) AS used{place}",
                f"count(*) FILTER (WHERE {' AND '.join([*alive, f'({empty})'])}) AS empty{place}",
                f"(SELECT count(*) FROM {self.place(step.table)}) AS size{place}",
            ]
            alive = [self._found(step)] if self.how == "inner" else []
        kept = " AND ".join([*alive, *(f"({test})" for test in tests)])
        shown.append(f"count(*) FILTER (WHERE {kept}) AS kept" if kept else "count(*) AS kept")
        joined = self.joined(self.plan.steps, "LEFT JOIN", only_alive=True)
        counts = self.numbers(f"SELECT {', '.join(shown)} FROM {joined}", values)
        found = {name: int(count) for name, count in counts.items()}
        seconds = (time.perf_counter() - started) / max(1, len(self.plan.steps))
        steps = []
        alive_rows = found["n"]
        for place, step in enumerate(self.plan.steps):
            matched = found[f"matched{place}"]
            rows_out = matched if self.how == "inner" else alive_rows
            steps.append(
                StepReport(
                    left=step.left,
                    right=step.right,
                    rows_in=alive_rows,
                    rows_out=rows_out,
                    matched=matched,
                    unmatched_left=alive_rows - matched,
                    unmatched_right=found[f"size{place}"] - found[f"used{place}"],
                    fan_out=1.0 if matched else 0.0,
                    null_keys=found[f"empty{place}"],
                    coerced=0,
                    seconds=seconds,
                )
            )
            alive_rows = rows_out
        return MergeReport(
            self.plan.start,
            found["n"],
            tuple(steps),
            rows,
            found["n"] - alive_rows,
            alive_rows - found["kept"],
            self.kind,
            ambiguous=advice.ways_as_sure(self.plan),
            plan=self.plan,
            sql=sql,
        )

    def _counted_by_step(
        self, rows: int, tests: Sequence[str], sql: str, values: Mapping[str, Any] | None
    ) -> MergeReport:
        """The report of a merge in which a row may have several partners, or come from a later table."""
        steps = [self._counted_step(place) for place in range(len(self.plan.steps))]
        start = f"(SELECT *, row_number() OVER () AS {_ROW} FROM {self.place(self.plan.start)})"
        start = f"{start} AS {self.aliases[self.plan.start]}"
        kept = f"count(*) FILTER (WHERE {' AND '.join(f'({test})' for test in tests)})" if tests else "count(*)"
        counts = self.numbers(
            f"SELECT count(*) AS n, {kept} AS kept, "
            f"count(DISTINCT {self.aliases[self.plan.start]}.{_ROW}) AS present, "
            f"(SELECT count(*) FROM {self.place(self.plan.start)}) AS size "
            f"FROM {self.joined(self.plan.steps, self.join_word, start=start)}",
            values,
        )
        found = {name: int(count) for name, count in counts.items()}
        return MergeReport(
            self.plan.start,
            found["size"],
            tuple(steps),
            rows,
            found["size"] - found["present"],
            found["n"] - found["kept"],
            self.kind,
            ambiguous=advice.ways_as_sure(self.plan),
            plan=self.plan,
            sql=sql,
        )

    def _counted_step(self, place: int) -> StepReport:
        started, step = time.perf_counter(), self.plan.steps[place]
        before = self.joined(self.plan.steps[:place], self.join_word)
        names = [quoted(column) for column in step.columns]
        mine = [self.column(step.base, column) for column in step.base_columns]
        pairs = list(zip(mine, names, strict=True))
        partners = (
            f"(SELECT {', '.join(names)}, count(*) AS {_TIMES} FROM {self.place(step.table)} "
            f"WHERE {' AND '.join(f'{name} IS NOT NULL' for name in names)} GROUP BY {', '.join(names)}) AS partners"
        )
        one = self.numbers(
            f"SELECT count(*) AS n, count(*) FILTER (WHERE {' OR '.join(f'{key} IS NULL' for key in mine)}) AS empty, "
            f"count(partners.{_TIMES}) AS matched, coalesce(sum(partners.{_TIMES}), 0) AS pairs FROM {before} "
            f"LEFT JOIN {partners} ON {' AND '.join(f'{key} = partners.{name}' for key, name in pairs)}"
        )
        other = self.numbers(
            f"SELECT count(*) AS unused FROM {self.place(step.table)} AS brought WHERE NOT EXISTS "
            f"(SELECT 1 FROM {before} WHERE {' AND '.join(f'{key} = brought.{name}' for key, name in pairs)})"
        )
        found = {name: int(count) for name, count in {**one, **other}.items()}
        alone = found["n"] - found["matched"]
        kept = {"inner": 0, "left": alone, "outer": alone + found["unused"]}[self.how]
        return StepReport(
            left=step.left,
            right=step.right,
            rows_in=found["n"],
            rows_out=found["pairs"] + kept,
            matched=found["matched"],
            unmatched_left=alone,
            unmatched_right=found["unused"],
            fan_out=found["pairs"] / found["matched"] if found["matched"] else 0.0,
            null_keys=found["empty"],
            coerced=0,
            seconds=time.perf_counter() - started,
        )

    def _found(self, step: JoinStep) -> str:
        """Whether a row has a partner in the step's table, whose keys are none of them null."""
        return f"{self.column(step.table, step.columns[0])} IS NOT NULL"
