"""How hard a statement is by Spider's rules (Yu et al., 2018), as in MURRE's table 6 (section 3.4)."""

from __future__ import annotations

from typing import Any

import sqlglot
from sqlglot import exp

DEVIATIONS = {
    "MURRE: section 3.4": (
        "Spider's rules of hardness are applied to another parser's tree: 246, 444, 187 and 157 of its 1,034 "
        "questions are easy, medium, hard and extra hard; 248, 446, 174 and 166 by its own program"
    ),
}
"""What is not as printed, or not printed, by paper and place; ``docs/papers.md`` has the same."""

LEVELS = ("easy", "medium", "hard", "extra")
_SETS = (exp.Union, exp.Intersect, exp.Except)


def hardness(sql: str) -> str | None:
    """The level of a statement: one of :data:`LEVELS`; None if it cannot be read.

    As in Spider's evaluation, only the outermost statement is counted, the first of a union: its clauses, joins, "or"
    and "like"; the statements nested in it or set beside it; and whether it has several aggregates, columns, conditions
    or groups.

    >>> hardness("SELECT name FROM singer"), hardness("SELECT x FROM a JOIN b WHERE y = 1 GROUP BY x")
    ('easy', 'hard')
    """
    try:
        tree = sqlglot.parse_one(sql, dialect="sqlite")
    except sqlglot.errors.SqlglotError:
        return None
    nested = sum(1 for _ in tree.find_all(*_SETS))
    while isinstance(tree, _SETS):
        tree = tree.this
    if not isinstance(tree, exp.Select):
        return None
    nested += sum(1 for select in _own(tree, exp.Select) if select is not tree)
    return _level(_clauses(tree), nested, _several(tree))


def _own(tree: exp.Select, *kinds: Any) -> list[Any]:
    """The parts of a statement, without those inside nested ones (which are parts themselves)."""
    parts = tree.walk(prune=lambda node: isinstance(node, exp.Select) and node is not tree)
    return [part for part in parts if isinstance(part, kinds)]


def _conditions(tree: exp.Select) -> list[Any]:
    """The conditions of WHERE."""
    where = tree.args.get("where")
    if where is None:
        return []
    joined = where.this.flatten() if isinstance(where.this, exp.And | exp.Or) else [where.this]
    parts: list[Any] = []
    for part in joined:
        parts += [*part.flatten()] if isinstance(part, exp.And | exp.Or) else [part]
    return parts


def _clauses(tree: exp.Select) -> int:
    """Spider's first component."""
    clauses = sum(tree.args.get(name) is not None for name in ("where", "group", "order", "limit"))
    tables = len(tree.args.get("joins") or [])
    return clauses + tables + len(_own(tree, exp.Or)) + len(_own(tree, exp.Like))


def _several(tree: exp.Select) -> int:
    """Spider's other components: how many of aggregates, columns, conditions and groups are more than one."""
    group = tree.args.get("group")
    counts = (
        len(_own(tree, exp.AggFunc)),
        len(tree.expressions),
        len(_conditions(tree)),
        len(group.expressions) if group is not None else 0,
    )
    return sum(count > 1 for count in counts)


def _level(clauses: int, nested: int, several: int) -> str:
    if clauses <= 1 and not several and not nested:
        return "easy"
    if not nested and ((several <= 2 and clauses <= 1) or (clauses <= 2 and several < 2)):
        return "medium"
    if not nested and ((several > 2 and clauses <= 2) or (2 < clauses <= 3 and several <= 2)):
        return "hard"
    return "hard" if clauses <= 1 and not several and nested <= 1 else "extra"
