"""Merges of Dask's frames: each partition is merged as a frame, by one plan."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from dask import delayed
from dask.base import tokenize
from dask.dataframe.dispatch import make_meta

from tagframe import merging, results
from tagframe.engines.cells import nullable
from tagframe.errors import FactUnknown, InvalidArgument
from tagframe.joins import JoinPlan, On
from tagframe.merging import MergeReport
from tagframe.merging.advice import refuse_other_types, say_doubt

_MAX_ROWS_READ = 100_000
"""A key is inferred from so many rows of the frame, and all of the other."""
_MAX_REPORTS = 256
_reports: OrderedDict[str, Callable[[], MergeReport]] = OrderedDict()


@dataclass(frozen=True)
class _Join:
    """How each partition is merged, on the workers."""

    plan: JoinPlan
    other: pd.DataFrame
    how: Literal["inner", "left"]
    on_fanout: Literal["raise", "allow"]

    def merged(self, frame: pd.DataFrame, **options: Any) -> pd.DataFrame:
        return merging.merge(
            frame, self.other, plan=self.plan, how=self.how, on_fanout=self.on_fanout, on_loss="allow",
            on_ambiguous="allow", **options,
        )  # fmt: skip

    def plain(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The merged partition with the dtypes of all partitions, and without its report, which has the plan."""
        found = self.merged(frame)
        found.attrs = {}
        if self.how == "inner":
            return found
        own = {column: dtype for column, dtype in found.dtypes.items() if column not in frame.columns}
        return found.astype({name: nullable(dtype) for name, dtype in own.items()
                             if isinstance(dtype, np.dtype) and dtype.kind in "iub"})  # fmt: skip


def _partition(frame: pd.DataFrame, join: _Join) -> pd.DataFrame:
    return join.plain(frame)


def merge(
    frame: Any,
    other: Any,
    *,
    on: On | None = None,
    how: Literal["inner", "left"] = "inner",
    on_fanout: Literal["raise", "allow"] = "raise",
) -> Any:
    """Join the rows of a frame with those of another, as :func:`tagframe.merge` does, partition by partition.

    Args:
        frame: its rows are kept as they are, each once.
        other: the frame to add, which each worker gets whole; a Dask frame is computed first.
        on: the key, as for :func:`tagframe.merge`. None infers it from the frame's first rows, which are read at once.
        how: "left" keeps rows without a partner.
        on_fanout: "raise" refuses a merge that would repeat rows of ``frame``, when it is computed.

    Returns:
        A lazy frame. ``.tag.merge_report`` accounts for the rows.

    Raises:
        NotConnected, ColumnNotFound, InvalidArgument: as :func:`tagframe.merge`.
    """
    if how not in ("inner", "left") or on_fanout not in ("raise", "allow"):
        raise InvalidArgument(
            f"how must be 'inner' or 'left', on_fanout 'raise' or 'allow'; got {how!r}, {on_fanout!r}"
        )
    whole = other if isinstance(other, pd.DataFrame) else other.compute()
    meta = make_meta(frame)
    plan = merging.join_plan(meta if on is not None else frame.head(_MAX_ROWS_READ, npartitions=-1), whole, on=on)
    say_doubt(plan)
    refuse_other_types(plan, lambda column, type: False)
    join = _Join(plan, whole, how, on_fanout)
    result = frame.map_partitions(_partition, delayed(join, traverse=False), meta=join.plain(meta)).clear_divisions()
    _reports[tokenize(result)] = lambda: _counted(frame, join)
    while len(_reports) > _MAX_REPORTS:
        _reports.popitem(last=False)
    return result


def report_of(frame: Any) -> MergeReport:
    """What a merge did; it is counted when it is read.

    Raises:
        FactUnknown: the frame is not a result of a merge.
    """
    report = _reports.get(tokenize(frame))
    if report is None:
        raise FactUnknown(
            "this frame has no merge_report: it is not a result of ddf.tag.merge; read it from that result"
        )
    return report()


def _counted(frame: Any, join: _Join) -> MergeReport:
    """The account of a merge of the key columns, in this process."""
    (step,) = join.plan.steps
    keys = frame[list(step.base_columns)].compute()
    name = join.plan.column_names()[step.base, step.base_columns[0]]
    report: Any = results.recall(replace(join, on_fanout="allow").merged(keys, columns=[name]), "merge_report")
    counted: MergeReport = replace(report, engine="dask")
    return counted
