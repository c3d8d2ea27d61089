"""Which rows of two tables have equal keys.

Keys of one type are compared as they are. If the types differ, or text has no partner, the canonical forms of the
*distinct* keys are compared (:mod:`tagframe.corpus.canonical`: "007" is 7, " Prague" is "prague"), on copies. Text is
read as a number in four cases only: the other column has numbers, both columns have only digits (but for words such as
"N/A"), both have only decimals and one of them always has the same number of decimal places, or the numbers among the
texts of one column are filled up with zeros and those of the other are not. So a version "1.10" is not "1.1", an
account "007" is "0007", and a price "1.50" is "1.5". Nulls never match.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tagframe.corpus.canonical import canonical_all, plain
from tagframe.engines.cells import NULL_WORDS

Positions = npt.NDArray[np.int64]
Counts = npt.NDArray[np.signedinteger[Any]]

_SAME_AS_THEY_ARE = {"number", "boolean", "date", "moment", *(f"object:{kind}" for kind in (
    "decimal", "date", "datetime", "integer", "floating", "mixed-integer-float", "boolean"))}  # fmt: skip
"""Kinds whose equal values are equal as they are, so that a match needs no coercion."""

_DENSE = 4
"""Integer keys are looked up in an array if it has at most this many positions per key."""


@dataclass(frozen=True)
class Matches:
    """The partners of every left row.

    Attributes:
        starts, counts: shape (left rows,): the partners of row i are ``partners[starts[i]:starts[i] + counts[i]]``.
        partners: right rows, grouped by key, each group in row order. None if no key repeats on the right: then the
            partner of row i is ``starts[i]`` itself.
        nulls: left rows whose key is null.
        coerced: left rows that match only in canonical form, one side of them text.
    """

    starts: Positions
    counts: Counts
    partners: Positions | None
    nulls: npt.NDArray[np.bool_]
    coerced: npt.NDArray[np.bool_]


def match_rows(left: list[pd.Series], right: list[pd.Series]) -> Matches:
    """Match rows on one or several key columns; all series of a side have one length."""
    if len(left) == 1:
        fast = _match_integers(left[0], right[0])
        if fast is not None:
            return fast
    left_codes, right_codes, nulls, coerced = key_codes(left, right)
    matches = _grouped(left_codes, right_codes, nulls)
    return Matches(matches.starts, matches.counts, matches.partners, nulls, coerced & (matches.counts > 0))


def key_codes(
    left: list[pd.Series], right: list[pd.Series]
) -> tuple[Positions, Positions, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Codes of left and right rows, equal if all keys are, -1 without a match; left rows with nulls; coerced ones."""
    left_codes, right_codes, coerced = _codes(left[0], right[0])
    for mine, theirs in zip(left[1:], right[1:], strict=True):
        more_left, more_right, more_coerced = _codes(mine, theirs)
        left_codes, right_codes = _combined(left_codes, right_codes, more_left, more_right)
        coerced |= more_coerced
    nulls = np.zeros(len(left_codes), dtype=bool)
    for mine in left:
        nulls |= mine.isna().to_numpy()
    return left_codes, right_codes, nulls, coerced


def _grouped(left_codes: Positions, right_codes: Positions, nulls: npt.NDArray[np.bool_]) -> Matches:
    """Rows with the same code match; a code of -1 matches nothing."""
    size = int(max(left_codes.max(initial=-1), right_codes.max(initial=-1))) + 1
    coerced = np.zeros(len(left_codes), dtype=bool)
    matchable = np.flatnonzero(right_codes >= 0)
    # Code -1 reads the position added at the end, which has no rows.
    row_of = np.full(size + 1, -1, dtype=np.int64)
    row_of[right_codes[matchable]] = matchable
    if np.count_nonzero(row_of >= 0) == len(matchable):
        starts = row_of[left_codes]
        return Matches(starts, (starts >= 0).view(np.int8), None, nulls, coerced)
    order = np.argsort(right_codes[matchable], kind="stable")
    counts_of = np.bincount(right_codes[matchable], minlength=size + 1).astype(np.int64)
    starts_of = np.concatenate([[0], np.cumsum(counts_of)[:-1]]).astype(np.int64)
    return Matches(starts_of[left_codes], counts_of[left_codes], matchable[order], nulls, coerced)


def _match_integers(left: pd.Series, right: pd.Series) -> Matches | None:
    """Match plain integer keys in a dense range: one look-up per row, no hashing."""
    if not (_is_plain_integer(left) and _is_plain_integer(right)) or not len(right) or not len(left):
        return None
    mine, theirs = left.to_numpy(), right.to_numpy()
    low, high = int(theirs.min()), int(theirs.max())
    if high - low + 1 > _DENSE * (len(theirs) + len(mine)):
        return None
    right_codes = theirs.astype(np.int64) - low
    left_codes = mine.astype(np.int64) - low
    if int(mine.min()) < low or int(mine.max()) > high:
        left_codes = np.where((mine >= low) & (mine <= high), left_codes, -1)
    return _grouped(left_codes, right_codes, np.zeros(len(left), dtype=bool))


def _is_plain_integer(series: pd.Series) -> bool:
    return isinstance(series.dtype, np.dtype) and series.dtype.kind == "i"


def _kind(series: pd.Series) -> str:
    """The kind of a key column's values; equal kinds are compared as they are."""
    dtype: Any = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    if pd.api.types.is_bool_dtype(dtype):
        return "boolean"
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return "number"
    if isinstance(dtype, pd.DatetimeTZDtype):
        return "moment"
    if pd.api.types.is_datetime64_dtype(dtype):
        return "date"
    is_category = isinstance(series.dtype, pd.CategoricalDtype)
    inferred = pd.api.types.infer_dtype(series.cat.categories if is_category else series, skipna=True)
    return "text" if inferred in ("string", "empty") else f"object:{inferred}"


def hashable(series: pd.Series) -> pd.Series:
    """Cells that cannot be hashed (lists, dictionaries) as their text; a category as its values."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        return series.astype(series.dtype.categories.dtype if series.dtype.categories.dtype != object else object)
    if isinstance(series.dtype, pd.ArrowDtype) and series.dtype.type in (list, dict):
        series = series.astype(object)
    if series.dtype == object and pd.api.types.infer_dtype(series, skipna=True) != "string":
        return series.map(lambda cell: cell if cell.__hash__ is not None else str(cell))
    return series


def is_copy(frame: pd.DataFrame) -> pd.Series:
    """For each row, whether a row before it has the same cells."""
    return frame.apply(hashable).duplicated() if frame.shape[1] else pd.Series(False, index=frame.index)


def copies_in(frame: pd.DataFrame, keys: Sequence[str]) -> int:
    """The number of rows that are exact copies of others, if no key would repeat without them; else 0."""
    copied = is_copy(frame)
    return 0 if is_copy(frame.loc[~copied, list(keys)].dropna()).any() else int(copied.sum())


def _factorized(series: pd.Series) -> tuple[Positions, pd.Index]:
    codes, uniques = pd.factorize(hashable(series), use_na_sentinel=True)
    return codes.astype(np.int64, copy=False), pd.Index(uniques)


def _codes(left: pd.Series, right: pd.Series) -> tuple[Positions, Positions, npt.NDArray[np.bool_]]:
    """Codes that are equal if keys are, -1 for nulls and for left keys without a partner; coerced left rows."""
    left_codes, left_keys = _factorized(left)
    right_codes, right_keys = _factorized(right)
    kinds = _kind(left), _kind(right)
    if kinds == ("number", "number"):
        partner = _equal_numbers(left_keys, right_keys)
    elif kinds[0] == kinds[1]:
        partner = right_keys.get_indexer(left_keys).astype(np.int64)
    else:
        partner = np.full(len(left_keys), -1, dtype=np.int64)
    coerced_keys = np.zeros(len(left_keys), dtype=bool)
    alone = np.flatnonzero(partner < 0)
    if len(alone) and (kinds[0] != kinds[1] or kinds[0] not in ("number", "boolean", "date", "moment")):
        if kinds == ("text", "text"):
            canonical_keys = _canonical_texts(left_keys[alone], left_keys, right_keys)
        else:
            canonical_keys = _canonical_keys(left_keys[alone]), _canonical_keys(right_keys)
        found, right_codes = _canonical_partners(*canonical_keys, right_codes, merge=kinds[0] != kinds[1])
        partner[alone] = found
        coerced_keys[alone] = (found >= 0) & (not set(kinds) <= _SAME_AS_THEY_ARE)
    # Code -1 reads the position added at the end.
    return (
        np.append(partner, -1)[left_codes],
        right_codes,
        np.append(coerced_keys, False)[left_codes],
    )


def _equal_numbers(left: pd.Index, right: pd.Index) -> Positions:
    """The position of each left number among the right ones, -1 for none; integers are not converted to floats."""
    mine, theirs = _plain_numbers(left), _plain_numbers(right)
    kinds = {mine.dtype.kind, theirs.dtype.kind}
    if "f" in kinds and kinds & {"i", "u"}:
        mine, theirs = (_whole(one) if one.dtype.kind == "f" else one for one in (mine, theirs))
    return np.asarray(pd.Index(theirs).get_indexer(pd.Index(mine)), dtype=np.int64)


def _plain_numbers(keys: pd.Index) -> npt.NDArray[Any]:
    numbers: npt.NDArray[Any] = keys.to_numpy(dtype=getattr(keys.dtype, "numpy_dtype", None))
    return numbers


def _whole(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Whole floats as integers; other numbers unchanged."""
    if (numbers == np.trunc(numbers)).all() and (np.abs(numbers) < 2**63).all():
        return numbers.astype(np.int64)
    return np.array([int(x) if x.is_integer() else x for x in numbers.tolist()], dtype=object)


def _canonical_keys(keys: pd.Index) -> list[str | None]:
    return canonical_all(keys.tolist())[0]


def _canonical_texts(alone: pd.Index, left: pd.Index, right: pd.Index) -> tuple[list[str | None], list[str | None]]:
    """The canonical texts of ``alone`` and of ``right``: as numbers only if all of both columns are digits.

    If several of ``right`` have one ("MN" and "Mn"), the text without surrounding spaces takes its place.
    """
    as_numbers = all(map(_are_digits, (left, right))) or _are_decimals(left, right) or _are_filled_up(left, right)
    mine, theirs = (_read_as_text(keys, as_numbers) for keys in (alone, right))
    often = Counter(theirs)
    clear = ([text.strip() if often[form] > 1 else form for text, form in zip(keys, forms, strict=True)]
             for keys, forms in ((alone, mine), (right, theirs)))  # fmt: skip
    return next(clear), next(clear)


def _read_as_text(keys: pd.Index, as_numbers: bool) -> list[str | None]:
    texts: list[str] = keys.tolist()
    forms, families = canonical_all(texts)
    return [
        plain(text.strip())[0] if family in ("integer", "real") and not as_numbers else form
        for text, form, family in zip(texts, forms, families, strict=True)
    ]


_WHOLE_NUMBER = re.compile(r"\s*[+-]?\d+(?:\.0+)?\s*", re.ASCII)
_MISSING = {*map(str.casefold, NULL_WORDS), "-", "--", "?", "\\n", "(null)", "nil", "missing", "unknown"}
"""Words that stand for a missing value in columns of text, in lower case."""


def _are_digits(texts: pd.Index) -> bool:
    return all(_WHOLE_NUMBER.fullmatch(text) for text in texts.tolist() if text.strip().casefold() not in _MISSING)


_DECIMAL = re.compile(r"\s*[+-]?\d*\.?(\d*)\s*", re.ASCII)


def _are_decimals(left: pd.Index, right: pd.Index) -> bool:
    """Whether all are decimals, and one side always has the same number of decimal places, while the other side has
    either that number or no trailing zeros."""
    kinds = []
    for keys in (left, right):
        texts = [text for text in keys.tolist() if text.strip()]
        matches = [_DECIMAL.fullmatch(text) for text in texts]
        decimals = [one[1] for one in matches if one is not None]
        if len(decimals) < len(texts) or not texts:
            return False
        is_padded = len({*map(len, decimals)}) == 1 and decimals[0] != ""
        kinds.append("padded" if is_padded else "" if any(one.endswith("0") for one in decimals) else "plain")
    return "padded" in kinds and "" not in kinds


def _are_filled_up(left: pd.Index, right: pd.Index) -> bool:
    """Whether the numbers among the texts of one side are filled up with zeros to one length, and the other side's are
    not: departments are "01" to "95", "2A" and "971", or "1" to "95", "2A" and "971"."""
    kinds = []
    for keys in (left, right):
        numbers = [text for text in map(str.strip, keys.tolist()) if text.isdecimal()]
        lengths = {len(text) for text in numbers if text.startswith("0") and len(text) > 1}
        is_clear = len(lengths) < 2 and min(map(len, numbers), default=0) >= max(lengths, default=0)
        kinds.append("filled" if lengths and is_clear else "plain" if numbers and not lengths else "")
    return sorted(kinds) == ["filled", "plain"]


def _canonical_partners(
    mine: list[str | None], theirs: list[str | None], right_codes: Positions, *, merge: bool
) -> tuple[Positions, Positions]:
    """The right code of each left key by canonical form, and the right codes.

    Two right keys may have the same canonical form ("AB" and "ab"). Between columns of different types they are then
    one key (``merge``). Between columns of text, a left key that equals neither has no partner: it is unclear which is
    meant.
    """
    first: dict[str, int] = {}
    for code, text in enumerate(theirs):
        if text is not None:
            first.setdefault(text, code)
    if merge:
        to = np.array([-1 if text is None else first[text] for text in theirs] + [-1], dtype=np.int64)
        right_codes = to[right_codes]
    else:
        often = Counter(theirs)
        first = {text: code for text, code in first.items() if often[text] == 1}
    partners = [-1 if text is None else first.get(text, -1) for text in mine]
    return np.array(partners, dtype=np.int64), right_codes


def _combined(
    left: Positions, right: Positions, more_left: Positions, more_right: Positions
) -> tuple[Positions, Positions]:
    """Codes of pairs of codes; -1 if either is -1."""
    width = int(max(more_left.max(initial=0), more_right.max(initial=0))) + 1
    joint = np.concatenate([left * width + more_left, right * width + more_right])
    joint[np.concatenate([(left < 0) | (more_left < 0), (right < 0) | (more_right < 0)])] = -1
    codes, uniques = pd.factorize(joint)
    missing = np.flatnonzero(uniques == -1)
    if len(missing):
        codes = np.where(codes == missing[0], -1, codes)
    return codes[: len(left)].astype(np.int64), codes[len(left) :].astype(np.int64)
