"""Comparison of an answer with the key: strictly (as published) and tolerantly."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any

_ASKS_FOR_ORDER = re.compile(r"\b(?:in order|in alphabetical order|rank(?:ed)?\b(?! [12]\b)|order of)", re.IGNORECASE)
_TRUTH = {"true": "yes", "false": "no"}


def strict(values: Sequence[Any], key: Sequence[Any]) -> bool:
    """Exact match, as in the benchmark: equal by ``==``, in order; a number never equals a text.

    >>> strict([54], (54,)), strict(["54"], (54,)), strict(["Lisa", "Jennifer"], ("Jennifer", "Lisa"))
    (True, False, False)
    """
    if len(values) != len(key):
        return False
    return all(type_of(value) == type_of(wanted) and value == wanted for value, wanted in zip(values, key, strict=True))


def type_of(value: Any) -> str:
    """The kind of a value, because ``1 == True`` must not match."""
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, (int, float)) else "text"


def tolerant(values: Sequence[Any], key: Sequence[Any], question: str) -> bool:
    """Equality that ignores type, case, accents and blanks, and also the order if the question asks for none.

    >>> tolerant(["54"], (54,), "How many schools?"), tolerant(["São Paulo"], ("Sao Paulo",), "Which city?")
    (True, True)
    >>> tolerant(["b", "a"], ("a", "b"), "Which two?"), tolerant(["b", "a"], ("a", "b"), "List two in order of size.")
    (True, False)
    """
    given, wanted = [_folded(value) for value in values], [_folded(value) for value in key]
    return given == wanted if asks_for_order(question) else Counter(given) == Counter(wanted)


def asks_for_order(question: str) -> bool:
    """Whether the order of the values matters.

    >>> asks_for_order("rank the locations by distance"), asks_for_order("How many drivers have been ranked 2?")
    (True, False)
    """
    return _ASKS_FOR_ORDER.search(question) is not None


def _folded(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = unicodedata.normalize("NFKD", str(value))
    text = "".join(letter for letter in text if not unicodedata.combining(letter))
    text = " ".join(text.casefold().split())
    try:
        return f"{float(text.replace(',', '')):g}"
    except ValueError:
        return _TRUTH.get(text, text)
