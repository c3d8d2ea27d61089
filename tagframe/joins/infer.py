"""From tables to key pairs to a plan: the one way for all callers and all sources.

The work is bounded. The key pairs of databases are kept in the catalogue. Rows are read only from tables that are to be
joined, and the results are kept until a table changes.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tagframe.corpus import ColumnProfile, Corpus, TableProfile, computed_of
from tagframe.corpus.profiler import profile_table, with_whole_sketches
from tagframe.corpus.references import without_role
from tagframe.engines.base import Chunk, TableShape
from tagframe.errors import NotConnected
from tagframe.joins.direct import DIRECT_CHANCE, is_dense
from tagframe.joins.edges import is_sound
from tagframe.joins.plan import JoinPlan
from tagframe.joins.planner import MIN_CHANCE, aside, plan_joins
from tagframe.joins.roles import Roles, joined_tables, keys_in_roles
from tagframe.joins.steps import PlanTable
from tagframe.keys.checking import contains_in
from tagframe.keys.components import Components
from tagframe.keys.composite import CONTAINED
from tagframe.keys.database_keys import code_of_keys, database_keys, one_schema, schemas_of
from tagframe.keys.inference import (
    ACCEPTED,
    LARGE,
    composites_of,
    single_keys,
    with_composites,
    with_told,
)
from tagframe.keys.key_columns import uniqueness
from tagframe.keys.key_pair import KeyPair

Hints = Callable[[Sequence[KeyPair]], Mapping[KeyPair, float]]
"""From key pairs to extra evidence for some of them, beside their score, in log odds."""

_MAX_KEY_LENGTH = 64
"""Texts that are longer than this on average are not keys."""
_MAX_COUNTED_CHANCE = 0.4
"""The largest chance of a pair of columns that each number the rows of a table of another database."""
_MAX_ACCIDENT = 0.01
"""Values of a pair of columns that match by accident more often than this say nothing without the other tables."""
_NAMED = 0.5
"""The least evidence of a name with which values that may match by accident are enough."""
_MAX_NAMED_ACCIDENT = 0.1
"""The same for a column that the question names."""
_MAX_FEW_CELLS = 500_000
"""A table whose engine only has estimates is read if it has at most this many cells."""


@dataclass(frozen=True)
class Seen:
    """The knowledge of a planner about tables that are to be joined.

    Attributes:
        profiles: of the tables, in their order; with exact counts if their engine only has estimates.
        keys: the key pairs between them, and between them and the surrounding tables: all, best first.
    """

    profiles: Sequence[TableProfile]
    keys: list[KeyPair]


def plan_tables(
    corpus: Corpus,
    tables: Sequence[str],
    *,
    anchor: str | None = None,
    given: Sequence[KeyPair] = (),
    keys: Sequence[KeyPair] | None = None,
    hints: Hints | None = None,
    stack_unions: bool = True,
    bridges: Sequence[str] = (),
    doubtful: Collection[str] = (),
    min_chance: float = MIN_CHANCE,
    roles: Roles = None,
) -> JoinPlan:
    """The plan that joins the tables.

    Args:
        corpus: of the tables.
        tables: their ids.
        anchor: id of the table whose rows the plan starts from; None for the table with the finest grain.
        given: key pairs that the plan must have (see :func:`~tagframe.joins.keys_on`); tables that these do not connect
            are joined on ``keys``.
        keys: the key pairs to choose from; None for those of :func:`keys_between`.
        hints: extra evidence for key pairs, beside their scores, for example from a question.
        stack_unions: whether tables with the same columns are joined as one table, their stack.
        bridges: ids of tables that may be added if the others do not connect without them.
        doubtful: ids of tables that are probably not needed. The plan starts from none of them, and leaves out those
            that would only repeat or lose rows of the others, or that nothing connects (:attr:`JoinPlan.left_out`).
        min_chance: no inferred key pair with a smaller chance joins tables, in [0, 1].
        roles: which tables are joined once for each of their roles, beside those that ``given`` joins so: "all", those
            of the keys that a function chooses, or None.

    Raises:
        InvalidArgument: the given key pairs form a circle, or name a table with roles and do not say which is meant.
        NotConnected: no key pairs connect the tables.
        ServerGone: a server is gone.
    """
    is_alone = len(tables) == 1 and roles is not None and not given
    if keys is None and (is_alone or len(given) < len(joined_tables(tables, given)) - 1):
        seen = keys_between(corpus, tables, bridges)
    else:  # the given keys connect all tables, so no others are needed
        seen = Seen([corpus.profile(table) for table in tables], [*(keys or ())])
    by_id = {profile.id: profile for profile in seen.profiles}
    seen = replace(seen, keys=_with_named(_with_values(seen.keys, by_id, roles), roles))
    given = [
        *given, *keys_in_roles(seen.keys, by_id, roles, given=given, anchor=anchor, doubtful=doubtful)
    ]  # fmt: skip
    doubtful = {*doubtful} - {anchor, *(without_role(table, by_id) for key in given for table in key.tables)}
    members = [*seen.profiles]
    around = [corpus.profile(table) for table in bridges]
    left_out: list[str] = []
    apart: list[str] = []
    hinted: dict[frozenset[str], Mapping[KeyPair, float]] = {}

    def hints_among(inside: Iterable[TableProfile]) -> Mapping[KeyPair, float]:
        ids = frozenset(table.id for table in inside)
        if hints is not None and ids not in hinted:
            hinted[ids] = hints(_likely([key for key in seen.keys if key.tables <= ids]))
        return hinted.get(ids, {})

    def planned(evidence: Mapping[KeyPair, float]) -> JoinPlan:
        return plan_joins(
            members,
            seen.keys,
            given=given,
            anchor=anchor,
            role_hints=evidence,
            bridges=around,
            stack_unions=stack_unions,
            doubtful=doubtful,
            min_chance=min_chance,
        )

    while True:
        try:
            plan = planned(known := hints_among(seen.profiles))
            # Which tables are bridges does not depend on hints, but hints choose among the keys to them.
            added = {source.id for source in plan.sources if source.bridge}
            more = hints_among([*seen.profiles, *(table for table in around if table.id in added)])
            if more != known:
                plan = planned(more)
        except NotConnected as error:
            alone = {id for group in error.groups if doubtful.issuperset(group) for id in group}
            if not alone or alone >= {profile.id for profile in members}:
                raise
            apart += alone
            members = [profile for profile in members if profile.id not in alone]
            continue
        leaves = aside(plan, doubtful)
        ids = {profile.id for profile in members}
        if weak := {step.table for step in plan.steps if step.table in leaves and step.score < ACCEPTED} & ids:
            apart += weak
            members = [profile for profile in members if profile.id not in weak]
            continue
        repeating = {table for table, repeats in leaves.items() if repeats}
        gone = {id for one in plan.sources if one.id in repeating for id in [one.id, *(part.id for part in one.parts)]}
        if not gone:
            plan = replace(plan, left_out=tuple(sorted([*left_out, *apart])), unconnected=tuple(sorted(apart)))
            return _with_schemas(plan, corpus)
        left_out += gone & {profile.id for profile in members}
        members = [profile for profile in members if profile.id not in gone]


def _with_values(keys: Sequence[KeyPair], tables: Mapping[str, TableProfile], roles: Roles) -> list[KeyPair]:
    """The keys without those of a column that has no values, unless a question names it as a role, or no other key
    joins the two tables."""

    def is_empty(key: KeyPair) -> bool:
        ends = [(tables[id], key.columns_of(id)) for id in key.tables if id in tables]
        columns = [one for table, names in ends for one in table.columns if one.name in names]
        return any(one.rows and one.nulls == one.rows for one in columns)

    empty = {key for key in keys if is_empty(key)}
    filled = {key.tables for key in keys if key not in empty}
    named = {*roles(keys)} if empty and callable(roles) else set()
    return [key for key in keys if key not in empty or key in named or key.tables not in filled]


def _with_named(keys: Sequence[KeyPair], roles: Roles) -> list[KeyPair]:
    """The keys, with the chance of a direct key for the one that a question names among guesses at one column, such as
    a list of the codes of playoffs, divisions and leagues."""
    groups: dict[tuple[str, str], list[KeyPair]] = defaultdict(list)
    for key in keys:
        groups[key.left_table, key.right].append(key)
    surer: dict[KeyPair, KeyPair] = {}
    for group in groups.values() if callable(roles) else ():
        best = max(key.score for key in group)
        named = [*roles(group)] if callable(roles) and len(group) > 1 and best < ACCEPTED else []
        shares = [(key.evidence.contained or 0.0, key.evidence.chance or 1.0) for key in named]
        if len(named) == 1 and shares[0][0] >= CONTAINED and shares[0][1] <= _MAX_NAMED_ACCIDENT:
            surer[named[0]] = replace(named[0], score=max(best, DIRECT_CHANCE))
    return [surer.get(key, key) for key in keys]


def _likely(keys: Sequence[KeyPair]) -> list[KeyPair]:
    """The keys that are more likely right than wrong, or sound, and between tables that have none, the likeliest."""
    best: dict[frozenset[str], float] = {}
    for key in keys:
        best[key.tables] = max(best.get(key.tables, 0.0), key.score)
    return [key for key in keys if key.score >= min(ACCEPTED, best[key.tables]) or is_sound(key)]


def keys_between(corpus: Corpus, tables: Sequence[str], bridges: Sequence[str] = ()) -> Seen:
    """The knowledge of a planner about tables that are to be joined.

    The tables count as one schema, whatever their databases. If others may be added, key pairs within a database are
    inferred over the whole database, and key pairs between databases over the tables alone. Rows decide whether several
    columns are a key together. A small table whose engine only has estimates is read.

    Args:
        corpus: of the tables.
        tables: ids.
        bridges: ids of surrounding tables.
    """
    members, around = ([corpus.profile(id) for id in ids] for ids in (tables, bridges))
    facts = computed_of(corpus)
    name, known = " ".join(sorted(tables)), sorted([*members, *around], key=lambda table: table.id)
    state = facts.state(known, code_of_keys("tagframe.joins"), name)
    seen = facts.get("keys between", name, state, lambda text: _restored(text, members))
    if seen is None:
        seen = _seen(corpus, members, around)
        facts.put("keys between", name, state, _as_json(seen, members))
    return seen


def accepted_keys(corpus: Corpus, tables: Sequence[str]) -> list[KeyPair]:
    """The key pairs between tables that are more likely right than wrong, as in a plan, best first."""
    return [key for key in keys_between(corpus, tables).keys if key.score >= ACCEPTED]


def corpus_keys(corpus: Corpus) -> list[KeyPair]:
    """The key pairs within each database of a corpus that are more likely right than wrong, best first."""
    tables, facts = sorted(corpus.profiles, key=lambda profile: profile.id), computed_of(corpus)
    schemas = schemas_of(tables, facts)
    found = [key for group in schemas.groups(tables).values() for key in database_keys(group, True, facts).pairs]
    of = {profile.id: schemas.of(profile) for profile in tables}
    found += [key for key in with_told((), tables) if of[key.left_table] != of[key.right_table]]
    likely = [key for key in found if key.score >= ACCEPTED]
    return sorted(likely, key=lambda key: (-key.score, key.left, key.right))


def _seen(corpus: Corpus, members: Sequence[TableProfile], around: Sequence[TableProfile]) -> Seen:
    profiles = [_counted(corpus, member) for member in members]
    single, proposed = _inferred(corpus, profiles, around)
    if any(profile.estimated for profile in profiles) and not _are_told(profiles, around, single):
        profiles = with_whole_sketches(corpus, profiles, _may_be_key)
        single = single_keys(one_schema([*profiles, *around]), contains=contains_in(corpus))
    ids = {profile.id for profile in profiles}
    composite = composites_of(one_schema(profiles), single, corpus.read)
    composite += [key for key in proposed if not key.tables <= ids]
    single = _doubted(corpus, single, [*profiles, *around])
    return Seen(profiles, with_told(with_composites(single, composite), [*profiles, *around]))


def _doubted(corpus: Corpus, keys: Sequence[KeyPair], tables: Sequence[TableProfile]) -> list[KeyPair]:
    """The keys, with a doubt about those between databases that are apart whose columns only number rows."""
    by_id = {table.id: table for table in tables}
    schemas = schemas_of(corpus.profiles, computed_of(corpus))
    if len({schemas.of(table) for table in tables}) < 2:
        return [*keys]

    def counts(table: str, column: str) -> bool:
        profile = by_id[table].column(column)
        return is_dense(profile) and uniqueness(profile) == 1.0

    def doubted(key: KeyPair) -> KeyPair:
        left, right = by_id[key.left_table], by_id[key.right_table]
        ends = ((left.id, key.left_columns[0]), (right.id, key.right_columns[0]))
        if schemas.of(left) == schemas.of(right) or not all(counts(*end) for end in ends):
            return key
        reason = f"{key.evidence.reason}, but both databases may number their rows from 1"
        return replace(key, score=min(key.score, _MAX_COUNTED_CHANCE), evidence=replace(key.evidence, reason=reason))

    return [doubted(key) for key in keys]


def _inferred(
    corpus: Corpus, members: Sequence[TableProfile], around: Sequence[TableProfile]
) -> tuple[list[KeyPair], list[KeyPair]]:
    """Pairs of single columns, and composite pairs proposed by names, with the surrounding tables.

    Of pairs between two surrounding tables only those that are more likely right than wrong: a plan adds no two tables
    that nobody asked for on a guess, and a large database has many more guesses than keys.
    """
    if not around:
        return single_keys(one_schema(members)), []
    single: list[KeyPair] = []
    proposed: list[KeyPair] = []
    schemas, wanted = schemas_of(corpus.profiles, computed_of(corpus)), {profile.id for profile in members}
    groups = schemas.groups(sorted([*around, *members], key=lambda table: table.id))
    by_id = {table.id for group in groups.values() for table in group}

    def may_join(key: KeyPair) -> bool:
        left, right = key.left_table, key.right_table
        return left in by_id and right in by_id and (key.score >= ACCEPTED or left in wanted or right in wanted)

    for name, group in sorted(groups.items()):
        whole = tuple(table for table in corpus.profiles if schemas.of(table) == name)
        # Only a part of a large database surrounds the tables, but its keys are those of all its tables.
        part = database_keys(whole if len(whole) > LARGE else group, True, computed_of(corpus)).inferred
        single += filter(may_join, part[0])
        proposed += filter(may_join, part[1])
    of = {profile.id: schemas.of(profile) for profile in members}
    parents = {(key.left_table, key.left_columns) for key in single if key.score >= ACCEPTED}
    known = {key: key.score for key in single}

    def is_surer(key: KeyPair) -> bool:
        """Whether a column refers to a table that was chosen, although it might refer to one that nobody chose."""
        if of[key.left_table] != of[key.right_table]:
            return (key.left_table, key.left_columns) not in parents
        found = key.evidence
        is_clear = (found.chance or 1.0) <= _MAX_ACCIDENT or found.name >= _NAMED
        is_new = found.uniqueness == 1.0 and key.score >= ACCEPTED and key.score > known.get(key, 0.0)
        return is_clear and is_new and (key.right_table, key.right_columns) not in parents

    chosen = [*filter(is_surer, single_keys(one_schema(members)))]
    return [*(key for key in single if key not in {*chosen}), *chosen], proposed


def _are_told(profiles: Sequence[TableProfile], around: Sequence[TableProfile], keys: Sequence[KeyPair]) -> bool:
    """Whether the tables connect by keys that are declared or supported by values."""
    known = [*profiles, *around]
    parts = Components(profile.id for profile in known)
    for key in with_told([key for key in keys if key.score >= ACCEPTED], known):
        if not key.evidence.is_guess or key.evidence.contained is not None:
            parts.join(key.left_table, key.right_table)
    return len({parts.root(profile.id) for profile in profiles}) <= 1


def _counted(corpus: Corpus, profile: TableProfile) -> TableProfile:
    """The profile with exact counts, if its engine only has estimates and the rows are few."""
    if not profile.estimated or not profile.rows or profile.rows * len(profile.columns) > _MAX_FEW_CELLS:
        return profile
    names = [column.name for column in profile.columns if _may_be_key(column)]
    rows = corpus.read(profile.id, names)
    types = tuple(column.declared_type for column in profile.columns if _may_be_key(column))
    found = profile_table(profile.database, TableShape(profile.name, tuple(names), types), [Chunk.of(rows)])
    counted = {column.name: column for column in found.columns}
    columns = tuple(
        replace(counted[column.name], position=column.position, description=column.description, private=column.private)
        if column.name in counted
        else column
        for column in profile.columns
    )
    return replace(profile, rows=len(rows), columns=columns, estimated=False)


def _may_be_key(column: ColumnProfile) -> bool:
    """Whether a pass over the column's values is worthwhile."""
    if column.family not in ("integer", "text"):
        return False
    return sum(map(len, column.samples)) <= _MAX_KEY_LENGTH * len(column.samples)


def _as_json(seen: Seen, members: Sequence[TableProfile]) -> str:
    """The keys as text, with the counts of tables if they differ from the profile's."""
    counts = {
        profile.id: [profile.rows, {column.name: [column.nulls, column.distinct] for column in profile.columns}]
        for profile, member in zip(seen.profiles, members, strict=True)
        if profile is not member
    }
    return json.dumps([[key.to_json() for key in seen.keys], counts], separators=(",", ":"))


def _restored(text: str, members: Sequence[TableProfile]) -> Seen:
    keys, counts = json.loads(text)

    def counted(member: TableProfile) -> TableProfile:
        rows, numbers = counts[member.id]
        columns = [
            replace(column, rows=rows, nulls=numbers[column.name][0], distinct=numbers[column.name][1])
            for column in member.columns
        ]
        return replace(member, rows=rows, columns=tuple(columns))

    profiles = [counted(member) if member.id in counts else member for member in members]
    return Seen(profiles, [KeyPair.from_json(key) for key in keys])


def _with_schemas(plan: JoinPlan, corpus: Corpus) -> JoinPlan:
    """The plan with the schema of each table that a statement has to name."""
    if not any(_schema(part, corpus) for source in plan.sources for part in source.parts or (source,)):
        return plan
    return plan.with_sources(lambda source: _in_schema(source, corpus))


def _schema(source: PlanTable, corpus: Corpus) -> str:
    engine = None if source.parts else corpus.engine(source.table)
    default = None if engine is None else engine.default_schema
    return "" if default is None or default == source.database else source.database


def _in_schema(source: PlanTable, corpus: Corpus) -> PlanTable:
    parts = tuple(_in_schema(part, corpus) for part in source.parts)
    return replace(source, parts=parts, schema=_schema(source, corpus))
