"""Tables known by their schema alone: retrieval, key inference and plans work from names and declared types."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tagframe.corpus.facts import as_description
from tagframe.corpus.profile import ColumnProfile, TableProfile, TypeFamily
from tagframe.corpus.schema_statements import StatedTable, Statements, read_statements
from tagframe.engines.base import ForeignKey
from tagframe.errors import (
    EmptyCorpus,
    InvalidArgument,
    SourceNotFound,
    UnreadableTable,
    UnreadableTableWarning,
    shown_path,
    warn,
)

Schema = str | os.PathLike[str] | Mapping[str, Sequence[str] | Mapping[str, str]]
"""``CREATE TABLE`` statements, a file of them, or columns by table: names, or types by name."""

_FAMILIES: dict[str, TypeFamily] = {
    r"bool|bit\b": "boolean",
    r"interval": "text",
    r".*(?:\[|sub_type text)|point": "text",
    r"\w*int|\w*serial|unsigned|year\b": "integer",
    r"(?:binary_|small)?(?:real|double|float|dec|num|money)": "real",
    r"(?:small)?date|time": "date",
    r"\w*blob|bytea|\w*binary|image": "blob",
}
"""By the beginning of the declared type; the first match counts."""


def declared_family(declared: str) -> TypeFamily:
    """The expected type family of a declared type; text for an unknown type.

    >>> [declared_family(word) for word in ("BIGINT UNSIGNED", "varchar(20)", "numeric(8, 2)", "timestamp", "")]
    ['integer', 'text', 'real', 'date', 'text']
    """
    word = declared.strip().lower()
    return next((family for pattern, family in _FAMILIES.items() if re.match(pattern, word)), "text")


def schema_profiles(
    schema: Schema,
    database: str | None = None,
    *,
    dialect: str | None = None,
    problems: list[UnreadableTable] | None = None,
) -> list[TableProfile]:
    """The profiles of tables known by their schema alone.

    Args:
        schema: ``CREATE TABLE`` statements as text, a file of them (``.sql``, ``.ddl``), or columns by table.
        database: the tables' database, if their names do not say; None for the file's name, else ``"schema"``.
        dialect: of the statements, by sqlglot's name; see :func:`~tagframe.corpus.schema_statements.read_statements`.
        problems: gets what is not read of the statements.

    Raises:
        SourceNotFound: no such file.
        EmptyCorpus: there is no table in it.
        InvalidArgument: no statement parses, a dialect is unknown, a table is there twice, or columns are not names.
    """
    problems = [] if problems is None else problems
    if isinstance(schema, Mapping):
        profiles = [_from_columns(name, columns, database or "schema") for name, columns in schema.items()]
    elif isinstance(schema, str) and re.search(r"\bcreate\b", schema, re.IGNORECASE):
        profiles = list(_from_statements(schema, database or "schema", dialect, problems))
    elif isinstance(schema, str | os.PathLike):
        path = Path(schema).expanduser()
        if not _is_file(path):
            raise SourceNotFound(f"there is no file {shown_path(path)}, and the text is not a CREATE TABLE statement")
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidArgument(f"{path} cannot be read as statements in UTF-8: {error}") from error
        profiles = list(_from_statements(text, database or path.stem, dialect, problems))
    else:
        raise InvalidArgument(
            f"a schema must be CREATE TABLE statements, a file of them, or columns by table; "
            f"got a {type(schema).__name__}"
        )
    if not profiles:
        raise EmptyCorpus("there is no table in the schema")
    return profiles


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long to be one
        return False


def _from_columns(name: str, columns: Sequence[str] | Mapping[str, str], database: str) -> TableProfile:
    if not isinstance(name, str) or not name:
        raise InvalidArgument(f"a table's name must be text; got {name!r}")
    types = columns if isinstance(columns, Mapping) else dict.fromkeys(columns, "")
    if isinstance(columns, str) or not all(isinstance(word, str) for pair in types.items() for word in pair):
        raise InvalidArgument(f"the columns of {name!r} must be a list of names, or types by name; got {columns!r}")
    if len(types) < len(columns):
        raise InvalidArgument(f"{name!r} has a column twice: {list(columns)!r}")
    stated, dot, table = name.partition(".")
    return declared_profile((stated if dot else database), (table if dot else name), types)


def declared_profile(
    database: str,
    name: str,
    types: Mapping[str, str],
    primary: Sequence[str] = (),
    foreign: Sequence[ForeignKey] = (),
    unique: Sequence[tuple[str, ...]] = (),
) -> TableProfile:
    """The profile of a table from names, declared types and keys alone."""
    columns = tuple(
        ColumnProfile(column, position, declared_family(declared), declared)
        for position, (column, declared) in enumerate(types.items())
    )
    id, keys = f"{database}.{name}", (tuple(primary), tuple(foreign))
    return TableProfile(id, database, name, columns, None, *keys, unique=tuple(unique))


def _from_statements(
    text: str, database: str, dialect: str | None, problems: list[UnreadableTable]
) -> Iterator[TableProfile]:
    statements = read_statements(text, database, dialect)
    if statements.unread and not statements.tables:
        name, why = statements.unread[0]
        raise InvalidArgument(f"the schema does not parse: {name}: {why}")
    for name, why in statements.unread:
        problems.append(UnreadableTable(f"{name} is not read whole: {why}"))
        warn(f"left out: {problems[-1]}", UnreadableTableWarning)
    if statements.others:
        others = ", ".join(f"{number} {kind}" for kind, number in sorted(statements.others.items()))
        problems.append(UnreadableTable(f"no tables are made of these statements of the schema: {others}"))
    for one in statements.tables:
        keys = dict.fromkeys(_foreign_keys(one, statements))
        primary, *unique = (_spelt(columns, one) for columns in (one.primary, *one.unique))
        profile = declared_profile(one.database, one.name, one.types, primary, [*keys], unique)
        texts = (as_description(one.comments.get(column.name.casefold(), "")) for column in profile.columns)
        columns = (replace(column, description=text) for column, text in zip(profile.columns, texts, strict=True))
        yield replace(profile, description=as_description(one.comment), columns=tuple(columns))


def _foreign_keys(table: StatedTable, statements: Statements) -> Iterator[ForeignKey]:
    """The keys to other tables; one without columns refers to the primary key."""
    for columns, name, others in table.references:
        other = statements.table(name, table.database)
        if referenced := others or other.primary:
            elsewhere = "" if other.database.casefold() == table.database.casefold() else other.database
            yield ForeignKey(_spelt(columns, table), other.name, _spelt(referenced, other), elsewhere)


def _spelt(columns: tuple[str, ...], table: StatedTable) -> tuple[str, ...]:
    """The columns in the table's spelling: a key may write them in another case."""
    names = {name.casefold(): name for name in table.types}
    return tuple(name if name in table.types else names.get(name.casefold(), name) for name in columns)
