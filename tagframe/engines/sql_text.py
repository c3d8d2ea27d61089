"""Names and texts in SQL, and which columns a source computes from which others.

The latter are those of views, and generated ones. In doubt a column counts as shown by a view: if a definition is not
understood, every column does. At first this is only the standard library, because worker processes import it, too.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sqlglot import exp


def quoted(identifier: str) -> str:
    """An identifier as SQL text, whatever it holds.

    >>> quoted('order by"x')
    '"order by""x"'
    """
    return '"' + identifier.replace('"', '""') + '"'


def quoted_text(value: str) -> str:
    """A text as SQL text.

    >>> print(quoted_text("it's"))
    'it''s'
    """
    return "'" + value.replace("'", "''") + "'"


def quoted_texts(values: Iterable[str]) -> str:
    """A list of texts, as DuckDB has it."""
    return "[" + ", ".join(map(quoted_text, values)) + "]"


def table_key(schema: str, name: str) -> str:
    """Schema and table as one name, which can be taken apart again.

    >>> table_key("sales", "orders"), table_key("old.sales", "orders")
    ('sales.orders', '"old.sales".orders')
    """
    return f"{json.dumps(schema) if '.' in schema or schema.startswith(chr(34)) else schema}.{name}"


def schema_and_name(key: str) -> tuple[str, str]:
    """Schema and table of such a name.

    >>> schema_and_name("sales.orders"), schema_and_name('"old.sales".orders')
    (('sales', 'orders'), ('old.sales', 'orders'))
    """
    if key.startswith('"'):
        schema, end = json.JSONDecoder().raw_decode(key)
        return schema, key[end + 1 :]
    schema, _, name = key.partition(".")
    return schema, name


Column = tuple[str, str]
"""A table of the source, by its name there, and a column of it."""
_ROW_NUMBERS = frozenset({"rowid", "_rowid_", "oid"})
"""What SQLite calls an integer primary key, too."""
_READS_BY_TEXT = re.compile(r"\b(\w+_to_xml\w*|ts_stat|dblink\w*|crosstab\w*|connectby|pg_read\w+)\s*\(", re.IGNORECASE)
_STATISTICS = re.compile(r"\bpg_(stats\w*|statistic\w*)\b", re.IGNORECASE)


class Derivations(NamedTuple):
    """What a source computes from some of its columns.

    Attributes:
        parents: for each column computed from them, directly or through other columns: those that it is computed from.
        unclear: tables whose sources are unknown, and the reason.
    """

    parents: Mapping[Column, frozenset[Column]] = {}
    unclear: Mapping[str, str] = {}


def derivations(
    columns: Collection[Column], computed: Callable[[str, str], Iterable[Column]], unclear: Mapping[str, str]
) -> Derivations:
    """All that is computed from columns.

    Args:
        columns: of the source.
        computed: gives the columns that are computed directly from one, by its table and its name in any case.
        unclear: as in :class:`Derivations`.
    """
    parents: dict[Column, set[Column]] = defaultdict(set)
    waiting = list(columns)
    seen = {(table, column.casefold()) for table, column in columns}
    while waiting:
        parent = waiting.pop()
        for child in computed(*parent):
            parents[child].add(parent)
            if (key := (child[0], child[1].casefold())) not in seen:
                seen.add(key)
                waiting.append(child)
    return Derivations({child: frozenset(of) for child, of in parents.items()}, unclear)


def reads_by_text(definition: str) -> str:
    """What a view calls or reads that may give cells of unknown tables; "" for nothing."""
    found = _READS_BY_TEXT.search(definition) or _STATISTICS.search(definition)
    return "" if found is None else found[1] if found.re is _READS_BY_TEXT else found[0]


class View:
    """A view, by the text that defines it.

    Attributes:
        definition: a query, or a whole CREATE VIEW.
        dialect: of it, as sqlglot calls it.
        columns: of the view.
        others: names of all columns that ``*`` may stand for.
    """

    def __init__(
        self, definition: str, dialect: str, columns: tuple[str, ...], others: frozenset[str] = frozenset()
    ) -> None:
        self.definition, self.dialect, self.columns, self.others = definition, dialect, columns, others

    def shows(self, column: str) -> list[str]:
        """The columns of the view that may have cells, or what is computed of them, of a column that it reads.

        Args:
            column: its name, in any case.
        """
        if self._query is None:
            return list(self.columns)
        reached = {column.casefold(), _ROW, *(_ROW_NUMBERS if self.dialect == "sqlite" else ())}
        flows = self._flows
        grows = True
        while grows:
            before = len(reached)
            reached.update(to for to, names in flows if not names.isdisjoint(reached))
            grows = len(reached) > before
        if self._renamed:
            return [name for name, shown in zip(self.columns, self._shown, strict=True) if shown in reached]
        surely = {*self._shown, *(self.others if self._has_star else ())} - reached
        return [name for name in self.columns if name.casefold() not in surely]

    def reads(self, table: str) -> bool:
        """Whether it may read a table of this name, in any schema."""
        from sqlglot import exp

        if self._query is None:
            return table.casefold() in self.definition.casefold()
        return any(read.name.casefold() == table.casefold() for read in self._query.find_all(exp.Table))

    @property
    def calls(self) -> str:
        """A function in it that sqlglot does not know, which may read what the definition does not name; or ""."""
        from sqlglot import exp

        if self._query is None:
            return "what is not understood"
        return next((call.name for call in self._query.find_all(exp.Anonymous)), "")

    @cached_property
    def _parsed(self) -> tuple[exp.Query | None, bool]:
        """The query, if it reads everything by name; and whether the view renames its columns."""
        import sqlglot
        from sqlglot import exp

        try:
            tree = sqlglot.parse_one(self.definition, read=self.dialect)
        except (sqlglot.errors.SqlglotError, RecursionError, ValueError):
            return None, False
        renamed = isinstance(tree, exp.Create) and isinstance(tree.this, exp.Schema)
        query = tree.expression if isinstance(tree, exp.Create) else tree
        if not isinstance(query, exp.Query) or not all(map(_is_plain, query.walk())):
            return None, False
        return query, renamed

    @property
    def _query(self) -> exp.Query | None:
        query, renamed = self._parsed
        if query is None or (renamed and (self._has_star or len(self._shown) != len(self.columns))):
            return None
        return query

    @property
    def _renamed(self) -> bool:
        return self._parsed[1]

    @cached_property
    def _shown(self) -> list[str]:
        query = self._parsed[0]
        return [] if query is None else [one.alias_or_name.casefold() for one in query.selects]

    @cached_property
    def _has_star(self) -> bool:
        from sqlglot import exp

        query = self._parsed[0]
        return query is not None and any(one.is_star for select in query.find_all(exp.Select) for one in select.selects)

    @cached_property
    def _flows(self) -> list[tuple[str, frozenset[str]]]:
        """Each alias of the query, with the names in its expression."""
        from sqlglot import exp

        query = self._parsed[0]
        assert query is not None
        rows = {one.alias_or_name.casefold() for one in query.find_all(exp.Table, exp.Subquery)}
        flows = []
        for select in query.find_all(exp.Select):
            for one in select.selects:
                if one.is_star and not isinstance(one, exp.Alias):
                    continue  # each of its columns keeps its name
                names = {
                    _ROW if not column.table and column.name.casefold() in rows else column.name.casefold()
                    for column in one.find_all(exp.Column)
                }
                flows.append((one.alias_or_name.casefold(), frozenset(names)))
        for union in query.find_all(exp.SetOperation):
            names_of = [[one.alias_or_name.casefold() for one in side.selects] for side in (union.left, union.right)]
            flows += [(left, frozenset({right})) for left, right in zip(*names_of, strict=False)]
        return flows


_ROW = "*"
"""The name of a whole row of a table: sqlglot's name for the star of ``t.*``."""


def _is_plain(node: exp.Expr) -> bool:
    """Whether names alone tell where the results of this part of a query come from."""
    from sqlglot import exp

    if isinstance(node, exp.TableAlias):
        return not node.columns
    if isinstance(node, exp.From | exp.Join):
        return isinstance(node.this, exp.Table | exp.Subquery)
    if isinstance(node, exp.Table):
        return isinstance(node.this, exp.Identifier)
    if isinstance(node, exp.SetOperation):
        return not any(one.is_star for side in (node.left, node.right) for one in side.selects)
    return not isinstance(node, exp.Lateral | exp.UDTF | exp.Pivot | exp.Command)


def names_in(text: str, dialect: str) -> frozenset[str] | None:
    """Everything that may be a name in an expression, in lower case; None if it cannot be parsed."""
    import sqlglot

    try:
        return frozenset(token.text.casefold() for token in sqlglot.tokenize(text, read=dialect))
    except sqlglot.errors.SqlglotError:
        return None


def read_by_generated(column: str, definition: str, columns: Sequence[str]) -> list[str]:
    """The columns of a SQLite table that a generated one is computed from; all if that is not certain.

    Args:
        column: the generated one.
        definition: the table's CREATE TABLE.
        columns: all of the table.
    """
    import sqlglot

    try:
        tokens = sqlglot.tokenize(definition, read="sqlite")
    except sqlglot.errors.SqlglotError:
        return list(columns)
    depth, parts = 0, [list[str]()]
    for token in tokens:
        kind = token.token_type.name
        depth += {"L_PAREN": 1, "R_PAREN": -1}.get(kind, 0)
        if depth == 1 and kind in ("L_PAREN", "COMMA"):
            parts.append([])
        elif depth:
            parts[-1].append(token.text.casefold())
    names = next((set(part[1:]) for part in parts if part and part[0] == column.casefold()), None)
    if names is None or any(quote in name for name in columns for quote in "\"'`[]"):
        return list(columns)
    return [name for name in columns if name.casefold() in names and name != column]
