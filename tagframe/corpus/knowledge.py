"""What a user knows of tables and tells once: keys, what is no key, what names mean, what nobody else shall see.

It is kept in the corpus' catalogue where there is one, and applied to the profiles, so that everything that looks at
profiles (retrieval, key inference, prompts) has it. Knowledge of a table that is not in the corpus waits for it.
"""

from __future__ import annotations

import threading
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.corpus.references import Column, NamedTable, column_pairs
from tagframe.engines.base import ForeignKey
from tagframe.errors import CatalogueWarning, UnreadableCatalogue

if TYPE_CHECKING:
    from tagframe.corpus.catalogue import Catalogue


@dataclass(frozen=True)
class ToldKey:
    """A pair of columns (or of several each), the referencing side first where that is known."""

    left_table: str
    left_columns: tuple[str, ...]
    right_table: str
    right_columns: tuple[str, ...]

    @property
    def sides(self) -> frozenset[tuple[Column, Column]]:
        """The pairs of columns, whichever side comes first."""
        pairs = zip(self.left_columns, self.right_columns, strict=True)
        ends = (self.left_table, self.right_table)
        return frozenset(min(((ends[0], a), (ends[1], b)), ((ends[1], b), (ends[0], a))) for a, b in pairs)

    def __str__(self) -> str:
        pairs = zip(self.left_columns, self.right_columns, strict=True)
        return " and ".join(f"{self.left_table}.{left} = {self.right_table}.{right}" for left, right in pairs)


@dataclass(frozen=True)
class Knowledge:
    """Everything that was told.

    Attributes:
        keys: pairs of columns that join.
        forbidden: pairs that do not, whatever their names and values say.
        tables: description by table id.
        columns: description by column.
        hidden: columns whose cells nobody else shall see.
    """

    keys: tuple[ToldKey, ...] = ()
    forbidden: tuple[ToldKey, ...] = ()
    tables: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[Column, str] = field(default_factory=dict)
    hidden: frozenset[Column] = frozenset()

    def with_key(self, key: ToldKey, *, forbidden: bool) -> Knowledge:
        """With one more key (or none-key); it is taken from the other list if it is there."""
        keys = tuple(known for known in self.keys if known.sides != key.sides)
        none = tuple(known for known in self.forbidden if known.sides != key.sides)
        return (
            replace(self, keys=keys, forbidden=(*none, key))
            if forbidden
            else replace(self, keys=(*keys, key), forbidden=none)
        )

    def without_hidden(self, profiles: Iterable[TableProfile]) -> tuple[TableProfile, ...]:
        """The profiles as they may be written down: of hidden columns nothing that their cells could be told from."""
        tables = {table for table, _ in self.hidden}
        return tuple(
            replace(
                profile,
                columns=tuple(
                    _redacted(column) if (profile.id, column.name) in self.hidden else column
                    for column in profile.columns
                ),
            )
            if profile.id in tables
            else profile
            for profile in profiles
        )

    def applied(self, profiles: Sequence[TableProfile]) -> tuple[TableProfile, ...]:
        """The profiles with what is known of them; those of which nothing is known are the same objects."""
        if self == Knowledge():
            return tuple(profiles)
        profiles = self.without_hidden(profiles)
        by_id = {profile.id: profile for profile in profiles}
        given, forbidden = _by_table(self.keys, by_id), _by_table(self.forbidden, by_id)
        touched = {*given, *forbidden, *self.tables, *(table for table, _ in (*self.columns, *self.hidden))}
        return tuple(
            self._told(profile, given[profile.id], forbidden[profile.id]) if profile.id in touched else profile
            for profile in profiles
        )

    def _told(
        self, profile: TableProfile, given: Sequence[ForeignKey], forbidden: Sequence[ForeignKey]
    ) -> TableProfile:
        columns = tuple(
            replace(column, description=self.columns.get((profile.id, column.name)) or column.description)
            for column in profile.columns
        )
        return replace(
            profile,
            columns=columns,
            foreign_keys=(*profile.foreign_keys, *given),
            forbidden_keys=tuple(forbidden),
            description=self.tables.get(profile.id) or profile.description,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values that :meth:`from_json` reads."""
        return {
            "keys": [vars(key) for key in self.keys],
            "forbidden": [vars(key) for key in self.forbidden],
            "tables": dict(self.tables),
            "columns": [[*column, text] for column, text in self.columns.items()],
            "hidden": sorted(self.hidden),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Knowledge:
        """Read what :meth:`to_json` wrote."""

        def key(plain: Mapping[str, Any]) -> ToldKey:
            return ToldKey(
                plain["left_table"], tuple(plain["left_columns"]), plain["right_table"], tuple(plain["right_columns"])
            )

        return cls(
            tuple(map(key, data["keys"])),
            tuple(map(key, data["forbidden"])),
            dict(data["tables"]),
            {(table, column): text for table, column, text in data["columns"]},
            frozenset((table, column) for table, column in data["hidden"]),
        )


def _redacted(column: ColumnProfile) -> ColumnProfile:
    """The column without anything that its cells could be told from; hashes of short values can be reversed too."""
    return replace(column, minimum=None, maximum=None, samples=(), sketch=None, hidden=True)


def _by_table(keys: Iterable[ToldKey], profiles: Mapping[str, TableProfile]) -> dict[str, list[ForeignKey]]:
    found: dict[str, list[ForeignKey]] = defaultdict(list)
    for key in keys:
        left, right = profiles.get(key.left_table), profiles.get(key.right_table)
        if left is not None and right is not None:
            database = "" if left.database == right.database else right.database
            found[left.id].append(ForeignKey(key.left_columns, right.name, key.right_columns, database, given=True))
    return found


class KnowledgeStore:
    """What was told of the tables of a corpus and of its subsets, in memory and in its catalogue if there is one.

    Args:
        known: what is known already.
        catalogue: keeps it; None for this process only.
        places: by table id: the key of the source in the catalogue, and the table's name there.
    """

    def __init__(
        self,
        known: Knowledge | None = None,
        catalogue: Catalogue | None = None,
        places: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        self.known = Knowledge() if known is None else known
        self._catalogue = catalogue
        self._places = dict(places or {})
        self._lock = threading.RLock()

    def tell(self, change: Callable[[Knowledge], Knowledge]) -> None:
        """Change what is known, and write it down; where that fails it is known to this process, with a warning."""
        with self._lock:
            if self._catalogue is not None:
                try:
                    self.known = self._catalogue.tell(change, self._places)
                    return
                except UnreadableCatalogue as error:
                    warnings.warn(f"known to this process only: {error}", CatalogueWarning, stacklevel=4)
            self.known = change(self.known)

    def union(self, other: KnowledgeStore) -> KnowledgeStore:
        """What was told of the tables of both; this very store where nothing was told of the others."""
        mine, others = self.known, other.known
        if self is other or others == Knowledge():
            return self
        return KnowledgeStore(
            Knowledge(
                (*mine.keys, *(key for key in others.keys if key not in mine.keys)),
                (*mine.forbidden, *(key for key in others.forbidden if key not in mine.forbidden)),
                {**others.tables, **mine.tables},
                {**others.columns, **mine.columns},
                mine.hidden | others.hidden,
            )
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())


def read_key(text: str, profiles: Sequence[TableProfile]) -> ToldKey:
    """A key as text: ``"orders.buyer = customers.id"``, several pairs of columns with ``and`` between.

    Raises:
        InvalidArgument: not of that form, a column and itself, or a side that may be in several tables.
        TableNotFound, ColumnNotFound: a name that is not there.
    """
    return ToldKey(*column_pairs(text, list(map(NamedTable.of, profiles)), within=True))


class CorpusKeys:
    """``corpus.keys``: what its user says of keys.

    >>> import pandas as pd, tagframe as tf
    >>> orders = pd.DataFrame({"order": [1, 2], "buyer": [7, 8]})
    >>> customers = pd.DataFrame({"id": [7, 8], "city": ["Porto", "Faro"]})
    >>> corpus = tf.open_corpus({"orders": orders, "customers": customers})
    >>> corpus.keys.add("orders.buyer = customers.id")
    >>> corpus.keys
    keys told of this corpus:
      frames.orders.buyer = frames.customers.id
    """

    def __init__(self, store: KnowledgeStore, profiles: Sequence[TableProfile]) -> None:
        self._store = store
        self._profiles = profiles

    def add(self, key: str) -> None:
        """Say that columns join: ``"orders.buyer = customers.id"``, the referencing side first.

        Retrieval, plans and merges take it for certain. Several pairs, with ``and`` between, are one composite key.

        Raises:
            InvalidArgument: not of that form, or not between two tables.
            TableNotFound, ColumnNotFound: a name that is not there.
        """
        told = read_key(key, self._profiles)
        self._store.tell(lambda known: known.with_key(told, forbidden=False))

    def forbid(self, key: str) -> None:
        """Say that columns do not join, whatever their names and values say, and whatever the source declares.

        Raises:
            InvalidArgument, TableNotFound, ColumnNotFound: as :meth:`add`.
        """
        told = read_key(key, self._profiles)
        self._store.tell(lambda known: known.with_key(told, forbidden=True))

    def forget(self, key: str) -> None:
        """Take back what was said of these columns; nothing happens where nothing was.

        Raises:
            InvalidArgument, TableNotFound, ColumnNotFound: as :meth:`add`.
        """
        sides = read_key(key, self._profiles).sides

        def without(known: Knowledge) -> Knowledge:
            return replace(
                known,
                keys=tuple(one for one in known.keys if one.sides != sides),
                forbidden=tuple(one for one in known.forbidden if one.sides != sides),
            )

        self._store.tell(without)

    def __repr__(self) -> str:
        known = self._store.known
        lines = [*map(str, known.keys), *(f"not {key}" for key in known.forbidden)]
        return "\n  ".join(["keys told of this corpus:", *lines]) if lines else "no keys told of this corpus"
