"""The key pairs of a database: inferred by whoever asks first, kept in the corpus' catalogue until a table changes."""

from __future__ import annotations

import functools
import hashlib
import json
import threading
import weakref
from importlib import resources

from tagframe.corpus.facts import FactStore
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.stored_profiles import sketches_at_hand
from tagframe.keys import KeyPair, evidence_share, infer_key_pairs
from tagframe.retrieval.once import once
from tagframe.retrieval.problem import LINKED

LARGE = 500
"""Tables of a database from which only pairs are looked for that may well be keys.

Among a few hundred tables faint pairs help to connect what nothing else does; among thousands they are accidents, and
every column would be a candidate for every other."""

_WIDE = 5_000
"""Columns of a database from which it is large, however few its tables."""

MANY = 800
"""Columns of a database from which the very faintest pairs are left out: of fifty tables there are ten thousand, one in
a thousand of them a key, and a question would read them all."""

_FAINTEST = 0.005

_FAINT = 0.2
"""The least score of a pair in a large database."""


class DatabaseKeys:
    """The key pairs of the tables of a database.

    Args:
        tables: all of them, sorted by id.
        declared: whether keys that the source declares are taken.
        facts: where they are kept.
    """

    def __init__(self, tables: tuple[TableProfile, ...], declared: bool, facts: FactStore) -> None:
        self._tables, self._declared, self._facts = tables, declared, facts

    @once
    def state(self) -> str:
        """What the pairs follow from: the tables, what is told of them, and the code that infers keys."""
        return self._facts.state(self._tables, code_of_keys(), str(self._declared))

    @once
    def pairs(self) -> list[KeyPair]:
        """Best first."""
        kept = self._facts.get("keys", self._name, self.state, _read)
        if kept is not None:
            return kept
        columns = sum(len(table.columns) for table in self._tables)
        floor = _FAINT if len(self._tables) > LARGE or columns > _WIDE else _FAINTEST if columns >= MANY else 0.0
        found = infer_key_pairs(sketches_at_hand(self._tables), declared=self._declared, min_score=floor)
        plain = json.dumps([pair.to_json() for pair in found], separators=(",", ":"))
        self._facts.put("keys", self._name, self.state, plain)
        return found

    def columns(self, kept: str | None = None) -> set[tuple[str, str]]:
        """Table id and name of the columns of pairs that link tables.

        Args:
            kept: what the catalogue has of them, where that was read already.
        """
        try:
            known = None if kept is None else {(table, name) for table, name in json.loads(kept)}
        except (ValueError, TypeError):
            known = None
        if known is None:
            found = {
                (table, name)
                for pair in self.pairs
                if pair.left_table != pair.right_table and evidence_share(pair.score) >= LINKED
                for table, names in ((pair.left_table, pair.left_columns), (pair.right_table, pair.right_columns))
                for name in names
            }
            self._facts.put("key columns", self._name, self.state, json.dumps(sorted(found)))
            return found
        return known

    @property
    def _name(self) -> str:
        return self._tables[0].database


def _read(text: str) -> list[KeyPair]:
    return [KeyPair.from_json(pair) for pair in json.loads(text)]


_known: weakref.WeakValueDictionary[tuple[tuple[TableProfile, ...], bool], DatabaseKeys] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def database_keys(tables: tuple[TableProfile, ...], declared: bool, facts: FactStore) -> DatabaseKeys:
    """Corpora that share a database share its key pairs: a subset, a corpus with an anchor beside it, a copy."""
    with _lock:
        return _known.setdefault((tables, declared), DatabaseKeys(tables, declared, facts))


@functools.cache
def code_of_keys() -> str:
    """Changes with the code that infers keys: what another version inferred is inferred again."""
    others = [
        resources.files("tagframe.corpus") / "profiler.py",
        resources.files("tagframe.retrieval") / "database_keys.py",
    ]
    found = [*sorted(resources.files("tagframe.keys").iterdir(), key=lambda file: file.name), *others]
    data = [file.read_bytes() for file in found if file.is_file()]
    return hashlib.md5(b"\n".join(data), usedforsecurity=False).hexdigest()
