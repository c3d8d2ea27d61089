"""The derived methods of ``df.tag`` and ``df.tag.quote``: operators, and functions of other packages.

They are made at first use, since making them imports their packages. Their types are in ``operator_methods.pyi``.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import pandas as pd

from tagframe.accessor.lotus_keywords import taking_lotus_keywords

FUNCTIONS = {
    "merge": "tagframe.merging",
    "plan_sem_join": "tagframe.operators",
    "sem_cluster_by": "tagframe.lotus",
    "sem_partition_by": "tagframe.lotus",
}
"""Methods that call a function of the same name on the frame → its module."""


class Derived(type):
    """The metaclass of classes whose methods are made at first use."""

    _quotes: bool

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _method(name, quotes=cls._quotes)

    def __dir__(cls) -> list[str]:
        return [*super().__dir__(), *_names(quotes=cls._quotes)]


class OperatorMethods(metaclass=Derived):
    """``df.tag.sem_…`` and ``df.tag.merge``: each calls the function of the same name on the frame."""

    _quotes = False

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def __getattr__(self, name: str) -> Any:
        return getattr(type(self), name).__get__(self)

    def __dir__(self) -> list[str]:
        return [*dir(type(self)), *vars(self)]


class QuoteAccessor(OperatorMethods):
    """``df.tag.quote``: each operator with its own keywords, returning a :class:`~tagframe.lm.Quote`.

    Nothing is sent. Stored answers are used, others are guessed. If calls depend on answers (``sem_topk``, ``sem_agg``
    over many rows), their number is an estimate, and the quote also has the worst case. ``df.tag.sem_filter(…,
    quote=True)`` is the same.
    """

    _quotes = True


def _names(*, quotes: bool) -> list[str]:
    from tagframe.operators.operator import operator_names

    return [*operator_names(), *(() if quotes else FUNCTIONS)]


def _method(name: str, *, quotes: bool) -> Callable[..., Any]:
    """A method by its name.

    Raises:
        NameUnknown: there is no method with this name.
    """
    from tagframe.operators.operator import operator_named, unknown_operator
    from tagframe.operators.public_forms import method

    if (operator := operator_named(name)) is not None:
        return taking_lotus_keywords(method(operator, quotes=quotes))
    if quotes or name not in FUNCTIONS:
        raise unknown_operator(name, _names(quotes=quotes))
    made = _calling(getattr(importlib.import_module(FUNCTIONS[name]), name))
    return taking_lotus_keywords(made) if name.startswith("sem_") else made


@functools.cache
def _calling(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method that calls a function on the frame."""
    from tagframe.operators.public_forms import documented

    @functools.wraps(function)
    def call(self: OperatorMethods, *args: Any, **kwargs: Any) -> Any:
        return function(self._frame, *args, **kwargs)

    declared = inspect.signature(function)
    first, *rest = declared.parameters.values()
    others = [first] if first.kind is first.VAR_POSITIONAL else []
    me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    call.__signature__ = declared.replace(parameters=[me, *others, *rest])  # type: ignore[attr-defined]
    call.__doc__ = documented(str(function.__doc__), without=() if others else (first.name,))
    return call
