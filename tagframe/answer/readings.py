"""Other readings of a question, found by changing its statement, without a model.

In most wrong answers, the statement was right except for one of these: whether rows without a match count, whether rows
that a join repeats count twice, whether a total is a sum or a count, and where a list ends if rows are tied.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pandas as pd
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tagframe.answer.generation import plain_rows, plain_value
from tagframe.answer.guard import Reader
from tagframe.answer.sql_tree import (
    aggregates,
    conjuncts,
    is_aggregate,
    is_grouped,
    item_at,
    named_items,
    own_nodes,
    without,
    written,
)
from tagframe.errors import CorpusError, SQLFailed, UnsafeSQL, counted

CLOSE = 0.05
"""Two scores of a model that differ by at most this may come in the other order when it is asked again."""
_SECONDS = 1.0
_EACH = re.compile(r"\b(?:each|every|per|all)\b", re.IGNORECASE)
_REQUIRED = re.compile(
    r"\b(?:who|that|which|whose|what)\s+(?:also\s+|ever\s+)?(?:has|have|had|do|does|did|is|are|was|were|\w+ed|\w+s)\b"
    r"|\b(?:with|having|used|at least)\b",
    re.IGNORECASE,
)
"""Words of a question that require a match themselves, as in "the clients who have taken a loan"."""
_ALSO_NONE = re.compile(r"\b(?:zero|0|none|no|without|even|includ\w+|not|all)\b", re.IGNORECASE)
_TOTAL = re.compile(r"\btotal\s+(?!number|count|of\b)(?:\w+\s+)?(\w{3,})", re.IGNORECASE)
_ONE = re.compile(
    r"^(?:who|which|what)\s+(?:is|was)\s+the\s+(?:\w+\s+)?(?!\w*s\b)\w+(?:\s+of\s+the\s+(?!\w*s\b)\w+)?\s+(?:who|that|which|with|whose)\b"
    r"|\bthe\s+(?:one\s+)?(?!\w*s\b|people\b)\w+\s+(?:who|which|that)\s+(?:has|is|was|had|\w+ed)\b",
    re.IGNORECASE,
)
_SEVERAL = re.compile(r"\b(?:all|each|every|list|any|are|were|names|different|distinct|or)\b", re.IGNORECASE)


def other_readings(sql: str, rows: pd.DataFrame, reader: Reader, question: str = "") -> Iterator[str]:
    """The other readings that give a different result, in one sentence each.

    Args:
        sql: a statement that has run.
        rows: its result.
        reader: that ran it.
        question: that it answers, if that is known: its words exclude some readings.
    """
    tree, asked = _block(sql, reader), _Asked(reader, question)
    if tree is None:
        return
    for reading in (_without_match, _only_matched, _each_once, _sum_or_count, _without_value, _one_asked):
        yield from _told(reading(tree, rows, asked))


def ties_of(sql: str, rows: pd.DataFrame, reader: Reader, asked: str = "") -> Iterator[str]:
    """Rows after a LIMIT that rank like the last row before it; or almost so, by a model's scores.

    Args:
        sql: a statement that has run.
        rows: its result.
        reader: that ran it.
        asked: the statement with its LM functions, if it has any.
    """
    tree = _block(sql, reader)
    if tree is not None:
        yield from _told(_equals_of_last(tree, rows, _Asked(reader, sql=asked)))


def _block(sql: str, reader: Reader) -> exp.Select | None:
    """The statement if it is one block over tables."""
    statement = reader.read(sql)
    tree = None if statement is None else statement.tree
    return tree if isinstance(tree, exp.Select) and tree.args.get("from_") is not None else None


def _told(facts: Iterator[str]) -> Iterator[str]:
    """The facts, up to where a reading cannot be had."""
    with suppress(CorpusError, SQLFailed, UnsafeSQL, SqlglotError):
        yield from facts


@dataclass(frozen=True)
class _Asked:
    """What a statement was written for, and what runs it."""

    reader: Reader
    question: str = ""
    sql: str = ""


def _run(tree: exp.Expr, reader: Reader, most: int) -> pd.DataFrame:
    limits = replace(reader.limits, rows=most, seconds=min(_SECONDS, reader.limits.seconds))
    return reader.run(written(tree, reader.engine.dialect.name), limits)


def _cuts_groups(tree: exp.Select) -> bool:
    """Whether groups or rows are left out by what they are compared with: HAVING, or LIMIT with ORDER BY."""
    is_ranking = tree.args.get("order") is not None and tree.args.get("limit") is not None
    return tree.args.get("having") is not None or is_ranking


def _without_match(tree: exp.Select, rows: pd.DataFrame, asked: _Asked) -> Iterator[str]:
    """Rows without a match that INNER JOIN leaves out, of the first table and of the table of GROUP BY."""
    reader = asked.reader
    joins = [position for position, join in enumerate(tree.args.get("joins") or []) if _is_inner(join)]
    if not joins or _cuts_groups(tree) or _REQUIRED.search(asked.question):
        return
    if asked.question and not _EACH.search(asked.question):
        return
    first, last = tree.args["from_"].this, tree.args["joins"][-1].this
    ways = [("LEFT", joins, first)]
    group = tree.args.get("group")
    by = set() if group is None else {key.table for key in group.find_all(exp.Column)}
    if by == {last.alias_or_name} and joins[-1] == len(tree.args["joins"]) - 1:
        ways.append(("RIGHT", joins[-1:], last))
    used = {node.table for node in _outside_of_on(tree)}
    for side, positions, kept in ways:
        other = tree.copy()
        for position in positions:
            other.args["joins"][position].set("kind", None)
            other.args["joins"][position].set("side", side)
        counts = [node for node in _counts(other) if isinstance(node.expressions[0], exp.Star)]
        matched = _matched_column(tree.args["joins"][positions[-1]], kept.alias_or_name)
        if used and used <= {kept.alias_or_name} and not counts:
            continue  # the join is there for the match alone
        if matched is not None:
            for node in counts:
                node.set("expressions", [matched.copy()])
        more = _of_something(_run(other, reader, max(reader.limits.rows, len(rows)) + 1), tree)
        if not same_rows(more, rows):
            yield f"rows of {kept.name} without a match are left out; with them, {difference(rows, more)}"
            return


def _outside_of_on(tree: exp.Select) -> Iterator[exp.Column]:
    """The columns of a block, except those in ON."""
    for node in own_nodes(without(tree, "joins")):
        if isinstance(node, exp.Column):
            yield node


def _counts(tree: exp.Select) -> list[exp.Anonymous]:
    """The calls of COUNT with one argument in SELECT."""
    return [
        node
        for item in tree.expressions
        for node in item.find_all(exp.Anonymous)
        if node.name.lower() == "count" and len(node.expressions) == 1
    ]


def _matched_column(join: exp.Join, kept: str) -> exp.Column | None:
    """The column that is NULL if a row of the table ``kept`` has no match."""
    on = join.args.get("on")
    columns = [] if on is None else [node for node in on.find_all(exp.Column) if node.table not in ("", kept)]
    return columns[0] if columns else None


def _only_matched(tree: exp.Select, rows: pd.DataFrame, asked: _Asked) -> Iterator[str]:
    """Rows without a match that LEFT JOIN keeps, or that a subquery counts as 0."""
    if _cuts_groups(tree) or _ALSO_NONE.search(asked.question):
        return
    joins = [join for join in tree.args.get("joins") or [] if join.side == "LEFT" and join.args.get("on") is not None]
    if joins and not any(isinstance(node.parent, exp.Is) for node in own_nodes(tree) if isinstance(node, exp.Null)):
        other = tree.copy()
        for join in other.args["joins"]:
            if join.side == "LEFT":
                join.set("side", None)
        fewer = _run(other, asked.reader, max(asked.reader.limits.rows, len(rows)))
        if not same_rows(fewer, rows):
            kept = tree.args["from_"].this.name
            yield f"rows of {kept} without a match are there; without them, {difference(rows, fewer)}"
    for position, item in enumerate(tree.expressions):
        inner = item.unalias()
        if (
            isinstance(inner, exp.Subquery)
            and len(rows) > 1
            and any(map(is_aggregate, inner.this.find_all(exp.Anonymous)))
        ):
            none = rows.iloc[:, position].fillna(0).eq(0)
            if none.any() and not none.all():
                of = inner.this.args["from_"].this.name
                yield f"{none.sum():,} of {len(rows):,} rows have none of {of}; {_they_are(none)}"


def _they_are(none: pd.Series) -> str:
    return f"without them, there would be {counted(int((~none).sum()), 'row')} instead of {len(none):,}"


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


def _each_once(tree: exp.Select, rows: pd.DataFrame, asked: _Asked) -> Iterator[str]:
    """Rows that a join repeats, and that are counted or listed several times."""
    reader = asked.reader
    if not tree.args.get("joins") or tree.args.get("distinct") is not None or _cuts_groups(tree):
        return
    if not is_grouped(tree):
        lists_all = re.search(r"\ball\b", asked.question, re.IGNORECASE)
        if tree.args.get("limit") is None and not lists_all and len(rows) > (distinct := len(set(plain_rows(rows)))):
            yield f"the {len(rows):,} rows contain duplicates ({distinct:,} distinct)"
        return
    other = tree.copy()
    joined = {node.sql() for join in tree.args["joins"] for node in join.find_all(exp.Column)}  # counts of references
    counts = [node for node in _counts(other) if isinstance(node.expressions[0], exp.Column)]
    counts = [node for node in counts if node.expressions[0].sql() not in joined]
    if not counts:
        return
    for node in counts:
        node.set("expressions", [exp.Distinct(expressions=[node.expressions[0].copy()])])
    once = _run(other, reader, max(reader.limits.rows, len(rows)))
    if not same_rows(once, rows):
        what = ", ".join(sorted({written(node, reader.engine.dialect.name) for node in counts}))
        yield f"duplicates are counted; with {what}, {difference(rows, once)}"


def _equals_of_last(tree: exp.Select, rows: pd.DataFrame, asked: _Asked) -> Iterator[str]:
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
    more = _run(other, asked.reader, further)
    keys, shown = plain_rows(more.iloc[:, rows.shape[1] :]), plain_rows(more.iloc[:, : rows.shape[1]])
    last = len(rows) - 1
    if len(keys) > len(rows) and _is_scored(asked) and len(keys[last]) == 1:
        (here,), (there,) = keys[last], keys[last + 1]
        if all(isinstance(score, float | int) for score in (here, there)) and 0 < abs(here - there) <= CLOSE:
            yield f"the scores of rows {len(rows):,} and {len(rows) + 1:,} are close: {here:.2f} and {there:.2f}"
    equal = [row for row, key in zip(shown[last:], keys[last:], strict=True) if key == keys[last]]
    behind = len(equal) - 1
    if len(set(equal)) > 1:
        more_than = "" if behind + len(rows) < further else "at least "
        ties = counted(behind, "further row ties", "further rows tie")
        yield f"{more_than}{ties} with row {len(rows):,} in ORDER BY"


def _is_scored(asked: _Asked) -> bool:
    """Whether a model's scores decide the order of the rows."""
    if "sem_score" not in asked.sql:
        return False
    statement = asked.reader.read(asked.sql)
    if statement is None:
        return False
    tree = statement.tree
    order, names = tree.args.get("order"), named_items(tree) if isinstance(tree, exp.Select) else {}
    keys = [] if order is None else [names.get(key.this.name.casefold(), key.this) for key in order.expressions]
    return any(node.name.lower() == "sem_score" for key in keys for node in key.find_all(exp.Anonymous))


def _one_asked(tree: exp.Select, rows: pd.DataFrame, asked: _Asked) -> Iterator[str]:
    """Several rows where the question asks for one thing, as in "the driver who …"."""
    if is_grouped(tree) or not _ONE.search(asked.question) or _SEVERAL.search(asked.question):
        return
    if (several := len(set(plain_rows(rows)))) > 1:
        yield f"the question asks for one, and there are {several:,} rows"


def _sum_or_count(tree: exp.Select, rows: pd.DataFrame, asked: _Asked) -> Iterator[str]:
    """Whether a total is the number of rows, or the sum of a column of that name."""
    counts, total = _counts(tree), _TOTAL.search(asked.question)
    if not counts or total is None or _cuts_groups(tree):
        return
    noun = total[1].casefold().rstrip("s")
    names = {id: name for name, id in asked.reader.tables.items()}
    statement = asked.reader.read(written(tree, asked.reader.engine.dialect.name))
    tables = [] if statement is None else statement.known_tables(statement.tree)
    for alias, table in tables:
        for column in asked.reader.corpus.profile(table.id).columns:
            is_number = not column.private and column.family in ("integer", "real")
            if not is_number or noun not in column.name.casefold() or column.name.casefold().endswith("id"):
                continue
            other = tree.copy()
            summed = exp.column(
                exp.to_identifier(column.name, quoted=True), table=exp.to_identifier(alias, quoted=True)
            )
            for node in _counts(other):
                node.replace(exp.Anonymous(this="sum", expressions=[summed.copy()]))
            sums = _run(other, asked.reader, max(asked.reader.limits.rows, len(rows)))
            if not same_rows(sums, rows):
                yield f"rows are counted; with the sum of {names[table.id]}.{column.name}, {difference(rows, sums)}"
                return


def _without_value(tree: exp.Select, rows: pd.DataFrame, asked: _Asked) -> Iterator[str]:
    """Columns that are averaged or compared, and have no value in half of the rows or more."""
    where = conjuncts(tree.args.get("where"))
    averaged = [
        (node.expressions[0], where)
        for item in tree.expressions
        for node in item.find_all(exp.Anonymous)
        if node.name.lower() == "avg" and len(node.expressions) == 1 and is_aggregate(node)
    ]
    compared = [
        (test.this, [part for part in where if part is not test])
        for test in where
        if isinstance(test, exp.GT | exp.GTE | exp.LT | exp.LTE | exp.Between) and isinstance(test.this, exp.Column)
    ]
    for column, conditions in [*averaged, *compared]:
        if not isinstance(column, exp.Column):
            continue
        kept = [part for part in conditions if not (part.find(exp.Null) and column in part.find_all(exp.Column))]
        block = without(tree, "where", "group", "having", "order", "limit", "offset", "distinct")
        numbers = [exp.Anonymous(this="count", expressions=[what]) for what in (exp.Star(), column.copy())]
        block.set("expressions", [exp.alias_(number, f"n_{place}") for place, number in enumerate(numbers)])
        block = block.where(*(part.copy() for part in kept)) if kept else block
        there, known = _run(block, asked.reader, 1).iloc[0].tolist()
        if there > 1 and known * 2 <= there:
            yield f"{there - known:,} of {there:,} rows have no value in {column.name}"
            return


def _meant_by(key: exp.Expr, items: Sequence[exp.Expr], by_alias: dict[str, exp.Expr]) -> exp.Expr | None:
    """The expression of an entry of ORDER BY: itself, or the item of SELECT with its position or name."""
    if isinstance(key, exp.Literal) and key.is_int:
        return item_at(key, items)
    if isinstance(key, exp.Column) and not key.table:
        return by_alias.get(key.name.casefold(), key)
    has_alias = any(not node.table and node.name.casefold() in by_alias for node in key.find_all(exp.Column))
    return None if has_alias else key


def same_rows(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Whether two results have the same rows, in any order."""
    return len(one) == len(other) and Counter(plain_rows(one)) == Counter(plain_rows(other))


def difference(rows: pd.DataFrame, other: pd.DataFrame) -> str:
    """How another result differs, in a few words."""
    if len(rows) != len(other):
        return f"there would be {counted(len(other), 'row')} instead of {len(rows):,}"
    if other.size == 1:
        return f"it would be {plain_value(other.iat[0, 0])} instead of {plain_value(rows.iat[0, 0])}"
    changed = (Counter(plain_rows(other)) - Counter(plain_rows(rows))).total()
    return f"{changed:,} of {len(rows):,} rows would differ"
