"""The key pairs of a database: inferred at first use, and kept in the corpus' catalogue until a table changes."""

from __future__ import annotations

import functools
import hashlib
import json
import threading
import weakref
from contextlib import suppress
from importlib import resources

from tagframe.corpus.catalogue_file import FactStore
from tagframe.corpus.once import once
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.stored_profiles import sketches_at_hand
from tagframe.keys.inference import single_and_composite_keys, with_composites, with_told
from tagframe.keys.key_pair import KeyPair
from tagframe.keys.scoring import evidence_share


class DatabaseKeys:
    """The key pairs of the tables of a database.

    Args:
        tables: all of them, sorted by id.
        declared: whether the keys that the source declares are used.
        facts: the store of the pairs.
    """

    def __init__(self, tables: tuple[TableProfile, ...], declared: bool, facts: FactStore) -> None:
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
            kept = single_and_composite_keys(self._facts.with_hidden(sketches_at_hand(self._tables)))
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


def database_keys(tables: tuple[TableProfile, ...], declared: bool, facts: FactStore) -> DatabaseKeys:
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
