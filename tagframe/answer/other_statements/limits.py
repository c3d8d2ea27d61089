"""Rows that LIMIT leaves out."""

from __future__ import annotations

from sqlglot import exp

from tagframe.answer.alternatives import Doubt, difference
from tagframe.answer.generation import plain_rows
from tagframe.answer.other_statements.subject import Found, Subject
from tagframe.answer.sql_tree import clause_keys, without
from tagframe.errors import counted

_LARGE_LIMIT = 200
"""A larger LIMIT bounds the rows, and ranks nothing."""


def limits(subject: Subject) -> Found:
    """Rows that LIMIT leaves out: all of them where it ranks nothing, else those that rank like the last one."""
    tree = subject.select
    size, limit = len(subject.rows), None if tree is None else tree.args.get("limit")
    if tree is None or limit is None or tree.args.get("offset") is not None or not size:
        return
    if not isinstance(limit.expression, exp.Literal) or limit.expression.this != str(size):
        return
    if size > _LARGE_LIMIT and limit.expression.this not in subject.question.replace(",", ""):
        whole = without(tree, "limit")
        rest = subject.sql(without(whole, "order"))
        count = subject.comparison.run(f"SELECT count(*) AS n FROM ({rest}) AS counted", 1)
        if count is not None and (n := int(count["n"].iloc[0])) > size:
            words, sql = f"LIMIT {size:,} leaves {n - size:,} of {n:,} rows out; without it, ", subject.sql(whole)
            if (every := subject.comparison.run(sql, n)) is not None:
                yield Doubt("limit", f"{words}{difference(subject.rows, every)}", sql, every)
        return
    yield from _ties(subject, tree)


def with_order(tree: exp.Select) -> exp.Select | None:
    """A block with what it is ordered by as further columns; None if that is not known, or no order."""
    keys, other = clause_keys(tree, "order", lambda name: False), tree.copy()
    if not keys or tree.args.get("distinct") is not None:
        return None
    for key in keys:
        other.append("expressions", exp.alias_(key.copy(), key.sql(normalize_functions=False), quoted=True))
    return other


def _ties(subject: Subject, tree: exp.Select) -> Found:
    rows, other, size = subject.rows, with_order(tree), len(subject.rows)
    if other is None:
        return
    further = size + 1000
    other.set("limit", exp.Limit(expression=exp.Literal.number(further)))
    more = subject.run(other, further)
    if more is None or len(more) <= size:
        return
    keys, cells = plain_rows(more.iloc[:, rows.shape[1] :]), plain_rows(more.iloc[:, : rows.shape[1]])
    behind = sum(key == keys[size - 1] for key in keys[size:])
    equal = {row for row, key in zip(cells[size - 1 :], keys[size - 1 :], strict=True) if key == keys[size - 1]}
    if len(equal) > 1:
        whole = tree.copy()
        whole.set("limit", exp.Limit(expression=exp.Literal.number(size + behind)))
        more_than = "" if behind + size < further else "at least "
        ties = counted(behind, "further row ties", "further rows tie")
        with_ties = more.iloc[: size + behind, : rows.shape[1]]
        yield Doubt("tie", f"{more_than}{ties} with row {size:,} in ORDER BY", subject.sql(whole), with_ties)
