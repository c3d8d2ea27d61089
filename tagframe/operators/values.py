"""Answers of models: one grammar, and typed values: how a model is asked for one, and the columns that hold it.

Reasoning is cut off; then the whole answer counts, or its last line. Words inside a sentence are not an answer: "The
row says 'Answer: True'" does not answer the claim. Reasoning that was cut off before its end has no conclusion.

An answer is one value of the type, or Unknown; everything else is rejected. No value is guessed from inside a sentence.
"""

from __future__ import annotations

import datetime
import functools
import json
import math
import operator
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin

import pandas as pd

from tagframe.blocks import parse_block, without_reasoning
from tagframe.errors import AnswerRejected, InvalidArgument
from tagframe.lm import Form, words

T = TypeVar("T")


class Unsure(Enum):
    """The value of an answer in which the model says that it cannot tell."""

    UNSURE = "unsure"


UNSURE: Final = Unsure.UNSURE
TRUTH = {"true": True, "yes": True, "false": False, "no": False}
"""The words for true and false, in lower case."""

_LABEL = re.compile(
    r"(?:(?:so|therefore|thus|hence),?\s+)?(?:the|my)?\s*(?:final\s+)?answer\s*(?:is\b\s*:?|[:=])\s*", re.I
)
_MARKS = re.compile(r"[*`#_]|^\s*>")
_EDGES = " \t\r\n.!,;:\"'“”‘’()[]"


_TOO_LITTLE = r"(?:no|not enough|insufficient|too little) (?:information|data|context|evidence)"
_UNSURE_WORD = re.compile(
    r"maybe|perhaps|possibly|unsure|uncertain|unknown|unclear|undetermined|undecided|undecidable|indeterminate|"
    r"inconclusive|ambiguous|not (?:sure|certain|clear|known|applicable)|(?:it )?depends|no idea|n/?a|"
    rf"{_TOO_LITTLE}|(?:i )?(?:do not|don't|can ?not|can't) (?:know|tell|say)|"
    r"(?:can ?not|can't) be (?:determined|known|decided)"
)
_HEDGED = re.compile(r"(?:maybe|perhaps|possibly)[,:]? (?:true|false|yes|no)")
_UNSURE_SENTENCE = re.compile(
    r"(?:(?:it|this|that|the (?:claim|answer|truth|value|row))(?:'s| is)? )?"
    r"(?:can ?not|can't|could not|(?:impossible|not possible|unable|hard|difficult) to) (?:be )?"
    r"(?:determined?|decided?|tell|told|know|known|infer(?:red)?|verif(?:y|ied)|judged?|answer(?:ed)?)\b.*|"
    r"(?:i am|i'm) (?:not sure|unsure|uncertain|not certain|unable to)\b.*|"
    rf"(?:there is|there's) {_TOO_LITTLE}\b.*|"
    r"the (?:row|data|text|record)s? (?:does not|doesn't|do not|don't) "
    r"(?:say|tell|mention|specify|state|indicate|provide|contain|include|give)\b.*"
)
"""These count only as the last line: before an answer, such a sentence is part of the reasoning."""


def is_unsure(answer: str) -> bool:
    """Whether an answer, without its reasoning, says that the model cannot tell.

    >>> [is_unsure(text) for text in ("**Unknown**", "Maybe.", "It cannot be determined from the row.", "No.")]
    [True, True, True, False]
    """
    plain = _word(answer).replace("’", "'")
    if _UNSURE_SENTENCE.fullmatch(plain) or _HEDGED.fullmatch(plain):
        return True
    word = _UNSURE_WORD.match(plain)
    return word is not None and (word.end() == len(plain) or plain[word.end() :].lstrip()[:1] in tuple(".,;:(–—-"))


def parse_text(text: str) -> str:
    """An answer that may be any text except an empty one; reasoning is removed.

    Raises:
        AnswerRejected: nothing is left.
    """
    answer = without_reasoning(text)
    if not answer:
        raise AnswerRejected("expected a text, got an empty answer")
    return answer


def parse_word(text: str, words: Mapping[str, T], expected: str) -> T:
    """An answer that must be one of a few words.

    The whole answer is the word, or its last line is; "Answer:" may come before it, and markdown around it. If the last
    line contradicts an earlier line, the answer is rejected.

    Args:
        text: the answer.
        words: the value of each word (in lower case).
        expected: a description of the words for the error.

    >>> parse_word("A river.\\n**Answer:** no.", {"yes": True, "no": False}, "yes or no")
    False

    Raises:
        AnswerRejected: anything else.
    """
    value = parse_word_or_unsure(text, words, expected)
    if value is UNSURE:
        raise AnswerRejected(f"expected {expected}, got {_excerpt(without_reasoning(text))}")
    return value


def parse_word_or_unsure(text: str, words: Mapping[str, T], expected: str) -> T | Literal[Unsure.UNSURE]:
    """:func:`parse_word`, or ``UNSURE`` if the model says that it cannot tell; then it is not asked to guess.

    >>> parse_word_or_unsure("Maybe.", {"yes": True, "no": False}, "yes or no")
    <Unsure.UNSURE: 'unsure'>

    Raises:
        AnswerRejected: anything else.
    """
    if (bare := text.strip(_EDGES).lower()) in words:  # as almost every answer is
        return words[bare]
    answer = without_reasoning(text)
    values = [words[word] for line in lines_of(answer) if (word := _word(line)) in words]
    line = last_line(answer)
    last = words.get(_word(line), UNSURE if is_unsure(line) else None)
    if last is None or any(value != last for value in values):
        raise AnswerRejected(f"expected {expected}, got {_excerpt(answer)}")
    return last


def parse_json(text: str, expected: str) -> tuple[Any, str]:
    """The value of the JSON in an answer, in a code block or not, and the JSON itself.

    Raises:
        AnswerRejected: it is not JSON.
    """
    body = parse_block(text)
    try:
        return json.loads(body), body
    except ValueError as error:
        raise AnswerRejected(f"expected {expected}, got {body[:80]!r} ({error})") from error


def lines_of(text: str) -> list[str]:
    """The lines of an answer; other characters at which ``splitlines`` splits, as U+2028, stand within texts."""
    return re.split(r"\r\n|\n|\r", text.strip("\r\n"))


def last_line(text: str) -> str:
    """The last line that is not empty; "" if there is none."""
    return next((line for line in reversed(lines_of(text)) if line.strip()), "")


def _unmarked(line: str) -> str:
    return _MARKS.sub("", line).strip(_EDGES)


def _word(line: str) -> str:
    """A line as one word in lower case, without markdown, "Answer:" and surrounding marks."""
    plain = _unmarked(line)
    label = _LABEL.match(plain)
    return (plain[label.end() :] if label else plain).strip(_EDGES).lower()


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:50]}…{text[-29:]}")


# --- typed values -----------------------------------------------------------------------------------------------------


SHORT_TOKENS = 32
"""Tokens for one number, truth or date, with "Answer:" and markdown around it."""
TEXT_TOKENS = 512
"""Tokens for a text (LOTUS's default for all answers)."""
FIELD_TOKENS = 96
"""Tokens for one of several values of an answer, with its name."""
MAX_SCORE_DIFFERENCE = 0.2
"""Two scores for one row count as the same up to this distance."""
_SHARE = "one number from 0 to 1, such as 0.35", "0.35"
SECONDS = "datetime64[s]"
"""A unit that holds dates of every year; nanoseconds only hold those from 1677 to 2262."""

_UNKNOWN = {"unknown", "unsure", "i don't know", "cannot be determined"}
"""The answers that mean "no text"; other words of doubt may be the requested text itself."""
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:[eE][-+]?\d+)?")
_ANSWER_LABEL = re.compile(r"[ \t>*_#`]*(?:(?:the|my)\s+)?(?:final\s+)?answer[ \t*_`]*[:=][ \t*_]*", re.IGNORECASE)
_AROUND = ("*", "`", '"', "'", "_", "“”", "‘’")


@dataclass(frozen=True)
class Value:
    """A kind of value.

    Attributes:
        form: a short description of the answer for the model, to follow "Answer with".
        read: parses the cells of an answer, one for each column; raises :class:`AnswerRejected` for invalid answers.
        columns: the columns: a nullable dtype by label; the label None is named by the operator.
        guess: a typical answer, for quotes.
        tokens: the most tokens of an answer.
        options: words, in lower case, that are values here even if they sound like Unknown.
        is_text: whether any text is a value.
        alike: whether two answers about one row mean the same, for the audit of packs.
        details: a longer description of the answer; "" if there is none.
        shape: the answer's form for servers that can hold a model to it; None for a text.
    """

    form: str
    read: Callable[[str], tuple[Any, ...]]
    columns: Mapping[str | None, Any]
    guess: str
    tokens: int = SHORT_TOKENS
    options: frozenset[str] = frozenset()
    is_text: bool = False
    alike: Callable[[Any, Any], bool] = lambda one, other: _cells_alike(one, other)
    details: str = ""
    shape: Form | None = None


def reading(value: Value) -> Callable[[str], tuple[Any, ...] | Unsure]:
    """A parser for an answer: its cells, or ``UNSURE``."""

    def read(text: str) -> tuple[Any, ...] | Unsure:
        answer = _unlabelled(parse_text(text))
        bare = answer.strip(" .*`\"'").lower()
        if bare not in value.options and (bare in _UNKNOWN if value.is_text else is_unsure(last_line(answer))):
            return UNSURE
        return value.read(answer)

    return read


def split_answer(text: str) -> tuple[str, str]:
    """``(answer, explanation)`` of a text in which a line begins with "Answer:"; the last such line counts.

    >>> split_answer("Warm words.\\n**Answer:** 0.9")
    ('0.9', 'Warm words.')

    Raises:
        AnswerRejected: no line begins with it.
    """
    lines = lines_of(text)
    for number in reversed(range(len(lines))):
        if label := _ANSWER_LABEL.match(lines[number]):
            answer = "\n".join([lines[number][label.end() :], *lines[number + 1 :]]).strip()
            return answer, "\n".join(lines[:number]).strip()
    raise AnswerRejected(f"expected a last line that begins with 'Answer:', got {last_line(text)[:80]!r}")


def _unlabelled(answer: str) -> str:
    """A one-line answer without "Answer:" before it."""
    label = _ANSWER_LABEL.match(answer)
    return answer[label.end() :].strip() if label and "\n" not in answer else answer


def texts_alike(one: str, other: str) -> bool:
    """Whether two texts mean about the same: half of the words of the shorter one are in the other.

    >>> texts_alike("San Francisco", "San Francisco, CA"), texts_alike("bright and hopeful", "grim")
    (True, False)
    """
    words = [{word.strip(".,;:!?\"'()").casefold() for word in text.split()} for text in (one, other)]
    return 2 * len(words[0] & words[1]) >= min(map(len, words))


def _cells_alike(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two rows of cells mean the same, each cell by its kind; numbers may differ by a twentieth."""

    def alike(cell: Any, same: Any) -> bool:
        if isinstance(cell, str) and isinstance(same, str):
            return texts_alike(cell, same)
        if isinstance(cell, float | int) and isinstance(same, float | int):
            return math.isclose(cell, same, rel_tol=0.05, abs_tol=1e-9)
        return bool(cell == same)

    return all(map(alike, one, other))


def _answer_text(value: Any) -> str:
    """A number, a date or None, as an answer."""
    return "Unknown" if value is None else str(value)


# --- kinds --------------------------------------------------------------------------------------------------------


def _one(form: str, read: Callable[[str], Any], dtype: Any, guess: str, **more: Any) -> Value:
    """A kind of value with one cell, in one column."""
    return Value(form, lambda answer: (read(answer),), {None: dtype}, guess, **more)


def _text_value(dtype: Any = "string") -> Value:
    """Any text but an empty one."""
    return _one("the text alone", str, dtype, "some words of an answer", tokens=TEXT_TOKENS, is_text=True)


def _number_value(dtype: Any, *, whole: bool = False) -> Value:
    """A number; thousands may be grouped by commas, and there may be no other text."""
    form = "one whole number in digits, such as 1234" if whole else "one number in digits, such as 1234.5"
    shape = Form({"type": ["integer" if whole else "number", "null"]}, _answer_text)
    return _one(form, lambda answer: _fitting(parse_number(answer, whole=whole), dtype), dtype, "1234", shape=shape)


def score_value(*, hundredths: bool = False) -> Value:
    """A number from 0 to 1; with ``hundredths`` written as a whole number from 0 to 100, which takes fewer tokens."""

    def read(answer: str) -> float:
        number = float(parse_number(answer))
        if hundredths and (number > 1 or "." not in answer):  # 0.35 is a share however it was asked for
            number /= 100
        if not 0 <= number <= 1:
            raise AnswerRejected(f"expected a number from 0 to {100 if hundredths else 1}, got {answer[:80]!r}")
        return number

    def alike(one: tuple[float], other: tuple[float]) -> bool:
        return abs(one[0] - other[0]) <= MAX_SCORE_DIFFERENCE

    shape = Form({"type": ["integer" if hundredths else "number", "null"]}, _answer_text)
    form, guess = ("one whole number from 0 to 100, such as 35", "35") if hundredths else _SHARE
    return _one(form, read, "Float64", guess, alike=alike, shape=shape)


def _date_value(dtype: Any = SECONDS) -> Value:
    """A date, with or without a time, in ISO 8601."""
    form = "one date written as YYYY-MM-DD"
    shape = Form({"type": ["string", "null"]}, _answer_text)
    return _one(form, lambda answer: _fitting(parse_date(answer), dtype), dtype, "2024-05-17", shape=shape)


def choice_value(choices: Sequence[str]) -> Value:
    """One of a few texts.

    Raises:
        InvalidArgument: there are fewer than two choices, or some are empty, equal or not texts.
    """
    if isinstance(choices, str) or not all(isinstance(choice, str) and choice.strip() for choice in choices):
        raise InvalidArgument(f"choices must be a list of texts, such as ['good', 'bad']; got {choices!r:.200}")
    options = [choice.strip() for choice in choices]
    if len(set(options)) < len(options) or len(options) < 2:
        raise InvalidArgument(f"choices must be two or more different texts; got {choices!r:.200}")
    listed, longest = ", ".join(f"'{option}'" for option in options), max(options, key=len)
    return _one(
        "one of these",
        lambda answer: parse_choice(answer, options),
        "string",
        longest,
        tokens=SHORT_TOKENS + len(longest),
        options=frozenset(option.lower() for option in options),
        alike=operator.eq,
        details=f"One of these, as written: {listed}",
        shape=words({**{option: option for option in options}, None: "Unknown"}),
    )


def value_of_dtype(dtype: Any) -> Value:
    """The kind of value that a column of ``dtype`` holds.

    Args:
        dtype: ``str``, ``float``, ``int``, ``bool``, ``datetime.date``, one of "text", "number", "date", or a dtype of
            pandas. Dtypes of numpy that cannot hold a null become pandas' nullable ones.

    Raises:
        InvalidArgument: any other.
    """
    if dtype is None or dtype is str or (isinstance(dtype, str) and dtype in ("str", "text")):
        return _text_value()
    if dtype is datetime.date or dtype is datetime.datetime:
        return _date_value()
    named = {"number": "Float64", "date": SECONDS, "datetime": SECONDS}
    try:
        known = pd.api.types.pandas_dtype(named.get(dtype, dtype) if isinstance(dtype, str) else dtype)
    except TypeError:
        known = None
    extension = known if isinstance(known, pd.api.extensions.ExtensionDtype) else None
    if known is not None and known.kind == "b":
        read_truth = functools.partial(parse_word, words=TRUTH, expected="True or False")
        shape = words({True: "True", False: "False", None: "Unknown"})
        return _one("one word, True or False", read_truth, extension or "boolean", "True", shape=shape)
    if known is not None and known.kind in "iu":
        return _number_value(extension or "Int64", whole=True)
    if known is not None and known.kind == "f":
        return _number_value(extension or "Float64")
    if known is not None and known.kind == "M" and getattr(known, "tz", None) is None:
        return _date_value(known)
    if known is not None and pd.api.types.is_string_dtype(known):
        return _text_value(extension or "string")
    raise InvalidArgument(
        f"dtype must be one of str, float, int, bool, datetime.date, 'text', 'number', 'date', or a pandas dtype "
        f"for those; got {dtype!r}. For one of a few values give choices=, for several fields response_format="
    )


# --- reading ------------------------------------------------------------------------------------------------------


def parse_number(answer: str, *, whole: bool = False) -> float | int:
    """A number without other text, or without other text on the last line.

    >>> parse_number("**1,234.5**"), parse_number("12.0", whole=True)
    (1234.5, 12)

    Raises:
        AnswerRejected: anything else.
    """
    line = _bare(last_line(answer)).rstrip(".")
    if not any(letter.isdigit() for letter in line) or _NUMBER.fullmatch(line) is None:
        raise AnswerRejected(f"expected {'a whole' if whole else 'one'} number in digits, got {answer[:80]!r}")
    digits = line.replace(",", "")
    if whole and digits.lstrip("+-").isdigit():
        return int(digits)
    number = float(digits)
    if not math.isfinite(number) or (whole and not number.is_integer()):
        raise AnswerRejected(f"expected {'a whole' if whole else 'a finite'} number, got {answer[:80]!r}")
    return int(number) if whole else number


def parse_date(answer: str) -> datetime.datetime:
    """A date as YYYY-MM-DD, with or without a time of day.

    Raises:
        AnswerRejected: anything else, or a moment in a time zone.
    """
    line = _bare(last_line(answer)).rstrip(".")
    try:
        date = datetime.datetime.fromisoformat(line)
    except ValueError as error:
        raise AnswerRejected(f"expected a date as YYYY-MM-DD, got {answer[:80]!r} ({error})") from error
    if date.tzinfo is not None:
        raise AnswerRejected(f"expected a date without a time zone, got {answer[:80]!r}")
    return date


def parse_choice(answer: str, options: Sequence[str]) -> str:
    """One of the options, as it is written; marks around it are ignored, and so is letter case if that is unambiguous.

    >>> parse_choice("**c#**.", ["C", "C#"])
    'C#'

    Raises:
        AnswerRejected: none of them.
    """
    folded: dict[str, list[str]] = {}
    for option in options:
        folded.setdefault(option.casefold(), []).append(option)
    line = _unlabelled(last_line(without_reasoning(answer)))
    for candidate in (line.strip(), line.strip().rstrip("."), _bare(line), _bare(line).rstrip("."), _bare(line, ".")):
        alike = folded.get(candidate.casefold(), [])
        if candidate in alike or len(alike) == 1:
            return candidate if candidate in alike else alike[0]
    raise AnswerRejected(f"expected one of {list(options)!r:.300}, got {answer[:80]!r}")


def _bare(line: str, also: str = "") -> str:
    """A line without quotes and marks around it."""
    line = line.strip().rstrip(also)
    while len(line) > 2 and any(line[0] == marks[0] and line[-1] == marks[-1] for marks in _AROUND):
        line = line[1:-1].strip()
    return line


def _fitting(value: Any, dtype: Any) -> Any:
    """The value, if the column can hold it."""
    try:
        pd.array([value], dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise AnswerRejected(f"{value} does not fit into {dtype} ({error})") from error
    return value


# --- pydantic models: one JSON object, which is checked; its fields become columns -----------------------------------


_DTYPES = {str: "string", bool: "boolean", int: "Int64", float: "Float64"}
_MAX_DEPTH = 6


def model_value(model: Any) -> Value:
    """A value of a pydantic model: a column for each of its fields.

    Raises:
        InvalidArgument: it is not a pydantic model class, or has no fields.
    """
    if not isinstance(model, type) or not hasattr(model, "model_json_schema") or not hasattr(model, "model_fields"):
        raise InvalidArgument(f"response_format must be a pydantic model class; got {model!r:.200}")
    fields: dict[str, Any] = model.model_fields
    if not fields:
        raise InvalidArgument(f"the model {model.__name__} has no fields, so there is nothing to ask for")
    schema = model.model_json_schema()

    def read(answer: str) -> tuple[Any, ...]:
        value = read_model(model, answer)
        return tuple(_cell(getattr(value, name)) for name in fields)

    return Value(
        "the JSON object",
        read,
        {name: dtype_of(field.annotation) for name, field in fields.items()},
        json.dumps(sample_of(schema, schema)),
        max(2 * TEXT_TOKENS, SHORT_TOKENS + FIELD_TOKENS * len(fields)),
        details=f"One JSON object that this schema describes: {json.dumps(schema, ensure_ascii=False)}",
        shape=Form(schema, strict=False),
    )


def read_model(model: Any, answer: str) -> Any:
    """An answer, in a code block or not, as an instance of the model.

    Raises:
        AnswerRejected: it is not; the message can be shown to the model.
    """
    try:
        return model.model_validate_json(parse_block(answer))
    except AnswerRejected:
        raise
    except ValueError as error:  # pydantic's ValidationError, whose own text is very long
        problems = [
            f"{'.'.join(map(str, one['loc'])) or 'the answer'}: {one['msg']}"
            for one in getattr(error, "errors", list)()
        ]
        raise AnswerRejected(f"expected JSON of {model.__name__}: {'; '.join(problems[:5]) or error}") from error


def dtype_of(annotation: Any) -> Any:
    """The dtype of a field's column: a nullable one, or object if the field is not a single value."""
    kinds: set[Any]
    if get_origin(annotation) in (Union, types.UnionType):
        kinds = {dtype_of(one) for one in get_args(annotation) if one is not type(None)}
    elif get_origin(annotation) is Literal:
        kinds = {_DTYPES.get(type(one), "object") for one in get_args(annotation) if one is not None}
    elif get_origin(annotation) is not None or not isinstance(annotation, type):
        return "object"
    elif issubclass(annotation, Enum):
        kinds = {_DTYPES.get(type(one.value), "object") for one in annotation}
    elif issubclass(annotation, datetime.date):
        return SECONDS
    else:
        return _DTYPES.get(annotation, "object")
    return kinds.pop() if len(kinds) == 1 else "object"


def _cell(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    return value.model_dump() if hasattr(value, "model_dump") else value


def sample_of(schema: Any, whole: Any, depth: int = 0) -> Any:
    """A sample that fits a JSON schema, used as an answer in a quote; limits of length are ignored.

    Args:
        schema: the part to make a sample of.
        whole: the whole schema, with its definitions.
        depth: of the part, so that a recursive schema ends.
    """
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return None
    if "$ref" in schema:
        return sample_of(whole.get("$defs", {}).get(schema["$ref"].rsplit("/", 1)[-1]), whole, depth + 1)
    for name in ("const", "default"):
        if name in schema:
            return schema[name]
    if schema.get("enum"):
        return schema["enum"][0]
    for name in ("anyOf", "oneOf", "allOf"):
        if schema.get(name):
            return sample_of(schema[name][0], whole, depth + 1)
    kind = schema.get("type")
    if kind == "object":
        return {name: sample_of(part, whole, depth + 1) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [sample_of(schema.get("items", {"type": "string"}), whole, depth + 1)] * max(
            1, schema.get("minItems", 1)
        )
    if kind in ("integer", "number"):
        least = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
        return min(least, schema["maximum"]) if "maximum" in schema else least
    formats = {"date": "2024-05-17", "date-time": "2024-05-17T09:30:00", "time": "09:30:00"}
    return {"boolean": True, "null": None}.get(str(kind), formats.get(schema.get("format", ""), "some words"))
