"""Questions about the rows of a table, each row by itself: the wording, the prompt of a row, and how answers are read.

The question whether a claim is true of a row is at the end.

Every operator that looks at one row at a time makes a :class:`Question`; :mod:`tagframe.operators.packing` asks it,
with one or several rows in a prompt.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import pandas as pd

from tagframe.blocks import DATA_RULE, fence
from tagframe.errors import AnswerRejected, ColumnNotFound, ContextTooLong, InvalidArgument, did_you_mean
from tagframe.lm import Batch, Completion, Form, Message, Prompt, RowPrompts, Stored, TokenLogprob, fields_schema, words
from tagframe.operators.cells import (
    FIELD_RULE,
    MIN_ROW_BYTES,
    Instruction,
    cut_note,
    encode_rows,
    label_text,
    room,
    shortened,
)
from tagframe.operators.drivers import Step, gather, gather_read
from tagframe.operators.outcome import Outcome, OutcomeKind
from tagframe.operators.values import (
    TRUTH,
    UNSURE,
    Unsure,
    parse_text,
    parse_word,
    parse_word_or_unsure,
    split_answer,
)

T = TypeVar("T")
_Answer: TypeAlias = tuple[T | Unsure, str | None]

WORLD = "Go by the row and what you know of the world; where usage differs, by the commonest."
"""The sentence for operators that may use knowledge beyond the row."""
UNKNOWN_WHERE = "Unknown where that cannot be told"
"""What to answer where there is no value, and when."""
EXPLAINED_TOKENS = 256
"""Room for two sentences beside an answer."""
ANSWER = "Answer"
"""The column of examples with the right answers (LOTUS' name)."""
FROM_PACK = "answered earlier in a prompt of several rows"
"""The note of a row whose stored answer comes from a pack."""


@dataclass(frozen=True, slots=True)
class Reply(Generic[T]):
    """The reply for a row.

    Attributes:
        value: the answer, or ``UNSURE`` if the model cannot tell; None if there is no answer.
        reason: the model's explanation, if one was requested.
        confidence: the probability of the answer among all answers, from the model; None if not known.
        error: why there is no answer.
        note: further information for the row's outcome.
    """

    value: T | Unsure | None
    reason: str | None = None
    confidence: float | None = None
    error: Exception | None = None
    note: str | None = None


@dataclass(frozen=True)
class Question(Generic[T]):
    """A question about the rows of a table.

    Attributes:
        task: what to do with a row, in a sentence or two.
        text: the user's text after a word for its kind: ``"Claim: …"``.
        form: a description of the answer, to follow "Answer with" after the row.
        unsure: what the model should write if it cannot tell, and when.
        read: parses an answer without reasons; raises :class:`~tagframe.errors.AnswerRejected`.
        guess: a typical answer, or several that are used in turn.
        tokens: the most tokens of an answer without reasons.
        turns: solved rows, as turns of a conversation.
        explains: whether the model gives its reasons.
        window: the most tokens of one request, or None.
        alike: whether two answers about one row mean the same, for the audit of packs.
        weigh: the probability of an answer, from the log probabilities of its tokens; None if it is not needed.
        in_packs: the question as a pack of rows asks it, if otherwise; its answers are the same values.
        write: an answer as the row alone would have it; None if packs have it in the same form.
        details: a longer description of the answer than ``form``, before the rows; "" if there is none.
        shape: the answer's form for servers that can hold a model to it; None for a text.
        free: whether an answer is a text of any length.
    """

    task: str
    text: str
    form: str
    unsure: str
    read: Callable[[str], T | Unsure]
    guess: str | tuple[str, ...]
    tokens: int
    turns: tuple[Message, ...] = ()
    explains: bool = False
    window: int | None = None
    alike: Callable[[Any, Any], bool] = operator.eq
    weigh: Callable[[Sequence[TokenLogprob] | None, T | Unsure], float | None] | None = None
    in_packs: Question[T] | None = None
    write: Callable[[T], str] | None = None
    details: str = ""
    shape: Form | None = None
    free: bool = False

    @property
    def rules(self) -> str:
        """The rules for the answer, which stand before the rows."""
        before = f"{self.details}; " if self.details else "" if self.explains else "Answer "
        return f"{DATA_RULE} {FIELD_RULE} {before}{self.unsure}."

    @cached_property
    def last_line(self) -> str:
        """The line after the row: weak models follow what stands last."""
        if self.explains:
            return f"Explain in one or two sentences, then end on a line of its own with 'Answer:' and {self.form}."
        return f"Answer with {self.form}:"

    @cached_property
    def opening(self) -> tuple[Message, ...]:
        """The part of the prompt before the row."""
        # Text that all rows share comes first: providers cache the beginnings of prompts and charge less for them.
        return (Message("system", f"{self.task} {self.rules}\n\n{self.text}"), *self.turns)

    def prompt(self, line: str) -> Prompt:
        """The prompt for one row as it is shown."""
        return Prompt((*self.opening, Message("user", f"{fence(line)}\n{self.last_line}")))

    @cached_property
    def accept(self) -> Callable[[str], _Answer[T]]:
        """A parser for the answer about one row: ``(value, explanation)``."""

        def accept(text: str) -> _Answer[T]:
            if not self.explains:
                return self.read(text), None
            answer, reason = split_answer(parse_text(text))
            return self.read(answer), reason

        return accept

    @property
    def limit(self) -> int:
        """Tokens of the answer about one row."""
        return self.tokens + EXPLAINED_TOKENS * self.explains

    @cached_property
    def room(self) -> int | None:
        """The most bytes of a row in one prompt; None if the model's window is not known."""
        return room(self.window, self.last_line, *(str(message.content) for message in self.opening))

    def guessed(self, reason: str) -> tuple[str, ...]:
        """The guesses, after a reason if reasons are requested."""
        guesses = (self.guess,) if isinstance(self.guess, str) else self.guess
        return tuple(f"{reason}{guess}" if self.explains else guess for guess in guesses)

    def ask(self, lines: Sequence[str], stored: Stored = "any") -> Step[list[Reply[T]]]:
        """The reply for each row, asked by itself, with as much of the row as the model accepts.

        If the model's window is known, a row is cut before it is sent. If the server says that a row is too long, it is
        cut to half, repeatedly.

        Args:
            lines: rows, from :func:`~tagframe.operators.cells.encode_rows`.
            stored: which stored answers may be used; "alone" leaves out answers from packs.
        """
        texts = [line if self.room is None else shortened(line, self.room) for line in lines]
        guess = self.guessed("So it is, by what the row says and by what is known.\nAnswer: ")
        replies: dict[int, Reply[T]] = {}
        waiting = list(range(len(lines)))

        def read(number: int, completion: Completion[_Answer[T]]) -> Reply[T]:
            row = waiting[number]
            return self._reply(completion, cut_note(lines[row], texts[row]))

        while waiting:
            batch = self._batch([texts[row] for row in waiting], accept=self.accept, guess=guess, stored=stored)
            replies.update(zip(waiting, (yield from gather_read(batch, read)), strict=True))
            waiting = [row for row in waiting if isinstance(replies[row].error, ContextTooLong)]
            waiting = [row for row in waiting if len(texts[row].encode()) > MIN_ROW_BYTES]
            for row in waiting:
                texts[row] = shortened(texts[row], max(MIN_ROW_BYTES, len(texts[row].encode()) // 2))
        return [replies[row] for row in range(len(lines))]

    def recalled(self, lines: Sequence[str], stored: Stored = "any") -> Step[dict[int, Reply[T]]]:
        """The stored replies, by position; nothing is sent.

        Args:
            lines: rows, as they are shown.
            stored: which stored answers may be used.
        """
        completions = yield from gather(self._batch(lines, accept=self.accept, stored=stored, sends=False))
        return {row: self._reply(one) for row, one in enumerate(completions) if one.value is not None}

    def keep(self, answers: Sequence[tuple[str, str]]) -> Step[None]:
        """Store the answers to rows of packs: each is a line as it was shown, and an answer to it."""
        lines, texts = zip(*answers, strict=True) if answers else ((), ())
        yield from gather(self._batch(lines, known=texts))

    def _batch(self, lines: Sequence[str], **more: Any) -> Batch[Any]:
        logprobs: Literal["optional", False] = "optional" if self.weigh else False
        form = explained(self.shape) if self.shape and self.explains else self.shape
        return Batch(
            RowPrompts(lines, self.prompt), max_tokens=self.limit, logprobs=logprobs, form=form, free=self.free, **more
        )

    def _reply(self, completion: Completion[_Answer[T]], cut: str | None = None) -> Reply[T]:
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

    The arguments and errors are those of :func:`solved_rows`.
    """
    solved = solved_rows(examples, resolved, answer)
    return [turn for line, answer in solved for turn in (Message("user", fence(line)), Message("assistant", answer))]


def solved_rows(
    examples: pd.DataFrame | None, resolved: Instruction, answer: Callable[[Any], str]
) -> list[tuple[str, str]]:
    """The rows of a user's examples as they are shown to the model, each with the message that answers it.

    Args:
        examples: the columns of the instruction, and a column ``Answer``; None for no examples.
        resolved: the instruction.
        answer: the model's message, from a cell of ``Answer``.

    Raises:
        ColumnNotFound: a column is missing.
        InvalidArgument: the examples are no frame; or one has no answer, or one that the model must not give.
    """
    if examples is None:
        return []
    labels = example_labels(examples)
    *positions, answered = (example_column(labels, label_text(name)) for name in (*resolved.columns, ANSWER))
    answers = examples.iloc[:, answered]
    if answers.isna().any():
        raise InvalidArgument(f"the examples' column {ANSWER!r} has nulls; each example needs an answer")
    rows = encode_rows(examples, positions, resolved.names)
    solved = []
    for row, given in zip(rows, answers.tolist(), strict=True):
        try:
            solved.append((row or "{}", answer(given)))
        except AnswerRejected as rejection:
            raise InvalidArgument(f"an example's {ANSWER!r} is not a valid answer: {rejection}") from rejection
    return solved


def answer_text(answer: Any) -> str:
    """A cell of ``Answer`` as a model writes it; several values are a dict or a pydantic model."""
    if isinstance(answer, dict):
        return json.dumps(answer, ensure_ascii=False, default=str)
    return str(answer.model_dump_json() if hasattr(answer, "model_dump_json") else answer)


def no_use_for_examples(examples: pd.DataFrame | None, because: str) -> None:
    """Refuse examples that no model would be shown.

    Raises:
        InvalidArgument: there are examples.
    """
    if examples is not None:
        raise InvalidArgument(f"examples= is for a model, and none is asked: {because}; leave examples= out")


def example_labels(examples: Any) -> list[str]:
    """The names of the columns of examples.

    Raises:
        InvalidArgument: the examples are no frame.
    """
    if not isinstance(examples, pd.DataFrame):
        raise InvalidArgument(f"examples must be a frame with a column {ANSWER!r}; got {examples!r:.200}")
    return [label_text(label) for label in examples.columns]


def example_column(labels: Sequence[str], *names: str) -> int:
    """The position of the column of examples with the first of these names that exists.

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
"""Room for one word, "Answer:" and markdown; if a model reasons first, the LM layer allows more."""

_CLAIM_TASK = f"Judge whether a claim is true of a row of a table. {WORLD}"
UNSURE_WHERE = "Unsure where that does not decide it"
"""What to answer where neither True nor False is right, and when."""


def explained(form: Form, before: str = "\n") -> Form:
    """A form after the model's reason and "Answer:"."""
    return Form(
        fields_schema({"reason": {"type": "string"}, "answer": form.schema}),
        lambda value: f"{' '.join(value['reason'].split())}{before}Answer: {form.write(value['answer'])}",
        form.strict,
    )


TRUTH_FORM = words({True: "True", False: "False", None: "Unsure"})


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
        claim: the claim as written in a prompt.
        turns: solved rows, as turns of a conversation.
        explains: whether the model gives its reasons.
        weighs: whether its confidence is needed.
        window: the most tokens of one request, or None.
        guess: the assumed answer, for quotes.
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
        shape=TRUTH_FORM,
    )


def truth_text(answer: Any) -> str:
    """An example's answer to a claim, as a model writes it.

    Raises:
        AnswerRejected: it is neither true nor false.
    """
    return str(parse_word(str(answer), TRUTH, "True or False"))


def outcome_of(reply: Reply[bool]) -> Outcome:
    """The outcome of a row that was judged."""
    if reply.value is None:
        return Outcome("failed", reply.error, reply.note)
    return Outcome(_KINDS[reply.value], note=reply.note)


def parse_truth(text: str) -> Truth:
    """An answer as True, False or unsure; see :mod:`tagframe.operators.values`.

    >>> parse_truth("**True.**"), parse_truth("It is a river.\\nAnswer: False"), parse_truth("Maybe")
    (True, False, <Unsure.UNSURE: 'unsure'>)

    Raises:
        AnswerRejected: anything else.
    """
    return parse_word_or_unsure(text, TRUTH, "True or False")


def confidence_of(logprobs: Sequence[TokenLogprob] | None, truth: bool | Unsure) -> float | None:
    """The model's probability of an answer, among True and False; None if it is not known.

    The answer is the last token that is one of the words; the probability is relative to its likeliest alternatives.

    Args:
        logprobs: of the answer's tokens.
        truth: the parsed answer.
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
        if not of[truth]:  # servers write the logarithm of 0 as -9999 or -3.4e38, also of the token that they chose
            return None
        return of[truth] / (of[True] + of[False]) if token.top else of[truth]
    return None


def _reading(token: str) -> bool | None:
    return TRUTH.get(token.strip(" \t\r\n.*\"'`:").lower())
