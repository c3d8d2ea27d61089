"""Lazy frames for which the client asks the model when they are computed.

With Dask, the client optimises an expression before workers get it. At that point, the workers compute the distinct
rows of the partitions, the client asks about them, and an expression that joins the answers back replaces the first.
"""

from __future__ import annotations

import functools
from typing import Any

import pandas as pd
from dask import delayed
from dask.dataframe import from_pandas
from dask.dataframe.dask_expr._collection import new_collection
from dask.dataframe.dask_expr._expr import Expr, Head, Partitions

from tagframe.dask.client import Asking, RowAsking
from tagframe.dask.partition_tasks import distinct_rows, with_answers


class _FromModel(Expr):  # type: ignore[misc]
    """A frame of which only the columns are known before it is computed; usually in one partition."""

    _parameters = ("frame", "asking")

    @functools.cached_property
    def _meta(self) -> pd.DataFrame:
        asking: Asking = self.asking
        return asking.meta

    def _divisions(self) -> Any:
        return (None, None)


class Answered(_FromModel):
    """The rows of partitions with the answers to them."""

    def _divisions(self) -> Any:
        return self.frame.divisions

    def _simplify_up(self, parent: Any, dependents: Any) -> Any:
        """If only some partitions are needed, such as the first ones for ``head``, only these are asked about."""
        if isinstance(parent, Partitions):
            return type(self)(Partitions(self.frame, parent.partitions), self.asking)
        if isinstance(parent, Head):
            wanted = parent.operand("npartitions")
            if 0 < wanted < self.frame.npartitions:
                first = type(self)(Partitions(self.frame, list(range(wanted))), self.asking)
                return Head(first, parent.n, wanted)
        return None

    def _lower(self) -> Any:
        asking: RowAsking = self.asking
        frame = new_collection(self.frame)
        answers = asking.answers(_distinct(frame, asking))
        joined = frame.map_partitions(with_answers, delayed(answers), asking.prompt_columns, meta=asking.meta)
        return joined.expr


class Whole(_FromModel):
    """The client's result from all rows."""

    def _lower(self) -> Any:
        asking: Asking = self.asking
        rows = new_collection(self.frame).iloc[:, list(asking.prompt_columns.positions)].compute()
        result = asking.run(rows)
        result.attrs = {}
        return from_pandas(result, npartitions=1, sort=False).clear_divisions().expr


def _distinct(frame: Any, asking: Asking) -> pd.DataFrame:
    """The distinct rows of all partitions, computed by the workers."""
    columns = list(asking.prompt_columns.positions)
    meta = frame._meta.iloc[:0, columns]
    rows: pd.DataFrame = frame.map_partitions(distinct_rows, asking.prompt_columns, columns, meta=meta).compute()
    return rows.reset_index(drop=True)
