"""The operators as functions, ``sem_filter``, ``asem_filter`` and so on; their types are in ``functions.pyi``."""

from collections.abc import Callable
from typing import Any

from tagframe.operators.operator import OPERATORS, awaited, function, unknown_operator


def __getattr__(name: str) -> Callable[..., Any]:
    """The function with this name, such as ``sem_filter`` or ``asem_filter``.

    Raises:
        NameUnknown: there is no such operator.
    """
    is_awaited = name.startswith("asem_")
    operator = OPERATORS.get(name[is_awaited:])
    if operator is None:
        raise unknown_operator(name, [*OPERATORS])
    return (awaited if is_awaited else function)(operator)


__all__ = ["__getattr__"]
