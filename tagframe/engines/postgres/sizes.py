"""How large the texts of a statement can become, computed from the statement alone.

PostgreSQL limits the memory of a sort, but not that of a value: ``repeat('x', 1000000000)`` takes a gigabyte of the
server, and a chain of ``||`` as much again at each step. Functions that can make a text of any size (``repeat``,
``lpad``, ``string_agg``, …) are bounded at the call, see :mod:`tagframe.engines.postgres.bounding`. How high these
bounds may be depends on what a statement does with such texts, which is added up here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from sqlglot import exp

from tagframe.errors import SQLFailed

CELL = 4_096
"""The assumed size of a table's cell in bytes; larger cells allow fewer copies."""
_MOST_STEPS = 6
"""Computations with numbers of thousands of digits, each of which may take three seconds."""
_MOST_DIGITS = 100
_MOST_NODES = 100_000
"""Nodes of a statement after subqueries are expanded where their columns are named, as the planner does it."""

GATHERING = frozenset("string_agg array_agg json_agg jsonb_agg json_object_agg jsonb_object_agg".split())
"""Aggregates whose value grows with the rows."""
GROWING = frozenset("repeat lpad rpad replace regexp_replace array_to_string format to_char".split())
"""Functions whose value may be far larger than their arguments."""
LOOKED_FOR = frozenset("strpos split_part replace btrim ltrim rtrim translate string_to_array".split())
"""Functions that look for their second argument in their first; the server does not stop in the middle of it."""
SHORT_NEEDLE = 16
_FEW = 8
_SHORT = 1_000
_FACTORS = {
    **dict.fromkeys("to_json to_jsonb row_to_json json_build_array json_build_object".split(), 2),
    **dict.fromkeys("jsonb_build_array jsonb_build_object quote_nullable".split(), 2),
    "string_to_array": 50,  # an item of one character is a separate value
}
"""How many times larger than its arguments together the value of a function may be."""
_NUMBERS = frozenset("power pow exp sqrt cbrt ln log div mod gcd lcm".split())
_NO_LARGER = frozenset(
    "substr substring left right split_part trim btrim ltrim rtrim lower upper initcap reverse translate nullif "
    "coalesce greatest least min max mode lag lead first_value last_value nth_value array_remove percentile_disc "
    "json_extract_path json_extract_path_text jsonb_extract_path jsonb_extract_path_text".split()
)
_OF_ONE_WORD = frozenset(
    "abs ascii avg bit_length bool_and bool_or cardinality char_length character_length array_length array_position "
    "count date date_part date_trunc dense_rank every length md5 octet_length position rank regexp_count regexp_instr "
    "regexp_like round row_number sign starts_with strpos sum to_date to_number to_timestamp trunc".split()
)
_LIKE_THEIR_LARGEST = (
    exp.Case, exp.If, exp.Coalesce, exp.Paren, exp.Alias, exp.Collate, exp.Filter, exp.Ordered, exp.Distinct,
    exp.DataType, exp.Order, exp.Where, exp.Substring, exp.Trim,
)  # fmt: skip
_WORDS = (exp.Predicate, exp.Connector, exp.Not, exp.StrPosition, exp.Extract)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Pow, exp.Neg)
_READ_WIDE = (exp.RegexpLike, exp.RegexpILike, exp.SimilarTo, exp.ILike)
_TAKEN_APART = 32
_WIDE = 4
"""Bytes per character while a regular expression is searched in a text."""


def growth(function: str, arguments: Sequence[str | None]) -> tuple[float, float] | None:
    """How much larger a function's value is than its arguments: so many times, and so many bytes more.

    Args:
        function: of :data:`GROWING`.
        arguments: as they are written, where they are texts or numbers; None for each that is computed.

    Returns:
        None if the statement alone does not tell: then it is bounded when it is run.
    """
    second, third = [*arguments[1:], None, None][:2]
    if function in ("repeat", "lpad", "rpad"):
        times = int(second) if second is not None and second.isdigit() else None
        if function == "repeat":
            return (times, 0) if times is not None and times <= _FEW else None
        return (1, 4 * times) if times is not None and times <= _SHORT else None
    if function == "replace":
        factor = None if third is None else len(third) / max(1, len(second or ""))
        return None if factor is None or factor > _FEW else (max(1.0, factor), 0)
    if function == "regexp_replace":
        return (1 + len(third), 0) if third is not None and len(third) <= _FEW else None
    if function == "array_to_string":
        return (1 + len(second), 0) if second is not None and len(second) <= _FEW and len(arguments) == 2 else None
    if function == "format":
        first = arguments[0] if arguments else None
        if first is None or len(first) > _SHORT or re.search(r"%[^a-zA-Z%]*([*]|[0-9]{3})", first):
            return None
        return (first.count("%") if "$" in first else 1, len(first))
    return (1, 16 * len(second)) if second is not None and len(second) <= _SHORT else None  # to_char


@dataclass(frozen=True)
class Size:
    """Bytes: ``flat`` of them, ``bounded`` times what one bounded text may take, ``own`` times the row before."""

    flat: float = 0.0
    bounded: float = 0.0
    own: float = 0.0

    def __add__(self, other: Size) -> Size:
        return Size(self.flat + other.flat, self.bounded + other.bounded, self.own + other.own)

    def times(self, factor: float) -> Size:
        return Size(self.flat * factor, self.bounded * factor, self.own * factor)

    def or_(self, other: Size) -> Size:
        return Size(max(self.flat, other.flat), max(self.bounded, other.bounded), max(self.own, other.own))


@dataclass(frozen=True)
class Made:
    """What an expression makes.

    Attributes:
        size: of its value.
        work: of all values on the way to it.
        nodes: of it, subqueries written out.
        digits: whether it may be a number of thousands of digits.
        steps: computations with such numbers; each may take seconds, and the server stops in none.
    """

    size: Size = field(default_factory=Size)
    work: Size = field(default_factory=Size)
    nodes: float = 1.0
    digits: bool = False
    steps: float = 0.0

    def as_part(self, size: Size, *, copies: bool) -> Made:
        """A value of this size that is made of it."""
        work = self.work + size if copies else self.work
        return Made(size, work, self.nodes + 1, self.digits and size != _WORD, self.steps)

    def computed(self, *, makes_digits: bool) -> Made:
        """A number that is computed of it."""
        digits = self.digits or makes_digits
        return Made(_WORD, self.work + _WORD, self.nodes + 1, digits, self.steps + digits)


_CELL = Made(Size(CELL), Size(), 1.0)
_WORD = Size(64.0)


def _together(parts: Iterable[Made]) -> Made:
    """All of them: their sizes added."""
    size, work, nodes, digits, steps = Size(), Size(), 0.0, False, 0.0
    for part in parts:
        size, work, nodes = size + part.size, work + part.work, nodes + part.nodes
        digits, steps = digits or part.digits, steps + part.steps
    return Made(size, work, nodes, digits, steps)


def _largest(parts: Iterable[Made]) -> Size:
    return reduce(Size.or_, (part.size for part in parts), Size())


@dataclass(frozen=True)
class _Rows:
    """The columns of a query, in order; ``named`` is false if there may be more than are known."""

    columns: Sequence[tuple[str, Made]]
    named: bool = True

    @property
    def whole(self) -> Made:
        """A row."""
        return _together(made for _, made in self.columns)

    def column(self, name: str) -> Made | None:
        """The largest of that name, or of any name if not all names are known; None if there is none."""
        found = [made for own, made in self.columns if own == name or not self.named]
        return _either(found) if found else None

    def renamed(self, names: Sequence[str]) -> _Rows:
        """With the names of ``AS t(a, b)``."""
        if not names:
            return self
        if not self.named:
            return _Rows([*self.columns, ("", _CELL)], named=False)
        fresh = [(names[at] if at < len(names) else name, made)
                 for at, (name, made) in enumerate(self.columns)]  # fmt: skip
        return _Rows(fresh)


def _either(parts: Sequence[Made]) -> Made:
    work = reduce(Size.or_, (part.work for part in parts), Size())
    nodes, steps = max(part.nodes for part in parts), max(part.steps for part in parts)
    return Made(_largest(parts), work, nodes, any(part.digits for part in parts), steps)


@dataclass(frozen=True)
class _Scope:
    """What names stand for: the entries of WITH, and the rows of FROM by their aliases, from the outside in."""

    entries: Mapping[str, _Rows]
    sources: Mapping[str, _Rows | None] = field(default_factory=dict)
    outer: _Scope | None = None

    def column(self, name: str, source: str) -> Made:
        scope: _Scope | None = self
        while scope is not None:
            if source and source in scope.sources:
                rows = scope.sources[source]
                return (rows.column(name) if rows else None) or _CELL
            if not source and name in scope.sources:  # a row as a whole
                rows = scope.sources[name]
                return rows.whole if rows else _together([_CELL] * 20)
            found = [made for rows in scope.sources.values() if rows and (made := rows.column(name))]
            if not source and found:
                return _either([*found, _CELL])
            scope = scope.outer
        return _CELL


class Sizes:
    """The sum over a statement: what one bounded text may take follows from :meth:`bound`.

    Args:
        tree: the statement, each function of it a name and its arguments.
    """

    def __init__(self, tree: exp.Query) -> None:
        self._total = Made(nodes=0.0)
        rows = self._query(tree, _Scope({}))
        self._add(Made(Size(), rows.whole.size.times(3), 0.0))  # it is put together, measured and sent

    def bound(self, memory: int, shown: str) -> int:
        """Bytes that one bounded text may have so that what is made for a row stays within ``memory``.

        Raises:
            SQLFailed: there is no such bound.
        """
        work = self._total.work
        left = memory - work.flat
        bound = int(min(left / work.bounded if work.bounded else left, memory / 8))
        if self._total.steps > _MOST_STEPS:
            raise SQLFailed(
                f"the SQL computes {self._total.steps:.0f} times with numbers that may have thousands of digits; at "
                f"most {_MOST_STEPS} times are allowed: {shown}; CAST(… AS double precision) first makes it faster"
            )
        if bound < 2 * CELL or self._total.nodes > _MOST_NODES:
            raise SQLFailed(
                f"the SQL builds texts from texts that it built, and needs too much memory: {shown}. Put texts "
                "together (||, concat, repeat, …) only once"
            )
        return bound

    def _add(self, made: Made) -> None:
        self._total = _together([self._total, made])
        if self._total.nodes > _MOST_NODES or self._total.work.flat > 2**60:
            raise SQLFailed("the SQL nests subqueries whose columns are used too often")

    def _query(self, query: exp.Expr, scope: _Scope) -> _Rows:
        scope = self._with(query, scope)
        if isinstance(query, exp.Values):
            return self._values(query, scope)
        if isinstance(query, exp.SetOperation):
            rows = _joined(self._query(query.left, scope), self._query(query.right, scope))
        elif isinstance(query, exp.Subquery) and isinstance(query.this, exp.Query):
            rows = self._query(query.this, scope)
        else:
            return self._select(query, scope)
        self._rest(query, scope, "this", "alias" if isinstance(query, exp.Subquery) else "expression")
        return rows

    def _with(self, query: exp.Expr, scope: _Scope) -> _Scope:
        clause = query.args.get("with_")
        if not isinstance(clause, exp.With):
            return scope
        entries = dict(scope.entries)
        for entry in clause.expressions:
            name = entry.alias_or_name.lower()
            names = _alias_columns(entry)
            inside = _Scope(entries, scope.sources, scope.outer)
            body = entry.this
            if clause.recursive and isinstance(body, exp.SetOperation):
                entries[name] = self._recursive(body, name, names, inside)
            else:
                entries[name] = self._query(body, inside).renamed(names)
        return _Scope(entries, scope.sources, scope.outer)

    def _recursive(self, body: exp.SetOperation, name: str, names: Sequence[str], scope: _Scope) -> _Rows:
        first = self._query(body.left, scope).renamed(names)
        grows = [True] * len(first.columns)
        # A row is made from the row before: each of its texts once, else they double at each step. Numbers do not grow.
        for _ in range(len(grows) + 1):
            columns = [(own, Made(Size(own=1.0) if grown else _WORD))
                       for (own, _), grown in zip(first.columns, grows, strict=True)]  # fmt: skip
            before = {**scope.entries, name: _Rows(columns, first.named)}
            step = self._query(body.right, _Scope(before, scope.sources, scope.outer))
            seen = [bool(made.size.own) for _, made in step.columns][: len(grows)]
            seen += grows[len(seen) :]
            if seen == grows:
                break
            grows = seen
        grown_columns = []
        for (own, start), (_, made) in zip(first.columns, step.columns, strict=False):
            if made.size.own > 1:
                raise SQLFailed(f"each step of WITH RECURSIVE makes column {own!r} of {name!r} several times as long")
            longer = Size(made.size.flat, made.size.bounded).times(100)
            grown_columns.append((own, Made(start.size + longer, Size(), 1.0)))
        return _Rows(grown_columns, first.named)

    def _values(self, query: exp.Values, scope: _Scope) -> _Rows:
        columns: dict[int, list[Made]] = {}
        for row in query.expressions:
            parts = row.expressions if isinstance(row, exp.Tuple) else [row]
            for at, part in enumerate(parts):
                columns.setdefault(at, []).append(self._made(part, scope))
        rows = _Rows([(f"column{at + 1}", _either(found)) for at, found in columns.items()])
        return rows.renamed(_alias_columns(query))

    def _select(self, query: exp.Expr, scope: _Scope) -> _Rows:
        sources: dict[str, _Rows | None] = {}
        inner = _Scope(scope.entries, sources, scope)
        start = query.args.get("from_")
        items = [start.this] if start is not None else [query.this] if isinstance(query, exp.Subquery) else []
        for item in [*items, *(query.args.get("joins") or []), *(query.args.get("laterals") or [])]:
            self._source(item, inner, sources)
        columns: list[tuple[str, Made]] = []
        named = True
        for projection in query.expressions:
            if isinstance(projection, exp.Star) or (
                isinstance(projection, exp.Column) and isinstance(projection.this, exp.Star)
            ):
                wanted = projection.text("table").lower()
                for alias, rows in sources.items():
                    if not wanted or alias == wanted:
                        columns += rows.columns if rows else []
                        named &= rows is not None and rows.named
            else:
                columns.append((projection.alias_or_name.lower(), self._made(projection, inner)))
        if isinstance(query, exp.Subquery):
            known = [rows for rows in sources.values() if rows]
            columns = [column for rows in known for column in rows.columns]
            named = len(known) == len(sources) and all(rows.named for rows in known)
        self._rest(query, inner, "expressions", "from_", "joins", "laterals", "with_", "this", "alias")
        whole = _Rows(columns).whole
        self._add(Made(Size(), whole.work, whole.nodes, steps=whole.steps))
        return _Rows([*columns, *([] if named else [("", _CELL)])], named)

    def _source(self, item: exp.Expr, scope: _Scope, sources: dict[str, _Rows | None]) -> None:
        if isinstance(item, exp.Join):
            self._source(item.this, scope, sources)
            if item.args.get("on"):
                self._add(self._made(item.args["on"], scope))
            return
        alias = item.alias_or_name.lower()
        rows: _Rows | None
        if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier):
            rows = scope.entries.get(item.name.lower())
        elif isinstance(item, exp.Subquery | exp.Values | exp.Lateral):
            body = item.this if isinstance(item, exp.Lateral) else item
            rows = self._query(body, scope) if isinstance(body, exp.Query | exp.Values) else self._called(body, scope)
        else:
            rows = self._called(item, scope)
        if rows is not None:
            rows = rows.renamed(_alias_columns(item))
        sources[alias or f"?{len(sources)}"] = rows
        for join in [] if isinstance(item, exp.Subquery) else item.args.get("joins") or []:
            self._source(join, scope, sources)

    def _called(self, item: exp.Expr, scope: _Scope) -> _Rows:
        """The rows of a function: each as large as what it is given."""
        made = _together(self._made(part, scope) for part in item.iter_expressions())
        return _Rows([("", made)], named=False)

    def _rest(self, query: exp.Expr, scope: _Scope, *known: str) -> None:
        for name, part in query.args.items():
            for one in part if isinstance(part, list) else [part]:
                if isinstance(one, exp.Expr) and name not in ("with_", *known):
                    self._add(self._made(one, scope))

    def _made(self, node: exp.Expr, scope: _Scope) -> Made:
        if isinstance(node, exp.Column):
            return scope.column(node.name.lower(), node.text("table").lower())
        if isinstance(node, exp.Query):
            return Made(self._query(node, scope).whole.size)
        if isinstance(node, exp.Literal):
            return Made(Size(float(len(node.name))), digits=not node.is_string and _is_long(node.name))
        if isinstance(node, exp.Connector | exp.DPipe):
            return self._chain(node, scope)
        parts = [self._made(part, scope) for part in node.iter_expressions()]
        whole = _together(parts)
        if isinstance(node, exp.Anonymous):
            return self._call(node, parts, whole)
        if isinstance(node, exp.GroupConcat | exp.ArrayAgg):
            return whole.as_part(Size(bounded=1.0), copies=True)
        if isinstance(node, exp.Cast):
            # A text that was made may be a number of as many digits.
            is_long = whole.size.bounded > 0 or whole.size.flat > 2 * CELL or whole.digits
            made = whole.as_part(_cast(node, whole.size), copies=True)
            return replace(made, digits=is_long and node.args["to"].this == exp.DType.DECIMAL)
        if isinstance(node, _READ_WIDE):
            return Made(_WORD, whole.work + whole.size.times(_WIDE), whole.nodes + 1)
        if isinstance(node, _WORDS):
            return whole.as_part(_WORD, copies=False)
        if isinstance(node, _LIKE_THEIR_LARGEST):
            return whole.as_part(_largest(parts), copies=False)
        is_text = isinstance(node, exp.Sub) and not any(map(_is_number, node.args.values()))  # or JSON, less a key
        if isinstance(node, _ARITHMETIC) and not is_text:
            is_power = isinstance(node, exp.Pow)
            return whole.computed(makes_digits=is_power and not _is_small(node.args.get("expression")))
        if isinstance(node, exp.Binary | exp.Unary):
            return whole.as_part(_largest(parts).or_(_WORD), copies=True)
        return whole.as_part(whole.size + _WORD, copies=True)

    @staticmethod
    def _call(node: exp.Anonymous, parts: Sequence[Made], whole: Made) -> Made:
        name = node.name.lower()
        if name in GATHERING:
            return whole.as_part(Size(bounded=1.0), copies=True)
        if name in GROWING:
            grown = growth(name, [part.name if isinstance(part, exp.Literal) else None for part in node.expressions])
            size = Size(bounded=1.0) if grown is None else whole.size.times(grown[0]) + Size(grown[1])
        elif name == "concat_ws" and parts:
            size = whole.size + parts[0].size.times(len(parts))
        elif name in _NUMBERS:
            powers = name in ("power", "pow") and not _is_small(node.expressions[-1])
            return whole.computed(makes_digits=powers)
        elif name in _FACTORS:
            size = whole.size.times(_FACTORS[name])
        elif name in _OF_ONE_WORD or name in _NO_LARGER:
            size = _WORD if name in _OF_ONE_WORD else _largest(parts)
        else:
            size = whole.size + _WORD
        made = whole.as_part(size, copies=True)
        if name.startswith("regexp_"):
            made = Made(made.size, made.work + whole.size.times(_WIDE), made.nodes)
        return made

    def _chain(self, node: exp.Connector | exp.DPipe, scope: _Scope) -> Made:
        """Parts one after the other, each step of ``||`` a copy of what is there so far."""
        parts: list[exp.Expr] = []
        waiting: list[exp.Expr] = [node]
        while waiting:
            one = waiting.pop()
            if type(one) is type(node):
                waiting += [one.args["expression"], one.this]
            else:
                parts.append(one)
        made = [self._made(part, scope) for part in parts]
        whole = _together(made)
        if isinstance(node, exp.Connector):
            return whole.as_part(_WORD, copies=False)
        steps, so_far = Size(), made[0].size
        for part in made[1:]:
            so_far += part.size
            steps += so_far
        return Made(whole.size, whole.work + steps, whole.nodes + len(parts))


def _joined(left: _Rows, right: _Rows) -> _Rows:
    if len(left.columns) != len(right.columns) or not (left.named and right.named):
        return _Rows([*left.columns, *right.columns], named=False)
    return _Rows([(name, _either([one, other]))
                  for (name, one), (_, other) in zip(left.columns, right.columns, strict=True)])  # fmt: skip


def _alias_columns(item: exp.Expr) -> list[str]:
    alias = item.args.get("alias")
    return (
        [column.name.lower() for column in alias.args.get("columns") or ()] if isinstance(alias, exp.TableAlias) else []
    )


def _cast(cast: exp.Cast, size: Size) -> Size:
    """``x::char(1000000)`` is padded to that length; what is taken apart has a value for each part."""
    kind = cast.args["to"]
    lengths = [param.name for param in kind.find_all(exp.DataTypeParam)]
    padding = 4.0 * max((float(length) for length in lengths if length.isdigit()), default=16.0)
    is_apart = isinstance(kind, exp.DataType) and kind.is_type("jsonb", "array")
    return size.times(_TAKEN_APART if is_apart else 1) + Size(padding)


def _is_long(number: str) -> bool:
    """Whether a number is written with many digits, or an exponent of more than two."""
    return len(number) > _MOST_DIGITS or len(number.lower().partition("e")[2].lstrip("+-")) > 2


def _is_small(node: object) -> bool:
    """Whether an exponent is written as a number of no more than a hundred."""
    number = node.this if isinstance(node, exp.Neg | exp.Paren) else node
    if not isinstance(number, exp.Literal) or not re.fullmatch(r"[0-9.]{1,6}", number.name):
        return False
    return number.name.count(".") < 2 and float(number.name) <= _MOST_DIGITS


def _is_number(node: object) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string
