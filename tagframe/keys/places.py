"""A folder is one place: the keys between its databases, and which of these databases belong together.

A workbook, a CSV file and a SQLite file of one folder are often one data set, so keys are looked for between them. But
a folder may also hold many unrelated databases, and all of them count their rows from 1. So a key between databases
needs a name *and* values, dense integers are no evidence, and the more databases there are, the more it takes.
"""

from __future__ import annotations

import json
import math
import threading
import weakref
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tagframe.corpus.catalogue_file import FactStore
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.stored_profiles import sketches_at_hand
from tagframe.keys.column_names import table_entity
from tagframe.keys.database_keys import code_of_keys, database_keys
from tagframe.keys.inference import ACCEPTED, LARGE, by_database, candidates_of, key_pair
from tagframe.keys.key_columns import columns_of
from tagframe.keys.key_pair import KeyPair
from tagframe.keys.scoring import Candidate, log_odds
from tagframe.keys.terms import KeyWeights, default_weights
from tagframe.keys.unions import infer_unions

_APART = 1.0
"""The cost of a key between two databases, in log odds, even if a folder has no others; see :func:`_weights`."""
_SIZE = 0.5
"""The cost of a key between two databases for each factor e in their numbers of tables."""
_OWN = 0.55
"""From this score on, a column's name is that of its own table's key."""


@dataclass(frozen=True, eq=False)
class Places:
    """The folders of a corpus.

    Attributes:
        keys: the inferred key pairs between databases of a folder.
        homes: by database, one name for all databases that belong together.
    """

    keys: Sequence[KeyPair] = ()
    homes: Mapping[str, str] = field(default_factory=dict)

    def home(self, table: TableProfile) -> str:
        """One name for the databases that belong together with a table's."""
        return self.homes.get(table.database, table.database)


_known: weakref.WeakValueDictionary[tuple[tuple[TableProfile, ...], bool], Places] = weakref.WeakValueDictionary()
_latest: deque[Places] = deque(maxlen=8)
_lock = threading.Lock()


def places_of(tables: Iterable[TableProfile], facts: FactStore, *, declared: bool = True) -> Places:
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
        known = _known.get((inside, declared))
    if known is None:
        known = _places(inside, facts, declared)
        with _lock:
            _known[inside, declared] = known
            _latest.append(known)
    return known


def _places(tables: Sequence[TableProfile], facts: FactStore, declared: bool) -> Places:
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


def _between(place: str, tables: Sequence[TableProfile], declared: bool, facts: FactStore) -> list[KeyPair]:
    """The key pairs between the databases of a folder, kept until a table changes."""
    state = facts.state(tables, code_of_keys(), str(declared))
    kept = facts.get("keys of a folder", place, state, _read)
    if kept is None:
        kept = _inferred(tables, declared, facts)
        text = json.dumps([key.to_json() for key in kept], separators=(",", ":"))
        facts.put("keys of a folder", place, state, text)
    return kept


def _read(text: str) -> list[KeyPair]:
    return [KeyPair.from_json(pair) for pair in json.loads(text)]


def _inferred(tables: Sequence[TableProfile], declared: bool, facts: FactStore) -> list[KeyPair]:
    groups = by_database(tables)
    parents = {
        (key.left_table, key.left_columns[0])
        for group in groups
        for key in database_keys(tuple(group), declared, facts).pairs
        if key.score >= ACCEPTED and key.left_table != key.right_table
    }
    weights, tables = _weights(len(groups)), facts.with_hidden(sketches_at_hand(tables))
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
