"""Names, texts and statements in SQL. At first only the standard library, because worker processes import it, too."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlglot
    from sqlglot import exp


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


LONGEST = 50_000
"""The longest statement in characters; far more than a model writes for a question."""
_STEPS = 30
"""How many steps the parser may make for each token: it goes back where it guessed wrong, and again inside of that."""


@lru_cache(maxsize=4)
def trees_of(sql: str, dialect: str | type[sqlglot.Dialect]) -> tuple[exp.Expr, ...]:
    """The statements of a text; the trees are shared by all who read the text, and must not be changed.

    Args:
        sql: one statement, or what should be one.
        dialect: sqlglot's class that reads it, or its name.

    Raises:
        UnsafeSQL: it is too long, takes too many steps to parse, does not parse, or is nested too deeply.
    """
    from sqlglot import Dialect
    from sqlglot.errors import SqlglotError

    from tagframe.errors import UnsafeSQL

    shown = f"{sql[:200]!r}"
    if len(sql) > LONGEST:
        raise UnsafeSQL(f"the SQL is {len(sql):,} characters long, and {LONGEST:,} at most may run: {shown}")
    try:
        spoken = Dialect.get_or_raise(dialect)
        # Indexes stay as they are written: to shift one, the parser would look at all that stands before it each time.
        spoken.INDEX_OFFSET = 0
        tokens = spoken.tokenize(sql)
        parser = _counting(type(spoken))(dialect=spoken)
        parser.steps_left = 1_000 + _STEPS * len(tokens)
        return tuple(tree for tree in parser.parse(tokens, sql) if tree is not None)
    except SqlglotError as error:
        raise UnsafeSQL(f"the SQL does not parse: {str(error).splitlines()[0]}; statement: {shown}") from error
    except RecursionError as error:
        raise UnsafeSQL(f"the SQL is nested too deeply: {shown}") from error


@cache
def _counting(dialect: type[sqlglot.Dialect]) -> Any:
    """The dialect's parser, which stops after so many steps."""
    base: Any = dialect.parser_class

    class Counting(base):  # type: ignore[misc]
        """Counts each move from one token to another."""

        steps_left = 0

        def _advance(self, times: int = 1) -> None:
            self.steps_left -= 1
            if self.steps_left < 0:
                from tagframe.errors import UnsafeSQL

                # Not an error of sqlglot's, which its parser would take for a wrong guess.
                raise UnsafeSQL(f"the SQL takes too many steps to parse: {self.sql[:200]!r}")
            super()._advance(times)

    return Counting
