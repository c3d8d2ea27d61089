"""The derived methods of ``df.tag``: operators, and functions of other packages.

They are made at first use, since making them imports their packages. Their types are in ``operator_methods.pyi``.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import pandas as pd

from tagframe.errors import InvalidArgument

FUNCTIONS = {
    "merge": "tagframe.merging",
    "plan_sem_join": "tagframe.operators",
    "sem_cluster_by": "tagframe.lotus",
    "sem_partition_by": "tagframe.lotus",
}
"""Methods that call a function of the same name on the frame → its module."""


class Derived(type):
    """The metaclass of classes whose methods are made at first use."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _method(name)

    def __dir__(cls) -> list[str]:
        return [*super().__dir__(), *_names()]


class OperatorMethods(metaclass=Derived):
    """``df.tag.sem_…`` and ``df.tag.merge``: each calls the function of the same name on the frame."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def __getattr__(self, name: str) -> Any:
        return getattr(type(self), name).__get__(self)

    def __dir__(self) -> list[str]:
        return [*dir(type(self)), *vars(self)]


def _names() -> list[str]:
    from tagframe.operators import OPERATORS

    return [*OPERATORS, *FUNCTIONS]


def _method(name: str) -> Callable[..., Any]:
    """A method by its name.

    Raises:
        NameUnknown: there is no method with this name.
    """
    from tagframe.operators import OPERATORS
    from tagframe.operators.operator import method, unknown_operator

    if (operator := OPERATORS.get(name)) is not None:
        return taking_lotus_keywords(method(operator))
    if name not in FUNCTIONS:
        raise unknown_operator(name, _names())
    made = _calling(getattr(importlib.import_module(FUNCTIONS[name]), name))
    return taking_lotus_keywords(made) if name.startswith("sem_") else made


@functools.cache
def _calling(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method that calls a function on the frame."""
    from tagframe.operators.operator import documented

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


# --- keywords of LOTUS -----------------------------------------------------------------------------------------------


RENAMED = {"user_instruction": "instruction", "join_instruction": "instruction", "other": "right"}
"""LOTUS's name → tagframe's name."""

INSTEAD = {
    "additional_cot_instructions": "say it in the instruction; return_explanations=True has the model explain first",
    "cascade_args": "give cascade=tf.Cascade(recall=…, precision=…) if the operator has it",
    "cascade_threshold": "no cheaper model decides comparisons here",
    "default": 'an answer that cannot be parsed is a failure; on_error="keep" keeps such rows as <NA>',
    "helper_examples": "a cascade's proxy learns from its own sample of rows",
    "long_context_strategy": "rows are packed by tokens, and .tag.outcomes shows which rows were cut",
    "method": "rows are ranked by lists, which take fewer requests than comparisons of two",
    "output_tokens": "the answers are True, False and Unsure",
    "postprocessor": "give dtype=, choices= or response_format= of sem_map",
    "progress_bar_desc": "give progress=True or progress=False",
    "return_raw_outputs": "give return_explanations=True; the response store keeps every answer",
    "return_explanations": "a ranking is made of many answers; see .tag.outcomes and its remarks",
    "return_stats": "read .tag.outcomes of the result, and tagframe.usage()",
    "safe_mode": "quote=True returns the calls and the cost in advance, and budget= is a limit",
    "split_fields_into_cols": "the fields of a response_format are columns",
    "strategy": "give return_explanations=True, which has the model explain first",
    "system_prompt": "say it in the instruction",
}
"""LOTUS's keyword that tagframe does not have → its replacement."""


@functools.cache
def taking_lotus_keywords(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of ``df.tag`` that takes the keywords of LOTUS's method, or names their replacements."""
    own = inspect.signature(method).parameters

    @functools.wraps(method)
    def call(*arguments: Any, **keywords: Any) -> Any:
        return method(*arguments, **{k: v for name, given in keywords.items() for k, v in _ours(name, given).items()})

    def _ours(name: str, given: Any) -> dict[str, Any]:
        """The keyword under tagframe's name; none if it is switched off.

        Raises:
            InvalidArgument: tagframe does not have the keyword.
        """
        if name in own or (name not in RENAMED and name not in INSTEAD):
            return {name: given}
        if RENAMED.get(name) in own:
            return {RENAMED[name]: given}
        if given is None or (given is False and name != "default"):
            return {}
        instead = INSTEAD.get(name, f"give {RENAMED.get(name)}=")
        raise InvalidArgument(f"LOTUS's {name}= of {method.__name__} is not supported: {instead}; got {given!r:.80}")

    return call
