"""Columns as key inference sees them: a profile, its name taken apart, and what both say about keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.keys import column_names as names
from tagframe.keys.conventions import Conventions
from tagframe.keys.key_pair import is_unnamed

Floats = npt.NDArray[np.float64]

Declared = Literal["primary", "unique", "no", ""]

_LETTERS = 4.0
"""The length of values that are not known."""
_LONG = 1_000
"""Smaller numbers are found in many columns."""
MAX_GAPPED_DENSITY = 0.5
"""Numbers that fill less of their range are not counted up."""


@dataclass(frozen=True)
class Run:
    """The integers of a column: where they lie and how densely."""

    low: int
    high: int
    density: float


def integer_run(column: ColumnProfile) -> Run | None:
    """The range of a column of integers; None for other columns, or if it is unknown."""
    if column.family != "integer" or column.minimum is None or column.maximum is None or not column.distinct:
        return None
    try:
        low, high = int(float(column.minimum)), int(float(column.maximum))
    except ValueError:
        return None
    return Run(low, high, min(1.0, column.distinct / max(1, high - low + 1)))


@dataclass(frozen=True)
class Column:
    """A column with its facts that key inference needs repeatedly.

    Attributes:
        table: the position of its table in the list of tables.
        owner, profile: its table's profile and its own.
        spelt: its name, without a prefix that all columns of the table have.
        name: ``spelt`` taken apart.
        own: how surely its name is that of its own table's key, in [0, 1].
        unique: distinct over non-null values, in [0, 1]; None if the rows are unknown, or there are none. For a
            versioned key it counts one version each.
        run: the range of its integers; None for other columns.
        declared: what the source says of it: its table's primary key ("primary"), free of duplicates ("unique"), or
            neither beside a primary key ("no"); "" if nothing is declared.
        is_beside_key: whether another column is its table's key, and its own name is not that of a key of the table.
        is_versioned: whether it is the key of a table whose rows are versions, so that it repeats.
    """

    table: int
    owner: TableProfile
    profile: ColumnProfile
    spelt: str
    name: names.Name
    own: float
    unique: float | None
    run: Run | None
    is_versioned: bool = False
    is_beside_key: bool = False
    declared: Declared = ""

    @cached_property
    def key(self) -> tuple[str, str]:
        """Table id and column name."""
        return (self.owner.id, self.profile.name)

    @cached_property
    def is_text_code(self) -> bool:
        """Whether its name is "code", "key" or the like, and it holds letters: such values have a meaning."""
        return self.profile.family == "text" and not self.name.entity and "id" not in self.name.words

    @cached_property
    def is_surrogate(self) -> bool:
        """Whether the column only numbers the rows of its own table."""
        if self.is_text_code:
            return False
        is_first = self.profile.position == 0
        if not self.name.key_word or self.own < 0.75 or (self.name.key_word < 1.0 and not is_first):
            return False
        return self.unique == 1.0 or (self.unique is None and is_first)

    @cached_property
    def counts_rows(self) -> bool:
        """Whether it is a saved index: whole numbers, each once, with a name that saved indexes have."""
        if self.profile.family != "integer" or self.unique != 1.0 or not names.is_saved_index(self.profile.name):
            return False
        return not names.about(self.spelt, self.owner.name)  # a record's own id

    @cached_property
    def is_counted(self) -> bool:
        """Whether it holds 0 or 1 to n, each once, like a surrogate key."""
        run = self.run
        is_one = self.unique == 1.0 and not self.is_versioned
        return is_one and run is not None and run.low in (0, 1) and run.density == 1.0

    @cached_property
    def is_natural_key(self) -> bool:
        """Whether it is its table's declared key and no number of rows: others may refer to it without a key word."""
        return self.declared == "primary" and "id" not in self.name.words

    @property
    def really_unique(self) -> float | None:
        """Distinct over non-null values of all versions."""
        return uniqueness(self.profile) if self.is_versioned else self.unique

    @cached_property
    def may_be_target(self) -> bool:
        """Whether the column can be the referenced side of a key."""
        if self.declared:
            return self.declared != "no" or self.unique == 1.0
        if self.unique is None:
            return bool(self.name.key_word)
        return self.unique > (0.5 if self.name.key_word else 0.95)


@dataclass(frozen=True)
class Facts:
    """The facts of n columns by which pairs are scored, an array of shape (n,) each; nan stands for unknown numbers.

    Attributes:
        numbers_days: whether a column has one row for each day, month or the like.
        ends_in_day: whether the last word of its name is one for days or times.
        of_anyone: whether it is in a table of persons of every kind.
        low, high, density: of its run of integers.
        letters: the mean length of its values.
    """

    table: npt.NDArray[np.int64]
    database: npt.NDArray[Any]
    family: npt.NDArray[Any]
    position: npt.NDArray[np.int64]
    key_word: Floats
    own: Floats
    unique: Floats
    null_share: Floats
    has_entity: npt.NDArray[np.bool_]
    is_surrogate: npt.NDArray[np.bool_]
    numbers_days: npt.NDArray[np.bool_]
    ends_in_day: npt.NDArray[np.bool_]
    of_anyone: npt.NDArray[np.bool_]
    distinct: Floats
    low: Floats
    high: Floats
    density: Floats
    letters: Floats

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Facts:
        """The facts of columns."""
        return cls(*map(np.array, zip(*map(_facts_of, columns), strict=True)))

    def at(self, positions: npt.NDArray[Any]) -> Facts:
        """The facts of some of the columns, also repeated."""
        return Facts(*(getattr(self, fact.name)[positions] for fact in fields(self)))


def _facts_of(column: Column) -> tuple[Any, ...]:
    profile, name, run = column.profile, column.name, column.run
    return (
        column.table,
        column.owner.database,
        profile.family,
        profile.position,
        name.key_word,
        column.own,
        np.nan if column.unique is None else column.unique,
        profile.null_share or 0.0,
        bool(name.entity),
        column.is_surrogate,
        column.unique == 1.0 and names.CALENDAR.issuperset(name.words),
        not names.CALENDAR.isdisjoint(name.words[-1:]),
        names.is_of_anyone(column.owner.name),
        np.nan if profile.distinct is None else float(profile.distinct),
        *((np.nan,) * 3 if run is None else (float(run.low), float(run.high), run.density)),
        float(np.mean([*map(len, profile.samples)])) if profile.samples else _LETTERS,
    )


def uniqueness(profile: ColumnProfile) -> float | None:
    """Distinct over non-null values, in [0, 1]; None if unknown."""
    filled = None if profile.rows is None or profile.nulls is None else profile.rows - profile.nulls
    return None if not filled or profile.distinct is None else min(1.0, profile.distinct / filled)


def is_code(column: ColumnProfile) -> bool:
    """Whether a column holds numbers or codes rather than names, as far as samples show it: "PORT04", not "Lyon".

    >>> [is_code(ColumnProfile("a", 0, "text", "", samples=texts)) for texts in (("K429", "87"), ("Lyon", "Le Havre"))]
    [True, False]
    """
    if column.family != "text":
        return column.family == "integer"
    texts = [text for text in column.samples if text]
    coded = [" " not in text and (not text.isalpha() or text.isupper()) for text in texts]
    return 2 * sum(coded) > len(texts)


def holds_long_numbers(column: ColumnProfile) -> bool:
    """Whether a column's numbers are codes of some digits that are given with gaps, such as those of towns.

    >>> [holds_long_numbers(ColumnProfile("a", 0, "integer", "", 9, 0, 9, "1001", end)) for end in ("1009", "8042")]
    [False, True]
    """
    run = integer_run(column)
    return run is not None and run.low >= _LONG and run.density < MAX_GAPPED_DENSITY


def columns_of(tables: Sequence[TableProfile]) -> list[Column]:
    """All columns that can take part in keys: not those of bytes."""
    found = []
    members: dict[str, list[TableProfile]] = defaultdict(list)
    places = []
    for table in tables:
        places.append(len(members[table.database]))
        members[table.database].append(table)
    habits = {database: Conventions(group) for database, group in members.items()}
    for position, (table, place) in enumerate(zip(tables, places, strict=True)):
        conventions = habits[table.database]
        spellings = conventions.spelt(place)
        versioned = _versioned_keys(table, spellings)
        for profile in table.columns:
            if profile.family == "blob":
                continue
            spelt = spellings[profile.name]
            unique = uniqueness(profile)
            name = names.column_name(spelt)
            own = conventions.own(place, profile.name)
            if is_unnamed(table.name) and profile.position == 0 and unique == 1.0 and name.key_word and name.entity:
                own = max(own, 0.75)  # only the column that numbers the rows says what they are
            is_versioned = profile.name in versioned
            unique = 1.0 if is_versioned else unique
            declared = _declared(table, profile.name)
            if unique is None and own < 0.55 and declared in ("primary", "unique"):
                unique = 1.0  # of a row's own number, the name says enough
            run = integer_run(profile)
            column = Column(position, table, profile, spelt, name, own, unique, run, is_versioned, declared=declared)
            found.append(column)
    keyed = {
        column.table
        for column in found
        if column.declared == "primary"
        or (column.own >= 0.75 and column.name.key_word and column.unique in (None, 1.0))
    }
    return [
        replace(column, is_beside_key=True)
        if column.table in keyed and column.own < 0.55 and column.declared in ("", "no")
        else column
        for column in found
    ]


def _declared(table: TableProfile, column: str) -> Declared:
    """What the source says of the column: see :class:`Column`."""
    if table.primary_key == (column,):
        return "primary"
    if (column,) in table.unique:
        return "unique"
    others = chain(*({*one} for one in table.unique if {*one} != {*table.primary_key}))
    return "no" if table.primary_key and column not in others else ""


def has_versions(columns: Iterable[str]) -> bool:
    """Whether the rows of a table with these columns are versions: with a start, a number, or a mark if current."""
    return any(names.version_column(column) not in (None, "end") for column in columns)


def _versioned_keys(table: TableProfile, spelt: Mapping[str, str]) -> set[str]:
    """The columns that identify the versioned things of a table: they all repeat equally often."""
    if not has_versions(column.name for column in table.columns):
        return set()
    repeating = {
        column.name: column.distinct
        for column in table.columns
        if column.distinct and column.rows and column.distinct < column.rows - (column.nulls or 0)
        and column.family in ("integer", "text") and not names.version_column(column.name)
        and (column.position <= 1 or not names.is_attribute(column.name)
             or names.own(spelt[column.name], table.name) == 1.0)
    }  # fmt: skip
    # A key word or the table's own name shows it. Other numbers are attributes of the thing, with fewer values.
    own = [name for name in repeating if names.about(spelt[name], table.name) >= 0.75]
    named = own or [name for name in repeating if names.column_name(name).key_word]
    most = max((repeating[name] for name in named or [*repeating][:1]), default=0)
    return {name for name, distinct in repeating.items() if distinct == most}
