"""What a bare schema says of a reference: numbers for each column and each table that its name may mean.

A schema is counted as a whole, so that no culture is built in: whether references have a key word, which words begin
the names of all tables or of a part of them, how often a column's name repeats, how many columns mean a table. The
numbers are the features of a model (:mod:`~tagframe.keys.schema_model`); none of them decides alone.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np

from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.keys import column_names as names
from tagframe.keys.conventions import Conventions
from tagframe.keys.key_columns import Floats
from tagframe.keys.polymorphic import type_beside

Words = tuple[str, ...]

_LEVELS = (2.9, 2.4, 2.15, 1.9, 1.4, 1.05, 0.01)
"""How plainly a name means a table, in steps; see :meth:`SchemaReading._level`."""
_OF_BOTH = "own_words exact part own_role role part_role vague actor typed".split()
"""Features that say one thing of a column with a key word, and another one of a column without."""
FEATURES = (
    *"""short first_column same_family type margin self self_role child_of plural rank_word bridge target_width
    referenced better_beside is_code end vocabulary about habit unmarked own_key
    bridge_named explained habit_actor type_of same_key same_keys""".split(),
    *(f"{name}_{kind}" for kind in ("marked", "unmarked") for name in _OF_BOTH),
)
"""The features by name, in the order of their numbers."""

_LETTERS = 4
"""A table's name of so many letters may stand in a column's without a separator."""
_LETTERS_OF_KEY = 3
"""The name of one table's key with so many letters may end a column's without a separator: ``createduid``."""
_MOST_TARGETS = 12
"""A column is compared with at most so many tables that its name may mean."""
_PREFIXED = 0.8
"""A word that begins the names of this share of the tables, or of a table's columns, is a prefix."""
_SHORT, _SUFFIXED = 2, 0.03
"""A word of so few letters that ends the names of this share of the tables is no part of what they are called."""
_HEADER = re.compile(r"(.{2,})(entity|header|info|static|master|base|main|def|definition)\Z")
"""Ends of the names of tables that have the rows of a thing, beside others with more about it."""
_COPIED = re.compile(r"[a-z]{3,}ed_?from(_?id)?\Z", re.IGNORECASE)
"""A row that was amended, copied or derived from another one."""
_ENDS = frozenset("subject object source target from to left right old new ancestor descendant".split())
"""Words for the two rows that a row of a table of relations is about."""
_RELATIONS = frozenset("relationship relation link assoc association map rel edge hierarchy tree".split())
"""Last words of the names of tables whose rows are about two rows of another one."""
_TEXTS = frozenset("comment reason description summary remark note text".split())
"""Words for free texts: where one table holds these, its rows are called so."""
_VOCABULARIES = frozenset(
    "term cvterm vocabulary concept codevalue lookup lookupvalue contenttype reference enumeration".split()
)
"""Names of tables whose rows are types, kinds and states of everything, so that no column is called as they are."""
_OWNS = 2.8, 1.3, 2.7, 1.8, -1.6
"""Log odds of a table that owns the key of one name: it is the first column, named in part, or in full, by the table;
for each unit of the logarithm of its columns; and for each word of the table's name. Fitted to the 296 names of keys
that several tables have in 47 schemas; left out of the fit, 2,406 of 2,458 references are to the owner."""
_CROWD = 3
"""A first column without a key word that so many tables have is the key of none."""
_MOSTLY = 0.6
"""A column that is the first one of this share of the tables is the key of each."""
_PLAIN = 2.0
"""From this level on, a name means a table without a role before it."""
_IN_ROLE = 1.0
"""From this level on, a role may stand before the table's name."""
_EXACT = 2.5
"""From this level on, it is the table's whole name, or that of its key."""
_MODULE = 3
"""A word that begins the names of so many tables is that of a part of the schema."""
_REAL = re.compile(r"float|double|real|money|\(\d+,\s*[1-9]", re.IGNORECASE)
_SERIAL = re.compile(r"(small|medium|big)?serial\d?\b", re.IGNORECASE)
"""Declared types of columns that number their table's rows."""
_SAME_TYPES = {
    "serial": "int", "integer": "int", "int4": "int", "serial4": "int", "bigserial": "bigint", "int8": "bigint",
    "serial8": "bigint", "smallserial": "smallint", "int2": "smallint", "character_varying": "varchar",
}  # fmt: skip
"""Declared types that have another name."""
_WIDTHS = frozenset({"int", "bigint", "smallint", "mediumint", "tinyint"})
"""Types of whole numbers: a key and a reference to it may differ in width."""
_DIGITS = 9
"""Numbers that are shown with fewer digits are no keys of rows."""
_OTHER_WIDTH = 0.5
"""How well two of them agree."""
_BY = re.compile(
    r"((ed|en)_?by|assigned_?to)(_?(id|user|uid))*\Z|(user|by)_?(modified|created|updated|changed|deleted|from|to)\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, eq=False)
class Reference:
    """A column and a table that it may refer to, by the position of each, with its features: shape (features,)."""

    table: int
    column: int
    target: int
    features: Floats


@dataclass(frozen=True)
class _Read:
    """A column's name taken apart, without the prefix of its table.

    ``called`` has the prefix of a key that is otherwise a key word only: ``rev_id``, not ``id``.
    """

    profile: ColumnProfile
    spelt: str
    words: Words
    called: Words
    entity: Words
    key_word: float

    @cached_property
    def ends(self) -> list[str]:
        """The entity without its first 0, 1, ... words, written together."""
        return ["".join(self.entity[start:]) for start in range(len(self.entity))]

    @property
    def is_natural(self) -> bool:
        """Whether it may identify rows without a word that says so."""
        return not self.key_word and self.profile.family in ("integer", "text")

    @cached_property
    def type(self) -> str:
        """The declared type without its length; the family if none is declared."""
        return self.declared.partition("(")[0] or self.profile.family

    @cached_property
    def declared(self) -> str:
        """The declared type under one name."""
        word, bracket, rest = self.profile.declared_type.casefold().partition("(")
        word = word.strip().removesuffix(" unsigned").replace(" ", "_")
        word, digits = _SAME_TYPES.get(word, word), rest.removesuffix(" unsigned").rstrip(")")
        if word in _WIDTHS and digits.isdigit() and int(digits) >= _DIGITS:
            return word  # so many digits are shown, which says nothing of the values
        return word + bracket + rest.removesuffix(" unsigned")

    @cached_property
    def is_serial(self) -> bool:
        """Whether the declared type says that the column numbers the rows of its table."""
        return bool(_SERIAL.match(self.profile.declared_type))

    def fits(self, key: _Read) -> float:
        """How well the declared types of a reference and of a key agree, in [0, 1]."""
        if self.declared == key.declared:
            return 1.0
        return _OTHER_WIDTH if self.is_wide and key.is_wide else 0.0

    @property
    def is_wide(self) -> bool:
        """Whether the declared type is one of whole numbers, of nine digits or of any."""
        digits = self.declared.partition("(")[2].rstrip(")")
        return self.type in _WIDTHS and (not digits.isdigit() or int(digits) >= _DIGITS)

    @cached_property
    def has_self_role(self) -> bool:
        return not names.SELF_ROLES.isdisjoint(self.entity) or bool(_COPIED.search(self.spelt))

    @cached_property
    def is_end(self) -> bool:
        """Whether the name says only at which end of a relation the row is."""
        return bool(self.entity) and (_ENDS | names.SELF_ROLES).issuperset(self.entity)

    @cached_property
    def is_by(self) -> bool:
        return bool(_BY.search(self.spelt))

    @cached_property
    def is_actor(self) -> bool:
        """Whether the name says who did something."""
        if self.has_self_role:
            return False
        return self.is_by or names.is_role(self.spelt) or self.entity[-1:] in (("by",), ("user",))

    @cached_property
    def is_text(self) -> bool:
        """Whether the name is that of a free text, and the column has its key: ``reason_id``."""
        return self.key_word == 1.0 and not _TEXTS.isdisjoint(self.entity[-1:])


def _same_start(one: str, other: str) -> int:
    """The number of letters that both begin with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _are_people(thing: Words) -> bool:
    """Whether the rows of a table that is called so do things: also those of ``appuser`` and ``user_account``."""
    *before, last = thing[-2:] or ("",)
    return last in names.PEOPLE or last.endswith(("user", "usr")) or (last == "account" and _are_people((*before,)))


def _without_affixes(things: Sequence[Words]) -> list[Words]:
    """Names of tables, without a word that nearly all begin with, nor short ones that many end in: ``rule_t``."""
    long = [words for words in things if len(words) > 1]
    first, last = (Counter(words[at] for words in long) for at in (0, -1))
    begins = {word for word, count in first.items() if count > _PREFIXED * len(things) and len(things) > 2}
    most = max(_MODULE, _SUFFIXED * len(things))
    ends = {word for word, count in last.items() if len(word) <= _SHORT and count > most}
    found = []
    for words in things:
        rest = words[1:] if words[:1] and words[0] in begins and len(words) > 1 else words
        found.append(rest[:-1] if len(rest) > 1 and rest[-1] in ends else rest)
    return found


class _Fit(NamedTuple):
    """A table that a column may refer to: a first score, and how plainly the name means it."""

    score: float
    target: int
    level: float


class _Draft(NamedTuple):
    """A column's target with its rank among all of them, and the highest score of the others."""

    table: int
    column: int
    fit: _Fit
    rank: int
    rival: float


class SchemaReading:
    """A schema as a whole, read by names and declared types.

    Args:
        tables: of one database.
    """

    def __init__(self, tables: Sequence[TableProfile]) -> None:
        self._tables = tables
        self.things = _without_affixes([names.table_entity(table.name) for table in tables])
        begins = Counter(words[0] for words in self.things if len(words) > 1)
        self._modules = {word for word, count in begins.items() if count >= _MODULE}
        self._bare = [
            "".join(words[1:] if len(words) > 1 and words[0] in self._modules else words) for words in self.things
        ]
        self._joined = ["".join(words) for words in self.things]
        self._plain = self._without_header(self._joined)
        short = self._without_header(self._bare)
        self._spellings = [*zip(self._joined, self._bare, self._plain, short, strict=True)]
        self._names = {*chain.from_iterable(self._spellings)}
        self._same = Counter(self._joined)
        self._starts = [self._starts_of(words) for words in self.things]
        self._type_marks = names.type_marks([column.name for table in tables for column in table.columns])
        habits = Conventions(tables)
        self.columns = [self._read(table, habits.spelt(position)) for position, table in enumerate(tables)]
        self._texts = [{"".join(column.words) for column in columns} for columns in self.columns]
        self._repeats = Counter(column.words for columns in self.columns for column in columns)
        self._leads = Counter(columns[0].words for columns in self.columns if columns)
        self._natural = self._natural_key()
        self.keys = [self._key(position) for position in range(len(tables))]
        self._mentions = habits.mentions
        self._index()
        self._count()

    def _without_header(self, spellings: Sequence[str]) -> list[str]:
        """Names of tables without an end that says only that they have the thing's rows: ``customer`` of
        ``customer_entity``. As they are if another table is called so."""
        found, taken = [], {*self._joined, *self._bare}
        for spelling in spellings:
            match = _HEADER.match(spelling)
            found.append(spelling if match is None or match[1] in taken else match[1])
        return found

    def _read(self, table: TableProfile, by_habit: Mapping[str, str]) -> list[_Read]:
        starts = Counter(column.name.partition("_")[0] for column in table.columns if "_" in column.name)
        prefix, count = max(starts.items(), key=lambda one: one[1], default=("", 0))
        is_prefix = len(table.columns) > 1 and count == len(table.columns) and len(prefix) <= 12
        found = []
        for column in table.columns:
            spelt = column.name[len(prefix) + 1 :] if is_prefix else column.name
            spelt = names.unmarked(spelt or column.name, self._type_marks)
            name = names.column_name(spelt)
            if spelt[-1:].isdigit() and "_" not in spelt and not name.key_word:
                spelt = by_habit[column.name]  # ``entity1`` of ``l_artist_area`` is an area's id
                name = names.column_name(spelt)
            called = name.words if name.entity else names.column_name(column.name).words
            whole, entity = name.words[:-1], name.entity
            if len(whole) > len(entity) and self._names.intersection("".join(whole[cut:]) for cut in range(len(whole))):
                entity = whole  # of ``api_keys``, not of an ``api``
            found.append(_Read(column, spelt, name.words, called, entity, name.key_word))
        return found

    def _natural_key(self) -> Words:
        """The first column of most tables, by its words, if it has no key word: all are keyed by their name."""
        first = Counter(columns[0].words for columns in self.columns if columns and columns[0].is_natural)
        words, count = max(first.items(), key=lambda one: one[1], default=((), 0))
        return words if count > _MOSTLY * len(self.columns) else ()

    def _key(self, position: int) -> tuple[int, int]:
        """The position of the column that is likely the table's key, -1 for none; and how its name says so.

        That is 4 for a row number, 3 for the table's name, 2 for a part of it, 1 for the first column with a key word,
        0 for the first column.
        """
        columns, thing = self.columns[position], self.things[position]
        if len(columns) == 1 and self._same["".join(thing)] > 1:
            return -1, -1  # the last number that another table of this name uses
        declared = self._tables[position].primary_key
        joined, best = "".join(thing), (-1, -1)
        names_of = {name.casefold() for name in declared}
        for at, column in enumerate(columns):
            called = "".join(column.entity)
            is_declared = column.profile.name.casefold() in names_of
            if declared and not column.is_serial and not (is_declared and len(declared) == 1):
                continue  # a serial number identifies rows beside the declared key, too
            if column.is_serial or (self._natural and column.words == self._natural):
                strength = 3 + (not column.entity or column.words == self._natural)
            elif column.key_word == 1.0 and (not called or self._plain[position] + called == joined != called):
                strength = 4 if at == 0 or column.words == ("id",) else 2
            elif column.key_word and called and called in self._spellings[position]:
                strength = 3
            elif column.key_word and called and at < 2 and self._is_short(called, joined, column, position):
                strength = 2
            elif at == 0:
                of_others = not column.key_word and self._repeats[column.words] >= _CROWD and called != joined
                strength = -1 if of_others and not declared else int(column.key_word > 0)
            else:
                strength = 1 if len(declared) == 1 else -1
            if strength < 0 and column.words == ("name",):
                strength = 0  # of a table without another key, as all of names are
            if strength > best[1]:
                best = (at, strength)
        return best

    def _starts_of(self, thing: Words) -> set[str]:
        """What may stand before a column's name in the name of a table, by the name of the column's own table."""
        own = thing[1:] if len(thing) > 1 and thing[0] in self._modules else thing
        return {"".join(words[:cut]) for words in (thing, own) for cut in range(1, len(words) + 1)}

    def _is_short(self, called: str, joined: str, column: _Read, position: int) -> bool:
        ends = joined.endswith(called) or joined.startswith(called)
        return (column.key_word == 1.0 and ends) or names.own(column.spelt, self._tables[position].name) >= 0.75

    def _index(self) -> None:
        self._called: dict[str, list[int]] = defaultdict(list)
        self._whole: dict[str, list[int]] = defaultdict(list)
        for position, thing in enumerate(self.things):
            whole, bare, *plain = self._spellings[position]
            for called in {whole, *plain} - ({bare} - {whole}):
                self._whole[called].append(position)
            cuts = range(1, len(thing))
            parts = (thing[cut:] for cut in cuts), (thing[:cut] for cut in cuts)
            for called in {whole, *plain, *("".join(part) for part in chain(*parts))}:
                self._called[called].append(position)
        self._by_key: dict[Words, list[int]] = defaultdict(list)
        keys = Counter(self.columns[position][at].called for position, (at, _) in enumerate(self.keys) if at == 0)
        self._of_one_key = {called for called, count in keys.items() if count == 1} - {("id",)}
        for position, (at, strength) in enumerate(self.keys):
            if at >= 0 and strength >= 0:
                column = self.columns[position][at]
                is_number = strength == 4 and bool(column.entity)  # of all that have an end of one name
                if not is_number and (self._is_named(column) or not column.key_word) and column.words != self._natural:
                    self._by_key[column.called].append(position)
        self._by_text: dict[str, list[int]] = defaultdict(list)
        for position in range(len(self.things)):
            for text in {self._joined[position], self._bare[position]}:
                if len(text) >= _LETTERS:
                    self._by_text[text].append(position)
        self._by_bare: dict[str, list[int]] = defaultdict(list)
        self._by_turned: dict[str, list[int]] = defaultdict(list)  # ``medium_cv`` of ``cv_medium``
        for position, (bare, thing) in enumerate(zip(self._bare, self.things, strict=True)):
            self._by_bare[bare].append(position)
            if len(thing) > 1 and thing[0] in self._modules:
                self._by_turned["".join((*thing[1:], thing[0]))].append(position)
        self._owner: dict[Words, int] = {}
        self._by_key_text: dict[str, int] = {}
        self._people = [at for at, thing in enumerate(self.things) if len(thing) in (1, 2) and _are_people(thing)]

    def _count(self) -> None:
        whole = self._whole.keys()
        hits = [
            column.key_word > 0
            for thing, columns in zip(self._joined, self.columns, strict=True)
            for column in columns
            if (called := "".join(column.entity)) in whole and called != thing
            and not names.is_plural(column.spelt) and column.profile.family not in ("boolean", "date", "blob")
        ]  # fmt: skip
        self._unmarked = 1 - sum(hits) / len(hits) if hits else 0.0
        self._bridge = []
        for position, thing in enumerate(self.things):
            parts = sum("".join(thing[:cut]) in whole and "".join(thing[cut:]) in whole for cut in range(1, len(thing)))
            keys = sum(column.key_word == 1.0 and bool(column.entity) for column in self.columns[position])
            self._bridge.append(float(parts > 0) + keys / max(1, len(self.columns[position])))

        for words, positions in self._by_key.items():
            self._owner[words] = owner = max(positions, key=self._owns_alone)
            text = "".join(words)
            if len(text) >= _LETTERS_OF_KEY and self.columns[owner][self.keys[owner][0]].key_word:
                self._by_key_text[text] = owner

        spellings = zip(self._joined, self._bare, strict=True)
        every = [(column.type, column.key_word == 1.0) for columns in self.columns for column in columns]
        marked, types = Counter(one for one, is_marked in every if is_marked), Counter(one for one, _ in every)
        self._marked = {one: marked[one] / types[one] for one in types}
        self._end_columns = [sum(column.is_end for column in columns) for columns in self.columns]
        self._vocabularies = [at for at, both in enumerate(spellings) if not _VOCABULARIES.isdisjoint(both)]

    def _owns_alone(self, position: int) -> tuple[float, int]:
        """Of the tables whose key has one name, the one that is about that thing has the most: columns, and a name
        that says so in few words."""
        at, strength = self.keys[position]
        words = min(3, len(self.things[position]))
        facts = at == 0, strength >= 2, strength >= 3, math.log1p(len(self.columns[position])), words
        return sum(weight * fact for weight, fact in zip(_OWNS, facts, strict=True)), -position

    def references(self) -> list[Reference]:
        """All columns with the tables that they may refer to."""
        drafts = [
            draft
            for table, columns in enumerate(self.columns)
            for at, column in enumerate(columns)
            for draft in self._drafts(table, at, self._ranked(table, column))
        ]
        referenced = Counter(one.fit.target for one in drafts if one.rank == 0 and one.fit.target != one.table)
        beside: dict[tuple[int, int], float] = defaultdict(float)
        for one in drafts:
            ends = one.table, one.fit.target
            beside[ends] = max(beside[ends], one.fit.score)
        return [self._reference(one, referenced[one.fit.target], beside[one.table, one.fit.target]) for one in drafts]

    def _drafts(self, table: int, at: int, ranked: Sequence[_Fit]) -> Iterator[_Draft]:
        column = self.columns[table][at]
        kind = type_beside(column.words, len(column.entity), column.key_word, self._texts[table])
        # Another column says which table is meant, or the name is that of the column's own table.
        is_plain = kind is not None or self.keys[table] == (at, 3)
        least = _PLAIN if is_plain else _IN_ROLE * self._numbers_rows(at, column)
        ranked = [fit for fit in ranked if fit.level >= least]
        for rank, fit in enumerate(ranked[:_MOST_TARGETS]):
            rival = ranked[rank == 0].score if len(ranked) > 1 else fit.score - 1.0
            yield _Draft(table, at, fit, rank, rival)

    def _numbers_rows(self, at: int, column: _Read) -> bool:
        """Whether the column is the first one of nearly all tables that have it: it numbers the rows of each."""
        repeats = self._repeats[column.words]
        return at == 0 and repeats >= _CROWD and self._leads[column.words] > _PREFIXED * repeats

    def _ranked(self, table: int, column: _Read) -> list[_Fit]:
        fits = [self._fit(table, column, target) for target in self._targets(table, column)]
        if column.key_word and names.GENERIC.issuperset(column.entity) and column.entity:
            fits = [
                fit
                for fit in fits
                if fit.level > 0 or column.entity[-1] in self.things[fit.target] or fit.target in self._vocabularies
            ]
        return sorted(fits, key=lambda fit: (-fit.score, fit.target))

    def _targets(self, table: int, column: _Read) -> set[int]:
        entity = column.entity
        found: set[int] = set()
        is_binary = column.profile.family == "blob" and column.key_word < 1.0
        if is_binary or column.profile.family in ("boolean", "date") or _REAL.search(column.profile.declared_type):
            return found
        for called in column.ends:
            found.update(self._called.get(called, ())[:40])
        for start in range(len(column.called)):
            found.update(self._by_key.get(column.called[start:], ())[:20])
        for position, _ in self._mentions.of(column.spelt)[:_MOST_TARGETS]:
            found.add(position)
        text = "".join(entity)
        for cut in range(len(text) - _LETTERS + 1):
            found.update(self._by_text.get(text[cut:], ())[:20])
            found.update(self._by_text.get(text[: cut + _LETTERS], ())[:20])
        mine = self._bare[table]
        for cut in range(1, len(mine) + 1 if text and column.key_word else 0):
            found.update(self._by_bare.get(mine[:cut] + text, ()))
            found.update(self._by_bare.get(text + mine[-cut:], ()))
        if column.has_self_role or (column.key_word == 1.0 and entity):
            found.add(table)
        if column.is_actor:
            found.update(self._people[:4])
        if column.key_word == 1.0 and entity and self._names.isdisjoint(column.ends):
            found.update(self._vocabularies)
        if entity and column.key_word and (short := self._mentions.abbreviated(entity[-1])) is not None:
            found.add(short)
        if column.key_word and (not entity or self._is_end(table, column)):
            found.update(self._related(table))
        if not column.key_word and text in self._by_turned:
            found.update(self._by_turned[text])
        if self._says_type(table, column):
            found.update(self._vocabularies)
        text = "".join(column.called)
        for cut in range(1, len(text) - _LETTERS_OF_KEY + 1):
            if (owner := self._by_key_text.get(text[cut:])) is not None:
                found.add(owner)
        if column.is_text and not any(entity[-1] in thing for thing in self.things):
            found.update(at for at, thing in enumerate(self.things) if len(thing) == 1 and thing[0] in _TEXTS)
        own_at, strength = self.keys[table]
        if own_at >= 0 and self.columns[table][own_at] is column:
            # A row number refers to nothing, but to the table whose key is called so.
            found = ({self._owner.get(column.called, table)} if strength == 4 else found) - {table}
            found = set() if column.is_serial else found
        if self._joined[table] in map("".join, (entity, names.column_name(column.profile.name).entity)):
            found.discard(table)  # it says what the row is
        return {target for target in found if self.keys[target][0] >= 0}

    def _is_end(self, table: int, column: _Read) -> bool:
        """Whether a name says only at which end of a relation the row is: a parent alone is of the same table."""
        is_relation = self._end_columns[table] > 1 or not _RELATIONS.isdisjoint(self.things[table][-1:])
        return column.is_end and (is_relation or not column.has_self_role)

    def _related(self, table: int) -> list[int]:
        """The tables whose name is that of a table without its last word: ``part`` of ``part_relationship``."""
        return self._whole.get("".join(self.things[table][:-1]), [])

    def _is_by_role(self, table: int, column: _Read, target: int) -> bool:
        """Whether a name that means no table says what its row is to this one: an end of a relation, or a text."""
        if self._is_end(table, column):
            return target in self._related(table)
        return column.is_text and self.things[target][0] in _TEXTS and self.things[target][0] != column.entity[-1]

    def _match(self, column: _Read, target: int) -> float:
        """The share of the column's words that are the table's last ones, by that of the table's letters."""
        thing, whole = self.things[target], self._joined[target]
        for start, called in enumerate(column.ends):
            if whole.endswith(called) and called in ("".join(thing[cut:]) for cut in range(len(thing))):
                return (1 - start / len(column.entity)) * len(called) / max(1, len(whole))
        return 0.0

    def _is_short_for(self, column: _Read, target: int) -> float:
        """1 if the last word abbreviates the words of the table's name, and of no other one's, 0.5 if the last one."""
        if not column.entity or self._mentions.abbreviated(column.entity[-1]) != target:
            return 0.0
        thing = self.things[target]
        return 1.0 if len(thing) > 1 and names.abbreviates(column.entity[-1], thing) else 0.5

    def _level(self, table: int, column: _Read, target: int) -> float:
        """How plainly the name means the table, in [0, 3]: 3 with the words of the column's own table before it, 2.5 as
        the table or its own key, 2.2 as a table of another part of the schema; 1 less if a role stands before it."""
        names_of = whole, bare, plain, _ = self._spellings[target]
        if not column.key_word and column.ends and target in self._by_turned.get(column.ends[0], ()):
            return 2.2
        starts, near = self._starts[table], self.things[target][:1] == self.things[table][:1] or bare == whole
        key, strength = self.columns[target][self.keys[target][0]], self.keys[target][1]
        if strength >= 2 and table != target and "".join(column.entity) == whole:
            return 2.5
        if key.entity and strength <= 2 and column.key_word and not self._ends_in_key(column, target):
            return 0.5 * (column.words[-1:] == key.words[-1:] and column.entity[-1:] == self.things[target][-1:])
        if key.entity and strength <= 2 and self._owner.get(key.called, target) != target:
            return 0.0  # it has another one's key in place of its own: its rows say more about the other's
        for start, text in enumerate(column.ends):
            if not (whole.endswith(text) or plain.endswith(text)):
                continue  # nor do the other names, ends of these two
            less = float(start > 0)
            if table != target and any(one.endswith(text) and one[: -len(text)] in starts for one in names_of):
                return 3.0 - less
            if text in names_of:
                called = (2.5 if near or text in (whole, plain) else 2.2) - less
                return called if strength == 3 else max(called, self._owned(column, target))
        return self._owned(column, target)

    def _owned(self, column: _Read, target: int) -> float:
        """The level of a name that ends in the table's own key, of all tables that have it; 0 if it does not."""
        at, strength = self.keys[target]
        key = self.columns[target][at]
        if self._owner.get(key.called) != target or not self._ends_in_key(column, target):
            return 0.0
        if strength < 2 and (at or "".join(key.entity) in self._names):
            return 0.0
        return 2.5 - 1.5 * (strength < 2) - (0.5 + 0.5 * (strength >= 2)) * (column.words != key.called)

    def _glued(self, column: _Read, target: int) -> tuple[float, float]:
        """The share of the column's letters that the table's name is at the end of it, and at its start."""
        text, bare = "".join(column.entity), self._bare[target]
        if len(bare) < _LETTERS or not text:
            return 0.0, 0.0
        share = len(bare) / len(text)
        return share * text.endswith(bare), share * text.startswith(bare)

    def _fit(self, table: int, column: _Read, target: int) -> _Fit:
        """With a first guess, to rank the tables that a name may mean."""
        score = level = max(self._level(table, column, target), 1.5 * self._is_by_role(table, column, target))
        key = self.columns[target][self.keys[target][0]]
        if not score:
            ends, begins = self._glued(column, target)
            score = max(1.2 * ends, begins, 0.8 * self._match(column, target), 1.2 * self._is_short_for(column, target))
            score = max(score, 0.7 * names.about(column.spelt, self._tables[target].name))
        if target == table and column.has_self_role:
            score += 1.0
        if target in self._people and column.is_actor:
            alone = self._bare[target] in ("user", "usr")
            score += 1.0 + 0.2 * self._joined[target].endswith(("user", "usr")) + 0.1 * alone
        if column.type != key.type:
            score -= 0.7 - 0.5 * column.fits(key)
        return _Fit(score - 0.3 * self._bridge[target] - 0.3 * (self.keys[target][1] <= 1), target, level)

    def _ends_in_key(self, column: _Read, target: int) -> bool:
        key = self.columns[target][self.keys[target][0]]
        return self._is_named(key) and column.called[-len(key.called) :] == key.called

    def _is_named(self, key: _Read) -> bool:
        """Whether the name of a key says what it is the key of: ``rev_id``, or the ``uid`` that one table has."""
        return bool(key.entity) or len(key.called) > len(key.words) or key.called in self._of_one_key

    def _says_type(self, table: int, column: _Read) -> bool:
        """Whether the column says in which table the row is that another one beside it refers to: ``object_type_id``
        beside ``object_id``."""
        stem = "".join(column.entity[:-1])
        return column.entity[-1:] == ("type",) and bool(stem) and f"{stem}id" in self._texts[table]

    def _rest(self, table: int, column: _Read, target: int) -> float:
        """The share of the letters of the target's name that stand beside the column's, and that the name of the
        column's own table has in the same place: ``inventory_role`` of ``role_id`` in ``inventory_template``."""
        mine, whole = self._bare[table], self._bare[target]
        for called in column.ends:
            at = whole.find(called)
            if at in (0, len(whole) - len(called)) and len(called) < len(whole):
                ends = (whole[len(called) :][::-1], mine[::-1]) if at == 0 else (whole[:at], mine)
                return _same_start(*ends) / len(whole)
        return 0.0

    def _reference(self, draft: _Draft, referenced: int, beside: float) -> Reference:
        table, at, (score, target, level), _, rival = draft
        column, key_at, strength = self.columns[table][at], *self.keys[target]
        key, mine, thing, entity = self.columns[target][key_at], self.things[table], self.things[target], column.entity
        joined, whole = self._joined[table], self._joined[target]
        self_role, is_by = column.has_self_role, column.is_by and target in self._people
        unmarked = column.key_word == 0 and not is_by
        same_key = float(table != target and column.called == key.called and self._owner.get(key.called) == target)
        of_both = (
            *(float(low <= level < high) for low, high in zip(_LEVELS, (4.0, *_LEVELS), strict=False)),
            float(target in self._people and column.is_actor and level == 0),
            self._marked[column.type],
        )
        values = (
            self._is_short_for(column, target) * (level < 2),
            float(strength <= 1),
            float(column.profile.family == key.profile.family),
            column.fits(key),
            max(-1.0, min(1.0, score - rival)),
            float(table == target and not self_role and level == 0),
            float(table == target and self_role),
            float(len(mine) > len(thing) and joined.startswith(whole)),
            float(names.is_plural(column.spelt) and not column.key_word),
            float(level < _EXACT and names.is_rank(column.spelt)),
            self._bridge[target] * (level < _PLAIN),
            math.log1p(len(self.columns[target])),
            math.log1p(referenced),
            min(1.0, beside - score),
            float(column.key_word > 0 and {"id", "fk", *key.words[-1:]}.isdisjoint(column.words[len(entity) :])),
            float(self._is_by_role(table, column, target)),
            float(target in self._vocabularies and level == 0),
            names.about(column.spelt, self._tables[target].name),
            self._unmarked * (level >= _LEVELS[3]),
            float(unmarked),
            float(self.keys[table] in ((at, 2), (at, 3), (at, 4))),
            self._bridge[target] * (level >= _PLAIN),
            self._rest(table, column, target),
            self._unmarked * unmarked * column.is_actor * (target in self._people),
            float(target in self._vocabularies and self._says_type(table, column)),
            same_key,
            same_key * math.log1p(self._repeats[column.words]),
            *(value * (not unmarked) for value in of_both),
            *(value * unmarked for value in of_both),
        )
        return Reference(table, at, target, np.array(values, dtype=np.float64))
