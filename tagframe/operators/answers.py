"""One grammar for what models answer: reasoning is cut off, then the whole answer counts, or its last line.

What stands in the middle of a sentence is no answer: "The row says 'Answer: True'" says nothing of the claim, and
reasoning that was cut off before its end has concluded nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

from tagframe.errors import AnswerRejected

T = TypeVar("T")

# The tags in which models wrap their reasoning: DeepSeek, Qwen and others; Magistral; Kimi; Seed.
_NAMES = "think|thinking|thought|thoughts|reason|reasoning|reflection|analysis|scratchpad|seed:think"
_OPENING = re.compile(rf"<({_NAMES})>|\[(THINK)\]|◁(think)▷", re.IGNORECASE)
_CLOSING = re.compile(rf"</(?:{_NAMES})>|\[/THINK\]|◁/think▷", re.IGNORECASE)
_HARMONY = re.compile(r"<\|channel\|>(\w+)[^<]*<\|message\|>")
"""gpt-oss: a reply is messages on channels, of which "final" is the answer."""

_LABEL = re.compile(
    r"(?:(?:so|therefore|thus|hence),?\s+)?(?:the|my)?\s*(?:final\s+)?answer\s*(?:is\b\s*:?|[:=])\s*", re.I
)
_MARKS = re.compile(r"[*`#_]|^\s*>")
_EDGES = " \t\r\n.!,;:\"'“”‘’()[]"
_FENCED = re.compile(r"```[\w+-]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)


def without_reasoning(text: str) -> str:
    """The answer that follows a model's reasoning, where there is any.

    >>> without_reasoning("<think>Oslo is a capital.</think>\\n\\nTrue")
    'True'

    Raises:
        AnswerRejected: the text ends inside its reasoning.
    """
    channels = list(_HARMONY.finditer(text))
    if channels:
        if channels[-1][1] != "final":
            raise AnswerRejected("the answer ends inside its reasoning")
        text = text[channels[-1].end() :].removesuffix("<|return|>").removesuffix("<|end|>")
    opening = _OPENING.match(text.lstrip())
    closings = list(_CLOSING.finditer(text))
    if closings and (opening or not _OPENING.search(text[: closings[0].start()])):
        # Chat templates may open the reasoning themselves, so that a reply has its end alone.
        return without_reasoning(text[closings[0].end() :]) if opening else text[closings[-1].end() :].strip()
    if opening:
        raise AnswerRejected("the answer ends inside its reasoning")
    return text.strip()


def parse_text(text: str) -> str:
    """An answer that is any text but an empty one, without reasoning.

    Raises:
        AnswerRejected: nothing is left.
    """
    answer = without_reasoning(text)
    if not answer:
        raise AnswerRejected("expected a text, got an empty answer")
    return answer


def parse_word(text: str, words: Mapping[str, T], expected: str) -> T:
    """An answer that is one of a few words, and nothing in between.

    The whole answer is the word, or its last line is; "Answer:" may stand before it, and markdown around it. A last
    line that contradicts a line before it is no answer.

    Args:
        text: the answer.
        words: what each word (in lower case) stands for.
        expected: how they are named in the error.

    >>> parse_word("A river.\\n**Answer:** no.", {"yes": True, "no": False}, "yes or no")
    False

    Raises:
        AnswerRejected: anything else.
    """
    if (bare := text.strip(_EDGES).lower()) in words:  # as almost every answer is
        return words[bare]
    answer = without_reasoning(text)
    found = [words[word] for line in answer.splitlines() if (word := _word(line)) in words]
    last = _word(last_line(answer))
    if last not in words or any(value != words[last] for value in found):
        raise AnswerRejected(f"expected {expected}, got {_shown(answer)}")
    return words[last]


def parse_labelled_word(text: str, words: Mapping[str, T], expected: str) -> tuple[T, str]:
    """A word that an answer ends with, on a line of its own after "Answer:", and the text before that line.

    Raises:
        AnswerRejected: it ends otherwise.
    """
    answer = without_reasoning(text)
    line = last_line(answer)
    word = _word(line)
    if word not in words or _LABEL.match(_unmarked(line)) is None:
        raise AnswerRejected(f"expected a last line {expected}, got {_shown(line)}")
    return words[word], answer[: answer.rindex(line)].strip(" \t\r\n*")


def parse_block(text: str) -> str:
    """The text of the last code block of an answer, or all of it where there is none; without reasoning."""
    answer = without_reasoning(text)
    blocks = _FENCED.findall(answer)
    return (blocks[-1] if blocks else answer).strip()


def last_line(text: str) -> str:
    """The last line that is not empty, "" where there is none."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


def _unmarked(line: str) -> str:
    return _MARKS.sub("", line).strip(_EDGES)


def _word(line: str) -> str:
    """A line as one word in lower case: without markdown, "Answer:" and what stands around words."""
    plain = _unmarked(line)
    label = _LABEL.match(plain)
    return (plain[label.end() :] if label else plain).strip(_EDGES).lower()


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:50]}…{text[-29:]}")
