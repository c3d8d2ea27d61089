"""Plain values of a file, brought into the shape that is expected of them.

A shape is ``str`` (a text), ``object`` (anything), a list with the shape of its entries, or a dictionary with the shape
of each named value. Values of another shape are left out and told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KINDS = {dict: "a mapping", list: "a list", str: "a text", bool: "a truth value", int: "a number", float: "a number"}


def shaped(given: Any, shape: Any, unread: list[str], at: str = "") -> Any:
    """The given values in a shape; what is missing is "", an empty list, or a mapping of such.

    A mapping stands for the list of its values (dbt's manifest), a value for a list of it alone, and a text or a list
    for a mapping with only the first of its names.

    >>> unread = []
    >>> shaped({"name": 1, "keys": ["a", {}], "of": None}, {"name": str, "keys": [str], "of": str, "to": [str]}, unread)
    {'name': '1', 'keys': ['a'], 'of': '', 'to': []}
    >>> unread
    ['keys[1] is a mapping, not a text']

    Args:
        given: the values.
        shape: as above.
        unread: what is left out is added here.
        at: where the values stand in the file.
    """
    if shape is object:
        return given
    if isinstance(shape, list):
        listed = [*given.values()] if isinstance(given, Mapping) else [] if given is None else given
        listed = listed if isinstance(listed, list) else [listed]
        named = [(one, f"{at}[{place}]") for place, one in enumerate(listed)]
        return [shaped(one, shape[0], unread, where) for one, where in named if _fits(one, shape[0], unread, where)]
    if isinstance(shape, dict):
        first = next(iter(shape))
        if given is not None and not isinstance(given, Mapping):
            given = {first: given} if _fits(given, shape[first], unread, at) else None
        known = given or {}
        return {
            name: shaped(known.get(name), inner, unread, f"{at}.{name}".removeprefix("."))
            for name, inner in shape.items()
        }
    return str(given) if given is not None and _fits(given, str, unread, at) else ""


def _fits(given: Any, shape: Any, unread: list[str], at: str) -> bool:
    """Whether a value can be brought into a shape."""
    if shape is object or (isinstance(given, Mapping) and shape is not str):
        return True
    if isinstance(shape, list):
        return True
    if isinstance(shape, dict) and given is not None:
        return _fits(given, next(iter(shape.values())), unread, at)
    if given is None or isinstance(given, list | Mapping):
        what = "empty" if given is None else _KINDS[dict if isinstance(given, Mapping) else list]
        unread.append(f"{at or 'it'} is {what}, not {_KINDS.get(type(shape), 'a text')}")
        return False
    return True
