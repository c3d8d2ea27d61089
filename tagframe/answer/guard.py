"""The SQL guard: checks a statement that a model wrote, then runs it read-only.

There are two independent lines of defence. The first, in this module, is an allow-list over the statement as sqlglot
parses it. The second is the engine (:meth:`tagframe.engines.base.Engine.execute`), which runs the statement in a
separate process with its own memory limit. That process can be killed, and can read only the named tables.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tagframe import logs
from tagframe.corpus.corpus import private_of
from tagframe.engines.base import Dialect, Readable, SQLLimits, UntrustedStatement
from tagframe.engines.sql_reader import KnownTable, ReadStatement, named_tables, parse, trees_of, with_known_names
from tagframe.engines.sqlite.statement import SQLITE
from tagframe.errors import SourceNotFound, SQLFailed, UnsafeSQL, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

    from tagframe.corpus import Corpus, TableProfile
    from tagframe.engines.base import Engine


def check_sql(sql: str, tables: Collection[str], dialect: Dialect = SQLITE, functions: Collection[str] = ()) -> str:
    """Refuse everything except a single SELECT over the named tables.

    Args:
        sql: the statement.
        tables: the names that it may read; compared as the engine compares names.
        dialect: the SQL dialect of the engine.
        functions: further functions that it may call, in lower case.

    Returns:
        The statement without a trailing semicolon.

    Raises:
        UnsafeSQL: more than one statement, anything but SELECT (with WITH, UNION, …), another table, or text that does
            not parse.
    """
    statements = [tree for tree in trees_of(sql, dialect.name) if not isinstance(tree, exp.Semicolon)]
    if len(statements) != 1:
        raise UnsafeSQL(f"expected one SELECT statement, got {len(statements)}: {sql[:200]!r}")
    try:
        _check_statement(statements[0], sql, tables, dialect, {*dialect.functions, *functions})
    except RecursionError as error:
        raise UnsafeSQL(f"the SQL is nested too deeply: {sql[:200]!r}") from error
    return without_end(sql, dialect)


def without_end(sql: str, dialect: Dialect) -> str:
    """A statement without what follows it: semicolons, and comments after the last of them."""
    last = len(sql)
    for token in reversed(sqlglot.tokenize(sql, dialect=dialect.name)):
        if token.token_type != sqlglot.TokenType.SEMICOLON:
            break
        last = token.start
    return sql[:last].strip()


def _check_statement(
    statement: exp.Expr, sql: str, tables: Collection[str], dialect: Dialect, functions: Collection[str]
) -> None:
    allowed = (
        exp.Query, exp.Condition, exp.From, exp.Join, exp.Where, exp.Group, exp.Having, exp.Order, exp.Ordered,
        exp.Limit, exp.Offset, exp.Table, exp.TableAlias, exp.Identifier, exp.Alias, exp.CTE, exp.With, exp.Distinct,
        exp.Star, exp.DataType, exp.DataTypeParam, exp.WindowSpec, exp.Filter, exp.Tuple, exp.Values, exp.Var,
        exp.Collate, exp.IgnoreNulls, exp.WithinGroup, exp.JSONPath, exp.JSONPathPart, exp.Interval,
        exp.AtTimeZone,
    )  # fmt: skip
    if not isinstance(statement, exp.Query):
        raise UnsafeSQL(f"only SELECT may run, not {statement.key.upper()}: {sql[:200]!r}")
    for node in statement.walk():
        if not isinstance(node, allowed) or isinstance(node, exp.Command):
            raise UnsafeSQL(f"{node.key.upper()} may not stand in a SELECT that a model wrote: {node.sql()[:200]!r}")
        if isinstance(node, exp.Anonymous) and node.name.lower() not in functions:
            raise UnsafeSQL(f"the function {node.name!r} may not run in a SELECT that a model wrote: {sql[:200]!r}")
    known = frozenset(map(dialect.fold, tables))
    for table, entry in ReadStatement(statement, dialect).tables:
        if not isinstance(table.this, exp.Identifier):
            raise UnsafeSQL(f"a table-valued function may not run: {table.sql()!r}")
        is_known = entry is not None or dialect.fold(table.name) in known
        if not is_known or table.args.get("db") or table.args.get("catalog"):
            visible = ".".join(part.name for part in table.parts)
            if len(table.parts) == 1 and (shared := [one for one in tables if one.endswith(f".{table.name}")]):
                raise UnsafeSQL(f"{visible!r} is in several databases: write {' or '.join(map(repr, shared[:9]))}")
            bare = " (tables are named here without a schema)" if len(table.parts) > 1 else ""
            raise UnsafeSQL(f"no table {visible!r}{bare} in {did_you_mean(table.name, tables)}")


def _words_in(sql: str, dialect: Dialect) -> frozenset[str] | None:
    """All names and texts in a statement, of which columns are some; None if it may read columns unnamed."""
    words = set()
    tree = trees_of(sql, dialect.name)[0]
    rows = {table.alias_or_name.casefold() for table in tree.find_all(exp.Table)}
    for node in tree.walk():
        if isinstance(node, exp.Column) and not node.table and node.name.casefold() in rows:  # a row as a value
            return None
        if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
            return None
        if isinstance(node, exp.Join) and node.args.get("method"):  # NATURAL
            return None
        if isinstance(node, exp.Identifier | exp.Literal):
            words.add(node.name.casefold())
    return frozenset(words)


MOST_COPIED = 5_000_000
"""The most rows of a table in a database or a lake that are copied for a statement in another engine."""


@dataclass(frozen=True)
class Reader:
    """Runs statements over some tables of a corpus, under the guard.

    They run in the engine that holds most of the tables' rows; tables of other engines are copied there once.
    Private columns do not exist for them: a model may have written them, and may read their rows.

    Attributes:
        corpus: where the tables are.
        tables: name in SQL → table id.
        limits: rows, seconds and megabytes at most.
        brought: further tables that only internal statements may name.
    """

    corpus: Corpus = field(repr=False)
    tables: Mapping[str, str]
    limits: SQLLimits = field(default_factory=SQLLimits)
    brought: Mapping[str, pa.Table] = field(default_factory=dict)
    _copies: dict[tuple[str, ...], pa.Table] = field(default_factory=dict, repr=False)

    @cached_property
    def engine(self) -> Engine:
        """The engine that runs statements: the one that holds most of the rows.

        Raises:
            SourceNotFound: a table's rows no longer exist.
        """
        rows: dict[Engine, int] = defaultdict(int)
        for id in self.tables.values():
            engine = self.corpus.engine(id)
            if engine is None or (engine.path is not None and not engine.path.exists()):
                why = "only its schema is known" if engine is None else f"there is no file {engine.path}"
                raise SourceNotFound(f"the rows of {id} cannot be read: {why}")
            rows[engine] += self.corpus.profile(id).rows or 0
        return max(rows, key=lambda engine: rows[engine])

    def run(self, sql: str, limits: SQLLimits | None = None) -> pd.DataFrame:
        """The rows of a statement in the engine's dialect.

        Raises:
            UnsafeSQL: as :func:`check_sql`, or the engine refused it.
            SQLFailed: it does not compile, or exceeds its limits; a result with too many rows is never cut silently.
            SourceNotFound: a table's rows no longer exist.
            UnreadableTable: a table cannot be read.
        """
        return self._execute(sql, limits or self.limits, explain=False)

    def drop_copies(self) -> None:
        """Forget the tables that were copied for its statements."""
        self._copies.clear()

    def compile(self, sql: str) -> str:
        """The statement as it may run, checked and compiled but not run; raises as :meth:`run`."""
        self._execute(sql, self.limits, explain=True)
        return without_end(self.resolved(sql), self.engine.dialect)

    def resolved(self, sql: str) -> str:
        """The statement with ``database.table`` replaced by the name of the table here."""
        return with_known_names(sql, self.tables, self.engine.dialect)

    def named(self, sql: str) -> dict[str, str]:
        """The tables of the corpus that the statement reads, by their names in it."""
        return named_tables(self.resolved(sql), self.tables, self.engine.dialect)

    def read(self, sql: str) -> ReadStatement | None:
        """What a statement that :func:`check_sql` has accepted reads, joins and compares; None if it cannot be read."""
        dialect, known = self.engine.dialect, dict[str, KnownTable]()
        for name, id in self.named(sql).items():
            columns = self.corpus.profile(id).columns
            known[dialect.fold(name)] = KnownTable(id, {dialect.fold(one.name): one.name for one in columns})
        try:
            tree = parse(self.resolved(sql), dialect.tree)[0]
        except (SqlglotError, RecursionError, UnsafeSQL):
            return None
        return ReadStatement(tree, dialect, lambda table: known.get(dialect.fold(table.name)))

    def _execute(self, sql: str, limits: SQLLimits, *, explain: bool) -> pd.DataFrame:
        try:
            return self._checked(sql, limits, explain=explain)
        except (UnsafeSQL, SQLFailed) as error:
            if named := self._private_in(sql):
                raise type(error)(
                    f"{named} is private: no statement may read it, because a model may read the rows; "
                    "corpus.read and merges have it"
                ) from None
            raise

    def _private_in(self, sql: str) -> str:
        """A private column that a statement may name; "" for none."""
        private = private_of(self.corpus)
        if not private:
            return ""
        words = {*re.findall(r"\w+", sql.casefold())}
        with suppress(UnsafeSQL):
            for table in self.named(sql).values():
                for one, column in sorted(private):
                    if one == table and {*re.findall(r"\w+", column.casefold())} <= words:
                        return f"{one}.{column}"
        return ""

    def _checked(self, sql: str, limits: SQLLimits, *, explain: bool, whole: bool = False) -> pd.DataFrame:
        engine = self.engine
        start = time.monotonic()
        checked = check_sql(self.resolved(sql), [*self.tables, *self.brought], engine.dialect)
        named = named_tables(checked, self.tables, engine.dialect)
        brought = named_tables(checked, self.brought, engine.dialect)
        spent = time.monotonic() - start
        # An engine that only holds rows runs no statement where the tables are: they are copied for each.
        in_place = not engine.is_copied or engine.dialect != SQLITE
        own, others, words = {}, {}, None
        if (engine.dialect == SQLITE or engine.is_copied) and not whole:
            words = _words_in(checked, engine.dialect)
        for name, id in named.items():
            profile = self.corpus.profile(id)
            visible = [column.name for column in profile.for_prompts]
            is_own = self.corpus.engine(id) == engine and in_place
            if words is not None and not (is_own and not engine.is_copied):  # one at least: the rows are counted
                visible = [column for column in visible if column.casefold() in words] or visible[:1]
            if is_own:
                own[name] = Readable(self.corpus.source_table(id), tuple(visible))
                continue
            copy = next((one for (of, *has), one in self._copies.items() if of == id and {*visible} <= {*has}), None)
            if copy is None:
                copy = self._copy(id, profile, visible, limit=1 if explain else None)
                if not explain:
                    self._copies[id, *visible] = copy
            others[name] = copy
        try:
            with logs.statement("answer", checked, engine.dialect.name):
                return engine.execute(UntrustedStatement(checked, own, {**others, **brought}, limits, explain, spent))
        except SQLFailed:
            if words is not None and (others or engine.is_copied):  # a message lists all columns, if one is not there
                self._checked(sql, limits, explain=True, whole=True)
            raise

    def _copy(self, id: str, profile: TableProfile, visible: Sequence[str], limit: int | None) -> pa.Table:
        engine = self.corpus.engine(id)
        is_large = engine is not None and engine.picks_rows and (profile.rows or 0) > MOST_COPIED
        if is_large and limit is None:
            raise SQLFailed(
                f"{id} has {profile.rows:,} rows, and all of them would be copied from "
                f"{engine.identity if engine else id} to run the statement in {self.engine.dialect.name}; at most "
                f"{MOST_COPIED:,} are copied: read only the rows that you need (found.merge(where=…, columns=…)), and "
                "ask over that frame"
            )
        rows = self.corpus.read(id, visible, limit=limit)
        return self.engine.dialect.brought(rows)
