"""Run a join plan, and account for every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
import pandas as pd

from tagframe import results
from tagframe.corpus import Corpus
from tagframe.corpus.corpus import with_roles
from tagframe.corpus.references import Column
from tagframe.engines.base import Engine
from tagframe.engines.cells import tests_of
from tagframe.engines.pushdown import Refused
from tagframe.errors import InvalidArgument, WayNotPossible
from tagframe.joins.aggregates import Aggregate
from tagframe.joins.plan import JoinPlan
from tagframe.joins.steps import JoinStep, MergeHow
from tagframe.logs import runs
from tagframe.merging import advice, agreement
from tagframe.merging.advice import Reaction
from tagframe.merging.in_engine import merge_in_engine
from tagframe.merging.in_memory import merge_in_memory
from tagframe.merging.report import MergeReport
from tagframe.merging.semi_join import merge_across
from tagframe.merging.where import Implied, MergeRequest, NotPushable, where_of

Where = Mapping[str, Any] | str
By = Literal["engine", "across", "memory"]
"""Where a merge runs: in the engine that holds all tables, across several engines, or in memory."""


class MergeArguments(TypedDict, total=False):
    """The arguments of :func:`run_plan` that choose rows and columns."""

    how: MergeHow | None
    on_fanout: Reaction
    on_loss: Reaction
    on_ambiguous: Reaction
    columns: Sequence[str] | None
    where: Where | None
    limit: int | None
    aggregate: Aggregate | None
    distinct: bool


@runs("merging", "merge", lambda found: {"rows": len(found[0]), "engine": found[1].engine})
def run_plan(
    plan: JoinPlan,
    corpus: Corpus,
    *,
    by: By | None = None,
    implied: Implied | None = None,
    **arguments: Unpack[MergeArguments],
) -> tuple[pd.DataFrame, MergeReport]:
    """Join the tables of a plan.

    Args:
        plan: which tables, in which order, on which columns.
        corpus: the corpus of the tables. It decides where the merge runs; :attr:`MergeReport.engine` says where it did.

            One engine holds all tables, it compares keys as pandas does, and ``where`` can be written in SQL: one
            statement joins them there (:attr:`MergeReport.sql`), and only the result is read. SQLite does so with
            ``where`` or a ``limit``. The engine makes the counts of the report when they are first read.

            The tables are in several engines, and keys are integers or text: keys are sent, and only rows that may be
            in the result are read; :attr:`MergeReport.moved` says how many.

            Otherwise the merge runs in memory, over whole tables.

            Rows and their order are the same everywhere, with one exception. A PostgreSQL server has its own comparison
            of keys, so nothing matches by coercion; it gives rows in its own order, and chooses the rows of a limit.
        how: the kind of every join. "left" keeps the rows of the start table; "right" those of each table that a step
            adds, the ones without a partner last. "anti" gives the rows of the start table that have no partner in the
            other tables, or those of a plan with :meth:`JoinPlan.lacking`; ``where`` then also selects the rows of
            those tables that count. None is "anti" for such a plan, else "inner".
        on_fanout: what to do if a step repeats rows of the start table; with ``where``, if some of the rows that
            match it have the same row of the start table.
        on_loss: what to do if an inner merge loses rows of the start table; lost rows of other tables cause no warning.
            With a ``limit``, or with a ``where`` and no anchor, the result may not show what was lost: "warn" then
            counts lost rows in tables of up to 100,000 rows only, and for larger ones the report has the count. In
            other merges "warn" and "raise" also warn of keys by which no row has a partner.
        on_ambiguous: what to do if other plans are equally likely (:attr:`JoinPlan.ambiguous`).
        columns: the columns of the result, by their name there, or as ``column``, ``table.column`` or
            ``database.table.column``; None for all.
        where: selects joined rows: a mapping from a column, named as for ``columns``, to a value, a list of values, a
            bound (``(">=", 3)``, ``("between", 3, 5)``) or a function from the column to booleans; or a text such as
            ``"price > 5 and city == 'Brno'"``. :mod:`tagframe.engines.cells` defines the meaning of values, which is
            the same in all engines. A function sees the column of the rows that match the values.
        limit: the largest number of rows.
        by: where the merge runs, instead of the best place: "engine", in the one engine that holds the tables;
            "across", where engines give the rows that may be in the result; or "memory", with whole tables.
        aggregate: tables that are reduced to one row per key before the join, so that they repeat no rows: table →
            column → "sum", "mean", "min", "max", "count", "nunique" or "first", see :meth:`JoinPlan.aggregated`; or
            table → "first", for the first row of each key.
        distinct: whether rows that are exact copies of others count once, in all tables but the start table.
        implied: gives the conditions that the caller's question implies, as for ``where``. They select no rows. But if
            steps repeat rows of the start table, and among those that meet the conditions no row of some table is
            repeated, nor of one that is aggregated or of which the question names a number, the merge is not refused: a
            warning gives the conditions.

    Returns:
        The frame, in the order of the start table's rows, with a fresh index; and the report. Columns that the plan
        makes equal appear once, under the name in the table that was joined first. Other names stay as they are if they
        are unique, and otherwise become ``table.column``. Dtypes are kept; integers with missing rows become ``Int64``,
        booleans ``boolean``. If an engine makes the join, or only rows for the keys of another engine are read, the
        dtypes are those of the rows read: ``int64``, for example, if no row with a null is among them.

    Raises:
        FanOut: a step would repeat rows of the start table; they are on the exception.
        RowsLost: rows of the start table are lost, with ``on_loss="raise"``; they are on the exception.
        AmbiguousJoin: other plans are equally likely, with ``on_ambiguous="raise"``; all are on the exception.
        InexactKeys: keys are floats so large that different integers look equal.
        ColumnNotFound: ``columns`` or ``where`` name no column of the plan.
        InvalidArgument: an argument is not one of its choices.
        WayNotPossible: the merge cannot run where ``by`` says.
    """
    merge = _prepared(plan, corpus, by=by, implied=implied, **arguments)
    frame, report = _merged(merge.request, by)
    report = replace(report, differing=merge.differing(frame), limit=merge.request.limit)
    merge.say_unmatched(frame, report)
    return merge.finished(frame), report


@dataclass(frozen=True)
class _Merge:
    """A checked call: what to make of the tables, and what is made of the joined rows."""

    request: MergeRequest
    wanted: Mapping[str, Column]
    shared: Sequence[agreement.Shared]
    names: Mapping[Column, str]

    def differing(self, frame: pd.DataFrame) -> tuple[str, ...]:
        """In what matched rows differ; a warning follows."""
        found = agreement.disagreements(frame, self.shared, self.names)
        agreement.say(self.request.plan, found)
        return tuple(sentence for _, sentence in found)

    def finished(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The wanted columns, with what is known of them."""
        frame = frame if self.wanted.keys() == {*frame.columns} else frame[[*self.wanted]]
        private, described = self._known
        if private:
            results.remember(frame, private=private & {*frame.columns})
        if described:
            results.remember(frame, descriptions=described)
        return frame

    def say_unmatched(self, frame: pd.DataFrame, report: MergeReport) -> None:
        """Warn of steps in which no row has a partner."""
        request, plan = self.request, self.request.plan
        tables = {table for name, (table, _) in request.wanted.items() if frame[name].notna().any()}
        if request.how != "inner" and request.on_loss != "allow":
            advice.say_unmatched(_unmatched(request, tables, report))
        elif request.is_whole_inner and request.on_loss == "allow" and not report.rows:
            # Losing rows is allowed; a wrong guess of the key is something else.
            counted = zip(plan.steps, report.steps, strict=True)
            guessed = [one for one in counted if one[0].key.evidence.is_guess and one[0].score < 1]
            lone = [step for step, one in guessed if one.rows_in and one.unmatched_right and not one.matched]
            advice.say_unmatched(lone)

    @cached_property
    def _known(self) -> tuple[frozenset[str], dict[str, str]]:
        """The names in the frame of private columns (columns that are equal share a name), and descriptions by name."""
        corpus, called = self.request.corpus, {(id, one.casefold()): name for (id, one), name in self.names.items()}
        columns = [
            (called[source.id, column.name.casefold()], column)
            for source in self.request.plan.sources
            for table in [part.id for part in source.parts] or [source.id]
            for column in (corpus.profile(table).columns if table in corpus else ())
            if (source.id, column.name.casefold()) in called
        ]
        private = frozenset(name for name, column in columns if column.private)
        return private, {name: column.description for name, column in columns if column.description}


def _prepared(
    plan: JoinPlan,
    corpus: Corpus,
    how: MergeHow | None = None,
    on_fanout: Reaction = "raise",
    on_loss: Reaction = "warn",
    on_ambiguous: Reaction = "warn",
    columns: Sequence[str] | None = None,
    where: Where | None = None,
    limit: int | None = None,
    by: By | None = None,
    aggregate: Aggregate | None = None,
    distinct: bool = False,
    implied: Implied | None = None,
) -> _Merge:
    how = how or ("anti" if plan.absent else "inner")
    given = {"how": how, "on_fanout": on_fanout, "on_loss": on_loss, "on_ambiguous": on_ambiguous, "columns": columns}
    _check(given | {"limit": limit, "by": by, "distinct": distinct})
    plan = _plan_for(plan, how)
    plan = plan.aggregated(aggregate) if aggregate else plan
    if distinct:
        plan = replace(plan, sources=tuple(replace(one, distinct=one.id != plan.start) for one in plan.sources))
    corpus = _with_roles(plan, corpus)
    advice.say_ambiguity(plan, on_ambiguous)
    advice.say_doubt(plan)
    advice.say_left_out(plan)
    absent = frozenset(plan.absent) if how == "anti" else frozenset[str]()
    names = plan.column_names()
    everything, wanted = plan.named_columns(None), plan.named_columns(columns)
    everything = {name: column for name, column in everything.items() if column[0] not in absent}
    if columns is not None and (lone := [name for name in wanted if name not in everything]):
        raise InvalidArgument(f"columns= names {', '.join(lone)}: the rows have none in {' and '.join(sorted(absent))}")
    wanted = {name: column for name, column in wanted.items() if name in everything}
    shared = [one for one in agreement.shared_columns(plan, corpus) if not {one.mine[0], one.theirs[0]} & absent]
    compared = {names[key]: key for one in shared for key in (one.mine, one.theirs, *one.keys)}
    chosen = where_of(where, plan)
    if any(len({test.column[0] in absent for test in tests_of(one)}) > 1 for one in chosen.tests):
        raise InvalidArgument(
            f"where={where!r} tests cells of the rows or of {' and '.join(sorted(absent))}, where they have no "
            "partner: join the conditions by 'and'"
        )
    advice.refuse_other_types(plan, chosen.chooses)
    request = MergeRequest(
        plan,
        corpus,
        wanted | compared,
        chosen,
        "inner" if how == "anti" else how,
        None if limit is None else int(limit),
        on_fanout,
        on_loss,
        implied=implied,
        absent=absent,
    )
    return _Merge(request, wanted, shared, names)


def _plan_for(plan: JoinPlan, how: MergeHow) -> JoinPlan:
    """The plan of an anti merge has tables without partners, and that of no other merge has any."""
    if how != "anti":
        return replace(plan, absent=())
    if plan.absent:
        return plan
    if not plan.is_anchored:
        raise InvalidArgument(advice.whose_rows(plan))
    return plan.lacking(*plan.tables[1:])


def _with_roles(plan: JoinPlan, corpus: Corpus) -> Corpus:
    """The corpus in which the plan's tables in roles have the rows of their tables."""
    if not any(source.role for source in plan.sources):
        return corpus
    parts = {part.id: part.id for source in plan.sources for part in source.parts}
    return with_roles(corpus, parts | {source.id: source.table for source in plan.sources if not source.parts})


def _merged(request: MergeRequest, by: By | None) -> tuple[pd.DataFrame, MergeReport]:
    engines = _engines(request)
    way = by or _way(request, [engine for engine, _ in engines])
    try:
        if way != "memory" and request.is_as_of:
            raise NotPushable("rows are joined as of a moment")
        if way != "memory" and request.absent:
            raise NotPushable("rows without a partner are found in memory")
        match way:
            case "engine":
                return merge_in_engine(request, _only(engines))
            case "across":
                return merge_across(request, engines)
    except (NotPushable, Refused) as reason:
        if by is not None:
            raise WayNotPossible(f"the merge cannot run by={by!r}: {reason}. by=None chooses a way that can") from None
    return merge_in_memory(request)


def _unmatched(request: MergeRequest, tables: Set[str], report: MergeReport) -> list[JoinStep]:
    """The steps in which no row has a partner, although both sides have keys.

    The counts of the report are made for this only if the rows do not show it, and not if that would take long for a
    few rows. Of large tables those without a column in the rows are left out.
    """
    if not report.is_counted:
        added = {step.table for step in request.plan.steps}
        if not request.are_small:
            added &= _with_bases(request.plan, {table for table, _ in request.wanted.values()})
        seems_so = request.how in ("right", "outer") or added - _with_bases(request.plan, tables)
        if not seems_so or not (request.are_small or request.limit is None):
            return []
    return [
        step
        for step, counted in zip(request.plan.steps, report.steps, strict=True)
        if not counted.matched and counted.rows_in > counted.null_keys and counted.unmatched_right
    ]


def _with_bases(plan: JoinPlan, tables: Set[str]) -> Set[str]:
    """The tables, and those through which they are joined: where one has a row, these have one, too."""
    for step in reversed(plan.steps):
        tables = tables | {step.base} if step.table in tables else tables
    return tables


def _way(request: MergeRequest, engines: Sequence[Engine]) -> By:
    """Where a merge runs: in the engine that holds all tables, or across several where keys can be sent."""
    runs = set() if request.is_as_of or request.absent else {engine.joins for engine in engines} - {""}
    if len(engines) > 1:
        return "across" if runs else "memory"
    may_be_few = bool(request.where) or request.limit is not None
    return "engine" if runs == {"all"} or (runs and may_be_few) else "memory"


def _engines(request: MergeRequest) -> list[tuple[Engine, list[str]]]:
    """The engines of a plan's tables, each with its tables; empty if one is missing, or tables are stacked."""
    found: list[tuple[Engine, list[str]]] = []
    if any(source.parts or source.distinct for source in request.plan.sources):
        return []
    for table in request.plan.tables:
        engine = request.corpus.engine(table)
        if engine is None:
            return []
        known = next((tables for other, tables in found if other is engine or other == engine), None)
        if known is None:
            found.append((engine, known := []))
        known.append(table)
    return found


def _only(engines: Sequence[tuple[Engine, Sequence[str]]]) -> Engine:
    if len(engines) != 1:
        raise NotPushable("no single engine holds all its tables")
    return engines[0][0]


def _check(arguments: Mapping[str, Any]) -> None:
    distinct, limit, columns = (arguments[name] for name in ("distinct", "limit", "columns"))
    reactions = ("raise", "warn", "allow")
    choices = {
        "how": ("inner", "left", "right", "outer", "anti"),
        **dict.fromkeys(("on_fanout", "on_loss", "on_ambiguous"), reactions),
        "by": ("engine", "across", "memory", None),
    }
    for name, known in choices.items():
        if arguments[name] not in known:
            raise InvalidArgument(f"{name} must be one of {', '.join(map(repr, known))}; got {arguments[name]!r}")
    if not isinstance(distinct, bool):
        raise InvalidArgument(f"distinct must be True or False; got {distinct!r}")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < 0):
        raise InvalidArgument(f"limit must be a number of rows, 0 or more; got {limit!r}")
    if isinstance(columns, str):
        raise InvalidArgument(f"columns must be a list of names; got the text {columns!r}: write [{columns!r}]")


def check_roles(roles: object) -> None:
    """Raise InvalidArgument if ``roles=`` is neither "all" nor None."""
    if roles not in ("all", None):
        raise InvalidArgument(
            f"roles must be 'all' or None; got {roles!r}. on=\"a.x = b.y as role\" joins a single role"
        )
