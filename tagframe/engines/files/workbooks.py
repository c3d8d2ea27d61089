"""The cells of workbooks, read in a process of their own under the limits of :mod:`tagframe.engines.files.limits`.

A small workbook may claim more than memory can hold: ``python-calamine`` holds every cell from the first row and column
of a sheet to the last ones, so that two cells far apart take hundreds of gigabytes. It cannot be told to stop; the
address space and the time of a process are bounded instead. Where the system bounds no address space (Windows, macOS)
time is what is left. In that process this module is loaded with the standard library and ``python-calamine`` alone;
:mod:`tagframe.engines.worker_program` runs it.
"""

from __future__ import annotations

import importlib.util
import io
import math
import pickle
import signal
import time
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

from tagframe.engines import worker_program as protocol
from tagframe.engines.worker_program import Answer, Caller, Request, bound

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
_ROWS_AT_ONCE = 1_000
MERGED = b""
"""A cell merged with the one above."""


def workbook_rows(path: Path) -> dict[str, list[list[Any]]]:
    """The rows of all sheets, each from the first row and column on.

    Raises:
        UnreadableTable: its reader is not installed, it is damaged or locked, or passes a limit.
    """
    from tagframe.engines.files import limits
    from tagframe.engines.worker_pool import Died, Expired, Kind, plain, pool
    from tagframe.errors import SQLFailed, UnreadableTable

    folder = _reader()
    if folder is None:
        raise UnreadableTable(f"{path} is a workbook, which python-calamine reads: pip install 'tagframe[excel]'")
    try:
        stat = path.stat()
    except OSError as error:
        raise UnreadableTable(f"{path} cannot be read as a workbook: {error}") from error
    memory = limits.allowed(limits.FREE_WORKBOOK_MEMORY, limits.WORKBOOK_MEMORY_A_BYTE, stat.st_size)
    seconds = limits.FREE_WORKBOOK_SECONDS + stat.st_size / limits.WORKBOOK_BYTES_A_SECOND
    request = {
        "path": str(path.absolute()),
        "memory": memory,
        "seconds": seconds,
        "cells": limits.allowed(limits.FREE_WORKBOOK_CELLS, limits.WORKBOOK_CELLS_A_BYTE, stat.st_size),
        "bytes": limits.allowed(limits.FREE_BYTES, limits.BYTES_A_BYTE, stat.st_size) // 4,
    }
    kind = Kind(("tagframe.engines.files.workbooks",), (folder,))
    try:
        # The processor's time is what counts: on a busy machine an ordinary workbook takes long by the clock.
        (state, details), parts = pool().run(kind, request, seconds=_PATIENCE * seconds, memory=0)
    except Expired:
        state, details = _OUT_OF_TIME, ""
    except Died as error:
        state, details = _OUT_OF_TIME if error.status == _TIME_ENDED else protocol.OUT_OF_MEMORY, ""
    except SQLFailed as error:
        raise UnreadableTable(f"{path} cannot be read as a workbook: {error}") from error
    if state == _OUT_OF_TIME:
        raise UnreadableTable(f"{path} is not read: that takes more than {seconds:.0f} seconds. {_WHAT_HELPS}")
    if state == protocol.OUT_OF_MEMORY:
        raise UnreadableTable(
            f"{path} is not read: that takes more than {memory / 2**20:,.0f} MB of memory. {_WHAT_HELPS}"
        )
    if state == protocol.TOO_LARGE:
        raise UnreadableTable(f"{path} is not read: {details}. {_WHAT_HELPS}")
    if state != protocol.ROWS:
        raise UnreadableTable(f"{path} cannot be read as a workbook: {details}")
    blocks = iter(parts)
    return {name: [row for _ in range(number) for row in plain(next(blocks))] for name, number in details}


def _reader() -> str | None:
    """The folder of the package that reads workbooks, or None where it is not installed."""
    spec = importlib.util.find_spec(_READER)
    return None if spec is None or spec.origin is None else str(Path(spec.origin).resolve().parent.parent)


class _TooLarge(Exception):
    """A workbook passes a limit."""


class Worker:
    """Reads one workbook at a time."""

    def __init__(self, memory: int, caller: Caller) -> None:
        self._caller = caller
        self.is_spent = False
        bound("RLIMIT_CORE", 0)  # a process that cannot have more memory aborts

    def answer(self, request: Request) -> Answer:
        """The names of the sheets, whose rows were sent as parts before, each a pickled list; or what went wrong."""
        try:
            bound("RLIMIT_AS", request["memory"])
            bound("RLIMIT_CPU", math.ceil(time.process_time() + request["seconds"]))
            return protocol.ROWS, self._sent(request)
        except _TooLarge as error:
            return protocol.TOO_LARGE, str(error)
        except MemoryError:
            self.is_spent = True
            return protocol.OUT_OF_MEMORY, ""
        except BaseException as error:  # calamine has exceptions of its own, and panics
            self.is_spent = not isinstance(error, Exception)
            return protocol.FAILED, str(error)
        finally:
            bound("RLIMIT_CPU", None)
            bound("RLIMIT_AS", None)

    def rest(self) -> None:
        """Nothing: a workbook is opened at once."""

    def _sent(self, request: Request) -> list[tuple[str, int]]:
        """The names of the sheets, and in how many parts each was sent."""
        from python_calamine import SheetTypeEnum, load_workbook

        # Not by its path: an open file could not be replaced on Windows.
        workbook = load_workbook(io.BytesIO(Path(request["path"]).read_bytes()))
        names = {one.name: one.typ == SheetTypeEnum.WorkSheet for one in workbook.sheets_metadata}
        cells = size = 0
        sent = []
        for name, is_sheet in names.items():
            if not is_sheet:  # a chart
                sent.append((name, 0))
                continue
            sheet = workbook.get_sheet_by_name(name)
            height, width = (0, 0) if sheet.end is None else (sheet.end[0] + 1, sheet.end[1] + 1)
            cells += height * width
            if cells > request["cells"]:
                raise _TooLarge(
                    f"sheet {name!r} goes to row {height:,} and column {width:,}, and the sheets of a file of this "
                    f"size have {request['cells']:,} cells at most"
                )
            parts = 0
            for block in _blocks(sheet, height):
                size += len(block)
                if size > request["bytes"]:
                    raise _TooLarge(f"its cells are more than {request['bytes'] / 2**20:,.0f} MB of text")
                self._caller.send(block)
                parts += 1
            sent.append((name, parts))
        return sent


def _blocks(sheet: Any, rows: int) -> Iterator[bytes]:
    """The rows of a sheet from its first row and column on, some at a time."""
    if sheet.start is None:
        return
    before = [""] * sheet.start[1]
    merged = _merged_down(sheet, rows)
    block = []
    for number, row in zip(range(rows), sheet.iter_rows(), strict=False):
        block.append([*before, *map(_cell, row)])
        for at in merged.get(number, ()):
            if at < len(block[-1]):
                block[-1][at] = MERGED
        if len(block) * len(block[0]) >= 100 * _ROWS_AT_ONCE or number == rows - 1:
            yield pickle.dumps(block)
            block = []
    if block:
        yield pickle.dumps(block)


def _merged_down(sheet: Any, rows: int) -> dict[int, list[int]]:
    """By row, the columns of cells merged with the one above; cells merged across columns, as titles are, are none."""
    merged: dict[int, list[int]] = {}
    for (first, column), (last, right) in sheet.merged_cell_ranges or ():
        for row in range(first + 1, min(last + 1, rows) if column == right else 0):
            merged.setdefault(row, []).append(column)
    return merged


def _cell(value: Any) -> Any:
    """A cell as pandas reads it: whole numbers are whole, and a day is a time of that day."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value
