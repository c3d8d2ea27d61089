"""The reply in a server's response, with all types checked: its text, how it ended, and what it is billed for.

Billing has each provider's names and arithmetic:

- OpenAI, Azure, Groq, Mistral, vLLM, llama.cpp: ``prompt_tokens`` contains ``prompt_tokens_details.cached_tokens``, and
  ``completion_tokens`` contains the reasoning.
- xAI and Gemini's compatible endpoint: reasoning stands beside ``completion_tokens``; ``total_tokens`` has all of it.
- DeepSeek: ``prompt_tokens`` contains ``prompt_cache_hit_tokens``.
- Anthropic and Bedrock: ``input_tokens`` (``inputTokens``) is what was neither read from the cache nor written to it;
  ``cache_read_input_tokens`` and ``cache_creation_input_tokens`` stand beside it. litellm adds both to
  ``prompt_tokens``.
- Gemini's own form: ``promptTokenCount`` contains ``cachedContentTokenCount``; ``thoughtsTokenCount`` stands beside
  ``candidatesTokenCount``.
- Cohere: ``billed_units``.
- Some state the dollars: ``cost`` (OpenRouter, and gateways; with a key of the user's own only their fee, beside
  ``cost_details.upstream_inference_cost``), ``cost.total_cost`` (Perplexity), ``estimated_cost`` (DeepInfra),
  ``cost_in_usd_ticks`` (xAI).
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Literal, Protocol, TypeAlias
from urllib.parse import urljoin

from tagframe import errors
from tagframe.blocks import without_reasoning
from tagframe.lm.prompt import Parameters, Prompt, TokenLogprob

_CONTEXT = re.compile(
    "|".join((
        r"context.?(length|window|size|limit)", r"maximum (context|prompt|model|input) length", "max_model_len",
        r"(prompt|input|request|message)s?( is| are|_is|_are)? too (long|large)", "(request|payload)_too_large",
        r"too many (input )?tokens", r"(token|length|size) limit exceeded", "string_above_max_length",
        r"exceed(s|ed)? (the |model )?(token|context|length) limit", "string too long", "longer than the model",
        r"(input|prompt)[\w ]*tokens? (count|length|number)?[\w ()]*exceeds?", "input validation error.*tokens",
        r"(reduce|shorten)[\w ]* (prompt|input|message|length)", r"maximum (number of )?(input )?tokens",
    )),
    re.IGNORECASE,
)  # fmt: skip
"""How providers say that a prompt is too long: OpenAI, Azure, Gemini, Bedrock, xAI, TGI, vLLM, Anthropic, llama.cpp,
Groq, Mistral, Cohere, LM Studio, Ollama, MiniMax."""
_TOO_LONG = "; shorten the cells, or take a model with a longer context"
_LIMIT_AND_SIZE = re.compile(
    r"limit:? *([\d,]+).{0,40}?requested:? *([\d,]+)|requested:? *([\d,]+).{0,40}?limit:? *([\d,]+)", re.IGNORECASE
)
"""A limit a minute, and the size of one request: OpenAI and Groq; what is "used" already may stand between them."""
_TOO_LARGE = re.compile(r"(request|message|input|prompt) (is )?too large|(must be|please) reduced?", re.IGNORECASE)
_NO_MONEY = re.compile(
    r"insufficient[\w ]{0,20}(quota|balance|credit|fund|resource pack)|credit.?balance|out of credits?|"
    r"(requires more|available) credits|billing.hard.limit|restricted: billing|billing[\w ]* (disabled|not active)|"
    r"(key|spend\w*|budget|monthly|total)[ _](limit|cap) (has been |was |is )?(exceeded|reached)|arrearage|"
    r"(reached|exceeded) (your|its|the)[\w ]{0,40} (spend\w*|billing)\b|exceeded_current_quota|overdue[- ]payment|"
    r"account is in good standing|account (balance|is suspended|has been suspended)",
    re.IGNORECASE,
)
"""How providers say that the account, not the request, is at its end, in words that no row is likely to have: OpenAI,
Anthropic, OpenRouter, DeepSeek, Moonshot, DashScope, xAI."""
_NO_QUOTA = re.compile(
    r"(reached|exceeded) (your|its|the)[\w ]{0,40} (usage|quota)|(usage limit|quota)( has been| is)? (ex\w+ed|reached)",
    re.IGNORECASE,
)
"""The same, but a 429 says so of a minute, too (Gemini)."""
_PASSES = re.compile(
    r"parse the JSON body|request body is not valid JSON|temporar(y|il)|overloaded|throttl|too many requests|"
    r"no healthy upstream|(currently|still) loading|before trying again|try again (later|soon|shortly|in )",
    re.IGNORECASE,
)
"""How providers refuse a request that they may answer later, where the status is another one: OpenAI and Anthropic what
was cut on its way, Bedrock behind gateways what comes too fast, servers what comes while they load a model."""
_A_TIME = re.compile(r"(per|/|a|each|every) ?(second|min(ute)?|hour|day)\b|\b(RP|TP|ITP|OTP)[SMHD]\b", re.IGNORECASE)
"""A limit that says of what time it is: the same request fits later."""
_FILTERED_MESSAGE = re.compile(
    r"content.?(filter|management|policy)|moderation|flagged|safety (system|setting)|responsibleai", re.IGNORECASE
)
_BAD_KEY = re.compile(r"api.?key|credential|access token", re.IGNORECASE)
_MAX_SHOWN_CHARACTERS = 500
_MIN_SECRET_CHARACTERS = 8
"""The shortest key that is struck out of messages: the letters of a shorter one are in every word."""


def failure(
    status: int, message: str, headers: Mapping[str, str], secrets: tuple[str, ...] = (), url: str = ""
) -> errors.LMRequestFailed:
    """The error for a response of an error status from ``url``; ``secrets`` are removed from the server's message."""
    if 300 <= status < 400:
        return _moved(status, headers, secrets, url)
    kind, way = _kind(status, message)
    fact = f"the server answered {status}: {shorten(without(secrets, message)) or 'no reason given'}{way}"
    return kind(fact, status, retry_after(headers) if kind.retryable else None)


def _kind(status: int, message: str) -> tuple[type[errors.LMRequestFailed], str]:
    """The kind of an error, and the way out of it."""
    passes = status in (400, 403, 404, 422, 500) and _PASSES.search(message)
    if status == 413 or (not passes and is_too_long(status, message)):
        return errors.ContextTooLong, _TOO_LONG
    of_account = status in (400, 403, 429) and _NO_MONEY.search(message)
    if status == 402 or of_account or (status in (400, 403) and _NO_QUOTA.search(message)):
        return errors.QuotaExhausted, "; the account needs credit, or a higher limit"
    if status == 401 or (status in (400, 403) and _BAD_KEY.search(message)):
        return errors.AuthenticationFailed, "; set the key with api_key= or in the provider's environment variable"
    if status == 404 and not passes:
        return errors.ModelNotFound, "; check the model's name and api_base"
    if status == 429:
        return errors.RateLimited, ""
    if status in (400, 403) and _FILTERED_MESSAGE.search(message):
        return errors.ContentFiltered, ""
    if status == 408:
        return errors.RequestTimedOut, ""
    fails = passes or status in (409, 425, 498, 499) or status >= 500
    return (errors.ServerFailed if fails else errors.LMRequestFailed), ""


def is_too_long(status: int, message: str) -> bool:
    """Whether an error says that the request is too long, in words, or by a limit that is smaller than the request."""
    for low, high, size, limit in _LIMIT_AND_SIZE.findall(message):
        of, wanted = (int((text or "0").replace(",", "")) for text in (low or limit, high or size))
        return wanted > of  # else it fits, at another time
    if status == 429:
        return _TOO_LARGE.search(message) is not None and _A_TIME.search(message) is None
    return status in (400, 422, 500) and _CONTEXT.search(message) is not None


def _moved(status: int, headers: Mapping[str, str], secrets: tuple[str, ...], url: str) -> errors.ServerMoved:
    """The error for a redirect, which is not followed: a key would go to an address that the user has not given."""
    where = next((value for name, value in headers.items() if name.lower() == "location"), "")
    base = re.sub(r"/(chat/completions|embeddings|models)/?$", "", without(secrets, urljoin(url, where)))
    to = f" to {shorten(base)!r}: set api_base to that, if it is right" if where else "; check api_base"
    return errors.ServerMoved(f"the server answered {status}: it redirects{to}", status)


def error_message(raw: bytes) -> str:
    """The reason in an error response: OpenAI's ``error.message`` with its code, or the text as it is."""
    text = raw.decode(errors="replace")
    try:
        error = json.loads(text)["error"]
        return f"{error['message']} ({error['code']})" if error.get("code") else str(error["message"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return text


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that the server asks to wait, from ``Retry-After`` (seconds or a date) or ``retry-after-ms``."""
    milliseconds, wait = headers.get("retry-after-ms"), headers.get("retry-after", "")
    try:
        seconds = float(wait) if milliseconds is None else float(milliseconds) / 1000
    except ValueError:
        # It names a date by its own clock; that of this machine may be another.
        now = _time(headers.get("date", headers.get("Date", ""))) or time.time()
        seconds = (_time(wait) or math.inf) - now
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _time(date: str) -> float | None:
    with contextlib.suppress(TypeError, ValueError):
        return parsedate_to_datetime(date).timestamp()
    return None


def without(secrets: tuple[str, ...], message: str) -> str:
    """A message in which secrets are struck out."""
    for secret in sorted(secrets, key=len, reverse=True):  # one may be part of another
        if len(secret) >= _MIN_SECRET_CHARACTERS:
            message = message.replace(secret, "***")
    return message


def in_message(value: Any) -> str:
    """A value as it stands in a message."""
    try:
        return shorten(repr(value))
    except RecursionError:
        return "something nested too deep to be shown"


def shorten(text: str) -> str:
    """The first 500 characters."""
    text = text.strip()
    return text if len(text) <= _MAX_SHOWN_CHARACTERS else f"{text[:_MAX_SHOWN_CHARACTERS]}…"


def raise_error_in(body: Any, secrets: tuple[str, ...] = ()) -> None:
    """Raise what a response of status 200 reports as its error, if anything: in the body, or in a choice.

    ``secrets`` are removed from the message.

    Raises:
        RateLimited, ContextTooLong, QuotaExhausted, ContentFiltered: by its code and words.
        ServerFailed: for any other.
    """
    error = body.get("error") if isinstance(body, dict) else None
    if not (any(error.values()) if isinstance(error, dict) else error):
        return
    code = str(error.get("code") if isinstance(error, dict) else "")
    message = str((error.get("message") if isinstance(error, dict) else error) or in_message(error))
    kind, way = _kind(int(code) if code.isdecimal() else 400, message)
    if kind not in _ERRORS_IN_A_REPLY:  # a refused request would have another status
        kind, way = errors.ServerFailed, ""
    raise kind(f"the server answered with an error: {shorten(without(secrets, message))}{way}", 200)


_ERRORS_IN_A_REPLY = (errors.RateLimited, errors.ContextTooLong, errors.QuotaExhausted, errors.ContentFiltered)


_CLOSING = re.compile(
    r"(?:\s*(?:</s>|<\|(?:im_end|eot_id|endoftext|end_of_text|end|eot|eom_id)\|>|<end_of_turn>|<eos>))+\s*\Z"
)

# --- what is billed --------------------------------------------------------------------------------------------------

_PROMPT = ("prompt_tokens", "promptTokenCount")
_INPUT = ("input_tokens", "inputTokens")
_OUTPUT = ("completion_tokens", "output_tokens", "outputTokens", "candidatesTokenCount")
_TOTAL = ("total_tokens", "totalTokens", "totalTokenCount")
_CACHED_WITHIN = ("cached_tokens", "prompt_cache_hit_tokens", "cachedContentTokenCount", "cached_input_tokens")
_CACHED_BESIDE = ("cache_read_input_tokens", "cacheReadInputTokens", "cacheReadInputTokenCount")
_WRITTEN = ("cache_creation_input_tokens", "cacheWriteInputTokens", "cacheWriteInputTokenCount", "cache_write_tokens")
_REASONED = ("reasoning_tokens", "thoughtsTokenCount")
TICKS_A_DOLLAR = 10**10
"""The unit in which xAI states what a request costs."""
MAX_DOLLARS = 1000.0
"""The most that a request may be said to cost; more is taken for an error."""
_SIMPLE = frozenset(("prompt_tokens", "completion_tokens", "total_tokens"))
_PARTS = ("prompt_tokens_details", "input_tokens_details", "completion_tokens_details", "output_tokens_details")


@dataclass(frozen=True, slots=True)
class Billed:
    """The tokens of one reply.

    Attributes:
        tokens_in: of the prompt, with what was read from the cache or written to it; None if not given.
        tokens_out: of the answer, with its reasoning; None if not given.
        cached: how many of ``tokens_in`` the provider read from its cache.
        written: how many of ``tokens_in`` it wrote to its cache.
        total: of both, where the reply does not give them apart; or None.
        dollars: as the provider states them; None if it does not.
    """

    tokens_in: int | None = None
    tokens_out: int | None = None
    cached: int = 0
    written: int = 0
    total: int | None = None
    dollars: float | None = None


NOT_GIVEN = Billed()


def billed(usage: Any) -> Billed:
    """What a reply's ``usage`` bills; whatever is no count is taken as not given.

    >>> billed({"prompt_tokens": 279, "completion_tokens": 6, "total_tokens": 3285}).tokens_out
    3006
    >>> billed({"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 2000, "cost": 0.25})
    Billed(tokens_in=2010, tokens_out=5, cached=2000, written=0, total=None, dollars=0.25)
    """
    if not isinstance(usage, dict):
        return NOT_GIVEN
    if _SIMPLE.issuperset(usage):  # as of most servers, and in a tenth of the time
        plain_in, plain_out = usage.get("prompt_tokens"), usage.get("completion_tokens")
        is_plain = type(plain_in) is int and type(plain_out) is int and plain_in > 0 < plain_out
        if is_plain and usage.get("total_tokens") in (None, plain_in + plain_out):  # type: ignore[operator]
            return Billed(plain_in, plain_out)
    dollars = _stated(usage)
    if isinstance(units := usage.get("billed_units"), dict):
        usage = units
    parts: dict[str, Any] = {}
    for name in _PARTS:
        if isinstance(part := usage.get(name), dict):
            parts |= part
    within = _first(usage, _CACHED_WITHIN) or _first(parts, _CACHED_WITHIN) or 0
    beside = _first(usage, _CACHED_BESIDE) or 0
    written = _first(usage, _WRITTEN) or _first(parts, _WRITTEN) or 0
    tokens_in, total = _first(usage, _PROMPT), _first(usage, _TOTAL)
    tokens_out = _first(usage, _OUTPUT)
    apart = tokens_in is None and not within
    tokens_in = _first(usage, _INPUT) if tokens_in is None else tokens_in
    if tokens_in is None and (beside or written):
        tokens_in = 0  # all of it was in the cache
    if tokens_in is not None and beside + written:
        whole = tokens_in + beside + written
        if apart or beside + written > tokens_in or total == whole + (tokens_out or 0):
            tokens_in = whole
    reasoning = _first(usage, _REASONED) or _first(parts, _REASONED) or 0
    if total is not None and tokens_in is not None:
        tokens_out = max(tokens_out or 0, total - tokens_in) or None
    elif reasoning > (tokens_out or 0) or "thoughtsTokenCount" in usage:  # it cannot be a part of the answer
        tokens_out = (tokens_out or 0) + reasoning
    most = tokens_in or 0
    cached = min(max(within, beside), most)
    total = total if tokens_in is None and total != tokens_out else None
    return Billed(tokens_in, tokens_out, cached, min(written, most - cached), total, dollars)


def _stated(usage: Mapping[str, Any]) -> float | None:
    """The dollars that a provider states, or None; by whose key the model is paid, "is_byok" says."""
    cost = usage.get("cost", usage.get("estimated_cost"))
    dollars = _dollars(cost.get("total_cost") if isinstance(cost, dict) else cost)
    if dollars is None:
        return _dollars(usage.get("cost_in_usd_ticks"), TICKS_A_DOLLAR)
    details = usage.get("cost_details")
    upstream = _dollars(details.get("upstream_inference_cost")) if isinstance(details, dict) else None
    return dollars + upstream if upstream and usage.get("is_byok", upstream > dollars) else dollars


def _dollars(amount: Any, parts: float = 1.0) -> float | None:
    """An amount of money, unless it is none, or impossible for one request."""
    with contextlib.suppress(TypeError, ValueError, OverflowError):  # some gateways write it as a text
        if not isinstance(amount, bool) and 0 <= (dollars := float(amount) / parts) <= MAX_DOLLARS:
            return dollars
    return None


_NUMBER = re.compile(r"\s*\d{1,3}(\d{,12}|(,\d{3}){1,4})(\.0*)?\s*")


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        count = fields.get(name)
        if isinstance(count, str) and _NUMBER.fullmatch(count):  # as gateways and Cohere type them
            count = float(count.replace(",", ""))
        if isinstance(count, float) and count.is_integer():
            count = int(count)
        if type(count) is int and count > 0:
            return count
    return None


# --- how it ended ----------------------------------------------------------------------------------------------------

Ending: TypeAlias = Literal["whole", "tool", "cut", "filtered", "unknown"]
"""Complete, a tool call, cut off at a token limit, stopped by a filter, or not known: broken off, most likely."""

# "stop", "completed": OpenAI and most others (vLLM, llama.cpp, Groq, Mistral, DeepSeek, Ollama), its Responses;
# "end_turn", "stop_sequence": Anthropic, Bedrock, Cohere, TGI, watsonx; "complete": Cohere, OCI; "eos…": Together, TGI,
# watsonx; "end_of_text" to "stop_sequence_reached": Aleph Alpha, AI21; "finish" to "stop_criteria_met": Bedrock's
# Titan; "eos_found", "stop_string_found": LM Studio; "normal": Baidu. Some servers write "" or "null" for none.
_WHOLE = (
    "stop completed end_turn stop_sequence complete eos eos_token end_of_text endoftext stop_sequence_reached finish"
    " finished stop_criteria_met eos_found stop_string_found normal null"
)
_TOOL = "tool_calls tool_call tool_use function_call"
# "max_tokens" to "compaction": Anthropic, Gemini, Cohere, Bedrock; "max_output_tokens": OpenAI's Responses;
# "model_length": Mistral; "token_limit": watsonx; "error_limit": Cohere, of the context; "maximum_tokens": Aleph Alpha;
# the last two: LM Studio.
_CUT = (
    "length max_tokens model_context_window_exceeded compaction max_output_tokens model_length token_limit error_limit"
    " maximum_tokens max_predicted_tokens_reached context_length_reached"
)
# "content_filter": OpenAI, Azure, Groq, Bedrock; "refusal": Anthropic; "guardrail_intervened": Bedrock; "safety" to
# "model_armor": Gemini; "error_toxic": Cohere; "sensitive": Zhipu; "blacklist": GigaChat.
_FILTERED = (
    "content_filter content_filtered refusal guardrail_intervened safety recitation language blocklist"
    " prohibited_content spii model_armor error_toxic sensitive blacklist"
)


def _plain(reason: str) -> str:
    """A name as it is compared: without case and hyphens, as "STOP_SEQUENCE", "stop-sequence" and "stopSequence"."""
    return re.sub(r"[\W_]+", "", reason).lower()


_KNOWN: dict[Ending, str] = {"whole": _WHOLE, "tool": _TOOL, "cut": _CUT, "filtered": _FILTERED}
_ENDINGS: dict[str, Ending] = {_plain(name): ending for ending, names in _KNOWN.items() for name in names.split()} | {
    "": "whole"
}


def ending_of(reason: Any) -> Ending:
    """What a ``finish_reason`` says of an answer; None, which servers send that give no reason, that it is whole.

    >>> ending_of("STOP"), ending_of("max-tokens"), ending_of(7)
    ('whole', 'cut', 'unknown')
    """
    if reason is None or reason == "stop":
        return "whole"
    if not isinstance(reason, str):
        return "unknown"
    return _ENDINGS.get(_plain(reason.partition(": ")[0]), "unknown")  # "content_filter: PROHIBITED_CONTENT"


# --- the reply -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reply:
    """A usable answer.

    Attributes:
        text: never empty, unless the answer was cut off before it began.
        truncated: whether the answer was cut off at its limit of tokens, and so cannot be used.
        unfinished: whether it was cut off inside the model's reasoning.
        billed: the tokens that the server counted.
        model: the name that the server gives its model; None if it gives none.
        tier: the tier in which the request was served, if the server says so.
    """

    text: str
    truncated: bool = False
    unfinished: bool = False
    billed: Billed = NOT_GIVEN
    logprobs: tuple[TokenLogprob, ...] | None = None
    model: str | None = None
    tier: str | None = None


class Transport(Protocol):
    """Sends one request; all code above it is the same for all providers.

    Attributes:
        endpoint: answers are stored under it and the model's name; contains no secret.
        own_server: whether it may be a server of the user's own, as llama.cpp's, whose models need the form of answers
            from the start; hosted models are asked for it where an answer is repaired.
        in_batches: whether requests are collected and answered together, hours later.
    """

    endpoint: str
    own_server: bool
    in_batches: bool

    async def send(self, prompt: Prompt, parameters: Parameters) -> Reply:
        """The answer; waits for it without end.

        Raises:
            LMRequestFailed: one of its subclasses; the message contains no key.
        """


def read_reply(body: Any, *, tools: bool = False, secrets: tuple[str, ...] = ()) -> Reply:
    """The answer in a chat completion's body, with all types checked.

    Args:
        body: the response's.
        tools: whether tools were asked for, so that an answer may end with a call of one.
        secrets: struck out of the server's error messages.

    Raises:
        MalformedResponse: there is no text in it.
        ServerFailed: the server reports an error, or an ending that makes the text unusable.
        ContentFiltered: a content filter or a refusal took the place of the answer, or of its end.
    """
    count = billed(body.get("usage") if isinstance(body, dict) else None)
    try:
        return _usable(body, count, tools, secrets)
    except errors.LMRequestFailed as error:  # a provider bills it all the same
        error.billed = count if count != NOT_GIVEN else None
        raise


def _usable(body: Any, count: Billed, tools: bool, secrets: tuple[str, ...]) -> Reply:
    raise_error_in(body, secrets)
    blocked = body.get("promptFeedback") or body.get("prompt_feedback") if isinstance(body, dict) else None
    if isinstance(blocked, dict) and (blocked.get("blockReason") or blocked.get("block_reason")):  # Gemini
        raise errors.ContentFiltered(f"the provider gave no answer: {in_message(blocked)}", 200)
    try:
        choice = _first_choice(body["choices"])
        content = choice["message"]["content"]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise errors.MalformedResponse(f"the server's answer is no chat completion: {in_message(body)}", 200) from error
    raise_error_in(choice, secrets)
    ending, reason = _ending(choice)
    if isinstance(content, list):  # some servers give the answer in parts
        content = "".join(
            part["text"]
            for part in content
            if isinstance(part, dict) and isinstance(part.get("text"), str) and part.get("type") not in _NO_ANSWER
        )
    truncated = ending == "cut"
    if truncated and content is None:  # all of its tokens went into reasoning that the server keeps apart
        content = ""
    content = _without_closing(content)
    empty = not isinstance(content, str) or not content.strip()
    if ending == "filtered" or (empty and choice["message"].get("refusal")):
        raise errors.ContentFiltered("the provider gave no answer (content filter or refusal)", 200)
    if ending == "unknown" or (ending == "tool" and not tools):
        raise errors.ServerFailed(
            f"the answer ended with finish_reason {shorten(repr(reason))}, so it is not complete", 200
        )
    if not isinstance(content, str) or (empty and not truncated):
        fact = f"the server's answer has no text: content is {in_message(content)}"
        if choice["message"].get("reasoning_content") or choice["message"].get("reasoning"):
            fact += ", all of it is reasoning: start the server without a reasoning parser, or let the model think"
        without_text = errors.MalformedResponse(fact, 200)
        without_text.empty = True
        raise without_text
    model, tier = body.get("model"), body.get("service_tier")
    return Reply(
        _storable(content),
        truncated,
        truncated and _is_reasoning(content),
        count,
        _logprobs(choice.get("logprobs")),
        model if isinstance(model, str) else None,
        tier if isinstance(tier, str) else None,
    )


_NO_ANSWER = ("reasoning", "reasoning_text", "thinking", "summary_text")
"""Parts of a content that are the model's reasoning."""


def _first_choice(choices: Any) -> Any:
    """The choice of index 0; if the server gives no index, the first."""
    if len(choices) == 1 and choices[0].get("index", 0) == 0:  # as almost always
        return choices[0]
    if any("index" in choice and choice["index"] is not None for choice in choices):
        (choice,) = (choice for choice in choices if choice.get("index") == 0)
        return choice
    return choices[0]


def _ending(choice: Mapping[str, Any]) -> tuple[Ending, Any]:
    """How an answer ended, and the reason that was given for it.

    OpenRouter translates its providers' reasons and also sends the original: a known bad one counts.
    """
    reason, native = choice.get("finish_reason"), choice.get("native_finish_reason")
    ending = ending_of(reason)
    if native is not None and ending == "whole" and ending_of(native) in ("cut", "filtered"):
        return ending_of(native), native
    return ending, reason


def _without_closing(content: Any) -> Any:
    """A text without the tokens with which chat templates close a turn; some servers leave them at its end."""
    if not isinstance(content, str) or not content.rstrip().endswith(">"):
        return content
    cut = _CLOSING.sub("", content)
    return content if "<s>" in cut else cut  # </s> of HTML


def _is_reasoning(text: str) -> bool:
    """Whether a text was cut off before the answer began, inside the reasoning."""
    try:
        return not without_reasoning(text)
    except errors.AnswerRejected:
        return True


def _storable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which SQLite and most files refuse
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _logprobs(value: Any) -> tuple[TokenLogprob, ...] | None:
    if value is None:
        return None
    try:
        return tuple(
            TokenLogprob(*_named(token), tuple(map(_named, token.get("top_logprobs") or ())))
            for token in value["content"]
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def _named(token: Any) -> tuple[str, float]:
    """A token and its log probability; one that is no number makes all of them unknown."""
    number = float(token["logprob"])
    if math.isnan(number):
        raise ValueError("a log probability is no number")
    return str(token["token"]), number


# --- streams of events -----------------------------------------------------------------------------------------------

_BLANK = b"\xef\xbb\xbf\r\n\t "


def is_event_stream(raw: bytes) -> bool:
    """Whether a body is server-sent events, and no JSON."""
    return raw.lstrip(_BLANK).startswith((b"data:", b"event:", b"id:", b"retry:", b":"))


def completion_of(raw: bytes) -> dict[str, Any]:
    """The completion whose chunks a stream consists of; of a stream that breaks off, one that ends with "error".

    Raises:
        ValueError: an event is not JSON, or no part of a completion.
    """
    made: dict[str, Any] = {}
    message: dict[str, Any] = {"role": "assistant", "content": None}
    tokens: list[Any] = []
    reason, is_whole = None, False
    for data in _events(raw):
        if data.strip() == "[DONE]":
            is_whole = True
            continue
        if not data.strip():
            continue
        chunk = json.loads(data)
        if not isinstance(chunk, dict):
            raise ValueError(f"an event of the stream is no object: {data[:80]!r}")
        made |= {name: value for name, value in chunk.items() if value is not None and name != "choices"}
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, dict):
                raise ValueError(f"a choice of the stream is no object: {data[:80]!r}")
            if choice.get("index") not in (0, None):
                continue
            # Some send the whole message at the end, after its parts.
            delta = choice.get("delta")
            part = delta if isinstance(delta, dict) else {}
            for name in ("content", "refusal", "reasoning_content"):
                if isinstance(part.get(name), str):
                    message[name] = (message.get(name) or "") + part[name]
            if isinstance(whole := choice.get("message"), dict) and message["content"] is None:
                message |= whole
            if isinstance(logprobs := choice.get("logprobs"), dict) and isinstance(logprobs.get("content"), list):
                tokens += logprobs["content"]
            reason = choice.get("finish_reason") or reason
    is_whole = is_whole or reason is not None
    choice = {"index": 0, "message": message, "finish_reason": reason if is_whole else "error"}
    if tokens:
        choice["logprobs"] = {"content": tokens}
    return {**made, "choices": [choice]}


def _events(raw: bytes) -> list[str]:
    """The data of each event; lines end with CR, LF or both, and no other character ends one."""
    events: list[str] = []
    lines: list[str] = []
    for line in [*raw.lstrip(_BLANK).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"), b""]:
        if line.startswith(b"data:"):
            lines.append(line.removeprefix(b"data:").removeprefix(b" ").decode(errors="replace"))
        elif not line and lines:
            events.append("\n".join(lines))
            lines = []
    return events
