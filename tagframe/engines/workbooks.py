"""The cells of workbooks, read in a process of their own under the limits of :mod:`tagframe.engines.file_limits`."""

from __future__ import annotations

import importlib.util
import signal
from pathlib import Path
from typing import Any

from tagframe.engines import file_limits as limits
from tagframe.engines import worker_program as protocol
from tagframe.engines.worker_pool import Died, Expired, Kind, plain, pool
from tagframe.errors import SQLFailed, UnreadableTable

_READER = "python_calamine"
_WHAT_HELPS = (
    "Empty cells between the first cell and the last one count, too: delete the rows and columns behind the data "
    "(Ctrl+End goes to the last cell), or save each sheet as CSV"
)


_OUT_OF_TIME = "out of time"
_TIME_ENDED = -getattr(signal, "SIGXCPU", 0)
"""The exit status of a process that used up its time."""
_PATIENCE = 10 if _TIME_ENDED else 1
"""By the clock it has so many times as long, where the system counts the processor's time."""


def workbook_rows(path: Path, sheet: str | None = None) -> dict[str, list[list[Any]]]:
    """The rows of sheets, each from the first row and column on: of all sheets the first row, or of one all rows.

    Args:
        path: of the workbook.
        sheet: the one whose rows are all read.

    Raises:
        UnreadableTable: its reader is not installed, it is damaged or locked, or passes a limit.
    """
    folder = _reader()
    if folder is None:
        raise UnreadableTable(f"{path} is a workbook, which python-calamine reads: pip install 'tagframe[excel]'")
    try:
        stat = path.stat()
    except OSError as error:
        raise UnreadableTable(f"{path} cannot be read as a workbook: {error}") from error
    memory = limits.allowed(limits.FREE_WORKBOOK_MEMORY, limits.WORKBOOK_MEMORY_A_BYTE, stat.st_size)
    seconds = limits.FREE_WORKBOOK_SECONDS + stat.st_size / limits.WORKBOOK_BYTES_A_SECOND
    key = f"{path.absolute()} {stat.st_size} {stat.st_mtime_ns}"
    request = {
        "path": str(path.absolute()),
        "key": key,
        "sheet": sheet,
        "memory": memory,
        "seconds": seconds,
        "sheets": limits.WORKBOOK_SHEETS,
        "columns": limits.COLUMNS,
        "cells": limits.allowed(limits.FREE_WORKBOOK_CELLS, limits.WORKBOOK_CELLS_A_BYTE, stat.st_size),
        "bytes": limits.allowed(limits.FREE_WORKBOOK_BYTES, limits.WORKBOOK_BYTES_A_BYTE, stat.st_size),
    }
    kind = Kind("tagframe.engines.workbook_worker", (folder,))
    try:
        # The processor's time is what counts: on a busy machine an ordinary workbook takes long by the clock.
        (state, said), parts = pool().run(
            kind, request, seconds=_PATIENCE * seconds, memory=0, supply=_nothing, copied=key
        )
    except Expired:
        state, said = _OUT_OF_TIME, ""
    except Died as error:
        state, said = _OUT_OF_TIME if error.status == _TIME_ENDED else protocol.OUT_OF_MEMORY, ""
    except SQLFailed as error:
        raise UnreadableTable(f"{path} cannot be read as a workbook: {error}") from error
    if state == _OUT_OF_TIME:
        raise UnreadableTable(f"{path} is not read: that takes more than {seconds:.0f} seconds. {_WHAT_HELPS}")
    if state == protocol.OUT_OF_MEMORY:
        raise UnreadableTable(
            f"{path} is not read: that takes more than {memory / 2**20:,.0f} MB of memory. {_WHAT_HELPS}"
        )
    if state == protocol.TOO_LARGE:
        raise UnreadableTable(f"{path} is not read: {said}. {_WHAT_HELPS}")
    if state != protocol.ROWS:
        raise UnreadableTable(f"{path} cannot be read as a workbook: {said}")
    blocks = iter(parts)
    return {name: [row for _ in range(number) for row in plain(next(blocks))] for name, number in said}


def _reader() -> str | None:
    """The folder of the package that reads workbooks, or None where it is not installed."""
    found = importlib.util.find_spec(_READER)
    return None if found is None or found.origin is None else str(Path(found.origin).resolve().parent.parent)


def _nothing(*asked: Any) -> bytes:
    """The process has all that it needs."""
    return b""
