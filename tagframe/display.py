"""What results look like: in a notebook HTML with the join graph as inline SVG, in a terminal the join tree as text.

No script, no network, no fixed colours: lines and text take the colour of the page's text, so that they are readable
on light and dark themes alike. The functions are called with results and import none of their classes.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tagframe.joins import JoinPlan, JoinStep
    from tagframe.merging import MergeReport
    from tagframe.retrieval import RetrievedTables

# Sizes in pixels, for the fixed-width font at 12 pixels' size.
_LETTER = 7.3
_LINE = 18
_PAD = 10
_BEND = 40
"""The width in which a line finds its height; from there it runs straight, with its labels, to the table."""
_LABEL = 92
_GAP_Y = 22
_LONGEST = 28
"""Letters of a name that are shown; the whole of it is in the tooltip."""
_DOUBTFUL = 0.5
_MARKS = {"many-to-one": "n:1", "one-to-one": "1:1", "one-to-many": "1:n", "many-to-many": "n:n"}
_TEXT_WIDTH = 120
_LONGEST_QUESTION = 300


# --- the join graph ---------------------------------------------------------------------------------------------------


@dataclass
class _Box:
    """A table: its place and the key columns that it shows, in pixels."""

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
        return _LINE * (1 + bool(self.subtitle)) + _PAD * 0.4

    @property
    def height(self) -> float:
        return self.header + _LINE * len(self.columns) + _PAD * 0.6

    @property
    def own_width(self) -> float:
        return 2 * _PAD + _LETTER * max(_width(_short(text)) for text in (self.title, self.subtitle, *self.columns))

    def line(self, column: str) -> float:
        """The height at which a column's line meets the box."""
        return self.y + self.header + _LINE * (self.columns.index(column) + 0.5)


def join_graph(plan: JoinPlan, report: MergeReport | None = None, *, beside: JoinPlan | None = None) -> str:
    """The plan as SVG: tables as boxes with their key columns, steps as lines with cardinality and match share.

    Args:
        plan: the start table stands on the left, what is joined to it on its right.
        report: of a merge along the plan; with it, each line says what share of the rows matched, else how sure the
            key is. Dashed lines are keys that are less likely than not, dashed boxes bridge tables.
        beside: another plan over the same tables; the lines that it does not have are drawn heavy.
    """
    boxes = _boxes(plan)
    width, height = _place(boxes, plan.steps)
    shares = _shares(plan, report)
    known = {step.key for step in plan.steps} if beside is None else {step.key for step in beside.steps}
    lines = [
        _lines(boxes, step, share, heavy=step.key not in known) for step, share in zip(plan.steps, shares, strict=True)
    ]
    title = f"Join plan: {', '.join(box.title for box in boxes.values())}"
    inner = "".join([*lines, *map(_box, boxes.values())])
    # A wide graph shrinks to the page as long as it can be read; then it scrolls.
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" role="img" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" '
        f'style="max-width:100%;min-width:{0.75 * width:.0f}px;height:auto" color="currentColor" '
        f'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="12" '
        f'fill="currentColor"><title>{_escaped(title)}</title>{inner}</svg>'
    )


def _boxes(plan: JoinPlan) -> dict[str, _Box]:
    depth = {plan.start: 0}
    columns: dict[str, dict[str, None]] = defaultdict(dict)
    for step in plan.steps:
        depth[step.table] = depth[step.base] + 1
        columns[step.base].update(dict.fromkeys(step.base_columns))
        columns[step.table].update(dict.fromkeys(step.columns))
    names = [source.name for source in plan.sources]
    several = len({source.database for source in plan.sources}) > 1
    found = {}
    for table in plan.tables:
        source = plan.source(table)
        title = source.name if names.count(source.name) == 1 else source.id
        rows = "" if source.rows is None else f"{source.rows:,} rows"
        database = source.database if several and title == source.name else ""
        bridge = "bridge" if source.bridge else ""
        stacked = f"{len(source.parts)} tables" if source.parts else ""
        subtitle = ", ".join(part for part in (rows, stacked, bridge, database) if part)
        tooltip = f"{source.id}: {', '.join(source.columns)}"
        found[table] = _Box(title, subtitle, tooltip, list(columns[table]), source.bridge, depth[table])
    return found


def _place(boxes: dict[str, _Box], steps: Sequence[JoinStep]) -> tuple[float, float]:
    """Give each table a band of its own with all that is joined to it, so that no lines cross; the picture's size.

    The tables joined to one stand to its right, in the order of the columns that they are joined on.
    """
    joined: dict[str, list[JoinStep]] = defaultdict(list)
    for step in steps:
        joined[step.base].append(step)
    for table, nexts in joined.items():
        rank = {column: place for place, column in enumerate(boxes[table].columns)}
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
        x += width + _BEND + _LABEL
    return x - _BEND - _LABEL + 1, band[start] + 2


def _shares(plan: JoinPlan, report: MergeReport | None) -> list[str]:
    matched = {} if report is None else {(step.left, step.right): step for step in report.steps}
    shares = []
    for step in plan.steps:
        done = matched.get((step.left, step.right))
        if done is None:
            shares.append(f"sure {_percent(step.score)}")
        else:
            shares.append(f"match {_percent(done.matched / done.rows_in)}" if done.rows_in else "no rows")
    return shares


def _lines(boxes: dict[str, _Box], step: JoinStep, share: str, *, heavy: bool = False) -> str:
    """A step: one line for each pair of columns, labelled once."""
    left, right = boxes[step.base], boxes[step.table]
    doubtful = step.score < _DOUBTFUL
    dashes = ' stroke-dasharray="5 4"' if doubtful else ""
    stroke = 'stroke-opacity="1" stroke-width="2.5"' if heavy else 'stroke-opacity="0.6"'
    weight = "bold" if heavy else "normal"
    mark = f"{'doubtful ' if doubtful else ''}{_MARKS[step.cardinality]}"
    x1, x2 = left.x + left.width, right.x
    bend = x1 + _BEND
    middle = (x1 + bend) / 2
    heights = [(left.line(a), right.line(b)) for a, b in zip(step.base_columns, step.columns, strict=True)]
    paths = "".join(
        f'<path d="M{x1:.1f} {y1:.1f} C{middle:.1f} {y1:.1f} {middle:.1f} {y2:.1f} {bend:.1f} {y2:.1f} H{x2:.1f}" '
        f'fill="none" stroke="currentColor" {stroke}{dashes}/>'
        for y1, y2 in heights
    )
    y = min(y2 for _, y2 in heights)
    reason = step.key.evidence.reason
    tooltip = f"{step} ({step.cardinality}, {_percent(step.score)} sure{f'; {reason}' if reason else ''})"
    return (
        f"<g><title>{_escaped(tooltip)}</title>{paths}"
        + _text(x2 - 5, y - 4, mark, anchor="end", size=11, weight=weight)
        + _text(x2 - 5, y + 12, share, anchor="end", size=11, weight=weight)
        + "</g>"
    )


def _box(box: _Box) -> str:
    dashes = ' stroke-dasharray="4 3"' if box.bridge else ""
    parts = [
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="5" '
        f'fill="currentColor" fill-opacity="0.05" stroke="currentColor" stroke-opacity="0.6"{dashes}/>',
        _text(box.x + _PAD, box.y + _LINE * 0.85, box.title, weight="bold"),
    ]
    if box.subtitle:
        parts.append(_text(box.x + _PAD, box.y + _LINE * 1.75, box.subtitle, size=11, opacity=0.7))
    if box.columns:
        y = box.y + box.header
        parts.append(
            f'<line x1="{box.x:.1f}" y1="{y:.1f}" x2="{box.x + box.width:.1f}" y2="{y:.1f}" stroke="currentColor" '
            f'stroke-opacity="0.3"/>'
        )
    parts += [_text(box.x + _PAD, box.line(column) + 4, column) for column in box.columns]
    return f"<g><title>{_escaped(box.tooltip)}</title>{''.join(parts)}</g>"


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
    more = f' text-anchor="{anchor}"' if anchor != "start" else ""
    more += f' font-size="{size}"' if size != 12 else ""
    more += f' font-weight="{weight}"' if weight != "normal" else ""
    more += f' fill-opacity="{opacity}"' if opacity != 1.0 else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{_escaped(_short(text))}</text>'


# --- HTML -------------------------------------------------------------------------------------------------------------


def plan_html(plan: JoinPlan, report: MergeReport | None = None) -> str:
    """A plan in a notebook: its graph, what the graph's signs mean, and the other ways to join."""
    return _page(_plan(plan, report))


def report_html(report: MergeReport) -> str:
    """A merge report in a notebook: its plan's graph, a row a step, and a sentence where rows were lost or changed."""
    graph = _plan(report.plan, report) if report.plan is not None and report.plan.steps else ""
    return _page(graph + _report(report))


def found_html(found: RetrievedTables, plan: JoinPlan | None, apart: str = "") -> str:
    """Retrieved tables in a notebook: the ranking with reasons, and how they join.

    Args:
        found: what was retrieved.
        plan: how the tables join, or None where they do not.
        apart: why they do not join.
    """
    parts = [f"<p>{_escaped(_headline(found))}</p>"]
    if found.tables:
        chances = any(hit.probability is not None for hit in found.tables)
        scores = _scores_tell(found)
        rows = []
        for rank, hit in enumerate(found.tables, start=1):
            cells = [str(rank), f"<b>{_escaped(hit.id)}</b>"]
            cells += [f"{hit.score:.3f}"] if scores else []
            cells += ["" if hit.probability is None else _percent(hit.probability)] if chances else []
            rows.append([*cells, "<br>".join(_escaped(reason) for reason in hit.reasons)])
        names = ["", "table", *(["score"] if scores else []), *(["chance"] if chances else []), "why"]
        parts.append(_table(names, rows, words={"table", "why"}))
    if found.note:
        parts.append(_small(found.note))
    if plan is not None and plan.steps:
        parts.append(_plan(plan, None))
    elif apart:
        parts.append(f"<p>{_escaped(apart)}</p>")
    return _page("".join(parts))


def _page(inner: str) -> str:
    # The classes keep MathJax from reading a column name with dollar signs as a formula.
    return f'<div class="tex2jax_ignore mathjax_ignore" style="overflow-x:auto">{inner}</div>'


def _plan(plan: JoinPlan, report: MergeReport | None) -> str:
    graph = f'<div style="padding:12px 0 6px">{join_graph(plan, report)}</div>'
    return graph + _legend(plan, report) + _alternatives(plan)


def _legend(plan: JoinPlan, report: MergeReport | None) -> str:
    if not plan.steps:
        return ""
    shares = {share.split()[0] for share in _shares(plan, report)}
    signs = ["n:1 is many-to-one, read from left to right"]
    if "match" in shares:
        signs.append("match: the share of rows that have a partner")
    if "sure" in shares:
        signs.append("sure: how sure the key is")
    if any(step.score < _DOUBTFUL for step in plan.steps):
        signs.append("dashed line: the key is less likely than not")
    if plan.bridges:
        signs.append("dashed box: a table that only connects the others")
    return _small("; ".join(signs))


def _alternatives(plan: JoinPlan) -> str:
    if not plan.alternatives:
        return ""
    figures = "".join(
        f'<figure style="margin:14px 0 0"><figcaption style="padding-bottom:6px">{_escaped(text)}</figcaption>'
        f"{join_graph(other, beside=plan)}</figure>"
        for other, text in zip(plan.alternatives, alternative_lines(plan), strict=True)
    )
    legend = _small("heavy line: where it is not the way above; plan.use(…) takes a join that is written as here")
    return f"<details><summary>{_other_ways(plan)}</summary>{legend}{figures}</details>"


def _report(report: MergeReport) -> str:
    names = ["join", "rows in", "matched", "no partner", "null keys", "coerced", "fan-out", "unused", "rows out"]
    rows = []
    for step in report.steps:
        counts = [step.rows_in, step.matched, step.unmatched_left, step.null_keys, step.coerced]
        cells = [_escaped(f"{step.left} = {step.right}"), *(f"{count:,}" for count in counts)]
        rows.append([*cells, f"{step.fan_out:.2f}", f"{step.unmatched_right:,}", f"{step.rows_out:,}"])
    stacked = "".join(f"<p>{_escaped(text)}</p>" for text in report.stacked)
    troubles = [f"{step.left} = {step.right}: {'; '.join(step.troubles)}." for step in report.steps if step.troubles]
    told = "".join(f"<li>{_escaped(text)}</li>" for text in [*troubles, *report.doubts])
    steps = _table(names, rows, words={"join"}) if rows else ""
    sentences = f"<ul>{told}</ul>" if told else ""
    return f"{stacked}<p>{_escaped(report.heading)}</p>{steps}{sentences}<p>{_escaped(report.ending)}</p>"


def _table(names: Sequence[str], rows: Iterable[Sequence[str]], words: set[str]) -> str:
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


def _small(text: str) -> str:
    return f'<p style="font-size:90%;opacity:0.75">{_escaped(text)}</p>'


# --- text -------------------------------------------------------------------------------------------------------------


def join_tree(plan: JoinPlan) -> str:
    """The plan as a tree of text, the start table at its root; a line for each step."""
    joined: dict[str, list[JoinStep]] = defaultdict(list)
    for step in plan.steps:
        joined[step.base].append(step)
    lines = [plan.start]
    waiting = [(step, "", step is joined[plan.start][-1]) for step in reversed(joined[plan.start])]
    while waiting:
        step, indent, last = waiting.pop()
        bridge = ", bridge" if step.table in plan.bridges else ""
        lines.append(f"{indent}{'└─' if last else '├─'} {step}  ({step.cardinality}, {step.score:.2f}{bridge})")
        below = joined[step.table]
        waiting += [(other, indent + ("   " if last else "│  "), other is below[-1]) for other in reversed(below)]
    return "\n".join(lines)


def alternative_lines(plan: JoinPlan) -> list[str]:
    """Each other plan in a line: the steps that it has instead of the plan's own, its score, and whether it ties.

    The database is left out where all tables are of one: :meth:`JoinPlan.use` needs it no more than a reader.
    """
    databases = {source.database for source in plan.sources}
    prefix = f"{databases.pop()}." if len(databases) == 1 else ""

    def named(steps: Sequence[JoinStep]) -> str:
        return " and ".join(f"{step.left.removeprefix(prefix)} = {step.right.removeprefix(prefix)}" for step in steps)

    lines = []
    for other in plan.alternatives:
        mine, theirs = [[step.key for step in one.steps] for one in (plan, other)]
        new = [step for step in other.steps if step.key not in mine]
        old = [step for step in plan.steps if step.key not in theirs]
        instead = f" instead of {named(old)}" if old else ""
        as_sure = ", as sure" if other in plan.ambiguous else ""
        lines.append(f"{named(new or other.steps)}{instead} ({other.score:.2f}{as_sure})")
    return lines


def plan_text(plan: JoinPlan) -> str:
    """A plan in a terminal: the join tree, and the other ways to join."""
    through = f", through {', '.join(plan.bridges)}" if plan.bridges else ""
    lines = [f"JoinPlan of {len(plan.tables)} table{'s' * (len(plan.tables) != 1)}{through}:"]
    lines += [f"  {line}" for line in join_tree(plan).split("\n")]
    if plan.alternatives:
        lines += [f"{_other_ways(plan)}:", *(f"  {line}" for line in alternative_lines(plan))]
    return "\n".join(lines)


def found_text(found: RetrievedTables, plan: JoinPlan | None) -> str:
    """Retrieved tables in a terminal: the ranking with reasons, and the join tree."""
    lines = [_headline(found)]
    width = max((len(hit.id) for hit in found.tables), default=0)
    scores = _scores_tell(found)
    for rank, hit in enumerate(found.tables, start=1):
        score = f"  {hit.score:.3f}" if scores else ""
        chance = "" if hit.probability is None else f"  {_percent(hit.probability):>4}"
        lines.append(f"{rank:>3}. {hit.id:<{width}}{score}{chance}")
        lines += _filled(hit.reasons, indent=7)
    if plan is not None and plan.steps:
        lines += ["joined on", *(f"     {line}" for line in join_tree(plan).split("\n"))]
        if plan.alternatives:
            lines.append(f"     ({_other_ways(plan)}: see .join_plan.alternatives)")
    elif len(found.ids) > 1:
        lines.append("no key pairs connect them")
    if found.note:
        lines.append(f"({found.note})")
    return "\n".join(lines)


def _filled(reasons: Sequence[str], indent: int) -> list[str]:
    """As many reasons to a line as it has room for; lines break between them."""
    whole = "; ".join(reason.replace(" ", "\xa0") for reason in reasons)
    lines = textwrap.wrap(whole, _TEXT_WIDTH - indent, break_long_words=False, break_on_hyphens=False)
    return [" " * indent + line.replace("\xa0", " ") for line in lines]


def _other_ways(plan: JoinPlan) -> str:
    count = len(plan.alternatives)
    return "1 other way to join" if count == 1 else f"{count} other ways to join"


def _headline(found: RetrievedTables) -> str:
    count = len(found.tables)
    together = "" if found.anchor is None else f", together with {found.anchor}"
    asked = found.question if len(found.question) <= _LONGEST_QUESTION else f"{found.question[:_LONGEST_QUESTION]}…"
    return f"{count} table{'s' * (count != 1)} for {asked!r}{together}"


def _scores_tell(found: RetrievedTables) -> bool:
    """Whether the scores say more than the probabilities."""
    return any(hit.probability is None or abs(hit.score - hit.probability) > 1e-6 for hit in found.tables)


def _percent(share: float) -> str:
    """Rounded, but 100% is all and 0% is none."""
    if 0 < share < 0.005:
        return "<1%"
    return ">99%" if 0.995 <= share < 1 else f"{share:.0%}"


def _short(text: str) -> str:
    """As much of a text as a box has room for."""
    shown, used = "", 0
    for letter in text:
        used += _width(letter)
        if used > _LONGEST - 1 and len(shown) + 1 < len(text):
            return f"{shown}…"
        shown += letter
    return shown


def _width(text: str) -> int:
    """In letters of a fixed-width font; Chinese, Japanese and Korean ones count twice."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _escaped(text: str) -> str:
    """Safe in HTML and in XML, which has no room for control characters and half surrogates."""
    return escape("".join(letter if letter.isprintable() else " " for letter in text))
