"""The key pairs of a database: inferred by whoever asks first, kept in the corpus' catalogue until a table changes."""

from __future__ import annotations

import functools
import hashlib
import json
import threading
import weakref
from contextlib import suppress
from importlib import resources

from tagframe.corpus.facts import FactStore
from tagframe.corpus.once import once
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.stored_profiles import sketches_at_hand
from tagframe.keys.inference import composites_of, single_keys, with_composites, with_told
from tagframe.keys.key_pair import KeyPair
from tagframe.keys.scoring import evidence_share


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
    def inferred(self) -> tuple[list[KeyPair], list[KeyPair]]:
        """Pairs of single columns, and the composite ones that names propose: no row was read for them."""
        kept = self._facts.get("keys", self._name, self.state, _read)
        if kept is None:
            tables = sketches_at_hand(self._tables)
            single = single_keys(tables)
            kept = single, composites_of(tables, single)
            plain = json.dumps([[key.to_json() for key in keys] for keys in kept], separators=(",", ":"))
            self._facts.put("keys", self._name, self.state, plain)
        return kept

    @once
    def pairs(self) -> list[KeyPair]:
        """All of them, and those that are declared or given, best first."""
        return with_told(with_composites(*self.inferred), self._tables, declared=self._declared)

    def columns(self, least: float, kept: str | None = None) -> set[tuple[str, str]]:
        """Table id and name of the columns of pairs that link tables.

        Args:
            least: the share of all evidence from which on a pair does.
            kept: what the catalogue has of them, where that was read already.
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


def database_keys(tables: tuple[TableProfile, ...], declared: bool, facts: FactStore) -> DatabaseKeys:
    """Corpora that share a database share its key pairs: a subset, a corpus with an anchor beside it, a copy."""
    with _lock:
        return _known.setdefault((tables, declared), DatabaseKeys(tables, declared, facts))


@functools.cache
def code_of_keys() -> str:
    """Changes with the code that infers keys: what another version inferred is inferred again."""
    found = [*sorted(resources.files("tagframe.keys").iterdir(), key=lambda file: file.name)]
    found.append(resources.files("tagframe.corpus") / "profiler.py")
    data = [file.read_bytes() for file in found if file.is_file()]
    return hashlib.md5(b"\n".join(data), usedforsecurity=False).hexdigest()
