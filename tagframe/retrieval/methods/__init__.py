"""The methods that choose tables: small frozen objects with their own parameters, as ``method=`` of a call.

>>> import tagframe as tf
>>> tf.methods.JAR(variant="F", weights="bird", omega="text", candidates=20, as_printed=True).candidates
20

Each is a file with a pure selector and a :class:`Method`. Their names stand for their defaults: ``method="jar"``.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from tagframe.errors import InvalidArgument, did_you_mean
from tagframe.retrieval.method import Method
from tagframe.retrieval.methods.auto import Auto
from tagframe.retrieval.methods.crush import CRUSH
from tagframe.retrieval.methods.iterative_jar import IterativeJAR
from tagframe.retrieval.methods.jar import JAR
from tagframe.retrieval.methods.mip import MIP
from tagframe.retrieval.methods.murre import MURRE
from tagframe.retrieval.methods.ranking import Dense, Hybrid, Lexical

METHODS: dict[str, type[Method]] = {
    method.name: method for method in (Auto, IterativeJAR, JAR, MIP, MURRE, CRUSH, Dense, Lexical, Hybrid)
}
"""The methods by their names; the first is the default."""
OURS = frozenset(METHODS)
"""The names of tagframe's own methods."""


def register(method: type[Method]) -> type[Method]:
    """Make a class of methods known by its name to everything that takes ``method=``, the shell included.

    A second class of the same name, as when a notebook's cell is run twice, replaces the first one.

    Returns:
        The same class, so that this is a decorator.

    Raises:
        InvalidArgument: it is no subclass of :class:`Method` with a name, or its name is that of a method of tagframe's
            own.
    """
    is_method = isinstance(method, type) and issubclass(method, Method)
    if not is_method or not isinstance(method.name, str) or not method.name:
        raise InvalidArgument(f"a method is a subclass of tagframe.retrieval.Method with a name; got {method!r:.80}")
    if method.name in OURS:
        raise InvalidArgument(f"{method.name!r} is a method of tagframe's own; give yours another name")
    METHODS[method.name] = method
    return method


def method_of(given: str | Method | None) -> Method:
    """The method that ``method=`` means: an object, a name, or None for the default.

    Raises:
        InvalidArgument: it is none of these, or there is no method of this name.
    """
    if given is None:
        return Auto()
    if isinstance(given, Method):
        return given
    if not isinstance(given, str):
        raise InvalidArgument(
            f"method must be a method's name, or one of tagframe.methods, such as JAR(); got {given!r:.80}"
        )
    return method_named(given)


def method_named(text: str) -> Method:
    """The method of a name, with parameters as the shell writes them: ``jar:variant=F,as_printed``.

    >>> method_named("murre:beam=2,hops=1")
    MURRE(as_printed=False, beam=2, hops=1, ablate=None)

    Raises:
        InvalidArgument: there is no such method or parameter, or a value that the parameter does not take.
    """
    name, _, parameters = text.partition(":")
    method = METHODS.get(name)
    if method is None:
        raise InvalidArgument(f"no method {name!r} in {did_you_mean(name, METHODS)}")
    return method(**dict(_read(method, part.strip()) for part in parameters.split(",") if part.strip()))


def _read(method: type[Method], part: str) -> tuple[str, Any]:
    """A parameter and its value, of ``name=value`` or, for one that is true, ``name``."""
    name, _, text = part.partition("=")
    known = [field.name for field in fields(method)]
    if name not in known:
        near = f" in {did_you_mean(name, known)}" if known else ""
        raise InvalidArgument(f"method {method.name!r} has no parameter {name!r}{near}")
    types = [*_types(get_type_hints(method)[name])]
    if bool in types and text in ("", "true", "false"):
        return name, text != "false"
    for number in (int, float):
        if number in types:
            try:
                return name, number(text)
            except ValueError:
                continue
    if str not in types:
        raise InvalidArgument(f"method {method.name!r}: {name} cannot be {text!r}")
    return name, text


def _types(hint: Any) -> Iterable[type]:
    """The types of the values that a type hint allows."""
    if get_origin(hint) in (Union, types.UnionType):
        for part in get_args(hint):
            yield from _types(part)
    elif get_origin(hint) is Literal:
        yield from map(type, get_args(hint))
    elif isinstance(hint, type):
        yield hint


__all__ = [
    "CRUSH", "JAR", "METHODS", "MIP", "MURRE", "Auto", "Dense", "Hybrid", "IterativeJAR", "Lexical", "Method",
    "method_named", "method_of", "register",
]  # fmt: skip
