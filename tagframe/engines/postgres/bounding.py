"""Bounds for what a statement makes, where no setting of the server bounds it.

PostgreSQL limits the time of a statement, and the memory of a sort, but not that of a value: ``repeat('x',
1000000000)`` takes a gigabyte, and a chain of ``||`` as much again at each step. So a function that can make a text of
any size takes small literals, or is bounded at the call: ``repeat(x, n)`` becomes ``repeat(x, CASE WHEN
octet_length(x)::int8 * (n) > bound THEN error ELSE (n) END)``. An aggregate that gathers texts gets a FILTER that adds
up the sizes of its inputs; the sum is a setting of the transaction, because a read-only statement has no other place
for it. Results do not change; a statement that exceeds a bound fails. :func:`longest_text` says how high the bound may
be, from what the statement does with such texts.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sqlglot import exp

from tagframe.errors import SQLFailed

GATHERED, KEPT = "tagframe.gathered", "tagframe.kept"
"""The settings that hold how many bytes a statement's aggregates were given, and how many are in rows that are kept."""
TOO_LARGE = "tagframe: too large a text"
"""What the server says if a bound is exceeded."""
_CELL = 4_096
"""The assumed size of a table's cell in bytes."""
_LEAST = 2 * _CELL + 1
"""The least that a bounded text may have, in bytes."""
_LONGEST = 500_000
_MOST_NODES = 100_000
"""Nodes of a statement after subqueries are expanded where their columns are named, as the planner does it."""
_MOST_STEPS = 6
"""Computations with numbers of thousands of digits, each of which may take three seconds; the server stops in none."""
_LOOKED_THROUGH = 2**30
"""Characters that may be compared in a search for one text in another: about a second of work."""
_EACH_ROW = 64
"""Bytes that a kept row takes in addition to its values."""

_GATHERING = frozenset("string_agg array_agg json_agg jsonb_agg json_object_agg jsonb_object_agg".split())
_LOOKED_FOR = frozenset("strpos split_part replace btrim ltrim rtrim translate string_to_array position trim".split())
"""Functions that look for one argument in another; the server does not stop in the middle of it."""
_NUMBERS = frozenset("power pow exp sqrt cbrt ln log div mod gcd lcm".split())
_OF_ONE_WORD = _NUMBERS | set("cardinality char_length count length md5 octet_length strpos".split())
_ESCAPING = ("json", "to_json", "row_to_json", "quote_")
"""How functions begin whose values may be twice as large as their arguments together."""
_OF_NUMBERS = (exp.Predicate, exp.Connector, exp.Not, exp.Add, exp.Mul, exp.Div, exp.Mod, exp.Pow, exp.Neg)
_PADDING = ("lpad", "rpad", "format", "to_char")
_READ_WIDE = (exp.RegexpLike, exp.RegexpILike, exp.SimilarTo, exp.ILike)
"""While a regular expression is searched in a text, a character takes four bytes."""


class _Made(NamedTuple):
    """Bytes of a value, bytes made on the way to it, nodes with subqueries written out, and computations."""

    size: float
    work: float = 0.0
    nodes: float = 1.0
    steps: float = 0.0


_Rows = Mapping[str, _Made]
"""By name what a column of a query is, by ``*`` the whole row; by "" each column, if not all names are known."""
_ANY, _ROW = "", "*"
_TABLE = {_ANY: _Made(_CELL), _ROW: _Made(20 * _CELL)}


def longest_text(tree: exp.Query, memory: int, shown: str) -> int:
    """Bytes that one bounded text may have so that what is made for a row stays within ``memory``.

    Args:
        tree: the statement, each function of it a name and its arguments.
        memory: in bytes.
        shown: the statement, for messages.

    Raises:
        SQLFailed: there is no such bound.
    """
    least = _Sum(tree, _LEAST)
    if least.has_digits and least.total.steps > _MOST_STEPS:
        raise SQLFailed(
            f"the SQL computes {least.total.steps:.0f} times with numbers that may have thousands of digits; at most "
            f"{_MOST_STEPS} times are allowed: {shown}; CAST(… AS double precision) first makes it faster"
        )
    if least.total.work > memory:
        raise SQLFailed(
            f"the SQL builds texts from texts that it built, and needs too much memory: {shown}. Put texts together "
            "(||, concat, repeat, …) only once"
        )
    text = memory // 8
    while text > _LEAST and _Sum(tree, text).total.work > memory:
        text //= 2
    return max(text, _LEAST)


class _Sum:
    """What a statement makes for a row if a bounded text takes ``text`` bytes."""

    def __init__(self, tree: exp.Query, text: float) -> None:
        self._text, self.has_digits, self.total = text, False, _Made(0, nodes=0)
        whole = self._query(tree, {}, ChainMap())[_ROW]
        self._add(_Made(0, 3 * whole.size))  # it is put together, measured and sent

    def _add(self, made: _Made) -> None:
        self.total = _together([self.total, made])
        if self.total.nodes > _MOST_NODES:
            raise SQLFailed("the SQL nests subqueries whose columns are used too often")

    def _query(self, query: exp.Expr, entries: Mapping[str, _Rows], outer: ChainMap[str, _Rows]) -> _Rows:
        sources: ChainMap[str, _Rows] = outer.new_child()
        clause = query.args.get("with_")
        for entry in clause.expressions if clause else ():
            name = entry.alias_or_name.lower()
            body = entry.this
            is_step = clause is not None and clause.recursive and isinstance(body, exp.SetOperation)
            if is_step and any(one.name.lower() == name for one in body.find_all(exp.Table)):
                # A row that is made from the row before is checked when it is made, see _counting.
                size = max(self._text, self._query(body.left, entries, sources)[_ROW].size)
                rows: dict[str, _Made] = {_ANY: _Made(size), _ROW: _Made(size)}
                self._query(body, {**entries, name: rows}, sources)
            else:
                rows = dict(_renamed(self._query(body, entries, sources), entry))
            entries = {**entries, name: rows}
        handled = {"with_", "alias", "this", "from_", "joins", "laterals", "expressions"}
        rows = {}
        if isinstance(query, exp.SetOperation):
            handled.add("expression")
            sides = [self._query(side, entries, sources) for side in (query.left, query.right)]
            rows = dict.fromkeys(sides[0], _either(made for side in sides for made in side.values()))
        elif isinstance(query, exp.Subquery):
            rows = dict(self._query(query.this, entries, sources))
        elif isinstance(query, exp.Values):
            cells = [self._made(row, entries, sources) for row in query.expressions]
            rows = {_ANY: _either(cells), _ROW: _either(cells)}
        else:
            for part in ("from_", "joins", "laterals"):
                for item in _listed(query.args.get(part)):
                    self._source(item, entries, sources)
            parts: list[_Made] = []
            for shown in query.expressions:
                if shown.is_star:
                    wanted = shown.text("table").lower()
                    for star in [sources.get(wanted, _TABLE)] if wanted else sources.maps[0].values():
                        rows.update({name: _either([rows.get(name, made), made]) for name, made in star.items()})
                        parts.append(star[_ROW])
                else:
                    name, made = shown.alias_or_name.lower(), self._made(shown, entries, sources)
                    rows[name] = _either([rows.get(name, made), made])
                    parts.append(made)
            rows[_ROW] = _together(parts)
        for name in query.args.keys() - handled:
            for one in _listed(query.args[name]):
                self._add(self._made(one, entries, sources))
        self._add(_Made(0, *rows[_ROW][1:]))
        return _renamed(rows, query)

    def _source(self, item: exp.Expr, entries: Mapping[str, _Rows], sources: ChainMap[str, _Rows]) -> None:
        if isinstance(item, exp.From | exp.Join) or (
            isinstance(item, exp.Subquery) and not isinstance(item.this, exp.Query)  # joins in parentheses
        ):
            self._source(item.this, entries, sources)
            if item.args.get("on") is not None:
                self._add(self._made(item.args["on"], entries, sources))
            if isinstance(item, exp.Subquery) and item.alias:
                within = _either(made for rows in sources.maps[0].values() for made in rows.values())
                sources[item.alias.lower()] = {_ANY: within, _ROW: _together([within] * 20)}
        else:
            body = item.this if isinstance(item, exp.Lateral) else item
            if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier):
                rows: _Rows = entries.get(item.name.lower(), _TABLE)
            elif isinstance(body, exp.Query | exp.Values):
                rows = self._query(body, entries, sources)
            else:  # a function: each row as large as what it is given
                made = _together(self._made(part, entries, sources) for part in body.iter_expressions())
                rows = {_ANY: made, _ROW: made}
            sources[item.alias_or_name.lower() or f"?{len(sources)}"] = _renamed(rows, item)
        for join in _listed(item.args.get("joins")):
            self._source(join, entries, sources)

    def _made(self, node: exp.Expr, entries: Mapping[str, _Rows], sources: ChainMap[str, _Rows]) -> _Made:
        if isinstance(node, exp.Column):
            return _column(node.name.lower(), node.text("table").lower(), sources)
        if isinstance(node, exp.Query):
            return _Made(self._query(node, entries, sources)[_ROW].size)
        if isinstance(node, exp.Literal):
            self.has_digits |= not node.is_string and not re.fullmatch(r"[^eE]{1,100}([eE][+-]?\d\d?)?", node.name)
            return _Made(len(node.name))
        is_chain = isinstance(node, exp.Connector | exp.DPipe)
        operands = list(node.flatten(unnest=False) if is_chain else node.iter_expressions())
        parts = [self._made(part, entries, sources) for part in operands]
        whole, name = _together(parts), node.name.lower() if isinstance(node, exp.Anonymous) else ""
        size, copied = whole.size, 0.0 if not isinstance(node, exp.Func | exp.Binary) else whole.size
        steps = whole.steps + (name in _NUMBERS or isinstance(node, exp.Mul | exp.Div | exp.Mod | exp.Pow))
        if isinstance(node, exp.DPipe):  # each step is a copy of what is there so far
            copied = sum(made.size * (len(parts) - max(1, at)) for at, made in enumerate(parts))
        elif isinstance(node, exp.GroupConcat | exp.ArrayAgg) or name in _GATHERING:
            size = copied = self._text
        elif name in _BOUNDS:
            times = _times(name, [one.name if isinstance(one, exp.Literal) else None for one in operands])
            size = copied = self._text if times is None else size * times + _CELL * (name in _PADDING)
        elif name == "concat_ws" and parts:
            size = copied = size + parts[0].size * len(parts)
        elif name == "string_to_array":
            size = copied = size * 50  # an item of one character is a separate value
        elif isinstance(node, exp.Cast):
            kind = node.args["to"]
            self.has_digits |= kind.this == exp.DType.DECIMAL and size > 2 * _CELL
            lengths = [float(one.name) for one in kind.find_all(exp.DataTypeParam) if one.name.isdigit()]
            is_apart = isinstance(kind, exp.DataType) and kind.is_type("jsonb", "array")
            size = copied = size * (32 if is_apart else 1) + 4 * max(lengths, default=16.0)
        elif isinstance(node, exp.Pow) or name in ("power", "pow"):
            self.has_digits |= not _is_small(operands[-1])
        elif name.startswith(_ESCAPING):
            size = copied = size * 2
        if isinstance(node, _READ_WIDE) or name.startswith("regexp_"):
            copied += 4 * whole.size
        if (
            name in _OF_ONE_WORD
            or isinstance(node, _OF_NUMBERS)
            or (
                isinstance(node, exp.Sub) and any(one.is_number for one in operands)  # or JSON, less a key
            )
        ):
            size, copied = 64.0, copied if isinstance(node, _READ_WIDE) else 0.0
        return _Made(size, whole.work + copied, whole.nodes + 1, steps)


def _listed(part: object) -> list[exp.Expr]:
    return [one for one in (part if isinstance(part, list) else [part]) if isinstance(one, exp.Expr)]


def _together(parts: Iterable[_Made]) -> _Made:
    """All of them: their sizes added."""
    return _Made(*map(sum, zip(_Made(0, nodes=0), *parts, strict=True)))


def _either(parts: Iterable[_Made]) -> _Made:
    return _Made(*map(max, zip(_Made(0), *parts, strict=True)))


def _column(name: str, source: str, sources: ChainMap[str, _Rows]) -> _Made:
    """The largest that a name may stand for: scopes are looked through from the inside out."""
    found = [_Made(_CELL)]
    for scope in sources.maps:
        if (source or name) in scope:
            rows = scope[source or name]
            return _either([*found, *(made for own, made in rows.items() if own in ((name, _ANY) if source else _ROW))])
        if not source:
            found += [made for rows in scope.values() for own, made in rows.items() if own in (name, _ANY)]
            if any(name in rows for rows in scope.values()):
                break
    return _either(found)


def _renamed(rows: _Rows, item: exp.Expr) -> _Rows:
    """With the names of ``AS t(a, b)``: each may be any column."""
    alias = item.args.get("alias")
    if not isinstance(alias, exp.TableAlias) or not alias.args.get("columns"):
        return rows
    return {_ANY: _either(made for name, made in rows.items() if name != _ROW), _ROW: rows[_ROW]}


def _is_small(node: exp.Expr) -> bool:
    """Whether an exponent is written as a number of no more than a hundred."""
    number = node.this if isinstance(node, exp.Neg | exp.Paren) else node
    return isinstance(number, exp.Literal) and bool(re.fullmatch(r"\d{1,2}(\.\d{0,3})?|100", number.name))


def _times(function: str, arguments: Sequence[str | None]) -> float | None:
    """How many times larger the value is than the arguments; None if they are no small literals."""
    first, second, third = [*arguments, None, None, None][:3]
    if function in ("repeat", "lpad", "rpad"):
        most = 8 if function == "repeat" else 1_000
        count = int(second) if second is not None and second.isdigit() else most + 1
        return None if count > most else count if function == "repeat" else 1
    if function == "format":
        is_odd = first is None or len(first) > 1_000 or re.search(r"[$*]|%[^a-zA-Z%]*[0-9]{3}", first)
        return None if is_odd else 1
    if function == "to_char":
        return 1 if second is not None and len(second) <= 1_000 else None
    put = second if function == "array_to_string" and len(arguments) == 2 else third
    times: float = 9 if put is None else len(put) / max(1, len(second or "")) if function == "replace" else len(put)
    return None if times > 8 else max(1, times) + (function != "replace")


@dataclass(frozen=True)
class Word:
    """A token: as it is written, and as a word in lower case; ``literal`` is its value if it is one."""

    text: str
    word: str = ""
    literal: str | None = None


@dataclass(frozen=True)
class Bounds:
    """What a statement may make.

    Attributes:
        text: bytes of one text, and of all that aggregates are given.
        kept: bytes of the rows that WITH RECURSIVE makes, and of those that IN searches.
        looked_into: whether the rows of ``IN (SELECT …)`` are counted, which rules out some of the planner's ways.
        recursive: whether the rows of WITH are counted.
    """

    text: int
    kept: int
    looked_into: bool = False
    recursive: bool = False


def bounded(words: Sequence[Word], bounds: Bounds, shown: str) -> str:
    """The statement with its bounds; ``shown`` is of it, for messages.

    Raises:
        SQLFailed: functions that make texts are nested too deeply.
    """
    recursive = any(word.word == "recursive" for word in words)
    text = " ".join(_bounded(words, replace(bounds, recursive=recursive)))
    if len(text) > _LONGEST:
        raise SQLFailed(f"the SQL nests functions that make texts too deeply: {shown}")
    return text


def _bounded(words: Sequence[Word], bounds: Bounds) -> list[str]:
    parts: list[str] = []
    at = size = 0
    while at < len(words) and size <= _LONGEST:
        start, word = len(parts), words[at].word
        parts.append(words[at].text)
        at += 1
        if at < len(words) and words[at].text == "(":
            end = _closing(words, at)
            inside = words[at + 1 : end]
            if word in _GATHERING:
                parts += ["(", *_bounded(inside, bounds), ")"]
                end = _filtered(words, end + 1, inside, bounds, parts) - 1
            elif word in _BOUNDS or word in _LOOKED_FOR:
                parts += ["(", _arguments(word, inside, bounds), ")"]
            elif word in ("as", "materialized") and bounds.recursive:
                parts += ["(", *_entry(inside, bounds), ")"]
            elif bounds.looked_into and is_looked_into(words, at - 1):
                parts += ["(", *_counting(inside, bounds), ")"]
            else:
                end = at - 1
            at = end + 1
        size += sum(map(len, parts[start:]))
    return parts


def is_looked_into(words: Sequence[Word], at: int) -> bool:
    """Whether ``IN (SELECT …)`` or similar starts there: the server may keep all its rows in memory."""
    after = [word.word for word in words[at : at + 3]]
    return after[0] in ("in", "any", "some", "all") and after[2:] in (["select"], ["with"], ["values"])


# Not a constant for the planner, which would raise the error while planning.
_ERROR = f"(left(clock_timestamp()::text, 0) || '{TOO_LARGE}')::int"
_ODD_WIDTH = "'%[^a-zA-Z%]*([*]|[0-9]{3})'"


def _copies(count: str, texts: Sequence[str], most: int) -> str:
    return f"{count}::int8 * octet_length( concat( {', '.join(texts)} ) ) > {most}"


_Bound = Callable[[Sequence[str], int], str]
# By function: which argument gets the bound, and the condition under which it is exceeded.
_BOUNDS: dict[str, tuple[int, _Bound]] = {
    "repeat": (1, lambda a, most: f"octet_length( {a[0]} )::int8 * ( {a[1]} ) > {most}"),
    "lpad": (1, lambda a, most: f"( {a[1]} ) > {most // 4}"),
    "rpad": (1, lambda a, most: f"( {a[1]} ) > {most // 4}"),
    "replace": (2, lambda a, most: f"octet_length( {a[0]} )::int8 * octet_length( {a[2]} ) > {most}"),
    "regexp_replace": (2, lambda a, most: f"( octet_length( {a[0]} )::int8 + 1 ) * octet_length( {a[2]} ) > {most}"),
    "array_to_string": (1, lambda a, most: _copies(f"cardinality( {a[0]} )", a[1:], most)),
    "format": (0, lambda a, most: f"( {a[0]} ) ~ {_ODD_WIDTH}"
               + f" OR {_copies(f'octet_length( {a[0]} )', a[1:], most)}" * bool(a[1:])),
    "to_char": (1, lambda a, _: f"octet_length( {a[1]} ) > 1000"),
}  # fmt: skip


def _arguments(function: str, inside: Sequence[Word], bounds: Bounds) -> str:
    """The arguments of a function, with a bound where one is needed."""
    start = 1 if inside and inside[0].word in ("both", "leading", "trailing") else 0
    words = inside[start:]
    between = {"position": "in", "trim": "from"}.get(function, ",")
    cuts = [at for at, word in _at_the_top(words) if word.word == between]
    if function == "trim" and not cuts:
        between, cuts = ",", [at for at, word in _at_the_top(words) if word.word == ","]
    parts = [words[one + 1 : end] for one, end in zip([-1, *cuts], [*cuts, len(words)], strict=True)]
    texts = [" ".join(_bounded(part, bounds)) for part in parts]
    literals = [part[0].literal if len(part) == 1 else None for part in parts]
    text, needle = (0, 1) if between == "," else (1, 0)
    if function in _LOOKED_FOR and len(parts) > 1 and len(literals[needle] or "x" * 17) > 16:
        passes = f"octet_length( {texts[needle]} )::int8 * octet_length( {texts[text]} ) > {_LOOKED_THROUGH}"
        texts[needle] = f"CASE WHEN {passes} THEN ({_ERROR})::text ELSE ( {texts[needle]} ) END"
        texts[needle] = f"( {texts[needle]} )" if between != "," else texts[needle]
    which, exceeds = _BOUNDS.get(function, (len(texts), None))
    if exceeds is not None and which < len(texts) and _times(function, literals) is None:
        error = _ERROR if function in ("repeat", "lpad", "rpad") else f"({_ERROR})::text"
        texts[which] = f"CASE WHEN {exceeds(texts, bounds.text)} THEN {error} ELSE ( {texts[which]} ) END"
    return " ".join([*(word.text for word in inside[:start]), f" {between} ".join(texts)])


def _filtered(words: Sequence[Word], at: int, inside: Sequence[Word], bounds: Bounds, parts: list[str]) -> int:
    """Adds the FILTER of an aggregate, which may have one already; gives its end."""
    start = 1 if inside and inside[0].word in ("distinct", "all") else 0
    end = next((at for at, word in _at_the_top(inside) if word.word == "by"), len(inside))
    given = " ".join(_bounded(inside[start:end], bounds))
    passes = _counted(GATHERED, f"pg_column_size( ROW( {given} ) )", bounds.text)
    if [word.word for word in words[at : at + 1]] != ["filter"]:
        parts += ["FILTER ( WHERE", passes, ")"]
        return at
    end = _closing(words, at + 1)
    own = " ".join(_bounded(words[at + 3 : end], bounds))  # FILTER ( WHERE …
    parts += ["FILTER ( WHERE CASE WHEN", own, "THEN", passes, "ELSE false END )"]
    return end + 1


def _counted(setting: str, size: str, most: int) -> str:
    """A condition that is true, and adds to the count each time it is evaluated."""
    so_far = f"current_setting('{setting}')::int8 + {size}"
    counted = f"set_config('{setting}', ( {so_far} )::text, true)::int8"
    return f"CASE WHEN {counted} <= {most} THEN true ELSE {_ERROR} IS NULL END"


def _entry(body: Sequence[Word], bounds: Bounds) -> list[str]:
    """An entry of WITH RECURSIVE, in which each row that is made from another row is counted."""
    unions = [at for at, word in _at_the_top(body) if word.word == "union"]
    if not unions:
        return _bounded(body, bounds)
    split = unions[-1] + 1
    if split < len(body) and body[split].word in ("all", "distinct"):
        split += 1
    return [*_bounded(body[:split], bounds), *_counting(body[split:], bounds)]


def _counting(query: Sequence[Word], bounds: Bounds) -> list[str]:
    """A query whose rows are counted."""
    size = "pg_column_size( ROW( tagframe_row.* ) )"
    return [
        "SELECT tagframe_row.* FROM (", *_bounded(query, bounds), ") AS tagframe_row WHERE",
        f"CASE WHEN {size} > {bounds.text} THEN {_ERROR} IS NULL ELSE",
        _counted(KEPT, f"{size} + {_EACH_ROW}", bounds.kept), "END",
    ]  # fmt: skip


def _at_the_top(words: Sequence[Word]) -> Iterator[tuple[int, Word]]:
    depth = 0
    for at, word in enumerate(words):
        depth += (word.text in ("(", "[")) - (word.text in (")", "]"))
        if not depth:
            yield at, word


def _closing(words: Sequence[Word], start: int) -> int:
    """The position of the parenthesis that closes the one at ``start``; the end if there is none."""
    depth = 0
    for at in range(start, len(words)):
        depth += (words[at].text == "(") - (words[at].text == ")")
        if not depth:
            return at
    return len(words)
