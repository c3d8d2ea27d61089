"""Estimates of the cost of a call, before anything is sent."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Unpack

from tagframe.config import ModelSettings
from tagframe.display import Displayable, fitted
from tagframe.errors import AnswerRejected, LMError, counted
from tagframe.lm.attempts import MAX_TOKENS_UNDER_A_BUDGET
from tagframe.lm.model import LM
from tagframe.lm.pacing import server_state
from tagframe.lm.prompt import ASSUMED_ANSWER, Arrived, Batch, Completion, Job, Prompt, accepted, tokens_of
from tagframe.lm.stream import Stream
from tagframe.lm.usage import Usage, dollars_of

REPAIR_TOKENS = 1024
"""The most tokens of the words that ask for a repair."""
ASSUMED_SECONDS = 1.0
"""Seconds assumed for one request, if none was measured."""


@dataclass(frozen=True, repr=False)
class Quote(Displayable):
    """An estimate; quotes add up with ``+``.

    Attributes:
        rows: prompts that would be asked.
        calls: requests that would be sent, without retries and repairs; if the number depends on the answers, an
            estimate for rows in random order.
        calls_at_most: in the worst case, where packs of rows fail and are asked row by row in the end, and every
            answer has to be repaired: a ``Budget(calls=…)`` of so many suffices, unless a server fails and requests
            are sent again.
        deduplicated: prompts answered by an equal prompt of the same call.
        stored: prompts answered from the response store.
        tokens_in: of the prompts that would be sent, estimated by their length.
        tokens_out: of their answers, without reasoning: by the length of the guesses, else the mean of this model's
            stored answers, else 256 each; ``max_tokens`` at most.
        dollars: None if the model's price is unknown.
        dollars_at_most: in the worst case, as ``calls_at_most``, with answers of the longest length.
        seconds: by the mean time of this model's stored answers, else 1 s a request; at the configured concurrency, or
            as many at once as the server was seen to serve, and within ``rpm``.
        whole: False if an operator would send more, which depends on answers that cannot be guessed.
        query: the statement that the quote is for, if there is one.
        stages: what each LM function of the statement would be asked.
    """

    rows: int = 0
    calls: int = 0
    deduplicated: int = 0
    stored: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    dollars: float | None = 0.0
    seconds: float = 0.0
    whole: bool = True
    calls_at_most: int = 0
    dollars_at_most: float | None = 0.0
    query: Any = None
    stages: tuple[Any, ...] = ()

    def __add__(self, other: Quote) -> Quote:
        added = {"whole": self.whole and other.whole, "query": other.query if self.query is None else self.query}
        for name in {field.name for field in fields(self)} - {*added}:
            one, more = getattr(self, name), getattr(other, name)
            added[name] = None if one is None or more is None else one + more
        return Quote(**added)

    def __repr__(self) -> str:
        """The statement and the calls of its LM functions, if there are any; then the sum."""
        lines = [] if self.query is None else [str(self.query), *(f"  {stage}" for stage in self.stages)]
        return fitted("\n".join([*lines, f"  {self}" if lines else f"Quote({self})"]))

    def __str__(self) -> str:
        dollars = "unknown (the model's price is not known)" if self.dollars is None else f"${self.dollars:.4f}"
        if self.dollars_at_most:
            dollars += f", in the worst case ${self.dollars_at_most:.4f}"
        free = [counted(self.deduplicated, "duplicate")] if self.deduplicated else []
        free += [f"{self.stored} stored"] if self.stored else []
        saved = f" ({', '.join(free)})" if free else ""
        # Without packs and rounds, the worst case is one repair of each answer.
        least = "at least " if not self.whole else "about " if self.calls_at_most > 2 * self.calls else ""
        most = f", in the worst case {self.calls_at_most}," if self.calls_at_most > self.calls else ""
        return (
            f"{least}{counted(self.calls, 'call')}{most} for {counted(self.rows, 'prompt')}"
            f"{saved}, about {self.tokens_in} tokens in and {self.tokens_out} out, dollars: {dollars},"
            f" about {self.seconds:.0f} s"
        )


class QuoteEnds(LMError):
    """An operator under a :class:`QuotingLM` needs an answer without a guess; the quote covers the calls before it."""


class QuotingLM(LM):
    """Replaces a model, sends nothing, and adds up what its calls would cost.

    Prompts with a stored answer get that answer. The others get ``guess(prompt)``, so that an operator with several
    rounds can be quoted to its end. Without a guess, or if ``accept`` rejects it, :class:`QuoteEnds` stops the operator
    after this call; all that was asked together with a rejected guess is counted::

        quoting = QuotingLM(get_lm(), guess=lambda prompt: "True")
        with tf.context(lm=quoting), contextlib.suppress(QuoteEnds):
            operator(…)
        quoting.quote

    Args:
        lm: the model that would be asked.
        guess: an answer that ``accept`` takes, for a prompt.

    Attributes:
        quote: the sum of the calls so far.
        guess: as given.
    """

    def __init__(self, lm: LM, guess: Callable[[Prompt], str] | None = None) -> None:
        self.__dict__.update(lm.__dict__)
        self.quote = Quote()
        self.guess = guess

    def using(self, **settings: Unpack[ModelSettings]) -> LM:
        """A copy with other settings; both add to the same sum."""
        self._settings = self._settings | settings
        return self

    def stream(self, description: str = "") -> Stream:
        """An open call that sends nothing."""
        return _QuotingStream(self, description)


class _QuotingStream(Stream):
    _lm: QuotingLM

    def __init__(self, lm: QuotingLM, description: str) -> None:
        super().__init__(lm, description)
        self._rejected: QuoteEnds | None = None

    def _taken(self) -> Arrived:
        """The guesses.

        Raises:
            QuoteEnds: one was rejected.
        """
        if self._rejected is not None:
            raise self._rejected
        return super()._taken()

    def _answer(self, jobs: list[Job[Any]], batch: Batch[Any]) -> None:
        unknown = self._take_stored(jobs)
        guesses = self._guesses(batch, unknown)
        self._lm.quote += self._quote(batch, len(jobs), unknown, guesses)
        if len(guesses) < len(unknown):
            raise self._ends("this call's answers")
        for job, text in zip(unknown, guesses, strict=True):
            try:
                value = accepted(text, job.batch.accept)
            except AnswerRejected as rejection:
                self._rejected = self._ends(f"an acceptable guess instead of {text!r} ({rejection})")
                self._wake()
                return
            job.completion = Completion(text, value, None, Usage(prompts=1), None, "sent")
        self._end(jobs)

    def _keep(self, jobs: Sequence[Job[Any]], answers: Sequence[str]) -> None:
        self._store, store = None, self._store  # guesses are not kept
        super()._keep(jobs, answers)
        self._store = store

    def _look_up(self, jobs: Sequence[Job[Any]]) -> None:
        super()._look_up(jobs)
        stored = sum(job.completion.usage.stored for job in jobs if job.completion is not None)
        self._lm.quote += Quote(rows=stored, stored=stored)

    def _guesses(self, batch: Batch[Any], unknown: Sequence[Job[Any]]) -> list[str]:
        """The guesses for unknown answers; nothing without a guess."""
        if batch.guess is not None:
            guesses = (batch.guess,) if isinstance(batch.guess, str) else batch.guess
            return [guesses[number % len(guesses)] for number in range(len(unknown))]
        guess = self._lm.guess
        return [] if guess is None else [guess(job.prompt) for job in unknown]

    def _ends(self, what: str) -> QuoteEnds:
        self._lm.quote = replace(self._lm.quote, whole=False)
        return QuoteEnds(f"a quote cannot go on without {what}; so far: {self._lm.quote}")

    def _quote(self, batch: Batch[Any], distinct: int, unknown: Sequence[Job[Any]], guesses: Sequence[str]) -> Quote:
        lm, seconds, answer_tokens = self._lm, None, None
        if self._store is not None and not lm.replays:
            seconds, answer_tokens = self._store.measured(*lm.stored_as)
        if guesses:
            answer_tokens = sum(map(tokens_of, guesses)) / len(guesses)
        elif answer_tokens is None:
            answer_tokens = ASSUMED_ANSWER
        if batch.max_tokens is not None:
            answer_tokens = min(answer_tokens, batch.max_tokens)
        tokens_in = sum(job.prompt.tokens for job in unknown)
        tokens_out = round(answer_tokens * len(unknown))
        most, dearest = _bounds(batch, [job.prompt.most_tokens for job in unknown])
        price = lm.price_in(lm.tier)
        rounds = math.ceil(
            len(unknown) / server_state(lm.transport.endpoint, lm.model).gate.at_once(self._settings.concurrency)
        )
        return Quote(
            rows=len(batch.prompts),
            calls=len(unknown),
            deduplicated=len(batch.prompts) - distinct,
            stored=distinct - len(unknown),
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            dollars=dollars_of(price, tokens_in, tokens_out) if unknown else 0.0,
            dollars_at_most=dollars_of(price, *dearest) if unknown else 0.0,
            seconds=max(
                rounds * (ASSUMED_SECONDS if seconds is None else seconds),
                60 * len(unknown) / (self._settings.rpm or math.inf),
            ),
            calls_at_most=most,
        )

    def _record(self) -> None:
        """Do nothing: nothing was sent, so there is no usage to record."""


def _bounds(batch: Batch[Any], sizes: Sequence[int]) -> tuple[int, tuple[int, int]]:
    """The calls of a batch in the worst case, and the tokens in and out.

    Args:
        batch: that is asked.
        sizes: the most tokens of each prompt that has no answer yet.
    """
    bound = batch.bound
    if not sizes or (bound is not None and bound.quoted):
        return 0, (0, 0)
    answer = MAX_TOKENS_UNDER_A_BUDGET if batch.max_tokens is None else batch.max_tokens
    if bound is None:
        most = len(sizes)
        tokens_in, tokens_out = sum(sizes), answer * most
    else:
        bound.quoted = True
        most = max(bound.calls, len(sizes))
        tokens_in = max(sizes) * most if bound.tokens_in is None else bound.tokens_in
        tokens_out = answer * most if bound.tokens_out is None else bound.tokens_out
    # A repair has the prompt again, the rejected answer, and why it was rejected.
    return 2 * most, (2 * tokens_in + tokens_out + REPAIR_TOKENS * most, 2 * tokens_out)
