"""The names of a frame's columns in a prompt: meaningful and unique."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import pandas as pd

from tagframe import results
from tagframe.errors import InvalidArgument


def label_text(label: Hashable) -> str:
    """A column's label as an instruction names it; several levels are joined by dots.

    >>> label_text(2020), label_text(("price", "usd"))
    ('2020', 'price.usd')
    """
    return ".".join(str(part) for part in label if part != "") if isinstance(label, tuple) else str(label)


def prompt_names(frame: pd.DataFrame, positions: Sequence[int]) -> list[str]:
    """The unique names in a prompt of the columns at ``positions``.

    A merge names a column ``frame_2.name`` if its frame had no name. If the frame knows the meaning (``team.name``) and
    no other column has that name, the meaning is used.
    Columns with equal labels as text (``"n"`` twice, ``1`` and ``"1"``) get a number: ``n``, ``n_2``.

    Raises:
        InvalidArgument: as :func:`refuse_private`.
    """
    refuse_private(frame, positions)
    names = [label_text(label) for label in frame.columns]
    meanings: Mapping[str, str] | None = results.recall(frame, "meanings")
    if meanings:
        better = [meanings.get(name, name) for name in names]
        names = [new if better.count(new) == 1 else old for old, new in zip(names, better, strict=True)]
    return _numbered_apart([names[position] for position in positions])


def not_private(frame: pd.DataFrame) -> list[int]:
    """Positions of the columns that prompts may have: all except those of ``corpus.private``."""
    private: frozenset[str] = results.recall(frame, "private") or frozenset()
    return [position for position, label in enumerate(frame.columns) if label not in private]


def refuse_private(frame: pd.DataFrame, positions: Sequence[int]) -> None:
    """Refuse to put cells of private columns into a prompt.

    Raises:
        InvalidArgument: one of the columns is private.
    """
    private = sorted({*positions} - {*not_private(frame)})
    if private:
        name = label_text(frame.columns[private[0]])
        raise InvalidArgument(
            f"column {name!r} is private, so its cells must not be in a prompt; name other columns, or undo it: "
            f"corpus.private({name!r}, undo=True), with the table's name before a dot"
        )


def _numbered_apart(names: Sequence[str]) -> list[str]:
    if len(set(names)) == len(names):
        return list(names)
    apart: list[str] = []
    taken = set(names)
    for at, name in enumerate(names):
        other, number = name, 1
        while name in names[:at] and other in taken:
            number += 1
            other = f"{name}_{number}"
        taken.add(other)
        apart.append(other)
    return apart
