"""One grammar for the answers of models: reasoning is cut off; then the whole answer counts, or its last line.

Words inside a sentence are not an answer: "The row says 'Answer: True'" does not answer the claim. Reasoning that was
cut off before its end has no conclusion.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Literal, TypeVar

from tagframe.errors import AnswerRejected
from tagframe.lm.blocks import parse_block, without_reasoning

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


def parse_labelled_word_or_unsure(
    text: str, words: Mapping[str, T], expected: str
) -> tuple[T | Literal[Unsure.UNSURE], str]:
    """The word in the last line of an answer, after "Answer:", and the text before that line.

    The word is ``UNSURE`` if the line says that the model cannot tell.

    Raises:
        AnswerRejected: the last line is different.
    """
    answer = without_reasoning(text)
    line = last_line(answer)
    value = words.get(_word(line), UNSURE if is_unsure(line) else None)
    if value is None or _LABEL.match(_unmarked(line)) is None:
        raise AnswerRejected(f"expected a last line {expected}, got {_excerpt(line)}")
    return value, answer[: answer.rindex(line)].strip(" \t\r\n*")


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
