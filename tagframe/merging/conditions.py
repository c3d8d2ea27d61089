"""What ``where=`` asks of a joined row, as far as a statement can say it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

ColumnKey = tuple[str, str]
Bound = Literal["<", "<=", ">", ">="]

_BOUNDS: dict[type[ast.cmpop], Bound] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_TURNED: dict[Bound, Bound] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_MOST = 2**63


@dataclass(frozen=True)
class Condition:
    """One test of a column.

    Attributes:
        column: (table id, column).
        value: a value, a list of values, None for what is missing, or a function.
        bound: how the column compares with the value, where it need not be equal to it.
    """

    column: ColumnKey
    value: Any
    bound: Bound | None = None


def conditions_of(
    where: Mapping[str, Any] | str | None, filters: Mapping[ColumnKey, Any], columns: Mapping[str, ColumnKey]
) -> list[Condition] | None:
    """The tests that all have to be true; None for an expression that only pandas can read.

    Args:
        where: as for :func:`tagframe.merging.run_plan`.
        filters: what it is where it is a mapping, by column.
        columns: name in the result → column, which an expression may name.
    """
    if isinstance(where, str):
        return query_conditions(where, columns)
    return [Condition(column, value) for column, value in filters.items()]


def query_conditions(text: str, columns: Mapping[str, ColumnKey]) -> list[Condition] | None:
    """An expression of :meth:`pandas.DataFrame.query` as tests; None where it is more than such.

    Read are comparisons of a column with a number or a text by ``==``, ``<``, ``<=``, ``>``, ``>=`` and ``in [...]``,
    joined by ``and``. ``!=`` and ``not`` are left to pandas: whether they are true of what is missing is a matter of
    the column's dtype there.

    >>> query_conditions("price > 5 and `a b` == 'x'", {"price": ("t", "price"), "a b": ("t", "a b")})
    [Condition(column=('t', 'price'), value=5, bound='>'), Condition(column=('t', 'a b'), value='x', bound=None)]
    >>> query_conditions("price > mean", {"price": ("t", "price")})
    """
    quoted: list[str] = []

    def placed(match: re.Match[str]) -> str:
        quoted.append(match[1])
        return f"tagframe_name_{len(quoted) - 1}_"

    try:
        # A backtick inside a text makes it another expression, which has no such column.
        tree = ast.parse(re.sub(r"`([^`\n]+)`", placed, text.strip()), mode="eval")
        named = {f"tagframe_name_{place}_": columns.get(name) for place, name in enumerate(quoted)}
        return list(_tests(tree.body, {**columns, **named}))
    except (SyntaxError, ValueError, KeyError):
        return None


def _tests(node: ast.expr, columns: Mapping[str, ColumnKey | None]) -> Iterator[Condition]:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        for part in node.values:
            yield from _tests(part, columns)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
        for part in (node.left, node.right):
            yield from _tests(part, columns)
    elif isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        for left, sign, right in zip(sides, node.ops, sides[1:], strict=False):
            yield _test(left, sign, right, columns)
    else:
        raise ValueError(ast.dump(node))


def _test(left: ast.expr, sign: ast.cmpop, right: ast.expr, columns: Mapping[str, ColumnKey | None]) -> Condition:
    bound = _BOUNDS.get(type(sign))
    if isinstance(sign, ast.In):
        if not isinstance(right, ast.List | ast.Tuple):
            raise ValueError("no list of values")
        return Condition(_column(left, columns), [_value(one) for one in right.elts])
    if bound is None and not isinstance(sign, ast.Eq):
        raise ValueError("another comparison")
    if isinstance(right, ast.Name):
        left, right, bound = right, left, bound and _TURNED[bound]
    return Condition(_column(left, columns), _value(right), bound)


def _column(node: ast.expr, columns: Mapping[str, ColumnKey | None]) -> ColumnKey:
    if not isinstance(node, ast.Name) or (found := columns[node.id]) is None:
        raise ValueError("no column")
    return found


def _value(node: ast.expr) -> int | float | str:
    value = ast.literal_eval(node)
    if isinstance(value, bool) or not isinstance(value, int | float | str) or (
        isinstance(value, int | float) and not abs(value) < _MOST
    ):  # fmt: skip
        raise ValueError("neither a number nor a text")
    return value
