"""The declaration of an operator: its steps with a signature and a docstring. Everything else is derived from that."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import textwrap
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from inspect import Parameter
from typing import Any, Generic, Literal, ParamSpec, TypeAlias

import pandas as pd

from tagframe import config, interop, logs
from tagframe.config import CallSettings, SearchSettings
from tagframe.embed import quoted_embeddings
from tagframe.errors import InvalidArgument, NameUnknown, did_you_mean
from tagframe.lm import LM, Prompt, Quote, QuoteEnds, get_lm
from tagframe.operators.batches import aover_batches, over_batches
from tagframe.operators.cells import Instruction, prompt_names
from tagframe.operators.drivers import Step, arun, quote, run, without_model
from tagframe.operators.outcome import check_on_error

_BATCHES = (Iterator, AsyncIterator, list, tuple)
_QUOTE = Parameter("quote", Parameter.KEYWORD_ONLY, default=False, annotation="bool")
_TO = Parameter("to", Parameter.KEYWORD_ONLY, default=None, annotation="str | os.PathLike[str] | None")
_IF_EXISTS = Parameter("if_exists", Parameter.KEYWORD_ONLY, default="error", annotation="IfExists")
_ADDED_DOCS = {
    "quote": "return calls, tokens, dollars and seconds, as a :class:`~tagframe.lm.Quote`; nothing is sent.",
    "to": "for batches: a folder to which the results are written as Parquet files; the call returns its path.",
    "if_exists": 'for ``to=``: ``"error"`` refuses a folder that exists, ``"replace"`` replaces one that it wrote.',
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
        given = _Call(operator, frame, args, kwargs)
        with given.embedding():
            if not given.asks:
                return _quoted(given.step(None)) if given.quotes else _without_model(operator, given.step(None))
            return (operator.quote if given.quotes else operator.run)(given.lm(), *given.arguments, **given.options)

    called = interop.accepts_foreign(call)
    return _dressed(called, operator, operator.name, "tagframe", _function_signature(operator))


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
        if any(map(interop.is_foreign, (frame, *args, *kwargs.values()))):
            frame = await asyncio.to_thread(interop.with_pandas, frame)
            args = tuple(map(interop.with_pandas, args))
            kwargs = {name: interop.with_pandas(one) for name, one in kwargs.items()}
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
def method(operator: Operator[...]) -> Callable[..., Any]:
    """``df.tag.NAME``, a method of an object with the frame as ``_frame``."""
    call = function(operator)

    def on_frame(self: Any, *args: Any, **kwargs: Any) -> Any:
        return call(self._frame, *args, **kwargs)

    return _dressed(on_frame, operator, operator.name, "tagframe.accessor", method_signature(operator))


def method_signature(operator: Operator[...]) -> inspect.Signature:
    """The signature of the method, without the frame."""
    public = _function_signature(operator, extra=(_QUOTE,))
    (_, *rest) = public.parameters.values()
    me = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    return public.replace(parameters=[me, *rest])


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


P = ParamSpec("P")
Over: TypeAlias = Literal["rows", "pairs", "best", "nearest", "alike", "whole"]
"""What an operator looks at: one row at a time, pairs with rows of another frame, or all rows: for the best ones, for
the nearest ones, for similar ones, or as a whole. This decides how it goes over batches and partitions."""


ADDED = ("quote", "to", "if_exists")
"""The keywords that every operator has in addition to its own and the settings."""


def instructed(frame: pd.DataFrame, given: Mapping[str, Any]) -> tuple[int, ...]:
    """Positions of the columns that the model is shown for an ``instruction``."""
    return Instruction.resolve(
        given["instruction"], frame, all_cols=given.get("all_cols", False), warns=False
    ).positions


@dataclass(frozen=True, eq=False)
class Operator(Generic[P]):
    """A semantic operator, as :func:`declare` makes it. It can be called as ``tf.NAME``.

    Attributes:
        steps: ``steps(frame, instruction, …)``, the generator that runs it. It has the operator's parameters, and may
            have a keyword ``window``: the number of tokens that the model reads and writes in one request.

    The others are the arguments of :func:`declare`.
    """

    steps: Callable[P, Step[pd.DataFrame]]
    guess: Callable[[Prompt], str]
    over: Over = "rows"
    embeds: bool = False
    asks: Callable[[Mapping[str, Any]], bool] = lambda given: True
    needs_all: Callable[[Mapping[str, Any]], str | None] = lambda given: None
    shows: Callable[[pd.DataFrame, Mapping[str, Any]], Sequence[int]] = instructed

    def __call__(self, *args: P.args, **options: P.kwargs) -> pd.DataFrame:
        """``tf.NAME`` with the types of the declaration: type checkers know no settings, batches or quotes here."""
        return function(self)(*args, **options)  # type: ignore[no-any-return]

    @property
    def name(self) -> str:
        """The name, as in ``tf.NAME``, ``tf.aNAME`` and ``df.tag.NAME``."""
        return self.steps.__name__

    @cached_property
    def signature(self) -> inspect.Signature:
        """The user's parameters: the frame and the operator's arguments."""
        declared = inspect.signature(self.steps)
        return declared.replace(parameters=[p for p in declared.parameters.values() if p.name != "window"])

    @cached_property
    def settings(self) -> tuple[str, ...]:
        """The names of the settings that a call takes."""
        return tuple((SearchSettings if self.embeds else CallSettings).__annotations__)

    def arguments(self, *args: Any, **options: Any) -> dict[str, Any]:
        """The arguments of a call by name, with defaults.

        Raises:
            TypeError: an argument is missing or unknown.
        """
        try:
            bound = self.signature.bind(*args, **options)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}") from None
        bound.apply_defaults()
        return bound.arguments

    def split_keywords(self, keywords: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Split keywords into the operator's own ones and settings; those of :data:`ADDED` are left out.

        Raises:
            InvalidArgument: a keyword is unknown.
        """
        own = self.signature.parameters
        for name in keywords:
            if name not in own and name not in self.settings and name not in ADDED:
                known = [*list(own)[1:], "quote", *self.settings]
                raise InvalidArgument(f"{self.name} has no keyword {name!r} in {did_you_mean(name, known)}")
        return (
            {name: given for name, given in keywords.items() if name in own},
            {name: given for name, given in keywords.items() if name in self.settings},
        )

    def step(self, lm: LM | None, *args: Any, **options: Any) -> Step[pd.DataFrame]:
        """The operator as a step, adapted to the model's window; ``args`` and ``options`` are those of :attr:`steps`.

        Raises:
            InvalidArgument: ``on_error`` is invalid, or the declared function is no generator.
        """
        check_on_error(options.get("on_error", "raise"))
        if "window" in inspect.signature(self.steps).parameters:
            options["window"] = getattr(lm, "context_window", None)
        step = self.steps(*args, **options)
        if not inspect.isgenerator(step):
            raise InvalidArgument(
                f"{self.name} must be a generator that yields batches; it gave a {type(step).__name__}"
            )
        return step  # type: ignore[return-value]  # isgenerator forgets what it yields

    def quote(self, lm: LM, *args: Any, **options: Any) -> Quote:
        """The cost of a call."""
        return quote(self.step(lm, *args, **options), lm, self.guess)

    def run(self, lm: LM, *args: Any, **options: Any) -> pd.DataFrame:
        """The operator's result; the thread waits for it."""
        return run(self.step(lm, *args, **options), lm, self.name)

    def prompt_columns(self, frame: pd.DataFrame, given: Mapping[str, Any]) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Positions of the columns that the model is shown, and their names in prompts."""
        positions = tuple(self.shows(frame, given))
        return positions, tuple(prompt_names(frame, positions))


OF_LOTUS = dict.fromkeys(("sem_cluster_by", "sem_partition_by"), "tagframe.lotus")
"""Methods of ``df.tag`` that are called as an operator is, and are none, and their module."""

OPERATORS: dict[str, Operator[...]] = {}
"""The operators that are declared, by name."""


def unknown_operator(name: str, known: Sequence[str]) -> NameUnknown:
    """The error that there is no operator of this name among those that are known."""
    if name in ("sem_index", "load_sem_index"):  # of LOTUS
        return NameUnknown(
            f"no {name} is needed: sem_search, sem_sim_join and sem_dedup embed the texts when they are called; leave "
            "the line out"
        )
    return NameUnknown(f"no name {name!r} in {did_you_mean(name, known)}")


def declare(
    *,
    guess: Callable[[Prompt], str],
    over: Over = "rows",
    embeds: bool = False,
    asks: Callable[[Mapping[str, Any]], bool] = lambda given: True,
    needs_all: Callable[[Mapping[str, Any]], str | None] = lambda given: None,
    shows: Callable[[pd.DataFrame, Mapping[str, Any]], Sequence[int]] = instructed,
) -> Callable[[Callable[P, Step[pd.DataFrame]]], Operator[P]]:
    """Declare an operator: ``@declare(guess=…)`` over a generator ``sem_NAME(frame, …)``.

    The generator (a :data:`Step`) yields batches of prompts, receives the completions, and returns a frame. It has the
    operator's parameters and the docstring that users read, with a section ``Args:``. If it has a keyword ``window``,
    it receives the number of tokens that the model reads and writes in one request, or None; users do not see it.

    ``tf.sem_NAME``, ``tf.asem_NAME`` and ``frame.tag.sem_NAME`` exist from then on. They
    also take settings, ``quote=`` and, as functions, batches with ``to=``. What is declared can be called, too: a type
    checker knows its own parameters. A second declaration of the same name in the same module, as when a notebook's
    cell is run twice, replaces the first one.

    Args:
        guess: gives a typical answer to one of its prompts, for quotes; a batch's own guess is preferred.
        over: what it looks at, which decides how it goes over batches and partitions. ``"rows"``: each row by itself,
            so that batches are separate. ``"pairs"``: the same, with rows of another frame. ``"whole"``: all rows
            together. ``"best"`` and ``"nearest"``: the best rows of each batch, then the best of those, by ``K``.
            ``"alike"``: similar rows, among all of them. Dask has ``"rows"``, ``"whole"`` and ``"best"``.
        embeds: whether it embeds texts, and so takes the setting ``embedder``.
        asks: whether a call with these arguments, by name, asks a model.
        needs_all: an explanation if the arguments need all rows together; None if they do not.
        shows: positions of the columns that the model is shown, from the frame and the arguments, for partitions; by
            default those that ``instruction`` names.

    Raises:
        InvalidArgument: it is not called ``sem_NAME``, has no such section, or has a parameter that is added later; or
            another module has declared an operator of this name, such as one of tagframe's own.
    """

    def declared(steps: Callable[P, Step[pd.DataFrame]]) -> Operator[P]:
        made = Operator(steps, guess, over, embeds, asks, needs_all, shows)
        taken = {*ADDED, *SearchSettings.__annotations__} & {*made.signature.parameters}
        if taken or not made.name.startswith("sem_") or "Args:\n" not in (steps.__doc__ or ""):
            raise InvalidArgument(
                f"an operator is a function sem_NAME(frame, …) with a docstring that has a section Args:, and without"
                f" {', '.join((*ADDED, *SearchSettings.__annotations__))}; got {made.name}{made.signature}"
            )
        known = OPERATORS[made.name].steps.__module__ if made.name in OPERATORS else OF_LOTUS.get(made.name)
        if known not in (None, "__main__", steps.__module__):
            raise InvalidArgument(f"{known} has an operator {made.name}; give that of {steps.__module__} another name")
        OPERATORS[made.name] = made
        return made

    return declared
