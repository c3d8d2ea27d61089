"""The requests for one prompt: they respect rates and budget, and are retried, with a higher token limit if needed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from dataclasses import dataclass, replace
from logging import DEBUG
from typing import TYPE_CHECKING

from tagframe import traces
from tagframe.errors import (
    BudgetExceeded,
    ConnectionFailed,
    ContextTooLong,
    LMError,
    LMRequestFailed,
    RequestTimedOut,
    RunStopped,
    ServerFailed,
)
from tagframe.lm.budget import NOTHING, NOTHING_BUT_A_CALL, Budget, Cost, Window, dollars_of
from tagframe.lm.pacing import Rates, ServerState, own_time
from tagframe.lm.pricing import Price, estimate_answer, estimate_tokens, most_tokens
from tagframe.lm.prompt import LENGTHS, Parameters, Prompt
from tagframe.lm.store import ResponseStore
from tagframe.lm.structure import FIELDS, Way
from tagframe.lm.transport import Reply, Transport
from tagframe.lm.usage import Usage
from tagframe.logs import note

if TYPE_CHECKING:
    from tagframe.lm.model import LM

SERVER_IS_DOWN = (ConnectionFailed, RequestTimedOut, ServerFailed)
MAX_FAILURES_IN_A_ROW = 64
"""A run stops when this many requests time out before any is answered, for as long as an outage may last. It also stops
when this many rows in a row fail after all their retries."""
MAX_TOKENS_UNDER_A_BUDGET = 4096
"""The ``max_tokens`` of a request that sets none, under a budget of tokens or dollars: its cost must be bounded."""
LONG_ANSWER_TOKENS = 16_384
"""Tokens assumed for an answer without a limit: about the most that today's models write in one answer."""
MAX_WINDOW_TOKENS = 2**21
"""The most tokens of a request to a model whose context window is unknown: the widest window of today's models."""
REASONING_TOKENS = 8192
"""Tokens added to ``max_tokens`` once an endpoint has been seen to reason before it answers (the number is LOTUS's)."""
SECONDS_TO_REFUSE = 0.1
"""How long other requests wait for the first one with a form, if nothing is known of the server."""
_FORM_NAMED = re.compile(r"grammar|response_format|schema|structured|guided", re.IGNORECASE)


@dataclass(frozen=True)
class Route:
    """Where the requests of a call go, and under which rules.

    Attributes:
        lm: the model, with its patience.
        rates: requests and tokens a minute, or None.
        store: where accepted answers are stored, or None.
        source: the id of this endpoint and model in that store.
        window: the tokens that the model reads and writes in one request; None where that is not known.
        is_traced: whether prompts and answers are in traces.
    """

    lm: LM
    transport: Transport
    state: ServerState
    rates: Rates | None
    budget: Budget | None
    price: Price | None
    store: ResponseStore | None
    source: int
    window: int | None
    is_traced: bool


@dataclass(slots=True)
class Meter:
    """The parameters of one job, and its cost so far."""

    parameters: Parameters
    sent: int = 0
    retried: int = 0
    repaired: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    dollars: float | None = 0.0
    seconds: float = 0.0

    def usage(self, failed: int = 0) -> Usage:
        """As the usage of one row."""
        spent = {name: getattr(self, name) for name in self.__slots__ if name != "parameters"}
        return Usage(prompts=1, failed=failed, **spent)


class Attempts:
    """The requests of one run.

    Attributes:
        dollars: their cost; None if the price is unknown.
        replied: whether there was a reply.
        miscounted: the server's impossible count of tokens in the last such reply; 0 if there was none.
    """

    def __init__(self, route: Route) -> None:
        self.dollars: float | None = 0.0 if route.price is not None else None
        self.miscounted = 0
        self._route = route
        self._stopped: LMError | None = None
        self._stopping = asyncio.Event()
        self.replied = False
        self._answered = False
        self._timeouts = 0
        self._began = time.monotonic()
        # If the server was down: the first request checks whether it is back, and the others wait for it.
        self._checked = asyncio.Event() if route.state.down is not None else None
        self._checking = False

    async def ask(self, prompt: Prompt, meter: Meter) -> Reply:
        """The reply to a prompt, after as many attempts as the policy allows.

        If the reply was cut off inside the model's reasoning, it is requested once more with a higher limit. Later
        prompts to this endpoint and model have that limit from the start.

        Raises:
            LMError: there is no usable reply.
        """
        way, probes = await self._way(meter)
        sent = self._parameters(meter, way)
        try:
            reply = await self._patiently(prompt, meter, sent)
        except LMRequestFailed as error:
            state, refused = self._route.state, False
            may_be_logprobs = error.status in (400, 403, 422) and "logprob" in str(error).lower()
            if meter.parameters.logprobs == "optional" and sent.logprobs and may_be_logprobs:
                state.gives_logprobs = False
            elif way != "off" and _refuses_form(error, known=state.keeps_form):
                way, refused = "off", not state.keeps_form
                if refused:
                    state.structured = "off"
                elif meter.parameters.form is not None:
                    state.refused.add(meter.parameters.form)
                self._end_probe(probes)
            else:
                raise
            meter.retried += 1
            sent = self._parameters(meter, way)
            try:
                reply = await self._patiently(prompt, meter, sent)
            except LMRequestFailed as again:
                if refused and again.status == error.status:  # it was not the form that was refused
                    state.structured = None
                raise
            if refused:
                self._learn_way("off")
        finally:
            self._end_probe(probes)
        reply = self._in_form(reply, meter, way)
        if not reply.unfinished:
            return reply
        state, known = self._route.state, self._route.state.reasoning
        state.reasoning = REASONING_TOKENS
        roomier = self._parameters(meter, way)
        if roomier.limit == sent.limit:  # it had that room, or its limit is the user's word or the server's
            state.reasoning = known
            return reply
        if self._route.store is not None and self._route.store.writable:
            self._route.store.put_reasoning(self._route.source, REASONING_TOKENS)
        meter.retried += 1
        return self._in_form(await self._patiently(prompt, meter, roomier), meter, way)

    @property
    def stopped(self) -> bool:
        """Whether no more is sent."""
        return self._stopped is not None

    def stop(self, cause: LMError) -> None:
        """Stop sending: every further request would fail in the same way."""
        if isinstance(cause, SERVER_IS_DOWN) and self._stopped is None:
            self._route.state.is_down(cause, time.monotonic() - self._began if self._checked is not None else 0.0)
        self._stopped = self._stopped or cause
        self._stopping.set()

    async def _way(self, meter: Meter) -> tuple[Way, bool]:
        """How to ask for the answer's form, and whether this is the first request that does.

        Others wait a little for its end: a server that refuses a field does so at once, and refuses one request only.
        """
        way, state = self._wanted_way(meter), self._route.state
        if way == "off" or state.structured is not None:
            return way, False
        if state.probing is None:
            state.probing = asyncio.Event()
            return way, True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SECONDS_TO_REFUSE):
                await state.probing.wait()
        return self._wanted_way(meter), False

    def _wanted_way(self, meter: Meter) -> Way:
        form, wanted, known = meter.parameters.form, self._route.lm.structured, self._route.state.structured
        if form is None or wanted == "off" or known == "off" or meter.parameters.extra.keys() & FIELDS:
            return "off"
        if form in self._route.state.refused:
            return "off"
        if wanted != "auto":
            return wanted
        if self._route.transport.own_server and (form.eager or meter.repaired):
            return known or "grammar"
        return "json_schema" if meter.repaired else "off"

    def _end_probe(self, probes: bool) -> None:
        if probes and self._route.state.probing is not None:
            self._route.state.probing.set()
            self._route.state.probing = None

    def _learn_way(self, way: Way) -> None:
        self._route.state.keeps_form = self._route.state.keeps_form and way == self._route.state.structured
        self._route.state.structured = way
        store = self._route.store
        if store is not None and store.writable:
            store.put_structured(self._route.source, way)

    def _in_form(self, reply: Reply, meter: Meter, way: Way) -> Reply:
        """The reply with the text that the prompt asks for, if the server was asked for a form; learns if it obeys."""
        form = meter.parameters.form
        if form is None or way == "off" or reply.truncated:
            return reply
        text = form.read(reply.text, way, not self._route.transport.own_server)
        of_grammar = way == "grammar" and form.grammar is not None
        learned: Way = way if text is not None else "json_schema" if of_grammar else "off"
        if self._route.lm.structured not in ("auto", learned) and text is None:
            learned = "off"
        if learned != self._route.state.structured and self._route.state.structured in (None, way):
            self._learn_way(learned)
        if text is None:
            return reply
        self._route.state.keeps_form = True
        return replace(reply, text=text)

    def _parameters(self, meter: Meter, way: Way = "off") -> Parameters:
        """The parameters to send: the job's own, with a length limit if a budget needs one, room for reasoning, and the
        fields that ask for the answer's form."""
        own = meter.parameters
        if own.form is not None and way != "off":
            fields = own.form.fields(way, not self._route.transport.own_server)
            own = replace(own, extra={**own.extra, **fields})
        if own.logprobs == "optional":
            own = replace(own, logprobs=self._route.state.gives_logprobs)
        if any(own.extra.get(name) is not None for name in LENGTHS):
            return own  # the user's word
        if own.max_tokens is None:
            bounded = self._route.budget is not None and self._route.budget.bounds_answers
            return replace(own, max_tokens=MAX_TOKENS_UNDER_A_BUDGET) if bounded else own
        room = self._route.state.reasoning
        return replace(own, max_tokens=own.max_tokens + room) if room else own

    async def _checks_first(self) -> bool:
        """Whether this request checks whether a server is back that was down; the others wait for it.

        Raises:
            RunStopped: it is not back, or a request found it down a moment ago.
        """
        state = self._route.state
        if self._checked is None or self._checked.is_set():
            return False
        if self._checking:
            await self._checked.wait()
        elif state.rests and state.down is not None:
            self._stopped = self._stopped or state.down
        if self._stopped is not None:
            self._checked.set()
            raise _not_sent(self._stopped)
        checks, self._checking = not self._checking, True
        return checks

    async def _patiently(self, prompt: Prompt, meter: Meter, parameters: Parameters) -> Reply:
        checks = await self._checks_first()
        try:
            return await self._attempt(prompt, meter, parameters)
        except LMRequestFailed as error:
            if checks and isinstance(error, SERVER_IS_DOWN):
                self.stop(error)
            if checks or not error.retryable:
                raise

            async def again() -> Reply:
                meter.retried += 1
                return await self._attempt(prompt, meter, parameters)

            retry = self._route.lm.retry
            try:
                return await retry.again(error, again, self._sleep)
            except LMRequestFailed as last:
                if last.away is not None and last.away > retry.outage:
                    last.args = (
                        f"{last}; after an outage of {last.away:.0f} s (RetryPolicy(outage={retry.outage:g}))",
                    )
                    self.stop(last)
                raise
        finally:
            if checks and self._checked is not None:
                self._checked.set()

    async def _sleep(self, seconds: float) -> bool:
        """Wait between attempts; False at once if the run has stopped."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        return not self._stopping.is_set()

    async def _attempt(self, prompt: Prompt, meter: Meter, parameters: Parameters) -> Reply:
        """The reply to a request. With hedging, a second request is sent if the first is slow; the first reply wins."""
        if self._route.lm.hedge_after is None:
            return await self._send(prompt, meter, parameters)
        running = {asyncio.create_task(self._send(prompt, meter, parameters))}
        try:
            done, _ = await asyncio.wait(running, timeout=self._route.lm.hedge_after)
            if not done:
                running.add(asyncio.create_task(self._send(prompt, meter, parameters)))
            while True:
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                usable = [task for task in done if task.exception() is None]
                if usable or not running:
                    return (usable or list(done))[0].result()
        finally:
            for task in running:
                task.cancel()

    async def _send(self, prompt: Prompt, meter: Meter, parameters: Parameters) -> Reply:
        route = self._route
        window = None if route.budget is None else self._window(prompt, route.budget)
        reserved = None if route.budget is None else await self._reserve(prompt, parameters, route.budget, window)
        spent: Cost | None = None
        lengths, allowed = route.state.lengths, _allowed(parameters)
        expected = estimate_tokens(prompt) + estimate_answer(parameters)
        try:
            if route.rates is not None:
                await route.rates.take(expected, self._sleep)
            sending = await route.state.enter(route.lm.retry.patience, self._sleep, expected)
            outcome: Reply | LMRequestFailed | None = None
            cost, tokens_out, is_sent = None, 0, False
            try:
                if self._stopped is not None:
                    raise _not_sent(self._stopped)
                meter.sent += 1
                is_sent = True
                spent = reserved  # what was sent counts as paid, until the server says what it took
                try:
                    async with own_time(route.lm.timeout, route.state.answers, sending):
                        reply = await route.transport.send(prompt, parameters, sending.begins)
                except LMRequestFailed:
                    raise
                except TimeoutError as error:
                    where = f"{route.lm.timeout:g} s from {route.transport.endpoint}"
                    raise RequestTimedOut(f"no answer within {where}") from error
                reply = outcome = self._believed(reply, prompt, parameters)
                self._answered = self.replied = True
                cost, tokens_out = self._charge(prompt, reply, meter)
                lengths.learn(allowed, tokens_out)
                if reply.tokens_in is not None and reply.tokens_out is not None:
                    spent = cost
                    if route.rates is not None:
                        route.rates.settle(int(cost.tokens) - expected)
                elif reserved is not None:
                    spent = Cost(*map(max, reserved, cost))
                return reply
            except LMRequestFailed as failed:
                outcome = failed
                lengths.learn(allowed, 0)
                if self._is_hopeless(failed):
                    self.stop(failed)
                if failed.status not in (None, 200):
                    spent = NOTHING_BUT_A_CALL
                raise
            finally:
                route.state.leave(sending, outcome, route.lm, expected)
                seconds = time.monotonic() - sending.at
                meter.seconds += seconds
                if is_sent:
                    self._record(prompt, outcome, cost, tokens_out, seconds)
        finally:
            if route.budget is not None and reserved is not None:
                route.budget.settle(reserved, spent or NOTHING, window)

    def _record(
        self,
        prompt: Prompt,
        outcome: Reply | LMRequestFailed | None,
        cost: Cost | None,
        tokens_out: int,
        seconds: float,
    ) -> None:
        """Log a request that has ended, and trace it; one without a reply or an error was cancelled."""
        route, reply = self._route, outcome if isinstance(outcome, Reply) else None
        status = 200 if reply else getattr(outcome, "status", None)
        error = None if reply else "CancelledError" if outcome is None else type(outcome).__name__
        note("lm", DEBUG, "request", model=route.lm.model, status=status, error=error, seconds=seconds)
        if traces.are_wanted():
            traces.request(
                route.lm.model,
                route.lm.operation,
                seconds=seconds,
                status=status,
                error=error,
                tokens=None if cost is None else (int(cost.tokens) - tokens_out, tokens_out),
                dollars=None if cost is None or route.price is None else cost.dollars,
                messages=prompt.to_dicts() if route.is_traced else None,
                answer=reply.text if reply and route.lm.operation == "chat" else None,
            )

    def _is_hopeless(self, error: LMRequestFailed) -> bool:
        """Whether every request would fail in this way; a silent server is given as long as one that is away."""
        if error.stops_run:
            return True
        self._answered = self._answered or error.status is not None
        if isinstance(error, RequestTimedOut):
            self._timeouts += 1
        silent = time.monotonic() - self._began
        return not self._answered and self._timeouts >= MAX_FAILURES_IN_A_ROW and silent > self._route.lm.retry.outage

    async def _reserve(self, prompt: Prompt, parameters: Parameters, budget: Budget, window: Window | None) -> Cost:
        """Reserve the most that a request can cost; if that passes the budget, nothing more is sent."""
        if self._stopped is not None:
            raise _not_sent(self._stopped)
        tokens_in = _most_read(prompt, parameters)
        allowed = _allowed(parameters)

        def most() -> Cost:
            tokens_out = self._route.state.lengths.most(allowed)
            return budget.cost(tokens_in + tokens_out, dollars_of(self._route.price, tokens_in, tokens_out))

        try:
            return await budget.reserve(most, window)
        except BudgetExceeded as exceeded:
            self.stop(exceeded)
            raise

    def _window(self, prompt: Prompt, budget: Budget) -> Window | None:
        """The limit on requests in flight; None if the length of answers costs nothing."""
        if not budget.bounds_answers:
            return None
        tokens_in = most_tokens(prompt)
        dollars = dollars_of(self._route.price, tokens_in, LONG_ANSWER_TOKENS)
        long = Cost(1, tokens_in + LONG_ANSWER_TOKENS, dollars or 0.0)
        return Window(self._route.state, lambda: self._route.state.lengths.seen, long)

    def _believed(self, reply: Reply, prompt: Prompt, parameters: Parameters) -> Reply:
        """The reply without the server's counts where they are impossible: one would spend this budget and the next."""
        counts = reply.tokens_in or 0, reply.tokens_out or 0
        window = self._route.window or MAX_WINDOW_TOKENS
        if max(counts) <= window:
            return reply
        most = max(window, _most_read(prompt, parameters)), max(window, LONG_ANSWER_TOKENS, _allowed(parameters))
        if counts[0] <= most[0] and counts[1] <= most[1]:
            return reply
        self.miscounted = min(max(counts), 10**18)
        return replace(reply, tokens_in=None, tokens_out=None)

    def _charge(self, prompt: Prompt, reply: Reply, meter: Meter) -> tuple[Cost, int]:
        """Count a reply's tokens; if the server gives none, they are estimated from the length.

        Returns:
            The cost, and the tokens of the answer.
        """
        price = self._route.price
        tokens_in = estimate_tokens(prompt) if reply.tokens_in is None else reply.tokens_in
        tokens_out = estimate_tokens(Prompt.of(reply.text)) if reply.tokens_out is None else reply.tokens_out
        meter.tokens_in += tokens_in
        meter.tokens_out += tokens_out
        dollars = dollars_of(price, tokens_in, tokens_out)
        meter.dollars = None if dollars is None or meter.dollars is None else meter.dollars + dollars
        if dollars is not None and self.dollars is not None:
            self.dollars += dollars
        return Cost(1, tokens_in + tokens_out, dollars or 0.0), tokens_out


def _most_read(prompt: Prompt, parameters: Parameters) -> int:
    """More tokens than a request's text can have; tools and schemas are read too."""
    return most_tokens(prompt) + (len(json.dumps(parameters.extra)) if parameters.extra else 0)


def _allowed(parameters: Parameters) -> int:
    """The tokens that a request's answers may have together."""
    answers = parameters.extra.get("n", 1)
    return estimate_answer(parameters) * (answers if isinstance(answers, int) else 1)


def _refuses_form(error: LMRequestFailed, known: bool) -> bool:
    """Whether an error may refuse the fields for a form; if the server has taken such fields, it must name them."""
    if error.status not in (400, 415, 422, 500, 501) or isinstance(error, ContextTooLong) or error.stops_run:
        return False
    return _FORM_NAMED.search(str(error)) is not None or (not known and error.status in (400, 415, 422))


def _not_sent(cause: LMError) -> LMError:
    if isinstance(cause, BudgetExceeded | RunStopped):
        return cause
    stopped = RunStopped(f"not sent, because every request would fail in the same way: {cause}")
    stopped.__cause__ = cause
    return stopped
