"""Run a join plan, and account for every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from tagframe import results
from tagframe.corpus import Corpus
from tagframe.corpus.references import Column
from tagframe.engines.base import Engine
from tagframe.engines.pushdown import Refused
from tagframe.errors import InvalidArgument, WayNotPossible
from tagframe.joins.aggregates import Aggregate
from tagframe.joins.plan import JoinPlan
from tagframe.joins.steps import How, JoinStep
from tagframe.joins.withholding import told_by
from tagframe.merging import advice, agreement
from tagframe.merging.across import merge_across
from tagframe.merging.advice import Reaction
from tagframe.merging.hidden_keys import as_hidden_now, refuse_telling
from tagframe.merging.in_engine import merge_in_engine
from tagframe.merging.in_memory import merge_in_memory
from tagframe.merging.report import MergeReport
from tagframe.merging.where import Asked, LeftToMemory, where_of

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
    aggregate: Aggregate | None = None,
    for_models: bool = False,
) -> tuple[pd.DataFrame, MergeReport]:
    """Join the tables of a plan.

    Args:
        plan: which tables, in which order, on which columns.
        corpus: the corpus of the tables. Where one engine holds all, keys are alike to it and ``where`` can be said in
            SQL, one statement there joins them (:attr:`MergeReport.sql`) and only the result travels; SQLite does so
            for results that are a small part of a table. What the report counts is counted there when it is read. Where
            the tables are in several engines, and keys are integers or text, keys are sent and only rows come that may
            stand in the result; :attr:`MergeReport.moved` says how many. All else is joined in memory, of whole key
            columns and, of the others, the rows of the result where rows can be picked. :attr:`MergeReport.engine` says
            where it was. The rows are the same everywhere, and so is their order; but a PostgreSQL server compares keys
            as it does, so that nothing matches by coercion, gives rows in its own order, and chooses those of a limit.
        how: the kind of every join. "left" keeps the rows of the start table.
        on_fanout: what to do where a step repeats rows of the start table.
        on_loss: what to do where an inner merge loses rows of the start table; other tables lose rows by nature. With a
            ``limit``, or a ``where`` and no anchor, "warn" counts them of tables of 100,000 rows at most, where the
            result does not tell; of larger ones the report says it. Of other merges "warn" and "raise" warn of keys by
            which no row has a partner.
        on_ambiguous: what to do where other plans are as sure (:attr:`JoinPlan.ambiguous`).
        columns: those of the result, by the name that they have there, or as ``column``, ``table.column`` or
            ``database.table.column``; all where None.
        where: keeps the joined rows that fit: a mapping from a column, named as for ``columns``, to a value, a list of
            values or a function from the column to booleans; or an expression for :meth:`pandas.DataFrame.query` over
            the result's columns. What values mean stands in :mod:`tagframe.engines.cell_tests`, and is the same in all
            engines. A function sees the column of those rows that fit the values.
        limit: at most so many rows.
        by: where the merge runs, instead of where it is best: "engine", all of it in the one engine that holds the
            tables; "across", where engines give the rows that may stand in the result; or "memory", of whole tables.
        aggregate: tables that have one row a key before they are joined, so that they repeat no rows: table → column →
            "sum", "mean", "min", "max", "count" or "nunique", see :meth:`JoinPlan.aggregated`.
        for_models: whether a model reads the result: what is hidden from models is hidden in it, and not joined on
            otherwise than what is hidden from everybody.

    Returns:
        The frame, in the order of the start table's rows, with a fresh index; and the report. Columns that the plan
        makes equal appear once, under the name in the table that was joined first; other names stay as they are where
        unique and become ``table.column`` where not. Dtypes are kept; integers beside missing rows become ``Int64``,
        booleans ``boolean``. What is read in part, for a ``where``, a ``limit`` or the keys of another engine, or is
        joined in an engine, has the dtypes of the rows that come: ``int64``, say, where nulls found no partner.

    Raises:
        FanOut: a step would repeat rows of the start table; they are on the exception.
        RowsLost: rows of the start table are lost, with ``on_loss="raise"``; they are on the exception.
        AmbiguousJoin: other plans are as sure, with ``on_ambiguous="raise"``; all are on the exception.
        InexactKeys: keys are floats so large that unlike integers look alike.
        ColumnNotFound: ``columns`` or ``where`` name no column of the plan.
        HiddenColumn: they name one that is hidden, or one that would tell cells of such; or the plan joins on a hidden
            column so that the rows that match would tell them (:mod:`tagframe.merging.hidden_keys`).
        InvalidArgument: an argument is none of its choices.
        WayNotPossible: the merge cannot run where ``by`` says.
    """
    _check(how, on_fanout, on_loss, on_ambiguous, columns, limit, by)
    plan = as_hidden_now(plan, corpus, for_models=for_models)
    plan = plan.aggregated(aggregate) if aggregate else plan
    refuse_telling(plan, corpus)
    advice.say_ambiguity(plan, on_ambiguous)
    advice.say_doubt(plan)
    advice.say_left_out(plan)
    names = plan.column_names()
    everything, wanted = plan.named_columns(None), plan.named_columns(columns)
    shared = agreement.shared_columns(plan, corpus)
    compared = {names[key]: key for one in shared for key in (one.mine, one.theirs, *one.keys)}
    asked = Asked(
        plan,
        corpus,
        wanted | compared,
        everything,
        where_of(where, plan, everything),
        how,
        None if limit is None else int(limit),
        on_fanout,
        on_loss,
        is_forced=by is not None,
    )
    frame, report = _merged(asked, by)
    differing = agreement.disagreements(frame, shared, names)
    agreement.say(plan, differing)
    report = replace(report, differing=tuple(sentence for _, sentence in differing))
    if wanted.keys() != {*frame.columns}:
        asked, frame = replace(asked, wanted=wanted), frame[[*wanted]]
    if how != "inner" and on_loss != "allow":
        advice.say_unmatched(_unmatched(asked, frame, report))
    unprompted = unprompted_names(plan, names)
    if unprompted:
        results.remember(frame, unprompted=unprompted & {*frame.columns})
    if described := described_names(corpus, names):
        results.remember(frame, descriptions=described)
    return frame, report


def _merged(asked: Asked, by: By | None) -> tuple[pd.DataFrame, MergeReport]:
    engines = _engines(asked)
    way = by or _way(asked, [engine for engine, _ in engines])
    try:
        if way != "memory" and any(step.key.signs for step in asked.plan.steps):
            raise LeftToMemory("rows are joined as of a moment")
        match way:
            case "engine":
                return merge_in_engine(asked, _only(engines))
            case "across":
                return merge_across(asked, engines)
    except (LeftToMemory, Refused) as reason:
        if by is not None:
            raise WayNotPossible(f"the merge cannot run by={by!r}: {reason}. by=None takes the way that can") from None
    return merge_in_memory(asked)


def _unmatched(asked: Asked, frame: pd.DataFrame, report: MergeReport) -> list[JoinStep]:
    """The steps in which no row has a partner, though both sides have keys.

    A report is counted for it only where the frame shows nothing of a table, and not of much for a few rows.
    """
    if not report.is_counted:
        shown = {table for name, (table, _) in asked.wanted.items() if frame[name].notna().any()}
        seems_so = asked.how == "outer" or any(step.table not in shown for step in asked.plan.steps)
        if not seems_so or not (asked.are_small or asked.limit is None):
            return []
    return [
        step
        for step, counted in zip(asked.plan.steps, report.steps, strict=True)
        if not counted.matched and counted.rows_in > counted.null_keys and counted.unmatched_right
    ]


def _way(asked: Asked, engines: Sequence[Engine]) -> By:
    """Where a merge runs: in the engine that holds all tables, or across several where keys can be sent."""
    runs = {engine.joins for engine in engines} - {""}
    if len(engines) > 1:
        return "across" if runs else "memory"
    may_be_few = bool(asked.where) or asked.limit is not None
    return "engine" if runs == {"all"} or (runs and may_be_few) else "memory"


def _engines(asked: Asked) -> list[tuple[Engine, list[str]]]:
    """The engines of a plan's tables, each with its tables; none where one is not there, or tables are stacked."""
    found: list[tuple[Engine, list[str]]] = []
    if any(source.parts for source in asked.plan.sources):
        return []
    for table in asked.plan.tables:
        engine = asked.corpus.engine(table)
        if engine is None:
            return []
        known = next((tables for other, tables in found if other is engine or other == engine), None)
        if known is None:
            found.append((engine, known := []))
        known.append(table)
    return found


def _only(engines: Sequence[tuple[Engine, Sequence[str]]]) -> Engine:
    if len(engines) != 1:
        raise LeftToMemory("no one engine holds all its tables")
    return engines[0][0]


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
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < 0):
        raise InvalidArgument(f"limit is a number of rows, 0 or more; got {limit!r}")
    if isinstance(columns, str):
        raise InvalidArgument(f"columns is a list of names; got the text {columns!r}, say [{columns!r}]")


# --- what columns of the frame are ------------------------------------------------------------------------------------


def described_names(corpus: Corpus, names: Mapping[Column, str]) -> dict[str, str]:
    """What is said of columns, by what they are called in the merged frame."""
    said = {
        (table, column.name): column.description
        for table in {table for table, _ in names}
        if table in corpus
        for column in corpus.profile(table).columns
        if column.description
    }
    return {name: said[key] for key, name in names.items() if key in said}


def unprompted_names(plan: JoinPlan, names: Mapping[Column, str]) -> frozenset[str]:
    """What columns that are hidden from models, and those that tell their cells, are called in the merged frame."""
    kept = {(source.id, column) for source in plan.sources for column in source.unprompted}
    telling = told_by(kept, plan.sources, plan.steps) if kept else kept
    return frozenset(name for key, name in names.items() if key in telling)
