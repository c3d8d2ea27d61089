"""The key pairs of a database, and which databases of a folder are one.

The pairs are inferred at first use, and kept in the corpus' catalogue until a table changes.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import threading
import weakref
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import resources
from itertools import combinations, pairwise

from tagframe.corpus.once import once
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.stored_profiles import ComputedStore, sketches_at_hand
from tagframe.keys.column_names import table_entity
from tagframe.keys.components import Components
from tagframe.keys.inference import (
    ACCEPTED,
    LARGE,
    by_database,
    candidates_of,
    key_pair,
    single_and_composite_keys,
    with_composites,
    with_told,
)
from tagframe.keys.key_columns import columns_of
from tagframe.keys.key_pair import KeyPair
from tagframe.keys.scoring import Candidate, log_odds
from tagframe.keys.terms import KeyWeights, default_weights
from tagframe.keys.unions import infer_unions


def evidence_share(score: float) -> float:
    """A pair's chance relative to that of a pair with all evidence, in [0, 1]; 1 is the surest."""
    return min(1.0, score / default_weights().surest)


class DatabaseKeys:
    """The key pairs of the tables of a database, or of several that are one.

    Args:
        tables: all of them, sorted by id.
        declared: whether the keys that the source declares are used.
        facts: the store of the pairs.
    """

    def __init__(self, tables: tuple[TableProfile, ...], declared: bool, facts: ComputedStore) -> None:
        self._tables, self._declared, self._facts = tables, declared, facts

    @once
    def state(self) -> str:
        """The state that the pairs depend on: the tables, the facts told about them, and the code that infers keys."""
        return self._facts.state(self._tables, code_of_keys(), str(self._declared))

    @once
    def inferred(self) -> tuple[list[KeyPair], list[KeyPair]]:
        """Pairs of single columns, and the composite ones proposed by names: no rows are read."""
        stored = self._facts.get("keys", self._name, self.state, _read)
        if stored is None:
            stored = _inferred_keys(sketches_at_hand(self._tables))
            plain = json.dumps([[key.to_json() for key in keys] for keys in stored], separators=(",", ":"))
            self._facts.put("keys", self._name, self.state, plain)
        return stored

    @once
    def pairs(self) -> list[KeyPair]:
        """All inferred, declared and given pairs, best first."""
        return with_told(with_composites(*self.inferred), self._tables, declared=self._declared)

    def columns(self, least: float, stored: str | None = None) -> set[tuple[str, str]]:
        """Table id and name of the columns in pairs that link tables.

        Args:
            least: the smallest share of all evidence of such a pair.
            stored: their text in the catalogue, if it was read already.
        """
        with suppress(ValueError, TypeError):  # it is damaged
            if stored is not None:
                return {(table, name) for table, name in json.loads(stored)}
        found = {
            (table, name)
            for pair in self.pairs
            if pair.left_table != pair.right_table and evidence_share(pair.score) >= least
            for table, names in ((pair.left_table, pair.left_columns), (pair.right_table, pair.right_columns))
            for name in names
        }
        self._facts.put("key columns", self._name, self.state, json.dumps(sorted(found)))
        return found

    @property
    def _name(self) -> str:
        return " ".join(sorted({table.database for table in self._tables}))


def _inferred_keys(tables: Sequence[TableProfile]) -> tuple[list[KeyPair], list[KeyPair]]:
    """Pairs of single columns, and composite ones, of tables of one or several databases.

    Databases that hold the same table, such as one for each year, are searched one by one, each with all others: an
    order of 2023 refers to the customers of 2023.
    """
    twins = _twins(tables)
    if not twins:
        return single_and_composite_keys(one_schema(tables))
    single: dict[KeyPair, None] = {}
    composite: dict[KeyPair, None] = {}
    for name in ["", *sorted(twins)]:
        absent = twins[name] if name else twins.keys()
        own = {table.id for table in tables if table.database == name}
        near = [table for table in tables if table.database not in absent]
        for pairs, new in zip((single, composite), single_and_composite_keys(one_schema(near)), strict=True):
            pairs.update(dict.fromkeys(key for key in new if not name or key.tables & own))
    return [*single], [*composite]


def _twins(tables: Sequence[TableProfile]) -> dict[str, set[str]]:
    """For each database the others that have a table of the same name and mostly the same columns."""
    named: dict[str, list[TableProfile]] = defaultdict(list)
    for table in tables:
        named[table.name.casefold()].append(table)
    twins: dict[str, set[str]] = defaultdict(set)
    for one, other in (pair for alike in named.values() for pair in combinations(alike, 2)):
        mine, theirs = ({column.name.casefold() for column in table.columns} for table in (one, other))
        if one.database != other.database and len(mine & theirs) >= _ALIKE * len(mine | theirs):
            twins[one.database].add(other.database)
            twins[other.database].add(one.database)
    return twins


def one_schema(tables: Sequence[TableProfile]) -> Sequence[TableProfile]:
    """The tables as if they were in one database; their ids stay."""
    if len({table.database for table in tables}) < 2:
        return tables
    return [replace(table, database="") for table in tables]


def _read(text: str) -> tuple[list[KeyPair], list[KeyPair]]:
    single, composite = ([KeyPair.from_json(pair) for pair in pairs] for pairs in json.loads(text))
    return single, composite


_known: weakref.WeakValueDictionary[tuple[tuple[TableProfile, ...], bool], DatabaseKeys] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def database_keys(tables: tuple[TableProfile, ...], declared: bool, facts: ComputedStore) -> DatabaseKeys:
    """The key pairs of a database, shared by its corpora: a subset, a corpus with an added anchor, a copy."""
    with _lock:
        return _known.setdefault((tables, declared), DatabaseKeys(tables, declared, facts))


@functools.cache
def code_of_keys(*rooms: str) -> str:
    """A digest of the code that infers keys, and of other packages: what another version inferred is made again."""
    files = (file for room in ("tagframe.keys", *rooms) for file in resources.files(room).iterdir())
    found = sorted(files, key=str)
    found.append(resources.files("tagframe.corpus") / "profiler.py")
    data = [file.read_bytes() for file in found if file.is_file()]
    return hashlib.md5(b"\n".join(data), usedforsecurity=False).hexdigest()


_APART = 1.0
"""The cost of a key between two databases, in log odds, even if a folder has no others; see :func:`_weights`."""
_SIZE = 0.5
"""The cost of a key between two databases for each factor e in their numbers of tables."""
_OWN = 0.55
"""From this score on, a column's name is that of its own table's key."""
_ALIKE = 0.5
"""The least share of their columns that two tables of one name have in common, if they are the same table."""
_MOSTLY = 0.6
"""The least share of a folder's tables that whole databases hold, if these are apart."""
_MOSTLY_DECLARED = 0.5
"""The least share of its tables that the declared keys of a whole database connect."""


@dataclass(frozen=True, eq=False)
class Schemas:
    """Which databases of a corpus are one.

    A folder that a person opened is one database: its files, sheets and SQLite tables join as those of one schema. Only
    where most of its tables belong to databases that are whole by themselves, such as a collection of SQLite files, do
    these stay apart.

    Attributes:
        names: by database, one name for all databases that are one with it.
    """

    names: Mapping[str, str] = field(default_factory=dict)

    def of(self, table: TableProfile) -> str:
        """One name for the databases that are one with a table's."""
        return self.names.get(table.database, table.database)

    def groups(self, tables: Iterable[TableProfile]) -> dict[str, tuple[TableProfile, ...]]:
        """The tables by that name."""
        found: dict[str, list[TableProfile]] = defaultdict(list)
        for table in tables:
            found[self.of(table)].append(table)
        return {name: tuple(members) for name, members in found.items()}


_known_schemas: weakref.WeakValueDictionary[tuple[tuple[TableProfile, ...], bool], Schemas]
_known_schemas = weakref.WeakValueDictionary()
_latest: deque[Schemas] = deque(maxlen=8)


def schemas_of(tables: Iterable[TableProfile], facts: ComputedStore, *, declared: bool = True) -> Schemas:
    """Which databases of a corpus are one.

    A database is whole if its own keys connect its tables. Whole databases that hold most tables of a folder are apart,
    unless a key connects them (:func:`_between`), or they have a table in pieces (``2023/sales.csv`` and
    ``2024/sales.csv``). All other databases of a folder are one.

    Args:
        tables: all tables of the corpus, sorted by id.
        facts: the store of key pairs.
        declared: whether the keys that the sources declare are used.
    """
    inside = tuple(table for table in tables if table.place)
    with _lock:
        known = _known_schemas.get((inside, declared))
    if known is None:
        by_place: dict[str, list[TableProfile]] = defaultdict(list)
        for table in inside:
            by_place[table.place].append(table)
        names = [_names_in(place, members, declared, facts) for place, members in sorted(by_place.items())]
        known = Schemas({database: name for each in names for database, name in each.items()})
        with _lock:
            _known_schemas[inside, declared] = known
            _latest.append(known)
    return known


def _names_in(place: str, tables: Sequence[TableProfile], declared: bool, facts: ComputedStore) -> Mapping[str, str]:
    """One name for each database of a folder, and for all that are one with it."""
    groups = {group[0].database: group for group in by_database(tables)}
    whole = [name for name, group in groups.items() if _is_whole(group, declared, facts)]
    if len(whole) < 2 or sum(len(groups[name]) for name in whole) < _MOSTLY * len(tables):
        return dict.fromkeys(groups, min(groups))
    parts = Components(sorted(groups))
    for one, other in pairwise(name for name in groups if name not in whole):
        parts.join(one, other)
    database = {table.id: table.database for table in tables}
    for key in _between(place, tables, declared, facts) if len(tables) <= LARGE else ():
        parts.join(database[key.left_table], database[key.right_table])
    for group in infer_unions(tables, by_date=True, around=tables):
        for other in group.tables:
            parts.join(database[group.tables[0]], database[other])
    return {name: parts.root(name) for name in groups}


def _is_whole(tables: Sequence[TableProfile], declared: bool, facts: ComputedStore) -> bool:
    """Whether keys connect all tables of a database; if its source declares keys, half of them are enough."""
    parts = Components(table.id for table in tables)
    for key in database_keys(tuple(tables), declared, facts).pairs:
        if key.score >= ACCEPTED:
            parts.join(key.left_table, key.right_table)
    largest = max(Counter(parts.root(table.id) for table in tables).values())
    declares = any(table.foreign_keys for table in tables)
    return largest > 1 and largest >= len(tables) * (_MOSTLY_DECLARED if declares else 1)


def _between(place: str, tables: Sequence[TableProfile], declared: bool, facts: ComputedStore) -> list[KeyPair]:
    """The key pairs between the databases of a folder, kept until a table changes."""
    state = facts.state(tables, code_of_keys(), str(declared))
    stored = facts.get("keys of a folder", place, state, lambda text: [*map(KeyPair.from_json, json.loads(text))])
    if stored is None:
        stored = _inferred(tables, declared, facts)
        text = json.dumps([key.to_json() for key in stored], separators=(",", ":"))
        facts.put("keys of a folder", place, state, text)
    return stored


def _inferred(tables: Sequence[TableProfile], declared: bool, facts: ComputedStore) -> list[KeyPair]:
    groups = by_database(tables)
    parents = {
        (key.left_table, key.left_columns[0])
        for group in groups
        for key in database_keys(tuple(group), declared, facts).pairs
        if key.score >= ACCEPTED and key.left_table != key.right_table
    }
    weights, tables = _weights(len(groups)), sketches_at_hand(tables)
    floor = log_odds(ACCEPTED, weights.surest)
    found = candidates_of(tables, columns_of(tables), floor=floor, weights=weights, across=True)
    sizes = Counter(table.database for table in tables)
    for candidate in found:
        # Loose files are nearer to each other than two databases of thirty tables each.
        candidate.logit -= _SIZE * math.log(
            math.prod(sizes[side.owner.database] for side in (candidate.left, candidate.right))
        )
    return [
        key_pair(candidate, weights.surest)
        for candidate in found
        if candidate.logit >= floor and candidate.left.key not in parents and not _is_namesake(candidate)
    ]


def _weights(databases: int) -> KeyWeights:
    """The weights of the evidence in a folder of so many databases.

    Of many databases, each belongs together with few others: a pair of them has a chance of about one in their number.
    """
    weights = default_weights()
    return replace(weights, terms={**weights.terms, "across": -_APART - math.log(max(databases - 1, 1))})


def _is_namesake(candidate: Candidate) -> bool:
    """Whether both columns only count the rows of tables of one name: ``people`` of two databases are not the same."""
    left, right = candidate.left, candidate.right
    return (
        left.run is not None
        and min(left.own, right.own) >= _OWN
        and table_entity(left.owner.name) == table_entity(right.owner.name)
    )
