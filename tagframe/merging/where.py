"""The ``where=`` of a merge: read once into tests that engines can run, and a rest that only runs in memory.

:mod:`tagframe.engines.cells` defines the meaning of a test. The tests come first. The functions follow one after
the other, and see the column of the rows that are left.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd

from tagframe.corpus import Corpus
from tagframe.corpus.references import Column
from tagframe.engines.cells import CellTest, Condition, Either, Every, test_of, tests_of
from tagframe.errors import InvalidArgument, TagframeError
from tagframe.joins.plan import JoinPlan
from tagframe.joins.steps import How
from tagframe.keys.column_names import table_entity
from tagframe.merging.advice import Reaction

_SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.In: "in"}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
_MAX_COUNTED_ROWS = 100_000
"""Tables of up to this many rows are counted for a warning."""


class Filter(NamedTuple):
    """What a question implies.

    Attributes:
        conditions: on the joined rows, as for ``where``.
        measured: ids of the tables of which it names a number, which is not to count twice.
        once: whether its answer is the same however often rows repeat: it asks for different things, or the largest.
        denied: conditions on the rows that shall be absent: "never in a horror film".
    """

    conditions: Mapping[str, Any]
    measured: frozenset[str] = frozenset()
    once: bool = False
    denied: Mapping[str, Any] = MappingProxyType({})


Implied = Callable[[JoinPlan, Corpus], Filter]
"""From a plan and its corpus to what the caller's question implies."""


@dataclass(frozen=True)
class Where:
    """The conditions on the joined rows.

    Attributes:
        tests: all of them must be true.
        functions: from a column to booleans, in order.
    """

    tests: tuple[Condition, ...] = ()
    functions: tuple[tuple[Column, Callable[[pd.Series], Any]], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.tests or self.functions)

    def chooses(self, column: str, type: str) -> bool:
        """Whether only rows stay whose cell is of a type of rows, however it is written, or those that a caller's own
        function chooses by it."""
        tests = [one for one in self.tests if isinstance(one, CellTest) and one.column[1] == column and not one.bound]
        named = [{table_entity(str(value)) for value in one.values} for one in tests]
        return {table_entity(type)} in named or any(one[1] == column for one, _ in self.functions)

    @property
    def by_column(self) -> tuple[CellTest, ...]:
        """The tests on a single column that must be true by themselves."""
        return tuple(test for test in self.tests if isinstance(test, CellTest))

    def columns(self) -> set[Column]:
        """The columns needed to test a row in memory."""
        tested = {test.column for condition in self.tests for test in tests_of(condition)}
        return {*tested, *(column for column, _ in self.functions)}


@dataclass(frozen=True)
class MergeRequest:
    """The arguments of a merge; see :func:`tagframe.merging.run_plan`.

    Attributes:
        plan: how the tables are joined.
        corpus: where they are.
        wanted: name in the result → column, in order.
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


def where_of(where: Mapping[str, Any] | str | None, plan: JoinPlan) -> Where:
    """Read ``where=``.

    Args:
        where: as for :func:`tagframe.merging.run_plan`.
        plan: of the merge.

    Raises:
        ColumnNotFound: it names no column of the plan.
        InvalidArgument: a text that is no comparison of columns with values.
    """
    if isinstance(where, str):
        return Where(_read(where, plan))
    tests: list[Condition] = []
    functions = []
    for name, value in (where or {}).items():
        column = plan.find_column(name)
        if callable(value):
            functions.append((column, value))
        else:
            tests.append(test_of(column, value))
    return Where(tuple(tests), tuple(functions))


# --- conditions as text -----------------------------------------------------------------------------------------------


def _read(text: str, plan: JoinPlan) -> tuple[Condition, ...]:
    """A text in the form of :meth:`pandas.DataFrame.query` as tests, which mean the same as in a mapping.

    It compares columns with values by ``==``, ``<``, ``<=``, ``>``, ``>=`` and ``in [...]``, joined by ``and`` and
    ``or``. Names with other signs than letters stand in backticks.
    """
    quoted: list[str] = []

    def placed(match: re.Match[str]) -> str:
        quoted.append(match[1])
        return f"tagframe_name_{len(quoted) - 1}_"

    try:
        tree = ast.parse(re.sub(r"`([^`\n]+)`", placed, text.strip()), mode="eval")
        named = {f"tagframe_name_{position}_": name for position, name in enumerate(quoted)}
        found = _condition(tree.body, lambda name: plan.find_column(named.get(name, name)))
    except (SyntaxError, ValueError, RecursionError) as error:
        if isinstance(error, TagframeError):
            raise
        raise InvalidArgument(
            f"where={text!r:.200} must compare columns with values, as in \"amount > 100 and city == 'Brno'\", by ==, "
            "<, <=, >, >=, in [...], and, or. For other conditions use a function, where={'city': lambda city: city "
            "!= 'Brno'}, or .query() of the result"
        ) from error
    return found.parts if isinstance(found, Every) else (found,)


def _condition(node: ast.expr, column: Callable[[str], Column]) -> Condition:
    if isinstance(node, ast.BoolOp):
        parts = tuple(_condition(part, column) for part in node.values)
        return Every(parts) if isinstance(node.op, ast.And) else Either(parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        parts = _condition(node.left, column), _condition(node.right, column)
        return Every(parts) if isinstance(node.op, ast.BitAnd) else Either(parts)
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        tests = [_test(left, sign, right, column)
                 for left, sign, right in zip(sides, node.ops, sides[1:], strict=False)]  # fmt: skip
        return tests[0] if len(tests) == 1 else Every(tuple(tests))
    raise ValueError(ast.dump(node))


def _test(left: ast.expr, sign: ast.cmpop, right: ast.expr, column: Callable[[str], Column]) -> CellTest:
    spelt = _SIGNS.get(type(sign), "")
    if isinstance(right, ast.Name):
        left, right, spelt = right, left, _TURNED.get(spelt, "")
    if not isinstance(left, ast.Name) or not spelt:
        raise ValueError("another comparison")
    value = ast.literal_eval(right)
    return test_of(column(left.id), value if spelt == "in" or value is None else (spelt, value))
