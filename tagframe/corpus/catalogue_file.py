"""The catalogue of an opened source: its place, and the handling of its failures."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from tagframe.corpus.catalogue import VERSION, Catalogue, Contents, IndexedSource
from tagframe.corpus.knowledge import FactsFile, Kept, KnowledgeStore
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.told_facts import Told
from tagframe.errors import CatalogueWarning, UnreadableCatalogue, UnreadableFacts, warn

PUT_DOWN_EVERY = 2.0
"""Seconds of profiling between two writes of finished tables to the catalogue."""


@dataclass
class SourceCatalogue:
    """A catalogue that may fail: an error with ``strict``; otherwise a warning, and nothing is kept from then on.

    Attributes:
        catalogue: None for no catalogue.
        strict: whether the user named it.
        facts: the file of facts told about the same data; None for no file.
        beside: the facts of a file beside the data.
    """

    catalogue: Catalogue | None
    strict: bool = False
    facts: FactsFile | None = None
    beside: Kept | None = None
    _waiting: dict[str, IndexedSource] = field(default_factory=dict, init=False)
    _since: float = field(default_factory=time.monotonic, init=False)

    @cached_property
    def knowledge(self) -> KnowledgeStore:
        """The store of facts told about the data."""
        return KnowledgeStore(None, self.facts, self.catalogue, self.beside)

    def load(self) -> Contents:
        """The contents of the catalogue; if it cannot be read, only the facts that the user told.

        Raises:
            UnreadableFacts: the facts that the user told cannot be read.
            UnreadableCatalogue: the catalogue cannot be read, and the user named it.
        """
        is_told = self.knowledge.read()  # a user tells a fact only once
        contents = self._loaded(is_told=is_told)
        self.knowledge.add(contents.told)
        return contents

    def _loaded(self, *, is_told: bool) -> Contents:
        if self.catalogue is None:
            return Contents()
        try:
            return self.catalogue.load()
        except UnreadableCatalogue as error:
            if self.strict:
                raise
            told = self.catalogue.salvage()
            if told is None and not is_told:
                raise UnreadableFacts(
                    f"{self.catalogue.path} is damaged. It has the only copy of the facts that you gave about "
                    "this data, such as hidden columns. The data is not opened, so that nothing hidden is shown. "
                    "Restore the file from a backup; or delete it, open the data, and give the facts again"
                ) from error
            if self._is_replaceable(error):
                warn(f"everything is profiled again: {error}", CatalogueWarning)
            else:
                warn(f"everything is profiled again, and kept in memory only: {error}", CatalogueWarning)
                self.catalogue = None
            return Contents(told=told or Told())

    def write(self, contents: Callable[[], Contents], changed: Sequence[str]) -> None:
        """Write the contents to the catalogue; ``contents`` is called at the time of writing."""
        self._tried(lambda catalogue: catalogue.write(contents, changed))

    def put_down(self, source: IndexedSource, name: str, profile: TableProfile) -> None:
        """Save a finished table, now or with the following ones, so that it is not lost if the process ends."""
        waiting = self._waiting.get(source.key, replace(source, tables={}))
        self._waiting[source.key] = replace(waiting, tables={**waiting.tables, name: profile})
        if time.monotonic() - self._since >= PUT_DOWN_EVERY:
            self.flush()

    def flush(self) -> None:
        """Save the waiting tables."""
        for source in self._waiting.values():
            self._tried(lambda catalogue, source=source: catalogue.add(lambda: self._surely_shown(source)))  # type: ignore[misc]
        self._waiting, self._since = {}, time.monotonic()

    def _surely_shown(self, source: IndexedSource) -> IndexedSource:
        """The source without tables that may have hidden columns.

        A table's id is only known when all tables are read, so such tables are saved at the end.
        """
        known = self.knowledge.known
        hidden = {table for table, _ in known.withheld}
        computed = self.knowledge.sources.may_compute(source.key, source.seen, known)
        kept = {
            name: profile
            for name, profile in source.tables.items()
            if name not in computed
            and not any(table == profile.name or table.endswith(f".{profile.name}") for table in hidden)
        }
        return replace(source, tables=kept)

    def stored(self, sources: Mapping[str, IndexedSource]) -> dict[str, IndexedSource]:
        """The sources as stored in the catalogue; their columns are read later, which frees memory."""
        held = self._loaded(is_told=True).sources
        return {key: held.get(key, source) for key, source in sources.items()}

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


def cache_of(path: Path) -> SourceCatalogue:
    """The catalogue of a source in the user's cache folder."""
    source = path.resolve()
    return cache_named(source.stem, os.fsencode(source), FactsFile.of_source(str(source)))


def cache_named(title: str, source: bytes, facts: FactsFile) -> SourceCatalogue:
    """The catalogue of a source in the user's cache folder.

    Args:
        title: a name for readers of the folder.
        source: bytes that identify the source.
        facts: the file of facts told about it.
    """
    import platformdirs

    digest = hashlib.sha256(source).hexdigest()[:16]
    folder = platformdirs.user_cache_path("tagframe") / "catalogues"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        warn(f"profiles are kept in memory only: {error}", CatalogueWarning)
        return SourceCatalogue(None, facts=facts)
    # A file for each version, so that two versions of tagframe can run on one machine.
    file = folder / f"{title[:40] or 'root'}-{digest}.v{VERSION}.sqlite"
    return SourceCatalogue(Catalogue(file), facts=facts)
