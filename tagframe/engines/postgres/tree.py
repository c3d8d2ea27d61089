"""PostgreSQL's statements as trees in which no function is taken for another one."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot.dialects.postgres import Postgres


class FaithfulPostgres(Postgres):
    """PostgreSQL, where a function of plain arguments is a name and these."""

    class Parser(Postgres.Parser):  # type: ignore[misc, valid-type]  # made by a metaclass
        """Knows those functions only that have a grammar of their own (EXTRACT, SUBSTRING … FROM, …)."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        # EXTRACT gives another type than date_part.
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parser for name, parser in Postgres.Parser.FUNCTION_PARSERS.items() if name != "DATE_PART"
        }
