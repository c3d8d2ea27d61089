"""The log of calls of the MCP server: a line for each, without cells, literals and questions."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tagframe.errors import TagframeError
from tagframe.logs import note

if TYPE_CHECKING:
    from tagframe.agents.tools import Tools


@dataclass
class Call:
    """A call of a reader.

    Attributes:
        tools: over which it ran; None if it did not.
        result: what it gave; None for nothing.
        error: the class of its error, or None.
    """

    tools: Tools | None = None
    result: Any = None
    error: str | None = None


@contextmanager
def audited(reader: str | None, tool: str, arguments: Mapping[str, Any]) -> Iterator[Call]:
    """A block that runs one call; at its end, ``tagframe.audit`` logs reader, tool, tables, rows and seconds."""
    call, began = Call(), time.monotonic()
    try:
        yield call
    finally:
        tables = ", ".join(_tables(call, arguments)) or None
        seconds = time.monotonic() - began
        note("audit", logging.INFO, "call", reader=reader or "-", tool=tool, tables=tables, rows=_rows(call.result),
             seconds=seconds, error=call.error)  # fmt: skip


def _tables(call: Call, arguments: Mapping[str, Any]) -> list[str]:
    """The ids of the tables that a call named, read or gave."""
    if call.tools is None:
        return []
    corpus, result = call.tools.corpus, call.result if isinstance(call.result, dict) else {}
    named = [*_texts(arguments.get("tables")), *_texts(result.get("tables")), *_texts(result.get("table"))]
    named += [one.get("table") for one in result.get("places", ())]
    tables = set[str]()
    for name in filter(None, named):
        with suppress(TagframeError):  # only names of the reader's tables are logged
            tables.add(corpus.profile(name).id)
    if isinstance(sql := arguments.get("sql"), str):
        tables |= call.tools.tables_of(sql)
    return sorted(tables)


def _texts(given: Any) -> list[str]:
    if isinstance(given, str):
        return [given]
    listed = given if isinstance(given, list | dict) else []
    return [str(one.get("id", "")) if isinstance(one, dict) else str(one) for one in listed]


def _rows(result: Any) -> int | None:
    return result.get("row_count") if isinstance(result, dict) else None
