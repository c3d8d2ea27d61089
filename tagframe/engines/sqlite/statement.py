"""Untrusted statements in SQLite: over a file in place, over copies of other tables, or over both."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
from sqlglot import TokenType, exp
from sqlglot.dialects.sqlite import SQLite

from tagframe.engines.base import Dialect, Engine, Readable, UntrustedStatement, quoted
from tagframe.engines.cells import typed_frame
from tagframe.engines.sent_rows import sent_rows
from tagframe.engines.sql_reader import parse
from tagframe.engines.sqlite.worker import AGGREGATES, MOMENT, ascii_lower, compare_moments
from tagframe.engines.worker_pool import Kind, answered, plain
from tagframe.errors import SQLFailed, did_you_mean

# --- frames as relations, which are sent with a statement -------------------------------------------------------------

COLLATED = b"collated"
"""In the metadata of a column: the collation with which it is compared."""
LOOKUP = b"looked up by"
"""In the metadata of a table: the column that has an index wherever it is copied to."""
_PLAIN: tuple[Any, ...] = (bool, int, float, str, bytes)


def relation(frame: pd.DataFrame) -> pa.Table:
    """A frame as a table whose columns are numbers, texts or bytes: times are texts as SQLite's own functions write
    them, durations their seconds, and other objects their texts.

    Raises:
        SQLFailed: a number that SQLite does not have: an integer beyond 64 bits, or a decimal of too many digits.
    """
    arrays, fields = [], []
    for name, cells in frame.items():
        try:
            arrays.append(pa.array(storable(cells), from_pandas=True))
        except OverflowError as error:
            raise SQLFailed(
                f"column {str(name)!r} holds {error if isinstance(error, _Inexact) else 'an integer beyond 64 bits'}: "
                f"SQLite has no such number. Give the frame with it as text, frame.astype({{{str(name)!r}: str}})"
            ) from error
        marks = {COLLATED: MOMENT} if _are_moments(cells) or _are_written_with_t(cells) else None
        fields.append(pa.field(str(name), arrays[-1].type, metadata=marks))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


class _Inexact(OverflowError):
    """A number that no float is."""


def _are_moments(values: pd.Series) -> bool:
    """Whether all cells are days or times of days."""
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return True
    is_object = values.dtype == object and pd.api.types.infer_dtype(values, skipna=True) in ("date", "datetime")
    return is_object and not values.isna().all()


def _are_written_with_t(values: pd.Series) -> bool:
    """Whether all cells are texts of moments, some with a T before the time as in ISO 8601; SQLite has a blank."""
    if not pd.api.types.is_string_dtype(values.dtype):
        return False
    filled = values.dropna()
    is_first = len(filled) > 0 and isinstance(filled.iloc[0], str) and _MOMENT.fullmatch(filled.iloc[0])
    cells = list(filled.unique()) if is_first else []
    return all(isinstance(cell, str) and _MOMENT.fullmatch(cell) for cell in cells) and any(
        "T" in cell for cell in cells
    )


_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
)


def looked_up_by(table: pa.Table, column: str) -> pa.Table:
    """The table, with an index on a column wherever it is copied to."""
    return table.replace_schema_metadata({LOOKUP: column})


def storable(values: pd.Series) -> pd.Series | list[Any]:
    """A column whose cells are numbers, or all texts, or all bytes, beside nulls."""
    if values.dtype.kind in "iufb":
        return values
    cells = [None if null else _cell(cell) for cell, null in zip(values, values.isna(), strict=True)]
    if _are_moments(values):
        is_of_days = all(cell is None or cell.endswith(" 00:00:00") for cell in cells)
        return [cell and cell[:10] for cell in cells] if is_of_days else cells
    kinds = set(map(type, cells)) - {type(None)}
    if kinds == {int, float}:
        return [None if cell is None else _exact(cell) for cell in cells]
    if kinds == {str} or len(kinds) > 1:
        return [None if cell is None else _text(cell) for cell in cells]
    return cells


def _cell(value: Any) -> Any:
    """A number, text or bytes of Python's own."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Decimal):  # SQLite would compare its text as a text; one with a point divides as a real number
        is_whole = value.is_finite() and value.as_tuple().exponent == 0
        return int(value) if is_whole and abs(value) < 2**63 else _exact(value)
    plain = next((kind for kind in _PLAIN if isinstance(value, kind)), None)
    if plain is not None:
        return value if type(value) is plain else plain(value)
    if isinstance(value, dt.datetime):
        return (value if value.tzinfo is None else value.astimezone(dt.UTC)).isoformat(" ")
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, list | tuple | dict | np.ndarray):
        with suppress(TypeError):  # keys that are no texts
            return json.dumps(value, ensure_ascii=False, default=_in_json)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _in_json(value: Any) -> Any:
    """A part of a list, or of an object, that JSON does not have; arrays have NaN where a number is missing."""
    if isinstance(value, np.ndarray):
        return [None if isinstance(one, float) and math.isnan(one) else one for one in value.tolist()]
    plain = _cell(value)
    return _text(plain) if isinstance(plain, bytes) else plain


def _exact(value: Decimal | float) -> float:
    """The float that is a number.

    Raises:
        OverflowError: there is none, as it has too many digits.
    """
    number = float(value)
    if number != value and Decimal(repr(number)) != value and (number == number or value == value):
        raise _Inexact(f"the number {value}")
    return number


def _text(value: Any) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def check_names(what: str, names: Iterable[str], fold: Callable[[str], str]) -> None:
    """Refuse two names that are equal for an engine.

    Raises:
        SQLFailed: two of them are.
    """
    first: dict[str, str] = {}
    for name in names:
        other = first.setdefault(fold(name), name)
        if other != name:
            raise SQLFailed(
                f"the {what} {other!r} and {name!r} have the same name in SQL, which ignores case: rename one"
            )


# --- statements ------------------------------------------------------------------------------------------------------


class FaithfulSQLite(SQLite):
    """SQLite's dialect, in which a function is a name and its arguments: ``ifnull`` stays ``ifnull``."""

    class Parser(SQLite.Parser):  # type: ignore[misc, valid-type]  # made by a metaclass
        """Knows no function but CAST, which has a grammar of its own."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CAST": SQLite.Parser.FUNCTION_PARSERS["CAST"]}
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}

    class Generator(SQLite.Generator):  # type: ignore[misc, valid-type]
        """Types keep the affinity that they had."""

        TYPE_MAPPING: ClassVar[dict[Any, str]] = {**SQLite.Generator.TYPE_MAPPING, exp.DataType.Type.DECIMAL: "NUMERIC"}


# Functions that compute from their arguments alone. What reads files, loads code or tells of the machine is not here.
_FUNCTIONS = frozenset(
    "abs acos asin atan atan2 avg ceil ceiling char coalesce concat concat_ws cos count cume_dist current_date "
    "current_time current_timestamp date datetime degrees dense_rank exp first_value floor format glob group_concat "
    "hex ifnull iif instr json json_array json_array_length json_extract json_group_array json_group_object "
    "json_object json_quote json_type json_valid julianday lag last_value lead length like likelihood likely ln log "
    "log10 log2 lower ltrim max min mod nth_value ntile nullif percent_rank pi pow power printf quote radians rank "
    "replace round row_number rtrim sign sin soundex sqrt strftime string_agg substr substring sum tan time timediff "
    "total trim trunc typeof unicode unixepoch unlikely upper -> ->>".split()
)

SQLITE = Dialect("sqlite", "SQLite", FaithfulSQLite, relation, _FUNCTIONS | AGGREGATES, ascii_lower, "all")
"""SQLite's SQL."""

_WORKER = Kind(("tagframe.engines.sqlite.worker",))


def run_statement(
    statement: UntrustedStatement, *, file: str | None, moments: Mapping[str, Sequence[str]] | None = None
) -> pd.DataFrame:
    """Run one statement in a process that can be killed; see :meth:`~tagframe.engines.base.Engine.execute`.

    Args:
        statement: its relations are copied.
        file: the URI of a SQLite file that has its tables, opened for reading.
        moments: columns of these tables whose texts are compared as moments, by the tables' names in the statement.
    """
    request: dict[str, Any] = {
        "sql": ("EXPLAIN " if statement.explain else "") + never_text(without_ordered_sets(statement.sql)),
        "file": file,
        "tables": {
            name: (readable.table, list(readable.columns), (moments or {}).get(name, ()))
            for name, readable in statement.tables.items()
        },
        "relations": list(statement.relations),
        "functions": list(SQLITE.functions),
        "rows": statement.limits.rows,
    }
    with sent_rows(statement.relations, _write) if statement.relations else nullcontext() as copies:
        request["copies"] = copies and f"{copies.as_uri()}?mode=ro&immutable=1"
        try:
            (names, parts), _ = answered(_WORKER, request, statement, SQLITE.title)
        except SQLFailed as error:
            if (unknown := re.search(r"no such function: (\w+)", str(error))) is None:
                raise
            near = did_you_mean(unknown[1], SQLITE.functions - {unknown[1]}).rpartition("}")[2]
            has = f"beside SQLite's own there are {', '.join(sorted(AGGREGATES))}"
            raise SQLFailed(f"{error}; {has}{near}") from None
    rows = [row for part in parts for row in plain(part)]
    if not statement.explain:
        statement.check_rows(len(rows))
    return typed_frame(rows, unique_names(_as_written(names, statement.sql)))


def without_ordered_sets(sql: str) -> str:
    """The statement with aggregates over an order, which SQLite's grammar lacks, as calls of what they order.

    >>> without_ordered_sets("SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY x) FROM t")
    'SELECT percentile_cont(x, 0.9) FROM t'
    """
    if not re.search(r"within\s+group", sql, re.IGNORECASE):
        return sql
    tree = parse(sql, FaithfulSQLite)[0]
    for node in [one for one in tree.find_all(exp.WithinGroup) if one.this.name.lower() in AGGREGATES]:
        call, key = node.this, node.expression.expressions[0]
        is_last_first = bool(key.args.get("desc"))
        call.set("expressions", [exp.Neg(this=exp.paren(key.this)) if is_last_first else key.this, *call.expressions])
        node.replace(exp.Neg(this=call) if is_last_first else call)
    return tree.sql(dialect=FaithfulSQLite, normalize_functions=False)


def never_text(sql: str) -> str:
    r"""The statement with its double-quoted names in backticks: otherwise SQLite would read an unknown name as text.

    >>> print(never_text("SELECT \"a\" FROM t WHERE b = 'say \"c\"'"))
    SELECT `a` FROM t WHERE b = 'say "c"'
    """
    parts, done = [], 0
    for token in SQLite().tokenize(sql):
        if token.token_type == TokenType.IDENTIFIER and sql[token.start] == '"':
            parts += [sql[done : token.start], "`" + token.text.replace("`", "``") + "`"]
            done = token.end + 1
    return "".join([*parts, sql[done:]])


def _as_written(names: Sequence[str], sql: str) -> list[str]:
    """Columns that SQLite names after their text, with the quotation marks of that text."""
    return list(names) if "`" in sql else [name.replace("`", '"') for name in names]


def unique_names(names: Sequence[str]) -> list[str]:
    """Repeated names get ``_2``, ``_3``, …, because a frame could show only one of two columns with the same name."""
    unique: dict[str, None] = {}
    numbers: dict[str, int] = {}
    for name in names:
        candidate = name
        while candidate in unique:
            numbers[name] = numbers.get(name, 1) + 1
            candidate = f"{name}_{numbers[name]}"
        unique[candidate] = None
    return list(unique)


class RowsOnly(Engine):
    """Tables that are read whole; statements run over a copy of them in SQLite's memory."""

    dialect = SQLITE
    is_copied = True

    def execute(self, statement: UntrustedStatement) -> pd.DataFrame:
        """See the class."""
        return run_statement(with_copies(self, statement, statement.tables), file=None)


def with_copies(engine: Engine, statement: UntrustedStatement, copied: Mapping[str, Readable]) -> UntrustedStatement:
    """A statement with the rows of some of its tables as relations."""
    limit = 1 if statement.explain else None
    copies = {name: relation(engine.scan(one.table, one.columns, limit)) for name, one in copied.items()}
    tables = {name: one for name, one in statement.tables.items() if name not in copies}
    return replace(statement, tables=tables, relations={**copies, **statement.relations})


# --- relations as a database ------------------------------------------------------------------------------------------


def _write(relations: Mapping[str, pa.Table], path: Path) -> None:
    """A database with these relations.

    Raises:
        SQLFailed: SQLite cannot hold a value.
    """
    check_names("tables", relations, ascii_lower)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.create_collation(MOMENT, compare_moments)
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        for name, table in relations.items():
            check_names(f"columns of {name}", table.column_names, ascii_lower)
            # A table has one column at least in SQLite.
            columns = [f"{quoted(one.name)} {_declared(one)}" for one in table.schema] or ["nothing BLOB"]
            try:
                connection.execute("BEGIN")
                connection.execute(f"CREATE TABLE {quoted(name)} ({', '.join(columns)})")
                if table.num_columns:
                    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
                    marks = ", ".join("?" * table.num_columns)
                    connection.executemany(f"INSERT INTO {quoted(name)} VALUES ({marks})", rows)
                if (by := (table.schema.metadata or {}).get(LOOKUP)) is not None:
                    connection.execute(
                        f"CREATE INDEX {quoted(f'{name} by key')} ON {quoted(name)} ({quoted(by.decode())})"
                    )
                connection.execute("COMMIT")
            except (sqlite3.Error, OverflowError) as error:
                beyond = "an integer beyond 64 bits, signed; give the frame with it as text, frame.astype(str)"
                reason = beyond if isinstance(error, OverflowError) else error
                raise SQLFailed(f"table {name!r} cannot be copied into SQLite: {reason}") from error


def _declared(column: pa.Field) -> str:
    """The declared type with which SQLite compares values unchanged."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return "INTEGER"
    if pa.types.is_floating(kind):
        return "REAL"
    if pa.types.is_binary(kind) or pa.types.is_null(kind):
        return "BLOB"
    return f"TEXT COLLATE {MOMENT}" if COLLATED in (column.metadata or {}) else "TEXT"
