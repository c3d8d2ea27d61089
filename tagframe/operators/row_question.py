"""What is asked of the rows of a table, each by itself: the words of it, one row's prompt, and how answers are read.

Last here: the question whether a claim is true of a row.

Every operator that looks at one row at a time makes a :class:`Question`; :mod:`tagframe.operators.packing` asks it, one
row a prompt or several.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import pandas as pd

from tagframe.errors import AnswerRejected, ColumnNotFound, ContextTooLong, InvalidArgument, did_you_mean
from tagframe.lm import Batch, Completion, Message, Prompt, Stored, TokenLogprob
from tagframe.operators.answer_grammar import (
    TRUTH,
    UNSURE,
    Unsure,
    parse_labelled_word_or_unsure,
    parse_text,
    parse_word_or_unsure,
)
from tagframe.operators.cells import DATA_RULE, SHORTEST, cut_note, encode_rows, fence, room, shortened
from tagframe.operators.instruction import FIELD_RULE, Instruction
from tagframe.operators.outcome import Outcome, OutcomeKind
from tagframe.operators.step_generators import Step, gather
from tagframe.operators.values import split_answer

T = TypeVar("T")
_Said: TypeAlias = tuple[T | Unsure, str | None]

WORLD = "Go by the row and what you know of the world; where usage differs, by the commonest."
"""The sentence of operators that may know more than the row says."""
UNKNOWN_WHERE = "Unknown where that cannot be told"
"""What follows the form of a value."""
EXPLAINED_TOKENS = 256
"""Room for two sentences beside an answer."""
ANSWER = "Answer"
"""The column of examples that holds what the model should have said (LOTUS' name)."""
FROM_PACK = "answered in a pack of rows before"
"""The note of a row that the store has from a pack."""


@dataclass(frozen=True, slots=True)
class Reply(Generic[T]):
    """What was said of a row.

    Attributes:
        value: the answer, or that it cannot be said; None where there is none.
        reason: the model's explanation, where it was asked for one.
        confidence: the probability of the answer among all answers, by the model's own word; None where not known.
        error: why there is no answer.
        note: what else is to know of it, for the row's outcome.
        split: whether it was asked among other rows first, and that came to nothing.
    """

    value: T | Unsure | None
    reason: str | None = None
    confidence: float | None = None
    error: Exception | None = None
    note: str | None = None
    split: bool = False


@dataclass(frozen=True)
class Question(Generic[T]):
    """A question about the rows of a table.

    Attributes:
        task: what to do with a row, in a sentence or two.
        text: what the user asks, after a word for what it is: ``"Claim: …"``.
        form: what an answer is, to stand after "Answer with".
        unsure: what the model writes where it cannot say, and when.
        read: an answer without reasons, to its value; raises :class:`~tagframe.errors.AnswerRejected`.
        guess: an answer such as a model gives, or several, which stand for answers in turns.
        tokens: of an answer at most, without reasons; None for the server's own limit.
        turns: solved rows, as turns of a conversation.
        explains: whether the model gives its reasons.
        window: tokens of one request at most, or None.
        alike: whether two answers about one row say the same, for the audit of packs.
        weigh: the probability of an answer, from the log probabilities of its tokens; None where it is not wanted.
        read_explained: an answer with its reasons; None for what stands after "Answer:", and what stands before it.
    """

    task: str
    text: str
    form: str
    unsure: str
    read: Callable[[str], T | Unsure]
    guess: str | tuple[str, ...]
    tokens: int | None
    turns: tuple[Message, ...] = ()
    explains: bool = False
    window: int | None = None
    alike: Callable[[Any, Any], bool] = operator.eq
    weigh: Callable[[Sequence[TokenLogprob] | None, T | Unsure], float | None] | None = None
    read_explained: Callable[[str], tuple[T | Unsure, str]] | None = None

    @cached_property
    def opening(self) -> tuple[Message, ...]:
        """What stands before the row."""
        # What is the same for all rows comes first: providers keep the beginnings of prompts, and charge less for them.
        if self.explains:
            form = f"Explain in one or two sentences. Then, on a line of its own, end with 'Answer:' and {self.form}"
        else:
            form = f"Answer with {self.form}, and nothing else"
        return (
            Message("system", f"{self.task} {DATA_RULE} {FIELD_RULE} {form}; {self.unsure}.\n\n{self.text}"),
            *self.turns,
        )

    def prompt(self, line: str) -> Prompt:
        """The prompt for one row, as it is shown."""
        return Prompt((*self.opening, Message("user", fence(line))))

    @cached_property
    def accept(self) -> Callable[[str], _Said[T]]:
        """What reads the answer about one row: ``(value, explanation)``."""

        def accept(text: str) -> _Said[T]:
            if not self.explains:
                return self.read(text), None
            if self.read_explained is not None:
                return self.read_explained(text)
            answer, reason = split_answer(parse_text(text))
            return self.read(answer), reason

        return accept

    @property
    def limit(self) -> int | None:
        """Tokens of the answer about one row."""
        return None if self.tokens is None else self.tokens + EXPLAINED_TOKENS * self.explains

    @cached_property
    def room(self) -> int | None:
        """Bytes of a row that one prompt may hold; None where the model's window is not known."""
        return room(self.window, *(str(message.content) for message in self.opening))

    def guessed(self, reason: str) -> tuple[str, ...]:
        """The guesses, after a reason where reasons are asked for."""
        guesses = (self.guess,) if isinstance(self.guess, str) else self.guess
        return tuple(f"{reason}{guess}" if self.explains else guess for guess in guesses)

    def ask(self, lines: Sequence[str], stored: Stored = "any") -> Step[list[Reply[T]]]:
        """The reply on each row, asked by itself, with as much of it as the model takes.

        A row is cut before it is sent where the model's window is known, and to half, again and again, where the server
        says that it is too long.

        Args:
            lines: rows, of :func:`~tagframe.operators.cells.encode_rows`.
            stored: what of the store may answer; "alone" leaves out what was said in packs.
        """
        shown = [line if self.room is None else shortened(line, self.room) for line in lines]
        guess = self.guessed("So it is, by what the row says and by what is known.\nAnswer: ")
        found: dict[int, Completion[_Said[T]]] = {}
        waiting = list(range(len(lines)))
        while waiting:
            batch = self._batch([shown[row] for row in waiting], accept=self.accept, guess=guess, stored=stored)
            found.update(zip(waiting, (yield from gather(batch)), strict=True))
            waiting = [row for row in waiting if isinstance(found[row].error, ContextTooLong)]
            waiting = [row for row in waiting if len(shown[row].encode()) > SHORTEST]
            for row in waiting:
                shown[row] = shortened(shown[row], max(SHORTEST, len(shown[row].encode()) // 2))
        return [self._reply(found[row], cut_note(line, shown[row])) for row, line in enumerate(lines)]

    def recalled(self, lines: Sequence[str], stored: Stored = "any") -> Step[dict[int, Reply[T]]]:
        """The replies that the store has already, by position; nothing is sent."""
        completions = yield from gather(self._batch(lines, accept=self.accept, stored=stored, sends=False))
        known = enumerate(completions)
        return {row: self._reply(completion) for row, completion in known if completion.value is not None}

    def keep(self, answers: Sequence[tuple[str, str]]) -> Step[None]:
        """Have the store know what was said of rows in packs: each a line, as it was shown, and an answer to it."""
        lines, said = zip(*answers, strict=True) if answers else ((), ())
        yield from gather(self._batch(lines, known=said))

    def _batch(self, lines: Sequence[str], **more: Any) -> Batch[Any]:
        prompts = [self.prompt(line) for line in lines]
        return Batch(prompts, max_tokens=self.limit, logprobs="optional" if self.weigh else False, **more)

    def _reply(self, completion: Completion[_Said[T]], cut: str | None = None) -> Reply[T]:
        if completion.value is None:
            return Reply(None, error=completion.error, note=cut)
        value, reason = completion.value
        note = joined_notes(cut, FROM_PACK if completion.origin == "pack" else None)
        return Reply(value, reason, self.weigh(completion.logprobs, value) if self.weigh else None, note=note)


def joined_notes(*notes: str | None) -> str | None:
    """Notes on one row, as one."""
    return "; ".join(note for note in notes if note) or None


def example_turns(examples: pd.DataFrame | None, resolved: Instruction, answer: Callable[[Any], str]) -> list[Message]:
    """Solved rows as turns of a conversation, so that they cannot be mistaken for the row in question.

    Args:
        examples: the columns of the instruction, and a column ``Answer``; None for no examples.
        resolved: the instruction.
        answer: the model's message, from a cell of ``Answer``.

    Raises:
        ColumnNotFound: a column is missing.
        InvalidArgument: an example without an answer, or with one that the model must not give.
    """
    if examples is None:
        return []
    labels = [str(label) for label in examples.columns]
    *positions, answered = (example_column(labels, str(name)) for name in (*resolved.columns, ANSWER))
    answers = examples.iloc[:, answered]
    if answers.isna().any():
        raise InvalidArgument(f"the examples' column {ANSWER!r} has nulls; each example needs an answer")
    rows = encode_rows(examples, positions, resolved.names)
    turns = []
    for row, given in zip(rows, answers.tolist(), strict=True):
        try:
            said = answer(given)
        except AnswerRejected as rejection:
            raise InvalidArgument(f"an example's {ANSWER!r} is none that a model may give: {rejection}") from rejection
        turns += [Message("user", fence(row or "{}")), Message("assistant", said)]
    return turns


def example_column(labels: Sequence[str], *names: str) -> int:
    """The position of the column of examples that has the first of these names that there is.

    Raises:
        ColumnNotFound: there is none.
    """
    for name in names:
        if name in labels:
            return labels.index(name)
    raise ColumnNotFound(f"the examples have no column {names[0]!r} in {did_you_mean(names[0], labels)}")


# --- claims -----------------------------------------------------------------------------------------------------------

Truth: TypeAlias = bool | Literal[Unsure.UNSURE]

_KINDS: dict[Truth, OutcomeKind] = {True: "yes", False: "no", UNSURE: "unsure"}
ANSWER_TOKENS = 16
"""Room for one word, "Answer:" and markdown; where a model reasons first, the LM layer gives it more."""

_CLAIM_TASK = f"Judge whether a claim is true of a row of a table. {WORLD}"
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
        _CLAIM_TASK,
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
