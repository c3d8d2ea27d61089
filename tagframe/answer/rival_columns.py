"""Columns that another table has too, with other values: a copy, or figures that were made ready from rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from tagframe.answer.guard import Reader
from tagframe.corpus import ColumnProfile, Corpus, TableProfile
from tagframe.engines.base import SQLLimits, quoted
from tagframe.engines.sql_reader import SourceColumn
from tagframe.errors import CorpusError, SQLFailed, UnsafeSQL
from tagframe.joins import keys_between
from tagframe.retrieval.links import tables_around

_LIMITS = SQLLimits(rows=1, seconds=1.0)
_MOST = 12
_LIKELY = 0.5
_MADE = {
    "avg": {"avg", "average", "mean"},
    "sum": {"sum", "total"},
    "count": {"count", "number", "num", "total"},  # but a "draft number" is none
}
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
Test = tuple[str, str, str]
"""A statement that gives a row if two columns differ, what that says, and the aggregate that a statement over the rows
must have for it ("" for none)."""


def rival_columns(columns: Sequence[SourceColumn], tables: Sequence[str], sql: str, reader: Reader) -> Iterator[str]:
    """The columns of a statement that another table of its database has with other values, in one sentence each.

    Two tables copy a column if both have the same key and name it alike. Figures are ready if a table with that key has
    a column named after an aggregate of the other's rows, as ``total_amount`` or ``number_of_orders``.

    Args:
        columns: that the statement reads.
        tables: ids of the tables that it reads.
        sql: the statement.
        reader: that ran it.
    """
    names = {id: name for name, id in reader.tables.items()}
    used = set(tables) & set(names)
    homes = {reader.corpus.profile(id).database for id in used}
    near = [table for id in names if (table := reader.corpus.profile(id)).database in homes]
    read = {one[:2] for one in columns}
    for test, facts, function in islice(_tests(near, read, used, names, reader.corpus), _MOST):
        try:
            if (not function or f"{function}(" in sql.casefold()) and len(reader.run(test, _LIMITS)):
                yield facts
        except (SQLFailed, UnsafeSQL, CorpusError):
            continue


def _tests(
    near: Sequence[TableProfile], read: set[tuple[str, str]], used: set[str], names: dict[str, str], corpus: Corpus
) -> Iterator[Test]:
    for table in near:
        for other in near:
            if table.id == other.id or not used & {table.id, other.id}:
                continue
            if table.id in used and other.id not in used:
                mine = [column for column in table.columns if (table.id, column.name) in read]
                yield from _copies(table, mine, other, names, corpus)
            yield from _ready(table, other, read, used, names)


def _copies(
    table: TableProfile, columns: Sequence[ColumnProfile], other: TableProfile, names: dict[str, str], corpus: Corpus
) -> Iterator[Test]:
    """Columns of a table that another one with its key has, too."""
    theirs = {column.name.casefold(): column for column in other.for_prompts}
    shared = [(column, twin) for column in columns if (twin := theirs.get(column.name.casefold())) is not None]
    shared = [(column, twin) for column, twin in shared if twin.family == column.family and not _is_key(column)]
    keys = [(one, twin) for one in table.columns if _is_key(one) and (twin := theirs.get(one.name.casefold()))]
    keys = [(one, twin) for one, twin in keys if _is_key(twin)]
    if not shared or not keys or not _are_linked(table, other, keys[0][0].name, corpus):
        return
    for column, twin in shared:
        sql = (
            f"SELECT 1 AS one FROM {quoted(names[table.id])} AS a JOIN {quoted(names[other.id])} AS b "
            f"ON a.{quoted(keys[0][0].name)} = b.{quoted(keys[0][1].name)} "
            f"WHERE a.{quoted(column.name)} <> b.{quoted(twin.name)} LIMIT 1"
        )
        yield sql, f"{names[other.id]}.{twin.name} has other values than {names[table.id]}.{column.name}", ""


def _are_linked(table: TableProfile, other: TableProfile, key: str, corpus: Corpus) -> bool:
    """Whether the tables probably join on this column; a plain ``id`` is each table's own."""
    if key.casefold() == "id":
        return False
    pairs = keys_between(corpus, [table.id, other.id], tables_around(corpus, [table.id, other.id])).keys
    return any(pair.score >= _LIKELY and pair.columns_of(table.id) == (key,) for pair in pairs if len(pair.tables) == 2)


def _is_key(column: ColumnProfile) -> bool:
    return bool(not column.private and column.rows and column.rows > 1 and column.distinct == column.rows)


def _ready(
    table: TableProfile, other: TableProfile, read: set[tuple[str, str]], used: set[str], names: dict[str, str]
) -> Iterator[Test]:
    """Figures of a table that aggregate the rows of another one, which has its key in many rows."""
    theirs = {column.name.casefold(): column for column in other.for_prompts}
    keys = [
        (one, many)
        for one in table.columns
        if _is_key(one) and (many := theirs.get(one.name.casefold())) and not _is_key(many)
    ]
    if not keys:
        return
    one, many = keys[0]
    for column in table.columns:
        if column.family not in ("integer", "real") or column.private or column.name == one.name:
            continue
        if (table.id, column.name) not in read and (table.id in used or other.id not in used):
            continue
        said = [word.casefold() for word in _WORD.findall(column.name)]
        words = {*said} - {"of", *({"number", "num"} if said[:1] not in (["number"], ["num"]) else ())}
        for function, made in _MADE.items():
            rest = {word.rstrip("s") for word in words - made}
            if rest == words or not words & made:
                continue
            target = "*" if function == "count" else _of_words(rest, other)
            about = {word.casefold().rstrip("s") for word in _WORD.findall(other.name)}
            if target is None or (function == "count" and not (rest and rest <= about)):
                continue
            of = target if target == "*" else quoted(target)
            sql = (
                f"SELECT 1 AS one FROM {quoted(names[table.id])} AS a JOIN (SELECT {quoted(many.name)} AS k, "
                f"{function}({of}) AS made FROM {quoted(names[other.id])} GROUP BY {quoted(many.name)}) AS b "
                f"ON a.{quoted(one.name)} = b.k WHERE abs(a.{quoted(column.name)} - b.made) > .01 * abs(b.made) LIMIT 1"
            )
            shown = f"{names[table.id]}.{column.name}"
            asked = "" if (table.id, column.name) in read else function
            yield sql, f"{shown} has other figures than the {function} of the rows of {names[other.id]}", asked
            break


def _of_words(words: set[str], table: TableProfile) -> str | None:
    """The numeric column with these words as its name."""
    for column in table.columns:
        is_number = column.family in ("integer", "real") and not column.private
        if is_number and {word.casefold().rstrip("s") for word in _WORD.findall(column.name)} == words:
            return column.name
    return None
