"""A statement with a limit on its rows."""

from __future__ import annotations

from tagframe.engines.sql_reader import trees_of
from tagframe.errors import UnsafeSQL


def limited(sql: str, rows: int, dialect: str) -> str:
    """The statement with a LIMIT, if it has none or a larger one; unchanged if it does not parse.

    >>> limited("SELECT a FROM t ORDER BY a -- the first", 3, "sqlite")
    'SELECT a FROM t ORDER BY a -- the first\\nLIMIT 3'
    >>> limited("SELECT a FROM t LIMIT 2", 3, "sqlite")
    'SELECT a FROM t LIMIT 2'
    """
    from sqlglot import exp

    text = sql.strip().rstrip(";").rstrip()
    try:
        statements = trees_of(text, dialect)
    except UnsafeSQL:
        return sql
    if len(statements) != 1 or not isinstance(tree := statements[0], exp.Query):
        return sql
    if not any(tree.args.get(part) for part in ("limit", "offset", "locks", "options")):
        return f"{text}\nLIMIT {rows}"
    own_limit = tree.args.get("limit")
    count = own_limit.expression if isinstance(own_limit, exp.Limit) else None
    if isinstance(count, exp.Literal) and count.is_int and int(count.this) <= rows:
        return text
    return f"SELECT * FROM (\n{text}\n) AS limited LIMIT {rows}"
