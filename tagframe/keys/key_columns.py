"""Columns as key inference sees them: a profile, its name taken apart, and what both say about keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.keys import column_names as names
from tagframe.keys.containment import Run, integer_run
from tagframe.keys.conventions import Conventions

_UNNAMED = "frame_"
NAMED = "give frames by name, as in {'animals': frame, 'owners': other}"
"""The way out if no keys are found between frames without names."""


def unnamed(number: int) -> str:
    """The name of a table that was given without one."""
    return f"{_UNNAMED}{number}"


def is_unnamed(table: str) -> bool:
    """Whether :func:`unnamed` made the name."""
    return table.startswith(_UNNAMED) and table.removeprefix(_UNNAMED).isdecimal()


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

    @property
    def key(self) -> tuple[str, str]:
        """Table id and column name."""
        return (self.owner.id, self.profile.name)

    @property
    def is_text_code(self) -> bool:
        """Whether its name is "code", "key" or the like, and it holds letters: such values have a meaning."""
        return self.profile.family == "text" and not self.name.entity and "id" not in self.name.words

    @property
    def is_surrogate(self) -> bool:
        """Whether the column only numbers the rows of its own table."""
        if self.is_text_code:
            return False
        is_first = self.profile.position == 0
        if not self.name.key_word or self.own < 0.75 or (self.name.key_word < 1.0 and not is_first):
            return False
        return self.unique == 1.0 or (self.unique is None and is_first)

    @property
    def counts_rows(self) -> bool:
        """Whether it is a saved index: whole numbers, each once, with a name that saved indexes have."""
        if self.profile.family != "integer" or self.unique != 1.0 or not names.is_saved_index(self.profile.name):
            return False
        return not names.about(self.spelt, self.owner.name)  # a record's own id

    @property
    def is_counted(self) -> bool:
        """Whether it holds 0 or 1 to n, each once, like a surrogate key."""
        run = self.run
        is_one = self.unique == 1.0 and not self.is_versioned
        return is_one and run is not None and run.low in (0, 1) and run.density == 1.0

    @property
    def really_unique(self) -> float | None:
        """Distinct over non-null values of all versions."""
        return _uniqueness(self.profile) if self.is_versioned else self.unique

    @property
    def may_be_target(self) -> bool:
        """Whether the column can be the referenced side of a key."""
        if self.unique is None:
            return bool(self.name.key_word)
        return self.unique > (0.5 if self.name.key_word else 0.95)


def _uniqueness(profile: ColumnProfile) -> float | None:
    filled = None if profile.rows is None or profile.nulls is None else profile.rows - profile.nulls
    return None if not filled or profile.distinct is None else min(1.0, profile.distinct / filled)


def unjoined_columns(table: TableProfile) -> list[str]:
    """The columns that nothing joins on."""
    # Of a table whose columns were not read yet nothing was told.
    return [] if table.stored is not None else [column.name for column in table.columns if column.unjoined]


def columns_of(tables: Sequence[TableProfile]) -> list[Column]:
    """All columns that can take part in keys: not those of bytes, and those that nothing joins on."""
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
            if profile.family == "blob" or profile.unjoined:
                continue
            spelt = spellings[profile.name]
            unique = _uniqueness(profile)
            name = names.column_name(spelt)
            own = conventions.own(place, profile.name)
            if is_unnamed(table.name) and profile.position == 0 and unique == 1.0 and name.key_word and name.entity:
                own = max(own, 0.75)  # only the column that numbers the rows says what they are
            is_versioned = profile.name in versioned
            unique = 1.0 if is_versioned else unique
            column = Column(position, table, profile, spelt, name, own, unique, integer_run(profile), is_versioned)
            found.append(column)
    keyed = {
        column.table for column in found if column.own >= 0.75 and column.name.key_word and column.unique in (None, 1.0)
    }
    return [
        replace(column, is_beside_key=True) if column.table in keyed and column.own < 0.55 else column
        for column in found
    ]


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
