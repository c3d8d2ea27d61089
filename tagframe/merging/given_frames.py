"""Frames that a user passes, as a corpus: one by one, in a list, or by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from tagframe import results
from tagframe.corpus import ColumnProfile, Corpus, TableProfile
from tagframe.corpus.index import FRAMES_DATABASE, open_frames
from tagframe.corpus.profile import TypeFamily
from tagframe.corpus.profiler import profile_table
from tagframe.engines.base import Chunk, TableShape
from tagframe.errors import InvalidArgument
from tagframe.joins.plan import JoinPlan
from tagframe.keys.key_columns import unnamed

Frames = pd.DataFrame | Mapping[str, pd.DataFrame] | Sequence[pd.DataFrame]
"""One of several frames, or all of them: by name, or in a sequence."""

_FAMILIES: Mapping[str, TypeFamily] = {"i": "integer", "u": "integer", "f": "real", "b": "boolean", "M": "date"}


@dataclass(frozen=True)
class GivenFrames:
    """Frames as a corpus.

    Attributes:
        corpus: of the frames.
        ids: of its tables, in the order in which they were given.
        are_named: whether the user named them.
    """

    corpus: Corpus
    ids: tuple[str, ...]
    are_named: bool

    @classmethod
    def of(cls, given: Sequence[Frames], *, profiled: bool = True) -> GivenFrames:
        """Open frames as a corpus.

        Args:
            given: the arguments of a call: frames, or one list or mapping of them.
            profiled: whether their values are looked at, which keys are inferred from; else only dtypes are known.

        Raises:
            InvalidArgument: no frames, or what cannot be a table.
        """
        named = named_frames(given)
        corpus = open_frames(named, _profile if profiled else _bare_profile)
        return cls(corpus, tuple(named), len(given) == 1 and isinstance(given[0], Mapping))


def named_frames(given: Sequence[Frames]) -> dict[str, pd.DataFrame]:
    """By id: the frames that a call was given.

    A frame without a name is called by the table that it was read from (:meth:`Corpus.read`), else ``frame_1``,
    ``frame_2``, … by its place. It is of the database that all of the named ones are of, else of ``frames``.

    Raises:
        InvalidArgument: there are none, or two of one name.
    """
    if len(given) == 1 and isinstance(given[0], Mapping):
        frames = dict(given[0])
    else:
        listed: Iterable[Any] = given
        if len(given) == 1 and not isinstance(given[0], pd.DataFrame):
            listed = given[0] if isinstance(given[0], Iterable) else given
        frames = _named_by_place(list(listed))
    if not frames:
        raise InvalidArgument("frames are given one by one, as a list or by name as in {'loan': frame}; got none")
    found: dict[str, pd.DataFrame] = {}
    for name, frame in frames.items():
        id = name if not isinstance(name, str) or "." in name else f"{FRAMES_DATABASE}.{name}"
        if id in found:
            raise InvalidArgument(f"two frames are called {id}: {name!r} and {name.removeprefix(FRAMES_DATABASE)!r}")
        found[id] = frame
    return found


def _named_by_place(frames: Sequence[Any]) -> dict[str, pd.DataFrame]:
    known: list[str | None] = []
    for frame in frames:
        if isinstance(frame, JoinPlan):
            raise InvalidArgument("a plan is passed by name: plan=…")
        table = results.recall(frame, "table") if isinstance(frame, pd.DataFrame) else None
        known.append(None if table in known else table)
    databases = {table.partition(".")[0] for table in known if table is not None}
    database = databases.pop() if len(databases) == 1 else FRAMES_DATABASE
    return {table or f"{database}.{unnamed(place)}": frame
            for place, (table, frame) in enumerate(zip(known, frames, strict=True), start=1)}  # fmt: skip


def _profile(database: str, shape: TableShape, chunks: Iterable[Chunk], *, name: str) -> TableProfile:
    """The profile of a frame; one without rows says no more than its names do."""
    pieces = iter(chunks)
    first = next(pieces, None)
    if first is None:
        return _bare_profile(database, shape, (), name=name)
    return profile_table(database, shape, chain([first], pieces), name=name)


def _bare_profile(database: str, shape: TableShape, chunks: Iterable[Chunk], *, name: str) -> TableProfile:
    """What a frame's dtypes say; its rows are not looked at."""
    columns = tuple(
        ColumnProfile(column, place, _family(dtype), dtype)
        for place, (column, dtype) in enumerate(zip(shape.columns, shape.declared_types, strict=True))
    )
    return TableProfile(f"{database}.{name}", database, name, columns)


def _family(dtype: str) -> TypeFamily:
    found = pd.api.types.pandas_dtype(dtype)
    return _FAMILIES.get(found.kind, "text") if isinstance(found, np.dtype) else "text"
