"""Names and texts in SQL; only the standard library, because worker processes import this, too."""

from __future__ import annotations

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
