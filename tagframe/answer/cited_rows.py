"""The source rows of a statement's result, and the conditions that leave no rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pandas as pd
from sqlglot import exp

from tagframe.answer.alternatives import Comparison
from tagframe.answer.guard import Reader
from tagframe.answer.lm_sql.blocks import is_column_of
from tagframe.answer.row_counts import unique_keys
from tagframe.answer.sql_tree import aggregates, clause_keys, column_of, conjuncts, is_grouped, parsed, without, written
from tagframe.errors import SQLFailed, UnsafeSQL

CITED = 1_000
"""The most rows that are cited of one table."""
_COLUMNS = ["table", "key", "value", "row"]
_AFTER_WHERE = ("group", "having", "order", "limit", "offset", "windows")


def sources_of(sql: str, reader: Reader) -> pd.DataFrame:
    """The source rows of a result, by their keys.

    Rows are cited for the tables in the FROM of the statement itself. For tables inside its subqueries, and tables
    without a key, only the table is cited. For counts and sums, the cited rows are all rows that pass the conditions
    and belong to a group of the result.

    Args:
        sql: a statement that has run.
        reader: that ran it.

    Returns:
        A frame with a row for each cited row, at most 1,000 per table: ``table`` (its id), ``key`` (the names of its
        key columns), ``value`` (their values), ``row`` (the position of its row in the result, if there is just one).
        A table whose rows could not be read within the limits has a key and no value.
    """
    statement = reader.read(sql)
    cited: list[tuple[str, str | None, str | None, int | None]] = []
    if statement is not None and isinstance(statement.tree, exp.Select):
        for alias, table in statement.known_tables(statement.tree):
            keys = next(iter(unique_keys(reader.corpus.profile(table.id))), ())
            rows = _cited(statement.tree, alias, keys, reader) if keys else []
            for value, row in [(None, None)] if rows is None else rows:
                cited.append((table.id, ", ".join(keys), value, row))
    found = {table for table, *_ in cited}
    cited += [(table, None, None, None) for table in dict.fromkeys(reader.named(sql).values()) if table not in found]
    frame = pd.DataFrame(cited, columns=_COLUMNS)
    return frame.astype({"table": "string", "key": "string", "value": "string", "row": "Int64"})


def _cited(tree: exp.Select, alias: str, keys: Sequence[str], reader: Reader) -> list[tuple[str, int | None]] | None:
    """Values of a table's key, each with its row in the result; None if they cannot be read within the limits."""
    by_row = not is_grouped(tree) and tree.args.get("distinct") is None
    visible = [exp.alias_(column_of(key, alias), f"key_{position}") for position, key in enumerate(keys)]
    if by_row:
        # The items of SELECT are kept, since ORDER BY may name them.
        block = without(tree)
        block.set("expressions", [*visible, *block.expressions])
    else:
        block = without(tree, *_AFTER_WHERE)
        if (found := _groups(tree, reader)) is not None:
            groups, same = found
            block = block.join(groups, join_type="cross").where(*same)
        block.set("expressions", visible)
        block.set("distinct", exp.Distinct())
    inner = written(block, reader.engine.dialect.name)
    columns = ", ".join(f"key_{position}" for position in range(len(keys)))
    cut = f"SELECT {columns} FROM ({inner}) AS cited LIMIT {CITED}"
    try:
        rows = reader.run(cut, replace(reader.limits, rows=CITED))
    except (SQLFailed, UnsafeSQL):
        return None
    values = [", ".join("NULL" if pd.isna(cell) else str(cell) for cell in row) for row in rows.itertuples(index=False)]
    return [
        (value, position if by_row else None)
        for position, value in enumerate(values)
        if not all(pd.isna(cell) for cell in rows.iloc[position])  # the missing side of an outer join
    ]


def _groups(tree: exp.Select, reader: Reader) -> tuple[exp.Subquery, list[exp.Expr]] | None:
    """The groups that HAVING and LIMIT leave, and the conditions that a row is in one; None if all groups are left.

    The groups are computed once, as a table. As a condition on each row, engines compute them for each row.
    """
    group = tree.args.get("group")
    if group is None or (tree.args.get("having") is None and tree.args.get("limit") is None):
        return None
    keys = clause_keys(tree, "group", partial(is_column_of, tree, reader))
    if keys is None:
        return None
    inner = without(tree, "with_")
    names = [f"group_{position}" for position in range(len(keys))]
    named = [exp.alias_(key.copy(), name) for key, name in zip(keys, names, strict=True)]
    inner.set("expressions", [*named, *inner.expressions])
    # That two values are equal, or both NULL.
    equal = exp.Is if reader.engine.dialect.name == "sqlite" else exp.NullSafeEQ
    same: list[exp.Expr] = [
        equal(this=exp.column(name, "in_result"), expression=key.copy()) for key, name in zip(keys, names, strict=True)
    ]
    # Only the keys: another column's name would be ambiguous beside the statement's own.
    return exp.select(*names).from_(inner.subquery("grouped")).subquery("in_result"), same


def why_empty(sql: str, reader: Reader, seconds: float = 0.0) -> str:
    """The conditions of a statement that leave no row, in words for the model that wrote it.

    Args:
        sql: the statement.
        reader: that ran it.
        seconds: that it took; all counts together take as long, and a second at least.
    """
    tree = parsed(sql, reader.engine.dialect.name)
    described = "The statement gave no rows, or only NULL."
    if not isinstance(tree, exp.Select) or tree.args.get("from_") is None:
        return described
    where, having = conjuncts(tree.args.get("where")), conjuncts(tree.args.get("having"))
    within = Comparison(pd.DataFrame(), reader, seconds)
    left = [_count(tree, where[:position], within) for position in range(len(where) + 1)]
    lines = [f"Its FROM has {left[0]} rows."]
    lines += [
        f"{number} are left where {_excerpt(part, reader)}." for part, number in zip(where, left[1:], strict=True)
    ]
    if having:
        lines.append(f"Its groups are then held to {' AND '.join(_excerpt(part, reader) for part in having)}.")
    return f"{described} {' '.join(lines)}"


def _count(tree: exp.Select, where: Sequence[exp.Expr], within: Comparison) -> str:
    """The number of rows that pass some conditions, in words; "?" if it is not known in time."""
    block = without(tree, "where", "distinct", *_AFTER_WHERE)
    block.set("expressions", [exp.alias_(exp.Literal.number(1), "one")])
    if any(aggregates(part) for part in where):
        return "?"
    block = block.where(*(part.copy() for part in where)) if where else block
    inner = written(block, within.reader.engine.dialect.name)
    counted = within.run(f"SELECT count(*) AS n FROM ({inner} LIMIT 1000000) AS counted", 1)
    return "?" if counted is None else f"{counted['n'].iloc[0]:,}"


def _excerpt(part: exp.Expr, reader: Reader) -> str:
    text = written(part, reader.engine.dialect.name)
    return text if len(text) <= 300 else f"{text[:300]}…"
