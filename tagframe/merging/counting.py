"""What became of every row of a merge that an engine ran, counted by the engine."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from tagframe.engines.base import quoted
from tagframe.joins.steps import JoinStep
from tagframe.merging import advice
from tagframe.merging.report import MergeReport, StepReport
from tagframe.merging.statements import TIMES, StatementMerge

_ROW = '"tagframe row"'


def counted(
    merge: StatementMerge, rows: int, tests: Sequence[str], sql: str, values: Mapping[str, Any] | None = None
) -> MergeReport:
    """The report of a merge.

    Args:
        merge: that ran.
        rows: that it gave.
        tests: what its ``where`` asks of a row, in SQL.
        sql: of the merge.
        values: of the placeholders of ``tests``.
    """
    if merge.how == "outer" or not all(map(merge.is_unique, merge.plan.steps)):
        return _repeating(merge, rows, tests, sql, values)
    steps: list[StepReport] = []
    losing: list[JoinStep] = []
    for step in merge.plan.steps:
        steps.append(_step(merge, step, losing))
        if merge.how == "inner" and steps[-1].unmatched_left:
            losing.append(step)
    size = steps[0].rows_in if steps else _number(merge, f"FROM {merge.item(merge.plan.start)}", None)
    alive = steps[-1].rows_out if steps else size
    kept = alive
    if tests:
        joined = merge.joined(merge.plan.steps, merge.join_word)
        kept = _number(merge, f"FROM {joined} WHERE {' AND '.join(f'({test})' for test in tests)}", values)
    return MergeReport(
        merge.plan.start,
        size,
        tuple(steps),
        rows,
        size - alive,
        alive - kept,
        merge.kind,
        ambiguous=advice.ways_as_sure(merge.plan),
        plan=merge.plan,
        sql=sql,
    )


def _number(merge: StatementMerge, rest: str, values: Mapping[str, Any] | None) -> int:
    return int(merge.numbers(f"SELECT count(*) AS n {rest}", values)["n"])


def _step(merge: StatementMerge, step: JoinStep, losing: Sequence[JoinStep]) -> StepReport:
    """A step that repeats no row, from the keys that the rows before it have, each with its number of rows.

    A key is looked for once and not for each of its rows, and which of the other table's are used needs no second look.

    Args:
        merge: of the step.
        step: which.
        losing: the steps before it that lose rows. The others matter only as the way to the table of its keys.
    """
    started = time.perf_counter()
    wanted = {step.base, *(other.table for other in losing)}
    before: list[JoinStep] = []
    for other in reversed(merge.plan.steps[: merge.plan.steps.index(step)]):
        if other.table in wanted:
            before.insert(0, other)
            wanted.add(other.base)
    mine = [merge.column(step.base, column) for column in step.base_columns]
    keys = [f'"tagframe key {place}"' for place in range(len(mine))]
    shown = ", ".join(f"{column} AS {key}" for column, key in zip(mine, keys, strict=True))
    theirs = [f"brought.{quoted(column)}" for column in step.columns]
    equal = " AND ".join(f"found.{key} = {column}" for key, column in zip(keys, theirs, strict=True))
    empty = " OR ".join(f"found.{key} IS NULL" for key in keys)
    counts = merge.numbers(
        f"SELECT sum(found.{TIMES}) AS n, sum(found.{TIMES}) FILTER (WHERE {empty}) AS empty, "
        f"sum(found.{TIMES}) FILTER (WHERE {theirs[0]} IS NOT NULL) AS matched, count({theirs[0]}) AS used, "
        f"(SELECT count(*) FROM {merge.place(step.table)}) AS size "
        f"FROM (SELECT {shown}, count(*) AS {TIMES} FROM {merge.joined(before, merge.join_word)} "
        f"GROUP BY {', '.join(mine)}) AS found LEFT JOIN {merge.place(step.table)} AS brought ON {equal}"
    )
    number = {name: int(count or 0) for name, count in counts.items()}
    return StepReport(
        left=step.left,
        right=step.right,
        rows_in=number["n"],
        rows_out=number["matched"] if merge.how == "inner" else number["n"],
        matched=number["matched"],
        unmatched_left=number["n"] - number["matched"],
        unmatched_right=number["size"] - number["used"],
        fan_out=1.0 if number["matched"] else 0.0,
        null_keys=number["empty"],
        coerced=0,
        seconds=time.perf_counter() - started,
    )


def _repeating(
    merge: StatementMerge, rows: int, tests: Sequence[str], sql: str, values: Mapping[str, Any] | None
) -> MergeReport:
    """The report of a merge in which a row may have several partners, or come from a later table."""
    steps = [_repeating_step(merge, place) for place in range(len(merge.plan.steps))]
    start = f"(SELECT *, row_number() OVER () AS {_ROW} FROM {merge.place(merge.plan.start)})"
    start = f"{start} AS {merge.aliases[merge.plan.start]}"
    kept = f"count(*) FILTER (WHERE {' AND '.join(f'({test})' for test in tests)})" if tests else "count(*)"
    counts = merge.numbers(
        f"SELECT count(*) AS n, {kept} AS kept, "
        f"count(DISTINCT {merge.aliases[merge.plan.start]}.{_ROW}) AS present, "
        f"(SELECT count(*) FROM {merge.place(merge.plan.start)}) AS size "
        f"FROM {merge.joined(merge.plan.steps, merge.join_word, start=start)}",
        values,
    )
    found = {name: int(count) for name, count in counts.items()}
    return MergeReport(
        merge.plan.start,
        found["size"],
        tuple(steps),
        rows,
        found["size"] - found["present"],
        found["n"] - found["kept"],
        merge.kind,
        ambiguous=advice.ways_as_sure(merge.plan),
        plan=merge.plan,
        sql=sql,
    )


def _repeating_step(merge: StatementMerge, place: int) -> StepReport:
    started, step = time.perf_counter(), merge.plan.steps[place]
    before = merge.joined(merge.plan.steps[:place], merge.join_word)
    names = [quoted(column) for column in step.columns]
    mine = [merge.column(step.base, column) for column in step.base_columns]
    pairs = list(zip(mine, names, strict=True))
    partners = (
        f"(SELECT {', '.join(names)}, count(*) AS {TIMES} FROM {merge.place(step.table)} "
        f"WHERE {' AND '.join(f'{name} IS NOT NULL' for name in names)} GROUP BY {', '.join(names)}) AS partners"
    )
    one = merge.numbers(
        f"SELECT count(*) AS n, count(*) FILTER (WHERE {' OR '.join(f'{key} IS NULL' for key in mine)}) AS empty, "
        f"count(partners.{TIMES}) AS matched, coalesce(sum(partners.{TIMES}), 0) AS pairs FROM {before} "
        f"LEFT JOIN {partners} ON {' AND '.join(f'{key} = partners.{name}' for key, name in pairs)}"
    )
    other = merge.numbers(
        f"SELECT count(*) AS unused FROM {merge.place(step.table)} AS brought WHERE NOT EXISTS "
        f"(SELECT 1 FROM {before} WHERE {' AND '.join(f'{key} = brought.{name}' for key, name in pairs)})"
    )
    found = {name: int(count) for name, count in {**one, **other}.items()}
    alone = found["n"] - found["matched"]
    kept = {"inner": 0, "left": alone, "outer": alone + found["unused"]}[merge.how]
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
