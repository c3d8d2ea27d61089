"""The catalogue of a source that is opened: where it is, and what becomes of it when it fails."""

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
"""Seconds of profiling after which what is done is put into the catalogue."""


@dataclass
class SourceCatalogue:
    """A catalogue that may fail: with ``strict`` an error, else a warning, and nothing is kept from then on.

    Attributes:
        catalogue: None for nowhere.
        strict: whether its user named it.
        facts: the file of what was told of the same data; None for nowhere.
        beside: what a file beside the data says of it.
    """

    catalogue: Catalogue | None
    strict: bool = False
    facts: FactsFile | None = None
    beside: Kept | None = None
    _waiting: dict[str, IndexedSource] = field(default_factory=dict, init=False)
    _since: float = field(default_factory=time.monotonic, init=False)

    @cached_property
    def knowledge(self) -> KnowledgeStore:
        """What was told of the data, and will be."""
        return KnowledgeStore(None, self.facts, self.catalogue, self.beside)

    def load(self) -> Contents:
        """What the catalogue holds; where it cannot be read, nothing but what its user told.

        Raises:
            UnreadableFacts: what the user told cannot be read.
            UnreadableCatalogue: the catalogue cannot, and its user named it.
        """
        is_told = self.knowledge.read()  # a user tells it once
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
                    f"{self.catalogue.path} is damaged, so that what was told of this data, such as which of its "
                    "columns are hidden, cannot be read, and it is nowhere else. Nothing is opened, so that nothing "
                    "hidden is shown. Put the file back from a backup; or delete it, then open the data and tell it "
                    "again"
                ) from error
            if self._is_replaceable(error):
                warn(f"everything is profiled again: {error}", CatalogueWarning)
            else:
                warn(f"everything is profiled again, and kept in memory only: {error}", CatalogueWarning)
                self.catalogue = None
            return Contents(told=told or Told())

    def write(self, contents: Callable[[], Contents], changed: Sequence[str]) -> None:
        """Make the catalogue hold the contents; they are asked for when they are written."""
        self._tried(lambda catalogue: catalogue.write(contents, changed))

    def put_down(self, source: IndexedSource, name: str, profile: TableProfile) -> None:
        """Put down a table that is done, now or with those that follow, so that it is not lost with the process."""
        waiting = self._waiting.get(source.key, replace(source, tables={}))
        self._waiting[source.key] = replace(waiting, tables={**waiting.tables, name: profile})
        if time.monotonic() - self._since >= PUT_DOWN_EVERY:
            self.flush()

    def flush(self) -> None:
        """Put down what waits."""
        for source in self._waiting.values():
            self._tried(lambda catalogue, source=source: catalogue.add(lambda: self._surely_shown(source)))  # type: ignore[misc]
        self._waiting, self._since = {}, time.monotonic()

    def _surely_shown(self, source: IndexedSource) -> IndexedSource:
        """What a table's id will be is known once all are read: what may be a hidden one's is put down at the end."""
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
        """The sources as the catalogue has them now: their columns unread, so that memory is free again."""
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
        """Remove a catalogue that is damaged or of another version, not one that another process holds."""
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
        title: what a reader of the folder may know it by.
        source: what tells it from others.
        facts: the file of what was told of it.
    """
    import platformdirs

    digest = hashlib.sha256(source).hexdigest()[:16]
    folder = platformdirs.user_cache_path("tagframe") / "catalogues"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        warn(f"profiles are kept in memory only: {error}", CatalogueWarning)
        return SourceCatalogue(None, facts=facts)
    # A file for each version, so that two tagframes on one machine leave each other's alone.
    file = folder / f"{title[:40] or 'root'}-{digest}.v{VERSION}.sqlite"
    return SourceCatalogue(Catalogue(file), facts=facts)
