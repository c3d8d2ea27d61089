"""Link scores: the best key pair between two tables, found database by database when first asked for.

A link score is the pair's :func:`~tagframe.keys.evidence_share`, 1 for the surest: what selectors add up is evidence,
not the share of such pairs that turn out to be keys.
"""

from __future__ import annotations

import threading
import weakref
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from tagframe.corpus.profile import TableProfile
from tagframe.keys import KeyPair, evidence_share, given_keys, infer_key_pairs
from tagframe.progress import shown
from tagframe.retrieval.once import once
from tagframe.retrieval.problem import LINKED, Floats

LARGEST_DATABASE = 500
"""Tables of a database up to which its keys are inferred as a whole; beyond, among the tables in question only.

Key inference is quadratic in the columns of a database, and no step of a question may be quadratic in the corpus."""


class _Group:
    """The key pairs of some tables, inferred by the first that asks."""

    def __init__(self, tables: tuple[TableProfile, ...], declared: bool) -> None:
        self._tables, self._declared = tables, declared

    @once
    def keys(self) -> list[KeyPair]:
        return infer_key_pairs(self._tables, declared=self._declared, min_score=0.0)


_groups: weakref.WeakValueDictionary[tuple[tuple[TableProfile, ...], bool], _Group] = weakref.WeakValueDictionary()
_groups_lock = threading.Lock()


def _group_of(tables: tuple[TableProfile, ...], declared: bool) -> _Group:
    """Corpora that share a database share its key pairs: a subset, a corpus with an anchor beside it, a copy."""
    with _groups_lock:
        return _groups.setdefault((tables, declared), _Group(tables, declared))


class Links:
    """The key pairs of a corpus, best first, between any two of its tables.

    Args:
        tables: the profiles, in the order that indices refer to.
        declared: whether keys that the source declares are taken (they score 1).
    """

    def __init__(self, tables: Sequence[TableProfile], *, declared: bool = True) -> None:
        self._tables = tables
        self._declared = declared
        self._index = {table.id: position for position, table in enumerate(tables)}
        self._databases: dict[str, list[int]] = defaultdict(list)
        for position, table in enumerate(tables):
            self._databases[table.database].append(position)
        self._adjacent: dict[int, dict[int, float]] = {}
        self._known: dict[tuple[int, ...], dict[tuple[int, int], list[KeyPair]]] = {}
        self._groups: list[_Group] = []  # held, so that others find them
        self._lock = threading.Lock()
        self._between = self._given_between_databases()

    def keys(self, tables: Iterable[int]) -> list[KeyPair]:
        """All key pairs between the tables, best first."""
        members = sorted(set(tables))
        inside = set(members)
        found = [
            key
            for (left, right), keys in self._among(members).items()
            if left in inside and right in inside
            for key in keys
        ]
        return sorted(found, key=lambda key: (-key.score, key.left, key.right))

    def best(self, left: int, right: int) -> KeyPair | None:
        """The best key pair of two tables, or None."""
        keys = self._among([left, right]).get((min(left, right), max(left, right)))
        return keys[0] if keys else None

    def matrix(self, tables: Sequence[int]) -> Floats:
        """Link scores among some tables: shape (n, n), symmetric, zero diagonal."""
        place = {table: row for row, table in enumerate(tables)}
        scores = np.zeros((len(tables), len(tables)))
        for (left, right), keys in self._among(tables).items():
            if left in place and right in place and left != right:
                i, j = place[left], place[right]
                scores[i, j] = scores[j, i] = evidence_share(keys[0].score)
        return scores

    def of(self, table: int) -> list[tuple[int, float]]:
        """The other tables that a table has key pairs with, ascending, and the best score of each."""
        if table not in self._adjacent:
            for (left, right), keys in self._among([table]).items():
                link = evidence_share(keys[0].score)
                self._adjacent.setdefault(left, {})[right] = self._adjacent.setdefault(right, {})[left] = link
            self._adjacent.setdefault(table, {})
        return sorted(self._adjacent[table].items())

    def neighbours(self, tables: Sequence[int], limit: int) -> list[int]:
        """Up to ``limit`` other tables that are linked to these, those with the surest links first."""
        inside = set(tables)
        best: dict[int, float] = {}
        for (left, right), keys in self._among(tables).items():
            link = evidence_share(keys[0].score)
            if link >= LINKED and (left in inside) != (right in inside):
                other = right if left in inside else left
                best[other] = max(best.get(other, 0.0), link)
        return sorted(best, key=lambda table: (-best[table], table))[:limit]

    def key_columns(self) -> set[tuple[int, str]]:
        """The columns, as (table, name), of all key pairs that link tables of databases that are not too large."""
        found = set()
        small = [members for members in self._databases.values() if len(members) <= LARGEST_DATABASE]
        tables = sum(map(len, small))
        for members in shown(((len(members), members) for members in small), tables, "looking for keys", "table"):
            for keys in self._among(members).values():
                for key in keys:
                    if evidence_share(key.score) >= LINKED:
                        found |= {(self._index[key.left_table], name) for name in key.left_columns}
                        found |= {(self._index[key.right_table], name) for name in key.right_columns}
        return found

    def of_databases(self, tables: Iterable[int]) -> list[int]:
        """All tables of the databases of these, where those are not too large."""
        found: list[int] = []
        for database in sorted({self._tables[table].database for table in tables}):
            members = self._databases[database]
            found += members if len(members) <= LARGEST_DATABASE else []
        return found

    def _among(self, tables: Iterable[int]) -> dict[tuple[int, int], list[KeyPair]]:
        by_database: dict[str, list[int]] = defaultdict(list)
        for table in tables:
            by_database[self._tables[table].database].append(table)
        merged: dict[tuple[int, int], list[KeyPair]] = {}
        for database, members in by_database.items():
            whole = self._databases[database]
            group = tuple(whole if len(whole) <= LARGEST_DATABASE else sorted(set(members)))
            with self._lock:
                if group not in self._known:
                    self._known[group] = self._inferred(group)
            merged.update(self._known[group])
        inside = set(tables)
        merged.update({ends: keys for ends, keys in self._between.items() if inside & set(ends)})
        return merged

    def _given_between_databases(self) -> dict[tuple[int, int], list[KeyPair]]:
        """The keys between tables of two databases: none is inferred there, but users may know some."""
        found: dict[tuple[int, int], list[KeyPair]] = defaultdict(list)
        for key in given_keys(self._tables):
            left, right = self._index[key.left_table], self._index[key.right_table]
            if self._tables[left].database != self._tables[right].database:
                found[min(left, right), max(left, right)].append(key)
        return dict(found)

    def _inferred(self, group: Sequence[int]) -> dict[tuple[int, int], list[KeyPair]]:
        inferred = _group_of(tuple(self._tables[table] for table in group), self._declared)
        self._groups.append(inferred)
        found: dict[tuple[int, int], list[KeyPair]] = defaultdict(list)
        for key in inferred.keys:
            ends = self._index[key.left_table], self._index[key.right_table]
            if ends[0] != ends[1]:
                found[min(ends), max(ends)].append(key)
        return dict(found)
