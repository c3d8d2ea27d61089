"""Rows that a join repeats and a statement adds up: the same statement in which each of them counts once.

A block that joins a table to several rows of another one repeats the first table's rows ("fan-out"; two such joins are
a "chasm trap"). Its sums, averages and counts of that table's columns are then too large, without a word. The rewritten
block numbers the copies of each row within its group, and aggregates the first copy alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlglot import exp

from tagframe.answer.guard import Reader
from tagframe.answer.sql_tree import (
    ancestors,
    clause_keys,
    column_of,
    conjuncts,
    is_grouped,
    named_items,
    own_nodes,
    with_tables,
    written,
)
from tagframe.corpus import TableProfile
from tagframe.engines.sql_reader import ReadStatement, bare, first_tree
from tagframe.keys import KeyPair
from tagframe.keys.inference import ACCEPTED

_ADD_UP = frozenset(
    "avg corr count favg fsum mean median mode product quantile_cont quantile_disc stddev stddev_pop stddev_samp sum "
    "total var_pop var_samp variance".split()
)
"""Aggregates whose result changes where rows are repeated."""
_DEEP = 8
"""Through how many nested queries a row is followed."""

Column = tuple[str, str]
"""A column of a block: the alias of its source, and its name, as the engine compares names."""
Aliases = tuple[str, ...]


def adding_blocks(statement: ReadStatement) -> list[int]:
    """The positions, among the blocks of a statement, of those that add up rows of a join, also of one inside."""
    blocks = enumerate(statement.tree.find_all(exp.Select))
    return [position for position, block in blocks if any(map(adds_up, own_nodes(block)))]


def adds_up(node: exp.Expr) -> bool:
    """Whether it is an aggregate, also over a window, that repeated rows change."""
    if not isinstance(node, exp.Anonymous) or node.name.lower() not in _ADD_UP:
        return False
    if isinstance(node.parent, exp.WithinGroup):
        return False
    return bool(node.expressions) and not isinstance(node.expressions[0], exp.Distinct)


def with_views(sql: str, statement: ReadStatement, reader: Reader) -> str:
    """A statement with the views that it reads as entries of its WITH, where the source knows what they are made of."""
    if not adding_blocks(statement):
        return sql
    dialect, entries = reader.engine.dialect, list[exp.CTE]()
    for name, id in reader.named(sql).items():
        definition = reader.engine.definitions().get((reader.corpus.source_table(id), ""), "")
        query = first_tree(reader.resolved(definition.strip().rstrip(";")), dialect.tree) if definition else None
        if isinstance(query, exp.Create):  # as SQLite stores it
            query = query.expression
        if isinstance(query, exp.Select):
            entries.append(exp.CTE(this=query.copy(), alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True))))
    if not entries:
        return sql
    tree = statement.tree.copy()
    tree.set("with_", exp.With(expressions=[*entries, *with_tables(tree)]))
    return written(tree, dialect.name)


@dataclass
class Block:
    """One block of a statement; its methods may change the tree, so that each change takes a statement read anew.

    Attributes:
        statement: of which it is a block.
        select: the block.
        reader: that runs the statement.
        tables: the names of the tables whose rows were told apart.
        added: the number of items that were added to queries inside.
    """

    statement: ReadStatement
    select: exp.Select
    reader: Reader
    tables: set[str] = field(default_factory=set)
    added: int = 0

    @property
    def sources(self) -> Mapping[str, exp.Expr]:
        """The tables and queries that it reads, by alias."""
        return self.statement.sources(self.select)

    def count_once(self, branch: str = "") -> set[str]:
        """Rewrite the block so that each row counts once in its aggregates.

        Args:
            branch: a source whose rows count where the block counts all rows; "" leaves such counts.

        Returns:
            The tables whose rows count once; none if there is nothing to rewrite, or it cannot be rewritten.
        """
        repeats = self._repeats(branch) if self._stands_alone() else ()
        # With a frame, a few rows of the window are added up at a time, so that each may count in several sums.
        chosen = [one for one in repeats if one.window is None or one.window.args.get("spec") is None]
        if chosen:
            self._number_copies(chosen)
        return self.tables if chosen else set()

    def _repeats(self, branch: str) -> Iterator[_Repeat]:
        """The aggregates whose rows may be repeated."""
        keys = self._group_keys()
        is_group = is_grouped(self.select)
        for call in [node for node in own_nodes(self.select) if adds_up(node)] if keys is not None else ():
            window = _window_of(call)
            if window is not None and is_group:
                continue  # its rows are groups
            by = keys or [] if window is None else window.args.get("partition_by") or []
            aliases = self._added_up(call) or ((branch,) if branch and call.name.lower() == "count" else ())
            if aliases and self._may_repeat(call, aliases, by):
                rows = self._rows_of(call, aliases)
                if rows is not None:
                    yield _Repeat(call, by, rows, window)

    def branches(self) -> list[str]:
        """The sources that are joined side by side, so that rows of each are repeated for those of another."""
        if len(self.sources) < 3 or len(self._base()) < len(self.sources):
            return []
        reach = {alias: self.determined([], [alias]) for alias in self.sources}
        if any(len(others) == len(self.sources) for others in reach.values()):
            return []
        return [alias for alias in reach if not any(alias in others for of, others in reach.items() if of != alias)]

    def join_whole(self, keys: Sequence[KeyPair]) -> str:
        """Complete the first join by a part of a key of several columns, where that part repeats rows of both sides.

        Args:
            keys: between the tables of the block.

        Returns:
            The whole key in words; "" if all joins are by whole keys.
        """
        tables, joined = self._base(), defaultdict[tuple[str, str], list[tuple[str, str]]](list)
        for (a, mine), (b, theirs) in map(sorted, self.equal_columns()):
            joined[a, b] += [(mine, theirs)] if a != b else []
        for (one, other), pairs in joined.items():
            if (
                one not in tables
                or other not in tables
                or self._is_unique(one, pairs, 0)
                or self._is_unique(other, pairs, 1)
            ):
                continue
            missing = _missing(tables[one], tables[other], pairs, keys, self.statement.fold)
            missing = missing or self._grouped_by_the_other(one, other)
            fold, fixed = self.statement.fold, self._fixed()
            missing = [(a, b) for a, b in missing if {(one, fold(a)), (other, fold(b))}.isdisjoint(fixed)]
            if missing:
                self._require(one, other, missing)
                whole = [*pairs, *missing]
                return " AND ".join(
                    f"{tables[one].name}.{mine} = {tables[other].name}.{theirs}" for mine, theirs in whole
                )
        return ""

    def _group_keys(self) -> list[exp.Expr] | None:
        return clause_keys(self.select, "group", lambda name: bool(self.alias_of(exp.column(name))))

    def _grouped_by_the_other(self, one: str, other: str) -> list[tuple[str, str]]:
        """The columns of GROUP BY of one of two tables of which the other, whose rows are added up, has namesakes: each
        row is else added up in several groups."""
        calls = [call for call in own_nodes(self.select) if adds_up(call)]
        added = {alias for call in calls for alias in self._added_up(call)}
        keys = self._group_keys() or []
        found = {column for key in keys if (column := self._column(key))}
        both = self.sources[one], self.sources[other]
        mine, theirs = (self.statement.columns_in(source) or set() for source in both)
        shared = [name for alias, name in sorted(found) if alias not in added and name in mine & theirs]
        return [(name, name) for name in shared] if len(added & {one, other}) == 1 else []

    def _is_unique(self, alias: str, pairs: Sequence[tuple[str, str]], side: int) -> bool:
        names = {pair[side] for pair in pairs}
        return any({*map(self.statement.fold, key)} <= names for key in unique_keys(self._base()[alias]))

    def _fixed(self) -> list[Column]:
        """The columns that have one value only, by WHERE: a literal, or what a block around this one gives."""
        tests = [test for test in conjuncts(self.select.args.get("where")) if isinstance(test, exp.EQ)]
        sides = [pair for test in tests for pair in ((test.this, test.expression), (test.expression, test.this))]
        given = [one for one, other in sides if isinstance(other, exp.Literal) or self._is_outer(other)]
        return [column for column in map(self._column, given) if column]

    def _require(self, one: str, other: str, pairs: Sequence[tuple[str, str]]) -> None:
        """Require further columns of two sources to be equal, where these are joined."""
        later = max(one, other, key=[*self.sources].index)
        join = next((join for join in self.select.args.get("joins") or [] if join.this is self.sources[later]), None)
        names = {alias: source.alias_or_name for alias, source in self.sources.items()}
        tests = [exp.EQ(this=column_of(a, names[one]), expression=column_of(b, names[other])) for a, b in pairs]
        if join is not None and join.args.get("on") is not None:
            join.set("on", exp.and_(join.args["on"], *tests, copy=False))
        elif join is not None and join.args.get("using") and all(a == b for a, b in pairs):
            join.set("using", [*join.args["using"], *(exp.to_identifier(a, quoted=True) for a, _ in pairs)])
        else:
            self.select.where(*tests, copy=False)

    # --- columns ---

    def alias_of(self, column: exp.Column) -> str:
        """The source of the block that has a column; "" if that is not known."""
        fold, sources = self.statement.fold, self.sources
        if column.table:
            return fold(column.table) if fold(column.table) in sources else ""
        if len(sources) == 1:
            return next(iter(sources))
        columns = {alias: self.statement.columns_in(source) for alias, source in sources.items()}
        if any(names is None for names in columns.values()):
            return ""
        has = [alias for alias, names in columns.items() if fold(column.name) in (names or ())]
        return has[0] if has and (len(has) == 1 or self._is_shared(column.name)) else ""

    def _is_outer(self, node: exp.Expr) -> bool:
        """Whether it is a column of a block around this one."""
        if not isinstance(node, exp.Column) or self.alias_of(node):
            return False
        statement, name, around = self.statement, self.statement.fold(node.name), self.select.parent_select
        if not node.table and any(name in (statement.columns_in(one) or {name}) for one in self.sources.values()):
            return False
        while around is not None:
            sources = statement.sources(around)
            inside = (name in (statement.columns_in(source) or ()) for source in sources.values())
            if statement.fold(node.table) in sources if node.table else any(inside):
                return True
            around = around.parent_select
        return False

    def _is_shared(self, name: str) -> bool:
        return any(name.casefold() in map(str.casefold, self._using(join)) for join in self.select.args["joins"])

    def _using(self, join: exp.Join) -> list[str]:
        """The names of the columns that USING, or a natural join, makes equal."""
        names = [name.name for name in join.args.get("using") or []]
        return names if join.method != "NATURAL" else [*(self.statement.columns_in(join.this) or ())]

    def _column(self, node: exp.Expr | None) -> Column | None:
        column = bare(node)
        if not isinstance(column, exp.Column) or not (alias := self.alias_of(column)):
            return None
        return alias, self.statement.fold(column.name)

    def equal_columns(self) -> Iterator[tuple[Column, Column]]:
        """The pairs of columns that are equal in every row of the block."""
        for one in self.statement.equalities:
            if one.is_required and one.blocks[0] is self.select and one.blocks[1] is self.select:
                left, right = map(self._column, one.sides)
                if left and right:
                    yield left, right
        fold, before = self.statement.fold, list[str]()
        joins = {id(join.this): join for join in self.select.args.get("joins") or []}
        for alias, source in self.sources.items():
            for name in self._using(joins[id(source)]) if id(source) in joins else []:
                for other in before:
                    if fold(name) in (self.statement.columns_in(self.sources[other]) or ()):
                        yield (other, fold(name)), (alias, fold(name))
                        break
            before.append(alias)

    def _base(self) -> dict[str, TableProfile]:
        """The tables of the corpus that it reads directly, by alias."""
        known = self.statement.known_tables(self.select)
        return {self.statement.fold(alias): self.reader.corpus.profile(table.id) for alias, table in known}

    def determined(self, columns: Collection[Column], whole: Collection[str] = ()) -> set[str]:
        """The sources that have one row, at most, for given values of columns and rows of whole sources."""
        fold, fixed, known = self.statement.fold, {*columns}, {*whole}
        pairs, tables, size = [*self.equal_columns()], self._base(), -1
        while size < len(fixed) + len(known):
            size = len(fixed) + len(known)
            for one, other in [*pairs, *(pair[::-1] for pair in pairs)]:
                fixed |= {other} if one in fixed or one[0] in known else set()
            for alias, table in tables.items():
                mine = {name for of, name in fixed if of == alias}
                known |= {alias} if any({*map(fold, key)} <= mine for key in unique_keys(table)) else set()
        return known

    # --- rows ---

    def _stands_alone(self) -> bool:
        """Whether the block can be put into another one: what it names is known, and it has no star."""
        columns = [node for node in own_nodes(self.select) if isinstance(node, exp.Column)]
        if self.select.parent_select is not None and any(
            column.table and not self.alias_of(column) and not self._is_outer(column) for column in columns
        ):
            return False
        if any(item.is_star for item in self.select.expressions) or self.select.args.get("from_") is None:
            return False
        if self.select.args.get("windows") or (self.select.args.get("limit") and not is_grouped(self.select)):
            return False  # other rows may be the first ones
        parts = [*self.select.expressions, *map(self.select.args.get, ("group", "having", "order", "qualify"))]
        inside = [query for part in parts if isinstance(part, exp.Expr) for query in part.find_all(exp.Subquery)]
        return not any(self.outer_columns(query) for query in inside if not any(map(adds_up, ancestors(query))))

    def _added_up(self, call: exp.Expr) -> Aliases:
        """The sources whose values a call adds up; none for a count of rows, or if they are not known."""
        aliases = [self.alias_of(column) for column in self._values(call) if not self._is_outer(column)]
        return tuple(sorted({*aliases})) if all(aliases) else ()

    def _values(self, call: exp.Expr) -> Iterator[exp.Column]:
        """The columns of the block that decide what a call adds up, also those that a query inside it names."""
        for value in _values(call.expressions[0]):
            yield from [value] if isinstance(value, exp.Column) else self.outer_columns(value)

    def outer_columns(self, query: exp.Expr) -> list[exp.Column]:
        """The columns of the block that a query inside it names."""
        found = []
        for column in query.find_all(exp.Column):
            select = column.parent_select
            while select is not None and select is not self.select:
                if Block(self.statement, select, self.reader).alias_of(column):
                    break
                select = select.parent_select
            found += [column] if select is self.select and self.alias_of(column) else []
        return found

    def _may_repeat(self, call: exp.Expr, aliases: Aliases, keys: Sequence[exp.Expr]) -> bool:
        """Whether rows of the sources may be repeated in a group, and are not all that a group has."""
        is_nested = any(self.statement.query_of(self.sources[alias]) is not None for alias in aliases)
        fixed = self._fixed()
        if not is_nested and self.determined(fixed, aliases) >= {*self.sources}:
            return False
        columns = [*fixed, *(column for column in map(self._column, keys) if column)]
        # One row in each group: then those that are joined to it are counted.
        return call.name.lower() != "count" or not {*aliases} <= self.determined(columns)

    def _rows_of(self, call: exp.Expr, aliases: Aliases) -> list[exp.Expr] | None:
        """Expressions that tell the rows apart that a call adds up."""
        found: list[exp.Expr] = []
        for alias in aliases:
            values = [column for column in self._values(call) if self.alias_of(column) == alias]
            rows = self._rows(alias, {self.statement.fold(column.name) for column in values}, _DEEP)
            if rows is None:
                return None
            found += rows
        return found

    def _rows(self, alias: str, names: Collection[str], deep: int) -> list[exp.Expr] | None:
        """Columns that tell the rows of a source apart, as far as its columns of these names depend on them."""
        source = self.sources[alias]
        query = self.statement.query_of(source)
        if query is None:
            table = self._base().get(alias)
            columns = () if table is None else (*unique_keys(table), _all_columns(table))[0]
            if table is not None:
                self.tables.add(table.name)
            return [column_of(name, source.alias_or_name) for name in columns] or None
        if not isinstance(query, exp.Select) or deep == 0:
            return None
        stars = [item for item in query.expressions if item.is_star]
        if stars and (is_grouped(query) or query.args.get("distinct") or not isinstance(stars[0], exp.Star)):
            return None
        inner = Block(self.statement, query, self.reader, self.tables, self.added)
        rows = inner._rows_behind(names, deep - 1)
        self.added = inner.added
        return None if rows is None else [column_of(name, source.alias_or_name) for name in rows]

    def _rows_behind(self, names: Collection[str], deep: int) -> list[str] | None:
        """The names of items of this block that tell the rows behind its items of these names apart."""
        fold, items = self.statement.fold, self.select.expressions
        if self.select.args.get("distinct") is not None:
            return [item.alias_or_name for item in items]
        if is_grouped(self.select):
            self.tables |= {table.name for table in self._base().values()}
            rows = self._group_keys()
            return None if rows is None else [self._add_item(row) for row in rows]
        behind: dict[str, set[str]] = {}
        for item in items:
            columns = map(exp.column, names) if isinstance(item, exp.Star) else item.find_all(exp.Column)
            for column in columns if item.is_star or fold(item.alias_or_name) in names else ():
                behind.setdefault(self.alias_of(column), set()).add(fold(column.name))
        found = [self._rows(alias, columns, deep) if alias else None for alias, columns in behind.items()]
        if any(rows is None for rows in found):
            return None
        return [self._add_item(row) for rows in found for row in rows or ()]

    def _add_item(self, row: exp.Expr) -> str:
        self.added += 1
        self.select.append("expressions", exp.alias_(row.copy(), f"row_{self.added}"))
        return f"row_{self.added}"

    # --- the new block ---

    def _number_copies(self, chosen: Sequence[_Repeat]) -> None:
        """Put the rows of the block into a query of their own, which numbers the copies of each."""
        block, inner = self.select, exp.Select()
        for place, one in enumerate(chosen):
            call, value = one.call, one.call.expressions[0]
            value = exp.Literal.number(1) if isinstance(value, exp.Star) else value
            # The first copy must be one that counts, and the first of those that a running sum reaches. What a query
            # inside gives depends on the row alone, and engines run none in a window.
            values = [] if value.find(exp.Query) else [value]
            order = None if one.window is None else one.window.args.get("order")
            window = exp.Window(
                this=exp.Anonymous(this="row_number"),
                partition_by=[part.copy() for part in (*one.keys, *one.rows, *one.tests, *values)],
                order=order and order.copy(),
            )
            inner.append("expressions", exp.alias_(window, f"copy_{place}"))
            inner.append("expressions", exp.alias_(value.copy(), f"added_{place}"))
            first = exp.EQ(this=column_of(f"copy_{place}", "once"), expression=exp.Literal.number(1))
            only = exp.Case(ifs=[exp.If(this=first, true=column_of(f"added_{place}", "once"))])
            call.set("expressions", [only, *call.expressions[1:]])
        self._rename_columns(inner)
        for clause in ("from_", "joins", "where"):
            inner.set(clause, block.args.get(clause))
            block.set(clause, None)
        block.set("from_", exp.From(this=inner.subquery("once")))

    def _rename_columns(self, inner: exp.Select) -> None:
        """Let the clauses that remain read the items of the inner query."""
        block, names = self.select, dict[str, str]()
        items = named_items(block)
        clauses = [*block.expressions, *filter(None, map(block.args.get, ("group", "having", "order", "qualify")))]
        for column in [node for clause in clauses for node in [clause, *own_nodes(clause)]]:
            if not isinstance(column, exp.Column) or column.table == "once":
                continue
            is_key = column.find_ancestor(exp.Group) is not None and self.alias_of(column)
            clause = column.find_ancestor(exp.Group, exp.Having, exp.Order, exp.Qualify)
            is_item = clause is not None and not isinstance(clause.parent, exp.Window)
            if not column.table and column.name.casefold() in items and not is_key and is_item:
                continue
            if self._is_outer(column):
                continue
            if (name := names.get(column.sql())) is None:
                name = names[column.sql()] = f"value_{len(names)}"
                inner.append("expressions", exp.alias_(column.copy(), name))
            new: exp.Expr = column_of(name, "once")
            column.replace(
                exp.alias_(new, column.name, quoted=True)
                if column.parent is block and column.arg_key == "expressions"
                else new
            )


class _Repeat(NamedTuple):
    """An aggregate whose rows may be repeated.

    Attributes:
        call: the aggregate.
        keys: of its groups.
        rows: expressions that tell its rows apart.
        window: over which it is, if it is over one.
    """

    call: exp.Expr
    keys: Sequence[exp.Expr]
    rows: Sequence[exp.Expr]
    window: exp.Window | None

    @property
    def tests(self) -> list[exp.Expr]:
        """The condition of its FILTER."""
        return [self.call.parent.expression.this] if isinstance(self.call.parent, exp.Filter) else []


def _window_of(call: exp.Expr) -> exp.Window | None:
    """The window over which a call is."""
    inner = call.parent if isinstance(call.parent, exp.Filter) else call
    return inner.parent if isinstance(inner.parent, exp.Window) and inner.arg_key == "this" else None


def _missing(
    one: TableProfile,
    other: TableProfile,
    pairs: Sequence[tuple[str, str]],
    keys: Sequence[KeyPair],
    fold: Callable[[str], str],
) -> list[tuple[str, str]]:
    """The pairs of columns that a key of several columns has beside these; none if they are no part of one."""
    for key in keys:
        if key.signs or key.tables != {one.id, other.id} or len(key.left_columns) < 2 or key.score < ACCEPTED:
            continue
        sides = list(zip(key.columns_of(one.id), key.columns_of(other.id), strict=True))
        if {*pairs} < {(fold(mine), fold(theirs)) for mine, theirs in sides}:
            return [(mine, theirs) for mine, theirs in sides if (fold(mine), fold(theirs)) not in pairs]
    for table, rest, side in ((other, one, 1), (one, other, 0)):
        names, own = {pair[side] for pair in pairs}, {fold(column.name): column.name for column in rest.for_prompts}
        lacks = [name for name in table.primary_key if fold(name) not in names]
        if names < {*map(fold, table.primary_key)} and lacks and all(fold(name) in own for name in lacks):
            return [(own[fold(name)], name) if side else (name, own[fold(name)]) for name in lacks]
    return []


def _values(value: exp.Expr) -> Iterator[exp.Column | exp.Query]:
    """The columns and queries whose values an expression may give: not those that only decide which one."""
    if isinstance(value, exp.Column | exp.Query):
        yield value
    elif isinstance(value, exp.Case):
        results = [one.args.get("true") for one in value.args.get("ifs") or []] + [value.args.get("default")]
        yield from (column for one in results if one is not None for column in _values(one))
    elif isinstance(value, exp.Anonymous) and value.name.lower() in ("iif", "if") and len(value.expressions) == 3:
        yield from (column for one in value.expressions[1:] for column in _values(one))
    else:
        yield from (column for one in value.iter_expressions() for column in _values(one))


def unique_keys(table: TableProfile) -> list[tuple[str, ...]]:
    """Sets of columns of which each row has other values, as declared or counted, the smallest first."""
    visible = table.for_prompts
    keys = [table.primary_key] if table.primary_key and {*table.primary_key} <= {one.name for one in visible} else []
    if not table.estimated:
        keys += [(one.name,) for one in visible if one.rows and one.rows > 1 and one.distinct == one.rows]
    return sorted(dict.fromkeys(keys), key=len)


def _all_columns(table: TableProfile) -> tuple[str, ...]:
    """All columns, for tables without a known key; none if some of them may not be read."""
    return () if len(table.for_prompts) < len(table.columns) else tuple(column.name for column in table.columns)
