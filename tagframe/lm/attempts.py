"""The requests for one prompt: they respect rates and budget, and are retried, with a higher token limit if needed.

What a server refuses or breaks on (names of fields, log probabilities, the form of answers) is left out and remembered.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from dataclasses import dataclass, field, replace
from logging import DEBUG
from typing import TYPE_CHECKING

from tagframe import logs
from tagframe.errors import (
    BudgetExceeded,
    ContentFiltered,
    ContextTooLong,
    LMError,
    LMRequestFailed,
    MalformedResponse,
    RequestTimedOut,
    RunStopped,
)
from tagframe.lm.budget import NOTHING, NOTHING_BUT_A_CALL, Budget, Cost, dollars_of
from tagframe.lm.pacing import AWAY, Rates, Sent, ServerState
from tagframe.lm.pricing import Price, estimate_answer, estimate_tokens, least_tokens, most_tokens, size_of, tokens_of
from tagframe.lm.prompt import FIELDS, LENGTHS, Message, Parameters, Prompt
from tagframe.lm.reply import NOT_GIVEN, Billed, Reply, Transport
from tagframe.lm.served import forget
from tagframe.lm.store import ResponseStore
from tagframe.lm.usage import Usage
from tagframe.logs import note

if TYPE_CHECKING:
    from tagframe.lm.model import LM

MAX_FAILURES_IN_A_ROW = 64
"""A run stops after so many failed requests in a row, if :data:`MAX_ROWS_IN_A_ROW` rows failed with all their retries
while no request was answered, or if none ever was and all are paid for and unusable, or time out for
:data:`SILENT_SECONDS`."""
MAX_ROWS_IN_A_ROW = 16
SILENT_SECONDS = 120.0
MAX_TOKENS_UNDER_A_BUDGET = 4096
"""The ``max_tokens`` of a request that sets none, under a budget of tokens or dollars: its cost must be bounded."""
LONG_ANSWER_TOKENS = 16_384
"""Tokens assumed for an answer without a limit: about the most that today's models write in one answer."""
MAX_WINDOW_TOKENS = 2**21
"""The most tokens of a request: the widest window of today's models."""
REASONING_TOKENS = 8192
"""Tokens added to ``max_tokens`` once an endpoint has been seen to reason before it answers (the number is LOTUS's)."""
MIN_LONG_BYTES = 2_000
"""The fewest bytes of a prompt that a server may refuse for its length in words that are not known."""
SHORT_CHARACTERS = 400
"""The characters to which the texts of a long prompt are cut, to find whether a server answers shorter ones."""
MIN_READ_SHARE = 0.5
"""A server that counts less than this share of the fewest tokens of a prompt has not read all of it."""
MAX_BREAKS = 2
"""So many requests in a row are answered only without log probabilities: the server gives none."""
_BYTES_A_TOKEN = 8
"""A prompt that a server counts fewer tokens of than one for so many bytes is looked at closer."""
REPEATED_CHARACTERS = 40
"""Characters at the end of an answer that is cut off; with three copies of them in it, it would never have ended."""
CONCERNS_A_ROW = (ContentFiltered, ContextTooLong)
"""Failures that say nothing of other rows."""
_FORM_NAMED = re.compile(r"grammar|response_format|schema|structured|guided", re.IGNORECASE)
_REFUSED = (400, 415, 422, 500, 501)


@dataclass(frozen=True)
class Route:
    """Where the requests of a call go, and under which rules.

    Attributes:
        lm: the model, with its patience.
        rates: requests and tokens a minute, or None.
        store: where accepted answers are stored, or None.
        source: the id of these in that store.
        price: of the model in its tier.
        usual_price: of requests that the server takes out of a cheaper tier; a budget reserves by it.
        is_traced: whether prompts and answers are in traces.
    """

    lm: LM
    transport: Transport
    state: ServerState
    rates: Rates | None
    budget: Budget | None
    price: Price | None
    usual_price: Price | None
    store: ResponseStore | None
    source: int
    is_traced: bool


@dataclass(slots=True)
class Meter:
    """The parameters of one job, and its cost so far.

    Attributes:
        answers: how many requests of the run had been answered when its first one was sent; -1 before.
    """

    parameters: Parameters
    sent: int = 0
    retried: int = 0
    repaired: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    dollars: float | None = 0.0
    dollars_saved: float = 0.0
    seconds: float = 0.0
    answers: int = -1

    def usage(self, failed: int = 0) -> Usage:
        """As the usage of one row."""
        counts = self.sent, 0, 0, self.retried, self.repaired, failed, self.tokens_in, self.tokens_out
        return Usage(1, *counts, self.tokens_cached, self.dollars, self.dollars_saved, self.seconds)


class Attempts:
    """The requests of one run.

    Attributes:
        dollars: their cost; None if the price is unknown.
        answers: how many were answered.
    """

    def __init__(self, route: Route) -> None:
        self.dollars: float | None = 0.0 if route.price is not None else None
        self.answers = 0
        self._route = route
        self._stopped: LMError | None = None
        self._stopping = asyncio.Event()
        self._failures = 0  # requests since the last that was answered
        self._failed_rows = 0  # while none was answered, in a row
        self._began = time.monotonic()
        self._as_sent: dict[object, tuple[Parameters, Parameters]] = {}
        self._served = 0  # bytes of the longest prompt that was answered
        self._too_long: int | None = None  # bytes of the shortest that was too long
        self._short: asyncio.Future[bool] | None = None  # whether a short prompt is answered

    async def ask(self, prompt: Prompt, meter: Meter) -> Reply:
        """The reply to a prompt, after as many attempts as the policy allows.

        If the reply was cut off inside the model's reasoning, it is requested once more with a higher limit. Later
        prompts to this endpoint and model have that limit from the start.

        Raises:
            LMError: there is no usable reply.
        """
        if self._too_long is not None and max(self._too_long, self._served + 1) <= size_of(prompt):
            raise ContextTooLong("not sent: the server did not read a shorter prompt")
        meter.answers = self.answers if meter.answers < 0 else meter.answers
        reply, sent, formed = await self._adapted(prompt, meter, self._asks_for_form(meter))
        if not reply.unfinished:
            return self._in_form(reply, meter, formed)
        state, known = self._route.state, self._route.state.reasoning
        state.reasoning = REASONING_TOKENS
        if self._parameters(meter, formed).limit == sent.limit:
            state.reasoning = known  # it had that room, or its limit is the user's word or the server's
            return reply
        if self._route.store is not None and self._route.store.writable:
            self._route.store.put_reasoning(self._route.source, REASONING_TOKENS)
        meter.retried += 1
        reply, _, formed = await self._adapted(prompt, meter, formed)
        return self._in_form(reply, meter, formed)

    async def _adapted(self, prompt: Prompt, meter: Meter, formed: bool) -> tuple[Reply, Parameters, bool]:
        """The reply, what it was asked with, and whether its form was asked for.

        What the server refuses, or gives no text with, is left out. That is remembered if it then answers.
        """
        state, changes = self._route.state, _Changes()
        while True:
            sent = self._parameters(meter, formed, without_logprobs=changes.logprobs)
            try:
                reply = await self._patiently(prompt, meter, sent, formed)
                if not formed or not _is_filler(reply):
                    break
                changes.form, formed = True, False
            except LMRequestFailed as error:
                again = changes.error is not None and changes.error.status == error.status
                changes.error = error
                if self._learn_field(error, sent, changes):
                    pass
                elif _names_logprobs(error) and self._may_break_on_logprobs(error, meter, sent):
                    changes.logprobs = True
                elif formed and _spoils_form(error, state.keeps_form):
                    changes.form, formed = True, False
                    if not _is_empty(error) and not state.keeps_form:
                        state.structured = False  # for the others, until it is known
                    elif not _is_empty(error) and meter.parameters.form is not None:
                        state.refused.add(meter.parameters.form)
                elif self._may_break_on_logprobs(error, meter, sent):
                    changes.logprobs = True
                else:
                    if changes.form and not state.keeps_form and not self.answers and again:
                        state.structured = None  # it was not the form that was refused
                    for name in changes.fields:
                        state.fields.pop(name, None)
                    raise await self._for_its_length(error, prompt, meter) from None
            meter.retried += 1
        if changes.form and not state.keeps_form and not reply.truncated:
            state.structured = False
        if changes.logprobs:
            state.without_logprobs += 1
            if state.without_logprobs >= MAX_BREAKS or (changes.error is not None and _names_logprobs(changes.error)):
                state.gives_logprobs = False
        elif sent.logprobs and reply.logprobs:
            state.gives_logprobs = True
        return reply, sent, formed

    def _learn_field(self, error: LMRequestFailed, sent: Parameters, changes: _Changes) -> bool:
        """Whether the request is to be sent again with a field that the error names left out, renamed or lowered."""
        if error.status not in (400, 422) or isinstance(error, ContextTooLong | ContentFiltered) or error.stops_run:
            return False
        state, text, body = self._route.state, str(error), sent.to_dict()
        if (
            "max_tokens" in body
            and re.search(r"\bmax_(completion_|new_|output_)?tokens\b", text)
            and "max_tokens" not in sent.extra
        ):
            if "max_tokens" in state.fields or (state.most_answer or body["max_tokens"]) < body["max_tokens"]:
                return True  # found out meanwhile
            smaller = [n for n in map(int, re.findall(r"\b\d{2,9}\b", text)) if 16 <= n < body["max_tokens"]]
            if "max_completion_tokens" in text:
                state.fields["max_tokens"] = "max_completion_tokens"
            elif smaller:
                state.most_answer = max(smaller)
                return True
            else:
                state.fields["max_tokens"] = None
            changes.fields.append("max_tokens")
            return True
        # A temperature other than 0 is the user's word.
        if body.get("temperature") == 0.0 and "temperature" in text and "temperature" not in sent.extra:
            if "temperature" not in state.fields:
                state.fields["temperature"] = None
                changes.fields.append("temperature")
            return True
        return False

    def _may_break_on_logprobs(self, error: LMRequestFailed, meter: Meter, sent: Parameters) -> bool:
        """Whether a server may have failed because of log probabilities, which it has never given."""
        if meter.parameters.logprobs != "optional" or not sent.logprobs:
            return False
        if error.status in (400, 403, 422, 501) and _names_logprobs(error):
            return True
        if self._route.state.gives_logprobs or error.stops_run or isinstance(error, ContextTooLong | ContentFiltered):
            return False
        return error.status in (200, *_REFUSED)

    async def _for_its_length(self, error: LMRequestFailed, prompt: Prompt, meter: Meter) -> LMRequestFailed:
        """The error of a request; if the server refuses long prompts only, one that says so.

        Providers and gateways have ever new words for it, and some have none.
        """
        size = size_of(prompt)
        if isinstance(error, ContextTooLong):
            if error.status == 200:  # a part was read
                self._too_long = min(self._too_long or size, size)
            return error
        unknown = error.status is not None and (error.status in (400, 403, 422) or error.status >= 500)
        if not unknown or isinstance(error, ContentFiltered) or error.stops_run or error.status in (*AWAY, 504):
            return error
        if (
            size < MIN_LONG_BYTES
            or size <= self._served
            or not (self._served or await self._short_is_answered(prompt, meter))
        ):
            return error
        return ContextTooLong(f"{error} (it answers shorter prompts)", error.status)

    async def _short_is_answered(self, prompt: Prompt, meter: Meter) -> bool:
        """Whether the server answers a prompt if its texts are cut; sent once in a run."""
        if self._short is None:
            self._short = asyncio.get_running_loop().create_future()
            short = Prompt(
                tuple(
                    Message(one.role, one.content[:SHORT_CHARACTERS] if isinstance(one.content, str) else one.content)
                    for one in prompt.messages
                )
            )
            answered = False
            try:
                meter.retried += 1
                await self._send(short, meter, self._parameters(meter))
                answered = True
            except LMError:
                pass
            finally:
                self._short.set_result(answered)
        return await asyncio.shield(self._short)

    @property
    def stopped(self) -> bool:
        """Whether no more is sent."""
        return self._stopped is not None

    def stop(self, cause: LMError) -> None:
        """Stop sending: every further request would fail in the same way."""
        self._stopped = self._stopped or cause
        self._stopping.set()

    def row_failed(self, error: LMRequestFailed, meter: Meter) -> None:
        """Register a row that failed with all its retries; too many stop the run, if nothing is answered meanwhile."""
        self._failed_rows = self._failed_rows + 1 if meter.answers == self.answers else 0
        if self._failed_rows >= MAX_ROWS_IN_A_ROW and self._failures >= MAX_FAILURES_IN_A_ROW:
            self.stop(error)

    def _asks_for_form(self, meter: Meter) -> bool:
        form, wanted, state = meter.parameters.form, self._route.lm.structured, self._route.state
        if form is None or wanted == "off" or state.structured is False or meter.parameters.extra.keys() & FIELDS:
            return False
        if form in state.refused:
            return False
        own = self._route.transport.own_server
        return wanted != "auto" or bool(meter.repaired) or (own and form.eager)

    def _in_form(self, reply: Reply, meter: Meter, formed: bool) -> Reply:
        """The reply with the text that the prompt asks for, if the server was asked for a form; learns if it obeys."""
        form, state = meter.parameters.form, self._route.state
        if form is None or not formed or reply.truncated:
            return reply
        text = form.read(reply.text, not self._route.transport.own_server)
        if text is None:
            if not state.keeps_form:
                state.structured = False
            return reply
        state.structured = state.keeps_form = True
        return replace(reply, text=text)

    def _parameters(self, meter: Meter, formed: bool = False, *, without_logprobs: bool = False) -> Parameters:
        """The parameters to send: the job's own, with a length limit if a budget needs one, room for reasoning, and the
        fields that ask for the answer's form."""
        own, state = meter.parameters, self._route.state
        known = (
            id(own),
            formed,
            without_logprobs,
            state.gives_logprobs,
            state.reasoning,
            state.most_answer,
            *state.fields.items(),
        )
        if known not in self._as_sent:  # rows of one batch are asked alike
            self._as_sent[known] = own, self._made(own, formed, without_logprobs)
        return self._as_sent[known][1]

    def _made(self, own: Parameters, formed: bool, without_logprobs: bool) -> Parameters:
        state = self._route.state
        if own.form is not None and formed:
            own = replace(own, extra={**own.extra, **own.form.fields(not self._route.transport.own_server)})
        if own.logprobs == "optional":
            own = replace(own, logprobs=state.gives_logprobs is not False and not without_logprobs)
        if state.fields:
            own = replace(own, names=dict(state.fields))
        if any(own.extra.get(name) is not None for name in LENGTHS):
            return own  # the user's word
        if own.max_tokens is None:
            bounded = self._route.budget is not None and self._route.budget.bounds_answers
            return replace(own, max_tokens=MAX_TOKENS_UNDER_A_BUDGET) if bounded else own
        limit = own.max_tokens + state.reasoning
        limit = limit if state.most_answer is None else min(limit, state.most_answer)
        return own if limit == own.max_tokens else replace(own, max_tokens=limit)

    async def _patiently(self, prompt: Prompt, meter: Meter, parameters: Parameters, formed: bool) -> Reply:
        try:
            return await self._send(prompt, meter, parameters)
        except LMRequestFailed as error:
            spoilt = formed and _spoils_form(error, self._route.state.keeps_form)
            if not error.retryable or spoilt or self._may_break_on_logprobs(error, meter, parameters):
                raise

            async def again() -> Reply:
                meter.retried += 1
                return await self._send(prompt, meter, parameters)

            return await self._route.lm.retry.again(error, again, self._sleep)

    async def _sleep(self, seconds: float) -> bool:
        """Wait between attempts; False at once if the run has stopped."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        return not self._stopping.is_set()

    async def _send(self, prompt: Prompt, meter: Meter, parameters: Parameters) -> Reply:
        route = self._route
        reserved = None if route.budget is None else await self._reserve(prompt, parameters, route.budget)
        spent: Cost | None = None
        size, expected = size_of(prompt), 0
        try:
            if route.rates is not None:
                expected = estimate_tokens(prompt) + estimate_answer(parameters)
                await route.rates.take(expected, self._sleep)
            sending = await route.state.enter(route.lm, self._sleep)
            reply: Reply | None = None
            error: LMRequestFailed | None = None
            cost, tokens_out, is_sent = None, 0, False
            try:
                if self._stopped is not None:
                    raise _not_sent(self._stopped)
                meter.sent += 1
                is_sent = True
                spent = reserved  # what was sent counts as paid, until the server says what it took
                reply = await self._exchange(prompt, parameters, sending)
                count = _believed(reply.billed)
                self._check_read(prompt, size, count)
                self._learn_from(reply, size)
                cost, tokens_out = self._charge(prompt, reply.text, count, reply.tier, meter)
                if count.tokens_in is not None and count.tokens_out is not None:
                    spent = cost
                    if route.rates is not None:
                        route.rates.settle(int(cost.tokens) - expected)
                elif reserved is not None:
                    spent = Cost(*map(max, reserved, cost))
                return reply if count is reply.billed else replace(reply, billed=count)
            except LMRequestFailed as failed:
                error = failed
                if self._is_hopeless(failed, parameters):
                    self.stop(failed)
                if failed.billed is not None:
                    count = _believed(failed.billed)
                    cost, tokens_out = self._charge(prompt, "", count, None, meter)
                    spent = cost if count is failed.billed else spent
                elif failed.status not in (None, 200):
                    spent = NOTHING_BUT_A_CALL
                raise
            finally:
                if reply is not None or error is not None:
                    route.state.lengths.learn(_allowed(parameters), 0 if error else tokens_out)
                route.state.leave(sending, error, route.lm, answered=error is None and reply is not None)
                seconds = time.monotonic() - sending.sent_at
                meter.seconds += seconds
                if is_sent:
                    self._record(prompt, reply, error, cost, tokens_out, seconds)
        finally:
            if route.budget is not None and reserved is not None:
                route.budget.settle(reserved, spent or NOTHING, route.state.lengths)

    def _learn_from(self, reply: Reply, size: int) -> None:
        self.answers, self._failures = self.answers + 1, 0
        self._served = max(self._served, size)
        state = self._route.state
        if reply.model is not None and reply.model != state.model:
            if state.model is not None:
                forget(self._route.transport.endpoint)
            state.model = reply.model

    async def _exchange(self, prompt: Prompt, parameters: Parameters, sending: Sent) -> Reply:
        """The reply, unless the request has had its own time."""
        route = self._route
        try:
            return await route.transport.send(prompt, parameters)
        except LMRequestFailed:
            raise
        except asyncio.CancelledError:
            if not sending.timed_out:
                raise
            task = asyncio.current_task()
            if task is not None and task.uncancel() > 0:  # the call was left, too
                raise
        except TimeoutError:
            pass
        raise RequestTimedOut(f"no answer within {route.lm.timeout:g} s from {route.transport.endpoint}")

    def _check_read(self, prompt: Prompt, size: int, count: Billed) -> None:
        """Refuse an answer to a part of the prompt.

        Raises:
            ContextTooLong: the server counts fewer tokens than the prompt can have.
        """
        if count.tokens_in is None or size < MIN_LONG_BYTES or count.tokens_in * _BYTES_A_TOKEN > size:
            return
        least = least_tokens(prompt)
        if self._route.lm.operation == "chat" and count.tokens_in < MIN_READ_SHARE * least:
            error = ContextTooLong(
                f"the server read {count.tokens_in:,} tokens of a prompt that has at least {least:,}: it cut it,"
                " and its answer is not used; give the server a larger context (Ollama: num_ctx), or set"
                " context_window= so that long rows are cut to fit",
                200,
            )
            error.billed = count
            raise error

    def _record(
        self,
        prompt: Prompt,
        reply: Reply | None,
        error: LMRequestFailed | None,
        cost: Cost | None,
        tokens_out: int,
        seconds: float,
    ) -> None:
        """Log a request that has ended, and trace it; one without a reply or an error was cancelled."""
        route, status = self._route, 200 if error is None and reply else getattr(error, "status", None)
        kind = type(error).__name__ if error else None if reply else "CancelledError"
        note("lm", DEBUG, "request", model=route.lm.model, status=status, error=kind, seconds=seconds)
        if logs.is_traced():
            logs.trace_request(
                route.lm.model,
                route.lm.operation,
                seconds=seconds,
                status=status,
                error=kind,
                tokens=None if cost is None else (int(cost.tokens) - tokens_out, tokens_out),
                dollars=None if cost is None or route.price is None else cost.dollars,
                messages=prompt.to_dicts() if route.is_traced else None,
                answer=reply.text if reply and route.lm.operation == "chat" else None,
            )

    def _is_hopeless(self, error: LMRequestFailed, parameters: Parameters) -> bool:
        """Whether every request would fail in this way, as far as no request was answered yet."""
        if error.stops_run:
            return True
        # With a form, there may be no text because of it: that is found out first.
        if not isinstance(error, CONCERNS_A_ROW) and not (_is_empty(error) and parameters.extra.keys() & FIELDS):
            self._failures += 1
        silent = isinstance(error, RequestTimedOut) and time.monotonic() - self._began > SILENT_SECONDS
        return (silent or error.status == 200) and not self.answers and self._failures >= MAX_FAILURES_IN_A_ROW

    async def _reserve(self, prompt: Prompt, parameters: Parameters, budget: Budget) -> Cost:
        """Reserve the most that a request can cost; if that passes the budget, nothing more is sent."""
        if self._stopped is not None:
            raise _not_sent(self._stopped)
        tokens_in = _most_read(prompt, parameters)
        allowed, lengths = _allowed(parameters), self._route.state.lengths

        def most(expected: int) -> Cost:
            tokens_out = max(lengths.most(allowed), expected)
            return budget.cost(tokens_in + tokens_out, dollars_of(self._dearest, tokens_in, tokens_out))

        try:
            long = LONG_ANSWER_TOKENS if not self._route.transport.in_batches else allowed
            dollars = dollars_of(self._dearest, most_tokens(prompt), long)
            return await budget.reserve(most, lengths, Cost(1, most_tokens(prompt) + long, dollars or 0.0))
        except BudgetExceeded as exceeded:
            self.stop(exceeded)
            raise

    @property
    def _dearest(self) -> Price | None:
        """The price by which a request is reserved."""
        return None if self._route.usual_price is None else self._route.usual_price.most_in

    def _charge(self, prompt: Prompt, text: str, count: Billed, tier: str | None, meter: Meter) -> tuple[Cost, int]:
        """Count a reply's tokens; if the server gives none, they are estimated from the length.

        Returns:
            The cost, and the tokens of the answer.
        """
        price = self._route.price
        if self._route.lm.tier == "flex" and tier in ("default", "standard"):  # no room in the cheaper tier
            price = self._route.usual_price
        tokens_in = estimate_tokens(prompt) if count.tokens_in is None else count.tokens_in
        tokens_out = tokens_of(text) if count.tokens_out is None else count.tokens_out
        meter.tokens_in += tokens_in
        meter.tokens_out += tokens_out
        meter.tokens_cached += count.cached
        dollars = dollars_of(price, tokens_in, tokens_out, count.cached, count.written)
        meter.dollars = None if dollars is None or meter.dollars is None else meter.dollars + dollars
        meter.dollars_saved += 0.0 if price is None else price.saved(count.cached)
        if dollars is not None and self.dollars is not None:
            self.dollars += dollars
        return Cost(1, tokens_in + tokens_out, dollars or 0.0), tokens_out


@dataclass(slots=True)
class _Changes:
    """What is left out of the request for one prompt, since the server failed with it.

    Attributes:
        form: whether no form is asked for.
        logprobs: whether no log probabilities are asked for.
        fields: the fields that are renamed or left out.
        error: the last failure.
    """

    form: bool = False
    logprobs: bool = False
    fields: list[str] = field(default_factory=list)
    error: LMRequestFailed | None = None


def _believed(count: Billed) -> Billed:
    """The server's counts, unless they are impossible: one would spend this budget and the next."""
    return count if max(count.tokens_in or 0, count.tokens_out or 0) <= MAX_WINDOW_TOKENS else NOT_GIVEN


def _is_filler(reply: Reply) -> bool:
    """Whether a reply was cut off in blanks, or in what it repeats without end."""
    text = reply.text
    return reply.truncated and (len("".join(text.split())) < len(text) / 2 or is_endless(text))


def is_endless(text: str) -> bool:
    """Whether a text that was cut off repeats itself, so that it would be cut off again at any limit."""
    return text.count(text[-REPEATED_CHARACTERS:]) > 2 if text else False


def _names_logprobs(error: LMRequestFailed) -> bool:
    return "logprob" in str(error).lower()


def _is_empty(error: LMRequestFailed) -> bool:
    return isinstance(error, MalformedResponse) and error.empty


def _spoils_form(error: LMRequestFailed, known: bool) -> bool:
    """Whether there may be no answer because of the form."""
    return _is_empty(error) or _refuses_form(error, known)


def _most_read(prompt: Prompt, parameters: Parameters) -> int:
    """More tokens than a request's text can have; tools and schemas are read too."""
    return most_tokens(prompt) + (len(json.dumps(parameters.extra)) if parameters.extra else 0)


def _allowed(parameters: Parameters) -> int:
    """The tokens that a request's answers may have together."""
    answers = parameters.extra.get("n", 1)
    return estimate_answer(parameters) * (answers if isinstance(answers, int) else 1)


def _refuses_form(error: LMRequestFailed, known: bool) -> bool:
    """Whether an error may refuse the fields for a form; if the server has taken such fields, it must name them."""
    if error.status not in _REFUSED or isinstance(error, ContextTooLong) or error.stops_run:
        return False
    return _FORM_NAMED.search(str(error)) is not None or (not known and error.status in (400, 415, 422))


def _not_sent(cause: LMError) -> LMError:
    if isinstance(cause, BudgetExceeded | RunStopped):
        return cause
    stopped = RunStopped(f"not sent, because every request would fail in the same way: {cause}")
    stopped.__cause__ = cause
    return stopped
