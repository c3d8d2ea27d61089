"""Bounds for what a statement makes, where no setting of the server bounds it.

PostgreSQL limits the time of a statement, and the memory of a sort, but not that of a value: ``repeat('x',
1000000000)`` takes a gigabyte, and a chain of ``||`` as much again at each step. There are three rules:

- The size that a function is asked for is a small literal, or the server checks it at the call: ``repeat(x, n)``
  becomes ``repeat(x, CASE WHEN octet_length(x) * (n) > bound THEN error ELSE (n) END)``. The format of ``format`` and
  ``to_char`` is a literal.
- Texts that are put together are added up before the statement runs, through subqueries and WITH, as if each cell of a
  table had a few kilobytes: :func:`longest_text`.
- What aggregates gather, and the rows of WITH RECURSIVE and of IN, are added up by the server. The sum is a setting of
  the transaction, because a read-only statement has no other place for it.

Results do not change; a statement that exceeds a bound fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import NamedTuple, NoReturn

from sqlglot import exp

from tagframe.errors import SQLFailed

GATHERED, KEPT = "tagframe.gathered", "tagframe.kept"
"""The settings that hold how many bytes a statement's aggregates were given, and how many are in rows that are kept."""
TOO_LARGE = "tagframe: too large a text"
"""What the server says if a bound is exceeded."""
_CELL = 4_096
"""The assumed size of a table's cell in bytes."""
_NODE = 1_024
"""Bytes that the server takes for a part of an expression, however small its value is."""
_LONGEST = 500_000
"""Characters of a statement with its bounds."""
_MOST_TIMES = 8
"""How many times larger than its arguments a value may be without a check by the server."""
_SHORT = 16
"""Characters of a literal that may be looked for in any text."""
_LOOKED_THROUGH = 2**30
"""Characters that may be compared in a search for one text in another: about a second, in which nothing stops it."""
_POWERS = 32
"""A number of thousands of digits counts as this part of the memory: a computation with it may take three seconds, in
which nothing stops it."""
_EACH_ROW = 64
"""Bytes that a kept row takes in addition to its values."""

_GATHERING = frozenset("string_agg array_agg json_agg jsonb_agg json_object_agg jsonb_object_agg".split())
_COUNTS = frozenset(("repeat", "lpad", "rpad"))
_MAKERS = {
    **dict.fromkeys(_COUNTS, slice(1, 2)), "replace": slice(2, 3), "regexp_replace": slice(2, 3),
    "array_to_string": slice(1, 3), "format": slice(0, 1), "to_char": slice(1, 2),
}  # fmt: skip
"""Which arguments say how many times larger than the first one the value is: by a number, or by their own size."""
_SEARCHES = frozenset("strpos position split_part replace btrim ltrim rtrim translate string_to_array".split())
"""Functions that look for their second argument in their first."""
_ESCAPING = ("json", "to_json", "row", "quote_", "concat")
"""How functions begin whose values may be twice as large as their arguments together."""
_NUMBERS = (exp.Add, exp.Mul, exp.Div, exp.Mod, exp.Neg)  # less a key, JSON stays large: no exp.Sub
_HAS_POWER = re.compile(r"[\s\d.+-]*(\d{100}|\d\.?[eE][+-]?\d{3})")
_FRAME = (exp.With, exp.CTE, exp.From, exp.Join, exp.Lateral, exp.Table, exp.TableAlias, exp.Identifier)
"""What stands around queries, functions and conditions in FROM and WITH."""
_ANY, _ROW = "", "*"


class _Made(NamedTuple):
    """Bytes of a value, and bytes of all that is made on the way to it, with the subqueries that it reads written out,
    as the planner does it."""

    size: float
    work: float = _NODE


_Rows = Mapping[str, _Made]
"""By its name what a column may be, and by ``_ANY`` one without a name; by ``_ROW`` a whole row, and a table's row by
``_ROW`` and its name."""


def longest_text(tree: exp.Query, memory: int, shown: str) -> int:
    """Bytes that one text may have that the server checks, so that what is made for a row stays within ``memory``.

    Args:
        tree: the statement, each function of it a name and its arguments.
        memory: in bytes.
        shown: the statement, for messages.

    Raises:
        SQLFailed: there is no such bound.
    """

    def made(text: float) -> float:
        return sum(_Sum(tree, text, memory, shown).works)

    if made(_CELL) <= memory:
        return next((text for part in range(3, 15) if made(text := memory // 2**part) <= memory), _CELL)
    raise SQLFailed(
        f"the SQL builds texts from texts that it built, or computes with numbers of thousands of digits, and needs "
        f"too much memory or time: {shown}. Put texts together (||, concat, repeat, …) only once, and CAST(… AS double "
        "precision) what is raised to a power"
    )


class _Sum:
    """What a statement makes for a row: ``works`` are the bytes of its parts.

    Args:
        tree: the statement.
        text: bytes of a text that the server checks.
        memory: bytes that may be made.
        shown: the statement, for messages.
    """

    def __init__(self, tree: exp.Query, text: float, memory: float, shown: str) -> None:
        self._text, self._memory, self._shown = text, memory, shown
        self.works: list[float] = []
        self.works.append(3 * self._query(tree, {})[_ROW].size)  # it is put together, measured and sent

    def _query(self, query: exp.Expr, around: _Rows) -> _Rows:
        """What a query shows, by its name; ``around`` is what may be named in it, whose columns have one scope here.

        A name stands for the largest of what has it in the queries around, in WITH and in FROM.
        """
        row, seen = _Made(0, 0), dict(around)
        parts = ["with_", *(["this"] if isinstance(query, exp.Subquery) else []), "from_", "joins", "laterals"]
        for item in (item for part in parts for item in _listed(query.args.get(part))):
            if isinstance(item, exp.With) and item.recursive:  # the server checks each row, see _entry
                _enlarge(seen, dict.fromkeys((_ANY, _ROW), _Made(2 * self._text)))
            for node in item.walk(bfs=False, prune=lambda node: not isinstance(node, _FRAME)):
                rows: _Rows = {}
                if isinstance(node, exp.Query):
                    rows = self._query(node, seen)
                elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
                    rows = {_ROW: _either([_Made(20 * _CELL), seen.get(_ROW, row)])}
                elif not isinstance(node, _FRAME):
                    made = self._made(node, seen)
                    rows = {} if node.arg_key == "on" else {_ANY: made, _ROW: made}
                    self.works.append(made.work)
                if rows:
                    named = [one for one in (node, node.parent) if one is not None]
                    if any(one.alias_column_names for one in named):  # AS t(a, b)
                        rows = {**rows, _ANY: _cell(seen, rows)}
                    row = row if isinstance(item, exp.With) else _together([row, rows[_ROW]])
                    as_text = _Made(2 * rows[_ROW].size, rows[_ROW].work)
                    _enlarge(seen, rows)
                    _enlarge(seen, {_ROW + one.alias_or_name.lower(): as_text for one in named})
        if isinstance(query, exp.SetOperation):
            sides = [self._query(side, seen) for side in (query.left, query.right)]
            rows = {_ANY: _cell(*sides), _ROW: _either(side[_ROW] for side in sides)}
        elif isinstance(query, exp.Subquery):
            rows = {**seen, _ROW: row}
        else:
            shown = [(one, row if one.is_star else self._made(one, seen)) for one in query.expressions]
            rows = dict(seen) if any(one.is_star for one in query.expressions) else {}
            for one, made in shown:
                _enlarge(rows, {} if one.is_star else {_name(one): made})
            rows = {**rows, _ROW: _together(made for _, made in shown)}
            self.works.append(rows[_ROW].work)
        for name in query.args.keys() - {*parts, "alias", "this", "expression", "expressions"}:
            self.works.append(sum(self._made(one, seen).work for one in _listed(query.args[name])))
        return rows

    def _made(self, node: exp.Expr, seen: _Rows) -> _Made:
        if isinstance(node, exp.Column):
            name = node.name.lower()
            return _either(seen.get(one, _Made(_CELL)) for one in (name, _ANY, _ROW + name))
        if isinstance(node, exp.Query):
            return _Made(self._query(node, seen)[_ROW].size)
        power = self._memory / _POWERS
        if isinstance(node, exp.Literal):
            return _Made(power if _HAS_POWER.match(node.name) else len(node.name))
        is_chain = isinstance(node, exp.Connector)
        operands = list(node.flatten(unnest=False) if is_chain else node.iter_expressions())
        parts = [self._made(part, seen) for part in operands]
        (size, work), name = _together(parts), node.name.lower() if isinstance(node, exp.Anonymous) else ""
        if isinstance(node, exp.Predicate | exp.Connector | exp.Not) or (isinstance(node, _NUMBERS) and size < power):
            return _Made(64, work + _NODE)
        if isinstance(node, exp.GroupConcat | exp.ArrayAgg) or name in _GATHERING:
            size = self._text
        elif name in _MAKERS:
            times = _times(name, [one.name if isinstance(one, exp.Literal) else None for one in operands])
            if times is None and name in ("format", "to_char"):
                self._refuse(f"write the format of {name} in quotes, with no width above 99 or of another argument")
            size = self._text if times is None else size * times + _CELL
        elif isinstance(node, exp.Tuple) or name == "string_to_array" or name.startswith(_ESCAPING):
            # An item of one character is a separate value.
            size *= {"string_to_array": 50, "concat_ws": 2 * len(parts)}.get(name, 2)
        elif isinstance(node, exp.StrPosition | exp.Trim) and len(parts) > 1 and parts[1].size > _CELL:
            self._refuse("position and trim look for a column or a text in quotes; strpos and btrim for other texts")
        elif isinstance(node, exp.Cast):
            kind = node.args["to"]
            is_apart = isinstance(kind, exp.DataType) and kind.is_type("jsonb", "array")
            lengths = [float(one.name) for one in kind.find_all(exp.DataTypeParam) if one.name.isdigit()]
            is_number = kind.this == exp.DType.DECIMAL
            size = size * (32 if is_apart else 2 - is_number) + 4 * max(lengths, default=16.0)
            if is_number and size > 2 * _CELL:
                size = max(size, power)
        elif isinstance(node, exp.Pow) or name in ("power", "pow", "exp"):
            size = size if _is_small(operands) else max(size, power)
        return _Made(size, work + _NODE + size * isinstance(node, exp.Func | exp.Binary))

    def _refuse(self, reason: str) -> NoReturn:
        raise SQLFailed(f"{reason}: {self._shown}")


def _listed(part: object) -> list[exp.Expr]:
    return [one for one in (part if isinstance(part, list) else [part]) if isinstance(one, exp.Expr)]


def _name(shown: exp.Expr) -> str:
    return shown.alias_or_name.lower() if isinstance(shown, exp.Alias | exp.Column) else _ANY


def _together(parts: Iterable[_Made]) -> _Made:
    """All of them: their sizes added."""
    return _Made(*map(sum, zip(_Made(0, 0), *parts, strict=True)))


def _either(parts: Iterable[_Made]) -> _Made:
    return _Made(*map(max, zip(_Made(0), *parts, strict=True)))


def _enlarge(known: dict[str, _Made], rows: _Rows) -> None:
    """Add rows to known ones: of what has one name, the largest stays."""
    for name, made in rows.items():
        known[name] = _either([known.get(name, made), made])


def _cell(*many: _Rows) -> _Made:
    """The largest column of them."""
    return _either(made for rows in many for name, made in rows.items() if not name.startswith(_ROW))


def _is_small(operands: Sequence[exp.Expr]) -> bool:
    """Whether a power is computed with floats, or its exponent is a number of no more than a hundred."""
    plain = [operand.unnest() for operand in operands]
    is_float = any(isinstance(one, exp.Cast) and one.is_type("double", "float") for one in plain)
    return is_float or bool(plain[-1].is_number and re.fullmatch(r"\d{1,2}(\.\d{0,3})?|100", plain[-1].name))


def _times(function: str, literals: Sequence[str | None]) -> float | None:
    """How many times larger than its arguments a value may be; None if they are no small literals."""
    given = literals[_MAKERS[function]]
    if not given or None in given:
        return None
    put = "".join(map(str, given))
    if function in _COUNTS:
        count = int(put) if put.isdecimal() else inf
        times = count if function == "repeat" or count > 1_000 else 1
    elif function in ("format", "to_char"):
        is_odd = len(put) > 1_000 or (function == "format" and re.search(r"[*]|%[^a-zA-Z%]*[0-9]{3}", put))
        times = inf if is_odd else 2 * max(1, put.count("%") * ("$" in put))
    else:
        times = max(1, len(put) / max(1, len(literals[1] or ""))) if function == "replace" else len(put) + 2
    return times if times <= _MOST_TIMES else None


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
        shown: the statement, for messages.
        recursive: whether the rows of WITH are counted.
        looked_into: whether the rows of ``IN (SELECT …)`` are counted, which rules out some of the planner's ways.
    """

    text: int
    kept: int
    shown: str
    recursive: bool
    looked_into: bool = False


def bounded(words: Sequence[Word], bounds: Bounds) -> str:
    """A statement, or a part of it, with its bounds.

    Raises:
        SQLFailed: functions that make texts are nested too deeply.
    """
    parts: list[str] = []
    at = 0
    while at < len(words):
        word = words[at].word
        parts.append(words[at].text)
        at += 1
        if at == len(words) or words[at].text != "(":
            continue
        end = _closing(words, at)
        inside = words[at + 1 : end]
        if word in _GATHERING:
            made = bounded(inside, bounds)
        elif word in _MAKERS or word in _SEARCHES:
            made = _arguments(word, inside, bounds)
        elif word in ("as", "materialized") and bounds.recursive:
            made = _entry(inside, bounds)
        elif bounds.looked_into and is_looked_into(words, at - 1):
            made = _counting(inside, bounds)
        else:
            continue
        parts += ["(", made, ")"]
        at = end + 1
        if word in _GATHERING:
            at = _filtered(words, at, inside, bounds, parts)
    if sum(map(len, parts)) > _LONGEST:
        raise SQLFailed(f"the SQL nests functions that make texts too deeply: {bounds.shown}")
    return " ".join(parts)


def is_looked_into(words: Sequence[Word], at: int) -> bool:
    """Whether ``IN (SELECT …)`` or similar starts there: the server may keep all its rows in memory."""
    after = [word.word for word in words[at : at + 3]]
    return after[0] in ("in", "any", "some", "all") and after[2:] in (["select"], ["with"], ["values"])


# Not a constant for the planner, which would raise the error while planning.
_ERROR = f"(left(clock_timestamp()::text, 0) || '{TOO_LARGE}')::int"


def _arguments(function: str, words: Sequence[Word], bounds: Bounds) -> str:
    """The arguments of a function, with a check of their sizes where one is needed."""
    cuts = [-1, *(at for at, word in _at_the_top(words) if word.text == ","), len(words)]
    parts = [words[one + 1 : end] for one, end in pairwise(cuts)]
    literals = [part[0].literal if len(part) == 1 else None for part in parts]
    given = [bounded(part, bounds) for part in parts]
    checks = []
    if function in _SEARCHES and len(parts) > 1 and len(literals[1] or "x" * 17) > _SHORT:
        checks.append((slice(1, 2), _LOOKED_THROUGH))
    if function in _MAKERS and given[_MAKERS[function]] and _times(function, literals) is None:
        checks.append((_MAKERS[function], bounds.text))
    for by, most in checks:
        size, error, at = "octet_length( concat( {} ) )", f"({_ERROR})::text", by.start
        times = size.format(" , ".join(given[by]))
        if function in _COUNTS:
            times, error = f"( {given[at]} )", _ERROR
        exceeds = f"( {size.format(given[0])}::int8 + 4 ) * {times} > {most}"
        given[at] = f"CASE WHEN {exceeds} THEN {error} ELSE ( {given[at]} ) END"
    return " , ".join(given)


def _filtered(words: Sequence[Word], at: int, inside: Sequence[Word], bounds: Bounds, parts: list[str]) -> int:
    """Adds the FILTER of an aggregate, which may have one already; gives its end."""
    start = 1 if inside and inside[0].word in ("distinct", "all") else 0
    end = next((at for at, word in _at_the_top(inside) if word.word == "by"), len(inside))
    passes = _counted(GATHERED, f"pg_column_size( ROW( {bounded(inside[start:end], bounds)} ) )", bounds.text)
    if [word.word for word in words[at : at + 1]] == ["filter"]:
        end = _closing(words, at + 1)
        own = bounded(words[at + 3 : end], bounds)  # FILTER ( WHERE …
        at, passes = end + 1, f"CASE WHEN {own} THEN {passes} ELSE false END"
    parts.append(f"FILTER ( WHERE {passes} )")
    return at


def _counted(setting: str, size: str, most: int) -> str:
    """A condition that is true, and adds to the count each time it is evaluated."""
    so_far = f"current_setting('{setting}')::int8 + {size}"
    counted = f"set_config('{setting}', ( {so_far} )::text, true)::int8"
    return f"CASE WHEN {counted} <= {most} THEN true ELSE {_ERROR} IS NULL END"


def _entry(body: Sequence[Word], bounds: Bounds) -> str:
    """An entry of WITH RECURSIVE, in which each row that is made from another row is counted."""
    unions = [at for at, word in _at_the_top(body) if word.word == "union"]
    if not unions:
        return bounded(body, bounds)
    split = unions[-1] + 1
    split += split < len(body) and body[split].word in ("all", "distinct")
    return f"{bounded(body[:split], bounds)} {_counting(body[split:], bounds)}"


def _counting(query: Sequence[Word], bounds: Bounds) -> str:
    """A query whose rows are counted."""
    size = "pg_column_size( ROW( tagframe_row.* ) )"
    return (
        f"SELECT tagframe_row.* FROM ( {bounded(query, bounds)} ) AS tagframe_row WHERE CASE WHEN {size} > "
        f"{bounds.text} THEN {_ERROR} IS NULL ELSE {_counted(KEPT, f'{size} + {_EACH_ROW}', bounds.kept)} END"
    )


def _at_the_top(words: Sequence[Word], start: int = 0) -> Iterator[tuple[int, Word]]:
    """The words outside of parentheses, and the last one of each pair of these."""
    depth = 0
    for at in range(start, len(words)):
        depth += (words[at].text in ("(", "[")) - (words[at].text in (")", "]"))
        if not depth:
            yield at, words[at]


def _closing(words: Sequence[Word], start: int) -> int:
    """The position of the parenthesis that closes the one at ``start``; the end if there is none."""
    return next((at for at, _ in _at_the_top(words, start)), len(words))
