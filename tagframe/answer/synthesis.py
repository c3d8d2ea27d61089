"""``syn``: writes one statement for a question over a corpus."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import TypeVar

import pandas as pd

from tagframe.answer.generation import one_value, page_of
from tagframe.answer.guard import Reader
from tagframe.answer.learned_statements import answered, examples_for, filled, verified_for
from tagframe.answer.lm_sql import check_staged
from tagframe.answer.query import Query, can_run, names_in_sql
from tagframe.answer.steps import driver
from tagframe.answer.syn_prompt import parse_statement, revised_prompt, syn_prompt
from tagframe.blocks import fence
from tagframe.corpus import Corpus
from tagframe.corpus.statements import Statement
from tagframe.errors import EmptyCorpus, EmptyQuestion, SQLFailed, UnsafeSQL
from tagframe.lm import Prompt
from tagframe.operators import Step, run
from tagframe.operators.cells import one_line
from tagframe.retrieval import RetrievedTables, retrieve_tables
from tagframe.retrieval.matched_cells import listed_values, matched_cells
from tagframe.retrieval.schema_text import (
    LONG,
    are_few,
    columns_beyond,
    describe_keys,
    describe_tables,
    is_epoch,
    sql_name,
)
from tagframe.semantic.metrics import metric_lines, metrics_named

T = TypeVar("T")

RETRIEVED = 12
"""How many tables ``syn`` is shown if not all fit."""
_MORE = 5
_PAGE = 1_500
"""Characters of the rows of an earlier answer."""
_WHY = """If it asks why two numbers differ: compare their groups in each column that may say so. For each such column
one part, joined by UNION ALL: SELECT 'city' AS part, city AS value, sum(…) AS one, sum(…) AS other, sum(…) - sum(…) AS
change … GROUP BY city; over all of it ORDER BY abs(change) DESC LIMIT 20. Its first line is "-- answer: text"."""
_CUT = 'Columns that end in "…" have more: {"missing": "columns of x"} shows them.'
_LEFT_OUT = 0.01
"""If the chance that a retrieved table is needed is lower, it is not shown."""
_WIDE = 40
"""Of a long schema's tables with more columns, the first ones are shown, and so many beside the question: """
_NEAR = 8
"""of the others, those near to it."""
_FROM_TODAY = frozenset("ago current currently last next now past recent recently this today yesterday".split())
"""Words of a time that is counted from today."""
_MOST_TIMES = 12
"""The last times of so many columns are given."""


@dataclass(frozen=True)
class Synthesizer:
    """``syn`` over a corpus.

    The prompt shows all tables if their names and those of their columns have 12,000 characters at most, in the same
    words for every question; else the twelve best for the question that have a chance of 1 %. If the names have more
    than 5,000 characters, the first 40 columns of each table are shown, and beside the question the eight of the others
    that are nearest. Tables without rows are left out.

    Attributes:
        corpus: whose tables may be read.
        found: tables that were already retrieved, instead of the above.
        evidence: what words of the question mean in these data; tables are also searched for with it.
        before: the query that the question follows; its tables are shown.
        before_rows: the result of that query, of which a page is shown.
    """

    corpus: Corpus = field(repr=False)
    found: RetrievedTables | None = field(default=None, repr=False)
    evidence: str = ""
    before: Query | None = None
    before_rows: pd.DataFrame | None = field(default=None, repr=False)

    def __call__(self, request: str) -> Query:
        """The query; the thread waits for it."""
        return run(self.steps(request), driver(), "syn")

    def steps(self, request: str) -> Step[Query]:
        """The query as a step: it must compile, after at most one repair.

        If a person has given a statement for exactly this question, that one is used, and no model is asked. The model
        may pick a verified statement, and give its parameters. It may say that a table is missing: if the corpus has
        others, the nearest ones are added and it is asked again; else the query has no statement and says what is
        lacking.

        Raises:
            EmptyQuestion: the question has no words.
            EmptyCorpus: no table has rows.
            LMError: the model gave no query that can run.
        """
        if not request.strip():
            raise EmptyQuestion(f"the question has no words: {request!r}")
        known = answered(request, self.corpus)
        if known is not None and self._runs(known):
            return known
        visible = self.visible(request)
        prompt = self.prompt(request, visible)
        query = yield from self._request(prompt, visible, request)
        if not can_run(query) and (more := self._with(query.lacking[0], visible)) is not None:
            visible, note = more
            query = yield from self._request(self.prompt(request, visible, note), visible, request)
        return query

    def _runs(self, known: Query) -> bool:
        """Whether an earlier statement can still run: columns may be gone since."""
        try:
            check_staged(known.sql, Reader(self.corpus, known.tables))
        except (UnsafeSQL, SQLFailed):
            return False
        return True

    def revise(self, request: str, query: Query, why: str) -> Step[Query | None]:
        """Another query, after one that failed or gave no rows; None if the model repeats the first one.

        What was lacking for the first one stays lacking, and what the model adds to the same statement is kept. A
        verified statement is not revised.
        """
        if query.verified:
            return None
        prompt = revised_prompt(self.prompt(request, query), query.sql, why)
        other = yield from self._request(prompt, query, request)
        other = replace(other, lacking=_both(query.lacking, other.lacking))
        if other.sql == query.sql:
            assumed, others = _both(query.assumptions, other.assumptions), _both(query.others, other.others)
            other = replace(other, assumptions=assumed, others=others)
        return None if other == query else other

    def _request(self, prompt: Prompt, visible: Query, request: str) -> Step[Query]:
        check = partial(check_staged, reader=Reader(self.corpus, visible.tables))
        fill = partial(filled, statements=self._verified(request), corpus=self.corpus)
        query: Query = yield from one_value(prompt, partial(parse_statement, check=check, fill=fill))
        tables, metrics = query.tables or visible.tables, visible.metrics
        return replace(query, tables=tables, retrieved=visible.retrieved, metrics=metrics, brief=visible.brief)

    def _verified(self, request: str) -> list[Statement]:
        """The verified statements over tables that may be read."""
        return verified_for(request, self.corpus if self.found is None else self.corpus.subset(self.found.ids))

    def prompt(self, request: str, visible: Query, note: str = "") -> Prompt:
        """The prompt: the request, and the tables to show."""
        reader = Reader(self.corpus, visible.tables)
        dialect = reader.engine.dialect.name
        columns = {id: self._first(id) for id in visible.tables.values() if id in visible.brief}
        schema = "\n".join(
            [*([_CUT] if columns else []), describe_tables(self.corpus, visible.tables, dialect, columns)]
        )
        joins = describe_keys(self.corpus, visible.tables, dialect)
        examples = examples_for(request, self.corpus, visible.tables, dialect)
        notes = [*self._described(), *self._beyond(request, columns, visible), note, self._today(request, visible)]
        note = "\n\n".join(filter(None, notes))
        whole = f"{request} {self.evidence}".strip()
        cells = matched_cells(whole, self.corpus, visible.tables, dialect)
        cells += listed_values(whole, self.corpus, visible.tables, dialect, [schema, *cells])
        metrics = metric_lines(visible.metrics, visible.tables, dialect)
        verified = [
            line
            for number, one in enumerate(self._verified(request), start=1)
            for line in (f"{number}. {one_line(one.question)}", one_line(one.cells))
        ]
        return syn_prompt(request, schema, joins, note, dialect, cells, examples, metrics, verified)

    def _today(self, request: str, visible: Query) -> str:
        """Today's date and the last ones of the data, where a question may count from them: a replayed prompt must not
        change by itself."""
        if _FROM_TODAY.isdisjoint(re.findall(r"\w+", request.casefold())):
            return ""
        dialect = Reader(self.corpus, visible.tables).engine.dialect.name
        columns = ((name, one) for name, id in visible.tables.items() for one in self.corpus.profile(id).for_prompts)
        times = [(name, one) for name, one in columns if one.family == "date" or is_epoch(one)]
        last = [f"{sql_name(name, dialect)}.{sql_name(one.name, dialect)} {one.maximum}" for name, one in times]
        ends = f" The last times are:\n{fence(last[:_MOST_TIMES], 'columns')}"
        return f"Today is {date.today().isoformat()}.{ends}" if last else ""

    def _described(self) -> Iterator[str]:
        """What the prompt says before the question."""
        if self.before is not None:
            assumed = [f"-- assumed: {one}" for one in self.before.assumptions]
            remarks = fence([*assumed, self.before.sql or "-- no statement"], "statement")
            yield f"The earlier part of the question was answered by this statement; keep its reading:\n{remarks}"
            rows = self.before_rows
            if rows is not None and len(rows) and self._runs(self.before):  # a column may be private since
                page, count = page_of(rows, _PAGE)
                yield f"Its rows, {count}:\n{fence([line[:_PAGE] for line in page], 'rows')}"
            yield _WHY
        if self.evidence:
            yield f"Evidence: {' '.join(self.evidence.split())}"

    def visible(self, request: str) -> Query:
        """The tables to show to the model, and the metrics that the request names, as a query without a statement."""
        if self.before is not None:
            return replace(self.before, sql="", assumptions=(), wants_text=None, lacking=(), others=(), verified="")
        metrics = metrics_named(request, self.corpus)
        visible = self._excerpt(request)
        if not metrics:
            return visible
        of_metrics = {id for metric in metrics for id in metric.sources.values()}
        more = of_metrics - {*visible.tables.values()}
        if more and self.found is None:  # the question names what is computed from these tables
            ids = [*visible.tables.values(), *sorted(id for id in more if self._has_rows(id))]
            visible = replace(visible, tables=names_in_sql(map(self.corpus.profile, ids)))
        return replace(visible, metrics=metrics, brief=visible.brief - of_metrics)

    def _excerpt(self, request: str) -> Query:
        if self.found is not None:
            return self._of(self.found)
        usable = {profile.id for profile in self.corpus.profiles if self._has_rows(profile.id)}
        if not usable:
            raise EmptyCorpus("the corpus has no table with rows: it is empty, or only its schema is known")
        corpus = self.corpus if len(usable) == len(self.corpus) else self.corpus.subset(sorted(usable))
        names = names_in_sql(corpus.profiles)
        wide = self._wide(names.values())
        if are_few(self.corpus, names, {id: self._first(id) for id in wide}):
            is_long = not are_few(self.corpus, names) or len(describe_tables(self.corpus, names)) > LONG
            return Query("", names, brief=wide if is_long else frozenset())
        visible = self._of(retrieve_tables(request, corpus, k=RETRIEVED, evidence=self.evidence))
        return replace(visible, brief=self._wide(visible.tables.values()))

    def _wide(self, tables: Iterable[str]) -> frozenset[str]:
        return frozenset(id for id in tables if len(self.corpus.profile(id).for_prompts) > _WIDE)

    def _first(self, table: str) -> list[str]:
        return [column.name for column in self.corpus.profile(table).for_prompts[:_WIDE]]

    def _beyond(self, request: str, columns: Mapping[str, list[str]], visible: Query) -> Iterator[str]:
        """Further columns of wide tables, near to the question: what hangs on it stands beside it."""
        if columns:
            dialect = Reader(self.corpus, visible.tables).engine.dialect.name
            names = {id: sql_name(name, dialect) for name, id in visible.tables.items()}
            near = columns_beyond(self.corpus, f"{request} {self.evidence}".strip(), columns, _NEAR)
            lines = [f"{names[id]}: {', '.join(sql_name(one, dialect) for one in some)}" for id, some in near.items()]
            yield f"Of the columns that are left out, these are near:\n{fence(lines, 'columns')}"

    def _has_rows(self, table: str) -> bool:
        return self.corpus.profile(table).rows != 0 and self.corpus.engine(table) is not None

    def _of(self, found: RetrievedTables) -> Query:
        """Tables that were retrieved, by the user or without unlikely ones. One with the name of a likely one stays:
        its database may be the one that is meant."""
        names = {hit.id: self.corpus.profile(hit.id).name.casefold() for hit in found.tables}
        chances = {hit.id: hit.probability for hit in found.tables}
        likely = {names[id] for id, chance in chances.items() if chance is None or chance >= _LEFT_OUT or self.found}
        visible = [id for id in found.ids if names.get(id) in likely] or found.ids
        return Query("", names_in_sql(map(found.corpus.profile, visible)), found)

    def _with(self, what: str, visible: Query) -> tuple[Query, str] | None:
        """Tables for what is said to be missing, and a remark on them; None if there are no other tables."""
        known = {*visible.tables.values()} - visible.brief
        others = [id for id in self.corpus.ids if id not in known and self._has_rows(id)]
        if not others or not (new := retrieve_tables(what, self.corpus.subset(others), k=_MORE).ids):
            return None
        tables = names_in_sql(map(self.corpus.profile, dict.fromkeys([*visible.tables.values(), *new])))
        lines = f"these tables were added: {', '.join(name for name, id in tables.items() if id in new)}."
        note = f'You said that this was missing: {{"missing": "{one_line(what)}"}}; {lines} Now write the statement.'
        return replace(visible, tables=tables, brief=visible.brief - {*new}), note


def _both(one: tuple[T, ...], other: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(dict.fromkeys([*one, *other]))
