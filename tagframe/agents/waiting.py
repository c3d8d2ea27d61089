"""Work of a model, waited for in a plain function, and stopped where nobody waits for that any more."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

from tagframe.stopping import Stopped, stopped_by

T = TypeVar("T")


def waited_for(work: Coroutine[Any, Any, T]) -> T:
    """The result of awaited work, which has an event loop of its own; what stops this thread's work cancels it.

    Raises:
        Stopped: nobody waits for it any more.
    """

    async def whole() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
        with stopped_by(lambda: loop.call_soon_threadsafe(task.cancel)):
            try:
                return await task
            except asyncio.CancelledError:
                raise Stopped from None

    # A thread of its own, as a loop may run in this one: a notebook's, say.
    with ThreadPoolExecutor(1, thread_name_prefix="tagframe-agents") as pool:
        return pool.submit(copy_context().run, asyncio.run, whole()).result()
