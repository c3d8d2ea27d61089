"""Some tables of a PostgreSQL database as they are now.

What is known about them is kept as long as the system catalogs say that they are the same. Each row of the catalogs has
the number of the transaction that wrote it, so a table that is renamed or altered, or gains or loses a key, has another
number.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tagframe.engines.postgres.pg_catalog import ServerTable, literal, some_tables

if TYPE_CHECKING:
    from tagframe.engines.postgres.connection import Held, Server

QualifiedName = tuple[str, str]
"""Schema and name."""

_TABLES = """
SELECT c.oid::int8 AS oid, n.nspname::text AS schema, c.relname::text AS name, c.relkind::text AS kind,
    0::float8 AS rows, true AS unknown, 0::float8 AS pages, 0::float8 AS bytes, '' AS state, 0::float8 AS changes,
    false AS analysed, '' AS comment, has_table_privilege(c.oid, 'SELECT') AS readable
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND (n.nspname, c.relname) IN ({names})"""

_STATE = """
SELECT md5(string_agg(concat_ws('.', c.oid, n.oid, n.xmin, c.xmin,
    (SELECT string_agg(concat_ws('.', a.attnum, a.xmin), ',' ORDER BY a.attnum)
        FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0),
    (SELECT string_agg(concat_ws('.', i.indexrelid, i.xmin), ',' ORDER BY i.indexrelid)
        FROM pg_index i WHERE i.indrelid = c.oid)), ';' ORDER BY c.oid)) AS state
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE (n.nspname, c.relname) IN ({names})"""

_MOST_KEPT = 200
_lock = threading.Lock()
_kept: dict[tuple[str, frozenset[QualifiedName]], Kept] = {}


@dataclass(frozen=True)
class Kept:
    """What was known about some tables.

    Attributes:
        tables: by what the engine calls them.
        check: a statement that fails (:data:`~tagframe.engines.postgres.pool.UNLIKE`) if they have changed.
    """

    tables: dict[str, ServerTable]
    check: str


def tables_now(held: Held, names: Collection[QualifiedName]) -> dict[str, ServerTable]:
    """Some tables, by what the engine calls them; those that no longer exist are left out.

    Their counts and foreign keys are not looked up.
    """
    found = held.rows(_of(_TABLES, names))
    return {table.key: table for table in some_tables(held, found)}


def kept(server: Server, names: Collection[QualifiedName]) -> Kept | None:
    """What was known about them when they were last read."""
    with _lock:
        return _kept.get((server.conninfo, frozenset(names)))


def keep(held: Held, names: Collection[QualifiedName]) -> dict[str, ServerTable]:
    """As :func:`tables_now`, and kept.

    Args:
        held: a connection in a transaction of one snapshot, so that what is kept belongs to the state for which it is
            kept.
        names: of the tables.
    """
    query = _of(_STATE, names)
    state = held.rows(query)[0]["state"]
    tables = tables_now(held, names)
    same = f"coalesce(({query}), '') = {literal(state or '')}"
    known_as = (held.server.conninfo, frozenset(names))
    with _lock:
        _kept.pop(known_as, None)
        _kept[known_as] = Kept(tables, f"SELECT 1 / (CASE WHEN {same} THEN 1 ELSE 0 END)")
        while len(_kept) > _MOST_KEPT:
            del _kept[next(iter(_kept))]
    return tables


def _of(query: str, names: Collection[QualifiedName]) -> str:
    pairs = ", ".join(f"({literal(schema)}, {literal(name)})" for schema, name in sorted(names))
    return query.strip().replace("{names}", pairs)
