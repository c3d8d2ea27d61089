"""Facts computed from the tables of a corpus, kept in its catalogue until the tables change."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy.typing as npt

from tagframe.corpus.catalogue import Catalogue
from tagframe.corpus.hidden_values import WithHidden
from tagframe.corpus.mapped_arrays import Arrays
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.stored_profiles import digest_of
from tagframe.errors import BROKEN, CatalogueWarning, UnreadableCatalogue, warn

T = TypeVar("T")


class FactStore:
    """Facts by their kind and by the state of the tables that they were computed from.

    Shared by a corpus and its subsets; safe to use from several threads.

    Args:
        catalogue: keeps the facts; None to keep them in memory only.
        whole: the number of tables in the catalogue's corpus.
    """

    def __init__(self, catalogue: Catalogue | None = None, whole: int = 0) -> None:
        self._catalogue = catalogue
        self._whole = whole
        self._known: dict[tuple[str, str], tuple[str, str]] = {}
        self._lock = threading.Lock()
        self._with_hidden: WithHidden | None = None

    def reads(self, with_hidden: WithHidden) -> None:
        """Take the reader of hidden columns of the corpus that this store is made for; subsets have the same one."""
        self._with_hidden = self._with_hidden or with_hidden

    def with_hidden(self, tables: Sequence[TableProfile]) -> tuple[TableProfile, ...]:
        """The tables with their hidden columns' values, to infer keys from: never to be written down or shown."""
        return tuple(tables) if self._with_hidden is None else self._with_hidden(tables)

    @staticmethod
    def state(tables: Iterable[TableProfile], *more: str) -> str:
        """A digest of the tables, and of other things that the facts depend on: 32 hexadecimal digits."""
        parts = [*more, *(f"{table.id} {digest_of(table)}" for table in tables)]
        return hashlib.md5("\n".join(parts).encode("utf-8", "replace"), usedforsecurity=False).hexdigest()

    def get(self, kind: str, name: str, state: str, read: Callable[[str], T]) -> T | None:
        """A fact; None if none is known for this state, or it cannot be read.

        Args:
            kind, name, state: as for :meth:`put`.
            read: makes the fact from its text.
        """
        found = self.get_all(kind, [state]).get(state)
        if found is None:
            return None
        try:
            fact = read(found)
        except BROKEN as error:
            warn(
                f"{kind} of {name} are computed again: they are damaged in the catalogue ({error})",
                CatalogueWarning,
            )
            return None
        self._remember(kind, name, state, found)
        return fact

    def get_all(self, kind: str, states: Sequence[str]) -> dict[str, str]:
        """The known facts of these states."""
        if self._catalogue is None:
            return {}
        try:
            return self._catalogue.facts(kind, states)
        except UnreadableCatalogue as error:
            warn(f"{kind} are computed again: {error}", CatalogueWarning)
            return {}

    def put(self, kind: str, name: str, state: str, value: str) -> None:
        """Keep a fact.

        Args:
            kind: such as "keys".
            name: the subject of the fact; the last few states of each are kept.
            state: of the tables: :meth:`state`.
            value: as text.
        """
        self._remember(kind, name, state, value)
        if self._catalogue is not None:
            try:
                self._catalogue.add_fact(kind, name, state, value)
            except UnreadableCatalogue as error:
                warn(f"{kind} are kept in memory only: {error}", CatalogueWarning)
                self._catalogue = None

    @property
    def are_kept(self) -> bool:
        """Whether facts are kept after this process ends."""
        return self._catalogue is not None

    def keeps_arrays(self, tables: Sequence[TableProfile]) -> bool:
        """Whether arrays of these tables are kept: only for all tables of the catalogue, not for a selection."""
        return self._catalogue is not None and len(tables) == self._whole

    def arrays(self, name: str, state: str) -> dict[str, npt.NDArray[Any]] | None:
        """Arrays of this state, mapped into memory; None if there are none, or they are damaged.

        Args:
            name: their name in messages.
            state: of the tables: :meth:`state`.
        """
        try:
            return None if self._catalogue is None else self._catalogue.arrays(state)
        except UnreadableCatalogue as error:
            warn(f"{name} is computed again: {error}", CatalogueWarning)
            return None

    def older_arrays(self) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """Arrays of other states, the newest first; damaged ones are left out."""
        return iter(()) if self._catalogue is None else self._catalogue.older_arrays()

    def put_arrays(self, name: str, state: str, arrays: Arrays) -> None:
        """Keep arrays in a file beside the catalogue, if there is one.

        Args:
            name, state: as for :meth:`arrays`.
            arrays: by name.
        """
        if self._catalogue is not None:
            try:
                self._catalogue.add_arrays(state, arrays)
            except UnreadableCatalogue as error:
                warn(f"{name} is kept in memory only: {error}", CatalogueWarning)

    def known(self) -> list[tuple[str, str, str, str]]:
        """Kind, name, state and value of the facts that this process has used, for a catalogue."""
        with self._lock:
            return [(kind, name, state, value) for (kind, name), (state, value) in self._known.items()]

    def _remember(self, kind: str, name: str, state: str, value: str) -> None:
        with self._lock:
            self._known[kind, name] = state, value

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None, "_with_hidden": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())
