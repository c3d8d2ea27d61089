"""The key pairs of a database, and those between the databases of a folder.

They are inferred at first use, and kept in the corpus' catalogue until a table changes. A folder is one place: some of
its databases belong together.
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

from tagframe.corpus.catalogue_file import ComputedStore
from tagframe.corpus.once import once
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.stored_profiles import sketches_at_hand
from tagframe.keys.column_names import table_entity
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
from tagframe.keys.scoring import Candidate, evidence_share, log_odds
from tagframe.keys.terms import KeyWeights, default_weights
from tagframe.keys.unions import infer_unions


class DatabaseKeys:
    """The key pairs of the tables of a database.

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
        kept = self._facts.get("keys", self._name, self.state, _read)
        if kept is None:
            kept = single_and_composite_keys(sketches_at_hand(self._tables))
            plain = json.dumps([[key.to_json() for key in keys] for keys in kept], separators=(",", ":"))
            self._facts.put("keys", self._name, self.state, plain)
        return kept

    @once
    def pairs(self) -> list[KeyPair]:
        """All inferred, declared and given pairs, best first."""
        return with_told(with_composites(*self.inferred), self._tables, declared=self._declared)

    def columns(self, least: float, kept: str | None = None) -> set[tuple[str, str]]:
        """Table id and name of the columns in pairs that link tables.

        Args:
            least: the smallest share of all evidence of such a pair.
            kept: their text in the catalogue, if it was read already.
        """
        with suppress(ValueError, TypeError):  # it is damaged
            if kept is not None:
                return {(table, name) for table, name in json.loads(kept)}
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
        return self._tables[0].database


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
def code_of_keys() -> str:
    """A digest of the code that infers keys: the results of another version are inferred again."""
    found = [*sorted(resources.files("tagframe.keys").iterdir(), key=lambda file: file.name)]
    found.append(resources.files("tagframe.corpus") / "profiler.py")
    data = [file.read_bytes() for file in found if file.is_file()]
    return hashlib.md5(b"\n".join(data), usedforsecurity=False).hexdigest()


_APART = 1.0
"""The cost of a key between two databases, in log odds, even if a folder has no others; see :func:`_weights`."""
_SIZE = 0.5
"""The cost of a key between two databases for each factor e in their numbers of tables."""
_OWN = 0.55
"""From this score on, a column's name is that of its own table's key."""


@dataclass(frozen=True, eq=False)
class Places:
    """The folders of a corpus: the keys between their databases, and which of these belong together.

    A workbook, a CSV file and a SQLite file of one folder are often one data set. But a folder may also hold many
    unrelated databases, and all of them count their rows from 1. So a key between databases needs a name *and* values,
    dense integers are no evidence, and the more databases there are, the more it takes.

    Attributes:
        keys: the inferred key pairs between databases of a folder.
        homes: by database, one name for all databases that belong together.
    """

    keys: Sequence[KeyPair] = ()
    homes: Mapping[str, str] = field(default_factory=dict)

    def home(self, table: TableProfile) -> str:
        """One name for the databases that belong together with a table's."""
        return self.homes.get(table.database, table.database)


_known_places: weakref.WeakValueDictionary[tuple[tuple[TableProfile, ...], bool], Places]
_known_places = weakref.WeakValueDictionary()
_latest: deque[Places] = deque(maxlen=8)


def places_of(tables: Iterable[TableProfile], facts: ComputedStore, *, declared: bool = True) -> Places:
    """What the folders of a corpus hold together.

    Databases belong together if a key connects them, or if they have a table in pieces (``2023/sales.csv`` and
    ``2024/sales.csv``).

    Args:
        tables: all tables of the corpus, sorted by id.
        facts: the store of key pairs.
        declared: whether the keys that the sources declare are used.
    """
    inside = tuple(table for table in tables if table.place)
    with _lock:
        known = _known_places.get((inside, declared))
    if known is None:
        known = _places(inside, facts, declared)
        with _lock:
            _known_places[inside, declared] = known
            _latest.append(known)
    return known


def _places(tables: Sequence[TableProfile], facts: ComputedStore, declared: bool) -> Places:
    by_place: dict[str, list[TableProfile]] = defaultdict(list)
    for table in tables:
        by_place[table.place].append(table)
    keys: list[KeyPair] = []
    homes: dict[str, str] = {}
    for place, members in sorted(by_place.items()):
        if len({table.database for table in members}) < 2:
            continue
        found = _between(place, members, declared, facts) if len(members) <= LARGE else []
        database = {table.id: table.database for table in members}
        pairs = [(database[key.left_table], database[key.right_table]) for key in found]
        pairs += [
            (database[group.tables[0]], database[other])
            for group in infer_unions(members, by_date=True, around=members)
            for other in group.tables
        ]
        home = {name: name for name in sorted({*database.values()})}
        for one, other in pairs:
            first, second = sorted((home[one], home[other]))
            if first != second:
                home = {name: first if its == second else its for name, its in home.items()}
        keys += found
        homes |= home
    return Places(keys, homes)


def _between(place: str, tables: Sequence[TableProfile], declared: bool, facts: ComputedStore) -> list[KeyPair]:
    """The key pairs between the databases of a folder, kept until a table changes."""
    state = facts.state(tables, code_of_keys(), str(declared))
    kept = facts.get("keys of a folder", place, state, lambda text: [*map(KeyPair.from_json, json.loads(text))])
    if kept is None:
        kept = _inferred(tables, declared, facts)
        text = json.dumps([key.to_json() for key in kept], separators=(",", ":"))
        facts.put("keys of a folder", place, state, text)
    return kept


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
