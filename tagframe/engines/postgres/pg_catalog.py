"""What a PostgreSQL database says about its tables: one look at its system catalogs, however many tables there are."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tagframe.engines.base import ForeignKey, TableShape, quoted
from tagframe.engines.sql_text import quoted_text, schema_and_name, table_key
from tagframe.errors import counted

if TYPE_CHECKING:
    from tagframe.engines.postgres.connection import Session


Row = Mapping[str, Any]
"""By the names of the query's columns."""

_SYSTEM = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"

_SCHEMAS = f"""
SELECT n.nspname::text AS name, has_schema_privilege(n.oid, 'USAGE') AS usable
FROM pg_namespace n WHERE {_SYSTEM} ORDER BY 1"""

# A partitioned table is one table; its counts are the sums over its leaves.
_TABLES = """
WITH RECURSIVE part(root, oid) AS (
    SELECT c.oid, c.oid FROM pg_class c
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND c.relnamespace = ANY({schemas})
    UNION ALL
    SELECT part.root, i.inhrelid FROM part JOIN pg_inherits i ON i.inhparent = part.oid
    JOIN pg_class c ON c.oid = part.root AND c.relkind = 'p'
), locked AS (  -- asking for their size would wait for the lock
    SELECT relation FROM pg_locks WHERE locktype = 'relation' AND mode = 'AccessExclusiveLock'
), counted AS (
    SELECT part.root,
        sum(greatest(l.reltuples, 0)::float8) AS rows,
        bool_or(l.reltuples < 0 AND l.relkind IN ('r', 'm', 'f')) AS unknown,
        sum(l.relpages)::float8 AS pages,
        sum(CASE WHEN l.relkind IN ('r', 'm') THEN CASE WHEN l.oid = ANY (ARRAY(SELECT relation FROM locked))
            THEN l.relpages * 8192 ELSE pg_relation_size(l.oid) END END)::float8 AS bytes,
        string_agg(concat_ws(',', l.relfilenode, pg_stat_get_tuples_inserted(l.oid), pg_stat_get_tuples_updated(l.oid),
            pg_stat_get_tuples_deleted(l.oid), extract(epoch FROM greatest(
                pg_stat_get_last_analyze_time(l.oid), pg_stat_get_last_autoanalyze_time(l.oid)))), ';'
            ORDER BY l.oid) AS state,
        sum(pg_stat_get_mod_since_analyze(l.oid))::float8 AS changes,
        bool_or(l.oid = part.root AND greatest(
            pg_stat_get_last_analyze_time(l.oid), pg_stat_get_last_autoanalyze_time(l.oid)) IS NOT NULL) AS analysed
    FROM part JOIN pg_class l ON l.oid = part.oid GROUP BY part.root
)
SELECT c.oid::int8 AS oid, n.nspname::text AS schema, c.relname::text AS name, c.relkind::text AS kind,
    counted.rows, coalesce(counted.unknown, false) AS unknown, counted.pages, coalesce(counted.bytes, 0) AS bytes,
    concat_ws('|', counted.state, (  -- pg_get_viewdef(c.oid) would wait for locks
        SELECT md5(r.ev_action::text) FROM pg_rewrite r WHERE r.ev_class = c.oid AND r.rulename = '_RETURN')) AS state,
    coalesce(counted.changes, 0) AS changes, coalesce(counted.analysed, false) AS analysed,
    coalesce(d.description, '') AS comment,
    has_table_privilege(c.oid, 'SELECT') AS readable
FROM counted JOIN pg_class c ON c.oid = counted.root JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_description d ON d.objoid = c.oid AND d.classoid = 'pg_class'::regclass AND d.objsubid = 0
ORDER BY 2, 3"""

# No column is read whose type is cast by a function of a role that is not a superuser: casting it would run that.
_CAST = """coalesce(nullif(t.typbasetype, 0), nullif(t.typelem, 0), t.oid) = ANY (ARRAY(
        SELECT k.castsource FROM pg_cast k JOIN pg_proc p ON p.oid = k.castfunc JOIN pg_roles o ON o.oid = p.proowner
        WHERE NOT o.rolsuper AND o.rolname <> current_user))"""
_COLUMNS = f"""
SELECT a.attrelid::int8 AS oid, a.attnum::int4 AS number, a.attname::text AS name,
    format_type(a.atttypid, a.atttypmod) AS declared,
    t.typtype::text AS kind, coalesce(b.typname, t.typname)::text AS base,
    CASE WHEN coalesce(b.typname, t.typname) = 'numeric' THEN
        coalesce(nullif(t.typtypmod, -1), a.atttypmod) END AS modifier,
    coalesce(k.collisdeterministic, true) AS exact, a.attnotnull AS filled,
    coalesce(d.description, '') AS comment
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_type b ON b.oid = t.typbasetype AND t.typtype = 'd'
LEFT JOIN pg_collation k ON k.oid = a.attcollation
LEFT JOIN pg_description d ON d.objoid = c.oid AND d.classoid = 'pg_class'::regclass AND d.objsubid = a.attnum
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
    AND c.relnamespace = ANY({{schemas}})
    AND (has_table_privilege(c.oid, 'SELECT') OR has_column_privilege(c.oid, a.attnum, 'SELECT'))
    AND NOT {_CAST}
ORDER BY 1, 2"""

# A table that others inherit from also has their rows, which its index does not cover.
_UNIQUE = """
SELECT i.indrelid::int8 AS oid, i.indisprimary AS is_primary,
    (SELECT string_agg(i.indkey[part]::text, ',' ORDER BY part)
        FROM generate_series(0, i.indnkeyatts - 1) part) AS columns
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
WHERE i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL
    AND (c.relkind = 'p' OR NOT c.relhassubclass)
    AND NOT c.relispartition AND c.relnamespace = ANY({schemas})
ORDER BY 1, i.indexrelid"""

_FOREIGN = """
SELECT k.conrelid::int8 AS oid, k.confrelid::int8 AS other, array_to_string(k.conkey, ',') AS columns,
    array_to_string(k.confkey, ',') AS others
FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
WHERE k.contype = 'f' AND k.conparentid = 0 AND NOT c.relispartition AND c.relnamespace = ANY({schemas})
ORDER BY 1, k.oid"""

_CLOSED = """
SELECT n.nspname::text AS name, count(*)::int8 AS tables,
    array_to_string((array_agg(c.relname::text ORDER BY c.relname))[1:5], ', ') AS called
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND n.nspname IN ({schemas})
    AND NOT has_table_privilege(c.oid, 'SELECT') AND NOT has_any_column_privilege(c.oid, 'SELECT')
GROUP BY 1 ORDER BY 1"""

_CAST_AWAY = f"""
SELECT n.nspname::text AS schema, c.relname::text AS name, a.attname::text AS column, format_type(t.oid, NULL) AS type
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
    AND n.nspname IN ({{schemas}})
    AND (has_table_privilege(c.oid, 'SELECT') OR has_column_privilege(c.oid, a.attnum, 'SELECT')) AND {_CAST}
ORDER BY 1, 2, a.attnum"""

INTEGERS = frozenset(("int2", "int4", "int8"))
"""Types of whole numbers."""
_QUERIES = _TABLES, _COLUMNS, _UNIQUE, _FOREIGN


@dataclass(frozen=True)
class ServerColumn:
    """A column as the server has it.

    Attributes:
        name: of the column.
        base: the name of its type; for a domain, the name of its base type; "" for other kinds than base types.
        modifier: for a numeric, the number that encodes its precision and scale.
        exact: whether texts of it are equal only if their bytes are.
        filled: whether it is NOT NULL.
    """

    name: str
    base: str
    modifier: int | None
    exact: bool
    filled: bool


@dataclass(frozen=True)
class ServerTable:
    """A table, view or materialised view as the server has it.

    Attributes:
        shape: its shape for the corpus, of the columns that may be read; ``unique`` has the primary key too.
        kind: "r" (table), "p" (partitioned), "v", "m" (views) or "f" (foreign).
        columns: those of the shape.
        rows: estimated; None if the server has no estimate.
        size: of its rows in bytes; 0 for views.
        fresh: whether the server's statistics describe the current rows, or nearly.
    """

    shape: TableShape
    kind: str
    columns: tuple[ServerColumn, ...]
    rows: float | None
    size: float
    fresh: bool

    @property
    def key(self) -> str:
        """Its name in the engine, unique among the tables of the server."""
        return self.shape.name

    @property
    def in_sql(self) -> str:
        """With its schema, in statements."""
        return f"{quoted(self.shape.database)}.{quoted(self.shape.called)}"

    @property
    def number(self) -> ServerColumn | None:
        """The primary key, where it is one column of integers."""
        column = self.column(self.shape.primary_key[0]) if len(self.shape.primary_key) == 1 else None
        return column if column is not None and column.base in INTEGERS else None

    def column(self, name: str) -> ServerColumn | None:
        """A column by its name; None where there is none."""
        return next((column for column in self.columns if column.name == name), None)


literal = quoted_text
"""A text in SQL, under ``standard_conforming_strings``."""


def state_of(session: Session, schemas: Sequence[str] | None) -> str:
    """A value that changes whenever anything changes that :func:`contents_of` finds; the server computes it."""
    known = session.rows(_SCHEMAS)
    parts = [
        f"(SELECT md5(string_agg(row::text, ' ')) FROM ({_within(query, _chosen(known, schemas))}) AS row)"
        for query in _QUERIES
    ]
    states = session.rows(f"SELECT concat_ws(' ', {', '.join(parts)}) AS state")
    return hashlib.sha256(f"{known}{states[0]['state']}".encode()).hexdigest()


def contents_of(session: Session, schemas: Sequence[str] | None) -> tuple[list[ServerTable], list[str]]:
    """The tables of some schemas, or of all, that may be read; and the names of all schemas but the system's own."""
    known = session.rows(_SCHEMAS)
    where = _chosen(known, schemas)
    tables = _tables(*(session.rows(_within(query, where)) for query in _QUERIES))
    return [table for table, may_read in tables if table.columns or may_read], [row["name"] for row in known]


def _chosen(known: Sequence[Row], schemas: Sequence[str] | None) -> str:
    chosen = [row["name"] for row in known if row["usable"] and (schemas is None or row["name"] in schemas)]
    return f"c.relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname IN ({_list(chosen)}))"


def _within(query: str, where: str) -> str:
    return query.replace("c.relnamespace = ANY({schemas})", where)


def closed_to(session: Session, schemas: Sequence[str] | None) -> list[str]:
    """What may not be read: schemas, tables of the other schemas, and columns that another role's function would
    cast."""
    known = session.rows(_SCHEMAS)
    wanted = [row for row in known if schemas is None or row["name"] in schemas]
    usable = _list(row["name"] for row in wanted if row["usable"])
    tables = session.rows(_CLOSED.replace("{schemas}", usable))
    columns = session.rows(_CAST_AWAY.replace("{schemas}", usable))
    return [
        *(f"schema {row['name']!r}: no right to use it" for row in wanted if not row["usable"]),
        *(
            f"{counted(row['tables'], 'table')} of schema {row['name']!r} "
            f"({row['called']}{', …' * (row['tables'] > 5)}): no right to read"
            for row in tables
        ),
        *(
            f"column {row['column']!r} of {table_key(row['schema'], row['name'])}: reading it would run a "
            f"function of a role that is not a superuser (a cast of its type, {row['type']})"
            for row in columns
        ),
    ]


def _tables(
    tables: Sequence[Row], columns: Sequence[Row], unique: Sequence[Row], foreign: Sequence[Row] = ()
) -> list[tuple[ServerTable, bool]]:
    """The tables of some rows of pg_class, and whether each may be read as a whole."""
    columns_of, unique_of, foreign_of = map(_by_table, (columns, unique, foreign))
    names_of = {row["oid"]: (row["schema"], row["name"]) for row in tables}

    def names(oid: int, numbers: str) -> tuple[str, ...] | None:
        """None where one of them may not be read."""
        known = {row["number"]: row["name"] for row in columns_of[oid]}
        named = [known[int(number)] for number in numbers.split(",") if int(number) in known]
        return tuple(named) if len(named) == numbers.count(",") + 1 else None

    result = []
    for row in tables:
        oid = row["oid"]
        keys = [(key["is_primary"], key_names) for key in unique_of[oid] if (key_names := names(oid, key["columns"]))]
        references = []
        for key in foreign_of[oid]:
            mine, theirs = names(oid, key["columns"]), names(key["other"], key["others"])
            if mine is not None and theirs is not None and key["other"] in names_of:
                schema, name = names_of[key["other"]]
                references.append(ForeignKey(mine, name, theirs, "" if schema == row["schema"] else schema))
        shape = TableShape(
            table_key(row["schema"], row["name"]),
            columns=tuple(column["name"] for column in columns_of[oid]),
            declared_types=tuple(column["declared"] for column in columns_of[oid]),
            primary_key=next((key_names for is_primary, key_names in keys if is_primary), ()),
            foreign_keys=tuple(dict.fromkeys(references)),
            called=row["name"],
            database=row["schema"],
            unique=tuple(key_names for _, key_names in keys),
            comment=row["comment"],
            column_comments=tuple(column["comment"] for column in columns_of[oid]),
        )
        own = tuple(map(_column, columns_of[oid]))
        state = repr((row["state"], row["rows"], shape, own))
        table = ServerTable(
            replace(shape, state=hashlib.sha256(state.encode()).hexdigest()),
            row["kind"],
            own,
            None if row["unknown"] or row["kind"] == "v" else _grown(row),
            row["bytes"],
            row["analysed"] and row["changes"] <= 50 + 0.1 * row["rows"],
        )
        result.append((table, row["readable"]))
    return result


def _by_table(rows: Sequence[Row]) -> dict[int, list[Row]]:
    groups: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["oid"]].append(row)
    return groups


def _column(row: Row) -> ServerColumn:
    base = row["base"] if row["kind"] in ("b", "d") else ""
    return ServerColumn(row["name"], base, row["modifier"], row["exact"], row["filled"])


def _grown(row: Row) -> float:
    """The number of rows that the server knows, scaled by the table's growth since then, as its planner does it."""
    pages = row["bytes"] / 8192
    return float(row["rows"] * pages / row["pages"]) if row["pages"] and pages > row["pages"] else float(row["rows"])


def _list(names: Iterable[str]) -> str:
    return ", ".join(map(literal, names)) or "NULL"


def tables_now(session: Session, names: Iterable[str]) -> dict[str, ServerTable]:
    """Some tables, by what the engine calls them, without foreign keys; those that no longer exist are left out."""
    pairs = ", ".join(f"({literal(schema)}, {literal(name)})" for schema, name in map(schema_and_name, sorted(names)))
    where = f"""c.oid IN (SELECT k.oid FROM pg_class k JOIN pg_namespace s ON s.oid = k.relnamespace
        WHERE (s.nspname, k.relname) IN ({pairs or "(NULL, NULL)"}))"""
    known = _tables(*(session.rows(_within(query, where)) for query in (_TABLES, _COLUMNS, _UNIQUE)))
    return {table.key: table for table, _ in known}
