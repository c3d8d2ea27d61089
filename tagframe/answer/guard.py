"""The SQL guard: a statement that a model wrote is checked, then run where it can only read.

Two lines of defence, neither of which trusts the other: an allow-list over the statement as sqlglot parses it, and a
connection that SQLite itself holds to reading (``mode=ro`` or a private copy in memory, ``query_only``, an authorizer
that permits reading the named tables and a list of functions, a time limit and a row limit).
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe.engines.sqlite import connect_readonly
from tagframe.errors import SQLFailed, UnsafeSQL, did_you_mean

if TYPE_CHECKING:
    from tagframe.corpus import Corpus


@dataclass(frozen=True)
class SQLLimits:
    """What a statement may take: ``rows`` of result at most, and ``seconds`` of running."""

    rows: int = 10_000
    seconds: float = 30.0


# Functions that compute from their arguments alone. What reads files, loads code or tells of the machine is not here.
_FUNCTIONS = frozenset(
    "abs avg ceil ceiling char coalesce concat concat_ws count date datetime dense_rank exp first_value floor format "
    "group_concat hex ifnull iif instr json_extract json_array_length julianday lag last_value lead length like ln log "
    "log10 log2 lower ltrim max min mod nth_value ntile nullif percent_rank pow power printf quote rank replace round "
    "row_number rtrim sign soundex sqrt strftime string_agg substr substring sum time timediff total trim trunc typeof "
    "unicode unixepoch upper cume_dist glob -> ->>".split()
)


def check_sql(sql: str, tables: Mapping[str, str]) -> str:
    """Refuse what is not one plain read of the named tables.

    Args:
        sql: the statement, in SQLite's dialect.
        tables: the names that it may read; case does not matter.

    Returns:
        The statement without a trailing semicolon.

    Raises:
        UnsafeSQL: more than one statement, anything but SELECT (with WITH, UNION, …), another table, or text that does
            not parse.
    """
    import sqlglot
    from sqlglot import exp

    try:
        statements = [statement for statement in sqlglot.parse(sql, read="sqlite") if statement is not None]
    except sqlglot.errors.SqlglotError as error:
        raise UnsafeSQL(f"the SQL does not parse: {str(error).splitlines()[0]}; statement: {sql[:200]!r}") from error
    if len(statements) != 1:
        raise UnsafeSQL(f"expected one SELECT statement, got {len(statements)}: {sql[:200]!r}")
    statement = statements[0]
    allowed = (
        exp.Query, exp.Condition, exp.From, exp.Join, exp.Where, exp.Group, exp.Having, exp.Order, exp.Ordered,
        exp.Limit, exp.Offset, exp.Table, exp.TableAlias, exp.Identifier, exp.Alias, exp.CTE, exp.With, exp.Distinct,
        exp.Star, exp.DataType, exp.DataTypeParam, exp.WindowSpec, exp.Filter, exp.Tuple, exp.Values, exp.Var,
        exp.Collate, exp.IgnoreNulls, exp.WithinGroup,
    )  # fmt: skip
    if not isinstance(statement, exp.Query):
        raise UnsafeSQL(f"only SELECT may run, not {statement.key.upper()}: {sql[:200]!r}")
    for node in statement.walk():
        if not isinstance(node, allowed) or isinstance(node, exp.Command):
            raise UnsafeSQL(f"{node.key.upper()} may not stand in a SELECT that a model wrote: {node.sql()[:200]!r}")
        if isinstance(node, exp.Anonymous) and node.name.casefold() not in _FUNCTIONS:
            raise UnsafeSQL(f"the function {node.name!r} may not run in a SELECT that a model wrote: {sql[:200]!r}")
    names = {name.casefold() for name in tables}
    for scope_name in {cte.alias_or_name.casefold() for cte in statement.find_all(exp.CTE)}:
        names.add(scope_name)
    for table in statement.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier):
            raise UnsafeSQL(f"a table-valued function may not run: {table.sql()!r}")
        if table.name.casefold() not in names or table.args.get("db") or table.args.get("catalog"):
            raise UnsafeSQL(f"no table {table.sql()!r} in {did_you_mean(table.name, tables)}")
    return sql.strip().rstrip(";").rstrip()


@contextmanager
def _connection(corpus: Corpus, tables: Mapping[str, str], rows: int | None = None) -> Iterator[sqlite3.Connection]:
    """A connection in which ``tables`` (name in SQL → table id) can be read, and nothing else.

    ``rows`` bounds what is copied where the tables do not live in one SQLite file; None copies all.
    """
    engines = [corpus.engine(table_id) for table_id in tables.values()]
    files = {engine.path if engine and engine.kind == "sqlite" else None for engine in engines}
    own_names = all(corpus.profile(table_id).name == name for name, table_id in tables.items())
    file = files.pop() if len(files) == 1 else None
    if file is not None and own_names:
        connection = connect_readonly(file)
    else:
        connection = sqlite3.connect(":memory:")
        for name, table_id in tables.items():
            _storable(corpus.read(table_id, limit=rows)).to_sql(name, connection, index=False)
    with closing(connection):
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        connection.execute("PRAGMA query_only = ON")
        # Subqueries and CTEs are "read" too, by names that only the statement knows: what is refused are real tables.
        present = {name.casefold() for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        hidden = (present | {"sqlite_master", "sqlite_schema", "sqlite_temp_master", "sqlite_temp_schema"}) - {
            name.casefold() for name in tables
        }

        def authorize(action: int, first: str | None, second: str | None, _db: str | None, _source: str | None) -> int:
            permitted = (
                action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE)
                or (action == sqlite3.SQLITE_READ and (first or "").casefold() not in hidden)
                or (action == sqlite3.SQLITE_FUNCTION and (second or "").casefold() in _FUNCTIONS)
            )
            return sqlite3.SQLITE_OK if permitted else sqlite3.SQLITE_DENY

        connection.set_authorizer(authorize)
        yield connection


def _storable(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame as SQLite can hold it: dates as ISO text, and other objects as their text."""

    def cell(value: Any) -> Any:
        if value is None or isinstance(value, (str, int, float, bytes)):
            return value
        return value.isoformat() if hasattr(value, "isoformat") else str(value)

    def column(values: pd.Series) -> pd.Series:
        if values.dtype.kind not in "OMm":
            return values
        return pd.Series(
            [None if null else cell(value) for value, null in zip(values, values.isna(), strict=True)],
            dtype=object,
            index=values.index,
        )

    return frame.apply(column) if len(frame.columns) else frame


def _run(connection: sqlite3.Connection, sql: str, limits: SQLLimits) -> tuple[list[str], list[tuple[Any, ...]]]:
    deadline = time.monotonic() + limits.seconds
    connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
    try:
        cursor = connection.execute(sql)
        rows = cursor.fetchmany(limits.rows + 1)
    except sqlite3.Error as error:
        if time.monotonic() > deadline:
            raise SQLFailed(f"the SQL was stopped after {limits.seconds:g} seconds: {sql[:200]!r}") from error
        if "not authorized" in str(error) or "prohibited" in str(error):
            raise UnsafeSQL(f"SQLite refused the SQL: {error}: {sql[:200]!r}") from error
        raise SQLFailed(f"SQLite could not run the SQL: {error}: {sql[:200]!r}") from error
    return [column[0] for column in cursor.description], rows


def dry_run(sql: str, corpus: Corpus, tables: Mapping[str, str]) -> str:
    """Check a statement and let SQLite compile it, without running it: unknown columns are found before they cost.

    Raises:
        UnsafeSQL: as :func:`check_sql`, or SQLite's authorizer refused it.
        SQLFailed: SQLite cannot compile it.
    """
    checked = check_sql(sql, tables)
    with _connection(corpus, tables, rows=1) as connection:
        _run(connection, f"EXPLAIN {checked}", SQLLimits())
    return checked


def run_sql(sql: str, corpus: Corpus, tables: Mapping[str, str], limits: SQLLimits | None = None) -> pd.DataFrame:
    """Run one read-only statement over tables of a corpus.

    Tables of one SQLite file are read where they are; others are copied into a database in memory first.

    Args:
        sql: the statement, in SQLite's dialect.
        corpus: where the tables are.
        tables: name in SQL → table id.
        limits: rows and seconds at most.

    Raises:
        UnsafeSQL: as :func:`check_sql`, or SQLite's authorizer refused it.
        SQLFailed: it does not compile, runs too long, or gives more rows than the limit (none is dropped unseen).
    """
    limits = limits or SQLLimits()
    checked = check_sql(sql, tables)
    with _connection(corpus, tables) as connection:
        names, rows = _run(connection, checked, limits)
    if len(rows) > limits.rows:
        raise SQLFailed(
            f"the SQL gives more than {limits.rows:,} rows; narrow it, or raise SQLLimits(rows=…): {sql[:200]!r}"
        )
    return pd.DataFrame(rows, columns=_unique(names))


def _unique(names: Sequence[str]) -> list[str]:
    """Names with ``_2``, ``_3``, … where one comes again: of two columns of one name a frame could show only one."""
    unique: list[str] = []
    for name in names:
        number, candidate = 1, name
        while candidate in unique:
            number += 1
            candidate = f"{name}_{number}"
        unique.append(candidate)
    return unique
