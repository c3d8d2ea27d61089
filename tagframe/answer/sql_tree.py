"""Statements as syntax trees that can be written back unchanged, with every function under its own name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from tagframe.engines.registry import DIALECTS
from tagframe.engines.sql_reader import parse

AGGREGATES = frozenset(
    "any_value approx_count_distinct approx_quantile arg_max arg_min array_agg avg bit_and bit_or bool_and bool_or "
    "corr count count_if count_star covar_pop covar_samp every favg first fsum geomean group_concat json_agg "
    "json_group_array json_group_object jsonb_agg kurtosis last list mad max max_by mean median min min_by mode "
    "percentile_cont percentile_disc product quantile quantile_cont quantile_disc sem_agg skewness stddev stddev_pop "
    "stddev_samp string_agg sum total var_pop var_samp variance".split()
)
"""Aggregate functions; ``max`` and ``min`` only with one argument."""


def parsed(sql: str, dialect: str = "sqlite") -> exp.Query:
    """A statement that the guard has accepted, as a tree; ``dialect`` is its engine's."""
    return parse(sql, DIALECTS[dialect].tree)[0]  # type: ignore[return-value]  # the guard lets only queries through


def written(tree: exp.Expr, dialect: str = "sqlite") -> str:
    """A tree as SQL in the engine's dialect."""
    return tree.sql(dialect=DIALECTS[dialect].tree, normalize_functions=False)


def conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    """The parts of a condition that must all be true."""
    if condition is None:
        return []
    inner = condition.this if isinstance(condition, exp.Where | exp.Having) else condition
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if isinstance(inner, exp.And):
        return [*conjuncts(inner.left), *conjuncts(inner.right)]
    return [inner]


def own_nodes(select: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of a query block, without those of blocks inside it."""
    for node in select.iter_expressions():
        if not isinstance(node, exp.Query):
            yield node
            yield from own_nodes(node)


def aggregates(tree: exp.Expr) -> bool:
    """Whether it contains an aggregate function, outside of subqueries and windows."""
    return any(is_aggregate(node) for node in [tree, *own_nodes(tree)])


def is_aggregate(node: exp.Expr) -> bool:
    """Whether it is a call of an aggregate function."""
    if not isinstance(node, exp.Anonymous) or node.name.lower() not in AGGREGATES:
        return False
    if isinstance(node.parent, exp.Window) or (
        isinstance(node.parent, exp.Filter) and isinstance(node.parent.parent, exp.Window)
    ):
        return False
    return node.name.lower() not in ("max", "min") or len(node.expressions) == 1


def is_grouped(select: exp.Select) -> bool:
    """Whether a block makes one row of many."""
    parts = [*select.expressions, select.args.get("having"), select.args.get("order")]
    return select.args.get("group") is not None or any(part is not None and aggregates(part) for part in parts)


def clause_keys(tree: exp.Select, clause: str, is_column: Callable[[str], bool]) -> list[exp.Expr] | None:
    """The keys of a block's GROUP BY or ORDER BY, with positions and names of SELECT written out; None if not known.

    Args:
        tree: the block.
        clause: "group" or "order".
        is_column: whether a name is that of a column, though an item of SELECT may have it, too.
    """
    found, by_alias = tree.args.get(clause), named_items(tree)
    keys: list[exp.Expr] = []
    for key in found.expressions if found is not None else []:
        key = key.this if isinstance(key, exp.Ordered) else key
        if isinstance(key, exp.Literal) and not key.is_string:
            key = item_at(key, tree.expressions)
        elif isinstance(key, exp.Column) and not key.table and (name := key.name.casefold()) in by_alias:
            key = key if is_column(key.name) else by_alias[name]
        elif any(not node.table and node.name.casefold() in by_alias for node in key.find_all(exp.Column)):
            key = key if clause == "group" else None
        if key is None:
            return None
        keys.append(key)
    return keys


def named_items(select: exp.Select) -> dict[str, exp.Expr]:
    """The named items of SELECT, by their names in lower case."""
    return {item.alias.casefold(): item.this for item in select.expressions if isinstance(item, exp.Alias)}


def item_at(literal: exp.Literal, items: Sequence[exp.Expr]) -> exp.Expr | None:
    """The item of SELECT at a position in GROUP BY or ORDER BY; None if there is none, or a star before it."""
    position = int(literal.this) - 1
    is_known = 0 <= position < len(items) and not any(item.is_star for item in items[: position + 1])
    return items[position].unalias() if is_known else None


def without(select: exp.Select, *clauses: str) -> exp.Select:
    """A copy of a block without some clauses."""
    copied: exp.Select = select.copy()  # type: ignore[assignment]  # of the same class
    for clause in clauses:
        copied.set(clause, None)
    return copied


def with_tables(query: exp.Expr) -> list[exp.CTE]:
    """The tables of its own WITH."""
    clause = query.args.get("with_")
    return list(clause.expressions) if clause is not None else []


def column_of(name: str, table: str | None = None) -> exp.Column:
    """A column by its name, quoted."""
    return exp.column(exp.to_identifier(name, quoted=True), table=table and exp.to_identifier(table, quoted=True))


def table_of(name: str, alias: str = "") -> exp.Expr:
    """A table by its name, quoted."""
    table = exp.Table(this=exp.to_identifier(name, quoted=True))
    return exp.alias_(table, alias, table=True) if alias else table


def ancestors(node: exp.Expr) -> Iterator[exp.Expr]:
    """The ancestors of a node, the nearest first."""
    while node.parent is not None:
        node = node.parent
        yield node


def one_row(table: exp.Expr, test: exp.Expr) -> exp.Select:
    """Whether a row of a table passes a comparison: one row, or none; for one that excludes rows, its opposite."""
    test = exp.EQ(this=test.this, expression=test.expression) if isinstance(test, exp.NEQ) else test
    return exp.Select(expressions=[exp.alias_(exp.Literal.number(1), "one")]).from_(table).where(test).limit(1)
