"""The display of small results: a sentence, and in a notebook also a table of their fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tagframe.display.markup import escaped, page, small, table
from tagframe.display.terminal import WIDTH, fitted

_MAX_LISTED = 20


class Public:
    """``dir`` of such an object lists its public names only, and so does completion."""

    __slots__ = ()

    def __dir__(self) -> Iterable[str]:
        return [name for name in super().__dir__() if not name.startswith("_") or name.endswith("__")]


class Displayable(Public):
    """A result that is displayed by its ``str``: wrapped in a terminal, and with its fields in a notebook."""

    __slots__ = ()

    def __repr__(self) -> str:
        return fitted(str(self), WIDTH - 2)  # in a list, a bracket and a comma stand beside it

    def _repr_html_(self) -> str:
        rows = [(name.replace("_", " "), _text(value)) for name, value in _facts(self)]
        return rows_html(str(self), ["what", "value"], rows, words={"value"})


def rows_html(
    heading: str, names: Sequence[str], rows: Sequence[Sequence[str]], words: set[str], left_out: int = 0
) -> str:
    """Sentences, and a table.

    Args:
        heading: one sentence per line.
        names: of columns.
        rows: texts.
        words: names of the columns that hold text, not numbers.
        left_out: rows that are not shown.
    """
    sentences = "".join(f"<p>{escaped(line)}</p>" for line in heading.split("\n"))
    body = table(names, [[escaped(cell) for cell in row] for row in rows], words) if rows else ""
    return page(sentences + body + (small(f"and {left_out:,} more") if left_out else ""))


def _facts(result: Any) -> Iterator[tuple[str, Any]]:
    """The non-empty fields of a dataclass, and of dataclasses inside it."""
    for field in dataclasses.fields(result):
        value = getattr(result, field.name)
        if dataclasses.is_dataclass(value) and type(value).__str__ is object.__str__:
            yield from _facts(value)
        elif value is not None and value != "" and value not in ((), {}, ("", "")):
            yield field.name, value


def _text(value: Any) -> str:
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_text(one)}" for name, one in value.items())
    if isinstance(value, tuple):
        more = [f"and {len(value) - _MAX_LISTED:,} more"] if len(value) > _MAX_LISTED else []
        return "; ".join([*(_text(one) for one in value[:_MAX_LISTED]), *more])
    return str(value)
