"""What runs a step: blocking, awaited, for a quote, or many at once.

Every driver is one open call of the model (:meth:`tagframe.lm.LM.stream`): batches go in as steps yield them, and steps
are resumed as completions arrive.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tagframe.errors import BlockingWarning, Interrupted, RowsFailed, RunStopped, counted, warn
from tagframe.lm import LM, Arrived, Batch, Completion, Prompt, Quote, Stream, Usage
from tagframe.operators.step_generators import Step, caught, together
from tagframe.stopping import Stopping

T = TypeVar("T")

_TOLD_AGAIN = 0.25
"""Seconds after which what is to stop is told so again."""


def run(step: Step[T], lm: LM, description: str = "") -> T:
    """The result of a step; the thread waits for it.

    Args:
        step: not yet begun.
        lm: who answers.
        description: what the progress bar and :func:`tagframe.usage` call it.

    Raises:
        ReplayMiss: where a store that is replayed lacks answers; all that the step could get to are noted in it.
    """
    _say_once_that_a_loop_waits(description)
    whole = together([step])  # which also resumes a step that waits for nothing
    waiting: dict[Batch[Any], set[int]] = {}
    with contextlib.closing(whole), lm.stream(description) as stream:
        arrived: Arrived | None = None
        try:
            while not (ended := _resume(whole, stream, arrived, waiting)):
                arrived = stream.take()
                for batch, completions in arrived.items():
                    waiting[batch] -= completions.keys()
        except KeyboardInterrupt as interrupt:
            usage = stream.usage()
            kept = usage.rows - usage.failed - usage.deduplicated
            raise Interrupted(
                f"{description or 'the call'} was interrupted; {counted(kept, 'answer')} "
                f"{'is' if kept == 1 else 'are'} kept where a response store is "
                "configured: the same call again asks only for the others. What is finished is on this as .frame",
                _finished_part(whole, waiting, stream.arrived()),
            ) from interrupt
    return ended[0]


def _finished_part(whole: Step[Any], waiting: dict[Batch[Any], set[int]], last: Arrived) -> Any:
    """The frame of a step of which nothing more is answered; None where it has none, or was itself interrupted."""
    stopped = RunStopped("the call was interrupted")
    nothing: Completion[Any] = Completion(None, None, stopped, Usage(rows=1, failed=1), None, "sent")
    try:
        while True:
            arrived = {
                batch: {number: last.get(batch, {}).get(number, nothing) for number in numbers}
                for batch, numbers in waiting.items()
                if numbers
            }
            waiting.clear()
            waiting.update((batch, set(range(len(batch.prompts)))) for batch in whole.send(arrived))
    except RowsFailed as error:
        return error.frame
    except StopIteration as end:
        return end.value[0] if end.value else None
    except Exception:  # whatever a step makes of it: there is no part to be had
        return None


async def arun(step: Step[T], lm: LM, description: str = "") -> T:
    """:func:`run`, awaited: cancelling stops what is not sent, and a statement that runs, and keeps what was answered.

    The step itself runs in worker threads, never two at a time.
    """
    whole, stopping = together([step]), Stopping()
    with contextlib.closing(whole), stopping.here():
        async with await asyncio.to_thread(lm.stream, description) as stream:
            arrived: Arrived | None = None
            while not (ended := await _in_thread(stopping, _resume, whole, stream, arrived, {})):
                arrived = await stream.atake()
    return ended[0]  # type: ignore[no-any-return]


def run_many(steps: Sequence[Step[T]], lm: LM, description: str = "") -> list[T | Exception]:
    """The result of each step, or the error that ended it; all of them share one open call.

    With ``lm="replay:STORE"`` what is missing of all steps together is one :class:`~tagframe.errors.ReplayMiss`, so
    that one export serves them all.
    """
    return run(together([caught(step) for step in steps]), lm, description)


def quote(step: Step[Any], lm: LM, guess: Callable[[Prompt], str]) -> Quote:
    """What a step would cost, sending nothing.

    Args:
        step: not yet begun.
        lm: who would answer; answers that its store has are used.
        guess: an answer for each prompt that the store has none for, such as the model would give.
    """
    from tagframe.lm import QuoteEnds, QuotingLM, quoted_embeddings

    quoting = QuotingLM(lm, guess)
    with contextlib.suppress(QuoteEnds, RowsFailed), quoted_embeddings() as embedded:
        run(step, quoting)
    return sum(embedded, quoting.quote)


def _resume(step: Step[T], stream: Stream, arrived: Arrived | None, waiting: dict[Batch[Any], set[int]]) -> T | None:
    """Have the step go on, and ask what it yields; its result (which is no empty list) once it has ended."""
    try:
        for batch in step.send(arrived):  # type: ignore[arg-type]
            waiting[batch] = set(range(len(batch.prompts)))
            stream.put(batch)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    return None


async def _in_thread(stopping: Stopping, function: Callable[..., T], *arguments: Any) -> T:
    """Run it in a thread, and see it to its end even where the task is cancelled: it holds the generator."""
    running = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():  # it may have been between two statements when it was told
            await asyncio.to_thread(stopping.stop)
            await asyncio.wait((running,), timeout=_TOLD_AGAIN)
        if not running.cancelled():
            running.exception()  # is nobody's any more
        raise


_said = False


def _say_once_that_a_loop_waits(description: str) -> None:
    """Warn where an event loop stands still; not in a notebook, whose loop waits for the cell anyway."""
    global _said
    if _said or "asyncio" not in sys.modules or "ipykernel" in sys.modules:
        return
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    _said = True
    name = description or "sem_filter"
    warn(
        f"{name} holds up the running event loop until all is answered; await tagframe.a{name}(…) lets it go on",
        BlockingWarning,
    )
