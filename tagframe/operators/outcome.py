"""The outcome of each row of an operator, the effect of failed rows on the result, and the summary of a run.

A failing row does not stop the operator. At the end, depending on ``on_error``, the operator raises an error that
carries the finished frame, keeps the row as ``<NA>`` with an error column, or drops it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import pandas as pd

from tagframe import results
from tagframe.config import too_many
from tagframe.errors import (
    AnswerRejected,
    CutWarning,
    FailedRowsWarning,
    InvalidArgument,
    LMError,
    RowsFailed,
    UnsureWarning,
    counted,
    spared,
    warn,
)
from tagframe.lm import Usage
from tagframe.operators.cells import cut_rows

OnError: TypeAlias = Literal["raise", "keep", "drop"]
OutcomeKind: TypeAlias = Literal[
    "yes", "no", "kept", "left out", "answered", "cut", "joined", "lone", "unsure", "null", "not asked", "failed"
]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one row, or of one group of rows.

    Attributes:
        kind: for ``sem_filter`` ``"yes"`` or ``"no"``; for the left rows of ``sem_join`` ``"joined"`` or ``"lone"``;
            for ``sem_topk`` ``"kept"`` or ``"left out"``; for ``sem_agg``, ``sem_map`` and ``sem_score``
            ``"answered"``, or ``"cut"`` if ``sem_agg`` showed only the beginnings of rows that were too long. For all:
            ``"unsure"`` (the model says that it cannot tell), ``"null"`` (there was nothing to show), ``"not asked"``
            (enough rows were found before), and ``"failed"``.
        error: why it failed, or None.
        note: further information, such as that the row was cut to the model's context, or None.
    """

    kind: OutcomeKind
    error: Exception | None = None
    note: str | None = None


class OutcomeFrame(pd.DataFrame):
    """``frame.tag.outcomes``: one row for each row (or group) of the input, with ``outcome``, ``error`` and ``note``.

    A notebook shows it as a picture; selections from it are plain frames.

    Attributes:
        remarks: sentences about the operator as a whole, such as how many rows were asked twice with the same answer.
    """

    _metadata: ClassVar[list[str]] = ["remarks"]  # which survives a pickle
    remarks: tuple[str, ...] = ()

    @property
    def _constructor(self) -> Callable[..., pd.DataFrame]:
        return pd.DataFrame

    def _repr_html_(self) -> str:
        from tagframe.display import outcomes_html

        return outcomes_html(self, pd.DataFrame(self)._repr_html_(), self.remarks)  # type: ignore[operator]  # not in pandas-stubs


def outcome_frame(outcomes: Sequence[Outcome], index: pd.Index, remarks: Sequence[str] = ()) -> OutcomeFrame:
    """The outcomes of an operator's input."""
    kinds = pd.array([outcome.kind for outcome in outcomes], dtype="string")
    notes = pd.array([outcome.note for outcome in outcomes], dtype="string")
    frame = OutcomeFrame({"outcome": kinds, "error": error_column(outcomes), "note": notes}, index=index)
    frame.remarks = tuple(remarks)
    return frame


def warn_of_cuts(operator: str, outcomes: Sequence[Outcome]) -> None:
    """Warn once if rows were cut."""
    count, characters, longest = cut_rows(outcome.note for outcome in outcomes)
    if count:
        warn(
            f"{operator}: {counted(count, 'row was', 'rows were')} cut to fit a prompt, the longest from {longest:,} "
            f"to {characters:,} characters; .tag.outcomes names them. Shorten such cells first, for example by sem_map",
            CutWarning,
        )


def check_on_error(on_error: str) -> None:
    """Refuse an unknown policy before the model is asked.

    Raises:
        InvalidArgument: it is not one of the three.
    """
    if on_error not in get_args(OnError):
        raise InvalidArgument(f"on_error must be one of {get_args(OnError)}; got {on_error!r}")


def error_name(suffix: str) -> str:
    """The column with the errors of failed rows that are kept."""
    return f"{suffix.strip('_')}_error"


def refuse_taken(frame: pd.DataFrame, names: Sequence[str], suffix: str, on_error: OnError = "raise") -> None:
    """Refuse to overwrite a column of the caller, before the model is asked.

    Raises:
        InvalidArgument: the name of an added column, or of the column of errors, is taken.
    """
    taken = [name for name in (*names, *[error_name(suffix)] * (on_error == "keep")) if name in frame.columns]
    if taken:
        raise InvalidArgument(
            f"the frame already has a column {taken[0]!r}; give a suffix= other than {suffix!r}, or drop the column"
        )


def free_name(frame: pd.DataFrame, name: str) -> Any:
    """The name, or a similar one that the frame does not have: an unexpected failure must not overwrite a column.

    If the columns have several levels, it is on the first one.
    """
    while name in frame.columns:
        name += "_"
    levels = frame.columns.nlevels
    return name if levels == 1 else (name, *[""] * (levels - 1))


@dataclass(frozen=True)
class AddedColumn:
    """A column that an operator adds.

    Attributes:
        name: its label.
        values: one for each row (or group) of the input; None is ``<NA>``.
        dtype: a nullable one, by name.
        with_failures: whether the column is added only if failed rows are kept.
    """

    name: str
    values: Sequence[Any]
    dtype: Any
    with_failures: bool = False


def finish(
    operator: str,
    base: pd.DataFrame,
    outcomes: Sequence[Outcome],
    order: Sequence[int],
    added: Sequence[AddedColumn],
    *,
    on_error: OnError,
    suffix: str,
    index: pd.Index | None = None,
    row_facts: Callable[[Sequence[int]], Mapping[str, Any]] | None = None,
    of: str = "rows",
    remarks: Sequence[str] = (),
    facts: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """The result of an operator with its outcomes; every operator ends here.

    Args:
        operator: its name, for the message.
        base: a frame with one row for each row (or group) of the input, from which the result is made.
        outcomes: one for each row of ``base``.
        order: the positions of the result's rows in ``base``, with failed rows at their places.
        added: the columns to add.
        on_error: how to treat failed rows.
        suffix: of the columns that the operator adds; with ``"_stars"``, the column of errors is ``stars_error``.
        index: of the outcomes; that of ``base`` if None.
        row_facts: makes facts about the result's rows from their positions in ``base``.
        of: a word for the rows of ``base``.
        remarks: sentences about the operator as a whole, for its outcomes.
        facts: further facts about how the result was made.

    Raises:
        RowsFailed: with ``on_error="raise"``, if any row has failed; it carries the frame of ``"keep"``.
        InvalidArgument: there is not one outcome, and one value of each added column, for each row of ``base``.
    """
    for what, given in (("outcomes", outcomes), *((repr(column.name), column.values) for column in added)):
        if len(given) != len(base):
            raise InvalidArgument(f"{operator}: {len(base)} {of} need as many {what}; got {len(given)}")
    failures = [(row, outcome.error) for row, outcome in enumerate(outcomes) if outcome.error is not None]
    keeps_failures = on_error == "keep" or (on_error == "raise" and bool(failures))
    rows = [row for row in order if keeps_failures or outcomes[row].error is None]
    finished = base.iloc[rows].copy()  # columns are added row by row: an index may have duplicates
    for column in added:
        if keeps_failures or not column.with_failures:
            name = free_name(base, column.name)
            values = [column.values[row] for row in rows]
            plain = pd.Series(values, index=finished.index, dtype=object).array
            finished[name] = spared(f"the column {name!r} as {column.dtype}", plain, pd.array, values, column.dtype)
    if keeps_failures:
        finished[free_name(base, error_name(suffix))] = error_column(outcomes[row] for row in rows)
    warn_of_cuts(operator, outcomes)
    _warn_if_all_unsure(operator, [outcomes[row] for row in rows])

    def report() -> None:
        frame = outcome_frame(outcomes, base.index if index is None else index, remarks)
        results.remember(finished, outcomes=frame, **(facts or {}))
        if row_facts is not None:
            results.remember_rows(finished, **row_facts(rows))

    spared(f"the report of {operator}", None, report)
    if failures and on_error == "raise":
        row, first = failures[0]
        label = label_of(base.index if index is None else index, row)
        raise RowsFailed(
            f"{operator}: {len(failures):,} of {len(outcomes):,} {of} have no answer; the first has the index {label!r}"
            f": {error_text(first)}. The finished frame is on this error as .frame. The same call again asks only for "
            'what failed; on_error="keep" keeps such rows with an error column, on_error="drop" drops them.',
            finished,
            [error for _, error in failures],
        )
    if failures:
        warn(f"{operator}: {failed_rows(len(outcomes), [error for _, error in failures], of)}", FailedRowsWarning)
    return finished


def _warn_if_all_unsure(operator: str, outcomes: Sequence[Outcome]) -> None:
    """Warn of a result without any value: it looks like one of blank rows."""
    judged = [outcome for outcome in outcomes if outcome.kind != "null"]
    if len(judged) > 1 and all(outcome.kind == "unsure" for outcome in judged):
        warn(
            f"{operator}: the model could tell nothing of any of {counted(len(judged), 'row')}; they are <NA>, and"
            ' .tag.outcomes marks them as "unsure". Ask for something that the rows show, or try another model.',
            UnsureWarning,
        )


def summarised(result: Any, operator: str, usage: Usage, max_failed: float | None, counts: dict[str, Any]) -> Any:
    """The result of a run; if it is one of an operator, with its summary.

    What may be logged is put into ``counts``: all but the text of an error, which may quote an answer.

    Raises:
        RowsFailed: more rows have failed than may; the result is on it.
    """
    counts.update(calls=usage.sent, tokens_in=usage.tokens_in, tokens_out=usage.tokens_out, dollars=usage.dollars)
    outcomes = results.recall(result, "outcomes") if isinstance(result, pd.DataFrame) else None
    if outcomes is None:
        return result
    errors = outcomes["error"].dropna()
    kinds = Counter(outcomes["outcome"])
    spent = {name: value for name, value in asdict(usage).items() if name not in ("prompts", "sent", "failed")}
    summary = {
        "operator": operator,
        "rows": len(outcomes),
        "failed": 0,
        "unsure": 0,
        **{str(kind).replace(" ", "_"): count for kind, count in kinds.items()},
        "calls": usage.sent,
        **spent,
        "first_error": None if errors.empty else errors.iloc[0],
    }
    results.remember(result, summary=summary)
    reason = None if errors.empty else errors.iloc[0].partition(":")[0]
    counts.update({name: value for name, value in summary.items() if name != "first_error"}, reason=reason)
    failed = summary["failed"]
    if too_many(failed, len(outcomes), max_failed):
        raise RowsFailed(
            f"{operator}: {failed:,} of {len(outcomes):,} rows have no answer, more than max_failed={max_failed:g} "
            f"allows; the first: {errors.iloc[0]}. The finished frame is on this error as .frame",
            result,
            [LMError(error) for error in errors],
        )
    return result


def failed_rows(count: int, errors: Sequence[Exception], of: str) -> str:
    """How many of the rows failed, and why: first those whose answer was not of the form."""
    rejected = [error for error in errors if isinstance(error, AnswerRejected)]
    others = [error for error in errors if not isinstance(error, AnswerRejected)]
    parts = []
    if rejected:
        answers = f"{len(rejected):,} of {counted(count, 'answer')} did not follow the format"
        parts.append(f"{answers}; first: {rejected[0]}")
    if others:
        parts.append(f"{len(others):,} of {count:,} {of} have no answer; first: {error_text(others[0])}")
    return "; ".join(parts)


def label_of(index: pd.Index, row: int) -> Any:
    """The label of a row as a plain value: 7, not np.int64(7)."""
    label = index[row]
    return label.item() if hasattr(label, "item") else label


def error_column(outcomes: Iterable[Outcome]) -> pd.api.extensions.ExtensionArray:
    """Errors as a text column; ``<NA>`` if there is none."""
    described = [None if outcome.error is None else error_text(outcome.error) for outcome in outcomes]
    return pd.array(described, dtype="string")


def error_text(error: Exception) -> str:
    """An error as the text of a cell."""
    return f"{type(error).__name__}: {error}"
