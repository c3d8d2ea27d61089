"""Adds methods and functions that are created at run time, which mkdocstrings cannot read from the source.

An extension of Griffe, named in ``zensical.toml``. Roles in docstrings (``:func:``) become code, and examples fences.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def made(name: str, function: Callable[..., Any], pkg: griffe.Module) -> griffe.Function:
    """A function in Griffe's form, for a package that Griffe has read."""
    signature = inspect.signature(function)
    parameters = [
        griffe.Parameter(
            one.name,
            kind=griffe.ParameterKind[one.kind.name.lower()],
            annotation=None if one.annotation is one.empty else str(one.annotation),
            default=None if one.default is one.empty else repr(one.default),
        )
        for one in signature.parameters.values()
    ]
    returns = None if signature.return_annotation is signature.empty else str(signature.return_annotation)
    read = griffe.Function(name, parameters=griffe.Parameters(*parameters), returns=returns)
    assert pkg.docstring is not None
    read.docstring = griffe.Docstring(
        inspect.getdoc(function) or "",
        parent=read,
        parser=pkg.docstring.parser,
        parser_options=pkg.docstring.parser_options,
    )
    return read


def _as_method(read: griffe.Function) -> griffe.Function:
    """A method: its first parameter, the object, is called self and not documented."""
    first = next(iter(read.parameters))
    assert read.docstring is not None
    read.docstring.value = re.sub(rf"^    {first.name}: .*\n(?:     .*\n)*", "", read.docstring.value, flags=re.M)
    first.name = "self"
    return read


def _declared(attribute: griffe.Attribute) -> None:
    """An attribute that ``__init__`` sets: with the type of the parameter of its name, without the expression."""
    assert attribute.parent is not None
    init = attribute.parent.members.get("__init__")
    if attribute.annotation is None and isinstance(init, griffe.Function) and attribute.name in init.parameters:
        attribute.annotation = init.parameters[attribute.name].annotation
    attribute.value = None


class Forms(griffe.Extension):
    """Adds the forms of operators."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Add them after the package is read."""
        tagframe = importlib.import_module("tagframe")
        for name in tagframe.__all__:
            if name.startswith(("sem_", "asem_")):
                pkg["operators.functions"].set_member(name, made(name, getattr(tagframe, name), pkg))
        owner, members = tagframe.accessor.TagAccessor, pkg["accessor.TagAccessor"]
        for name in dir(owner):
            if not (name.startswith("_") or name in members.members):
                members.set_member(name, _as_method(made(name, getattr(owner, name), pkg)))
        for name in tagframe.__all__:
            member = pkg.members[name]
            if member.is_alias and member.is_module and inspect.isroutine(getattr(tagframe, name)):
                # tagframe.ask is a function of a module of its name: Griffe found the module.
                pkg.set_member(name, griffe.Alias(name, f"{member.target_path}.{name}", parent=pkg))
        self._as_read(pkg)

    def _as_read(self, found: griffe.Object) -> None:
        for member in found.members.values():
            if not member.is_alias:
                self._as_read(member)
        if found.is_attribute and found.labels == {"instance-attribute"}:
            _declared(found)
        if found.docstring is not None:
            text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", found.docstring.value).replace("::\n", ":\n")
            text = re.sub(r"  # doctest: \+\w+", "", text)
            found.docstring.value = re.sub(r"^(>>> .*?)(?=\n\n|\Z)", r"```python\n\1\n```", text, flags=re.M | re.S)
