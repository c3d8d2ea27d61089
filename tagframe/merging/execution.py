"""Run a join plan, and account for every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from tagframe import results
from tagframe.corpus import Corpus
from tagframe.errors import InvalidArgument, WayNotPossible
from tagframe.joins.plan import JoinPlan
from tagframe.joins.steps import How
from tagframe.merging import advice
from tagframe.merging.advice import Reaction
from tagframe.merging.conditions import conditions_of
from tagframe.merging.crossing import merge_across
from tagframe.merging.hidden_now import as_hidden_now, unprompted_names
from tagframe.merging.lake import merge_in_lake
from tagframe.merging.pushdown import merge_in_engine
from tagframe.merging.report import MergeReport
from tagframe.merging.server import merge_in_server
from tagframe.merging.stacking import StackedRows
from tagframe.merging.table_rows import CorpusRows
from tagframe.merging.under_way import ColumnKey, Merge, fits

Where = Mapping[str, Any] | str
By = Literal["engine", "across", "memory"]
"""Where a merge runs: in the engine that holds all tables, across several engines, or in memory."""


def run_plan(
    plan: JoinPlan,
    corpus: Corpus,
    *,
    how: How = "inner",
    on_fanout: Reaction = "raise",
    on_loss: Reaction = "warn",
    on_ambiguous: Reaction = "warn",
    columns: Sequence[str] | None = None,
    where: Where | None = None,
    limit: int | None = None,
    by: By | None = None,
) -> tuple[pd.DataFrame, MergeReport]:
    """Join the tables of a plan.

    Args:
        plan: which tables, in which order, on which columns.
        corpus: the corpus of the tables. With ``where`` or ``limit``, tables of SQLite files are not read whole. Where
            all are in one file, no step repeats a row and no key needs coercion, SQLite joins them, and only the rows
            of the result are read (``where`` as a mapping to values, or none); the report's ``engine`` says so. Else
            the key columns are read whole, and of the others only the rows of the result. Where all tables are in one
            PostgreSQL server and ``where`` tests for values, one statement
            (:attr:`MergeReport.sql`) joins them there: keys are compared as the server compares them, so that nothing
            matches by coercion, rows come in the server's order, and of a ``limit`` which ones they are is its choice.
            What the report counts is counted there when it is read; with a ``limit`` no loss is warned of before.
            Where the tables are in several engines, one of them PostgreSQL or DuckDB, and keys are integers or text,
            keys are sent there and only rows come that may stand in the result; :attr:`MergeReport.moved` says how
            many. What comes is joined as pandas joins it, and counted later where not all rows were needed.
        how: the kind of every join. "left" keeps the rows of the start table.
        on_fanout: what to do where a step repeats rows of the start table.
        on_loss: what to do where rows of the anchor are lost; other tables lose rows by nature. Where the planner chose
            the start table, "raise" is for its rows, and "warn" says nothing.
        on_ambiguous: what to do where other plans are as sure (:attr:`JoinPlan.ambiguous`).
        columns: those of the result, by the name that they have there, or as ``column``, ``table.column`` or
            ``database.table.column``; all where None.
        where: keeps the joined rows that fit: a mapping from a column, named as for ``columns``, to a value, a list of
            values or a function from the column to booleans; or an expression for :meth:`pandas.DataFrame.query` over
            the result's columns.
        limit: at most so many rows.
        by: where the merge runs, instead of where it is best: "engine", all of it in the one engine that holds the
            tables; "across", where engines give the rows that may stand in the result; or "memory", of whole tables.

    Returns:
        The frame, in the order of the start table's rows, with a fresh index; and the report. Columns that the plan
        makes equal appear once, under the name in the table that was joined first; other names stay as they are where
        unique and become ``table.column`` where not. Dtypes are kept; integers beside missing rows become ``Int64``,
        booleans ``boolean``. What is read in part, for a ``where``, a ``limit`` or the keys of another engine, has the
        dtypes of the rows read.

    Raises:
        FanOut: a step would repeat rows of the start table; they are on the exception.
        RowsLost: rows of the start table are lost, with ``on_loss="raise"``; they are on the exception.
        AmbiguousJoin: other plans are as sure, with ``on_ambiguous="raise"``; all are on the exception.
        InexactKeys: keys are floats so large that unlike integers look alike.
        ColumnNotFound: ``columns`` or ``where`` name no column of the plan.
        InvalidArgument: an argument is none of its choices.
        WayNotPossible: the merge cannot run where ``by`` says.
    """
    _check(how, on_fanout, on_loss, on_ambiguous, columns, limit, by)
    plan = as_hidden_now(plan, corpus)
    frame, report = _run(plan, corpus, how, on_fanout, on_loss, on_ambiguous, columns, where, limit, by)
    unprompted = unprompted_names(plan, plan.column_names())
    if unprompted:
        results.remember(frame, unprompted=unprompted & {*frame.columns})
    return frame, report


def _run(
    plan: JoinPlan,
    corpus: Corpus,
    how: How,
    on_fanout: Reaction,
    on_loss: Reaction,
    on_ambiguous: Reaction,
    columns: Sequence[str] | None,
    where: Where | None,
    limit: int | None,
    by: By | None,
) -> tuple[pd.DataFrame, MergeReport]:
    advice.say_ambiguity(plan, on_ambiguous)
    advice.say_doubt(plan)
    names = plan.column_names()
    wanted = _wanted(plan, names, columns)
    filters = {plan.find_column(name): value for name, value in where.items()} if isinstance(where, Mapping) else {}
    in_engine, across = by in (None, "engine"), by in (None, "across")
    if in_engine and not isinstance(where, str):
        served = merge_in_server(plan, corpus, wanted, where or {}, how, limit, on_fanout, on_loss)
        if served is not None:
            return served
    if in_engine and _picks(how, where, limit):
        pushed = merge_in_engine(plan, corpus, wanted, filters, how=how, limit=limit)
        if pushed is not None and not (pushed[1].lost and on_loss == "raise"):
            frame, report = pushed
            if report.lost and on_loss == "warn" and plan.is_anchored:
                advice.say_loss(plan.start, report.lost, report.start_rows, None)
            return frame, replace(report, plan=plan, ambiguous=advice.ways_as_sure(plan))
    conditions = conditions_of(where, filters, _wanted(plan, names, None))
    if in_engine and conditions is not None:
        in_lake = merge_in_lake(
            plan, corpus, wanted, conditions, how=how, limit=limit, on_fanout=on_fanout, on_loss=on_loss
        )
        if in_lake is not None:
            return in_lake
    if by == "engine":
        raise WayNotPossible("no engine can run the whole of this merge: by=None takes the way that can")

    def in_pandas(
        wanted: Mapping[str, ColumnKey], on_fanout: Reaction, on_loss: Reaction
    ) -> tuple[pd.DataFrame, MergeReport]:
        return _in_pandas(plan, corpus, wanted, where, filters, how, limit, on_fanout, on_loss)

    if across and not isinstance(where, str):
        crossed = merge_across(
            plan,
            corpus,
            wanted,
            filters,
            how=how,
            limit=limit,
            on_loss=on_loss,
            # Which rows there are no column tells; that none is repeated is known by then.
            count=lambda: in_pandas({}, "allow", "allow")[1],
        )
        if crossed is not None:
            return crossed
    if by == "across":
        raise WayNotPossible("no two engines can share this merge: by=None takes the way that can")
    return in_pandas(wanted, on_fanout, on_loss)


def _in_pandas(
    plan: JoinPlan,
    corpus: Corpus,
    wanted: Mapping[str, ColumnKey],
    where: Where | None,
    filters: Mapping[ColumnKey, Any],
    how: How,
    limit: int | None,
    on_fanout: Reaction,
    on_loss: Reaction,
) -> tuple[pd.DataFrame, MergeReport]:
    """The merge of whole key columns, which all other ways are held equal to."""
    names = plan.column_names()
    everything = _wanted(plan, names, None)
    picks = _picks(how, where, limit)
    source = StackedRows(CorpusRows(corpus), plan)
    tested = {*filters, *(everything.values() if isinstance(where, str) else ())}
    late = {key for key in wanted.values() if picks and source.may_pick(key[0])}
    result = Merge(plan, source, names, how, tested | ({*wanted.values()} - late), late)
    steps = [result.advance(step, on_fanout) for step in plan.steps]
    lost = result.lost()
    if on_loss == "raise":
        result.refuse_loss(lost)
    before = result.rows.length
    for key, value in filters.items():
        result.rows.select(np.flatnonzero(fits(result.column(key), value)))
    if isinstance(where, str):
        chosen = result.frame(everything).reset_index(drop=True).query(where).index.to_numpy(dtype=np.int64)
        result.rows.select(chosen)
    kept = result.rows.length
    if limit is not None and limit < kept:
        result.rows.select(np.arange(limit, dtype=np.int64))
    frame = result.frame(wanted)
    stacks = tuple((table.id, tuple(part.id for part in table.parts)) for table in plan.sources if table.parts)
    report = MergeReport(
        plan.start,
        result.sizes[plan.start],
        tuple(steps),
        len(frame),
        len(lost),
        before - kept,
        stacks=stacks,
        ambiguous=advice.ways_as_sure(plan),
        plan=plan,
    )
    if len(lost) and on_loss == "warn" and plan.is_anchored:
        advice.say_loss(plan.start, len(lost), report.start_rows, result.examples(lost))
    return frame, report


def _picks(how: How, where: Where | None, limit: int | None) -> bool:
    """Whether the result may be a small part of the rows, so that columns are read of it alone."""
    return how != "outer" and not isinstance(where, str) and not (where is None and limit is None)


def _check(
    how: str, on_fanout: str, on_loss: str, on_ambiguous: str, columns: object, limit: object, by: object
) -> None:
    for name, value, choices in (
        ("how", how, ("inner", "left", "outer")),
        ("on_fanout", on_fanout, ("raise", "warn", "allow")),
        ("on_loss", on_loss, ("raise", "warn", "allow")),
        ("on_ambiguous", on_ambiguous, ("raise", "warn", "allow")),
    ):
        if value not in choices:
            raise InvalidArgument(f"{name} is one of {', '.join(map(repr, choices))}; got {value!r}")
    if by not in (None, "engine", "across", "memory"):
        raise InvalidArgument(f"by is 'engine', 'across' or 'memory', or left out; got {by!r}")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise InvalidArgument(f"limit is a number of rows, 0 or more; got {limit!r}")
    if isinstance(columns, str):
        raise InvalidArgument(f"columns is a list of names; got the text {columns!r}, say [{columns!r}]")


def _wanted(plan: JoinPlan, names: Mapping[ColumnKey, str], columns: Sequence[str] | None) -> dict[str, ColumnKey]:
    """Result name to (table, column), in order; the first of the columns that share a name."""
    wanted: dict[str, ColumnKey] = {}
    for key in list(names) if columns is None else [plan.find_column(name) for name in columns]:
        wanted.setdefault(names[key], key)
    if columns is not None:
        # A column that shares its name is taken from the table that was joined first.
        first: dict[str, ColumnKey] = {}
        for key, name in names.items():
            first.setdefault(name, key)
        wanted = {name: first[name] for name in wanted}
    return wanted
