"""Names and texts in SQL: only the standard library, because worker processes import it."""

from __future__ import annotations

import json
from collections.abc import Iterable


def quoted(identifier: str) -> str:
    """An identifier as SQL text, whatever it holds.

    >>> quoted('order by"x')
    '"order by""x"'
    """
    return '"' + identifier.replace('"', '""') + '"'


def quoted_text(value: str) -> str:
    """A text as SQL text.

    >>> print(quoted_text("it's"))
    'it''s'
    """
    return "'" + value.replace("'", "''") + "'"


def quoted_texts(values: Iterable[str]) -> str:
    """A list of texts, as DuckDB has it."""
    return "[" + ", ".join(map(quoted_text, values)) + "]"


def table_key(schema: str, name: str) -> str:
    """Schema and table as one name, which can be taken apart again.

    >>> table_key("sales", "orders"), table_key("old.sales", "orders")
    ('sales.orders', '"old.sales".orders')
    """
    return f"{json.dumps(schema) if '.' in schema or schema.startswith(chr(34)) else schema}.{name}"


def schema_and_name(key: str) -> tuple[str, str]:
    """Schema and table of such a name.

    >>> schema_and_name("sales.orders"), schema_and_name('"old.sales".orders')
    (('sales', 'orders'), ('old.sales', 'orders'))
    """
    if key.startswith('"'):
        schema, end = json.JSONDecoder().raw_decode(key)
        return schema, key[end + 1 :]
    schema, _, name = key.partition(".")
    return schema, name
