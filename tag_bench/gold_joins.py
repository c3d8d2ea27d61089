"""The joins of a gold SQL statement: its tables, and the columns that it makes equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from tagframe.keys.components import Components

Column = tuple[str, str]
"""Table and column, lower case."""
Schema = Mapping[str, tuple[str, ...]]
"""Columns by table, lower case."""


@dataclass(frozen=True)
class JoinBlock:
    """The FROM … JOIN of one SELECT.

    Attributes:
        tables: lower case, in the order of the joins.
        rows_sql: a statement that gives the row numbers of each table in the joined rows, in the same order.
    """

    tables: tuple[str, ...]
    rows_sql: str


@dataclass(frozen=True)
class GoldJoins:
    """The joins of a statement.

    Attributes:
        tables: all that it reads, lower case.
        pairs: the pairs of columns of two tables that its predicates make equal.
        classes: the sets of columns that it makes equal across tables.
        twice: whether one FROM names a table twice.
        blocks: each plain SELECT with two or more tables in its own FROM.
    """

    tables: frozenset[str]
    pairs: frozenset[frozenset[Column]]
    classes: frozenset[frozenset[Column]]
    twice: bool
    blocks: tuple[JoinBlock, ...]


def classes_of(pairs: Sequence[tuple[Column, Column]]) -> frozenset[frozenset[Column]]:
    """The sets of columns that are equal if each pair is."""
    groups = Components(column for pair in pairs for column in pair)
    for one, other in pairs:
        groups.join(one, other)
    return frozenset(map(frozenset, groups.groups()))


@dataclass(frozen=True)
class _Columns:
    """Where the columns of a statement come from, by the ``schema``."""

    schema: Schema

    def resolve(self, node: Any, scope: Scope | None) -> Column | None:
        """The table and column of a column expression of a SELECT, or of one around it."""
        column = node.unnest()
        if scope is None or not isinstance(column, exp.Column):
            return None
        name, owner = column.name.lower(), column.table.lower()
        for alias, source in sorted(_sources(scope), key=lambda one: isinstance(one[1], Scope)):
            if owner in ("", alias):
                if isinstance(source, Scope):
                    found = self.projected(source, name)
                else:
                    table = source.name.lower()
                    found = (table, name) if owner or name in self.schema.get(table, ()) else None
                if found is not None:
                    return found
        while scope.parent is not None and not scope.is_subquery:  # only a subquery sees what is around it
            scope = scope.parent
        return self.resolve(column, scope.parent)

    def projected(self, scope: Scope, name: str | None = None) -> Column | None:
        """The column of the SELECT with this ``name``, or its first."""
        for item in scope.expression.expressions:
            if name is None or item.alias_or_name.lower() == name:
                return self.resolve(item.unalias(), scope)
        return None

    def table_of(self, column: exp.Column, tables: Mapping[str, str]) -> str | None:
        """The table of a column, among ``tables`` by their aliases."""
        name, owner = column.name.lower(), column.table.lower()
        own = (
            table
            for alias, table in tables.items()
            if owner == alias or (not owner and name in self.schema.get(table, ()))
        )
        return next(own, None)


def _sources(scope: Scope) -> list[tuple[str, exp.Table | Scope]]:
    """What stands in the FROM of a SELECT, by alias: tables, and queries with a name."""
    select = scope.expression
    items = [item.this for item in (select.args.get("from_"), *(select.args.get("joins") or ())) if item is not None]
    return [(one.alias.lower() or one.name.lower(), scope.sources[one.alias_or_name]) for one in items
            if one.alias_or_name in scope.sources]  # fmt: skip


def _own_nodes(select: exp.Expr) -> Iterator[Any]:
    """The expressions of a SELECT without those of the SELECTs inside it."""
    yield from select.walk(prune=lambda node: node is not select and isinstance(node, exp.Query))


def _selects(scope: Scope) -> list[Scope]:
    """The plain SELECTs of a query: one, or those of a set operation."""
    return [part for each in scope.set_operation_scopes for part in _selects(each)] or [scope]


def _join_block(select: exp.Expr, tables: Mapping[str, str], columns: _Columns, dialect: str) -> JoinBlock:
    """The SELECT's FROM with its joins; if a join has no ON, with the predicates of WHERE that link tables."""
    rows = exp.Select(expressions=[exp.column("rowid", table=alias, quoted=True) for alias in tables])
    for part in ("from_", "joins"):
        if select.args.get(part):
            rows.set(part, select.args[part])
    links = []
    for node in _own_nodes(select):
        if isinstance(node, exp.EQ) and isinstance(node.left, exp.Column) and isinstance(node.right, exp.Column):
            one, other = columns.table_of(node.left, tables), columns.table_of(node.right, tables)
            if one is not None and other is not None and one != other:
                links.append(node.copy())
    if links and any(not join.args.get("on") and not join.args.get("using") for join in select.args.get("joins") or ()):
        rows = rows.where(*links)
    return JoinBlock(tuple(tables.values()), rows.sql(dialect=dialect))


def gold_joins(sql: str, schema: Schema, *, dialect: str = "sqlite") -> GoldJoins:
    """Read the joins of a statement in a dialect of sqlglot.

    Raises:
        sqlglot.errors.ParseError: the statement is not SQL.
    """
    tree, columns = sqlglot.parse_one(sql, dialect=dialect), _Columns(schema)
    direct: list[tuple[Column, Column]] = []
    nested: list[tuple[Column, Column]] = []
    sets: list[tuple[Column, Column]] = []
    twice = False
    blocks: list[JoinBlock] = []

    def link(pairs: list[tuple[Column, Column]], one: Column | None, other: Column | None) -> None:
        if one is not None and other is not None and one[0] != other[0]:
            pairs.append((one, other))

    for scope in traverse_scope(tree):
        first, *later = _selects(scope)
        for part in later:
            link(sets, columns.projected(first), columns.projected(part))
        if later:
            continue
        sources = _sources(scope)
        names = [source.name.lower() for _, source in sources if isinstance(source, exp.Table)]
        twice = twice or len(set(names)) < len(names)
        if 1 < len(names) == len(sources):
            tables = dict(zip((alias for alias, _ in sources), names, strict=True))
            blocks.append(_join_block(scope.expression, tables, columns, dialect))
        for node in _own_nodes(scope.expression):
            if isinstance(node, exp.EQ):
                link(direct, columns.resolve(node.left, scope), columns.resolve(node.right, scope))
        for inner in scope.subquery_scopes:
            side, around = inner.expression, inner.expression.parent
            while isinstance(around, exp.Subquery | exp.Paren):
                side, around = around, around.parent
            if isinstance(around, exp.In | exp.EQ):
                ours = around.expression if around.this is side else around.this
                for part in _selects(inner):
                    link(nested, columns.resolve(ours, scope), columns.projected(part))
    defined = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    read = frozenset(table.name.lower() for table in tree.find_all(exp.Table)) - defined
    every = direct + nested or sets
    return GoldJoins(read, frozenset(map(frozenset, every)), classes_of(every), twice, tuple(blocks))
