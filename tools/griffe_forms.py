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


def made(name: str, function: Callable[..., Any]) -> griffe.Function:
    """A function in Griffe's form."""
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
    read.docstring = griffe.Docstring(inspect.getdoc(function) or "", parent=read)
    return read


class Forms(griffe.Extension):
    """Adds the forms of operators, and the methods that higher layers register."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Add them after the package is read."""
        tagframe = importlib.import_module("tagframe")
        for name in tagframe.__all__:
            if name.startswith(("sem_", "asem_")):
                pkg["operators.functions"].set_member(name, made(name, getattr(tagframe, name)))
        accessor = tagframe.accessor.TagAccessor
        for name in dir(accessor):
            if name.startswith(("sem_", "plan_sem_")) or name == "merge":
                pkg["accessor.TagAccessor"].set_member(name, made(name, getattr(accessor, name)))
        corpus = pkg["corpus.corpus.Corpus"]
        for name in dir(tagframe.Corpus):
            if not name.startswith("_") and name not in corpus.members:
                corpus.set_member(name, made(name, getattr(tagframe.Corpus, name)))
        self._as_markdown(pkg)

    def _as_markdown(self, found: griffe.Object) -> None:
        for member in found.members.values():
            if not member.is_alias:
                self._as_markdown(member)
        if found.docstring is not None:
            text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", found.docstring.value).replace("::\n", ":\n")
            text = re.sub(r"  # doctest: \+\w+", "", text)
            found.docstring.value = re.sub(r"^(>>> .*?)(?=\n\n|\Z)", r"```python\n\1\n```", text, flags=re.M | re.S)
