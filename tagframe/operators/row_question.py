"""What is asked of the rows of a table, each by itself: the words of it, one row's prompt, and how answers are read.

Every operator that looks at one row at a time makes a :class:`Question`; :mod:`tagframe.operators.packing` asks it, one
row a prompt or several.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeAlias, TypeVar

from tagframe.errors import ContextTooLong
from tagframe.lm import Batch, Completion, Message, Prompt, Stored, TokenLogprob
from tagframe.operators.answer_grammar import Unsure, parse_text
from tagframe.operators.cells import DATA_RULE, SHORTEST, cut_note, fence, room, shortened
from tagframe.operators.instruction import FIELD_RULE
from tagframe.operators.steps import Step, gather
from tagframe.operators.values import split_answer

T = TypeVar("T")
_Said: TypeAlias = tuple[T | Unsure, str | None]

WORLD = "Go by the row and what you know of the world; where usage differs, by the commonest."
"""The sentence of operators that may know more than the row says."""
UNKNOWN_WHERE = "Unknown where that cannot be told"
"""What follows the form of a value."""
EXPLAINED_TOKENS = 256
"""Room for two sentences beside an answer."""
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
