"""The steps of a pipeline: their cost and labels, and their models, one for all steps or one for each."""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self, TypeVar, cast

from tagframe import config, results
from tagframe.answer.answer import StepUse
from tagframe.answer.query import can_run
from tagframe.embed import quoted_embeddings
from tagframe.engines.base import SQLLimits
from tagframe.errors import ReplayMiss, RowsFailed, TooManyRowsWarning, warn
from tagframe.lm import LM, Arrived, Batch, Prompt, Quote, QuoteEnds, QuotingLM, Stream, Usage, get_lm
from tagframe.lm.usage import total
from tagframe.operators import Step, run

T = TypeVar("T")
_GUESS = '{"text": "an answer of some twenty words, with a name and a number in it", "values": ["a name"]}'


_ROWS = 10**7
"""The guess for a result in a quote, of which only the possible rows are known."""


def as_step(function: Any, *arguments: Any) -> Step[Any]:
    """The result of a function for these arguments, as a step; a plain value becomes one."""
    steps = getattr(function, "steps", None)
    result = function(*arguments) if steps is None else steps(*arguments)
    return (yield from result) if inspect.isgenerator(result) else result


def metered(step: Step[T], name: str, account: Callable[[StepUse], None]) -> Step[T]:
    """The step, whose cost is reported to ``account`` at the end, also if it fails.

    Its prompts are labelled with the stage ``name``, unless they have one.
    """
    began = time.monotonic()
    usages: list[Usage] = []

    def took(arrived: Arrived) -> None:
        usages.extend(completion.usage for completions in arrived.values() for completion in completions.values())

    try:
        return (yield from labelled(step, name.split()[0], seen=took))
    finally:
        account(StepUse(name, replace(total(usages), seconds=time.monotonic() - began)))


def labelled(
    step: Step[T],
    stage: str,
    guess: Callable[[Prompt], str] | None = None,
    seen: Callable[[Arrived], None] = lambda arrived: None,
) -> Step[T]:
    """The step, with a stage label on its prompts, and guesses for quotes.

    Its batches are passed on with these, and completions are given back for its own batches, after ``seen`` has them.
    """
    known: dict[Batch[Any], Batch[Any]] = {}

    def out(batch: Batch[Any]) -> Batch[Any]:
        guessed = batch.guess
        if guessed is None and guess is not None and batch.prompts:
            guessed = guess(batch.prompts[0])
        known[sent := replace(batch, stage=batch.stage or stage, guess=guessed)] = batch
        return sent

    arrived: Arrived | None = None
    try:
        while True:
            try:
                wanted = step.send(arrived)  # type: ignore[arg-type]
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            answers = yield [out(batch) for batch in wanted]
            arrived = {known[sent]: completions for sent, completions in answers.items()}
            seen(arrived)
    finally:
        step.close()


def driver(models: ModelsOfSteps | None = None) -> LM:
    """The models of the current settings, for the drivers of :mod:`tagframe.operators`."""
    return cast("LM", models or ModelsOfSteps())


class ModelsOfSteps:
    """Sends each batch of a pipeline to the model of its stage (``lm_for``), which is looked up at its first batch.

    Has the interface of :class:`~tagframe.lm.LM` that drivers use. A pipeline without prompts needs no model.
    """

    def stream(self, description: str = "") -> _Streams:
        """An open call of each model that is asked."""
        return _Streams(self, description)

    def of(self, stage: str) -> LM:
        """The model of a stage.

        Raises:
            NotConfigured: there is none.
        """
        return get_lm(stage)


class QuotingModels(ModelsOfSteps):
    """The same for quotes: nothing is sent, and the cost of the calls is added up.

    Args:
        guess: an answer for each prompt without a stored answer.
    """

    def __init__(self, guess: Callable[[Prompt], str]) -> None:
        self._guess = guess
        self._quoting: list[QuotingLM] = []

    def of(self, stage: str) -> LM:
        """The quoting replacement of a stage's model."""
        self._quoting.append(QuotingLM(get_lm(stage), self._guess))
        return self._quoting[-1]

    @property
    def quote(self) -> Quote:
        """The sum so far."""
        return sum((one.quote for one in self._quoting), Quote())


class _Streams:
    """An open call of each model that is asked."""

    def __init__(self, models: ModelsOfSteps, description: str) -> None:
        self._models = models
        self._description = description
        self._streams: dict[Any, Stream] = {}

    def put(self, batch: Batch[Any]) -> None:
        """Add prompts.

        Raises:
            NotConfigured: as :func:`tagframe.lm.get_lm`.
        """
        stage = batch.stage
        model = config.current().model(stage)
        key = model if isinstance(model, str) else id(model)
        if key not in self._streams:
            self._streams[key] = self._models.of(stage).stream(self._description)
        self._streams[key].put(batch)

    def take(self) -> Arrived:
        """The completions that have arrived at one of the models; empty if nothing is in progress.

        Raises:
            ReplayMiss: stores that are replayed lack answers, and no other model has completions left.
        """
        miss: ReplayMiss | None = None
        for stream in list(self._streams.values()):
            try:
                if arrived := stream.take():
                    return arrived
            except ReplayMiss as error:
                miss = miss or error
        return _nothing(miss)

    async def atake(self) -> Arrived:
        """:meth:`take`, awaited."""
        miss: ReplayMiss | None = None
        for stream in list(self._streams.values()):
            try:
                if arrived := await stream.atake():
                    return arrived
            except ReplayMiss as error:
                miss = miss or error
        return _nothing(miss)

    def arrived(self) -> Arrived:
        """The completions since the last call, without waiting."""
        found = (stream.arrived().items() for stream in self._streams.values())
        return {batch: completions for items in found for batch, completions in items}

    def usage(self) -> Usage:
        """Usage of all models so far."""
        return sum((stream.usage() for stream in self._streams.values()), Usage())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.ExitStack() as stack:
            for stream in self._streams.values():
                stack.push(stream)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        async with contextlib.AsyncExitStack() as stack:
            for stream in self._streams.values():
                stack.push_async_exit(stream)


def _nothing(miss: ReplayMiss | None) -> Arrived:
    if miss is not None:
        raise miss
    return {}


def quote_of(query: Any, execute: Any, gen: Any = None, question: str = "") -> Quote:
    """The cost of a query that is already written; nothing is sent.

    The result of an LM function is not known in advance. So every filter is assumed to pass all rows, which gives an
    upper bound for the calls after it. If LIMIT allows asking about the first rows only, as many rows are counted as
    are needed if all pass. A warning is given if there may be more rows than the limits allow.

    Args:
        query: the input of ``exec``.
        execute: ``exec``.
        gen: ``gen``, or None.
        question: for ``gen``.

    Raises:
        UnsafeSQL, SQLFailed: as ``exec`` does.
        NotConfigured: a model is needed, and none is set.
    """
    if not can_run(query):
        return Quote(query=query)
    quoting = QuotingModels(lambda prompt: _GUESS)
    limits = getattr(execute, "limits", None)
    if isinstance(limits, SQLLimits):
        execute = replace(execute, limits=replace(limits, rows=_ROWS))
    stages: tuple[Any, ...] = ()
    with contextlib.suppress(QuoteEnds, RowsFailed), quoted_embeddings() as embedded:
        rows = run(as_step(execute, query), driver(quoting))
        if isinstance(limits, SQLLimits) and len(rows) > limits.rows:
            fact = f"the statement may give {len(rows):,} rows; at most {limits.rows:,} are allowed"
            warn(f"{fact}. Narrow it, or raise SQLLimits(rows=…)", TooManyRowsWarning)
        execution = results.recall(rows, "execution")
        # The result of an audit is not known before it is paid for.
        stages = () if execution is None else tuple(replace(stage, remarks=()) for stage in execution.stages)
        if gen is not None:
            run(metered(as_step(gen, question, rows), "gen", lambda use: None), driver(quoting))
    return replace(sum(embedded, quoting.quote), query=query, stages=stages)
