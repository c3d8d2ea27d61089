"""A corpus as tools for an agent: plain functions, each a few lines over other modules.

The docstring of a tool is its description for a model: what it returns, when to use it and when not, what to do next.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Concatenate, Literal, NamedTuple, ParamSpec, TypeVar

import pandas as pd

from tagframe import config, results
from tagframe.agents import tool_results as gives
from tagframe.agents.definitions import names_of_tools
from tagframe.agents.schemas import Format, called, in_format
from tagframe.agents.telling import (
    MAX_RESULT_TOKENS,
    MAX_STORED_RESULTS,
    account_of,
    at_hand,
    column_named,
    compared_texts,
    join_of,
    left_out,
    limited,
    merged_columns,
    near_columns,
    note_of,
    offset_of,
    one_line_of,
    page_of,
    rounded,
    rows_behind,
    rows_of,
    tokens_of,
    write_new,
)
from tagframe.agents.tool_results import ABOUT_CELLS
from tagframe.answer import SQLLimits, aask, check_sql, exec_sql
from tagframe.answer.doubts import repeats_of
from tagframe.answer.execution import Execution
from tagframe.answer.guard import Reader
from tagframe.answer.lm_sql import FUNCTIONS, has_functions
from tagframe.answer.metrics import metric_lines, metrics_named, metrics_of
from tagframe.answer.query import Query, names_of
from tagframe.answer.steps import driver
from tagframe.corpus import Corpus, TableProfile
from tagframe.corpus.references import NamedTable
from tagframe.corpus.stored_profiles import AtHand
from tagframe.embed import get_embedder
from tagframe.errors import (
    FileNotAllowed,
    InvalidArgument,
    NotConfigured,
    SourceNotFound,
    SQLFailed,
    TagframeError,
    UnsafeSQL,
    did_you_mean,
)
from tagframe.joins import How, JoinPlan
from tagframe.joins.key_text import text_of
from tagframe.joins.steps import PlanTable
from tagframe.learning import learn as learn_queries
from tagframe.lm import Budget
from tagframe.merging import Reaction, run_plan
from tagframe.merging.advice import heard
from tagframe.operators import arun, run
from tagframe.retrieval import RetrievedTables, retrieve_tables
from tagframe.retrieval.index import index_of
from tagframe.retrieval.links import tables_around
from tagframe.retrieval.question import Question
from tagframe.retrieval.schema_text import column_texts, describe_keys, sql_name
from tagframe.retrieval.ways import plan_for
from tagframe.stopping import Stopped, stopped_by

Tool = Callable[..., Any]
P = ParamSpec("P")
T = TypeVar("T")
Where = dict[str, Any] | str

DEFAULT_ROWS = 100
"""The default number of rows."""
MAX_ROWS = 10_000
_MAX_COLUMNS = (12, 6, 3)
"""Columns shown of a found table; smaller numbers are tried if the result is too long."""
_MIN_CHANCE = 0.2
"""A found table with a smaller chance is only named."""
_MAX_KEYS = 20
_MAX_SPELLINGS = 3
_MAX_COMMON_VALUES = 10
_MAX_SEARCHED_ROWS = 500_000
"""A value is searched in all tables if they have at most this many rows together."""
_MAX_PLACES = 50
_SHARE_OF_TIME = 0.1
"""Of the time of a statement: for the rows behind it, all tables together."""
_MAX_COMPARED_VALUES = 3
"""The most values that are looked up for a result without rows."""
_MIN_SECONDS = 0.5
"""For the rows behind it in one table: to start takes a part of that."""


class _Known(NamedTuple):
    """The names of the tables of some profiles.

    Attributes:
        profiles: of the corpus.
        names: table ids by name in SQL.
        ids: names in SQL by table id.
        dialect: of statements.
        is_one: whether all tables have the same dialect.
    """

    profiles: Sequence[TableProfile]
    names: dict[str, str]
    ids: dict[str, str]
    dialect: str
    is_one: bool


def _of_now(tool: Callable[Concatenate[Tools, P], T]) -> Callable[Concatenate[Tools, P], T]:
    """The tool over the corpus as it is when the call begins, without private columns: an agent is a model."""

    @functools.wraps(tool)
    def call(self: Tools, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return tool(self.of(self.corpus.current().without_private()), *args, **kwargs)

    return call


@dataclass(frozen=True, eq=False)
class Tools:
    """The tools of a corpus, made by ``corpus.tools()``. Iterating over it gives the tools that may be used.

    Every tool gives a plain dictionary (:mod:`tagframe.agents.tool_results`). Its errors are those of
    :mod:`tagframe.errors` and say what to do instead. No tool writes to a source.

    Attributes:
        corpus: whose tables are found and read.
        may_ask: whether :meth:`ask` may be used; it needs a budget.
        may_learn: whether :meth:`learn` may be used.
        budget: for the model, in all calls together; without one, no model is asked.
        folder: where :meth:`merge_tables` may write files; None if it may not.
        limits: of a statement.
    """

    corpus: Corpus
    may_ask: bool = False
    may_learn: bool = False
    budget: Budget | None = None
    folder: Path | None = None
    limits: SQLLimits = field(default_factory=lambda: SQLLimits(rows=MAX_ROWS + 1))
    _remembered: AtHand = field(default_factory=lambda: AtHand(MAX_STORED_RESULTS), repr=False)

    def __post_init__(self) -> None:
        if self.may_ask and self.budget is None:
            raise InvalidArgument("ask=True lets an agent spend money: set a limit, such as budget=1.0 (dollars)")
        if self.folder is not None and not self.folder.is_dir():
            raise InvalidArgument(f"to= must be an existing folder for new files; there is none at {self.folder}")

    def of(self, corpus: Corpus) -> Tools:
        """These tools over another corpus, with the same budget and open pages."""
        made: Tools = self if corpus is self.corpus else self.__dict__.get("_last", self)
        if made.corpus is not corpus:
            made = self.__dict__["_last"] = replace(self, corpus=corpus)
        return made

    def __iter__(self) -> Iterator[Tool]:
        return (getattr(self, name) for name in names_of_tools(self.may_ask, self.may_learn))

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> Any:
        """The result of a tool for arguments that a model wrote: an object, or its JSON text.

        Raises:
            InvalidArgument: there is no such tool, or the arguments are wrong.
        """
        tools = {tool.__name__: tool for tool in self}
        if name not in tools:
            raise InvalidArgument(f"no tool {name!r} in {did_you_mean(name, tools)}")
        return called(tools[name], arguments)

    def schemas(self, format: Format) -> list[dict[str, Any]]:
        """The tools in the format of a provider's API: "openai" or "anthropic"."""
        return [in_format(tool, format) for tool in self]

    # --- finding

    @_of_now
    def find_tables(self, question: str, k: int | None = None) -> gives.Found:
        """Find the tables that answer a question together, and how they join.

        Use it first. Each table has the chance that it is needed, its name in SQL, and relevant columns with values;
        less likely ones are in "others". A join loses the share "lost" of values. "note" says if nothing fits. Then
        use run_sql, or plan_joins for several tables.

        Args:
            question: The user's words.
            k: How many tables; default as needed.
        """
        retrieved = retrieve_tables(question, self.corpus, k=k)
        plans = retrieved.plans
        near = near_columns(retrieved)
        named = metrics_named(question, self.corpus)
        notes = [retrieved.note, *(left_out(plan) for plan in plans), *map(self._spanned, plans)]
        likely = [hit for hit in retrieved if hit.probability is None or hit.probability >= _MIN_CHANCE] or list(
            retrieved
        )[:1]
        others = [self._name(hit.id) for hit in retrieved if hit not in likely]
        bridges = dict.fromkeys(bridge for plan in plans for bridge in plan.bridges)
        for most in _MAX_COLUMNS:
            result = gives.Found(
                about=ABOUT_CELLS,
                dialect=self._dialect,
                tables=[self._listed(hit.id, retrieved, near(hit.id, most)) for hit in likely],
                joins=[join_of(step, self._in_sql(plan)) for plan in plans for step in plan.steps],
                bridges=list(bridges),
                confidence=rounded(retrieved.confidence),
                note="; ".join(filter(None, notes)),
            )
            if others:
                result["others"] = others
            if metrics := metric_lines(named, self._known.names, self._dialect):
                result["metrics"] = metrics
            if tokens_of(result) <= MAX_RESULT_TOKENS:
                return result
        raise InvalidArgument(f"{len(retrieved)} tables are too many to show: ask for k={len(retrieved) // 2} or fewer")

    def _spanned(self, plan: JoinPlan) -> str:
        """The databases of a plan, if there are several."""
        known = {source.database for source in plan.sources}
        return f"this needs {len(known)} databases: {', '.join(sorted(known))}" if len(known) > 1 else ""

    def _in_sql(self, plan: JoinPlan) -> list[NamedTable]:
        """The tables of a plan by their names in SQL."""
        return [
            replace(one, table=replace(one.table, name=self._name(one.table.id)))
            if one.table
            else replace(one, name=self._name(one.id))
            for one in plan.named
        ]

    def _listed(self, id: str, retrieved: RetrievedTables, columns: Sequence[str]) -> gives.FoundTable:
        hit, profile = retrieved[id], self.corpus.profile(id)
        texts = column_texts(self.corpus, profile)
        described: gives.FoundTable = {
            "id": id,
            "name": self._name(id),
            "chance": rounded(hit.probability),
            "why": list(hit.reasons[:1]),
            "rows": profile.rows,
            "columns": [self._line(name, *texts[name]) for name in columns if name in texts],
        }
        if profile.description:
            described["description"] = profile.description[:300]
        if len(texts) > len(columns):
            described["more_columns"] = len(texts) - len(columns)
        if hit.parts:
            described["parts"] = [
                *hit.parts[:_MAX_KEYS],
                *[f"… {len(hit.parts) - _MAX_KEYS} more"] * (len(hit.parts) > _MAX_KEYS),
            ]
        return described

    def _line(self, name: str, kind: str, values: str) -> str:
        return f"{sql_name(name, self._dialect)} {kind}{' -- ' * bool(values)}{values}"

    @_of_now
    def describe_tables(
        self,
        tables: list[str] | None = None,
        column: str | None = None,
        value: str | None = None,
        cursor: str | None = None,
    ) -> gives.Described | gives.ProfiledColumn | gives.Places:
        """Describe tables, count a column's values, or find the columns that contain a value.

        Use it for columns that find_tables has not shown, or if you do not know how a value is written.

        Args:
            tables: Ids or names; for a value, default all.
            column: Of one table; its common values are counted.
            value: Text to search for, in any case.
            cursor: Of the last result.
        """
        if value is not None:
            return self._places_of(value, tables)
        if not tables:
            raise InvalidArgument("tables are needed, by id or name; find_tables finds them")
        if column is not None:
            if len(tables) != 1:
                raise InvalidArgument(f"column is of one table: name only that one; got {len(tables)} tables")
            return self._profiled(tables[0], column)
        start, room = offset_of(cursor), MAX_RESULT_TOKENS - 200.0
        columns: list[tuple[TableProfile, gives.DescribedColumn | None]] = []
        for profile in map(self.corpus.profile, tables):
            texts = column_texts(self.corpus, profile)
            lines = [
                gives.DescribedColumn(name=name, type=kind, values=values) for name, (kind, values) in texts.items()
            ]
            columns += [(profile, column) for column in lines] or [(profile, None)]
        if start and start >= len(columns):
            raise InvalidArgument(f"the cursor {start} is past the end: these tables have {len(columns):,} columns")
        described: list[gives.DescribedTable] = []
        following: str | None = None
        for position, (profile, line) in enumerate(columns[start:], start):
            head = None if described and described[-1]["id"] == profile.id else self._head(profile)
            room -= tokens_of(line) + 1 + (0 if head is None else tokens_of(head))
            if room < 0 and described:
                following = str(position)
                break
            if head is not None:
                described.append(head)
            if line is not None:
                described[-1]["columns"].append(line)
        return gives.Described(about=ABOUT_CELLS, dialect=self._dialect, tables=described, cursor=following)

    def _head(self, profile: TableProfile) -> gives.DescribedTable:
        around = tables_around(self.corpus, [profile.id])
        names = {self._name(id): id for id in [profile.id, *around] if id in self._known.ids}
        described: gives.DescribedTable = {
            "id": profile.id,
            "name": self._name(profile.id),
            "rows": profile.rows,
            "keys": describe_keys(self.corpus, names, self._dialect, of=profile.id)[:_MAX_KEYS],
            "columns": [],
        }
        if profile.estimated:
            described["estimated"] = True
        if profile.description:
            described["description"] = profile.description
        if profile.primary_key:
            described["primary_key"] = list(profile.primary_key)
        if totals := [
            str(one) for one in profile.totals if one.column in {column.name for column in profile.for_prompts}
        ]:
            described["totals"] = totals
        metrics = [metric for metric in metrics_of(self.corpus) if profile.id in metric.sources.values()]
        if lines := metric_lines(metrics[:_MAX_KEYS], self._known.names, self._dialect):
            described["metrics"] = lines
        return described

    # --- joining

    @_of_now
    def plan_joins(
        self,
        tables: list[str],
        on: list[str] | None = None,
        how: How = "inner",
        on_fanout: Literal["raise", "allow"] = "raise",
        question: str | None = None,
    ) -> gives.Planned:
        """Plan how tables join, and count how this changes the rows. "sql" is the join.

        Use it before you write a join. "account" counts rows of "start" that match, are lost, or repeat ("fan_out"
        above 1). Reduce "sql" to what you need for run_sql.

        Args:
            tables: Ids or names; connecting tables are added.
            on: Other keys: ["loan.account_id = account.id"].
            how: Of every join.
            on_fanout: "allow" to repeat rows of "start".
            question: The user's words; they choose between joins.
        """
        plan = self._plan(tables, on, question)
        visible = merged_columns(plan, None, None)
        _, account = self._merged(plan, how, on_fanout, visible[:1], None, limit=1)
        return gives.Planned(
            about=ABOUT_CELLS,
            account=account,
            bridges=list(plan.bridges),
            left_out=list(plan.left_out),
            alternatives=[
                gives.OtherJoin(
                    on=[text_of(step.key, self._in_sql(other)) for step in other.steps],
                    chance=round(min(step.score for step in other.steps), 3),
                )
                for other in plan.alternatives[:_MAX_COMMON_VALUES]
            ],
            sql=self._sql(plan, how),
            dialect=self._dialect,
        )

    @_of_now
    def merge_tables(
        self,
        tables: list[str],
        where: Where | None = None,
        columns: list[str] | None = None,
        limit: int | None = None,
        to: str | None = None,
        on: list[str] | None = None,
        how: How = "inner",
        on_fanout: Literal["raise", "allow"] = "raise",
        aggregate: dict[str, dict[str, str]] | None = None,
        cursor: str | None = None,
    ) -> gives.Merged:
        """Join tables into rows or a Parquet file, and account for every row.

        Use it for whole rows; for counts and sums use run_sql. A join that would repeat rows of "start" is refused,
        with the way out.

        Args:
            tables: As for plan_joins.
            where: {"city": "Brno", "year": [2020, 2021]}, or "amount > 100 and city == 'Brno'".
            columns: Default all.
            limit: The most rows; default 100, for a file all.
            to: A new file: "loans.parquet".
            on: As for plan_joins.
            how: As for plan_joins.
            on_fanout: As for plan_joins.
            aggregate: To one row per key: {"orders": {"amount": "sum"}}.
            cursor: Of the last result.
        """
        start = offset_of(cursor)
        if start and to is not None:
            raise InvalidArgument("to= writes all rows to a file: leave out the cursor")
        target = None if to is None else self._target(to)
        plan = self._plan(tables, on)
        plan = plan.aggregated(aggregate) if aggregate else plan
        wanted = merged_columns(plan, where, columns)
        at_most = limit if limit is not None or target is not None else DEFAULT_ROWS

        key = ["merge", tables, where, columns, at_most, on, how, on_fanout, aggregate]
        frame, account = at_hand(
            self._remembered, key, start, lambda: self._merged(plan, how, on_fanout, wanted, where, at_most)
        )
        result = gives.Merged(**_without_rows(frame), file=None, account=account, note="", cursor=None)
        if target is not None:
            write_new(frame, target)
            return {**result, "file": target.name}
        page, following, is_cut = page_of(rows_of(frame), start, MAX_RESULT_TOKENS - tokens_of(result))
        more = len(frame) == at_most
        note = [note_of(start, len(page), len(frame), is_cut), f"there may be more rows: limit={at_most}" * more]
        return {**result, "rows": page, "cursor": following, "note": "; ".join(filter(None, note))}

    def _plan(self, tables: Sequence[str], on: Sequence[str] | None, question: str | None = None) -> JoinPlan:
        profiles = list({profile.id: profile for profile in map(self.corpus.profile, tables)}.values())
        return plan_for(self.corpus, [profile.id for profile in profiles], question or "", on=on or None)

    def _merged(
        self, plan: JoinPlan, how: How, on_fanout: Reaction, columns: list[str], where: Where | None, limit: int | None
    ) -> tuple[pd.DataFrame, gives.Account]:
        with heard() as warnings:
            frame, report = run_plan(
                plan,
                self.corpus,
                how=how,
                columns=columns,
                where=where,
                limit=limit,
                on_fanout=on_fanout,
                on_loss="allow",
                on_ambiguous="allow",
            )
            return frame, account_of(report, plan, self._in_sql(plan), [remark.text for remark in warnings])

    def _sql(self, plan: JoinPlan, how: How) -> str:
        """The plan as a statement for :meth:`run_sql`, with the names of tables there."""
        named = replace(plan, sources=tuple(map(self._as_read, plan.sources)))
        return one_line_of(plan, named.sql(columns=merged_columns(named, None, None), how=how, dialect=self._dialect))

    def _as_read(self, source: PlanTable) -> PlanTable:
        """A table by its name in statements here, which says the database where that is needed."""
        parts = tuple(replace(part, name=self._name(part.table), database="", schema="") for part in source.parts)
        return replace(source, name=self._name(source.table), database="", schema="", parts=parts)

    def _target(self, name: str) -> Path:
        if self.folder is None:
            raise FileNotAllowed("writing files is not allowed here: leave out to= to get rows")
        if Path(name).name != name or name.startswith(".") or not name.endswith(".parquet") or not name.isprintable():
            raise FileNotAllowed(f"to= must be the name of a .parquet file, without a folder; got {name!r:.200}")
        return self.folder / name

    # --- reading

    @_of_now
    def run_sql(
        self, sql: str, limit: int = DEFAULT_ROWS, rows_behind: bool = True, cursor: str | None = None
    ) -> gives.Rows:
        """Run one SELECT (also WITH, UNION), read-only, and get its rows.

        Use it with the dialect and names of find_tables. Let SQL count and sort. An error or the note says what to
        write instead. "rows_behind" are keys of the source rows, to cite.

        Args:
            sql: The statement.
            limit: At most 10,000.
            rows_behind: False is faster.
            cursor: Of the last result.
        """
        start = offset_of(cursor)
        if not 1 <= limit <= MAX_ROWS:
            raise InvalidArgument(f"limit must be a number of rows from 1 to {MAX_ROWS:,}; got {limit}")
        frame, behind, remark = at_hand(
            self._remembered, ["sql", sql, limit], start, lambda: self._run(sql, limit, rows_behind)
        )
        is_truncated, frame = len(frame) > limit, frame.head(limit)
        result = gives.Rows(**_without_rows(frame), truncated=False, rows_behind=behind, note="", cursor=None)
        page, following, is_cut = page_of(rows_of(frame), start, MAX_RESULT_TOKENS - tokens_of(result))
        note = "; ".join(filter(None, [note_of(start, len(page), len(frame), is_cut), remark]))
        more = is_truncated or following is not None
        return {**result, "rows": page, "truncated": more, "cursor": following, "note": note}

    def _run(self, sql: str, limit: int, with_behind: bool) -> tuple[pd.DataFrame, list[gives.RowsBehind], str]:
        """The rows, the source rows behind them, and a note."""
        asks = has_functions(sql)
        if asks and self.budget is None:
            raise NotConfigured(
                f"{', '.join(FUNCTIONS)} ask a model, and there is no budget for one: write the statement without them"
            )
        query = self._query(limited(sql, limit + 1, self._dialect))
        runs = exec_sql(self.corpus, limits=self.limits)
        if asks:
            with config.context(budget=self.budget):
                frame = _waited_for(arun(runs.steps(query), driver(), "exec_sql"))
        else:
            frame = run(runs.steps(query), driver(), "exec_sql")
        execution = results.recall(frame, "execution")
        is_empty = len(frame) < 2 and all(cell in (None, 0) for row in rows_of(frame) for cell in row)
        why = self._why_empty(execution) if is_empty and execution is not None else ""
        repeats = [": ".join(filter(None, [one.facts, one.statement])) for one in repeats_of(frame)]
        if not with_behind or why or execution is None or execution.reader is None:
            return frame, [], "; ".join([*repeats, why] if why else repeats)
        # Nothing is cited of the row beyond the limit, which only shows that there are more.
        bare = execution.sql.removesuffix(f"\nLIMIT {limit + 1}")
        seconds = max(self.limits.seconds * _SHARE_OF_TIME / max(len(execution.tables), 1), _MIN_SECONDS)
        cited = replace(
            execution,
            sql=bare if bare == execution.sql else f"{bare}\nLIMIT {limit}",
            reader=replace(execution.reader, limits=replace(self.limits, seconds=min(seconds, self.limits.seconds))),
        )
        sources = cited.sources()
        behind, remark = rows_behind(sources[sources["row"].isna() | (sources["row"] < limit)])
        return frame, behind, "; ".join(filter(None, [*repeats, remark]))

    def _why_empty(self, execution: Execution) -> str:
        """Which values that a statement without rows, or with only 0 and NULL, compares with are not stored so."""
        seconds = max(self.limits.seconds * _SHARE_OF_TIME / _MAX_COMPARED_VALUES, _MIN_SECONDS)
        quick = replace(self, limits=replace(self.limits, seconds=min(seconds, self.limits.seconds)))
        reasons = []
        for name, value in compared_texts(execution.sql, self._dialect)[:_MAX_COMPARED_VALUES]:
            profiles = [self.corpus.profile(id) for id in execution.tables]
            of_name = [one for one in profiles if name.casefold() in {c.name.casefold() for c in one.columns}]
            places = [place for one in of_name for place in quick._places(value, one, name)]
            if len(of_name) == 1 and value not in (spellings := list(dict.fromkeys(place[2] for place in places))):
                stored = (
                    f"but {', '.join(map(repr, spellings[:_MAX_SPELLINGS]))}" if spellings else "nor a text with it"
                )
                reasons.append(f"{self._name(of_name[0].id)}.{name} has no {value!r}, {stored}")
        return "; ".join(reasons)

    def _query(self, sql: str) -> Query:
        """The statement over the tables that it names, if these are all in one engine, or in engines of one kind.

        It then runs in that engine, not in the one that holds most of the corpus.
        """
        names = self._known.names
        if not names:
            raise SourceNotFound("no rows can be read: only schemas are known, or the sources no longer exist")
        if not self._known.is_one:
            return Query(sql, names)
        reader = Reader(self.corpus, names)
        named = reader.named(sql)
        with suppress(UnsafeSQL):
            check_sql(reader.resolved(sql), named, reader.engine.dialect, FUNCTIONS)
            return Query(sql, named or names)
        return Query(sql, names)

    def tables_of(self, sql: str) -> set[str]:
        """The ids of the tables that a statement reads; none if it is none."""
        with suppress(TagframeError):
            return {*Reader(self.corpus, self._known.names).named(sql).values()}
        return set()

    def _profiled(self, table: str, column: str) -> gives.ProfiledColumn:
        """The values of a column: the number of distinct values and nulls, the range, the most common values."""
        profile = self.corpus.profile(table)
        known = column_named(profile, column)
        name = sql_name(known.name, self._dialect)
        statement = (
            f"SELECT {name} AS v, COUNT(*) AS n FROM {sql_name(self._name(profile.id), self._dialect)} "
            f"WHERE {name} IS NOT NULL GROUP BY {name} ORDER BY n DESC LIMIT {_MAX_COMMON_VALUES}"
        )
        note, common, is_ordered = "", list[gives.Value](), known.family in ("integer", "real", "date")
        try:
            counts = rows_of(self._run(statement, _MAX_COMMON_VALUES, False)[0])
            page, *_ = page_of(counts, 0, MAX_RESULT_TOKENS / 2)
            common = [{"value": value, "rows": rows} for value, rows in page]
        except SQLFailed as error:
            note = f"its values were not counted: {error}"
        return gives.ProfiledColumn(
            about=ABOUT_CELLS,
            table=profile.id,
            column=known.name,
            type=known.declared_type or known.family,
            rows=known.rows,
            nulls=known.nulls,
            distinct=known.distinct,
            minimum=known.minimum if is_ordered else None,
            maximum=known.maximum if is_ordered else None,
            common=common,
            description=known.description,
            note="; ".join(filter(None, [note, "counts are estimates, except of common values" * profile.estimated])),
        )

    def _places_of(self, text: str, tables: list[str] | None) -> gives.Places:
        """The columns that contain a text, ignoring case, and how it is written there."""
        if not text.strip():
            raise InvalidArgument("value is empty: give the text to search for")
        profiles, note = self._searched(text, tables)
        places = [place for profile in profiles for place in self._places(text.strip(), profile)]
        places.sort(key=lambda place: (str(place[2]).casefold() != text.strip().casefold(), -place[3]))
        page, _, _ = page_of(places[:_MAX_PLACES], 0, MAX_RESULT_TOKENS - 500)
        more = f"{len(places) - len(page)} further places are left out: name tables" * (len(places) > len(page))
        listed = [
            gives.Place(table=table, column=column, value=value, rows=count) for table, column, value, count in page
        ]
        return gives.Places(about=ABOUT_CELLS, places=listed, note="; ".join(filter(None, [note, more])))

    def _searched(self, text: str, tables: Sequence[str] | None) -> tuple[list[TableProfile], str]:
        """The tables to search: those that are named; else all if they are small, or those known to have the value."""
        if tables is not None:
            return [self.corpus.profile(table) for table in tables], ""
        readable = [self.corpus.profile(id) for id in self._known.names.values()]
        if sum(profile.rows or 0 for profile in readable) <= _MAX_SEARCHED_ROWS:
            return readable, ""
        index = index_of(self.corpus, get_embedder())
        having = {index.tables[table].id for hit in index.values.hits(Question.of(f'"{text}"')) for table in hit.tables}
        chosen = [profile for profile in readable if profile.id in having][:_MAX_KEYS]
        return chosen, (
            "the tables are too large to search. Only tables known to have the whole value are shown; name tables to "
            "search them"
        )

    def _places(self, text: str, profile: TableProfile, only: str | None = None) -> Iterator[list[Any]]:
        """The table, the column, the value and the number of rows; of all columns, or only of one."""
        escaped = text
        for sign in "!%_":
            escaped = escaped.replace(sign, f"!{sign}")
        like = "'%" + escaped.lower().replace("'", "''") + "%'"
        table = sql_name(self._name(profile.id), self._dialect)
        kind = "TEXT" if self._dialect == "sqlite" else "VARCHAR"
        parts: list[str] = []
        names: list[str] = []
        for column in profile.columns:
            is_searched = only is None or column.name.casefold() == only.casefold()
            if is_searched and column.family not in ("blob", "empty", "boolean"):
                cell = f"CAST({sql_name(column.name, self._dialect)} AS {kind})"
                parts.append(
                    f"SELECT {len(names)} AS c, {cell} AS v, COUNT(*) AS n FROM {table} "
                    f"WHERE LOWER({cell}) LIKE {like} ESCAPE '!' GROUP BY {cell}"
                )
                names.append(column.name)
        for first in range(0, len(parts), _MAX_KEYS):
            with suppress(SQLFailed):
                statement = " UNION ALL ".join(parts[first : first + _MAX_KEYS])
                for position, value, rows in rows_of(self._run(statement, _MAX_PLACES, False)[0]):
                    yield [profile.id, names[position], value, rows]

    # --- with a model, and with leave

    @_of_now
    def ask(self, question: str) -> gives.Answered:
        """Let a language model answer a question from the tables: it writes a statement, runs it and answers.

        Use it if you cannot write the statement yourself, or to compare with your own answer. It costs money from a
        fixed budget; run_sql costs nothing. Read "assumptions" and "doubts" before you pass the answer on, and cite
        "tables".

        Args:
            question: In plain words.
        """
        if not self.may_ask:
            raise NotConfigured("ask costs money and is not allowed here: use run_sql")
        with config.context(budget=self.budget):
            answer = _waited_for(aask(question, self.corpus, limits=self.limits))
        behind = rows_behind(answer.sources)[0] if answer.execution is not None else []
        usage = answer.usage
        values, *_ = page_of([[value] for value in answer.values], 0, MAX_RESULT_TOKENS / 2)
        return gives.Answered(
            about=ABOUT_CELLS,
            answer=answer.text[:8_000],
            values=[value for (value,) in values],
            sql=str(answer.query),
            assumptions=list(answer.assumptions),
            doubts=list(map(str, answer.doubts)),
            tables=answer.tables,
            rows_behind=behind,
            cost={"calls": answer.calls, "tokens": usage.tokens_in + usage.tokens_out, "dollars": usage.dollars},
        )

    @_of_now
    def learn(self, question: str, sql: str) -> gives.Learned:
        """Store a statement that answers a question, so that its tables and joins are found for similar questions.

        Use it only after the user has confirmed that the statement is right: it affects everybody who works with these
        tables.

        Args:
            question: In plain words.
            sql: The SELECT that answers it.
        """
        if not self.may_learn:
            raise NotConfigured("learn is not allowed here")
        learned = learn_queries(self.corpus, question, sql)
        return gives.Learned(learned=learned.learned, note=repr(learned))

    # --- names

    @property
    def _known(self) -> _Known:
        """The names by the profiles."""
        profiles = self.corpus.profiles
        known: _Known | None = self.__dict__.get("_named")
        if known is None or known.profiles is not profiles:
            names = names_of(self.corpus)
            engines = {id(engine): engine for engine in map(self.corpus.engine, names.values()) if engine is not None}
            dialects = {engine.dialect.name for engine in engines.values()}
            dialect = Reader(self.corpus, names).engine.dialect.name if len(dialects) > 1 else "".join(dialects)
            ids = {id: name for name, id in names.items()}
            known = _Known(profiles, names, ids, dialect or "sqlite", len(dialects) == 1)
            self.__dict__["_named"] = known
        return known

    @property
    def _dialect(self) -> str:
        return self._known.dialect

    def _name(self, id: str) -> str:
        return self._known.ids.get(id, id)


def _without_rows(frame: pd.DataFrame) -> gives.OfRows:
    """A result before its rows are added."""
    return {"about": ABOUT_CELLS, "columns": list(map(str, frame.columns)), "rows": [], "row_count": len(frame)}


def _waited_for(work: Coroutine[Any, Any, T]) -> T:
    """The result of awaited work, run on a new event loop; stopping this thread's work cancels it.

    Raises:
        Stopped: this thread's work was stopped.
    """

    async def whole() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
        with stopped_by(lambda: loop.call_soon_threadsafe(task.cancel)):
            try:
                return await task
            except asyncio.CancelledError:
                raise Stopped from None

    # A new thread, because this one may have a running loop, for example in a notebook.
    with ThreadPoolExecutor(1, thread_name_prefix="tagframe-agents") as pool:
        return pool.submit(copy_context().run, asyncio.run, whole()).result()
