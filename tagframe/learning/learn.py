"""``corpus.learn``: past statements as facts of the corpus."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from sqlglot import Dialect

from tagframe.corpus import Corpus
from tagframe.corpus.corpus import fact_store, statements_of
from tagframe.corpus.facts import FactKey, Facts
from tagframe.corpus.references import JoinColumns
from tagframe.corpus.statements import Statement, spoken
from tagframe.display import Displayable
from tagframe.errors import InvalidArgument, UnreadStatement
from tagframe.keys.containment import overlap
from tagframe.learning.reading import Names, read_statement
from tagframe.learning.sources import Run, runs_of, statements_in, without_literals
from tagframe.progress import track

MANY = 20
"""With at least this many statements over two tables, a join of only one of them is checked against the values."""

_APART = 0.1
"""If another column holds a smaller share of a column's values, the values are evidence against a join."""

_LISTED = 10


@dataclass(frozen=True, repr=False)
class Learned(Displayable):
    """The result of :func:`learn`.

    Attributes:
        read: the number of statements.
        distinct: the number of statements that differ in more than their literals, or answer different questions.
        learned: the number of distinct statements that are known now.
        left_out: the others, and why: (statement, or the text in its place; reason).
        joins: the joins that became keys, as text.
        doubtful: joins that did not become keys: only one of many statements has them, and the values do not match.
    """

    read: int
    distinct: int
    learned: int
    left_out: tuple[tuple[str, str], ...] = ()
    joins: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [
            f"learned {self.learned:,} of {self.distinct:,} distinct statements ({self.read:,} read); "
            f"{len(self.joins):,} new joins"
        ]
        lines += [f"  not a key (only one statement has it, and the values differ): {join}" for join in self.doubtful]
        if not self.learned:
            lines.append("  no changes")
        reasons = Counter(reason for _, reason in self.left_out).most_common()
        lines += [f"  {count:,} left out: {reason}" for reason, count in reasons[:_LISTED]]
        if rest := sum(count for _, count in reasons[_LISTED:]):
            lines.append(f"  {rest:,} left out for other reasons, see left_out")
        return "\n".join(lines)


def learn(
    corpus: Corpus,
    queries: str | Path | pd.DataFrame,
    sql: str | None = None,
    *,
    literals: bool = False,
    dialect: str | None = None,
) -> Learned:
    """See :meth:`tagframe.Corpus.learn`."""
    dialects = _dialects(corpus, dialect)
    if sql is not None:
        if not isinstance(queries, str) or not isinstance(sql, str):
            raise InvalidArgument(f"learn(question, sql) takes two texts; got {queries!r} and {sql!r}")
        source, runs = "", iter([Run(one, queries.strip()) for one in statements_in(sql, dialects[0])])
    else:
        source, runs = runs_of(corpus, queries, dialects[0])
    counted: dict[tuple[str, str, str], Run] = {}
    read = 0
    for run in runs:
        read += 1
        key = without_literals(run.sql, dialects[0]), spoken(run.question), run.database
        known = counted.get(key)
        counted[key] = run if known is None else replace(known, times=known.times + run.times)
    statements, left_out = _read(corpus, list(counted.values()), source, dialects, literals)
    before = {key.sides for key in fact_store(corpus).facts.ran}
    certain, doubtful = _without_doubtful(corpus, statements)
    add_statements(corpus, certain)
    new = {key.sides: str(key) for one in certain for key in one.joins if key.sides not in before}
    return Learned(read, len(counted), len(statements), tuple(left_out), tuple(sorted(new.values())), doubtful)


def _dialects(corpus: Corpus, given: str | None) -> list[str]:
    """The possible dialects of the statements, the likeliest first, by sqlglot's names."""
    try:
        Dialect.get_or_raise(given)
    except ValueError as error:
        raise InvalidArgument(f"no SQL dialect {given!r}: {error}") from error
    engines = {id(engine): engine for engine in map(corpus.engine, corpus.ids) if engine is not None}
    own = [engine.dialect.name for engine in engines.values()] if given is None else [given]
    return list(dict.fromkeys([*own, ""]))


def _read(
    corpus: Corpus, runs: Sequence[Run], source: str, dialects: Sequence[str], literals: bool
) -> tuple[list[Statement], list[tuple[str, str]]]:
    """The statements, equal ones merged; and those that are left out, with the reason."""
    names = Names(corpus)
    statements: dict[object, Statement] = {}
    left_out: list[tuple[str, str]] = []
    for run in track(((1, run) for run in runs), len(runs), "learning from queries", "statement"):
        try:
            if run.unread:
                raise UnreadStatement(run.unread)
            one = read_statement(run.sql, names, dialects, database=run.database, cells=literals)
        except UnreadStatement as error:
            left_out.append((run.sql, str(error)))
            continue
        one = replace(one, question=run.question, runs={source: run.times})
        known = statements.get(one.fact)
        statements[one.fact] = one if known is None else replace(known, runs={source: known.times + run.times})
    return list(statements.values()), left_out


def _without_doubtful(corpus: Corpus, statements: Sequence[Statement]) -> tuple[list[Statement], tuple[str, ...]]:
    """The statements without doubtful joins, and the doubtful joins.

    A join is doubtful if only one of many statements has it and the values have nothing in common. Known statements
    that lose a join for this reason are returned too.
    """
    new = {one.fact: one for one in statements}
    touched = {_tables(key) for one in statements for key in one.joins}
    if not touched:
        return list(statements), ()
    known = (one for one in statements_of(corpus) if any(_tables(key) in touched for key in one.joins))
    every = {one.fact: one for one in known} | new
    joined = Counter(key.sides for one in every.values() for key in one.joins)
    together = Counter(pair for one in every.values() for pair in {_tables(key) for key in one.joins})
    doubted: dict[object, str] = {}
    for one in every.values():
        for key in one.joins if one.by != "user" else ():
            is_rare = joined[key.sides] == 1 and together[_tables(key)] >= MANY and _tables(key) in touched
            if is_rare and _values_differ(corpus, key):
                doubted[key.sides] = str(key)
    certain = [
        replace(
            one,
            joins=tuple(key for key in one.joins if key.sides not in doubted),
            runs=one.runs if fact in new else {},
        )
        for fact, one in every.items()
        if fact in new or any(key.sides in doubted for key in one.joins)
    ]
    return certain, tuple(sorted(doubted.values()))


def _tables(key: JoinColumns) -> frozenset[str]:
    return frozenset((key.left_table, key.right_table))


def _values_differ(corpus: Corpus, key: JoinColumns) -> bool:
    left, right = corpus.profile(key.left_table), corpus.profile(key.right_table)
    for mine, other in zip(key.left_columns, key.right_columns, strict=True):
        shared = overlap(left.column(mine).sketch, right.column(other).sketch)
        if shared is not None and shared.share < _APART:
            return True
    return False


def add_statements(corpus: Corpus, statements: Iterable[Statement]) -> None:
    """Add statements to the facts of a corpus.

    For a known statement the runs are added; the runs from a file that was learned before replace the earlier ones. A
    user's statement for a question replaces the user's earlier one; a verified one is replaced by a verified one only.
    """
    new = {one.fact: one for one in statements}
    if not new:
        return

    now = time.time()

    def change(known: Facts) -> dict[FactKey, Any]:
        values: dict[FactKey, Any] = {}
        old = {one.fact: one for one in known.statements}
        by_question: dict[str, list[FactKey]] = defaultdict(list)
        for fact, one in old.items():
            if one.by == "user":
                by_question[spoken(one.question)].append(fact)
        for fact, one in new.items():
            runs = dict(old[fact].runs) if fact in old else {}
            for source, times in one.runs.items():
                runs[source] = times + (0 if source else runs.get(source, 0))
            if one.by == "user":
                earlier = by_question[spoken(one.question)]
                values.update({of: None for of in earlier if one.verified_by or not old[of].verified_by})
                if not one.sql:  # his statement over just these tables stays
                    one = old.get(fact, one)
            values[fact] = replace(one, runs=runs, at=now).value
        return values

    fact_store(corpus).update(change)


def forget(corpus: Corpus, what: str | None = None) -> int:
    """See :meth:`tagframe.Corpus.forget`."""
    if not isinstance(what, str | None):
        raise InvalidArgument(f"forget takes a statement, a question or a file's name; got {what!r}")
    sql = None
    if what is not None:
        with suppress(UnreadStatement):
            sql = read_statement(what, Names(corpus), _dialects(corpus, None)).sql

    values: dict[FactKey, Any] = {}
    for one in statements_of(corpus):
        if what is None or one.sql == sql or (one.question and spoken(one.question) == spoken(what)):
            values[one.fact] = None
        elif what and what in one.runs:
            elsewhere = {source: times for source, times in one.runs.items() if source != what}
            values[one.fact] = replace(one, runs=elsewhere).value if elsewhere else None
    if values:
        fact_store(corpus).put(values)
    return sum(value is None for value in values.values())
