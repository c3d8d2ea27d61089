"""The tables that a statement names, resolved by scope as the engine does it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from tagframe.engines.base import Dialect, quoted
from tagframe.engines.sql_text import trees_of
from tagframe.errors import UnsafeSQL

if TYPE_CHECKING:
    from sqlglot import exp

T = TypeVar("T")


def named_tables(sql: str, tables: Mapping[str, T], dialect: Dialect) -> dict[str, T]:
    """The tables that a statement reads; columns, aliases and texts with the same name do not count.

    None for a statement that does not parse; running it gives the error.

    Args:
        sql: one statement.
        tables: by their names.
        dialect: the SQL dialect of the engine.
    """
    from sqlglot import exp

    if (statement := _parsed(sql, dialect)) is None:
        return {}
    found = set()
    for table, entries in tables_and_entries(statement, dialect):
        if (name := dialect.fold(table.name)) not in entries:
            found.add(name)
    for node in statement.find_all(exp.In):
        # SQLite takes the name behind IN for a table.
        if isinstance(field := node.args.get("field"), exp.Column | exp.Identifier):
            found.add(dialect.fold(field.name))
    return {name: table for name, table in tables.items() if dialect.fold(name) in found}


def unknown_tables(sql: str, tables: Iterable[str], dialect: Dialect) -> list[tuple[str, str]]:
    """The tables that a statement names and that are not among these: database, or "", and name."""
    if (statement := _parsed(sql, dialect)) is None:
        return []
    known = frozenset(map(dialect.fold, tables))
    return [
        (table.db, table.name)
        for table, entries in tables_and_entries(statement, dialect)
        if table.db or dialect.fold(table.name) not in known | entries
    ]


def with_known_names(sql: str, tables: Mapping[str, str], dialect: Dialect) -> str:
    """A statement with ``database.table`` replaced by the name of the table here; the rest is unchanged.

    Args:
        sql: the statement; if it does not parse, it is returned unchanged.
        tables: name in SQL → table id, which is ``database.table``.
        dialect: the SQL dialect of the engine.
    """
    from sqlglot import exp

    if "." not in sql or (statement := _parsed(sql, dialect)) is None:
        return sql
    names = {dialect.fold(id): name for name, id in tables.items()}
    dotted = [
        (table, names[full])
        for table in statement.find_all(exp.Table)
        if not table.args.get("catalog") and (full := _dotted(table.args.get("db"), table.this, dialect)) in names
    ]
    if not dotted:
        return sql
    sharing: dict[str, set[str]] = defaultdict(set)
    for table, name in dotted:
        sharing[dialect.fold(table.name)].add(name)
    edits = []
    for table, name in dotted:
        # Its columns may be called by its bare name.
        needs_alias = "." in name and not table.alias and len(sharing[dialect.fold(table.name)]) == 1
        alias = f" AS {quoted(table.name)}" if needs_alias else ""
        edits.append((table.args["db"], table.this, f"{quoted(name)}{alias}"))
    for column in statement.find_all(exp.Column):
        full = _dotted(column.args.get("db"), column.args.get("table"), dialect)
        if full in names and not column.args.get("catalog"):
            bare = column.args["table"].name
            own = names[full] if len(sharing[dialect.fold(bare)]) > 1 else bare
            edits.append((column.args["db"], column.args["table"], quoted(own)))
    for first, last, text in sorted(edits, key=lambda edit: -edit[0].meta["start"]):
        sql = f"{sql[: first.meta['start']]}{text}{sql[last.meta['end'] + 1 :]}"
    return sql


def _parsed(sql: str, dialect: Dialect) -> exp.Expr | None:
    try:
        trees = trees_of(sql, dialect.name)
    except UnsafeSQL:
        return None
    return trees[0] if trees else None


def _dotted(database: exp.Expr | None, table: exp.Expr | None, dialect: Dialect) -> str:
    return dialect.fold(f"{database.name}.{table.name}") if database is not None and table is not None else ""


def tables_and_entries(statement: exp.Expr, dialect: Dialect) -> Iterator[tuple[exp.Table, frozenset[str]]]:
    """Each table that is named, with the names of the WITH entries that are visible there.

    They are visible in the query of the WITH, and in its entries as the dialect defines it. Elsewhere the engine would
    look for a table, or a file, with that name.
    """
    from sqlglot import exp

    waiting: list[tuple[exp.Expr, frozenset[str]]] = [(statement, frozenset())]
    while waiting:
        node, names = waiting.pop()
        if isinstance(node, exp.Table):
            yield node, names
        clause = node.args.get("with_")
        if isinstance(clause, exp.With):
            inside = names
            for entry, seen in zip(clause.expressions, _seen_by_entries(clause, dialect), strict=True):
                waiting.append((entry, names | seen))
                inside |= {dialect.fold(entry.alias_or_name)}
            names = inside
        waiting += [(child, names) for child in node.iter_expressions() if child is not clause]


def _seen_by_entries(clause: exp.With, dialect: Dialect) -> Iterator[frozenset[str]]:
    """For each entry of a WITH, the names of the entries that are visible in it."""
    from sqlglot import exp

    own = [dialect.fold(entry.alias_or_name) for entry in clause.expressions]
    for position, entry in enumerate(clause.expressions):
        if dialect.entries_seen == "all" or (dialect.entries_seen == "all if recursive" and clause.recursive):
            yield frozenset(own)
        else:
            calls_itself = clause.recursive and isinstance(entry.this, exp.SetOperation)
            yield frozenset(own[: position + calls_itself])
