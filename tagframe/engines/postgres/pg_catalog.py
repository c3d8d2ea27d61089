"""What a PostgreSQL database says about its tables, and how their rows become frames.

One look at its system catalogs is enough, however many tables there are. If ANALYZE has run and little was written
since, the server's statistics are used: rows, the share of nulls, distinct values, the most common ones and the bounds
of its histogram. Otherwise a table of few rows is read, and a sample of a larger one.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa

from tagframe.engines.base import ColumnStatistics, ForeignKey, TableShape, TableStatistics, quoted
from tagframe.engines.postgres.connection import Reading, Session, TookTooLong
from tagframe.engines.pushdown import column_of_sample
from tagframe.engines.sql_text import quoted_text, schema_and_name, table_key
from tagframe.errors import UnreadableTable, counted

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
    return ", ".join(map(quoted_text, names)) or "NULL"


def tables_now(session: Session, names: Iterable[str]) -> dict[str, ServerTable]:
    """Some tables, by what the engine calls them, without foreign keys; those that no longer exist are left out."""
    pairs = ", ".join(
        f"({quoted_text(schema)}, {quoted_text(name)})" for schema, name in map(schema_and_name, sorted(names))
    )
    where = f"""c.oid IN (SELECT k.oid FROM pg_class k JOIN pg_namespace s ON s.oid = k.relnamespace
        WHERE (s.nspname, k.relname) IN ({pairs or "(NULL, NULL)"}))"""
    known = _tables(*(session.rows(_within(query, where)) for query in (_TABLES, _COLUMNS, _UNIQUE)))
    return {table.key: table for table, _ in known}


# --- rows as frames ---------------------------------------------------------------------------------------------------
#
# Numbers, booleans, text, dates, moments and bytes are kept. A numeric of no fraction is an integer where 64 bits hold
# it, any other one a column of exact decimals. What has no pandas type (arrays, jsonb, ranges, intervals, times, UUIDs,
# addresses, geometry, enumerations, composites) is given as the server's own text for it; the column's declared type
# says what it is. A column of dates or moments that holds an infinity, or a day that Python's calendar does not have,
# is given as text too.

FLOATS = frozenset(("float4", "float8"))
TEXTS = frozenset(("text", "varchar", "bpchar", "name"))
MOMENTS = frozenset(("date", "timestamp", "timestamptz"))
_UNCHANGED = INTEGERS | FLOATS | MOMENTS | {"bool", "text", "varchar", "name", "bytea"}
_WHOLE_DIGITS = 18
"""Digits that any number of 64 bits has."""
_MOST_DIGITS = 38
"""Digits of Arrow's exact numbers."""
_FEW_ROWS = 10_000
_CALENDAR = {32: (-719162, 2932896), 64: (-(2**62), 2**63)}
"""By the bits of Arrow's type: the first and last value. For days since 1970, those of Python's calendar; for
microseconds, those that are not the server's infinities, which the driver gives as other values far outside."""


def travels_as(column: ServerColumn, alias: str = "", *, as_text: bool = False) -> str:
    """What is selected of a column."""
    name = f"{alias}{quoted(column.name)}"
    if as_text:
        return f"{name}::text"
    if column.base == "numeric" and is_whole(column):
        return f"{name}::int8"
    return name if column.base in _UNCHANGED else f"{name}::text"


def is_whole(column: ServerColumn) -> bool:
    """Whether a numeric has no fraction and fits 64 bits."""
    if column.base != "numeric" or column.modifier is None or column.modifier < 4:
        return False
    precision, scale = _digits(column.modifier)
    return scale == 0 and precision <= _WHOLE_DIGITS


def _digits(modifier: int) -> tuple[int, int]:
    """Precision and scale; a negative scale is one of more than a thousand."""
    return (modifier - 4) >> 16, (modifier - 4) & 0x7FF


def out_of_calendar(table: pa.Table) -> list[int]:
    """Which columns have dates and moments that Python cannot represent."""
    import pyarrow.compute as pc

    positions = []
    for at, column in enumerate(table.columns):
        if pa.types.is_date32(column.type) or pa.types.is_timestamp(column.type):
            first, last = _CALENDAR[column.type.bit_width]
            low, high = (end.value for end in pc.min_max(column).values())
            if low is not None and not first <= low <= high <= last:
                positions.append(at)
    return positions


def frame_of(table: pa.Table, columns: Sequence[ServerColumn]) -> pd.DataFrame:
    """Rows as the driver brought them, as a frame.

    Args:
        table: its columns in the order of ``columns``.
        columns: what they are in the server.
    """
    numbers = list(map(str, range(len(columns))))  # pyarrow mixes up columns of one name
    for at, column in enumerate(columns):
        if (exact := _decimals(table.column(at), column)) is not None:
            table = table.set_column(at, numbers[at], exact)
    # Several times as fast as a column at a time. To wake threads takes longer than to make few rows.
    frame: pd.DataFrame = table.rename_columns(numbers).to_pandas(use_threads=table.num_rows > _FEW_ROWS)
    for at, column in enumerate(columns):
        if (special := _special(table.column(at), column)) is not None:
            frame.isetitem(at, special.array)
    frame.columns = pd.Index([column.name for column in columns])
    return frame


def _decimals(values: pa.ChunkedArray, column: ServerColumn) -> pa.ChunkedArray | None:
    """A ``numeric`` of some digits, of which all are declared, as exact numbers; None for any other column."""
    if column.base != "numeric" or column.modifier is None or not pa.types.is_string(values.type):
        return None
    precision, scale = _digits(column.modifier)
    if not 0 <= scale <= precision <= _MOST_DIGITS:
        return None
    try:
        return values.cast(pa.decimal128(precision, scale))
    except pa.ArrowInvalid:  # NaN
        return None


def _special(values: pa.ChunkedArray, column: ServerColumn) -> pd.Series | None:
    """A column that needs another series than Arrow makes of it; None for the others."""
    if values.null_count and values.null_count == len(values):
        return pd.Series([None] * len(values), dtype=object)
    if column.base == "numeric" and pa.types.is_string(values.type):
        return pd.Series([None if cell is None else Decimal(cell) for cell in values.to_pylist()], dtype=object)
    if not values.null_count:
        return None
    masked = {
        pa.int16(): pd.Int16Dtype(), pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
    }  # fmt: skip
    return values.to_pandas(types_mapper=masked.get) if values.type in masked else None


_READ: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(INTEGERS, int),
    **dict.fromkeys(FLOATS, float),
    "numeric": Decimal,
    "bool": lambda text: text in ("t", "true"),
    "date": dt.date.fromisoformat,
    "timestamptz": lambda text: f"{text}:00" if text[-3:-2] in "+-" else text,
    "bytea": lambda text: bytes.fromhex(text.removeprefix("\\x")),
}


def read_text(column: ServerColumn, text: str) -> Any:
    """The value of a text in the server's statistics."""
    try:
        return _READ.get(column.base, str)(text)
    except ValueError:  # an infinity, a year before the first
        return text


# --- statistics -------------------------------------------------------------------------------------------------------

AT_ONCE = 500
"""Tables whose statistics are asked for together."""
SECONDS = 10.0
"""The time limit of a table's sample: a view has to be computed for it."""
_FEW_BYTES = 256 * 1024
"""Tables of at most this many bytes are read whole."""
_SAMPLE = 10_000
"""Rows of a sample, about."""
_PAGES, _MOST_OF_PAGES = 100, 50_000
"""Pages of a sample if rows are not known, and the rows that may be on them."""
_VALUES = 600_000
"""Values of the statistics that are read in total; for thousands of tables, a few of each column."""
_LEAST_VALUES = 12


def statistics_of(reads: Reading, tables: Sequence[ServerTable]) -> Iterator[TableStatistics | UnreadableTable]:
    """What the server knows about each."""
    values = max(_LEAST_VALUES, _VALUES // max(1, sum(len(table.columns) for table in tables)))
    for start in range(0, len(tables), AT_ONCE):
        some = tables[start : start + AT_ONCE]
        known = _stored(reads, [table for table in some if table.fresh], values)
        for table in some:
            if table.key in known and (statistics := _of_stored(table, known[table.key])) is not None:
                yield statistics
            elif table.kind in ("r", "m", "p") and table.size <= _FEW_BYTES:
                yield TableStatistics(int(table.rows or 0), None)
            else:
                try:
                    yield _of_sample(reads, table)
                except TookTooLong:
                    yield TableStatistics(None, ())
                except UnreadableTable as error:
                    yield error


def _stored(
    reads: Reading, tables: Sequence[ServerTable], values: int
) -> dict[str, dict[str, tuple[float, float, list[str], list[str], bool]]]:
    """The statistics that are stored, by table and column; tables without any are left out.

    Of a column: the share of nulls, ``n_distinct`` (below 0 a share of the rows), common values and bounds of the
    histogram, as many as may be read of each, and whether they are all.
    """
    if not tables:
        return {}
    by_schema: dict[str, list[str]] = defaultdict(list)
    for table in tables:
        by_schema[table.shape.database].append(table.shape.called)
    sought = " OR ".join(
        f"(schemaname = {quoted_text(schema)} AND tablename IN ({', '.join(map(quoted_text, names))}))"
        for schema, names in by_schema.items()
    )
    thinned = [
        f"CASE WHEN cardinality({name}) > {values} THEN ARRAY(SELECT {name}[1 + round(i * (cardinality({name}) - 1) / "
        f"{values - 1}.0)::int] FROM generate_series(0, {values - 1}) AS i) ELSE {name} END AS {name}"
        for name in ("common", "bounds")
    ]
    stored = f"""
SELECT schemaname::text AS s, tablename::text AS t, attname::text AS a, null_frac::float8 AS nulls,
    n_distinct::float8 AS n, coalesce(most_common_vals::text::text[], '{{}}') AS common,
    coalesce(histogram_bounds::text::text[], '{{}}') AS bounds, inherited
FROM pg_stats WHERE {sought}"""
    rows = reads.fetch(
        f"SELECT s, t, a, nulls, n, {', '.join(thinned)}, greatest(cardinality(common), cardinality(bounds)) "
        f"<= {values} AS whole FROM ({stored}) AS q ORDER BY inherited",  # of a partitioned table all parts win
        "the statistics",
    )
    keys = {(table.shape.database, table.shape.called): table.key for table in tables}
    known: dict[str, dict[str, tuple[float, float, list[str], list[str], bool]]] = {}
    for schema, name, column, *facts in zip(*(part.to_pylist() for part in rows.columns), strict=True):
        known.setdefault(keys[schema, name], {})[column] = (*facts,)
    return known


def _of_stored(
    table: ServerTable, known: Mapping[str, tuple[float, float, list[str], list[str], bool]]
) -> TableStatistics | None:
    """None if they say too little about a table that is small enough to be read."""
    rows = round(table.rows or 0)
    columns = []
    for column in table.columns:
        stored = known.get(column.name)
        if stored is None:  # a type that has no order, as json
            columns.append(ColumnStatistics(nulls=0 if column.filled else None))
            continue
        null_share, estimate, common_texts, bound_texts, complete = stored
        nulls = 0 if column.filled else round(null_share * rows)
        distinct = min(rows - nulls, round(estimate if estimate >= 0 else -estimate * rows))
        if (column.name,) in table.shape.unique:
            distinct = rows - nulls
        common, bounds = (
            [value for text in texts if text is not None and (value := read_text(column, text)) == value]  # NaN is not
            for texts in (common_texts, bound_texts)
        )
        values = list(dict.fromkeys([*common, *bounds]))
        if distinct and not values and table.size <= _FEW_BYTES:
            return None
        distinct = max(distinct, len(values)) if rows else 0
        is_whole = complete and bool(values) and distinct <= len(values)
        columns.append(
            ColumnStatistics(values, is_whole, nulls, distinct, *_ends([*common, *bounds[:1], *bounds[-1:]]))
        )
    return TableStatistics(rows, tuple(columns))


def _ends(known: Sequence[Any]) -> tuple[Any, Any]:
    """The histogram leaves out the most common values."""
    try:
        return (min(known), max(known)) if known else (None, None)
    except TypeError:
        return None, None


def _of_sample(reads: Reading, table: ServerTable) -> TableStatistics:
    rows, percent = table.rows, 100.0
    if table.kind in ("r", "m"):
        # Of a table that was never analysed only its size is known.
        percent = 100.0 * (1.5 * _SAMPLE / max(rows, 1.0) if rows is not None else _PAGES * 8192 / table.size)
    share = f" TABLESAMPLE SYSTEM ({percent:.6f}) REPEATABLE (1)" if percent < 50 else ""
    most = _SAMPLE if rows is not None or table.kind not in ("r", "m") else _MOST_OF_PAGES
    names = ", ".join(travels_as(column, as_text=column.base in MOMENTS) for column in table.columns)
    what = f"table {table.key!r}"
    sample = reads.fetch(f"SELECT {names or 'NULL'} FROM {table.in_sql}{share} LIMIT {most}", what)
    seen = sample.num_rows
    if rows is None:
        rows = seen * 100 / percent if share else seen if seen < most else _counted(reads, table.in_sql, what, seen)
    frame = frame_of(sample, table.columns) if table.columns else pd.DataFrame(index=range(seen))
    total = max(round(rows), seen)
    columns = tuple(_of_column(column, frame[column.name], total, table) for column in table.columns)
    return TableStatistics(total, columns)


def _counted(reads: Reading, table: str, what: str, seen: int) -> float:
    """The rows of a view, or of a table that may not be sampled."""
    try:
        return float(reads.fetch(f"SELECT count(*) AS n FROM {table}", what)["n"][0].as_py())
    except TookTooLong:  # at least what was seen
        return seen


def _of_column(column: ServerColumn, cells: pd.Series, total: int, table: ServerTable) -> ColumnStatistics:
    is_unique = (column.name,) in table.shape.unique
    statistics = column_of_sample(cells, total, 0 if column.filled else None, is_unique=is_unique)
    values = [read_text(column, value) if isinstance(value, str) else value for value in statistics.values]
    low, high = (min(values), max(values)) if values and len({*map(type, values)}) == 1 else (None, None)
    return replace(statistics, values=values, minimum=low, maximum=high)
