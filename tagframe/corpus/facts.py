"""Facts about tables that people, queries and models gave: one file for each data source.

A fact has a kind, a subject and a value, and its kind says who gave it. The last one of a kind and subject counts.
:class:`Facts` are applied to the profiles, so that everything that uses profiles has them: retrieval, key inference,
prompts. Facts about a table that is not in the corpus stay in the file until it is.

The file is in the user's data folder, apart from catalogues, which can be rebuilt. A process that changes it locks it,
reads it, and replaces it as a whole: a killed process leaves the old file or the new one, and two processes that give
different facts at the same time lose none.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tagframe.corpus.profile import TableProfile
from tagframe.corpus.references import Column, JoinColumns, moved_key
from tagframe.corpus.statements import Statement
from tagframe.engines.base import ForeignKey
from tagframe.engines.hiding import mentions
from tagframe.errors import BROKEN, CatalogueWarning, InvalidArgument, SourceNotFound, UnreadableFacts, shown_path, warn
from tagframe.storage import locked, replaced


@dataclass(frozen=True)
class Metric:
    """A measure with its definition.

    Attributes:
        name: as in the model.
        expression: over columns, each written ``source.column``.
        dialect: of the expression, as Ossie names it.
        description: in words, or "".
        synonyms: its other names.
        sources: the table's id for each source in the expression.
        reads: the columns in the expression; empty if the dialect is not SQL.
        model: the semantic model that defines it.
    """

    name: str
    expression: str
    dialect: str = "ANSI_SQL"
    description: str = ""
    synonyms: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    reads: tuple[Column, ...] = ()
    model: str = ""

    def __str__(self) -> str:
        return f"{self.name} = {self.expression} ({self.model})"

    @property
    def definition(self) -> tuple[str, str, tuple[str, ...]]:
        """What it computes: two metrics with the same definition are one."""
        return self.dialect, self.expression, tuple(sorted(self.sources.values()))

    @classmethod
    def of(cls, plain: Mapping[str, Any], model: str) -> Metric:
        """Read a metric of :attr:`SemanticModel.value`."""
        reads = tuple((table, column) for table, column in plain["reads"])
        return cls(**{**plain, "synonyms": tuple(plain["synonyms"]), "reads": reads, "model": model})


@dataclass(frozen=True)
class SemanticModel:
    """A semantic model as a fact.

    Attributes:
        value: plain values: ``called``, ``tables`` (by id: description, synonyms, primary_key, unique_keys, columns),
            ``keys`` and ``metrics``.
    """

    value: Mapping[str, Any]

    @property
    def tables(self) -> Mapping[str, Mapping[str, Any]]:
        """What it says of tables, by their ids."""
        tables: Mapping[str, Mapping[str, Any]] = self.value["tables"]
        return tables

    @property
    def metrics(self) -> list[Metric]:
        """Its metrics."""
        return [Metric.of(one, self.value["called"]) for one in self.value["metrics"]]


def moved(value: Mapping[str, Any], called: Mapping[str, str]) -> dict[str, Any]:
    """A model's value with other ids for its tables."""
    keys = [moved_key(key, called) for key in value["keys"]]
    metrics = [
        {
            **one,
            "sources": {name: called[id] for name, id in one["sources"].items()},
            "reads": [[called[table], column] for table, column in one["reads"]],
        }
        for one in value["metrics"]
    ]
    tables = {called[id]: one for id, one in value["tables"].items()}
    return {**value, "tables": tables, "keys": keys, "metrics": metrics}


FactKey = tuple[str, tuple[str, ...]]
"""The kind, and the subject: a table, a table and a column, the pairs of columns of a key, or the digest of a statement
or a semantic model and its tables."""

SOURCES = {
    "key": "user",  # whether pairs of columns join
    "table": "user",  # a description
    "column": "user",  # a description
    "private": "user",  # True: no model reads the column's cells
    "semantic": "user",  # a semantic model
    "statement": "queries",  # "user" for a statement that a person confirmed, as its value says
    "annotated": "model",  # a model's description of a table, with the columns that it read, or of a column
}
"""The kinds of facts, and who gives them."""
_OF_SEVERAL = {"statement": Statement.moved, "semantic": moved}
"""The subject of these facts is a digest and the tables; and how their value is moved to other tables."""

BY_MODEL = "≈ "
"""The beginning of a description that a model wrote: not a word, so that it is not searched."""

LONGEST = 500
"""The largest number of characters of a description: prompts have all of them."""
_JOINERS = "\u200c\u200d"
"""Invisible characters that stay in descriptions: scripts and emoji need them."""


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


def key_fact(key: JoinColumns, joins: bool) -> tuple[FactKey, dict[str, Any]]:
    """A person's fact that the columns of a key join, or that they do not."""
    return ("key", _pairs(key)), {**key.value, "joins": joins}


def _pairs(key: JoinColumns) -> tuple[str, ...]:
    """The subject of a fact about pairs of columns, the same for both orders of the sides."""
    return (json.dumps(sorted(sorted(map(list, pair)) for pair in key.sides)),)


@dataclass(frozen=True)
class Facts:
    """Facts about tables, the latest last.

    Attributes:
        values: plain values by kind and subject.
    """

    values: Mapping[FactKey, Any] = field(default_factory=dict)

    def of_kind(self, kind: str) -> dict[tuple[str, ...], Any]:
        """The values of one kind by subject, the latest last."""
        return {of: value for (of_kind, of), value in self.values.items() if of_kind == kind}

    @cached_property
    def keys(self) -> tuple[JoinColumns, ...]:
        """Pairs of columns that join."""
        return tuple(JoinColumns.of(one) for one in self.of_kind("key").values() if one["joins"])

    @cached_property
    def forbidden(self) -> tuple[JoinColumns, ...]:
        """Pairs of columns that do not join, whatever their names and values."""
        return tuple(JoinColumns.of(one) for one in self.of_kind("key").values() if not one["joins"])

    @cached_property
    def ran(self) -> tuple[JoinColumns, ...]:
        """Pairs of columns that past statements joined."""
        joins = (join for one in self.of_kind("statement").values() for join in one.get("joins", ()))
        return tuple(dict.fromkeys(map(JoinColumns.of, joins)))

    @cached_property
    def descriptions(self) -> Mapping[tuple[str, ...], str]:
        """A person's description of a table, or of a table and column."""
        return {**self.of_kind("table"), **self.of_kind("column")}

    @cached_property
    def annotated(self) -> Mapping[tuple[str, ...], str]:
        """A model's description of a table, or of a table and column; a person's takes precedence."""
        # A table's annotation is the text and the columns that the model read; a column's is the text.
        return {of: one if isinstance(one, str) else one[0] for of, one in self.of_kind("annotated").items()}

    @cached_property
    def private(self) -> frozenset[Column]:
        """Columns whose cells no model reads."""
        return frozenset((of[0], of[1]) for of in self.of_kind("private"))

    @cached_property
    def semantic(self) -> tuple[SemanticModel, ...]:
        """Semantic models, the latest last: below a person's word, above a source's comment and a model's text."""
        return tuple(map(SemanticModel, self.of_kind("semantic").values()))

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """Past statements, the earliest first; those of one call by their digests."""
        read = (Statement.of(of, value) for of, value in self.of_kind("statement").items())
        return tuple(sorted(read, key=lambda one: (one.at, one.digest)))

    def with_values(self, values: Mapping[FactKey, Any]) -> Facts:
        """These facts with later ones: a value replaces that of the same kind and subject, None removes it."""
        changed = {key: value for key, value in values.items() if self.values.get(key) != value}
        if not changed:
            return self
        rest = {key: value for key, value in self.values.items() if key not in changed}
        return Facts({**rest, **{key: value for key, value in changed.items() if value is not None}})

    def moved(self, ids: Mapping[str, str]) -> Facts:
        """The facts of tables that have other ids elsewhere.

        Args:
            ids: from a table's id here to that there; facts of other tables are left out.
        """
        facts = (_moved(*key, value, ids) for key, value in self.values.items() if tables_of(key, value) <= ids.keys())
        return Facts(dict(facts))

    def without_cells(self, columns: Collection[Column]) -> Facts:
        """The facts without cells of these columns: in statements, and in texts of models that read them."""
        if not columns:
            return self
        read = [one for one in self.statements if (one.cells or one.question) and one.reads(columns)]
        values: dict[FactKey, Any] = {one.fact: one.without_cells().value for one in read}
        annotated = self.of_kind("annotated")
        seen = {
            of[0] for of, one in annotated.items() if len(of) == 1 and {(of[0], name) for name in one[1]} & {*columns}
        }
        values |= {("annotated", of): None for of in annotated if of[0] in seen}
        return self.with_values(values)

    @property
    def tables(self) -> set[str]:
        """The ids of all tables with facts."""
        return {table for key, value in self.values.items() for table in tables_of(key, value)}

    def applied(self, profiles: Sequence[TableProfile]) -> tuple[TableProfile, ...]:
        """The profiles with these facts; profiles without facts are returned as the same objects."""
        if not self.values:
            return tuple(profiles)
        by_id = {profile.id: profile for profile in profiles}
        given, forbidden = _by_table(self.keys, by_id), _by_table(self.forbidden, by_id)
        for table, ran in _by_table(self.ran, by_id).items():
            given[table] = [*(replace(key, ran=True) for key in ran), *given[table]]
        for table, key in self._of_models(by_id):
            given[table].append(key)
        touched = {*given, *forbidden, *(of[0] for of in (*self.descriptions, *self.annotated))}
        touched |= {table for model in self.semantic for table in model.tables} | {table for table, _ in self.private}
        return tuple(
            replace(
                self._described(profile),
                foreign_keys=(*profile.foreign_keys, *given[profile.id]),
                forbidden_keys=tuple(forbidden[profile.id]),
            )
            if profile.id in touched
            else profile
            for profile in profiles
        )

    def _of_models(self, profiles: Mapping[str, TableProfile]) -> Iterator[tuple[str, ForeignKey]]:
        """The keys of semantic models, each with its referencing table."""
        for model in self.semantic:
            for plain in model.value["keys"]:
                for table, (key,) in _by_table([JoinColumns.of(plain)], profiles).items():
                    by = f"{model.value['called']}{': ' * bool(plain['name'])}{plain['name']}"
                    yield table, replace(key, given=False, by=by, holds=plain.get("holds"))

    def _described(self, profile: TableProfile) -> TableProfile:
        """The profile with descriptions, and with a semantic model's primary key if it has none."""
        models = [model.tables[profile.id] for model in self.semantic if profile.id in model.tables]
        columns = (
            replace(
                column,
                description=self._description(
                    (profile.id, column.name),
                    [one["columns"].get(column.name, {}) for one in models],
                    column.description,
                ),
                private=(profile.id, column.name) in self.private,
            )
            for column in profile.columns
        )
        primary = profile.primary_key or next((tuple(key) for one in models[::-1] if (key := one["primary_key"])), ())
        description = self._description((profile.id,), models, profile.description)
        return replace(profile, columns=tuple(columns), description=description, primary_key=primary)

    def _description(self, of: tuple[str, ...], models: Sequence[Mapping[str, Any]], comment: str) -> str:
        """A person's description, that of the latest semantic model, the source's comment, or a model's text; with the
        synonyms of semantic models."""
        of_model = next((one["description"] for one in models[::-1] if one.get("description")), "")
        annotated = f"{BY_MODEL}{self.annotated[of]}" if self.annotated.get(of) else ""
        text: str = self.descriptions.get(of) or of_model or comment or annotated
        return with_synonyms(text, (name for one in models for name in one.get("synonyms", ()))) if models else text


def tables_of(key: FactKey, value: Any) -> set[str]:
    """The ids of a fact's tables."""
    kind, of = key
    if kind == "key":
        return {value["left_table"], value["right_table"]}
    return {*of[1:]} if kind in _OF_SEVERAL else {*of[:1]}


def _moved(kind: str, of: tuple[str, ...], value: Any, ids: Mapping[str, str]) -> tuple[FactKey, Any]:
    """A fact with other ids for its tables."""
    if kind in _OF_SEVERAL:
        return (kind, (of[0], *(ids[table] for table in of[1:]))), _OF_SEVERAL[kind](value, ids)
    if kind == "key":
        value = moved_key(value, ids)
        return (kind, _pairs(JoinColumns.of(value))), value
    return (kind, (ids[of[0]], *of[1:])), value


def same_tables(theirs: Iterable[str], here: Iterable[str]) -> dict[str, str]:
    """The ids of tables elsewhere → the id here: the same one, or else that of the only table here with the same name.

    >>> same_tables(["old.loan", "old.client", "card"], ["bank.loan", "a.client", "b.client", "bank.card"])
    {'old.loan': 'bank.loan', 'card': 'bank.card'}
    """
    here, matches = _by_name(here), dict[str, str]()
    for name, ids in _by_name(theirs).items():
        own = here.get(name, [])
        matches.update({id: id for id in ids if id in own})
        several = len([id for id in ids if id != name]) > 1  # a bare name is of whichever database
        if len(own) == 1 and not several:
            matches.update(dict.fromkeys(ids, own[0]))
    return matches


def _by_name(ids: Iterable[str]) -> dict[str, list[str]]:
    by_name: dict[str, list[str]] = defaultdict(list)
    for id in ids:
        by_name[id.rpartition(".")[2]].append(id)
    return by_name


def _by_table(keys: Iterable[JoinColumns], profiles: Mapping[str, TableProfile]) -> dict[str, list[ForeignKey]]:
    """The keys between tables that are there, by the id of the referencing table."""
    by_table: dict[str, list[ForeignKey]] = defaultdict(list)
    for key in keys:
        left, right = profiles.get(key.left_table), profiles.get(key.right_table)
        if left is not None and right is not None:
            database = "" if left.database == right.database else right.database
            by_table[left.id].append(ForeignKey(key.left_columns, right.name, key.right_columns, database, given=True))
    return by_table


# --- the file ---------------------------------------------------------------------------------------------------------

_FORM = 3
"""The form of the file; raised when it changes."""
_BUSY_SECONDS = 30.0
Mark = tuple[int, int, int]
"""A mark that changes when a file is written."""


def facts_folder() -> Path:
    """The folder of the files of facts."""
    import platformdirs

    return platformdirs.user_data_path("tagframe") / "facts"


@dataclass(frozen=True)
class FactsFile:
    """The facts of a data source as lines of JSON: a head with a checksum of the rest, then a line for each fact.

    Such a line has its kind, subject, value and source.

    Attributes:
        path: of the file.
        place: the data source, for readers of the file.
    """

    path: Path
    place: str = ""

    @classmethod
    def of_source(cls, source: str) -> FactsFile:
        """The file in the user's data folder, which is not affected when caches are removed."""
        digest = hashlib.sha256(source.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        title = "".join(letter if letter.isalnum() else "-" for letter in Path(source).stem[:40])
        return cls(facts_folder() / f"{title or 'root'}-{digest}.facts", source)

    def mark(self) -> Mark | None:
        """A mark that changes when the file is written; None if there is no file."""
        try:
            state = os.stat(self.path)
        except OSError:
            return None
        return state.st_mtime_ns, state.st_size, state.st_ino

    def read(self) -> Facts | None:
        """The facts; None if there is no file.

        Raises:
            UnreadableFacts: the file is damaged, or another version of tagframe wrote it.
        """
        what = f"the facts that you gave about this data cannot be read: {self.path}"
        try:
            first, _, body = self.path.read_bytes().partition(b"\n")
            head = json.loads(first)
            if head["form"] == _FORM:
                if hashlib.sha256(body).hexdigest() != head["sha256"]:
                    raise ValueError("its checksum is wrong")
                lines = map(json.loads, body.splitlines())
                return Facts({(kind, tuple(of)): value for kind, of, value, _ in lines})
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, *BROKEN) as error:
            raise UnreadableFacts(
                f"{what} is damaged ({error}). Restore it from a backup; or remove it, and give the facts again"
            ) from error
        raise UnreadableFacts(
            f"{what} is of form {head['form']}, and this tagframe reads form {_FORM}: use the version that wrote it, "
            "or remove it and give the facts again"
        )

    def write(self, facts: Facts) -> None:
        """Replace the file, inside of :meth:`locked`.

        Raises:
            OSError: it cannot be written.
        """
        lines = []
        for (kind, of), value in facts.values.items():
            source = value.get("by", SOURCES[kind]) if kind == "statement" else SOURCES[kind]
            lines.append(json.dumps([kind, of, value, source]))
        body = "\n".join(lines).encode()
        head = {"form": _FORM, "of": self.place, "sha256": hashlib.sha256(body).hexdigest()}
        with replaced(self.path) as file:
            file.write(json.dumps(head).encode() + b"\n" + body)
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """A block for only one process at a time.

        Raises:
            OSError: the folder cannot be written, or another process is in the block for too long.
        """
        path = self.path.with_name(f"{self.path.name}.lock")
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with closing(locked(path, _BUSY_SECONDS)):
            yield


def facts_of_data(place: str | Path) -> Facts:
    """The facts that were given about a file or folder of data on this machine, which need not be there any more.

    Raises:
        SourceNotFound: there are none.
        UnreadableFacts: they cannot be read.
    """
    path = Path(place).expanduser()
    own = FactsFile.of_source(str(path.resolve())).read()
    if own is None:
        raise SourceNotFound(f"no facts were given here about {shown_path(path)}; give the data's path, or a corpus")
    return own


# --- the store --------------------------------------------------------------------------------------------------------


class FactStore:
    """The facts about the tables of a corpus and of its subsets, as they are now.

    Another process, or another corpus of the same source, may give facts in the meantime: a store reads its file again
    after it was written. Safe to use from several threads.

    Args:
        facts: those known already; if there is a file, it has the later ones.
        file: keeps the facts; None to keep them in this process only.
    """

    def __init__(self, facts: Facts | None = None, file: FactsFile | None = None) -> None:
        self._own = facts or Facts()
        self._file = file
        self._listed = Facts()
        self._together: tuple[Facts, Facts] | None = None
        self._mark: Mark | None = None
        self._lock = threading.RLock()

    @property
    def facts(self) -> Facts:
        """The facts as they are now; the same object until one changes.

        Raises:
            UnreadableFacts: they cannot be read.
        """
        with self._lock:
            if self._file is not None and (mark := self._file.mark()) != self._mark:
                self._own, self._mark = self._file.read() or self._own, mark
            if self._together is None or self._together[0] is not self._own:
                self._together = self._own, self._listed.with_values(self._own.values)
            return self._together[1]

    def list_private(self, columns: Iterable[Column]) -> None:
        """Set the columns that are listed as private where the data is opened."""
        with self._lock:
            self._listed = Facts({("private", column): True for column in columns})
            self._together = None

    def put(self, values: Mapping[FactKey, Any]) -> None:
        """Add facts; None removes one; see :meth:`update`."""
        self.update(lambda facts: values)

    def update(self, change: Callable[[Facts], Mapping[FactKey, Any]]) -> None:
        """Add facts, and save them; if they cannot be saved, only this process knows them, and a warning says so.

        Args:
            change: from the facts to new values, None to remove one. No other process writes meanwhile.

        Raises:
            UnreadableFacts: the facts in the file cannot be read.
            InvalidArgument: a private column, listed where the data is opened, is to be an ordinary one.
        """
        with self._lock:
            if self._file is None:
                self._own = self._changed(change)
                return
            try:
                with self._file.locked():
                    own = self._changed(change)
                    if own is not self._own:
                        self._file.write(own)
                        self._own, self._mark = own, self._file.mark()
            except OSError as error:
                self._own = self._changed(change)
                warn(f"the new facts are kept in this process only: {error}", CatalogueWarning)

    def _changed(self, change: Callable[[Facts], Mapping[FactKey, Any]]) -> Facts:
        """The own facts after a change."""
        values = change(self.facts)
        for _, of in (key for key, value in values.items() if value is None and key in self._listed.values):
            raise InvalidArgument(
                f"{'.'.join(of)} is private by open_corpus(private=[…]) or the private = […] of a tagframe.toml: leave "
                "it out there, and open the data again"
            )
        own = self._own.with_values(values)
        return own.without_cells(self._listed.with_values(own.values).private)

    def adopt(self, other: Facts, ids: Iterable[str]) -> int:
        """Take facts about other data for the same tables here; returns how many are new or different."""
        values, before = other.moved(same_tables(other.tables, ids)).values, self.facts.values
        self.put(values)
        return sum(before.get(key) != value for key, value in values.items())

    def follow(self, other: FactStore) -> FactStore:
        """This store, for the tables of another one of the same source, which was opened later."""
        with self._lock:
            self._listed, self._together = other._listed, None
        return self

    def union(self, other: FactStore, of_other: Iterable[str]) -> FactStore:
        """A store of present and future facts about the tables of both.

        Args:
            other: the store of the other tables.
            of_other: their ids.
        """
        return self if self is other else _Both(self, other, frozenset(of_other))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())


class _Both(FactStore):
    """The stores of two corpora that became one: each keeps the facts about its own tables."""

    def __init__(self, first: FactStore, second: FactStore, of_second: frozenset[str]) -> None:
        super().__init__()
        self.both = self._stores = first, second
        self._of_second = of_second
        self._merged: tuple[Facts, Facts, Facts] | None = None

    @property
    def facts(self) -> Facts:
        one, other = (store.facts for store in self._stores)
        if self._merged is None or self._merged[0] is not one or self._merged[1] is not other:
            self._merged = one, other, other.with_values(one.values)
        return self._merged[2]

    def update(self, change: Callable[[Facts], Mapping[FactKey, Any]]) -> None:
        before = self.facts
        values = dict[FactKey, Any](), dict[FactKey, Any]()
        for key, value in change(before).items():
            known = before.values.get(key) if value is None else value
            if known is not None:
                values[tables_of(key, known) <= self._of_second][key] = value
        for store, own in zip(self._stores, values, strict=True):
            store.put(own)


# --- the facts about what a corpus has, of all that are known about its source ----------------------------------------


@dataclass(frozen=True)
class View:
    """What a corpus has of its source.

    Attributes:
        columns: of each table, by its id.
        gone: names of its source that no text may have, in lower case.
        lost: columns of these tables that it has not; another table may have one of that name.
    """

    columns: Mapping[str, frozenset[str]]
    gone: frozenset[str]
    lost: frozenset[Column] = frozenset()

    def facts(self, facts: Facts) -> Facts:
        """The facts that are of these tables and columns only."""
        return Facts({key: value for key, value in facts.values.items() if self._has_all(key, value, facts)})

    def _has_all(self, key: FactKey, value: Any, facts: Facts) -> bool:
        kind, of = key
        listed = {"statement": "joins", "semantic": "keys"}.get(kind)
        joins = [value] if kind == "key" else value.get(listed, ()) if listed else ()
        columns = [column for one in joins for column in _ends(one)]
        if kind == "semantic":
            columns += [tuple(column) for metric in value["metrics"] for column in metric["reads"]]
            columns += [
                (id, name) for id, one in value["tables"].items() for name in (*one["columns"], *one["primary_key"])
            ]
        if kind in ("column", "private", "annotated"):
            columns += [(of[0], name) for name in of[1:]]
        if kind == "annotated":  # what a model read to describe a table, or its columns
            columns += [(of[0], name) for name in facts.values.get((kind, of[:1]), ("", ()))[1]]
        text = {**value, "runs": {}} if kind == "statement" else value  # files of statements have names of their own
        if kind == "statement" and Statement.of(of, value).reads(self.lost):
            return False
        return tables_of(key, value) <= self.columns.keys() and self._has(columns) and self._is_silent(text)

    def _has(self, columns: Iterable[Column]) -> bool:
        return all(column in self.columns.get(table, ()) for table, column in columns)

    def _is_silent(self, part: Any) -> bool:
        return not mentions(json.dumps(part, ensure_ascii=False), self.gone)


def _ends(key: Mapping[str, Any]) -> list[Column]:
    return [column for pair in JoinColumns.of(key).sides for column in pair]


class VisibleFacts(FactStore):
    """The facts of a view of all that are known; new ones are stored with the others.

    A pickle has only those of the view, and keeps new ones in its own process.

    Args:
        whole: all facts.
        view: whose facts these are.
    """

    def __init__(self, whole: FactStore, view: View) -> None:
        super().__init__()
        self._whole, self._view = whole, view
        self._last: tuple[Facts, Facts] | None = None

    @property
    def facts(self) -> Facts:
        """The facts of the view."""
        every = self._whole.facts
        if self._last is None or self._last[0] is not every:
            self._last = every, self._view.facts(every)
        return self._last[1]

    def update(self, change: Callable[[Facts], Mapping[FactKey, Any]]) -> None:
        """Change the facts of the view, and keep them with all others."""
        self._whole.update(lambda every: change(self._view.facts(every)))

    def list_private(self, columns: Iterable[Column]) -> None:
        """As every store."""
        self._whole.list_private(columns)

    def adopt(self, other: Facts, ids: Iterable[str]) -> int:
        """As every store, but only facts of the view."""
        return super().adopt(self._view.facts(other), ids)

    def follow(self, other: FactStore) -> FactStore:
        """These facts, for the view of another corpus of the same source."""
        if not isinstance(other, VisibleFacts):
            return other
        return VisibleFacts(self._whole.follow(other._whole), other._view)

    def __reduce__(self) -> tuple[Any, ...]:
        return FactStore, (self.facts,)
