"""The model's answers about the distinct arguments of an LM function, kept for lookup by a statement."""

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
from tagframe.answer.steps import labelled
from tagframe.display import Displayable
from tagframe.errors import RowsFailed
from tagframe.lm import get_lm
from tagframe.operators import OPERATORS, OnError, RowsPerCall, Step
from tagframe.operators.packing import Audited

GROUP = f"{OWN}group"
_SUFFIX = f"_{OWN}answer"


@dataclass(frozen=True, repr=False)
class StageReport(Displayable):
    """The calls of one LM function of a statement.

    Attributes:
        call: the function, as written.
        values: the number of distinct values that it was called with, or of groups for ``sem_agg``.
        null: how many of them were empty, so that nothing was asked.
        unsure: how many the model could not judge: NULL in the statement.
        failed: how many have no answer: also NULL, if ``on_error`` allows it.
        remarks: sentences on how it was asked, for example on the audit of packed prompts.
    """

    call: str
    values: int
    null: int = 0
    unsure: int = 0
    failed: int = 0
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        outcomes = {"null": self.null, "unsure": self.unsure, "failed": self.failed}
        texts = [f"{count:,} {what}" for what, count in outcomes.items() if count]
        counts = f"{self.call}: {self.values:,} distinct values" + (f" ({', '.join(texts)})" if texts else "")
        return " ".join([f"{counts}." if self.remarks else counts, *self.remarks])


@dataclass(eq=False)
class Values:
    """The answers to one call (and to identical calls), by its arguments.

    Attributes:
        call: the first of them.
        name: of the table of answers in the statement.
        columns: SQL of the values in the block, the key of a group for an aggregate.
        on_error: what happens to a value without an answer.
        rows_per_call: values in one prompt; after an audit, the number that the audit chose.
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
        """The values as one text that distinguishes what SQL distinguishes: 1 from '1', NULL from ''."""
        return self.call.spoken.key(self.columns)

    def ask(self, arguments: pd.DataFrame) -> Step[None]:
        """Ask about these values, once each.

        Args:
            arguments: one row per value (or per row of a group): its key, then the columns of the call by their labels.

        Raises:
            RowsFailed: with ``on_error="raise"``, some have no answer.
        """
        if self.call.function.ranks and self.answers:  # a place holds among all the values that were compared
            return
        new = arguments[~arguments[KEY].isin(list(self.answers))]
        if len(new):
            operator = OPERATORS[self.call.function.name]
            yield from labelled(self._request(new), operator.name, operator.guess)

    def _request(self, new: pd.DataFrame) -> Step[None]:
        operator = OPERATORS[self.call.function.name]
        keys = new[KEY].tolist()
        frame = new.drop(columns=[KEY]).reset_index(drop=True)
        options: dict[str, Any] = {"suffix": _SUFFIX, "on_error": "raise" if self.on_error == "raise" else "keep"}
        if self.call.function.aggregates:
            frame[GROUP] = keys
            options["group_by"] = GROUP
            keys = list(dict.fromkeys(keys))
        elif self.call.function.ranks:
            options["K"] = self.call.places
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
        if self.call.function.ranks:
            last = self.call.places + 1
            self.answers.update(dict.fromkeys(keys, last))
            self.answers.update((keys[row], min(place, last)) for place, row in enumerate(answered.index, 1))
        else:
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
        if self.call.function.ranks:
            self.answers.update(dict.fromkeys(self.failed, self.call.places + 1))
        self.outcomes.update(kinds)

    def share(self, alike: Mapping[str, str]) -> None:
        """Give keys the answers of other keys of the same group."""
        self.shared = {key: other for key, other in alike.items() if key != other and other in self.answers}

    def lookup(self) -> exp.Expr:
        """SQL for the answer of a row of the block, in place of the call."""
        found = self.call.spoken.lookup(self.name, self.key(), self.call.kind)
        return exp.Anonymous(this="max", expressions=[found]) if self.call.function.aggregates else found

    def was_asked(self) -> exp.Expr:
        """SQL for: there is an answer for the row."""
        return self.call.spoken.was_asked(self.name, self.key())

    def has_not_failed(self) -> exp.Expr:
        """SQL for: the answer for the row is not missing."""
        return self.call.spoken.has_not_failed(self.name, self.key())

    def table(self) -> Any:
        """The answers as a table to add to the statement."""
        answers = {**self.answers, **{key: self.answers[other] for key, other in self.shared.items()}}
        return self.call.spoken.table(answers, self.failed, self.call.kind)

    def report(self) -> StageReport:
        """The report of the calls."""
        null, unsure, failed = (self.outcomes[kind] for kind in ("null", "unsure", "failed"))
        remarks = tuple(dict.fromkeys(self.remarks))
        return StageReport(str(self.call), len(self.answers), null, unsure, failed, remarks)


def _plain(cell: Any) -> Any:
    plain = plain_value(cell)
    if hasattr(cell, "isoformat") and plain is not None:
        return plain.removesuffix("T00:00:00")
    return int(plain) if isinstance(plain, bool) else plain
