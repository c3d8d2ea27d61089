"""The canonical form of a column's values in SQL, as far as SQL can express it.

:mod:`tagframe.corpus.canonical` has the rules. Values for which SQL cannot compute the same form (text beyond printable
ASCII, moments written as text, floats that are written with an exponent) are *odd*: a source sends those values, and
they get their form here. PostgreSQL and DuckDB share most of the SQL; they differ in how a text is matched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_LONGEST_NUMBER = 60


@dataclass(frozen=True)
class Hashes:
    """The smallest hashes of a column's values, by :func:`tagframe.corpus.canonical.hash_texts`.

    Attributes:
        hashes: shape (n,), uint64, ascending; of the values that are not odd.
        odd: the distinct other ones.
    """

    hashes: npt.NDArray[np.uint64]
    odd: list[Any]


@dataclass(frozen=True)
class Form:
    """The canonical form in SQL.

    Attributes:
        text: of values that are not odd; null for values without a form.
        odd: which values are.
        given: the odd values as they are sent.
        read: converts a value that was sent.
    """

    text: str
    odd: str = ""
    given: str = ""
    read: Callable[[Any], Any] | None = None

    def hashes(self, from_item: str, most: int) -> str:
        """The smallest hashes of the values of a table, as 16 hexadecimal digits, which sort as the numbers do."""
        rest = f" WHERE NOT coalesce(({self.odd}), false)" if self.odd else ""
        return (
            "SELECT DISTINCT substr(md5(q.c), 1, 16) AS h FROM "
            f"(SELECT {self.text} AS c FROM {from_item} AS t{rest}) AS q WHERE q.c IS NOT NULL ORDER BY h LIMIT {most}"
        )

    def others(self, from_item: str, most: int) -> str:
        """The odd values of a table."""
        return f"SELECT DISTINCT {self.given} AS k FROM {from_item} AS t WHERE {self.odd} LIMIT {most}"

    def found(self, digits: list[str], others: list[Any]) -> Hashes:
        """What the two statements gave."""
        hashes = np.array([int(one, 16) for one in digits], dtype=np.uint64)
        return Hashes(np.sort(hashes), [one if self.read is None else self.read(one) for one in others])


def text_form(column: str, matches: Callable[[str, str], str]) -> Form:
    """The form of a text: numbers as numbers, other text trimmed and in lower case.

    Args:
        column: as its bytes are compared.
        matches: whether a text matches a regular expression, in SQL.
    """
    bare = f"trim({column})"
    unsigned = f"ltrim({bare}, '+-')"
    whole = f"coalesce(nullif(ltrim(split_part({unsigned}, '.', 1), '0'), ''), '0')"
    fraction = f"rtrim(split_part({unsigned}, '.', 2), '0')"
    number = f"{whole} || CASE WHEN {fraction} = '' THEN '' ELSE '.' || {fraction} END"
    sign = f"CASE WHEN substr({bare}, 1, 1) = '-' AND {number} <> '0' THEN '-' ELSE '' END"
    is_number = f"{matches(bare, '^[-+]?([0-9]+([.][0-9]*)?|[.][0-9]+)$')} AND length({bare}) <= {_LONGEST_NUMBER}"
    is_plain = matches(column, "^[ -~]*$")
    # A text that is a day, or only looks like one, is its own form.
    is_day = matches(bare, "^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
    may_be_moment = f"{matches(bare, '^[-+.0-9].{3}[-/]')} AND NOT ({is_day})"
    text = f"CASE WHEN {bare} = '' THEN NULL WHEN {is_number} THEN {sign} || {number} ELSE lower({bare}) END"
    return Form(text, f"NOT ({is_plain}) OR ({may_be_moment})", column)


def float_form(column: str, written: str) -> Form:
    """The form of a float of 64 bits; ``written`` is its shortest text, without an exponent between 0.0001 and
    10^15."""
    size = f"abs({column})"
    odd = f"NOT ({column} = 0 OR ({size} >= 1e-4 AND {size} < 1e15))"
    return Form(f"CASE WHEN {column} = 0 THEN '0' ELSE {written} END", odd, column, float)


def bytes_form(column: str, size: str, digits: str, digest: str) -> Form:
    """The form of bytes: their digits, or those of their SHA-256 if they are long."""
    return Form(f"'0x' || CASE WHEN {size} <= 64 THEN {digits} ELSE {digest} END")


Forms = Mapping[str, Callable[[str], Form]]
