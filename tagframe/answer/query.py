"""The query that ``syn`` writes: an SQL statement or the merged tables, then semantic operators over the rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe.errors import AnswerRejected, ColumnNotFound, InvalidArgument, SQLFailed, UnsafeSQL, did_you_mean
from tagframe.operators import OPERATORS, Operator, Step
from tagframe.operators.answers import parse_block

if TYPE_CHECKING:
    from tagframe.lm import LM

MAX_OPERATORS = 5
"""Operators in one query at most: each is a pass over the rows that has to be paid."""


@dataclass(frozen=True)
class OperatorCall:
    """One semantic operator: its name, its instruction, and K where it keeps so many rows."""

    name: str
    instruction: str
    K: int | None = None

    @property
    def operator(self) -> Operator:
        """The operator's record."""
        return OPERATORS[self.name]

    def step(self, frame: pd.DataFrame, lm: LM) -> Step[pd.DataFrame]:
        """The operator over ``frame``, as a step; raises as the operator does."""
        options = {"K": self.K} if self.operator.takes_k else {}
        return self.operator.step(lm, frame, self.instruction, **options)

    def __str__(self) -> str:
        k = f", K={self.K}" if self.K is not None else ""
        return f"{self.name}({self.instruction!r}{k})"


@dataclass(frozen=True)
class Query:
    """What is to be executed.

    Attributes:
        sql: one SELECT over the retrieved tables; None stands for the tables merged along their join plan.
        operators: run over the rows, in order.
    """

    sql: str | None
    operators: tuple[OperatorCall, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return asdict(self)


def parse_query(text: str, *, check: Callable[[str], str], merged_columns: Sequence[str] | None) -> Query:
    """A model's answer as a query that can run.

    Args:
        text: the answer: one JSON object, in a code fence or not.
        check: returns the SQL as it may run, or raises :class:`UnsafeSQL` or :class:`SQLFailed`.
        merged_columns: columns of the merged tables; None where they cannot be merged, so that SQL is needed.

    Raises:
        AnswerRejected: it is no such object, or cannot run; the reason is made to be shown to the model.
    """
    body = parse_block(text)
    try:
        answer = json.loads(body)
    except json.JSONDecodeError as error:
        raise AnswerRejected(f"expected one JSON object, got {text[:120]!r} ({error})") from error
    if not isinstance(answer, dict) or not {"sql", "operators"} >= set(answer):
        raise AnswerRejected(f'expected an object with the keys "sql" and "operators", got {body[:120]!r}')
    sql, calls = answer.get("sql"), answer.get("operators") or []
    if sql is None and merged_columns is None:
        raise AnswerRejected('the tables cannot be merged, so "sql" may not be null')
    if sql is not None:
        if not isinstance(sql, str):
            raise AnswerRejected(f'"sql" is a string or null, got {sql!r}')
        try:
            sql = check(sql)
        except (UnsafeSQL, SQLFailed) as error:
            raise AnswerRejected(str(error)) from error
    if not isinstance(calls, list) or len(calls) > MAX_OPERATORS:
        raise AnswerRejected(f'"operators" is a list of at most {MAX_OPERATORS}, got {calls!r:.200}')
    query = Query(sql, tuple(_operator(call) for call in calls))
    for call in query.operators[:-1]:
        if call.operator.ends:
            raise AnswerRejected(f"{call.name} writes one text from all rows, so it can only be the last operator")
    if query.sql is None and query.operators and merged_columns is not None:
        from tagframe.operators.instruction import Instruction

        try:
            Instruction.resolve(query.operators[0].instruction, pd.DataFrame(columns=list(merged_columns)))
        except (ColumnNotFound, InvalidArgument) as error:
            raise AnswerRejected(str(error)) from error
    return query


def _operator(call: Any) -> OperatorCall:
    if not isinstance(call, dict) or not isinstance(call.get("instruction"), str):
        raise AnswerRejected(f'an operator is {{"name": …, "instruction": …}}, got {call!r:.200}')
    name: Any = call.get("name")
    k = call.get("K")
    known = [operator.name for operator in OPERATORS.values() if operator.in_syn]
    if not isinstance(name, str) or name not in known:
        raise AnswerRejected(f"no operator {name!r} in {did_you_mean(str(name), known)}")
    if k is not None and (isinstance(k, bool) or not isinstance(k, int) or k < 1):
        raise AnswerRejected(f"K is a whole number of at least 1, got {k!r}")
    takes_k = OPERATORS[name].takes_k
    if takes_k and k is None:
        raise AnswerRejected(f"{name} needs K, the number of rows to keep")
    return OperatorCall(name, call["instruction"], k if takes_k else None)
