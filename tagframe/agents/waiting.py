"""Waits for the work of a model in a plain function, and stops it if the caller is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

from tagframe.stopping import Stopped, stopped_by

T = TypeVar("T")


def waited_for(work: Coroutine[Any, Any, T]) -> T:
    """The result of awaited work, run on a new event loop; stopping this thread's work cancels it.

    Raises:
        Stopped: this thread's work was stopped.
    """

    async def whole() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
        with stopped_by(lambda: loop.call_soon_threadsafe(task.cancel)):
            try:
                return await task
            except asyncio.CancelledError:
                raise Stopped from None

    # A new thread, because this one may have a running loop, for example in a notebook.
    with ThreadPoolExecutor(1, thread_name_prefix="tagframe-agents") as pool:
        return pool.submit(copy_context().run, asyncio.run, whole()).result()
