"""Pictures for notebooks: the join graph of a plan as inline SVG.

No script, no network, no fixed colours: lines and text take the colour of the page's text, so that the picture is
readable on light and dark themes alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tagframe.joins import JoinPlan, JoinStep, MergeReport

_LETTER = 7.3
"""Width of a letter in the fixed-width font, in pixels at 12 pixels' size."""
_LINE = 18
_PAD = 10
_GAP_X = 150
_GAP_Y = 22
_LONGEST = 28
_MARKS = {"many-to-one": ("n", "1"), "one-to-one": ("1", "1"), "one-to-many": ("1", "n"), "many-to-many": ("n", "n")}


@dataclass
class _Box:
    """A table: its place and the key columns that it shows, in pixels."""

    title: str
    columns: list[str]
    bridge: bool
    depth: int
    rows: int | None
    x: float = 0.0
    y: float = 0.0

    @property
    def subtitle(self) -> str:
        rows = "" if self.rows is None else f"{self.rows:,} rows"
        return ", ".join(part for part in (rows, "bridge" if self.bridge else "") if part)

    @property
    def width(self) -> float:
        longest = max(len(text) for text in (self.title, self.subtitle, *self.columns))
        return 2 * _PAD + _LETTER * min(longest, _LONGEST)

    @property
    def height(self) -> float:
        return _LINE * (len(self.columns) + 1 + bool(self.subtitle)) + _PAD

    def line(self, column: str) -> float:
        """The height at which a column's line meets the box."""
        return self.y + _LINE * (1 + bool(self.subtitle) + self.columns.index(column)) + _LINE * 0.75


def join_graph(plan: JoinPlan, report: MergeReport | None = None) -> str:
    """The plan as SVG: tables as boxes with their key columns, steps as lines with cardinality and match share.

    Args:
        plan: the start table stands on the left, what it references to its right.
        report: of a merge along the plan; with it, each line says what share of the rows matched, else how sure the
            key is. Dashed lines are keys that are less likely than not.
    """
    boxes = _boxes(plan)
    width, height = _place(boxes)
    order = list(boxes)
    shares = _shares(plan, report)
    lines = [_line(boxes, step, share) for step, share in zip(plan.steps, shares, strict=True)]
    parts = [_box(boxes[table]) for table in order]
    title = f"Join plan: {', '.join(boxes[table].title for table in order)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" role="img" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" style="max-width:100%;height:auto" color="currentColor" '
        f'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="12" fill="currentColor">'
        f"<title>{escape(title)}</title>{''.join(lines)}{''.join(parts)}</svg>"
    )


def _boxes(plan: JoinPlan) -> dict[str, _Box]:
    depth = {plan.start: 0}
    columns: dict[str, dict[str, None]] = defaultdict(dict)
    for step in plan.steps:
        depth[step.table] = depth[step.base] + 1
        columns[step.base].update(dict.fromkeys(step.base_columns))
        columns[step.table].update(dict.fromkeys(step.columns))
    names = [source.name for source in plan.sources]
    found = {}
    for table in plan.tables:
        source = plan.source(table)
        title = source.name if names.count(source.name) == 1 else source.id
        found[table] = _Box(title, list(columns[table]), source.bridge, depth[table], source.rows)
    return found


def _place(boxes: dict[str, _Box]) -> tuple[float, float]:
    """Put the boxes of one depth below each other, the depths from left to right; the picture's width and height."""
    layers: dict[int, list[_Box]] = defaultdict(list)
    for box in boxes.values():
        layers[box.depth].append(box)
    heights = {depth: sum(box.height + _GAP_Y for box in layer) - _GAP_Y for depth, layer in layers.items()}
    tallest = max(heights.values())
    x = 1.0
    for depth in sorted(layers):
        y = 1.0 + (tallest - heights[depth]) / 2
        for box in layers[depth]:
            box.x, box.y = x, y
            y += box.height + _GAP_Y
        x += max(box.width for box in layers[depth]) + _GAP_X
    return x - _GAP_X + 1, tallest + 2


def _shares(plan: JoinPlan, report: MergeReport | None) -> list[str]:
    if report is None or len(report.steps) != len(plan.steps):
        return [f"sure {step.score:.0%}" for step in plan.steps]
    return [f"match {step.matched / step.rows_in:.0%}" if step.rows_in else "no rows" for step in report.steps]


def _line(boxes: dict[str, _Box], step: JoinStep, share: str) -> str:
    left, right = boxes[step.base], boxes[step.table]
    x1, x2 = left.x + left.width, right.x
    y1 = sum(map(left.line, step.base_columns)) / len(step.base_columns)
    y2 = sum(map(right.line, step.columns)) / len(step.columns)
    bend = (x2 - x1) / 2
    near, far = _MARKS[step.cardinality]
    dashes = ' stroke-dasharray="5 4"' if step.score < 0.5 else ""
    return (
        f"<g><title>{escape(f'{step}: {step.key.evidence.reason}')}</title>"
        f'<path d="M{x1:.1f} {y1:.1f} C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}" '
        f'fill="none" stroke="currentColor" stroke-opacity="0.6"{dashes}/>'
        + _text(x1 + 5, y1 - 4, near)
        # On the side of the line that it does not come from.
        + _text(x2 - 5, y2 + (13 if y1 < y2 - _LINE / 4 else -4), f"{share} · {far}", anchor="end")
        + "</g>"
    )


def _box(box: _Box) -> str:
    dashes = ' stroke-dasharray="4 3"' if box.bridge else ""
    header = _LINE * (1 + bool(box.subtitle)) + _PAD * 0.4
    parts = [
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="5" '
        f'fill="currentColor" fill-opacity="0.05" stroke="currentColor" stroke-opacity="0.6"{dashes}/>',
        _text(box.x + _PAD, box.y + _LINE * 0.85, box.title, weight="bold"),
    ]
    if box.subtitle:
        parts.append(_text(box.x + _PAD, box.y + _LINE * 1.7, box.subtitle, size=11, opacity=0.7))
    if box.columns:
        y = box.y + header
        parts.append(
            f'<line x1="{box.x:.1f}" y1="{y:.1f}" x2="{box.x + box.width:.1f}" y2="{y:.1f}" stroke="currentColor" '
            f'stroke-opacity="0.3"/>'
        )
    parts += [_text(box.x + _PAD, box.line(column) + 4, column) for column in box.columns]
    return f"<g>{''.join(parts)}</g>"


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    size: int = 12,
    weight: str = "normal",
    opacity: float = 1.0,
) -> str:
    shown = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    more = f' text-anchor="{anchor}"' if anchor != "start" else ""
    more += f' font-size="{size}"' if size != 12 else ""
    more += f' font-weight="{weight}"' if weight != "normal" else ""
    more += f' fill-opacity="{opacity}"' if opacity != 1.0 else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{escape(shown)}</text>'


def alternatives_list(plans: Sequence[JoinPlan]) -> str:
    """Other plans as an HTML list, best first; "" for none."""
    if not plans:
        return ""
    items = "".join(
        f"<li>{escape('; '.join(str(step) for step in plan.steps))} ({plan.score:.2f})</li>" for plan in plans
    )
    return f"<details><summary>{len(plans)} other ways to join</summary><ul>{items}</ul></details>"
