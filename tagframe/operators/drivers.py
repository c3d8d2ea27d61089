"""Operators as generators, and the drivers that run them: blocking, awaited, for a quote, or many at once.

A step *yields* batches of prompts and is resumed with the completions that have arrived. It does not depend on who
answers it, or when; its prompts may depend on the answers, but never on the order in which these arrive.

Every driver opens one call of the model (:meth:`tagframe.lm.LM.stream`). Batches that steps yield are put into it, and
steps are resumed as completions arrive.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Generator, Hashable, Sequence, Sized
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from tagframe import errors, logs
from tagframe.config import current
from tagframe.errors import counted, warn
from tagframe.lm import LM, Arrived, Batch, Bound, Completion, Prompt, Quote, Stream, Usage
from tagframe.operators.outcome import summarised
from tagframe.progress import Stopping

T = TypeVar("T")
R = TypeVar("R")
Request = TypeVar("Request", bound=Sized)

Step: TypeAlias = Generator[Sequence[Batch[Any]], Arrived, T]
"""Yields further batches (none if it only waits), and is resumed as soon as some of its completions have arrived."""


def gather(batch: Batch[T]) -> Step[list[Completion[T]]]:
    """All completions of one batch, in the order of its prompts."""
    return (yield from gather_read(batch, lambda number, completion: completion))


def gather_read(batch: Batch[T], read: Callable[[int, Completion[T]], R]) -> Step[list[R]]:
    """What is read of each completion of a batch, by its number, as it arrives; in the order of its prompts."""
    values: dict[int, R] = {}
    batches: Sequence[Batch[Any]] = (batch,)
    while len(values) < len(batch.prompts):
        arrived = (yield batches).get(batch, {})
        values.update((number, read(number, completion)) for number, completion in arrived.items())
        batches = ()
    return [values[number] for number in range(len(batch.prompts))]


def gather_alike(
    requests: Sequence[Request],
    batch_of: Callable[[list[Request]], Batch[T]],
    kind: Callable[[Request], Hashable] = len,
) -> Step[list[Completion[T]]]:
    """The completion of each of these, in order; those of one kind are sent as one batch."""
    alike: dict[Hashable, list[int]] = {}
    for number, one in enumerate(requests):
        alike.setdefault(kind(one), []).append(number)
    batches = [batch_of([requests[number] for number in numbers]) for numbers in alike.values()]
    answered = yield from together([gather(batch) for batch in batches])
    answers: dict[int, Completion[T]] = {}
    for numbers, completions in zip(alike.values(), answered, strict=True):
        answers.update(zip(numbers, completions, strict=True))
    return [answers[number] for number in range(len(requests))]


def together(steps: Sequence[Step[T]]) -> Step[list[T]]:
    """All steps at once; each goes on as soon as some of its own answers have arrived. Their results are in order."""
    results: dict[int, T] = {}
    owners: dict[Batch[Any], int] = {}
    waits_for = [0] * len(steps)  # prompts under way

    def resume(number: int, arrived: Arrived | None) -> Sequence[Batch[Any]]:
        """The prompts that the step asks now."""
        waits_for[number] -= sum(len(completions) for completions in (arrived or {}).values())
        new: list[Batch[Any]] = []
        try:
            while True:
                batches = [batch for batch in steps[number].send(arrived) if batch.prompts]  # type: ignore[arg-type]
                new += batches
                waits_for[number] += sum(len(batch.prompts) for batch in batches)
                if waits_for[number]:
                    break
                arrived = {}  # it waits for nothing
        except StopIteration as end:
            results[number] = end.value
        owners.update(dict.fromkeys(new, number))
        return new

    try:
        new_batches = [batch for number in range(len(steps)) for batch in resume(number, None)]
        while len(results) < len(steps):
            arrived = yield new_batches
            by_step: dict[int, dict[Batch[Any], Any]] = {}
            for batch, completions in arrived.items():
                by_step.setdefault(owners[batch], {})[batch] = completions
            new_batches = [
                batch
                for number in sorted(by_step)
                if number not in results
                for batch in resume(number, by_step[number])
            ]
    finally:
        for step in steps:
            step.close()
    return [results[number] for number in range(len(steps))]


def bounded(step: Step[T], bound: Bound) -> Step[T]:
    """The step; in quotes, all its batches together have the bound ``bound`` instead of their own bounds."""
    return _replaced(step, lambda batch: replace(batch, bound=bound))


def prompts_of(step: Step[T]) -> Step[tuple[T, int]]:
    """The step's result, and the number of prompts that it asked."""
    counts: list[int] = []

    def count(batch: Batch[Any]) -> Batch[Any]:
        counts.append(len(batch.prompts) if batch.sends and batch.known is None else 0)
        return batch

    return (yield from _replaced(step, count)), sum(counts)


def _replaced(step: Step[T], by: Callable[[Batch[Any]], Batch[Any]]) -> Step[T]:
    """The step, with other batches in place of its own."""
    own: dict[Batch[Any], Batch[Any]] = {}
    arrived: Arrived | None = None
    while True:
        try:
            batches = step.send(arrived)  # type: ignore[arg-type]  # None begins it
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        others = [by(batch) for batch in batches]
        own.update(zip(others, batches, strict=True))
        arrived = {own[batch]: completions for batch, completions in (yield others).items()}


def without_model(step: Step[T]) -> T:
    """The result of a step that asks no model."""
    try:
        while True:
            batches = list(next(step))
            assert not batches, "a step that was run without a model asked one"
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def caught(step: Step[T]) -> Step[T | Exception]:
    """The step's result, or the error that ended it, so that one step does not end the others."""
    try:
        return (yield from step)
    except Exception as error:
        return error


def stops_all(error: Exception | None) -> bool:
    """Whether the whole run has stopped, so that further prompts would fail too."""
    return isinstance(error, errors.RunStopped | errors.BudgetExceeded) or (
        isinstance(error, errors.LMRequestFailed) and error.stops_run
    )


_SECONDS_BETWEEN_STOPS = 0.25
"""Seconds after which running work that does not stop is asked again."""


def run(step: Step[T], lm: LM, description: str = "") -> T:
    """The result of a step; the thread waits for it.

    Args:
        step: not yet begun.
        lm: the model that answers.
        description: its name in the progress bar and in :func:`tagframe.usage`.

    Raises:
        ReplayMiss: a replayed store lacks answers; all missing prompts that the step could reach are noted in it.
    """
    _warn_once_of_a_blocked_loop(description)
    whole = together([step])  # which also resumes a step that waits for nothing
    waiting: dict[Batch[Any], set[int]] = {}
    with contextlib.closing(whole), _logged(lm, description) as counts, lm.stream(description) as stream:
        arrived: Arrived | None = None
        try:
            while not (ended := _resume(whole, stream, arrived, waiting)):
                arrived = stream.take()
                for batch, completions in arrived.items():
                    waiting[batch] -= completions.keys()
        except KeyboardInterrupt as interrupt:
            usage = stream.usage()
            stored = usage.prompts - usage.failed - usage.deduplicated
            raise errors.Interrupted(
                f"{description or 'the call'} was interrupted; {counted(stored, 'answer')} "
                f"{'is' if stored == 1 else 'are'} kept if a response store is configured: the same call again asks "
                "only for the others. The finished rows are on this error as .frame",
                _finished_part(whole, waiting, stream.arrived()),
            ) from interrupt
        except Exception as error:
            _keep_finished(error, whole, waiting, stream, description, counts)
            raise
        return _summarised(ended[0], stream, lm, description, counts)


def _logged(lm: LM, description: str) -> contextlib.AbstractContextManager[dict[str, Any]]:
    """Logs a run, if it has a name: a quote has none."""
    return logs.run("operators", description, model=getattr(lm, "model", None)) if description else nullcontext({})


def _summarised(result: T, stream: Stream, lm: LM, description: str, counts: dict[str, Any]) -> T:
    """The result with its summary, which is logged; a quote has no name, and no summary."""
    if not description:
        return result
    most = getattr(lm, "settings", current)().max_failed
    return summarised(result, description, stream.usage(), most, counts)  # type: ignore[no-any-return]


def _keep_finished(
    error: Exception,
    whole: Step[Any],
    waiting: dict[Batch[Any], set[int]],
    stream: Stream,
    description: str,
    counts: dict[str, Any],
) -> None:
    """Put the finished part on an error that is none of ours as ``.frame``: a fault must not take it with it."""
    if isinstance(error, errors.RowsFailed) and description:
        summarised(error.frame, description, stream.usage(), None, counts)
    if not isinstance(error, errors.TagframeError):
        with contextlib.suppress(Exception):
            error.frame = _finished_part(whole, waiting, stream.arrived())  # type: ignore[attr-defined]


def _finished_part(whole: Step[Any], waiting: dict[Batch[Any], set[int]], last: Arrived) -> Any:
    """The frame of a step that gets no more answers; None if it has none, or was itself interrupted."""
    stopped = errors.RunStopped("the call was interrupted")
    nothing: Completion[Any] = Completion(None, None, stopped, Usage(prompts=1, failed=1), None, "sent")
    try:
        while True:
            arrived = {
                batch: {number: last.get(batch, {}).get(number, nothing) for number in numbers}
                for batch, numbers in waiting.items()
                if numbers
            }
            waiting.clear()
            waiting.update((batch, set(range(len(batch.prompts)))) for batch in whole.send(arrived))
    except errors.RowsFailed as error:
        return error.frame
    except StopIteration as end:
        return end.value[0] if end.value else None
    except Exception:  # however a step reacts to it: there is no finished part
        return None


async def arun(step: Step[T], lm: LM, description: str = "") -> T:
    """The awaitable form of :func:`run`. Cancelling stops unsent prompts and a running statement; answers are kept.

    The step itself runs in worker threads, never in two at a time.
    """
    whole, stopping = together([step]), Stopping()
    with contextlib.closing(whole), _logged(lm, description) as counts, stopping.here():
        async with await asyncio.to_thread(lm.stream, description) as stream:
            arrived: Arrived | None = None
            waiting: dict[Batch[Any], set[int]] = {}
            try:
                while not (ended := await _in_thread(stopping, _resume, whole, stream, arrived, waiting)):
                    arrived = await stream.atake()
                    for batch, completions in arrived.items():
                        waiting[batch] -= completions.keys()
            except Exception as error:
                _keep_finished(error, whole, waiting, stream, description, counts)
                raise
            return _summarised(ended[0], stream, lm, description, counts)  # type: ignore[no-any-return]


def run_many(steps: Sequence[Step[T]], lm: LM, description: str = "") -> list[T | Exception]:
    """The result of each step, or the error that ended it; all steps share one open call.

    With ``lm="replay:STORE"``, the missing answers of all steps are one :class:`~tagframe.errors.ReplayMiss`, so that
    one export serves them all.
    """
    return run(together([caught(step) for step in steps]), lm, description)


def quote(step: Step[Any], lm: LM, guess: Callable[[Prompt], str]) -> Quote:
    """The cost of a step; nothing is sent.

    Args:
        step: not yet begun.
        lm: the model that would answer; answers in its store are used.
        guess: gives a typical answer to each prompt that has no answer in the store.
    """
    from tagframe.embed import quoted_embeddings
    from tagframe.lm import QuoteEnds, QuotingLM

    quoting = QuotingLM(lm, guess)
    with contextlib.suppress(QuoteEnds, errors.RowsFailed), quoted_embeddings() as embedded:
        run(step, quoting)
    return sum(embedded, quoting.quote)


def _resume(step: Step[T], stream: Stream, arrived: Arrived | None, waiting: dict[Batch[Any], set[int]]) -> T | None:
    """Resume the step and ask what it yields. None until it has ended; then its result, which must be truthy."""
    try:
        batches = step.send(arrived)  # type: ignore[arg-type]
        waiting.update((batch, set(range(len(batch.prompts)))) for batch in batches)
        for batch in batches:
            stream.put(batch)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    return None


async def _in_thread(stopping: Stopping, function: Callable[..., T], *arguments: Any) -> T:
    """Run a function in a thread, and wait for its end even if the task is cancelled, as it holds the generator."""
    running = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():  # it may have been between two statements when it was first stopped
            await asyncio.to_thread(stopping.stop)
            await asyncio.wait((running,), timeout=_SECONDS_BETWEEN_STOPS)
        if not running.cancelled():
            running.exception()  # nobody reads it any more
        raise


_warned = False


def _warn_once_of_a_blocked_loop(description: str) -> None:
    """Warn if an event loop is blocked; not in a notebook, whose loop waits for the cell anyway."""
    global _warned
    if _warned or "asyncio" not in sys.modules or "ipykernel" in sys.modules:
        return
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    _warned = True
    name = description or "sem_filter"
    warn(
        f"{name} blocks the running event loop until all answers have arrived; await tagframe.a{name}(…) does not",
        errors.BlockingWarning,
    )
