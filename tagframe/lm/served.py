"""What a server says of its models: llama.cpp and llamafile answer to any name, with the one that they have."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tagframe.errors import LMRequestFailed, RequestTimedOut
from tagframe.lm import background
from tagframe.lm.openai_http import OpenAIHTTP
from tagframe.lm.prompt import Parameters, Prompt, words
from tagframe.lm.reply import Reply, Transport

if TYPE_CHECKING:
    from tagframe.lm.model import LM

SECONDS_TO_LIST = 3.0
"""How long a server may take to list its models."""
SECONDS_BETWEEN_TRIES = 10.0
"""After a server could not be reached."""
_WINDOWS = ("n_ctx", "max_model_len", "loaded_context_length", "context_length", "max_context_length")
"""Where lists of models say the context window: llama.cpp, vLLM, LM Studio, OpenRouter."""


class Served(NamedTuple):
    """What answers to a model's name.

    Attributes:
        name: the server's own name for it; "" if it is the same, or the server does not say.
        window: the tokens that it reads and writes in one request, or None.
    """

    name: str = ""
    window: int | None = None


_known: dict[tuple[str, str], Served] = {}
_missed: dict[tuple[str, str], float] = {}
_lock = threading.Lock()


def served(transport: Transport) -> Served | None:
    """What a server of the user's own says of the model that it is asked for; None if it cannot be reached.

    Asked once in a process. A server that lists several models and not this one refuses the name, or maps it, which it
    does not say.
    """
    if not isinstance(transport, OpenAIHTTP) or not transport.own_server:
        return Served()
    key = transport.endpoint, transport.model
    with _lock:
        if key not in _known and time.monotonic() - _missed.get(key, -SECONDS_BETWEEN_TRIES) >= SECONDS_BETWEEN_TRIES:
            answer = _ask(transport)
            if answer is not None:
                _known[key] = answer
            else:
                _missed[key] = time.monotonic()
        return _known.get(key)


def forget(endpoint: str | None = None) -> None:
    """Ask a server again, since its replies name another model than before; all servers for None."""
    for known in (_known, _missed):
        for key in [key for key in known if endpoint in (None, key[0])]:
            known.pop(key, None)


def _ask(transport: OpenAIHTTP) -> Served | None:
    async def listed() -> list[dict[str, Any]]:
        async with asyncio.timeout(SECONDS_TO_LIST):
            return await transport.models()

    try:
        models = [one for one in background.submit(listed()).result() if "id" in one]
    except LMRequestFailed as error:
        return None if error.status is None else Served()
    except (TimeoutError, RuntimeError):
        return None
    only = models[0] if len(models) == 1 else {}
    entry = next((one for one in models if one["id"] == transport.model), only)
    meta = entry.get("meta")
    fields = entry | (meta if isinstance(meta, dict) else {})
    window = next((fields[name] for name in _WINDOWS if type(fields.get(name)) is int and fields[name] > 0), None)
    return Served("" if entry.get("id") == transport.model else str(entry.get("id", "")), window)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)


T = TypeVar("T")

AT_ONCE = 4
"""Requests that are sent together."""
_SHORT = Parameters(max_tokens=8)
_FORM = words({"yes": "yes", "no": "no"})


@dataclass(frozen=True)
class Probed:
    """What was found.

    Attributes:
        window: the tokens that the model reads and writes in one request, or None.
        logprobs: whether it gives log probabilities.
        seconds: of one short request.
        at_once: how many of four such requests it serves together.
    """

    window: int | None
    logprobs: bool
    seconds: float
    at_once: int


def probe(lm: LM) -> Probed:
    """Send seven small requests, which no store or budget sees.

    Raises:
        LMRequestFailed: the server does not answer a plain one.
        NotConfigured: a key or a URL is needed and none is set.
    """
    _wait(lm, _send(lm, "Say hello."))  # the first also connects, and may load the model
    began = time.monotonic()
    _wait(lm, _send(lm, "Name a colour."))
    one = time.monotonic() - began
    began = time.monotonic()
    _wait(lm, _together(lm))
    together = time.monotonic() - began
    return Probed(
        window=lm.context_window,
        logprobs=_gives_logprobs(lm),
        seconds=one,
        at_once=max(1, min(AT_ONCE, round(AT_ONCE * one / together))),
    )


def structured(lm: LM) -> bool:
    """Whether the server makes an answer follow a JSON schema that the prompt does not mention."""
    form = Parameters(max_tokens=24, extra=lm.extra_body | _FORM.fields(wraps=True))
    with suppress(LMRequestFailed, ValueError, LookupError, TypeError):
        return json.loads(_wait(lm, _send(lm, "Describe the rain.", form)).text)["answer"] in ("yes", "no")
    return False


def _gives_logprobs(lm: LM) -> bool:
    with suppress(LMRequestFailed):
        return bool(_wait(lm, _send(lm, "Name a fruit.", replace(_SHORT, logprobs=True))).logprobs)
    return False


async def _together(lm: LM) -> None:
    await asyncio.gather(*(_send(lm, f"Name colour {number}.") for number in range(AT_ONCE)))


async def _send(lm: LM, text: str, parameters: Parameters = _SHORT) -> Reply:
    if lm.extra_body and not parameters.extra:
        parameters = replace(parameters, extra=lm.extra_body)
    return await lm.transport.send(Prompt.of(text), parameters)


def _wait(lm: LM, answer: Coroutine[Any, Any, T]) -> T:
    async def in_time() -> T:
        async with asyncio.timeout(lm.timeout):
            return await answer

    try:
        return background.submit(in_time()).result()
    except LMRequestFailed:
        raise
    except TimeoutError as error:
        raise RequestTimedOut(f"no answer within {lm.timeout:g} s from {lm.transport.endpoint}") from error
