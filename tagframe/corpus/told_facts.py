"""Facts told about data: each has a kind, a subject, a value, and the time when it was told.

A later fact replaces an earlier one of the same kind and subject, and undoing something is a fact too. So the facts of
two sources can be merged without asking which is right, and a hidden column is not shown again by a source that did not
know of the hiding. A new kind of facts is a new name in :data:`KINDS`, kept in the same files.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

from tagframe.corpus.references import Column
from tagframe.corpus.semantic_model import SemanticModel, moved
from tagframe.corpus.statements import Statement
from tagframe.corpus.told import Knowledge, ToldKey, by_table

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

    @classmethod
    def of(cls, known: Knowledge) -> Told:
        """The facts from the form that was kept before there were facts."""
        keys = ((known.keys, True), (known.forbidden, False))
        values: dict[FactKey, Any] = dict(key_fact(key, joins) for several, joins in keys for key in several)
        values.update({("table", (table,)): text for table, text in known.tables.items() if text})
        values.update({("column", column): text for column, text in known.columns.items() if text})
        values.update({("hidden", column): EVERYBODY for column in known.hidden})
        return cls({key: (value, 0.0) for key, value in values.items()})

    @cached_property
    def knowledge(self) -> Knowledge:
        """The knowledge from all facts."""
        told = sorted(self.facts.items(), key=lambda item: item[1][1])
        known = [(kind, of, value) for (kind, of), (value, _) in told if value is not None]
        keys = [(ToldKey.of(value), value["joins"]) for kind, _, value in known if kind == "key"]
        hidden = {(of[0], of[1]): value for kind, of, value in known if kind == "hidden"}
        ran = (join for kind, _, value in known if kind == "statement" for join in value.get("joins", ()))
        joined = dict.fromkeys((left, tuple(mine), right, tuple(theirs)) for left, mine, right, theirs in ran)
        return Knowledge(
            tuple(key for key, joins in keys if joins),
            tuple(key for key, joins in keys if not joins),
            {of[0]: value for kind, of, value in known if kind == "table"},
            {(of[0], of[1]): value for kind, of, value in known if kind == "column"},
            frozenset(column for column, whom in hidden.items() if whom.removesuffix(NO_JOINS) != MODELS),
            frozenset(column for column, whom in hidden.items() if whom.removesuffix(NO_JOINS) == MODELS),
            tuple(ToldKey(*sides) for sides in joined),
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
        known = {id for id, others in ids.items() if others}
        for (kind, of), (value, at) in self.facts.items() if known else ():
            if kind not in kinds or kind == "reader":
                continue
            if kind in _OF_SEVERAL:
                if not known.issuperset(of[1:]):
                    continue
                facts.update(
                    ((kind, (of[0], *(called[table] for table in of[1:]))), (_OF_SEVERAL[kind](value, called), at))
                    for called in _together(of[1:], ids)
                )
                continue
            if kind not in _OF_PAIRS:
                facts.update({(kind, (id, *of[1:])): (value, at) for id in ids.get(of[0], ())})
                continue
            pairs = json.loads(of[0])
            tables = sorted({table for pair in pairs for table, _ in pair})
            for others in product(*(ids.get(table, ()) for table in tables)):
                called = dict(zip(tables, others, strict=True))
                moved = [[[called[table], column] for table, column in pair] for pair in pairs]
                ends = value and {end: called[value[end]] for end in ("left_table", "right_table")}
                facts[kind, (json.dumps(sorted(sorted(pair) for pair in moved)),)] = value and {**value, **ends}, at
        return Told(facts)

    def standing(self) -> Told:
        """The facts without undone ones: undoing holds for one source only."""
        if all(value is not None for value, _ in self.facts.values()):
            return self
        return Told({key: (value, at) for key, (value, at) in self.facts.items() if value is not None})

    def tables(self) -> set[str]:
        """The ids of all tables with facts."""
        found = {of[0] for kind, of in self.facts if kind not in (*_OF_PAIRS, *_OF_SEVERAL, "reader")}
        found.update(*(of[1:] for kind, of in self.facts if kind in _OF_SEVERAL))
        return found.union(*({table for table, _ in _columns_of(of)} for kind, of in self.facts if kind in _OF_PAIRS))

    def to_json(self) -> list[list[Any]]:
        """Plain values that :meth:`from_json` reads."""
        return [[kind, list(of), value, at] for (kind, of), (value, at) in self.facts.items()]

    @classmethod
    def from_json(cls, plain: Iterable[Sequence[Any]]) -> Told:
        """Read what :meth:`to_json` wrote; a kind that this version does not know is kept as it is."""
        return cls({(kind, tuple(of)): (value, float(at)) for kind, of, value, at in plain})


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
    subject, sides = _pairs_of(key)
    return ("key", subject), {**sides, "joins": joins}


def checked_fact(key: ToldKey, said: str, why: str, *, cells: bool) -> tuple[FactKey, dict[str, Any]]:
    """The fact that a model said whether the columns of a key join; ``cells``: it had seen some of theirs."""
    subject, sides = _pairs_of(key)
    return ("checked", subject), {**sides, "said": said, "why": why, "cells": cells}


def _pairs_of(key: ToldKey) -> tuple[tuple[str, ...], dict[str, Any]]:
    pairs = json.dumps(sorted(sorted(map(list, pair)) for pair in key.sides))
    return (pairs,), {name: list(side) if isinstance(side, tuple) else side for name, side in vars(key).items()}
