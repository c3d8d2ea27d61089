"""DuckDB's statements as trees in which no function is replaced by another one."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot.dialects.duckdb import DuckDB


class FaithfulDuckDB(DuckDB):
    """DuckDB's dialect, in which a function with plain arguments stays a name and its arguments."""

    class Parser(DuckDB.Parser):  # type: ignore[misc, valid-type]  # made by a metaclass
        """Knows only functions that have a grammar of their own."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
