"""Methods that higher rooms add to classes of lower ones ("doors"), as ``df.tag`` is added to frames.

The lower room marks its class, and knows none of its doors; the higher one registers each door::

    @with_doors
    class Corpus: ...

    register_door("Corpus", "retrieve_tables", "tagframe.accessor.corpus_doors")

``corpus.retrieve_tables`` is then the function of that name in that module, which is imported when it is first asked
for. Its signature for type checkers is in the class, under ``TYPE_CHECKING``.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Door:
    """A method whose function is in a module that is not imported yet."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def __get__(self, instance: object, owner: type) -> Any:
        return getattr(importlib.import_module(self._module), self._name).__get__(instance, owner)


_doors: dict[str, dict[str, Door]] = defaultdict(dict)
_classes: dict[str, type] = {}


def register_door(owner: str, name: str, module: str) -> None:
    """Add a method to a class of ours.

    Args:
        owner: the name of the class.
        name: of the method, and of its function.
        module: where the function is; its first argument is the object.
    """
    door = _doors[owner][name] = Door(module, name)
    if owner in _classes:
        setattr(_classes[owner], name, door)


def with_doors(owner: type[T]) -> type[T]:
    """Give a class the doors that are registered under its name, before and after it is made."""
    _classes[owner.__name__] = owner
    for name, door in _doors[owner.__name__].items():
        setattr(owner, name, door)
    return owner


def shown_as(function: Callable[..., Any], *without: str) -> Callable[[T], T]:
    """Give a door the keywords and the ``Args:`` of the function that it calls, below its own first lines.

    Args:
        function: the one that it calls.
        *without: parameters of the function that the door's object provides, unless the door has them itself.
    """

    def dressed(door: T) -> T:
        own = inspect.signature(door).parameters  # type: ignore[arg-type]
        rest = [one for name, one in inspect.signature(function).parameters.items() if name not in {*without, *own}]
        kept = [one for one in own.values() if one.kind is not one.VAR_KEYWORD]
        setattr(door, "__signature__", inspect.Signature(sorted([*kept, *rest], key=lambda one: one.kind)))  # noqa: B010
        args = inspect.cleandoc(str(function.__doc__)).partition("\nArgs:\n")[2]
        for gone in {*without} - {*own}:
            args = re.sub(rf"^    {gone}:.*\n(?:     .*\n)*", "", args, flags=re.MULTILINE)
        door.__doc__ = f"{inspect.cleandoc(str(door.__doc__))}\n\nArgs:\n{args}"
        return door

    return dressed
