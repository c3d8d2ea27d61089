"""A corpus: tables of any sources, known by their profiles."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe import results
from tagframe.corpus.catalogue import Contents, IndexedSource
from tagframe.corpus.catalogue_file import FactStore, Origin, save
from tagframe.corpus.hidden_values import reader_of
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.readers import Sight, seen_by
from tagframe.corpus.references import Column, NamedTable, find_column
from tagframe.corpus.refreshing import Refreshing, changes
from tagframe.corpus.statements import Statement
from tagframe.corpus.tables_frame import TablesFrame, tables_frame
from tagframe.corpus.told.facts import EVERYBODY, MODELS, NO_JOINS, FactKey, Knowledge, Told, by_table, plain_name
from tagframe.corpus.told.files import write_facts
from tagframe.corpus.told.store import CorpusKeys, KnowledgeStore
from tagframe.corpus.vectors import VectorStore
from tagframe.display import Displayable, rows_html
from tagframe.doors import with_doors
from tagframe.engines.base import Engine
from tagframe.engines.frames import FrameEngine
from tagframe.errors import (
    ColumnNotFound,
    HiddenColumn,
    InvalidArgument,
    OtherVersion,
    SourceNotFound,
    TableNotFound,
    UnreadableTable,
    counted,
    did_you_mean,
    suggesting_names,
)
from tagframe.version import __version__

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
class Corpus(Displayable):
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
        self._facts.reads(reader_of(self._origins))
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
            # Removed permanently: a column hidden in the middle of a session is in no pickle of the corpus, either.
            self._found = known.without_hidden(self._found)
            profiles = known.applied(self._found)
            self._told = known, profiles, {profile.id: profile for profile in profiles}
        return self._told[1], self._told[2]

    @property
    def keys(self) -> CorpusKeys:
        """Your keys: ``corpus.keys.add("orders.buyer = customers.id")``, ``.forbid(…)``.

        They are kept with the other facts that you gave about the data, and subsets of this corpus have them, too.
        """
        return CorpusKeys(self._knowledge, self.profiles, self)

    def hide(self, column: str, *, from_models: bool = False, joinable: bool = True) -> None:
        """Hide the cells of a column from everybody: no prompt, no log and no catalogue has them.

        Tables are read and merged without the column. The catalogue's data about its cells is removed, sketches too.
        Tables still join on it by their keys, for which its cells are read again in memory; the other column of such a
        key is not in the result. The column cannot be
        compared or tested. The guide "Security and privacy" says what a join can tell. The fact belongs to the data,
        wherever it is: a copy of the file, even one with small changes, is also opened without the column.

        Columns of views, and columns that a database computes, are hidden with it if they contain its cells or values
        computed from them; for a view that is made later, this holds when the data is opened again. A view that only
        filters, joins or sorts by the column is not hidden.

        Args:
            column: ``table.column``, with or without the database.
            from_models: hide the cells from models only, and from everything that is written down: frames that are read
                and merged have them; prompts, logs and catalogues do not. Operators refuse the column of such a frame
                by name. Statements (``tf.exec_sql``, ``tf.ask``) do not see it, because a model reads their results. If
                you rename the column, or compute another from it, tagframe does not know that.
            joinable: whether tables join on the column.

        Warns:
            UnclearViewWarning: a view of the same server calls a function that may read the column, and its definition
                is not known.

        Raises:
            TableNotFound, ColumnNotFound: no such table or column.
        """
        table, name = self._column(column)
        self._vectors.forget(table)  # they may be of the words of a model that had seen the cells
        whom = MODELS if from_models else EVERYBODY
        self._knowledge.tell({("hidden", (table, name)): whom if joinable else f"{whom}{NO_JOINS}"})
        self._knowledge.warn_of_unclear()

    def show(self, column: str) -> None:
        """Undo :meth:`hide`; the column is profiled again when the corpus is opened next.

        A column that is hidden because it is computed from another one is shown alone, until the other is hidden again.

        Raises:
            TableNotFound, ColumnNotFound: no such table or column.
        """
        told = [of for (kind, of), (whom, _) in self._knowledge.told.facts.items() if kind == "hidden" and whom]
        try:
            table, name = self._column(column)
        except ColumnNotFound:  # hidden, but no longer there
            gone = [of for of in told if column in (".".join(of), ".".join(of).partition(".")[2])]
            if len(gone) != 1:
                raise
            table, name = gone[0]
        there = {one.name for one in self.profile(table).columns} if table in self else set()
        same = [of for of in told if of[0] == table and of[1] not in there and plain_name(of[1]) == plain_name(name)]
        # Also for a computed column.
        shown: dict[FactKey, None] = {("hidden", of): None for of in [(table, name), *same]}
        self._knowledge.tell_facts(lambda told: told.with_values(shown))

    def adopt(self) -> int:
        """Take what was told about the data that this is a copy of: its descriptions, keys and learned queries.

        Columns hidden there are hidden here anyway. Nothing is written there, and later facts there are not taken.

        Returns:
            The number of facts taken; 0 if this is no copy of data about which something was told.
        """
        return self._knowledge.adopt()

    @property
    def hidden(self) -> pd.DataFrame:
        """The hidden columns of these tables: a row for each.

        Columns are ``table``, ``column``, ``hidden_from`` ("everybody" or "models") and ``joinable`` (whether tables
        join on it).
        """
        withheld = by_table(self._knowledge.known.withheld)
        rows = [
            (profile.id, column.name, EVERYBODY if column.hidden else MODELS, not column.unjoined)
            for profile in self.profiles
            if profile.id in withheld
            for column in profile.columns
            if not column.for_models
        ]
        return pd.DataFrame(rows, columns=["table", "column", "hidden_from", "joinable"])

    @property
    def learned(self) -> pd.DataFrame:
        """The statements learned about these tables: a row for each, the most frequent first.

        Columns are question, sql (with ``?`` for literals that are not kept), tables (a list of ids), joins (a list),
        runs (how often it was run), learned_by ("queries", or "user" for corrections) and at (when it was learned).
        Values of hidden columns are left out.
        """
        ordered = sorted(statements_of(self), key=lambda one: (-one.times, -one.at, one.fact))
        rows = [
            (one.question, one.shown, list(one.tables), list(map(str, one.joins)), one.times, one.by,
             pd.Timestamp(one.at, unit="s", tz="UTC"))
            for one in ordered
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=["question", "sql", "tables", "joins", "runs", "learned_by", "at"])

    def save_facts(self, path: str | Path) -> Path:
        """Write the facts that users gave (hidden columns, keys, descriptions) to a file that people can read.

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
        # Another process does not wait for the profiles; and it gets no hidden cells.
        known = self._knowledge.known
        left = dict.fromkeys(["_again", "_followed", "_names", "_told", "_statements"])
        state = {**self.__dict__, **left}
        found, origins = known.without_hidden(self._found), self._origins_without_hidden(known)
        return {**state, "_found": found, "_origins": origins, "version": __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        version = state.pop("version", "of another version")
        if version != __version__:
            raise OtherVersion(
                f"this corpus was pickled by tagframe {version}, and this is {__version__}: "
                "open the source again with tagframe.open_corpus"
            )
        self.__dict__.update(state)
        self._facts.reads(reader_of(self._origins))

    def _origins_without_hidden(self, known: Knowledge) -> dict[str, Origin]:
        """The origins of the tables; frames are in memory only, and leave out their hidden columns."""
        drops: dict[int, tuple[FrameEngine, dict[str, set[str]]]] = {}
        for table, columns in by_table(known.hidden).items():
            origin = self._origins.get(table)
            if origin is not None and isinstance(origin.engine, FrameEngine):
                drops.setdefault(id(origin.engine), (origin.engine, defaultdict(set)))[1][origin.table] |= columns
        slim = {engine_id: engine.without(columns) for engine_id, (engine, columns) in drops.items()}
        return {
            table: replace(origin, engine=slim.get(id(origin.engine), origin.engine)) if slim else origin
            for table, origin in self._origins.items()
        }

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
        unseen = self._knowledge.says_unseen(str(id))
        raise TableNotFound(f"no table {id!r} in {did_you_mean(str(id), names)}{unseen}")

    def read(self, id: str, columns: Sequence[str] | None = None, *, limit: int | None = None) -> pd.DataFrame:
        """The rows of a table, as they are in the source now.

        Integers are never converted to floats: with nulls they are ``Int64``. Text stays text. Each source's rules are
        those of its engine, such as :class:`~tagframe.engines.sqlite.engine.SQLiteEngine`.

        Args:
            id: as for :meth:`profile`.
            columns: which of them, in this order; None for all that are not hidden.
            limit: the largest number of rows; None for all.

        Raises:
            TableNotFound: no such table.
            ColumnNotFound: no such column.
            HiddenColumn: a named column is hidden.
            SourceNotFound: the file is no longer there, or only a schema is known.
            UnreadableTable: the rows cannot be read.
        """
        profile = self.profile(id)
        if isinstance(columns, str):
            raise InvalidArgument(f"columns must be a list of names; got the text {columns!r}: write [{columns!r}]")
        names = [column.name for column in profile.columns]
        hidden = {column.name for column in profile.columns if column.hidden}
        for column in columns or ():
            if column not in names:
                unseen = self._knowledge.says_unseen(str(column))
                raise ColumnNotFound(f"no column {column!r} in {profile.id}: {did_you_mean(column, names)}{unseen}")
            if column in hidden:
                raise HiddenColumn(
                    f"{profile.id}.{column} is hidden: its cells cannot be read; "
                    f"corpus.show({f'{profile.id}.{column}'!r}) shows it again"
                )
        if columns is None and hidden:
            columns = [name for name in names if name not in hidden]
        if limit is not None and limit < 0:
            raise InvalidArgument(f"limit must be a number of rows, 0 or more; got {limit!r}")
        frame = self._scan(profile, columns, limit)
        unprompted = frozenset(column.name for column in profile.columns if column.unprompted)
        described = {column.name: column.description for column in profile.columns if column.description}
        results.remember(
            frame, table=profile.id, unprompted=unprompted & {*frame.columns} or None, descriptions=described or None
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
        }
        return Corpus(profiles, origins, **{**shared, **changed})

    def for_reader(
        self,
        name: str,
        *,
        hide: Sequence[str] | None = None,
        tables: Sequence[str] | None = None,
        where: Mapping[str, str] | None = None,
        say_hidden: bool = False,
    ) -> Corpus:
        """What one reader sees: a corpus of fewer tables, columns and rows, which knows nothing of the others.

        Profiles of tables with a row rule are made of their visible rows. Keys are inferred from what is seen.
        Statements run in SQLite over a copy of what is seen. Learned queries, and a model's texts, are left out. What
        is told to the reader's corpus is not kept. It cannot be pickled.

        Args:
            name: of the reader. With nothing else, what was given last for this name is used; it is kept with the other
                facts about the data.
            hide: tables, and columns as ``table.column``, that the reader does not see. Columns computed from them are
                hidden, too.
            tables: those that the reader sees; None for all. The tables of a server must be named.
            where: by table, a condition in SQLite's SQL over its own columns, hidden ones too: ``"region = 'EU'"``.
                Only rows for which it is true are seen.
            say_hidden: whether messages say that something may not be seen. Otherwise it does not exist.

        Raises:
            TableNotFound, ColumnNotFound: a name that is not there.
            InvalidArgument: no such reader; a rule that is no condition, or tests a column of several kinds of cells; a
                server without ``tables``; a table that is computed from one with a rule and has none.
            UnreadableTable: the rows of a table with a rule cannot be read.
        """
        if not isinstance(name, str) or not name:
            raise InvalidArgument(f"a reader has a name; got {name!r}")
        fact: FactKey = "reader", (name,)
        given = hide is not None or tables is not None or where is not None or say_hidden
        if not given:
            kept = self._knowledge.told.facts.get(fact, (None, 0.0))[0]
            if kept is None:
                raise InvalidArgument(f"no reader {name!r} is known: say what the reader sees, for_reader({name!r}, …)")
            sight = Sight(**kept)
        else:
            sight = Sight(hide or (), tables, where or {}, say_hidden)
        profiles, origins, told = seen_by(sight, self, self._knowledge, check=given)
        if given:
            self._knowledge.tell({fact: sight.to_json()})
        return Corpus(profiles, origins, is_whole=False, knowledge=told)

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
        for profile in self._knowledge.known.without_hidden(self._found):
            origin = self._origins.get(profile.id) or Origin(key="schema", table=profile.id, kind="schema")
            tables[origin.key][origin.table] = profile
            seen = dict.fromkeys(tables[origin.key], origin.stamp.sha256) if origin.stamp else {}
            sources[origin.key] = IndexedSource(origin.key, origin.kind, origin.stamp, tables[origin.key], seen)
        return Contents(self._root, None if self._is_whole else self.ids, sources, self._knowledge.told)


# Functions for the rooms above, not for users.


def read_keys(corpus: Corpus, id: str, columns: Sequence[str]) -> pd.DataFrame:
    """Columns of a table for a join, hidden ones too: they are only compared, never shown.

    Raises:
        TableNotFound, SourceNotFound, UnreadableTable: as :meth:`Corpus.read`.
    """
    profile = corpus.profile(id)
    engine = corpus.engine(id)
    if isinstance(engine, FrameEngine):
        there = {str(name) for name in engine.frames[corpus.source_table(id)].columns}
        for column in profile.columns:
            if column.hidden and column.name in columns and column.name not in there:
                raise HiddenColumn(
                    f"{id}.{column.name} is hidden, and a pickle of frames leaves out hidden cells, so it cannot be "
                    "joined on here; merge in the process that has the frames"
                )
    return corpus._scan(profile, columns)


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


def statements_of(corpus: Corpus) -> tuple[Statement, ...]:
    """The statements learned over tables of a corpus, the earliest first, without values of hidden columns."""
    told = corpus._knowledge.told
    if corpus._statements is None or corpus._statements[0] is not told:
        withheld, ids = corpus._knowledge.known.withheld, corpus._by_id.keys()
        here = [one for one in told.statements if ids >= set(one.tables)]
        found = tuple(one.without_cells() if withheld and one.reads(withheld) else one for one in here)
        corpus._statements = told, found
    return corpus._statements[1]


def under(corpus: Corpus) -> Corpus | None:
    """The corpus below this one, to which this one adds a table; None if there is none."""
    return corpus._under


def laid_over(corpus: Corpus, under: Corpus) -> Corpus:
    """The first corpus, marked as the second one with one table added or replaced."""
    corpus._under = under
    return corpus


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
    corpus._followed = Refreshing(first, seconds, are_alike)
    return corpus
