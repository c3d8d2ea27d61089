"""Statements: parsed once, and what they read, join and compare.

sqlglot's own scopes are not used: they compare the names of WITH by case, do not know which entries of a WITH an engine
lets another one name, and fail on a statement of which a part has no scope.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tagframe.engines.sql_text import quoted
from tagframe.errors import UnsafeSQL

if TYPE_CHECKING:
    from tagframe.engines.base import Dialect

T = TypeVar("T")

LONGEST = 50_000
"""The longest statement in characters; far more than a model writes for a question."""
_STEPS = 30
"""How many steps the parser may make for each token: it goes back where it guessed wrong, and again inside of that."""
_SOURCES = (exp.Table, exp.Subquery)
_DEEP = 20
"""The depth of nested queries through which a column is followed."""


# --- parsing ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def trees_of(sql: str, dialect: str | type[sqlglot.Dialect]) -> tuple[exp.Expr, ...]:
    """The statements of a text; the trees are shared by all who read the text, and must not be changed.

    Args:
        sql: one statement, or what should be one.
        dialect: sqlglot's class that reads it, or its name.

    Raises:
        UnsafeSQL: it is too long, takes too many steps to parse, does not parse, or is nested too deeply.
    """
    excerpt = f"{sql[:200]!r}"
    if len(sql) > LONGEST:
        raise UnsafeSQL(f"the SQL is {len(sql):,} characters long, and {LONGEST:,} at most may run: {excerpt}")
    try:
        return tuple(parse(sql, dialect, shifts_indexes=False))
    except SqlglotError as error:
        raise UnsafeSQL(f"the SQL does not parse: {str(error).splitlines()[0]}; statement: {excerpt}") from error
    except RecursionError as error:
        raise UnsafeSQL(f"the SQL is nested too deeply: {excerpt}") from error


def first_tree(sql: str, dialect: str) -> exp.Expr | None:
    """The first statement of a text, as :func:`trees_of` gives it; None if it does not parse, or is empty."""
    try:
        return next(iter(trees_of(sql, dialect)), None)
    except UnsafeSQL:
        return None


def parse(sql: str, dialect: str | type[sqlglot.Dialect] | None, *, shifts_indexes: bool = True) -> list[exp.Expr]:
    """The statements of a text, as new trees.

    Args:
        sql: any text.
        dialect: sqlglot's class that reads it, or its name; None for the common part of most dialects.
        shifts_indexes: whether indexes of lists count from 0 in the tree, so that they can be written in any dialect.
            To shift one, the parser looks at all that stands before it each time: not for statements of a model.

    Raises:
        SqlglotError, ValueError: it does not parse.
        RecursionError: it is nested too deeply.
        UnsafeSQL: it takes too many steps.
    """
    reads = sqlglot.Dialect.get_or_raise(dialect)
    if not shifts_indexes:
        reads.INDEX_OFFSET = 0
    tokens = reads.tokenize(sql)
    parser = _counting(type(reads))(dialect=reads)
    parser.steps_left = 1_000 + _STEPS * len(tokens)
    return [tree for tree in parser.parse(tokens, sql) if tree is not None]


@cache
def _counting(dialect: type[sqlglot.Dialect]) -> Any:
    """The dialect's parser, which stops after so many steps."""
    base: Any = dialect.parser_class

    class Counting(base):  # type: ignore[misc]
        """Counts each move from one token to another."""

        steps_left = 0

        def _advance(self, times: int = 1) -> None:
            self.steps_left -= 1
            if self.steps_left < 0:
                # Not an error of sqlglot's, which its parser would take for a wrong guess.
                raise UnsafeSQL(f"the SQL takes too many steps to parse: {self.sql[:200]!r}")
            super()._advance(times)

    return Counting


# --- reading ---------------------------------------------------------------------------------------------------------


class TableUse(NamedTuple):
    """A table where a statement names it.

    Attributes:
        node: the name in the tree.
        entry: the entry of a WITH that the name stands for, if it has no schema; None for a table of the source.
    """

    node: exp.Table
    entry: exp.CTE | None


class KnownTable(NamedTuple):
    """A table of the source.

    Attributes:
        id: its name for the caller.
        columns: their names, by the names as the engine compares them.
    """

    id: str
    columns: Mapping[str, str]


class SourceColumn(NamedTuple):
    """A column of a table of the source.

    Attributes:
        table: its id.
        column: its name.
        block: identifies the block of the query that reads the table.
        alias: of the table in that block, as the engine compares names.
    """

    table: str
    column: str
    block: int
    alias: str


ColumnPair: TypeAlias = tuple[SourceColumn, SourceColumn]


class Equality(NamedTuple):
    """Two expressions that a statement compares with = or IN (SELECT …), each with the block in which it stands.

    Attributes:
        sides: the expressions.
        blocks: in which they stand.
        is_required: whether it holds for every row of its block: it is a part of WHERE, HAVING or ON.
    """

    sides: tuple[exp.Expr, exp.Expr]
    blocks: tuple[exp.Expr, exp.Expr]
    is_required: bool


class TextTest(NamedTuple):
    """A column that a statement compares with texts.

    Attributes:
        column: the column.
        texts: the texts; none is blank.
        test: the comparison.
        block: in which it stands.
        is_optional: whether it is a part of an OR or a CASE: no row has to pass it.
    """

    column: exp.Column
    texts: tuple[str, ...]
    test: exp.Expr
    block: exp.Expr | None
    is_optional: bool


class _Place(NamedTuple):
    """Where a node stands: its block, the entries that it may name, and how its block tests it."""

    block: exp.Expr | None
    entries: Mapping[str, exp.CTE]
    is_required: bool = False
    is_optional: bool = False


class ReadStatement:
    """What one statement reads, joins and compares, found in one walk over its tree.

    Args:
        tree: of any statement; it is not changed.
        dialect: of the engine that runs it. None for a statement of unknown origin: names are compared without case,
            and each entry of a WITH sees all others, but itself only if it is recursive.
        table_of: gives a table of the source for its name in the statement; None for other names.

    Attributes:
        tables: all tables that it names, also those of WITH.
        columns: all columns, each with its block.
        equalities: all comparisons by =, and those by IN with a query.
        text_tests: the comparisons of columns with texts.
        joins: all joins, each with its block.
    """

    def __init__(
        self,
        tree: exp.Expr,
        dialect: Dialect | None = None,
        table_of: Callable[[exp.Table], KnownTable | None] = lambda table: None,
    ) -> None:
        self.tree, self._dialect, self._table_of = tree, dialect, table_of
        self.fold: Callable[[str], str] = str.casefold if dialect is None else dialect.fold
        self.tables: list[TableUse] = []
        self.columns: list[tuple[exp.Column, exp.Expr | None]] = []
        self.equalities: list[Equality] = []
        self.text_tests: list[TextTest] = []
        self.joins: list[tuple[exp.Join, exp.Expr]] = []
        self._entries: dict[int, exp.CTE | None] = {}
        self._aliases: set[int] = set()
        self._blocks: dict[int, dict[str, exp.Expr]] = {}
        self._walk()

    def mentioned(self) -> list[exp.Table]:
        """The tables of the source that it names, each as often as it appears."""
        return [use.node for use in self.tables if use.entry is None]

    def source(self, node: exp.Expr | None, block: exp.Expr | None, *, follows: bool = False) -> SourceColumn | None:
        """The table column that an expression is in its block, or in one around it; None if it is not just one.

        Args:
            node: any expression.
            block: in which it stands.
            follows: whether it is also followed through the queries of FROM and WITH.
        """
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            return None
        may: list[SourceColumn] | None = None
        while block is not None and may is None:
            may = self._in_block(node, block, _DEEP if follows else 0)
            block = block.parent_select
        return may[0] if may and len(may) == 1 else None

    @property
    def items(self) -> list[exp.Expr]:
        """The items of its SELECT; none if it is no query."""
        return list(self.tree.selects) if isinstance(self.tree, exp.Query) else []

    @property
    def reads_tables(self) -> bool:
        """Whether it names a table of the source."""
        return any(self._table_of(table) is not None for table in self.mentioned())

    def known_tables(self, block: exp.Expr) -> list[tuple[str, KnownTable]]:
        """The tables of the source that a block reads directly, not through another block, by their aliases."""
        direct = [one for one in self.sources(block).values() if isinstance(one, exp.Table)]
        known = [(one.alias_or_name, self._table_of(one)) for one in direct if self._entries[id(one)] is None]
        return [(alias, table) for alias, table in known if table is not None]

    def query_of(self, source: exp.Expr) -> exp.Expr | None:
        """The query behind a source of a block, in FROM or in WITH; None for a table of the source."""
        inside = self._entries.get(id(source)) if isinstance(source, exp.Table) else source
        query: exp.Expr | None = None if inside is None else inside.this
        return query

    def columns_in(self, source: exp.Expr) -> set[str] | None:
        """The names of the columns of a source of a block, as the engine compares them; None if they are not known."""
        query = self.query_of(source)
        if query is None:
            known = self._table_of(source) if isinstance(source, exp.Table) else None
            return None if known is None else {*known.columns}
        while isinstance(query, exp.SetOperation | exp.Subquery):
            query = query.this
        if not isinstance(query, exp.Select) or any(item.is_star for item in query.expressions):
            return None
        return {self.fold(item.alias_or_name) for item in query.expressions}

    def read_columns(self) -> list[SourceColumn]:
        """The table columns that it names, each once."""
        columns = [self.source(node, block) for node, block in self.columns if id(node) not in self._aliases]
        return list({one[:2]: one for one in columns if one is not None}.values())

    def joined_columns(self) -> list[ColumnPair]:
        """The columns of two tables that it makes equal somewhere, by = or USING, each pair once."""
        pairs = [
            (self.source(bare(left), block), self.source(bare(right), block))
            for (left, right), (block, other), _ in self.equalities
            if other is block
        ]
        known = [(left, right) for left, right in pairs if left and right and left.table != right.table]
        known += [pair for join, block in self.joins for pair in self.shared(join, block)]
        return list({(left[:2], right[:2]): (left, right) for left, right in known}.values())

    def compared_columns(self, *, optional: bool = False) -> list[tuple[SourceColumn, TextTest]]:
        """The table columns that it compares with texts.

        Args:
            optional: also in parts of an OR or a CASE, which no row has to pass.
        """
        tests = [
            (self.source(one.column, one.block), one) for one in self.text_tests if optional or not one.is_optional
        ]
        return [(column, one) for column, one in tests if column is not None]

    def shared(self, join: exp.Join, block: exp.Expr, *, follows: bool = False) -> Iterator[ColumnPair]:
        """The pairs of columns of a join with USING, or of a natural one."""
        sources, depth = self.sources(block), _DEEP if follows else 0
        before = dict(takewhile(lambda one: one[1] is not join.this, sources.items()))
        names = [name.name for name in join.args.get("using") or []]
        if join.method == "NATURAL" and isinstance(join.this, exp.Table):
            known = None if self._entries.get(id(join.this)) else self._table_of(join.this)
            names = [] if known is None else list(known.columns)
        for name in names:
            left = (self._in_source(one, block, alias, name, depth) for alias, one in before.items())
            right = self._in_source(join.this, block, self.fold(join.this.alias_or_name), name, depth)
            pair = next(filter(None, left), None), right
            if pair[0] is not None and pair[1] is not None:
                yield pair[0], pair[1]

    # --- the walk ---

    def _walk(self) -> None:
        waiting: list[tuple[exp.Expr, _Place]] = [(self.tree, _Place(None, {}))]
        while waiting:
            node, place = waiting.pop()
            if isinstance(node, exp.Select):
                place = _Place(node, place.entries)
                self._aliases |= {id(column) for column in _named_by_items(node)}
            inside = list(self._with_entries(node, place))
            if inside:
                own = {self.fold(entry.alias_or_name): entry for entry, _ in inside}
                place = _Place(place.block, {**place.entries, **own}, place.is_required, place.is_optional)
            self._note(node, place)
            children = [(child, self._place(child, node, place)) for child in node.iter_expressions()]
            waiting += reversed([*inside, *(one for one in children if not isinstance(one[0], exp.With))])

    def _note(self, node: exp.Expr, place: _Place) -> None:
        if isinstance(node, exp.Table):
            entry = None if node.db else place.entries.get(self.fold(node.name))
            self._entries[id(node)] = entry
            self.tables.append(TableUse(node, entry))
        elif isinstance(node, exp.Column):
            self.columns.append((node, place.block))
        elif isinstance(node, exp.Join) and place.block is not None:
            self.joins.append((node, place.block))
        elif isinstance(node, exp.EQ | exp.NEQ | exp.In | exp.Like | exp.ILike | exp.Glob):
            self.equalities += self._equality(node, place)
            self.text_tests += self._text_test(node, place)

    @staticmethod
    def _place(node: exp.Expr, parent: exp.Expr, place: _Place) -> _Place:
        is_condition = isinstance(parent, exp.Where | exp.Having) or parent.args.get("on") is node
        is_part = isinstance(parent, exp.And | exp.Paren) and place.is_required
        is_optional = place.is_optional or isinstance(parent, exp.Or | exp.Case)
        return _Place(place.block, place.entries, is_condition or is_part, is_optional)

    def _with_entries(self, node: exp.Expr, place: _Place) -> Iterator[tuple[exp.CTE, _Place]]:
        """The entries of a node's WITH, each with those that it may name."""
        clause = node.args.get("with_")
        if not isinstance(clause, exp.With):
            return
        own = {self.fold(entry.alias_or_name): entry for entry in clause.expressions}
        before = dict[str, exp.CTE]()
        rule: Literal["before", "all if recursive", "all", None] = (
            None if self._dialect is None else self._dialect.entries_seen
        )
        for entry in clause.expressions:
            name = self.fold(entry.alias_or_name)
            if rule is None:
                seen = own if clause.recursive else {one: own[one] for one in own if one != name}
            elif rule == "all" or (rule == "all if recursive" and clause.recursive):
                seen = own
            else:
                calls_itself = clause.recursive and isinstance(entry.this, exp.SetOperation)
                seen = before | ({name: entry} if calls_itself else {})
            yield entry, _Place(None, {**place.entries, **seen})
            before = before | {name: entry}

    @staticmethod
    def _equality(node: exp.Expr, place: _Place) -> Iterator[Equality]:
        if place.block is None:
            return
        if isinstance(node, exp.EQ):
            yield Equality((node.left, node.right), (place.block, place.block), place.is_required)
        elif isinstance(node, exp.In) and (inner := node.args.get("query")) is not None:
            select = inner.this if isinstance(inner, exp.Subquery) else inner
            if isinstance(select, exp.Select) and len(select.expressions) == 1:
                sides = node.this, select.expressions[0].unalias()
                yield Equality(sides, (place.block, select), place.is_required)

    @staticmethod
    def _text_test(node: exp.Expr, place: _Place) -> Iterator[TextTest]:
        column, others = bare(node.this), node.expressions if isinstance(node, exp.In) else [node.expression]
        if not isinstance(column, exp.Column) and isinstance(node, exp.EQ | exp.NEQ):
            column, others = bare(node.expression), [node.this]
        texts = [other.this for other in others if isinstance(other, exp.Literal) and other.is_string]
        if isinstance(column, exp.Column) and texts and len(texts) == len(others) and all(map(str.strip, texts)):
            yield TextTest(column, tuple(texts), node, place.block, place.is_optional)

    # --- sources ---

    def sources(self, block: exp.Expr) -> Mapping[str, exp.Expr]:
        """The tables and queries that a block reads directly, in the order of their joins, by their aliases."""
        if (known := self._blocks.get(id(block))) is not None:
            return known
        relations = self._blocks[id(block)] = dict[str, exp.Expr]()
        clauses = [block.args.get("from_"), *(block.args.get("joins") or [])]
        waiting = [clause.this for clause in clauses if clause is not None]
        while waiting:
            source = waiting.pop(0)
            inside = [join.this for join in source.args.get("joins") or []]
            if isinstance(source, exp.Subquery) and not source.alias and isinstance(source.this, _SOURCES):
                inside.insert(0, source.this)  # joins in brackets, as PostgreSQL writes them
            elif isinstance(source, _SOURCES):
                relations[self.fold(source.alias_or_name)] = source
            waiting[:0] = inside
        return relations

    def _in_source(self, source: exp.Expr, block: exp.Expr, alias: str, name: str, depth: int) -> SourceColumn | None:
        """The table column behind a name in a source of a block."""
        inner: exp.Expr = source.this
        if isinstance(source, exp.Table):
            entry = self._entries.get(id(source))
            if entry is None:
                known = self._table_of(source)
                column = None if known is None else known.columns.get(self.fold(name))
                return None if known is None or column is None else SourceColumn(known.id, column, id(block), alias)
            inner = entry.this
        while isinstance(inner, exp.SetOperation | exp.Subquery):
            inner = inner.this
        if not isinstance(inner, exp.Select) or depth <= 0:
            return None
        for item in inner.expressions:
            if isinstance(item, exp.Star) or self.fold(item.alias_or_name) == self.fold(name):
                behind = exp.column(name) if isinstance(item, exp.Star) else bare(item.unalias(), keeps_distinct=True)
                may = self._in_block(behind, inner, depth - 1) if isinstance(behind, exp.Column) else None
                return may[0] if may and len(may) == 1 else None
        return None

    def _in_block(self, column: exp.Column, block: exp.Expr, depth: int) -> list[SourceColumn] | None:
        """The table columns that a name may be in a block; None if the block does not know the name."""
        sources = self.sources(block)
        if alias := self.fold(column.table):
            if alias not in sources:
                return None
            one = self._in_source(sources[alias], block, alias, column.name, depth)
            return [] if one is None else [one]
        may = [self._in_source(source, block, called, column.name, depth) for called, source in sources.items()]
        has = [one for one in may if one is not None]
        return has[:1] if self._is_shared(column.name, block) else has or None

    def _is_shared(self, name: str, block: exp.Expr) -> bool:
        """Whether joins of a block make one column of those with a name."""
        return any(
            join.method == "NATURAL" or self.fold(name) in [self.fold(one.name) for one in join.args.get("using") or []]
            for join in block.args.get("joins") or []
        )


def _named_by_items(block: exp.Select) -> Iterator[exp.Column]:
    """The names in ORDER BY that are those of items of SELECT, which are preferred to columns."""
    if (order := block.args.get("order")) is not None:
        names = {item.alias for item in block.expressions if isinstance(item, exp.Alias)}
        yield from (node for node in order.find_all(exp.Column) if not node.table and node.name in names)


def bare(node: exp.Expr | None, *, keeps_distinct: bool = False) -> exp.Expr | None:
    """The expression inside brackets, casts, and functions that only change how a text is written.

    Args:
        node: any expression.
        keeps_distinct: leave what may make one value of two: a cast to a date, a change of case.
    """
    while node is not None:
        is_cast = isinstance(node, exp.Cast) and not (keeps_distinct and node.to.is_type("date", "time"))
        is_function = isinstance(node, exp.Anonymous) and node.name.lower() in ("lower", "upper", "trim")
        if isinstance(node, exp.Paren) or is_cast or (isinstance(node, exp.Collate) and not keeps_distinct):
            node = node.this
        elif is_function and node.expressions and not keeps_distinct:
            node = node.expressions[0]
        else:
            break
    return node


# --- the names of tables ---------------------------------------------------------------------------------------------


def named_tables(sql: str, tables: Mapping[str, T], dialect: Dialect) -> dict[str, T]:
    """The tables that a statement reads; columns, aliases and texts with the same name do not count.

    None for a statement that does not parse; running it gives the error.

    Args:
        sql: one statement.
        tables: by their names.
        dialect: the SQL dialect of the engine.
    """
    if (statement := first_tree(sql, dialect.name)) is None:
        return {}
    names = {dialect.fold(use.node.name) for use in ReadStatement(statement, dialect).tables if use.entry is None}
    for node in statement.find_all(exp.In):
        # SQLite takes the name behind IN for a table.
        if isinstance(field := node.args.get("field"), exp.Column | exp.Identifier):
            names.add(dialect.fold(field.name))
    return {name: table for name, table in tables.items() if dialect.fold(name) in names}


def with_known_names(sql: str, tables: Mapping[str, str], dialect: Dialect) -> str:
    """A statement with ``database.table`` replaced by the name of the table here; the rest is unchanged.

    Args:
        sql: the statement; if it does not parse, it is returned unchanged.
        tables: name in SQL → table id, which is ``database.table``.
        dialect: the SQL dialect of the engine.
    """
    if "." not in sql or (statement := first_tree(sql, dialect.name)) is None:
        return sql
    names = {dialect.fold(id): name for name, id in tables.items()}
    dotted = [
        (table, names[full])
        for table in statement.find_all(exp.Table)
        if not table.args.get("catalog") and (full := _dotted(table.args.get("db"), table.this, dialect)) in names
    ]
    if not dotted:
        return sql
    sharing: dict[str, set[str]] = defaultdict(set)
    for table, name in dotted:
        sharing[dialect.fold(table.name)].add(name)
    edits = []
    for table, name in dotted:
        # Its columns may be called by its bare name.
        needs_alias = "." in name and not table.alias and len(sharing[dialect.fold(table.name)]) == 1
        alias = f" AS {quoted(table.name)}" if needs_alias else ""
        edits.append((table.args["db"], table.this, f"{quoted(name)}{alias}"))
    for column in statement.find_all(exp.Column):
        full = _dotted(column.args.get("db"), column.args.get("table"), dialect)
        if full in names and not column.args.get("catalog"):
            bare = column.args["table"].name
            own = names[full] if len(sharing[dialect.fold(bare)]) > 1 else bare
            edits.append((column.args["db"], column.args["table"], quoted(own)))
    for first, last, text in sorted(edits, key=lambda edit: -edit[0].meta["start"]):
        sql = f"{sql[: first.meta['start']]}{text}{sql[last.meta['end'] + 1 :]}"
    return sql


def _dotted(database: exp.Expr | None, table: exp.Expr | None, dialect: Dialect) -> str:
    return dialect.fold(f"{database.name}.{table.name}") if database is not None and table is not None else ""
