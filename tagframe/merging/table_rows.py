"""The source of a merge's rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tagframe.corpus import Corpus
from tagframe.engines.cells import EXACT, nullable
from tagframe.errors import ColumnNotFound, InvalidArgument, did_you_mean
from tagframe.joins.aggregates import FIRST
from tagframe.joins.plan import JoinPlan
from tagframe.joins.steps import PlanTable
from tagframe.keys.matching import copies_in, is_copy
from tagframe.merging.agreement import columns_there


class PlanRows:
    """Rows of a plan's tables: tables of a corpus, their stacks, and tables with one row per key.

    A row's number is its position in the result of :meth:`whole`.
    """

    def __init__(self, corpus: Corpus, plan: JoinPlan) -> None:
        self._corpus = corpus
        self._plan = plan
        self._sources = plan.by_id

    def whole(self, table: str, columns: Sequence[str]) -> pd.DataFrame:
        """All rows of these columns; the order is the same for all columns of the table."""
        source = self._sources[table]
        if source.aggregates:
            return self._one_row_a_key(source, columns)
        if source.distinct:
            frame = self._all(source, source.columns)
            return frame.loc[~is_copy(frame), list(columns)].reset_index(drop=True)
        return self._all(source, columns)

    def copies(self, table: str, keys: Sequence[str]) -> int:
        """The number of rows that are exact copies of others, if no key would repeat without them; else 0.

        Also 0 if some columns of the table are not there any more, so that nobody knows.
        """
        source = self._sources[table]
        if source.aggregates or source.distinct:
            return 0
        if not {(table, column) for column in source.columns} <= columns_there(self._plan, self._corpus):
            return 0
        return copies_in(self._all(source, source.columns), keys)

    def _all(self, source: PlanTable, columns: Sequence[str]) -> pd.DataFrame:
        """The rows of a table, or of a stack."""
        if not source.parts:
            return self._corpus.read(source.id, columns)
        own = [column for column in columns if column != source.origin]
        frames = [self._corpus.read(part.id, spelt(part.id, part.columns, own)) for part in source.parts]
        origin = source.origin if source.origin in columns else None
        return stacked(source.origins, frames, own, origin)[list(columns)]

    def _one_row_a_key(self, source: PlanTable, columns: Sequence[str]) -> pd.DataFrame:
        """A row for each key, in the order of first appearance."""
        made = {column: function for column, function in source.aggregates if column in columns}
        rows = self._all(source, [*source.keys, *made]).dropna(subset=[*source.keys])
        firsts = rows.loc[~rows.duplicated([*source.keys])] if FIRST in made.values() else rows
        groups = rows.groupby([*source.keys], sort=False, observed=True)
        found = {
            column: firsts[column] if function == FIRST else _made_of(rows[column], groups[column], function, source.id)
            for column, function in made.items()
        }
        frame = groups.size().index.to_frame(index=False).astype({key: rows[key].dtype for key in source.keys})
        return frame.assign(**{column: series.array for column, series in found.items()})[list(columns)]


def _made_of(column: pd.Series, groups: Any, function: str, table: str) -> pd.Series:
    is_number = pd.api.types.is_numeric_dtype(column.dtype) or (
        pd.api.types.infer_dtype(column, skipna=True) in ("decimal", "integer", "floating", "empty")
    )
    try:
        if function in ("sum", "mean") and not is_number:
            raise TypeError("no numbers")
        if function in ("min", "max") and column.dtype == object:
            # pandas 2 sorts nulls among objects, and pandas 2 and 3 turn integers with nulls into floats.
            filled = column.dropna().groupby(groups.ngroup())
            found: pd.Series = getattr(filled, function)().reindex(range(groups.ngroups))
        else:
            found = getattr(groups, function)()
    except TypeError as error:
        raise InvalidArgument(
            f"no {function} of {table}.{column.name}, which is {column.dtype}: {error}. count works for every column, "
            "min and max for columns that can be sorted"
        ) from error
    return found.astype("int64") if function in ("count", "nunique") else found


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
