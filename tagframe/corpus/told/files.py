"""The files of facts that a user told: one for each opened source in the user's data folder, and ``tagframe.toml``.

Important facts, such as which columns are hidden, cannot be rebuilt from data as a catalogue can. So the file of a
source is apart from all that can be rebuilt, and kept twice, with a checksum: it begins with a line with its number and
the SHA-256 of the rest. It is written under another name and then moved, first the copy, then the file itself, so that
one of the two is whole at any moment. ``tagframe.toml`` is beside the data, for people, and moves with it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tagframe.corpus.references import ToldKey
from tagframe.corpus.told.facts import FactKey, Told, as_description, key_fact
from tagframe.corpus.told.identity import TableIdentity
from tagframe.engines.files.limits import check_regular
from tagframe.errors import BROKEN, CatalogueWarning, UnreadableFacts, UnreadableTable, warn
from tagframe.kept import replaced

_OURS = b"tagframe facts"
_MAGIC = _OURS + b" 2 "
_SUFFIX = ".facts"
_BUSY_SECONDS = 30.0

Mark = tuple[int, int, int]
"""A mark that changes when a file is written."""

NAME = "tagframe.toml"
"""The name of the file that is read automatically."""

_HEAD = "# Facts that a person gave about the tables beside this file; tagframe.open_corpus reads them.\n"


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
class Kept:
    """The contents of a file of facts.

    Attributes:
        place: the opened source, for readers of the file.
        told: the facts.
        tables: the tables with facts, by their ids there.
        copy_of: the sources of which this one is a copy.
    """

    place: str = ""
    told: Told = field(default_factory=Told)
    tables: Mapping[str, TableIdentity] = field(default_factory=dict)
    copy_of: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        """JSON that :meth:`from_bytes` reads."""
        tables = {id: identity.to_json() for id, identity in self.tables.items()}
        facts = ",\n".join(map(json.dumps, self.told.to_json()))  # a line each, for readers
        place = f'"place": {json.dumps(self.place)},\n"copy_of": {json.dumps(self.copy_of)}'
        return f'{{{place},\n"facts": [\n{facts}],\n"tables": {json.dumps(tables)}}}'.encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Kept:
        """Read what :meth:`to_bytes` wrote."""
        plain = json.loads(data)
        tables = {id: TableIdentity.from_json(one) for id, one in plain["tables"].items()}
        return cls(plain["place"], Told.from_json(plain["facts"]), tables, tuple(plain["copy_of"]))


def facts_folder() -> Path:
    """The folder of the facts that users told."""
    import platformdirs

    return platformdirs.user_data_path("tagframe") / "facts"


@dataclass(frozen=True)
class FactsFile:
    """The file of facts of a source, and its copy.

    Attributes:
        path: of the file; its copy is beside it.
        place: the source, for readers of the file.
    """

    path: Path
    place: str = ""

    @classmethod
    def of_source(cls, source: str) -> FactsFile:
        """The file in the user's data folder, which is not affected when caches are removed."""
        digest = hashlib.sha256(source.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        title = "".join(letter if letter.isalnum() else "-" for letter in Path(source).stem[:40])
        return cls(facts_folder() / f"{title or 'root'}-{digest}{_SUFFIX}", source)

    @classmethod
    def of_frames(cls, name: str) -> FactsFile:
        """The file for tables that are in no source."""
        return cls(facts_folder() / f"frames-{name}{_SUFFIX}", "tables in memory that were pickled")

    @property
    def copy(self) -> Path:
        """The second one."""
        return self.path.with_name(f"{self.path.name}.copy")

    def mark(self) -> Mark | None:
        """A mark that changes when the file is written; None if there is no file."""
        return _mark(self.path)

    def read(self) -> Kept | None:
        """What was written last, from the whole one of the two files; None if there is neither. They are read again
        only after one of them was written.

        Raises:
            UnreadableFacts: there is at least one, but none is whole.
        """
        marks = self.mark(), _mark(self.copy)
        held = _read_before.get(self.path)
        if held is None or held[0] != marks:
            newest = self._newest()
            held = _read_before[self.path] = marks, newest and Kept.from_bytes(newest[1])
        return held[1]

    def _newest(self) -> tuple[int, bytes] | None:
        there = [data for data in map(_bytes_of, (self.path, self.copy)) if data is not None]
        whole = [found for found in map(unsealed, there) if found is not None]
        if there and not whole:
            what = "the facts that you gave about this data, such as hidden columns, cannot be read"
            if any(data.startswith(_OURS) and not data.startswith(_MAGIC) for data in there):
                raise UnreadableFacts(
                    f"{what}: another version of tagframe wrote {self.path}. The data is not opened, so that nothing "
                    f"hidden is shown. There, corpus.save_facts writes them to a {NAME} beside the data, which "
                    f"this version reads; then remove {self.path} and its copy {self.copy.name}"
                )
            raise UnreadableFacts(
                f"{what}: {self.path} and "
                f"its copy {self.copy.name} are damaged. The data is not opened, so that nothing hidden is shown. "
                "Restore one of them from a backup; or remove both: then the catalogue's copy of the facts is used, "
                "and facts that it lacks must be given again"
            )
        return max(whole, default=None)

    def write(self, kept: Kept) -> None:
        """Replace both, inside of :meth:`locked`.

        Raises:
            OSError: they cannot be written.
            UnreadableFacts: the files there are damaged; they are not overwritten.
        """
        newest = self._newest()
        data = sealed(kept.to_bytes(), newest[0] + 1 if newest else 1)
        for path in (self.copy, self.path):
            _replace(path, data)
        _read_before[self.path] = (self.mark(), _mark(self.copy)), kept

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

    def others(self) -> Iterator[Kept]:
        """The facts of other sources, as far as they can be read."""
        for path in sorted(self.path.parent.glob(f"*{_SUFFIX}")):
            if path == self.path:
                continue
            try:
                kept = FactsFile(path).read()
            except UnreadableFacts as error:
                warn(f"facts of another source are not used, even if this data is its copy: {error}", CatalogueWarning)
                continue
            if kept is not None and kept.told.facts:
                yield kept


_read_before: dict[Path, tuple[tuple[Mark | None, Mark | None], Kept | None]] = {}


def _mark(path: Path) -> Mark | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return b""  # the file exists, but cannot be read


def _replace(path: Path, data: bytes) -> None:
    with replaced(path) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def facts_beside(source: Path) -> Kept | None:
    """The facts in the file beside a source; None if there is no file.

    Raises:
        UnreadableFacts: it does not have the form of :func:`write_facts`.
    """
    path = (source if source.is_dir() else source.parent) / NAME
    try:
        check_regular(path)
        plain, changed = tomllib.loads(path.read_bytes().decode("utf-8")), path.stat().st_mtime
        if unknown := sorted({*plain} - {"table", "column", "key", "hide", "private"}):
            raise ValueError(f"it has {unknown[0]!r}; known are 'table', 'column', 'key', 'hide' and 'private'")
        facts = {key: (value, changed) for key, value in _facts(plain)}
        tables = {
            one["table"]: TableIdentity(one.get("file", ""), one.get("name", ""), one.get("name", ""), ())
            for one in plain.get("table", [])
        }
        return Kept(str(path), Told(facts), tables)
    except FileNotFoundError:
        return None
    except (OSError, UnreadableTable, *BROKEN) as error:
        raise UnreadableFacts(
            f"{path}, the list of hidden columns of the data beside it, cannot be read: {error}. The data is "
            "not opened, so that nothing hidden is shown; repair the file, or remove it"
        ) from error


def _facts(plain: dict[str, Any]) -> Iterator[tuple[FactKey, Any]]:
    for one in plain.get("table", []):
        if one.get("description"):
            yield ("table", (str(one["table"]),)), as_description(str(one["description"]))
    for one in plain.get("column", []):
        column = str(one["table"]), str(one["column"])
        if one.get("description"):
            yield ("column", column), as_description(str(one["description"]))
        if "hidden" in one:
            raise ValueError(f"hidden of {'.'.join(column)} is not read: write hide = [{'.'.join(column)!r}]")
    for one in plain.get("key", []):
        yield key_fact(ToldKey.of(one), bool(one["joins"]))


def write_facts(path: Path, kept: Kept) -> Path:
    """Write the told facts to a file that :func:`facts_beside` reads; an existing file is replaced.

    Raises:
        OSError: it cannot be written.
    """
    told = kept.told.standing()
    tables: dict[str, dict[str, Any]] = {id: {"table": id} for id in sorted(told.tables())}
    for id, identity in kept.tables.items():
        if id in tables:
            tables[id].update(file=identity.source, name=identity.table)
    columns: dict[tuple[str, ...], dict[str, Any]] = {}
    keys = []
    for (kind, of), (value, _) in sorted(told.facts.items()):
        if kind == "table":
            tables[of[0]]["description"] = value
        elif kind == "column":
            columns.setdefault(of, {"table": of[0], "column": of[1]})["description"] = value
        elif kind == "key":
            keys.append(value)
    parts = [("table", list(tables.values())), ("column", list(columns.values())), ("key", keys)]
    private = [
        f"{of[0].rpartition('.')[2]}.{of[1]}" for (kind, of), _ in sorted(told.facts.items()) if kind == "hidden"
    ]
    head = _HEAD + f"private = {json.dumps(private, ensure_ascii=False)}\n" * bool(private)
    text = head + "".join(_part(name, one) for name, several in parts for one in several)
    with replaced(path, mode=0o666) as file:
        file.write(text.encode("utf-8", "replace"))
    return path


def _part(name: str, values: dict[str, Any]) -> str:
    # A JSON string is a TOML string, except for DEL.
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    return "\n".join(["", f"[[{name}]]", *lines, ""]).replace("\x7f", "\\u007F")
