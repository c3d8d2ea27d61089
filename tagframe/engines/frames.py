"""Tables in memory: frames by name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import pandas as pd

from tagframe.engines.base import CHUNK_ROWS, Chunk, Stamp, TableShape
from tagframe.engines.sqlite.statement import RowsOnly
from tagframe.errors import InvalidArgument

_CHUNK_ROWS = 20 * CHUNK_ROWS
"""These rows are in memory already, so chunks are larger: each chunk is counted and hashed separately."""


@dataclass(frozen=True, eq=False)
class FrameEngine(RowsOnly):
    """Frames that live in memory, by their names in the source."""

    frames: Mapping[str, pd.DataFrame]
    path: None = None
    kind: str = "frames"
    identity: str = "frames in memory"

    def shapes(self) -> list[TableShape]:
        """The frames' names and dtypes."""
        return [
            TableShape(name, tuple(map(str, frame.columns)), tuple(str(dtype) for dtype in frame.dtypes))
            for name, frame in self.frames.items()
        ]

    def only(self, columns: Mapping[str, Collection[str]]) -> Self:
        """The same frames with only these columns.

        Args:
            columns: by the names of frames; other frames are left out.
        """
        frames = {
            name: frame.loc[:, [str(label) in columns[name] for label in frame.columns]]
            for name, frame in self.frames.items()
            if name in columns
        }
        for frame in frames.values():
            frame.attrs = {}  # what was remembered of the frame may name the others
        return replace(self, frames=frames)

    def chunks(self, shape: TableShape) -> Iterator[Chunk]:
        """The rows of a frame in pieces."""
        return Chunk.several(self.frames[shape.name], _CHUNK_ROWS)

    def scan(self, table: str, columns: Sequence[str] | None = None, limit: int | None = None) -> pd.DataFrame:
        """A copy of a frame, index included, with its columns' names as text."""
        frame = self.frames[table]
        positions = {str(name): position for position, name in enumerate(frame.columns)}
        chosen = list(positions) if columns is None else list(columns)
        some = frame if limit is None else frame.head(limit)
        # One copy, whatever is chosen: a frame of the chosen columns first would be a second one.
        data = {name: some.iloc[:, positions[name]] for name in chosen}
        return pd.DataFrame(data, index=some.index, columns=chosen, copy=True)

    def fingerprint(self, known: Stamp | None = None) -> None:
        """Nothing: frames are profiled each time."""


def frame_engines(
    frames: Mapping[Any, pd.DataFrame], default_database: str
) -> list[tuple[str, dict[str, str], FrameEngine]]:
    """The frames by database: (database, {name in the corpus: name in the engine}, engine).

    A name with a dot, ``"bank.loan"``, is a table of the database before the first dot. Named index levels become the
    first columns; an index without a name is left out.

    Raises:
        InvalidArgument: a name is not a text or is empty, a value is not a frame, columns are a MultiIndex or have one
            name twice, or an index level cannot be a column.
    """
    databases: dict[str, dict[str, str]] = {}
    for name, frame in frames.items():
        _check_frame(name, frame)
        database, dot, table = name.partition(".")
        if not dot:
            database, table = default_database, name
        if not database or not table:
            raise InvalidArgument(f"a frame's name must be 'table' or 'database.table'; got {name!r}")
        tables = databases.setdefault(database, {})
        if table in tables:
            raise InvalidArgument(f"two frames are called {database}.{table}: {tables[table]!r} and {name!r}")
        tables[table] = name
    engine = FrameEngine({name: _with_levels(name, frame) for name, frame in frames.items()})
    return [(database, tables, engine) for database, tables in databases.items()]


def _check_frame(name: Any, frame: Any) -> None:
    if not isinstance(name, str):
        raise InvalidArgument(f"a frame's name must be text; got {name!r} of type {type(name).__name__}")
    if not isinstance(frame, pd.DataFrame):
        raise InvalidArgument(f"{name!r} is a {type(frame).__name__}, not a pandas.DataFrame")
    if isinstance(frame.columns, pd.MultiIndex):
        raise InvalidArgument(
            f"the columns of {name!r} are a MultiIndex of {frame.columns.nlevels} levels; flatten them first, for "
            "example with frame.columns = ['_'.join(map(str, levels)) for levels in frame.columns]"
        )
    names = pd.Index([str(column) for column in frame.columns], dtype=object)
    twice = names[names.duplicated()].unique().tolist()
    if twice:
        raise InvalidArgument(
            f"{name!r} has more than one column called {', '.join(map(repr, twice))} (names are compared as text); "
            "rename them, or keep the first ones with frame.loc[:, ~frame.columns.duplicated()]"
        )


def _with_levels(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the named levels of its index as its first columns."""
    if list(frame.index.names) == [None]:
        return frame
    if None in frame.index.names:
        raise InvalidArgument(
            f"the index of {name!r} has levels without a name, {list(frame.index.names)}: name them with "
            "frame.index.set_names, or drop them with frame.reset_index(drop=True)"
        )
    levels = list(map(str, frame.index.names))
    columns = list(map(str, frame.columns))
    for number, level in enumerate(levels):
        values = frame.index.get_level_values(number)
        is_twice = levels.index(level) != number
        if is_twice or (level in columns and not values.equals(pd.Index(frame.iloc[:, columns.index(level)]))):
            raise InvalidArgument(
                f"{name!r} has an index level {level!r} and a column or another level of the same name, with different "
                "values: rename one, for example with frame.rename_axis('other')"
            )
    new = [number for number, level in enumerate(levels) if level not in columns]
    found = frame.reset_index(new) if new else frame
    return found if len(new) == len(levels) else found.reset_index(drop=True)
