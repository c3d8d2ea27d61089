"""Tables of one shape as one table: ``sales_2023`` on top of ``sales_2024``, with a column that says which.

A plan over tables of one shape (:mod:`~tagframe.keys.unions`) stacks them first and joins the stack as a single table:
their ids overlap and mean different rows, so that no key is between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tagframe.corpus.opening import FRAMES_DATABASE
from tagframe.engines.dtypes import EXACT, nullable
from tagframe.errors import ColumnNotFound, InvalidArgument, did_you_mean
from tagframe.joins.stacks import ORIGIN
from tagframe.merging.given_frames import Frames, GivenFrames


def stack(*frames: Frames, columns: Sequence[str] | None = None, source: str | None = ORIGIN) -> pd.DataFrame:
    """Stack frames that have the same columns on top of each other.

    >>> one, two = pd.DataFrame({"id": [1], "sum": [2.5]}), pd.DataFrame({"Sum": [4.0], "ID": [1]})
    >>> stack({"sales_2023": one, "sales_2024": two})
       id  sum source_table
    0   1  2.5   sales_2023
    1   1  4.0   sales_2024

    Args:
        *frames: one by one, or as one list or mapping from names. Index levels that have a name are columns.
        columns: which of them, in this order; all where None.
        source: name of the column that says which frame a row is from; None for no such column. A frame without a
            name is called by the table that it was read from, else ``frame_1``, ``frame_2``, … by its position.

    Returns:
        The rows of the first frame, then of the second, …, with a fresh index, and the columns in the order and the
        spelling of the first; case does not count. A dtype that all frames have is kept. Integers become ``Int64``
        beside nulls, and ``float64`` beside reals where that holds them exactly; dtypes that do not go together become
        ``object``.

    Raises:
        ColumnNotFound: a frame lacks a column that another has.
        InvalidArgument: no frames, what is not a frame, columns or index levels that cannot be told apart, or a column
            that is called like ``source``.
    """
    given = GivenFrames.of(frames)
    known = {id: [column.name for column in given.corpus.profile(id).columns] for id in given.ids}
    first = given.ids[0]
    names = list(known[first] if columns is None else columns)
    if source is not None and source.casefold() in map(str.casefold, names):
        raise InvalidArgument(f"the tables have a column {source!r} already: name the new one otherwise, with source=")
    if columns is None:
        for id, own in known.items():
            spelt(first, names, own)  # what this table has, the first must have
            spelt(id, own, names)
    parts = [given.corpus.read(id, spelt(id, own, names)) for id, own in known.items()]
    return stacked([id.removeprefix(f"{FRAMES_DATABASE}.") for id in given.ids], parts, names, source)


def spelt(table: str, own: Sequence[str], names: Sequence[str]) -> list[str]:
    """What the table calls the columns ``names``.

    Raises:
        ColumnNotFound: it lacks one.
        InvalidArgument: two of its columns differ in case only, or not at all.
    """
    folded = {name.casefold(): name for name in own}
    if len(folded) < len(own):
        raise InvalidArgument(f"{table} has columns of one name (case does not count): {', '.join(map(repr, own))}")
    for name in names:
        if name.casefold() not in folded:
            raise ColumnNotFound(f"no column {name!r} in {table}: {did_you_mean(name, own)}")
    return [folded[name.casefold()] for name in names]


def stacked(
    ids: Sequence[str], frames: Sequence[pd.DataFrame], names: Sequence[str], source: str | None
) -> pd.DataFrame:
    """Frames whose columns mean ``names``, in this order, on top of each other."""
    data = {name: _one_series([frame.iloc[:, position] for frame in frames]) for position, name in enumerate(names)}
    rows = [len(frame) for frame in frames]
    if source is not None:
        data[source] = pd.Series([table for table, count in zip(ids, rows, strict=True) for _ in range(count)],
                                 dtype=pd.Series([""]).dtype)  # fmt: skip
    return pd.DataFrame(data, index=pd.RangeIndex(sum(rows)))


def _one_series(parts: Sequence[pd.Series]) -> pd.Series:
    """The parts as one series, of a dtype that holds all of them as they are."""
    filled = [part for part in parts if part.notna().any()] or [part for part in parts if len(part)] or list(parts)
    dtypes = list({str(part.dtype): part.dtype for part in filled}.values())
    target = dtypes[0] if len(dtypes) == 1 and not isinstance(dtypes[0], pd.CategoricalDtype) else _common(filled)
    if any(part.isna().any() for part in parts) and isinstance(target, np.dtype) and target.kind in "iub":
        target = nullable(target)
    return pd.concat([_as(part, target) for part in parts], ignore_index=True)


def _common(parts: Sequence[pd.Series]) -> Any:
    kinds: list[Any] = [getattr(part.dtype, "numpy_dtype", part.dtype) for part in parts]
    if all(isinstance(kind, pd.CategoricalDtype) for kind in kinds):
        categories = [pd.Index(part.cat.categories) for part in parts]
        if len({index.dtype for index in categories}) == 1:
            together = categories[0].append(categories[1:]).unique()
            ordered = all(part.cat.ordered and part.dtype == parts[0].dtype for part in parts)
            return pd.CategoricalDtype(together, ordered=ordered)
    if all(isinstance(kind, np.dtype) and kind.kind in "iuf" for kind in kinds):
        found = np.result_type(*kinds)
        masked = any(part.dtype != kind for part, kind in zip(parts, kinds, strict=True))
        integers = [part for part, kind in zip(parts, kinds, strict=True) if kind.kind in "iu"]
        if found.kind in "iu":
            return nullable(found) if masked else found
        if all(bool(part.abs().max() <= EXACT) for part in integers):
            return np.dtype(np.float64)
    return np.dtype(object)


def _as(part: pd.Series, target: Any) -> pd.Series:
    if part.dtype == target:
        return part
    if not part.notna().any() and target != np.dtype(object):
        return pd.Series([None] * len(part), dtype=target)
    return part.astype(target)
