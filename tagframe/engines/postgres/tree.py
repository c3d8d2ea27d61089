"""PostgreSQL's statements as trees in which no function is replaced by another one."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot.dialects.postgres import Postgres


class FaithfulPostgres(Postgres):
    """PostgreSQL's dialect, in which a function with plain arguments stays a name and its arguments."""

    class Parser(Postgres.Parser):  # type: ignore[misc, valid-type]  # made by a metaclass
        """Knows only functions that have a grammar of their own (EXTRACT, SUBSTRING … FROM, …)."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        # EXTRACT gives another type than date_part.
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parser for name, parser in Postgres.Parser.FUNCTION_PARSERS.items() if name != "DATE_PART"
        }
