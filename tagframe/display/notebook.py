"""Results in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tagframe.display.join_graph import DOUBTFUL_BELOW, MARKS, join_graph, shares_of
from tagframe.display.markup import LETTER, escaped, page, percent, small, svg, svg_text, table
from tagframe.display.results import Answered, Plan, Report, Retrieved
from tagframe.display.terminal import alternative_lines, headline, left_out_lines, other_ways, scores_differ, stages_of
from tagframe.errors import counted

if TYPE_CHECKING:
    import pandas as pd


def plan_html(plan: Plan) -> str:
    """A plan in a notebook: its graph, what the graph's signs mean, and the other ways to join."""
    return page(_plan(plan))


def report_html(report: Report) -> str:
    """A merge report in a notebook: its plan's graph, one row per step, and a sentence if rows were lost or changed."""
    graph = _plan(report.plan, report) if report.plan is not None and report.plan.steps else ""
    return page(graph + _report(report))


def retrieved_html(retrieved: Retrieved, plan: Plan | None, apart: str = "") -> str:
    """Retrieved tables in a notebook: the ranking with reasons, and how they join.

    Args:
        retrieved: what was retrieved.
        plan: how the tables join, or None where they do not.
        apart: why they do not join.
    """
    parts = [f"<p>{escaped(headline(retrieved))}</p>"]
    if retrieved.tables:
        chances = any(hit.probability is not None for hit in retrieved.tables)
        scores = scores_differ(retrieved)
        rows = []
        for rank, hit in enumerate(retrieved.tables, start=1):
            cells = [str(rank), f"<b>{escaped(hit.label)}</b>"]
            cells += [f"{hit.score:.3f}"] if scores else []
            chance = "" if hit.probability is None else percent(hit.probability)
            cells += [f"{chance}{', doubtful' * hit.doubtful}"] if chances else []
            rows.append([*cells, "<br>".join(escaped(reason) for reason in hit.reasons)])
        names = ["", "table", *(["score"] if scores else []), *(["chance"] if chances else []), "why"]
        parts.append(table(names, rows, words={"table", "why"}))
    if retrieved.note:
        parts.append(small(retrieved.note))
    if plan is not None and (plan.steps or plan.left_out):
        parts.append(_plan(plan))
    elif apart:
        parts.append(f"<p>{escaped(apart)}</p>")
    return page("".join(parts))


_CARDINALITIES = {
    "many-to-one": "several rows on the left can share one row on the right",
    "one-to-one": "each row has at most one partner",
    "one-to-many": "a row on the left can have several partners, and is then repeated",
    "many-to-many": "rows on both sides can have several partners, and are then repeated",
}


def _plan(plan: Plan, report: Report | None = None) -> str:
    graph = f'<div style="padding:12px 0 6px">{join_graph(plan, report)}</div>'
    return graph + _legend(plan, report) + _alternatives(plan)


def _legend(plan: Plan, report: Report | None) -> str:
    if not plan.steps:
        return "".join(small(line) for line in left_out_lines(plan))
    shares = {share.split()[0] for share in shares_of(plan, report)}
    there = {step.cardinality for step in plan.steps}
    signs = [f"{MARKS[kind]}: {meaning}" for kind, meaning in _CARDINALITIES.items() if kind in there]
    if "match" in shares:
        signs.append("match: the share of rows that have a partner")
    if "sure" in shares:
        signs.append("sure: the confidence in the key")
    if any(step.score < DOUBTFUL_BELOW for step in plan.steps):
        signs.append("dashed line: low-confidence key")
    if plan.bridges:
        signs.append("dashed box: a table that only connects the others")
    return small("; ".join(signs)) + "".join(small(line) for line in left_out_lines(plan))


def _alternatives(plan: Plan) -> str:
    if not plan.alternatives:
        return ""
    items = "".join(f"<li>{escaped(text)}</li>" for text in alternative_lines(plan))
    legend = small("plan.use(…) selects a join by the text shown here")
    return f"<details><summary>{other_ways(plan)}</summary>{legend}<ul>{items}</ul></details>"


def _report(report: Report) -> str:
    names = ["join", "rows in", "matched", "no partner", "null keys", "coerced", "fan-out", "unused", "rows out"]
    rows = []
    for step in report.steps:
        counts = [step.rows_in, step.matched, step.unmatched_left, step.null_keys, step.coerced]
        cells = [escaped(f"{step.left} = {step.right}"), *(f"{count:,}" for count in counts)]
        rows.append([*cells, f"{step.fan_out:.2f}", f"{step.unmatched_right:,}", f"{step.rows_out:,}"])
    preface = "".join(f"<p>{escaped(text)}</p>" for text in report.preface)
    troubles = [f"{step.left} = {step.right}: {'; '.join(step.troubles)}." for step in report.steps if step.troubles]
    items = "".join(f"<li>{escaped(text)}</li>" for text in [*troubles, *report.doubts])
    steps = table(names, rows, words={"join"}) if rows else ""
    sentences = f"<ul>{items}</ul>" if items else ""
    return f"{preface}<p>{escaped(report.heading)}</p>{steps}{sentences}<p>{escaped(report.ending)}</p>"


# --- the rows of an operator -----------------------------------------------------------------------------------------


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


# --- an answer -------------------------------------------------------------------------------------------------------


_MAX_ROWS = 10
_MAX_OTHER_ROWS = 5


def answer_html(answer: Answered, plan: Plan | None) -> str:
    """An answer in a notebook: the text, the query, the rows, and how its tables join.

    Args:
        answer: what is shown.
        plan: how the tables of its query join, or None if there are fewer than two tables.
    """
    parts = [f'<p style="white-space:pre-wrap"><b>{escaped_lines(answer.text)}</b></p>']
    parts += [f"<p>values: <code>{escaped(repr(answer.values))}</code></p>"] if answer.values else []
    if answer.verified:
        parts.append(f"<p>answered by a verified statement of {escaped(answer.verified)}</p>")
    parts += [f"<p>assumed: {escaped(one)}</p>" for one in answer.assumptions]
    parts += [part for one in answer.doubts for part in _doubt(one)]
    parts.append(_statement(str(answer.query)))
    parts += [small(line) for line in stages_of(answer)]
    parts.append(_rows(answer.rows, _MAX_ROWS))
    cut = "" if len(answer.rows) <= _MAX_ROWS else f", the first {_MAX_ROWS} are shown"
    parts.append(small(answer.made_of + cut))
    if plan is not None and plan.steps:
        parts.append(f'<div style="padding:12px 0 6px">{join_graph(plan)}</div>')
    parts.append(small("; ".join(map(str, answer.steps))))
    return page("".join(parts))


def _doubt(doubt: Any) -> list[str]:
    """A doubt; with the other statement and its rows, if it has one."""
    facts = f"<p>doubt: {escaped(str(doubt))}</p>"
    return [facts] if doubt.rows is None else [facts, _statement(doubt.statement), _rows(doubt.rows, _MAX_OTHER_ROWS)]


def _statement(sql: str) -> str:
    return f'<pre style="white-space:pre-wrap">{escaped_lines(sql)}</pre>'


def _rows(rows: pd.DataFrame, most: int) -> str:
    names = [escaped(str(name)) for name in rows.columns]
    cells = [[escaped(str(cell)) for cell in row] for row in rows.head(most).itertuples(index=False)]
    return table(names, cells, words=set(names)) if names else ""


def escaped_lines(text: str) -> str:
    """An escaped text that keeps its line breaks."""
    return "\n".join(escaped(line) for line in text.splitlines())
