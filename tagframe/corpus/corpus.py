"""A corpus: tables of any sources, known by their profiles."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import pandas as pd

from tagframe import config, results
from tagframe.corpus.catalogue import Contents, IndexedSource
from tagframe.corpus.catalogue_file import ComputedStore, Origin, save
from tagframe.corpus.corpus_keys import CorpusKeys
from tagframe.corpus.facts import Facts, FactStore
from tagframe.corpus.facts_toml import facts_of_data, write_facts
from tagframe.corpus.hiding import Lists, VisibleFacts, warn_of_computed, with_private
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.references import Column, NamedTable, find_column
from tagframe.corpus.refreshing import Refreshing, changes
from tagframe.corpus.statements import Statement
from tagframe.corpus.tables_frame import TablesFrame, tables_frame
from tagframe.corpus.vectors import VectorStore
from tagframe.display import Displayable, rows_html
from tagframe.engines.base import Engine
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
from tagframe.version import __version__

if TYPE_CHECKING:
    from os import PathLike

    from tagframe.agents.tools import Tools
    from tagframe.answer.annotating import Annotated
    from tagframe.answer.checked_keys import CheckedKeys
    from tagframe.config import CallSettings
    from tagframe.joins import On
    from tagframe.learning import Learned
    from tagframe.lm import Budget, Quote
    from tagframe.retrieval import RetrievedTables, RetrieveOptions
    from tagframe.semantic.descriptions import Described

_LISTED = 20


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
        facts: FactStore | None = None,
        computed: ComputedStore | None = None,
        part: str = "",
        under: Corpus | None = None,
        again: Callable[[], Corpus] | None = None,
        followed: Refreshing | None = None,
        changes: Sequence[str] = (),
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
            followed: has the newest corpus of the source, if this one follows it.
            changes: see :attr:`changes`.

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
        self._followed = followed
        self._changes = tuple(changes)
        # What follows from these, made when it is needed.
        self._for_agents: tuple[tuple[TableProfile, ...], Corpus] | None = None
        self._applied: tuple[Facts, tuple[TableProfile, ...], dict[str, TableProfile]] | None = None
        self._names: tuple[tuple[TableProfile, ...], list[tuple[str, ...]]] | None = None
        self._statements: tuple[Facts, tuple[Statement, ...]] | None = None

    def _of(self, profiles: Iterable[TableProfile], origins: Mapping[str, Origin], **changed: Any) -> Corpus:
        """A corpus of other tables that shares root, problems, vectors and facts with this one, if not ``changed``."""
        shared: dict[str, Any] = {
            "root": self._root,
            "is_whole": False,
            "problems": self._problems,
            "vectors": self._vectors,
            "facts": self._facts,
            "computed": self._computed,
            "part": self._part,
        }
        return Corpus(profiles, origins, **{**shared, **changed})

    def _with(self, **changed: Any) -> Corpus:
        """A corpus of the same tables that differs in the ``changed`` arguments."""
        same: dict[str, Any] = {
            "is_whole": self._is_whole,
            "under": self._under,
            "again": self._again,
            "followed": self._followed,
            "changes": self._changes,
        }
        return self._of(self._unannotated, self._origins, **{**same, **changed})

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
            profiles = with_private(facts.applied(self._unannotated), facts.private)
            known = self._applied = facts, profiles, {profile.id: profile for profile in profiles}
        return known[1], known[2]

    @property
    def keys(self) -> CorpusKeys:
        """Your keys: ``corpus.keys.add("orders.buyer = customers.id")``, ``.forbid(…)``.

        They are kept with the other facts that you gave about the data, and subsets of this corpus have them, too.
        """
        return CorpusKeys(self._facts, self)

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
        made, again = self._without(Lists.of(names, ())), self._again
        return made if again is None else made._with(again=lambda: again().hide(*names))

    def _without(self, lists: Lists) -> Corpus:
        """The corpus of what is visible, with engines that offer nothing else."""
        view = lists.view_of(self.profiles)
        if view is None:
            return self
        origins = view.origins(self._unannotated, self._origins)
        before = {id(origin.engine) for origin in self._origins.values()}
        shrunk = {id(origin.engine): origin.engine for origin in origins.values() if id(origin.engine) not in before}
        warn_of_computed(*filter(None, shrunk.values()))
        return self._of(
            view.profiles(self._unannotated),
            origins,
            problems=[problem for problem in self._problems if not view.mentions_gone(str(problem))],
            vectors=VectorStore(),
            facts=VisibleFacts(self._facts, view),
            computed=ComputedStore(),
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
            other: a corpus; the path that data had when facts were given about it; or a file that :meth:`save_facts`
                wrote. A server is opened first, and given as a corpus.

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
        runs (how often it was run), learned_by ("queries", or "user" for corrections) and at (when it was learned).
        Values of private columns are left out.
        """
        ordered = sorted(self._learned(), key=lambda one: (-one.times, -one.at, one.fact))
        rows = [
            (one.question, one.text, list(one.tables), list(map(str, one.joins)), one.times, one.by,
             pd.Timestamp(one.at, unit="s", tz="UTC"))
            for one in ordered
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=["question", "sql", "tables", "joins", "runs", "learned_by", "at"])

    def _learned(self) -> tuple[Statement, ...]:
        """The statements over these tables, the earliest first, without values of private columns."""
        facts = self._facts.facts
        if self._statements is None or self._statements[0] is not facts:
            private, ids = private_of(self), self._by_id.keys()
            here = [one for one in facts.statements if ids >= set(one.tables)]
            bare = (one.without_cells() if private and one.reads(private) else one for one in here)
            self._statements = facts, tuple(bare)
        return self._statements[1]

    def save_facts(self, path: str | Path) -> Path:
        """Write the facts that users gave (private columns, keys, descriptions) to a file that people can read.

        A file with the name ``tagframe.toml``, in the opened folder or beside the opened file, is read whenever the
        data is opened, also by other users. What an existing file lists as hidden or private stays listed there.

        Returns:
            The path.

        Raises:
            OSError: it cannot be written.
            UnreadableFacts: there is another file, or one that is damaged.
        """
        return write_facts(Path(path), self._facts.facts)

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
        now = now._with(facts=self._facts.follow(now._facts))  # facts given to one of them hold for both
        return now._with(changes=changes(self._by_id, now._by_id))

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

    # --- done by rooms above, which are imported at the first call -------------------------------------------------

    @overload
    def retrieve_tables(
        self,
        question: str,
        *,
        anchor: str | None = ...,
        quote: Literal[False] = ...,
        **options: Unpack[RetrieveOptions],
    ) -> RetrievedTables: ...
    @overload
    def retrieve_tables(
        self, question: str, *, anchor: str | None = ..., quote: Literal[True], **options: Unpack[RetrieveOptions]
    ) -> Quote: ...
    @overload
    def retrieve_tables(
        self, question: str, *, anchor: str | None = ..., quote: bool, **options: Unpack[RetrieveOptions]
    ) -> RetrievedTables | Quote: ...
    def retrieve_tables(
        self, question: str, *, anchor: str | None = None, quote: bool = False, **options: Unpack[RetrieveOptions]
    ) -> RetrievedTables | Quote:
        """Find the tables of this corpus that answer a question together.

        Args:
            question: in plain language.
            anchor: id of a table that is in the set already; the join plan starts from its rows.
            quote: return the cost of the model calls instead; nothing is sent.
            **options: ``k``, ``method``, ``evidence`` and the others of :func:`tagframe.retrieve_tables`.

        Raises:
            TagframeError: as :func:`tagframe.retrieve_tables`.
        """
        from tagframe import retrieval

        return retrieval.retrieve_tables(question, self, anchor=anchor, quote=quote, **options)

    def merge(self, *tables: str, on: On | None = None, **arguments: Any) -> pd.DataFrame:
        """Join tables of this corpus; ``frame.tag.merge_report`` accounts for every row.

        Args:
            *tables: ids or names. Each row of the result is a row of the first table; if other tables would repeat
                those rows, of the first table whose rows they do not repeat, and a warning says so. Further tables of
                their databases are joined if no key connects these.
            on: key pairs to join on: ``"orders.buyer = customers.id"``, ``"day"``, … as for :func:`tagframe.merge`.
            **arguments: ``how``, ``where``, ``columns``, ``stack``, ``roles``, ``aggregate`` and the others of
                :func:`tagframe.merge`.

        Raises:
            TagframeError: as :func:`tagframe.merge`.

        >>> import pandas as pd, tagframe as tf
        >>> orders = pd.DataFrame({"order_id": [1, 2], "customer_id": [7, 7]})
        >>> customers = pd.DataFrame({"customer_id": [7, 8], "name": ["Ann", "Bo"]})
        >>> corpus = tf.open_corpus({"orders": orders, "customers": customers})
        >>> corpus.merge("customers", "orders", how="anti")
           customer_id name
        0            8   Bo
        """
        from tagframe.retrieval.retrieved import merge_tables

        return merge_tables(self, tables, on=on, **arguments)

    def learn(
        self,
        queries: str | Path | pd.DataFrame,
        sql: str | None = None,
        *,
        literals: bool = False,
        dialect: str | None = None,
    ) -> Learned:
        """Learn from past statements over these tables; this corpus and all its subsets know them afterwards.

        Args:
            queries: SQL; a file or a folder of SQL, CSV, JSON, Python or notebooks; a frame with ``sql`` and, if known,
                with ``question``, ``runs`` and ``database``; or ``"pg_stat_statements"`` or ``"views"``.
            sql: the statement, if ``queries`` is the question that it answers.
            literals: whether the literals of statements are kept: they are data.
            dialect: the SQL dialect of the statements, by sqlglot's name; None for the source's.

        Raises:
            SourceNotFound: no such file, or no server that keeps a log.
            InvalidArgument: a frame or a file without SQL, or one that cannot be read; an unknown dialect.
        """
        from tagframe import learning

        return learning.learn(self, queries, sql, literals=literals, dialect=dialect)

    def forget(self, what: str | None = None) -> int:
        """Take back what was learned from statements.

        Args:
            what: a statement, a question, or the source of statements (``"queries.sql"``); None for all.

        Returns:
            The number of forgotten statements. A statement that also has another source stays known from that source.

        Raises:
            InvalidArgument: ``what`` is not text.
        """
        from tagframe import learning

        return learning.forget(self, what)

    @overload
    def describe(self, name: str, text: str) -> None: ...
    @overload
    def describe(self, name: str | Path | pd.DataFrame, text: None = ...) -> Described: ...
    def describe(self, name: str | Path | pd.DataFrame, text: str | None = None) -> Described | None:
        """Describe a table or a column; the text is searched, and models read it.

        Without a text, read many descriptions:

        - a frame or a CSV file with ``table``, ``column`` and ``description``, or BIRD's folders
          ``database_description``. Empty descriptions are skipped; of two descriptions of the same thing, the later one
          counts.
        - a semantic model: Apache Ossie's (YAML or JSON), dbt's ``schema.yml`` or ``manifest.json`` or the folder of a
          dbt project. Its descriptions, synonyms, keys and metrics stand below
          a person's, and above what is inferred. Its keys are checked against the rows. The same model, read again,
          replaces what it described before.
        - a folder of such files.

        Args:
            name: ``table``, ``table.column`` or either with the database before it; or the file, folder or frame.
            text: ``"status code, 3 = shipped"``; an empty text removes the description. 500 characters are kept.

        Returns:
            For many descriptions: what was used, the names that are unknown, what could not be read, and the keys that
            do not hold for all rows.

        Raises:
            TableNotFound, ColumnNotFound: no such table or column.
            SourceNotFound, InvalidArgument: no such file, or one of another form.
        """
        from tagframe.semantic.describe import describe

        return describe(self, name, text)

    def to_ossie(self, path: str | Path) -> Path:
        """Write what is known of the tables as a semantic model of Apache Ossie (YAML), for people to review.

        Semantic models that were read are written as they were, with your own descriptions in place of theirs and
        without keys that you forbade. All else is one more model: the other tables, and keys with their chance and
        evidence in ``custom_extensions`` of the vendor ``TAGFRAME``. What is only inferred is listed there as
        ``inferred``: keys, primary keys, descriptions by a model, and words of learned questions as synonyms.
        ``corpus.describe`` does not read such parts as declared: remove the extension from those that are right.
        Private columns are left out of that model.

        Args:
            path: of the file; an existing one is replaced.

        Returns:
            The path.

        Raises:
            OSError: it cannot be written.
        """
        from tagframe.semantic.writing import to_ossie

        return to_ossie(self, path)

    @overload
    def annotate(self, *, quote: Literal[False] = ..., **settings: Unpack[CallSettings]) -> Annotated: ...
    @overload
    def annotate(self, *, quote: Literal[True], **settings: Unpack[CallSettings]) -> Quote: ...
    def annotate(self, *, quote: bool = False, **settings: Unpack[CallSettings]) -> Annotated | Quote:
        """Have a model describe each table, and each column whose name does not explain it.

        The model reads names, types, a few values of columns that are not private, keys, and learned statements. Its
        descriptions begin with "≈". They are searched and shown to models like other descriptions, but a person's
        description counts more. An annotated table is not asked about again unless its columns change; a table in
        pieces is asked about once.

        Args:
            quote: return the cost instead; nothing is sent.
            **settings: as in :func:`tagframe.configure`, for this call: ``lm="openai/gpt-4.1"``.

        Returns:
            How many tables and columns were described, and the tables without a usable answer. Answers are kept even if
            a budget, an interruption or a replayed store without some answers ends the call.

        Raises:
            NotConfigured: no model is set.
            ReplayMiss: ``lm="replay:STORE"`` lacks answers; the prompts are noted in it for ``tagframe lm export``.
        """
        from tagframe.answer.annotating import annotated, quoted
        from tagframe.lm import get_lm

        with config.of_call(self.annotate, settings):
            model = get_lm()
            return quoted(self, model) if quote else annotated(self, model)

    @overload
    def check_keys(self, *, quote: Literal[False] = ..., **settings: Unpack[CallSettings]) -> CheckedKeys: ...
    @overload
    def check_keys(self, *, quote: Literal[True], **settings: Unpack[CallSettings]) -> Quote: ...
    def check_keys(self, *, quote: bool = False, **settings: Unpack[CallSettings]) -> CheckedKeys | Quote:
        """Have a model judge the keys of which names and values leave a doubt.

        These are the pairs of columns with a chance between 0.2 and 0.8, and those of a column with several almost
        equally likely ones. The model reads names, types, counts, a few values of columns that are not private, and the
        known keys of both tables; a dozen pairs are one prompt. It says yes, no, or that it cannot tell, and why. Its
        word is evidence: it moves every chance by the same odds, and ``corpus.keys.frame()`` shows it as ``origin``
        "model". A person's word (``corpus.keys.add``, ``corpus.keys.forbid``) stands above it; ``corpus.keys.forget``
        removes it. A pair is asked about once. It also works for schemas without rows.

        Args:
            quote: return the cost instead; nothing is sent.
            **settings: as in :func:`tagframe.configure`, for this call: ``lm="openai/gpt-4.1"``, ``budget=0.5``.

        Returns:
            How many pairs were judged, and those without a usable answer. Answers are kept even if a budget, an
            interruption or a replayed store without some answers ends the call.

        Raises:
            NotConfigured: no model is set.
            ReplayMiss: ``lm="replay:STORE"`` lacks answers; the prompts are noted in it for ``tagframe lm export``.
        """
        from tagframe.answer.checked_keys import checked, quoted
        from tagframe.lm import get_lm

        with config.of_call(self.check_keys, settings):
            model = get_lm()
            return quoted(self, model) if quote else checked(self, model)

    def tools(
        self,
        *,
        ask: bool = False,
        learn: bool = False,
        budget: Budget | float | None = None,
        to: str | PathLike[str] | None = None,
    ) -> Tools:
        """This corpus as tools for an agent: find tables, describe them, plan joins, run SQL, merge, look for values.

        Each tool is a plain function with types and a docstring for a model, so any framework can use it. It returns a
        plain dictionary of at most 8,000 tokens. ``tools.call(name, arguments)`` runs a tool as a model requests it;
        ``tools.schemas("openai")`` describes them in the format of a provider's API. Tools never write to a source, and
        never show cells of private columns.

        >>> import pandas as pd, tagframe as tf
        >>> tools = tf.open_corpus({"film": pd.DataFrame({"title": ["Low Tide", "Salt Road"]})}).tools()
        >>> [tool.__name__ for tool in tools][:4]
        ['find_tables', 'describe_tables', 'plan_joins', 'run_sql']
        >>> tools.call("run_sql", {"sql": "SELECT COUNT(*) AS n FROM film"})["rows"]
        [[2]]

        Args:
            ask: add a tool that has the configured model answer a question; it needs a budget.
            learn: add a tool that keeps a statement as the answer to a question.
            budget: the limit on the model's cost, for all calls of all tools together; a number is in dollars. Without
                a budget, no model is asked, and statements have no LM functions.
            to: a folder in which tools may write new Parquet files; without it, they write none.

        Raises:
            InvalidArgument: ``ask`` without a budget, or ``to`` is not a folder.
        """
        from tagframe.agents.tools import Tools
        from tagframe.lm import Budget

        account = budget if isinstance(budget, Budget | None) else Budget(dollars=budget)
        return Tools(self, ask, learn, account, None if to is None else Path(to).expanduser())

    if not TYPE_CHECKING:
        __getattr__ = suggesting_names("Corpus")

    def __getstate__(self) -> dict[str, Any]:
        # Another process opens nothing again, and makes what follows itself.
        left = dict.fromkeys(["_again", "_followed", "_names", "_applied", "_statements", "_for_agents"])
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
            sources[origin.key] = IndexedSource(origin.key, origin.kind, origin.stamp, tables[origin.key], seen)
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


def applied(lists: Lists, corpus: Corpus) -> Corpus:
    """A corpus that is in memory, or comes from a catalogue, without what is hidden, and with private columns."""
    made = corpus._without(lists)
    made._facts.opened(made.ids, lists.private_of(made.profiles))
    return made


def opened_by(corpus: Corpus, again: Callable[[], Corpus], seconds: float | None) -> Corpus:
    """A corpus that ``again`` opens anew; with ``seconds``, :meth:`Corpus.current` does it at that age."""
    first = corpus._with(again=again)
    return first if seconds is None else first._with(followed=Refreshing(first, seconds, are_alike))


def are_alike(one: Corpus, other: Corpus) -> bool:
    """Whether both have the same tables, of the same state of their files."""
    return one._by_id == other._by_id and one._origins == other._origins
