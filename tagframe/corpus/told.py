"""Facts about tables that a user tells once: keys, forbidden keys, descriptions, hidden columns.

They are applied to the profiles, so that everything that uses profiles (retrieval, key inference, prompts) has them.
Facts about a table that is not in the corpus are kept until it is.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.corpus.references import Column
from tagframe.corpus.semantic_model import SemanticModel
from tagframe.engines.base import ForeignKey

BY_MODEL = "≈ "
"""The beginning of a description that a model wrote: not a word, so that it is not searched."""

LONGEST = 500
"""The number of characters of a description that are kept: prompts have all of them."""
_JOINERS = "\u200c\u200d"
"""Invisible characters that are kept: scripts and emoji need them."""


def as_description(text: str) -> str:
    """A text as a description: one line of at most :data:`LONGEST` visible characters.

    >>> as_description("status,\\n 3 =\\x1b shipped\\u202e")
    'status, 3 = shipped'
    """
    begun = text[: 20 * LONGEST]
    seen = (one for one in begun if one.isspace() or one in _JOINERS or unicodedata.category(one)[0] != "C")
    line = " ".join("".join(seen).split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def with_synonyms(text: str, synonyms: Iterable[str]) -> str:
    """A description with other names, in at most :data:`LONGEST` characters.

    >>> with_synonyms("Units sold", ["quantity", "units"]), with_synonyms("", ["pieces"])
    ('Units sold; also called quantity', 'also called pieces')
    """
    others = ", ".join(dict.fromkeys(one for one in synonyms if one.casefold() not in text.casefold()))
    return "; ".join(filter(None, (text, f"also called {others}" if others else "")))[:LONGEST]


@dataclass(frozen=True)
class ToldKey:
    """A pair of columns (or of several columns each), the referencing side first if that is known."""

    left_table: str
    left_columns: tuple[str, ...]
    right_table: str
    right_columns: tuple[str, ...]

    @property
    def sides(self) -> frozenset[tuple[Column, Column]]:
        """The pairs of columns, independent of the order of the sides."""
        pairs = zip(self.left_columns, self.right_columns, strict=True)
        ends = (self.left_table, self.right_table)
        return frozenset(min(((ends[0], a), (ends[1], b)), ((ends[1], b), (ends[0], a))) for a, b in pairs)

    def __str__(self) -> str:
        pairs = zip(self.left_columns, self.right_columns, strict=True)
        return " and ".join(f"{self.left_table}.{left} = {self.right_table}.{right}" for left, right in pairs)

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> ToldKey:
        """Read plain values of the four."""
        sides = plain["left_table"], tuple(plain["left_columns"]), plain["right_table"], tuple(plain["right_columns"])
        return cls(*sides)


@dataclass(frozen=True)
class Knowledge:
    """All told facts.

    Attributes:
        keys: pairs of columns that join.
        forbidden: pairs that do not join, whatever their names and values.
        tables: description by table id.
        columns: description by column.
        hidden: columns whose cells nobody may see.
        unprompted: columns whose cells no model may see, and that must not leave this machine.
        ran: pairs of columns that past statements joined.
        annotated: a model's text about a table, or about a table and column; a description takes precedence.
        unjoined: those of the hidden columns that no table joins on.
        checked: pairs of columns with a model's answer to whether they join ("yes", "no" or "cannot tell"), and why.
        semantic: semantic models, the latest last: below a person's word, above a source's comment and a model's text.
    """

    keys: tuple[ToldKey, ...] = ()
    forbidden: tuple[ToldKey, ...] = ()
    tables: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[Column, str] = field(default_factory=dict)
    hidden: frozenset[Column] = frozenset()
    unprompted: frozenset[Column] = frozenset()
    ran: tuple[ToldKey, ...] = ()
    annotated: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    unjoined: frozenset[Column] = frozenset()
    checked: tuple[tuple[ToldKey, str, str], ...] = ()
    semantic: tuple[SemanticModel, ...] = ()

    @property
    def withheld(self) -> frozenset[Column]:
        """Columns whose cells are never written down."""
        return self.hidden | self.unprompted

    def without_hidden(self, profiles: Iterable[TableProfile]) -> tuple[TableProfile, ...]:
        """The profiles in a form that may be written down, with nothing that could reveal hidden cells.

        They do not say whether a column is hidden, because that may change.
        """
        withheld = by_table(self.withheld)
        return tuple(_without(profile, withheld) if profile.id in withheld else profile for profile in profiles)

    def applied(self, profiles: Sequence[TableProfile]) -> tuple[TableProfile, ...]:
        """The profiles with the told facts applied; profiles without facts are returned as the same objects."""
        if self == Knowledge():
            return tuple(profiles)
        profiles = self.without_hidden(profiles)
        by_id = {profile.id: profile for profile in profiles}
        given, forbidden = _by_table(self.keys, by_id), _by_table(self.forbidden, by_id)
        for table, keys in _by_table(self.ran, by_id).items():
            given[table] = [*(replace(key, ran=True) for key in keys), *given[table]]
        checked: dict[str, list[ForeignKey]] = defaultdict(list)
        for key, said, why in self.checked:
            for table, (plain,) in _by_table([key], by_id).items():
                checked[table].append(replace(plain, given=False, said=said, why=why))
        modelled = {table for model in self.semantic for table in model.tables}
        for model in self.semantic:
            for plain in model.value["keys"]:
                for table, (own,) in _by_table([ToldKey.of(plain)], by_id).items():
                    by = f"{model.value['called']}{': ' * bool(plain['name'])}{plain['name']}"
                    given[table].append(replace(own, given=False, by=by, holds=plain.get("holds")))
        touched = {
            *modelled,
            *given,
            *checked,
            *forbidden,
            *self.tables,
            *(of[0] for of in self.annotated),
            *(table for table, _ in (*self.columns, *self.withheld)),
        }
        hidden, unprompted, unjoined = map(by_table, (self.hidden, self.unprompted, self.unjoined))

        def told(profile: TableProfile) -> TableProfile:
            said = [model.tables[profile.id] for model in self.semantic if profile.id in model.tables]
            columns = tuple(
                replace(
                    column,
                    description=_said(
                        self.columns.get((profile.id, column.name)),
                        [one["columns"].get(column.name, {}) for one in said],
                        column.description or self._by_model(profile.id, column.name),
                    ),
                    hidden=_is_among(column.name, profile, hidden),
                    unprompted=_is_among(column.name, profile, unprompted),
                    unjoined=_is_among(column.name, profile, unjoined),
                )
                for column in profile.columns
            )
            return replace(
                profile,
                columns=columns,
                foreign_keys=(*profile.foreign_keys, *given[profile.id]),
                forbidden_keys=tuple(forbidden[profile.id]),
                checked_keys=tuple(checked[profile.id]),
                description=_said(self.tables.get(profile.id), said, profile.description or self._by_model(profile.id)),
                primary_key=profile.primary_key
                or next((tuple(k) for one in said[::-1] if (k := one["primary_key"])), ()),
            )

        return tuple(told(profile) if profile.id in touched else profile for profile in profiles)

    def _by_model(self, *of: str) -> str:
        """A model's text, marked as such."""
        return f"{BY_MODEL}{self.annotated[of]}" if self.annotated.get(of) else ""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Knowledge:
        """Read the form in catalogues that were written before there were facts."""
        return cls(
            tuple(map(ToldKey.of, data["keys"])),
            tuple(map(ToldKey.of, data["forbidden"])),
            dict(data["tables"]),
            {(table, column): text for table, column, text in data["columns"]},
            frozenset((table, column) for table, column in data["hidden"]),
        )


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


def _said(by_person: str | None, said: Sequence[Mapping[str, Any]], otherwise: str) -> str:
    """A description: a person's, that of the latest semantic model, or another; with the models' synonyms."""
    text = by_person or next((one["description"] for one in said[::-1] if one.get("description")), "") or otherwise
    return with_synonyms(text, (name for one in said for name in one.get("synonyms", ()))) if said else text


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


def _by_table(keys: Iterable[ToldKey], profiles: Mapping[str, TableProfile]) -> dict[str, list[ForeignKey]]:
    found: dict[str, list[ForeignKey]] = defaultdict(list)
    for key in keys:
        left, right = profiles.get(key.left_table), profiles.get(key.right_table)
        if left is not None and right is not None:
            database = "" if left.database == right.database else right.database
            found[left.id].append(ForeignKey(key.left_columns, right.name, key.right_columns, database, given=True))
    return found
