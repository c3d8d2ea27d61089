"""A claim about a row: how it is put to a model, and how the answer is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

from tagframe.lm import Message, TokenLogprob
from tagframe.operators.answer_grammar import (
    TRUTH,
    UNSURE,
    Unsure,
    parse_labelled_word_or_unsure,
    parse_word_or_unsure,
)
from tagframe.operators.outcome import Outcome, OutcomeKind
from tagframe.operators.row_question import WORLD, Question, Reply

Truth: TypeAlias = bool | Literal[Unsure.UNSURE]

_KINDS: dict[Truth, OutcomeKind] = {True: "yes", False: "no", UNSURE: "unsure"}
ANSWER_TOKENS = 16
"""Room for one word, "Answer:" and markdown; where a model reasons first, the LM layer gives it more."""

_TASK = f"Judge whether a claim is true of a row of a table. {WORLD}"
UNSURE_WHERE = "Unsure where that does not decide it"
"""What follows the form of an answer that may be Unsure."""


def claim_question(
    claim: str,
    turns: Sequence[Message] = (),
    *,
    explains: bool = False,
    weighs: bool = False,
    window: int | None = None,
    guess: str | tuple[str, ...] = "True",
) -> Question[bool]:
    """Whether a claim is true of a row.

    Args:
        claim: as it reads in a prompt.
        turns: solved rows, as turns of a conversation.
        explains: whether the model gives its reasons.
        weighs: whether its confidence is wanted.
        window: tokens of one request at most, or None.
        guess: what answers are taken to be, for quotes.
    """
    return Question(
        _TASK,
        f"Claim: {claim}",
        "True or False",
        UNSURE_WHERE,
        parse_truth,
        guess,
        ANSWER_TOKENS,
        tuple(turns),
        explains,
        window,
        weigh=confidence_of if weighs else None,
        read_explained=parse_explained_truth,
    )


def outcome_of(reply: Reply[bool], note: str | None) -> Outcome:
    """What became of a row that was judged, with what else is to know of it."""
    if reply.value is None:
        return Outcome("failed", reply.error, note)
    return Outcome(_KINDS[reply.value], note=note)


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


def confidence_of(logprobs: Sequence[TokenLogprob] | None, truth: bool | Unsure) -> float | None:
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
