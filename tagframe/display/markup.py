"""Pieces of HTML and SVG that every view is made of."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from html import escape

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
