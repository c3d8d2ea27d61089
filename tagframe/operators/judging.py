"""A claim put to a model, of one row at a time: what it is asked, and how its answer is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tagframe.lm import Message, Prompt, TokenLogprob
from tagframe.operators.answer_grammar import (
    UNSURE,
    UNSURE_RULE,
    Unsure,
    parse_labelled_word_or_unsure,
    parse_word_or_unsure,
)
from tagframe.operators.cells import FENCE_RULE, fence
from tagframe.operators.fitting import ask_fitted, room
from tagframe.operators.instruction import FIELD_RULE
from tagframe.operators.steps import Step

Truth: TypeAlias = bool | Literal[Unsure.UNSURE]

TRUTH = {"true": True, "yes": True, "false": False, "no": False}
"""The words that answer a claim, in lower case."""
ANSWER_TOKENS = 16
"""Room for one word, "Answer:" and markdown; where a model reasons first, the LM layer gives it more."""
EXPLAINED_TOKENS = 256
"""Room for two sentences beside that."""

_TASK = (
    "You judge the rows of a table, one at a time. Decide whether the claim is true of the row, from the row and from "
    f"what you know of the world. {FENCE_RULE} {FIELD_RULE}"
)
_ANSWER_ONLY = f"Answer with one word, True or False. {UNSURE_RULE}"
_ANSWER_EXPLAINED = (
    "Explain in one or two sentences. Then, on a line of its own, end with 'Answer: True' or 'Answer: False'; where "
    "neither the row nor what you know decides it, with 'Answer: Unsure'."
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was said of a row.

    Attributes:
        truth: True, False or unsure; None where there is no answer.
        reason: the model's explanation, where it was asked for one.
        confidence: the probability of the answer among all answers, by the model's own word; None where not known.
        error: why there is no answer.
        note: what else is to know of it, for the row's outcome.
        split: whether it was asked among other rows first, and that came to nothing.
    """

    truth: Truth | None
    reason: str | None = None
    confidence: float | None = None
    error: Exception | None = None
    note: str | None = None
    split: bool = False


@dataclass(frozen=True)
class Judge:
    """A claim, and how it is put to the model.

    Attributes:
        claim: as it reads in a prompt.
        turns: solved rows, as turns of a conversation.
        explains: whether the model gives its reasons.
        weighs: whether its confidence is wanted.
        window: tokens of one request at most, or None.
    """

    claim: str
    turns: tuple[Message, ...] = ()
    explains: bool = False
    weighs: bool = False
    window: int | None = None

    @property
    def tokens(self) -> int:
        """Room for the answer about one row."""
        return EXPLAINED_TOKENS if self.explains else ANSWER_TOKENS

    def ask(self, lines: Sequence[str]) -> Step[list[Verdict]]:
        """The verdict on each row, asked by itself."""
        # What is the same for all rows comes first: providers keep the beginnings of prompts, and charge less for them.
        form = _ANSWER_EXPLAINED if self.explains else _ANSWER_ONLY
        opening = (Message("system", f"{_TASK} {form}\n\nClaim: {self.claim}"), *self.turns)
        answers = yield from ask_fitted(
            lines,
            lambda line: Prompt((*opening, Message("user", fence(line)))),
            parse_explained_truth if self.explains else _parse_unexplained,
            bytes_at_most=room(self.window, *(str(message.content) for message in opening)),
            max_tokens=self.tokens,
            logprobs="optional" if self.weighs else False,
        )
        verdicts = []
        for answer in answers:
            completion = answer.completion
            if completion.value is None:
                verdicts.append(Verdict(None, error=completion.error, note=answer.note))
                continue
            truth, reason = completion.value
            confidence = confidence_of(completion.logprobs, truth) if self.weighs else None
            verdicts.append(Verdict(truth, reason, confidence, note=answer.note))
        return verdicts


def guess(prompt: Prompt) -> str:
    """An answer such as a model gives to :meth:`Judge.ask`, for quotes."""
    explained = str(prompt.messages[0].content).startswith(f"{_TASK} {_ANSWER_EXPLAINED}")
    return "The row says where it is, and a map of that country shows it there.\nAnswer: True" if explained else "True"


def parse_truth(text: str) -> Truth:
    """An answer as True, False or unsure, and nothing in between; see :mod:`tagframe.operators.answer_grammar`.

    >>> parse_truth("**True.**"), parse_truth("It is a river.\\nAnswer: False"), parse_truth("Maybe")
    (True, False, <Unsure.UNSURE: 'unsure'>)

    Raises:
        AnswerRejected: anything else.
    """
    return parse_word_or_unsure(text, TRUTH, "True or False")


def parse_explained_truth(text: str) -> tuple[Truth, str]:
    """An answer with its explanation: ``(truth, explanation)``.

    Raises:
        AnswerRejected: its last line is neither "Answer: True" nor "Answer: False" nor says that it cannot say.
    """
    return parse_labelled_word_or_unsure(text, TRUTH, "'Answer: True' or 'Answer: False'")


def _parse_unexplained(text: str) -> tuple[Truth, None]:
    return parse_truth(text), None


def confidence_of(logprobs: Sequence[TokenLogprob] | None, truth: Truth) -> float | None:
    """How probable an answer was to the model, among True and False; None where that is not known.

    The answer is the last token that is one of the words; its likeliest alternatives share the rest.

    Args:
        logprobs: of the answer's tokens.
        truth: what the answer was read as.
    """
    if truth is UNSURE:
        return None
    for token in reversed(logprobs or ()):
        if _reading(token.token) is not truth:
            continue
        of = {True: 0.0, False: 0.0}
        for text, logprob in token.top or ((token.token, token.logprob),):
            if (reading := _reading(text)) is not None:
                of[reading] += math.exp(min(logprob, 0.0))
        if not of[truth]:  # a server that leaves the answer out of its own alternatives
            of[truth] = math.exp(min(token.logprob, 0.0))
        return of[truth] / (of[True] + of[False]) if token.top else of[truth]
    return None


def _reading(token: str) -> bool | None:
    return TRUTH.get(token.strip(" \t\r\n.*\"'`:").lower())
