"""Arrays in one file: numpy's own form (``.npz``), uncompressed, whose checksums are compared when it is read."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tagframe.storage import replaced

Arrays = Mapping[str, npt.NDArray[Any]]

_COUNT = "number of arrays"
"""The array that says how many others there are: no checksum is of the archive's list of them."""


class DamagedArrays(ValueError):
    """A damaged file of arrays."""


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Write the arrays to a file that only its owner can read; an existing file is replaced.

    Raises:
        OSError: the file cannot be written.
    """
    with replaced(path) as file:
        named: dict[str, Any] = {**arrays, _COUNT: np.array(len(arrays))}
        np.savez(file, **named)


def read_arrays(path: Path) -> dict[str, npt.NDArray[Any]] | None:
    """The arrays of a file; None if there is no file.

    Raises:
        DamagedArrays: the file is damaged.
        OSError: it cannot be read.
    """
    try:
        with zipfile.ZipFile(path) as packed:
            damaged = packed.testzip()  # which reads each array to its end: numpy would stop where its header says
        if damaged is not None:
            raise DamagedArrays(f"the checksum of {damaged} is wrong")
        with np.load(path, allow_pickle=False) as stored:
            arrays = dict(stored)
        if arrays.pop(_COUNT) != len(arrays):
            raise DamagedArrays("arrays are missing")
        return arrays
    except FileNotFoundError:
        return None
    except (MemoryError, OSError):
        raise
    except Exception as error:  # whatever the bytes of an archive lead to
        raise DamagedArrays(f"{path} is damaged: {error}") from error


def text_array(lines: list[str]) -> npt.NDArray[np.uint8]:
    """Texts without line breaks as an array."""
    return np.frombuffer("\n".join(lines).encode("utf-8", "surrogatepass"), dtype=np.uint8)


def texts_of(array: npt.NDArray[np.uint8], count: int) -> list[str]:
    """The texts that were given to :func:`text_array`; ``count`` is their number."""
    return array.tobytes().decode("utf-8", "surrogatepass").split("\n") if count else []
