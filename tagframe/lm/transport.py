"""Common to both transports: the reply, and the errors for unusable responses."""

from __future__ import annotations

import base64
import json
import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Protocol

import numpy as np

from tagframe.errors import (
    AnswerWithheld,
    AuthenticationFailed,
    ContextTooLong,
    LMRequestFailed,
    MalformedResponse,
    ModelNotFound,
    QuotaExhausted,
    RateLimited,
    RequestTimedOut,
    ServerFailed,
    ServerMoved,
)
from tagframe.lm.billing import NOT_GIVEN, Billed, billed
from tagframe.lm.endings import Ending, ending_of
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
    r"insufficient.?(quota|balance|credit|funds)|credit.?(balance|limit)|out of credits?|more credits|billing|payment|"
    r"(key|spend\w*|budget|usage|monthly|total) limit|exceeded_current_quota|quota (is )?(exceeded|exhausted)|"
    r"arrear|overdue|good standing|account (balance|is suspended|has been suspended)",
    re.IGNORECASE,
)
"""How providers say that the account, not the request, is at its end: OpenAI, Anthropic, OpenRouter, DeepSeek,
Moonshot, DashScope, xAI."""
_WITHHELD = re.compile(
    r"content.?(filter|management|policy)|moderation|flagged|safety (system|setting)|responsibleai", re.IGNORECASE
)
_BAD_KEY = re.compile(r"api.?key|credential|access token", re.IGNORECASE)
_REASONING = re.compile(r"\s*<(think|thinking|thought|reasoning)>")
_CLOSING = re.compile(
    r"(?:\s*(?:</s>|<\|(?:im_end|eot_id|endoftext|end_of_text|end|eot|eom_id)\|>|<end_of_turn>|<eos>))+\s*\Z"
)
_MAX_SHOWN_CHARACTERS = 500
_MIN_SECRET_CHARACTERS = 8
"""The shortest key that is struck out of messages: the letters of a shorter one are in every word."""


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

    @property
    def tokens_in(self) -> int | None:
        """The tokens of the prompt; None if the server did not give them."""
        return self.billed.tokens_in

    @property
    def tokens_out(self) -> int | None:
        """The tokens of the answer; None if the server did not give them."""
        return self.billed.tokens_out


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

    async def send(self, prompt: Prompt, parameters: Parameters, begins: Callable[[], None]) -> Reply:
        """The answer; waits for it without end.

        Args:
            begins: called when the answer begins to arrive, if the transport can see that.

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
        AnswerWithheld: a content filter or a refusal withheld the answer, or its end.
    """
    count = billed(body.get("usage") if isinstance(body, dict) else None)
    try:
        return _usable(body, count, tools, secrets)
    except LMRequestFailed as error:  # a provider bills it all the same
        error.billed = count if count != NOT_GIVEN else None
        raise


def _usable(body: Any, count: Billed, tools: bool, secrets: tuple[str, ...]) -> Reply:
    raise_error_in(body, secrets)
    try:
        choice = _first_choice(body["choices"])
        content = choice["message"]["content"]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise MalformedResponse(f"the server's answer is no chat completion: {_in_message(body)}", 200) from error
    raise_error_in(choice, secrets)
    ending, reason = _ending(choice)
    if isinstance(content, list):  # some servers give the answer in parts
        content = "".join(
            part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    truncated = ending == "cut"
    if truncated and content is None:  # all of its tokens went into reasoning that the server keeps apart
        content = ""
    content = _without_closing(content)
    empty = not isinstance(content, str) or not content.strip()
    if ending == "withheld" or (empty and choice["message"].get("refusal")):
        raise AnswerWithheld("the provider withheld the answer (content filter or refusal)", 200)
    if ending in ("broken", "unknown") or (ending == "tool" and not tools):
        raise ServerFailed(f"the answer ended with finish_reason {shorten(repr(reason))}, so it is not complete", 200)
    if not isinstance(content, str) or (empty and not truncated):
        without_text = MalformedResponse(f"the server's answer has no text: content is {_in_message(content)}", 200)
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


def raise_error_in(body: Any, secrets: tuple[str, ...] = ()) -> None:
    """Raise what a response of status 200 reports as its error, if anything: in the body, or in a choice.

    ``secrets`` are removed from the message.

    Raises:
        RateLimited, ContextTooLong, QuotaExhausted, AnswerWithheld: by its code and words.
        ServerFailed: for any other.
    """
    error = body.get("error") if isinstance(body, dict) else None
    if not (any(error.values()) if isinstance(error, dict) else error):
        return
    code = str(error.get("code") if isinstance(error, dict) else "")
    message = str((error.get("message") if isinstance(error, dict) else error) or _in_message(error))
    kind, way = _kind(int(code) if code.isdecimal() else 400, message)
    if kind not in _ERRORS_IN_A_REPLY:  # a refused request would have another status
        kind, way = ServerFailed, ""
    raise kind(f"the server answered with an error: {shorten(without(secrets, message))}{way}", 200)


_ERRORS_IN_A_REPLY = (RateLimited, ContextTooLong, QuotaExhausted, AnswerWithheld)


def _first_choice(choices: Any) -> Any:
    """The choice of index 0; if the server gives no index, the first."""
    if any("index" in choice and choice["index"] is not None for choice in choices):
        (choice,) = (choice for choice in choices if choice.get("index") == 0)
        return choice
    return choices[0]


def _ending(choice: Mapping[str, Any]) -> tuple[Ending, Any]:
    """How an answer ended, and the reason that was given for it.

    OpenRouter translates its providers' reasons and also sends the original: a known bad one counts.
    """
    reason, native = choice.get("finish_reason"), choice.get("native_finish_reason")
    if ending_of(reason) == "whole" and ending_of(native) in ("cut", "withheld", "broken"):
        return ending_of(native), native
    return ending_of(reason), reason


def read_vectors(body: Any, texts: int, secrets: tuple[str, ...] = ()) -> Reply:
    """The vectors in an embedding response's body, as Base64 of float32 (rows, d), with all types checked.

    Raises:
        MalformedResponse: it does not have one finite vector per text, all of one length.
        LMRequestFailed: as :func:`raise_error_in`.
    """
    raise_error_in(body, secrets)
    try:
        rows = sorted(body["data"], key=lambda row: row["index"])
        vectors = np.array([row["embedding"] for row in rows], dtype="<f4")
    except (LookupError, TypeError, ValueError) as error:
        raise MalformedResponse(f"the server's answer has no vectors: {_in_message(body)}", 200) from error
    if vectors.ndim != 2 or len(vectors) != texts or not vectors.size or not np.isfinite(vectors).all():
        raise MalformedResponse(
            f"the server gave vectors of shape {vectors.shape} for {texts} texts, or no numbers", 200
        )
    tokens = billed(body.get("usage")).tokens_in
    return Reply(base64.b64encode(vectors.tobytes()).decode(), billed=Billed(tokens, 0))


def _without_closing(content: Any) -> Any:
    """A text without the tokens with which chat templates close a turn; some servers leave them at its end."""
    if not isinstance(content, str) or not content.rstrip().endswith(">"):
        return content
    cut = _CLOSING.sub("", content)
    return content if "<s>" in cut else cut  # </s> of HTML


def _is_reasoning(text: str) -> bool:
    """Whether a text was cut off before the answer began, inside the reasoning."""
    opened = _REASONING.match(text)
    return not text.strip() or (opened is not None and f"</{opened[1]}>" not in text)


def failure(status: int, message: str, headers: Mapping[str, str], secrets: tuple[str, ...] = ()) -> LMRequestFailed:
    """The error for a response with an error status; ``secrets`` are removed from the server's message."""
    if 300 <= status < 400:
        return _moved(status, headers, secrets)
    kind, way = _kind(status, message)
    fact = f"the server answered {status}: {shorten(without(secrets, message)) or 'no reason given'}{way}"
    return kind(fact, status, retry_after(headers) if kind.retryable else None)


def _kind(status: int, message: str) -> tuple[type[LMRequestFailed], str]:
    """The kind of an error, and the way out of it."""
    if status == 413 or is_too_long(status, message):
        return ContextTooLong, _TOO_LONG
    if status == 402 or (status in (400, 403) and _NO_MONEY.search(message)):
        return QuotaExhausted, "; the account needs credit, or a higher limit"
    if status == 401 or (status in (400, 403) and _BAD_KEY.search(message)):
        return AuthenticationFailed, "; set the key with api_key= or in the provider's environment variable"
    if status == 404:
        return ModelNotFound, "; check the model's name and api_base"
    if status == 429:
        return (
            QuotaExhausted if "insufficient" in message.lower() or "exceeded_current" in message else RateLimited
        ), ""
    if status in (400, 403) and _WITHHELD.search(message):
        return AnswerWithheld, ""
    if status == 408:
        return RequestTimedOut, ""
    return (ServerFailed if status in (409, 498) or status >= 500 else LMRequestFailed), ""


def is_too_long(status: int, message: str) -> bool:
    """Whether an error says that the request is too long, in words, or by a limit that is smaller than the request."""
    for low, high, size, limit in _LIMIT_AND_SIZE.findall(message):
        of, wanted = (int((text or "0").replace(",", "")) for text in (low or limit, high or size))
        return wanted > of  # else it fits, at another time
    if status == 429:
        return _TOO_LARGE.search(message) is not None
    return status in (400, 422, 500) and _CONTEXT.search(message) is not None


def _moved(status: int, headers: Mapping[str, str], secrets: tuple[str, ...]) -> ServerMoved:
    """The error for a redirect, which is not followed: a key would go to an address that the user has not given."""
    where = next((value for name, value in headers.items() if name.lower() == "location"), "")
    base = re.sub(r"/(chat/completions|embeddings|models)/?$", "", without(secrets, where))
    to = f" to {shorten(base)!r}: set api_base to that, if it is right" if where else "; check api_base"
    return ServerMoved(f"the server answered {status}: it redirects{to}", status)


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
    try:
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
        else:
            value = headers["retry-after"]
            try:
                seconds = float(value)
            except ValueError:
                seconds = parsedate_to_datetime(value).timestamp() - _servers_time(headers)
    except (KeyError, TypeError, ValueError):
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _servers_time(headers: Mapping[str, str]) -> float:
    """The time on the server's clock, by which it names dates; that of this machine may be another."""
    try:
        return parsedate_to_datetime(headers.get("date", headers.get("Date", ""))).timestamp()
    except (TypeError, ValueError):
        return time.time()


def without(secrets: tuple[str, ...], message: str) -> str:
    """A message in which secrets are struck out."""
    for secret in sorted(secrets, key=len, reverse=True):  # one may be part of another
        if len(secret) >= _MIN_SECRET_CHARACTERS:
            message = message.replace(secret, "***")
    return message


def _in_message(value: Any) -> str:
    try:
        return shorten(repr(value))
    except RecursionError:
        return "something nested too deep to be shown"


def shorten(text: str) -> str:
    """The first 500 characters."""
    text = text.strip()
    return text if len(text) <= _MAX_SHOWN_CHARACTERS else f"{text[:_MAX_SHOWN_CHARACTERS]}…"


def _storable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which SQLite and most files refuse
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _logprobs(value: Any) -> tuple[TokenLogprob, ...] | None:
    try:
        return tuple(
            TokenLogprob(
                str(token["token"]),
                _number(token["logprob"]),
                tuple((str(top["token"]), _number(top["logprob"])) for top in token.get("top_logprobs") or ()),
            )
            for token in value["content"]
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def _number(logprob: Any) -> float:
    """A log probability; one that is no number makes all of them unknown."""
    number = float(logprob)
    if math.isnan(number):
        raise ValueError("a log probability is no number")
    return number
