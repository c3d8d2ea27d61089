"""Keys, plans and merges of frames, which are opened as a corpus for the call.

Frames are given one by one, as a list, or by name; :func:`~tagframe.merging.frames.named_frames` gives names to
frames without one. The first frame is the anchor: the plan starts from its rows. The named levels of an index become
the first columns of their frame; the result has a fresh index. Frames with the same columns whose names differ in a
number or a date ({"sales_2023": …, "sales_2024": …}), and that no key joins, are stacked and joined as one, unless
``stack=False``. Frames without a name are not stacked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
import pandas as pd

from tagframe import results
from tagframe.corpus import ColumnProfile, Corpus, TableProfile
from tagframe.corpus.opening import FRAMES_DATABASE, open_frames
from tagframe.corpus.profile import TypeFamily
from tagframe.corpus.profiler import FAMILY_SHARE, profile_table
from tagframe.corpus.references import NamedTable
from tagframe.engines.base import Chunk, TableShape, Values
from tagframe.errors import DoubtfulJoinWarning, InvalidArgument
from tagframe.interop import accepts_foreign
from tagframe.joins.aggregates import Aggregate
from tagframe.joins.infer import accepted_keys, corpus_keys, plan_tables
from tagframe.joins.key_text import On, keys_on
from tagframe.joins.plan import JoinPlan
from tagframe.joins.planner import MIN_CHANCE
from tagframe.joins.roles import joined_tables, without_roles
from tagframe.joins.stacks import ORIGIN
from tagframe.joins.steps import MergeHow
from tagframe.keys.key_pair import NAMED, KeyPair, is_unnamed, unnamed
from tagframe.merging.advice import Reaction, say_stacked, warn
from tagframe.merging.run import Where, check_roles, run_plan
from tagframe.merging.table_rows import spelt, stacked

Frames = pd.DataFrame | Mapping[str, pd.DataFrame] | Sequence[pd.DataFrame]
"""One of several frames, or all of them: by name, or in a sequence."""

_MAX_FIRST_VALUES = 1_000
"""The first values of a column that decide whether it holds fractions."""
_MIN_LONG_ROWS = 100_000
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
        if len(values) < _MIN_LONG_ROWS or not isinstance(values.dtype, np.dtype) or values.dtype.kind != "i":
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
    first = values.head(_MAX_FIRST_VALUES).dropna().to_numpy(dtype=np.float64)
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


@accepts_foreign
def infer_keys(*frames: Frames | Corpus, **named: pd.DataFrame) -> list[KeyPair]:
    """Find the key pairs between frames that are more likely right than wrong, best first, as in :func:`join_plan`.

    >>> import pandas as pd
    >>> loans = pd.DataFrame({"loan_id": [1, 2, 3], "client_id": [20, 10, 20]})
    >>> clients = pd.DataFrame({"client_id": [10, 20, 30], "name": ["Ann", "Bo", "Cy"]})
    >>> [(key.left, key.right) for key in infer_keys({"loans": loans, "clients": clients})]
    [('frames.loans.client_id', 'frames.clients.client_id')]

    Args:
        *frames: one by one, or as one list or mapping from names; or a corpus, for the keys of its databases and
            folders.
        **named: frames by name, instead: ``infer_keys(animals=…, owners=…)``. Keys are found by names: if the frames
            have no names and no key is found, a warning says so.

    Raises:
        InvalidArgument: no frames, frames with and without names, something that is not a frame, or columns or index
            levels with the same name.
    """
    if frames and named:
        raise InvalidArgument(f"give a name to all frames or to none; only {', '.join(named)} have one")
    if len(frames) == 1 and isinstance(frames[0], Corpus):
        return corpus_keys(frames[0])
    given = GivenFrames.of((named,) if named else cast("tuple[Frames, ...]", frames))
    found = accepted_keys(given.profiled(), given.ids)
    if not found and not given.are_named:
        warn(f"no keys found: keys are found by names, and the frames have none; {NAMED}", DoubtfulJoinWarning)
    return found


@accepts_foreign
def join_plan(
    *frames: Frames,
    on: On | None = None,
    stack: bool = True,
    min_chance: float = MIN_CHANCE,
    roles: Literal["all"] | None = None,
) -> JoinPlan:
    """Plan how to join the frames, starting from the first; see :func:`~tagframe.joins.plan_joins`.

    >>> import pandas as pd
    >>> orders = pd.DataFrame({"order": [1, 2, 3], "buyer": [20, 10, 20]})
    >>> customers = pd.DataFrame({"id": [10, 20], "name": ["Ann", "Bo"]})
    >>> print(join_plan({"orders": orders, "customers": customers}, on="orders.buyer = customers.id"))
    frames.orders
    └─ frames.orders.buyer = frames.customers.id  (many-to-one, 1.00)

    Args:
        *frames: one by one, or as one list or mapping from names.
        on: key pairs to join on, as for :func:`merge`.
        stack: whether frames with the same columns, such as ``sales_2023`` and ``sales_2024``, are joined as one.
        min_chance: no inferred key pair with a smaller chance joins frames, in [0, 1].
        roles: "all" joins a frame once for each column that refers to it, as for :func:`merge`.

    Raises:
        InvalidArgument: no frames, something that is not a frame, columns or index levels with the same name, or an
            ``on`` that is not understood.
        TableNotFound, ColumnNotFound: ``on`` names no table or column of the frames.
        NotConnected: no key pairs connect the frames.
    """
    return _plan(GivenFrames.of(frames), on, stack, min_chance, roles)


def _plan(
    given: GivenFrames,
    on: On | None,
    stack: bool,
    min_chance: float,
    roles: Literal["all"] | None,
) -> JoinPlan:
    check_roles(roles)
    tables = [NamedTable.of(given.corpus.profile(id)) for id in given.ids]
    pairs = [] if on is None else keys_on(on, tables)
    joins_all = len(pairs) == len(joined_tables(given.ids, pairs)) - 1
    corpus = given.profiled(without_roles(pairs, given.ids) if joins_all else None)
    stack_unions = stack and given.are_named
    return plan_tables(
        corpus,
        given.ids,
        anchor=given.ids[0],
        given=pairs,
        stack_unions=stack_unions,
        min_chance=min_chance,
        roles=roles,
    )


@accepts_foreign
def merge(
    *frames: Frames,
    on: On | None = None,
    plan: JoinPlan | None = None,
    stack: bool | None = None,
    roles: Literal["all"] | None = None,
    how: MergeHow | None = None,
    on_fanout: Reaction = "raise",
    on_loss: Reaction = "warn",
    on_ambiguous: Reaction = "warn",
    min_chance: float = MIN_CHANCE,
    columns: Sequence[str] | None = None,
    where: Where | None = None,
    limit: int | None = None,
    aggregate: Aggregate | None = None,
    distinct: bool = False,
) -> pd.DataFrame:
    """Join frames into one; ``frame.tag.merge_report`` accounts for every row.

    >>> import pandas as pd
    >>> loans = pd.DataFrame({"loan_id": [1, 2, 3], "client_id": [20, 10, 20]})
    >>> clients = pd.DataFrame({"client_id": [10, 20, 30], "name": ["Ann", "Bo", "Cy"]})
    >>> merge(loans, clients)
       loan_id  client_id name
    0        1         20   Bo
    1        2         10  Ann
    2        3         20   Bo

    Args:
        *frames: one by one, or as one list or mapping from names. Each row of the first frame appears once, in the
            frame's order.
        on: how they join, instead of inferred keys: ``"orders.buyer = customers.id"``, ``"buyer = id"`` if each name is
            in one frame only, ``"day"`` for a column that frames share, or a list. Names in a list form one key of
            several columns, ``["country", "year"]``. Frames that these do not connect are joined on inferred keys.
            ``"orders.buyer_id = users.id as buyer"`` joins users in a role: once more with each role, with columns such
            as ``buyer.name``; to join them further, write the role in place of the frame, ``"buyer.city = cities.id"``.
        plan: the whole plan, instead; see :func:`join_plan`.
        stack: whether frames with the same columns, such as ``sales_2023`` and ``sales_2024``, are joined as one; the
            report then begins with the stack. None stacks them, with a warning if the first frame is one of them, or
            ``on`` names one.
        roles: "all" joins a frame once for each column of another that refers to it (``buyer_id`` and ``seller_id``),
            in the role that the column's name says. None joins it once.
        how: the kind of every join. "left" keeps the rows of the first frame, "right" those of the others; rows without
            a partner come last. "anti" gives the rows of the first frame without a partner in the others.
        on_fanout: what to do if a step repeats rows of the first frame: "raise", "warn" or "allow".
        on_loss: what to do if rows of the first frame are lost; lost rows of other frames cause no warning.
        on_ambiguous: what to do if other plans are equally likely.
        min_chance: no inferred key pair with a smaller chance joins frames, in [0, 1].
        columns: the columns of the result, by their name there, or as ``column`` or ``frame.column``; None for all.
        where: selects joined rows: a mapping from a column, named as for ``columns``, to a value, a list of values or a
            function from the column to booleans; or a text such as ``"price > 5 and city == 'Brno'"``.
        limit: the largest number of rows.
        aggregate: frames that are reduced to one row per key before the join, so that they repeat no rows:
            {"payments": {"amount": "sum"}}; with "sum", "mean", "min", "max", "count", "nunique" or "first"; or
            {"customers": "first"}, for the first row of each key.
        distinct: whether rows that are exact copies of others count once, in all frames but the first.

    Returns:
        A frame with a fresh index; columns with the same name get their table's name in front.

    Raises:
        InvalidArgument: no frames, something that is not a frame, columns or index levels with the same name, or an
            argument that is not understood.
        TableNotFound, ColumnNotFound: an argument names no table or column of the frames.
        NotConnected: no key pairs connect the frames.
        FanOut: a step would repeat rows of the first frame.
        RowsLost: rows of the first frame are lost, with ``on_loss="raise"``.
    """
    if plan is not None and (on is not None or roles is not None):
        raise InvalidArgument(
            f"pass {'on=' if roles is None else 'roles='} or plan=, not both: plan.use(…) gives a plan with another key"
        )
    given = GivenFrames.of(frames)
    if plan is None:
        plan = _plan(given, on, stack is not False, min_chance, roles)
        if stack is None:
            say_stacked(plan, on)
    frame, report = run_plan(
        plan,
        given.corpus,
        how=how,
        on_fanout=on_fanout,
        on_loss=on_loss,
        on_ambiguous=on_ambiguous,
        columns=columns,
        where=where,
        limit=limit,
        aggregate=aggregate,
        distinct=distinct,
    )
    results.remember(frame, merge_report=report)
    return frame


@accepts_foreign
def stack(*frames: Frames, columns: Sequence[str] | None = None, source: str | None = ORIGIN) -> pd.DataFrame:
    """Stack frames that have the same columns on top of each other.

    >>> one, two = pd.DataFrame({"id": [1], "sum": [2.5]}), pd.DataFrame({"Sum": [4.0], "ID": [1]})
    >>> stack({"sales_2023": one, "sales_2024": two})
       id  sum source_table
    0   1  2.5   sales_2023
    1   1  4.0   sales_2024

    Args:
        *frames: one by one, or as one list or mapping from names. Index levels that have a name are columns.
        columns: which of them, in this order; None for all.
        source: name of the column that says which frame a row is from; None for no such column. A frame without a name
            gets the name of the table that it was read from, else ``frame_1``, ``frame_2``, … by its position.

    Returns:
        The rows of the first frame, then of the second, …, with a fresh index. The columns have the order and the
        spelling of the first frame; case is ignored. A dtype that all frames have is kept. Integers become ``Int64``
        with nulls, and ``float64`` with reals if floats hold them exactly. Dtypes that do not go together become
        ``object``.

    Raises:
        ColumnNotFound: a frame lacks a column that another has.
        InvalidArgument: no frames, something that is not a frame, columns or index levels with the same name, or a
            column with the name ``source``.
    """
    given = GivenFrames.of(frames)
    known = {id: [column.name for column in given.corpus.profile(id).columns] for id in given.ids}
    first = given.ids[0]
    names = list(known[first] if columns is None else columns)
    if source is not None and source.casefold() in map(str.casefold, names):
        raise InvalidArgument(f"the tables already have a column {source!r}: choose another name with source=")
    if columns is None:
        for id, own in known.items():
            spelt(first, names, own)  # the first must have all columns of this table
            spelt(id, own, names)
    parts = [given.corpus.read(id, spelt(id, own, names)) for id, own in known.items()]
    return stacked([id.removeprefix(f"{FRAMES_DATABASE}.") for id in given.ids], parts, names, source)
