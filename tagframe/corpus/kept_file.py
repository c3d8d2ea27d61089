"""Small files that cannot be made again: each is kept twice, with a checksum, apart from all data that can be rebuilt.

A file begins with a line with its number and the SHA-256 of the rest. It is written under another name and then moved,
first the copy, then the file itself, so that one of the two is whole at any moment.
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
"""A mark that changes when a file is written."""


def sealed(body: bytes, number: int = 1) -> bytes:
    """The body with a first line that lets :func:`unsealed` check it."""
    return _MAGIC + f"{number} {_digest(body, number)}\n".encode() + body


def unsealed(data: bytes) -> tuple[int, bytes] | None:
    """The number and the body; None if the checksum is wrong."""
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
        """A mark that changes when the file is written; None if there is no file."""
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def read(self) -> bytes | None:
        """The last written body, from the whole one of the two files; None if there is neither.

        Raises:
            UnreadableFacts: there is at least one, but none is whole.
        """
        return (self._newest() or (0, None))[1]

    def _newest(self) -> tuple[int, bytes] | None:
        there = [data for data in map(_bytes_of, (self.path, self.copy)) if data is not None]
        whole = [found for found in map(unsealed, there) if found is not None]
        if there and not whole:
            raise UnreadableFacts(
                f"the facts that you gave about this data, such as hidden columns, cannot be read: {self.path} and "
                f"its copy {self.copy.name} are damaged. The data is not opened, so that nothing hidden is shown. "
                "Restore one of them from a backup; or remove both: then the catalogue's copy of the facts is used, "
                "and facts that it lacks must be given again"
            )
        return max(whole, default=None)

    def write(self, body: bytes) -> None:
        """Replace both.

        Raises:
            OSError: they cannot be written.
            UnreadableFacts: the files there are damaged; they are not overwritten.
        """
        newest = self._newest()
        data = sealed(body, newest[0] + 1 if newest else 1)
        for path in (self.copy, self.path):
            _replace(path, data)

    def mend(self) -> None:
        """Repair one file from the other, if one is whole; nothing happens if they cannot be written."""
        newest = self._newest()
        if newest is not None:
            data = sealed(newest[1], newest[0])
            for path in (self.copy, self.path):
                with contextlib.suppress(OSError):
                    if _bytes_of(path) != data:
                        _replace(path, data)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """A block for only one process at a time.

        Raises:
            OSError: the folder cannot be written, or another process is in the block for too long.
        """
        path = self.path.with_name(f"{self.path.name}.lock")
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # An empty SQLite database: SQLite can lock files on every system.
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
        return b""  # the file exists, but cannot be read


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
