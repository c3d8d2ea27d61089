"""The forms in which users call an operator, all derived from its declaration: ``tf.NAME``, ``tf.aNAME``, methods.

Each takes the arguments of the declaration, ``quote=True`` to get the cost instead of the result, and the settings of a
call. Functions also take batches instead of the frame, with ``to=`` to write the results.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import textwrap
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from inspect import Parameter
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe import config, interop, logs
from tagframe.errors import InvalidArgument
from tagframe.lm import Quote, QuoteEnds, get_lm, quoted_embeddings
from tagframe.operators.batches import aover_batches, over_batches
from tagframe.operators.drivers import arun
from tagframe.operators.step_generators import Step, without_model

if TYPE_CHECKING:
    from tagframe.operators.operator import Operator

_BATCHES = (Iterator, AsyncIterator, list, tuple)
_QUOTE = Parameter("quote", Parameter.KEYWORD_ONLY, default=False, annotation="bool")
_TO = Parameter("to", Parameter.KEYWORD_ONLY, default=None, annotation="str | os.PathLike[str] | None")
_IF_EXISTS = Parameter("if_exists", Parameter.KEYWORD_ONLY, default="error", annotation="IfExists")
_ADDED_DOCS = {
    "quote": "return calls, tokens, dollars and seconds, as a :class:`~tagframe.lm.Quote`; nothing is sent.",
    "to": "for batches: a folder to which the results are written as Parquet files; the call returns its path.",
    "if_exists": 'for ``to=``: ``"error"`` refuses a folder that exists, ``"replace"`` replaces it, ``"resume"`` goes'
    " on where a killed run has stopped, and returns a complete folder as it is.",
    "**settings": "settings of :func:`tagframe.configure` for this call: {names}.",
}


class _Call:
    """A call of an operator on one frame, as a user wrote it."""

    def __init__(self, operator: Operator[...], frame: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        if kwargs.get("to") is not None or "if_exists" in kwargs:
            raise InvalidArgument("to= and if_exists= are for batches; for one frame, use its to_parquet")
        if not isinstance(frame, pd.DataFrame):
            raise InvalidArgument(f"{operator.name} takes a frame or batches; got a {type(frame).__name__}")
        self.operator, self.arguments, self.quotes = operator, (frame, *args), bool(kwargs.get("quote"))
        self.options, self.settings = operator.split_keywords(kwargs)
        self.asks = operator.asks(operator.arguments(*self.arguments, **self.options))

    def embedding(self) -> contextlib.AbstractContextManager[Any]:
        """For the block, the embedder of the call, which is not a setting of the model."""
        return config.context(embedder=self.settings["embedder"]) if "embedder" in self.settings else nullcontext()

    def lm(self) -> Any:
        """The model of the call."""
        given: Any = {name: value for name, value in self.settings.items() if name != "embedder"}
        return get_lm(self.operator.name, **given)

    def step(self, lm: Any) -> Step[pd.DataFrame]:
        """The operator as a step."""
        return self.operator.step(lm, *self.arguments, **self.options)


@functools.cache
def function(operator: Operator[...]) -> Callable[..., Any]:
    """``tf.NAME``: the thread waits for the result."""

    def call(frame: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(frame, _BATCHES):
            return over_batches(operator, call, frame, args, kwargs)
        if interop.any_foreign(frame, *args, *kwargs.values()):
            converted = interop.ConvertedCall((frame, *args), kwargs)
            with converted.errors():
                return converted.back(call(*converted.arguments, **converted.keywords))
        given = _Call(operator, frame, args, kwargs)
        with given.embedding():
            if not given.asks:
                return _quoted(given.step(None)) if given.quotes else _without_model(operator, given.step(None))
            return (operator.quote if given.quotes else operator.run)(given.lm(), *given.arguments, **given.options)

    return _dressed(call, operator, operator.name, "tagframe", _function_signature(operator))


def _without_model(operator: Operator[...], step: Step[pd.DataFrame]) -> pd.DataFrame:
    with logs.run("operators", operator.name) as counts:
        result = without_model(step)
        counts["rows"] = len(result)
        return result


def _quoted(step: Step[pd.DataFrame]) -> Quote:
    """The cost of a step that asks no model: the vectors of its texts, if a provider computes them."""
    with contextlib.suppress(QuoteEnds), quoted_embeddings() as embedded:
        without_model(step)
    return sum(embedded, Quote())


@functools.cache
def awaited(operator: Operator[...]) -> Callable[..., Any]:
    """``tf.aNAME``: the event loop goes on; cancelling stops what is not sent."""
    blocking = function(operator)

    async def call(frame: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(frame, _BATCHES):
            return await aover_batches(operator, call, frame, args, kwargs)
        if interop.any_foreign(frame, *args, *kwargs.values()):
            converted = await asyncio.to_thread(interop.ConvertedCall, (frame, *args), kwargs)
            with converted.errors():
                return await asyncio.to_thread(converted.back, await call(*converted.arguments, **converted.keywords))
        given = _Call(operator, frame, args, kwargs)
        if given.quotes or not given.asks:
            return await asyncio.to_thread(blocking, frame, *args, **kwargs)
        with given.embedding():
            lm = given.lm()
            step = await asyncio.to_thread(given.step, lm)  # which may ask the server for its context window
            return await arun(step, lm, operator.name)

    dressed = _dressed(call, operator, f"a{operator.name}", "tagframe", _function_signature(operator))
    sentence = (
        f"The awaitable form of :func:`tagframe.{operator.name}`: the event loop goes on, and cancelling stops what is"
    )
    dressed.__doc__ = str(dressed.__doc__).replace("\n\n", f"\n\n{sentence}\nnot sent yet.\n\n", 1)
    return dressed


@functools.cache
def method(operator: Operator[...], *, quotes: bool = False) -> Callable[..., Any]:
    """``df.tag.NAME`` or ``df.tag.quote.NAME``, a method of an object with the frame as ``_frame``."""
    call = function(operator)

    def on_frame(self: Any, *args: Any, **kwargs: Any) -> Any:
        return call(self._frame, *args, **({**kwargs, "quote": True} if quotes else kwargs))

    return _dressed(on_frame, operator, operator.name, "tagframe.accessor", method_signature(operator, quotes=quotes))


def method_signature(operator: Operator[...], *, quotes: bool = False) -> inspect.Signature:
    """The signature of the method, without the frame."""
    public = _function_signature(operator, extra=() if quotes else (_QUOTE,))
    (_, *rest) = public.parameters.values()
    me = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    return public.replace(parameters=[me, *rest], return_annotation="Quote" if quotes else "pd.DataFrame | Quote")


def _function_signature(
    operator: Operator[...], extra: Sequence[Parameter] = (_QUOTE, _TO, _IF_EXISTS)
) -> inspect.Signature:
    settings = "SearchSettings" if operator.embeds else "CallSettings"
    rest = Parameter("settings", Parameter.VAR_KEYWORD, annotation=f"Unpack[{settings}]")
    declared = operator.signature
    return declared.replace(
        parameters=[*declared.parameters.values(), *extra, rest], return_annotation="pd.DataFrame | Quote"
    )


def _dressed(
    call: Callable[..., Any], operator: Operator[...], name: str, module: str, signature: inspect.Signature
) -> Callable[..., Any]:
    """The callable with the name, signature and docstring of the operator."""
    functools.update_wrapper(call, operator.steps)
    call.__name__ = call.__qualname__ = name
    call.__module__ = module
    names = ", ".join(f"``{setting}``" for setting in operator.settings)
    texts = {
        entry: text.format(names=names)
        for entry, text in _ADDED_DOCS.items()
        if entry.strip("*") in signature.parameters
    }
    without = () if next(iter(signature.parameters)) == "frame" else ("frame",)
    call.__doc__ = documented(str(operator.steps.__doc__), without=without, entries=texts)
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def documented(doc: str, *, without: Sequence[str] = (), entries: Mapping[str, str] | None = None) -> str:
    """A docstring without some of its ``Args:`` and with entries added at the end."""
    lines = inspect.cleandoc(doc).split("\n")
    if "Args:" not in lines:
        return "\n".join(lines)
    start = lines.index("Args:") + 1
    end = next((at for at in range(start, len(lines)) if not lines[at]), len(lines))
    lines_left: list[str] = []
    drops = False
    for line in lines[start:end]:
        if not line.startswith("     "):
            drops = line.strip().split(":")[0] in without
        if not drops:
            lines_left.append(line)
    added = [
        line
        for name, text in (entries or {}).items()
        for line in textwrap.wrap(f"{name}: {text}", 112, initial_indent=" " * 4, subsequent_indent=" " * 8)
    ]
    return "\n".join([*lines[:start], *lines_left, *added, *lines[end:]])
