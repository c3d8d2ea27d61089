"""Merges of Dask's frames by a plan, and their reports, computed from aggregates."""

from __future__ import annotations

import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import dask
import numpy as np
import pandas as pd
from dask.base import tokenize
from dask.dataframe.dispatch import make_meta

from tagframe.corpus.opening import FRAMES_DATABASE
from tagframe.corpus.profile import ColumnProfile, Sketch, TableProfile
from tagframe.corpus.profiler import SAMPLES, SKETCH_SIZE, profile_table
from tagframe.corpus.references import NamedTable
from tagframe.engines.base import TableShape, frame_chunk
from tagframe.errors import FactUnknown, FanOut, InvalidArgument
from tagframe.joins import JoinPlan, keys_on
from tagframe.joins.key_text import On
from tagframe.joins.planner import plan_joins
from tagframe.keys import infer_key_pairs
from tagframe.keys.key_columns import unnamed
from tagframe.merging.advice import say_doubt
from tagframe.merging.report import MergeReport, RowCounts, StepReport

_MAX_ERROR_KEYS = 1_000
_THERE = "__tagframe_there__"
_MAX_REPORTS = 256


def merge(
    frame: Any,
    other: Any,
    *,
    on: On | None = None,
    how: Literal["inner", "left"] = "inner",
    on_fanout: Literal["raise", "allow"] = "raise",
) -> Any:
    """Join the rows of a frame with those of another, by the plan that :func:`tagframe.join_plan` gives for frames.

    Unless ``on`` gives the key, it is inferred in one pass over both frames, which runs at once: workers profile the
    partitions. Repeated keys of the other frame are also counted at once. The result itself is lazy.

    Args:
        frame: its rows are kept as they are, each once.
        other: the frame to add; it may be a pandas frame.
        on: the key, as for :func:`tagframe.merge`: ``"buyer = id"``, the name of a column of both frames, or a list of
            these.
        how: "left" keeps rows without a partner.
        on_fanout: "raise" refuses a merge that would repeat rows of ``frame``.

    Returns:
        A lazy frame, with the columns that :func:`tagframe.merge` gives. Null keys never match. ``.tag.merge_report``
        accounts for the rows.

    Raises:
        NotConnected: no columns look like a key of both frames.
        FanOut: keys of ``other`` repeat; the first ones are on the exception.
        ColumnNotFound: ``on`` does not name a column.
        InvalidArgument: the key's columns have different types, or an argument is invalid.
    """
    from dask.dataframe import from_pandas

    if how not in ("inner", "left") or on_fanout not in ("raise", "allow"):
        raise InvalidArgument(
            f"how must be 'inner' or 'left', on_fanout 'raise' or 'allow'; got {how!r}, {on_fanout!r}"
        )
    right = from_pandas(other, npartitions=1) if isinstance(other, pd.DataFrame) else other
    plan = _plan(frame, right, on)
    (step,), names = plan.steps, plan.column_names()
    if step.key.signs:
        raise InvalidArgument(f"frames in partitions are joined by equal keys only; got {step}: merge pandas frames")
    mine, theirs = (
        one.rename(columns={column: names[table, column] for column in one.columns})
        for table, one in ((step.base, frame), (step.table, right))
    )
    keys = [names[step.base, column] for column in step.base_columns]
    keyed = _as_keys(theirs.dropna(subset=keys), make_meta(mine), make_meta(theirs), keys)  # in pandas nulls are equal
    if on_fanout == "raise":
        _refuse_repeated(keyed, keys)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of unlike dtypes, 1 and 1.0
        result = mine.merge(keyed, on=keys, how=how)
    _reports[tokenize(result)] = lambda: _counted(plan, how, mine[keys], keyed[keys], theirs, result)
    while len(_reports) > _MAX_REPORTS:
        _reports.popitem(last=False)
    return result


def _as_keys(keyed: Any, mine: pd.DataFrame, theirs: pd.DataFrame, keys: Sequence[str]) -> Any:
    """The rows with whole numbers as keys in the dtype of the other frame's.

    Raises:
        InvalidArgument: the keys have different types.
    """
    for key in keys:
        if _kind(mine[key]) != _kind(theirs[key]):
            raise InvalidArgument(
                f"the key {key!r} is {mine[key].dtype} in one frame and {theirs[key].dtype} in the other: convert them "
                "to one type first, as with ddf.astype"
            )
    whole = [key for key in keys if all(pd.api.types.is_integer_dtype(one[key].dtype) for one in (mine, theirs))]
    return keyed.astype({key: mine[key].dtype for key in whole})


def _refuse_repeated(keyed: Any, keys: Sequence[str]) -> None:
    repeated = keyed.groupby(keys).size()
    repeated = repeated[repeated > 1].compute()
    if len(repeated):
        raise FanOut(
            f"{len(repeated):,} keys of the other frame ({', '.join(keys)}) repeat, {int(repeated.max()):,} times at "
            "most, and would repeat rows. The first of them are on this error as .rows. Pass on_fanout='allow' if the "
            "repetition is intended, or aggregate the other frame to one row a key first",
            repeated.head(_MAX_ERROR_KEYS).rename("rows").reset_index(),
        )


def _kind(column: pd.Series) -> str:
    dtype: Any = column.dtype
    if pd.api.types.is_bool_dtype(dtype):
        return "boolean"
    if pd.api.types.is_numeric_dtype(dtype):
        return "number"
    return "text" if pd.api.types.is_string_dtype(dtype) else str(dtype)


# --- the plan ---------------------------------------------------------------------------------------------------------


def _plan(frame: Any, other: Any, on: On | None) -> JoinPlan:
    """How the frames are joined, with the names that :func:`tagframe.merge` gives to frames without one."""
    frames = [(frame, unnamed(1)), (other, unnamed(2))]
    if on is None:
        profiles = [_profile(one, name) for one, name in frames]
        plan = plan_joins(profiles, infer_key_pairs(profiles, across_sources=True), anchor=profiles[0].id)
    else:
        profiles = [_of_partition(make_meta(one), name) for one, name in frames]
        given = keys_on(on, [NamedTable.of(profile) for profile in profiles])
        plan = plan_joins(profiles, [], given=given, anchor=profiles[0].id)
    say_doubt(plan)
    return plan


def _profile(frame: Any, name: str) -> TableProfile:
    """A frame's profile, from the profiles of its partitions, which workers make."""
    parts = [dask.delayed(_of_partition)(part, name) for part in frame.to_delayed()]
    profiles: list[TableProfile] = list(dask.compute(*parts))
    rows = sum(profile.rows or 0 for profile in profiles)
    columns = tuple(_together(parts, rows) for parts in zip(*(profile.columns for profile in profiles), strict=True))
    return replace(profiles[0], rows=rows, columns=columns, estimated=True)


def _of_partition(frame: pd.DataFrame, name: str) -> TableProfile:
    columns = tuple(map(str, frame.columns))
    shape = TableShape(name, columns, tuple(str(dtype) for dtype in frame.dtypes))
    return profile_table(FRAMES_DATABASE, shape, [frame_chunk(frame)])


def _together(columns: Sequence[ColumnProfile], rows: int) -> ColumnProfile:
    """The profile of a column over all partitions. The smallest hashes overall are among the smallest of each."""
    filled = [column for column in columns if column.family != "empty"] or list(columns[:1])
    sketches = [column.sketch for column in columns if column.sketch is not None]
    hashes = np.unique(np.concatenate([sketch.hashes for sketch in sketches])) if sketches else np.empty(0, np.uint64)
    complete = all(sketch.complete for sketch in sketches) and len(hashes) <= SKETCH_SIZE
    nulls = sum(column.nulls or 0 for column in columns)
    least = max((column.distinct or 0 for column in columns), default=0)
    if complete:
        distinct = max(len(hashes), least)
    else:
        # The k-th smallest of n hashes is at about k/n of their range (Bar-Yossef et al. 2002).
        size = min(SKETCH_SIZE, len(hashes))
        distinct = round((size - 1) / (float(hashes[size - 1]) / 2.0**64))
        distinct = min(max(distinct, least), rows - nulls)
        if distinct > 0.97 * (rows - nulls):  # within three errors of an estimate from so many hashes
            distinct = rows - nulls
    families = {column.family for column in filled}
    family = filled[0].family if len(families) == 1 else "real" if families <= {"integer", "real"} else "text"
    order: Callable[[str], Any] = float if family in ("integer", "real") else str
    lows = [column.minimum for column in filled if column.minimum is not None]
    highs = [column.maximum for column in filled if column.maximum is not None]
    return replace(
        columns[0],
        family=family,
        rows=rows,
        nulls=nulls,
        distinct=distinct,
        minimum=min(lows, key=order, default=None),
        maximum=max(highs, key=order, default=None),
        samples=tuple(dict.fromkeys(sample for column in filled for sample in column.samples))[:SAMPLES],
        sketch=Sketch(hashes[:SKETCH_SIZE], complete),
    )


# --- the account ------------------------------------------------------------------------------------------------------

_reports: OrderedDict[str, Callable[[], MergeReport] | MergeReport] = OrderedDict()


def report_of(frame: Any) -> MergeReport:
    """What a merge did; it is counted when it is first read.

    Raises:
        FactUnknown: the frame is not a result of a merge.
    """
    report = _reports.get(tokenize(frame))
    if report is None:
        raise FactUnknown(
            "this frame has no merge_report: it is not a result of ddf.tag.merge; read it from that result"
        )
    if not isinstance(report, MergeReport):
        report = _reports[tokenize(frame)] = report()
    return report


def _counted(plan: JoinPlan, how: str, left: Any, right: Any, other: Any, result: Any) -> MergeReport:
    """Each number is an aggregate; all are computed at once.

    Args:
        plan: of one step.
        how: the kind of join.
        left, right: the keys of both sides, under one name; on the right without nulls.
        other: all rows of the right side.
        result: the joined rows.
    """
    started, (step,), keys = time.perf_counter(), plan.steps, list(left.columns)
    there = right.drop_duplicates().assign(**{_THERE: 1})
    used = left.dropna().drop_duplicates().assign(**{_THERE: 1})
    found = dask.compute(
        left.map_partitions(len, meta=(None, "int64")).sum(),
        left.merge(there, on=keys, how="left")[_THERE].count(),
        left.isna().any(axis=1).sum(),
        other.map_partitions(len, meta=(None, "int64")).sum(),
        right.merge(used, on=keys, how="left")[_THERE].count(),
        result.map_partitions(len, meta=(None, "int64")).sum(),
    )
    rows_in, matched, null_keys, rows_right, used_right, rows_out = map(int, found)
    alone = rows_in - matched
    pairs = rows_out - (alone if how == "left" else 0)
    report = StepReport(
        left=step.left,
        right=step.right,
        rows_in=rows_in,
        rows_out=rows_out,
        matched=matched,
        unmatched_left=alone,
        unmatched_right=rows_right - used_right,
        fan_out=pairs / matched if matched else 0.0,
        null_keys=null_keys,
        coerced=0,
        seconds=time.perf_counter() - started,
    )
    counts = RowCounts(rows_in, (report,), alone if how == "inner" else 0, 0)
    return MergeReport(plan, rows_out, counts, "dask")
