"""What became of each row of an operator, and what a failed row does to the result.

One failed row is one failed row: the operator goes on to the end, and only then, by ``on_error``, raises with the
finished frame on the error, keeps the row as ``<NA>`` beside an error column, or drops it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import pandas as pd

from tagframe import results
from tagframe.errors import InvalidArgument, RowsFailed

OnError: TypeAlias = Literal["raise", "keep", "drop"]
OutcomeKind: TypeAlias = Literal[
    "yes", "no", "kept", "left out", "answered", "cut", "joined", "lone", "unsure", "null", "not asked", "failed"
]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one row, or of one group of rows.

    Attributes:
        kind: ``"yes"`` or ``"no"`` of ``sem_filter``; ``"joined"`` or ``"lone"`` of the left rows of ``sem_join``;
            ``"kept"`` or ``"left out"`` of ``sem_topk``; ``"answered"`` of ``sem_agg``, or ``"cut"`` where it was
            answered from rows too long for the model, of which only the beginnings were shown, and of ``sem_map`` and
            ``sem_score``; of all: ``"unsure"``, answered with that it cannot be said, ``"null"``, since there was
            nothing to show, ``"not asked"``, since enough was found before, and ``"failed"``.
        error: why it failed, or None.
        note: what else is to know of it, as that it was cut to the model's context, or None.
    """

    kind: OutcomeKind
    error: Exception | None = None
    note: str | None = None


class OutcomeFrame(pd.DataFrame):
    """``frame.tag.outcomes``: a row a row (or group) of the input; its columns are ``outcome``, ``error`` and ``note``.

    In a notebook a picture of them; what is taken from it is a plain frame.

    Attributes:
        remarks: sentences on the operator as a whole, as how many rows were asked twice and agree.
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


def check_on_error(on_error: str) -> None:
    """Refuse an unknown policy before anything is spent.

    Raises:
        InvalidArgument: it is none of the three.
    """
    if on_error not in get_args(OnError):
        raise InvalidArgument(f"on_error is one of {get_args(OnError)}; got {on_error!r}")


def error_name(suffix: str) -> str:
    """The column that says why rows failed, where they are kept."""
    return f"{suffix.strip('_')}_error"


def refuse_taken(frame: pd.DataFrame, names: Sequence[str], suffix: str, on_error: OnError = "raise") -> None:
    """Refuse to overwrite a column of the caller, before anything is spent.

    Raises:
        InvalidArgument: one of the names that the result is to have is taken, or that of errors that are kept.
    """
    taken = [name for name in (*names, *[error_name(suffix)] * (on_error == "keep")) if name in frame.columns]
    if taken:
        raise InvalidArgument(
            f"the frame already has a column {taken[0]!r}; give another suffix= than {suffix!r}, or drop the column"
        )


def free_name(frame: pd.DataFrame, name: str) -> Any:
    """The name, or one like it that the frame does not have: an unexpected failure must not cost a column.

    Where the columns have several levels, it stands on the first of them.
    """
    while name in frame.columns:
        name += "_"
    levels = frame.columns.nlevels
    return name if levels == 1 else (name, *[""] * (levels - 1))


@dataclass(frozen=True)
class Added:
    """A column that an operator adds.

    Attributes:
        name: its label.
        values: one a row (or group) of the input; None is ``<NA>``.
        dtype: a nullable one, by name.
        with_failures: whether it is there only where failed rows are kept.
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
    added: Sequence[Added],
    *,
    on_error: OnError,
    suffix: str,
    index: pd.Index | None = None,
    row_facts: Callable[[Sequence[int]], Mapping[str, Any]] | None = None,
    of: str = "rows",
    remarks: Sequence[str] = (),
    facts: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """The result of an operator, which knows its outcomes; the end of every operator.

    Args:
        operator: its name, for the message.
        base: a row a row (or group) of the input, of which the result is made.
        outcomes: one a row of ``base``.
        order: the positions of the result's rows in ``base``, with failed ones where they would stand.
        added: columns.
        on_error: what failed ones do.
        suffix: of the columns that the operator adds.
        index: of the outcomes; that of ``base`` where None.
        row_facts: what the result is to know of its rows, made from their positions in ``base``.
        of: what the rows of ``base`` are.
        remarks: sentences on the operator as a whole, for its outcomes.
        facts: what else the result is to know of how it was made.

    Raises:
        RowsFailed: with ``on_error="raise"``, where any has failed; the frame on it is that of ``"keep"``.
    """
    failures = [(row, outcome.error) for row, outcome in enumerate(outcomes) if outcome.error is not None]
    keeps_failures = on_error == "keep" or (on_error == "raise" and bool(failures))
    rows = [row for row in order if keeps_failures or outcomes[row].error is None]
    finished = base.iloc[rows].copy()  # columns are added row by row: an index may have duplicates
    for column in added:
        if keeps_failures or not column.with_failures:
            name = free_name(base, column.name)
            finished[name] = pd.array([column.values[row] for row in rows], dtype=column.dtype)
    if keeps_failures:
        finished[free_name(base, error_name(suffix))] = error_column(outcomes[row] for row in rows)
    told = outcome_frame(outcomes, base.index if index is None else index, remarks)
    results.remember(finished, outcomes=told, **(facts or {}))
    if row_facts is not None:
        results.remember_rows(finished, **row_facts(rows))
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
    return finished


def label_of(index: pd.Index, row: int) -> Any:
    """The label of a row, as one writes it: 7, and not np.int64(7)."""
    label = index[row]
    return label.item() if hasattr(label, "item") else label


def error_column(outcomes: Iterable[Outcome]) -> pd.api.extensions.ExtensionArray:
    """Errors as a text column, ``<NA>`` where there is none."""
    described = [None if outcome.error is None else error_text(outcome.error) for outcome in outcomes]
    return pd.array(described, dtype="string")


def error_text(error: Exception) -> str:
    """An error in a cell."""
    return f"{type(error).__name__}: {error}"
