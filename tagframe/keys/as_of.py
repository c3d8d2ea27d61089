"""Rows as of a moment: the nearest one before or after it, or all rows whose interval contains it.

A left row is compared with the right rows that have the same keys. With one comparison, such as
``left.date >= right.date``, it matches the nearest of the rows that the comparison allows. In a tie it matches all rows
with that date, so the left row is repeated; a merge refuses this or warns. With two comparisons, such as
``left.date between right.start and right.end``, it matches all rows that they allow.

Moments are numbers, or dates and times, also as text in year-month-day order; time zones are converted to UTC. A
missing moment matches nothing; a missing end of an interval is open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tagframe.corpus.canonical import canonical_all
from tagframe.errors import InvalidArgument
from tagframe.keys.key_pair import Sign
from tagframe.keys.matching import Matches, Positions, hashable, key_codes

_LAST_IN_NANOSECONDS = np.datetime64("2262-01-01", "us")
_FIRST_IN_NANOSECONDS = np.datetime64("1678-01-01", "us")
_ZONE = "+00:00"


def match_as_of(
    left: Sequence[pd.Series], right: Sequence[pd.Series], signs: Sequence[Sign], names: Sequence[tuple[str, str]]
) -> Matches:
    """Match rows by equal keys and a moment.

    Args:
        left, right: the columns of both sides; all series of a side have one length.
        signs: how each left column is compared with its right one: one or two are not "=".
        names: the names of the columns, for messages.

    Raises:
        InvalidArgument: moments that cannot be compared.
    """
    equal = [at for at, sign in enumerate(signs) if sign == "="]
    others = [at for at, sign in enumerate(signs) if sign != "="]
    rows = len(left[0]), len(right[0])
    if equal:
        mine, theirs, nulls, coerced = key_codes([left[at] for at in equal], [right[at] for at in equal])
    else:
        mine, theirs = np.zeros(rows[0], dtype=np.int64), np.zeros(rows[1], dtype=np.int64)
        nulls, coerced = np.zeros(rows[0], dtype=bool), np.zeros(rows[0], dtype=bool)
    ranks, most = _ranked([*((left[at], names[at][0]) for at in others), *((right[at], names[at][1]) for at in others)])
    of_left, of_right = ranks[: len(others)], ranks[len(others) :]
    if len(others) == 1:
        nulls = nulls | (of_left[0] < 0)
        found = _nearest(mine, theirs, of_left[0], of_right[0], signs[others[0]], most)
    else:
        # Which of the two is the lower end: left >= right.
        lower, upper = (0, 1) if signs[others[0]][0] == ">" else (1, 0)
        strict = tuple(len(signs[others[at]]) == 1 for at in (lower, upper))
        ends = of_left[lower], of_right[lower], of_left[upper], of_right[upper]
        is_moment_left = left[others[0]] is left[others[1]] or names[others[0]][0] == names[others[1]][0]
        if is_moment_left:
            nulls = nulls | (ends[0] < 0)
            found = _within(mine, theirs, ends[0], ends[1], ends[3], strict, most)
        else:
            found = _holding(mine, theirs, ends[2], ends[0], ends[1], strict, most)
    starts, counts, partners = found
    return Matches(starts, counts, partners, nulls, coerced & (counts > 0))


_Found = tuple[Positions, Positions, Positions]


def _sorted(codes: Positions, ranks: Positions, width: int) -> tuple[Positions, Positions]:
    """The positions of rows with a code and a rank, sorted by both, and the two combined into one number."""
    usable = np.flatnonzero((codes >= 0) & (ranks >= 0))
    joint = codes[usable] * width + ranks[usable]
    order = np.argsort(joint, kind="stable")
    return usable[order], joint[order]


def _nearest(mine: Positions, theirs: Positions, at: Positions, of: Positions, sign: Sign, most: int) -> _Found:
    width = most + 1
    rows, joint = _sorted(theirs, of, width)
    known = np.unique(joint)
    there = np.flatnonzero((mine >= 0) & (at >= 0))
    there = there[np.argsort(at[there], kind="stable")]
    right = pd.DataFrame({"at": known % width, "code": known // width, "position": np.arange(len(known))})
    found = pd.merge_asof(
        pd.DataFrame({"at": at[there], "code": mine[there]}),
        right.sort_values("at", kind="stable"),
        on="at",
        by="code",
        direction="backward" if sign[0] == ">" else "forward",
        allow_exact_matches=len(sign) == 2,
    )["position"].to_numpy(dtype=np.float64, na_value=np.nan)
    matched = there[~np.isnan(found)]
    nearest = np.full(len(mine), -1, dtype=np.int64)
    nearest[matched] = known[found[~np.isnan(found)].astype(np.int64)]
    starts = np.searchsorted(joint, nearest, side="left")
    counts = np.where(nearest >= 0, np.searchsorted(joint, nearest, side="right") - starts, 0)
    return starts.astype(np.int64), counts.astype(np.int64), rows


def _holding(
    mine: Positions,
    theirs: Positions,
    start: Positions,
    end: Positions,
    of: Positions,
    strict: Sequence[bool],
    most: int,
) -> _Found:
    """The right rows whose moment lies in the left row's interval: ``end >= of >= start``."""
    width = most + 1
    rows, joint = _sorted(theirs, of, width)
    low, high = np.where(start < 0, 0, start), np.where(end < 0, most, end)
    first = np.searchsorted(joint, mine * width + low, side="right" if strict[1] else "left")
    last = np.searchsorted(joint, mine * width + high, side="left" if strict[0] else "right")
    first = np.where(start < 0, np.searchsorted(joint, mine * width, side="left"), first)
    last = np.where(end < 0, np.searchsorted(joint, mine * width + most, side="right"), last)
    counts = np.where(mine >= 0, np.maximum(last - first, 0), 0)
    return first.astype(np.int64), counts.astype(np.int64), rows


def _within(
    mine: Positions,
    theirs: Positions,
    at: Positions,
    start: Positions,
    end: Positions,
    strict: Sequence[bool],
    most: int,
) -> _Found:
    """The right rows whose interval contains the left row's moment: ``start <= at <= end``."""
    # For each interval, the moments in it; then the same pairs by their moments.
    first, inside, rows = _holding(theirs, mine, start, end, at, strict[::-1], most)
    rights = np.repeat(np.arange(len(theirs)), inside)
    lefts = rows[np.repeat(first - np.cumsum(inside) + inside, inside) + np.arange(len(rights))]
    counts = np.bincount(lefts, minlength=len(mine)).astype(np.int64)
    return np.cumsum(counts) - counts, counts, rights[np.lexsort((rights, lefts))]


# --- moments as ranks -------------------------------------------------------------------------------------------------


def _ranked(columns: Sequence[tuple[pd.Series, str]]) -> tuple[list[Positions], int]:
    """Each column's moments as ranks among the moments of all columns, -1 if missing; and the highest rank."""
    read = [_moments(column, name) for column, name in columns]
    kinds = {kind: name for (_, kind), (_, name) in zip(read, columns, strict=True) if kind}
    if len(kinds) > 1:
        kinds_named = " and ".join(f"{name} has {kind}" for kind, name in kinds.items())
        raise InvalidArgument(f"moments must be of the same kind; {kinds_named}")
    values = [_comparable([values for values, _ in read], one) for one, _ in read]
    known = [~np.asarray(pd.isna(one), dtype=bool) for one in values]
    filled = [one[there] for one, there in zip(values, known, strict=True) if there.any()]
    every = np.unique(np.concatenate(filled)) if filled else np.zeros(0)
    ranks = []
    for one, there in zip(values, known, strict=True):
        found = np.full(len(one), -1, dtype=np.int64)
        found[there] = np.searchsorted(every, one[there])
        ranks.append(found)
    return ranks, len(every)


def _comparable(every: Sequence[npt.NDArray[Any]], values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The values in a common unit: nanoseconds if all values fit."""
    if values.dtype.kind != "M":
        return values
    days = [one[~np.isnat(one)].astype("datetime64[us]") for one in every if one.dtype.kind == "M"]
    fits = all(not len(one) or (one.min() > _FIRST_IN_NANOSECONDS and one.max() < _LAST_IN_NANOSECONDS) for one in days)
    return values.astype("datetime64[ns]" if fits else "datetime64[us]")


def _moments(column: pd.Series, name: str) -> tuple[npt.NDArray[Any], str]:
    """The values as numbers or moments, and their kind; "" if there are none."""
    dtype: Any = column.dtype
    if isinstance(dtype, pd.DatetimeTZDtype):
        return column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(), "times with a zone"
    if isinstance(dtype, np.dtype) and dtype.kind == "M":
        return column.to_numpy(), "times without a zone"
    if isinstance(dtype, np.dtype) and dtype.kind in "iuf":
        return column.to_numpy(), "numbers"
    codes, values = pd.factorize(hashable(column))
    forms, families = canonical_all(list(values))
    odd = next((value for value, family in zip(values, families, strict=True)
                if family not in ("date", "integer", "real", "empty")), None)  # fmt: skip
    if odd is not None:
        raise InvalidArgument(
            f"{name} is compared as a moment, but has values that are neither a number nor a date in year-month-day "
            "order: convert it with pandas.to_datetime first"
        )
    kinds = {family for family in families if family != "empty"}
    if not kinds:
        return np.full(len(column), np.nan), ""
    if "date" not in kinds:
        whole = kinds == {"integer"} and None not in forms
        numbers = np.array([np.nan if form is None else int(form) if whole else float(form) for form in forms])
        return _taken(numbers, codes, np.nan), "numbers"
    if len(kinds) > 1:
        raise InvalidArgument(f"{name} is compared as a moment, but has both numbers and dates")
    zoned = {form.endswith(_ZONE) for form in forms if form is not None}
    if len(zoned) > 1:
        raise InvalidArgument(f"{name} is compared as a moment, but has times with a zone and times without one")
    texts = ["NaT" if form is None else form.removesuffix(_ZONE) for form in forms]
    kind = "times with a zone" if zoned == {True} else "times without a zone"
    return _taken(np.array(texts, dtype="datetime64[us]"), codes, np.datetime64("NaT")), kind


def _taken(values: npt.NDArray[Any], codes: npt.NDArray[np.int64], missing: Any) -> npt.NDArray[Any]:
    """The values of codes; -1 is missing."""
    if values.dtype.kind in "iu" and (codes < 0).any():
        values = values.astype(np.float64)
    ends = values if values.dtype.kind in "iu" else np.append(values, np.array([missing], dtype=values.dtype))
    return ends[codes]
