"""The catalogue: profiles and vectors in one SQLite file, so that nothing is profiled or encoded twice.

The file is readable with any SQLite tool: ``sources`` (files, with size, time and content hash), ``tables``,
``columns``, ``vectors``, and ``meta``, which holds what users told (every version has it, so that this outlives them).
A catalogue holds sample values of the data, and is therefore readable by its owner only.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tagframe.corpus.knowledge import Knowledge
from tagframe.corpus.profile import ColumnProfile, Sketch, TableProfile
from tagframe.engines.base import ForeignKey, Stamp
from tagframe.errors import UnreadableCatalogue

if TYPE_CHECKING:
    from sqlite_utils import Database

APPLICATION_ID = int.from_bytes(b"tagf", "big")
"""Marks a SQLite file as a catalogue (its ``PRAGMA application_id``, bytes 68 to 71)."""

VERSION = 1
"""The layout of the file and the meaning of profiles (``PRAGMA user_version``); raised when either changes."""

_BUSY_SECONDS = 30.0
_VARIABLES = 500


@dataclass(frozen=True)
class IndexedSource:
    """A file as it was when it was indexed.

    Attributes:
        key: the file's path below the source's root.
        kind: see :class:`~tagframe.engines.base.Engine`.
        stamp: None for what has no file, and where a table could not be read, so that it is tried again.
        tables: profiles by the tables' names in the file.
    """

    key: str
    kind: str
    stamp: Stamp | None
    tables: Mapping[str, TableProfile]


@dataclass(frozen=True)
class Contents:
    """What a catalogue holds, but for vectors.

    Attributes:
        root: the file or folder that was indexed; None for frames.
        ids: of the tables that were saved, where those are not all; None for all.
        sources: by their keys.
        knowledge: what users told of the tables.
    """

    root: Path | None = None
    ids: tuple[str, ...] | None = None
    sources: Mapping[str, IndexedSource] = field(default_factory=dict)
    knowledge: Knowledge = field(default_factory=Knowledge)


def is_catalogue(path: Path) -> bool:
    """Whether the file is a catalogue, of whatever version."""
    with path.open("rb") as file:
        header = file.read(72)
    return header.startswith(b"SQLite format 3\x00") and header[68:72] == APPLICATION_ID.to_bytes(4, "big")


@dataclass(frozen=True)
class Catalogue:
    """A catalogue file. Each call opens the file, does its work in one transaction and closes it."""

    path: Path

    def load(self) -> Contents:
        """Everything but vectors; empty contents where there is no file yet.

        Raises:
            UnreadableCatalogue: the file is no catalogue, of another version, or damaged.
        """
        if not self.path.exists() or self.path.stat().st_size == 0:
            return Contents()
        with self._open() as db:
            meta = {row["key"]: json.loads(row["value"]) for row in db.table("meta").rows}
            columns: dict[tuple[str, str], list[ColumnProfile]] = {}
            for row in db.table("columns").rows_where(order_by="source, table_name, position"):
                columns.setdefault((row["source"], row["table_name"]), []).append(_column(row))
            tables: dict[str, dict[str, TableProfile]] = {}
            for row in db.table("tables").rows_where(order_by="source, table_name"):
                profile = _table(row, columns.get((row["source"], row["table_name"]), []))
                tables.setdefault(row["source"], {})[row["table_name"]] = profile
            sources = {
                row["key"]: IndexedSource(
                    key=row["key"],
                    kind=row["kind"],
                    stamp=None if row["sha256"] is None else Stamp(row["size"], row["mtime_ns"], row["sha256"]),
                    tables=tables.get(row["key"], {}),
                )
                for row in db.table("sources").rows
            }
        root, ids = meta.get("root"), meta.get("ids")
        return Contents(
            self._root(root, meta.get("root_from_here")),
            None if ids is None else tuple(ids),
            sources,
            _knowledge(meta.get("knowledge")),
        )

    def salvage(self) -> Knowledge:
        """What users told, out of a catalogue of whatever version, or one that is damaged elsewhere; else nothing."""
        query = "SELECT value FROM meta WHERE key = 'knowledge'"
        try:
            with closing(sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
                row = connection.execute(query).fetchone()
            return _knowledge(json.loads(row[0]) if row else None)
        except (sqlite3.Error, OSError, ValueError, KeyError, TypeError):
            return Knowledge()

    def tell(self, change: Callable[[Knowledge], Knowledge], places: Mapping[str, tuple[str, str]]) -> Knowledge:
        """Change what is known, in one transaction, and remove what the file holds of columns that are hidden now.

        Args:
            change: from what is known to what shall be.
            places: by table id: the key of its source, and its name there.

        Returns:
            What is known now.

        Raises:
            UnreadableCatalogue: as :meth:`write`.
        """
        with self._open(write=True) as db:
            row = db.execute("SELECT value FROM meta WHERE key = 'knowledge'").fetchone()
            old = _knowledge(json.loads(row[0]) if row else None)
            new = change(old)
            db.table("meta").upsert({"key": "knowledge", "value": json.dumps(new.to_json())}, pk="key")
            for table, column in new.hidden - old.hidden:
                if table in places:
                    db.execute(
                        "UPDATE columns SET minimum = NULL, maximum = NULL, samples = '[]', sketch = NULL,"
                        " sketch_complete = NULL WHERE source = ? AND table_name = ? AND name = ?",
                        [*places[table], column],
                    )
            for source in {places[table][0] for table, _ in old.hidden - new.hidden if table in places}:
                # What was removed can only be read again: the source counts as changed.
                db.execute("UPDATE sources SET sha256 = NULL WHERE key = ?", [source])
        return new

    def write(self, contents: Contents, changed: Iterable[str] | None = None) -> None:
        """Make the file hold ``contents``.

        Args:
            contents: what it shall hold; sources that are not in it are removed.
            changed: the keys of the sources that differ from what the file holds; None for all.

        Raises:
            UnreadableCatalogue: the file cannot be written, or is not a catalogue of this version.
        """
        rewritten = set(contents.sources if changed is None else changed)
        with self._open(write=True) as db:
            gone = {row["key"] for row in db.table("sources").rows} - set(contents.sources)
            for key in sorted(gone | rewritten):
                db.table("sources").delete_where("key = ?", [key])
                db.table("tables").delete_where("source = ?", [key])
                db.table("columns").delete_where("source = ?", [key])
            sources = [contents.sources[key] for key in sorted(rewritten)]
            db.table("meta").upsert_all(self._meta(contents), pk="key")
            # Where the file has it already, another process may have been told more since it was read.
            knowledge = {"key": "knowledge", "value": json.dumps(contents.knowledge.to_json())}
            db.table("meta").insert(knowledge, ignore=True)
            db.table("sources").insert_all(map(_source_row, sources))
            db.table("tables").insert_all(_table_row(source, name) for source in sources for name in source.tables)
            db.table("columns").insert_all(
                _column_row(source, name, column)
                for source in sources
                for name, table in source.tables.items()
                for column in table.columns
            )

    def vectors(self, embedder: str, documents: Sequence[str]) -> dict[str, npt.NDArray[np.float32]]:
        """The stored vectors of these documents; those that are not stored are left out.

        Raises:
            UnreadableCatalogue: as :meth:`load`.
        """
        if not self.path.exists():
            return {}
        found = {}
        with self._open() as db:
            for start in range(0, len(documents), _VARIABLES):
                part = documents[start : start + _VARIABLES]
                where = f"embedder = ? AND document IN ({', '.join('?' * len(part))})"
                for row in db.table("vectors").rows_where(where, [embedder, *part]):
                    found[row["document"]] = np.frombuffer(row["vector"], dtype="<f4").astype(np.float32)
        return found

    def add_vectors(self, embedder: str, vectors: Mapping[str, npt.NDArray[np.float32]]) -> None:
        """Store vectors by their documents.

        Raises:
            UnreadableCatalogue: as :meth:`write`.
        """
        with self._open(write=True) as db:
            db.table("vectors").insert_all(
                (
                    {"embedder": embedder, "document": document, "vector": vector.astype("<f4").tobytes()}
                    for document, vector in vectors.items()
                ),
                pk=("embedder", "document"),
                replace=True,
            )

    def delete(self) -> None:
        """Remove the file and what SQLite may have left beside it."""
        for suffix in ("", "-journal", "-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)

    @contextmanager
    def _open(self, *, write: bool = False) -> Iterator[Database]:
        from sqlite_utils import Database

        try:
            if write and not self.path.exists():
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            uri = f"{self.path.absolute().as_uri()}?mode={'rw' if write else 'ro'}"
            with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS)) as connection:
                db = Database(connection, recursive_triggers=False, execute_plugins=False)
                connection.execute("PRAGMA secure_delete = ON")  # what is removed leaves no bytes behind
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                self._check(db, write=write)
                yield db
                connection.commit()
        except (sqlite3.Error, OSError, ValueError, KeyError) as error:
            if isinstance(error, UnreadableCatalogue):
                raise
            raise UnreadableCatalogue(f"the catalogue {self.path} cannot be used: {error}") from error

    def _check(self, db: Database, *, write: bool) -> None:
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if application == APPLICATION_ID and version == VERSION:
            return
        if application == APPLICATION_ID:
            raise UnreadableCatalogue(
                f"the catalogue {self.path} is of version {version}, and this tagframe reads version {VERSION}; "
                "delete it and index again"
            )
        if not write or db.table_names():
            raise UnreadableCatalogue(f"{self.path} is not a catalogue of tagframe")
        _create(db)

    def _meta(self, contents: Contents) -> list[dict[str, str]]:
        root = None if contents.root is None else contents.root.absolute()
        values: dict[str, Any] = {"root": None, "root_from_here": None, "ids": contents.ids}
        if root is not None:
            values["root"] = str(root)
            try:
                values["root_from_here"] = Path(os.path.relpath(root, self.path.absolute().parent)).as_posix()
            except ValueError:  # another drive
                values["root_from_here"] = None
        return [{"key": key, "value": json.dumps(value)} for key, value in values.items()]

    def _root(self, root: str | None, from_here: str | None) -> Path | None:
        """The indexed source: where it was, or at the same place as seen from the catalogue, if both were moved."""
        if root is None:
            return None
        if from_here is not None and not Path(root).exists():
            moved = self.path.absolute().parent / from_here
            if moved.exists():
                return moved.resolve()
        return Path(root)


def _knowledge(plain: Any) -> Knowledge:
    return Knowledge() if plain is None else Knowledge.from_json(plain)


def _create(db: Database) -> None:
    db.table("meta").create({"key": str, "value": str}, pk="key")
    db.table("sources").create({"key": str, "kind": str, "size": int, "mtime_ns": int, "sha256": str}, pk="key")
    db.table("tables").create(
        {
            "source": str,
            "table_name": str,
            "database": str,
            "name": str,
            "rows": int,
            "primary_key": str,
            "foreign_keys": str,
        },
        pk=("source", "table_name"),
    )
    db.table("columns").create(
        {
            "source": str,
            "table_name": str,
            "position": int,
            "name": str,
            "family": str,
            "declared_type": str,
            "rows": int,
            "nulls": int,
            "distinct": int,
            "minimum": str,
            "maximum": str,
            "samples": str,
            "sketch": bytes,
            "sketch_complete": int,
        },
        pk=("source", "table_name", "position"),
    )
    db.table("vectors").create({"embedder": str, "document": str, "vector": bytes}, pk=("embedder", "document"))
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {VERSION}")


def _source_row(source: IndexedSource) -> dict[str, Any]:
    stamped = source.stamp
    return {
        "key": source.key,
        "kind": source.kind,
        "size": stamped.size if stamped else None,
        "mtime_ns": stamped.mtime_ns if stamped else None,
        "sha256": stamped.sha256 if stamped else None,
    }


def _table_row(source: IndexedSource, name: str) -> dict[str, Any]:
    table = source.tables[name]
    foreign_keys = [[key.columns, key.other_table, key.other_columns] for key in table.foreign_keys]
    return {
        "source": source.key,
        "table_name": name,
        "database": table.database,
        "name": table.name,
        "rows": table.rows,
        "primary_key": json.dumps(table.primary_key),
        "foreign_keys": json.dumps(foreign_keys),
    }


def _table(row: Mapping[str, Any], columns: list[ColumnProfile]) -> TableProfile:
    return TableProfile(
        id=f"{row['database']}.{row['name']}",
        database=row["database"],
        name=row["name"],
        columns=tuple(columns),
        rows=row["rows"],
        primary_key=tuple(json.loads(row["primary_key"])),
        foreign_keys=tuple(
            ForeignKey(tuple(own), other, tuple(others)) for own, other, others in json.loads(row["foreign_keys"])
        ),
    )


def _column_row(source: IndexedSource, table: str, column: ColumnProfile) -> dict[str, Any]:
    sketch = column.sketch
    return {
        "source": source.key,
        "table_name": table,
        "position": column.position,
        "name": column.name,
        "family": column.family,
        "declared_type": column.declared_type,
        "rows": column.rows,
        "nulls": column.nulls,
        "distinct": column.distinct,
        "minimum": column.minimum,
        "maximum": column.maximum,
        "samples": json.dumps(column.samples),
        "sketch": sketch.hashes.astype("<u8").tobytes() if sketch else None,
        "sketch_complete": int(sketch.complete) if sketch else None,
    }


def _column(row: Mapping[str, Any]) -> ColumnProfile:
    sketch = None
    if row["sketch"] is not None:
        sketch = Sketch(np.frombuffer(row["sketch"], dtype="<u8").astype(np.uint64), bool(row["sketch_complete"]))
    return ColumnProfile(
        name=row["name"],
        position=row["position"],
        family=row["family"],
        declared_type=row["declared_type"],
        rows=row["rows"],
        nulls=row["nulls"],
        distinct=row["distinct"],
        minimum=row["minimum"],
        maximum=row["maximum"],
        samples=tuple(json.loads(row["samples"])),
        sketch=sketch,
    )
