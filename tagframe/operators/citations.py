"""Answers that name the rows that they rest on: read strictly, and checked against the rows that were shown."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tagframe.errors import AnswerRejected
from tagframe.operators.answer_grammar import parse_block, parse_text

_LABEL = re.compile(r"^\W*sources?\W*:(?P<rest>[^:]*)$", re.IGNORECASE)
_NOISE = re.compile(r"\b(?:rows?|nos?|numbers?)\b\.?|#", re.IGNORECASE)
_NUMBERS = re.compile(r"(?:\[?\d+\]?(?:\s*[-–]\s*\[?\d+\]?)?(?:\s*,?\s*(?:and\b|&)?\s*|$))+")
_RANGE = re.compile(r"(\d+)\]?(?:\s*[-–]\s*\[?(\d+))?")

CITE_RULE = (
    "Every one of the {what} has a number before it. After the answer, on a last line of its own, name the numbers of "
    "the {what} that the answer rests on, as in 'Sources: 1, 4-6', or 'Sources: all'."
)
"""The sentences that ask for them, of rows or of partial answers."""


@dataclass(frozen=True)
class Cited:
    """An answer, and what it rests on.

    Attributes:
        text: without its last line; of an answer of a shape, its JSON.
        cells: a value for each field of the shape; None for a text.
        numbers: what it names, from 1; None where it names nothing.
    """

    text: str
    cells: tuple[Any, ...] | None
    numbers: tuple[int, ...] | None


class CitedReaders:
    """What reads answers on numbered parts.

    An answer without a last line of sources is one that names none; a last line that names others than there are is
    rejected.

    Args:
        shape: what reads an answer of a shape, without its last line, or rejects it; None for a text.

    >>> CitedReaders().of(5)("Two of them are glad.\\nSources: 2, 4-5")
    Cited(text='Two of them are glad.', cells=None, numbers=(2, 4, 5))
    """

    def __init__(self, shape: Callable[[str], tuple[Any, ...]] | None = None) -> None:
        self._shape = shape
        self._known: dict[int, Callable[[str], Cited]] = {}

    def of(self, count: int) -> Callable[[str], Cited]:
        """For ``count`` parts; always the same function, by which prompts that are read alike are known."""
        return self._known.setdefault(count, functools.partial(self._read, count))

    def _read(self, count: int, text: str) -> Cited:
        answer, numbers = _split(parse_text(text), count)
        if self._shape is None:
            return Cited(answer, None, numbers)
        return Cited(parse_block(answer), self._shape(answer), numbers)


def _split(answer: str, count: int) -> tuple[str, tuple[int, ...] | None]:
    lines = answer.rstrip().splitlines()
    label = _LABEL.match(lines[-1])
    if label is None:
        return answer, None
    named = _NOISE.sub("", label["rest"]).strip(" \t*_`.")
    body = "\n".join(lines[:-1]).strip()
    if named.lower() in ("all", "all of them"):
        numbers = tuple(range(1, count + 1))
    elif named.lower() in ("", "none", "-", "–"):
        numbers = ()
    elif _NUMBERS.fullmatch(named):
        numbers = _numbers(named, count)
    else:  # a sentence with a colon in it
        return answer, None
    if not body:
        raise AnswerRejected("expected an answer before the line of its sources, got that line alone")
    return body, numbers


def _numbers(named: str, count: int) -> tuple[int, ...]:
    found: set[int] = set()
    for first, last in _RANGE.findall(named):
        low, high = int(first), int(last or first)
        if not 1 <= low <= high <= count:
            raise AnswerRejected(
                f"expected sources from 1 to {count}, got {first}{f'-{last}' if last else ''}: name only numbers that "
                "stand before what you were shown"
            )
        found.update(range(low, high + 1))
    return tuple(sorted(found))
