"""What merges look up in a source before they write a statement, and how a statement of theirs is run."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from sqlglot import exp

from tagframe import logs
from tagframe.corpus.canonical import canonical_all, plain
from tagframe.engines.pushdown import Pushdown, Statement, compared

_MAX_TEXTS = 200_000
"""At most this many distinct texts are compared in canonical form."""

Key = tuple[str, tuple[str, ...]]
"""A table and columns of it."""


class SourceFacts:
    """One state of some tables of a source; what is looked up is looked up once."""

    def __init__(self, pushdown: Pushdown) -> None:
        self.pushdown = pushdown
        self._known: dict[tuple[str, Hashable], Any] = {}

    def rows(self, statement: Statement) -> pd.DataFrame:
        """What a statement gives."""
        with logs.statement("merging", statement.query, self.pushdown.dialect):
            return self.pushdown.rows(statement)

    def numbers(
        self,
        numbers: Mapping[str, exp.Expr],
        query: Callable[[list[exp.Expr]], exp.Select],
        values: dict[str, Any] | None = None,
    ) -> dict[str, int]:
        """Whole numbers by name, each 0 where it is null, from the one row of a query.

        ``query`` is made from the expressions that it selects; ``values`` are those of its placeholders.
        """
        filled = {name: exp.Coalesce(this=one, expressions=[exp.Literal.number(0)]) for name, one in numbers.items()}
        made = query([exp.alias_(exp.cast(one, "BIGINT"), name, quoted=True) for name, one in filled.items()])
        columns = [("", "integer", name) for name in numbers]
        sql = made.sql(dialect=self.pushdown.dialect)
        row = self.rows(Statement(sql, columns, "the counts", values, counts=True)).iloc[0]
        return {name: int(row[name]) for name in numbers}

    def fact(self, table: str, fact: Hashable, find: Callable[[], Any]) -> Any:
        """A fact about the rows of a table."""
        lasting = self.pushdown.facts(table)
        if fact not in lasting:
            if (table, fact) not in self._known:
                self._known[table, fact] = find()
            lasting[fact] = self._known[table, fact]
        return lasting[fact]

    def size(self, table: str) -> int:
        """The number of its rows."""
        return int(self.fact(table, "size", lambda: self._size(table)))

    def _size(self, table: str) -> int:
        item = self.pushdown.item(table, "t")
        return self.numbers({"n": exp.Count(this=exp.Star())}, lambda numbers: exp.select(*numbers).from_(item))["n"]

    def are_unique(self, keys: Iterable[Key]) -> dict[Key, bool]:
        """Whether the keys of these columns of tables are unique, apart from nulls; one statement looks at all."""
        facts = {key: ("unique", *key[1]) for key in keys}
        may_repeat = {key for key in facts if not self.pushdown.lets_none_repeat(*key)}
        unknown = [
            key
            for key, fact in facts.items()
            if key in may_repeat and fact not in self.pushdown.facts(key[0]) and (key[0], fact) not in self._known
        ]
        if unknown:
            repeats = {f"{at}": self._repeats(*key).subquery() for at, key in enumerate(unknown)}
            number = self.numbers(repeats, lambda columns: exp.select(*columns, copy=False))
            self._known |= {(key[0], facts[key]): not number[f"{at}"] for at, key in enumerate(unknown)}
        return {key: key not in may_repeat or self.fact(key[0], fact, bool) for key, fact in facts.items()}

    def _repeats(self, table: str, columns: Sequence[str]) -> exp.Select:
        """A query with a row if a key is there twice."""
        keys = [compared(self.pushdown, table, column, "t") for column in columns]
        filled = [key.copy().is_(exp.null()).not_() for key in keys]
        query = exp.select(exp.alias_(exp.Literal.number(1), "n")).from_(self.pushdown.item(table, "t")).where(*filled)
        several = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
        return query.group_by(*keys).having(several).limit(1)

    def keys(
        self,
        table: str,
        column: str,
        tests: Sequence[exp.Expr] = (),
        most: int | None = None,
        values: dict[str, Any] | None = None,
    ) -> pd.Index:
        """The distinct keys of a column, without nulls: integers, or texts.

        Args:
            table, column: which.
            tests: conditions on the rows of ``t``.
            most: how many keys at most; None for all.
            values: of the placeholders of the tests.
        """
        key = compared(self.pushdown, table, column, "t")
        query = exp.select(exp.alias_(key.copy(), "k")).distinct().from_(self.pushdown.item(table, "t"))
        query = query.where(key.is_(exp.null()).not_(), *tests)
        sql = (query if most is None else query.limit(most)).sql(dialect=self.pushdown.dialect)
        found = self.rows(Statement(sql, [(table, column, "k")], f"table {table!r}", values))["k"]
        is_integer = self.pushdown.cells(table, column).key == "integer"
        keys: pd.Index = pd.Index(found.to_numpy(dtype="int64" if is_integer else object))
        return keys

    def may_mean(
        self,
        table: str,
        column: str,
        texts: Sequence[str],
        tests: Sequence[exp.Expr],
        values: dict[str, Any] | None = None,
    ) -> bool:
        """Whether a key may mean the same as one of some texts, in another spelling: " Prague" and "prague".

        Args:
            table, column: of the keys.
            texts: that they are compared with.
            tests: conditions on the rows of ``t`` with the keys.
            values: of the placeholders of the tests.
        """
        if not len(texts):
            return False
        found = list(self.keys(table, column, tests, _MAX_TEXTS, values))
        return max(len(found), len(texts)) >= _MAX_TEXTS or not _forms(list(texts)).isdisjoint(_forms(found))


def _forms(texts: list[str]) -> set[str]:
    """All canonical forms of the texts: as numbers, if they can be read so, and as text."""
    forms = {form for form in canonical_all(texts)[0] if form is not None} if texts else set()
    return forms | {plain(text.strip())[0] or "" for text in texts if text.strip()}
