"""Readers of a corpus: what each of them sees of its tables, columns and rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tagframe.corpus.catalogue_file import Origin
from tagframe.corpus.facts import BY_MODEL, Facts, FactStore
from tagframe.corpus.hidden_facts import EVERYBODY, MODELS
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.profiler import profile_table
from tagframe.corpus.references import Column, NamedTable, find_column
from tagframe.engines.base import ForeignKey
from tagframe.engines.frames import FrameEngine, SeenEngine, SeenTable, columns_tested
from tagframe.engines.sql_text import Derivations
from tagframe.errors import ColumnNotFound, InvalidArgument, SourceNotFound

if TYPE_CHECKING:
    from tagframe.corpus.corpus import Corpus

SOME_ROWS = "(You see only some of its rows.)"
"""What a reader who is told of hidden things reads of a table with a row rule."""
_A_MODEL = "a semantic model"


@dataclass(frozen=True)
class Sight:
    """What a reader sees, as its owner wrote it; see :meth:`tagframe.Corpus.for_reader`."""

    hide: Sequence[str] = ()
    tables: Sequence[str] | None = None
    where: Mapping[str, str] = field(default_factory=dict)
    say_hidden: bool = False

    def __post_init__(self) -> None:
        for name, value in (("hide", self.hide), ("tables", self.tables or ())):
            if isinstance(value, str) or not all(isinstance(one, str) for one in value):
                raise InvalidArgument(f"{name}= must be a list of names; got {value!r}")
        if not isinstance(self.where, Mapping):
            raise InvalidArgument(f"where= must be a condition by table; got {self.where!r}")

    def to_json(self) -> dict[str, Any]:
        """Plain values of its fields."""
        tables = None if self.tables is None else list(self.tables)
        return {**asdict(self), "hide": list(self.hide), "tables": tables, "where": dict(self.where)}


def seen_by(
    sight: Sight, corpus: Corpus, told: FactStore, *, check: bool
) -> tuple[list[TableProfile], dict[str, Origin], FactStore]:
    """The profiles, origins and facts of a reader's corpus, made of nothing that the reader does not see.

    Args:
        sight: what the reader sees.
        corpus: the whole.
        told: its facts.
        check: whether to try each row rule first, so that the owner gets its error.

    Raises:
        TableNotFound, ColumnNotFound: a name that the corpus does not have.
        InvalidArgument: a rule that is no condition; a server without ``tables``; a view of a table with a rule.
    """
    whole = {profile.id: profile for profile in corpus.profiles}
    no_tables, columns = _named(sight.hide, corpus)
    chosen = whole.keys() if sight.tables is None else {corpus.profile(name).id for name in sight.tables}
    rules = {corpus.profile(name).id: rule for name, rule in sight.where.items()}
    if outside := sorted(rules.keys() - (chosen - no_tables)):
        raise InvalidArgument(f"where= has a rule for {outside[0]!r}, which the reader does not see")
    shown = sorted(chosen - no_tables)
    _check_views(sight, corpus, told, shown, rules)
    # Later than all facts: also what was shown before is hidden.
    computed, unclear = told.hidden_with({("hidden", column): EVERYBODY for column in columns})
    if columns and (views := sorted(unclear & set(shown))):
        raise InvalidArgument(
            f"{views[0]!r} may show hidden columns, and its source does not say what it reads: hide it"
        )
    gone = computed | columns
    no_longer = whole.keys() - set(shown)
    words = {*no_longer, *(whole[id].name for id in no_longer), *(name for _, name in gone)}
    words -= {name for id in shown for one in whole[id].columns if (id, one.name) not in gone for name in (one.name,)}
    words -= {whole[id].name for id in shown}
    seen: dict[str, SeenTable] = {}
    for id in shown:
        profile, engine = whole[id], corpus.engine(id)
        if engine is None:
            if id in rules:
                raise SourceNotFound(f"{id!r} has a row rule, and its rows are not there")
            continue
        names = tuple(one.name for one in profile.columns if (id, one.name) not in gone and not one.hidden)
        types = tuple(one.declared_type for one in profile.columns if one.name in names)
        rule = rules.get(id, "")
        tested = columns_tested(rule, [one.name for one in profile.columns]) if id in rules else ()
        seen[id] = SeenTable(engine, corpus.source_table(id), names, types, rule, tested)
        if rule and check:
            seen[id].rows(tested, None)
    source = SeenEngine(seen)
    shapes = {shape.name: shape for shape in source.shapes()}
    profiles = []
    for id in shown:
        left = [one for one in whole[id].columns if (id, one.name) not in gone and not one.hidden]
        own = tuple(replace(column, position=position) for position, column in enumerate(left))
        profile = replace(whole[id], columns=own)
        if id in rules:
            made = profile_table(profile.database, shapes[id], source.chunks(shapes[id]), name=profile.name)
            own = tuple(
                replace(new, description=old.description, unprompted=old.unprompted, unjoined=old.unjoined)
                for new, old in zip(made.columns, own, strict=True)
            )
            profile = replace(profile, columns=own, rows=made.rows, estimated=False)
        profiles.append(profile)
    by_name = {(one.database, one.name.casefold()): one for one in profiles}
    profiles = [_of_what_is_seen(one, by_name, words, rules, sight.say_hidden) for one in profiles]
    store = _OfReader(told, {(one.id, column.name) for one in profiles for column in one.columns})
    store.unseen = frozenset(words) if sight.say_hidden else frozenset()
    return profiles, {id: Origin("reader", id, source.kind, source) for id in seen}, store


class _OfReader(FactStore):
    """The facts of a reader's corpus: its own, and which of its columns are hidden in the whole by now."""

    def __init__(self, whole: FactStore, columns: set[Column]) -> None:
        super().__init__()
        self._of_whole, self._columns = whole, columns

    @property
    def facts(self) -> Facts:
        known = self._of_whole.hidden
        values: dict[Any, Any] = {
            ("hidden", column): MODELS if column in known.unprompted else EVERYBODY
            for column in known.withheld & self._columns
        }
        self._own = self._own.with_values(values)
        return super().facts


def _named(names: Sequence[str], corpus: Corpus) -> tuple[set[str], set[Column]]:
    """The tables, and the columns, that these names hide."""
    every = list(map(NamedTable.of, corpus.profiles))
    tables: set[str] = set()
    columns: set[Column] = set()
    for name in names:
        wanted = name.casefold()
        of_name = {one.id for one in corpus.profiles if wanted in (one.id.casefold(), one.name.casefold())}
        tables |= of_name
        try:
            columns.add(find_column(name, every))
        except (ColumnNotFound, InvalidArgument, KeyError):
            if not of_name:
                raise
    return tables, columns


def _check_views(sight: Sight, corpus: Corpus, told: FactStore, shown: Sequence[str], rules: Mapping[str, str]) -> None:
    """Refuse what could show hidden rows by way of another table of the same source."""
    engines = {engine for id in corpus.ids if (engine := corpus.engine(id)) is not None}
    if sight.tables is None and any(
        one.path is None and not isinstance(one, FrameEngine | SeenEngine) for one in engines
    ):
        raise InvalidArgument(
            "name the tables that the reader sees, tables=[…]: views and tables of a server may show rows or columns "
            "of other tables"
        )
    for engine in engines:
        names = {corpus.source_table(id): id for id in corpus.ids if corpus.engine(id) is engine}
        ruled = [(name, one.name) for name, id in names.items() if id in rules for one in corpus.profile(id).columns]
        found = engine.derivations(ruled) if ruled else Derivations()
        for table in sorted({*(table for table, _ in found.parents), *found.unclear}):
            id = names.get(table)
            if id in shown and id not in rules:
                raise InvalidArgument(
                    f"{id!r} is, or may be, computed from a table with a row rule: give it a rule of its own in "
                    "where=, or hide it"
                )


def _of_what_is_seen(
    profile: TableProfile,
    by_name: Mapping[tuple[str, str], TableProfile],
    words: Iterable[str],
    rules: Collection[str],
    say_hidden: bool,
) -> TableProfile:
    """The profile without keys and texts that name what is hidden, or that a model wrote who had seen more."""
    own = {column.name for column in profile.columns}
    hidden = re.compile("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in words) or r"(?!)", re.IGNORECASE)

    def seen(keys: Iterable[ForeignKey]) -> tuple[ForeignKey, ...]:
        there = []
        for key in keys:
            other = by_name.get((key.other_database or profile.database, key.other_table.casefold()))
            others = {column.name.casefold() for column in other.columns} if other else set()
            if own >= {*key.columns} and other and others >= {name.casefold() for name in key.other_columns}:
                by = key.by and (_A_MODEL if hidden.search(re.sub(r"[\W_]+", " ", key.by)) else key.by)
                # The share is of all rows, also of those that are not seen.
                holds = None if {profile.id, other.id} & {*rules} else key.holds
                there.append(replace(key, said="", why="", by=by, holds=holds))
        return tuple(there)

    def text(said: str) -> str:
        return "" if said.startswith(BY_MODEL) or hidden.search(said) else said

    described = text(profile.description)
    return replace(
        profile,
        columns=tuple(
            replace(column, description=text(column.description)) if column.description else column
            for column in profile.columns
        ),
        primary_key=profile.primary_key if own >= {*profile.primary_key} else (),
        foreign_keys=seen(profile.foreign_keys),
        forbidden_keys=seen(profile.forbidden_keys),
        checked_keys=(),
        description=f"{described} {SOME_ROWS}".strip() if profile.id in rules and say_hidden else described,
    )
