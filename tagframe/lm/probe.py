"""A few small requests that show what a server can do; :func:`tagframe.check_lm` reports it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tagframe.errors import LMRequestFailed, RequestTimedOut
from tagframe.lm import background
from tagframe.lm.model import LM
from tagframe.lm.prompt import Parameters, Prompt
from tagframe.lm.reply import Reply
from tagframe.lm.structure import words

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
