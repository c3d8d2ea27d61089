"""What is read of files and folders, and within which limits.

A small file may claim far more rows, columns and text than memory can hold. The limits are far above ordinary tables. A
file that exceeds one is left out and named in ``corpus.problems``, with a way to read it. A limit that grows with the
file is a pair: a free amount, and an amount for each byte of the file. Compressed files of text, such as
``orders.csv.gz``, are read as if they were not compressed; links that lead out of a folder are not followed.
"""

from __future__ import annotations

import bz2
import csv
import glob
import gzip
import hashlib
import lzma
import os
import re
import stat
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO, cast

import pandas as pd

from tagframe.engines.base import Stamp
from tagframe.engines.sqlite.statement import RowsOnly
from tagframe.errors import TagframeError, UnreadableTable

COLUMNS = 10_000
"""The most columns of a table in a file. Profiling takes about half a millisecond for each."""

SAME_NAMES = 1_000
"""The most columns with the same name: pandas compares each with all others."""

FREE_BYTES, BYTES_A_BYTE = 256 * 2**20, 100
"""Uncompressed bytes of a file. Ordinary ones are compressed to a third or a fiftieth; a run of one value takes almost
no space, so a thousand bytes may be a billion rows."""

JSON_BYTES = 256 * 2**20
"""The most bytes of a JSON file, uncompressed: it is in memory as a whole, and takes about ten times as much there."""

FREE_JSON_CELLS, JSON_CELLS_A_BYTE = 20_000_000, 1
"""Cells of a JSON file: an object without most of the names takes three bytes and has a cell for each name."""

FREE_WORKBOOK_CELLS, WORKBOOK_CELLS_A_BYTE = 1_000_000, 1
"""Cells of all sheets of a workbook. Each sheet counts from A1 to its last row and column, as empty cells between are
in memory, too. A cell of an ordinary workbook takes two bytes or more."""

FREE_WORKBOOK_MEMORY, WORKBOOK_MEMORY_A_BYTE = 512 * 2**20, 64
"""The memory, in bytes, of the process that reads a workbook."""

FREE_WORKBOOK_SECONDS, WORKBOOK_BYTES_A_SECOND = 4.0, 2**19
"""CPU seconds after which that process is ended. Ordinary workbooks are read several times as fast."""


def allowed(free: int, a_byte: int, size: int) -> int:
    """The limit for a file of ``size`` bytes."""
    return max(free, a_byte * size)


def check_bytes(path: Path, read: int, way: str) -> None:
    """Refuse a file of which so many bytes were read that it is compressed too well; ``way`` is how to read it.

    Raises:
        UnreadableTable: they are more than the limit.
    """
    most = allowed(FREE_BYTES, BYTES_A_BYTE, path.stat().st_size)
    if read > most:
        raise UnreadableTable(
            f"{path} has more than {most / 2**20:,.0f} MB when it is unpacked, too many for a file of this size: "
            f"nearly all of it is alike. {way}"
        )


def check_names(path: object, names: Sequence[str]) -> None:
    """Refuse a table with too many columns, or too many of one name.

    Raises:
        UnreadableTable: it has too many.
    """
    check_columns(path, len(names))
    for name, count in Counter(filter(None, names)).most_common(1):
        if count > SAME_NAMES:
            raise UnreadableTable(f"{path} has {count:,} columns called {name[:99]!r}; at most {SAME_NAMES:,} may be")


def check_columns(path: object, columns: int) -> None:
    """Refuse a table with too many columns.

    Raises:
        UnreadableTable: it has too many.
    """
    if columns > COLUMNS:
        raise UnreadableTable(
            f"{path} has {columns:,} columns; a table of a file has {COLUMNS:,} at most. Split it by columns, or turn "
            "it so that columns are rows (pandas.melt), and open the result"
        )


PACKED: dict[str, Callable[..., object]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
"""What opens a compressed file, by its ending."""

DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError)
"""What is raised by a file that is not there, or not compressed as its ending says."""

_BLOCK = 2**20


def not_itself(path: Path) -> str:
    """Why a file is not what its ending says, and what helps: it is a pointer of Git LFS, or compressed. Else ""."""
    start = b""
    with suppress(OSError):
        if path.is_file():  # not a pipe, whose reading might never end
            with path.open("rb") as file:
                start = file.read(len(_POINTER))
    if start == _POINTER:
        return "it is a pointer of Git LFS, and `git lfs pull` fetches the file itself"
    is_text = path.suffix.lower() in (".csv", ".tsv", ".json", ".jsonl", ".ndjson")
    return f"it is compressed: call it {path.name}.gz" if is_text and start.startswith(b"\x1f\x8b") else ""


_POINTER = b"version https://git-lfs.github.com/spec/"


@contextmanager
def reading_as(format: str, path: Path) -> Iterator[None]:
    """A block that reads a file of a format: its errors become :class:`UnreadableTable`.

    Those of pyarrow inherit from these; it cannot be imported with a numpy that is too old for it.
    """
    try:
        yield
    except TagframeError:
        raise
    except (ImportError, *DAMAGED, ValueError, LookupError, TypeError, NotImplementedError, struct.error, csv.Error,
            pd.errors.ParserWarning, RecursionError, MemoryError) as error:  # fmt: skip
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error).strip()
        raise UnreadableTable(f"{path} cannot be read as {format}: {reason}") from error


def is_packed(path: Path) -> bool:
    """Whether the file is compressed, by its name."""
    return path.suffix.lower() in PACKED


def opened(path: Path) -> BinaryIO:
    """The bytes of a file, uncompressed."""
    return cast(BinaryIO, PACKED[path.suffix.lower()](path, "rb")) if is_packed(path) else path.open("rb")


def ending_of(path: Path) -> str:
    """The ending of the file in it: ``.csv`` for ``orders.csv.gz``."""
    return (Path(path.stem) if is_packed(path) else path).suffix.lower()


def stem_of(path: Path) -> str:
    """The name of the file without its ending: ``orders`` for ``orders.csv.gz``."""
    return Path(path.stem).stem if is_packed(path) else path.stem


def blocks(path: Path) -> Iterator[bytes]:
    """The bytes of a file in pieces.

    Raises:
        UnreadableTable: a compressed file has far more bytes than its size lets expect.
    """
    read = 0
    with opened(path) as file:
        while block := file.read(_BLOCK):
            read += len(block)
            if is_packed(path):
                check_bytes(path, read, "Unpack it to read it")
            yield block


def found_by(pattern: str) -> tuple[Path, list[Path]]:
    """The folder below which a pattern finds files, and what it finds there, sorted."""
    fixed = takewhile(lambda part: not glob.has_magic(part), Path(pattern).parts)
    return Path(*fixed), sorted(map(Path, glob.glob(pattern, recursive=True)))


def files_below(folder: Path) -> list[Path]:
    """The files at any depth below a folder, sorted, without those that begin with ``.`` or ``_``."""
    below = (file for file in folder.rglob("*") if file.is_file())
    return sorted(file for file in below if not re.search(r"(?:^|/)[._]", file.relative_to(folder).as_posix()))


class Bounds:
    """Tells whether paths are in a folder when links are followed."""

    def __init__(self, folder: Path, *, follow_links: bool = False) -> None:
        self.folder = folder
        self.follow_links = follow_links
        self._real = os.path.realpath(folder)
        self._holds: dict[Path, bool] = {}

    def hold(self, path: Path) -> bool:
        """Whether a file or folder, by its path below the folder, is in it; always where links are followed."""
        if self.follow_links:
            return True
        if path.parent not in self._holds:
            self._holds[path.parent] = self._is_inside(path.parent)
        return self._holds[path.parent] and (not os.path.islink(path) or self._is_inside(path))

    def check(self, path: Path) -> None:
        """Raise where :meth:`hold` is false.

        Raises:
            UnreadableTable: the path leads out of the folder.
        """
        if not self.hold(path):
            raise UnreadableTable(
                f"{path} leads out of {self.folder}, to {os.path.realpath(path)}: tf.open_corpus(…, follow_links=True) "
                "follows such links"
            )

    def _is_inside(self, path: Path) -> bool:
        return Path(os.path.realpath(path)).is_relative_to(self._real)


def check_regular(path: Path, known: os.stat_result | None = None) -> None:
    """Refuse what is no file of a fixed content.

    Raises:
        UnreadableTable: it is a pipe, a socket or a device, whose reading might never end.
        OSError: it is not there.
    """
    mode = (path.stat() if known is None else known).st_mode
    if not stat.S_ISREG(mode):
        raise UnreadableTable(f"{path} is no regular file but a pipe, a socket, a device or a folder; save its content")


def file_stamp(parts: Sequence[Path], known: Stamp | None) -> Stamp:
    """The stamp of a file made of these parts; they are not read if size and time are those of ``known``.

    Raises:
        UnreadableTable: a part is a pipe, a socket or a device, whose reading might never end.
        OSError: one cannot be read.
    """
    seen = [part.stat() for part in parts]
    for part, one in zip(parts, seen, strict=True):
        check_regular(part, one)
    size, mtime_ns = sum(one.st_size for one in seen), max(one.st_mtime_ns for one in seen)
    if known is not None and (size, mtime_ns) == (known.size, known.mtime_ns):
        return known
    digest = hashlib.sha256()
    for part in parts:
        with part.open("rb") as file:
            while block := file.read(2**20):
                digest.update(block)
    return Stamp(size, mtime_ns, digest.hexdigest())


class FileEngine(RowsOnly):
    """A file whose tables are read whole."""

    path: Path

    def fingerprint(self, known: Stamp | None = None) -> Stamp:
        """Size, time and content of the file."""
        return file_stamp([self.path], known)
