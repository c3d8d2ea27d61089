"""The frame that a join makes of matching rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from tagframe.operators.join.sides import LEFT, RIGHT, Side

JoinHow: TypeAlias = Literal["inner", "left", "right", "outer"]


def row_pairs(left: Side, right: Side, pairs: pd.DataFrame) -> pd.DataFrame:
    """Pairs of distinct rows as pairs of the frames' rows, in the order of the left rows, then of the right ones.

    Args:
        left: a side.
        right: the other one.
        pairs: columns ``left`` and ``right`` with numbers of distinct rows, and any other columns.

    Returns:
        The columns ``left_row`` and ``right_row``, and the others.
    """
    matches = pairs.merge(left.rows().rename(columns={"distinct": "left", "row": "left_row"}), on="left")
    matches = matches.merge(right.rows().rename(columns={"distinct": "right", "row": "right_row"}), on="right")
    return matches.drop(columns=["left", "right"]).sort_values(["left_row", "right_row"], ignore_index=True)


def spread(matches: pd.DataFrame, limit: int) -> pd.DataFrame:
    """A number of the pairs, spread over as many rows of both sides as possible."""
    pairs = list(zip(matches["left_row"], matches["right_row"], strict=True))
    used: Counter[tuple[str, int]] = Counter()
    taken: set[int] = set()
    most = 1
    while len(taken) < min(limit, len(pairs)):
        for number, (left, right) in enumerate(pairs):
            ends = ("left", left), ("right", right)
            if number not in taken and len(taken) < limit and all(used[end] < most for end in ends):
                taken.add(number)
                used.update(ends)
        most += 1
    return matches.iloc[sorted(taken)].reset_index(drop=True)


def with_unmatched(matches: pd.DataFrame, left: Side, right: Side, how: JoinHow) -> pd.DataFrame:
    """The pairs with rows that have no partner (-1 there); left rows stay at their places."""
    parts = [matches]
    for side, column, hows in ((left, "left_row", ("left", "outer")), (right, "right_row", ("right", "outer"))):
        if how in hows:
            lone = np.setdiff1d(np.arange(len(side.frame)), matches[column])
            parts.append(
                pd.DataFrame({"left_row": -1, "right_row": -1}, index=range(len(lone))).assign(**{column: lone})
            )
    if len(parts) == 1:
        return matches
    whole = pd.concat(parts, ignore_index=True)
    last = whole["left_row"] < 0
    return (
        whole.assign(last=last).sort_values(["last", "left_row", "right_row"], ignore_index=True).drop(columns="last")
    )


def joined_frame(left: pd.DataFrame, right: pd.DataFrame, matches: pd.DataFrame) -> pd.DataFrame:
    """The rows of the pairs side by side; columns of both frames are called ``title:left`` and ``title:right``."""
    both = set(left.columns) & set(right.columns)
    parts = []
    for frame, rows, suffix in ((left, matches["left_row"], LEFT), (right, matches["right_row"], RIGHT)):
        part = frame.reset_index(drop=True)
        part = part.iloc[rows] if (rows >= 0).all() else part.reindex(pd.Index(rows))
        part = part.reset_index(drop=True)
        part.columns = renamed(part.columns, both, suffix)
        parts.append(part)
    joined = pd.concat(parts, axis=1)
    joined.attrs = {}
    return joined


def renamed(columns: pd.Index, both: Iterable[Hashable], suffix: str) -> pd.Index:
    """The columns; the names that both frames have get the suffix."""
    if not both:
        return columns
    if isinstance(columns, pd.MultiIndex):
        labels = [(*label[:-1], f"{label[-1]}{suffix}") if label in both else label for label in columns]
        return pd.MultiIndex.from_tuples(labels, names=columns.names)
    return pd.Index([f"{label}{suffix}" if label in both else label for label in columns], name=columns.name)
