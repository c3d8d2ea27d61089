"""Hidden columns among the facts.

This module, :class:`~tagframe.corpus.computed_columns.HidingStore`, and the calls of both go when hiding is a wrapper
of engines.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.corpus.references import Column

EVERYBODY, MODELS, NOBODY = "everybody", "models", "nobody"
"""The readers from whom a column is hidden; "nobody" if a person said that it may be seen."""
NO_JOINS = ", no joins"
"""The end of the value if no table joins on the column."""


@dataclass(frozen=True)
class HiddenFacts:
    """The hidden columns.

    Attributes:
        hidden: columns whose cells nobody may see.
        unprompted: columns whose cells no model may see, and that must not leave this machine.
        unjoined: those of the hidden columns that no table joins on.
    """

    hidden: frozenset[Column] = frozenset()
    unprompted: frozenset[Column] = frozenset()
    unjoined: frozenset[Column] = frozenset()

    @classmethod
    def of(cls, values: Mapping[tuple[str, tuple[str, ...]], Any]) -> HiddenFacts:
        """The hidden columns among the values of facts."""
        whom = {(of[0], of[1]): str(value) for (kind, of), value in values.items() if kind == "hidden"}
        return cls(
            frozenset(column for column, value in whom.items() if value.removesuffix(NO_JOINS) == EVERYBODY),
            frozenset(column for column, value in whom.items() if value.removesuffix(NO_JOINS) == MODELS),
            frozenset(column for column, value in whom.items() if value.endswith(NO_JOINS)),
        )

    @property
    def withheld(self) -> frozenset[Column]:
        """Columns whose cells are never written down."""
        return self.hidden | self.unprompted

    def union(self, other: HiddenFacts) -> HiddenFacts:
        """The hidden columns of both."""
        hidden = self.hidden | other.hidden
        return HiddenFacts(hidden, (self.unprompted | other.unprompted) - hidden, self.unjoined | other.unjoined)

    def without_hidden(self, profiles: Iterable[TableProfile]) -> tuple[TableProfile, ...]:
        """The profiles in a form that may be written down, with nothing that could reveal hidden cells.

        They do not say whether a column is hidden, because that may change.
        """
        withheld = by_table(self.withheld)
        return tuple(_without(profile, withheld) if profile.id in withheld else profile for profile in profiles)

    def marked(self, profiles: Iterable[TableProfile]) -> tuple[TableProfile, ...]:
        """The profiles, which then say which of their columns are hidden."""
        tables = tuple(map(by_table, (self.hidden, self.unprompted, self.unjoined)))
        touched = {table for table, _ in self.withheld}
        return tuple(_marked(profile, *tables) if profile.id in touched else profile for profile in profiles)


def _marked(
    profile: TableProfile,
    hidden: Mapping[str, set[str]],
    unprompted: Mapping[str, set[str]],
    unjoined: Mapping[str, set[str]],
) -> TableProfile:
    columns = (
        replace(
            column,
            hidden=_is_among(column.name, profile, hidden),
            unprompted=_is_among(column.name, profile, unprompted),
            unjoined=_is_among(column.name, profile, unjoined),
        )
        for column in profile.columns
    )
    return replace(profile, columns=tuple(columns))


def _without(profile: TableProfile, withheld: Mapping[str, set[str]]) -> TableProfile:
    names = {column.name for column in profile.columns if _is_among(column.name, profile, withheld)}
    if profile.stored is not None:
        # The sketches of its other columns are read through the text of all columns.
        return profile.of_columns(profile.stored.without(sorted(names)))
    columns = tuple(_redacted(column) if column.name in names else column for column in profile.columns)
    return replace(profile, columns=columns)


def _redacted(column: ColumnProfile) -> ColumnProfile:
    """The column without anything that could reveal its cells; even hashes of short values can be reversed."""
    return replace(column, minimum=None, maximum=None, samples=(), sketch=None)


def by_table(columns: Iterable[Column]) -> dict[str, set[str]]:
    """The columns' names by the ids of their tables."""
    found: dict[str, set[str]] = defaultdict(set)
    for table, column in columns:
        found[table].add(column)
    return found


def _is_among(column: str, profile: TableProfile, named: Mapping[str, set[str]]) -> bool:
    """Whether the column is among the named ones of its table; another spelling counts if no column matches exactly."""
    names = named.get(profile.id, ())
    if column in names or not names:
        return column in names
    there = {other.name for other in profile.columns}
    return plain_name(column) in {plain_name(name) for name in names if name not in there}


def plain_name(name: str) -> str:
    """A name without case, blanks and what no reader sees.

    >>> plain_name("Secret\\u00a0 Code ") == plain_name("secretcode")
    True
    """
    seen = (one for one in unicodedata.normalize("NFKC", name) if unicodedata.category(one)[0] not in "CZ")
    return "".join(seen).casefold()
