"""Checks of statements with LM functions, before any model call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from sqlglot import exp

from tagframe.answer.guard import Reader, check_sql
from tagframe.answer.lm_sql.blocks import blocks_with_calls, needed, standing_alone, write_out
from tagframe.answer.lm_sql.calls import FUNCTIONS, Call, call_of, calls_in, check_positions, has_functions
from tagframe.answer.lm_sql.dialects import Spoken, spoken_of
from tagframe.answer.sql_tree import column_of, without, written
from tagframe.errors import SQLFailed, UnsafeSQL


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
    order, is_chosen = (
        named.args.get("order"),
        any(map(_ranking_in, (named.args.get("where"), named.args.get("having")))),
    )
    for position, term in enumerate(order.expressions if order is not None else ()):
        ranking = _ranking_in(term.this.unnest())
        if ranking is None or ranking is not term.this.unnest():
            continue
        places, wanted = int(ranking.expressions[1].this), needed(named)
        if term.args.get("desc"):
            fault = "the best has place 1: order by it without DESC"
        elif position:
            fault = "it ranks all rows that are left, and so comes first in ORDER BY"
        elif named.args.get("limit") is None and not is_chosen:
            fault = f"only {places} rows have a place: add LIMIT {places}"
        elif wanted > places:
            fault = (
                f"it gives {places} places, and LIMIT and OFFSET need {wanted}: write {wanted} as its second argument"
            )
        else:
            continue
        raise UnsafeSQL(f"{ranking.name.lower()}: {fault}; got {spoken.written(term)!r:.300}")


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
