"""Link scores: the best key pair between two tables. Keys are facts of a database, inferred once and kept.

A link score is the pair's :func:`~tagframe.keys.evidence_share`, 1 for the surest: what selectors add up is evidence,
not the share of such pairs that turn out to be keys.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from tagframe.corpus.facts import FactStore
from tagframe.corpus.profile import TableProfile
from tagframe.keys import KeyPair, evidence_share, given_keys
from tagframe.progress import shown
from tagframe.retrieval.database_keys import DatabaseKeys, database_keys
from tagframe.retrieval.problem import LINKED, Floats

_MOST_AROUND = 500
"""Tables of a database up to which all of them may help to connect some; beyond, those that these are linked to."""

Ends = tuple[int, int]


class Links:
    """The key pairs of a corpus, best first, between any two of its tables.

    Args:
        tables: the profiles, in the order that indices refer to.
        declared: whether keys that the source declares are taken (they score 1).
        facts: where the corpus keeps them; None for this process only.
    """

    def __init__(
        self, tables: Sequence[TableProfile], *, declared: bool = True, facts: FactStore | None = None
    ) -> None:
        self._tables = tables
        self._declared = declared
        self._facts = FactStore() if facts is None else facts
        self._index = {table.id: position for position, table in enumerate(tables)}
        self._databases: dict[str, list[int]] = defaultdict(list)
        for position, table in enumerate(tables):
            self._databases[table.database].append(position)
        self._sources: dict[str, DatabaseKeys] = {}
        self._pairs: dict[str, Mapping[Ends, Sequence[KeyPair]]] = {}
        self._linked: dict[str, Mapping[int, Sequence[int]]] = {}
        self._between = self._given_between_databases()

    def keys(self, tables: Iterable[int]) -> list[KeyPair]:
        """All key pairs between the tables, best first."""
        found = [key for _, keys in self._among(set(tables)) for key in keys]
        return sorted(found, key=lambda key: (-key.score, key.left, key.right))

    def best(self, left: int, right: int) -> KeyPair | None:
        """The best key pair of two tables, or None."""
        keys = next((keys for _, keys in self._among({left, right})), None)
        return keys[0] if keys else None

    def matrix(self, tables: Sequence[int]) -> Floats:
        """Link scores among some tables: shape (n, n), symmetric, zero diagonal."""
        place = {table: row for row, table in enumerate(tables)}
        scores = np.zeros((len(tables), len(tables)))
        for (left, right), keys in self._among(set(tables)):
            i, j = place[left], place[right]
            scores[i, j] = scores[j, i] = evidence_share(keys[0].score)
        return scores

    def of(self, table: int) -> list[tuple[int, float]]:
        """The other tables that a table has key pairs with, ascending, and the best score of each."""
        return [(other, evidence_share(keys[0].score)) for other, keys in self._around(table)]

    def neighbours(self, tables: Sequence[int], limit: int) -> list[int]:
        """Up to ``limit`` other tables that are linked to these, those with the surest links first."""
        inside = set(tables)
        best: dict[int, float] = {}
        for table in inside:
            for other, keys in self._around(table):
                link = evidence_share(keys[0].score)
                if link >= LINKED and other not in inside:
                    best[other] = max(best.get(other, 0.0), link)
        return sorted(best, key=lambda table: (-best[table], table))[:limit]

    def key_columns(self) -> set[tuple[int, str]]:
        """The columns, as (table, name), of all key pairs that link tables."""
        sources = {database: self._source(database) for database in self._databases}
        kept = self._facts.get_all("key columns", [source.state for source in sources.values()])
        work = ((len(self._databases[database]), source) for database, source in sources.items())
        found: set[tuple[int, str]] = set()
        for source in shown(work, len(self._tables), "looking for keys", "table"):
            found |= {(self._index[table], name) for table, name in source.columns(kept.get(source.state))}
        return found | {
            (self._index[table], name)
            for keys in self._between.values()
            for key in keys
            for table, names in ((key.left_table, key.left_columns), (key.right_table, key.right_columns))
            for name in names
        }

    def of_databases(self, tables: Iterable[int]) -> list[int]:
        """All tables of the databases of these; of a large database those within two steps of them."""
        members = sorted(set(tables))
        found: list[int] = []
        for database in sorted({self._tables[table].database for table in members}):
            whole = self._databases[database]
            if len(whole) > _MOST_AROUND:
                inside = [table for table in members if self._tables[table].database == database]
                near = self.neighbours(inside, _MOST_AROUND)
                whole = sorted({*inside, *near, *self.neighbours(near, _MOST_AROUND)})
            found += whole
        return found

    def _source(self, database: str) -> DatabaseKeys:
        if database not in self._sources:
            tables = tuple(self._tables[table] for table in self._databases[database])
            self._sources[database] = database_keys(tables, self._declared, self._facts)
        return self._sources[database]

    def _of(self, database: str) -> Mapping[Ends, Sequence[KeyPair]]:
        """The key pairs of a database by the places of their tables, lower first, best first."""
        if database not in self._pairs:
            found: dict[Ends, list[KeyPair]] = defaultdict(list)
            linked: dict[int, list[int]] = defaultdict(list)
            for key in self._source(database).pairs:
                left, right = self._index[key.left_table], self._index[key.right_table]
                if left != right:
                    found[min(left, right), max(left, right)].append(key)
            for left, right in sorted(found):
                linked[left].append(right)
                linked[right].append(left)
            self._linked[database] = linked
            self._pairs[database] = found
        return self._pairs[database]

    def _around(self, table: int) -> Iterator[tuple[int, Sequence[KeyPair]]]:
        """The tables that a table has key pairs with, ascending, and the pairs."""
        database = self._tables[table].database
        pairs = self._of(database)
        others = set(self._linked[database].get(table, ()))
        others |= {end for ends in self._between if table in ends for end in ends if end != table}
        for other in sorted(others):
            ends = min(table, other), max(table, other)
            yield other, self._between.get(ends) or pairs[ends]

    def _among(self, tables: set[int]) -> Iterator[tuple[Ends, Sequence[KeyPair]]]:
        """The pairs of these tables that have key pairs, in order."""
        for table in sorted(tables):
            for other, keys in self._around(table):
                if other > table and other in tables:
                    yield (table, other), keys

    def _given_between_databases(self) -> dict[Ends, list[KeyPair]]:
        """The keys between tables of two databases: none is inferred there, but users may know some."""
        found: dict[Ends, list[KeyPair]] = defaultdict(list)
        for key in given_keys(self._tables):
            left, right = self._index[key.left_table], self._index[key.right_table]
            if self._tables[left].database != self._tables[right].database:
                found[min(left, right), max(left, right)].append(key)
        return dict(found)
