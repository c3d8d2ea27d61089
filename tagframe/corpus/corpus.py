"""A corpus: tables of any sources, known by their profiles."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from tagframe import results
from tagframe.corpus.catalogue import Catalogue, Contents, IndexedSource, Stamp, is_catalogue
from tagframe.corpus.documents import column_document, table_document
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.tables import TablesFrame, tables_frame
from tagframe.corpus.vectors import CorpusVectors, VectorStore, corpus_vectors
from tagframe.engines.base import Source
from tagframe.errors import (
    ColumnNotFound,
    InvalidArgument,
    SourceNotFound,
    TableNotFound,
    UnreadableCatalogue,
    UnreadableTable,
    did_you_mean,
)

if TYPE_CHECKING:
    from tagframe.embed import Embedder


@dataclass(frozen=True)
class Origin:
    """Where a table of a corpus comes from.

    Attributes:
        key: what a catalogue calls the source.
        table: the table's name in the source.
        kind: of the source.
        source: reads it; None where the source is not there any more.
        stamp: of the source when it was profiled; None for frames.
    """

    key: str
    table: str
    kind: str
    source: Source | None = None
    stamp: Stamp | None = None


class Corpus:
    """Tables to search and to join. Made by :func:`tagframe.open_corpus`; immutable, and cheap to narrow and pickle.

    >>> import pandas as pd, tagframe as tf
    >>> corpus = tf.open_corpus({"bank.loan": pd.DataFrame({"id": [1, 2]}), "bank.client": pd.DataFrame({"id": [1]})})
    >>> corpus
    Corpus(2 tables of 1 database: bank.client, bank.loan)
    >>> corpus.profile("Loan").rows
    2
    """

    def __init__(
        self,
        profiles: Iterable[TableProfile],
        origins: Mapping[str, Origin] | None = None,
        *,
        root: Path | None = None,
        is_whole: bool = True,
        problems: Sequence[UnreadableTable] = (),
        vectors: VectorStore | None = None,
    ) -> None:
        """A corpus of these profiles; without ``origins`` one whose rows cannot be read (a schema only).

        Args:
            profiles: in any order.
            origins: by table id.
            root: the file or folder that the tables come from.
            is_whole: whether these are all tables of it.
            problems: what could not be read there.
            vectors: where vectors are kept.

        Raises:
            InvalidArgument: two profiles of one id.
        """
        self._profiles = tuple(sorted(profiles, key=lambda profile: profile.id))
        self._by_id = {profile.id: profile for profile in self._profiles}
        if len(self._by_id) < len(self._profiles):
            ids = [profile.id for profile in self._profiles]
            twice = sorted({one for one, other in pairwise(ids) if one == other})
            raise InvalidArgument(f"table ids are unique; more than one profile is of {', '.join(map(repr, twice))}")
        self._origins = dict(origins or {})
        self._root = root
        self._is_whole = is_whole
        self._problems = tuple(problems)
        self._vectors = VectorStore() if vectors is None else vectors
        self._named: tuple[TableProfile, ...] = ()

    @property
    def profiles(self) -> tuple[TableProfile, ...]:
        """The profile of every table, sorted by id."""
        return self._profiles

    @property
    def ids(self) -> tuple[str, ...]:
        """The id of every table, sorted: ``database.table``."""
        return tuple(self._by_id)

    @property
    def problems(self) -> tuple[UnreadableTable, ...]:
        """What of the source could not be read; these tables are not in the corpus."""
        return self._problems

    @property
    def tables(self) -> TablesFrame:
        """The catalogue: a frame with a row for each table, which remembers its corpus.

        Columns are id, database, table, rows (Int64, NA where only the schema is known), columns (how many) and
        column_names (a list).
        """
        return tables_frame(self)

    def __len__(self) -> int:
        return len(self._profiles)

    def __iter__(self) -> Iterator[TableProfile]:
        return iter(self._profiles)

    def __contains__(self, id: object) -> bool:
        return id in self._by_id

    def __repr__(self) -> str:
        databases = {profile.database for profile in self._profiles}
        shown = ", ".join(self.ids[:5]) + (", …" if len(self) > 5 else "")
        counts = f"{_counted(len(self), 'table')} of {_counted(len(databases), 'database')}"
        return f"Corpus({counts}: {shown})" if self._profiles else "Corpus(no tables)"

    def profile(self, id: str) -> TableProfile:
        """The profile of a table, by its id, or by its bare name where that is one table's only; case does not count.

        Raises:
            TableNotFound: no such table, or several of that bare name.
        """
        if id in self._by_id:
            return self._by_id[id]
        wanted = str(id).casefold()
        for nameable in ("id", "name"):
            found = [profile for profile in self._profiles if getattr(profile, nameable).casefold() == wanted]
            if len(found) == 1:
                return found[0]
            if found:
                ids = ", ".join(repr(profile.id) for profile in found)
                raise TableNotFound(f"{id!r} is the name of {len(found)} tables; say which: {ids}")
        raise TableNotFound(f"no table {id!r} in {_did_you_mean_table(str(id), self._profiles)}")

    def read(self, id: str, columns: Sequence[str] | None = None, *, limit: int | None = None) -> pd.DataFrame:
        """The rows of a table, as they are in the source now.

        Integers are never turned into floats: beside nulls they are ``Int64``. Text stays text. See
        :class:`~tagframe.engines.sqlite.SQLiteSource` and :mod:`tagframe.engines.files` for each source's rules.

        Args:
            id: as for :meth:`profile`.
            columns: which of them, in this order; None for all.
            limit: rows at most; None for all.

        Raises:
            TableNotFound: no such table.
            ColumnNotFound: no such column.
            SourceNotFound: the file is no longer there, or only a schema is known.
            UnreadableTable: the rows cannot be read.
        """
        profile = self.profile(id)
        if isinstance(columns, str):
            raise InvalidArgument(f"columns is a list of names; got the text {columns!r}, say [{columns!r}]")
        names = [column.name for column in profile.columns]
        for column in columns or ():
            if column not in names:
                raise ColumnNotFound(f"no column {column!r} in {profile.id}: {did_you_mean(column, names)}")
        if limit is not None and limit < 0:
            raise InvalidArgument(f"limit is a number of rows, at least 0; got {limit!r}")
        origin = self._origins.get(profile.id)
        if origin is None or origin.source is None:
            place = "only its schema is known" if self._root is None else f"{self._root} is not there any more"
            raise SourceNotFound(f"the rows of {profile.id} cannot be read: {place}")
        if origin.source.path is not None and not origin.source.path.exists():
            raise SourceNotFound(f"the rows of {profile.id} cannot be read: there is no file {origin.source.path}")
        frame = origin.source.read(origin.table, columns, limit)
        results.remember(frame, table=profile.id)
        return frame

    def sqlite_file(self, id: str) -> Path | None:
        """The SQLite file that holds the table; None where it comes from elsewhere.

        Raises:
            TableNotFound: no such table.
        """
        origin = self._origins.get(self.profile(id).id)
        return origin.source.path if origin and origin.source and origin.source.kind == "sqlite" else None

    def source_table(self, id: str) -> str:
        """What the table is called in its source.

        Raises:
            TableNotFound: no such table.
        """
        profile = self.profile(id)
        return self._origins[profile.id].table if profile.id in self._origins else profile.name

    def subset(self, ids: Iterable[str]) -> Corpus:
        """The corpus of these tables only; it shares vectors and catalogue with this one.

        Raises:
            TableNotFound: an id that is not here.
        """
        kept = {profile.id: profile for profile in map(self.profile, ids)}
        return Corpus(
            kept.values(),
            {id: self._origins[id] for id in kept if id in self._origins},
            root=self._root,
            is_whole=self._is_whole and len(kept) == len(self),
            problems=self._problems,
            vectors=self._vectors,
        )

    def union(self, other: Corpus) -> Corpus:
        """The tables of both; vectors are kept where this corpus keeps them.

        Raises:
            InvalidArgument: an id that both have.
        """
        return Corpus(
            [*self._profiles, *other._profiles],
            {**self._origins, **other._origins},
            root=self._root,
            is_whole=False,
            problems=(*self._problems, *other._problems),
            vectors=self._vectors,
        )

    def text(self, id: str, *, hide_database: bool = False) -> str:
        """A table as the text that is embedded for it: words of its database's, its own and its columns' names.

        Raises:
            TableNotFound: no such table.
        """
        return table_document(self.profile(id), hide_database=hide_database)

    def column_texts(self, id: str) -> list[str]:
        """The columns of a table as the texts that are embedded for them, in order.

        Raises:
            TableNotFound: no such table.
        """
        profile = self.profile(id)
        return [column_document(profile, column) for column in profile.columns]

    def vectors(
        self, embedder: Embedder, *, hide_database: bool = False, named: Sequence[TableProfile] | None = None
    ) -> CorpusVectors:
        """The vectors of all tables and columns, computed once and kept in the catalogue.

        Args:
            embedder: see :func:`tagframe.embed.get_embedder`.
            hide_database: whether the texts of tables leave out their database's name.
            named: the same tables in the same order under other names, to be encoded in place of their own.
        """
        profiles = self._profiles if named is None else named
        self._named = tuple(profiles)
        return corpus_vectors(profiles, embedder, self._vectors, hide_database=hide_database)

    def save(self, path: str | Path) -> Path:
        """Write the catalogue of this corpus to a file that :func:`tagframe.open_corpus` opens.

        Rows are not copied: they are read from the sources, which are looked for where they are now, or at the same
        place as seen from the catalogue. A catalogue at ``path`` is replaced, another file is not.

        Returns:
            The path.

        Raises:
            UnreadableCatalogue: ``path`` is another kind of file, or cannot be written.
        """
        target = Path(path)
        if target.exists() and not (target.is_file() and is_catalogue(target)):
            raise UnreadableCatalogue(f"{target} is not a catalogue, and is left as it is; save to another path")
        documents: set[str] = set()
        for profile in (*self._profiles, *self._named):
            documents.update(table_document(profile, hide_database=hidden) for hidden in (False, True))
            documents.update(column_document(profile, column) for column in profile.columns)
        # Written aside and moved, so that nobody ever opens half a catalogue.
        draft = Catalogue(target.with_name(f".{target.name}.{os.getpid()}"))
        try:
            draft.write(self._contents())
            for embedder, vectors in self._vectors.known(documents).items():
                draft.add_vectors(embedder, vectors)
            draft.path.replace(target)
        except OSError as error:
            raise UnreadableCatalogue(f"the catalogue {target} cannot be written: {error}") from error
        finally:
            draft.delete()
        return target

    def _contents(self) -> Contents:
        sources: dict[str, IndexedSource] = {}
        tables: dict[str, dict[str, TableProfile]] = defaultdict(dict)
        for profile in self._profiles:
            origin = self._origins.get(profile.id) or Origin(key="schema", table=profile.id, kind="schema")
            tables[origin.key][origin.table] = profile
            sources[origin.key] = IndexedSource(origin.key, origin.kind, origin.stamp, tables[origin.key])
        return Contents(self._root, None if self._is_whole else self.ids, sources)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _did_you_mean_table(name: str, profiles: Collection[TableProfile]) -> str:
    known = [profile.id for profile in profiles]
    return did_you_mean(name, known if "." in name else [profile.name for profile in profiles])
