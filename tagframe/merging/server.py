"""Merges that a server runs as one statement; only their result travels.

What the report tells is counted by a second statement, when it is read. Before the rows are fetched it is made sure
that no step repeats any: by constraints, else by a look at the keys of the table that a step brings in.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pandas as pd

from tagframe.corpus import Corpus
from tagframe.engines.base import Engine, Joining, quoted
from tagframe.errors import FanOut, InvalidArgument, RowsLost
from tagframe.joins.plan import JoinPlan
from tagframe.joins.statement import condition
from tagframe.joins.steps import How, JoinStep
from tagframe.merging import advice
from tagframe.merging.advice import Reaction
from tagframe.merging.report import LaterReport, MergeReport, StepReport

ColumnKey = tuple[str, str]

_SHOWN_ROWS = 1_000
"""Rows of the start table that an error carries."""


def merge_in_server(
    plan: JoinPlan,
    corpus: Corpus,
    wanted: Mapping[str, ColumnKey],
    where: Mapping[str, Any],
    how: How,
    limit: int | None,
    on_fanout: Reaction,
    on_loss: Reaction,
) -> tuple[pd.DataFrame, MergeReport] | None:
    """The merged frame and its report; None where the tables are in no one server, or SQL might answer otherwise.

    Args:
        plan, corpus, where, how, limit, on_fanout, on_loss: as for :func:`tagframe.merging.run_plan`, which raises
            the same.
        wanted: name in the result → (table id, column), in order.
    """
    engine = _one_engine(plan, corpus)
    if engine is None or not wanted or not _is_said(plan, where):
        return None
    with _joining(engine, plan, corpus) as joining:
        if joining is None:
            return None
        join = _ServerJoin(plan, corpus, joining, how, where)
        if not join.is_as_in_pandas() or not join.checked(on_fanout):
            return None
        if on_loss == "raise":
            join.refuse_loss()
        columns = list(wanted)
        sql = plan.sql(columns=columns, how=how, where=where, limit=limit, dialect=joining.dialect)
        shown = [(corpus.source_table(table), column, name) for name, (table, column) in wanted.items()]
        frame = joining.frame(sql, shown, f"the merge of {', '.join(plan.tables)}")
        kind = joining.kind
        if on_loss == "warn" and plan.is_anchored and limit is None:
            report = join.counted(len(frame), sql)
            if report.lost:
                advice.say_loss(plan.start, report.lost, report.start_rows, None)
            return frame, report

    def count() -> MergeReport:
        with _joining(engine, plan, corpus) as again:
            assert again is not None
            return _ServerJoin(plan, corpus, again, how, where).counted(len(frame), sql)

    return frame, LaterReport(plan, len(frame), kind, advice.ways_as_sure(plan), sql, count)


def _one_engine(plan: JoinPlan, corpus: Corpus) -> Engine | None:
    if any(source.parts for source in plan.sources):
        return None
    engines = [corpus.engine(table) for table in plan.tables]
    return engines[0] if all(engine is engines[0] or engine == engines[0] for engine in engines) else None


@contextmanager
def _joining(engine: Engine, plan: JoinPlan, corpus: Corpus) -> Iterator[Joining | None]:
    opened = engine.joining([corpus.source_table(table) for table in plan.tables])
    if opened is None:
        yield None
        return
    with opened as joining:
        yield joining


def _is_said(plan: JoinPlan, where: Mapping[str, Any]) -> bool:
    """Whether a statement can say what is filtered by."""
    from sqlglot import exp

    try:
        for name, value in where.items():
            plan.find_column(name)
            condition(exp.column("c"), value)
            for one in value if isinstance(value, list | tuple | set | frozenset) else [value]:
                if (isinstance(one, str) and "\x00" in one) or (isinstance(one, float) and not math.isfinite(one)):
                    return False
    except InvalidArgument:
        return False
    return True


class _ServerJoin:
    """A plan as statements of a server."""

    def __init__(self, plan: JoinPlan, corpus: Corpus, joining: Joining, how: How, where: Mapping[str, Any]) -> None:
        self._plan, self._corpus, self._joining, self._how, self._where = plan, corpus, joining, how, where
        self._aliases = {table: f"t{place}" for place, table in enumerate(plan.tables)}

    def is_as_in_pandas(self) -> bool:
        """Whether keys and values are compared as pandas would, but for coercion."""
        for step in self._plan.steps:
            for mine, theirs in zip(step.base_columns, step.columns, strict=True):
                kind = self._kind(step.base, mine)
                if not kind or kind != self._kind(step.table, theirs):
                    return False
        return all(self._fits(self._plan.find_column(name), value) for name, value in self._where.items())

    def _kind(self, table: str, column: str) -> str:
        return self._joining.key_kind(self._corpus.source_table(table), column)

    def _fits(self, column: ColumnKey, value: Any) -> bool:
        """Whether the column's type is the values'."""
        kind = self._kind(*column)
        is_number = self._joining.is_number(self._corpus.source_table(column[0]), column[1])
        kinds = set()
        for one in value if isinstance(value, list | tuple | set | frozenset) else [value]:
            if isinstance(one, bool):
                kinds.add("boolean")
            elif isinstance(one, str):
                kinds.add("text")
            elif one is not None and hasattr(one, "hour"):
                kinds.add("zoned moment" if one.tzinfo else "moment")
            elif one is not None and hasattr(one, "isoformat"):
                kinds.add("date")
            elif one is not None:
                kinds.add("number")
        return kinds <= ({"number"} if is_number else {kind})

    def checked(self, reaction: Reaction) -> bool:
        """Whether no step repeats rows; raises or warns where one does and that is asked for.

        False where rows are repeated and may be: only pandas accounts for them.
        """
        for step in self._plan.steps:
            if self._joining.is_unique(self._corpus.source_table(step.table), step.columns):
                continue
            repeated = self._repeated(step)
            found = self._joining.numbers(f"SELECT count(*) AS rows, max(d.n) AS most {repeated}")
            if not found["rows"]:
                continue
            if reaction == "raise":
                message = advice.fan_out(self._plan, step, found["rows"], found["most"])
                raise FanOut(message, self._start_rows(repeated))
            return False
        return True

    def _repeated(self, step: JoinStep) -> str:
        """FROM and WHERE of the rows so far that have several partners in the step's table, whose number is d.n."""
        before = []
        for earlier in self._plan.steps:
            if earlier is step:
                break
            before.append(earlier)
        names = ", ".join(map(quoted, step.columns))
        filled = " AND ".join(f"{quoted(column)} IS NOT NULL" for column in step.columns)
        several = (
            f"(SELECT {names}, count(*) AS n FROM {self._place(step.table)} WHERE {filled} GROUP BY {names} "
            "HAVING count(*) > 1) AS d"
        )
        pairs = zip(step.base_columns, step.columns, strict=True)
        equal = " AND ".join(f"{self._column(step.base, mine)} = d.{quoted(theirs)}" for mine, theirs in pairs)
        return f"{self._from(before, 'LEFT JOIN' if self._how == 'left' else 'JOIN')} JOIN {several} ON {equal}"

    def refuse_loss(self) -> None:
        """Raise the rows of the start table that find no partner on their way, if there are any."""
        if self._how == "left" or not self._plan.steps:
            return
        found = f"{self._from(self._plan.steps, 'LEFT JOIN')} WHERE NOT ({self._all_found()})"
        counts = self._joining.numbers(
            f"SELECT count(*) AS lost, (SELECT count(*) FROM {self._place(self._plan.start)}) AS rows {found}"
        )
        if counts["lost"]:
            message = advice.loss(self._plan.start, counts["lost"], counts["rows"])
            raise RowsLost(
                f"{message}. The first of them are on this error as .rows. how='left' keeps them",
                self._start_rows(found),
            )

    def _all_found(self) -> str:
        return " AND ".join(f"{self._column(step.table, step.columns[0])} IS NOT NULL" for step in self._plan.steps)

    def _start_rows(self, rest: str) -> pd.DataFrame:
        start = self._plan.start
        source = self._plan.source(start)
        names = [column for column in source.columns if column not in source.hidden]
        shown = ", ".join(self._column(start, name) for name in names)
        sql = f"SELECT {shown} {rest} LIMIT {_SHOWN_ROWS}"
        place = self._corpus.source_table(start)
        return self._joining.frame(sql, [(place, name, name) for name in names], f"table {place!r}")

    def counted(self, rows: int, sql: str) -> MergeReport:
        """The report, from one pass over the tables.

        Args:
            rows: that the merge gave.
            sql: of the merge.
        """
        from sqlglot import exp

        started = time.perf_counter()
        shown = ["count(*) AS n"]
        alive: list[str] = []
        for place, step in enumerate(self._plan.steps):
            keys = [self._column(step.table, column) for column in step.columns]
            matched = f"{keys[0]} IS NOT NULL"
            empty = " OR ".join(f"{self._column(step.base, column)} IS NULL" for column in step.base_columns)
            shown += [
                f"count({keys[0]}) AS m{place}",
                f"count(DISTINCT {keys[0] if len(keys) == 1 else '(' + ', '.join(keys) + ')'}) "
                f"FILTER (WHERE {matched}) AS u{place}",
                f"count(*) FILTER (WHERE {' AND '.join([*alive, f'({empty})'])}) AS e{place}",
                f"(SELECT count(*) FROM {self._place(step.table)}) AS s{place}",
            ]
            alive = [matched] if self._how == "inner" else []
        tests = [
            condition(exp.column(exp.to_identifier(column, quoted=True), table=self._aliases[table]), value).sql(
                dialect=self._joining.dialect
            )
            for name, value in self._where.items()
            for table, column in [self._plan.find_column(name)]
        ]
        shown.append(f"count(*) FILTER (WHERE {' AND '.join([*alive, *tests]) or 'true'}) AS kept")
        counts = self._joining.numbers(f"SELECT {', '.join(shown)} {self._from(self._plan.steps, 'LEFT JOIN', True)}")
        seconds = (time.perf_counter() - started) / max(1, len(self._plan.steps))
        steps = []
        rows_in = start_rows = counts["n"]
        for place, step in enumerate(self._plan.steps):
            matched_rows = counts[f"m{place}"]
            rows_out = matched_rows if self._how == "inner" else rows_in
            steps.append(
                StepReport(
                    left=step.left,
                    right=step.right,
                    rows_in=rows_in,
                    rows_out=rows_out,
                    matched=matched_rows,
                    unmatched_left=rows_in - matched_rows,
                    unmatched_right=counts[f"s{place}"] - counts[f"u{place}"],
                    fan_out=1.0 if matched_rows else 0.0,
                    null_keys=counts[f"e{place}"],
                    coerced=0,
                    seconds=seconds,
                )
            )
            rows_in = rows_out
        return MergeReport(
            self._plan.start,
            start_rows,
            tuple(steps),
            rows,
            start_rows - rows_in,
            rows_in - counts["kept"],
            self._joining.kind,
            ambiguous=advice.ways_as_sure(self._plan),
            plan=self._plan,
            sql=sql,
        )

    def _from(self, steps: Sequence[JoinStep], word: str, only_alive: bool = False) -> str:
        """FROM and the joins; with ``only_alive`` a row that an inner join loses finds no later partner."""
        parts = [f"FROM {self._place(self._plan.start)} AS {self._aliases[self._plan.start]}"]
        alive: list[str] = []
        for step in steps:
            pairs = zip(step.base_columns, step.columns, strict=True)
            equal = [f"{self._column(step.base, mine)} = {self._column(step.table, theirs)}" for mine, theirs in pairs]
            on = " AND ".join([*equal, *alive])
            parts.append(f"{word} {self._place(step.table)} AS {self._aliases[step.table]} ON {on}")
            if only_alive and self._how == "inner":
                alive = [f"{self._column(step.table, step.columns[0])} IS NOT NULL"]
        return " ".join(parts)

    def _place(self, table: str) -> str:
        source = self._plan.source(table)
        return f"{quoted(source.database)}.{quoted(source.name)}"

    def _column(self, table: str, column: str) -> str:
        return f"{self._aliases[table]}.{quoted(column)}"
