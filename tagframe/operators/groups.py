"""Groups of rows, for the operators that take ``group_by``."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pandas as pd

from tagframe.errors import ColumnNotFound, did_you_mean
from tagframe.operators.cells import encode_rows


def group_keys(group_by: Hashable | Sequence[Hashable] | None) -> list[Hashable]:
    """``group_by`` as a list of column labels; it may also be a single label."""
    if group_by is None:
        return []
    return list(group_by) if isinstance(group_by, list | tuple) else [group_by]


def group_rows(frame: pd.DataFrame, keys: Sequence[Hashable]) -> list[list[int]]:
    """Row positions of each group, groups in order of first appearance (a null is a value like any other).

    Without keys all rows are one group, even if there are no rows.

    Raises:
        ColumnNotFound: a key is not a column.
    """
    if not keys:
        return [list(range(len(frame)))]
    for key in keys:
        if key not in frame.columns:
            raise ColumnNotFound(f"no column {key!r} in {did_you_mean(str(key), frame.columns)}")
    try:
        numbers = [*map(int, frame.groupby(list(keys), sort=False, dropna=False).ngroup())]
    except (TypeError, ValueError, OverflowError, NotImplementedError):
        # Lists, dicts and some types of Arrow cannot be hashed, so their text is used.
        known: dict[str | None, int] = {}
        lines = encode_rows(frame[list(keys)], range(len(keys)), blanks=True)
        numbers = [known.setdefault(line, len(known)) for line in lines]
    groups: dict[int, list[int]] = {}
    for row, number in enumerate(numbers):
        groups.setdefault(number, []).append(row)
    return list(groups.values())
