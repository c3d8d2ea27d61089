"""Other readings of a question, found by changing its statement, without a model.

In four of six wrong answers, the statement was right except for one of these: whether rows without a match count,
whether rows that a join repeats count twice, and where a list ends if rows are tied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pandas as pd
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tagframe.answer.generation import plain_rows, plain_value
from tagframe.answer.guard import Reader
from tagframe.answer.sql_tree import aggregates, is_grouped, item_at, named_items, parsed, written
from tagframe.errors import CorpusError, SQLFailed, UnsafeSQL, counted

_SECONDS = 1.0


def other_readings(sql: str, rows: pd.DataFrame, reader: Reader) -> Iterator[str]:
    """The other readings that give a different result, in one sentence each.

    Args:
        sql: a statement that has run.
        rows: its result.
        reader: that ran it.
    """
    try:
        tree = parsed(sql, reader.engine.dialect.name)
    except (SqlglotError, RecursionError):
        return
    if not isinstance(tree, exp.Select) or tree.args.get("from_") is None:
        return
    for reading in (_without_match, _each_once, _equals_of_last):
        try:
            yield from reading(tree, rows, reader)
        except (CorpusError, SQLFailed, UnsafeSQL, SqlglotError):  # the reading cannot be had
            continue


def _run(tree: exp.Expr, reader: Reader, most: int) -> pd.DataFrame:
    limits = replace(reader.limits, rows=most, seconds=min(_SECONDS, reader.limits.seconds))
    return reader.run(written(tree, reader.engine.dialect.name), limits)


def _without_match(tree: exp.Select, rows: pd.DataFrame, reader: Reader) -> Iterator[str]:
    """Rows without a match that INNER JOIN leaves out, of the first table and of the table of GROUP BY."""
    joins = [position for position, join in enumerate(tree.args.get("joins") or []) if _is_inner(join)]
    if not joins:
        return
    first, last = tree.args["from_"].this, tree.args["joins"][-1].this
    ways = [("LEFT", joins, first.name)]
    group = tree.args.get("group")
    by = set() if group is None else {key.table for key in group.find_all(exp.Column)}
    if by == {last.alias_or_name} and joins[-1] == len(tree.args["joins"]) - 1:
        ways.append(("RIGHT", joins[-1:], last.name))
    for side, positions, kept in ways:
        other = tree.copy()
        for position in positions:
            other.args["joins"][position].set("kind", None)
            other.args["joins"][position].set("side", side)
        more = _of_something(_run(other, reader, max(reader.limits.rows, len(rows)) + 1), tree)
        if not _same_rows(more, rows):
            yield f"rows of {kept} without a match are left out; with them, {_difference(rows, more)}"
            return


def _of_something(rows: pd.DataFrame, tree: exp.Select) -> pd.DataFrame:
    """The rows without empty ones: those with NULL in all columns that are not aggregates."""
    named = [position for position, item in enumerate(tree.expressions) if not aggregates(item)]
    if not named and is_grouped(tree):
        return rows
    has_star = any(item.is_star for item in tree.expressions)
    kept = rows if has_star or not named else rows.iloc[:, named]
    return rows[kept.notna().any(axis=1).to_numpy()]


def _is_inner(join: exp.Join) -> bool:
    has_test = join.args.get("on") is not None or join.args.get("using")
    return bool(has_test) and not join.side and (join.kind or "INNER") == "INNER" and not join.method


def _each_once(tree: exp.Select, rows: pd.DataFrame, reader: Reader) -> Iterator[str]:
    """Rows that a join repeats, and that are counted or listed several times."""
    if not tree.args.get("joins") or tree.args.get("distinct") is not None:
        return
    if not is_grouped(tree):
        if tree.args.get("limit") is None and len(rows) > (distinct := len(set(plain_rows(rows)))):
            yield f"the {len(rows):,} rows contain duplicates ({distinct:,} distinct)"
        return
    other = tree.copy()
    counts = [
        node
        for item in other.expressions
        for node in item.find_all(exp.Anonymous)
        if node.name.lower() == "count" and len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Column)
    ]
    if not counts:
        return
    for node in counts:
        node.set("expressions", [exp.Distinct(expressions=[node.expressions[0].copy()])])
    once = _run(other, reader, max(reader.limits.rows, len(rows)))
    if not _same_rows(once, rows):
        what = ", ".join(sorted({written(node, reader.engine.dialect.name) for node in counts}))
        yield f"duplicates are counted; with {what}, {_difference(rows, once)}"


def _equals_of_last(tree: exp.Select, rows: pd.DataFrame, reader: Reader) -> Iterator[str]:
    """Rows after a LIMIT that tie with the last row before it in ORDER BY."""
    order, limit = tree.args.get("order"), tree.args.get("limit")
    if order is None or limit is None or tree.args.get("offset") is not None or tree.args.get("distinct") is not None:
        return
    if not isinstance(limit.expression, exp.Literal) or limit.expression.this != str(len(rows)) or not len(rows):
        return
    by_alias = named_items(tree)
    other = tree.copy()
    for position, key in enumerate(order.expressions):
        known = _meant_by(key.this, tree.expressions, by_alias)
        if known is None:
            return
        other.append("expressions", exp.alias_(known.copy(), f"order_{position}"))
    further = len(rows) + 1000
    other.set("limit", exp.Limit(expression=exp.Literal.number(further)))
    more = _run(other, reader, further)
    keys, shown = plain_rows(more.iloc[:, rows.shape[1] :]), plain_rows(more.iloc[:, : rows.shape[1]])
    last = len(rows) - 1
    equal = [row for row, key in zip(shown[last:], keys[last:], strict=True) if key == keys[last]]
    behind = len(equal) - 1
    if len(set(equal)) > 1:
        more_than = "" if behind + len(rows) < further else "at least "
        ties = counted(behind, "further row ties", "further rows tie")
        yield f"{more_than}{ties} with row {len(rows):,} in ORDER BY"


def _meant_by(key: exp.Expr, items: Sequence[exp.Expr], by_alias: dict[str, exp.Expr]) -> exp.Expr | None:
    """The expression of an entry of ORDER BY: itself, or the item of SELECT with its position or name."""
    if isinstance(key, exp.Literal) and key.is_int:
        return item_at(key, items)
    if isinstance(key, exp.Column) and not key.table:
        return by_alias.get(key.name.casefold(), key)
    has_alias = any(not node.table and node.name.casefold() in by_alias for node in key.find_all(exp.Column))
    return None if has_alias else key


def _same_rows(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    return len(one) == len(other) and Counter(plain_rows(one)) == Counter(plain_rows(other))


def _difference(rows: pd.DataFrame, other: pd.DataFrame) -> str:
    """How another result differs, in a few words."""
    if len(rows) != len(other):
        return f"there would be {counted(len(other), 'row')} instead of {len(rows):,}"
    if other.size == 1:
        return f"it would be {plain_value(other.iat[0, 0])} instead of {plain_value(rows.iat[0, 0])}"
    changed = (Counter(plain_rows(other)) - Counter(plain_rows(rows))).total()
    return f"{changed:,} of {len(rows):,} rows would differ"
