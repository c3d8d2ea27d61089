"""``corpus.keys``: the keys between the tables of a corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pandas as pd

from tagframe.corpus.facts import FactStore, key_fact
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.references import JoinColumns, read_key
from tagframe.display import Displayable, rows_html

_LISTED = 20


class CorpusKeys(Displayable):
    """``corpus.keys``: the keys between the tables, those that the user declares and those that are inferred.

    ``corpus.keys.frame()`` has all of them, with the chance and the evidence of each.

    >>> import pandas as pd, tagframe as tf
    >>> orders = pd.DataFrame({"order": [1, 2], "buyer": [7, 8]})
    >>> customers = pd.DataFrame({"id": [7, 8], "city": ["Porto", "Faro"]})
    >>> corpus = tf.open_corpus({"orders": orders, "customers": customers})
    >>> corpus.keys.add("orders.buyer = customers.id")
    >>> corpus.keys
    declared keys of this corpus:
      frames.orders.buyer = frames.customers.id
    """

    def __init__(self, store: FactStore, profiles: Sequence[TableProfile], pairs: Callable[[], Iterable[Any]]) -> None:
        """The keys of some tables.

        Args:
            store: has the declared ones.
            profiles: of the tables.
            pairs: gives all of them, as :class:`tagframe.KeyPair`.
        """
        self._store, self._profiles, self._pairs = store, profiles, pairs

    def add(self, key: str | JoinColumns) -> None:
        """Declare that columns join: ``"orders.buyer = customers.id"``, the referencing side first.

        Retrieval, plans and merges treat the key as certain. Several pairs, joined by ``and``, form one composite key.

        Raises:
            InvalidArgument: another form, or not between two tables.
            TableNotFound, ColumnNotFound: an unknown name.
        """
        self._put(key, True)

    def forbid(self, key: str | JoinColumns) -> None:
        """Declare that columns do not join, against their names, their values, and the keys of the source.

        Raises:
            InvalidArgument, TableNotFound, ColumnNotFound: as :meth:`add`.
        """
        self._put(key, False)

    def forget(self, key: str | JoinColumns) -> None:
        """Undo :meth:`add` or :meth:`forbid` for these columns.

        Raises:
            InvalidArgument, TableNotFound, ColumnNotFound: as :meth:`add`.
        """
        self._put(key, None)

    def frame(self) -> pd.DataFrame:
        """All keys of the corpus, best first: a row per key.

        Returns:
            Columns ``key`` ("a.x = b.y"), ``chance`` (in [0, 1]), ``origin`` ("inferred", "declared" or "given")
            and ``reason``.

        >>> import pandas as pd, tagframe as tf
        >>> loans = pd.DataFrame({"loan_id": [1, 2, 3], "client_id": [20, 10, 20]})
        >>> clients = pd.DataFrame({"client_id": [10, 20, 30], "name": ["Ann", "Bo", "Cy"]})
        >>> tf.open_corpus({"loans": loans, "clients": clients}).keys.frame()[["key", "origin"]].values.tolist()
        [['frames.loans.client_id = frames.clients.client_id', 'inferred']]
        """
        rows = [
            (f"{key.left} = {key.right}", key.score, key.evidence.origin, key.evidence.reason) for key in self._pairs()
        ]
        return pd.DataFrame(rows, columns=["key", "chance", "origin", "reason"])

    def _put(self, key: str | JoinColumns, joins: bool | None) -> None:
        fact, value = key_fact(read_key(key, self._profiles), bool(joins))
        self._store.put({fact: None if joins is None else value})

    def _inferred(self) -> list[tuple[str, str, str]]:
        """Key, origin and chance of those that no person declared."""
        keys = self.frame()
        keys = keys[keys["origin"] != "given"]
        return [(key, origin, f"{chance:.2f}") for key, chance, origin, _ in keys.itertuples(index=False)]

    def __str__(self) -> str:
        known, inferred = self._store.facts, self._inferred()
        title = "declared keys of this corpus"
        lines = [*map(str, known.keys), *(f"not {key}" for key in known.forbidden)]
        lines = ["\n  ".join([f"{title}:", *lines]) if lines else f"no {title}"]
        lines += ["keys of the sources, with their chance:"] * bool(inferred)
        lines += [f"  {key} ({chance})" for key, _, chance in inferred[:_LISTED]]
        more = len(inferred) - _LISTED
        return "\n".join([*lines, *[f"  and {more} more: corpus.keys.frame()"] * (more > 0)])

    def _repr_html_(self) -> str:
        known, inferred = self._store.facts, self._inferred()
        declared = ((known.keys, "declared as a key"), (known.forbidden, "declared as no key"))
        rows = [(str(key), word, "") for keys, word in declared for key in keys] + inferred[:_LISTED]
        heading = "keys of this corpus" if rows else str(self)
        return rows_html(heading, ["columns", "as", "chance"], rows, {"columns", "as"}, max(0, len(inferred) - _LISTED))
