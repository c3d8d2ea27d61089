"""Untrusted statements in PostgreSQL.

The server makes sure that they only read, and bounds them: a read-only transaction, of the role that the user chose if
there is one, a time limit, no waiting for locks, less memory for sorts and hash tables (``work_mem``), and fewer files
if the role may limit them. They are declared as a cursor, which only takes one plain SELECT, and their rows are fetched
one at a time until they are too many, or too large.

They can only name what is put before them: each table as a common table expression of the columns that may be read.
Other names are only looked up in ``pg_catalog``, whose tables, functions and types are refused by their names.

No setting of PostgreSQL limits the memory of a value, which may have a gigabyte. Functions that make a text of any
length from a number or a format take a small literal for it; a row is measured before it is sent.
"""

from __future__ import annotations

import math
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pandas as pd
import psycopg
import pyarrow as pa
from sqlglot import TokenType, exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import TokenError

from tagframe.config import current
from tagframe.engines.base import SQLLimits, UntrustedStatement, quoted
from tagframe.engines.cells import EXACT, typed_series
from tagframe.engines.postgres import POSTGRES
from tagframe.engines.postgres.connection import SNAPSHOT, Looking, Server, lowered, named, spilling, without_cells
from tagframe.engines.postgres.pg_catalog import ServerTable
from tagframe.engines.sql_reader import trees_of
from tagframe.engines.sqlite.statement import unique_names
from tagframe.errors import ConnectionRefusedByServer, ServerGone, SQLFailed, UnsafeSQL, did_you_mean
from tagframe.progress import stopped_by

_FUNCTIONS = POSTGRES.functions - {"all"}
_TYPES = frozenset(
    "array bigint bit boolean bpchar char date datemultirange daterange decimal double float inet int int4multirange "
    "int4range int8multirange int8range interval json jsonb money name nummultirange numrange smallint text time "
    "timestamp timestampntz timestamptz timetz tsmultirange tsrange tstzmultirange tstzrange uuid varbinary "
    "varchar".split()
)
_OTHER_TYPES = frozenset(("cidr", "macaddr", '"char"'))
"""Types of pg_catalog that hold values; types that name roles, relations or functions by their numbers are left out."""
_GRAMMAR = frozenset(
    "all and any as between by case date distinct else except exists filter from group having ilike in intersect is "
    "join lateral like limit not offset on or order over partition select similar some then union using values when "
    "where with within array row interval time timestamp numeric decimal varchar char character bpchar bit float "
    "recursive materialized sets".split()
)
_REFUSED = frozenset(
    "table into lock share operator current_user session_user system_user current_role current_catalog current_schema "
    "user copy do call execute prepare listen notify lo_import dblink information_schema regclass regproc "
    "regprocedure regoper regoperator regtype regrole regnamespace regconfig regdictionary regcollation".split()
)
"""Words that no plain SELECT over given tables needs, unless in double quotes."""


_MEGABYTE = 2**20
_RESULT_SHARE = 4
"""The part of the memory that a result may take."""
_SPILLED = 2
"""How many times the memory may be written to files in the server."""
_GRACE = 0.5
"""Seconds to wait for a server that does not stop by itself: one division may take three."""
_TOO_WIDE = "tagframe: too wide a row"
_COUNTS = {"repeat": 1, "lpad": 1, "rpad": 1}
"""Functions that repeat or pad a text, and which of their arguments says how often or how far."""
_FORMATS = {"format": 0, "to_char": 1}
"""Functions that write values in a format, and which of their arguments it is."""
_MOST_TIMES = 1_000
"""The largest such number, and the characters of the longest format and of the longest padded type."""
_WIDE = re.compile(r"[*]|%[^a-zA-Z%]*[0-9]{3}")
"""A width in the format of ``format`` that another argument gives, or that is above 99."""

Readables = Mapping[str, tuple[ServerTable, Sequence[str]]]
"""Name in the statement → the table, and those of its columns that may be seen."""


def run_statement(
    statement: UntrustedStatement, *, session: Looking, tables: Readables, schemas: Collection[str]
) -> pd.DataFrame:
    """Run one statement; ``schemas`` are those of the database. See :meth:`~tagframe.engines.base.Engine.execute`."""
    if (timeout := current().timeout) is not None and timeout < statement.limits.seconds:
        statement = replace(statement, limits=replace(statement.limits, seconds=timeout))
    deadline = time.monotonic() + statement.seconds_left
    sql = plain_text(statement.sql, {name.lower() for name in schemas})
    tree = _checked(statement)
    values: list[Any] = []
    before = ", ".join(_expressions(tables, statement.relations, values))
    text = f"{f'WITH {before} ' * bool(before)}SELECT * FROM ({sql}) AS s LIMIT {statement.limits.rows + 1}"
    connection, expired = session.connection, threading.Event()
    left = statement.until(deadline)
    with (
        _named_errors(session.server, statement, tables, expired),
        stopped_by(connection.cancel_safe),
        _gives_up(connection, left + _GRACE, expired),
    ):
        session.run(_begin(connection.info.server_version, statement.limits, tree))
        _take_role(session)
        return _rows(connection, text, values, statement, deadline)


def _measured(text: str, most_bytes: int) -> str:
    """The statement, changed to fail if a row is too wide.

    A row is measured in the server: one cell may be a gigabyte, and would be sent whole. As one value the row is copied
    once, while its text would be copied several times; compressed cells have their full length in it.
    """
    return (
        f"SELECT q.* FROM ({text}) AS q WHERE CASE WHEN pg_column_size(q) <= {most_bytes} THEN true "
        f"ELSE (left(clock_timestamp()::text, 0) || '{_TOO_WIDE}')::int IS NULL END"
    )


def _checked(statement: UntrustedStatement) -> exp.Query:
    """The statement as a tree, in which types are allowed, and sizes of texts are small literals."""
    excerpt = statement.excerpt
    try:
        trees = trees_of(statement.sql, POSTGRES.tree)
        if len(trees) != 1 or not isinstance(tree := trees[0], exp.Query):
            raise UnsafeSQL(f"only one SELECT may run, not {[tree.key.upper() for tree in trees]}: {excerpt}")
        for kind in tree.find_all(exp.DataType, exp.ObjectIdentifier):
            _check_type(kind, excerpt)
        for call in tree.find_all(exp.Anonymous):
            _check_size(call, excerpt)
        return tree
    except RecursionError as error:
        raise UnsafeSQL(f"the SQL is nested too deeply: {excerpt}") from error


def _check_type(kind: exp.Expr, excerpt: str) -> None:
    name = kind.this.value.lower() if isinstance(kind.this, exp.DType) else ""
    if isinstance(kind.this, exp.Interval):
        name = "interval"
    written = kind.sql(dialect="postgres")
    if name not in _TYPES and written not in _OTHER_TYPES:
        raise UnsafeSQL(f"the type {written} is not allowed in a SELECT: {excerpt}")
    lengths = [int(one.name) for one in kind.find_all(exp.DataTypeParam) if one.name.isdecimal()]
    if name in ("char", "bpchar", "bit") and max(lengths, default=0) > _MOST_TIMES:
        raise UnsafeSQL(f"the type {written} pads to more than {_MOST_TIMES:,} characters; use text: {excerpt}")


def _check_size(call: exp.Anonymous, excerpt: str) -> None:
    name, given = call.name.lower(), call.expressions
    at = _COUNTS.get(name, _FORMATS.get(name))
    if at is None or len(given) <= at:
        return
    literal = given[at].name if isinstance(given[at], exp.Literal) else None
    if name in _COUNTS and not (literal is not None and literal.isdecimal() and int(literal) <= _MOST_TIMES):
        raise UnsafeSQL(f"{name} takes a number of at most {_MOST_TIMES:,}, written out: {excerpt}")
    if name in _FORMATS and not (literal is not None and len(literal) <= _MOST_TIMES):
        raise UnsafeSQL(f"{name} takes a format of at most {_MOST_TIMES:,} characters, in quotes: {excerpt}")
    if name == "format" and _WIDE.search(str(literal)):
        raise UnsafeSQL(f"format takes no width above 99, or of another argument: {excerpt}")


def _begin(version: int, limits: SQLLimits, tree: exp.Query) -> str:
    """A transaction in which sorts and hash tables get less memory, and fewer files may be written, unless the server's
    own limits are lower."""
    sharing = tree.find_all(exp.Table, exp.Order, exp.Distinct, exp.Group, exp.Window, exp.SetOperation)
    each = max(64, min(32 * 1024, limits.memory * 1024 // 4 // (1 + len(list(sharing)))))
    lower = f"least(pg_size_bytes(current_setting('work_mem')) / 1024, {each})"
    return "; ".join(
        [
            SNAPSHOT,
            f"SELECT set_config('work_mem', {lower} || 'kB', true)",
            *(["SET LOCAL hash_mem_multiplier = 1"] if version >= 130000 else []),
            "SET LOCAL jit = off",
            spilling(version, limits.memory * _SPILLED, local=True),
        ]
    )


def _take_role(session: Looking) -> None:
    """Until the end of the transaction, what may be read is what the role of the URL may read."""
    if role := session.server.role:
        try:
            session.run(f"SET LOCAL ROLE {quoted(role)}")
        except psycopg.Error as error:
            raise ConnectionRefusedByServer(
                f"{session.server.identity} does not let its user take the role {role!r} of the URL: "
                f"{error.diag.message_primary}. Run GRANT {quoted(role)} TO that user, or leave out ?role="
            ) from None


@contextmanager
def _gives_up(connection: Any, seconds: float, expired: threading.Event) -> Iterator[None]:
    """Cuts the connection after this time: the server may be in the middle of something that it does not stop."""

    def cut() -> None:
        expired.set()
        with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _rows(
    connection: Any, text: str, values: Sequence[Any], statement: UntrustedStatement, deadline: float
) -> pd.DataFrame:
    most_bytes = statement.limits.memory * _MEGABYTE // _RESULT_SHARE
    cursor = psycopg.RawServerCursor(connection, "tagframe")
    try:
        cursor.execute(_measured(text, most_bytes), values or None)
        if statement.explain:  # a declared statement is parsed and planned, and its rows are not made
            return pd.DataFrame()
        connection.execute(lowered("statement_timeout", deadline - time.monotonic(), local=True))
        rows = _fetched(connection, statement, most_bytes)
        described = cursor.description or ()
    finally:
        with suppress(psycopg.Error):  # the transaction has failed, or the connection is gone
            cursor.close()
    names = unique_names([column.name for column in described])
    cells = zip(*rows, strict=True) if rows else ((),) * len(names)
    data = {
        name: _series(column, computed=about.precision is None)
        for name, column, about in zip(names, cells, described, strict=True)
    }
    return pd.DataFrame(data, index=pd.RangeIndex(len(rows)), columns=names)


def _fetched(connection: Any, statement: UntrustedStatement, most_bytes: int) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    size = 0
    # One at a time: the driver would hold several rows in memory before the first can be measured.
    with closing(psycopg.RawCursor(connection).stream('FETCH ALL FROM "tagframe"')) as stream:
        for row in stream:
            rows.append(row)
            size += sum(map(sys.getsizeof, row))
            if size > most_bytes:
                raise SQLFailed(
                    f"the SQL exceeds SQLLimits(memory={statement.limits.memory}) megabytes: the rows take more than "
                    f"{most_bytes // _MEGABYTE} MB: {statement.excerpt}"
                )
    statement.check_rows(len(rows))
    return rows


def plain_text(sql: str, schemas: Collection[str] = ()) -> str:
    """The statement as its tokens, without comments, each of them allowed in a plain SELECT.

    What is run is what was checked: no comment, no text with escapes and no dollar quotes, because the server and a
    parser could disagree about their end.

    Args:
        sql: the statement.
        schemas: of the database; no name of them may qualify another one.

    Raises:
        UnsafeSQL: a token that is not allowed, a name with a schema, or a call of a function that is not allowed.
    """
    excerpt = f"{sql[:200]!r}"
    try:
        sql.encode()
        tokens = Postgres().tokenize(sql)
    except (TokenError, UnicodeEncodeError) as error:
        raise UnsafeSQL(f"the SQL does not parse: {str(error).splitlines()[0]}; statement: {excerpt}") from error
    texts = []
    for at, token in enumerate(tokens):
        text = sql[token.start : token.end + 1]
        kind = token.token_type
        words = text.lower().split()
        is_name, is_text = kind == TokenType.IDENTIFIER, kind == TokenType.STRING
        if is_text:
            if not (text.startswith("'") and text.endswith("'")):
                raise UnsafeSQL(f"write texts in single quotes, not as {text[:20]!r}: {excerpt}")
        elif is_name:
            if not (text.startswith('"') and text.endswith('"')):
                raise UnsafeSQL(f"write names in double quotes, not as {text[:20]!r}: {excerpt}")
        elif not (
            all(word.replace("_", "a").isalnum() for word in words)  # ORDER BY is one
            or all(sign in "+-*/%^<>=~!@#&|.,:()[]" for sign in text)
            or _is_number(text)
        ):
            raise UnsafeSQL(f"{text[:20]!r} is not allowed in a SELECT that a model wrote: {excerpt}")
        word = token.text.lower() if is_name else words[-1] if words else ""
        after = tokens[at + 1].token_type if at + 1 < len(tokens) else None
        if not is_text and after == TokenType.DOT and word in schemas:
            raise UnsafeSQL(
                f"write table names without a schema such as {token.text!r}; if a table has that name too, give it "
                f"another one with AS: {excerpt}"
            )
        if not is_text and word.startswith("pg_"):
            raise UnsafeSQL(f"{token.text!r} belongs to the server and must not be used: {excerpt}")
        if not (is_name or is_text or _REFUSED.isdisjoint(words)):
            raise UnsafeSQL(f"{text.upper()} is not allowed in a SELECT that a model wrote: {excerpt}")
        is_called = after == TokenType.L_PAREN
        is_word = is_name or (not is_text and text[:1].replace("_", "a").isalpha())
        may_be_called = word in _FUNCTIONS or (not is_name and word in _GRAMMAR)
        if is_called and is_word and not may_be_called and not _is_alias(tokens, at):
            raise UnsafeSQL(f"the function {token.text!r} is not allowed in a SELECT that a model wrote: {excerpt}")
        if is_called and word == "array" and not is_name:
            raise UnsafeSQL(f"ARRAY(SELECT …) is not allowed; array_agg(…) gives the same: {excerpt}")
        texts.append(text)
    return " ".join(texts)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_alias(tokens: Sequence[Any], at: int) -> bool:
    """Whether a word before a parenthesis names the columns of a table: ``WITH n(i) AS …``, ``… AS t(a, b)``."""
    depth, end = 0, at + 1
    for end in range(at + 1, len(tokens)):
        depth += (tokens[end].token_type == TokenType.L_PAREN) - (tokens[end].token_type == TokenType.R_PAREN)
        if not depth:
            break
    inside = tokens[at + 2 : end]
    names = all(token.token_type in (TokenType.VAR, TokenType.IDENTIFIER, TokenType.COMMA) for token in inside)
    before = tokens[at - 1].text.upper() if at else ""
    after = tokens[end + 1].text.upper() if end + 1 < len(tokens) else ""
    return names and (before == "AS" or (before in ("WITH", "RECURSIVE", ",") and after == "AS"))


def _expressions(tables: Readables, relations: Mapping[str, pa.Table], values: list[Any]) -> Iterator[str]:
    """What the statement may name; the cells of ``relations`` are appended to ``values``."""
    for name, (table, columns) in tables.items():
        selected = ", ".join(f"t.{quoted(column)}" for column in columns)
        yield f"{quoted(name)} AS NOT MATERIALIZED (SELECT {selected} FROM {table.in_sql} AS t)"
    for name, rows in relations.items():
        arrays = []
        for column in rows.columns:
            values.append(column.to_pylist())
            arrays.append(f"${len(values)}::{_array_of(column.type)}")
        named_columns = ", ".join(map(quoted, rows.column_names))
        yield f"{quoted(name)} AS MATERIALIZED (SELECT * FROM unnest({', '.join(arrays)}) AS t({named_columns}))"
    taken = {*tables, *relations}
    for name in (*tables, *relations):
        if (lower := name.lower()) not in taken:  # what the server makes of a name that is not quoted
            taken.add(lower)
            yield f"{quoted(lower)} AS NOT MATERIALIZED (SELECT * FROM {quoted(name)})"


def _array_of(kind: Any) -> str:
    if pa.types.is_boolean(kind):
        return "bool[]"
    if pa.types.is_integer(kind):
        return "int8[]"
    if pa.types.is_floating(kind):
        return "float8[]"
    return "bytea[]" if pa.types.is_binary(kind) else "text[]"


def _series(values: Sequence[Any], *, computed: bool) -> pd.Series:
    """Cells as :func:`~tagframe.engines.cells.typed_series`; exact decimals where the column is declared exact."""
    kinds = set(map(type, values)) - {type(None)}
    if kinds == {Decimal}:
        numbers = [value for value in values if value is not None]
        finite = all(number.is_finite() for number in numbers)
        whole = finite and all(number == number.to_integral_value() for number in numbers)
        if whole and all(abs(number) <= EXACT for number in numbers):
            return typed_series([None if value is None else int(value) for value in values])
        is_exact = finite and all(Decimal(repr(float(number))) == number for number in numbers)
        if is_exact or (computed and not whole and all(map(_has_float, numbers))):
            return pd.Series([None if value is None else float(value) for value in values], dtype="float64")
    return typed_series(tuple(values))


def _has_float(number: Decimal) -> bool:
    """Whether a float is near: larger numbers become infinity, and smaller ones zero."""
    near = float(number)
    return not number.is_finite() or (math.isfinite(near) and bool(near) == bool(number))


@contextmanager
def _named_errors(
    server: Server, statement: UntrustedStatement, tables: Readables, expired: threading.Event
) -> Iterator[None]:
    excerpt, limits = statement.excerpt, statement.limits
    exceeds = f"the SQL exceeds SQLLimits(memory={limits.memory}) megabytes:"
    try:
        yield
    except psycopg.Error as error:
        state, diagnosis = error.sqlstate or "", error.diag
        reason = diagnosis.message_primary or str(error).strip().partition("\n")[0]
        if any(table.kind == "v" for table, _ in tables.values()):
            reason = without_cells(state, reason)
        refusal: Any = named(error, server)
        if expired.is_set():
            raise SQLFailed(f"the SQL was stopped after {limits.seconds:g} seconds: {excerpt}") from None
        if isinstance(refusal, ConnectionRefusedByServer | ServerGone):
            raise refusal from None
        if state == "57014":
            raise SQLFailed(
                f"the SQL was stopped after {limits.seconds:g} seconds, by the server, or earlier by a limit of its "
                f"own: {excerpt}"
            ) from error
        if _TOO_WIDE in reason:
            raise SQLFailed(f"{exceeds} a row has more than {limits.memory // _RESULT_SHARE} MB: {excerpt}") from None
        if state == "53400":
            raise SQLFailed(f"{exceeds} what the server writes to files is too large: {excerpt}") from None
        if state in ("25006", "42501"):
            raise UnsafeSQL(f"PostgreSQL refused the SQL: {reason}: {excerpt}") from error
        if state == "42703":
            name = reason.partition('"')[2].partition('"')[0]
            reason += f" in {did_you_mean(name, sorted({column for _, own in tables.values() for column in own}))}"
        hint = f" ({diagnosis.message_hint})" if diagnosis.message_hint and state[:2] != "P0" else ""
        failed = SQLFailed(f"PostgreSQL could not run the SQL: {reason}{hint}: {excerpt}")
        failed.retryable = refusal.retryable
        raise failed from error
