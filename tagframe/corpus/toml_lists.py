"""``tagframe.toml``: the lists of what is hidden and private in data, in a file beside it."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tagframe.engines.files.limits import check_regular
from tagframe.engines.hiding import checked_names
from tagframe.errors import BROKEN, InvalidArgument, UnreadableFacts, UnreadableTable

NAME = "tagframe.toml"


@dataclass(frozen=True)
class Beside:
    """What the file beside data says of it: its lists of names."""

    hide: Sequence[str] = ()
    private: Sequence[str] = ()


def lists_beside(source: Path | None) -> Beside:
    """The lists in a folder, or beside a file; none if there is no such file.

    Raises:
        UnreadableFacts: it cannot be read, or has something else.
    """
    if source is None:
        return Beside()
    path = (source if source.is_dir() else source.parent) / NAME
    try:
        check_regular(path)
        plain = tomllib.loads(path.read_bytes().decode("utf-8"))
        if unknown := sorted({*plain} - {"hide", "private"}):
            raise ValueError(f"it has {unknown[0]!r}; known are 'hide' and 'private'")
        hide, private = (checked_names(name, plain.get(name, [])) for name in ("hide", "private"))
        if bare := [name for name in private if "." not in name]:
            raise ValueError(f"private must have names such as 'users.email'; got {bare[0]!r}")
    except FileNotFoundError:
        return Beside()
    except (OSError, UnreadableTable, InvalidArgument, *BROKEN) as error:
        raise UnreadableFacts(
            f"{path}, the private and hidden columns of the data beside it, cannot be read: {error}. The data is not "
            "opened, so that nothing hidden is shown; repair the file, or remove it"
        ) from error
    return Beside(hide, private)
