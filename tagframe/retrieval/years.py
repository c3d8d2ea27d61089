"""The years that a question means by a range: "from 2010 to 2020", "seit 2019", "the last three years"."""

from __future__ import annotations

import re
from collections.abc import Iterable

_YEAR = r"((?:1[5-9]|20)\d\d)(?!\d)"
_TO = r"(?:to|until|till|through|and|bis|und|à|a|au|et|al|y|hasta|e)"
_DAY = r"(?:[\w.]+\s+){0,3}"
"""What may stand before a year: "July", "julio de", "1. Juli"."""
_BOTH = (
    re.compile(
        rf"\b(?:from|between|von|zwischen|vom|de|du|entre|desde|del)\s+{_DAY}{_YEAR}\s+{_TO}\s+{_DAY}{_YEAR}"
    ),
    re.compile(rf"\b{_YEAR}\s*(?:-|–|—|\.\.|to|through|until|bis|à|hasta)\s*{_YEAR}"),
)  # fmt: skip
_IN = r"\s+(?:the\s+(?:year|season)\s+|(?:dem\s+)?jahre?\s+|l'année\s+|el\s+año\s+|year\s+|season\s+|end\s+of\s+)?"
_SINCE = r"since|seit|ab|depuis|desde|starting(?: in)?|à partir de|a partir de"
_LATER = r"or later|onwards?|on(?=\W*$|,)|and later|and after|und später|et après|y después"
_ONE = (
    (re.compile(rf"\b(?:{_SINCE}){_IN}{_YEAR}"), 0, None),
    (re.compile(rf"\b{_YEAR}\s+(?:{_LATER})"), 0, None),
    (re.compile(rf"\b(?:later than|after|nach|après|después de|tras){_IN}{_YEAR}"), 1, None),
    (re.compile(rf"\b(?:until|till|through|up to|bis|jusqu'en|jusqu'à|hasta){_IN}{_YEAR}"), None, 0),
    (re.compile(rf"\b{_YEAR}\s+(?:or earlier|and earlier|and before|und früher)"), None, 0),
    (re.compile(rf"\b(?:earlier than|prior to|before|vor|avant|antes de){_IN}{_YEAR}"), None, -1),
)  # fmt: skip
"""A pattern, and what is added to its year for the first and the last one; None where the range is open."""
_DECADE = re.compile(r"\b((?:1[5-9]|20)\d)0(?:'?s|er)\b|\b(?:années|años)\s+((?:1[5-9]|20)\d)0\b")
_LAST = re.compile(
    r"\b(?:last|latest|past|letzten|dernières|dernieres|derniers|últimos|últimas|ultimos|ultimas)\s+(\w+)\s+"
    r"(?:years?|seasons?|jahren?|saisons?|ans|années|años|temporadas)\b"
    r"|\b(\w+)\s+(?:last|latest|dernières|derniers|últimos|últimas)\s+(?:years|seasons|années|saisons|años|temporadas)\b"
)
_SEASON = re.compile(r"\b((?:19|20)\d\d)/\d\d\b(?!/)")
_IS_OF_YEAR = re.compile(r"(?:1[5-9]|20)\d\d(?:[01]\d(?:[0-3]\d)?)?\Z")
_NUMBERS = (
    "two zwei deux dos", "three drei trois tres", "four vier quatre cuatro", "five fünf cinq cinco",
    "six sechs six seis", "seven sieben sept siete", "eight acht huit ocho", "nine neun neuf nueve",
    "ten zehn dix diez",
)  # fmt: skip
_COUNTED = {word: number for number, words in enumerate(_NUMBERS, start=2) for word in words.split()}


def years_in_range(question: str, years: Iterable[int]) -> frozenset[int] | None:
    """Those of some years that a question means by a range; None if it names no range.

    >>> sorted(years_in_range("Sales from 2018 to 2020", range(2016, 2022)))
    [2018, 2019, 2020]
    >>> sorted(years_in_range("Umsatz seit 2020", range(2016, 2022))), years_in_range("in 2018 and 2020", (2018, 2019))
    ([2020, 2021], None)
    """
    text, known = _SEASON.sub(r"\1", question.casefold().replace("’", "'")), sorted({*years})
    for pattern in _BOTH:
        if (match := pattern.search(text)) is not None and match[1] <= match[2]:
            return frozenset(year for year in known if int(match[1]) <= year <= int(match[2]))
    spans = [
        (int(match[1]) + first if first is not None else -1, int(match[1]) + last if last is not None else 10_000)
        for pattern, first, last in _ONE
        if (match := pattern.search(text)) is not None
    ]
    if (match := _DECADE.search(text)) is not None:
        decade = 10 * int(match[1] or match[2])
        spans.append((decade, decade + 9))
    if spans:
        return frozenset(year for year in known if all(first <= year <= last for first, last in spans))
    if (match := _LAST.search(text)) is not None:
        word = match[1] or match[2]
        number = int(word) if word.isdecimal() else _COUNTED.get(word, 0)
        return frozenset(known[-number:]) if number else None
    return None


def years_meant(question: str, years: Iterable[int]) -> frozenset[int]:
    """Those of some years that a question means: those of its range, or those that it has; none if it names none.

    >>> sorted(years_meant("Sales in 2018 and 2020", range(2016, 2022))), years_meant("Sales", [2018])
    ([2018, 2020], frozenset())
    """
    known = frozenset(years)
    return years_in_range(question, known) or known & years_in(question)


def years_in(text: str) -> frozenset[int]:
    """The years in a text, such as the name of a table or a folder; of a season, the first one.

    >>> sorted(years_in("campaign-2018-2019")), sorted(years_in("events_20210131")), sorted(years_in("room_12"))
    ([2018, 2019], [2021], [])
    >>> sorted(years_in("schools202223")), sorted(years_in("SCHOOLS20232420230901"))
    ([2022], [2023])
    """
    return frozenset(int(run[:4]) for run in re.findall(r"\d+", text) if _IS_OF_YEAR.match(run) or _is_season(run))


def _is_season(number: str) -> bool:
    """Whether a number begins with a year and the next one's last digits: a season, and maybe the day of the file."""
    day = number[6:]
    is_next = re.match(r"(?:19|20)\d\d", number) and number[4:6] == f"{(int(number[:4]) + 1) % 100:02}"
    return bool(is_next) and (not day or (len(day) == 8 and bool(_IS_OF_YEAR.match(day))))


def year_of(name: str) -> int | None:
    """The year in the name of a table or a folder, if it has one, and only one.

    >>> year_of("sales_2023"), year_of("2018_2019")
    (2023, None)
    """
    years = years_in(name)
    return min(years) if len(years) == 1 else None
