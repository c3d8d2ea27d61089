"""Arrays as bytes: numpy's own form (``.npz``), uncompressed, after its SHA-256."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = Mapping[str, npt.NDArray[Any]]

ARRAYS = "arrays"
"""The kind of facts in a catalogue that are arrays: large ones, of which two states are kept."""
_DIGEST = 32


def packed(arrays: Arrays) -> bytes:
    """The arrays as bytes."""
    file = io.BytesIO()
    named: dict[str, Any] = {**arrays}
    np.savez(file, **named)
    return hashlib.sha256(file.getbuffer()).digest() + file.getvalue()


def unpacked(data: bytes) -> dict[str, npt.NDArray[Any]]:
    """The arrays that were given to :func:`packed`.

    Raises:
        ValueError: the bytes are damaged.
    """
    file = memoryview(data)[_DIGEST:]
    if hashlib.sha256(file).digest() != data[:_DIGEST]:
        raise ValueError("the checksum of arrays is wrong")
    with np.load(io.BytesIO(file), allow_pickle=False) as stored:
        return dict(stored)


def text_array(lines: list[str]) -> npt.NDArray[np.uint8]:
    """Texts without line breaks as an array."""
    return np.frombuffer("\n".join(lines).encode("utf-8", "surrogatepass"), dtype=np.uint8)


def texts_of(array: npt.NDArray[np.uint8], count: int) -> list[str]:
    """The texts that were given to :func:`text_array`; ``count`` is their number."""
    return array.tobytes().decode("utf-8", "surrogatepass").split("\n") if count else []
