"""Bounds in a statement for functions that could make a text of any size: checked at the call, before it is made.

A statement is rewritten as its tokens. ``repeat(x, n)`` becomes ``repeat(x, CASE WHEN octet_length(x)::int8 * (n) >
bound THEN error ELSE (n) END)``, and an aggregate that gathers texts gets a FILTER that adds up the sizes of its
inputs. The sum is a setting of the transaction, because a read-only statement has no other place for it. Results do not
change; a statement that exceeds a bound fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tagframe.engines.postgres.sizes import GATHERING, GROWING, LOOKED_FOR, SHORT_NEEDLE, growth
from tagframe.errors import SQLFailed

GATHERED, KEPT = "tagframe.gathered", "tagframe.kept"
"""The settings that hold how many bytes a statement's aggregates were given, and how many are in rows that are kept."""
TOO_LARGE = "tagframe: too large a text"
"""What the server says if a bound is exceeded."""
_LONGEST = 500_000
_LOOKED_THROUGH = 2**30
"""Characters that may be compared in a search for one text in another: about a second of work."""
_EACH_ROW = 64
"""Bytes that a kept row takes in addition to its values."""

_OF_WORDS = frozenset(("position", "trim"))
_WATCHED = GROWING | LOOKED_FOR | GATHERING | _OF_WORDS

# Not a constant for the planner, which would raise the error while planning.
_ERROR = f"(left(clock_timestamp()::text, 0) || '{TOO_LARGE}')::int"


@dataclass(frozen=True)
class Word:
    """A token: as it is written, and as a word in lower case; ``literal`` is its value if it is one."""

    text: str
    word: str = ""
    literal: str | None = None


@dataclass(frozen=True)
class Bounds:
    """What a statement may make.

    Attributes:
        text: bytes of one text, and of all that aggregates are given.
        kept: bytes of the rows that WITH RECURSIVE makes, and of those that IN searches.
        looked_into: whether the rows of ``IN (SELECT …)`` are counted, which rules out some of the planner's ways.
    """

    text: int
    kept: int
    looked_into: bool = False


def bounded(words: Sequence[Word], bounds: Bounds, shown: str) -> str:
    """The statement with its bounds; ``shown`` is of it, for messages.

    Raises:
        SQLFailed: functions that make texts are nested too deeply.
    """
    text = " ".join(_bounded(words, bounds))
    if len(text) > _LONGEST:
        raise SQLFailed(f"the SQL nests functions that make texts too deeply: {shown}")
    return text


def _bounded(words: Sequence[Word], bounds: Bounds) -> list[str]:
    parts: list[str] = []
    at = size = 0
    while at < len(words) and size <= _LONGEST:
        word, start = words[at], len(parts)
        parts.append(word.text)
        at += 1
        is_call = at < len(words) and words[at].text == "("
        if word.word == "recursive" and at > 1 and words[at - 2].word == "with":
            at = _entries(words, at, bounds, parts)
        elif is_call and (word.word in _WATCHED or (bounds.looked_into and is_looked_into(words, at - 1))):
            end = _closing(words, at)
            inside = words[at + 1 : end]
            at = end + 1
            if word.word in GATHERING:
                parts += ["(", *_bounded(inside, bounds), ")"]
                at = _filtered(words, at, _arguments(inside, bounds), bounds, parts)
            elif word.word in _WATCHED:
                arguments = _by_words if word.word in _OF_WORDS else _by_commas
                parts += ["(", arguments(word.word, inside, bounds), ")"]
            else:
                parts += ["(", *_counting(inside, bounds), ")"]
        size += sum(map(len, parts[start:]))
    return parts


def is_looked_into(words: Sequence[Word], at: int) -> bool:
    """Whether ``IN (SELECT …)`` or similar starts there: the server may keep all its rows in memory."""
    after = [word.word for word in words[at : at + 3]]
    return after[0] in ("in", "any", "some", "all") and after[2:] in (["select"], ["with"], ["values"])


def _by_commas(function: str, inside: Sequence[Word], bounds: Bounds) -> str:
    """The arguments of a function, with a bound where one is needed."""
    arguments = _split(inside)
    texts = [" ".join(_bounded(argument, bounds)) for argument in arguments]
    literals = [argument[0].literal if len(argument) == 1 else None for argument in arguments]
    if function in LOOKED_FOR and len(arguments) > 1 and not _is_short(literals[1]):
        texts[1] = _short(texts[1], texts[0])
    is_growing = function in GROWING and len(arguments) >= _LEAST.get(function, 2)
    if is_growing and growth(function, literals) is None:
        number, passes, kind = _BOUNDS[function](texts, bounds.text)
        error = _ERROR if kind == "int" else f"({_ERROR})::text"
        texts[number] = f"CASE WHEN {passes} THEN {error} ELSE ( {texts[number]} ) END"
    return " , ".join(texts)


def _by_words(function: str, inside: Sequence[Word], bounds: Bounds) -> str:
    """The arguments of ``position(needle IN text)`` or ``trim(needle FROM text)``, which are not both long."""
    between = "in" if function == "position" else "from"
    split = next((number for number, word in _at_the_top(inside) if word.word == between), 0)
    start = 1 if inside and inside[0].word in ("both", "leading", "trailing") else 0
    needle, rest = inside[start:split], inside[split + 1 :]
    if not needle or (len(needle) == 1 and _is_short(needle[0].literal)):
        return " ".join(_bounded(inside, bounds))
    text = _short(" ".join(_bounded(needle, bounds)), " ".join(_bounded(rest, bounds)))
    return " ".join(
        [*(word.text for word in inside[:start]), f"( {text} )", inside[split].text, *_bounded(rest, bounds)]
    )


def _is_short(literal: str | None) -> bool:
    return literal is not None and len(literal) <= SHORT_NEEDLE


def _short(needle: str, text: str) -> str:
    passes = f"octet_length( {needle} )::int8 * octet_length( {text} ) > {_LOOKED_THROUGH}"
    return f"CASE WHEN {passes} THEN ({_ERROR})::text ELSE ( {needle} ) END"


_LEAST = {"replace": 3, "regexp_replace": 3, "format": 1}
_ODD_WIDTH = "'%[^a-zA-Z%]*([*]|[0-9]{3})'"
# By function: which argument gets the bound, the condition under which it is exceeded, and the argument's type.
_BOUNDS: dict[str, Callable[[Sequence[str], int], tuple[int, str, str]]] = {
    "repeat": lambda a, most: (1, f"octet_length( {a[0]} )::int8 * ( {a[1]} ) > {most}", "int"),
    "lpad": lambda a, most: (1, f"( {a[1]} ) > {most // 4}", "int"),
    "rpad": lambda a, most: (1, f"( {a[1]} ) > {most // 4}", "int"),
    "replace": lambda a, most: (2, f"octet_length( {a[0]} )::int8 * octet_length( {a[2]} ) > {most}", "text"),
    "regexp_replace": lambda a, most: (
        2, f"( octet_length( {a[0]} )::int8 + 1 ) * octet_length( {a[2]} ) > {most}", "text"),
    "array_to_string": lambda a, most: (
        1, f"cardinality( {a[0]} )::int8 * octet_length( concat( {', '.join(a[1:])} ) ) > {most}", "text"),
    "format": lambda a, most: (
        0, f"( {a[0]} ) ~ {_ODD_WIDTH}"
        + (f" OR octet_length( {a[0]} )::int8 * octet_length( concat( {', '.join(a[1:])} ) ) > {most}" * bool(a[1:])),
        "text"),
    "to_char": lambda a, most: (1, f"octet_length( {a[1]} ) > 1000", "text"),
}  # fmt: skip


def _filtered(words: Sequence[Word], at: int, given: str, bounds: Bounds, parts: list[str]) -> int:
    """Adds the FILTER of an aggregate, which may have one already; gives its end."""
    passes = _counted(GATHERED, f"pg_column_size( ROW( {given} ) )", bounds.text)
    if [word.word for word in words[at : at + 1]] != ["filter"]:
        parts += ["FILTER ( WHERE", passes, ")"]
        return at
    end = _closing(words, at + 1)
    own = " ".join(_bounded(words[at + 3 : end], bounds))  # FILTER ( WHERE …
    parts += ["FILTER ( WHERE CASE WHEN", own, "THEN", passes, "ELSE false END )"]
    return end + 1


def _counted(setting: str, size: str, most: int) -> str:
    """A condition that is true, and adds to the count each time it is evaluated."""
    so_far = f"current_setting('{setting}')::int8 + {size}"
    counted = f"set_config('{setting}', ( {so_far} )::text, true)::int8"
    return f"CASE WHEN {counted} <= {most} THEN true ELSE {_ERROR} IS NULL END"


def _arguments(inside: Sequence[Word], bounds: Bounds) -> str:
    """What an aggregate is given, without DISTINCT and ORDER BY."""
    start = 1 if inside and inside[0].word in ("distinct", "all") else 0
    end = next((at for at, word in _at_the_top(inside) if word.word == "by"), len(inside))
    return " ".join(_bounded(inside[start:end], bounds))


def _entries(words: Sequence[Word], at: int, bounds: Bounds, parts: list[str]) -> int:
    """The entries of WITH RECURSIVE, in which each row that is made from another row is counted; and their end."""
    while True:
        while at < len(words) and words[at].word != "as":
            parts.append(words[at].text)
            at += 1
        while at < len(words) and words[at].text != "(":
            parts.append(words[at].text)
            at += 1
        if at >= len(words):
            return at
        end = _closing(words, at)
        parts += ["(", *_entry(words[at + 1 : end], bounds), ")"]
        at = end + 1
        if at >= len(words) or words[at].text != ",":
            return at
        parts.append(",")
        at += 1


def _entry(body: Sequence[Word], bounds: Bounds) -> list[str]:
    unions = [at for at, word in _at_the_top(body) if word.word == "union"]
    if not unions:
        return _bounded(body, bounds)
    split = unions[-1] + 1
    if split < len(body) and body[split].word in ("all", "distinct"):
        split += 1
    return [*_bounded(body[:split], bounds), *_counting(body[split:], bounds)]


def _counting(query: Sequence[Word], bounds: Bounds) -> list[str]:
    """A query whose rows are counted."""
    size = f"pg_column_size( ROW( tagframe_row.* ) ) + {_EACH_ROW}"
    return [
        "SELECT tagframe_row.* FROM (", *_bounded(query, bounds), ") AS tagframe_row WHERE",
        _counted(KEPT, size, bounds.kept),
    ]  # fmt: skip


def _at_the_top(words: Sequence[Word]) -> Iterator[tuple[int, Word]]:
    depth = 0
    for at, word in enumerate(words):
        depth += (word.text in ("(", "[")) - (word.text in (")", "]"))
        if not depth:
            yield at, word


def _split(words: Sequence[Word]) -> list[Sequence[Word]]:
    """Split at the commas outside of parentheses."""
    commas = [at for at, word in _at_the_top(words) if word.text == ","]
    return [words[start + 1 : end] for start, end in zip([-1, *commas], [*commas, len(words)], strict=True)]


def _closing(words: Sequence[Word], start: int) -> int:
    """The position of the parenthesis that closes the one at ``start``; the end if there is none."""
    depth = 0
    for at in range(start, len(words)):
        depth += (words[at].text == "(") - (words[at].text == ")")
        if not depth:
            return at
    return len(words)
