"""What a server says that its model is: llama.cpp and llamafile answer to any name, with the one model they have."""

from __future__ import annotations

import asyncio
import os
import threading
import time

from tagframe.errors import LMRequestFailed
from tagframe.lm import background
from tagframe.lm.openai_http import OpenAIHTTP
from tagframe.lm.transport import Transport

SECONDS_TO_NAME = 3.0
"""How long a server may take to list its models."""
SECONDS_BETWEEN_TRIES = 10.0
"""After a server could not be reached."""

_names: dict[tuple[str, str], str] = {}
_missed: dict[tuple[str, str], float] = {}
_lock = threading.Lock()


def identified(transport: Transport, model: str) -> str | None:
    """The server's name for the model that answers to this one; "" if it is this one, or the server does not say; None
    if it cannot be reached.

    Asked once in a process, of a server of the user's own. A server that lists several models and not this one refuses
    the name, or maps it, which it does not say.
    """
    if not isinstance(transport, OpenAIHTTP) or not transport.own_server:
        return ""
    key = transport.endpoint, model
    with _lock:
        name = _names.get(key)
        if name is None and time.monotonic() - _missed.get(key, -SECONDS_BETWEEN_TRIES) >= SECONDS_BETWEEN_TRIES:
            name = _ask(transport)
            if name is not None:
                _names[key] = name
            else:
                _missed[key] = time.monotonic()
        return name


def forget(endpoint: str | None = None) -> None:
    """Ask a server again, since its replies name another model than before; all servers for None."""
    for known in (_names, _missed):
        for key in [key for key in known if endpoint in (None, key[0])]:
            known.pop(key, None)


def _ask(transport: OpenAIHTTP) -> str | None:
    async def listed() -> list[str]:
        async with asyncio.timeout(SECONDS_TO_NAME):
            return [str(one["id"]) for one in await transport.models() if "id" in one]

    try:
        names = background.submit(listed()).result()
    except LMRequestFailed as error:
        return None if error.status is None else ""
    except (TimeoutError, RuntimeError):
        return None
    return names[0] if len(names) == 1 and names[0] != transport.model else ""


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)
