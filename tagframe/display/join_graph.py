"""The join graph: a plan as a picture."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tagframe.display.markup import LETTER, LINE, PAD, escaped, percent, short, svg, svg_text, width_of
from tagframe.display.results import Plan, Report, Step
from tagframe.errors import counted

_BEND_WIDTH = 40
"""The width in which a line bends to its height; after that it runs straight to the table, with its labels."""
_LABEL_WIDTH = 92
_GAP_Y = 22
DOUBTFUL_BELOW = 0.5
MARKS = {"many-to-one": "n:1", "one-to-one": "1:1", "one-to-many": "1:n", "many-to-many": "n:n"}


@dataclass
class _Box:
    """A table: its position and the key columns that it shows, in pixels."""

    title: str
    subtitle: str
    tooltip: str
    columns: list[str]
    bridge: bool
    depth: int
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0

    @property
    def header(self) -> float:
        """Height of what stands above the columns."""
        return LINE * (1 + bool(self.subtitle)) + PAD * 0.4

    @property
    def height(self) -> float:
        return self.header + LINE * len(self.columns) + PAD * 0.6

    @property
    def own_width(self) -> float:
        return 2 * PAD + LETTER * max(width_of(short(text)) for text in (self.title, self.subtitle, *self.columns))

    def line(self, column: str) -> float:
        """The height at which a column's line meets the box."""
        return self.y + self.header + LINE * (self.columns.index(column) + 0.5)


def join_graph(plan: Plan, report: Report | None = None) -> str:
    """The plan as SVG: tables as boxes with their key columns, steps as lines with cardinality and match share.

    Args:
        plan: the start table is on the left, the tables joined to it are on its right.
        report: of a merge along the plan. With it, each line shows the share of rows that matched; without it, the
            confidence in the key. Dashed lines are low-confidence keys; dashed boxes are bridge tables.
    """
    boxes = _boxes(plan)
    width, height = _position(boxes, plan.steps)
    shares = shares_of(plan, report)
    lines = [_lines(boxes, step, share) for step, share in zip(plan.steps, shares, strict=True)]
    title = f"Join plan: {', '.join(box.title for box in boxes.values())}"
    inner = "".join([*lines, *map(_box, boxes.values())])
    return svg(width, height, title, inner)


def _boxes(plan: Plan) -> dict[str, _Box]:
    depth = {plan.start: 0}
    columns: dict[str, dict[str, None]] = defaultdict(dict)
    for step in plan.steps:
        depth[step.table] = depth[step.base] + 1
        columns[step.base].update(dict.fromkeys(step.base_columns))
        columns[step.table].update(dict.fromkeys(step.columns))
    names = [source.called for source in plan.sources]
    several = len({source.database for source in plan.sources}) > 1
    boxes = {}
    for table in plan.tables:
        source = plan.source(table)
        title = source.called if names.count(source.called) == 1 else source.id
        own = source.name if source.role else ""
        rows = "" if source.rows is None else counted(source.rows, "row")
        database = source.database if several and title == source.called else ""
        bridge = "bridge" if source.bridge else ""
        stacked = counted(len(source.parts), "table") if source.parts else ""
        subtitle = ", ".join(part for part in (own, rows, stacked, bridge, database) if part)
        tooltip = f"{source.id}: {', '.join(source.columns)}"
        boxes[table] = _Box(title, subtitle, tooltip, list(columns[table]), source.bridge, depth[table])
    return boxes


def _position(boxes: dict[str, _Box], steps: Sequence[Step]) -> tuple[float, float]:
    """Give each table, with everything joined to it, a separate band, so that no lines cross; returns the picture's
    size.

    The tables joined to one stand to its right, in the order of the columns that they are joined on.
    """
    joined: dict[str, list[Step]] = defaultdict(list)
    for step in steps:
        joined[step.base].append(step)
    for table, nexts in joined.items():
        rank = {column: position for position, column in enumerate(boxes[table].columns)}
        nexts.sort(key=lambda step: sum(rank[column] for column in step.base_columns) / len(step.base_columns))
    band: dict[str, float] = {}
    inside: dict[str, float] = {}
    for table in reversed(boxes):
        inside[table] = sum(band[step.table] + _GAP_Y for step in joined[table]) - _GAP_Y
        band[table] = max(boxes[table].height, inside[table])
    start = next(iter(boxes))
    top = {start: 1.0}
    for table, box in boxes.items():
        box.y = top[table] + (band[table] - box.height) / 2
        y = top[table] + (band[table] - inside[table]) / 2
        for step in joined[table]:
            top[step.table] = y
            y += band[step.table] + _GAP_Y
    layers: dict[int, list[_Box]] = defaultdict(list)
    for box in boxes.values():
        layers[box.depth].append(box)
    x = 1.0
    for depth in sorted(layers):
        width = max(box.own_width for box in layers[depth])
        for box in layers[depth]:
            box.x, box.width = x, width
        x += width + _BEND_WIDTH + _LABEL_WIDTH
    return x - _BEND_WIDTH - _LABEL_WIDTH + 1, band[start] + 2


def _lines(boxes: dict[str, _Box], step: Step, share: str) -> str:
    """A step: one line for each pair of columns, labelled once."""
    left, right = boxes[step.base], boxes[step.table]
    doubtful = step.score < DOUBTFUL_BELOW
    dashes = ' stroke-dasharray="5 4"' if doubtful else ""
    mark = f"{'doubtful ' if doubtful else ''}{MARKS[step.cardinality]}"
    x1, x2 = left.x + left.width, right.x
    bend = x1 + _BEND_WIDTH
    middle = (x1 + bend) / 2
    heights = [(left.line(a), right.line(b)) for a, b in zip(step.base_columns, step.columns, strict=True)]
    paths = "".join(
        f'<path d="M{x1:.1f} {y1:.1f} C{middle:.1f} {y1:.1f} {middle:.1f} {y2:.1f} {bend:.1f} {y2:.1f} H{x2:.1f}" '
        f'fill="none" stroke="currentColor" stroke-opacity="0.6"{dashes}/>'
        for y1, y2 in heights
    )
    y = min(y2 for _, y2 in heights)
    reason = step.key.evidence.reason
    tooltip = f"{step} ({step.cardinality}, {percent(step.score)} sure{f'; {reason}' if reason else ''})"
    return (
        f"<g><title>{escaped(tooltip)}</title>{paths}"
        + svg_text(x2 - 5, y - 4, mark, anchor="end", size=11)
        + svg_text(x2 - 5, y + 12, share, anchor="end", size=11)
        + "</g>"
    )


def _box(box: _Box) -> str:
    dashes = ' stroke-dasharray="4 3"' if box.bridge else ""
    parts = [
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="5" '
        f'fill="currentColor" fill-opacity="0.05" stroke="currentColor" stroke-opacity="0.6"{dashes}/>',
        svg_text(box.x + PAD, box.y + LINE * 0.85, box.title, weight="bold"),
    ]
    if box.subtitle:
        parts.append(svg_text(box.x + PAD, box.y + LINE * 1.75, box.subtitle, size=11, opacity=0.7))
    if box.columns:
        y = box.y + box.header
        parts.append(
            f'<line x1="{box.x:.1f}" y1="{y:.1f}" x2="{box.x + box.width:.1f}" y2="{y:.1f}" stroke="currentColor" '
            f'stroke-opacity="0.3"/>'
        )
    parts += [svg_text(box.x + PAD, box.line(column) + 4, column) for column in box.columns]
    return f"<g><title>{escaped(box.tooltip)}</title>{''.join(parts)}</g>"


def shares_of(plan: Plan, report: Report | None) -> list[str]:
    """The label of each step's line: the share of rows that matched, or the confidence in the key."""
    matched = {} if report is None else {(step.left, step.right): step for step in report.steps}
    shares = []
    for step in plan.steps:
        done = matched.get((step.left, step.right))
        if done is None:
            shares.append(f"sure {percent(step.score)}")
        else:
            shares.append(f"match {percent(done.matched / done.rows_in)}" if done.rows_in else "no rows")
    return shares
