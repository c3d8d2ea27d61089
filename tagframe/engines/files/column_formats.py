"""How the numbers and dates of a column of text are written, decided over the whole column, once for every reader.

A column is read as numbers if all of its cells have one format: a decimal comma or point, one separator of thousands
(in groups of three digits), one unit (``%`` or a currency) in all cells or in none, a minus sign or parentheses. A cell
that may be read in two ways ("1,234") decides nothing. Numbers with leading zeros are codes and stay text.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

import pandas as pd

from tagframe.engines.cells import NULL_WORDS

_PLAIN = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""What pandas reads as a number by itself."""
_COMMA_EXPONENT = re.compile("[+-]?[0-9]+,[0-9]+[eE][+-]?[0-9]+")
_PADDED = re.compile("[+-]?0[0-9]")
_CODE_LIKE = re.compile("[0-9]+[eE][0-9]+")
"""A number that may be a code: programs write a point or a sign in it."""
_PHONE = re.compile(r"\+[0-9]{8,15}")
_MONEY = "US$ A$ C$ R$ NZ$ HK$ S$ Euro Kč zł kr kr. SFr. Fr. Rs Rs. Ft лв. руб. lei".split()
"""Words for currencies that are neither codes nor signs."""
_MEASURES = frozenset(
    "kg mg µg lb lbs oz km cm mm µm nm mi ft yd ml cl dl hl gal min sec ms hrs kW kWh MW MWh GW GWh TWh Wh kJ kcal kV "
    "mV mA Hz kHz MHz GHz kB KB MB GB TB dB °C °F km² m² ha m³ km/h mph m/s hPa kPa bar px pt ppm pcs Stk t g m l s h "
    "W V A".split()
)
"""Units of measures. One letter alone may be of a code such as ``12a``, so that a blank has to be before it."""
_WORDS_OF_UNITS = "|".join(map(re.escape, sorted({*_MONEY, *_MEASURES}, key=len, reverse=True)))
_UNIT = rf"(?:{_WORDS_OF_UNITS})(?![^\W\d_])|[^\W\d_]{{3}}\b|[^\w\s.,'()+-]"
_CELL = re.compile(
    rf"(?P<open>\()?\s*(?P<sign>[+\-\u2212])?\s*(?P<before>{_UNIT})?\s*(?P<sign2>[+\-\u2212])?"
    r"(?P<body>[0-9][0-9.,'\u2019 \u00a0\u202f]*[0-9]|[0-9]|[.,][0-9]+)"
    rf"(?P<sign3>[\-\u2212])?\s*(?P<after>{_UNIT})?\s*(?P<close>\))?"
)
_OTHER_UNIT = re.compile(
    r"(?P<about>[~≈\u2013])?[+-]?[$€£¥₹]?[0-9][0-9., \u00a0]*"
    r"(?P<unit>[ \u00a0][^\d\s]{1,8}(?: [^\d\s]{1,3})?|[^\W\d_]{1,4}|[°*†‡²³][CF]?|(?(about)|(?!)))"
)
"""A number with a unit that is not read."""
_NO_CENTS = re.compile(r"(?<=[0-9][.,])(?:[\u2013\u2014]|--?)(?![0-9])")
"""What stands for zeros behind the decimal mark, as in ``54,–``."""
_CODES = frozenset("AUD BRL CAD CHF CNY CZK DKK EUR GBP HUF INR JPY MXN NOK NZD PLN RON SEK TRY USD ZAR".split())
UNITS = _MEASURES | _CODES | {*_MONEY}
"""Words that stand next to numbers."""
_SPACES = "[ \u00a0\u202f]"
_SEPARATORS = {".": r"\.", ",": ",", "'": "['\u2019]", " ": _SPACES}
_WORDS = frozenset(NULL_WORDS) - {""}
_FEW = 2
"""The fewest codes that make a column one of codes."""
_INT64 = 1 - 2**63, 2**63 - 1
"""Integers that a column holds: pandas 2 takes the least of 64 bits for a missing one."""
_WHOLE_DIGITS, _DIGITS, _FLOAT_DIGITS = 18, 15, 17
"""Digits that every integer of 64 bits, and every float, can hold."""
_GROUP = re.compile("[.,'\u2019 \u00a0\u202f][0-9]{3}(?![0-9])")
GROUPED = "all have as many groups of digits, as codes have"
AMBIGUOUS = "commas or points in them are decimal marks, or stand between thousands"
"""Why the numbers of a column have no one format; the user may know it."""
OTHER_CELLS = "some cells are words"
OTHER_UNITS = "they have a unit that is not read"
_MOST_WORDS = 3
"""Words among numbers that may stand for missing ones."""
_SAMPLE, _CODE = 1_000, 4
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MARKED = re.compile(
    r"(?:[<>~\u2248\u2264\u2265\u00b1]=?|ca\.)?\s*[+-]?"
    r"(?:[0-9]{1,3}(?:[.,][0-9]{3})+|[0-9]+)(?:[.,][0-9]+)?\s*"
    r"(?:[*+\u2020\u2021\u00a7\u00b9\u00b2\u00b3\u2070-\u2079]+|[\[(][0-9A-Za-z.%]{1,6}[\])]|(?<=\s)[a-z]{1,2})?"
)
"""A number with marks of a note, or signs for "about", "less" or "more"."""
_POINT_UNITS = ("$", "£", "¥", "₹", "₩")
"""Their numbers have decimal points."""
_DATE = re.compile(
    r"\s*(?:(?P<year>[0-9]{4})(?P<mark>[./-])(?P<month>[0-9]{1,2})(?P=mark)(?P<day>[0-9]{1,2})"
    r"|(?P<first>[0-9]{1,2})(?P<sign>[./-])(?P<second>[0-9]{1,2})(?P=sign)(?P<last>[0-9]{4}|[0-9]{2}))"
    r"(?:[T ](?P<time>[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?))?\s*"
)

Order = Literal["day first", "month first"]
EITHER: Literal["either"] = "either"
"""Where nothing tells whether day or month comes first."""


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written.

    Attributes:
        decimal, thousands: separators; "" for none.
        unit: ``%`` or a currency, in every cell; "" for none.
        whole: whether all are whole numbers.
    """

    decimal: str = "."
    thousands: str = ""
    unit: str = ""
    whole: bool = False

    def numbers(self, cells: pd.Series) -> pd.Series:
        """The cells of text as numbers, ``Int64`` or ``Float64``; a blank one is null."""
        known = {text: self.number(text) for text in cells.dropna().unique()}
        numbers = [known.get(text) if isinstance(text, str) else None for text in cells]
        return pd.Series(numbers, index=cells.index, dtype="Int64" if self.whole else "Float64", name=cells.name)

    def number(self, text: str) -> int | float | None:
        """The number of a cell that has this format; None if it is blank."""
        if not text.strip():
            return None
        text = western(text.strip())
        cell = _CELL.fullmatch(_NO_CENTS.sub("00", text))
        if cell is None:  # with an exponent
            return float(text.replace(self.decimal, "."))
        body = cell["body"]
        if self.thousands:
            body = re.sub(_SEPARATORS[self.thousands], "", body)
        body = body.replace(self.decimal, ".")
        is_negative = bool(cell["open"]) or "-" in _signs(cell)
        number: int | float = int(body) if self.whole else float(body)
        return -number if is_negative else number

    def __str__(self) -> str:
        parts = ["decimal commas" if self.decimal == "," else ""]
        parts.append(f"{self.thousands!r} between thousands" if self.thousands else "")
        parts.append(f"the unit {self.unit}" if self.unit else "")
        return ", ".join(filter(None, parts)) or "parentheses, spaces or digits of another script"


def dates(cells: pd.Series, order: Order) -> pd.Series:
    """Cells of text as moments; a blank one is null."""
    known = {text: _moment(text, order) for text in cells.dropna().unique()}
    moments = [known.get(text) if isinstance(text, str) else None for text in cells]
    return pd.Series(moments, index=cells.index, dtype="datetime64[us]", name=cells.name)


@dataclass(frozen=True)
class Formats:
    """The formats of a file's columns.

    Attributes:
        numbers: of columns that are read as numbers, though pandas would read text or other numbers.
        dates: of columns that are read as dates: what comes first where the year is last.
        mixed: columns whose cells are all numbers, in several formats or in one with two meanings; they stay text. With
            the reason.
        words: the words beside the numbers of such columns, if these are the reason.
        unfit: columns of numbers that do not have the format that the user gave; they are read as they are.
        thousands: columns of numbers whose points may be between thousands, as the file has decimal commas elsewhere.
        orders: what comes first in columns of dates with the year last that stay text; :data:`EITHER` if nothing tells,
            None if cells disagree.
        not_dates: columns that the user named as dates and that have other cells, with one of these cells.
        rounded: columns of numbers, some of which have digits that floats do not hold.
        exponents: columns of numbers such as 1E5, which may be codes.
        padded: columns of which a number is written with zeros before it; they stay text, as the zeros would be lost.
        missing: words of columns that are read as missing values.
        codes: words for missing values that are codes, as all cells of their columns are codes of one length.
    """

    numbers: Mapping[str, NumberFormat] = field(default_factory=dict)
    dates: Mapping[str, Order] = field(default_factory=dict)
    mixed: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unfit: tuple[str, ...] = ()
    thousands: tuple[str, ...] = ()
    orders: Mapping[str, Order | Literal["either"] | None] = field(default_factory=dict)
    not_dates: tuple[str, ...] = ()
    padded: tuple[str, ...] = ()
    rounded: tuple[str, ...] = ()
    exponents: tuple[str, ...] = ()
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    codes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def missing_options(self, columns: Iterable[str]) -> dict[str, Any]:
        """Options of :func:`pandas.read_csv` for the words that mean missing values, if they are not pandas' own."""
        if not self.codes:
            return {}
        words = {name: [word for word in NULL_WORDS if word not in self.codes.get(name, ())] for name in columns}
        return {"keep_default_na": False, "na_values": words}

    def of(self, columns: Collection[str]) -> Formats:
        """The formats of some columns."""

        def among(formats: Any) -> Any:
            if isinstance(formats, tuple):
                return tuple(one for one in formats if one in columns)
            return {name: one for name, one in formats.items() if name in columns}

        return Formats(**{name: among(formats) for name, formats in vars(self).items()})

    @property
    def as_text(self) -> set[str]:
        """The columns that are read as text first."""
        return {*self.numbers, *self.dates, *self.padded, *self.mixed}

    def typed(self, frame: pd.DataFrame, as_text: Collection[str] = ()) -> pd.DataFrame:
        """The frame, in which these columns are text, with them as numbers and dates, unless they stay text."""
        typed: dict[str, pd.Series] = {}
        for name, cells in frame.items():
            called = str(name)
            if called in as_text:
                continue
            if called in self.numbers:
                typed[called] = self.numbers[called].numbers(cells)
            elif called in self.dates:
                typed[called] = dates(cells, self.dates[called])
        return frame.assign(**typed) if typed else frame


class Column:
    """What the cells of a column that were seen so far have in common.

    Args:
        has_words: whether words for missing values may be among its cells.
    """

    def __init__(self, *, has_words: bool = False) -> None:
        self.has_words = has_words
        self.words: set[str] = set()
        self.sample: dict[str, None] = {}
        self.is_coded = True
        self.length = 0
        self.codes: set[str] = set()
        self.seen = False
        self.formats = list(_FORMATS)
        self.is_number = True
        self.plain = True
        self.blank = False
        self.padded = False
        self.numbers = 0
        self.words_beside: set[str] = set()
        self.units: set[str] = set()
        self.other_units: set[str] = set()
        self.groups: set[int] = set()
        self.fractions: set[tuple[str, str]] = set()
        self.marked: set[str] = set()
        self.dots_group = self.is_even = True
        self.digits = 0
        self.rounded = False
        self.is_huge = self.exponents = False
        self.is_beyond = self.is_signed = self.has_null = False
        self.is_date = True
        self.orders: set[Order] = {"day first", "month first"}
        self.year_last = False

    @property
    def is_open(self) -> bool:
        """Whether it may still be numbers or dates, or have words for missing values."""
        return self.is_number or self.is_date or self.has_words

    def see(self, cells: Iterable[str]) -> None:
        """Look at distinct cells that are not null."""
        if self.has_words:
            cells = self._without_words(list(cells))
        cells = [*cells]
        self.sample.update(dict.fromkeys(cells[: _SAMPLE - len(self.sample)]))
        for text in cells:
            text = text.strip()
            if not text:
                self.blank = True
                continue
            self.seen = True
            if self.is_date:
                self._see_date(text)
            if self.is_number:
                self._see_number(text)
            if not (self.is_number or self.is_date):
                return

    def _without_words(self, cells: Sequence[str]) -> list[str]:
        self.words |= _WORDS.intersection(cells)
        others = [cell for cell in cells if cell not in _WORDS]
        if self.is_coded and others:
            self.length = self.length or len(others[0].strip())
            self.is_coded = all(map(self._is_code, others))
            self.codes.update(others[:_FEW])
        return others

    def _is_code(self, cell: str) -> bool:
        cell = cell.strip()
        return (
            len(cell) == self.length and cell.isalnum() and cell[0].isalpha() and cell in (cell.upper(), cell.lower())
        )

    @property
    def code_words(self) -> tuple[str, ...]:
        """Words for missing values that are written as the codes of the column are."""
        if not self.is_coded or len(self.codes) < _FEW:
            return ()
        is_upper = next(iter(self.codes)).isupper()
        return tuple(sorted(word for word in self.words if self._is_code(word) and word.isupper() == is_upper))

    def _see_number(self, text: str) -> None:
        is_plain = _PLAIN.fullmatch(text) is not None
        text = text if is_plain else _NO_CENTS.sub("00", western(text))
        if not is_plain and (not any(map(str.isdigit, text)) or _is_with_other_unit(text)):
            self._see_word(text)
            return
        self.numbers += 1
        self.plain &= is_plain
        if is_plain and len(text) > _DIGITS:
            self.rounded = self.rounded or _loses_digits(text)
        if is_plain and len(text) > _WHOLE_DIGITS and text.lstrip("+-").isdecimal():
            self.is_beyond |= not _INT64[0] <= int(text) <= _INT64[1]
            self.is_signed |= not 0 <= int(text) < 2**64
        self.is_signed |= text[:1] == "-"
        self.padded |= is_plain and (_PADDED.match(text) is not None or _PHONE.fullmatch(text) is not None)
        if text.isdigit() and text.isascii() and (text[0] != "0" or len(text) == 1):  # by far the most frequent
            self.units.add("")
            self.groups.add(0)
            self.digits = max(self.digits, len(text))
            return
        cell = _CELL.fullmatch(text)
        if cell is None and (is_plain or _COMMA_EXPONENT.fullmatch(text)):  # an exponent
            self.is_huge |= math.isinf(float(text.replace(",", ".")))
            self.exponents |= _CODE_LIKE.fullmatch(text) is not None
            self.formats = [one for one in self.formats if one[0] == ("." if is_plain else ",")]
            self.dots_group = False
            self.fractions.update(self.formats)
            self.units.add("")
            return
        if not is_plain and (cell is None or not _is_number(cell)):  # "<0.5" or "2021-22" beside numbers
            self.numbers -= 1
            self._see_word(text)
            return
        if cell is None or not _is_number(cell):
            self.is_number = False
            return
        body = cell["body"]
        self.digits = max(self.digits, sum(map(str.isdigit, body)))
        self.units.add(_unit(cell))
        fitting = {one: match for one, form in _FORMATS.items() if (match := form.fullmatch(body)) is not None}
        if not fitting:  # "1.2.3"
            self.is_number = False
            return
        self.formats = [one for one in self.formats if one in fitting]
        self.fractions.update(one for one, match in fitting.items() if match["fraction"] is not None)
        self.marked.update(mark for mark in ".," if mark in body)
        if any(mark in body for mark in ",.'\u2019 \u00a0\u202f"):
            self.groups.add(len(_GROUP.findall(body)))
            self.is_even &= sum(map(str.isdigit, body)) % 3 == 0
            self.dots_group &= "." not in body or _FORMATS[",", "."].fullmatch(body) is not None
        else:
            self.groups.add(0)

    def _see_word(self, text: str) -> None:
        """A cell that is no number: a word, or a number with a unit that is not read."""
        unit = _OTHER_UNIT.fullmatch(text)
        if unit is not None:
            self.numbers += 1
            self.other_units.add(unit["about"] or unit["unit"].strip())
        else:
            self.words_beside.add(text)
        self.is_number = max(len(self.words_beside), len(self.other_units)) <= _MOST_WORDS

    @property
    def words_among(self) -> tuple[str, ...]:
        """The cells beside numbers, as they are written; none if they are many, or several are numbers with marks."""
        words = {text for cell in self.sample if (text := cell.strip()) and not _PLAIN.fullmatch(text)}
        words = self.words_beside if self.is_number else words
        marked = sum(_MARKED.fullmatch(word) is not None for word in words)
        written = {cell for cell in self.sample if cell.strip() in words}
        written |= words - {*map(str.strip, written)}
        return () if marked > 1 or self.other_units or len(written) > 2 * _MOST_WORDS else tuple(sorted(written))

    @property
    def is_all_numbers(self) -> bool:
        """Whether all cells are numbers that may be read."""
        return self.is_number and not (self.words_beside or self.other_units)

    @property
    def is_plain(self) -> bool:
        """Whether pandas by itself reads what was seen so far as numbers that are written in one way."""
        return self.is_all_numbers and self.plain and not self.blank

    def _see_date(self, text: str) -> None:
        match = _DATE.fullmatch(text)
        orders = _ORDERS if match and match["sign"] else _ORDERS[:1]
        possible: set[Order] = {order for order in orders if match and _moment(text, order) is not None}
        if match is None or not possible:
            self.is_date = False
            return
        if match["sign"]:
            self.year_last = True
            self.orders &= possible

    def number_format(self, given: tuple[str, str] | None, file: str = "") -> NumberFormat | str | None:
        """The one format of the numbers; a text says why there is none; None for what pandas reads by itself.

        Args:
            given: the decimal and the thousands separator that the user gave.
            file: the decimal separator of other columns of the file, if they agree.
        """
        if not self.seen:
            return None
        if not self.is_all_numbers:
            are_letters = len(self.other_units - {*"kKM"}) > 1 and all(len(unit) == 1 for unit in self.other_units)
            is_of_numbers = self.numbers > max(1, len(self.words_beside)) and not are_letters  # "12a" and "12b"
            if self.is_number and is_of_numbers:
                return OTHER_CELLS if self.words_beside else OTHER_UNITS
            return OTHER_CELLS if are_among_words(self.sample) else None
        if len(self.units) > 1:
            units = sorted(repr(unit) if unit else "none" for unit in self.units)
            return f"they have different units ({', '.join(units)})"
        (unit,) = self.units or {""}
        if given is not None and (fits := self._fits(given)) is not None:
            if self.plain and (given[1] != "." or "." not in self.marked):
                return None
            return self._exact(NumberFormat(given[0], given[1], unit, whole=not fits))
        if self.plain:  # pandas reads a blank as a text
            whole = (".", "") not in self.fractions
            if self.is_huge:
                return "some are beyond the largest float"
            if whole and self.is_beyond and (self.is_signed or self.has_null or self.blank):
                return "some are integers beyond 64 bits"
            return self._exact(NumberFormat(whole=whole)) if self.blank and not self.padded else None
        formats = [one for one in self.formats if self._is_clear_by_groups(one)]
        if not formats:
            return (None if self.is_even else GROUPED) if self.formats else "they are written in several ways"
        decimals = {decimal for decimal, _ in formats}
        if len(decimals) > 1 and self.marked:
            decimal = "." if unit in _POINT_UNITS else file
            formats = [one for one in formats if one[0] == decimal]
            if not formats:
                return AMBIGUOUS
        best = next((one for one in formats if not one[1]), formats[0])
        return self._exact(NumberFormat(best[0], best[1], unit, whole=best not in self.fractions))

    def _exact(self, format: NumberFormat) -> NumberFormat | str:
        """The format, or that numbers have more digits than integers or floats of 64 bits hold."""
        most = _WHOLE_DIGITS if format.whole else _DIGITS
        return format if self.digits <= most else f"some have {self.digits} digits, and numbers hold {most} at most"

    def _fits(self, given: tuple[str, str]) -> bool | None:
        """Whether numbers have fractions in the format that was given; None if they do not have this format."""
        decimal, thousands = given
        for one in self.formats:
            if one[0] == decimal and one[1] in (thousands, ""):
                return one in self.fractions
        return None

    def _is_clear_by_groups(self, one: tuple[str, str]) -> bool:
        """Whether a separator stands between thousands: "555 123 456" in each cell is more likely a code."""
        thousands = one[1]
        if not thousands:
            return True
        if one in self.fractions or len(self.groups) > 1 or thousands == "'":
            return True
        # In groups of one length they may be decimals, too, and are told apart by other columns; no code has commas.
        return thousands == "," or (self.groups == {1} and thousands == ".")


_ORDERS: tuple[Order, Order] = ("day first", "month first")


def are_among_words(cells: Iterable[str]) -> bool:
    """Whether a third of distinct cells, and two of them, are numbers, maybe marked, and the others no codes.

    >>> are_among_words(["5", "7", "-", "n.a."]), are_among_words(["12*", "3[a]"]), are_among_words(["12A4", "9987"])
    (True, True, False)
    """
    texts = {cell.strip() for cell in cells if cell not in NULL_WORDS} - {""}
    numbers, lengths = [*filter(_MARKED.fullmatch, texts)], {*map(len, texts)}
    are_codes = (len(lengths) == 1 and min(lengths) >= _CODE) or any(map(_PADDED.match, numbers))
    others = "".join(sorted(texts.difference(numbers)))
    are_codes |= len(others) > 1 and others in _LETTERS and len(texts) == len(numbers) + len(others)  # 1, 2, A, B
    return len(texts) / 3 <= len(numbers) >= 2 and not are_codes


def is_known(options: Mapping[str, Any]) -> bool:
    """Whether the separators that the user gave are those of a format here."""
    decimal, thousands = options.get("decimal", "."), options.get("thousands") or ""
    return decimal in (".", ",") and thousands in ("", *_SEPARATORS)


def _pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    point = re.escape(decimal)
    groups = rf"[1-9][0-9]{{0,2}}(?:{_SEPARATORS[thousands]}[0-9]{{3}})+|" if thousands else ""
    groups += "[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}|" if thousands == "," else ""  # lakhs and crores
    return re.compile(rf"(?:{groups}[0-9]+)?(?P<fraction>{point}[0-9]+)?")


_FORMATS = {
    one: _pattern(*one)
    for one in ((".", ""), (",", ""), (".", ","), (",", "."), (".", "'"), (",", "'"), (",", " "), (".", " "))
}


def _signs(cell: re.Match[str]) -> str:
    return f"{cell['sign'] or ''}{cell['sign2'] or ''}{cell['sign3'] or ''}".replace("\u2212", "-")


def _unit(cell: re.Match[str]) -> str:
    return str(cell["before"] or cell["after"] or "")


def _is_number(cell: re.Match[str]) -> bool:
    body = cell["body"]
    if len(body) > 1 and body[0] == "0" and body[1].isdigit():
        return False  # a code, whose zeros count
    if bool(cell["open"]) != bool(cell["close"]) or len(_signs(cell)) + bool(cell["open"]) > 1:
        return False
    if cell["before"] and cell["after"]:
        return False
    unit = _unit(cell)
    if unit in _MEASURES:  # "A4" and "12a" are codes
        return bool(cell["after"]) and (len(unit) > 1 or cell.string[cell.start("after") - 1].isspace())
    return not unit or unit == "%" or unit in UNITS or unicodedata.category(unit[0]) == "Sc"


def _loses_digits(text: str) -> bool:
    """Whether the nearest float is another number, and written otherwise, in the fewest digits that name it and in 17.

    Numbers with an exponent are not checked.
    """
    if "e" in text or "E" in text:
        return False
    number = float(text)
    return Decimal(text) not in (Decimal(number), Decimal(repr(number)), Decimal(f"{number:.{_FLOAT_DIGITS}g}"))


def western(text: str) -> str:
    """The text with digits, and marks in numbers, of all scripts as those of ASCII.

    >>> western("\uff11\uff12\uff0e\uff15"), western("\u0661\u066b\u0662")
    ('12.5', '1.2')
    """
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(one)) if one.isdecimal() else _MARKS.get(one, one) for one in text)


_MARKS = {
    "\u066b": ".",
    "\u066c": ",",
    "\uff0e": ".",
    "\uff0c": ",",
    "\uff0d": "-",
    "\uff0b": "+",
    "\uff05": "%",
    "\u066a": "%",
    "\u2009": "\u00a0",
    "\u2007": "\u00a0",
}


def _is_with_other_unit(text: str) -> bool:
    cell = _CELL.fullmatch(text)
    return (cell is None or not _is_number(cell)) and _OTHER_UNIT.fullmatch(text) is not None


def _moment(text: str, order: Order) -> dt.datetime | None:
    """The moment that a text names; None for none."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    if match["year"]:
        year, month, day = match["year"], match["month"], match["day"]
    else:
        year, month, day = match["last"], match["first"], match["second"]
        if order == "day first":
            month, day = day, month
    if len(year) == 2:
        year = f"{20 if int(year) < 69 else 19}{year}"  # as POSIX has it
    try:
        hour, minute, *rest = (match["time"] or "0:00").split(":")
        second, _, fraction = (rest[0] if rest else "0").partition(".")
        return dt.datetime(
            int(year), int(month), int(day), int(hour), int(minute), int(second), int(fraction.ljust(6, "0") or 0)
        )
    except ValueError:
        return None


def formats_of(columns: Mapping[str, Column], options: Mapping[str, Any], *, has_commas: bool = False) -> Formats:
    """The formats of columns whose cells were all seen.

    Args:
        columns: by their names.
        options: ``decimal``, ``thousands``, ``dayfirst`` and ``parse_dates`` as the user gave them.
        has_commas: whether the file is written as where decimal marks are commas, as far as nothing else tells.
    """
    given = None
    if "decimal" in options or "thousands" in options:
        thousands = str(options.get("thousands") or "")
        given = str(options.get("decimal") or ("," if thousands == "." else ".")), thousands
    first = {name: column.number_format(given) for name, column in columns.items()}
    decimals = {one.decimal for name, one in first.items() if isinstance(one, NumberFormat) and columns[name].marked}
    file = next(iter(decimals)) if len(decimals) == 1 else ""
    numbers: dict[str, NumberFormat] = {}
    mixed: dict[str, str] = {}
    for name, column in columns.items():
        one = column.number_format(given, file)
        if isinstance(one, NumberFormat):
            numbers[name] = one
        elif one is not None:
            mixed[name] = one
    floats = [
        name
        for name, column in columns.items()
        if column.seen and column.is_all_numbers and column.plain and (".", "") in column.fractions
    ]
    points = [name for name in floats if "." in columns[name].marked and name not in numbers]
    unfit = tuple(name for name in points if given is not None and given[0] != ".")
    is_between = file == "," or (has_commas and all(columns[name].dots_group for name in points))
    between = tuple(name for name in points if name not in unfit and is_between and columns[name].dots_group)
    dates, orders, wrong = _dates(columns, options)
    padded = tuple(name for name, column in columns.items() if column.padded)
    codes = {name: words for name, column in columns.items() if (words := column.code_words)}
    missing = {
        name: words
        for name, column in columns.items()
        if (words := tuple(sorted(column.words.difference(codes.get(name, ())))))
    }
    beside = {name: columns[name].words_among for name, why in mixed.items() if why == OTHER_CELLS}
    rounded = tuple(name for name in floats if columns[name].rounded and name not in mixed)
    exponents = tuple(name for name in floats if columns[name].exponents and name not in mixed)
    return Formats(
        numbers, dates, mixed, beside, unfit, between, orders, wrong, padded, rounded, exponents, missing, codes
    )


def _dates(
    columns: Mapping[str, Column], options: Mapping[str, Any]
) -> tuple[dict[str, Order], dict[str, Order | Literal["either"] | None], tuple[str, ...]]:
    """The columns that are read as dates, the orders of the others with dates, and the named ones that have none."""
    named = options.get("parse_dates")
    listed = set(map(str, named)) if isinstance(named, list | tuple) else set()
    is_given = bool(named) or "dayfirst" in options
    dates: dict[str, Order] = {}
    orders: dict[str, Order | Literal["either"] | None] = {}
    wrong = []
    for name, column in columns.items():
        is_date = column.seen and column.is_date
        if not is_date:
            if name in listed and column.seen:
                wrong.append(name)
            continue
        order = next(iter(column.orders)) if len(column.orders) == 1 else None
        is_wanted = is_given and (not listed or name in listed)
        if is_wanted and "dayfirst" in options:
            wanted: Order = "day first" if options["dayfirst"] else "month first"
            if wanted in column.orders:
                dates[name] = wanted
                continue
        elif is_wanted and column.orders:
            dates[name] = order or "month first"
            if order is None and column.year_last:
                orders[name] = "month first"
            continue
        if column.year_last:
            orders[name] = order or (EITHER if column.orders else None)
    return dates, orders, tuple(wrong)
