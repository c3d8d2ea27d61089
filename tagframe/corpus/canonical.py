"""One text form for values with the same meaning, and its hash.

Two columns can be joined if their values *mean* the same: 7, 7.0, "7" and "007" do, "Prague" and " prague" do. The
canonical form is that meaning as text:

* **numbers** and numeric text: plain decimals without a plus sign, leading or trailing zeros ("-0.50" is "-0.5",
  1e3 is "1000"). Text in exponent form stays text: "12E4" is more often a code than a number.
* **dates**: ISO 8601, with the time only if it is not midnight, in UTC if a zone is given. Text counts as a date only
  in year-month-day order; "3/4/2010" has two meanings and stays text.
* **booleans** and the words true and false: "true", "false".
* **text**: trimmed, Unicode-normalised (NFC), case-folded.
* **bytes**: "0x" and their hexadecimal digits, or those of their SHA-256 where there are more than 64 bytes.
* **nulls**: None, NaN, NaT, NA and blank text have no canonical form.
"""

from __future__ import annotations

import datetime as dt
import decimal
import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tagframe.corpus.profile import TypeFamily

Canonical = tuple[str | None, TypeFamily]
"""The canonical text of a value (None for a null) and the family of the value ("empty" for a null)."""

_NULL: Canonical = (None, "empty")
_NUMBER = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?\Z")
_NUMBER_START = frozenset("+-.0123456789")
_MORE_THAN_TEXT = _NUMBER_START | frozenset(("", "t", "f", "T", "F"))
_LONGEST_NUMBER = 60
_ISO_DATE = re.compile(
    r"([0-9]{4})([-/])([0-9]{1,2})\2([0-9]{1,2})"
    r"(?:[T ]([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6})0*)?)?\s?(Z|[+-][0-9]{2}:?[0-9]{2})?)?\Z"
)
_LONGEST_BYTES = 64
_SHORT = 5
"""The digests of texts that are shorter than this are remembered."""
_md5 = partial(hashlib.md5, usedforsecurity=False)


def canonical(value: Any) -> Canonical:
    """The canonical text and the family of one value; see the module's text for the rules.

    >>> [canonical(value)[0] for value in (7, 7.0, "007", " 7.00 ")]
    ['7', '7', '7', '7']
    >>> canonical("2020/3/1 00:00:00")
    ('2020-03-01', 'date')
    >>> canonical("  ")
    (None, 'empty')
    """
    form = _FORMS.get(type(value))
    return form(value) if form is not None else _other(value)


def canonical_all(values: Sequence[Any] | npt.NDArray[Any]) -> tuple[list[str | None], list[TypeFamily]]:
    """:func:`canonical` of every value, as two lists of the length of ``values``."""
    if isinstance(values, np.ndarray):
        return _all_of_array(values)
    # Nearly all columns have one type; they take a third of the time of value by value.
    kinds = set(map(type, values))
    if kinds == {int} and max(map(abs, values)) < 2**63:
        return list(map(str, values)), ["integer"] * len(values)
    if kinds == {str}:
        return _all_texts(values)
    form = _FORMS.get(kinds.pop(), canonical) if len(kinds) == 1 else canonical
    forms = list(map(form, values))
    return [text for text, _ in forms], [family for _, family in forms]


def _all_of_array(values: npt.NDArray[Any]) -> tuple[list[str | None], list[TypeFamily]]:
    """Numbers and moments of a numpy array, without a Python object for each."""
    if values.dtype.kind in "iu":
        return list(map(str, values.tolist())), ["integer"] * len(values)
    if values.dtype == np.float64:
        numbers: list[float] = values.tolist()
        texts: list[str | None] = list(map(float.__repr__, numbers))
        families: list[TypeFamily] = ["real"] * len(numbers)
        sizes = np.abs(values)
        # Between these limits Python writes a float without an exponent.
        is_plain = (sizes >= 1e-4) & (sizes < 1e15) & (values != np.trunc(values))
        for index in np.flatnonzero(~is_plain).tolist():
            texts[index], families[index] = _of_float(numbers[index])
        return texts, families
    if values.dtype.kind == "M":
        seconds = values.astype("datetime64[s]")
        years = seconds.astype("datetime64[Y]").astype(np.int64) + 1970
        if (seconds == values).all() and ((years >= 1) & (years <= 9999)).all():
            moments: list[str] = np.datetime_as_string(seconds).tolist()
            return [moment.removesuffix("T00:00:00") for moment in moments], ["date"] * len(values)
        return canonical_all(pd.Series(values).tolist())
    # A narrow float keeps its type: as a wide Python float, 0.1 would become 0.10000000149011612.
    is_narrow = values.dtype.kind == "f" and values.dtype.itemsize < 8
    return canonical_all(list(values) if is_narrow else values.tolist())


def _all_texts(values: Sequence[str]) -> tuple[list[str | None], list[TypeFamily]]:
    trimmed = list(map(str.strip, values))
    families: list[TypeFamily] = ["text"] * len(trimmed)
    if all(map(str.isascii, trimmed)):
        texts: list[str | None] = list(map(str.lower, trimmed))
    else:
        texts = [plain(text)[0] for text in trimmed]
    for index, text in enumerate(trimmed):
        if text[:1] in _MORE_THAN_TEXT:
            texts[index], families[index] = _of_text(text)
    return texts, families


def hash_texts(texts: Iterable[str]) -> npt.NDArray[np.uint64]:
    """The hashes of canonical texts: shape (n,), uint64.

    The first eight bytes of the MD5 of the text in UTF-8, the most significant first: the same in every process, on
    every platform, and in databases that have MD5, as ``('x' || substr(md5(text), 1, 16))::bit(64)`` in PostgreSQL.
    """
    texts = list(texts)
    try:
        digests = b"".join(
            [_short_digest(text) if len(text) < _SHORT else _md5(text.encode()).digest()[:8] for text in texts]
        )
    except UnicodeEncodeError:
        # Text read with "surrogateescape" may have lone surrogates, which UTF-8 cannot encode.
        digests = b"".join([_md5(text.encode("utf-8", "replace")).digest()[:8] for text in texts])
    return np.frombuffer(digests, dtype=">u8").astype(np.uint64)


@lru_cache(maxsize=65536)
def _short_digest(text: str) -> bytes:
    """The digest of a short text: ids from 1 on and codes are in many columns."""
    return _md5(text.encode()).digest()[:8]


def _of_text(value: str) -> Canonical:
    text = value.strip()
    if not text:
        return _NULL
    form = None
    if text[0] in _NUMBER_START and len(text) <= _LONGEST_NUMBER:
        form = _of_date_text(text) if text[4:5] in ("-", "/") else _of_digits(text)
    return form or plain(text)


def plain(text: str) -> Canonical:
    """The canonical form of trimmed text as text, without reading it as a number or a date."""
    if text.isascii():
        text = text.lower()
        return text, "boolean" if text in ("true", "false") else "text"
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold()), "text"


def _of_digits(text: str) -> Canonical | None:
    match = _NUMBER.match(text)
    if match is None:
        return None
    sign, whole, fraction = match.groups()
    if not whole and not fraction:
        return None
    whole = whole.lstrip("0") or "0"
    fraction = (fraction or "").rstrip("0")
    number = f"{whole}.{fraction}" if fraction else whole
    if sign == "-" and number != "0":
        number = "-" + number
    return number, "real" if fraction else "integer"


def _of_date_text(text: str) -> Canonical | None:
    if len(text) == 19 and text[4] == text[7] == "-" and text[10] in "T ":  # by far the most frequent form
        try:
            dt.datetime.fromisoformat(text)
        except ValueError:
            return None
        return (text[:10] if text.endswith("00:00:00") else f"{text[:10]}T{text[11:]}"), "date"
    match = _ISO_DATE.match(text)
    if match is None:
        return None
    year, _, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        moment = dt.datetime(
            int(year),
            int(month),
            int(day),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            int((fraction or "0").ljust(6, "0")),
        )
        if zone:
            offset = "+00:00" if zone == "Z" else zone
            moment = moment.replace(tzinfo=dt.datetime.strptime(offset, "%z").tzinfo)
        return _of_datetime(moment)
    except (ValueError, OverflowError):
        return None


def _of_datetime(value: dt.datetime) -> Canonical:
    if value.tzinfo is not None:
        return value.astimezone(dt.UTC).isoformat(), "date"
    if value.time() == dt.time() and not getattr(value, "nanosecond", 0):
        return value.date().isoformat(), "date"
    return value.isoformat(), "date"


def _of_int(value: int) -> Canonical:
    # Python refuses to write numbers of thousands of digits in decimal; no database has such numbers.
    return (str(value), "integer") if value.bit_length() <= 1024 else (hex(value), "text")


def _of_float(value: float) -> Canonical:
    text = float.__repr__(value)  # numpy's own floats, which are floats too, write "np.float64(0.1)"
    if text.endswith(".0"):
        return (text[:-2] if value else "0"), "integer"
    if "e" in text:
        if value.is_integer():
            return str(int(value)), "integer"
        return np.format_float_positional(value, trim="-"), "real"
    return (text, "real") if value == value else _NULL


def _of_decimal(value: decimal.Decimal) -> Canonical:
    if value.is_nan():
        return _NULL
    if value.is_infinite() or abs(value.adjusted()) > _LONGEST_NUMBER:
        return _of_float(float(value))
    return _of_digits(format(value, "f")) or _NULL


def _of_bytes(value: bytes) -> Canonical:
    digits = value.hex() if len(value) <= _LONGEST_BYTES else hashlib.sha256(value).hexdigest()
    return f"0x{digits}", "blob"


def _other(value: Any) -> Canonical:
    for kind, form in _FORMS.items():
        if isinstance(value, kind):
            return form(value)
    if isinstance(value, np.floating):
        # The shortest decimal of the same float in *its* width: 0.1, not 0.10000000149011612.
        return _of_float(float(str(value)))
    if isinstance(value, np.generic):
        return canonical(value.item())
    return _of_text(str(value))


_FORMS: dict[type, Callable[[Any], Canonical]] = {
    str: _of_text,
    bool: lambda value: ("true" if value else "false", "boolean"),
    int: _of_int,
    float: _of_float,
    type(None): lambda value: _NULL,
    type(pd.NaT): lambda value: _NULL,
    type(pd.NA): lambda value: _NULL,
    bytes: _of_bytes,
    bytearray: lambda value: _of_bytes(bytes(value)),
    memoryview: lambda value: _of_bytes(bytes(value)),
    dt.datetime: _of_datetime,
    pd.Timestamp: _of_datetime,
    dt.date: lambda value: (value.isoformat(), "date"),
    decimal.Decimal: _of_decimal,
}
