"""Facts told about data: each has a kind, a subject, a value, and the time when it was told.

A later fact replaces an earlier one of the same kind and subject, and undoing something is a fact too. So the facts of
two sources can be merged without asking which is right, and a hidden column is not shown again by a source that did not
know of the hiding. A new kind of facts is a new name in :data:`KINDS`, kept in the same files.

What the facts come to (:class:`Knowledge`) is applied to the profiles, so that everything that uses profiles has it:
retrieval, key inference, prompts. Facts about a table that is not in the corpus are kept until it is.
"""

from __future__ import annotations

import json
import time
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

from tagframe.corpus.profile import TableProfile
from tagframe.corpus.references import Column, ToldKey, moved_key
from tagframe.corpus.semantic_model import SemanticModel, moved
from tagframe.corpus.statements import Statement
from tagframe.engines.base import ForeignKey

KINDS = ("key", "table", "column", "hidden", "statement", "annotated", "checked", "semantic", "reader")
"""Pairs of columns that join or do not; descriptions of a table and of a column; columns hidden from somebody; a
statement that was run or confirmed; a model's text about a table or a column; a model's answer to whether a pair of
columns joins; a semantic model; what a reader sees."""
_OF_SEVERAL = {"statement": Statement.moved, "semantic": moved}
"""The subject of these facts is a digest and the tables; and how their value is moved to other tables."""
_OF_PAIRS = ("key", "checked")
"""The subject of these facts is the pairs of columns."""

EVERYBODY, MODELS = "everybody", "models"
"""The readers from whom a column is hidden."""
NO_JOINS = ", no joins"
"""The end of the value if no table joins on the column."""
FactKey = tuple[str, tuple[str, ...]]
"""The kind, and the subject of the fact: a table, a table and a column, the pairs of columns of a key, the digest of a
statement or a semantic model and its tables, or the name of a reader."""

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
class Told:
    """Facts.

    Attributes:
        facts: value (None if it was undone) and time (seconds since 1970; 0 if unknown).
    """

    facts: Mapping[FactKey, tuple[Any, float]] = field(default_factory=dict)
    _read: dict[FactKey, tuple[tuple[Any, float], Statement]] = field(default_factory=dict, repr=False, compare=False)
    """The statements of these facts, or of earlier ones that became these: only new ones are read again."""

    def __getstate__(self) -> dict[str, Any]:
        return {"facts": self.facts, "_read": {}}

    @cached_property
    def knowledge(self) -> Knowledge:
        """The knowledge from all facts."""
        told = sorted(self.facts.items(), key=lambda item: item[1][1])
        known = [(kind, of, value) for (kind, of), (value, _) in told if value is not None]
        keys = [(ToldKey.of(value), value["joins"]) for kind, _, value in known if kind == "key"]
        hidden = {(of[0], of[1]): value for kind, of, value in known if kind == "hidden"}
        ran = (join for kind, _, value in known if kind == "statement" for join in value.get("joins", ()))
        return Knowledge(
            tuple(key for key, joins in keys if joins),
            tuple(key for key, joins in keys if not joins),
            {of[0]: value for kind, of, value in known if kind == "table"},
            {(of[0], of[1]): value for kind, of, value in known if kind == "column"},
            frozenset(column for column, whom in hidden.items() if whom.removesuffix(NO_JOINS) != MODELS),
            frozenset(column for column, whom in hidden.items() if whom.removesuffix(NO_JOINS) == MODELS),
            tuple(dict.fromkeys(map(ToldKey.of, ran))),
            # A table's annotation is the text and the columns that the model saw; a column's is the text.
            {of: value if isinstance(value, str) else value[0] for kind, of, value in known if kind == "annotated"},
            frozenset(column for column, whom in hidden.items() if whom.endswith(NO_JOINS)),
            tuple((ToldKey.of(value), value["said"], value["why"]) for kind, _, value in known if kind == "checked"),
            tuple(SemanticModel(value) for kind, _, value in known if kind == "semantic"),
        )

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """The statements, the earliest first."""
        known, read = dict(self._read), dict[FactKey, tuple[tuple[Any, float], Statement]]()
        for key, fact in self.facts.items():
            (kind, of), (value, at) = key, fact
            if kind == "statement" and value:
                held = known.get(key)
                read[key] = held if held and held[0] is fact else (fact, Statement.of(of, value, at))
        self._read.clear()  # what is no fact any more may have values of columns that are hidden by now
        self._read.update(read)
        return tuple(sorted((one for _, one in read.values()), key=lambda one: (one.at, one.fact[1])))

    def merged(self, *others: Told) -> Told:
        """These facts and those of others, the later one of each; at the same time, one with a value."""
        facts = dict(self.facts)
        for other in others:
            for key, (value, at) in other.facts.items():
                held = facts.get(key)
                if held is None or (at, value is not None) > (held[1], held[0] is not None):
                    facts[key] = other.facts[key]
        return self if facts == self.facts else Told(facts, dict(self._read))

    def changed(self, values: Mapping[FactKey, Any]) -> Told:
        """These facts, with the given ones that are not known yet, told now."""
        known = {key: value for key, (value, _) in self.facts.items()}
        return self.with_values({key: value for key, value in values.items() if known.get(key) != value})

    def with_values(self, values: Mapping[FactKey, Any]) -> Told:
        """These facts, with the given ones told now; None undoes one. See :meth:`bare` for hidden columns."""
        at = max([time.time(), *(at + 1e-6 for _, at in self.facts.values())])  # clocks may be set back
        told = Told({**self.facts, **{key: (value, at) for key, value in values.items()}}, dict(self._read))
        return told.bare(told.knowledge.withheld)

    def bare(self, withheld: Collection[Column]) -> Told:
        """These facts without the columns' values in statements, and without texts of models that saw their cells."""
        if not withheld:
            return self
        with_cells = [one for one in self.statements if (one.cells or one.question) and one.reads(withheld)]
        bare: dict[FactKey, tuple[Any, float]] = {one.fact: (one.without_cells().value, one.at) for one in with_cells}
        columns = by_table(withheld)
        by_model = {of: one for (kind, of), one in self.facts.items() if kind == "annotated" and one[0] is not None}
        saw = {
            of[0]
            for of, (value, _) in by_model.items()
            if len(of) == 1 and of[0] in columns and columns[of[0]] & {*value[1]}
        }
        bare |= {("annotated", of): (None, at + 1e-6) for of, (_, at) in by_model.items() if of[0] in saw}
        bare |= {
            (kind, of): (None, at + 1e-6)
            for (kind, of), (value, at) in self.facts.items()
            if kind == "checked" and value is not None and value["cells"] and not _columns_of(of).isdisjoint(withheld)
        }
        return Told({**self.facts, **bare}) if bare else self

    def translated(self, ids: Mapping[str, Sequence[str]], kinds: Iterable[str] = KINDS) -> Told:
        """The facts with new ids for their tables (none, one or several); facts of other tables are left out.

        Args:
            ids: from a table's id here to those there.
            kinds: of facts.
        """
        facts: dict[FactKey, tuple[Any, float]] = {}
        for (kind, of), (value, at) in self.facts.items() if any(ids.values()) else ():
            if kind in kinds:
                facts.update({(kind, subject): (one, at) for subject, one in _moved(kind, of, value, ids)})
        return Told(facts)

    def standing(self) -> Told:
        """The facts without undone ones: undoing holds for one source only."""
        if all(value is not None for value, _ in self.facts.values()):
            return self
        return Told({key: (value, at) for key, (value, at) in self.facts.items() if value is not None})

    def tables(self) -> set[str]:
        """The ids of all tables with facts."""
        return {table for kind, of in self.facts for table in _tables_of(kind, of)}

    def to_json(self) -> list[list[Any]]:
        """Plain values that :meth:`from_json` reads."""
        return [[kind, list(of), value, at] for (kind, of), (value, at) in self.facts.items()]

    @classmethod
    def from_json(cls, plain: Iterable[Sequence[Any]]) -> Told:
        """Read what :meth:`to_json` wrote; a kind that this version does not know is kept as it is."""
        return cls({(kind, tuple(of)): (value, float(at)) for kind, of, value, at in plain})


def _tables_of(kind: str, of: tuple[str, ...]) -> Collection[str]:
    """The tables of a fact's subject."""
    if kind in _OF_PAIRS:
        return {table for table, _ in _columns_of(of)}
    return of[1:] if kind in _OF_SEVERAL else () if kind == "reader" else of[:1]


def _moved(
    kind: str, of: tuple[str, ...], value: Any, ids: Mapping[str, Sequence[str]]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The subject and the value of a fact with other ids for its tables: none, one or several."""
    if kind in _OF_SEVERAL:
        for called in _together(of[1:], ids):
            yield (of[0], *(called[table] for table in of[1:])), value and _OF_SEVERAL[kind](value, called)
    elif kind in _OF_PAIRS:
        tables = sorted(_tables_of(kind, of))
        for others in product(*(ids.get(table, ()) for table in tables)):
            called = dict(zip(tables, others, strict=True))
            pairs = [[[called[table], column] for table, column in pair] for pair in json.loads(of[0])]
            yield _subject(pairs), value and moved_key(value, called)
    elif kind != "reader":
        yield from (((id, *of[1:]), value) for id in ids.get(of[0], ()))


def _together(tables: Sequence[str], ids: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """The new ids of the tables of a statement: a mapping for each database that has all of them."""
    databases = [{id.rpartition(".")[0]: id for id in reversed(ids.get(table, ()))} for table in tables]
    if all(len(one) == 1 for one in databases):
        return [{table: next(iter(one.values())) for table, one in zip(tables, databases, strict=True)}]
    shared = sorted(set.intersection(*map(set, databases))) if databases else []
    return [{table: one[database] for table, one in zip(tables, databases, strict=True)} for database in shared]


def _columns_of(pairs: tuple[str, ...]) -> set[Column]:
    """The columns of a fact about pairs of columns."""
    return {(table, column) for pair in json.loads(pairs[0]) for table, column in pair}


def key_fact(key: ToldKey, joins: bool) -> tuple[FactKey, dict[str, Any]]:
    """The fact that the columns of a key join, or that they do not."""
    return ("key", _subject(key.sides)), {**key.value, "joins": joins}


def checked_fact(key: ToldKey, said: str, why: str, *, cells: bool) -> tuple[FactKey, dict[str, Any]]:
    """The fact that a model said whether the columns of a key join; ``cells``: it had seen some of theirs."""
    return ("checked", _subject(key.sides)), {**key.value, "said": said, "why": why, "cells": cells}


def _subject(pairs: Iterable[Iterable[Sequence[str]]]) -> tuple[str, ...]:
    """The subject of a fact about pairs of columns, in whatever order these are given."""
    return (json.dumps(sorted(sorted(map(list, pair)) for pair in pairs)),)


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

    def applied(self, profiles: Sequence[TableProfile]) -> tuple[TableProfile, ...]:
        """The profiles with the told facts applied; profiles without facts are returned as the same objects."""
        if self == Knowledge():
            return tuple(profiles)
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
        private = by_table(self.withheld)

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
                    private=_is_among(column.name, profile, private),
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
