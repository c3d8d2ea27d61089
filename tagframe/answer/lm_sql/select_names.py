"""Names of SELECT that refer to LM functions are replaced by these, and unnamed items get names."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from tagframe.answer.lm_sql.calls import calls_in
from tagframe.answer.lm_sql.dialects import Spoken
from tagframe.answer.sql_tree import item_at, own_nodes

_LONGEST = 60


def write_out(select: exp.Select, is_column: Callable[[str], bool], spoken: Spoken) -> None:
    """Replace the name of a function in SELECT, or its position, by the function, wherever a clause uses it.

    Names are resolved as engines do it: ORDER BY prefers names of SELECT (PostgreSQL only if the name is not part of an
    expression), other clauses prefer columns.

    Args:
        select: the block; it is changed.
        is_column: whether the tables of the block have a column of that name.
        spoken: the dialect of the statement.
    """
    items = select.expressions
    named = {item.alias.casefold(): item.this for item in items if isinstance(item, exp.Alias) and calls_in(item)}
    clauses = [select.args.get(clause) for clause in ("where", "group", "having", "order")]
    for tree in [one for one in [*clauses, *(select.args.get("joins") or [])] if one is not None]:
        if isinstance(tree, exp.Group | exp.Order):
            _positions(tree, items)
        for node in list(own_nodes(tree)):
            alone = spoken.orders_by_names or isinstance(node.parent, exp.Ordered)
            comes_first = isinstance(tree, exp.Order) and alone
            is_named = isinstance(node, exp.Column) and not node.table and node.name.casefold() in named
            if is_named and (comes_first or not is_column(node.name)):
                node.replace(_bracketed(named[node.name.casefold()]))


def _positions(tree: exp.Expr, items: list[exp.Expr]) -> None:
    """Write out ``ORDER BY 2`` and ``GROUP BY 1``, if SELECT has no star before that position."""
    for term in tree.expressions:
        literal = term.this if isinstance(term, exp.Ordered) else term
        if not isinstance(literal, exp.Literal) or literal.is_string or not str(literal.this).isdigit():
            continue
        if (item := item_at(literal, items)) is not None:
            literal.replace(_bracketed(item))


def _bracketed(tree: exp.Expr) -> exp.Expr:
    copied = tree.copy()
    return copied if isinstance(copied, exp.Column | exp.Anonymous) else exp.Paren(this=copied)


def name_calls(select: exp.Select, spoken: Spoken) -> None:
    """Name items of SELECT that contain a function and have no name by their text."""
    for item in list(select.expressions):
        if not isinstance(item, exp.Alias) and calls_in(item):
            text = spoken.written(item)
            name = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
            item.replace(exp.alias_(item.copy(), exp.to_identifier(name, quoted=True)))
