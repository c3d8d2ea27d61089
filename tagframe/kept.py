"""What tagframe keeps on this machine: where it is, how large it is, and how to remove it."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import platformdirs

from tagframe.errors import InvalidArgument, did_you_mean

_TOLD = "facts"
_WHAT = {
    "catalogues": "profiles and vectors of the tables that were opened, with samples of their cells",
    "rows": "vectors of rows, for sem_search and similar operators",
    "responses.db": "answers of models, which cost money; `tagframe lm purge` removes some of them",
    "encoders": "the encoder's files",
    _TOLD: "facts that you gave about your data, such as hidden columns",
}


@dataclass(frozen=True)
class Kept:
    """A file or folder of ours.

    Attributes:
        name: of the file or folder.
        place: its path.
        bytes, files: its size, and how many files it has.
        what: what is in it.
    """

    name: str
    place: Path
    bytes: int
    files: int
    what: str


def kept_files() -> list[Kept]:
    """What is in the user's cache folder, and in the data folder the facts that users gave about data."""
    cache, data = platformdirs.user_cache_path("tagframe"), platformdirs.user_data_path("tagframe")
    paths = [*sorted(cache.iterdir() if cache.is_dir() else ()), *([data / _TOLD] if (data / _TOLD).is_dir() else [])]
    found = []
    for path in paths:
        if path.name.endswith(("-wal", "-shm", "-journal")):
            continue  # of the database whose name they begin with
        files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path, *_beside(path)]
        size = sum(file.stat().st_size for file in files)
        found.append(Kept(path.name, path, size, len(files), _WHAT.get(path.name, "")))
    return found


def remove_kept(name: str) -> None:
    """Remove a file or folder that :func:`kept_files` lists.

    Raises:
        InvalidArgument: nothing has this name, or it cannot be made again, because the user provided it.
        OSError: it cannot be removed.
    """
    held = {one.name: one.place for one in kept_files()}
    if name not in held:
        raise InvalidArgument(f"nothing called {name!r} is kept: {did_you_mean(name, held)}")
    if name == _TOLD:
        raise InvalidArgument(
            f"{held[name]} holds facts that you gave about your data. Without them, private columns are no longer "
            "private. To remove it anyway, delete the folder yourself"
        )
    if held[name].is_dir():
        shutil.rmtree(held[name])
    else:
        for file in (held[name], *_beside(held[name])):
            file.unlink()


@contextmanager
def replaced(path: Path, *, mode: int = 0o600) -> Iterator[BinaryIO]:
    """A file to write under another name, then moved to ``path``: a reader sees the old or the new one, no half of it.

    Args:
        path: of the file; an existing one is replaced.
        mode: who may read it; by default only its owner.

    Raises:
        OSError: it cannot be written.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with os.fdopen(os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, mode), "wb") as file:
            yield file
        draft.replace(path)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _beside(file: Path) -> list[Path]:
    """What SQLite has beside a database."""
    return [found for end in ("-wal", "-shm", "-journal") if (found := file.with_name(file.name + end)).exists()]
