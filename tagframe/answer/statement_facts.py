"""Facts of a statement: the columns that it joins, and the texts that it compares columns with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from tagframe.answer.guard import Reader
from tagframe.answer.sql_tree import parsed

ColumnOf = tuple[str, str]
"""A table's id, and a column of it."""


@dataclass(frozen=True)
class HeldTo:
    """A column that a statement compares with a text.

    Attributes:
        table: the table's name in the statement.
        column: its name.
        test: the condition on a row, without the table's alias; for a comparison that excludes rows, its opposite.
        words: the texts.
    """

    table: str
    column: str
    test: exp.Expr
    words: tuple[str, ...]


@dataclass(frozen=True)
class StatementFacts:
    """The facts of one statement.

    Attributes:
        joined: pairs of columns of two tables that it makes equal.
        held: the columns that it compares with texts.
        read: the columns that it names.
    """

    joined: tuple[tuple[ColumnOf, ColumnOf], ...]
    held: tuple[HeldTo, ...]
    read: tuple[ColumnOf, ...] = ()


def facts_of_statement(sql: str, reader: Reader) -> StatementFacts:
    """Read a statement that the guard has accepted; gives no facts if it cannot be analysed.

    Args:
        sql: the statement, with or without LM functions.
        reader: that knows its tables.
    """
    dialect = reader.engine.dialect
    named = {dialect.fold(name): (name, id) for name, id in reader.named(sql).items()}
    joined: list[tuple[ColumnOf, ColumnOf]] = []
    held: list[HeldTo] = []
    read: list[ColumnOf] = []
    try:
        scopes = traverse_scope(parsed(reader.resolved(sql), dialect.name))
    except (SqlglotError, RecursionError):
        return StatementFacts((), ())
    for scope in scopes:
        tables = _Tables(scope, reader, named)
        for equal in scope.find_all(exp.EQ):
            ends = tables.meant(_bare(equal.left)), tables.meant(_bare(equal.right))
            if ends[0] and ends[1] and ends[0][1][0] != ends[1][1][0]:
                joined.append((ends[0][1], ends[1][1]))
        for join in scope.find_all(exp.Join):
            joined += tables.using(join)
        held += tables.held()
        read += [known[1] for column in scope.columns if (known := tables.meant(column)) is not None]
    return StatementFacts(tuple(dict.fromkeys(joined)), tuple(held), tuple(dict.fromkeys(read)))


def _bare(node: exp.Expr | None) -> exp.Expr | None:
    """The column inside a cast, a function of one argument, or brackets."""
    while isinstance(node, exp.Paren | exp.Cast | exp.Collate) or (
        isinstance(node, exp.Anonymous) and node.name.lower() in ("lower", "upper", "trim") and node.expressions
    ):
        node = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
    return node


class _Tables:
    """The tables of one FROM, and those of the enclosing queries."""

    def __init__(self, scope: Scope, reader: Reader, named: dict[str, tuple[str, str]]) -> None:
        self._scope, self._reader, self._named = scope, reader, named

    def meant(self, node: exp.Expr | None) -> tuple[str, ColumnOf] | None:
        """The table's name and the column of an expression; None if it is not a column of a table."""
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            return None
        fold = self._reader.engine.dialect.fold
        scope: Scope | None = self._scope
        while scope is not None:
            for alias, source in scope.sources.items():
                if node.table and fold(node.table) != fold(alias):
                    continue
                if not isinstance(source, exp.Table) or fold(source.name) not in self._named:
                    if node.table:
                        return None
                    continue
                name, id = self._named[fold(source.name)]
                for column in self._reader.corpus.profile(id).columns:
                    if fold(column.name) == fold(node.name):
                        return name, (id, column.name)
            scope = scope.parent
        return None

    def using(self, join: exp.Join) -> Iterator[tuple[ColumnOf, ColumnOf]]:
        """The column pairs of a join's USING."""
        tables = [source for source in self._scope.sources.values() if isinstance(source, exp.Table)]
        for name in join.args.get("using") or []:
            columns = [self.meant(exp.column(name.name, table=table.alias_or_name)) for table in tables]
            known = [column[1] for column in columns if column is not None]
            yield from pairwise(known)

    def held(self) -> Iterator[HeldTo]:
        """The comparisons with texts."""
        for test in self._scope.find_all(exp.EQ, exp.NEQ, exp.In, exp.Like, exp.ILike, exp.Glob):
            if test.find_ancestor(exp.Or, exp.Case, exp.Select) is not self._scope.expression:
                continue  # one of several cases need not be there
            others = test.expressions if isinstance(test, exp.In) else [test.expression]
            column = self.meant(_bare(test.this))
            if column is None and isinstance(test, exp.EQ | exp.NEQ):
                column, others = self.meant(_bare(test.expression)), [test.this]
            texts = [other.this for other in others if isinstance(other, exp.Literal) and other.is_string]
            if column is None or not texts or len(texts) != len(others) or not all(text.strip() for text in texts):
                continue
            opposite = exp.EQ(this=test.this, expression=test.expression) if isinstance(test, exp.NEQ) else test
            copy = opposite.copy()
            for node in copy.find_all(exp.Column):
                node.set("table", None)
            yield HeldTo(column[0], column[1][1], copy, tuple(texts))
