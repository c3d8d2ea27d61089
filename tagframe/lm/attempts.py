"""The requests for one prompt: they respect rates and budget, and are retried, with a higher token limit if needed.

What a server refuses or breaks on (names of fields, log probabilities, the form of answers) is left out and remembered.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import re
import time
from dataclasses import dataclass, field, replace
from logging import DEBUG
from typing import TYPE_CHECKING, Any

from tagframe import errors, logs
from tagframe.lm.batch_http import BatchHTTP
from tagframe.lm.pacing import AWAY, rates_of, server_state
from tagframe.lm.prompt import FIELDS, LENGTHS, Job, Parameters, Prompt, tokens_of
from tagframe.lm.reply import NOT_GIVEN, Billed, Reply
from tagframe.lm.store import ResponseStore, warned
from tagframe.lm.usage import NOTHING, NOTHING_BUT_A_CALL, Budget, Cost, account_of, dollars_of
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
LEAST_ROOM = 512
"""A prompt may be refused for the length of the answer that is asked for, if that is more than half of the prompt's, or
of these tokens."""
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
CONCERNS_A_ROW = (errors.ContentFiltered, errors.ContextTooLong)
"""Failures that say nothing of other rows."""
_OF_ALL_ROWS = (errors.AuthenticationFailed, errors.ModelNotFound, errors.QuotaExhausted, errors.ServerMoved)
"""Failures of all rows; after others were answered, they may pass, and are retried."""
_FORM_NAMED = re.compile(r"grammar|response_format|schema|structured|guided", re.IGNORECASE)
_LENGTH_NAMED = re.compile(r"\bmax_(completion_|new_|output_)?tokens\b")
_REFUSED = (400, 415, 422, 500, 501)


class Attempts:
    """The requests of one run.

    Args:
        lm: the model, with its patience.
        store: where accepted answers are stored, or None.

    Attributes:
        state: what all runs know of the server.
        rates: requests and tokens a minute, or None.
        store: as given; None if it cannot be written.
        source: the id of these answers in it.
        stored_as: their endpoint and model in it.
        dollars: the cost of the requests; None if it is unknown.
        answers: how many were answered.
        stopped: why no more is sent, or None.
    """

    def __init__(self, lm: LM, store: ResponseStore | None) -> None:
        settings, endpoint = lm.settings(), lm.transport.endpoint
        self.state = server_state(endpoint, lm.model)
        self.rates = rates_of(endpoint, lm.model, settings.rpm, settings.tpm)
        self.store: ResponseStore | None = None
        self.source = 0
        self.stored_as = ("", "") if store is None else lm.stored_as
        self._first_model: str | None = None
        if store is not None and store.writable:
            with warned(store, "written"):
                self.source = store.source(*self.stored_as, lm.model)
                self.store = store
        if isinstance(lm.transport, BatchHTTP):
            lm.transport.store, lm.transport.source = self.store, self.source
        self._lm, self._transport = lm, lm.transport
        self._budget = account_of(settings.budget)
        self._price = lm.price_in(lm.tier)
        # Of requests that the server takes out of a cheaper tier: a budget reserves by it.
        self._usual_price = lm.price_in("batch" if lm.tier == "batch" else "standard")
        self._dearest = None if self._usual_price is None else self._usual_price.most_in
        self._bound: int | None = None  # the most tokens of an answer that has no limit of its own
        if self._budget is not None and self._budget.bounds_answers:
            window = lm.context_window or 2 * MAX_TOKENS_UNDER_A_BUDGET
            self._bound = min(MAX_TOKENS_UNDER_A_BUDGET, window // 2)
        self._is_traced = settings.trace_contents
        self.dollars: float | None = 0.0 if self._price is not None else None
        self.answers = 0
        self.stopped: errors.LMError | None = None
        self._stopping = asyncio.Event()
        self._failures = 0  # requests since the last that was answered
        self._failed_rows = 0  # while none was answered, in a row
        self._began = time.monotonic()
        self._as_sent: dict[object, tuple[Parameters, Parameters]] = {}
        self._served = 0  # bytes of the longest prompt that was answered
        self._too_long: int | None = None  # bytes of the shortest that was too long
        self._short: bool | None = None  # whether a short prompt is answered
        self._shortening = asyncio.Lock()

    async def ask(self, job: Job[Any]) -> Reply:
        """The reply to a job's prompt, after as many attempts as the policy allows.

        If the reply was cut off inside the model's reasoning, it is requested once more with a higher limit. Later
        prompts to this endpoint and model have that limit from the start.

        Raises:
            LMError: there is no usable reply.
        """
        if self._too_long is not None and max(self._too_long, self._served + 1) <= job.current.size:
            raise errors.ContextTooLong("not sent: the server did not read a shorter prompt")
        job.answers = self.answers if job.answers < 0 else job.answers
        reply, sent, formed = await self._adapted(job, self._asks_for_form(job))
        if not reply.unfinished:
            return self._in_form(reply, job, formed)
        known, self.state.reasoning = self.state.reasoning, REASONING_TOKENS
        if self._parameters(job, formed, _Changes()).limit == sent.limit:
            self.state.reasoning = known  # it had that room, or its limit is the user's word or the server's
            return reply
        job.retried += 1
        reply, _, formed = await self._adapted(job, formed)
        return self._in_form(reply, job, formed)

    def source_of(self, reply: Reply, wait: bool) -> int:
        """The id under which a reply is stored: a server that has one model may be given another during the run.

        0 if another process writes, and nobody may ``wait`` for it.
        """
        if self.store is None or self._first_model is None or reply.model in (None, self._first_model):
            return self.source
        return self.store.source(self.stored_as[0], f"{self._lm.model} ({reply.model})", self._lm.model, wait)

    # --- what a server refuses or breaks on ------------------------------------------------------------------------

    async def _adapted(self, job: Job[Any], formed: bool) -> tuple[Reply, Parameters, bool]:
        """The reply, what it was asked with, and whether its form was asked for.

        What the server refuses, or gives no text with, is left out. That is remembered if it then answers.
        """
        changes = _Changes()
        while True:
            sent = self._parameters(job, formed, changes)
            try:
                reply = await self._patiently(job, sent, formed)
                if not formed or not _is_filler(reply):
                    break
                changes.form = True
            except errors.LMRequestFailed as error:
                if not self._changes(changes, error, job, sent, formed):
                    raise await self._for_its_length(error, job) from None
            formed = formed and not changes.form
            job.retried += 1
        self._remember(changes, job, sent, reply)
        return reply, sent, formed

    def _changes(
        self, changes: _Changes, error: errors.LMRequestFailed, job: Job[Any], sent: Parameters, formed: bool
    ) -> bool:
        """Whether the request is to be sent again, with changes that its error suggests."""
        breaks = self._may_break_on_logprobs(error, job, sent)
        if self._refuses_field(error, sent, changes) or self._needs_room(error, job, sent, changes):
            return True
        if formed and _spoils_form(error, self.state.keeps_form) and not (breaks and _names_logprobs(error)):
            changes.form, changes.refused = True, not _is_empty(error)
        elif breaks:
            changes.logprobs, changes.named = True, _names_logprobs(error)
        else:
            return False
        return True

    def _needs_room(self, error: errors.LMRequestFailed, job: Job[Any], sent: Parameters, changes: _Changes) -> bool:
        """Whether the prompt may only be too long beside the answer that is asked for, which is then halved."""
        limit = sent.max_tokens or 0
        is_refused = isinstance(error, errors.ContextTooLong) and error.status != 200 and sent.limit == limit
        if not is_refused or 2 * limit <= max(job.current.tokens, LEAST_ROOM):
            return False
        changes.room = limit // 2
        return True

    def _refuses_field(self, error: errors.LMRequestFailed, sent: Parameters, changes: _Changes) -> bool:
        """Whether the error names a field of the request, which is then left out, renamed or lowered."""
        if error.status not in (400, 422) or isinstance(error, CONCERNS_A_ROW) or error.stops_run:
            return False
        text, body = str(error), sent.to_dict()
        if "max_tokens" in body and _LENGTH_NAMED.search(text) and "max_tokens" not in sent.extra:
            smaller = [n for n in map(int, re.findall(r"\b\d{2,9}\b", text)) if 16 <= n < body["max_tokens"]]
            if "max_completion_tokens" in text:
                changes.fields["max_tokens"] = "max_completion_tokens"
            elif smaller:
                changes.most_answer = max(smaller)
            else:
                changes.fields["max_tokens"] = None
            return True
        # A temperature other than 0 is the user's word.
        if body.get("temperature") == 0.0 and "temperature" in text and "temperature" not in sent.extra:
            changes.fields["temperature"] = None
            return True
        return False

    def _may_break_on_logprobs(self, error: errors.LMRequestFailed, job: Job[Any], sent: Parameters) -> bool:
        """Whether a server may have failed because of log probabilities, which it has never given."""
        if job.parameters.logprobs != "optional" or not sent.logprobs:
            return False
        if error.status in (400, 403, 422, 501) and _names_logprobs(error):
            return True
        if self.state.gives_logprobs or error.stops_run or isinstance(error, CONCERNS_A_ROW):
            return False
        return error.status in (200, *_REFUSED)

    def _remember(self, changes: _Changes, job: Job[Any], sent: Parameters, reply: Reply) -> None:
        """Learn from a reply, and from what had to be left out for it."""
        state = self.state
        state.fields |= changes.fields
        state.most_answer = changes.most_answer or state.most_answer
        if changes.form and not state.keeps_form and (changes.refused or not reply.truncated):
            state.structured = False
        elif changes.refused and job.parameters.form is not None:
            state.refused.add(job.parameters.form)
        if changes.logprobs:
            state.without_logprobs += 1
            if changes.named or state.without_logprobs >= MAX_BREAKS:
                state.gives_logprobs = False
        elif sent.logprobs and reply.logprobs:
            state.gives_logprobs = True

    async def _for_its_length(self, error: errors.LMRequestFailed, job: Job[Any]) -> errors.LMRequestFailed:
        """The error of a request; if the server refuses long prompts only, one that says so.

        Providers and gateways have ever new words for it, and some have none.
        """
        size = job.current.size
        if isinstance(error, errors.ContextTooLong):
            if error.status == 200:  # a part was read
                self._too_long = min(self._too_long or size, size)
            return error
        unknown = error.status is not None and (error.status in (400, 403, 422) or error.status >= 500)
        if not unknown or isinstance(error, errors.ContentFiltered) or error.stops_run or error.status in (*AWAY, 504):
            return error
        if size >= MIN_LONG_BYTES and size > self._served and (self._served or await self._short_is_answered(job)):
            return errors.ContextTooLong(f"{error} (it answers shorter prompts)", error.status)
        return error

    async def _short_is_answered(self, job: Job[Any]) -> bool:
        """Whether the server answers a prompt if its texts are cut; sent once in a run."""
        async with self._shortening:
            if self._short is None:
                texts = (
                    replace(one, content=one.content[:SHORT_CHARACTERS]) if isinstance(one.content, str) else one
                    for one in job.current.messages
                )
                job.retried += 1
                self._short = False
                with contextlib.suppress(errors.LMError):
                    await self._send(Prompt(tuple(texts)), job, self._parameters(job, False, _Changes()))
                    self._short = True
        return self._short

    # --- when to stop ----------------------------------------------------------------------------------------------

    def stop(self, cause: errors.LMError) -> None:
        """Stop sending: every further request would fail in the same way."""
        self.stopped = self.stopped or cause
        self._stopping.set()

    def row_failed(self, error: errors.LMRequestFailed, job: Job[Any]) -> None:
        """Register a row that failed with all its retries; too many stop the run, if nothing is answered meanwhile."""
        self._failed_rows = self._failed_rows + 1 if job.answers == self.answers else 0
        if self._failed_rows >= MAX_ROWS_IN_A_ROW and self._failures >= MAX_FAILURES_IN_A_ROW:
            self.stop(error)

    def _is_hopeless(self, error: errors.LMRequestFailed, parameters: Parameters) -> bool:
        """Whether every request would fail in this way, as far as no request was answered yet."""
        if error.stops_run:
            return True
        # With a form, there may be no text because of it: that is found out first.
        if not isinstance(error, CONCERNS_A_ROW) and not (_is_empty(error) and parameters.extra.keys() & FIELDS):
            self._failures += 1
        silent = isinstance(error, errors.RequestTimedOut) and time.monotonic() - self._began > SILENT_SECONDS
        return (silent or error.status == 200) and not self.answers and self._failures >= MAX_FAILURES_IN_A_ROW

    # --- the form of answers ---------------------------------------------------------------------------------------

    def _asks_for_form(self, job: Job[Any]) -> bool:
        form, wanted, state = job.parameters.form, self._lm.structured, self.state
        refused = wanted == "off" or state.structured is False or form in state.refused
        if form is None or refused or job.parameters.extra.keys() & FIELDS:
            return False
        return wanted != "auto" or bool(job.repaired) or (self._transport.own_server and form.eager)

    def _in_form(self, reply: Reply, job: Job[Any], formed: bool) -> Reply:
        """The reply with the text that the prompt asks for, if the server was asked for a form; learns if it obeys."""
        form, state = job.parameters.form, self.state
        if form is None or not formed or reply.truncated:
            return reply
        text = form.read(reply.text, not self._transport.own_server)
        if text is None:
            if not state.keeps_form:
                state.structured = False
            return reply
        state.structured = state.keeps_form = True
        return replace(reply, text=text)

    # --- one request -----------------------------------------------------------------------------------------------

    def _parameters(self, job: Job[Any], formed: bool, changes: _Changes) -> Parameters:
        """The parameters to send: the job's own, with a length limit if a budget needs one, room for reasoning, and the
        fields that ask for the answer's form."""
        own, state = job.parameters, self.state
        fields = {**state.fields, **changes.fields}
        most = changes.room or changes.most_answer or state.most_answer
        logprobs = state.gives_logprobs is not False and not changes.logprobs
        known = id(own), formed, logprobs, most, state.reasoning, *fields.items()
        if known not in self._as_sent:  # rows of one batch are asked alike
            self._as_sent[known] = own, self._made(own, formed, logprobs, most, fields)
        return self._as_sent[known][1]

    def _made(
        self, own: Parameters, formed: bool, logprobs: bool, most: int | None, names: dict[str, str | None]
    ) -> Parameters:
        if own.form is not None and formed:
            own = replace(own, extra={**own.extra, **own.form.fields(not self._transport.own_server)})
        if own.logprobs == "optional":
            own = replace(own, logprobs=logprobs)
        own = replace(own, names=names)
        if any(own.extra.get(name) is not None for name in LENGTHS):
            return own  # the user's word
        limit = self._bound if own.max_tokens is None else own.max_tokens + self.state.reasoning
        return own if limit is None else replace(own, max_tokens=limit if most is None else min(limit, most))

    async def _patiently(self, job: Job[Any], parameters: Parameters, formed: bool) -> Reply:
        try:
            return await self._send(job.current, job, parameters)
        except errors.LMRequestFailed as error:
            spoilt = formed and _spoils_form(error, self.state.keeps_form)
            passes = error.status in (400, 403, 404, 422)  # by its words, where it is retryable
            if not error.retryable or (not passes and (spoilt or self._may_break_on_logprobs(error, job, parameters))):
                raise

            async def again() -> Reply:
                job.retried += 1
                return await self._send(job.current, job, parameters)

            answers = self.answers
            try:
                return await self._lm.retry.again(error, again, self._sleep)
            except _OF_ALL_ROWS as final:
                if answers == self.answers:
                    self.stop(final)
                raise

    async def _sleep(self, seconds: float) -> bool:
        """Wait between attempts; False at once if the run has stopped."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        return not self._stopping.is_set()

    async def _send(self, prompt: Prompt, job: Job[Any], parameters: Parameters) -> Reply:
        reserved = None if self._budget is None else await self._reserve(prompt, parameters, self._budget)
        spent, size, expected = NOTHING, prompt.size, 0
        try:
            if self.rates is not None:
                expected = prompt.tokens + parameters.answer_tokens
                await self.rates.take(expected, self._sleep)
            sent_at = await self.state.enter(self._lm, self._sleep)
            if self.stopped is not None:
                self.state.leave(sent_at, None, self._lm, answered=False)
                raise _not_sent(self.stopped)
            ended: Reply | errors.LMRequestFailed | None = None
            cost, tokens_out = None, 0
            job.sent += 1
            spent = reserved or NOTHING  # what was sent counts as paid, until the server says what it took
            try:
                reply = await self._exchange(prompt, parameters)
                count = _believed(reply.billed)
                self._check_read(prompt, size, count)
                ended = reply
                self._learn_from(reply, size)
                cost, tokens_out = self._charge(prompt, reply.text, count, reply.tier, job)
                spent = self._spent(count, cost, spent)
                if self.rates is not None and spent is cost:
                    self.rates.settle(int(cost.tokens) - expected)
                return reply if count is reply.billed else replace(reply, billed=count)
            except errors.LMRequestFailed as failed:
                ended = failed
                if self.answers and isinstance(failed, _OF_ALL_ROWS):
                    in_words = failed.status in (400, 403) and not isinstance(failed, errors.QuotaExhausted)
                    failed.stops_run, failed.retryable = False, not in_words  # which may be those of its row
                if self._is_hopeless(failed, parameters):
                    self.stop(failed)
                if failed.billed is not None or failed.status == 200:  # what cannot be read is paid as well
                    count = _believed(failed.billed or NOT_GIVEN)
                    cost, tokens_out = self._charge(prompt, "", count, None, job)
                    spent = cost if count is failed.billed else spent
                elif failed.status not in (None, 200):
                    spent = NOTHING_BUT_A_CALL
                raise
            finally:
                error = None if isinstance(ended, Reply) else ended
                if ended is not None:
                    self.state.learn_length(_allowed(parameters), 0 if error else tokens_out)
                self.state.leave(sent_at, error, self._lm, answered=isinstance(ended, Reply))
                seconds = time.monotonic() - sent_at
                job.seconds += seconds
                self._record(prompt, ended, cost, tokens_out, seconds)
        finally:
            if self._budget is not None and reserved is not None:
                self._budget.settle(reserved, spent, self.state)

    def _learn_from(self, reply: Reply, size: int) -> None:
        self.answers, self._failures = self.answers + 1, 0
        self._served = max(self._served, size)
        state = self.state
        # A gateway gives one name many models; a server whose model is known by name has one.
        if self.stored_as[1] != self._lm.model or reply.model == self._lm.model.partition("/")[2]:
            self._first_model = self._first_model or reply.model
        if reply.model is not None and reply.model != state.model:
            if state.model is not None:  # it is another one than before: the server is asked again what it has
                state.served, state.listed_at = None, -math.inf
            state.model = reply.model

    async def _exchange(self, prompt: Prompt, parameters: Parameters) -> Reply:
        try:
            async with asyncio.timeout(self._lm.timeout):
                return await self._transport.send(prompt, parameters)
        except TimeoutError as error:
            if isinstance(error, errors.LMRequestFailed):
                raise
            raise errors.RequestTimedOut(
                f"no answer within {self._lm.timeout:g} s of {self._transport.endpoint}"
            ) from None

    def _check_read(self, prompt: Prompt, size: int, count: Billed) -> None:
        """Refuse an answer to a part of the prompt.

        Raises:
            ContextTooLong: the server counts fewer tokens than the prompt can have.
        """
        if count.tokens_in is None or size < MIN_LONG_BYTES or count.tokens_in * _BYTES_A_TOKEN > size:
            return
        least = prompt.least_tokens
        if self._lm.operation == "chat" and count.tokens_in < MIN_READ_SHARE * least:
            error = errors.ContextTooLong(
                f"the server read {count.tokens_in:,} tokens of a prompt that has at least {least:,}: it cut it,"
                " and its answer is not used; give the server a larger context (Ollama: num_ctx), or set"
                " context_window= so that long rows are cut to fit",
                200,
            )
            error.billed = count
            raise error

    def _record(
        self, prompt: Prompt, ended: Reply | errors.LMError | None, cost: Cost | None, out: int, seconds: float
    ) -> None:
        """Log a request that has ended, and trace it; one without a reply or an error was cancelled."""
        reply = ended if isinstance(ended, Reply) else None
        status = 200 if reply else getattr(ended, "status", None)
        kind = None if reply else type(ended).__name__ if ended else "CancelledError"
        note("lm", DEBUG, "request", model=self._lm.model, status=status, error=kind, seconds=seconds)
        if logs.is_traced():
            logs.trace_request(
                self._lm.model,
                self._lm.operation,
                seconds=seconds,
                status=status,
                error=kind,
                tokens=None if cost is None else (int(cost.tokens) - out, out),
                dollars=None if cost is None or self.dollars is None else cost.dollars,
                messages=prompt.to_dicts() if self._is_traced else None,
                answer=reply.text if reply and self._lm.operation == "chat" else None,
            )

    async def _reserve(self, prompt: Prompt, parameters: Parameters, budget: Budget) -> Cost:
        """Reserve the most that a request can cost; if that passes the budget, nothing more is sent."""
        if self.stopped is not None:
            raise _not_sent(self.stopped)
        allowed, text_tokens = _allowed(parameters), prompt.most_tokens
        # Tools and schemas are read too.
        tokens_in = text_tokens + (len(json.dumps(parameters.extra)) if parameters.extra else 0)

        def most(expected: int) -> Cost:
            tokens_out = max(allowed, self.state.longest, expected)
            return budget.cost(tokens_in + tokens_out, dollars_of(self._dearest, tokens_in, tokens_out))

        try:
            long = LONG_ANSWER_TOKENS if not self._transport.in_batches else allowed
            dollars = dollars_of(self._dearest, text_tokens, long)
            return await budget.reserve(most, self.state, Cost(1, text_tokens + long, dollars or 0.0))
        except errors.BudgetExceeded as exceeded:
            self.stop(exceeded)
            raise

    def _spent(self, count: Billed, cost: Cost, reserved: Cost) -> Cost:
        """What a budget counts for a reply: what the server says, and of what it leaves open the most."""
        if count.tokens_in is not None and count.tokens_out is not None:
            return cost
        if count.total is not None:
            spent = Cost(1, cost.tokens, max(cost.dollars, dollars_of(self._dearest, 0, count.total) or 0.0))
        else:
            spent = Cost(*map(max, reserved, cost))
        return spent if count.dollars is None else Cost(1, spent.tokens, cost.dollars)

    def _charge(self, prompt: Prompt, text: str, count: Billed, tier: str | None, job: Job[Any]) -> tuple[Cost, int]:
        """Count a reply's tokens, estimated from the length if the server gives none, and dollars, by the price if it
        states none.

        Returns:
            The cost, and the tokens of the answer.
        """
        price = self._price
        if self._lm.tier == "flex" and tier in ("default", "standard"):  # no room in the cheaper tier
            price = self._usual_price
        tokens_in = prompt.tokens if count.tokens_in is None else count.tokens_in
        tokens_out = tokens_of(text) if count.tokens_out is None else count.tokens_out
        if count.total is not None:  # not apart: the prompt by its length, the answer has the rest
            tokens_in = min(tokens_in, count.total)
            tokens_out = count.total - tokens_in
        job.tokens_in += tokens_in
        job.tokens_out += tokens_out
        job.tokens_cached += count.cached
        dollars = count.dollars
        if dollars is None:
            dollars = dollars_of(price, tokens_in, tokens_out, count.cached, count.written)
        job.dollars = None if dollars is None or job.dollars is None else job.dollars + dollars
        job.dollars_saved += 0.0 if price is None else price.saved(count.cached)
        if dollars is not None:
            self.dollars = (self.dollars or 0.0) + dollars
        return Cost(1, tokens_in + tokens_out, dollars or 0.0), tokens_out


@dataclass(slots=True)
class _Changes:
    """What is changed in the request for one prompt, since the server failed with it.

    Attributes:
        form: whether no form is asked for.
        refused: whether the server refused it in words.
        logprobs: whether no log probabilities are asked for.
        named: whether the server named them.
        fields: the fields that are renamed or left out.
        most_answer: a lower limit of the answer's length.
        room: a limit that leaves room for the prompt; for this prompt only.
    """

    form: bool = False
    refused: bool = False
    logprobs: bool = False
    named: bool = False
    fields: dict[str, str | None] = field(default_factory=dict)
    most_answer: int | None = None
    room: int | None = None


def _believed(count: Billed) -> Billed:
    """The server's counts, unless they are impossible: one would spend this budget and the next."""
    most = max(count.tokens_in or 0, count.tokens_out or 0, count.total or 0)
    return count if most <= MAX_WINDOW_TOKENS else NOT_GIVEN


def _is_filler(reply: Reply) -> bool:
    """Whether a reply was cut off in blanks, or in what it repeats without end."""
    return reply.truncated and (len("".join(reply.text.split())) < len(reply.text) / 2 or is_endless(reply.text))


def is_endless(text: str) -> bool:
    """Whether a text that was cut off repeats itself, so that it would be cut off again at any limit."""
    return text.count(text[-REPEATED_CHARACTERS:]) > 2 if text else False


def _names_logprobs(error: errors.LMRequestFailed) -> bool:
    return "logprob" in str(error).lower()


def _is_empty(error: errors.LMRequestFailed) -> bool:
    return isinstance(error, errors.MalformedResponse) and error.empty


def _spoils_form(error: errors.LMRequestFailed, known: bool) -> bool:
    """Whether there may be no answer because of the form: there is no text, or the form is refused; by its name, if the
    server is ``known`` to take forms."""
    if error.status not in _REFUSED or isinstance(error, errors.ContextTooLong) or error.stops_run:
        return _is_empty(error)
    return _FORM_NAMED.search(str(error)) is not None or (not known and error.status in (400, 415, 422))


def _allowed(parameters: Parameters) -> int:
    """The tokens that a request's answers may have together."""
    answers = parameters.extra.get("n", 1)
    return parameters.answer_tokens * (answers if isinstance(answers, int) else 1)


def _not_sent(cause: errors.LMError) -> errors.LMError:
    if isinstance(cause, errors.BudgetExceeded | errors.RunStopped):
        return cause
    stopped = errors.RunStopped(f"not sent, because every request would fail in the same way: {cause}")
    stopped.__cause__ = cause
    return stopped
