"""A corpus: tables of any sources, known by their profiles."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe import results
from tagframe import version as this
from tagframe.corpus.catalogue import Contents, IndexedSource
from tagframe.corpus.catalogue_file import FactStore, Origin, save
from tagframe.corpus.hiding import (
    Lists,
    View,
    VisibleFacts,
    checked_names,
    unmatched_error,
    warn_of_computed,
    with_private,
)
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.references import Column, NamedTable, find_column
from tagframe.corpus.refreshing import Refreshing, changes
from tagframe.corpus.statements import Statement
from tagframe.corpus.tables_frame import TablesFrame, tables_frame
from tagframe.corpus.told.facts import MODELS, FactKey, Knowledge, Told
from tagframe.corpus.told.files import write_facts
from tagframe.corpus.told.store import CorpusKeys, KnowledgeStore
from tagframe.corpus.vectors import VectorStore
from tagframe.display import Shown, rows_html
from tagframe.doors import with_doors
from tagframe.engines.base import Engine
from tagframe.engines.hiding import Hiding
from tagframe.errors import (
    ColumnNotFound,
    InvalidArgument,
    OtherVersion,
    SourceNotFound,
    TableNotFound,
    UnreadableTable,
    counted,
    did_you_mean,
    suggesting_names,
)

if TYPE_CHECKING:
    from tagframe.accessor.corpus_doors import (
        annotate,
        check_keys,
        describe,
        forget,
        learn,
        retrieve_tables,
        to_ossie,
        tools,
    )

_LISTED = 20


@with_doors
class Corpus(Shown):
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
        knowledge: KnowledgeStore | None = None,
        facts: FactStore | None = None,
        part: str = "",
        private: frozenset[Column] = frozenset(),
    ) -> None:
        """A corpus of these profiles; without ``origins``, rows cannot be read (a schema only).

        Args:
            profiles: in any order.
            origins: by table id.
            root: the file or folder that the tables come from.
            is_whole: whether these are all its tables.
            problems: the tables that could not be read.
            vectors: the store of vectors.
            knowledge: the store of facts told by the user.
            facts: the store of facts computed from its tables.
            part: a digest of what its sources have and it has not; "" for nothing.
            private: the private columns beside those that the store knows.

        Raises:
            InvalidArgument: two profiles have the same id.
        """
        self._found = tuple(sorted(profiles, key=lambda profile: profile.id))
        ids = [profile.id for profile in self._found]
        if len(set(ids)) < len(ids):
            twice = sorted({one for one, other in pairwise(ids) if one == other})
            raise InvalidArgument(f"table ids must be unique; several profiles have {', '.join(map(repr, twice))}")
        self._origins = dict(origins or {})
        self._root = root
        self._is_whole = is_whole
        self._problems = tuple(problems)
        self._vectors = VectorStore() if vectors is None else vectors
        self._knowledge = KnowledgeStore() if knowledge is None else knowledge
        self._facts = FactStore() if facts is None else facts
        self._part = part
        self._private = private
        self._for_agents: tuple[tuple[TableProfile, ...], Corpus] | None = None
        self._whole: Future[Corpus] | None = None
        self._under: Corpus | None = None
        self._again: Callable[[], Corpus] | None = None
        self._changes: tuple[str, ...] = ()
        self._followed: Refreshing | None = None
        self._told: tuple[Knowledge, tuple[TableProfile, ...], dict[str, TableProfile]] | None = None
        self._names: tuple[tuple[TableProfile, ...], list[tuple[str, ...]]] | None = None
        self._statements: tuple[Told, tuple[Statement, ...]] | None = None

    @property
    def profiles(self) -> tuple[TableProfile, ...]:
        """The profile of every table, sorted by id, with the facts that users gave about it."""
        return self._with_knowledge()[0]

    @property
    def _by_id(self) -> dict[str, TableProfile]:
        return self._with_knowledge()[1]

    def _with_knowledge(self) -> tuple[tuple[TableProfile, ...], dict[str, TableProfile]]:
        known = self._knowledge.known
        if self._told is None or self._told[0] is not known:
            profiles = with_private(known.applied(self._found), self._private)
            self._told = known, profiles, {profile.id: profile for profile in profiles}
        return self._told[1], self._told[2]

    @property
    def keys(self) -> CorpusKeys:
        """Your keys: ``corpus.keys.add("orders.buyer = customers.id")``, ``.forbid(…)``.

        They are kept with the other facts that you gave about the data, and subsets of this corpus have them, too.
        """
        return CorpusKeys(self._knowledge, self.profiles, self)

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
        hidden = Hiding(checked_names("hide", names))
        whole = self.whole()
        view = View.of(whole.profiles, hidden)
        if hidden.unmatched:
            tables = {one.id: [column.name for column in one.columns] for one in whole.profiles}
            raise unmatched_error(hidden.unmatched[0], tables)
        made = whole._seen_by(view)
        if whole._again is not None:
            again = whole._again
            made._again = lambda: again().hide(*names)
        return made

    def _seen_by(self, view: View) -> Corpus:
        """The corpus of what is visible, with engines that offer nothing else."""
        origins = view.origins(self._found, self._origins)
        before = {id(origin.engine) for origin in self._origins.values()}
        shrunk = {id(origin.engine): origin.engine for origin in origins.values() if id(origin.engine) not in before}
        warn_of_computed(*filter(None, shrunk.values()))
        return self._of(
            view.profiles(self._found),
            origins,
            problems=[problem for problem in self._problems if not view.mentions_gone(str(problem))],
            vectors=VectorStore(),
            knowledge=VisibleFacts(self._knowledge, view),
            facts=FactStore(),
            part=self._part or "hidden",
        )

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
        """
        named = [self._column(column) for column in columns]
        for table, _ in named:
            self._vectors.forget(table)  # they may be of the words of a model that had seen the cells
        if undo and (listed := [column for column in named if column in self._private]):
            raise InvalidArgument(
                f"{'.'.join(listed[0])} is private by open_corpus(private=[…]) or the private = […] of a "
                "tagframe.toml: leave it out there, and open the data again"
            )
        facts: dict[FactKey, Any] = {("hidden", column): None if undo else MODELS for column in named}
        self._knowledge.tell(facts)

    @property
    def private_columns(self) -> list[str]:
        """The private columns, as ``database.table.column``."""
        private = {*self._private, *self._knowledge.known.withheld}
        of_these = (self._by_id[table] for table in sorted({table for table, _ in private}) if table in self._by_id)
        return [f"{one.id}.{column.name}" for one in of_these for column in one.columns if column.private]

    def without_private(self) -> Corpus:
        """The corpus for agents: as :meth:`hide` of all private columns."""
        names = self.private_columns
        if not names:
            return self
        if self._for_agents is None or self._for_agents[0] is not self.profiles:
            self._for_agents = self.profiles, self.hide(*names)
        return self._for_agents[1]

    def adopt(self) -> int:
        """Take what was told about the data that this is a copy of: its descriptions, keys and learned queries.

        Columns private there are private here anyway. Nothing is written there, and later facts there are not taken.

        Returns:
            The number of facts taken; 0 if this is no copy of data about which something was told.
        """
        return self._knowledge.adopt()

    @property
    def learned(self) -> pd.DataFrame:
        """The statements learned about these tables: a row for each, the most frequent first.

        Columns are question, sql (with ``?`` for literals that are not kept), tables (a list of ids), joins (a list),
        runs (how often it was run), learned_by ("queries", or "user" for corrections) and at (when it was learned).
        Values of private columns are left out.
        """
        ordered = sorted(statements_of(self), key=lambda one: (-one.times, -one.at, one.fact))
        rows = [
            (one.question, one.shown, list(one.tables), list(map(str, one.joins)), one.times, one.by,
             pd.Timestamp(one.at, unit="s", tz="UTC"))
            for one in ordered
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=["question", "sql", "tables", "joins", "runs", "learned_by", "at"])

    def save_facts(self, path: str | Path) -> Path:
        """Write the facts that users gave (private columns, keys, descriptions) to a file that people can read.

        A file with the name ``tagframe.toml``, in the opened folder or beside the opened file, is read whenever the
        data is opened, also by other users.

        Returns:
            The path.

        Raises:
            OSError: it cannot be written.
        """
        return write_facts(Path(path), self._knowledge.kept())

    def _column(self, name: str) -> Column:
        return find_column(name, list(map(NamedTable.of, self.profiles)))

    @property
    def ids(self) -> tuple[str, ...]:
        """The id of every table, sorted: ``database.table``."""
        return tuple(self._by_id)

    @property
    def unprofiled(self) -> tuple[str, ...]:
        """The ids of tables of a first look that are not profiled yet; their rows can be read."""
        return tuple(
            profile.id
            for profile in self._found
            if profile.rows is None and profile.id in self._origins and self._origins[profile.id].engine is not None
        )

    def whole(self, timeout: float | None = None) -> Corpus:
        """The corpus with all tables profiled; after a first look, this waits for them.

        Args:
            timeout: seconds to wait; None for no limit.

        Raises:
            TimeoutError: the time is over.
        """
        return self if self._whole is None else self._whole.result(timeout)

    def refresh(self) -> Corpus:
        """The corpus as its source is now: opened again with the same arguments; this one stays as it is.

        Only tables that have changed are profiled; keys, profiles and vectors of the others are kept. Threads may call
        it at the same time. :attr:`changes` of the result says what is different.

        Raises:
            InvalidArgument: this corpus is a part of another one, or comes from a pickle: there is nothing to open.
            SourceNotFound, UnreadableTable, ServerGone, …: as :func:`tagframe.open_corpus`.
        """
        if self._again is None:
            raise InvalidArgument("only a corpus that tagframe.open_corpus gave in this process is refreshed")
        now = self._again()
        now._knowledge = self._knowledge.follow(now._knowledge)  # what is told to one of them holds for both
        now._changes = changes(self._by_id, now._by_id)
        return now

    @property
    def changes(self) -> tuple[str, ...]:
        """What :meth:`refresh` found different, a sentence for each table: ``"bank.loan: new column rate"``."""
        return self._changes

    def current(self) -> Corpus:
        """The corpus that questions are asked of, which does not change any more.

        With ``refresh=`` of :func:`tagframe.open_corpus`, it is opened again if it is older than that; otherwise this
        is the corpus itself.
        """
        return self if self._followed is None else self._followed.corpus()

    if TYPE_CHECKING:
        annotate = annotate
        check_keys = check_keys
        describe = describe
        forget = forget
        learn = learn
        retrieve_tables = retrieve_tables
        to_ossie = to_ossie
        tools = tools
    else:
        __getattr__ = suggesting_names("Corpus")

    def __getstate__(self) -> dict[str, Any]:
        # Another process does not wait for the profiles.
        left = dict.fromkeys(["_whole", "_again", "_followed", "_names", "_told", "_statements", "_for_agents"])
        return {**self.__dict__, **left, "version": this.__version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        version = state.pop("version", "of another version")
        if version != this.__version__:
            raise OtherVersion(
                f"this corpus was pickled by tagframe {version}, and this is {this.__version__}: "
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
        shown = ", ".join(self.ids[:5]) + (", …" if len(self) > 5 else "")
        counts = f"{counted(len(self), 'table')} of {counted(len(databases), 'database')}"
        return f"Corpus({counts}: {shown})" if self.profiles else "Corpus(no tables)"

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
            found = [profile for profile in self.profiles if getattr(profile, nameable).casefold() == wanted]
            if len(found) == 1:
                return found[0]
            if found:
                ids = ", ".join(repr(profile.id) for profile in found)
                raise TableNotFound(f"{id!r} is the name of {len(found)} tables; choose one: {ids}")
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
        found = {profile.id: profile for profile in self._found}
        kept = {id: found[id] for id in dict.fromkeys(self.profile(id).id for id in ids)}
        origins = {id: self._origins[id] for id in kept if id in self._origins}
        return self._of(kept.values(), origins, is_whole=self._is_whole and len(kept) == len(self))

    def _of(self, profiles: Iterable[TableProfile], origins: Mapping[str, Origin], **changed: Any) -> Corpus:
        """A corpus of other tables that shares root, problems, vectors and facts with this one, if not ``changed``."""
        shared = {
            "root": self._root,
            "is_whole": False,
            "problems": self._problems,
            "vectors": self._vectors,
            "knowledge": self._knowledge,
            "facts": self._facts,
            "part": self._part,
            "private": self._private,
        }
        return Corpus(profiles, origins, **{**shared, **changed})

    def union(self, other: Corpus) -> Corpus:
        """A corpus with the tables of both; vectors and knowledge are kept where this corpus keeps them.

        Raises:
            InvalidArgument: both have a table with the same id.
        """
        return self._of(
            [*self._found, *other._found],
            {**self._origins, **other._origins},
            problems=(*self._problems, *other._problems),
            knowledge=self._knowledge.union(other._knowledge, (profile.id for profile in other._found)),
            part=self._part or other._part,
            private=self._private | other._private,
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
        return save(Path(path), self._contents(), self._vectors.known(self.ids), self._facts.known())

    def _contents(self) -> Contents:
        sources: dict[str, IndexedSource] = {}
        tables: dict[str, dict[str, TableProfile]] = defaultdict(dict)
        for profile in self._found:
            origin = self._origins.get(profile.id) or Origin(key="schema", table=profile.id, kind="schema")
            tables[origin.key][origin.table] = profile
            seen = dict.fromkeys(tables[origin.key], origin.stamp.sha256) if origin.stamp else {}
            sources[origin.key] = IndexedSource(origin.key, origin.kind, origin.stamp, tables[origin.key], seen)
        ids = None if self._is_whole else self.ids
        return Contents(self._root, ids, sources, self._knowledge.told, self._part)


# Functions for the rooms above, not for users.


def with_roles(corpus: Corpus, tables: Mapping[str, str]) -> Corpus:
    """A corpus of some tables under ids of a plan, which may have a table in several roles.

    Args:
        corpus: with the tables.
        tables: id in the plan → id of the table.
    """
    found = corpus.subset(tables.values())
    profiles = [corpus.profile(table) for table in tables.values()]
    origins = {id: found._origins[table] for id, table in tables.items() if table in found._origins}
    made = corpus._of([replace(profile, id=id) for id, profile in zip(tables, profiles, strict=True)], origins)
    made._under = corpus._under
    return made


def facts_of(corpus: Corpus) -> FactStore:
    """The store of facts computed from a corpus' tables, such as the keys between them."""
    return corpus._facts


def vectors_of(corpus: Corpus) -> VectorStore:
    """The store of vectors of a corpus' tables, for :func:`tagframe.corpus.corpus_vectors`."""
    return corpus._vectors


def knowledge_of(corpus: Corpus) -> KnowledgeStore:
    """The store of facts told and learned about a corpus."""
    return corpus._knowledge


def private_of(corpus: Corpus) -> frozenset[Column]:
    """The private columns of a corpus, by table and name."""
    return corpus._private | corpus._knowledge.known.withheld


def statements_of(corpus: Corpus) -> tuple[Statement, ...]:
    """The statements learned over tables of a corpus, the earliest first, without values of private columns."""
    told = corpus._knowledge.told
    if corpus._statements is None or corpus._statements[0] is not told:
        private, ids = private_of(corpus), corpus._by_id.keys()
        here = [one for one in told.statements if ids >= set(one.tables)]
        found = tuple(one.without_cells() if private and one.reads(private) else one for one in here)
        corpus._statements = told, found
    return corpus._statements[1]


def under(corpus: Corpus) -> Corpus | None:
    """The corpus below this one, to which this one adds a table; None if there is none."""
    return corpus._under


def laid_over(corpus: Corpus, under: Corpus) -> Corpus:
    """The first corpus, marked as the second one with one table added or replaced."""
    corpus._under = under
    return corpus


def applied(lists: Lists, corpus: Corpus) -> Corpus:
    """A corpus that is in memory, or comes from a catalogue, without what is hidden, and with private columns."""
    names = lists.hidden_in(corpus.profiles) if lists.part else []
    made = corpus.hide(*names) if names else corpus
    private = lists.private_of(made.profiles)
    if private - made._private:
        made = made._of(made._found, made._origins, is_whole=made._is_whole, private=made._private | private)
    return made


def opened_by(corpus: Corpus, again: Callable[[], Corpus]) -> Corpus:
    """The given corpus, which ``again`` opens anew."""
    corpus._again = again
    return corpus


def are_alike(one: Corpus, other: Corpus) -> bool:
    """Whether both have the same tables, of the same state of their files."""
    return one._by_id == other._by_id and one._origins == other._origins


def following(corpus: Corpus, seconds: float) -> Corpus:
    """The given corpus, whose :meth:`Corpus.current` is opened again if it is older than this."""
    assert corpus._again is not None
    first = opened_by(corpus.subset(corpus.ids), corpus._again)
    first._whole = corpus._whole
    corpus._followed = Refreshing(first, seconds, are_alike)
    return corpus


def with_whole(corpus: Corpus, whole: Future[Corpus]) -> Corpus:
    """The given corpus, marked as a first look at ``whole``, which is not ready yet."""
    corpus._whole = whole
    return corpus
