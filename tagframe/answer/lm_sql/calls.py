"""The LM functions of a statement: their calls, their columns, and the places where they are not allowed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp

from tagframe.answer.lm_sql.dialects import OWN, Kind, Spoken
from tagframe.answer.sql_tree import ancestors, column_of, own_nodes, with_tables
from tagframe.errors import UnsafeSQL

DTYPES: dict[str, Any] = {"text": str, "number": float, "integer": int, "date": "date", "boolean": bool}
"""The allowed second arguments of ``sem_map``, with their dtypes."""
_KINDS: dict[Any, Kind] = {float: "number", int: "integer", "date": "date", bool: "boolean"}


@dataclass(frozen=True)
class Function:
    """An LM function: the operator of the same name, applied to the distinct values of the columns in its braces.

    Attributes:
        name: in lower case.
        aggregates: whether it makes one text from all rows of a group.
        typed: whether it takes a type as its second argument.
        ranks: whether it compares the values with each other, and takes the number of places as its second argument.
    """

    name: str
    aggregates: bool = False
    typed: bool = False
    ranks: bool = False


FUNCTIONS = {
    function.name: function
    for function in (
        Function("sem_filter"),
        Function("sem_score"),
        Function("sem_topk", ranks=True),
        Function("sem_map", typed=True),
        Function("sem_agg", aggregates=True),
    )
}
"""All LM functions, by name."""

LONGEST_INSTRUCTION = 4_000
"""Characters."""

_CALL = re.compile(rf"\b(?:{'|'.join(FUNCTIONS)})\s*\(", re.IGNORECASE)
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_PLAIN = r"[^\W\d]\w*"
_QUOTED = r'"(?:[^"]|"")+"|`[^`]+`|\[[^\]]+\]'
_NAMED = re.compile(rf"({_PLAIN}|{_QUOTED})\.({_PLAIN}|{_QUOTED}|.+)", re.DOTALL)
_WHOLE = re.compile(_QUOTED)


@dataclass(frozen=True)
class Call:
    """A call of an LM function in a query block.

    Attributes:
        node: in the statement.
        function: the function.
        instruction: with the labels of ``columns`` in its braces, as for operators.
        columns: the expressions in the braces, by label.
        spoken: the dialect of the statement.
        dtype: of ``sem_map``, or None.
        places: of ``sem_topk``, or 0.
    """

    node: exp.Expr
    function: Function
    instruction: str
    columns: tuple[tuple[str, exp.Expr], ...]
    spoken: Spoken
    dtype: Any = None
    places: int = 0

    @property
    def kind(self) -> Kind:
        """The type of its answers."""
        if self.function.name == "sem_filter":
            return "boolean"
        if self.function.ranks:
            return "integer"
        return "number" if self.function.name == "sem_score" else _KINDS.get(self.dtype, "text")

    @property
    def identity(self) -> tuple[Any, ...]:
        """A value that is equal for identical calls of one block."""
        named = tuple((label, self.spoken.written(column)) for label, column in self.columns)
        return self.function.name, self.instruction, named, str(self.dtype), self.places

    def __str__(self) -> str:
        return self.spoken.written(self.node)


def has_functions(sql: str) -> bool:
    """Whether a statement may contain an LM function."""
    return _CALL.search(sql) is not None


def is_call(node: exp.Expr) -> bool:
    """Whether a node is a call of an LM function."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in FUNCTIONS


def calls_in(tree: exp.Expr) -> list[exp.Expr]:
    """The calls in a part of a block, without those of blocks inside it."""
    return [node for node in [tree, *own_nodes(tree)] if is_call(node)]


def call_of(node: exp.Expr, block: exp.Select, is_column: Callable[[str], bool], spoken: Spoken) -> Call:
    """Parse a call.

    Args:
        node: the call.
        block: that contains it.
        spoken: the dialect of the statement.
        is_column: whether the tables of the block have a column of that name; a column is preferred to a name of
            SELECT.

    Raises:
        UnsafeSQL: its arguments are not a text in single quotes with columns in braces (and a type).
    """
    function = FUNCTIONS[node.name.lower()]
    first, *more = node.expressions or [None]
    if not isinstance(first, exp.Literal) or not first.is_string:
        raise UnsafeSQL(
            f"{function.name} takes one text in single quotes, with columns in braces, as "
            f"{function.name}('… {{column}} …'); got {_excerpt(node, spoken)}"
        )
    text = str(first.this)
    if len(text) > LONGEST_INSTRUCTION:
        raise UnsafeSQL(
            f"the instruction of {function.name} has {len(text):,} letters of {LONGEST_INSTRUCTION:,} at most"
        )
    named = list(dict.fromkeys(name.strip() for name in _BRACES.findall(text) if name.strip()))
    if not named:
        raise UnsafeSQL(
            f"{function.name} names the columns that it is about in braces; {_excerpt(node, spoken)} names none"
        )
    columns = {name: _column(name, block, is_column, spoken) for name in named}
    labels = _labels(columns)

    def visible(token: re.Match[str]) -> str:
        name = (token[1] or "").strip()
        return f"{{{labels[name]}}}" if name else token[0]

    return Call(
        node,
        function,
        _BRACES.sub(visible, text),
        tuple((labels[name], column) for name, column in columns.items()),
        spoken,
        None if function.ranks else _dtype(function, more, node, spoken),
        _places(function, more, node, spoken) if function.ranks else 0,
    )


def _places(function: Function, more: Sequence[exp.Expr], node: exp.Expr, spoken: Spoken) -> int:
    number = more[0] if len(more) == 1 else None
    if not isinstance(number, exp.Literal) or number.is_string or not number.this.isdigit() or int(number.this) < 1:
        takes = f"a text and the number of places, as {function.name}('{{name}} is the largest', 5)"
        raise UnsafeSQL(f"{function.name} takes {takes}; got {_excerpt(node, spoken)}")
    return int(number.this)


def _dtype(function: Function, more: Sequence[exp.Expr], node: exp.Expr, spoken: Spoken) -> Any:
    if not more:
        cast = node.parent
        if function.typed and isinstance(cast, exp.Cast):
            return spoken.casts.get(spoken.written(cast.to).upper().partition("(")[0])
        return None
    kind = str(more[0].this).lower() if isinstance(more[0], exp.Literal) and more[0].is_string else ""
    if not function.typed or len(more) > 1 or kind not in DTYPES:
        takes = f"a text and, if wanted, one of {', '.join(map(repr, DTYPES))}" if function.typed else "one text only"
        raise UnsafeSQL(f"{function.name} takes {takes}; got {_excerpt(node, spoken)}")
    return DTYPES[kind]


def _column(name: str, block: exp.Select, is_column: Callable[[str], bool], spoken: Spoken) -> exp.Expr:
    """The column in braces: ``title``, ``f.title``, ``"year made"``, or an unquoted name of any characters."""

    def spelled(part: str) -> str:
        """A column as the engine knows it: unquoted names in lower case, if the engine folds them."""
        bare = _bare(part)
        return bare if bare != part or not spoken.folds or bare.islower() or is_column(bare) else bare.lower()

    sources = {alias.casefold(): alias for alias in _source_names(block, spoken)}
    found = _NAMED.fullmatch(name)
    if found and _bare(found[1]).casefold() in sources:
        owner = sources[_bare(found[1]).casefold()] if spoken.folds else _bare(found[1])
        return column_of(spelled(found[2]), owner)
    if _WHOLE.fullmatch(name):
        return column_of(_bare(name))
    for item in block.expressions:
        if isinstance(item, exp.Alias) and item.alias.casefold() == name.casefold() and not calls_in(item):
            return column_of(name) if is_column(name) else item.this.copy()
    return column_of(spelled(name))


def _source_names(block: exp.Select, spoken: Spoken) -> Iterator[str]:
    for clause in (block.args.get("from_"), *(block.args.get("joins") or [])):
        if clause is not None:
            for node in clause.find_all(exp.Table, exp.Subquery, bfs=True):
                alias = node.args.get("alias")
                named = alias.this if alias is not None else node.this
                is_plain = isinstance(named, exp.Identifier) and not named.args.get("quoted")
                yield node.alias_or_name.lower() if spoken.folds and is_plain else node.alias_or_name


def _bare(name: str) -> str:
    if name[0] in '"`[' and name[-1] in '"`]' and len(name) > 1:
        return name[1:-1].replace('""', '"')
    return name


def _labels(columns: dict[str, exp.Expr]) -> dict[str, str]:
    """The label of each column for the model: its name, with the table's name before it if two columns share it."""
    short = {name: column.name if isinstance(column, exp.Column) else name for name, column in columns.items()}
    once = {label for label in short.values() if list(short.values()).count(label) == 1}
    labels = {name: label if label in once else name.replace('"', "") for name, label in short.items()}
    return {name: label.replace("{", "(").replace("}", ")") for name, label in labels.items()}


def check_positions(tree: exp.Expr, sql: str, spoken: Spoken) -> None:
    """Refuse LM functions in places where they cannot be staged, and reserved names.

    Raises:
        UnsafeSQL: in a window, a recursive table, LIMIT, VALUES, the ORDER BY of a UNION; an aggregate where none is
            allowed.
    """
    if any(OWN in token.text.lower() for token in sqlglot.tokenize(sql, read=spoken.name) if token.text):
        raise UnsafeSQL(f"names that begin with {OWN!r} are taken")
    for node in tree.walk():
        if is_call(node):
            _check_position(node, spoken)


def _check_position(node: exp.Expr, spoken: Spoken) -> None:
    name = node.name.lower()
    aggregates = FUNCTIONS[name].aggregates
    child, parent = node, node.parent
    while parent is not None and not isinstance(parent, exp.Query):
        if isinstance(parent, exp.Window | exp.WindowSpec):
            raise UnsafeSQL(
                f"{name} may not stand in a window: compute it in a subquery first; {_excerpt(node, spoken)}"
            )
        if isinstance(parent, exp.Limit | exp.Offset | exp.Values):
            raise UnsafeSQL(f"{name} may not stand in {parent.key.upper()}: {_excerpt(node, spoken)}")
        if isinstance(parent, exp.Join) and _is_outer(parent):
            raise UnsafeSQL(
                f"{name} may not stand in ON beside an outer join: choose the rows before, as in LEFT JOIN (SELECT * "
                f"FROM … WHERE {name}(…)) AS chosen ON …; got {_excerpt(node, spoken)}"
            )
        if aggregates and isinstance(parent, exp.Where | exp.Join | exp.Group):
            positions = "SELECT, HAVING or ORDER BY"
            raise UnsafeSQL(f"{name} is an aggregate: it stands in {positions}, not in {parent.key.upper()}")
        if aggregates and isinstance(parent, exp.Filter | exp.Distinct):
            raise UnsafeSQL(f"{name} takes all rows of its group; choose them in WHERE, not by {parent.key.upper()}")
        if aggregates and isinstance(parent, exp.Anonymous):
            raise UnsafeSQL(f"{name} may not stand inside another function: {_excerpt(parent, spoken)}")
        child, parent = parent, parent.parent
    if parent is not None and not isinstance(parent, exp.Select):
        raise UnsafeSQL(
            f"{name} may not stand in the {child.key.upper()} of a {parent.key.upper()}: {_excerpt(node, spoken)}"
        )
    for above in ancestors(node):
        if isinstance(above, exp.CTE) and _reads_itself(above):
            raise UnsafeSQL(f"{name} may not stand in a recursive table: {above.alias!r} reads itself")


def _is_outer(join: exp.Join) -> bool:
    """Whether a condition in ON is another one than in WHERE."""
    select = join.parent_select
    assert select is not None
    return bool(join.side) or any(other.side in ("RIGHT", "FULL") for other in select.args["joins"])


def _reads_itself(cte: exp.CTE) -> bool:
    return any(table.name.casefold() == cte.alias.casefold() for table in cte.this.find_all(exp.Table))


def visible_tables(block: exp.Expr) -> list[exp.CTE]:
    """The tables of WITH that a block may read, outermost first.

    Raises:
        UnsafeSQL: two have the same name.
    """
    found: list[exp.CTE] = []
    inside: exp.Expr = block
    for above in [block, *ancestors(block)]:
        if isinstance(above, exp.Query):
            before: list[exp.CTE] = []
            for cte in with_tables(above):
                if cte is inside:
                    break
                before.append(cte)
            found = [*before, *found]
        if isinstance(above, exp.CTE):
            inside = above
    names = [cte.alias.casefold() for cte in found]
    if len(set(names)) < len(names):
        raise UnsafeSQL(f"two tables of WITH have one name: {', '.join(sorted(names))}; rename one")
    return found


def _excerpt(node: exp.Expr, spoken: Spoken) -> str:
    text = spoken.written(node)
    return repr(text if len(text) <= 200 else f"{text[:200]}…")
