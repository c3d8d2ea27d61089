"""Operators over frames that come in batches, for rows that are too many for memory.

In place of a frame every operator takes an iterator of frames, such as :func:`tagframe.read_batches` gives: operators
that look at one row at a time give an iterator of their results (``sem_filter``, ``sem_map``, ``sem_score``,
``sem_extract``, and ``sem_join`` and ``sem_sim_join``, whose right side is a frame); those that look at all rows give
one frame (``sem_agg``, ``sem_topk``, ``sem_search``). With ``to=`` the results go to a folder of Parquet files instead,
and the call gives its path. ``await tf.asem_filter(batches, …)`` gives an ``async`` iterator, or the path; the batches
may come from an ``async`` iterator, too.

Rows that show the same are asked once in all batches: the response store has their answers, or, where none is set, one
that is removed at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from tagframe.errors import InvalidArgument
from tagframe.lm import LM, get_lm
from tagframe.operators.groups import group_keys
from tagframe.operators.instruction import Instruction
from tagframe.operators.parquet_folder import ParquetFolder, write_parquet

if TYPE_CHECKING:
    from tagframe.operators.operator import Operator

Frames: TypeAlias = Iterator[pd.DataFrame] | list[pd.DataFrame] | tuple[pd.DataFrame, ...]
"""Batches, in place of a frame."""
AsyncFrames: TypeAlias = Frames | AsyncIterator[pd.DataFrame]
"""Batches for a call that is awaited."""


class Batches(Iterator[pd.DataFrame]):
    """The results of an operator, one batch after the other, made as they are asked for."""

    def __init__(self, frames: Iterator[pd.DataFrame]) -> None:
        self._frames = frames
        # A generator sees the settings of whoever asks it for more; these are those of the call.
        self._context = contextvars.copy_context()

    def __next__(self) -> pd.DataFrame:
        return self._context.run(next, self._frames)

    def __reduce__(self) -> Any:
        raise InvalidArgument(
            "results that are made one batch after the other cannot be sent to another process: to= writes them to a "
            "folder, which tagframe.read_batches reads anywhere"
        )

    def close(self) -> None:
        """Ask for no more."""
        close = getattr(self._frames, "close", None)
        if close is not None:
            self._context.run(close)


class AsyncBatches(AsyncIterator[pd.DataFrame]):
    """:class:`Batches`, awaited: ``async for frame in await tf.asem_filter(batches, …)``."""

    def __init__(self, frames: AsyncGenerator[pd.DataFrame]) -> None:
        self._frames = frames
        self._context = contextvars.copy_context()

    async def __anext__(self) -> pd.DataFrame:
        async def following() -> pd.DataFrame | None:
            return await anext(self._frames, None)

        # A task of its own has the settings of the call; to cancel who waits for it is to cancel it.
        found = await asyncio.create_task(following(), context=self._context)
        if found is None:
            raise StopAsyncIteration
        return found

    def __reduce__(self) -> Any:
        return Batches.__reduce__(self)  # type: ignore[arg-type]  # it says why there is no way

    async def aclose(self) -> None:
        """Ask for no more."""
        await asyncio.create_task(self._frames.aclose(), context=self._context)


def are_batches(frame: Any) -> bool:
    """Whether it stands for many frames."""
    return isinstance(frame, Iterator | AsyncIterator | list | tuple)


def over_batches(
    operator: Operator[...], function: Callable[..., Any], frames: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """The results of an operator over batches, or the path that they are written to.

    Args:
        operator: which.
        function: calls it on one frame, with a model's settings as keywords.
        frames: the batches.
        args, kwargs: of the call, ``to`` among them.

    Raises:
        InvalidArgument: what is asked for looks at all rows, or the batches are to be awaited.
    """
    if isinstance(frames, AsyncIterator):
        raise InvalidArgument(f"{operator.name} does not await its batches; tagframe.a{operator.name} does")
    lm, to, given = _settled(operator, args, kwargs)
    checked, whole = _checked(iter(frames)), WHOLE.get(operator.over)
    if whole is not None:
        with _remembering(lm) as settings:
            frame = _called(whole(checked, {**given, **settings}), function)
        return frame if to is None else write_parquet([frame], to)
    each = Batches(_each(function, checked, given, lm))
    return each if to is None else write_parquet(each, to)


async def aover_batches(
    operator: Operator[...], function: Callable[..., Any], frames: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """:func:`over_batches`, awaited; batches may come from an ``async`` iterator."""
    lm, to, given = await asyncio.to_thread(_settled, operator, args, kwargs)
    whole = WHOLE.get(operator.over)
    if isinstance(frames, AsyncIterator):
        # An operator that looks at all rows has most of them in memory anyway.
        frames = frames if whole is None else [frame async for frame in frames]
    if whole is not None:
        with _remembering(lm) as settings:
            frame = await _acalled(whole(_checked(iter(frames)), {**given, **settings}), function)
        return frame if to is None else await asyncio.to_thread(write_parquet, [frame], to)
    each = AsyncBatches(_aeach(function, frames, given, lm))
    if to is None:
        return each
    with ParquetFolder(to) as folder:
        async with contextlib.aclosing(each):
            async for frame in each:
                await asyncio.to_thread(folder.add, frame)
        return await asyncio.to_thread(folder.finished)


def _settled(
    operator: Operator[...], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[LM | None, Any, dict[str, Any]]:
    """The model of a call, if any, ``to=``, and its other arguments by name."""
    options, settings = operator.told_apart(kwargs)
    if kwargs.get("quote"):
        raise InvalidArgument("quote= is for one frame; batches are read only as their results are wanted")
    arguments = operator.arguments(None, *args, **options)
    del arguments[next(iter(arguments))]  # the frame
    if refusal := operator.needs_all(arguments):
        raise InvalidArgument(f"{refusal}, which batches do not give together")
    embedder = {"embedder": settings.pop("embedder")} if "embedder" in settings else {}
    lm = get_lm(operator.name, **settings) if operator.asks(arguments) else None
    return lm, kwargs.get("to"), {**arguments, **embedder}


def _checked(frames: Iterator[Any]) -> Iterator[pd.DataFrame]:
    for number, frame in enumerate(frames):
        yield _frame(frame, number)


def _frame(frame: Any, number: int) -> pd.DataFrame:
    if not isinstance(frame, pd.DataFrame):
        raise InvalidArgument(f"batches are frames; number {number} is a {type(frame).__name__}")
    return frame


def _each(
    function: Callable[..., pd.DataFrame], frames: Iterator[pd.DataFrame], given: Mapping[str, Any], lm: Any
) -> Iterator[pd.DataFrame]:
    with _remembering(lm) as settings:
        for frame in frames:
            yield function(frame, **given, **settings)


async def _aeach(
    function: Callable[..., Any], frames: Any, given: Mapping[str, Any], lm: Any
) -> AsyncGenerator[pd.DataFrame]:
    with _remembering(lm) as settings:
        async for frame in _read(frames):
            yield await function(frame, **given, **settings)


async def _read(frames: Any) -> AsyncIterator[pd.DataFrame]:
    """The frames, each read while the event loop goes on."""
    if isinstance(frames, AsyncIterator):
        number = 0
        async for frame in frames:
            yield _frame(frame, number)
            number += 1
        return
    checked = _checked(iter(frames))
    while (following := await asyncio.to_thread(next, checked, None)) is not None:
        yield following


def _called(calls: Calls, function: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    """What comes of the calls; the thread waits for each."""
    found = None
    while isinstance(call := _following(calls, found), Call):
        found = function(call.frame, **call.given)
    return call


async def _acalled(calls: Calls, function: Callable[..., Any]) -> pd.DataFrame:
    """:func:`_called`, awaited."""
    found = None
    while isinstance(call := await asyncio.to_thread(_following, calls, found), Call):
        found = await function(call.frame, **call.given)
    return call


def _following(calls: Calls, found: pd.DataFrame | None) -> Call | pd.DataFrame:
    """The next call, or what came of all."""
    try:
        return calls.send(found)  # type: ignore[arg-type]  # None begins it
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


@contextlib.contextmanager
def _remembering(lm: LM | None) -> Iterator[dict[str, Any]]:
    """The model as a keyword, with a store: its own, or one that is gone after the block."""
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


Calls: TypeAlias = Generator[Call, pd.DataFrame, pd.DataFrame]


def _aggregated(frames: Iterator[pd.DataFrame], given: dict[str, Any]) -> Calls:
    """All rows, of the columns that the model is shown: it reads every one of them, so that they fit into memory."""
    parts = []
    for frame in frames:
        shown = Instruction.resolve(given["instruction"], frame, all_cols=given.get("all_cols", False)).columns
        labels = {*group_keys(given.get("group_by")), *shown}
        parts.append(frame[[label for label in frame.columns if label in labels]])
    return (yield Call(_together(parts), given))


def _best(frames: Iterator[pd.DataFrame], given: dict[str, Any]) -> Calls:
    """The best of each batch, and of those the best: whoever is among the first K of all is so in its batch."""
    if given.get("on_error") == "keep":
        raise InvalidArgument(
            'of batches on_error="keep" would rank rows without an answer again; "drop" leaves them out'
        )
    parts = []
    for frame in frames:
        parts.append((yield Call(frame, given)))
    return parts[0] if len(parts) == 1 else (yield Call(_together(parts), given))


def _nearest(frames: Iterator[pd.DataFrame], given: dict[str, Any]) -> Calls:
    """The nearest of each batch, by the scores of all; the model is asked at the end."""
    k, scores = given["K"], f"vec_scores{given['suffix']}"
    if k is None:
        return (yield from _best(frames, given))
    found: list[pd.DataFrame] = []
    for frame in frames:
        found.append((yield Call(frame, {**given, "n_rerank": None, "return_scores": True})))
        every = _together(found)
        found = [every.iloc[(-every[scores]).argsort(kind="stable").to_numpy()[:k]]]
    nearest = _together(found)
    nearest = nearest if given["return_scores"] else nearest.drop(columns=scores)
    # The scores are columns of theirs by now.
    reranks = {**given, "K": None, "return_scores": False}
    return nearest if given["n_rerank"] is None else (yield Call(nearest, reranks))


def _alike(frames: Iterator[pd.DataFrame], given: dict[str, Any]) -> Calls:
    """All rows at once: whichever two are alike."""
    return (yield Call(_together(list(frames)), given))


WHOLE: dict[str, Callable[[Iterator[pd.DataFrame], dict[str, Any]], Calls]] = {
    "whole": _aggregated,
    "best": _best,
    "nearest": _nearest,
    "alike": _alike,
}
"""By what an operator looks at: how it goes over batches; others take one at a time."""


def _together(frames: list[pd.DataFrame]) -> pd.DataFrame:
    if not frames:
        raise InvalidArgument("there is no batch, so there are no columns to show to the model")
    return frames[0] if len(frames) == 1 else pd.concat(frames)
