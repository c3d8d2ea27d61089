"""A model for SemBench's films that knows how favourable each review is, and answers any form of prompt.

A prompt is read loosely: the reviews in it are found by their texts, whatever stands around them, and the form of the
answer by a few words, so that other wordings and packs of other rows get the same judgements. What cannot be told is
refused, so that nothing is answered by chance.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from tag_bench.server import Reply, Request, error

_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_CUT = " … (cut)"
_LABEL = re.compile(r"^\W*([LR]?\d+)\b[\]:.) ]*(?=[\[{\"])")
_DATA = re.compile(r"<(\w+)>\n.*?\n</\1>", re.DOTALL)
_SCALE = re.compile(r"\bfrom (\d+) to (\d+)\b")
_OPTIONS = re.compile(r"one of (?:these|the)\b[^\n]*?:\s*((?:'[^']*'(?:, )?)+)", re.IGNORECASE)
_AGAINST = re.compile(
    r"\b(?:negative|negatively|unfavou?rable|harsh\w*|dislikes?|critical|worst|least)\b", re.IGNORECASE
)
_FOR = re.compile(r"\b(?:positive|positively|favou?rable|praise\w*|likes?|best|most|warm\w*)\b", re.IGNORECASE)
_COUNTED = re.compile(r"(\d+) of (\d+) reviews are positive")
_FIELD = re.compile(r'^- "((?:[^"\\]|\\.)*)": (.*)$', re.MULTILINE)


class _Row(NamedTuple):
    label: str
    texts: list[str]


class Reviewer:
    """A model for :class:`tag_bench.server.Server` that knows the reviews.

    Args:
        favour: how favourable each text is, 0 to 1; it is positive above 0.5.
    """

    def __init__(self, favour: Mapping[str, float]) -> None:
        self._favour = favour

    def __call__(self, request: Request) -> str | Reply:
        """The answer; status 422 if the reviews, or the form of the answer, cannot be told."""
        user = request.prompt
        text = _DATA.sub("", "\n".join(str(message["content"]) for message in request.messages))
        rows = self._rows(user)
        for answer in (self._plan, self._pairs, self._order, self._summary):
            if (given := answer(text, user, rows)) is not None:
                return given
        answers = [self._of_row(text, row.texts) for row in rows]
        if not answers or any(one is None for one in answers):
            return error(422, f"no judgement covers {text[-200:]!r}")
        if "<rows>" not in user:
            return _reasoned(text, answers[-1] or "", "\n")
        return "\n".join(
            f"{row.label}: {_reasoned(text, one or '', ' ')}" for row, one in zip(rows, answers, strict=True)
        )

    def _rows(self, user: str) -> list[_Row]:
        """The rows of a prompt with their numbers; a review that all rows share stands once, before them."""
        rows: list[_Row] = []
        shared: list[str] = []
        for line in user.splitlines():
            texts, label = self._texts(line), _LABEL.match(line)
            if label is not None:
                rows.append(_Row(label[1], texts or shared))
            elif texts and line.startswith("{"):
                rows.append(_Row(str(len(rows) + 1), texts))
            elif texts:
                shared = texts
        return rows

    def _texts(self, line: str) -> list[str]:
        """The known reviews in a line, also those that are cut."""
        found = []
        for literal in _TEXT.findall(line):
            try:
                text = json.loads(literal)
            except ValueError:
                continue
            if text.endswith(_CUT):
                text = next((known for known in self._favour if known.startswith(text.removesuffix(_CUT))), text)
            if text in self._favour:
                found.append(text)
        return found

    # --- judgements -------------------------------------------------------------------------------------------

    def _feels(self, text: str) -> bool:
        return self._favour[text] > 0.5

    def _of_row(self, prompt: str, texts: list[str]) -> str | None:
        """The answer about one row: a truth, a score, a label, or fields."""
        if not texts:
            return None
        against = bool(_AGAINST.search(_request_in(prompt))) and not _FOR.search(_request_in(prompt))
        truth = self._feels(texts[0]) != against
        if len(texts) > 1:
            truth = (truth == self._feels(texts[1])) != _is_opposite(prompt)
        if fields := _FIELD.findall(prompt):
            return json.dumps({name: "positive" if truth else "negative" for name, _ in fields})
        if scale := _SCALE.search(prompt):
            low, high = int(scale[1]), int(scale[2])
            score = self._favour[texts[0]]
            score = low + (1 - score if against else score) * (high - low)
            return f"{score:.2f}" if high - low <= 1 else f"{score:.0f}"
        if options := _OPTIONS.search(prompt):
            named = re.findall(r"'([^']*)'", options[1])
            sign = _FOR if self._feels(texts[0]) else _AGAINST
            return next((option for option in named if sign.search(option)), None)
        return str(truth) if "True or False" in prompt or "'Answer: True'" in prompt else None

    def _plan(self, prompt: str, user: str, rows: list[_Row]) -> str | None:
        """A join by labels."""
        if "<left>" not in user or '"labels"' not in prompt:
            return None
        opposite = [["positive", "negative"], ["negative", "positive"]] if _is_opposite(prompt) else "equal"
        question = "Is the review positive or negative about the film?"
        return json.dumps({"left": question, "right": question, "labels": ["positive", "negative"], "pairs": opposite})

    def _pairs(self, prompt: str, user: str, rows: list[_Row]) -> str | None:
        """The pairs of rows of two tables of which a claim is true."""
        if "<left>" not in user or not all(row.texts for row in rows):
            return None
        opposite = _is_opposite(prompt)
        sides = [[row for row in rows if row.label.startswith(letter)] for letter in "LR"]
        feel = [[(row.label, self._feels(row.texts[0])) for row in side] for side in sides]
        why = ["by what they say"] * ('"R2", "' in prompt)
        return json.dumps([[a, b, *why] for a, one in feel[0] for b, other in feel[1] if (one != other) == opposite])

    def _order(self, prompt: str, user: str, rows: list[_Row]) -> str | None:
        """The rows of a list, best first."""
        if "rank rows" not in prompt.lower() or not rows or not all(row.texts for row in rows):
            return None
        sign = 1 if _AGAINST.search(_request_in(prompt)) else -1
        order = sorted(rows, key=lambda row: sign * self._favour[row.texts[0]])
        return " > ".join(row.label for row in order)

    def _summary(self, prompt: str, user: str, rows: list[_Row]) -> str | None:
        """How many reviews are positive, of rows or of partial answers."""
        if "Sources:" not in prompt:
            return None
        feels = [self._feels(row.texts[0]) for row in rows if row.texts]
        parts = [(int(positive), int(count)) for positive, count in _COUNTED.findall(user)] or [
            (sum(feels), len(feels))
        ]
        positive, count = (sum(part[at] for part in parts) for at in (0, 1))
        return f"{positive} of {count} reviews are positive.\nSources: all"


def _request_in(prompt: str) -> str:
    """What the user asks, without the rules around it: the text after the last "Claim:", "Question:" or the like."""
    parts = re.split(r"\b(?:Claim|Question|Instruction|Criterion|Request): ", prompt)
    return parts[-1].split("\n\n")[0]


def _is_opposite(prompt: str) -> bool:
    return bool(re.search(r"\b(?:opposite|differ\w*|contrary|disagree)\b", _request_in(prompt)))


def _reasoned(prompt: str, answer: str, gap: str) -> str:
    return f"The words say so.{gap}Answer: {answer}" if "'Answer:" in prompt else answer
