"""The identity of a table, wherever it is: columns hidden in it are hidden in its copies; other facts are offered."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tagframe.corpus.profile import TableProfile
from tagframe.corpus.told.facts import KINDS, Knowledge, Told, plain_name
from tagframe.engines.registry import ENGINES

_SHOWN = 64
"""The number of a table's values by which its copy is recognised."""
_KIN = 0.5
"""The share of these values that a changed copy still has."""
_CONVERTED, _MANY = 0.9, 16
"""For tables in sources of different kinds: the share of values, and the number needed: small tables are similar by
chance."""


@dataclass(frozen=True)
class TableIdentity:
    """The identity of a table, wherever it is.

    Attributes:
        source: its file, relative to the opened source; for a server, the kind of the server.
        table: its name there.
        name: its name in the corpus.
        columns: the names of its columns.
        sha256: of its file's content, if known.
        alone: whether its file holds no other table.
        values: hashes of some values of columns that are not hidden, to recognise a changed copy.
    """

    source: str
    table: str
    name: str
    columns: tuple[str, ...]
    sha256: str = ""
    alone: bool = False
    values: frozenset[str] = frozenset()

    def is_similar(self, other: TableIdentity) -> bool:
        """Whether the two have the same name and columns, and mostly the same values.

        If their formats differ, or one is on a server, nearly all of many values must be the same.
        """
        if self.name.casefold() != other.name.casefold() or (
            sorted(map(plain_name, self.columns)) != sorted(map(plain_name, other.columns))
        ):
            return False
        both = len(self.values & other.values)
        fewer = min(len(self.values), len(other.values))
        if _kind(self.source) == _kind(other.source):
            return bool(both) and both >= _KIN * fewer
        return fewer >= _MANY and both >= _CONVERTED * fewer

    def to_json(self) -> dict[str, Any]:
        """Plain values that :meth:`from_json` reads."""
        return {**vars(self), "columns": list(self.columns), "values": sorted(self.values)}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> TableIdentity:
        """Read what :meth:`to_json` wrote."""
        return cls(**{**plain, "columns": tuple(plain["columns"]), "values": frozenset(plain["values"])})


def _kind(source: str) -> str:
    """The format of a file, or the kind of a server."""
    name = PurePosixPath(source).name.lower()
    return next((s[0] for s in ENGINES if name.endswith(s)), PurePosixPath(name).suffix or source)


@dataclass(frozen=True)
class OpenedTable:
    """A table of a corpus, and where it comes from.

    Attributes:
        profile: of the table.
        source, table, sha256, alone: as in :class:`TableIdentity`.
    """

    profile: TableProfile
    source: str
    table: str
    sha256: str = ""
    alone: bool = False


Elsewhere = tuple[Told, dict[str, Told], Told]
"""The facts of another source that are about the same data: those of files that were moved here, or that both sources
have; the hidden columns of files whose copies are here, by what a table then "is", or only "looks like"; and other
facts of these files, which hold here only if the user takes them."""


def _file_of(place: str, source: str) -> Path | None:
    """The file of a table, by the place of its source; None for a server."""
    if "://" in place:
        return None
    path = Path(place)
    return path / source if path.is_dir() and not source.endswith("/") else path


def _is_older(ours: Path | None, theirs: Path | None) -> bool:
    """Whether a file was there before another one: a copy has the times of its original, except that of its making."""
    try:
        return ours is not None and theirs is not None and ours.stat().st_ctime_ns < theirs.stat().st_ctime_ns
    except OSError:
        return False


class Tables:
    """The tables of a corpus, to find the tables that facts were told about.

    Args:
        tables: by their ids.
        known: the told facts: values of hidden columns are not looked at.
    """

    def __init__(self, tables: Mapping[str, OpenedTable], known: Knowledge) -> None:
        self._tables = tables
        self._known = known
        self._by_source = {(one.source, one.table): id for id, one in tables.items()}
        self._by_name: dict[str, list[str]] = defaultdict(list)
        self._by_content: dict[str, list[str]] = defaultdict(list)
        for id, one in tables.items():
            self._by_name[one.profile.name.casefold()].append(id)
            if one.sha256:
                self._by_content[one.sha256].append(id)

    def identity(self, id: str) -> TableIdentity:
        """The identity of the table."""
        one = self._tables[id]
        profile = one.profile
        values = [
            hashlib.sha256(f"{column.name}\n{sample}".encode("utf-8", "replace")).hexdigest()[:12]
            for column in profile.columns
            if (id, column.name) not in self._known.withheld
            for sample in column.samples
        ]
        names = tuple(column.name for column in profile.columns)
        return TableIdentity(
            one.source, one.table, profile.name, names, one.sha256, one.alone, frozenset(values[:_SHOWN])
        )

    def known_again(self, told: Told, identities: Mapping[str, TableIdentity]) -> Told:
        """The facts of tables that now have another id, or are here a second time.

        If a table with a hidden column is gone, the column is hidden in all tables with its name and such a column.

        Args:
            told: the facts of this source.
            identities: the last known identities of its tables.
        """
        moved: dict[str, list[str]] = {}
        called: dict[str, list[str]] = {}
        for id in sorted(told.tables()):
            before = identities.get(id)
            copies = [] if before is None else self._copies(before)
            if id not in self._tables:
                here = None if before is None else self._by_source.get((before.source, before.table))
                moved[id] = [here] if here is not None else copies
                name = before.name if before is not None else id.rpartition(".")[2]
                called[id] = self._called(name)
            called[id] = [*called.get(id, []), *(copy for copy in copies if copy != id)]
        standing = told.standing()
        return standing.translated(moved).merged(standing.translated(called, ["hidden"]))

    def told_elsewhere(
        self, told: Told, identities: Mapping[str, TableIdentity], there: str, here: str, *, may_be_ours: bool = True
    ) -> Elsewhere:
        """The facts of another source that are about the same data.

        Facts of a file that was moved here, or that is opened as part of two sources, hold here. Of those of another
        file with the same data only hiding does, and only if the file here is its copy: whichever is newer is the copy.

        Args:
            told: the facts of the other source.
            identities: of its tables.
            there, here: the places of the two sources.
            may_be_ours: whether a file there may be the one that was copied; otherwise those here were.
        """
        found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for id, identity in identities.items():
            theirs, exact = _file_of(there, identity.source), self._copies(identity)
            is_gone = theirs is not None and not os.path.lexists(theirs)
            likely = [] if exact else [o for o in self._called(identity.name) if identity.is_similar(self.identity(o))]
            for own in [*exact, *likely]:
                ours = _file_of(here, self._tables[own].source)
                is_one = ours is not None and theirs is not None and ours.resolve() == theirs.resolve()
                if exact and (is_gone or is_one):
                    found["same"][id].append(own)
                elif is_gone or (may_be_ours and not _is_older(ours, theirs)):
                    found["copies"][id].append(own)
                    found["is" if exact else "looks like"][id].append(own)
        standing = told.standing()
        hidden = {relation: standing.translated(found[relation], ["hidden"]) for relation in ("is", "looks like")}
        others = [kind for kind in KINDS if kind != "hidden"]
        return standing.translated(found["same"]), hidden, standing.translated(found["copies"], others)

    def _called(self, name: str) -> list[str]:
        return self._by_name.get(name.casefold(), [])

    def _copies(self, of: TableIdentity) -> list[str]:
        """The same table in files with the same bytes."""
        same = [(id, self._tables[id]) for id in self._by_content.get(of.sha256, [])]
        return [id for id, one in same if of.table == one.table or (of.alone and one.alone)]
