"""A corpus: tables of any sources, known by their profiles."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe import results
from tagframe.corpus.catalogue import Contents, IndexedSource, Origin, save
from tagframe.corpus.corpus_keys import CorpusKeys
from tagframe.corpus.facts import Facts, FactStore, View, VisibleFacts, facts_of_data
from tagframe.corpus.profile import TableProfile, narrowed_to, shape_of
from tagframe.corpus.references import Column, NamedTable, find_column
from tagframe.corpus.statements import Statement
from tagframe.corpus.stored_profiles import ComputedStore
from tagframe.corpus.tables_frame import TablesFrame, tables_frame
from tagframe.corpus.vectors import VectorStore
from tagframe.corpus_methods import CorpusMethods
from tagframe.display import Displayable, rows_html
from tagframe.engines.base import Engine
from tagframe.engines.hiding import Hiding, Visible, hiding, mentions, names_gone, narrowed, warn_of_computed
from tagframe.errors import (
    ColumnNotFound,
    InvalidArgument,
    NameUnknown,
    OtherVersion,
    SourceNotFound,
    TableNotFound,
    UnreadableTable,
    counted,
    did_you_mean,
)
from tagframe.version import __version__

_LISTED = 20


class Corpus(CorpusMethods, Displayable):
    """Tables to search and to join, made by :func:`tagframe.open_corpus`; immutable, cheap to subset and to pickle.

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
        facts: FactStore | None = None,
        computed: ComputedStore | None = None,
        part: str = "",
        under: Corpus | None = None,
        again: Callable[[], Corpus] | None = None,
    ) -> None:
        """A corpus of these profiles; without ``origins``, rows cannot be read (a schema only).

        Args:
            profiles: in any order.
            origins: by table id.
            root: the file or folder that the tables come from.
            is_whole: whether these are all its tables.
            problems: the tables that could not be read.
            vectors: the store of vectors.
            facts: the store of facts that people, queries and models gave.
            computed: the store of facts computed from its tables.
            part: a digest of what its sources have and it has not; "" for nothing.
            under: the corpus to which this one adds a table.
            again: opens the source again.

        Raises:
            InvalidArgument: two profiles have the same id.
        """
        self._unannotated = tuple(sorted(profiles, key=lambda profile: profile.id))
        ids = [profile.id for profile in self._unannotated]
        if len(set(ids)) < len(ids):
            twice = sorted({one for one, other in pairwise(ids) if one == other})
            raise InvalidArgument(f"table ids must be unique; several profiles have {', '.join(map(repr, twice))}")
        self._origins = dict(origins or {})
        self._root = root
        self._is_whole = is_whole
        self._problems = tuple(problems)
        self._vectors = VectorStore() if vectors is None else vectors
        self._facts = FactStore() if facts is None else facts
        self._computed = ComputedStore() if computed is None else computed
        self._part = part
        self._under = under
        self._again = again
        # What follows from these, made when it is needed.
        self._for_agents: tuple[tuple[TableProfile, ...], Corpus] | None = None
        self._applied: tuple[Facts, tuple[TableProfile, ...], dict[str, TableProfile]] | None = None
        self._names: tuple[tuple[TableProfile, ...], list[tuple[str, ...]]] | None = None

    def _of(self, profiles: Iterable[TableProfile], origins: Mapping[str, Origin], **changed: Any) -> Corpus:
        """A corpus of other tables that shares root, problems, vectors and facts with this one, if not ``changed``."""
        shared = ("root", "problems", "vectors", "facts", "computed", "part")
        kwargs = {name: getattr(self, f"_{name}") for name in shared} | {"is_whole": False} | changed
        return Corpus(profiles, origins, **kwargs)

    def _with(self, **changed: Any) -> Corpus:
        """A corpus of the same tables that differs in the ``changed`` arguments."""
        same = {name: getattr(self, f"_{name}") for name in ("is_whole", "under", "again")}
        return self._of(self._unannotated, self._origins, **same | changed)

    @property
    def profiles(self) -> tuple[TableProfile, ...]:
        """The profile of every table, sorted by id, with the facts that users gave about it."""
        return self._with_facts()[0]

    @property
    def _by_id(self) -> dict[str, TableProfile]:
        return self._with_facts()[1]

    def _with_facts(self) -> tuple[tuple[TableProfile, ...], dict[str, TableProfile]]:
        facts, known = self._facts.facts, self._applied
        if known is None or known[0] is not facts:
            profiles = facts.applied(self._unannotated)
            known = self._applied = facts, profiles, {profile.id: profile for profile in profiles}
        return known[1], known[2]

    @property
    def keys(self) -> CorpusKeys:
        """Your keys: ``corpus.keys.add("orders.buyer = customers.id")``, ``.forbid(…)``.

        They are kept with the other facts that you gave about the data, and subsets of this corpus have them, too.
        """
        return CorpusKeys(self._facts, self.profiles, self._key_pairs)

    def hide(self, *names: str) -> Corpus:
        """A corpus without some tables and columns: for it, they do not exist. This one stays as it is.

        Nothing of them is in the new corpus: no rows, no profile, no vector, no fact that names them, and so no prompt,
        message, catalogue or pickle of it. Tables do not join on them. To open data without ever reading the hidden
        cells, use ``open_corpus(…, hide=[…])``, or ``hide = […]`` in a ``tagframe.toml`` beside the data.

        Args:
            *names: tables, with or without their databases, and columns as ``table.column``. A name hides every table
                and column that has it.

        Warns:
            HidingWarning: a view or a generated column is computed from what is hidden. It can still be read; hide it
                by name, too, if it should not be.

        Raises:
            TableNotFound, ColumnNotFound: nothing has one of these names.
            InvalidArgument: what is given is not names.
        """
        if not names:
            return self
        made, again = self._without(Hiding("hide", names)), self._again
        return made if again is None else made._with(again=lambda: again().hide(*names))

    def _without(self, hidden: Hiding) -> Corpus:
        """The corpus of what is not on a list, with engines that offer nothing else."""
        if not hidden.part:
            return self
        shapes = {one.id: shape_of(one) for one in self._unannotated}
        visible = hidden.visible(shapes.values())
        hidden.check(shapes.values())
        changed = {id for id, shape in shapes.items() if visible.get(id) != shape.columns}
        if not changed:
            return self
        gone = names_gone((shapes.values(), visible))
        left = {shape.name: shape for shape in narrowed([*shapes.values()], visible, gone)}
        lost = {(id, name) for id, there in visible.items() for name in {*shapes[id].columns}.difference(there)}
        view = View({id: frozenset(columns) for id, columns in visible.items()}, gone, frozenset(lost))
        return self._of(
            [one if left[one.id] == shapes[one.id] else narrowed_to(one, left[one.id])
             for one in self._unannotated if one.id in left],
            self._offering(visible, changed),
            problems=[problem for problem in self._problems if not mentions(str(problem), gone)],
            vectors=VectorStore(),
            facts=VisibleFacts(self._facts, view),
            computed=ComputedStore(),
            part=self._part or "hidden",
        )  # fmt: skip

    def _offering(self, visible: Visible, changed: Collection[str]) -> dict[str, Origin]:
        """The origins of visible tables; the engines of the ``changed`` ones offer nothing else."""
        there: dict[int, dict[str, tuple[str, ...]]] = defaultdict(dict)
        engines: dict[int, Engine] = {}
        for table, origin in self._origins.items():
            if origin.engine is not None and table in changed:
                engines[id(origin.engine)] = origin.engine
            if table in visible:
                there[id(origin.engine)][origin.table] = visible[table]
        engines = {key: hiding(engine, there[key]) for key, engine in engines.items()}
        warn_of_computed(*engines.values())
        left = {table: origin for table, origin in self._origins.items() if table in visible}
        return {table: replace(one, engine=engines.get(id(one.engine), one.engine)) for table, one in left.items()}

    def private(self, *columns: str, undo: bool = False) -> None:
        """Keep the cells of columns for people: no prompt has them, and no statement of a model or an agent reads them.

        You read, join and merge the columns as ever. Operators refuse them by name, whole-row prompts leave them out,
        and every statement (``tf.ask``, ``tf.exec_sql``, ``run_sql`` of an agent) is refused if it names one, also
        your own: its rows may go to a model. The fact is kept with the data.

        If you rename such a column in a frame, or compute another one from it, tagframe does not know that.

        Args:
            *columns: ``table.column``, with or without the database.
            undo: make them ordinary columns again.

        Raises:
            TableNotFound, ColumnNotFound: no such table or column.
            InvalidArgument: a column to ``undo`` is listed as private where the data is opened.
        """
        named = [self._column(column) for column in columns]
        for table, _ in named:
            self._vectors.forget(table)  # they may be of the words of a model that had seen the cells
        self._facts.put({("private", column): None if undo else True for column in named})

    @property
    def private_columns(self) -> list[str]:
        """The private columns, as ``database.table.column``."""
        tables = sorted({table for table, _ in self._facts.facts.private})
        of_these = (self._by_id[table] for table in tables if table in self._by_id)
        return [f"{one.id}.{column.name}" for one in of_these for column in one.columns if column.private]

    def without_private(self) -> Corpus:
        """The corpus for agents: as :meth:`hide` of all private columns."""
        if self._for_agents is None or self._for_agents[0] is not self.profiles:
            self._for_agents = self.profiles, self.hide(*self.private_columns)
        return self._for_agents[1]

    def adopt(self, other: Corpus | str | Path) -> int:
        """Take the facts about other data for the tables that this corpus has, too: of a copy, or of a moved folder.

        Keys, descriptions, learned queries and models' texts are taken, and replace those that this corpus has of the
        same tables and columns. A table is the one with the same id here, or else the only one with the same name.
        Nothing is written there, and later facts there are not taken.

        Args:
            other: a corpus, or the path that data had when facts were given about it. A server is opened first, and
                given as a corpus.

        Returns:
            How many facts are new or different here.

        Raises:
            SourceNotFound: nothing is known about the data at this path.
            UnreadableFacts: the facts cannot be read.
        """
        facts = other._facts.facts if isinstance(other, Corpus) else facts_of_data(other)
        return self._facts.adopt(facts, self.ids)

    @property
    def learned(self) -> pd.DataFrame:
        """The statements learned about these tables: a row for each, the most frequent first.

        Columns are question, sql (with ``?`` for literals that are not kept), tables (a list of ids), joins (a list),
        runs (how often it was run), learned_by ("queries", "user" for corrections, or who verified it) and at (when it
        was learned).
        Values of private columns are left out.
        """
        ordered = sorted(self._learned(), key=lambda one: (-one.times, -one.at, one.fact))
        rows = [
            (one.question, one.text, list(one.tables), list(map(str, one.joins)), one.times,
             one.verified_by or one.by, pd.Timestamp(one.at, unit="s", tz="UTC"))
            for one in ordered
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=["question", "sql", "tables", "joins", "runs", "learned_by", "at"])

    def _learned(self) -> tuple[Statement, ...]:
        """The statements over these tables, the earliest first, without values of private columns."""
        private, ids = private_of(self), self._by_id.keys()
        here = (one for one in self._facts.facts.statements if ids >= set(one.tables))
        return tuple(one.without_cells() if private and one.reads(private) else one for one in here)

    def _column(self, name: str) -> Column:
        return find_column(name, list(map(NamedTable.of, self.profiles)))

    @property
    def ids(self) -> tuple[str, ...]:
        """The id of every table, sorted: ``database.table``."""
        return tuple(self._by_id)

    def refresh(self) -> Corpus:
        """The corpus as its source is now: opened again with the same arguments; this one stays as it is.

        Only tables that have changed are profiled; keys, profiles and vectors of the others are kept. Threads may call
        it at the same time.

        Raises:
            InvalidArgument: this corpus is a part of another one, or comes from a pickle: there is nothing to open.
            SourceNotFound, UnreadableTable, ServerGone, …: as :func:`tagframe.open_corpus`.
        """
        if self._again is None:
            raise InvalidArgument("only a corpus that tagframe.open_corpus gave in this process is refreshed")
        now = self._again()
        return now._with(facts=self._facts.follow(now._facts))  # facts given to one of them hold for both

    def is_like(self, other: Corpus) -> bool:
        """Whether another corpus has the same tables, of the same state of their files."""
        return self._by_id == other._by_id and self._origins == other._origins

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):  # pandas, notebooks and others look for their protocols, again and again
                raise NameUnknown(f"Corpus has no attribute {name!r}")
            public = [known for known in dir(self) if not known.startswith("_")]
            raise NameUnknown(f"Corpus has no attribute {name!r}: {did_you_mean(name, public)}")

    def __getstate__(self) -> dict[str, Any]:
        # Another process opens nothing again, and makes what follows itself.
        left = dict.fromkeys(["_again", "_names", "_applied", "_for_agents"])
        return {**self.__dict__, **left, "version": __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        version = state.pop("version", "of another version")
        if version != __version__:
            raise OtherVersion(
                f"this corpus was pickled by tagframe {version}, and this is {__version__}: "
                "open the source again with tagframe.open_corpus"
            )
        self.__dict__.update(state)

    @property
    def problems(self) -> tuple[UnreadableTable, ...]:
        """The tables of the source that could not be read; they are not in the corpus."""
        return self._problems

    @property
    def tables(self) -> TablesFrame:
        """A frame with a row for each table, which remembers its corpus.

        Its columns are id, database, table, rows (Int64, NA if only the schema is known), columns (the number) and
        column_names (a list).
        """
        profiles = self.profiles
        if self._names is None or self._names[0] is not profiles:
            # A question begins with this frame. For a lake, the names are read from its catalogue; many are equal.
            names = [tuple(sys.intern(str(column.name)) for column in profile.columns) for profile in profiles]
            self._names = profiles, names
        return tables_frame(self, self._names[1])

    def __len__(self) -> int:
        return len(self.profiles)

    def __iter__(self) -> Iterator[TableProfile]:
        return iter(self.profiles)

    def __getitem__(self, id: str) -> pd.DataFrame:
        """``corpus["orders"]``: the rows of a table, as :meth:`read` gives them.

        Raises:
            TableNotFound: no such table, or several with that bare name.
        """
        if not isinstance(id, str):
            raise InvalidArgument(
                f"corpus[…] takes the name of one table; got {id!r}. corpus.read(…) takes columns and a limit, and "
                "corpus.subset(…) gives a corpus of several tables"
            )
        return self.read(id)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.ids)

    def __contains__(self, id: object) -> bool:
        return id in self._by_id

    def __str__(self) -> str:
        databases = {profile.database for profile in self.profiles}
        names = ", ".join(self.ids[:5]) + (", …" if len(self) > 5 else "")
        counts = f"{counted(len(self), 'table')} of {counted(len(databases), 'database')}"
        return f"Corpus({counts}: {names})" if self.profiles else "Corpus(no tables)"

    def _repr_html_(self) -> str:
        rows = [
            (one.id, "" if one.rows is None else f"{one.rows:,}", f"{len(one.columns):,}")
            for one in self.profiles[:_LISTED]
        ]
        heading = str(self).partition(":")[0].removeprefix("Corpus(").rstrip(")")
        return rows_html(heading, ["table", "rows", "columns"], rows, {"table"}, max(0, len(self) - _LISTED))

    def profile(self, id: str) -> TableProfile:
        """The profile of a table, by its id, or by its bare name if only one table has it; case is ignored.

        Raises:
            TableNotFound: no such table, or several of that bare name.
        """
        if (known := self._by_id.get(id)) is not None:
            return known
        wanted = str(id).casefold()
        for nameable in ("id", "name"):
            matches = [profile for profile in self.profiles if getattr(profile, nameable).casefold() == wanted]
            if len(matches) == 1:
                return matches[0]
            if matches:
                ids = ", ".join(repr(profile.id) for profile in matches)
                raise TableNotFound(f"{id!r} is the name of {len(matches)} tables; choose one: {ids}")
        names = [profile.id if "." in wanted else profile.name for profile in self.profiles]
        raise TableNotFound(f"no table {id!r} in {did_you_mean(str(id), names)}")

    def read(self, id: str, columns: Sequence[str] | None = None, *, limit: int | None = None) -> pd.DataFrame:
        """The rows of a table, as they are in the source now.

        Integers are never converted to floats: with nulls they are ``Int64``. Text stays text. Each source's rules are
        those of its engine, such as :class:`~tagframe.engines.sqlite.engine.SQLiteEngine`.

        Args:
            id: as for :meth:`profile`.
            columns: which of them, in this order; None for all.
            limit: the largest number of rows; None for all.

        Raises:
            TableNotFound: no such table.
            ColumnNotFound: no such column.
            SourceNotFound: the file is no longer there, or only a schema is known.
            UnreadableTable: the rows cannot be read.
        """
        profile = self.profile(id)
        if isinstance(columns, str):
            raise InvalidArgument(f"columns must be a list of names; got the text {columns!r}: write [{columns!r}]")
        names = [column.name for column in profile.columns]
        for column in columns or ():
            if column not in names:
                raise ColumnNotFound(f"no column {column!r} in {profile.id}: {did_you_mean(column, names)}")
        if limit is not None and limit < 0:
            raise InvalidArgument(f"limit must be a number of rows, 0 or more; got {limit!r}")
        frame = self._scan(profile, columns, limit)
        private = frozenset(column.name for column in profile.columns if column.private)
        described = {column.name: column.description for column in profile.columns if column.description}
        results.remember(
            frame, table=profile.id, private=private & {*frame.columns} or None, descriptions=described or None
        )
        return frame

    def _scan(self, profile: TableProfile, columns: Sequence[str] | None, limit: int | None = None) -> pd.DataFrame:
        origin = self._origins.get(profile.id)
        if origin is None or origin.engine is None:
            why = "only its schema is known" if self._root is None else f"{self._root} is not there any more"
            raise SourceNotFound(f"the rows of {profile.id} cannot be read: {why}")
        if origin.engine.path is not None and not origin.engine.path.exists():
            raise SourceNotFound(f"the rows of {profile.id} cannot be read: there is no file {origin.engine.path}")
        return origin.engine.scan(origin.table, columns, limit)

    def engine(self, id: str) -> Engine | None:
        """The engine of the table; None if the source is gone, or only a schema is known.

        Raises:
            TableNotFound: no such table.
        """
        origin = self._origins.get(self.profile(id).id)
        return origin.engine if origin else None

    def source_table(self, id: str) -> str:
        """The name of the table in its source.

        Raises:
            TableNotFound: no such table.
        """
        profile = self.profile(id)
        return self._origins[profile.id].table if profile.id in self._origins else profile.name

    def subset(self, ids: Iterable[str]) -> Corpus:
        """A corpus of only these tables; it shares vectors and catalogue with this one.

        Raises:
            TableNotFound: an id that is not here.
        """
        profiles = {profile.id: profile for profile in self._unannotated}
        chosen = {id: profiles[id] for id in dict.fromkeys(self.profile(id).id for id in ids)}
        origins = {id: self._origins[id] for id in chosen if id in self._origins}
        return self._of(chosen.values(), origins, is_whole=self._is_whole and len(chosen) == len(self))

    def union(self, other: Corpus) -> Corpus:
        """A corpus with the tables of both; vectors and facts are kept where this corpus keeps them.

        Raises:
            InvalidArgument: both have a table with the same id.
        """
        return self._of(
            [*self._unannotated, *other._unannotated],
            {**self._origins, **other._origins},
            problems=(*self._problems, *other._problems),
            facts=self._facts.union(other._facts, (profile.id for profile in other._unannotated)),
            part=self._part or other._part,
        )

    def save(self, path: str | Path) -> Path:
        """Write the catalogue of this corpus to a file that :func:`tagframe.open_corpus` opens.

        Rows are not copied: they are read from the sources. A source is searched at its current path, and at the same
        path relative to the catalogue. A catalogue at ``path`` is replaced, another file is not.

        Returns:
            The path.

        Raises:
            UnreadableCatalogue: ``path`` is another kind of file, or cannot be written.
        """
        return save(Path(path), self._contents(), self._vectors.known(self.ids), self._computed.known())

    def _contents(self) -> Contents:
        sources: dict[str, IndexedSource] = {}
        tables: dict[str, dict[str, TableProfile]] = defaultdict(dict)
        for profile in self._unannotated:
            origin = self._origins.get(profile.id) or Origin(key="schema", table=profile.id, kind="schema")
            tables[origin.key][origin.table] = profile
            seen = dict.fromkeys(tables[origin.key], origin.stamp.sha256) if origin.stamp else {}
            own = tables[origin.key]
            sources[origin.key] = IndexedSource(origin.key, origin.kind, origin.stamp, own, seen, origin.notes)
        ids = None if self._is_whole else self.ids
        return Contents(self._root, ids, sources, self._facts.facts, self._part)


# Functions for the rooms above, not for users.


def with_roles(corpus: Corpus, tables: Mapping[str, str]) -> Corpus:
    """A corpus of some tables under ids of a plan, which may have a table in several roles.

    Args:
        corpus: with the tables.
        tables: id in the plan → id of the table.
    """
    subset = corpus.subset(tables.values())
    profiles = [corpus.profile(table) for table in tables.values()]
    origins = {id: subset._origins[table] for id, table in tables.items() if table in subset._origins}
    renamed = [replace(profile, id=id) for id, profile in zip(tables, profiles, strict=True)]
    return corpus._of(renamed, origins, under=corpus._under)


def without_views(corpus: Corpus, but: Collection[str] = ()) -> Corpus:
    """A corpus without the views of its own tables, whose rows it has already.

    Args:
        corpus: of tables and views.
        but: ids of views that stay.
    """
    views = [one for one in corpus.profiles if one.computed_from and one.id not in but]
    gone = {view.id for view in views if all(id in corpus for id in view.computed_from)}
    return corpus.subset(id for id in corpus.ids if id not in gone) if gone else corpus


def computed_of(corpus: Corpus) -> ComputedStore:
    """The store of facts computed from a corpus' tables, such as the keys between them."""
    return corpus._computed


def vectors_of(corpus: Corpus) -> VectorStore:
    """The store of vectors of a corpus' tables, for :func:`tagframe.corpus.corpus_vectors`."""
    return corpus._vectors


def fact_store(corpus: Corpus) -> FactStore:
    """The store of facts that people, queries and models gave about a corpus."""
    return corpus._facts


def private_of(corpus: Corpus) -> frozenset[Column]:
    """The private columns of a corpus, by table and name."""
    return corpus._facts.facts.private


def statements_of(corpus: Corpus) -> tuple[Statement, ...]:
    """The statements learned over tables of a corpus, the earliest first, without values of private columns."""
    return corpus._learned()


def under(corpus: Corpus) -> Corpus | None:
    """The corpus below this one, to which this one adds a table; None if there is none."""
    return corpus._under


def laid_over(corpus: Corpus, under: Corpus) -> Corpus:
    """The first corpus, marked as the second one with one table added or replaced."""
    return corpus._with(under=under)


def applied(hide: Hiding, private: Hiding, corpus: Corpus) -> Corpus:
    """A corpus that is in memory, or comes from a catalogue, with what its lists say."""
    made = corpus._without(hide)
    made._facts.list_private(private_columns(private, made._unannotated, hide))
    return made


def private_columns(names: Hiding, profiles: Sequence[TableProfile], hide: Hiding) -> frozenset[Column]:
    """The columns of some tables that are on a list of private ones.

    Args:
        names: the list.
        profiles: of the tables.
        hide: the list of what is not there, which may have the same names.

    Raises:
        TableNotFound, ColumnNotFound: the caller names what is not there.
    """
    if not names.part:
        return frozenset()
    shapes = [shape_of(one) for one in profiles]
    left = names.visible(shapes)
    names.check(shapes, but=hide)
    return frozenset((one.name, name) for one in shapes for name in {*one.columns}.difference(left.get(one.name, ())))


def opened_by(corpus: Corpus, again: Callable[[], Corpus]) -> Corpus:
    """A corpus that ``again`` opens anew."""
    return corpus._with(again=again)
