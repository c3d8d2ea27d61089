"""Pieces of text, HTML and SVG that every view is made of, and the display of small results."""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

WIDTH = 80
"""Text is wrapped to this many columns."""
_MAX_LISTED = 20
# Sizes in pixels, for the fixed-width font at 12 pixels' size.
LETTER = 7.3
LINE = 18
PAD = 10
_MAX_NAME_LETTERS = 28
"""How many letters of a name are shown; the tooltip has the whole name."""


def page(inner: str) -> str:
    """A whole view."""
    # The classes keep MathJax from reading a column name with dollar signs as a formula.
    return f'<div class="tex2jax_ignore mathjax_ignore" style="overflow-x:auto">{inner}</div>'


def table(names: Sequence[str], rows: Iterable[Sequence[str]], words: set[str]) -> str:
    """Cells are HTML; columns in ``words`` hold text, the others numbers."""
    aligned = ["text-align:left;overflow-wrap:anywhere" if name in words else "text-align:right" for name in names]
    head = "".join(f'<th style="{style}">{name}</th>' for style, name in zip(aligned, names, strict=True))
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{style};vertical-align:top">{cell}</td>' for style, cell in zip(aligned, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def small(text: str) -> str:
    """A remark."""
    return f'<p style="font-size:90%;opacity:0.75">{escaped(text)}</p>'


def svg(width: float, height: float, title: str, inner: str, *, least: float = 0.75) -> str:
    """A picture in the colour of the page's text.

    A wide picture shrinks to the page, but not below ``least`` of its width, where it would be unreadable: then it
    scrolls.
    """
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" role="img" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" '
        f'style="max-width:100%;min-width:{least * width:.0f}px;height:auto" color="currentColor" '
        f'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="12" '
        f'fill="currentColor"><title>{escaped(title)}</title>{inner}</svg>'
    )


def svg_text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    size: int = 12,
    weight: str = "normal",
    opacity: float = 1.0,
) -> str:
    """A text in a picture, cut to the room of a box."""
    more = f' text-anchor="{anchor}"' if anchor != "start" else ""
    more += f' font-size="{size}"' if size != 12 else ""
    more += f' font-weight="{weight}"' if weight != "normal" else ""
    more += f' fill-opacity="{opacity}"' if opacity != 1.0 else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{escaped(short(text))}</text>'


def percent(share: float) -> str:
    """A share as a rounded percentage; only 1 is 100%, and only 0 is 0%."""
    if 0 < share < 0.005:
        return "<1%"
    return ">99%" if 0.995 <= share < 1 else f"{share:.0%}"


def short(text: str) -> str:
    """A text cut to the room of a box."""
    cut, used = "", 0
    for letter in text:
        used += width_of(letter)
        if used > _MAX_NAME_LETTERS - 1 and len(cut) + 1 < len(text):
            return f"{cut}…"
        cut += letter
    return cut


def width_of(text: str) -> int:
    """The width of a text in letters of a fixed-width font; Chinese, Japanese and Korean letters count twice."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def escaped(text: str) -> str:
    """A text escaped for HTML and XML, without control characters and lone surrogates, which XML forbids."""
    return escape("".join(letter if letter.isprintable() else " " for letter in text))


def size_text(size: int) -> str:
    """A size for a reader.

    >>> size_text(900), size_text(45_000), size_text(1_234_567)
    ('900 bytes', '45.0 kB', '1.2 MB')
    """
    if size < 1_000:
        return f"{size} bytes"
    return f"{size / 1e3:,.1f} kB" if size < 1_000_000 else f"{size / 1e6:,.1f} MB"


def fitted(text: str, width: int = WIDTH) -> str:
    """The text with longer lines broken at spaces; continuation lines are indented.

    The lines of a tree are continued. A word that is longer than a line is broken, too.

    >>> print(fitted("├─ orders.buyer = customers.id  (many-to-one, 0.95)", 36))
    ├─ orders.buyer = customers.id
    │    (many-to-one, 0.95)
    """
    return "\n".join(part for line in text.split("\n") for part in _broken(line, width))


_WORD = re.compile(r"( *)(\([^()]{,40}\)[^ ]*|[^ ]+)")
"""White space and a word, or a short remark in brackets."""
_TREE = str.maketrans("├└─", "│  ")


def _broken(line: str, width: int) -> Iterator[str]:
    if width_of(line) <= width:
        yield line
        return
    begins = re.match(r"[ │├└─]*(?:\d+\. )?", line)[0]  # type: ignore[index]  # it matches nothing, too
    goes_on = re.sub(r"[^│]", " ", begins.translate(_TREE)) + "  "
    if len(goes_on) > width / 2:
        begins, line, goes_on = "", line.strip(), "  "
    part, empty = begins, True
    for space, word in _WORD.findall(line[len(begins) :]):
        if not empty and width_of(part + space + word) > width:
            yield part
            part, empty, space = goes_on, True, ""
        empty = False
        if width_of(part + space + word) <= width:
            part += space + word
            continue
        for letter in space + word:
            if width_of(part + letter) > width:
                yield part
                part = goes_on
            part += letter
    yield part


# --- small results: a sentence, and in a notebook also a table of their fields ---------------------------------------


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
