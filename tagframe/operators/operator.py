"""The declaration of an operator: its steps with a signature and a docstring. Everything else is derived from that."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Literal, ParamSpec, TypeAlias

import pandas as pd

from tagframe import plugins
from tagframe.config import CallSettings, SearchSettings
from tagframe.errors import InvalidArgument, NameUnknown, did_you_mean
from tagframe.lm import LM, Prompt, Quote
from tagframe.operators.cells import prompt_names
from tagframe.operators.drivers import quote, run
from tagframe.operators.instruction import Instruction
from tagframe.operators.outcome import check_on_error
from tagframe.operators.public_forms import function
from tagframe.operators.step_generators import Step

P = ParamSpec("P")
Over: TypeAlias = Literal["rows", "pairs", "best", "nearest", "alike", "whole"]
"""What an operator looks at: one row at a time, pairs with rows of another frame, or all rows: for the best ones, for
the nearest ones, for similar ones, or as a whole. This decides how it goes over batches and partitions."""


ADDED = ("quote", "to", "if_exists")
"""The keywords that every operator has in addition to its own and the settings."""


def instructed(frame: pd.DataFrame, given: Mapping[str, Any]) -> tuple[int, ...]:
    """Positions of the columns that the model is shown for an ``instruction``, or for several."""
    texts = given["instruction"]
    resolved = (
        Instruction.resolve(text, frame, all_cols=given.get("all_cols", False), warns=False).positions
        for text in ([texts] if isinstance(texts, str) else texts)
    )
    return tuple(dict.fromkeys(position for positions in resolved for position in positions))


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


def operator_names() -> list[str]:
    """The names of the operators that are declared, and of those that installed packages bring."""
    return [*dict.fromkeys([*OPERATORS, *filter(_is_free, plugins.installed("operators"))])]


def operator_named(name: str) -> Operator[...] | None:
    """The operator of this name: a declared one, or one that an installed package brings; None if there is none.

    Raises:
        PluginFailed: the package's operator cannot be loaded.
    """
    if name in OPERATORS or not _is_free(name):
        return OPERATORS.get(name)
    return plugins.load("operators", name, lambda made: _under(name, made))


def unknown_operator(name: str, known: Sequence[str]) -> NameUnknown:
    """The error that there is no operator of this name among those that are known."""
    if name in ("sem_index", "load_sem_index"):  # of LOTUS
        return NameUnknown(
            f"no {name} is needed: sem_search, sem_sim_join and sem_dedup embed the texts when they are called; leave "
            "the line out"
        )
    return NameUnknown(f"no name {name!r} in {did_you_mean(name, known)}")


def _is_free(name: str) -> bool:
    """Whether a package may bring an operator of this name: ``df.tag.merge`` stays ours."""
    return name.startswith("sem_") and name not in OF_LOTUS


def _under(name: str, operator: Any) -> Operator[...]:
    if not isinstance(operator, Operator) or operator.name != name:
        raise InvalidArgument(f"its entry point must name a declared operator {name}; it names {operator!r:.80}")
    return OPERATORS.setdefault(name, operator)


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

    ``tf.sem_NAME``, ``tf.asem_NAME``, ``frame.tag.sem_NAME`` and ``frame.tag.quote.sem_NAME`` exist from then on. They
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
