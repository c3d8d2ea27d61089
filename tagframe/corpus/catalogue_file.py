"""The catalogue of a source that is opened: where it is, and what becomes of it when it fails."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tagframe.corpus.catalogue import VERSION, Catalogue, Contents, IndexedSource
from tagframe.corpus.profile import TableProfile
from tagframe.errors import CatalogueWarning, UnreadableCatalogue

_PUT_DOWN_EVERY = 2.0
"""Seconds of profiling after which what is done is put into the catalogue."""


@dataclass
class Keeper:
    """A catalogue that may fail: with ``strict`` an error, else a warning, and nothing is kept from then on.

    Where there is no such file yet, what was told is taken from the ``older`` one of another version.
    """

    catalogue: Catalogue | None
    strict: bool = False
    older: Catalogue | None = None

    def load(self) -> Contents:
        """What the catalogue holds; where it cannot be read, what its user told."""
        if self.catalogue is None:
            return Contents()
        try:
            if self.older is not None and not self.catalogue.path.exists():
                return Contents(knowledge=self.older.salvage())
            return self.catalogue.load()
        except UnreadableCatalogue as error:
            if self.strict:
                raise
            told = self.catalogue.salvage()  # a user tells it once
            if self._is_replaceable(error):
                self._warn("everything is profiled again", error)
            else:
                self._warn("everything is profiled again, and kept in memory only", error)
                self.catalogue = None
            return Contents(knowledge=told)

    def write(self, contents: Contents, changed: Sequence[str]) -> None:
        """Make the catalogue hold the contents."""
        self._tried(lambda catalogue: catalogue.write(contents, changed))

    def add(self, source: IndexedSource) -> None:
        """Put down what is done of a source, so that it is not lost with the process."""
        self._tried(lambda catalogue: catalogue.add(source))

    def stored(self, sources: Mapping[str, IndexedSource]) -> dict[str, IndexedSource]:
        """The sources as the catalogue has them now: their columns unread, so that memory is free again."""
        held = self.load().sources
        return {key: held.get(key, source) for key, source in sources.items()}

    def _tried(self, work: Callable[[Catalogue], None]) -> None:
        if self.catalogue is None:
            return
        try:
            work(self.catalogue)
        except UnreadableCatalogue as error:
            if self.strict:
                raise
            self._warn("profiles are kept in memory only", error)
            self.catalogue = None

    def _is_replaceable(self, error: UnreadableCatalogue) -> bool:
        """Remove a catalogue that is damaged or of another version, not one that another process holds."""
        code = getattr(error.__cause__, "sqlite_errorcode", sqlite3.SQLITE_OK)
        if self.catalogue is None or code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return False
        try:
            self.catalogue.delete()
        except OSError:
            return False
        return True

    def _warn(self, consequence: str, error: Exception) -> None:
        warnings.warn(f"{consequence}: {error}", CatalogueWarning, stacklevel=5)


def cache_of(path: Path) -> Keeper:
    """The catalogue of a source in the user's cache folder."""
    place = path.resolve()
    return cache_named(place.stem, os.fsencode(place))


def cache_named(title: str, place: bytes) -> Keeper:
    """The catalogue of a place in the user's cache folder.

    Args:
        title: what a reader of the folder may know it by.
        place: what tells it from others.
    """
    import platformdirs

    digest = hashlib.sha256(place).hexdigest()[:16]
    folder = platformdirs.user_cache_path("tagframe") / "catalogues"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        warnings.warn(f"profiles are kept in memory only: {error}", CatalogueWarning, stacklevel=3)
        return Keeper(None)
    name = f"{title[:40] or 'root'}-{digest}"
    # A file for each version, so that two tagframes on one machine leave each other's alone.
    return Keeper(Catalogue(folder / f"{name}.v{VERSION}.sqlite"), older=Catalogue(folder / f"{name}.sqlite"))


class Draft:
    """Profiles on their way into the catalogue, put down every so often."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._waiting: dict[str, IndexedSource] = {}
        self._since = time.monotonic()

    def add(self, source: IndexedSource, name: str, profile: TableProfile) -> None:
        """Put down a table, now or with those that follow."""
        waiting = self._waiting.get(source.key, replace(source, tables={}))
        self._waiting[source.key] = replace(waiting, tables={**waiting.tables, name: profile})
        if time.monotonic() - self._since >= _PUT_DOWN_EVERY:
            self.flush()

    def flush(self) -> None:
        """Put down what waits."""
        for source in self._waiting.values():
            self._keeper.add(source)
        self._waiting, self._since = {}, time.monotonic()
