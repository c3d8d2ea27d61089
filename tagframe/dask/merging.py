"""Merges of Dask's frames on inferred keys, and their reports, computed from aggregates."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import dask
import numpy as np
import pandas as pd
from dask.base import tokenize
from dask.dataframe.dispatch import make_meta

from tagframe.corpus.profile import ColumnProfile, Sketch, TableProfile
from tagframe.corpus.profiler import SAMPLES, SKETCH_SIZE, profile_table
from tagframe.display import Displayable
from tagframe.engines.base import TableShape, frame_chunk
from tagframe.errors import ColumnNotFound, FactUnknown, FanOut, InvalidArgument, NotConnected, did_you_mean
from tagframe.keys import infer_key_pairs

_EXAMPLES = 1_000
_THERE = "__tagframe_there__"
_MAX_REPORTS = 256


@dataclass(frozen=True, repr=False)
class DaskMergeReport(Displayable):
    """What a merge of two frames in partitions did, from aggregates over them.

    Attributes:
        left, right: the key columns of each side.
        chance: the probability that they are a key, if they were inferred; None if they were given.
        rows_in: rows of the left frame.
        matched: left rows with a partner.
        unmatched_left: left rows without a partner, ``null_keys`` included.
        unmatched_right: rows of the right frame without a partner.
        null_keys: left rows whose key is null; they never match.
        rows_out: rows of the result.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    chance: float | None
    rows_in: int
    matched: int
    unmatched_left: int
    unmatched_right: int
    null_keys: int
    rows_out: int

    def __str__(self) -> str:
        keys = f"{', '.join(self.left)} = {', '.join(self.right)}"
        return (
            f"{keys}: {self.matched:,} of {self.rows_in:,} rows match; {self.unmatched_left:,} do not "
            f"({self.null_keys:,} with a null key); {self.unmatched_right:,} rows of the other frame stay unused; "
            f"{self.rows_out:,} rows out."
        )


def merge(
    frame: Any,
    other: Any,
    *,
    on: str | Sequence[str] | None = None,
    how: Literal["inner", "left"] = "inner",
    on_fanout: Literal["raise", "allow"] = "raise",
) -> Any:
    """Join the rows of a frame with those of another.

    Unless ``on`` gives the key, it is inferred in one pass over both frames, which runs at once: workers profile the
    partitions. Repeated keys of the other frame are also counted at once. The result itself is lazy.

    Args:
        frame: its rows are kept as they are, each once.
        other: the frame to add; it may be a pandas frame.
        on: the key: ``"buyer = id"``, the name of a column of both frames, or a list of these.
        how: "left" keeps rows without a partner.
        on_fanout: "raise" refuses a merge that would repeat rows of ``frame``.

    Returns:
        A lazy frame. Null keys never match. A column of both frames that is not a key gets the suffix ``_right``;
        ``.tag.merge_report`` accounts for the rows.

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
    chance = None
    if on is None:
        left_on, right_on, chance = _inferred(frame, right)
    else:
        left_on, right_on = _given(on, frame, right)
    pairs = list(zip(left_on, right_on, strict=True))
    mine_meta, their_meta = make_meta(frame), make_meta(right)
    for mine, theirs in pairs:
        if _kind(mine_meta[mine]) != _kind(their_meta[theirs]):
            raise InvalidArgument(
                f"{mine!r} is {mine_meta[mine].dtype} and {theirs!r} is {their_meta[theirs].dtype}: convert them to "
                "one type first, as with ddf.astype"
            )
    whole = [pair for pair in pairs if _is_integer(mine_meta[pair[0]]) and _is_integer(their_meta[pair[1]])]
    keyed = right.dropna(subset=right_on)  # in pandas null keys are equal
    keyed = keyed.astype({theirs: mine_meta[mine].dtype for mine, theirs in whole})
    repeated = keyed.groupby(right_on).size()
    repeated = repeated[repeated > 1].compute()
    if len(repeated) and on_fanout == "raise":
        rows = repeated.head(_EXAMPLES).rename("rows").reset_index()
        raise FanOut(
            f"{len(repeated):,} keys of the other frame ({', '.join(right_on)}) repeat, {int(repeated.max()):,} times "
            "at most, and would repeat rows. The first of them are on this error as .rows. Pass on_fanout='allow' if "
            "the repetition is meant, or aggregate the other frame to one row a key first",
            rows,
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of unlike dtypes, 1 and 1.0
        result = frame.merge(keyed, left_on=left_on, right_on=right_on, how=how, suffixes=("", "_right"))
    twice = [theirs for mine, theirs in pairs if mine != theirs]
    gone = [theirs if theirs not in frame.columns else f"{theirs}_right" for theirs in twice]
    if gone:
        result = result.drop(columns=gone)
    _reports[tokenize(result)] = lambda: _counted(frame, right, left_on, right_on, chance, result)
    while len(_reports) > _MAX_REPORTS:
        _reports.popitem(last=False)
    return result


def _given(on: str | Sequence[str], frame: Any, other: Any) -> tuple[list[str], list[str]]:
    left_on, right_on = [], []
    for name in [on] if isinstance(on, str) else list(on):
        mine, equals, theirs = (part.strip() for part in str(name).partition("="))
        left_on.append(mine)
        right_on.append(theirs if equals else mine)
    for names, columns in ((left_on, frame.columns), (right_on, other.columns)):
        for name in names:
            if name not in columns:
                raise ColumnNotFound(f"no column {name!r} in {did_you_mean(name, columns)}")
    return left_on, right_on


def _is_integer(column: pd.Series) -> bool:
    return pd.api.types.is_integer_dtype(column.dtype)


def _kind(column: pd.Series) -> str:
    dtype: Any = column.dtype
    if pd.api.types.is_bool_dtype(dtype):
        return "boolean"
    if pd.api.types.is_numeric_dtype(dtype):
        return "number"
    return "text" if pd.api.types.is_string_dtype(dtype) else str(dtype)


# --- which keys -------------------------------------------------------------------------------------------------------


def _inferred(frame: Any, other: Any) -> tuple[list[str], list[str], float]:
    left, right = _profile(frame, "left"), _profile(other, "right")
    pair = next(iter(infer_key_pairs([left, right], across_sources=True)), None)
    if pair is None:
        raise NotConnected(
            f"no columns look like a key of both frames: {list(frame.columns)} and {list(other.columns)}; give the key "
            "with on='mine = theirs'"
        )
    mine, theirs = list(pair.left_columns), list(pair.right_columns)
    return (theirs, mine, pair.score) if pair.left_table == right.id else (mine, theirs, pair.score)


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
    return profile_table("dask", shape, [frame_chunk(frame)])


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

_reports: OrderedDict[str, Callable[[], DaskMergeReport] | DaskMergeReport] = OrderedDict()


def report_of(frame: Any) -> DaskMergeReport:
    """What a merge did; it is counted when it is first read.

    Raises:
        FactUnknown: the frame is not a result of a merge.
    """
    report = _reports.get(tokenize(frame))
    if report is None:
        raise FactUnknown(
            "this frame has no merge_report: it is not a result of ddf.tag.merge; read it from that result"
        )
    if not isinstance(report, DaskMergeReport):
        report = _reports[tokenize(frame)] = report()
    return report


def _counted(
    frame: Any, other: Any, left_on: list[str], right_on: list[str], chance: float | None, result: Any
) -> DaskMergeReport:
    """Each number is an aggregate; all are computed at once."""
    names = [f"k{number}" for number in range(len(left_on))]
    left = frame[left_on].rename(columns=dict(zip(left_on, names, strict=True)))
    right = other[right_on].rename(columns=dict(zip(right_on, names, strict=True)))
    integers = {k: make_meta(left)[k].dtype for k in names if _is_integer(make_meta(left)[k])}
    right = right.dropna().astype({k: dtype for k, dtype in integers.items() if _is_integer(make_meta(right)[k])})
    there = right.drop_duplicates().assign(**{_THERE: 1})
    used = left.dropna().drop_duplicates().assign(**{_THERE: 1})
    matched, null_keys, rows_in, rows_right, used_right, rows_out = dask.compute(
        left.merge(there, on=names, how="left")[_THERE].count(),
        left.isna().any(axis=1).sum(),
        frame.map_partitions(len, meta=(None, "int64")).sum(),
        other.map_partitions(len, meta=(None, "int64")).sum(),
        right.merge(used, on=names, how="left")[_THERE].count(),
        result.map_partitions(len, meta=(None, "int64")).sum(),
    )
    return DaskMergeReport(
        left=tuple(left_on),
        right=tuple(right_on),
        chance=chance,
        rows_in=int(rows_in),
        matched=int(matched),
        unmatched_left=int(rows_in) - int(matched),
        unmatched_right=int(rows_right) - int(used_right),
        null_keys=int(null_keys),
        rows_out=int(rows_out),
    )
