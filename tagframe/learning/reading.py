"""Read a statement: which tables it uses, and on which columns it joins them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import TypeVar

from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from tagframe.corpus import Corpus, TableProfile
from tagframe.corpus.references import JoinColumns
from tagframe.corpus.statements import Statement
from tagframe.engines.sql_reader import KnownTable, ReadStatement, SourceColumn, bare, parse
from tagframe.errors import UnreadStatement, UnsafeSQL
from tagframe.keys.column_names import own

_PARAMETERS = exp.Placeholder, exp.Parameter
_LITERALS = (
    exp.Literal, exp.National, exp.RawString, exp.UnicodeString, exp.ByteString, exp.HexString, exp.BitString,
    exp.Heredoc, exp.JSONPath, *_PARAMETERS,
)  # fmt: skip
_FILES = (".parquet", ".csv", ".json")
_BEFORE = re.compile(
    r"\s*(?:EXPLAIN|PREPARE|DECLARE)\b.*?(?=\b(?:SELECT|INSERT|CREATE|WITH\s+(?:RECURSIVE\s+)?[\w\"]+\s+AS)\b)",
    re.I | re.S,
)
"""The words before a statement that is explained, prepared or read by a cursor."""
_READS = re.compile(
    r"(?:[\s(]|--[^\n]*|/\*.*?\*/)*+(?:SELECT|WITH|FROM|INSERT|UPDATE|DELETE|MERGE|COPY|UNLOAD|EXPORT|REPLACE|"
    r"CREATE(?!\s+(?:OR\s+\w+\s+)?(?:FUNCTION|PROCEDURE|TRIGGER)))\b",
    re.IGNORECASE | re.DOTALL,
)
_PARAMETER = re.compile(r"%(?:\(\w+\))?s|\?(?![?|&])")
"""Placeholders of Python's drivers and others, which a dialect may read as operators."""
_LONGEST = 100_000
"""The longest statement that is read, in characters: a program wrote a longer one, and it says little."""

Node = TypeVar("Node", bound=exp.Expr)


class Names:
    """The names that statements may use for the tables of a corpus.

    Args:
        corpus: the corpus.
    """

    def __init__(self, corpus: Corpus) -> None:
        self.profiles: Mapping[str, TableProfile] = {profile.id: profile for profile in corpus.profiles}
        self._ids: dict[str, set[str]] = defaultdict(set)
        self._in_schema: set[str] = set()
        for id, profile in self.profiles.items():
            source = corpus.source_table(id)
            if "." in source and corpus.engine(id) is not None:
                self._in_schema.add(id)
            for name in (id, profile.name, source, source.rpartition(".")[2]):
                self._ids[name.casefold()].add(id)
        self._known: dict[str, KnownTable] = {}

    def tables(self, named: Iterable[exp.Table], database: str = "") -> dict[str, str]:
        """The id of each table, by its name in the statement; tables with the same name are chosen from one database.

        Raises:
            UnreadStatement: no table has a name, or several have it.
        """
        may: dict[str, set[str]] = {}
        for table in named:
            parts = [part.name.casefold() for part in table.parts]
            called = [".".join(parts[start:]) for start in range(len(parts))]
            ids = next((self._ids[name] for name in called if name in self._ids), set())
            # if a schema is named, the table's bare name does not match tables of other schemas
            is_elsewhere = len(parts) > 1 and not any(name in self._ids for name in called[:-1])
            may[called[0]] = ids - self._in_schema if is_elsewhere else ids
        if unknown := sorted(name for name, ids in may.items() if not ids):
            raise UnreadStatement(f"no table here is called {', '.join(map(repr, unknown))}")
        by_database = {name: {self.profiles[id].database.casefold(): id for id in ids} for name, ids in may.items()}
        shared = {database.casefold()} if database else set.intersection(*map(set, by_database.values()))
        home = next(iter(shared)) if len(shared) == 1 else ""
        chosen = {}
        for name, ids in may.items():
            id = by_database[name].get(home) or (next(iter(ids)) if len(ids) == 1 else None)
            if id is None:
                several = " or ".join(sorted(ids)[:3])
                raise UnreadStatement(f"{name!r} may be {several}{', …' if len(ids) > 3 else ''}")
            chosen[name] = id
        return chosen

    def __contains__(self, name: str) -> bool:
        return name in self._ids

    def known(self, id: str) -> KnownTable:
        """A table as the reader of statements knows it."""
        if id not in self._known:
            columns = {column.name.casefold(): column.name for column in self.profiles[id].columns}
            self._known[id] = KnownTable(id, columns)
        return self._known[id]


def read_statement(
    sql: str, names: Names, dialects: Sequence[str], *, database: str = "", cells: bool = False
) -> Statement:
    """The tables that a statement reads, and its joins.

    Args:
        sql: one statement; if it writes or defines something, the query in it is read.
        names: of the corpus' tables.
        dialects: its possible dialects, by sqlglot's names; the first that can read it is used.
        database: of its tables, if several databases have such tables.
        cells: whether its literals are kept.

    Raises:
        UnreadStatement: it cannot be parsed, selects nothing, or names tables that are not there.
    """
    try:
        return _statement(sql, names, dialects, database, cells)
    except RecursionError as error:
        raise UnreadStatement("it is nested too deep") from error


def _statement(sql: str, names: Names, dialects: Sequence[str], database: str, cells: bool) -> Statement:
    tree, dialect = _parsed(sql, dialects)
    query = tree if isinstance(tree, exp.Query) else tree.find(exp.Query)
    if query is None:
        raise UnreadStatement("it selects nothing")
    _name_files(query, names)
    clause = tree.args.get("with_")
    if query is not tree and clause is not None and not query.args.get("with_"):
        query.set("with_", clause)
    read = _Read(query, names, database)
    if not read.tables:
        raise UnreadStatement("it reads no table")
    whole = _written(query, dialect, copy=True) if cells else ""
    joins = tuple(read.joins())
    read.forget_literals()
    bare = _written(query, dialect)
    return Statement(tuple(sorted({*read.tables.values()})), bare, joins=joins, cells=whole)


def _name_files(query: exp.Expr, names: Names) -> None:
    """Replace a file that is read (``read_parquet("lake/orders/*.parquet")``) by the name of its table."""
    for table in query.find_all(exp.Table):
        path = table.name
        if isinstance(table.this, exp.Func):
            called = table.this.name if isinstance(table.this, exp.Anonymous) else table.this.sql_name()
            texts = (one.name for one in table.this.find_all(exp.Literal))
            path = next(texts, "") if called.casefold().startswith("read_") else ""
        if ("/" in path or PurePath(path).suffix.lower() in _FILES) and path.casefold() not in names:
            whole = PurePath(path)
            stem = next((part for part in (whole.name.split(".")[0], whole.parent.name) if part.strip("*")), "")
            table.set("this", exp.to_identifier(stem, quoted=True))


def with_names(sql: str, tables: Sequence[str], names: Names, called: Mapping[str, str], dialect: str) -> str | None:
    """A learned statement with other names for its tables; None if it cannot be read, or a column is gone.

    Args:
        sql: the statement.
        tables: ids of the tables that it reads.
        names: of the corpus' tables.
        called: the new name of each table, by id.
        dialect: of the engine.
    """
    databases = {names.profiles[id].database for id in tables}
    with suppress(UnreadStatement):
        tree, _ = _parsed(sql, (dialect, ""))
        read = _Read(tree, names, databases.pop() if len(databases) == 1 else "")
        columns = [column for column in read.all_of(exp.Column) if not isinstance(column.this, exp.Star)]
        if not {column.name.casefold() for column in columns} <= read.columns | read.aliases:
            return None
        for parameter in read.all_of(*_PARAMETERS):
            parameter.replace(exp.var("?"))
        for column in columns:
            column.set("db", None)
            column.set("catalog", None)
        for table, id in [(table, id) for table in read.mentioned if (id := read.id_of(table)) is not None]:
            alias = table.alias_or_name
            if table.name.casefold() != called[id].casefold() or table.db:
                new = exp.Table(this=exp.to_identifier(called[id], quoted=table.this.args.get("quoted") or None))
                is_called = table.alias or alias.casefold() != called[id].casefold()
                table.replace(exp.alias_(new, alias, table=True) if is_called else new)
        return _written(tree, dialect)
    return None


def _written(tree: exp.Expr, dialect: str, copy: bool = False) -> str:
    try:
        return tree.sql(dialect=dialect, copy=copy, comments=False, unsupported_level=ErrorLevel.IGNORE)
    except (SqlglotError, RecursionError, ValueError) as error:
        raise UnreadStatement(f"it cannot be written as SQL: {error}") from error


def _parsed(sql: str, dialects: Sequence[str]) -> tuple[exp.Expr, str]:
    if len(sql) > _LONGEST:
        raise UnreadStatement(f"it has more than {_LONGEST:,} characters")
    sql = _BEFORE.sub("", sql.replace("\0", " "), count=1)
    if not _READS.match(sql):
        raise UnreadStatement("it selects nothing")
    why = ""
    for text, dialect in [*((sql, dialect) for dialect in dialects), (_PARAMETER.sub(":p", sql), dialects[0])]:
        try:
            trees = parse(text, dialect)
        except (SqlglotError, UnsafeSQL, RecursionError, ValueError) as error:
            why = why or str(error).splitlines()[0][:200].split(". Line ")[0]
            continue
        whole = [tree for tree in trees if not isinstance(tree, exp.Semicolon)]
        if len(whole) == 1:
            return whole[0], dialect
        why = why or f"it has {len(whole)} statements"
    raise UnreadStatement(f"it cannot be parsed: {why}")


@dataclass(frozen=True)
class _Read:
    """A query over the tables of a corpus."""

    query: exp.Expr
    names: Names
    database: str

    @cached_property
    def nodes(self) -> list[exp.Expr]:
        """All nodes, from the top."""
        return list(self.query.walk())

    def all_of(self, *kinds: type[Node]) -> Iterator[Node]:
        """The nodes of these kinds."""
        return (node for node in self.nodes if isinstance(node, kinds))

    @cached_property
    def statement(self) -> ReadStatement:
        """What it reads and joins."""
        return ReadStatement(self.query, table_of=self._known)

    @cached_property
    def mentioned(self) -> list[exp.Table]:
        """The tables that it reads, each as often as it appears; without those of its own WITH."""
        return [one for one in self.statement.mentioned() if one.name and not isinstance(one.this, exp.Func)]

    @cached_property
    def tables(self) -> dict[str, str]:
        """The id of each table, by its name in the statement."""
        return self.names.tables(self.mentioned, self.database) if self.mentioned else {}

    def id_of(self, table: exp.Table) -> str | None:
        """The id of the table in the corpus; None if the query does not read it."""
        return self.tables.get(".".join(part.name.casefold() for part in table.parts))

    def _known(self, table: exp.Table) -> KnownTable | None:
        id = self.id_of(table)
        return None if id is None else self.names.known(id)

    def _equal(self) -> Iterator[tuple[SourceColumn | None, SourceColumn | None]]:
        """The columns that are equal in every row of a block."""
        source = self.statement.source
        for (left, right), (block, other), is_required in self.statement.equalities:
            if is_required:
                ends = bare(left, keeps_distinct=True), bare(right, keeps_distinct=True)
                yield source(ends[0], block, follows=True), source(ends[1], other, follows=True)
        for join, block in self.statement.joins:
            yield from self.statement.shared(join, block, follows=True)

    def joins(self) -> list[JoinColumns]:
        """The keys on which two tables are joined; a key may have several columns."""
        pairs: dict[frozenset[object], dict[frozenset[tuple[str, str]], None]] = defaultdict(dict)
        for left, right in self._equal():
            if left is not None and right is not None and left[2:] != right[2:] and left[:2] != right[:2]:
                pairs[frozenset((left[2:], right[2:]))][frozenset((left[:2], right[:2]))] = None
        joins: dict[object, JoinColumns] = {}
        for equal in pairs.values():
            ends = {tuple(sorted(table for table, _ in pair)) for pair in equal}
            if len(ends) == 1:
                key = self._key([sorted(pair) for pair in equal])
                joins[key.sides] = key
        return list(joins.values())

    def _key(self, pairs: Sequence[Sequence[tuple[str, str]]]) -> JoinColumns:
        """The key with the referencing side first; the other side is its table's key by values, declaration or name."""
        (left, _), (right, _) = pairs[0]
        mine, other = tuple(pair[0][1] for pair in pairs), tuple(pair[1][1] for pair in pairs)
        if self._is_key(left, mine) > self._is_key(right, other):
            return JoinColumns(right, other, left, mine)
        return JoinColumns(left, mine, right, other)

    def _is_key(self, table: str, columns: tuple[str, ...]) -> float:
        profile = self.names.profiles[table]
        if set(profile.primary_key) == set(columns):
            return 2.0
        known = [profile.column(column) for column in columns]
        if any(one.distinct and one.rows is not None and one.distinct >= one.rows - (one.nulls or 0) for one in known):
            return 1.5
        return max(own(column, profile.name) for column in columns)

    @cached_property
    def columns(self) -> set[str]:
        """The names of all columns of its tables."""
        tables = [self.names.profiles[id] for id in {*self.tables.values()}]
        return {column.name.casefold() for table in tables for column in table.columns}

    @cached_property
    def aliases(self) -> set[str]:
        """The aliases that it defines."""
        given = [name for one in self.all_of(exp.TableAlias) for name in (one.this, *(one.args.get("columns") or ()))]
        return {one.alias.casefold() for one in self.all_of(exp.Alias)} | {one.name.casefold() for one in given if one}

    def forget_literals(self) -> None:
        """Replace every literal and parameter by ``?``; a list, or many rows of values, becomes a single one. A name
        that repeats the text of a literal (a column named after a value) is replaced by another name."""
        named = {part.name.casefold() for table in self.mentioned for part in table.parts}
        texts = {node.name.casefold() for node in self.all_of(exp.Literal)} - self.columns - named
        known = self.columns | self.aliases

        def is_literal(node: object) -> bool:
            return isinstance(node, _LITERALS) or (
                isinstance(node, exp.Column) and not node.table and isinstance(node.this, exp.Identifier)
                and (node.this.quoted or node.name.startswith("$")) and node.name.casefold() not in known
            )  # fmt: skip

        for node in self.nodes:
            if isinstance(node, exp.Identifier) and (node.name.casefold() in texts or node.name.startswith("'")):
                node.set("this", "a_literal")
            elif isinstance(node, exp.Hint):
                node.pop()
            elif not isinstance(node, exp.DataTypeParam):
                # from the parent's side: replacing the items of a list one by one would walk the list each time
                for name, part in list(node.args.items()):
                    if isinstance(part, list) and any(map(is_literal, part)):
                        node.set(name, [exp.var("?") if is_literal(one) else one for one in part])
                    elif is_literal(part):
                        node.set(name, exp.var("?"))
        for node in self.all_of(exp.In, exp.Values, exp.Tuple):
            if node.expressions and all(one == node.expressions[0] for one in node.expressions):
                node.set("expressions", node.expressions[:1])
