"""Stores for the facts that a user tells: in memory, in files of their own, and in the catalogue of a corpus.

The facts are in files of the user's data folder (:class:`~tagframe.corpus.told.files.FactsFile`), one for each opened
source. The catalogue has a copy of them, which moves with it. The facts of a table are found by its identity
(:class:`~tagframe.corpus.told.identity.TableIdentity`), so that a copy of the table, or a table with a new id, is
recognised.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tagframe.corpus.profile import TableProfile
from tagframe.corpus.references import ToldKey, read_key
from tagframe.corpus.told.facts import FactKey, Knowledge, Told, key_fact, plain_name
from tagframe.corpus.told.files import FactsFile, Kept, Mark
from tagframe.corpus.told.identity import Elsewhere, OpenedTable, TableIdentity, Tables
from tagframe.display import Shown, rows_html
from tagframe.doors import with_doors
from tagframe.errors import (
    CatalogueWarning,
    CopiedDataWarning,
    PrivateColumnGoneWarning,
    UnreadableCatalogue,
    counted,
    warn,
)

if TYPE_CHECKING:
    from tagframe.accessor.key_doors import frame
    from tagframe.corpus.catalogue import Catalogue


class KnowledgeStore:
    """The facts told about the tables of a corpus and of its subsets; looked up at each use.

    Another process, or another corpus of the same source, may add facts in the meantime: a store reads its file again
    after it was written. Safe to use from several threads.

    Args:
        told: the facts known already.
        file: keeps the facts; None to keep them in this process only.
        catalogue: has a copy of the facts; None for no copy.
        beside: the facts of a file beside the data.
    """

    def __init__(
        self,
        told: Told | None = None,
        file: FactsFile | None = None,
        catalogue: Catalogue | None = None,
        beside: Kept | None = None,
    ) -> None:
        self._told = told or Told()
        self._file = file
        self._catalogue = catalogue
        self._beside = beside
        self._here: dict[str, OpenedTable] = {}
        self._said: set[str] = set()
        self._copy_of: frozenset[str] = frozenset()
        self._mark: Mark | None = None
        self._lock = threading.RLock()

    @property
    def told(self) -> Told:
        """The facts as they are now.

        Raises:
            UnreadableFacts: they cannot be read.
        """
        if self._file is not None and self._file.mark() != self._mark:
            with self._lock:
                mark = self._file.mark()
                kept = self._file.read()
                if kept is not None:
                    self._told = self._told.merged(kept.told)
                self._mark = mark
        return self._told

    @property
    def known(self) -> Knowledge:
        """The knowledge from all facts; the same object until a fact is told."""
        return self.told.knowledge

    def read(self) -> bool:
        """Read the kept facts, and repair damaged files; returns whether there was anything to read.

        Raises:
            UnreadableFacts: they cannot be read.
        """
        if self._file is None:
            return False
        self._file.mend()
        self._mark = None
        return bool(self.told.facts) or self._file.mark() is not None

    def add(self, told: Told) -> None:
        """Add these facts in memory only."""
        with self._lock:
            self._told = self.told.merged(told)

    def opened(self, tables: Mapping[str, OpenedTable]) -> None:
        """Set the tables of the corpus, and look for facts that were told about the same data elsewhere.

        Args:
            tables: by their ids.
        """
        with self._lock:
            self._here = dict(tables)
            kept = self._file.read() if self._file is not None else None
            here = Tables(tables, self.known)
            found = self.told.merged(here.known_again(self.told, kept.tables if kept else {}))
            if self._beside is not None:
                found = found.merged(self._beside.told, here.known_again(self._beside.told, self._beside.tables))
            if self._file is None:
                self._told = found
                return
            offered: list[tuple[str, Told]] = []
            for other, (same, copied, offers) in self._elsewhere(here):
                if _server(other.place) == _server(self._file.place) != "":  # another user of the same database
                    here_too = {id: [id] for id in other.told.tables()}
                    found = found.merged(other.told.standing().translated(here_too, ["hidden"]))
                found = found.merged(same)
                for relation, hidden in copied.items():
                    for table, column in sorted(hidden.knowledge.withheld - found.knowledge.withheld):
                        if ("hidden", (table, column)) not in found.facts:
                            _say_copied(table, column, other.place, relation)
                found = found.merged(*copied.values())
                if offers.facts:
                    offered.append((other.place, offers))
                if any(one.facts for one in (*copied.values(), offers)):
                    self._copy_of |= {other.place}
            self._offer(offered, found)
            found = found.merged(self._called_otherwise(found))
            is_known = kept is not None and self._copy_of <= {*kept.copy_of}
            if kept is None or not is_known or found != self._told or self._identities(found, kept) != kept.tables:
                self._write(lambda told: told.merged(found))

    def _elsewhere(self, here: Tables) -> Iterator[tuple[Kept, Elsewhere]]:
        """The facts of other sources, and those of them that are about the data here."""
        assert self._file is not None
        place = self._file.place
        for other in self._file.others():
            ours = place not in other.copy_of
            yield other, here.told_elsewhere(other.told, other.tables, other.place, place, may_be_ours=ours)

    def _offer(self, offered: Sequence[tuple[str, Told]], found: Told) -> None:
        """Say what was told of the data that this is a copy of, unless something is told here already."""
        if any(kind != "hidden" for kind, _ in found.facts):
            return
        for place, told in offered:
            if place not in self._said:
                self._said.add(place)
                tables = sorted(told.tables())
                shown = f"{', '.join(tables[:3])}{' and others' * (len(tables) > 3)}"
                are = "is a copy" if len(tables) == 1 else "are copies"
                facts = counted(len(told.facts), "fact was told, which does", "facts were told, which do")
                warn(
                    f"{shown} {are} of data in {place}. There, {facts} not hold here. corpus.adopt() takes what was "
                    "told there",
                    CopiedDataWarning,
                )

    def adopt(self) -> int:
        """Take the facts that were told about the data that this is a copy of; returns their number."""
        with self._lock:
            if self._file is None:
                return 0
            before = self.told
            several = [offered for _, (_, _, offered) in self._elsewhere(Tables(self._here, self.known))]
            if any(one.facts for one in several):
                self.tell_facts(lambda told: told.merged(*several))
            return sum(before.facts.get(key) != fact for key, fact in self.told.facts.items())

    def _called_otherwise(self, told: Told) -> Told:
        """What is hidden by names that are written a little otherwise now; says which ones are not there any more."""
        facts: dict[FactKey, tuple[Any, float]] = {}
        for (kind, of), fact in told.facts.items():
            if kind != "hidden" or fact[0] is None or of[0] not in self._here:
                continue
            names = [column.name for column in self._here[of[0]].profile.columns]
            if of[1] in names:
                continue
            same = [name for name in names if plain_name(name) == plain_name(of[1])]
            facts.update({(kind, (of[0], name)): fact for name in same})
            said = ".".join(of)
            if not same and said not in self._said:
                self._said.add(said)
                warn(
                    f"{said} is private, and {of[0]} has no such column any more. If it is called otherwise now, "
                    f"corpus.private makes it private by that name; corpus.private({said!r}, undo=True) forgets it",
                    PrivateColumnGoneWarning,
                )
        return Told(facts)

    def tell(self, values: Mapping[FactKey, Any]) -> None:
        """Add these facts; None removes one; see :meth:`tell_facts`."""
        self.tell_facts(lambda told: told.changed(values))

    def tell_facts(self, change: Callable[[Told], Told]) -> None:
        """Change the facts, and save them; if that fails, only this process knows them, and a warning says so."""
        with self._lock:
            self._write(change)
            if self._catalogue is None:
                return
            try:
                self._catalogue.put_told(self._told)
            except UnreadableCatalogue as error:
                warn(f"the new facts are not in the catalogue: {error}", CatalogueWarning)

    def _write(self, change: Callable[[Told], Told]) -> None:
        if self._file is None:
            self._told = self._bare(change(self._told))
            return
        try:
            with self._file.locked():
                kept = self._file.read()
                told = self._bare(change(self._told.merged(kept.told) if kept else self._told))
                copy_of = tuple(sorted({*self._copy_of, *(kept.copy_of if kept else ())}))
                self._file.write(Kept(self._file.place, told, self._identities(told, kept), copy_of))
                self._told, self._mark = told, self._file.mark()
        except OSError as error:
            self._told = self._bare(change(self._told))
            if self._told.facts:
                where = "in this process" if self._catalogue is None else "in this process and the catalogue"
                warn(f"the new facts are kept {where} only: {error}", CatalogueWarning)

    def _bare(self, told: Told) -> Told:
        """The facts without values of private columns in learned statements."""
        return told.bare(told.knowledge.withheld)

    def _identities(self, told: Told, kept: Kept | None) -> dict[str, TableIdentity]:
        """The identities of the tables with facts; for a missing table, the last known one."""
        found = dict(kept.tables) if kept else {}
        here = Tables(self._here, told.knowledge)
        found.update({id: here.identity(id) for id in told.tables() if id in self._here})
        return {id: found[id] for id in sorted(told.tables()) if id in found}

    def kept(self) -> Kept:
        """The facts, and the identities of their tables."""
        return Kept("", self.told, self._identities(self.told, None))

    def follow(self, other: KnowledgeStore) -> KnowledgeStore:
        """This store, for the tables of another one of the same source, which was opened later."""
        with self._lock:
            self._told, self._here = self.told.merged(other.told), other._here
        return self

    def union(self, other: KnowledgeStore, of_other: Iterable[str]) -> KnowledgeStore:
        """A store of present and future facts about the tables of both.

        Args:
            other: the store of the other tables.
            of_other: their ids.
        """
        return self if self is other else _Both(self, other, frozenset(of_other))

    def __getstate__(self) -> dict[str, Any]:
        # The tables have samples here, also of columns that may be hidden later. Columns that are hidden after pickling
        # are looked up in a file: a corpus of frames has no other place for them.
        if self._file is None and type(self) is KnowledgeStore:
            self._file = FactsFile.of_frames(secrets.token_hex(8))
        return {**self.__dict__, "_lock": None, "_here": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())


class _Both(KnowledgeStore):
    """The stores of two corpora that became one: each store keeps the facts about its own tables."""

    def __init__(self, first: KnowledgeStore, second: KnowledgeStore, of_second: frozenset[str]) -> None:
        super().__init__()
        self._first, self._second, self._of_second = first, second, of_second
        self._merged: tuple[Told, Told, Told] | None = None

    @property
    def told(self) -> Told:
        one, other = self._first.told, self._second.told
        if self._merged is None or self._merged[0] is not one or self._merged[1] is not other:
            self._merged = one, other, one.merged(other)
        return self._merged[2]

    def tell_facts(self, change: Callable[[Told], Told]) -> None:
        before = self.told
        after = change(before)
        for store, is_second in ((self._first, False), (self._second, True)):
            told = Told(
                {
                    key: value
                    for key, value in after.facts.items()
                    if before.facts.get(key) != value and (Told({key: value}).tables() <= self._of_second) is is_second
                }
            )
            if told.facts:
                store.tell_facts(lambda known, told=told: known.merged(told))  # type: ignore[misc]

    def adopt(self) -> int:
        return self._first.adopt() + self._second.adopt()

    def kept(self) -> Kept:
        one, other = self._first.kept(), self._second.kept()
        return Kept("", self.told, {**other.tables, **one.tables})


def _server(source: str) -> str:
    """A server's database without the user; "" for other sources."""
    scheme, slashes, rest = source.partition("://")
    return f"{scheme}{slashes}{rest.rpartition('@')[2]}" if slashes else ""


def _say_copied(table: str, column: str, other: str, relation: str) -> None:
    warn(
        f"{table}.{column} is private: the table {relation} a copy of one in {other}, where the column is private; "
        f"corpus.private({f'{table}.{column}'!r}, undo=True) undoes it",
        CopiedDataWarning,
    )


_LISTED = 20


@with_doors
class CorpusKeys(Shown):
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

    if TYPE_CHECKING:
        frame = frame

    def __init__(self, store: KnowledgeStore, profiles: Sequence[TableProfile], corpus: Any = None) -> None:
        self._store = store
        self._profiles = profiles
        self.corpus = corpus

    def add(self, key: str | ToldKey) -> None:
        """Declare that columns join: ``"orders.buyer = customers.id"``, the referencing side first.

        Retrieval, plans and merges treat the key as certain. Several pairs, joined by ``and``, form one composite key.

        Raises:
            InvalidArgument: another form, or not between two tables.
            TableNotFound, ColumnNotFound: an unknown name.
        """
        self._tell(key, True)

    def forbid(self, key: str | ToldKey) -> None:
        """Declare that columns do not join, against their names, their values, and the keys of the source.

        Raises:
            InvalidArgument, TableNotFound, ColumnNotFound: as :meth:`add`.
        """
        self._tell(key, False)

    def forget(self, key: str | ToldKey) -> None:
        """Undo :meth:`add` or :meth:`forbid` for these columns, and drop what a model said of them.

        Raises:
            InvalidArgument, TableNotFound, ColumnNotFound: as :meth:`add`.
        """
        self._tell(key, None)

    def _tell(self, key: str | ToldKey, joins: bool | None) -> None:
        fact, value = key_fact(read_key(key, self._profiles), bool(joins))
        of_model: dict[FactKey, Any] = {("checked", fact[1]): None} if joins is None else {}
        self._store.tell({fact: None if joins is None else value, **of_model})

    def __str__(self) -> str:
        known = self._store.known
        lines = [*map(str, known.keys), *(f"not {key}" for key in known.forbidden)]
        told = "\n  ".join(["declared keys of this corpus:", *lines]) if lines else "no declared keys of this corpus"
        return "\n".join([told, *self._inferred_lines()])

    def _inferred_lines(self) -> list[str]:
        found = self.frame()
        found = found[found["origin"] != "given"]
        more = [f"  and {len(found) - _LISTED} more: corpus.keys.frame()"] * (len(found) > _LISTED)
        lines = [f"  {key} ({chance:.2f})" for key, chance in zip(found["key"], found["chance"], strict=True)]
        return ["keys of the sources, with their chance:", *lines[:_LISTED], *more] if lines else []

    def _repr_html_(self) -> str:
        known = self._store.known
        told = ((known.keys, "declared as a key"), (known.forbidden, "declared as no key"))
        rows = [(str(key), said, "") for keys, said in told for key in keys]
        found = self.frame()
        found = found[found["origin"] != "given"]
        listed = found.head(_LISTED)
        chances = (f"{chance:.2f}" for chance in listed["chance"])
        rows += zip(listed["key"].astype(str), listed["origin"].astype(str), chances, strict=True)
        return rows_html(
            "keys of this corpus" if rows else str(self),
            ["columns", "as", "chance"],
            rows,
            {"columns", "as"},
            max(0, len(found) - _LISTED),
        )
