"""What runs in a process of its own: reading workbooks, of which a small one may claim more than memory can hold.

``python-calamine`` holds every cell from the first row and column of a sheet to the last ones, so that two cells far
apart take hundreds of gigabytes. It cannot be told to stop; the address space and the time of a process are bounded
instead. Where the system bounds no address space (Windows, macOS) time is what is left. It imports the standard library
and ``python-calamine`` alone; :mod:`tagframe.engines.worker_program` runs it.
"""

from __future__ import annotations

import io
import math
import pickle
import time
import zipfile
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

from tagframe.engines import worker_program as protocol
from tagframe.engines.worker_program import Answer, Caller, Request, bound

_ROWS_AT_ONCE = 1_000


class _TooLarge(Exception):
    """A workbook passes a limit."""


class Worker:
    """Reads one workbook at a time; it stays open for the next request for the same one."""

    def __init__(self, memory: int, caller: Caller) -> None:
        self._caller = caller
        self._workbook: Any = None
        self._key: str | None = None
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
        """The names of the sheets, and in how many parts each was sent: of all sheets the first rows, or one whole."""
        from python_calamine import SheetTypeEnum

        workbook = self._opened(request)
        names = [one.name for one in workbook.sheets_metadata if one.typ == SheetTypeEnum.WorkSheet]
        if len(names) > request["sheets"]:
            raise _TooLarge(f"it has {len(names):,} sheets, and {request['sheets']:,} are the most")
        cells = size = 0
        sent = []
        for name in names if request["sheet"] is None else [request["sheet"]]:
            sheet = workbook.get_sheet_by_name(name)
            height, width = (0, 0) if sheet.end is None else (sheet.end[0] + 1, sheet.end[1] + 1)
            cells += height * width
            if width > request["columns"]:
                raise _TooLarge(
                    f"sheet {name!r} has {width:,} columns, and {request['columns']:,} is the most of a table"
                )
            if cells > request["cells"]:
                raise _TooLarge(
                    f"sheet {name!r} goes to row {height:,} and column {width:,}, and the sheets of a file of this "
                    f"size have {request['cells']:,} cells at most"
                )
            parts = 0
            for block in _blocks(sheet, 1 if request["sheet"] is None else height):
                size += len(block)
                if size > request["bytes"]:
                    raise _TooLarge(f"its cells are more than {request['bytes'] / 2**20:,.0f} MB of text")
                self._caller.send(block)
                parts += 1
            sent.append((name, parts))
        return sent

    def _opened(self, request: Request) -> Any:
        if self._key != request["key"]:
            self._workbook = self._key = None
            from python_calamine import load_workbook

            _check_sizes(request["path"], request["bytes"])
            # Not by its path: an open file could not be replaced on Windows.
            self._workbook = load_workbook(io.BytesIO(Path(request["path"]).read_bytes()))
            self._key = request["key"]
        return self._workbook


def _check_sizes(path: str, most: int) -> None:
    """Refuse what is compressed too well; a file that is no archive, or a damaged one, is calamine's to judge."""
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return
    if size > most:
        raise _TooLarge(
            f"it has {size / 2**20:,.0f} MB without its compression, and a file of this size has "
            f"{most / 2**20:,.0f} MB at most"
        )


def _blocks(sheet: Any, rows: int) -> Iterator[bytes]:
    """So many rows of a sheet from its first row and column on, some at a time."""
    if sheet.start is None:
        return
    before = [""] * sheet.start[1]
    block = []
    for number, row in zip(range(rows), sheet.iter_rows(), strict=False):
        block.append([*before, *map(_cell, row)])
        if len(block) * len(block[0]) >= 100 * _ROWS_AT_ONCE or number == rows - 1:
            yield pickle.dumps(block)
            block = []
    if block:
        yield pickle.dumps(block)


def _cell(value: Any) -> Any:
    """A cell as pandas reads it: whole numbers are whole, and a day is a time of that day."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value
