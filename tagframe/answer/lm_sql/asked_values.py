"""What a model says of the distinct values that a function is called with, kept to be looked up by a statement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from sqlglot import exp

from tagframe import results
from tagframe.answer.generation import plain_value
from tagframe.answer.lm_sql.calls import Call
from tagframe.answer.lm_sql.dialects import KEY, OWN
from tagframe.answer.metering import labelled
from tagframe.display import Shown
from tagframe.errors import RowsFailed
from tagframe.lm import get_lm
from tagframe.operators import OPERATORS, OnError, RowsPerCall, Step
from tagframe.operators.packing import Audited

GROUP = f"{OWN}group"
_SUFFIX = f"_{OWN}answer"


@dataclass(frozen=True, repr=False)
class StageReport(Shown):
    """What one LM function of a statement asked.

    Attributes:
        call: the function, as written.
        values: distinct values that it was called with, or groups of ``sem_agg``.
        null: of which nothing was there to ask about.
        unsure: of which the model could not tell: NULL in the statement.
        failed: without an answer: NULL too, where ``on_error`` lets them be.
        remarks: sentences on how it was asked, as of values that were asked several in a prompt, and audited.
    """

    call: str
    values: int
    null: int = 0
    unsure: int = 0
    failed: int = 0
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        outcomes = {"null": self.null, "unsure": self.unsure, "failed": self.failed}
        said = [f"{count:,} {what}" for what, count in outcomes.items() if count]
        counts = f"{self.call}: {self.values:,} distinct values" + (f" ({', '.join(said)})" if said else "")
        return " ".join([f"{counts}." if self.remarks else counts, *self.remarks])


@dataclass(eq=False)
class Values:
    """The answers to one call (and to those that are the same), by the values that it was called with.

    Attributes:
        call: the first of them.
        name: of the table of answers in the statement.
        columns: SQL of the values in the block, the key of a group for an aggregate.
        on_error: what a value without an answer does.
        rows_per_call: values in one prompt; once audited, of the size that the audit found.
    """

    call: Call
    name: str
    columns: Sequence[exp.Expr]
    on_error: OnError = "raise"
    rows_per_call: RowsPerCall = "auto"
    answers: dict[str, Any] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    outcomes: Counter[str] = field(default_factory=Counter)
    remarks: list[str] = field(default_factory=list)
    shared: dict[str, str] = field(default_factory=dict)

    def key(self) -> exp.Expr:
        """The values as one text, which tells apart what SQL tells apart: 1 from '1', NULL from ''."""
        return self.call.spoken.key(self.columns)

    def ask(self, arguments: pd.DataFrame) -> Step[None]:
        """Ask of these values, once.

        Args:
            arguments: a row a value (or a row of a group): its key, then the columns of the call by their labels.

        Raises:
            RowsFailed: with ``on_error="raise"``, some have no answer.
        """
        new = arguments[~arguments[KEY].isin(list(self.answers))]
        if len(new):
            operator = OPERATORS[self.call.function.name]
            yield from labelled(self._asked(new), operator.name, operator.guess)

    def _asked(self, new: pd.DataFrame) -> Step[None]:
        operator = OPERATORS[self.call.function.name]
        keys = new[KEY].tolist()
        frame = new.drop(columns=[KEY]).reset_index(drop=True)
        options: dict[str, Any] = {"suffix": _SUFFIX, "on_error": "raise" if self.on_error == "raise" else "keep"}
        if self.call.function.aggregates:
            frame[GROUP] = keys
            options["group_by"] = GROUP
            keys = list(dict.fromkeys(keys))
        else:
            options["rows_per_call"] = self.rows_per_call
        if self.call.function.name == "sem_filter":
            options["return_all"] = True
        elif self.call.dtype is not None:
            options["dtype"] = self.call.dtype
        known = set(frame.columns)
        try:
            answered = yield from operator.step(get_lm(operator.name), frame, self.call.instruction, **options)
        except RowsFailed as error:
            self._take(keys, error.frame, known)
            raise
        self._take(keys, answered, known)

    def _take(self, keys: Sequence[str], answered: pd.DataFrame, known: set[Any]) -> None:
        (column, *_) = [name for name in answered.columns if name not in known]
        self.answers.update(zip(keys, map(_plain, answered[column]), strict=True))
        outcomes = results.recall(answered, "outcomes")
        if outcomes is None:
            return
        self.remarks += outcomes.remarks
        size = results.recall(answered, "rows_per_call")
        if isinstance(size, Audited):  # one audit is enough
            self.rows_per_call = size
        kinds = outcomes["outcome"].tolist()
        self.failed.update(key for key, kind in zip(keys, kinds, strict=True) if kind == "failed")
        self.outcomes.update(kinds)

    def share(self, alike: Mapping[str, str]) -> None:
        """Have keys the answers of others, which are of the same group."""
        self.shared = {key: other for key, other in alike.items() if key != other and other in self.answers}

    def lookup(self) -> exp.Expr:
        """The answer for a row of the block, in place of the call."""
        found = self.call.spoken.lookup(self.name, self.key(), self.call.kind)
        return exp.Anonymous(this="max", expressions=[found]) if self.call.function.aggregates else found

    def was_asked(self) -> exp.Expr:
        """That there is an answer for a row."""
        return self.call.spoken.was_asked(self.name, self.key())

    def has_not_failed(self) -> exp.Expr:
        """That the answer for a row is not missing."""
        return self.call.spoken.has_not_failed(self.name, self.key())

    def table(self) -> Any:
        """The answers, to be brought along by the statement."""
        answers = {**self.answers, **{key: self.answers[other] for key, other in self.shared.items()}}
        return self.call.spoken.table(answers, self.failed, self.call.kind)

    def report(self) -> StageReport:
        """What was asked."""
        null, unsure, failed = (self.outcomes[kind] for kind in ("null", "unsure", "failed"))
        remarks = tuple(dict.fromkeys(self.remarks))
        return StageReport(str(self.call), len(self.answers), null, unsure, failed, remarks)


def _plain(cell: Any) -> Any:
    plain = plain_value(cell)
    if hasattr(cell, "isoformat") and plain is not None:
        return plain.removesuffix("T00:00:00")
    return int(plain) if isinstance(plain, bool) else plain
