"""The catalogue: everything known of a corpus in one SQLite file, so that no work is done twice.

Any SQLite tool can read the file: ``sources`` (files, with size, time and content hash), ``tables`` (their columns as
JSON), ``sketches``, ``vectors``, ``facts`` (results computed from tables: keys, the index of a lake), and ``meta``. A
catalogue that a user saves also has the facts that people, queries and models gave; otherwise these are in a file of
their own (:mod:`tagframe.corpus.facts`).

The file is written while the work goes on, each piece in its own transaction: a killed process loses only its current
piece, and several processes can share one file. A catalogue holds sample values of the data, so only its owner can read
it. One that fails is an error if the user named it; otherwise it is a warning, and what it kept is computed again.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tagframe.corpus.facts import Facts, FactStore
from tagframe.corpus.profile import Hashes, TableProfile
from tagframe.corpus.stored_profiles import ARRAYS, columns_text, digest_of, keys_texts, profile_of
from tagframe.corpus.totals import totals_text
from tagframe.engines.base import Engine, Stamp
from tagframe.errors import CatalogueWarning, TagframeError, UnreadableCatalogue, warn

APPLICATION_ID = int.from_bytes(b"tagf", "big")
"""Marks a SQLite file as a catalogue (its ``PRAGMA application_id``, bytes 68 to 71)."""

VERSION = 14
"""The layout of the file and the meaning of profiles (``PRAGMA user_version``); raised when either changes."""

BUSY_SECONDS = 30.0
_FACT_STATES = 4
"""The number of facts of one kind and name that are kept, for the last states of the tables."""


_LAYOUT = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT, checksum TEXT);
CREATE TABLE sources (
    key TEXT PRIMARY KEY, kind TEXT, size INTEGER, mtime_ns INTEGER, sha256 TEXT, notes TEXT, checksum TEXT);
CREATE TABLE tables (
    source TEXT, table_name TEXT, database TEXT, name TEXT, rows INTEGER, primary_key TEXT, unique_sets TEXT,
    foreign_keys TEXT, description TEXT, estimated INTEGER, shape TEXT, columns TEXT, digest TEXT, totals TEXT,
    computed_from TEXT, checksum TEXT, seen TEXT,
    PRIMARY KEY (source, table_name));
CREATE TABLE sketches (digest TEXT, position INTEGER, hashes BLOB, PRIMARY KEY (digest, position)) WITHOUT ROWID;
CREATE TABLE vectors (id INTEGER PRIMARY KEY, embedder TEXT, documents TEXT, vectors BLOB);
CREATE TABLE facts (id INTEGER PRIMARY KEY, kind TEXT, name TEXT, digest TEXT, value TEXT);
CREATE INDEX facts_by_digest ON facts (kind, digest);
"""


Notes = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class IndexedSource:
    """A file as it was when it was indexed.

    Attributes:
        key: the file's path below the source's root.
        kind: see :class:`~tagframe.engines.base.Engine`.
        stamp: None for a source without a file, and if a table is not read yet or could not be, so that it is tried.
        tables: profiles by the tables' names in the file.
        seen: by the same names, the SHA-256 of the file when the table was profiled, if known.
        notes: the warnings of how it is written, each with its class, for those who open it again.
    """

    key: str
    kind: str
    stamp: Stamp | None
    tables: Mapping[str, TableProfile]
    seen: Mapping[str, str] = field(default_factory=dict)
    notes: Notes = ()


@dataclass(frozen=True)
class Contents:
    """The contents of a catalogue, without sketches, vectors and facts.

    Attributes:
        root: the file or folder that was indexed; None for frames.
        ids: of the tables that were saved; None for all.
        sources: by their keys.
        facts: those that were saved with the tables.
        part: a digest of what its sources have and it has not; "" for nothing.
    """

    root: Path | None = None
    ids: tuple[str, ...] | None = None
    sources: Mapping[str, IndexedSource] = field(default_factory=dict)
    facts: Facts = field(default_factory=Facts)
    part: str = ""


def is_catalogue(path: Path) -> bool:
    """Whether the file is a catalogue, of any version."""
    with path.open("rb") as file:
        header = file.read(72)
    return header.startswith(b"SQLite format 3\x00") and header[68:72] == APPLICATION_ID.to_bytes(4, "big")


@dataclass(frozen=True)
class Catalogue:
    """A catalogue file. Each call opens the file, does its work in one transaction and closes it."""

    path: Path

    def load(self) -> Contents:
        """The tables, with their columns not read yet, and the saved facts; empty contents if there is no file.

        Raises:
            UnreadableCatalogue: the file is not a catalogue, of another version, or damaged.
        """
        if not self.path.exists() or self.path.stat().st_size == 0:
            return Contents()
        tables: dict[str, dict[str, TableProfile]] = defaultdict(dict)
        seen: dict[str, dict[str, str]] = defaultdict(dict)
        same: dict[str, str] = {}  # tables with the same columns often have the same text
        with self._open() as db:
            meta = {row["key"]: json.loads(row["value"]) for row in _checked(db, "SELECT * FROM meta")}
            for row in _checked(db, "SELECT * FROM tables ORDER BY source, table_name"):
                text = same.setdefault(row["columns"], row["columns"])
                tables[row["source"]][row["table_name"]] = profile_of(dict(row), text, self.sketch)
                if row["seen"] is not None:
                    seen[row["source"]][row["table_name"]] = row["seen"]
            sources = {
                key: IndexedSource(
                    key,
                    kind,
                    None if state[-1] is None else Stamp(*state),
                    tables.get(key, {}),
                    seen.get(key, {}),
                    tuple((what, category) for what, category in json.loads(notes)),
                )
                for key, kind, *state, notes, _ in _checked(db, "SELECT * FROM sources")
            }
        if "counts" in meta and meta["counts"] != {key: len(several) for key, several in tables.items()}:
            raise UnreadableCatalogue(f"the catalogue {self.path} is damaged: some of its tables are missing")
        ids, root = meta.get("ids"), self._root(meta.get("root"), meta.get("root_from_here"))
        facts = Facts({(kind, tuple(of)): value for kind, of, value in meta.get("facts", ())})
        return Contents(root, None if ids is None else tuple(ids), sources, facts, meta.get("part") or "")

    def write(self, contents: Contents, changed: Iterable[str] | None = None) -> None:
        """Replace the contents of the file; only tables that differ from the file's are written.

        Args:
            contents: sources that are not in them are removed.
            changed: the keys of the sources that differ from the file; None for all.

        Raises:
            UnreadableCatalogue: the file cannot be written, or is not a catalogue of this version.
        """
        with self._open(write=True) as db:
            for key, value in self._meta(contents).items():
                _put_meta(db, key, value)
            for (key,) in db.execute("SELECT key FROM sources").fetchall():
                if key not in contents.sources:
                    _put_tables(db, key, {}, {}, whole=True)
                    db.execute("DELETE FROM sources WHERE key = ?", [key])
            for key in sorted(contents.sources if changed is None else changed):
                source = contents.sources[key]
                _put_tables(db, key, source.tables, source.seen, whole=True)
                _put_source(db, source, source.stamp)
            _put_meta(db, "counts", _counts(db))

    def add(self, sources: Iterable[IndexedSource]) -> None:
        """Write some tables of sources before the others; a source counts as changed until :meth:`write`.

        Raises:
            UnreadableCatalogue: as :meth:`write`.
        """
        with self._open(write=True) as db:
            for source in sources:
                _put_source(db, source, None)
                _put_tables(db, source.key, source.tables, source.seen, whole=False)
            _put_meta(db, "counts", _counts(db))

    def sketch(self, digest: str) -> dict[int, Hashes]:
        """The hashes of the sketches of a table, by the positions of its columns; empty if the table has changed.

        Raises:
            UnreadableCatalogue: as :meth:`load`.
        """
        with self._open() as db:
            rows = db.execute("SELECT position, hashes FROM sketches WHERE digest = ?", [digest]).fetchall()
            return {position: np.frombuffer(hashes, dtype="<u8").astype(np.uint64) for position, hashes in rows}

    def vectors(self, embedder: str, after: int = 0) -> tuple[list[str], npt.NDArray[np.float32], int]:
        """The stored documents of an embedder, their vectors, shape (n, d), and the number to continue after.

        Args:
            embedder: its name.
            after: leave out documents stored up to this number.

        Raises:
            UnreadableCatalogue: as :meth:`load`.
        """
        documents: list[str] = []
        parts: list[npt.NDArray[np.float32]] = []
        if self.path.exists():
            with self._open() as db:
                query = "SELECT id, documents, vectors FROM vectors WHERE embedder = ? AND id > ? ORDER BY id"
                for number, names, data in db.execute(query, [embedder, after]):
                    listed, after = json.loads(names), number
                    documents += listed
                    parts.append(np.frombuffer(data, dtype="<f4").reshape(len(listed), -1))
        vectors = np.concatenate(parts).astype(np.float32) if parts else np.zeros((0, 0), dtype=np.float32)
        return documents, vectors, after

    def add_vectors(self, embedder: str, documents: Sequence[str], vectors: npt.NDArray[np.float32]) -> None:
        """Store the vectors of documents, shape (n, d).

        Raises:
            UnreadableCatalogue: as :meth:`write`.
        """
        row = [embedder, json.dumps(list(documents)), vectors.astype("<f4").tobytes()]
        with self._open(write=True) as db:
            db.execute("INSERT INTO vectors (embedder, documents, vectors) VALUES (?, ?, ?)", row)

    def facts(self, kind: str, digests: Sequence[str]) -> dict[str, Any]:
        """The facts computed from tables in exactly these states, by state; missing or old ones are left out.

        Raises:
            UnreadableCatalogue: as :meth:`load`.
        """
        if not self.path.exists():
            return {}
        query = "SELECT digest, value FROM facts WHERE kind = ? AND digest = ?"
        with self._open() as db:
            rows = [db.execute(query, [kind, digest]).fetchone() for digest in digests]
        return {row["digest"]: row["value"] for row in rows if row is not None}

    def add_fact(self, kind: str, name: str, digest: str, value: str | bytes) -> None:
        """Keep a computed fact, and those of the same kind and name for the last few states.

        Raises:
            UnreadableCatalogue: as :meth:`write`.
        """
        with self._open(write=True) as db:
            db.execute("DELETE FROM facts WHERE kind = ? AND digest = ?", [kind, digest])
            db.execute("INSERT INTO facts (kind, name, digest, value) VALUES (?, ?, ?, ?)", [kind, name, digest, value])
            old = "SELECT id FROM facts WHERE kind = ? AND name = ? ORDER BY id DESC LIMIT -1 OFFSET ?"
            db.execute(f"DELETE FROM facts WHERE id IN ({old})", [kind, name, 2 if kind == ARRAYS else _FACT_STATES])

    def delete(self) -> None:
        """Remove the file, and SQLite's files beside it."""
        for suffix in ("", "-journal", "-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)

    @contextmanager
    def _open(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        try:
            if write and not self.path.exists():
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            # Readers too: if a killed process left a half-written transaction, the next one to open the file undoes it.
            mode = "rw" if write or os.access(self.path, os.W_OK) else "ro"
            uri = f"{self.path.absolute().as_uri()}?mode={mode}"
            with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
                connection.row_factory = sqlite3.Row
                connection.execute("PRAGMA secure_delete = ON")  # removed data leaves no bytes behind
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                self._check(connection, write=write)
                yield connection
                connection.execute("COMMIT")
        except TagframeError:
            raise
        except _DAMAGE as error:
            if write and isinstance(error, TypeError | AttributeError):
                raise  # what was to be written
            raise UnreadableCatalogue(f"the catalogue {self.path} cannot be used: {error}") from error

    def _check(self, db: sqlite3.Connection, *, write: bool) -> None:
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if application == APPLICATION_ID and version == VERSION:
            return
        if application == APPLICATION_ID:
            raise UnreadableCatalogue(
                f"the catalogue {self.path} is of version {version}, and this tagframe reads version {VERSION}; "
                "delete it and index again"
            )
        if not write or db.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise UnreadableCatalogue(f"{self.path} is not a tagframe catalogue")
        for statement in _LAYOUT.strip().split(";\n"):
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {VERSION}")

    def _meta(self, contents: Contents) -> dict[str, Any]:
        facts = [[kind, of, value] for (kind, of), value in contents.facts.values.items()]
        also = {"ids": contents.ids, "part": contents.part, **({"facts": facts} if facts else {})}
        if contents.root is None:
            return {**also, "root": None, "root_from_here": None}
        root, from_here = contents.root.absolute(), None
        with suppress(ValueError):  # another drive
            from_here = Path(os.path.relpath(root, self.path.absolute().parent)).as_posix()
        return {**also, "root": str(root), "root_from_here": from_here}

    def _root(self, root: str | None, from_here: str | None) -> Path | None:
        """The indexed source: at its old path or, if it was moved with the catalogue, at its path relative to it."""
        if root is None:
            return None
        if from_here is not None and not Path(root).exists():
            moved = self.path.absolute().parent / from_here
            if moved.exists():
                return moved.resolve()
        return Path(root)


_DAMAGE = (sqlite3.Error, OSError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""The errors of reading a damaged file."""


def _checked(db: sqlite3.Connection, query: str) -> Iterator[sqlite3.Row]:
    """The rows of a query, each of which has the checksum of the values before it.

    Raises:
        ValueError: one was changed by something else.
    """
    for row in db.execute(query):
        if row["checksum"] != _checksum(tuple(row)[: row.keys().index("checksum")]):
            raise ValueError(f"the checksum of {row[0]!r:.100} is wrong: delete the file, and index again")
        yield row


def _checksum(values: tuple[Any, ...]) -> str:
    return hashlib.sha256(repr(values).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _put_meta(db: sqlite3.Connection, key: str, value: Any) -> None:
    row = key, json.dumps(value)
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", [*row, _checksum(row)])


def _counts(db: sqlite3.Connection) -> dict[str, int]:
    """The number of tables of each source: lost pages of the file show only in these counts."""
    return dict(map(tuple, db.execute("SELECT source, count(*) FROM tables GROUP BY source")))


def _put_source(db: sqlite3.Connection, source: IndexedSource, stamp: Stamp | None) -> None:
    known = (stamp.size, stamp.mtime_ns, stamp.sha256) if stamp else (None, None, None)
    row = source.key, source.kind, *known, json.dumps(source.notes)
    db.execute("INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?, ?, ?, ?)", [*row, _checksum(row)])


def _put_tables(
    db: sqlite3.Connection, source: str, tables: Mapping[str, TableProfile], seen: Mapping[str, str], *, whole: bool
) -> None:
    """Write the tables that differ from the file's; ``whole`` removes other tables of the source."""
    query = "SELECT table_name, digest, columns FROM tables WHERE source = ?"
    stored = {row["table_name"]: (row["digest"], row["columns"]) for row in db.execute(query, [source])}
    texts = {name: columns_text(table) for name, table in tables.items()}
    states = {name: (digest_of(table, texts[name]), texts[name]) for name, table in tables.items()}
    gone = {name: state for name, state in stored.items() if states.get(name, None if whole else state) != state}
    db.executemany("DELETE FROM tables WHERE source = ? AND table_name = ?", [(source, name) for name in gone])
    # The same table may have come from another source in the meantime: a folder that another engine reads now.
    db.execute(
        "DELETE FROM sketches WHERE digest IN (SELECT value FROM json_each(?)) "
        "AND digest NOT IN (SELECT digest FROM tables)",
        [json.dumps([digest for digest, _ in gone.values()])],
    )
    for name, table in tables.items():
        digest, text = states[name]
        if stored.get(name) == states[name]:
            update = "UPDATE tables SET seen = ? WHERE source = ? AND table_name = ?"
            db.execute(update, [seen.get(name), source, name])
            continue
        row = (source, name, table.database, table.name, table.rows, *keys_texts(table), table.description,
               int(table.estimated), table.shape, text, digest, totals_text(table.totals),
               json.dumps(table.computed_from))  # fmt: skip
        marks = ", ".join("?" * (len(row) + 2))
        db.execute(f"INSERT INTO tables VALUES ({marks})", [*row, _checksum(row), seen.get(name)])
        sketches = [
            (digest, column.position, column.sketch.hashes.astype("<u8").tobytes())
            for column in table.columns
            if column.sketch is not None and len(column.sketch.hashes)
        ]
        db.executemany("INSERT OR REPLACE INTO sketches VALUES (?, ?, ?)", sketches)


# --- the catalogue of an opened source, and a corpus as a catalogue of its own ----------------------------------------

PUT_DOWN_EVERY = 2.0
"""Seconds of profiling between two writes of finished tables to the catalogue."""


@dataclass
class SourceCatalogue:
    """A catalogue that may fail: an error with ``strict``; otherwise a warning, and nothing is kept from then on.

    Attributes:
        catalogue: None for no catalogue.
        strict: whether the user named it.
        facts: the store of facts about the same data.
    """

    catalogue: Catalogue | None
    strict: bool = False
    facts: FactStore = field(default_factory=FactStore)
    _waiting: dict[str, IndexedSource] = field(default_factory=dict, init=False)
    _since: float = field(default_factory=time.monotonic, init=False)

    def load(self) -> Contents:
        """The contents of the catalogue; empty contents if it cannot be read.

        Raises:
            UnreadableCatalogue: it cannot be read, and the user named it.
        """
        if self.catalogue is None:
            return Contents()
        try:
            return self.catalogue.load()
        except UnreadableCatalogue as error:
            if self.strict:
                raise
            if self._is_replaceable(error):
                warn(f"everything is profiled again: {error}", CatalogueWarning)
            else:
                warn(f"everything is profiled again, and kept in memory only: {error}", CatalogueWarning)
                self.catalogue = None
            return Contents()

    def write(self, contents: Contents, changed: Sequence[str]) -> None:
        """Write the contents to the catalogue."""
        self._tried(lambda catalogue: catalogue.write(contents, changed))

    def put_down(self, source: IndexedSource, name: str, profile: TableProfile) -> None:
        """Save a finished table, now or with the following ones, so that it is not lost if the process ends."""
        tables = self._waiting[source.key].tables if source.key in self._waiting else {}
        self._waiting[source.key] = replace(source, tables={**tables, name: profile})
        if time.monotonic() - self._since >= PUT_DOWN_EVERY:
            self.flush()

    def flush(self) -> None:
        """Save the waiting tables."""
        if self._waiting:
            self._tried(lambda catalogue: catalogue.add(self._waiting.values()))
        self._waiting, self._since = {}, time.monotonic()

    def stored(self, sources: Mapping[str, IndexedSource]) -> dict[str, IndexedSource]:
        """The sources as stored in the catalogue; their columns are read later, which frees memory."""
        stored = self.load().sources
        return {key: stored.get(key, source) for key, source in sources.items()}

    def _tried(self, work: Callable[[Catalogue], None]) -> None:
        if self.catalogue is None:
            return
        try:
            work(self.catalogue)
        except UnreadableCatalogue as error:
            if self.strict:
                raise
            warn(f"profiles are kept in memory only: {error}", CatalogueWarning)
            self.catalogue = None

    def _is_replaceable(self, error: UnreadableCatalogue) -> bool:
        """Remove a catalogue that is damaged or of another version, but not one that another process holds."""
        code = getattr(error.__cause__, "sqlite_errorcode", sqlite3.SQLITE_OK)
        if self.catalogue is None or code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return False
        try:
            self.catalogue.delete()
        except OSError:
            return False
        return True


def cached(title: str, source: bytes, part: str = "") -> Catalogue | None:
    """The catalogue of a source in the user's cache folder; None, with a warning, if there can be none.

    Args:
        title: a name for readers of the folder.
        source: bytes that identify the source.
        part: a digest of what is left out; each list has a catalogue of its own, so that none has their cells.
    """
    import platformdirs

    digest = hashlib.sha256(source + part.encode()).hexdigest()[:16]
    folder = platformdirs.user_cache_path("tagframe") / "catalogues"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        warn(f"profiles are kept in memory only: {error}", CatalogueWarning)
        return None
    # A file for each version, so that two versions of tagframe can run on one machine.
    file = folder / f"{title[:40] or 'root'}-{digest}.v{VERSION}.sqlite"
    return Catalogue(file)


@dataclass(frozen=True)
class Origin:
    """Where a table of a corpus comes from.

    Attributes:
        key: the source's key in a catalogue.
        table: the table's name in the source.
        kind: of the source.
        engine: reads it; None if the source is gone.
        stamp: of the source when it was profiled; None for frames.
        notes: of the source.
    """

    key: str
    table: str
    kind: str
    engine: Engine | None = None
    stamp: Stamp | None = None
    notes: Notes = ()


def save(
    target: Path,
    contents: Contents,
    vectors: Mapping[str, tuple[Sequence[str], npt.NDArray[np.float32]]],
    facts: Iterable[tuple[str, str, str, str]],
) -> Path:
    """Write a catalogue; an existing catalogue is replaced, another file is not.

    Args:
        target: the path.
        contents: of the corpus.
        vectors: documents and vectors by embedder.
        facts: kind, name, state and value of each.

    Raises:
        UnreadableCatalogue: ``target`` is another kind of file, or cannot be written.
    """
    if target.exists() and not (target.is_file() and is_catalogue(target)):
        raise UnreadableCatalogue(f"{target} is not a catalogue, and is not replaced; save to another path")
    # Written under another name and moved, so that nobody ever opens half a catalogue.
    draft = Catalogue(target.with_name(f".{target.name}.{os.getpid()}"))
    try:
        draft.write(contents)
        for embedder, (documents, rows) in vectors.items():
            draft.add_vectors(embedder, documents, rows)
        for fact in facts:
            draft.add_fact(*fact)
        draft.path.replace(target)
    except OSError as error:
        raise UnreadableCatalogue(f"the catalogue {target} cannot be written: {error}") from error
    finally:
        draft.delete()
    return target
