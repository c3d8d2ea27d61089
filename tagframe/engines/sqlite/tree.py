"""SQLite's statements as trees in which no function is replaced by another one."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.sqlite import SQLite


class FaithfulSQLite(SQLite):
    """SQLite's dialect, in which a function is a name and its arguments: ``ifnull`` stays ``ifnull``."""

    class Parser(SQLite.Parser):  # type: ignore[misc, valid-type]  # made by a metaclass
        """Knows no function but CAST, which has a grammar of its own."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CAST": SQLite.Parser.FUNCTION_PARSERS["CAST"]}
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}

    class Generator(SQLite.Generator):  # type: ignore[misc, valid-type]
        """Types keep the affinity that they had."""

        TYPE_MAPPING: ClassVar[dict[Any, str]] = {**SQLite.Generator.TYPE_MAPPING, exp.DataType.Type.DECIMAL: "NUMERIC"}
