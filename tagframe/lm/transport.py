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
)
from tagframe.lm.endings import Ending, ending_of
from tagframe.lm.prompt import Parameters, Prompt, TokenLogprob
from tagframe.lm.quota import ServerLimits, limits_of

_CONTEXT = re.compile(
    r"context.?(length|window|size)|maximum context|too many tokens|prompt is too long", re.IGNORECASE
)
_TOO_LONG = "; shorten the cells, or take a model with a longer context"
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
        tokens_in: None if the server did not give it.
        tokens_out: likewise.
        limits: the server's own limits, or None.
    """

    text: str
    truncated: bool = False
    unfinished: bool = False
    tokens_in: int | None = None
    tokens_out: int | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None
    limits: ServerLimits | None = None


class Transport(Protocol):
    """Sends one request; all code above it is the same for all providers.

    Attributes:
        endpoint: answers are stored under it and the model's name; contains no secret.
        own_server: whether it may be a server of the user's own, as llama.cpp's, whose models need the form of answers
            from the start; hosted models are asked for it where an answer is repaired.
    """

    endpoint: str
    own_server: bool

    async def send(self, prompt: Prompt, parameters: Parameters, begins: Callable[[], None]) -> Reply:
        """The answer; waits for it without end.

        Args:
            begins: called when the answer begins to arrive, if the transport can see that.

        Raises:
            LMRequestFailed: one of its subclasses; the message contains no key.
        """


def read_reply(
    body: Any, headers: Mapping[str, str] | None = None, *, tools: bool = False, secrets: tuple[str, ...] = ()
) -> Reply:
    """The answer in a chat completion's body, with all types checked; ``headers`` are the response's.

    Args:
        tools: whether tools were asked for, so that an answer may end with a call of one.
        secrets: struck out of the server's error messages.

    Raises:
        MalformedResponse: there is no text in it.
        ServerFailed: the server reports an error, or an ending that makes the text unusable.
        AnswerWithheld: a content filter or a refusal withheld the answer, or its end.
    """
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
        raise MalformedResponse(f"the server's answer has no text: content is {_in_message(content)}", 200)
    usage = body.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Reply(
        _storable(content),
        truncated,
        truncated and _is_reasoning(content),
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
        _logprobs(choice.get("logprobs")),
        limits_of(headers) if headers else None,
    )


def raise_error_in(body: Any, secrets: tuple[str, ...] = ()) -> None:
    """Raise what a response of status 200 reports as its error, if anything: in the body, or in a choice.

    ``secrets`` are removed from the message.

    Raises:
        ServerFailed: for any error; a refused request would have another status.
        RateLimited: for a 429.
        ContextTooLong: for a prompt that is too long.
    """
    error = body.get("error") if isinstance(body, dict) else None
    if not (any(error.values()) if isinstance(error, dict) else error):
        return
    code = error.get("code") if isinstance(error, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    fact = f"the server answered with an error: {shorten(_without(secrets, str(message or _in_message(error))))}"
    if isinstance(message, str) and _CONTEXT.search(message):
        raise ContextTooLong(f"{fact}{_TOO_LONG}", 200)
    raise (RateLimited if str(code) == "429" else ServerFailed)(fact, 200)


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


def read_vectors(
    body: Any, texts: int, headers: Mapping[str, str] | None = None, secrets: tuple[str, ...] = ()
) -> Reply:
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
    usage = body.get("usage")
    tokens = _count(usage.get("prompt_tokens")) if isinstance(usage, dict) else None
    text = base64.b64encode(vectors.tobytes()).decode()
    return Reply(text, tokens_in=tokens, tokens_out=0, limits=limits_of(headers) if headers else None)


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
    kind, way = LMRequestFailed, ""
    if status == 401:
        kind, way = AuthenticationFailed, "; set the key with api_key= or in the provider's environment variable"
    elif status == 404:
        kind, way = ModelNotFound, "; check the model's name and api_base"
    elif status == 408:
        kind = RequestTimedOut
    elif status == 429:
        kind = QuotaExhausted if "insufficient_quota" in message else RateLimited
    elif status == 409 or status >= 500:
        kind = ServerFailed
    elif status in (400, 413, 422) and _CONTEXT.search(message):
        kind, way = ContextTooLong, _TOO_LONG
    fact = f"the server answered {status}: {shorten(_without(secrets, message)) or 'no reason given'}{way}"
    error = kind(fact, status, retry_after(headers) if kind.retryable else None)
    error.limits = limits_of(headers)
    return error


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
                seconds = parsedate_to_datetime(value).timestamp() - time.time()
    except (KeyError, TypeError, ValueError):
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _without(secrets: tuple[str, ...], message: str) -> str:
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


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _logprobs(value: Any) -> tuple[TokenLogprob, ...] | None:
    try:
        return tuple(
            TokenLogprob(
                str(token["token"]),
                float(token["logprob"]),
                tuple((str(top["token"]), float(top["logprob"])) for top in token.get("top_logprobs") or ()),
            )
            for token in value["content"]
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None
