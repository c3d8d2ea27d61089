"""Profiles of tables and columns: what is known of a table without reading it again.

Retrieval and key inference use profiles only; both work without the rows. If only a schema is known (no rows), counts
and sketches are None.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from tagframe.corpus.totals import TotalRows
from tagframe.engines.base import ForeignKey, TableShape
from tagframe.errors import ColumnNotFound, did_you_mean

if TYPE_CHECKING:
    from tagframe.corpus.stored_profiles import StoredColumns

Hashes = npt.NDArray[np.uint64]
TypeFamily = Literal["integer", "real", "text", "date", "boolean", "blob", "empty"]
"""The kind of a column's *values*, whatever the source declares: "empty" has no non-null value."""


class Sketch:
    """The hashes of a column's distinct canonical values: all of them, or the smallest ones.

    Every column of every corpus uses the same hash function, so two columns that share values keep the same ones:
    sketches are coordinated (bottom-k sketches). Independent samples would lose the overlap.

    Attributes:
        complete: whether ``hashes`` are those of *all* distinct values.
        sampled: whether they are only those of a sample: the column may have other values, too.
    """

    __slots__ = ("_hashes", "complete", "sampled")

    def __init__(self, hashes: Hashes | Callable[[], Hashes], complete: bool, sampled: bool = False) -> None:
        """A sketch of these hashes, or of those that a function reads at each use."""
        self._hashes, self.complete, self.sampled = hashes, complete, sampled

    @property
    def hashes(self) -> Hashes:
        """Shape (n,), uint64, ascending, no duplicates."""
        return self._hashes() if callable(self._hashes) else self._hashes

    def in_memory(self) -> Sketch:
        """The same with its hashes in memory."""
        return Sketch(self.hashes, self.complete, self.sampled)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sketch):
            return NotImplemented
        return (self.complete, self.sampled) == (other.complete, other.sampled) and np.array_equal(
            self.hashes, other.hashes
        )

    def __hash__(self) -> int:
        return hash(self.complete)

    def __repr__(self) -> str:
        return f"Sketch({len(self.hashes)} hashes, complete={self.complete})"


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """One column.

    Attributes:
        name: as in the source.
        position: in the table, from 0.
        family: the kind of its values.
        declared_type: the source's own word for its type ("" if it has none).
        rows: rows of the table; None if only the schema is known, as for the counts below.
        nulls: the number of null rows.
        distinct: distinct non-null values, exact unless the table is :attr:`TableProfile.estimated`; texts count as
            they are written (see the profiler).
        minimum, maximum: the smallest and largest value as canonical text, numerically for numbers.
        samples: up to ten distinct values, the most frequent first; texts as they are stored, and one of all that are
            equal as keys.
        sketch: of its distinct values.
        description: the user's description, or "".
        private: whether its cells are for people only: no prompt has them, and no statement of a model reads them.
    """

    name: str
    position: int
    family: TypeFamily
    declared_type: str = ""
    rows: int | None = None
    nulls: int | None = None
    distinct: int | None = None
    minimum: str | None = None
    maximum: str | None = None
    samples: tuple[str, ...] = ()
    sketch: Sketch | None = None
    description: str = ""
    private: bool = False

    @property
    def null_share(self) -> float | None:
        """Nulls over rows, in [0, 1]; None without rows, 0 for a table of no rows."""
        if self.rows is None or self.nulls is None:
            return None
        return self.nulls / self.rows if self.rows else 0.0

    @property
    def uniqueness(self) -> float | None:
        """Distinct values over rows, in [0, 1] (JAR section 3.3); None without rows, 0 for a table of no rows."""
        if self.rows is None or self.distinct is None:
            return None
        return self.distinct / self.rows if self.rows else 0.0


@dataclass(frozen=True)
class TableProfile:
    """One table.

    Attributes:
        id: ``database.table``, unique in the corpus.
        database: the file or folder that it belongs to.
        name: as in the source.
        columns: in the source's order.
        rows: None if only the schema is known.
        primary_key: the key that the source *declares*.
        foreign_keys: the keys that the source declares, and those that the user added.
        forbidden_keys: the keys that the user forbade, in either direction.
        description: the user's description, or the comment in the source, or "".
        estimated: whether rows, counts and extremes are estimates, from the statistics of a server or from a sample.
        place: the folder that it was opened with, whose databases stand side by side; "" if its database stands alone.
        totals: rows that are sums of other rows, and are counted twice where a column is summed.
        unique: columns, and sets of them, that the source declares to be free of duplicates.
        computed_from: ids of the tables of its source that a view reads; () for a table, and where that is not known.
    """

    id: str
    database: str
    name: str
    columns: tuple[ColumnProfile, ...]
    rows: int | None = None
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    forbidden_keys: tuple[ForeignKey, ...] = ()
    description: str = ""
    estimated: bool = False
    place: str = ""
    totals: tuple[TotalRows, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    computed_from: tuple[str, ...] = ()
    stored: ClassVar[StoredColumns | None] = None
    """The columns as stored in a catalogue; None for a profile in memory."""

    def __hash__(self) -> int:
        # From the parts that usually differ: corpora of thousands of tables are looked up by their profiles.
        return hash((self.id, self.rows))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TableProfile):
            return NotImplemented
        mine, others = self.stored, other.stored
        if mine is None or others is None:
            return all(getattr(self, one.name) == getattr(other, one.name) for one in fields(self))
        # The columns' stored text is enough; reading the columns themselves takes seconds for a lake.
        names = (one.name for one in fields(self) if one.name != "columns")
        return mine.text == others.text and all(getattr(self, name) == getattr(other, name) for name in names)

    @classmethod
    def of_stored(cls, columns: StoredColumns, *, shape: str, **fields: Any) -> TableProfile:
        """A profile whose columns are read at first use.

        Args:
            columns: unread.
            shape: as :attr:`shape`.
            **fields: all others.
        """
        profile = cls.__new__(cls)
        profile.__dict__.update(fields, forbidden_keys=(), stored=columns, _shape=shape)
        return profile

    def __getattr__(self, name: str) -> Any:
        # Only missing attributes come here: the columns of a stored profile.
        if name == "columns" and self.stored is not None:
            return self.stored.columns()
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def totals_for_prompts(self) -> tuple[TotalRows, ...]:
        """Those that are told from other rows by a column that a model may see."""
        return tuple(one for one in self.totals if one.column in {column.name for column in self.for_prompts})

    @property
    def for_prompts(self) -> tuple[ColumnProfile, ...]:
        """The columns whose cells prompts may have, and models' statements may read: those that are not private."""
        return tuple(column for column in self.columns if not column.private)

    @property
    def shape(self) -> str:
        """A digest of the columns' names in any order and case: 16 hexadecimal digits."""
        known: str | None = self.__dict__.get("_shape")
        if known is None:
            names = "\n".join(sorted(column.name.casefold() for column in self.columns))
            known = hashlib.md5(names.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()[:16]
            self.__dict__["_shape"] = known
        return known

    def of_database(self, database: str) -> TableProfile:
        """The table, in a database of another name."""
        return self if database == self.database else self._with(database=database, id=f"{database}.{self.name}")

    def at(self, place: str) -> TableProfile:
        """The table, opened with a folder."""
        return self if place == self.place else self._with(place=place)

    def called(self, name: str) -> TableProfile:
        """The table under another name; its id stays."""
        return self._with(name=name)

    def _with(self, **fields: Any) -> TableProfile:
        """Like :func:`dataclasses.replace`, but without reading the columns of a stored profile."""
        profile = type(self).__new__(type(self))
        profile.__dict__.update(self.__dict__, **fields)
        profile.__dict__.pop("_digest", None)
        return profile

    def column(self, name: str) -> ColumnProfile:
        """The profile of one column.

        Raises:
            ColumnNotFound: no column with that name.
        """
        for column in self.columns:
            if column.name == name:
                return column
        names = [column.name for column in self.columns]
        raise ColumnNotFound(f"no column {name!r} in {self.id}: {did_you_mean(name, names)}")


def shape_of(profile: TableProfile) -> TableShape:
    """What its source would say about a table, by its id; its descriptions are the comments."""
    types = {one.name: one.declared_type for one in profile.columns}
    texts = tuple(one.description for one in profile.columns)
    keys = profile.primary_key, profile.foreign_keys
    return TableShape(
        profile.id,
        (*types,),
        (*types.values(),),
        *keys,
        profile.name,
        profile.database,
        profile.unique,
        profile.description,
        texts,
    )


def narrowed_to(profile: TableProfile, shape: TableShape) -> TableProfile:
    """The table with the columns, keys and comments of such a shape, which has no others."""
    known = {one.name: one for one in profile.columns}
    columns = (known[name] for name in shape.columns)
    return replace(
        profile,
        # A stored sketch would bring the stored text of all columns along.
        columns=tuple(
            replace(one, position=at, description=text, sketch=one.sketch and one.sketch.in_memory())
            for at, (one, text) in enumerate(zip(columns, shape.column_comments, strict=True))
        ),
        primary_key=shape.primary_key,
        foreign_keys=shape.foreign_keys,
        unique=shape.unique,
        description=shape.comment,
        totals=tuple(one for one in profile.totals if {*shape.columns, ""} >= {one.column, one.within, *one.checked}),
    )
