"""A query block with LM functions, taken apart: its conditions, and statements that give the functions' arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from sqlglot import exp

from tagframe.answer.guard import Reader, check_sql
from tagframe.answer.lm_sql.calls import (
    FUNCTIONS,
    Call,
    call_of,
    calls_in,
    check_positions,
    has_functions,
    visible_tables,
)
from tagframe.answer.lm_sql.dialects import KEY, OWN, Spoken, spoken_of
from tagframe.answer.sql_tree import (
    aggregates,
    ancestors,
    column_of,
    conjuncts,
    is_grouped,
    item_at,
    own_nodes,
    without,
    written,
)
from tagframe.errors import SQLFailed, UnsafeSQL

_STRICT = (exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
ARGUMENT = f"{OWN}argument_"
_LONGEST = 60
"""The longest name of an item by its text, in characters."""


def blocks_with_calls(tree: exp.Expr) -> list[exp.Select]:
    """The query blocks that contain calls, each after the blocks that it reads: first WITH, then inner blocks."""
    found: list[exp.Select] = []

    def visit(node: exp.Expr) -> None:
        clause = node.args.get("with_")
        children = [child for child in node.iter_expressions() if child is not clause]
        for child in [*([clause] if clause is not None else []), *children]:
            visit(child)
        if isinstance(node, exp.Select) and calls_in(node):
            found.append(node)

    visit(tree)
    return found


@dataclass
class Block:
    """A block during staging: conditions with calls are removed, and put back after they are answered.

    Those in the ON of an inner join are put back into WHERE.

    Attributes:
        select: the block, in its statement.
        spoken: the dialect of the statement.
        pending: the removed conditions.
        answered: those of them whose calls have been answered.
    """

    select: exp.Select
    spoken: Spoken
    pending: list[exp.Expr] = field(default_factory=list)
    answered: list[exp.Expr] = field(default_factory=list)

    def __post_init__(self) -> None:
        where = self.select.args.get("where")
        self.select.set("where", _where(self._without_calls(where)))
        for join in self.select.args.get("joins") or []:
            if (on := join.args.get("on")) is not None:
                join.set("on", exp.and_(*(self._without_calls(on) or [exp.condition("1 = 1")]), copy=False))

    def _without_calls(self, condition: exp.Expr | None) -> list[exp.Expr]:
        """The parts of a condition without calls; the others are pending."""
        plain = [part for part in conjuncts(condition) if not calls_in(part)]
        self.pending += [part.pop() for part in conjuncts(condition) if calls_in(part)]
        return plain

    def put_back(self) -> None:
        """Put all removed conditions back into the block."""
        where = [*conjuncts(self.select.args.get("where")), *self.answered]
        self.select.set("where", _where([part.pop() if part.parent else part for part in where]))
        self.answered = []

    # --- what a call is called with -------------------------------------------------------------------------------

    def rows(
        self,
        columns: Sequence[Sequence[exp.Expr]],
        *,
        more: Sequence[exp.Expr] = (),
        ordered: bool = False,
        in_order: bool = False,
    ) -> exp.Select:
        """The rows of the block that the conditions leave so far, with a key and the columns of several calls.

        Args:
            columns: for each call, its argument columns.
            more: further conditions.
            ordered: whether to apply ORDER BY and LIMIT.
            in_order: whether to apply ORDER BY.
        """
        select = self.select
        visible = _excerpt(columns, self.spoken)
        # WHERE and ORDER BY may name what SELECT names.
        grouped = is_grouped(select)
        visible += [
            item.copy()
            for item in select.expressions
            if isinstance(item, exp.Alias)
            and not calls_in(item)
            and not (grouped and aggregates(item))
            and item.find(exp.Window) is None
        ]
        built = exp.Select(expressions=visible)
        built.set("from_", exp.maybe_copy(select.args.get("from_")))
        built.set("joins", [join.copy() for join in select.args.get("joins") or []])
        where = [*conjuncts(select.args.get("where")), *self.answered, *more]
        built.set("where", _where([part.copy() for part in where]))
        if ordered or in_order:
            built.set("order", exp.maybe_copy(select.args.get("order")))
        return built.limit(needed(select), copy=False) if ordered else built

    def groups(self, columns: Sequence[exp.Expr], *, ordered: bool = False) -> exp.Select:
        """The groups of the block that HAVING leaves so far, each with the keys of these columns as a JSON list.

        A group may have several keys, since its values are only equal in SQL's comparison, as 'Ann' and 'ann' may be,
        or 1 and 1.0.

        Args:
            columns: of the keys of the groups.
            ordered: whether to apply ORDER BY and LIMIT.
        """
        built = without(self.select, "with_", "limit", "offset", *(() if ordered else ("order",)))
        named = [item for item in built.expressions if isinstance(item, exp.Alias) and not calls_in(item)]
        built.set("expressions", [exp.alias_(self.spoken.keys(self.spoken.key(columns)), KEY), *named])
        having = [part.copy() for part in conjuncts(built.args.get("having")) if not calls_in(part)]
        built.set("having", exp.Having(this=exp.and_(*having, copy=False)) if having else None)
        return built.limit(needed(self.select), copy=False) if ordered else built


def standing_alone(block: exp.Expr, sql: str, dialect: str) -> str:
    """A statement with the tables of WITH that a block may read."""
    tables = visible_tables(block)
    is_recursive = any(cte.parent is not None and cte.parent.args.get("recursive") for cte in tables)
    clause = f"WITH {'RECURSIVE ' * is_recursive}{', '.join(written(cte, dialect) for cte in tables)} "
    return f"{clause if tables else ''}{sql}"


def names_of_call(number: int, width: int) -> list[str]:
    """The names of the key and the columns of a call, by its number, in :meth:`Block.rows`."""
    return [KEY if number == 0 else f"{KEY}_{number}", *(f"{ARGUMENT}{number}_{position}" for position in range(width))]


def _excerpt(columns: Sequence[Sequence[exp.Expr]], spoken: Spoken) -> list[exp.Expr]:
    visible: list[exp.Expr] = []
    for number, named in enumerate(columns):
        values = [spoken.key(named), *(column.copy() for column in named)]
        visible += [
            exp.alias_(value, name) for value, name in zip(values, names_of_call(number, len(named)), strict=True)
        ]
    return visible


def _where(parts: Sequence[exp.Expr]) -> exp.Where | None:
    return exp.Where(this=exp.and_(*parts, copy=False)) if parts else None


def undecided(condition: exp.Expr) -> exp.Expr | None:
    """SQL for: the condition is not decided without its calls, so that it is NULL if they are. None if not known.

    This is known only for AND, OR, NOT (Kleene's logic) and comparisons: CASE and IS NULL give a value for NULL too.
    """
    if condition.parent is None and calls_in(condition)[0] is condition:
        return None
    copied = condition.copy()
    for call in calls_in(copied):
        if call.parent is None or not all(isinstance(above, _STRICT) for above in ancestors(call)):
            return None
        call.replace(exp.Null())
    return exp.Is(this=exp.Paren(this=copied), expression=exp.Null())


def bare_filter(condition: exp.Expr) -> bool | None:
    """True for a condition that is only ``sem_filter``, False for NOT of it, None for any other."""
    inner = condition.unnest()
    wanted = True
    while isinstance(inner, exp.Not):
        inner, wanted = inner.this.unnest(), not wanted
    return wanted if isinstance(inner, exp.Anonymous) and inner.name.lower() == "sem_filter" else None


def needed(select: exp.Select) -> int:
    """The number of rows that a block reads in its order, including those that OFFSET skips."""
    return (count_of(select.args.get("limit")) or 0) + (count_of(select.args.get("offset")) or 0)


def count_of(clause: exp.Expr | None) -> int | None:
    """The number in a LIMIT or OFFSET; 0 if there is none, None if it is not a plain number."""
    if clause is None:
        return 0
    value = clause.expression
    return int(value.this) if isinstance(value, exp.Literal) and not value.is_string and value.this.isdigit() else None


# --- names of SELECT --------------------------------------------------------------------------------------------------


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


# --- checks, before any model call ------------------------------------------------------------------------------------


def check_staged(sql: str, reader: Reader) -> str:
    """A statement, with or without LM functions, checked and compiled, without any model call.

    Raises:
        UnsafeSQL: it is not a single SELECT over these tables, or a function is in a place where it cannot be staged.
        SQLFailed: it does not compile, for example because of an unknown column, also in braces.
    """
    if not has_functions(sql):
        return reader.compile(sql)
    spoken = spoken_of(reader)
    checked = check_sql(reader.resolved(sql), list(reader.tables), reader.engine.dialect, FUNCTIONS)
    root = spoken.parsed(checked)
    check_positions(root, checked, spoken)
    for block in blocks_with_calls(root):
        is_column = partial(is_column_of, block, reader)
        calls = [call_of(node, block, is_column, spoken) for node in calls_in(block)]
        if any(call.function.ranks for call in calls):
            _check_ranking(block, is_column, spoken)
        for call in calls:
            stand_in = spoken.stand_in(spoken.key([column for _, column in call.columns]), call.kind)
            if call.function.aggregates:
                stand_in = exp.Anonymous(this="max", expressions=[stand_in])
            call.node.replace(stand_in)
        if block.parent is not None:
            _refuse_correlated(block, calls, reader, spoken)
    reader.compile(spoken.written(root))
    return checked


def _check_ranking(block: exp.Select, is_column: Callable[[str], bool], spoken: Spoken) -> None:
    """Refuse an ORDER BY of places that would not give the best rows first, or that gives rows without a place.

    Raises:
        UnsafeSQL: as said.
    """
    named = block.copy()
    write_out(named, is_column, spoken)
    order, clauses = named.args.get("order"), (named.args.get("where"), named.args.get("having"))
    is_cut = named.args.get("limit") is not None or any(map(_ranking_in, clauses))
    for position, term in enumerate(order.expressions if order is not None else ()):
        ranking = _ranking_in(term.this.unnest())
        if ranking is None or ranking is not term.this.unnest():
            continue
        places = int(ranking.expressions[1].this)
        if term.args.get("desc") or position or not is_cut or needed(named) > places:
            raise UnsafeSQL(
                f"{ranking.name.lower()} gives the places 1 to {places}: it comes first in ORDER BY, without DESC, and "
                f"LIMIT and OFFSET are {places} together at most; got {spoken.written(named)!r:.300}"
            )


def _ranking_in(clause: exp.Expr | None) -> exp.Expr | None:
    """A function in a clause that gives places."""
    calls = [] if clause is None else calls_in(clause)
    return next((node for node in calls if FUNCTIONS[node.name.lower()].ranks), None)


def is_column_of(block: exp.Select, reader: Reader, name: str) -> bool:
    """Whether the tables of a block have a column of that name."""
    alone = exp.Select(expressions=[column_of(name)])
    for clause in ("from_", "joins"):
        value = block.args.get(clause)
        alone.set(clause, [one.copy() for one in value] if isinstance(value, list) else value and value.copy())
    for node in calls_in(alone):
        node.replace(exp.Null())
    dialect = reader.engine.dialect.name
    sql = standing_alone(block, written(alone, dialect), dialect)
    try:
        reader.compile(sql)
    except (SQLFailed, UnsafeSQL):
        return False
    return True


def _refuse_correlated(block: exp.Select, calls: Sequence[Call], reader: Reader, spoken: Spoken) -> None:
    """Refuse a block whose rows depend on those of another block: its values cannot be listed by themselves."""
    try:
        reader.compile(standing_alone(block, spoken.written(without(block, "with_")), spoken.name))
    except SQLFailed as error:
        if not spoken.names_no_column(error):
            raise
        name = calls[0].function.name
        raise UnsafeSQL(
            f"{name} may not stand in a correlated subquery, nor name columns of a query around its own: join the "
            f"tables, or use IN (SELECT …); in {str(calls[0])!r:.300} {str(error).partition(': ')[2]:.200}"
        ) from error
