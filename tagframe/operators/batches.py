"""Operators over frames that come in batches, for rows that are too many for memory.

Instead of a frame, every operator takes an iterator of frames, such as the result of :func:`tagframe.read_batches`.
Operators that look at one row at a time return an iterator of their results (``sem_filter``, ``sem_map``,
``sem_score``, ``sem_extract``, and ``sem_join`` and ``sem_sim_join``, whose right side is a frame). Operators that look
at all rows return one frame (``sem_agg``, ``sem_topk``, ``sem_search``). With ``to=``, the results are written to a
folder of Parquet files, and the call returns its path. ``await tf.asem_filter(batches, …)`` returns an ``async``
iterator, or the path; the batches may come from an ``async`` iterator too.

Rows with the same shown values are asked about once in all batches. Their answers are in the response store; if none is
set, in a temporary one that is removed at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import tempfile
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from tagframe import results
from tagframe.errors import InvalidArgument
from tagframe.interop import with_pandas
from tagframe.lm import LM, get_lm
from tagframe.operators.cells import Instruction, group_keys
from tagframe.operators.parquet_folder import ParquetFolder

if TYPE_CHECKING:
    from tagframe.operators.operator import Operator

Frames: TypeAlias = Iterator[pd.DataFrame] | list[pd.DataFrame] | tuple[pd.DataFrame, ...]
"""Batches instead of a frame."""
AsyncFrames: TypeAlias = Frames | AsyncIterator[pd.DataFrame]
"""Batches for a call that is awaited."""


class Batches(Iterator[pd.DataFrame]):
    """The results of an operator, batch by batch; each is made when it is requested."""

    def __init__(self, frames: Iterator[pd.DataFrame]) -> None:
        self._frames = frames
        # A generator runs with the settings of its consumer; this context keeps those of the call.
        self._context = contextvars.copy_context()

    def __next__(self) -> pd.DataFrame:
        return self._context.run(next, self._frames)

    def __reduce__(self) -> Any:
        raise InvalidArgument(
            "results that are made batch by batch cannot be sent to another process: to= writes them to a "
            "folder, which tagframe.read_batches reads anywhere"
        )

    def close(self) -> None:
        """Stop: ask about no more batches."""
        close = getattr(self._frames, "close", None)
        if close is not None:
            self._context.run(close)


class AsyncBatches(AsyncIterator[pd.DataFrame]):
    """:class:`Batches` for ``async`` code: ``async for frame in await tf.asem_filter(batches, …)``."""

    def __init__(self, frames: AsyncGenerator[pd.DataFrame]) -> None:
        self._frames = frames
        self._context = contextvars.copy_context()

    async def __anext__(self) -> pd.DataFrame:
        async def following() -> pd.DataFrame | None:
            return await anext(self._frames, None)

        # A separate task keeps the settings of the call; cancelling its consumer cancels it too.
        frame = await asyncio.create_task(following(), context=self._context)
        if frame is None:
            raise StopAsyncIteration
        return frame

    def __reduce__(self) -> Any:
        return Batches.__reduce__(self)  # type: ignore[arg-type]  # it says why there is no way

    async def aclose(self) -> None:
        """Stop: ask about no more batches."""
        await asyncio.create_task(self._frames.aclose(), context=self._context)


def over_batches(
    operator: Operator[...], function: Callable[..., Any], frames: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """The results of an operator over batches, or the path to which they are written.

    Args:
        operator: the operator.
        function: calls it on one frame, with a model's settings as keywords.
        frames: the batches.
        args, kwargs: of the call, including ``to``.

    Raises:
        InvalidArgument: the call needs all rows together, or the batches must be awaited.
    """
    if isinstance(frames, AsyncIterator):
        raise InvalidArgument(f"{operator.name} takes no async batches; tagframe.a{operator.name} does")
    lm, folder, given = _settled(operator, args, kwargs)
    each = _called(_calls(operator, iter(frames), given, lm, folder), function)
    if folder is None and operator.over not in WHOLE:
        return Batches(each)
    return deque(each, maxlen=1).pop()


async def aover_batches(
    operator: Operator[...], function: Callable[..., Any], frames: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """The awaitable form of :func:`over_batches`; batches may come from an ``async`` iterator."""
    lm, folder, given = await asyncio.to_thread(_settled, operator, args, kwargs)
    source = _of_loop(frames, asyncio.get_running_loop()) if isinstance(frames, AsyncIterator) else iter(frames)
    each = _acalled(_calls(operator, source, given, lm, folder), function)
    if folder is None and operator.over not in WHOLE:
        return AsyncBatches(each)
    async with contextlib.aclosing(each):
        async for result in each:
            last = result
    return last


def _settled(
    operator: Operator[...], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[LM | None, ParquetFolder | None, dict[str, Any]]:
    """The model of a call (if it has one), the folder of its ``to=``, and its other arguments by name."""
    options, settings = operator.split_keywords(kwargs)
    if kwargs.get("quote"):
        raise InvalidArgument("quote= needs one frame; batches are read only when their results are needed")
    arguments = operator.arguments(None, *args, **options)
    del arguments[next(iter(arguments))]  # the frame
    if refusal := operator.needs_all(arguments):
        raise InvalidArgument(f"{refusal}, but batches come one at a time")
    embedder = {"embedder": settings.pop("embedder")} if "embedder" in settings else {}
    lm = get_lm(operator.name, **settings) if operator.asks(arguments) else None
    given = {**arguments, **embedder}
    to, if_exists = kwargs.get("to"), kwargs.get("if_exists", "error")
    if to is None:
        return lm, None, given
    return lm, ParquetFolder(to, if_exists), given


def _checked(frames: Iterator[Any]) -> Iterator[pd.DataFrame]:
    for number, frame in enumerate(frames):
        frame = with_pandas(frame)
        if not isinstance(frame, pd.DataFrame):
            raise InvalidArgument(f"every batch is a frame; batch {number} is a {type(frame).__name__}")
        yield frame


def _of_loop(frames: AsyncIterator[Any], loop: asyncio.AbstractEventLoop) -> Iterator[Any]:
    """The frames of an ``async`` iterator, for another thread than that of its event loop."""

    async def following() -> Any:
        return await anext(frames, _END)

    while (frame := asyncio.run_coroutine_threadsafe(following(), loop).result()) is not _END:
        yield frame


_END = object()


def _calls(
    operator: Operator[...], frames: Iterator[Any], given: dict[str, Any], lm: Any, folder: ParquetFolder | None
) -> Calls:
    """The calls of an operator over batches; with a folder, results are written there. The end is the result of all
    calls, or the folder, or nothing, if each result stands for itself."""
    whole, failed, result = WHOLE.get(operator.over), 0, None
    with _remembering(lm) as settings, folder or contextlib.nullcontext():
        if whole is not None:
            result = yield from whole(_checked(frames), {**given, **settings})
            if folder is not None:
                folder.add(result)
        for frame in _checked(frames) if whole is None else ():
            part = yield Call(frame, {**given, **_left(settings, failed)})
            failed += (results.recall(part, "summary") or {}).get("failed", 0)
            if folder is not None:
                folder.add(part)
        return result if folder is None else folder.finished()


def _left(settings: Mapping[str, Any], failed: int) -> Mapping[str, Any]:
    """The settings of the next batch: a number of rows that may fail is one of all batches."""
    lm = settings.get("lm")
    most = lm.settings().max_failed if isinstance(lm, LM) else None
    return {"lm": lm.using(max_failed=max(0, most - failed))} if failed and isinstance(most, int) else settings


def _called(calls: Calls, function: Callable[..., pd.DataFrame]) -> Iterator[Any]:
    """The result of each call, and the end; the thread waits for each."""
    result = None
    with contextlib.closing(calls):
        while isinstance(call := _following(calls, result), Call):
            yield (result := function(call.frame, **call.given))
    if call is not None:
        yield call


async def _acalled(calls: Calls, function: Callable[..., Any]) -> AsyncGenerator[Any]:
    """The awaitable form of :func:`_called`; frames are read in a thread."""
    result, step = None, None
    try:
        while True:
            step = asyncio.ensure_future(asyncio.to_thread(_following, calls, result))
            if not isinstance(call := await asyncio.shield(step), Call):
                break
            yield (result := await function(call.frame, **call.given))
        if call is not None:
            yield call
    finally:
        if step is not None and not step.done():  # cancelled while a frame is read
            step.add_done_callback(lambda _: _close(calls))
        else:
            _close(calls)


def _close(calls: Calls) -> None:
    with contextlib.suppress(ValueError):  # the loop has ended before the thread
        calls.close()


def _following(calls: Calls, result: pd.DataFrame | None) -> Any:
    """The next call, or the end."""
    try:
        return calls.send(result)  # type: ignore[arg-type]  # None begins it
    except StopIteration as end:
        return end.value


@contextlib.contextmanager
def _remembering(lm: LM | None) -> Iterator[dict[str, Any]]:
    """The model as a keyword, with its own store, or with one that is removed after the block."""
    if lm is None:
        yield {}
    elif not isinstance(lm, LM) or lm.replays or lm.settings().store is not None:
        yield {"lm": lm}
    else:
        with tempfile.TemporaryDirectory(prefix="tagframe-", ignore_cleanup_errors=True) as folder:
            yield {"lm": lm.using(store=str(Path(folder) / "answers.db"))}


# --- operators that look at all rows: generators that yield calls of the operator and receive what it gives -----------


@dataclass(frozen=True, eq=False)
class Call:
    """The operator is to be run on a frame, with these arguments and settings."""

    frame: pd.DataFrame
    given: dict[str, Any]


Calls: TypeAlias = Generator[Call, pd.DataFrame, Any]


def _aggregated(frames: Iterator[pd.DataFrame], given: dict[str, Any]) -> Calls:
    """All rows, with the columns that the model is shown. The model reads them all, so they must fit into memory."""
    parts = []
    for frame in frames:
        columns = Instruction.resolve(
            given["instruction"], frame, all_cols=given.get("all_cols", False), warns=False
        ).columns
        labels = {*group_keys(given.get("group_by")), *columns}
        parts.append(frame[[label for label in frame.columns if label in labels]])
    return (yield Call(_together(parts), given))


def _best(frames: Iterator[pd.DataFrame], given: dict[str, Any]) -> Calls:
    """The best of each batch, and of those the best: the first K of all are among the first K of their batches."""
    if given.get("on_error") == "keep":
        raise InvalidArgument(
            'on_error="keep" does not work with batches, as failed rows would be ranked again; use on_error="drop"'
        )
    parts = []
    for frame in frames:
        parts.append((yield Call(frame, given)))
    return parts[0] if len(parts) == 1 else (yield Call(_together(parts), given))


def _nearest(frames: Iterator[pd.DataFrame], given: dict[str, Any]) -> Calls:
    """The nearest rows of each batch, merged by their scores; the model is asked at the end."""
    k, scores = given["K"], f"vec_scores{given['suffix']}"
    if k is None:
        return (yield from _best(frames, given))
    best: list[pd.DataFrame] = []
    for frame in frames:
        best.append((yield Call(frame, {**given, "n_rerank": None, "return_scores": True})))
        every = _together(best)
        best = [every.iloc[(-every[scores]).argsort(kind="stable").to_numpy()[:k]]]
    nearest = _together(best)
    nearest = nearest if given["return_scores"] else nearest.drop(columns=scores)
    # The scores are columns of theirs by now.
    reranks = {**given, "K": None, "return_scores": False}
    return nearest if given["n_rerank"] is None else (yield Call(nearest, reranks))


def _alike(frames: Iterator[pd.DataFrame], given: dict[str, Any]) -> Calls:
    """All rows at once, since any two may be alike."""
    return (yield Call(_together(list(frames)), given))


WHOLE: dict[str, Callable[[Iterator[pd.DataFrame], dict[str, Any]], Calls]] = {
    "whole": _aggregated,
    "best": _best,
    "nearest": _nearest,
    "alike": _alike,
}
"""How an operator goes over batches, by what it looks at; other operators take one batch at a time."""


def _together(frames: list[pd.DataFrame]) -> pd.DataFrame:
    if not frames:
        raise InvalidArgument("there is no batch, so there are no columns to show to the model")
    return frames[0] if len(frames) == 1 else pd.concat(frames)
