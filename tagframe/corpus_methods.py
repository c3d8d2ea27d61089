"""The methods of a corpus that rooms above it do: each imports its room when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast, overload

from tagframe import config

if TYPE_CHECKING:
    from os import PathLike

    import pandas as pd

    from tagframe.agents.tools import Tools
    from tagframe.config import CallSettings
    from tagframe.corpus.corpus import Corpus
    from tagframe.joins import On
    from tagframe.keys import KeyPair
    from tagframe.learning import Learned
    from tagframe.lm import Budget, Quote
    from tagframe.retrieval import RetrievedTables, RetrieveOptions
    from tagframe.semantic.annotating import Annotated
    from tagframe.semantic.descriptions import Described


def _of(methods: CorpusMethods) -> Corpus:
    return cast("Corpus", methods)


class CorpusMethods:
    """What a :class:`tagframe.Corpus` can do beside giving its tables."""

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

        return retrieval.retrieve_tables(question, _of(self), anchor=anchor, quote=quote, **options)

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

        return merge_tables(_of(self), tables, on=on, **arguments)

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
            queries: SQL; a file or a folder of SQL, CSV or JSON; a frame with ``sql`` and, if known,
                with ``question``, ``runs`` and ``database``, such as a server's log; or ``"views"``.
            sql: the statement, if ``queries`` is the question that it answers.
            literals: whether the literals of statements are kept: they are data.
            dialect: the SQL dialect of the statements, by sqlglot's name; None for the source's.

        Raises:
            SourceNotFound: no such file, or no views.
            InvalidArgument: a frame or a file without SQL, or one that cannot be read; an unknown dialect.
        """
        from tagframe import learning

        return learning.learn(_of(self), queries, sql, literals=literals, dialect=dialect)

    def verify(self, question: str, sql: str, *, by: str) -> None:
        """Mark a statement as the verified answer to a question; ``tf.ask`` then uses it, and says so.

        A statement with parameters, ``WHERE year = :year``, answers all questions that differ in their values: the
        model gives them, and each must be in a row of the column that has to equal it. Another one for the same
        question replaces it; ``corpus.forget(question)`` removes it; ``tagframe eval`` tries all of them.

        Args:
            question: that it answers, as "Revenue by region in a year".
            sql: one SELECT over these tables.
            by: who verified it: a person, or a team.

        Raises:
            InvalidArgument: a text is empty, or a parameter has no name.
            UnreadStatement: it cannot be parsed, or reads tables that do not exist.
            UnsafeSQL, SQLFailed: it does not run: it names a private column, or one that is not there.
        """
        from tagframe.answer.learned_statements import verified_statement
        from tagframe.learning import add_statements

        add_statements(_of(self), [verified_statement(question, sql, by, _of(self))])

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

        return learning.forget(_of(self), what)

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
        - a semantic model: Apache Ossie's (YAML or JSON), or the ``manifest.json`` that ``dbt parse`` writes.
          Its descriptions, synonyms, keys and metrics stand below a person's, and above what is inferred. Its keys are
          checked against the rows. The same model, read again, replaces what it described before.
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
        from tagframe.semantic.descriptions import describe

        return describe(_of(self), name, text)

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
        from tagframe.lm import get_lm
        from tagframe.semantic.annotating import annotated, quoted

        with config.of_call(self.annotate, settings):
            model = get_lm()
            return quoted(_of(self), model) if quote else annotated(_of(self), model)

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
        return Tools(_of(self), ask, learn, account, None if to is None else Path(to).expanduser())

    def _key_pairs(self) -> list[KeyPair]:
        from tagframe.joins import corpus_keys

        return corpus_keys(_of(self))
