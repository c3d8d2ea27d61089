"""Whether two statements give the same rows: execution accuracy (EX).

Spider's test suite (Zhong et al., EMNLP 2020) compares rows with their multiplicity, in any order unless the gold
statement orders them, and with columns in any order. BIRD (Li et al., NeurIPS 2023, section 5) compares sets of rows.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

Rows: TypeAlias = Sequence[tuple[Any, ...]]
Rule: TypeAlias = Literal["spider", "bird"]

_MAX_COLUMNS = 8
"""With more columns, only the given order is tried: there are too many others."""


def is_ordered(sql: str) -> bool:
    """Whether the statement orders its rows.

    >>> is_ordered("SELECT a FROM t ORDER BY a"), is_ordered("SELECT a FROM (SELECT a FROM t ORDER BY a LIMIT 1)")
    (True, False)
    """
    from tagframe.engines.sql_reader import first_tree

    tree = first_tree(sql, "sqlite")
    return tree is not None and tree.args.get("order") is not None


def match(predicted: Rows, gold: Rows, rule: Rule, *, ordered: bool = False) -> bool:
    """Whether the rows equal the gold rows.

    >>> match([(1, "a"), (2, "b")], [("b", 2), ("a", 1)], "spider")
    True
    >>> match([(1,), (1,)], [(1,)], "spider"), match([(1,), (1,)], [(1,)], "bird")
    (False, True)

    Args:
        predicted: rows of the statement in question.
        gold: rows of the gold statement.
        rule: the benchmark's rule.
        ordered: whether the gold statement orders its rows; for Spider.
    """
    ours, theirs = [tuple(map(_cell, row)) for row in predicted], [tuple(map(_cell, row)) for row in gold]
    if rule == "bird":
        return set(ours) == set(theirs)
    if len(ours) != len(theirs) or {len(row) for row in ours} != {len(row) for row in theirs}:
        return False
    width = len(theirs[0]) if theirs else 0
    orders = itertools.permutations(range(width)) if width <= _MAX_COLUMNS else [tuple(range(width))]
    counted = Counter(theirs)
    for order in orders:
        arranged = [tuple(row[position] for position in order) for row in ours]
        if arranged == theirs if ordered else Counter(arranged) == counted:
            return True
    return False


def _cell(value: Any) -> Any:
    """A value in the form that is compared: whole numbers of all types are equal, and nulls equal each other."""
    if isinstance(value, float):
        if value != value:
            return None
        return int(value) if value.is_integer() else round(value, 6)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value
