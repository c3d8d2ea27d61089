"""What became of each row of an operator, and what a failed row does to the result.

One failed row is one failed row: the operator goes on to the end, and only then, by ``on_error``, raises with the
finished frame on the error, keeps the row as ``<NA>`` beside an error column, or drops it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import pandas as pd

from tagframe.errors import InvalidArgument, RowsFailed

OnError = Literal["raise", "keep", "drop"]


def check_on_error(on_error: str) -> None:
    """Refuse an unknown policy before anything is spent.

    Raises:
        InvalidArgument: it is none of the three.
    """
    if on_error not in get_args(OnError):
        raise InvalidArgument(f"on_error is one of {get_args(OnError)}; got {on_error!r}")


def describe(error: Exception | None) -> str | None:
    """An error as one cell of an error column."""
    return None if error is None else f"{type(error).__name__}: {error}"


def refuse_taken(frame: pd.DataFrame, names: Sequence[str], suffix: str) -> None:
    """Refuse to overwrite a column of the caller, before anything is spent.

    Raises:
        InvalidArgument: one of the names that the result is to have is taken.
    """
    taken = [name for name in names if name in frame.columns]
    if taken:
        raise InvalidArgument(
            f"the frame already has a column {taken[0]!r}; give another suffix= than {suffix!r}, or drop the column"
        )


def free_name(frame: pd.DataFrame, name: str) -> str:
    """The name, or one like it that the frame does not have: an unexpected failure must not cost a column."""
    while name in frame.columns:
        name += "_"
    return name


def add_columns(frame: pd.DataFrame, columns: dict[str, Any]) -> pd.DataFrame:
    """A copy of ``frame`` with more columns at its end, row by row: never by index, which may have duplicates."""
    result = frame.copy()
    for name, values in columns.items():
        result[name] = values
    return result


def error_column(errors: Iterable[Exception | None]) -> pd.api.extensions.ExtensionArray:
    """Errors as a text column, ``<NA>`` where a row has none."""
    return pd.array([describe(error) for error in errors], dtype="string")


def raise_failures(operator: str, finished: pd.DataFrame, errors: Sequence[Exception | None], of: str = "rows") -> None:
    """Raise for the failed rows, once everything else is done.

    Args:
        operator: its name, for the message.
        finished: the frame as ``on_error="keep"`` gives it.
        errors: one entry per row (or group) of the input, None where it has an answer.
        of: what the entries are of.

    Raises:
        RowsFailed: where any entry is an error.
    """
    failures = [(place, error) for place, error in enumerate(errors) if error is not None]
    if not failures:
        return
    place, first = failures[0]
    raise RowsFailed(
        f"{operator}: {len(failures):,} of {len(errors):,} {of} have no answer; the first is number {place}: "
        f"{describe(first)}. The finished frame is on this error as .frame. The same call again asks only for what "
        'failed; on_error="keep" keeps such rows with an error column, on_error="drop" drops them.',
        finished,
        [error for _, error in failures],
    )
