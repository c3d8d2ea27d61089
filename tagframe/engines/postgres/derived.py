"""Which columns of a PostgreSQL database are computed from which others; see :mod:`tagframe.engines.sql_text`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from tagframe.engines.sql_text import Derivations, View, derivations, reads_by_text, table_key

if TYPE_CHECKING:
    from tagframe.engines.postgres.connection import Held

_OURS = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"

_RELATIONS = f"""
SELECT c.oid::int8 AS oid, n.nspname::text AS schema, c.relname::text AS name
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {_OURS}"""

# A view depends on all that it reads, also where it reads whole rows of it.
_READ = """
SELECT DISTINCT r.ev_class::int8 AS oid, d.refobjid::int8 AS source FROM pg_rewrite r
JOIN pg_class c ON c.oid = r.ev_class AND c.relkind IN ('v', 'm')
JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass
    AND d.refobjid <> r.ev_class"""

# A table has the rows of those that inherit from it, partitions too, and they have its columns.
_KIN = """
SELECT i.inhrelid::int8 AS oid, i.inhparent::int8 AS parent FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid AND c.relkind IN ('r', 'p', 'f')"""

_GENERATED = """
SELECT DISTINCT a.attrelid::int8 AS oid, a.attname::text AS name, s.attname::text AS source FROM pg_depend d
LEFT JOIN pg_attrdef f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
JOIN pg_attribute a ON a.attrelid = coalesce(f.adrelid, d.objid) AND a.attnum = coalesce(f.adnum, d.objsubid)
JOIN pg_attribute s ON s.attrelid = d.refobjid AND s.attnum = d.refobjsubid
WHERE d.refclassid = 'pg_class'::regclass AND d.refobjsubid > 0 AND a.attrelid = s.attrelid AND a.attnum <> s.attnum
    AND (f.oid IS NOT NULL OR (d.classid = 'pg_class'::regclass AND d.objsubid > 0))"""

# A column may have whole rows of a table as its cells.
_OF_TYPES = """
SELECT a.attrelid::int8 AS oid, a.attname::text AS name, a.atttypid::int8 AS type FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'c')
WHERE a.attnum > 0 AND NOT a.attisdropped AND a.atttypid >= 16384"""

_TYPES = """
SELECT t.oid::int8 AS oid, t.typrelid::int8 AS relation, t.typelem::int8 AS element, t.typbasetype::int8 AS base,
    coalesce(r.rngsubtype, 0)::int8 AS bound
FROM pg_type t LEFT JOIN pg_range r ON r.rngtypid = t.oid WHERE t.oid >= 16384"""

_DEFINITIONS = """
SELECT c.oid::int8 AS oid, pg_get_viewdef(c.oid) AS definition, (SELECT string_agg(a.attname, chr(1) ORDER BY a.attnum)
    FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns
FROM pg_class c WHERE c.oid IN ({oids})"""

# A view does not tell what a user's function reads. Functions of extensions read tables only if a text names them.
_CALLS = f"""
SELECT DISTINCT c.oid::int8 AS oid, p.proname::text AS name FROM pg_rewrite r
JOIN pg_class c ON c.oid = r.ev_class AND c.relkind IN ('v', 'm') JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_proc'::regclass
JOIN pg_proc p ON p.oid = d.refobjid AND p.provolatile <> 'i' AND p.oid >= 16384
WHERE {_OURS} AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid
    AND e.deptype = 'e')"""

_BY_TEXT = f"""
SELECT c.oid::int8 AS oid, pg_get_viewdef(c.oid) AS definition FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('v', 'm') AND {_OURS}
    AND pg_get_viewdef(c.oid) ~* '_to_xml|ts_stat|dblink|crosstab|connectby|pg_'"""


def derivations_of(held: Held, columns: Collection[tuple[str, str]]) -> Derivations:
    """What the database computes from columns: in views, generated columns, and tables that inherit."""
    rows = held.rows
    relations = rows(_RELATIONS)
    keys = {row["oid"]: table_key(row["schema"], row["name"]) for row in relations}
    oids = {f"{row['schema']}.{row['name']}": row["oid"] for row in relations}
    oids |= {key: oid for oid, key in keys.items()}
    below, kin = _pairs(rows(_READ), "source", "oid"), _pairs(rows(_KIN), "parent", "oid")
    for child, parents in _pairs(rows(_KIN), "oid", "parent").items():
        kin[child] |= parents
    generated: dict[tuple[int, str], list[str]] = defaultdict(list)
    for row in rows(_GENERATED):
        generated[row["oid"], row["source"].casefold()].append(row["name"])
    of_rows = _columns_of_rows(rows(_OF_TYPES), rows(_TYPES))
    reached = {oids[table] for table, _ in columns if table in oids}
    waiting = list(reached)
    while waiting:
        oid = waiting.pop()
        new = (below[oid] | kin[oid] | {other for other, _ in of_rows[oid]}) - reached
        reached |= new
        waiting += new
    wanted = reached & {view for views in below.values() for view in views}
    views = {
        row["oid"]: View(str(row["definition"]), "postgres", tuple(str(row["columns"]).split("\x01")))
        for row in rows(_DEFINITIONS.format(oids=", ".join(map(str, sorted(wanted))) or "NULL"))
    }

    def computed(table: str, column: str) -> Iterator[tuple[str, str]]:
        oid = oids.get(table, 0)
        for name in generated.get((oid, column.casefold()), ()):
            yield table, name
        for other, name in of_rows.get(oid, ()):
            if other in keys:
                yield keys[other], name
        for other in kin.get(oid, ()):
            if other in keys:
                yield keys[other], column
        for view in below.get(oid, ()):
            if view in keys and view in views:
                for name in views[view].shows(column):
                    yield keys[view], name

    unclear = {keys[row["oid"]]: f"calls the function {row['name']}" for row in rows(_CALLS)}
    for row in rows(_BY_TEXT):
        if text := reads_by_text(str(row["definition"])):
            unclear.setdefault(keys[row["oid"]], f"reads {text}")
    return derivations(columns, computed, unclear)


def _columns_of_rows(columns: list[dict[str, Any]], types: list[dict[str, Any]]) -> dict[int, set[tuple[int, str]]]:
    """By relation: the columns, relation and name, whose cells have rows of it, in arrays, domains and types too."""
    by_oid = {row["oid"]: row for row in types}
    parts: dict[int, list[int]] = defaultdict(list)
    for row in columns:
        parts[row["oid"]].append(row["type"])
    found: dict[int, set[tuple[int, str]]] = defaultdict(set)
    for row in columns:
        waiting, seen = [row["type"]], set[int]()
        while waiting:
            type = waiting.pop()
            if type in seen or type not in by_oid:
                continue
            seen.add(type)
            known = by_oid[type]
            if known["relation"]:
                found[known["relation"]].add((row["oid"], row["name"]))
                waiting += parts[known["relation"]]
            waiting += [known["element"], known["base"], known["bound"]]
    return found


def _pairs(rows: list[dict[str, Any]], one: str, other: str) -> dict[int, set[int]]:
    found: dict[int, set[int]] = defaultdict(set)
    for row in rows:
        found[row[one]].add(row[other])
    return found
