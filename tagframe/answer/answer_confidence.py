"""The chance that an answer is right, from its tables, its statement, the question's words and its doubts.

A logistic regression. It is fitted by ``tag_bench fit answers`` on gold SQL over half of the databases of Spider, BIRD
and Spider's training set, and on as many wrong variants, in which a table, a join, a literal, an aggregate or the
grouping is swapped, dropped or doubled. So it is the chance where every second statement is wrong. What a model itself
says is lacking is not in that data: it is an upper bound that is chosen.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pandas as pd
from sqlglot import exp

from tagframe.answer.generation import plain_rows
from tagframe.answer.sql_tree import is_aggregate

if TYPE_CHECKING:
    from tagframe.answer.doubts import Doubt
    from tagframe.answer.execution import Execution
    from tagframe.retrieval import RetrievedTables

LACKING = 0.1
"""The highest chance of an answer of which a part is lacking."""
_REASONS = ("table", "database", "value", "empty", "join", "reading", "tie")
_CUES = {
    "count": r"how many|number of|count|how often|times",
    "avg": r"average|mean|avg",
    "sum": r"total|sum|combined|altogether",
    "max": r"max\w*|most|highest|largest|greatest|biggest|latest|newest|oldest|longest|best|top|youngest|fastest"
    r"|more than any",
    "min": r"min\w*|least|lowest|smallest|fewest|earliest|oldest|shortest|youngest|worst|fastest|cheapest"
    r"|less than any",
    "group": r"each|every|per|by|grouped|different|for all|respective|corresponding",
    "not": r"not|no|never|without|n't|except|neither|nor|other than|non\w*|lack\w*|don't|didn't",
    "distinct": r"different|distinct|unique|various|how many|number of",
    "having": r"at least|more than|at most|fewer than|less than|over|above|exceed\w*|both|only|two|three|\d+",
}
_ASKED = {kind: re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE) for kind, words in _CUES.items()}
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
FEATURES = (
    "one", "tables", *_REASONS, "aggregate unasked", "group unasked", "asked not", "extreme unasked", "asked extreme",
    "names unused", "numbers unused", "columns unasked", "items unasked", "joins", "repeats", "distinct unasked",
    "null cells",
)  # fmt: skip
LOWERS = tuple(name for name in FEATURES if name not in ("one", "tables", "joins"))
"""Features that speak against an answer: none may raise the chance, whatever the wrong variants were like."""
WEIGHTS: dict[str, float] = {
    "one": 0.624, "tables": 0.359, "table": -0.049, "database": -0.092, "value": -0.518, "empty": -1.19,
    "join": -5.277, "reading": -0.735, "aggregate unasked": -1.954, "group unasked": -2.417, "asked not": -0.157,
    "extreme unasked": -2.624, "asked extreme": -1.531, "names unused": -2.964, "numbers unused": -3.261,
    "columns unasked": -0.263, "items unasked": -0.369, "joins": 0.358, "repeats": -1.399, "distinct unasked": -0.26,
    "null cells": -0.126,
}  # fmt: skip


def answer_confidence(
    question: str,
    execution: Execution,
    rows: pd.DataFrame,
    found: RetrievedTables | None,
    tables: float | None,
    doubts: Sequence[Doubt],
) -> float | None:
    """The chance that rows answer a question.

    Args:
        question: as asked.
        execution: of the statement.
        rows: its result.
        found: the tables that were retrieved for the question.
        tables: the chance that it reads the right tables.
        doubts: about the rows.

    Returns:
        None if the chance of the tables is not known, and nothing is lacking.
    """
    is_lacking = any(doubt.reason == "lacking" for doubt in doubts)
    if tables is None:
        return LACKING if is_lacking else None
    values = features_of_answer(question, execution, rows, found, tables, doubts)
    chance = 1 / (
        1 + math.exp(-sum(WEIGHTS.get(name, 0.0) * value for name, value in zip(FEATURES, values, strict=True)))
    )
    return min(chance, LACKING) if is_lacking else chance


def features_of_answer(
    question: str,
    execution: Execution,
    rows: pd.DataFrame,
    found: RetrievedTables | None,
    tables: float,
    doubts: Sequence[Doubt],
) -> list[float]:
    """The features of the chance, in the order of :data:`FEATURES`."""
    reasons: list[str] = [doubt.reason for doubt in doubts]
    values = {"one": 1.0, "tables": math.log(max(tables, 0.002) / max(1 - tables, 0.002))}
    values |= {reason: float(min(reasons.count(reason), 2)) for reason in _REASONS}
    values |= dict(_of_statement(question, execution, found))
    shown = plain_rows(rows.head(1000))
    values["repeats"] = float(len(shown) > 1 and len(set(map(str, shown))) < len(shown))
    values["null cells"] = float(rows.size > 0 and bool(rows.isna().any(axis=None)))
    return [values.get(name, 0.0) for name in FEATURES]


def _of_statement(question: str, execution: Execution, found: RetrievedTables | None) -> Iterator[tuple[str, float]]:
    """What a statement has that the question does not ask for, and what it lacks."""
    assert execution.reader is not None
    sql = execution.query.sql
    statement = execution.reader.read(sql)
    if statement is None:
        return
    tree = statement.tree
    asks = {kind for kind, cue in _ASKED.items() if cue.search(question)}
    calls = {node.name.lower() for node in tree.find_all(exp.Anonymous) if is_aggregate(node)}
    yield "aggregate unasked", float(len((calls & {"count", "avg", "sum"}) - _allowed(asks, tree)))
    is_grouped, extremes = tree.find(exp.Group) is not None, {"max", "min"} & asks
    yield "group unasked", float(is_grouped and not asks & {"group", "max", "min", "having"})
    has_not = tree.find(exp.Not, exp.NEQ, exp.Except) is not None or "IS NULL" in sql.upper()
    yield "asked not", float("not" in asks and not has_not)
    directions = {
        "max" if node.args.get("desc") else "min" for node in tree.find_all(exp.Ordered) if tree.find(exp.Limit)
    } | (calls & {"max", "min"})
    yield "extreme unasked", float(bool(directions) and not directions & extremes)
    yield "asked extreme", float(bool(extremes) and not directions & extremes)
    yield "distinct unasked", float(tree.find(exp.Distinct) is not None and "distinct" not in asks)
    words = {_stem(word) for word in _WORD.findall(question)}
    names = {} if found is None else {text.casefold() for hit in found.tables[:5] for _, text in hit.cells}
    lowered = sql.casefold()
    yield "names unused", float(min(sum(name not in lowered for name in names), 2))
    numbers = re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", question)
    yield "numbers unused", float(min(sum(number not in sql for number in numbers), 2))
    ends = {column[:2] for pair in statement.joined_columns() for column in pair}
    plain = [one.column for one in statement.read_columns() if one[:2] not in ends]
    unasked = [column for column in plain if not words & {_stem(word) for word in _WORD.findall(column)}]
    yield "columns unasked", len(unasked) / max(len(plain), 1)
    items = [node.name for item in statement.items for node in item.find_all(exp.Column)]
    away = [name for name in items if not words & {_stem(word) for word in _WORD.findall(name)}]
    yield "items unasked", len(away) / max(len(items), 1)
    yield "joins", float(min(len(list(tree.find_all(exp.Join))), 4))


def _allowed(asks: set[str], tree: exp.Expr) -> set[str]:
    """The aggregates that the words of a question explain; counts also rank groups and select them."""
    allowed = asks & {"count", "avg", "sum"} | ({"count"} if "sum" in asks else set())
    return allowed | ({"count", "sum"} if asks & {"max", "min", "having"} and tree.find(exp.Group) else set())


def _stem(word: str) -> str:
    return word.casefold().rstrip("s")[:5]
