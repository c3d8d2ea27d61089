"""DuckDB's statements as trees in which no function is taken for another one."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot.dialects.duckdb import DuckDB


class FaithfulDuckDB(DuckDB):
    """DuckDB, where a function of plain arguments is a name and these."""

    class Parser(DuckDB.Parser):  # type: ignore[misc, valid-type]  # made by a metaclass
        """Knows those functions only that have a grammar of their own."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
