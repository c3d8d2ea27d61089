"""Statements that nobody trusts, in SQLite: over a file where it is, over copies of other tables, or over both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from tagframe.engines import worker_program as worker
from tagframe.engines.base import Dialect, Readable, SQLLimits
from tagframe.engines.dtypes import typed_frame
from tagframe.engines.relations import image_of, relation
from tagframe.engines.sqlite.tree import FaithfulSQLite
from tagframe.engines.sqlite.worker import ascii_lower
from tagframe.engines.workers import Expired, Kind, plain, pool
from tagframe.errors import SQLFailed, UnsafeSQL, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

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

SQLITE = Dialect("sqlite", "SQLite", FaithfulSQLite, relation, _FUNCTIONS, ascii_lower, "all")
"""How SQLite speaks."""

_WORKER = Kind("tagframe.engines.sqlite.worker")
_MEGABYTE = 2**20


def run_statement(
    sql: str,
    *,
    file: str | None,
    tables: Mapping[str, Readable],
    relations: Mapping[str, pa.Table],
    limits: SQLLimits,
    explain: bool,
) -> pd.DataFrame:
    """Run one statement in a process that can be killed; see :meth:`~tagframe.engines.base.Engine.execute`.

    Args:
        sql: the statement.
        file: the URI of a SQLite file, opened for reading.
        tables: of the file, by their names in the statement.
        relations: others, which are copied, by their names in the statement.
        limits: what it may take.
        explain: whether it is only compiled.
    """
    copied, image = image_of(relations)
    request = {
        "sql": ("EXPLAIN " if explain else "") + never_text(sql),
        "file": file,
        "tables": {name: (readable.table, list(readable.hidden)) for name, readable in tables.items()},
        "relations": list(relations),
        "copied": copied,
        "functions": list(_FUNCTIONS),
        "rows": limits.rows,
    }
    memory = limits.memory * _MEGABYTE + len(image)
    shown = f"{sql[:200]!r}"
    try:
        (state, *said), _ = pool().run(
            _WORKER,
            request,
            seconds=limits.seconds,
            memory=memory,
            supply=lambda _image: image,
            # Beside a file nothing is kept: the file is let go after each statement.
            copied=copied if file is None else None,
        )
    except Expired:
        raise SQLFailed(f"the SQL was stopped after {limits.seconds:g} seconds: {shown}") from None
    if state == worker.ROWS:
        names, parts = said
        rows = [row for part in parts for row in plain(part)]
        if len(rows) > limits.rows and not explain:
            raise SQLFailed(
                f"the SQL gives more than {limits.rows:,} rows; narrow it, or raise SQLLimits(rows=…): {shown}"
            )
        return typed_frame(rows, unique_names(_as_written(names, sql)))
    reason, *known = said
    if state == worker.OUT_OF_MEMORY:
        raise SQLFailed(f"the SQL needs more than SQLLimits(memory={limits.memory}) megabytes: {shown}")
    if state == worker.TOO_LARGE:
        raise SQLFailed(f"the SQL passes SQLLimits(memory={limits.memory}) megabytes: {reason}: {shown}")
    if state == worker.REFUSED:
        raise UnsafeSQL(f"SQLite refused the SQL: {reason}: {shown}")
    if state == worker.NO_COLUMN:
        name = reason.partition(": ")[2]
        hint = " (text stands in single quotes)" if f'"{name}"' in sql else ""
        reason += f"{hint} in {did_you_mean(name.rpartition('.')[2], *known)}"
    raise SQLFailed(f"SQLite could not run the SQL: {reason}: {shown}")


def never_text(sql: str) -> str:
    r"""The statement with its double-quoted names in backticks: what is no name SQLite would read as text else.

    >>> print(never_text("SELECT \"a\" FROM t WHERE b = 'say \"c\"'"))
    SELECT `a` FROM t WHERE b = 'say "c"'
    """
    from sqlglot import TokenType
    from sqlglot.dialects import SQLite

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
    """Names with ``_2``, ``_3``, … where one comes again: of two columns of one name a frame could show only one."""
    unique: dict[str, None] = {}
    numbers: dict[str, int] = {}
    for name in names:
        candidate = name
        while candidate in unique:
            numbers[name] = numbers.get(name, 1) + 1
            candidate = f"{name}_{numbers[name]}"
        unique[candidate] = None
    return list(unique)
