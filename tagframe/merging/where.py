"""The ``where=`` of a merge: read once into tests that engines can run, and a rest that only runs in memory.

:mod:`tagframe.engines.cells` defines the meaning of a test. The tests come first. The functions follow one after
the other, and see the column of the rows that are left.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from tagframe.corpus import Corpus
from tagframe.corpus.references import Column
from tagframe.engines.cells import Bound, CellTest, Condition, Either, Every, test_of, tests_of
from tagframe.errors import InvalidArgument
from tagframe.joins.plan import JoinPlan
from tagframe.joins.steps import How
from tagframe.keys.column_names import table_entity
from tagframe.merging.advice import Reaction

_BOUNDS: dict[type[ast.cmpop], Bound] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_TURNED: dict[Bound, Bound] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_MAX_NUMBER = 2**63
_MAX_COUNTED_ROWS = 100_000
"""Tables of up to this many rows are counted for a warning."""


class Filter(NamedTuple):
    """What a question implies.

    Attributes:
        conditions: on the joined rows, as for ``where``.
        measured: ids of the tables of which it names a number, which is not to count twice.
        is_of_different: whether it asks for different things, which count once however often their rows repeat.
    """

    conditions: Mapping[str, Any]
    measured: frozenset[str] = frozenset()
    is_of_different: bool = False


Implied = Callable[[JoinPlan, Corpus], Filter]
"""From a plan and its corpus to what the caller's question implies."""


@dataclass(frozen=True)
class Where:
    """The conditions on the joined rows.

    Attributes:
        tests: all of them must be true.
        functions: from a column to booleans, in order.
        query: the given expression, for :meth:`pandas.DataFrame.query`.
        is_read: whether ``tests`` cover the whole expression.
    """

    tests: tuple[Condition, ...] = ()
    functions: tuple[tuple[Column, Callable[[pd.Series], Any]], ...] = ()
    query: str = ""
    is_read: bool = True

    def __bool__(self) -> bool:
        return bool(self.tests or self.functions or self.query)

    def chooses(self, column: str, type: str) -> bool:
        """Whether only rows stay whose cell is of a type of rows, however it is written, or those that a caller's own
        function or expression chooses by it."""
        tests = [one for one in self.tests if isinstance(one, CellTest) and one.column[1] == column and not one.bound]
        named = [{table_entity(str(value)) for value in one.values} for one in tests]
        of_query = not self.is_read and column in self.query
        return {table_entity(type)} in named or of_query or any(one[1] == column for one, _ in self.functions)

    @property
    def is_written(self) -> bool:
        """Whether the tests, which SQL can express, are the only conditions."""
        return self.is_read and not self.functions

    @property
    def by_column(self) -> tuple[CellTest, ...]:
        """The tests on a single column that must be true by themselves."""
        return tuple(test for test in self.tests if isinstance(test, CellTest) and not test.is_plain)

    def columns(self, everything: Iterable[Column]) -> set[Column]:
        """The columns needed to test a row in memory; ``everything`` are all that an expression may name."""
        tested = {test.column for condition in self.tests for test in tests_of(condition)}
        return {*tested, *(column for column, _ in self.functions), *(everything if self.query else ())}


@dataclass(frozen=True)
class MergeRequest:
    """The arguments of a merge; see :func:`tagframe.merging.run_plan`.

    Attributes:
        plan: how the tables are joined.
        corpus: where they are.
        wanted: name in the result → column, in order.
        everything: the same for all columns.
        where: the conditions on the joined rows.
        how: the kind of every join.
        limit: the largest number of rows.
        on_fanout, on_loss: what to do if rows of the start table are repeated or lost.
        implied: gives the conditions that the question implies, as in :func:`~tagframe.merging.run_plan`.
        absent: tables in which the wanted rows have no partner.
    """

    plan: JoinPlan
    corpus: Corpus
    wanted: Mapping[str, Column]
    everything: Mapping[str, Column]
    where: Where
    how: How
    limit: int | None
    on_fanout: Reaction
    on_loss: Reaction
    implied: Implied | None = None
    absent: frozenset[str] = frozenset()

    @property
    def says_loss(self) -> bool:
        """Whether to warn of lost rows."""
        return self.on_loss == "warn" and self.how == "inner" and bool(self.plan.steps)

    @property
    def is_whole_inner(self) -> bool:
        """Whether the result has all rows that have a partner, and no other."""
        return self.how == "inner" and self.limit is None and not self.where and not self.absent

    @property
    def is_as_of(self) -> bool:
        """Whether a step looks for the nearest row of a moment, or for an interval around it."""
        return any(step.key.signs for step in self.plan.steps)

    @property
    def counts_loss(self) -> bool:
        """Whether to count lost rows for the warning if the result does not show them: for a whole anchor, or for
        small tables."""
        return self.says_loss and (self.are_small or (self.plan.is_anchored and self.limit is None))

    @property
    def are_small(self) -> bool:
        """Whether counting the rows of all tables is little work."""
        rows = [self.corpus.profile(table).rows for table in self.plan.tables]
        return all(known is not None and known <= _MAX_COUNTED_ROWS for known in rows)


class NotPushable(Exception):
    """SQL might give another result than pandas, or would not be faster; the message says why."""


def where_of(where: Mapping[str, Any] | str | None, plan: JoinPlan, columns: Mapping[str, Column]) -> Where:
    """Read ``where=``.

    Args:
        where: as for :func:`tagframe.merging.run_plan`.
        plan: of the merge.
        columns: name in the result → column, for the names in an expression.

    Raises:
        ColumnNotFound: it names no column of the plan.
    """
    if isinstance(where, str):
        read = _read(where, columns)
        return Where(() if read is None else read, query=where, is_read=read is not None)
    tests: list[Condition] = []
    functions = []
    for name, value in (where or {}).items():
        column = plan.find_column(name)
        if callable(value):
            functions.append((column, value))
        else:
            tests.append(test_of(column, value))
    return Where(tuple(tests), tuple(functions))


def refuse_absent(text: str, columns: Mapping[str, Column], absent: Container[str]) -> None:
    """Refuse an expression that names columns of tables in which the wanted rows have no partner.

    Args:
        text: the expression.
        columns: name → column, for all tables of the plan.
        absent: ids of these tables.

    Raises:
        InvalidArgument: there is such a name; the message has the conditions as a mapping, which may name it.
    """
    bare = re.sub(r"""("[^"\n]*"|'[^'\n]*')""", "", text)
    names = [quoted or plain for quoted, plain in re.findall(r"`([^`\n]+)`|([^\W\d]\w*)", bare)]
    gone = [name for name in dict.fromkeys(names) if name in columns and columns[name][0] in absent]
    if not gone:
        return
    conditions = _read(text, columns) or ()
    tests = [test for test in conditions if isinstance(test, CellTest)]
    called = {column: name for name, column in columns.items()}
    values = [test.values[0] if len(test.values) == 1 else [*test.values] for test in tests]
    pairs = zip(tests, values, strict=True)
    given = {called[test.column]: (test.bound, value) if test.bound else value for test, value in pairs}
    is_whole = bool(given) and len(given) == len(conditions)  # neither "or" nor two conditions on one column
    example = repr(given) if is_whole else f"{{{gone[0]!r}: …}}"
    tables = " and ".join(dict.fromkeys(columns[name][0] for name in gone))
    raise InvalidArgument(
        f"where={text!r} names {', '.join(gone)} of {tables}, where the wanted rows have no partner. A mapping says "
        f"which rows there count: where={example}"
    )


# --- expressions ------------------------------------------------------------------------------------------------------


def _read(text: str, columns: Mapping[str, Column]) -> tuple[Condition, ...] | None:
    """An expression of :meth:`pandas.DataFrame.query` as tests; None if tests cannot express it.

    Supported are comparisons of a column with a number or a text by ``==``, ``<``, ``<=``, ``>``, ``>=`` and
    ``in [...]``, joined by ``and`` and ``or``. ``!=`` and ``not`` are left to pandas: for missing values their result
    depends on the column's dtype.

    >>> _read("price > 5 and `a b` == 'x'", {"price": ("t", "price"), "a b": ("t", "a b")})[0]
    CellTest(column=('t', 'price'), values=(5,), null=False, bound='>', is_plain=True)
    >>> _read("price > mean", {"price": ("t", "price")})
    """
    quoted: list[str] = []

    def placed(match: re.Match[str]) -> str:
        quoted.append(match[1])
        return f"tagframe_name_{len(quoted) - 1}_"

    try:
        # A backtick inside a text makes it another expression, which has no such column.
        tree = ast.parse(re.sub(r"`([^`\n]+)`", placed, text.strip()), mode="eval")
        named = {f"tagframe_name_{position}_": columns.get(name) for position, name in enumerate(quoted)}
        found = _condition(tree.body, {**columns, **named})
    except (SyntaxError, ValueError, KeyError, RecursionError):
        return None
    return found.parts if isinstance(found, Every) else (found,)


def _condition(node: ast.expr, columns: Mapping[str, Column | None]) -> Condition:
    if isinstance(node, ast.BoolOp):
        parts = tuple(_condition(part, columns) for part in node.values)
        return Every(parts) if isinstance(node.op, ast.And) else Either(parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        parts = _condition(node.left, columns), _condition(node.right, columns)
        return Every(parts) if isinstance(node.op, ast.BitAnd) else Either(parts)
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        tests = [_test(left, sign, right, columns)
                 for left, sign, right in zip(sides, node.ops, sides[1:], strict=False)]  # fmt: skip
        return tests[0] if len(tests) == 1 else Every(tuple(tests))
    raise ValueError(ast.dump(node))


def _test(left: ast.expr, sign: ast.cmpop, right: ast.expr, columns: Mapping[str, Column | None]) -> CellTest:
    bound = _BOUNDS.get(type(sign))
    if isinstance(sign, ast.In):
        if not isinstance(right, ast.List | ast.Tuple):
            raise ValueError("no list of values")
        return CellTest(_column(left, columns), tuple(map(_value, right.elts)), is_plain=True)
    if bound is None and not isinstance(sign, ast.Eq):
        raise ValueError("another comparison")
    if isinstance(right, ast.Name):
        left, right, bound = right, left, bound and _TURNED[bound]
    return CellTest(_column(left, columns), (_value(right),), bound=bound, is_plain=True)


def _column(node: ast.expr, columns: Mapping[str, Column | None]) -> Column:
    if not isinstance(node, ast.Name) or (found := columns[node.id]) is None:
        raise ValueError("no column")
    return found


def _value(node: ast.expr) -> int | float | str:
    value = ast.literal_eval(node)
    if isinstance(value, bool) or not isinstance(value, int | float | str) or (
        isinstance(value, int | float) and not abs(value) < _MAX_NUMBER
    ):  # fmt: skip
        raise ValueError("neither a number nor a text")
    return value
