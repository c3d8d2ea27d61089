"""Reading for the tools: statements over the tables of a corpus as it is now, what is in a column, where a value is."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from tagframe import config, results
from tagframe.agents.formatting import (
    ABOUT_CELLS,
    MAX_RESULT_TOKENS,
    Result,
    page_of,
    rows_of,
)
from tagframe.answer import SQLLimits, check_sql, exec_sql
from tagframe.answer.cited_rows import CITED
from tagframe.answer.doubts import repeats_of, unmatched_of
from tagframe.answer.guard import Reader
from tagframe.answer.lm_sql import FUNCTIONS, has_functions
from tagframe.answer.query import Query, names_of
from tagframe.answer.steps import driver
from tagframe.corpus import ColumnProfile, Corpus, TableProfile
from tagframe.embed import get_embedder
from tagframe.engines.sql_reader import trees_of
from tagframe.errors import InvalidArgument, NotConfigured, SourceNotFound, SQLFailed, TagframeError, UnsafeSQL
from tagframe.lm import Budget
from tagframe.operators import arun, run
from tagframe.progress import Stopped, stopped_by
from tagframe.retrieval.index import index_of
from tagframe.retrieval.question import Question
from tagframe.retrieval.schema_text import sql_name

T = TypeVar("T")

MAX_TABLES = 20
"""The most tables, keys or columns of a kind that one result or statement has."""
MAX_COMMON_VALUES = 10
_MAX_SEARCHED_ROWS = 500_000
"""A value is searched in all tables if they have at most this many rows together."""
_MAX_PLACES = 50
_MAX_CITED_KEYS = 5
_SHARE_OF_TIME = 0.1
"""Of the time of a statement: for the rows behind it, all tables together."""
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


@dataclass
class Reading:
    """Statements over the tables of a corpus.

    Attributes:
        corpus: whose tables are read.
        limits: of a statement.
        budget: for LM functions in statements; without one, there are none.
    """

    corpus: Corpus
    limits: SQLLimits
    budget: Budget | None = None
    _last: _Known | None = None

    @property
    def known(self) -> _Known:
        """The names by the profiles."""
        profiles = self.corpus.profiles
        if self._last is None or self._last.profiles is not profiles:
            names = names_of(self.corpus)
            engines = {id(engine): engine for engine in map(self.corpus.engine, names.values()) if engine is not None}
            dialects = {engine.dialect.name for engine in engines.values()}
            dialect = Reader(self.corpus, names).engine.dialect.name if len(dialects) > 1 else "".join(dialects)
            ids = {id: name for name, id in names.items()}
            self._last = _Known(profiles, names, ids, dialect or "sqlite", len(dialects) == 1)
        return self._last

    @property
    def dialect(self) -> str:
        """Of statements."""
        return self.known.dialect

    def name(self, id: str) -> str:
        """The name of a table in SQL."""
        return self.known.ids.get(id, id)

    def run(self, sql: str, limit: int, with_behind: bool) -> tuple[pd.DataFrame, list[Result], str]:
        """The rows, the source rows behind them, and a note."""
        asks = has_functions(sql)
        if asks and self.budget is None:
            raise NotConfigured(
                f"{', '.join(FUNCTIONS)} ask a model, and there is no budget for one: write the statement without them"
            )
        query = self._query(limited(sql, limit + 1, self.dialect))
        runs = exec_sql(self.corpus, limits=self.limits)
        if asks:
            with config.context(budget=self.budget):
                frame = waited_for(arun(runs.steps(query), driver(), "exec_sql"))
        else:
            frame = run(runs.steps(query), driver(), "exec_sql")
        execution = results.recall(frame, "execution")
        is_empty = len(frame) < 2 and all(cell in (None, 0) for row in rows_of(frame) for cell in row)
        remarks = [": ".join(filter(None, [one.facts, one.statement])) for one in repeats_of(frame)]
        remarks += unmatched_of(frame) if is_empty else []
        if not with_behind or is_empty or execution is None or execution.reader is None:
            return frame, [], "; ".join(remarks)
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
        return frame, behind, "; ".join(filter(None, [*remarks, remark]))

    def _query(self, sql: str) -> Query:
        """The statement over the tables that it names, if these are all in one engine, or in engines of one kind.

        It then runs in that engine, not in the one that holds most of the corpus.
        """
        names = self.known.names
        if not names:
            raise SourceNotFound("no rows can be read: only schemas are known, or the sources no longer exist")
        if not self.known.is_one:
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
            return {*Reader(self.corpus, self.known.names).named(sql).values()}
        return set()

    def profiled(self, table: str, column: str) -> Result:
        """The values of a column: the number of distinct values and nulls, the range, the most common values."""
        profile = self.corpus.profile(table)
        known = column_named(profile, column)
        name = sql_name(known.name, self.dialect)
        statement = (
            f"SELECT {name} AS v, COUNT(*) AS n FROM {sql_name(self.name(profile.id), self.dialect)} "
            f"WHERE {name} IS NOT NULL GROUP BY {name} ORDER BY n DESC LIMIT {MAX_COMMON_VALUES}"
        )
        note, common, is_ordered = "", list[Result](), known.family in ("integer", "real", "date")
        try:
            counts = rows_of(self.run(statement, MAX_COMMON_VALUES, False)[0])
            page, *_ = page_of(counts, 0, MAX_RESULT_TOKENS / 2)
            common = [{"value": value, "rows": rows} for value, rows in page]
        except SQLFailed as error:
            note = f"its values were not counted: {error}"
        return {
            "about": ABOUT_CELLS,
            "table": profile.id,
            "column": known.name,
            "type": known.declared_type or known.family,
            "rows": known.rows,
            "nulls": known.nulls,
            "distinct": known.distinct,
            "minimum": known.minimum if is_ordered else None,
            "maximum": known.maximum if is_ordered else None,
            "common": common,
            "description": known.description,
            "note": "; ".join(
                filter(None, [note, "counts are estimates, except of common values" * profile.estimated])
            ),
        }

    def places_of(self, text: str, tables: list[str] | None) -> Result:
        """The columns that contain a text, ignoring case, and how it is written there."""
        if not text.strip():
            raise InvalidArgument("value is empty: give the text to search for")
        profiles, note = self._searched(text, tables)
        places = [place for profile in profiles for place in self._places(text.strip(), profile)]
        places.sort(key=lambda place: (str(place[2]).casefold() != text.strip().casefold(), -place[3]))
        page, _, _ = page_of(places[:_MAX_PLACES], 0, MAX_RESULT_TOKENS - 500)
        more = f"{len(places) - len(page)} further places are left out: name tables" * (len(places) > len(page))
        listed = [{"table": id, "column": name, "value": value, "rows": count} for id, name, value, count in page]
        return {"about": ABOUT_CELLS, "places": listed, "note": "; ".join(filter(None, [note, more]))}

    def _searched(self, text: str, tables: Sequence[str] | None) -> tuple[list[TableProfile], str]:
        """The tables to search: those that are named; else all if they are small, or those known to have the value."""
        if tables is not None:
            return [self.corpus.profile(table) for table in tables], ""
        readable = [self.corpus.profile(id) for id in self.known.names.values()]
        if sum(profile.rows or 0 for profile in readable) <= _MAX_SEARCHED_ROWS:
            return readable, ""
        index = index_of(self.corpus, get_embedder())
        having = {index.tables[table].id for hit in index.values.hits(Question.of(f'"{text}"')) for table in hit.tables}
        chosen = [profile for profile in readable if profile.id in having][:MAX_TABLES]
        return chosen, (
            "the tables are too large to search. Only tables known to have the whole value are shown; name tables to "
            "search them"
        )

    def _places(self, text: str, profile: TableProfile) -> Iterator[list[Any]]:
        """The table, the column, the value and the number of rows."""
        searched = re.sub("[!%_]", r"!\g<0>", text.lower()).replace("'", "''")
        table = sql_name(self.name(profile.id), self.dialect)
        kind = "TEXT" if self.dialect == "sqlite" else "VARCHAR"
        columns = [one.name for one in profile.columns if one.family not in ("blob", "empty", "boolean")]
        cells = (f"CAST({sql_name(name, self.dialect)} AS {kind})" for name in columns)
        parts = [
            f"SELECT {position} AS c, {cell} AS v, COUNT(*) AS n FROM {table} "
            f"WHERE LOWER({cell}) LIKE '%{searched}%' ESCAPE '!' GROUP BY {cell}"
            for position, cell in enumerate(cells)
        ]
        for first in range(0, len(parts), MAX_TABLES):
            with suppress(SQLFailed):
                statement = " UNION ALL ".join(parts[first : first + MAX_TABLES])
                for position, value, rows in rows_of(self.run(statement, _MAX_PLACES, False)[0]):
                    yield [profile.id, columns[position], value, rows]


def waited_for(work: Coroutine[Any, Any, T]) -> T:
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


def column_named(profile: TableProfile, name: str) -> ColumnProfile:
    """The profile of a column; its name may be in any case.

    Raises:
        ColumnNotFound: no such column.
    """
    folded = [column for column in profile.columns if column.name.casefold() == name.casefold()]
    return folded[0] if len(folded) == 1 else profile.column(name)


def rows_behind(sources: pd.DataFrame) -> tuple[list[Result], str]:
    """The source rows of a result (how many of each table, and the first keys), and what is left out of them."""
    behind, gaps = [], []
    for table, group in sources.groupby("table", sort=False):
        values = group["value"].dropna().astype(str).str.slice(0, 100).drop_duplicates()
        key = group["key"].dropna()
        behind.append(
            {
                "table": str(table),
                "key": str(key.iloc[0]) if len(key) else None,
                "rows": len(values) if len(values) else None,
                "values": values.head(_MAX_CITED_KEYS).tolist(),
            }
        )
        if len(key) and not len(values):
            gaps.append(f"rows_behind lacks the rows of {table}: finding them takes too long")
        elif len(group) >= CITED:
            gaps.append(f"rows_behind has the first {CITED:,} rows of {table} only")
    return behind, "; ".join(gaps)


def limited(sql: str, rows: int, dialect: str) -> str:
    """The statement with a LIMIT, if it has none or a larger one; unchanged if it does not parse.

    >>> limited("SELECT a FROM t ORDER BY a -- the first", 3, "sqlite")
    'SELECT a FROM t ORDER BY a -- the first\\nLIMIT 3'
    >>> limited("SELECT a FROM t LIMIT 2", 3, "sqlite")
    'SELECT a FROM t LIMIT 2'
    """
    from sqlglot import exp

    text = sql.strip().rstrip(";").rstrip()
    try:
        statements = trees_of(text, dialect)
    except UnsafeSQL:
        return sql
    if len(statements) != 1 or not isinstance(tree := statements[0], exp.Query):
        return sql
    if not any(tree.args.get(part) for part in ("limit", "offset", "locks", "options")):
        return f"{text}\nLIMIT {rows}"
    own_limit = tree.args.get("limit")
    count = own_limit.expression if isinstance(own_limit, exp.Limit) else None
    if isinstance(count, exp.Literal) and count.is_int and int(count.this) <= rows:
        return text
    return f"SELECT * FROM (\n{text}\n) AS limited LIMIT {rows}"
