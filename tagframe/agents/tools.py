"""A corpus as tools for an agent: plain functions, each a few lines over other modules.

The docstring of a tool is its description for a model: what it returns, when to use it and when not, what to do next.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

import pandas as pd

from tagframe import config
from tagframe.agents import names_of_tools
from tagframe.agents.formatting import (
    ABOUT_CELLS,
    MAX_RESULT_TOKENS,
    MAX_STORED_RESULTS,
    Result,
    account_of,
    at_hand,
    join_of,
    left_out,
    merged_columns,
    note_of,
    offset_of,
    one_line_of,
    page_of,
    rounded,
    rows_of,
    tokens_of,
    write_new,
)
from tagframe.agents.reading import MAX_COMMON_VALUES, MAX_TABLES, Reading, rows_behind, waited_for
from tagframe.agents.schemas import Format, called, in_format
from tagframe.answer import SQLLimits, aask
from tagframe.corpus import Corpus, TableProfile
from tagframe.corpus.stored_profiles import AtHand
from tagframe.errors import (
    FileNotAllowed,
    InvalidArgument,
    NotConfigured,
    did_you_mean,
)
from tagframe.joins import How, JoinPlan
from tagframe.joins.key_text import text_of
from tagframe.joins.steps import PlanTable
from tagframe.learning import learn as learn_queries
from tagframe.lm import Budget
from tagframe.merging import Reaction, run_plan
from tagframe.merging.advice import heard
from tagframe.retrieval import RetrievedTables, retrieve_tables
from tagframe.retrieval.links import tables_around
from tagframe.retrieval.schema_text import column_texts, describe_keys, near_columns, sql_name
from tagframe.retrieval.ways import plan_for
from tagframe.semantic.metrics import metric_lines, metrics_named, metrics_of

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


def _of_now(tool: Callable[Concatenate[Tools, P], T]) -> Callable[Concatenate[Tools, P], T]:
    """The tool over the corpus without what is private when the call begins: an agent is a model."""

    @functools.wraps(tool)
    def call(self: Tools, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return tool(self.of(self.corpus.without_private()), *args, **kwargs)

    return call


@dataclass(eq=False)
class Tools:
    """The tools of a corpus, made by ``corpus.tools()``. Iterating over it gives the tools that may be used.

    Every tool gives a plain dictionary; its docstring says what is in it. Its errors are those of
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
    _last: Tools | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.reading = Reading(self.corpus, self.limits, self.budget)
        if self.may_ask and self.budget is None:
            raise InvalidArgument("ask=True lets an agent spend money: set a limit, such as budget=1.0 (dollars)")
        if self.folder is not None and not self.folder.is_dir():
            raise InvalidArgument(f"to= must be an existing folder for new files; there is none at {self.folder}")

    def of(self, corpus: Corpus) -> Tools:
        """These tools over another corpus, with the same budget and open pages."""
        made = self if corpus is self.corpus else self._last
        if made is None or made.corpus is not corpus:
            made = self._last = replace(self, corpus=corpus)
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
    def find_tables(self, question: str, k: int | None = None) -> Result:
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
        likely = [hit for hit in retrieved if hit.probability is None or hit.probability >= _MIN_CHANCE]
        likely = likely or [*retrieved][:1]
        others = [self.reading.name(hit.id) for hit in retrieved if hit not in likely]
        bridges = dict.fromkeys(bridge for plan in plans for bridge in plan.bridges)
        for most in _MAX_COLUMNS:
            result = {
                "about": ABOUT_CELLS,
                "dialect": self.reading.dialect,
                "tables": [self._listed(hit.id, retrieved, near(hit.id, most)) for hit in likely],
                "joins": [join_of(step, self._in_sql(plan).named) for plan in plans for step in plan.steps],
                "bridges": list(bridges),
                "confidence": rounded(retrieved.confidence),
                "note": "; ".join(filter(None, notes)),
            }
            if others:
                result["others"] = others
            if metrics := metric_lines(named, self.reading.known.names, self.reading.dialect):
                result["metrics"] = metrics
            if tokens_of(result) <= MAX_RESULT_TOKENS:
                return result
        raise InvalidArgument(f"{len(retrieved)} tables are too many to show: ask for k={len(retrieved) // 2} or fewer")

    def _spanned(self, plan: JoinPlan) -> str:
        """The databases of a plan, if there are several."""
        known = {source.database for source in plan.sources}
        return f"this needs {len(known)} databases: {', '.join(sorted(known))}" if len(known) > 1 else ""

    def _in_sql(self, plan: JoinPlan) -> JoinPlan:
        """The plan with its tables by their names in statements here, which say the database where that is needed."""

        def named(one: PlanTable) -> PlanTable:
            parts = tuple(map(named, one.parts))
            return replace(one, name=self.reading.name(one.table), parts=parts, database="", schema="")

        return replace(plan, sources=tuple(map(named, plan.sources)))

    def _listed(self, id: str, retrieved: RetrievedTables, columns: Sequence[str]) -> Result:
        hit, profile = retrieved[id], self.corpus.profile(id)
        texts = column_texts(self.corpus, profile)
        described: Result = {
            "id": id,
            "name": self.reading.name(id),
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
                *hit.parts[:MAX_TABLES],
                *[f"… {len(hit.parts) - MAX_TABLES} more"] * (len(hit.parts) > MAX_TABLES),
            ]
        return described

    def _line(self, name: str, kind: str, values: str) -> str:
        return f"{sql_name(name, self.reading.dialect)} {kind}{' -- ' * bool(values)}{values}"

    @_of_now
    def describe_tables(
        self,
        tables: list[str] | None = None,
        column: str | None = None,
        value: str | None = None,
        cursor: str | None = None,
    ) -> Result:
        """Describe tables, count a column's values, or find the columns that contain a value.

        Use it for columns that find_tables has not shown, or if you do not know how a value is written.

        Args:
            tables: Ids or names; for a value, default all.
            column: Of one table; its common values are counted.
            value: Text to search for, in any case.
            cursor: Of the last result.
        """
        if value is not None:
            return self.reading.places_of(value, tables)
        if not tables:
            raise InvalidArgument("tables are needed, by id or name; find_tables finds them")
        if column is not None:
            if len(tables) != 1:
                raise InvalidArgument(f"column is of one table: name only that one; got {len(tables)} tables")
            return self.reading.profiled(tables[0], column)
        start, room = offset_of(cursor), MAX_RESULT_TOKENS - 200.0
        columns: list[tuple[TableProfile, Result | None]] = []
        for profile in map(self.corpus.profile, tables):
            texts = column_texts(self.corpus, profile)
            lines = [{"name": name, "type": kind, "values": values} for name, (kind, values) in texts.items()]
            columns += [(profile, column) for column in lines] or [(profile, None)]
        if start and start >= len(columns):
            raise InvalidArgument(f"the cursor {start} is past the end: these tables have {len(columns):,} columns")
        described: list[Result] = []
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
        return {"about": ABOUT_CELLS, "dialect": self.reading.dialect, "tables": described, "cursor": following}

    def _head(self, profile: TableProfile) -> Result:
        around = tables_around(self.corpus, [profile.id])
        names = {self.reading.name(id): id for id in [profile.id, *around] if id in self.reading.known.ids}
        described: Result = {
            "id": profile.id,
            "name": self.reading.name(profile.id),
            "rows": profile.rows,
            "keys": describe_keys(self.corpus, names, self.reading.dialect, of=(profile.id,))[:MAX_TABLES],
            "columns": [],
        }
        if profile.estimated:
            described["estimated"] = True
        if profile.description:
            described["description"] = profile.description
        if profile.primary_key:
            described["primary_key"] = list(profile.primary_key)
        if totals := profile.totals_for_prompts:
            described["totals"] = [*map(str, totals)]
        metrics = [metric for metric in metrics_of(self.corpus) if profile.id in metric.sources.values()]
        if lines := metric_lines(metrics[:MAX_TABLES], self.reading.known.names, self.reading.dialect):
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
    ) -> Result:
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
        return {
            "about": ABOUT_CELLS,
            "account": account,
            "bridges": list(plan.bridges),
            "left_out": list(plan.left_out),
            "alternatives": [
                {
                    "on": [text_of(step.key, self._in_sql(other).named) for step in other.steps],
                    "chance": round(min(step.score for step in other.steps), 3),
                }
                for other in plan.alternatives[:MAX_COMMON_VALUES]
            ],
            "sql": self._sql(plan, how),
            "dialect": self.reading.dialect,
        }

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
    ) -> Result:
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
        result = {**_without_rows(frame), "file": None, "account": account, "note": "", "cursor": None}
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
    ) -> tuple[pd.DataFrame, Result]:
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
            return frame, account_of(report, plan, self._in_sql(plan).named, [remark.text for remark in warnings])

    def _sql(self, plan: JoinPlan, how: How) -> str:
        """The plan as a statement for :meth:`run_sql`, with the names of tables there."""
        named = self._in_sql(plan)
        columns = merged_columns(named, None, None)
        return one_line_of(plan, named.sql(columns=columns, how=how, dialect=self.reading.dialect))

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
    ) -> Result:
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
            self._remembered, ["sql", sql, limit], start, lambda: self.reading.run(sql, limit, rows_behind)
        )
        is_truncated, frame = len(frame) > limit, frame.head(limit)
        result = {**_without_rows(frame), "truncated": False, "rows_behind": behind, "note": "", "cursor": None}
        page, following, is_cut = page_of(rows_of(frame), start, MAX_RESULT_TOKENS - tokens_of(result))
        note = "; ".join(filter(None, [note_of(start, len(page), len(frame), is_cut), remark]))
        more = is_truncated or following is not None
        return {**result, "rows": page, "truncated": more, "cursor": following, "note": note}

    # --- with a model, and with leave

    @_of_now
    def ask(self, question: str) -> Result:
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
            answer = waited_for(aask(question, self.corpus, limits=self.limits))
        behind = rows_behind(answer.sources)[0] if answer.execution is not None else []
        usage = answer.usage
        values, *_ = page_of([[value] for value in answer.values], 0, MAX_RESULT_TOKENS / 2)
        return {
            "about": ABOUT_CELLS,
            "answer": answer.text[:8_000],
            "values": [value for (value,) in values],
            "sql": str(answer.query),
            "assumptions": [
                *[f"a statement verified by {one}" for one in [answer.verified] if one],
                *answer.assumptions,
            ],
            "doubts": list(map(str, answer.doubts)),
            "tables": answer.tables,
            "rows_behind": behind,
            "cost": {"calls": answer.calls, "tokens": usage.tokens_in + usage.tokens_out, "dollars": usage.dollars},
        }

    @_of_now
    def learn(self, question: str, sql: str) -> Result:
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
        return {"learned": learned.learned, "note": repr(learned)}


def _without_rows(frame: pd.DataFrame) -> Result:
    """A result before its rows are added."""
    return {"about": ABOUT_CELLS, "columns": list(map(str, frame.columns)), "rows": [], "row_count": len(frame)}
