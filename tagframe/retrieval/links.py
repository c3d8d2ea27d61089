"""Link scores: the best key pair between two tables. Keys are facts of a database, inferred once and stored.

A link score is the pair's :func:`~tagframe.keys.evidence_share`, 1 for the surest. Selectors add up evidence, not
probabilities.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tagframe.corpus import Corpus, computed_of
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.stored_profiles import Arrays, ComputedStore
from tagframe.keys import KeyPair, evidence_share
from tagframe.keys.database_keys import DatabaseKeys, database_keys, schemas_of
from tagframe.keys.inference import with_told
from tagframe.progress import track
from tagframe.retrieval.problem import LINKED, Floats

MOST_AROUND = 500
"""In a database of up to so many tables, any table may be a bridge; in a larger one, only linked tables may."""

AT_HAND = 8
"""The number of databases of a lake whose key pairs stay in memory."""

_ONE_OF_SEVERAL = 0.9
"""The highest chance that one of several key pairs is right, where none is as sure."""

Ends = tuple[int, int]

Link = tuple[int, float, bool]
"""Another table, the link score, and whether the best pair refers to it."""


class _Pairs:
    """The key pairs of a database by the positions of their tables (the lower one first), best pairs first."""

    def __init__(self, between: Mapping[Ends, Sequence[KeyPair]]) -> None:
        self.between = between
        self.known: dict[int, list[Link]] = {}  # for each table that was requested
        self.linked: dict[int, list[int]] = defaultdict(list)
        for left, right in sorted(between):
            self.linked[left].append(right)
            self.linked[right].append(left)


class Links:
    """The key pairs of a corpus, best first, between any two of its tables.

    For a lake, the scores are stored as arrays: a question looks at the neighbours of tables in a dozen databases, but
    needs the pairs themselves in one or two only.

    Args:
        tables: the profiles, in the order that indices refer to.
        declared: whether keys that the source declares are used (with a score of 1).
        facts: the store of key pairs; None keeps them for this process only.
        stored: the result of :meth:`arrays` for the same tables.
    """

    def __init__(
        self,
        tables: Sequence[TableProfile],
        *,
        declared: bool = True,
        facts: ComputedStore | None = None,
        stored: Arrays | None = None,
    ) -> None:
        self._tables = tables
        self._declared = declared
        self._facts = ComputedStore() if facts is None else facts
        self._stored = stored
        self._index = {table.id: position for position, table in enumerate(tables)}
        self._schemas = schemas_of(tables, self._facts, declared=declared)
        self._members: dict[str, list[int]] = defaultdict(list)
        for position in range(len(tables)):
            self._members[self.schema(position)].append(position)
        self._sources: dict[str, DatabaseKeys] = {}
        self._pairs: dict[str, _Pairs] = {}
        self._between = self._between_schemas()

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The scores of all tables, to be saved; the pairs themselves do not stay in memory."""
        links: list[tuple[int, int, float, bool]] = []
        for table in range(len(self._tables)):
            links += ((table, *link) for link in self._links(table))
            self._forget(AT_HAND)
        self._forget(0)
        owner, *parts = map(np.array, zip(*links, strict=True) if links else ((), (), (), ()))
        starts = np.searchsorted(owner, np.arange(len(self._tables) + 1))
        types = (np.int32, np.float64, np.bool_)
        return {
            "starts": starts,
            **{name: part.astype(dtype) for name, part, dtype in zip(_PARTS, parts, types, strict=True)},
        }

    def keys(self, tables: Iterable[int]) -> list[KeyPair]:
        """All key pairs between the tables, best first."""
        every = [key for _, keys in self._among(set(tables)) for key in keys]
        return sorted(every, key=lambda key: (-key.score, key.left, key.right))

    def best(self, left: int, right: int) -> KeyPair | None:
        """The best key pair of two tables, or None."""
        if not self.matrix([left, right]).any():
            return None
        keys = next((keys for _, keys in self._among({left, right})), None)
        return keys[0] if keys else None

    def matrix(self, tables: Sequence[int]) -> Floats:
        """Link scores among some tables: shape (n, n), symmetric, zero diagonal."""
        return self._between_any(tables, np.float64, 1)

    def refers(self, tables: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Which tables refer to which by their best key pair: shape (n, n), the referring one first."""
        return self._between_any(tables, np.bool_, 2)

    def _between_any(self, tables: Sequence[int], dtype: Any, part: int) -> npt.NDArray[Any]:
        """A part of :data:`Link` between any two of some tables: shape (n, n); 0 where there is none."""
        position = {table: row for row, table in enumerate(tables)}
        matrix = np.zeros((len(tables), len(tables)), dtype=dtype)
        for row, table in enumerate(tables):
            for link in self._links(table):
                if link[0] in position:
                    matrix[row, position[link[0]]] = link[part]
        return matrix

    def of(self, table: int) -> Sequence[tuple[int, float]]:
        """The other tables with which a table has key pairs, ascending, and the best score of each."""
        return [(other, score) for other, score, _ in self._links(table)]

    def _links(self, table: int) -> list[Link]:
        if self._stored is None:
            known = self._of(self.schema(table)).known
            if table not in known:
                id = self._tables[table].id
                known[table] = [(other, _score(keys), keys[0].left_table == id) for other, keys in self._around(table)]
            return known[table]
        part = slice(*self._stored["starts"][table : table + 2].tolist())
        return list(zip(*(self._stored[name][part].tolist() for name in _PARTS), strict=True))

    def neighbours(self, tables: Sequence[int], limit: int) -> list[int]:
        """Up to ``limit`` other tables that are linked to these, those with the surest links first."""
        inside = set(tables)
        best: dict[int, float] = {}
        for table in inside:
            for other, link in self.of(table):
                if link >= LINKED and other not in inside:
                    best[other] = max(best.get(other, 0.0), link)
        return sorted(best, key=lambda table: (-best[table], table))[:limit]

    def key_columns(self) -> set[tuple[int, str]]:
        """The columns, as (table, name), of all key pairs that link tables."""
        sources = {name: self._source(name) for name in self._members}
        stored = self._facts.get_all("key columns", [source.state for source in sources.values()])
        work = ((len(self._members[name]), source) for name, source in sources.items())
        columns: set[tuple[int, str]] = set()
        for source in track(work, len(self._tables), "looking for keys", "table"):
            columns |= {(self._index[table], name) for table, name in source.columns(LINKED, stored.get(source.state))}
        return columns | {
            (self._index[table], name)
            for keys in self._between.values()
            for key in keys
            for table, names in ((key.left_table, key.left_columns), (key.right_table, key.right_columns))
            for name in names
        }

    def of_databases(self, tables: Iterable[int]) -> list[int]:
        """All tables in the schemas of these tables; among many, only those within two links of them."""
        members = sorted(set(tables))
        positions: list[int] = []
        for name in sorted({self.schema(table) for table in members}):
            whole = self._members[name]
            if len(whole) > MOST_AROUND:
                inside = [table for table in members if self.schema(table) == name]
                near = self.neighbours(inside, MOST_AROUND)
                whole = sorted({*inside, *near, *self.neighbours(near, MOST_AROUND)})
            positions += whole
        return positions

    def _source(self, schema: str) -> DatabaseKeys:
        if schema not in self._sources:
            tables = tuple(self._tables[table] for table in self._members[schema])
            self._sources[schema] = database_keys(tables, self._declared, self._facts)
        return self._sources[schema]

    def _of(self, schema: str) -> _Pairs:
        """The key pairs of a schema; if scores are stored, those of the last few stay in memory."""
        pairs = self._pairs.get(schema)
        if pairs is None:
            between: dict[Ends, list[KeyPair]] = defaultdict(list)
            for key in self._source(schema).pairs:
                left, right = self._index[key.left_table], self._index[key.right_table]
                if left != right:
                    between[min(left, right), max(left, right)].append(key)
            pairs = self._pairs[schema] = _Pairs(dict(between))
            if self._stored is not None:
                self._forget(AT_HAND)
        return pairs

    def _forget(self, stored: int) -> None:
        """Drop the pairs of all schemas except those that were read last."""
        for schema in list(self._pairs)[: max(len(self._pairs) - stored, 0)]:
            self._pairs.pop(schema, None)
            self._sources.pop(schema, None)

    def _around(self, table: int) -> Iterator[tuple[int, Sequence[KeyPair]]]:
        """The tables with which a table has key pairs, ascending, and the pairs."""
        pairs = self._of(self.schema(table))
        others = set(pairs.linked.get(table, ()))
        others |= {end for ends in self._between if table in ends for end in ends if end != table}
        for other in sorted(others):
            ends = min(table, other), max(table, other)
            yield other, self._between.get(ends) or pairs.between[ends]

    def _among(self, tables: set[int]) -> Iterator[tuple[Ends, Sequence[KeyPair]]]:
        """The pairs of these tables that have key pairs, in order."""
        for table in sorted(tables):
            for other, keys in self._around(table):
                if other > table and other in tables:
                    yield (table, other), keys

    def _between_schemas(self) -> dict[Ends, list[KeyPair]]:
        """The given keys between tables of different schemas, best first."""
        between: dict[Ends, list[KeyPair]] = defaultdict(list)
        for key in with_told((), self._tables, declared=False):
            left, right = self._index[key.left_table], self._index[key.right_table]
            if self.schema(left) != self.schema(right):
                between[min(left, right), max(left, right)].append(key)
        return dict(between)

    def schema(self, table: int) -> str:
        """One name for the databases that are one with that of a table."""
        return self._schemas.of(self._tables[table])


def _score(keys: Sequence[KeyPair]) -> float:
    """The link score of two tables by their key pairs, best first: where several columns may be the reference
    (``source_id`` and ``dest_id``), that one of them is."""
    best = keys[0]
    same = [key.score for key in keys if (key.left_table, key.right_columns) == (best.left_table, best.right_columns)]
    return evidence_share(min(sum(same), max(best.score, _ONE_OF_SEVERAL)))


def tables_around(corpus: Corpus, tables: Sequence[str]) -> list[str]:
    """The ids of tables that may connect these: all others in their databases; in large databases, those near them."""
    profiles = corpus.profiles
    positions = {profile.id: position for position, profile in enumerate(profiles)}
    around = Links(profiles, facts=computed_of(corpus)).of_databases(positions[id] for id in tables)
    return [profiles[position].id for position in around if profiles[position].id not in tables]


def schema_of(corpus: Corpus, table: str) -> str:
    """One name for the databases that are one with that of a table, by its id."""
    return schemas_of(corpus.profiles, computed_of(corpus)).of(corpus.profile(table))


_PARTS = ("others", "scores", "refers")
