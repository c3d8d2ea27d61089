"""Draw the pictures of the README and of ``docs/how/`` from real results: ``python tools/draw_pictures.py``.

They are SVG with text, on their own background, so that they are readable on light and dark pages.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Sequence
from html import escape
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
sys.path.insert(0, str(ROOT))

import tagframe as tf  # noqa: E402
from tagframe.display import join_graph  # noqa: E402

LETTER, LINE, PAD, GAP, MARGIN = 7.3, 18, 12, 34, 14
"""Pixels: the width of a letter in a monospaced font of 12 px, the height of a line, the padding of a box, the gap
between boxes, the margin of the picture."""
STYLE = """<style>
svg { color: #1f2328 } .ground { fill: #ffffff; stroke: #d1d9e0 }
@media (prefers-color-scheme: dark) { svg { color: #e6edf3 } .ground { fill: #151b23; stroke: #3d444d } }
</style>"""
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace"
QUESTION = "What do newspaper critics praise in films of the romance genre?"


def on_ground(width: float, height: float, title: str, inner: str) -> str:
    """A complete picture; its colours and its background follow the reader's theme."""
    w, h = width + 2 * MARGIN, height + 2 * MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{w:.0f}" height="{h:.0f}" viewBox="0 0 {w:.0f} {h:.0f}" '
        f'role="img" font-family="{FONT}" font-size="12" fill="currentColor"><title>{escape(title)}</title>{STYLE}'
        f'<rect class="ground" x=".5" y=".5" width="{w - 1:.0f}" height="{h - 1:.0f}" rx="8"/>'
        f'<g transform="translate({MARGIN} {MARGIN})">{inner}</g></svg>\n'
    )


def plan_picture(frame: pd.DataFrame, plan: tf.joins.JoinPlan) -> str:
    """A plan with the results of its merge, as in notebooks."""
    drawn = join_graph(plan, frame.tag.merge_report)
    width, height = map(float, re.search(r'viewBox="0 0 (\S+) (\S+?)"', drawn).groups())  # type: ignore[union-attr]
    inner = re.sub(r"^<svg[^>]*>|</svg>$", "", drawn.strip())
    return on_ground(width, height, "How the tables join, and what share of the rows matched", inner)


def flow(title: str, boxes: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Boxes with a heading and lines, from left to right."""
    height = PAD * 2 + LINE * (1 + max(len(lines) for _, lines in boxes)) + 4
    x, parts = 0.0, []
    for number, (heading, lines) in enumerate(boxes):
        width = 2 * PAD + LETTER * max(len(heading) * 1.05, *(len(line) for line in lines))
        if number:
            y = height / 2
            parts.append(
                f'<path d="M{x - GAP + 4:.1f} {y} H{x - 6:.1f} m-6 -5 l6 5 l-6 5" fill="none" stroke="currentColor"/>'
            )
        parts.append(
            f'<rect x="{x:.1f}" y="0" width="{width:.1f}" height="{height}" rx="5" fill="currentColor" '
            f'fill-opacity="0.05" stroke="currentColor" stroke-opacity="0.6"/>'
            f'<text x="{x + PAD:.1f}" y="{PAD + 11}" font-weight="bold">{escape(heading)}</text>'
        )
        parts += [
            f'<text x="{x + PAD:.1f}" y="{PAD + 15 + LINE * (row + 1)}">{escape(line)}</text>'
            for row, line in enumerate(lines)
        ]
        x += width + GAP
    return on_ground(x - GAP, height, title, "".join(parts))


def main() -> None:
    """Write all pictures, ignoring the user's own facts about the tables."""
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        os.environ[name] = tempfile.mkdtemp()
    tf.configure(progress=False)
    corpus = tf.open_corpus(ROOT / "examples" / "data")
    found = corpus.retrieve_tables(QUESTION)
    orders = pd.DataFrame({"order_id": [1, 2, 3, 4], "customer_id": [70, 80, 70, 99], "bread_id": [1, 1, 2, 2]})
    customers = pd.DataFrame({"id": [70, 80], "city": ["Porto", "Faro"]})
    breads = pd.DataFrame({"bread_id": [1, 2], "bread": ["rye", "maize"]})
    shop = {"orders": orders, "customers": customers, "breads": breads}
    (key,) = tf.infer_keys({"orders": orders[:3], "customers": customers})
    pictures = {
        "join": plan_picture(found.merge(), found.join_plan),
        "merging": plan_picture(tf.merge(shop, how="left"), tf.join_plan(shop)),
        "retrieval": flow(
            "From a question to a set of tables",
            [
                ("question", ["newspaper critics", "praise", "romance genre"]),
                (
                    "signals of each table",
                    ["meaning (embeddings)", "words (BM25), names", "values in cells", "links to others"],
                ),
                ("sets of tables", ["up to 5 of the best 14", "what each set covers", "how it joins"]),
                ("fewest that suffice", [f"{hit.id.split('.')[1]:9} {hit.probability:.0%}" for hit in found.tables]),
            ],
        ),
        "keys": flow(
            "From two columns to a key with a chance",
            [
                ("orders.customer_id", [str(value) for value in orders["customer_id"][:3]]),
                ("customers.id", [str(value) for value in customers["id"]]),
                ("evidence", ["all values found", "target unique", "name fits the table"]),
                (f"a key: {key.score:.0%}", ["many-to-one"]),
            ],
        ),
        "lm": flow(
            "From prompts to accepted answers",
            [
                ("operator", ["a prompt", "for each", "distinct row"]),
                ("once", ["stored already?", "in flight already?"]),
                ("allowed", ["inside the budget", "inside the rate"]),
                ("model", ["your provider", "or your server"]),
                ("accepted", ["parsed, or", "asked again"]),
                ("store", ["before work", "goes on"]),
            ],
        ),
    }
    PICTURES.mkdir(exist_ok=True)
    for name, picture in pictures.items():
        (PICTURES / f"{name}.svg").write_text(picture, "utf-8")


if __name__ == "__main__":
    main()
