"""Tables with the same columns as one table: ``sales_2023`` and ``sales_2024``, with a column that says which.

A plan over such tables (:mod:`~tagframe.keys.unions`) stacks them first and joins the stack as a single table. Their
ids overlap but mean different rows, so there is no key between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tagframe.corpus.opening import FRAMES_DATABASE
from tagframe.engines.dtypes import EXACT, nullable
from tagframe.errors import ColumnNotFound, InvalidArgument, did_you_mean
from tagframe.guests import welcomed
from tagframe.joins.stacks import ORIGIN
from tagframe.merging.given_frames import Frames, GivenFrames


@welcomed
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


def spelt(table: str, own: Sequence[str], names: Sequence[str]) -> list[str]:
    """The columns ``names`` in the table's spelling.

    Raises:
        ColumnNotFound: it lacks one.
        InvalidArgument: the names of two of its columns are equal or differ in case only.
    """
    folded = {name.casefold(): name for name in own}
    if len(folded) < len(own):
        raise InvalidArgument(f"{table} has columns with the same name (case is ignored): {', '.join(map(repr, own))}")
    for name in names:
        if name.casefold() not in folded:
            raise ColumnNotFound(f"no column {name!r} in {table}: {did_you_mean(name, own)}")
    return [folded[name.casefold()] for name in names]


def stacked(
    ids: Sequence[str], frames: Sequence[pd.DataFrame], names: Sequence[str], source: str | None
) -> pd.DataFrame:
    """The frames stacked; their columns are ``names``, in this order."""
    data = {name: _one_series([frame.iloc[:, position] for frame in frames]) for position, name in enumerate(names)}
    rows = [len(frame) for frame in frames]
    if source is not None:
        data[source] = pd.Series([table for table, count in zip(ids, rows, strict=True) for _ in range(count)],
                                 dtype=pd.Series([""]).dtype)  # fmt: skip
    return pd.DataFrame(data, index=pd.RangeIndex(sum(rows)))


def _one_series(parts: Sequence[pd.Series]) -> pd.Series:
    """The parts as one series, of a dtype that holds all values unchanged."""
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
