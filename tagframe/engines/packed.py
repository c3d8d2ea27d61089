"""Compressed files of text, such as ``orders.csv.gz``, as if they were not compressed."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from tagframe.engines import file_limits as limits
from tagframe.errors import UnreadableTable

PACKED: dict[str, Callable[..., object]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
"""What opens a compressed file, by its ending."""

DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError)
"""What is raised by a file that is not there, or not compressed as its ending says."""

_BLOCK = 2**20


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
    most = None
    if is_packed(path):
        most = limits.allowed(limits.FREE_PACKED_BYTES, limits.PACKED_BYTES_A_BYTE, path.stat().st_size)
    read = 0
    with opened(path) as file:
        while block := file.read(_BLOCK):
            read += len(block)
            if most is not None and read > most:
                raise UnreadableTable(
                    f"{path} has more than {most / 2**20:,.0f} MB when it is unpacked, too many for a file of this "
                    "size: nearly all of it is alike. Unpack it to read it"
                )
            yield block
