"""Arrays in one file, mapped into memory: they are too large to be read before every first question.

A file begins with a line of JSON with the position, type, shape and CRC-32 of each array, and the CRC-32 of this line;
the arrays follow.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tagframe.storage import replaced

Arrays = Mapping[str, npt.NDArray[Any]]

_MAGIC = "tagframe arrays 2"
_ALIGNED = 64
_PIECE = 1 << 20


class DamagedArrays(ValueError):
    """A damaged file of arrays."""


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Write the arrays to a file that only its owner can read; an existing file is replaced.

    Raises:
        OSError: the file cannot be written.
    """
    contiguous = {  # the vectors of a lake are not copied
        name: np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
        for name, array in arrays.items()
    }
    spans, at = {}, 0
    for name, array in contiguous.items():
        spans[name] = {"dtype": array.dtype.str, "shape": array.shape, "at": at, "crc": zlib.crc32(_bytes(array))}
        at += math.ceil(array.nbytes / _ALIGNED) * _ALIGNED
    described = json.dumps({"arrays": spans, "size": at})
    head = json.dumps({"magic": _MAGIC, "crc": zlib.crc32(described.encode()), "head": described}).encode() + b"\n"
    head = head[:-1] + b" " * (-len(head) % _ALIGNED) + b"\n"
    with replaced(path) as file:
        file.write(head)
        for array in contiguous.values():
            file.write(_bytes(array))
            file.write(bytes(-array.nbytes % _ALIGNED))


def read_arrays(path: Path) -> dict[str, npt.NDArray[Any]] | None:
    """The arrays of a file, read-only; its pages are loaded when they are used. None if there is no file.

    The whole file is read once, to check it.

    Raises:
        DamagedArrays: the file is damaged.
        OSError: it cannot be read.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None
    with file:
        head = file.readline(_PIECE)
        try:
            header = json.loads(head)
            if header["magic"] != _MAGIC or zlib.crc32(header["head"].encode()) != header["crc"]:
                raise DamagedArrays(f"{path} is damaged: its header has a wrong checksum")
            described = json.loads(header["head"])
            if os.fstat(file.fileno()).st_size != len(head) + described["size"]:
                raise DamagedArrays(f"{path} is damaged: its header gives another length")
            spans = {name: _Span(**span) for name, span in described["arrays"].items()}
        except DamagedArrays:
            raise
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise DamagedArrays(f"{path} holds no arrays: {error}") from error
        for name, span in spans.items():
            file.seek(len(head) + span.at)
            crc, left = 0, span.size
            while left and (piece := file.read(min(left, _PIECE))):
                crc, left = zlib.crc32(piece, crc), left - len(piece)
            if crc != span.crc:
                raise DamagedArrays(f"{path} is damaged: {name} has a wrong checksum")
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return {
        name: np.frombuffer(pages, span.dtype, math.prod(span.shape), len(head) + span.at).reshape(span.shape)
        for name, span in spans.items()
    }


class _Span:
    def __init__(self, dtype: str, shape: list[int], at: int, crc: int) -> None:
        self.dtype, self.shape, self.at, self.crc = np.dtype(dtype), tuple(shape), at, crc
        self.size = self.dtype.itemsize * math.prod(self.shape)


def _bytes(array: npt.NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def text_array(lines: list[str]) -> npt.NDArray[np.uint8]:
    """Texts without line breaks as an array."""
    return np.frombuffer("\n".join(lines).encode("utf-8", "surrogatepass"), dtype=np.uint8)


def texts_of(array: npt.NDArray[np.uint8], count: int) -> list[str]:
    """The texts that were given to :func:`text_array`; ``count`` is their number."""
    return array.tobytes().decode("utf-8", "surrogatepass").split("\n") if count else []
