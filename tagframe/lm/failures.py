"""The errors for unusable responses, by their status and words."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from tagframe.errors import (
    AuthenticationFailed,
    ContentFiltered,
    ContextTooLong,
    LMRequestFailed,
    ModelNotFound,
    QuotaExhausted,
    RateLimited,
    RequestTimedOut,
    ServerFailed,
    ServerMoved,
)

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
_FILTERED = re.compile(
    r"content.?(filter|management|policy)|moderation|flagged|safety (system|setting)|responsibleai", re.IGNORECASE
)
_BAD_KEY = re.compile(r"api.?key|credential|access token", re.IGNORECASE)
_MAX_SHOWN_CHARACTERS = 500
_MIN_SECRET_CHARACTERS = 8
"""The shortest key that is struck out of messages: the letters of a shorter one are in every word."""


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
    if status in (400, 403) and _FILTERED.search(message):
        return ContentFiltered, ""
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
        kind, way = ServerFailed, ""
    raise kind(f"the server answered with an error: {shorten(without(secrets, message))}{way}", 200)


_ERRORS_IN_A_REPLY = (RateLimited, ContextTooLong, QuotaExhausted, ContentFiltered)
