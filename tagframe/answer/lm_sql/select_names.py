"""Names of SELECT that stand for LM functions elsewhere in a block, written out; and names for what has none."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from tagframe.answer.lm_sql.calls import calls_in
from tagframe.answer.lm_sql.dialects import Spoken
from tagframe.answer.sql_tree import item_at, own_nodes

_LONGEST = 60


def write_out(select: exp.Select, is_column: Callable[[str], bool], spoken: Spoken) -> None:
    """Put the function in place of its name, or of its position in SELECT, wherever a clause uses it.

    As engines read names: in ORDER BY those of SELECT come first (in PostgreSQL, of a name that stands by itself),
    elsewhere columns do.

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
    """Write out ``ORDER BY 2`` and ``GROUP BY 1``, where SELECT has no star before that position."""
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
    """Give what SELECT computes with a function the function's text for a name, where it has none."""
    for item in list(select.expressions):
        if not isinstance(item, exp.Alias) and calls_in(item):
            text = spoken.written(item)
            name = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
            item.replace(exp.alias_(item.copy(), exp.to_identifier(name, quoted=True)))
