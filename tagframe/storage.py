"""The files that tagframe stores on this machine: where they are, how large, and how they are removed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import platformdirs

from tagframe.errors import InvalidArgument, NotWritten, TagframeError, did_you_mean

_FACTS = "facts"
_WHAT = {
    "catalogues": "profiles and vectors of the tables that were opened, with samples of their cells",
    "rows": "vectors of rows, for sem_search and similar operators",
    "responses.db": "answers of models, which cost money; `tagframe lm purge` removes some of them",
    "encoders": "the encoder's files",
    _FACTS: "facts that you gave about your data, such as private columns",
}


@dataclass(frozen=True)
class StoredFile:
    """A file or folder that tagframe stores.

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


def stored_files() -> list[StoredFile]:
    """The files in the user's cache folder, and the facts that users gave about their data, from the data folder."""
    cache, data = platformdirs.user_cache_path("tagframe"), platformdirs.user_data_path("tagframe")
    paths = [*sorted(cache.iterdir() if cache.is_dir() else ()), *([data / _FACTS] if (data / _FACTS).is_dir() else [])]
    stored = []
    for path in paths:
        if path.name.endswith(("-wal", "-shm", "-journal")):
            continue  # of the database whose name they begin with
        files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path, *_beside(path)]
        size = sum(file.stat().st_size for file in files)
        stored.append(StoredFile(path.name, path, size, len(files), _WHAT.get(path.name, "")))
    return stored


def remove_stored(name: str) -> None:
    """Remove a file or folder that :func:`stored_files` lists.

    Raises:
        InvalidArgument: nothing has this name, or it cannot be made again, because the user provided it.
        OSError: it cannot be removed.
    """
    places = {one.name: one.place for one in stored_files()}
    if name not in places:
        raise InvalidArgument(f"nothing called {name!r} is stored: {did_you_mean(name, places)}")
    if name == _FACTS:
        raise InvalidArgument(
            f"{places[name]} holds facts that you gave about your data. Without them, private columns are no longer "
            "private. To remove it anyway, delete the folder yourself"
        )
    if places[name].is_dir():
        shutil.rmtree(places[name])
    else:
        for file in (places[name], *_beside(places[name])):
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


def locked(path: Path, seconds: float = 0.0) -> sqlite3.Connection:
    """A lock that the system itself takes from a process that ends, on every system; it is given back when closed.

    Args:
        path: of an empty file, which is made.
        seconds: to wait for another process.

    Raises:
        BlockingIOError: another process has it.
        OSError: the file cannot be written.
    """
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))  # SQLite does not say why it cannot
    lock = sqlite3.connect(path, timeout=seconds, isolation_level=None, check_same_thread=False)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        lock.close()
        raise BlockingIOError(f"{path} cannot be locked: {error}") from error
    return lock


@contextmanager
def writing(option: str, path: Path) -> Iterator[None]:
    """What the system says while a result is written, as an error that names the option.

    Args:
        option: the caller's parameter that names the path, such as ``to=``.
        path: what is written.

    Raises:
        NotWritten: there is no such folder, no space, or no right to write.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, TagframeError):
            raise
        raise NotWritten(f"{path} cannot be written ({error.strerror or error}): give another {option}") from error


def text_of(path: Path, most: int | None = None) -> str:
    """The text of a file that people wrote: UTF-16 or UTF-8 as its first bytes say, else UTF-8 or Windows-1252.

    Args:
        path: of the file.
        most: the most bytes that it may have.

    Raises:
        InvalidArgument: it is no regular file, or too large.
        OSError: it cannot be read.
    """
    if not path.is_file():
        raise InvalidArgument(f"{path} is no regular file but a pipe, a socket, a device or a folder")
    if most is not None and path.stat().st_size > most:
        raise InvalidArgument(f"{path} has more than {most / 2**20:.0f} MB, the most of such a file: split it")
    data = path.read_bytes()
    with suppress(UnicodeDecodeError):
        return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    return data.decode("cp1252", errors="replace")


def _beside(file: Path) -> list[Path]:
    """What SQLite has beside a database."""
    return [path for end in ("-wal", "-shm", "-journal") if (path := file.with_name(file.name + end)).exists()]
