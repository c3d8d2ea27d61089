"""What became of the rows of an operator, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tagframe.display.markup import LETTER, escaped, page, percent, small, svg, svg_text, table
from tagframe.errors import counted

if TYPE_CHECKING:
    import pandas as pd

_MAX_REASONS = 10
_SHADES = {
    **dict.fromkeys(("yes", "kept", "answered", "joined"), 0.7),
    "cut": 0.4,
    "unsure": 0.3,
    **dict.fromkeys(("no", "left out", "lone"), 0.15),
    **dict.fromkeys(("null", "not asked"), 0.0),
    "failed": -1.0,
}
"""How dark each outcome is in the bar; failed ones are hatched."""
_BAR_WIDTH, _BAR_HEIGHT = 560.0, 22.0
_MIN_WIDTH = 6.0
"""The least width of an outcome in pixels, so that one row of a million is visible."""


def outcomes_html(outcomes: pd.DataFrame, rows_html: str, remarks: Sequence[str] = ()) -> str:
    """What became of each row in a notebook: a bar of the outcomes, why rows failed, and the rows.

    Args:
        outcomes: a row for each row of an operator's input, with the columns ``outcome`` and ``error``.
        rows_html: these rows, as pandas shows a frame.
        remarks: sentences on the operator as a whole.
    """
    numbers = outcomes["outcome"].value_counts()
    counts = {kind: int(numbers[kind]) for kind in _SHADES if kind in numbers}
    parts = []
    if counts:
        summary = ", ".join(f"{count:,} {kind} ({percent(count / len(outcomes))})" for kind, count in counts.items())
        parts = [f'<div style="padding:6px 0">{_bar(counts)}</div>', f"<p>{escaped(summary)}</p>"]
    parts += [small(escaped(remark)) for remark in remarks]
    reasons: dict[str, list[str]] = {}
    for label, error in outcomes.loc[outcomes["error"].notna(), "error"].items():
        reasons.setdefault(str(error), []).append(str(label))
    if reasons:
        rows = [[f"{len(labels):,}", escaped(labels[0]), escaped(error)] for error, labels in reasons.items()]
        parts.append(table(["rows", "first", "why they failed"], rows[:_MAX_REASONS], words={"why they failed"}))
        parts += [small(f"and {len(rows) - _MAX_REASONS:,} other reasons")] if len(rows) > _MAX_REASONS else []
    parts.append(f"<details><summary>{counted(len(outcomes), 'row')}</summary>{rows_html}</details>")
    return page("".join(parts))


def _bar(counts: dict[str, int]) -> str:
    """The outcomes as parts of one bar, each wide enough to be visible."""
    total = sum(counts.values())
    widths = {
        kind: _MIN_WIDTH + (_BAR_WIDTH - _MIN_WIDTH * len(counts)) * count / total for kind, count in counts.items()
    }
    x, drawn = 1.0, []
    for kind, width in widths.items():
        shade = _SHADES[kind]
        fill = 'fill="url(#tagframe-failed)"' if shade < 0 else f'fill="currentColor" fill-opacity="{shade}"'
        drawn.append(
            f"<g><title>{escaped(kind)}: {counts[kind]:,}</title>"
            f'<rect x="{x:.1f}" y="1" width="{width:.1f}" height="{_BAR_HEIGHT}" {fill} '
            f'stroke="currentColor" stroke-opacity="0.6"/></g>'
        )
        if width > LETTER * (len(kind) + 2):
            drawn.append(svg_text(x + 4, _BAR_HEIGHT + 15, kind, size=11))
        x += width
    hatch = (
        '<defs><pattern id="tagframe-failed" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><path d="M0 0 V6" stroke="currentColor" stroke-width="3"/></pattern></defs>'
    )
    return svg(
        _BAR_WIDTH + 2, _BAR_HEIGHT + 20, f"Outcomes of {counted(total, 'row')}", hatch + "".join(drawn), least=0.5
    )
