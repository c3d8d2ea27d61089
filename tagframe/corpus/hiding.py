"""What a corpus does not offer: the lists beside the data, and profiles and facts without what is hidden."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tagframe.corpus.catalogue import IndexedSource
from tagframe.corpus.catalogue_file import Origin
from tagframe.corpus.discover import SourceFile
from tagframe.corpus.facts import FactKey, Facts, FactStore, tables_of
from tagframe.corpus.facts_toml import NAME, Beside
from tagframe.corpus.profile import Sketch, TableProfile
from tagframe.corpus.references import Column, JoinColumns
from tagframe.engines.base import Engine, ForeignKey, TableShape
from tagframe.engines.hiding import (
    Hiding,
    HidingEngine,
    checked_names,
    computed_of_hidden,
    hiding,
    mentions,
    names_gone,
    plain_name,
)
from tagframe.errors import (
    BROKEN,
    ColumnNotFound,
    HidingWarning,
    TableNotFound,
    UnreadableTable,
    did_you_mean,
    warn,
)


def unmatched_error(name: str, tables: Mapping[str, Sequence[str]]) -> TableNotFound | ColumnNotFound:
    """The error for a name on a list that no table and no column has.

    Args:
        name: as it is given.
        tables: columns by the names of their tables.
    """
    table, dot, column = name.rpartition(".")
    for one, columns in tables.items():
        if dot and plain_name(table) in (plain_name(one), plain_name(one.rpartition(".")[2])):
            return ColumnNotFound(f"no column {column!r} in {one}: {did_you_mean(column, columns)}")
    return TableNotFound(f"no table {name!r} in {did_you_mean(name, tables)}; a column is named with its table")


@dataclass
class Lists:
    """What is hidden and private in data that is opened: as its caller says, and as a file beside it says.

    A name that the caller gives has to be there. The file may be of other files, too: what it names is taken as far as
    it is there.

    Attributes:
        hide, private: the caller's names.
        hide_beside, private_beside: those of the file.
    """

    hide: Sequence[str] = ()
    private: Sequence[str] = ()
    hide_beside: Sequence[str] = ()
    private_beside: Sequence[str] = ()
    _narrowed: set[tuple[str, str]] = field(default_factory=set)
    _gone: frozenset[str] = frozenset()

    @classmethod
    def of(cls, hide: object, private: object, beside: Beside | None = None) -> Lists:
        """The lists for a source, with those of the file beside it.

        Raises:
            InvalidArgument: one of them is no list of names.
        """
        named = checked_names("hide", hide), checked_names("private", private)
        return cls(*named, *((beside.hide, beside.private) if beside else ()))

    @property
    def part(self) -> str:
        """A digest of what is hidden; "" for nothing."""
        names = sorted({*map(plain_name, (*self.hide, *self.hide_beside))})
        return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16] if names else ""

    def shrunk(self, files: Sequence[SourceFile]) -> list[SourceFile]:
        """The files with engines that do not offer what is hidden; files without other tables are left out.

        Raises:
            TableNotFound, ColumnNotFound: the caller names what is not there.
        """
        if not self.part:
            return list(files)
        hidden, tables = Hiding([*self.hide, *self.hide_beside]), dict[str, Sequence[str]]()

        def visible(file: SourceFile, shapes: Sequence[TableShape]) -> dict[str, tuple[str, ...]]:
            tables.update({shape.name: shape.columns for shape in shapes})
            return hidden.visible(shapes, filter(None, (file.database, file.key)))

        left = self._offering(files, visible)
        self._check("hide", hidden.unmatched, tables)
        return left

    def limited(self, files: Sequence[SourceFile], sources: Mapping[str, IndexedSource]) -> list[SourceFile]:
        """The files with engines that offer what a catalogue has, and nothing else."""

        def visible(file: SourceFile, shapes: Sequence[TableShape]) -> dict[str, tuple[str, ...]]:
            known = sources[file.key].tables if file.key in sources else {}
            there = {shape.name for shape in shapes}
            return {name: tuple(one.name for one in known[name].columns) for name in known if name in there}

        return self._offering(files, visible)

    def _offering(
        self,
        files: Sequence[SourceFile],
        visible_of: Callable[[SourceFile, Sequence[TableShape]], dict[str, tuple[str, ...]]],
    ) -> list[SourceFile]:
        sources: list[tuple[SourceFile, list[TableShape], dict[str, tuple[str, ...]]]] = []
        for file in files:
            try:
                shapes = file.engine.shapes()
            except (UnreadableTable, OSError, *BROKEN):
                sources.append((replace(file, engine=hiding(file.engine, {})), [], {}))  # profiling reports it
                continue
            sources.append((file, shapes, visible_of(file, shapes)))
        self._gone = names_gone(*(source[1:] for source in sources))
        left = []
        for file, shapes, visible in sources:
            narrowed = {shape.name for shape in shapes if visible.get(shape.name, shape.columns) != shape.columns}
            self._narrowed |= {(file.key, name) for name in narrowed}
            if not narrowed and len(visible) == len(shapes) and not any(_mentions(one, self._gone) for one in shapes):
                left.append(file)
            elif visible or not file.database:
                left.append(replace(file, engine=hiding(file.engine, visible, self._gone)))
        warn_of_computed(*(file.engine for file in left))
        return left

    def _check(self, kind: str, unmatched: Sequence[str], tables: Mapping[str, Sequence[str]]) -> None:
        """Report names that nothing has.

        Args:
            kind: "hide" or "private".
            unmatched: the names.
            tables: columns by the names of their tables.

        Warns:
            HidingWarning: the file beside the data has such a name, in a table that is there.

        Raises:
            TableNotFound, ColumnNotFound: the caller has given one.
        """
        for name in unmatched:
            if name in getattr(self, kind):
                raise unmatched_error(name, tables)
        there = {plain_name(name) for table in tables for name in (table, table.rpartition(".")[2])}
        if gone := [name for name in unmatched if plain_name(name.rpartition(".")[0].rpartition(".")[2]) in there]:
            warn(
                f"{NAME} has {', '.join(gone)} in {kind} = […], and there is no such column; if it has another name "
                "now, write that name",
                HidingWarning,
            )

    def view(self, tables: Iterable[tuple[str, str, TableProfile]]) -> View | None:
        """What is left of files after :meth:`shrunk` or :meth:`limited`; None if nothing was hidden.

        Args:
            tables: source, name there and profile of each visible table.
        """
        if not self._gone and not self._narrowed:
            return None
        columns, narrowed, there = {}, set[str](), set[str]()
        for key, table, profile in tables:
            columns[profile.id] = frozenset(column.name for column in profile.columns)
            there.update(map(str.casefold, (profile.name, *columns[profile.id])))
            if (key, table) in self._narrowed:
                narrowed.add(profile.id)
        return View(columns, frozenset(narrowed), self._gone - there)

    def view_of(self, profiles: Sequence[TableProfile]) -> View | None:
        """What the list ``hide`` leaves of tables that were opened already; None if it hides nothing.

        Raises:
            TableNotFound, ColumnNotFound: the caller names what is not there.
        """
        if not self.part:
            return None
        hidden = Hiding([*self.hide, *self.hide_beside])
        view = View.of(profiles, hidden)
        self._check("hide", hidden.unmatched, _columns_by_id(profiles))
        return view if view.hides(profiles) else None

    def private_of(self, profiles: Sequence[TableProfile]) -> frozenset[Column]:
        """The private columns among tables.

        Raises:
            TableNotFound, ColumnNotFound: the caller names what is not there.
        """
        names = Hiding([*self.private, *self.private_beside])
        if not names.unmatched:
            return frozenset()
        tables, private = _columns_by_id(profiles), set[Column]()
        for one in profiles:
            left = names.left(_names_of(one), tables[one.id])
            private.update((one.id, name) for name in tables[one.id] if name not in left)
        hidden = {*map(plain_name, (*self.hide, *self.hide_beside))}
        self._check("private", [name for name in names.unmatched if plain_name(name) not in hidden], tables)
        return frozenset(private)


def _mentions(shape: TableShape, names: Collection[str]) -> bool:
    """Whether a comment has one of these names."""
    return any(mentions(text, names) for text in (shape.comment, *shape.column_comments))


def _columns_by_id(profiles: Sequence[TableProfile]) -> dict[str, list[str]]:
    return {one.id: [column.name for column in one.columns] for one in profiles}


def warn_of_computed(*engines: Engine) -> None:
    """Name the views and generated columns of engines that are computed from what they hide, in one warning."""
    named = sorted(
        {
            name
            for engine in engines
            if isinstance(engine, HidingEngine) and (engine.path is None or engine.path.exists())
            for name in computed_of_hidden(engine.inner, engine.visible)
        }
    )
    if named:
        warn(
            f"{', '.join(named)}: computed from what is hidden, by the definition in the database, and still read; to "
            f"hide them, too: hide=[…, {', '.join(map(repr, named))}]",
            HidingWarning,
        )


def with_private(profiles: tuple[TableProfile, ...], private: Collection[Column]) -> tuple[TableProfile, ...]:
    """The profiles with these columns private."""
    if not private:
        return profiles
    tables = {table for table, _ in private}
    return tuple(
        replace(
            one,
            columns=tuple(
                replace(column, private=True) if (one.id, column.name) in private else column for column in one.columns
            ),
        )
        if one.id in tables
        else one
        for one in profiles
    )


@dataclass(frozen=True)
class View:
    """What is left of some tables.

    Attributes:
        columns: of each visible table, by its id.
        narrowed: the ids of visible tables that have hidden columns.
        gone: names that only hidden tables and columns have, in lower case.
    """

    columns: Mapping[str, frozenset[str]]
    narrowed: frozenset[str]
    gone: frozenset[str]

    @classmethod
    def of(cls, profiles: Sequence[TableProfile], hidden: Hiding) -> View:
        """The tables of a corpus without what a list hides."""
        left = {one.id: hidden.left(_names_of(one), [column.name for column in one.columns]) for one in profiles}
        there, gone, narrowed = set[str](), set[str](), set[str]()
        for one in profiles:
            names = {column.name for column in one.columns}
            (there if left[one.id] else gone).update((one.name, one.id))
            there.update(left[one.id])
            gone.update(names.difference(left[one.id]))
            if left[one.id] and len(left[one.id]) < len(names):
                narrowed.add(one.id)
        folded = [frozenset(map(str.casefold, names)) for names in (gone, there)]
        columns = {id: frozenset(names) for id, names in left.items() if names}
        return cls(columns, frozenset(narrowed), folded[0] - folded[1])

    def hides(self, profiles: Sequence[TableProfile]) -> bool:
        """Whether a table or a column of these is not visible."""
        return bool(self.narrowed) or len(self.columns) < len(profiles)

    def has(self, column: Column) -> bool:
        """Whether a column is visible."""
        return column[1] in self.columns.get(column[0], ())

    def mentions_gone(self, text: str) -> bool:
        """Whether a text names what is hidden."""
        return mentions(text, self.gone)

    def origins(self, profiles: Sequence[TableProfile], origins: Mapping[str, Origin]) -> dict[str, Origin]:
        """Where the visible tables come from; engines of hidden tables and columns do not offer these any more.

        Args:
            profiles: all tables.
            origins: of the tables, by their ids.
        """
        visible: dict[int, dict[str, tuple[str, ...]]] = defaultdict(dict)
        has_hidden: set[int] = set()
        for profile in profiles:
            if (origin := origins.get(profile.id)) is None or origin.engine is None:
                continue
            if (columns := self.columns.get(profile.id)) is not None:
                there = tuple(column.name for column in profile.columns if column.name in columns)
                visible[id(origin.engine)][origin.table] = there
            if columns is None or profile.id in self.narrowed:
                has_hidden.add(id(origin.engine))
        engines = {id(one.engine): one.engine for one in origins.values() if one.engine is not None}
        engines |= {key: hiding(engine, visible[key]) for key, engine in engines.items() if key in has_hidden}
        return {
            table: replace(origin, engine=origin.engine and engines[id(origin.engine)])
            for table, origin in origins.items()
            if table in self.columns
        }

    def profiles(self, profiles: Sequence[TableProfile]) -> list[TableProfile]:
        """The profiles without what is hidden."""
        by_name = {(one.database, one.name.casefold()): one.id for one in profiles}
        return [self._profile(one, by_name) for one in profiles if one.id in self.columns]

    def _profile(self, profile: TableProfile, by_name: Mapping[tuple[str, str], str]) -> TableProfile:
        def leads_to_visible(key: ForeignKey) -> bool:
            other = by_name.get((key.other_database or profile.database, key.other_table.casefold()), "")
            theirs = {name.casefold() for name in self.columns.get(other, ())}
            return self.columns[profile.id] >= {*key.columns} and theirs >= {*map(str.casefold, key.other_columns)}

        keys = tuple(filter(leads_to_visible, profile.foreign_keys))
        text = "" if self.mentions_gone(profile.description) else profile.description
        primary_key = profile.primary_key if self.columns[profile.id] >= {*profile.primary_key} else ()
        columns = profile.columns
        if profile.id in self.narrowed or any(self.mentions_gone(column.description) for column in columns):
            there = [column for column in columns if self.has((profile.id, column.name))]
            columns = tuple(
                replace(
                    column,
                    position=position,
                    # A stored sketch would bring the stored text of all columns along.
                    sketch=one and Sketch(one.hashes, one.complete, one.sampled),
                    description="" if self.mentions_gone(column.description) else column.description,
                )
                for position, column in enumerate(there)
                for one in [column.sketch]
            )
        same = (profile.foreign_keys, profile.description, profile.primary_key, profile.columns)
        if (keys, text, primary_key, columns) == same:
            return profile
        return replace(profile, columns=columns, foreign_keys=keys, description=text, primary_key=primary_key)

    def facts(self, facts: Facts) -> Facts:
        """The facts that name nothing hidden; models may have seen hidden cells before they described a table."""
        visible: dict[FactKey, Any] = {}
        for (kind, of), value in facts.values.items():
            if kind == "semantic":
                there = tuple(table for table in of[1:] if table in self.columns)
                visible[kind, (of[0], *there)] = self._semantic(value)
            elif self._may_have((kind, of), value):
                visible[kind, of] = value
        return Facts(visible)

    def _semantic(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """What a semantic model says of visible tables and columns only."""

        def is_silent(part: object) -> bool:
            return not self.mentions_gone(json.dumps(part, ensure_ascii=False))

        def of_visible(id: str, columns: Mapping[str, Any]) -> dict[str, Any]:
            return {name: one for name, one in columns.items() if self.has((id, name)) and is_silent(one)}

        def table(id: str, one: Mapping[str, Any]) -> dict[str, Any]:
            silent = {name: part for name, part in one.items() if name != "columns" and is_silent(part)}
            return {"description": "", "synonyms": [], "primary_key": [], **silent,
                    "columns": of_visible(id, one["columns"])}  # fmt: skip

        keys = [key for key in value["keys"] if self._joins_visible(JoinColumns.of(key)) and is_silent(key)]
        metrics = [
            one
            for one in value["metrics"]
            if all(self.has((table, column)) for table, column in one["reads"])
            and all(id in self.columns for id in one["sources"].values())
            and is_silent(one)
        ]
        tables = {id: table(id, one) for id, one in value["tables"].items() if id in self.columns}
        datasets = {
            name: [id, {field: column for field, column in fields.items() if self.has((id, column))}]
            for name, (id, fields) in value["datasets"].items()
            if id in self.columns
        }
        left = {"tables": tables, "datasets": datasets, "keys": keys, "metrics": metrics}
        return {**value, **left, "model": {"name": value["called"]}}

    def _joins_visible(self, key: JoinColumns) -> bool:
        return all(self.has(column) for pair in key.sides for column in pair)

    def _may_have(self, key: FactKey, value: Any) -> bool:
        kind, of = key
        tables = tables_of(key, value)
        by_model = kind in ("annotated", "checked")
        if not tables <= self.columns.keys() or (by_model and not self.narrowed.isdisjoint(tables)):
            return False
        joins = [value] if kind in ("key", "checked") else value.get("joins", ()) if kind == "statement" else ()
        if not all(self._joins_visible(JoinColumns.of(one)) for one in joins):
            return False
        if kind not in ("key", "checked", "statement") and len(of) == 2 and not self.has((of[0], of[1])):
            return False
        text = {**value, "runs": {}} if kind == "statement" else value  # files of statements have names of their own
        return not self.mentions_gone(json.dumps(text, ensure_ascii=False))


def _names_of(profile: TableProfile) -> set[str]:
    return {profile.id, profile.name, f"{profile.database}.{profile.name}"}


class VisibleFacts(FactStore):
    """The facts of a corpus without those that name what is hidden; new ones are stored with the others.

    A pickle has only the visible ones, and keeps new ones in its own process.

    Args:
        whole: all facts.
        view: what is visible.
    """

    def __init__(self, whole: FactStore, view: View) -> None:
        super().__init__()
        self._whole, self._view = whole, view
        self._last: tuple[Facts, Facts] | None = None

    @property
    def facts(self) -> Facts:
        """The visible facts."""
        every = self._whole.facts
        if self._last is None or self._last[0] is not every:
            self._last = every, self._view.facts(every)
        return self._last[1]

    def update(self, change: Callable[[Facts], Mapping[FactKey, Any]]) -> None:
        """Change the visible facts, and keep them with all others."""
        self._whole.update(lambda every: change(self._view.facts(every)))

    def opened(self, ids: Iterable[str], private: Iterable[Column] = ()) -> None:
        """As every store."""
        self._whole.opened(ids, private)

    def adopt(self, other: Facts, ids: Iterable[str]) -> int:
        """As every store, without facts that name what is hidden."""
        return super().adopt(self._view.facts(other), ids)

    def follow(self, other: FactStore) -> FactStore:
        """These facts, for what is visible of another corpus of the same source."""
        if not isinstance(other, VisibleFacts):
            return other
        return VisibleFacts(self._whole.follow(other._whole), other._view)

    def __reduce__(self) -> tuple[Any, ...]:
        return FactStore, (self.facts,)
