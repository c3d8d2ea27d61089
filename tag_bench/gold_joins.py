"""The joins of a gold SQL statement: its tables, and the columns that it makes equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from sqlglot import exp

Kind = Literal["joined", "subquery", "set operation", "no predicate"]
Column = tuple[str, str]
"""Table and column, lower case."""
Schema = Mapping[str, tuple[str, ...]]
"""Columns by table, lower case."""


@dataclass(frozen=True)
class JoinBlock:
    """The FROM … JOIN of one SELECT.

    Attributes:
        tables: lower case, in the order of the joins.
        rows_sql: a statement that gives the row numbers of each table in the joined rows, in the same order.
        pairs: what it makes equal between two of the tables: (position in ``tables``, column), twice.
    """

    tables: tuple[str, ...]
    rows_sql: str
    pairs: tuple[tuple[tuple[int, str], tuple[int, str]], ...] = ()


@dataclass(frozen=True)
class GoldJoins:
    """The joins of a statement.

    Attributes:
        tables: all that it reads, lower case.
        pairs: the pairs of columns of two tables that its predicates make equal.
        classes: the sets of columns that it makes equal across tables.
        kind: "joined" if a predicate of ON or WHERE links tables, "subquery" if only IN (SELECT …) or = (SELECT …) do,
            "set operation" if only UNION, INTERSECT or EXCEPT do.
        twice: whether one FROM names a table twice.
        blocks: each plain SELECT with two or more tables in its own FROM.
    """

    tables: frozenset[str]
    pairs: frozenset[frozenset[Column]]
    classes: frozenset[frozenset[Column]]
    kind: Kind
    twice: bool
    blocks: tuple[JoinBlock, ...]


def classes_of(pairs: list[tuple[Column, Column]]) -> frozenset[frozenset[Column]]:
    """The sets of columns that are equal if each pair is."""
    groups: list[set[Column]] = []
    for one, other in pairs:
        touching = [group for group in groups if one in group or other in group]
        groups = [group for group in groups if group not in touching]
        groups.append({one, other}.union(*touching))
    return frozenset(frozenset(group) for group in groups)


class _Block:
    """One SELECT with the tables of its FROM, and the enclosing SELECT."""

    def __init__(
        self, select: exp.Select, schema: Schema, outer: _Block | None, named: Mapping[str, exp.Select] | None = None
    ) -> None:
        from sqlglot import exp

        self.select, self.schema, self.outer = select, schema, outer
        inherited: Mapping[str, exp.Select] = outer.named if outer is not None else {}
        self.named: Mapping[str, exp.Select] = inherited if named is None else named
        self.tables: dict[str, str] = {}
        self.derived: dict[str, _Block] = {}
        self.names: list[str] = []
        sources = [select.args.get("from_") or select.args.get("from"), *(select.args.get("joins") or [])]
        for source in sources:
            item = source.this if source is not None else None
            if isinstance(item, exp.Table):
                name, alias = item.name.lower(), item.alias_or_name.lower()
                if name in self.named:
                    others = {other: query for other, query in self.named.items() if other != name}
                    self.derived[alias] = _Block(self.named[name], schema, outer, others)
                else:
                    self.names.append(name)
                    self.tables[alias] = name
            elif isinstance(item, exp.Subquery) and isinstance(item.this, exp.Select):
                self.derived[item.alias_or_name.lower()] = _Block(item.this, schema, outer, self.named)

    def place(self, column: Any) -> tuple[int, str] | None:
        """The position in ``tables`` and the name of a column of a table in this FROM."""
        name, owner = column.name.lower(), column.table.lower()
        for position, (alias, table) in enumerate(self.tables.items()):
            if owner == alias or (not owner and name in self.schema.get(table, ())):
                return position, name
        return None

    def resolve(self, column: Any) -> Column | None:
        """The table and column of a column expression."""
        from sqlglot import exp

        if isinstance(column, exp.Paren):
            return self.resolve(column.this)
        if not isinstance(column, exp.Column):
            return None
        name, owner = column.name.lower(), column.table.lower()
        if owner:
            if owner in self.tables:
                return self.tables[owner], name
            if owner in self.derived:
                return self.derived[owner].projected(name)
        else:
            for table in self.tables.values():
                if name in self.schema.get(table, ()):
                    return table, name
            for block in self.derived.values():
                found = block.projected(name)
                if found is not None:
                    return found
        return self.outer.resolve(column) if self.outer is not None else None

    def projected(self, name: str | None = None) -> Column | None:
        """The column of the SELECT with this ``name``, or its first."""
        for item in self.select.expressions:
            if name is None or item.alias_or_name.lower() == name:
                return self.resolve(item.unalias())
        return None


def _own_nodes(select: exp.Select) -> Iterator[Any]:
    """The expressions of a SELECT without those of the SELECTs inside it."""
    from sqlglot import exp

    yield from select.walk(prune=lambda node: node is not select and isinstance(node, exp.Query))


def _inner_select(node: Any) -> Any | None:
    from sqlglot import exp

    while isinstance(node, (exp.Subquery, exp.Paren)):
        node = node.this
    return node if isinstance(node, exp.Query) else None


def _selects(query: Any) -> list[Any]:
    """The plain SELECTs of a query: one, or those of a set operation."""
    from sqlglot import exp

    if isinstance(query, exp.Subquery):
        return _selects(query.this)
    if isinstance(query, exp.SetOperation):
        return _selects(query.this) + _selects(query.expression)
    return [query] if isinstance(query, exp.Select) else []


def _join_block(block: _Block, dialect: str) -> JoinBlock:
    """The SELECT's FROM with its joins; if a join has no ON, with the predicates of WHERE that link tables."""
    from sqlglot import exp

    select = block.select
    rows = exp.Select(expressions=[exp.column("rowid", table=alias, quoted=True) for alias in block.tables])
    for part in ("from_", "from", "joins"):
        if select.args.get(part):
            rows.set(part, select.args[part])
    links, pairs = [], []
    tables = tuple(block.tables.values())
    for node in _own_nodes(select):
        if isinstance(node, exp.EQ) and all(isinstance(side, exp.Column) for side in (node.left, node.right)):
            one, other = block.place(node.left), block.place(node.right)
            if one is not None and other is not None and tables[one[0]] != tables[other[0]]:
                pairs.append((one, other))
                links.append(node.copy())
    if links and any(not join.args.get("on") and not join.args.get("using") for join in select.args.get("joins") or ()):
        rows = rows.where(*links)
    return JoinBlock(tables, rows.sql(dialect=dialect), tuple(pairs))


def gold_joins(sql: str, schema: Schema, *, dialect: str = "sqlite") -> GoldJoins:
    """Read the joins of a statement in a dialect of sqlglot.

    Raises:
        sqlglot.errors.ParseError: the statement is not SQL.
    """
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(sql, dialect=dialect)
    named = {cte.alias.lower(): cte.this for cte in tree.find_all(exp.CTE) if isinstance(cte.this, exp.Select)}
    direct: list[tuple[Column, Column]] = []
    nested: list[tuple[Column, Column]] = []
    sets: list[tuple[Column, Column]] = []
    twice = False
    texts: list[JoinBlock] = []

    def link(pairs: list[tuple[Column, Column]], one: Column | None, other: Column | None) -> None:
        if one is not None and other is not None and one[0] != other[0]:
            pairs.append((one, other))

    def visit(query: Any, outer: _Block | None) -> list[_Block]:
        nonlocal twice
        blocks = []
        for select in _selects(query):
            block = _Block(select, schema, outer, named)
            blocks.append(block)
            twice = twice or len(set(block.names)) < len(block.names)
            if len(block.names) > 1 and not block.derived:
                texts.append(_join_block(block, dialect))
            for node in _own_nodes(select):
                if isinstance(node, exp.EQ):
                    link(direct, block.resolve(node.left), block.resolve(node.right))
                    for side, other in ((node.left, node.right), (node.right, node.left)):
                        inner = _inner_select(other)
                        for part in _selects(inner) if inner is not None else ():
                            link(nested, block.resolve(side), _Block(part, schema, block).projected())
                elif isinstance(node, exp.In) and node.args.get("query") is not None:
                    for part in _selects(_inner_select(node.args["query"])):
                        link(nested, block.resolve(node.this), _Block(part, schema, block).projected())
                elif node is not select and isinstance(node, exp.Query) and not isinstance(node, exp.Subquery):
                    visit(node, block)
                elif isinstance(node, exp.Subquery) and node is not select:
                    visit(node.this, block)
        for later in blocks[1:]:
            link(sets, blocks[0].projected(), later.projected())
        return blocks

    visit(tree, None)
    read = frozenset(table.name.lower() for table in tree.find_all(exp.Table)) - frozenset(named)
    kind: Kind = "joined" if direct else "subquery" if nested else "set operation" if sets else "no predicate"
    pairs = direct + nested or sets
    return GoldJoins(read, frozenset(map(frozenset, pairs)), classes_of(pairs), kind, twice, tuple(texts))
