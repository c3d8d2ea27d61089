"""Small files that nobody could make again: each is there twice, with a checksum, apart from all that can be rebuilt.

A file is a line that says its number and the SHA-256 of what follows, and what follows. It is written aside and then
moved, first the copy, then the file itself, so that at any moment one of the two is whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tagframe.errors import UnreadableFacts

_MAGIC = b"tagframe facts 1 "
_BUSY_SECONDS = 30.0

Mark = tuple[int, int, int]
"""Tells whether a file was written since."""


def sealed(body: bytes, number: int = 1) -> bytes:
    """The body with the line before it by which :func:`unsealed` knows whether it is what was written."""
    return _MAGIC + f"{number} {_digest(body, number)}\n".encode() + body


def unsealed(data: bytes) -> tuple[int, bytes] | None:
    """The number and the body; None where these are not the bytes that were written."""
    head, _, body = data.partition(b"\n")
    try:
        number, digest = head.removeprefix(_MAGIC).decode("ascii").split(" ")
        is_whole = head.startswith(_MAGIC) and digest == _digest(body, int(number))
    except ValueError:
        return None
    return (int(number), body) if is_whole else None


def _digest(body: bytes, number: int) -> str:
    return hashlib.sha256(b"%d\n%s" % (number, body)).hexdigest()


@dataclass(frozen=True)
class KeptFile:
    """A file and its copy.

    Attributes:
        path: of the file; its copy is beside it.
    """

    path: Path

    @property
    def copy(self) -> Path:
        """The second one."""
        return self.path.with_name(f"{self.path.name}.copy")

    def mark(self) -> Mark | None:
        """Tells whether somebody has written it since; None where it is not there."""
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def read(self) -> bytes | None:
        """What was written last, from whichever of the two is whole; None where neither is there.

        Raises:
            UnreadableFacts: there is one at least, and none is whole.
        """
        return (self._newest() or (0, None))[1]

    def _newest(self) -> tuple[int, bytes] | None:
        there = [data for data in map(_bytes_of, (self.path, self.copy)) if data is not None]
        whole = [found for found in map(unsealed, there) if found is not None]
        if there and not whole:
            raise UnreadableFacts(
                f"what was told of this data, such as which of its columns are hidden, cannot be read: {self.path} and "
                f"its copy {self.copy.name} are damaged. Nothing is opened, so that nothing hidden is shown. Put one "
                "of them back from a backup; or remove both: then what the catalogue has of them is used, and what it "
                "does not have has to be told again"
            )
        return max(whole, default=None)

    def write(self, body: bytes) -> None:
        """Replace both.

        Raises:
            OSError: they cannot be written.
            UnreadableFacts: what is there is not whole: it is not written over.
        """
        newest = self._newest()
        data = sealed(body, newest[0] + 1 if newest else 1)
        for path in (self.copy, self.path):
            _replace(path, data)

    def mend(self) -> None:
        """Make both whole where one of them is; nothing happens where they cannot be written."""
        newest = self._newest()
        if newest is not None:
            data = sealed(newest[1], newest[0])
            for path in (self.copy, self.path):
                with contextlib.suppress(OSError):
                    if _bytes_of(path) != data:
                        _replace(path, data)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """A block that no two processes are in at once.

        Raises:
            OSError: the folder cannot be written, or another process is in it for too long.
        """
        path = self.path.with_name(f"{self.path.name}.lock")
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # An empty database of SQLite, which knows how to lock on every system.
        try:
            lock = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise OSError(f"{path} cannot be locked: {error}") from error
        with closing(lock):
            try:
                lock.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                raise OSError(f"{path} cannot be locked: {error}") from error
            except sqlite3.DatabaseError:
                path.unlink(missing_ok=True)  # not a database: somebody wrote into it
            yield


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return b""  # it is there, and tells nothing


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with os.fdopen(os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
