"""Frames that a user passes, as a corpus: one by one, in a list, or by name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from tagframe import results
from tagframe.corpus import ColumnProfile, Corpus, TableProfile
from tagframe.corpus.opening import FRAMES_DATABASE, open_frames
from tagframe.corpus.profile import TypeFamily
from tagframe.corpus.profiler import FAMILY_SHARE, profile_table
from tagframe.engines.base import Chunk, TableShape, Values
from tagframe.errors import InvalidArgument
from tagframe.joins.plan import JoinPlan
from tagframe.keys.key_columns import is_unnamed, unnamed
from tagframe.keys.key_pair import KeyPair

Frames = pd.DataFrame | Mapping[str, pd.DataFrame] | Sequence[pd.DataFrame]
"""One of several frames, or all of them: by name, or in a sequence."""

_LOOKED_AT = 1_000
"""The first values of a column that decide whether it holds fractions."""
_LONG = 100_000
"""A column of integers with at least this many rows is first checked for gaps."""
_FAMILIES: Mapping[str, TypeFamily] = {"i": "integer", "u": "integer", "f": "real", "b": "boolean", "M": "date"}


@dataclass(frozen=True)
class GivenFrames:
    """Frames as a corpus; only names and dtypes are known at first.

    Attributes:
        frames: by table id, in the given order.
        are_named: whether their names have a meaning: the user gave them, or they are the tables' own.
    """

    frames: Mapping[str, pd.DataFrame]
    are_named: bool

    @classmethod
    def of(cls, given: Sequence[Frames]) -> GivenFrames:
        """The frames that a call was given: one by one, or as one list or mapping.

        Raises:
            InvalidArgument: no frames, or something that cannot be a table.
        """
        frames = named_frames(given)
        by_name = len(given) == 1 and isinstance(given[0], Mapping)
        return cls(frames, by_name or not any(is_unnamed(id.partition(".")[2]) for id in frames))

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the tables, in the given order."""
        return tuple(self.frames)

    @cached_property
    def corpus(self) -> Corpus:
        """The frames as a corpus, without profiles of their values."""
        return open_frames(self.frames, _bare_profile)

    def profiled(self, keys: Sequence[KeyPair] | None = None) -> Corpus:
        """The frames as a corpus, with profiles of their values.

        Args:
            keys: only the columns of these keys are profiled; None for all columns that can be keys.
        """
        wanted = None
        if keys is not None:
            sides = [side for key in keys for side in (key, key.reversed())]
            wanted = {id: {name for side in sides if side.left_table == id for name in side.left_columns}
                      for id in self.frames}  # fmt: skip

        def profile(database: str, shape: TableShape, chunks: Iterable[Chunk], *, name: str) -> TableProfile:
            bare = _bare_profile(database, shape, chunks, name=name)
            counted = _counted(self.frames[bare.id])
            return _with_values(bare, shape, chunks, counted, None if wanted is None else wanted[bare.id])

        return open_frames(self.frames, profile)


def named_frames(given: Sequence[Frames]) -> dict[str, pd.DataFrame]:
    """The frames that a call was given, by id.

    A frame without a name gets the name of the table that it was read from (:meth:`Corpus.read`), else ``frame_1``,
    ``frame_2``, … by its position. Its database is that of the named frames, if they share one, else ``frames``.

    Raises:
        InvalidArgument: there are none, or two with the same name.
    """
    if len(given) == 1 and isinstance(given[0], Mapping):
        frames = dict(given[0])
    else:
        listed: Iterable[Any] = given
        if len(given) == 1 and not isinstance(given[0], pd.DataFrame):
            listed = given[0] if isinstance(given[0], Iterable) else given
        frames = _named_by_position(list(listed))
    if not frames:
        raise InvalidArgument("no frames given: pass them one by one, as a list, or by name as in {'loan': frame}")
    found: dict[str, pd.DataFrame] = {}
    for name, frame in frames.items():
        id = name if not isinstance(name, str) or "." in name else f"{FRAMES_DATABASE}.{name}"
        if id in found:
            raise InvalidArgument(f"two frames are called {id}: {name!r} and {name.removeprefix(FRAMES_DATABASE)!r}")
        found[id] = frame
    return found


def _named_by_position(frames: Sequence[Any]) -> dict[str, pd.DataFrame]:
    known: list[str | None] = []
    for frame in frames:
        if isinstance(frame, JoinPlan):
            raise InvalidArgument("pass a plan by name: plan=…")
        table = results.recall(frame, "table") if isinstance(frame, pd.DataFrame) else None
        known.append(None if table in known else table)
    databases = {table.partition(".")[0] for table in known if table is not None}
    database = databases.pop() if len(databases) == 1 else FRAMES_DATABASE
    return {table or f"{database}.{unnamed(position)}": frame
            for position, (table, frame) in enumerate(zip(known, frames, strict=True), start=1)}  # fmt: skip


def _with_values(
    bare: TableProfile,
    shape: TableShape,
    chunks: Iterable[Chunk],
    counted: Mapping[str, ColumnProfile],
    wanted: Collection[str] | None,
) -> TableProfile:
    """The profile with the values of the wanted columns; without rows, the profile of names only.

    ``counted`` are columns that need no further profiling.
    """
    pieces = [*chunks]
    if not pieces:
        return bare
    positions = [
        position
        for position, (name, values) in enumerate(zip(shape.columns, pieces[0].columns, strict=True))
        if name not in counted and (name in wanted if wanted is not None else _may_be_key(values))
    ]
    part = TableShape(
        shape.name,
        tuple(shape.columns[position] for position in positions),
        tuple(shape.declared_types[position] for position in positions),
    )
    narrowed = [Chunk(piece.rows, [piece.columns[position] for position in positions]) for piece in pieces]
    seen = profile_table(bare.database, part, narrowed, name=bare.name)
    known = {**counted, **{column.name: column for column in seen.columns}}
    columns = [
        replace(known[column.name], position=column.position)
        if column.name in known
        else replace(column, rows=seen.rows, samples=())
        for column in bare.columns
    ]
    return replace(bare, columns=tuple(columns), rows=seen.rows)


def _counted(frame: pd.DataFrame) -> dict[str, ColumnProfile]:
    """Long columns of integers without gaps: their smallest and largest value say all, so no sketch is needed.

    Such columns number the rows of a table. Hashing each of their values would take longer than the merge.
    """
    found = {}
    for position, name in enumerate(map(str, frame.columns)):
        values = frame.iloc[:, position]
        if len(values) < _LONG or not isinstance(values.dtype, np.dtype) or values.dtype.kind != "i":
            continue
        low, high = int(values.min()), int(values.max())
        if high - low >= len(values):
            continue
        distinct = int(np.count_nonzero(np.bincount(values.to_numpy() - low)))
        if distinct == high - low + 1:
            found[name] = ColumnProfile(
                name, position, "integer", str(values.dtype), len(values), 0, distinct, str(low), str(high)
            )
    return found


def _may_be_key(values: Values) -> bool:
    """Whether a column can be a key: not if its first values are fractions."""
    if not isinstance(values, pd.Series) or not pd.api.types.is_float_dtype(values.dtype):
        return True
    first = values.head(_LOOKED_AT).dropna().to_numpy(dtype=np.float64)
    return bool(np.mean(first == np.trunc(first)) > 1 - FAMILY_SHARE) if len(first) else True


def _bare_profile(database: str, shape: TableShape, chunks: Iterable[Chunk], *, name: str) -> TableProfile:
    """The profile from a frame's dtypes alone; its rows are not looked at."""
    columns = tuple(
        ColumnProfile(column, position, _family(dtype), dtype)
        for position, (column, dtype) in enumerate(zip(shape.columns, shape.declared_types, strict=True))
    )
    return TableProfile(f"{database}.{name}", database, name, columns)


def _family(dtype: str) -> TypeFamily:
    try:
        found = pd.api.types.pandas_dtype(dtype)
    except (TypeError, ValueError, NotImplementedError):  # Arrow's types with types or numbers in them
        return "text"
    return _FAMILIES.get(found.kind, "text") if isinstance(found, np.dtype) else "text"
