"""Methods, operators and embedders that installed packages bring, by their entry points.

A package lists them in its ``pyproject.toml``, each under the name by which users ask for it::

    [project.entry-points."tagframe.methods"]
    chain = "my_package:Chain"

They are found when a name is looked up that tagframe does not have. Only the package that brings the name is imported.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, TypeVar

from tagframe.errors import PluginFailed

T = TypeVar("T")
Kind: TypeAlias = Literal["methods", "operators", "embedders"]


def installed(kind: Kind) -> list[str]:
    """The names that installed packages bring; nothing is imported."""
    return sorted({point.name for point in _points(kind)})


def load(kind: Kind, name: str, read: Callable[[Any], T]) -> T | None:
    """What an installed package brings under this name; None if no package does.

    Args:
        kind: "methods", "operators" or "embedders".
        name: of the entry point.
        read: makes the result of the object that the entry point names, and raises an error if it is of a wrong kind.

    Raises:
        PluginFailed: the object cannot be imported or read, or several packages bring the name.
    """
    points = [point for point in _points(kind) if point.name == name]
    if not points:
        return None
    packages = [point.dist.name or point.module for point in points]  # a package may have lost its metadata
    if len(points) > 1:
        raise PluginFailed(
            f"{kind[:-1]} {name!r} is brought by {' and '.join(sorted(packages))}: uninstall one of them"
        )
    try:
        return read(points[0].load())
    except (Exception, SystemExit) as error:  # whatever the package raises: the message names it
        raise PluginFailed(
            f"{kind[:-1]} {name!r} of the package {packages[0]!r} ({points[0].value}) cannot be loaded: "
            f"{type(error).__name__}: {error}"
        ) from error


def _points(kind: Kind) -> list[Any]:
    from importlib.metadata import distributions, entry_points  # slow to import

    group = f"tagframe.{kind}"
    try:
        return [*entry_points(group=group)]
    except Exception:  # one package's list cannot be read: those of the others can
        points: list[Any] = []
        for package in distributions():
            with contextlib.suppress(Exception):
                points += package.entry_points.select(group=group)
        return points
