"""Operators over frames that come in batches, for rows that are too many for memory.

In place of a frame every operator takes an iterator of frames, such as :func:`tagframe.read_batches` gives: operators
that look at one row at a time give an iterator of their results (``sem_filter``, ``sem_filters``, ``sem_map``,
``sem_score``, ``sem_extract``, and ``sem_join`` and ``sem_sim_join``, whose right side is a frame); those that look at
all rows give one frame (``sem_agg``, ``sem_topk``, ``sem_search``). With ``to=`` the results go to a folder of Parquet
files instead, and the call gives its path. ``await tf.asem_filter(batches, …)`` gives an ``async`` iterator, or the
path; the batches may come from an ``async`` iterator, too.

Rows that show the same are asked once in all batches: the response store has their answers, or, where none is set, one
that is removed at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, cast, overload

import pandas as pd

from tagframe.errors import InvalidArgument, NotConfigured
from tagframe.lm import LM, get_lm
from tagframe.operators.all_batches import WHOLE, Call, Calls
from tagframe.operators.parquet_folder import ParquetFolder, write_parquet

if TYPE_CHECKING:
    from tagframe.operators.operator import Operator

P = ParamSpec("P")


class OverBatches(Protocol[P]):
    """An operator's public function: a frame for a frame, or batches for batches."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> pd.DataFrame: ...

    @overload
    def __call__(self, frame: Iterable[pd.DataFrame], *args: Any, **kwargs: Any) -> Any: ...


class AsyncOverBatches(Protocol[P]):
    """An operator's function that is awaited: a frame for a frame; for batches an ``async`` iterator, or a path."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, pd.DataFrame]: ...

    @overload
    def __call__(
        self, frame: Iterable[pd.DataFrame] | AsyncIterator[pd.DataFrame], *args: Any, **kwargs: Any
    ) -> Coroutine[Any, Any, Any]: ...


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


def takes_batches(operator: Operator) -> Callable[[Callable[P, pd.DataFrame]], OverBatches[P]]:
    """Have an operator's public function take batches in place of its frame."""

    def decorate(function: Callable[P, pd.DataFrame]) -> OverBatches[P]:
        plain: Callable[..., pd.DataFrame] = function

        @functools.wraps(function)
        def call(frame: Any, *args: Any, **kwargs: Any) -> Any:
            return (
                _over(operator, plain, frame, args, kwargs)
                if _is_many(frame, kwargs)
                else plain(frame, *args, **kwargs)
            )

        return cast("OverBatches[P]", call)

    return decorate


def atakes_batches(
    operator: Operator,
) -> Callable[[Callable[P, Coroutine[Any, Any, pd.DataFrame]]], AsyncOverBatches[P]]:
    """:func:`takes_batches` for the function that is awaited; batches may come from an ``async`` iterator then."""

    def decorate(function: Callable[P, Coroutine[Any, Any, pd.DataFrame]]) -> AsyncOverBatches[P]:
        plain: Callable[..., Coroutine[Any, Any, pd.DataFrame]] = function

        @functools.wraps(function)
        async def call(frame: Any, *args: Any, **kwargs: Any) -> Any:
            if _is_many(frame, kwargs):
                return await _aover(operator, plain, frame, args, kwargs)
            return await plain(frame, *args, **kwargs)

        return cast("AsyncOverBatches[P]", call)

    return decorate


def _is_many(frame: Any, kwargs: dict[str, Any]) -> bool:
    many = isinstance(frame, Iterator | AsyncIterator | list | tuple) and not isinstance(
        frame, pd.DataFrame | pd.Series
    )
    if not many and "to" in kwargs:
        raise InvalidArgument("to= is for batches; write one frame by its own to_parquet")
    return many


def _over(operator: Operator, function: Callable[..., pd.DataFrame], frames: Any, args: Any, kwargs: Any) -> Any:
    if isinstance(frames, AsyncIterator):
        raise InvalidArgument(f"{operator.name} does not await its batches; tagframe.a{operator.name} does")
    lm, to, kwargs = _settled(operator, kwargs)
    checked, whole = _checked(iter(frames)), WHOLE.get(operator.name)
    if whole is not None:
        with _remembering(lm) as settings:
            frame = _called(whole(checked, args, {**kwargs, **settings}), function)
        return frame if to is None else write_parquet([frame], to)
    each = Batches(_each(function, checked, args, kwargs, lm))
    return each if to is None else write_parquet(each, to)


async def _aover(operator: Operator, function: Callable[..., Any], frames: Any, args: Any, kwargs: Any) -> Any:
    lm, to, kwargs = await asyncio.to_thread(_settled, operator, kwargs)
    whole = WHOLE.get(operator.name)
    if isinstance(frames, AsyncIterator):
        # An operator that looks at all rows has most of them in memory anyway.
        frames = frames if whole is None else [frame async for frame in frames]
    if whole is not None:
        with _remembering(lm) as settings:
            frame = await _acalled(whole(_checked(iter(frames)), args, {**kwargs, **settings}), function)
        return frame if to is None else await asyncio.to_thread(write_parquet, [frame], to)
    each = AsyncBatches(_aeach(function, frames, args, kwargs, lm))
    if to is None:
        return each
    with ParquetFolder(to) as folder:
        async with contextlib.aclosing(each):
            async for frame in each:
                await asyncio.to_thread(folder.add, frame)
        return await asyncio.to_thread(folder.finished)


def _settled(operator: Operator, kwargs: dict[str, Any]) -> tuple[LM | None, Any, dict[str, Any]]:
    """The model of a call, if any, ``to=``, and its other keywords."""
    rest = dict(kwargs)
    to = rest.pop("to", None)
    _refuse(operator.name, rest)
    lm = None
    if operator.name != "sem_sim_join":
        settings = {name: rest.pop(name) for name in list(rest) if name in _SETTINGS}
        try:
            lm = get_lm(operator.name, **settings)
        except NotConfigured:
            if operator.name != "sem_search" or rest.get("n_rerank") is not None:
                raise
    return lm, to, rest


_SETTINGS = ("lm", "lm_for", "api_base", "api_key", "store", "budget", "concurrency", "rpm", "tpm", "context_window",
             "progress")  # fmt: skip


def _refuse(name: str, kwargs: dict[str, Any]) -> None:
    """What is true of all rows together cannot be done a batch at a time."""
    if name == "sem_filter" and (kwargs.get("limit") is not None or kwargs.get("cascade") is not None):
        raise InvalidArgument("limit= and cascade= of sem_filter look at all rows; batches do not give them together")
    if name == "sem_join" and kwargs.get("how", "inner") not in ("inner", "left"):
        raise InvalidArgument(
            f"how={kwargs['how']!r} keeps right rows that match in no batch, which one batch cannot tell; "
            "how='inner' and how='left' can be done"
        )


def _checked(frames: Iterator[Any]) -> Iterator[pd.DataFrame]:
    for number, frame in enumerate(frames):
        yield _frame(frame, number)


def _frame(frame: Any, number: int) -> pd.DataFrame:
    if not isinstance(frame, pd.DataFrame):
        raise InvalidArgument(f"batches are frames; number {number} is a {type(frame).__name__}")
    return frame


def _each(
    function: Callable[..., pd.DataFrame], frames: Iterator[pd.DataFrame], args: Any, kwargs: dict[str, Any], lm: Any
) -> Iterator[pd.DataFrame]:
    with _remembering(lm) as settings:
        for frame in frames:
            yield function(frame, *args, **kwargs, **settings)


async def _aeach(
    function: Callable[..., Any], frames: Any, args: Any, kwargs: dict[str, Any], lm: Any
) -> AsyncGenerator[pd.DataFrame]:
    with _remembering(lm) as settings:
        async for frame in _read(frames):
            yield await function(frame, *args, **kwargs, **settings)


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
        found = function(call.frame, *call.args, **call.kwargs)
    return call


async def _acalled(calls: Calls, function: Callable[..., Any]) -> pd.DataFrame:
    """:func:`_called`, awaited."""
    found = None
    while isinstance(call := await asyncio.to_thread(_following, calls, found), Call):
        found = await function(call.frame, *call.args, **call.kwargs)
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
