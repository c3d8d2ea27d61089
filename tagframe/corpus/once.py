"""A property that is computed once, by one thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")
_locks = threading.Lock()


class once(Generic[T]):
    """Like :class:`functools.cached_property`, which since Python 3.12 may compute twice with threads.

    A second thread waits while the first computes. Each object has one lock for all its properties, which may use one
    another. Afterwards the object's ``__dict__`` has the value.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> once[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> once[T] | T:
        if instance is None:
            return self
        values = instance.__dict__
        with _locks:
            lock = values.setdefault("_once_lock", threading.RLock())
        with lock:
            if self._name not in values:
                values[self._name] = self._compute(instance)
            value: T = values[self._name]
        return value
