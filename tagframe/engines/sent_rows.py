"""Rows that are sent with a statement: in a file, which the process that runs the statement may read.

The last files stay, up to 256 MB: the next statement usually reads the same rows.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pyarrow as pa

_MOST_BYTES = 256 * 2**20
_files: dict[Path, int] = {}
"""Their sizes, the one that was used last at the end."""
_users: Counter[Path] = Counter()
_lock = threading.Lock()


@contextmanager
def sent_rows(
    relations: Mapping[str, pa.Table], write: Callable[[Mapping[str, pa.Table], Path], None]
) -> Iterator[Path]:
    """A file with these relations, which is there for the block; ``write`` makes it."""
    path = _folder(os.getpid()) / f"{_digest(relations)}.{write.__module__}"
    with _lock:
        if not path.exists():
            part = path.with_suffix(".part")
            part.unlink(missing_ok=True)  # of a writer that was interrupted
            write(relations, part)
            part.replace(path)
        _files[path] = _files.pop(path, 0) or path.stat().st_size
        _users[path] += 1
    try:
        yield path
    finally:
        with _lock:
            _users[path] -= 1
            free = [one for one in _files if not _users[one]]
            while free and sum(_files.values()) > _MOST_BYTES:
                del _files[free[0]]
                free.pop(0).unlink(missing_ok=True)


@cache
def _folder(process: int) -> Path:
    """A folder for the files of a process: a child process does not remove its parent's."""
    folder = tempfile.mkdtemp(prefix="tagframe-")
    atexit.register(_remove, folder, process)
    return Path(folder)


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _digest(relations: Mapping[str, pa.Table]) -> str:
    digest = hashlib.sha256()
    for name, table in relations.items():
        digest.update(repr((name, table.schema.to_string(), table.schema.metadata)).encode())
        for chunk in (chunk for column in table.columns for chunk in column.chunks):
            digest.update(repr((len(chunk), chunk.offset)).encode())
            for buffer in chunk.buffers():  # none where no cell is null
                digest.update(repr(None if buffer is None else buffer.size).encode())
                digest.update(b"" if buffer is None else buffer)
    return digest.hexdigest()


def _after_fork() -> None:
    # The files are the parent's, and a lock may have been held there.
    global _lock
    _lock = threading.Lock()
    _files.clear()
    _users.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
