"""What a server says about its tables, as SQLAlchemy reads it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tagframe.engines.base import ForeignKey, TableShape
from tagframe.engines.derivations import Derivations, View, derivations, names_in
from tagframe.engines.other_servers.connection import SPOKEN
from tagframe.engines.sql_text import schema_and_name, table_key
from tagframe.errors import SourceNotFound, did_you_mean

if TYPE_CHECKING:
    import sqlalchemy as sa

_PLAIN_DATABASE = "main"


SchemaAndShape = tuple[str | None, TableShape]
"""A table's schema, or None where the server has none, and its shape."""


def shapes_of(connection: sa.Connection, schemas: Sequence[str] | None) -> dict[str, SchemaAndShape]:
    """Tables and views by key, sorted.

    Args:
        connection: to the server.
        schemas: which ones; None for the default schema of the connection.

    Raises:
        SourceNotFound: a schema is not there.
    """
    import sqlalchemy as sa

    inspector = sa.inspect(connection)
    known = inspector.get_schema_names()
    for name in schemas or ():
        if name not in known:
            raise SourceNotFound(f"no schema {name!r} in this server: {did_you_mean(name, known)}")
    return _shapes(inspector, [inspector.default_schema_name] if schemas is None else schemas, {})


def shape_of(connection: sa.Connection, key: str) -> SchemaAndShape | None:
    """One table, by its key; None where it is not there."""
    import sqlalchemy as sa

    inspector = sa.inspect(connection)
    database, name = schema_and_name(key)
    schema = database if inspector.default_schema_name is not None else None
    return _shapes(inspector, [schema], {"filter_names": [name]}).get(key)


def _shapes(inspector: sa.Inspector, schemas: Sequence[str | None], only: dict[str, Any]) -> dict[str, SchemaAndShape]:
    from sqlalchemy.engine.reflection import ObjectKind

    found = {}
    for schema in schemas:
        asked: dict[str, Any] = {"schema": schema, "kind": ObjectKind.ANY, **only}
        columns = inspector.get_multi_columns(**asked)
        primary, foreign = inspector.get_multi_pk_constraint(**asked), inspector.get_multi_foreign_keys(**asked)
        unique = _asked(inspector.get_multi_unique_constraints, **asked)
        comments = _asked(inspector.get_multi_table_comment, **asked)
        for known_as, of_table in columns.items():
            name = str(known_as[1])
            database = schema or _PLAIN_DATABASE
            shape = TableShape(
                table_key(database, name),
                tuple(str(column["name"]) for column in of_table),
                tuple(_type(column["type"]) for column in of_table),
                tuple((primary.get(known_as) or {}).get("constrained_columns") or ()),
                tuple(_foreign_key(key, schema) for key in foreign.get(known_as, ()) if key["constrained_columns"]),
                called=name,
                database=database,
                unique=tuple(tuple(key["column_names"]) for key in unique.get(known_as) or ()),
                comment=(comments.get(known_as) or {}).get("text") or "",
                column_comments=tuple(column.get("comment") or "" for column in of_table),
            )
            found[shape.name] = (schema, shape)
    return dict(sorted(found.items()))


def _foreign_key(key: Mapping[str, Any], schema: str | None) -> ForeignKey:
    other = "" if key["referred_schema"] in (None, schema) else key["referred_schema"]
    return ForeignKey(tuple(key["constrained_columns"]), key["referred_table"], tuple(key["referred_columns"]), other)


def derivations_of(
    connection: sa.Connection, schemas: Sequence[str] | None, columns: Collection[tuple[str, str]]
) -> Derivations:
    """What is computed from columns: in views and generated columns, by the texts that define them."""
    import sqlalchemy as sa
    import sqlglot
    from sqlalchemy.engine.reflection import ObjectKind

    inspector = sa.inspect(connection)
    dialect = SPOKEN.get(connection.dialect.name, connection.dialect.name)
    dialect = dialect if sqlglot.Dialect.get(dialect) is not None else ""
    views: dict[str, View] = {}
    generated: dict[str, dict[str, str]] = {}
    unclear = {}
    for schema in [inspector.default_schema_name] if schemas is None else schemas:
        found = inspector.get_multi_columns(schema=schema, kind=ObjectKind.ANY)
        is_view = {*inspector.get_view_names(schema), *_asked(inspector.get_materialized_view_names, schema=schema)}
        # Of two columns of one name SQLite calls the second "name:1"; an expression without a name is called as it is
        # written, also in a view that another one is like.
        others = frozenset(
            str(column["name"]).casefold()
            for (_, name), of_table in found.items()
            for column in of_table
            if name not in is_view and not re.search(r":\d+\Z", str(column["name"]))
        )
        for (_, name), of_table in found.items():
            key = table_key(schema or _PLAIN_DATABASE, str(name))
            computing = [column for column in of_table if column.get("computed")]
            generated[key] = {str(one["name"]): str(one["computed"].get("sqltext") or "") for one in computing}
            if name not in is_view:
                continue
            try:
                definition = inspector.get_view_definition(str(name), schema)
            except (sa.exc.SQLAlchemyError, NotImplementedError):
                definition = None
            if not definition:
                unclear[key] = "has a definition that cannot be read"
                continue
            views[key] = View(str(definition), dialect, tuple(str(column["name"]) for column in of_table), others)
            if dialect != "sqlite" and (call := views[key].calls):
                unclear[key] = f"calls {call}"

    def computed(table: str, column: str) -> Iterator[tuple[str, str]]:
        for name, text in generated.get(table, {}).items():
            names = names_in(text, dialect)
            if not text or names is None or column.casefold() in names:
                yield table, name
        for key, view in views.items():
            if key != table and view.reads(schema_and_name(table)[1]):
                for name in view.shows(column):
                    yield key, name

    return derivations(columns, computed, unclear)


def _asked(method: Any, **arguments: Any) -> Any:
    """What not every dialect can tell; nothing if this one cannot."""
    try:
        return method(**arguments)
    except NotImplementedError:
        return {}


def _type(kind: Any) -> str:
    try:
        return str(kind)
    except Exception:  # a type that only this dialect has no word for
        return ""


def digest(parts: Sequence[Any]) -> str:
    """A text that changes when any part does."""
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()
