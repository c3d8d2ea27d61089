"""Merges that a server runs as one statement; only their result travels.

What the report tells is counted by a second statement, when it is read. Before the rows are fetched it is made sure
that no step repeats any: by constraints, else by a look at the keys of the table that a step brings in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pandas as pd

from tagframe.corpus import Corpus
from tagframe.engines.base import Engine, Joining, quoted
from tagframe.errors import InvalidArgument
from tagframe.joins.plan import JoinPlan
from tagframe.joins.statement import condition
from tagframe.joins.steps import How, JoinStep
from tagframe.merging import advice
from tagframe.merging.advice import Reaction
from tagframe.merging.counting import counted
from tagframe.merging.report import LaterReport, MergeReport
from tagframe.merging.statements import SHOWN_ROWS, StatementMerge, one_engine

ColumnKey = tuple[str, str]


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
    engine = one_engine(plan, corpus)
    if engine is None or not wanted or not _is_said(plan, where):
        return None
    with _joining(engine, plan, corpus) as joining:
        if joining is None:
            return None
        join = _ServerJoin(plan, corpus, joining, how, where)
        if not join.is_as_in_pandas() or (on_fanout != "allow" and not join.repeats_nothing(on_fanout)):
            return None
        if on_loss == "raise" and how == "inner":
            if on_fanout == "allow" and not all(map(join.is_unique, plan.steps)):
                return None
            join.refuse_loss()
        columns = list(wanted)
        sql = plan.sql(columns=columns, how=how, where=where, limit=limit, dialect=joining.dialect)
        shown = [(corpus.source_table(table), column, name) for name, (table, column) in wanted.items()]
        frame = joining.frame(sql, shown, f"the merge of {', '.join(plan.tables)}", limit)
        kind = joining.kind
        if on_loss == "warn" and how == "inner" and plan.is_anchored and limit is None:
            report = join.report(len(frame), sql)
            if report.lost:
                advice.say_loss(plan.start, report.lost, report.start_rows, None)
            return frame, report

    def count() -> MergeReport:
        with _joining(engine, plan, corpus) as again:
            assert again is not None
            return _ServerJoin(plan, corpus, again, how, where).report(len(frame), sql)

    return frame, LaterReport(plan, len(frame), kind, advice.ways_as_sure(plan), sql, count)


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


class _ServerJoin(StatementMerge):
    """A plan as statements of a server."""

    def __init__(self, plan: JoinPlan, corpus: Corpus, joining: Joining, how: How, where: Mapping[str, Any]) -> None:
        super().__init__(plan, how, joining.kind)
        self._corpus, self._joining, self._where = corpus, joining, where

    def is_as_in_pandas(self) -> bool:
        """Whether keys and values are compared as pandas would, but for coercion."""
        for step in self.plan.steps:
            for mine, theirs in zip(step.base_columns, step.columns, strict=True):
                kind = self._kind(step.base, mine)
                if not kind or kind != self._kind(step.table, theirs):
                    return False
        return all(self._fits(self.plan.find_column(name), value) for name, value in self._where.items())

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

    def is_unique(self, step: JoinStep) -> bool:
        """By constraints, else by a look at the keys."""
        return self._joining.is_unique(self._corpus.source_table(step.table), step.columns)

    def numbers(self, sql: str, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """In the one transaction of the merge; values stand in the statement itself."""
        return self._joining.numbers(sql)

    def start_rows(self, rest: str) -> pd.DataFrame:
        """In the server's order."""
        source = self.plan.source(self.plan.start)
        names = [column for column in source.columns if column not in source.hidden]
        shown = ", ".join(self.column(self.plan.start, name) for name in names)
        place = self._corpus.source_table(self.plan.start)
        sql = f"SELECT {shown} {rest} LIMIT {SHOWN_ROWS}"
        return self._joining.frame(sql, [(place, name, name) for name in names], f"table {place!r}", SHOWN_ROWS)

    def report(self, rows: int, sql: str) -> MergeReport:
        """What became of every row, of a merge that gave so many by a statement."""
        from sqlglot import exp

        tests = [
            condition(exp.maybe_parse(self.value(self.plan.find_column(name)), dialect="postgres"), value)
            for name, value in self._where.items()
        ]
        return counted(self, rows, [test.sql(dialect=self._joining.dialect) for test in tests], sql)

    def place(self, table: str) -> str:
        """With its schema."""
        source = self.plan.source(table)
        return f"{quoted(source.database)}.{quoted(source.name)}"
