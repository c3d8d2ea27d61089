"""The frame that a join makes of the rows that go together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from tagframe.errors import InvalidArgument
from tagframe.operators.join.sides import LEFT, RIGHT, Side

JoinHow: TypeAlias = Literal["inner", "left", "right", "outer"]


def check_how(how: str) -> None:
    """Refuse an unknown kind of join before anything is spent.

    Raises:
        InvalidArgument: it is none of the four.
    """
    if how not in get_args(JoinHow):
        raise InvalidArgument(f"how is one of {get_args(JoinHow)}; got {how!r}")


def row_pairs(left: Side, right: Side, pairs: pd.DataFrame) -> pd.DataFrame:
    """Pairs of distinct rows as pairs of places, in the order of the left rows, then of the right ones.

    Args:
        left: a side.
        right: the other one.
        pairs: columns ``left`` and ``right``, numbers of distinct rows, and any others.

    Returns:
        The columns ``left_place`` and ``right_place``, and the others.
    """
    found = pairs.merge(left.places().rename(columns={"row": "left", "place": "left_place"}), on="left")
    found = found.merge(right.places().rename(columns={"row": "right", "place": "right_place"}), on="right")
    return found.drop(columns=["left", "right"]).sort_values(["left_place", "right_place"], ignore_index=True)


def spread(found: pd.DataFrame, limit: int) -> pd.DataFrame:
    """So many of the pairs of places, over as many rows of both sides as may be."""
    pairs = list(zip(found["left_place"], found["right_place"], strict=True))
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
    return found.iloc[sorted(taken)].reset_index(drop=True)


def with_unmatched(found: pd.DataFrame, left: Side, right: Side, how: JoinHow) -> pd.DataFrame:
    """The pairs of places with the rows that have no partner (its place is -1); left ones where they stood."""
    parts = [found]
    for side, column, hows in ((left, "left_place", ("left", "outer")), (right, "right_place", ("right", "outer"))):
        if how in hows:
            lone = np.setdiff1d(np.arange(len(side.frame)), found[column])
            parts.append(
                pd.DataFrame({"left_place": -1, "right_place": -1}, index=range(len(lone))).assign(**{column: lone})
            )
    if len(parts) == 1:
        return found
    whole = pd.concat(parts, ignore_index=True)
    last = whole["left_place"] < 0
    return (
        whole.assign(last=last)
        .sort_values(["last", "left_place", "right_place"], ignore_index=True)
        .drop(columns="last")
    )


def joined_frame(left: pd.DataFrame, right: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """The rows at the places side by side; a column that both frames have is called ``title:left``, ``title:right``."""
    both = set(left.columns) & set(right.columns)
    parts = []
    for frame, places, suffix in ((left, found["left_place"], LEFT), (right, found["right_place"], RIGHT)):
        part = _taken(frame, places.to_numpy(dtype=np.intp))
        part.columns = renamed(part.columns, both, suffix)
        parts.append(part)
    joined = pd.concat(parts, axis=1)
    joined.attrs = {}
    return joined


def _taken(frame: pd.DataFrame, places: npt.NDArray[np.intp]) -> pd.DataFrame:
    plain = frame.reset_index(drop=True)
    if not (places < 0).any():
        return plain.iloc[places].reset_index(drop=True)
    return plain.reindex(pd.Index(places)).reset_index(drop=True)


def renamed(columns: pd.Index, both: Iterable[Hashable], suffix: str) -> pd.Index:
    """The columns with the suffix at the end of those that both frames have."""
    if not both:
        return columns
    if isinstance(columns, pd.MultiIndex):
        labels = [(*label[:-1], f"{label[-1]}{suffix}") if label in both else label for label in columns]
        return pd.MultiIndex.from_tuples(labels, names=columns.names)
    return pd.Index([f"{label}{suffix}" if label in both else label for label in columns], name=columns.name)


def refuse_taken_of_both(frames: Sequence[pd.DataFrame], names: Sequence[str], suffix: str) -> None:
    """Refuse names that one of the frames has, before anything is spent.

    Raises:
        InvalidArgument: one is taken.
    """
    for name in names:
        if any(name in frame.columns for frame in frames):
            raise InvalidArgument(
                f"a frame already has a column {name!r}; give another suffix= than {suffix!r}, or drop the column"
            )
