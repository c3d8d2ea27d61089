"""Profiles in a catalogue, read at first use, sketches when they are compared; and what is computed of their state.

A question over a corpus of thousands of tables needs only a few of them; the others stay in memory as the text of their
columns.
"""

from __future__ import annotations

import hashlib
import io
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from tagframe.corpus.profile import ColumnProfile, Hashes, Sketch, TableProfile
from tagframe.corpus.totals import totals_of
from tagframe.engines.base import ForeignKey
from tagframe.errors import BROKEN, CatalogueWarning, UnreadableCatalogue, warn

if TYPE_CHECKING:
    from tagframe.corpus.catalogue import Catalogue

ReadSketch = Callable[[str], Mapping[int, Hashes]]
"""From a table's digest to the hashes of its sketches, by the positions of its columns."""

T = TypeVar("T")


class AtHand:
    """A cache of the last made objects, up to a size (``most``); safe to use from several threads."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._unbounded = 0
        self._entries: OrderedDict[object, tuple[Any, int]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(
        self, owner: object, make: Callable[[], T], size: Callable[[T], int] = lambda made: 1, *, afresh: bool = False
    ) -> T:
        """The result of ``make`` for the owner, made again with ``afresh``."""
        with self._lock:
            if afresh:
                self._size -= self._entries.pop(owner, (None, 0))[1]
            if owner in self._entries:
                self._entries.move_to_end(owner)
                known: T = self._entries[owner][0]
                return known
        made = make()
        with self._lock:
            if owner not in self._entries:
                self._entries[owner] = made, size(made)
                self._size += size(made)
                self._shrink()
        return made

    @contextmanager
    def unbounded(self) -> Iterator[None]:
        """A block in which nothing is dropped: what it uses several times is read once."""
        with self._lock:
            self._unbounded += 1
        try:
            yield
        finally:
            with self._lock:
                self._unbounded -= 1
                self._shrink()

    def _shrink(self) -> None:
        while not self._unbounded and self._size > self.most and len(self._entries) > 1:
            _, (_, gone) = self._entries.popitem(last=False)
            self._size -= gone


COLUMNS = AtHand(50_000)
"""The number of columns of stored tables that stay in memory as profiles: the last used ones."""
HASHES = AtHand(8_000_000)
"""The number of hashes of sketches that stay in memory (64 MB)."""


def sketches_at_hand(tables: Iterable[TableProfile]) -> tuple[TableProfile, ...]:
    """The tables with their sketches in memory, to compare each with all others; only the first ones of very many."""
    read_tables, hashes = [], 0
    for table in tables:
        if table.stored is not None and hashes < HASHES.most:
            read = [column.sketch and column.sketch.in_memory() for column in table.columns]
            hashes += sum(len(one.hashes) for one in read if one is not None)
            columns = zip(table.columns, read, strict=True)
            table = replace(table, columns=tuple(replace(column, sketch=one) for column, one in columns))
        read_tables.append(table)
    return tuple(read_tables)


@dataclass(frozen=True, eq=False)
class StoredColumns:
    """The columns of a table as stored text.

    Attributes:
        table: its id, for messages.
        text: a JSON array with an array for each column.
        digest: of the table, by which its sketches are found.
        read: reads the sketches.
    """

    table: str
    text: str
    digest: str
    read: ReadSketch

    def columns(self) -> tuple[ColumnProfile, ...]:
        """The profiles; the same objects while they are cached."""
        return COLUMNS.get(self, self.made, len)

    def hashes(self, position: int) -> Hashes:
        """The hashes of a column's sketch; empty if another process has indexed a newer state of the table."""
        return HASHES.get(self, self._read, lambda read: sum(map(len, read.values())) + 1).get(position, _NONE)

    def _read(self) -> Mapping[int, Hashes]:
        hashes = self.read(self.digest)
        if not hashes:
            warn(
                f"values of {self.table} are not compared: the catalogue has a newer state; open the corpus again",
                CatalogueWarning,
            )
        return hashes

    def made(self) -> tuple[ColumnProfile, ...]:
        """The profiles, made again."""
        return tuple(self._column(position, given) for position, given in enumerate(json.loads(self.text)))

    def _column(self, position: int, given: list[Any]) -> ColumnProfile:
        *values, sketch = given
        fields = dict(zip(_FIELDS, values, strict=True))
        fields["samples"] = tuple(fields["samples"])
        read = None if sketch is None else self._sketch(position, sketch[0], fields["distinct"])
        return ColumnProfile(position=position, sketch=read, **fields)

    def _sketch(self, position: int, kind: int, distinct: int | None) -> Sketch:
        if distinct == 0:
            return Sketch(_NONE, kind == _COMPLETE)
        return Sketch(partial(self.hashes, position), complete=kind == _COMPLETE, sampled=kind == _SAMPLED)


_FIELDS = "name family declared_type rows nulls distinct minimum maximum samples description".split()
"""What a catalogue has of a column, before the kind and the digest of its sketch."""
_fields_of = attrgetter(*_FIELDS)
_NONE = np.zeros(0, dtype=np.uint64)
_COMPLETE, _SAMPLED = 1, 2
"""The kinds of a sketch in the catalogue; 0 for the smallest hashes of all values."""


def profile_of(row: Mapping[str, Any], text: str, read: ReadSketch) -> TableProfile:
    """A profile from a row of ``tables``, with its columns not read yet.

    Args:
        row: all of it.
        text: its columns.
        read: for the sketches.
    """
    return TableProfile.of_stored(
        StoredColumns(f"{row['database']}.{row['name']}", text, row["digest"], read),
        id=f"{row['database']}.{row['name']}",
        primary_key=_names(row["primary_key"]),
        foreign_keys=_references(row["foreign_keys"]),
        estimated=bool(row["estimated"]),
        totals=totals_of(row["totals"]),
        unique=tuple(map(tuple, json.loads(row["unique_sets"]))),
        computed_from=_names(row["computed_from"]),
        **{name: row[name] for name in ("database", "name", "rows", "description", "shape")},
    )


# Thousands of tables share a few of these texts; most have the same one.
@lru_cache(maxsize=4096)
def _names(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


@lru_cache(maxsize=4096)
def _references(text: str) -> tuple[ForeignKey, ...]:
    return tuple(ForeignKey(tuple(own), other, tuple(others), at) for own, other, others, at in json.loads(text))


def columns_text(profile: TableProfile) -> str:
    """The columns of a profile as a catalogue's text; it differs if anything of them differs, including values."""
    if profile.stored is not None:
        return str(profile.stored.text)
    columns = [
        [
            *_fields_of(column),
            None if column.sketch is None else [_kind(column.sketch), _md5(column.sketch.hashes.tobytes())[:12]],
        ]
        for column in profile.columns
    ]
    return json.dumps(columns, separators=(",", ":"))


def _kind(sketch: Sketch) -> int:
    return _SAMPLED if sketch.sampled else int(sketch.complete)


def keys_texts(profile: TableProfile) -> tuple[str, str, str]:
    """The keys that the source declares: the primary key, the unique sets of columns, and the foreign keys."""
    foreign = [[key.columns, key.other_table, key.other_columns, key.other_database] for key in profile.foreign_keys]
    return json.dumps(profile.primary_key), json.dumps(profile.unique), json.dumps(foreign)


def digest_of(profile: TableProfile, text: str | None = None) -> str:
    """A digest of a table and its state: 32 hexadecimal digits.

    Args:
        profile: of the table.
        text: its :func:`columns_text`, if known.
    """
    known: str | None = profile.__dict__.get("_digest")
    if profile.stored is not None or known is not None:
        return str(known if profile.stored is None else profile.stored.digest)
    keys = [[*map(str, vars(key).values())] for key in (*profile.foreign_keys, *profile.forbidden_keys)]
    facts: list[Any] = [
        profile.database, profile.name, profile.rows, profile.description, profile.primary_key, profile.unique, keys,
        profile.computed_from,
    ]  # fmt: skip
    text = columns_text(profile) if text is None else text
    profile.__dict__["_digest"] = digest = _md5(f"{json.dumps(facts)}{text}".encode("utf-8", "replace"))
    return digest


def _md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


# --- arrays as bytes: numpy's own form (``.npz``), uncompressed, after its SHA-256 ----------------------------------


Arrays = Mapping[str, npt.NDArray[Any]]

ARRAYS = "arrays"
"""The kind of facts in a catalogue that are arrays: large ones, of which two states are kept."""
_DIGEST = 32


def packed(arrays: Arrays) -> bytes:
    """The arrays as bytes."""
    file = io.BytesIO()
    named: dict[str, Any] = {**arrays}
    np.savez(file, **named)
    return hashlib.sha256(file.getbuffer()).digest() + file.getvalue()


def unpacked(data: bytes) -> dict[str, npt.NDArray[Any]]:
    """The arrays that were given to :func:`packed`.

    Raises:
        ValueError: the bytes are damaged.
    """
    file = memoryview(data)[_DIGEST:]
    if hashlib.sha256(file).digest() != data[:_DIGEST]:
        raise ValueError("the checksum of arrays is wrong")
    with np.load(io.BytesIO(file), allow_pickle=False) as stored:
        return dict(stored)


def text_array(lines: list[str]) -> npt.NDArray[np.uint8]:
    """Texts without line breaks as an array."""
    return np.frombuffer("\n".join(lines).encode("utf-8", "surrogatepass"), dtype=np.uint8)


def texts_of(array: npt.NDArray[np.uint8], count: int) -> list[str]:
    """The texts that were given to :func:`text_array`; ``count`` is their number."""
    return array.tobytes().decode("utf-8", "surrogatepass").split("\n") if count else []


# --- what is computed of them ---------------------------------------------------------------------------------------


class ComputedStore:
    """Facts computed from tables, by their kind and by the state of the tables that they were computed from.

    Shared by a corpus and its subsets; safe to use from several threads.

    Args:
        catalogue: keeps the facts; None to keep the last one of each kind and name in memory only.
        whole: the number of tables in the catalogue's corpus.
    """

    def __init__(self, catalogue: Catalogue | None = None, whole: int = 0) -> None:
        self._catalogue = catalogue
        self._whole = whole
        self._known: dict[tuple[str, str], tuple[str, str]] = {}
        self._lock = threading.Lock()

    @staticmethod
    def state(tables: Iterable[TableProfile], *more: str) -> str:
        """A digest of the tables, and of other things that the facts depend on: 32 hexadecimal digits."""
        parts = [*more, *(f"{table.id} {digest_of(table)}" for table in tables)]
        return _md5("\n".join(parts).encode("utf-8", "replace"))

    def get(self, kind: str, name: str, state: str, read: Callable[[Any], T]) -> T | None:
        """A fact; None if none is known for this state, or it cannot be read.

        Args:
            kind, name, state: as for :meth:`put`.
            read: makes the fact from its text or bytes.
        """
        with self._lock:
            last, text = self._known.get((kind, name), ("", None))
        text = text if last == state else self.get_all(kind, [state]).get(state)
        if text is None:
            return None
        try:
            fact = read(text)
        except BROKEN as error:
            warn(
                f"{kind} of {name} are computed again: they are damaged in the catalogue ({error})",
                CatalogueWarning,
            )
            return None
        self._remember(kind, name, state, text)
        return fact

    def get_all(self, kind: str, states: Sequence[str]) -> dict[str, Any]:
        """The known facts of these states."""
        return self._tried(lambda catalogue: catalogue.facts(kind, states), {}, f"{kind} are computed again")

    def put(self, kind: str, name: str, state: str, value: str | bytes) -> None:
        """Keep a fact.

        Args:
            kind: such as "keys".
            name: the subject of the fact; the last few states of each are kept.
            state: of the tables: :meth:`state`.
            value: as text; or as bytes, which are large: only the catalogue keeps them, not this process.
        """
        self._remember(kind, name, state, value)
        self._tried(
            lambda catalogue: catalogue.add_fact(kind, name, state, value),
            None,
            f"{kind} are kept in memory only",
            is_last=True,
        )

    def _tried(self, work: Callable[[Catalogue], T], otherwise: T, message: str, *, is_last: bool = False) -> T:
        """The result of work with the catalogue; if there is none or it fails, with a warning, another result.

        Args:
            work: takes the catalogue.
            otherwise: the other result.
            message: if it fails.
            is_last: whether the catalogue is not used any more then.
        """
        if self._catalogue is None:
            return otherwise
        try:
            return work(self._catalogue)
        except UnreadableCatalogue as error:
            warn(f"{message}: {error}", CatalogueWarning)
            self._catalogue = None if is_last else self._catalogue
            return otherwise

    def keeps_arrays(self, tables: Sequence[TableProfile]) -> bool:
        """Whether arrays of these tables are kept: only for all tables of the catalogue, not for a selection."""
        return self._catalogue is not None and len(tables) == self._whole

    def known(self) -> list[tuple[str, str, str, str]]:
        """Kind, name, state and value of the facts that this process has used, for a catalogue."""
        with self._lock:
            return [(kind, name, state, value) for (kind, name), (state, value) in self._known.items()]

    def _remember(self, kind: str, name: str, state: str, value: str | bytes) -> None:
        if isinstance(value, str):
            with self._lock:
                self._known[kind, name] = state, value

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())
