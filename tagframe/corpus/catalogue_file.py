"""The catalogue of an opened source: its place, what it keeps, its failures; and a corpus as a catalogue of its own.

A catalogue that fails is an error if the user named it. Otherwise it is a warning, and what it kept is computed again.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tagframe.corpus.catalogue import VERSION, Catalogue, Contents, IndexedSource, Notes, is_catalogue
from tagframe.corpus.facts import FactStore
from tagframe.corpus.profile import TableProfile
from tagframe.engines.base import Engine, Stamp
from tagframe.errors import CatalogueWarning, UnreadableCatalogue, warn

T = TypeVar("T")

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

    def write(self, contents: Callable[[], Contents], changed: Sequence[str]) -> None:
        """Write the contents to the catalogue; ``contents`` is called at the time of writing."""
        self._tried(lambda catalogue: catalogue.write(contents, changed))

    def put_down(self, source: IndexedSource, name: str, profile: TableProfile) -> None:
        """Save a finished table, now or with the following ones, so that it is not lost if the process ends."""
        tables = self._waiting[source.key].tables if source.key in self._waiting else {}
        self._waiting[source.key] = replace(source, tables={**tables, name: profile})
        if time.monotonic() - self._since >= PUT_DOWN_EVERY:
            self.flush()

    def flush(self) -> None:
        """Save the waiting tables."""
        waiting = list(self._waiting.values())
        if waiting:
            self._tried(lambda catalogue: catalogue.add(lambda: waiting))
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
        draft.write(lambda: contents)
        for embedder, (documents, rows) in vectors.items():
            draft.add_vectors(embedder, documents, rows)
        for fact in facts:
            draft.add_fact(*fact)
        draft.path.replace(target)
        Catalogue(target).forget_arrays()  # they may have data that this catalogue leaves out
    except OSError as error:
        raise UnreadableCatalogue(f"the catalogue {target} cannot be written: {error}") from error
    finally:
        draft.delete()
    return target
