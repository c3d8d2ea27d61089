"""Tables known by their schema alone: retrieval, key inference and plans work from names and declared types."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagframe.corpus.facts import as_description
from tagframe.corpus.profile import ColumnProfile, TableProfile, TypeFamily
from tagframe.corpus.schema_statements import Statements, read_statements
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

if TYPE_CHECKING:
    from sqlglot import exp

Schema = str | os.PathLike[str] | Mapping[str, Sequence[str] | Mapping[str, str]]
"""``CREATE TABLE`` statements, a file of them, or columns by table: names, or types by name."""

_FAMILIES: dict[str, TypeFamily] = {
    r"bool|bit\b": "boolean",
    r"interval": "text",
    r"\w*int|\w*serial|year\b": "integer",
    r"real|double|float|dec|num|money": "real",
    r"date|time": "date",
    r"blob|bytea|\w*binary|image": "blob",
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
        dialect: of the statements, by sqlglot's name; None for any that reads them.
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
    database: str, name: str, types: Mapping[str, str], primary: Sequence[str] = (), foreign: Sequence[ForeignKey] = ()
) -> TableProfile:
    """The profile of a table from names, declared types and keys alone."""
    columns = tuple(
        ColumnProfile(column, position, declared_family(declared), declared)
        for position, (column, declared) in enumerate(types.items())
    )
    return TableProfile(f"{database}.{name}", database, name, columns, None, tuple(primary), tuple(foreign))


def _from_statements(
    text: str, database: str, dialect: str | None, problems: list[UnreadableTable]
) -> Iterator[TableProfile]:
    statements = read_statements(text, dialect)
    if statements.unread and not statements.created:
        name, why = statements.unread[0]
        raise InvalidArgument(f"the schema does not parse: {name}: {why}; dialect= names the SQL of the statements")
    for name, why in statements.unread:
        problems.append(UnreadableTable(f"{name} is not read whole: {why}; dialect= names the SQL of the statements"))
        warn(f"left out: {problems[-1]}", UnreadableTableWarning)
    if statements.others:
        others = ", ".join(f"{number} {kind}" for kind, number in sorted(statements.others.items()))
        problems.append(UnreadableTable(f"no tables are made of these statements of the schema: {others}"))
    yield from _from_parsed(statements, database)


def _from_parsed(statements: Statements, database: str) -> Iterator[TableProfile]:
    from sqlglot import exp

    primary = {_folded(schema.this, database): _primary(schema) for schema in statements.created}
    added: dict[tuple[str, str], list[ForeignKey]] = defaultdict(list)
    comments: dict[tuple[str, ...], str] = {}
    for schema in statements.added:
        folded = _folded(schema.this, database)
        primary[folded] = _primary(schema) or primary.get(folded, ())
        added[folded] += _foreign_keys(schema)
    for statement in statements.comments:
        of = statement.this
        names = (of.table, of.name) if isinstance(of, exp.Column) else (of.name, "")
        comments[tuple(name.casefold() for name in (of.text("db") or database, *names))] = statement.expression.name
    for schema in statements.created:
        table, folded = schema.this, _folded(schema.this, database)
        columns = [column for column in schema.expressions if isinstance(column, exp.ColumnDef)]
        # A reference without columns refers to the primary key.
        keys = [
            replace(key, other_columns=key.other_columns or primary.get((folded[0], key.other_table.casefold()), ()))
            for key in [*_foreign_keys(schema), *added[folded]]
        ]
        types = {column.name: str(kind.sql()) if (kind := column.args.get("kind")) else "" for column in columns}
        known = [key for key in dict.fromkeys(keys) if key.other_columns]
        profile = declared_profile(table.db or database, table.name, types, primary[folded], known)
        texts = {column.name: comments.get((*folded, column.name.casefold())) or _comment(column) for column in columns}
        described = (replace(column, description=as_description(texts[column.name])) for column in profile.columns)
        whole = comments.get((*folded, "")) or _comment(schema.parent)
        yield replace(profile, description=as_description(whole), columns=tuple(described))


def _folded(table: exp.Table, database: str) -> tuple[str, str]:
    """The identity of a table: two databases may have tables with the same name."""
    return (table.db or database).casefold(), table.name.casefold()


def _comment(node: Any) -> str:
    """The text of a COMMENT clause of a table or a column; for a column also a SQL comment after it."""
    from sqlglot import exp

    if isinstance(node, exp.ColumnDef):
        clause = node.find(exp.CommentColumnConstraint)
        return " ".join(node.comments or ()) if clause is None else clause.name
    clause = node.find(exp.SchemaCommentProperty)
    return "" if clause is None else clause.name


def _primary(schema: exp.Schema) -> tuple[str, ...]:
    from sqlglot import exp

    for constraint in schema.find_all(exp.PrimaryKey):
        return tuple(_name(part) for part in constraint.expressions)
    return tuple(
        column.name for column in schema.find_all(exp.ColumnDef) if column.find(exp.PrimaryKeyColumnConstraint)
    )


def _name(part: Any) -> str:
    """The column of a part of a key, which may be a name or an order of one."""
    from sqlglot import exp

    return part.name or next((one.name for one in part.find_all(exp.Identifier)), "")


def _foreign_keys(node: exp.Expression) -> Iterator[ForeignKey]:
    from sqlglot import exp

    for key in node.find_all(exp.ForeignKey):
        yield _reference(tuple(_name(part) for part in key.expressions), key.args["reference"])
    for column in node.find_all(exp.ColumnDef):
        for reference in column.find_all(exp.Reference):
            yield _reference((column.name,), reference)


def _reference(columns: tuple[str, ...], reference: Any) -> ForeignKey:
    from sqlglot import exp

    target = reference.this
    if isinstance(target, exp.Schema):
        return ForeignKey(columns, target.this.name, tuple(part.name for part in target.expressions))
    return ForeignKey(columns, target.name, ())
