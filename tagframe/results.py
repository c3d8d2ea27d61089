"""What is known about a result frame: its merge report, its sources, the outcome of each row.

Facts belong to a token in ``DataFrame.attrs``. pandas deep-copies ``attrs`` in every operation, and keeps them in
``concat`` (pandas 3: also in ``merge``) if all inputs agree. The token is its own copy, so a frame taken from another
one (``query``, ``head``, ``sort_values``, a pickle) has the facts *of the frame that it was taken from*. Tokens never
change: a further fact gives a frame a new token, and the frames that it was taken from keep theirs.

Some facts name the rows of the result by position or label. ``attrs`` also survive ``describe()``, ``T`` and
``reset_index(drop=True)``, after which such a fact would name wrong rows; it is given only while the rows are unchanged
(:class:`_Witness`).
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tagframe.errors import FactUnknown, RowsChanged
from tagframe.version import __version__

KEY = "tagframe"
"""Where the token is in ``attrs``."""

_MAX_SAMPLED_ROWS = 32


@dataclass(frozen=True, eq=False)
class _Witness:
    """Enough of a frame to tell whether another one has the same rows in the same order.

    Attributes:
        index: of the frame.
        sample: some of its rows, evenly spaced: ``sort_values`` with ``reset_index`` leaves the index as it was.
    """

    index: pd.Index
    sample: pd.DataFrame

    @classmethod
    def of(cls, frame: pd.DataFrame) -> _Witness:
        sample = frame.iloc[_positions(len(frame))].copy()
        sample.attrs = {}
        return cls(frame.index, sample)

    def objection(self, frame: pd.DataFrame) -> str:
        """Why the rows are not the same, or ""; added or dropped columns do not matter."""
        if len(frame) != len(self.index):
            return f"this one has {len(frame):,} rows instead of {len(self.index):,}"
        if not frame.index.equals(self.index):
            return "this one has another index"
        now = frame.iloc[_positions(len(frame))]
        for label in self.sample.columns.intersection(now.columns):
            then, cells = self.sample[label], now[label]
            if isinstance(then, pd.Series) and not then.equals(cells):
                return f"this one has other cells in column {label!r}, for example because it was sorted"
        if len(self.sample.columns) and not self.sample.columns.isin(now.columns).any():
            return "this one has none of its columns"
        return ""


def _positions(rows: int) -> list[int]:
    positions: list[int] = (
        np.unique(np.linspace(0, rows - 1, min(rows, _MAX_SAMPLED_ROWS)).round()).astype(int).tolist()
    )
    return positions


class _Token(str):
    """A unique name, with facts; a text, so that it can be written wherever ``attrs`` are written."""

    facts: Mapping[str, tuple[_Witness | None, Any] | _Left]
    """Each with the rows that it names, if it names any."""

    def __deepcopy__(self, memo: dict[int, Any]) -> _Token:
        return self

    def __copy__(self) -> _Token:
        return self

    def __reduce__(self) -> tuple[Callable[..., _Token], tuple[Any, ...]]:
        return _unpacked, (str(self), __version__, {name: _packed(fact) for name, fact in self.facts.items()})


_MAX_FACT_BYTES = 32 * 1024
"""Bytes of a fact that goes along in a pickle: one row of a frame has the facts of all of them."""


@dataclass(frozen=True)
class _Left:
    """Stands for a fact that a pickle does not have.

    Attributes:
        why: the fact is not here, and where it is: the end of a sentence.
    """

    why: str


_TOO_LARGE = _Left("were too large for its pickle; only the process that made the frame has them")


def _packed(fact: Any) -> bytes | _Left:
    """A fact as bytes, so that a frame of another version can be read without it."""
    try:
        data = pickle.dumps(fact)
    except Exception:  # a fact that does not pickle is no reason why a frame should not
        return _TOO_LARGE
    return data if len(data) <= _MAX_FACT_BYTES else _TOO_LARGE


def _unpacked(name: str, version: str, packed: Mapping[str, bytes | _Left]) -> _Token:
    """A token from its pickle. The frame is read whichever version wrote it; facts of another version are left out."""
    other = _Left(f"were pickled by tagframe {version}, and this is {__version__}: make the frame again")
    if version != __version__:
        return _token(name, dict.fromkeys(packed, other))
    return _token(name, {key: one if isinstance(one, _Left) else pickle.loads(one) for key, one in packed.items()})


def _token(name: str, facts: Mapping[str, tuple[_Witness | None, Any] | _Left]) -> _Token:
    token = _Token(name)
    token.facts = facts
    return token


def _facts_of(frame: pd.DataFrame) -> Mapping[str, tuple[_Witness | None, Any] | _Left]:
    token = frame.attrs.get(KEY)
    # Attrs that were written to a file come back as plain text.
    return token.facts if isinstance(token, _Token) else {}


def remember(frame: pd.DataFrame, **facts: Any) -> None:
    """Keep facts that stay true for frames taken from ``frame``: how it was made, and the outcomes of its input's rows.

    A fact of the same name is replaced. The frame must be one that tagframe made, because its ``attrs`` change.
    """
    _renew(frame, facts, None)


def remember_rows(frame: pd.DataFrame, **facts: Any) -> None:
    """Keep facts that name rows of ``frame`` by position or label; they are given only while it has these rows."""
    _renew(frame, facts, _Witness.of(frame))


def _renew(frame: pd.DataFrame, facts: Mapping[str, Any], witness: _Witness | None) -> None:
    # A random name: frames of two processes are never taken for parts of one.
    known = {**_facts_of(frame), **{name: (witness, fact) for name, fact in facts.items()}}
    frame.attrs[KEY] = _token(uuid.uuid4().hex, known)


def recall(frame: pd.DataFrame, name: str) -> Any | None:
    """The fact of that name of the frame, or of the one that it was taken from; None if there is none.

    Raises:
        RowsChanged: the fact names rows that the frame no longer has.
    """
    stored = _facts_of(frame).get(name)
    if stored is None or isinstance(stored, _Left):
        return None
    witness, fact = stored
    if witness is not None and (objection := witness.objection(frame)):
        raise RowsChanged(
            f"this frame has no {name} of its own: they belong to the rows of the frame that it was taken from, and "
            f"{objection}; read .tag.{name} of that frame"
        )
    return fact


def require(frame: pd.DataFrame, name: str, maker: str) -> Any:
    """The fact of that name.

    Args:
        frame: a result.
        name: of the fact, as in ``frame.tag.NAME``.
        maker: what makes frames that have it, for the message: "merge()".

    Raises:
        FactUnknown: neither the frame nor one that it was taken from has it.
        RowsChanged: as :func:`recall`.
    """
    fact = recall(frame, name)
    if isinstance(stored := _facts_of(frame).get(name), _Left):
        raise FactUnknown(f"the {name} of this frame {stored.why}")
    if fact is None:
        raise FactUnknown(
            f"this frame has no {name}: it does not come from {maker}, or an operation in between dropped its attrs "
            f"(merge or concat with other frames); read it from the frame that {maker} returned"
        )
    return fact
