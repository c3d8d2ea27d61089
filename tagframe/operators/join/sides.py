"""The two sides of a join: the columns of each frame that a claim names, and the distinct rows of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from tagframe.errors import InvalidArgument
from tagframe.operators.cells import Instruction, cut_note, encode_rows, label_text, shortened

LEFT, RIGHT = ":left", ":right"
MAX_ROW_BYTES = 4_000
"""The most bytes of a row that is shown with other rows in one prompt."""


@dataclass
class Side:
    """One frame of a join as the model sees it; equal rows are one.

    Attributes:
        name: "left" or "right".
        frame: of the caller.
        names: the names of the fields in the claim.
        lines: the distinct rows, with the field names of the claim.
        alone: the same with the columns' own names, as questions about a single row do not depend on its side.
        of: by row of the frame, the number of its distinct row, or -1 if there is nothing to show.
        notes: by distinct row, how much of it is shown, if not all.
    """

    name: str
    frame: pd.DataFrame
    names: tuple[str, ...]
    lines: list[str] = field(default_factory=list)
    alone: list[str] = field(default_factory=list)
    of: npt.NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    notes: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lines)

    @classmethod
    def make(cls, name: str, frame: pd.DataFrame, positions: Sequence[int], names: Sequence[str], room: int) -> Side:
        """The side of a frame whose columns at ``positions`` have these ``names`` in the claim.

        Args:
            room: the most bytes of a row that are shown.
        """
        side = cls(name, frame, tuple(names))
        known: dict[str, int] = {}
        side.of = np.full(len(frame), -1, dtype=np.intp)
        spoken = encode_rows(frame, positions, names)
        for row, (line, alone) in enumerate(zip(spoken, encode_rows(frame, positions), strict=True)):
            if line is None or alone is None:
                continue
            number = known.get(line)
            if number is None:
                number = known[line] = len(known)
                side.lines.append(shortened(line, room))
                side.alone.append(shortened(alone, room))
                if note := cut_note(line, side.lines[-1]):
                    side.notes[number] = note
            side.of[row] = number
        return side

    def rows(self) -> pd.DataFrame:
        """The frame's rows for each distinct row, by position: columns ``distinct`` and ``row``."""
        rows = np.flatnonzero(self.of >= 0)
        return pd.DataFrame({"distinct": self.of[rows], "row": rows})


def resolve_sides(
    claim: str, left: pd.DataFrame, right: pd.DataFrame, window: int | None
) -> tuple[Instruction, Side, Side]:
    """A claim about two rows, and the two sides that it names.

    A column of only one frame is named as it is; ``{title:left}`` and ``{title:right}`` (as in LOTUS) name a column
    that both frames have.

    Args:
        window: tokens that the model reads and writes in one request, or None.

    Raises:
        InvalidArgument: it names no column of one of the frames.
        ColumnNotFound: no column has a name.
    """
    texts = [[label_text(label) for label in frame.columns] for frame in (left, right)]
    names: list[str] = []
    homes: list[tuple[int, int]] = []
    for number, suffix in ((0, LEFT), (1, RIGHT)):
        for column, text in enumerate(texts[number]):
            own = [f"{text}{suffix}"] + [text] * (text not in texts[1 - number])
            names += own
            homes += [(number, column)] * len(own)
    # A claim that names no column gets all columns, including this last one, which no claim can name.
    unnamed = len(names)
    resolved = Instruction.resolve(claim, pd.DataFrame(columns=pd.Index([*names, "\x00"], dtype=object)), warns=False)
    homes.append((-1, 0))
    sides = []
    # At most half of the window is for the rows of both sides.
    room = MAX_ROW_BYTES if window is None else max(200, min(MAX_ROW_BYTES, window // 4))
    for number, (name, frame) in enumerate((("left", left), ("right", right))):
        columns = [
            (*homes[at], prompt_name) for at, prompt_name in zip(resolved.positions, resolved.names, strict=True)
        ]
        named = [(column, prompt_name) for home, column, prompt_name in columns if home == number]
        if not named or unnamed in resolved.positions:
            raise InvalidArgument(
                f"a join's claim must name a column of each frame; {claim!r} names none of the {name} frame, which has "
                f"{texts[number][:20]}; add {LEFT!r} or {RIGHT!r} to a name that both frames have"
            )
        unique = dict(named)  # "title" and "title:left" are one column
        sides.append(Side.make(name, frame, list(unique), list(unique.values()), room))
    return resolved, sides[0], sides[1]


# --- the frame that a join makes of matching rows --------------------------------------------------------------------


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
