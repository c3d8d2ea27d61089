"""How results are shown: HTML with inline SVG in a notebook, text in a terminal.

No script, no network, no fixed colours: lines and text have the colour of the page's text, so they are readable on
light and dark themes. The functions are called with results and import none of their classes.
"""

from tagframe.display.join_graph import join_graph
from tagframe.display.markup import Displayable, Public, fitted, rows_html
from tagframe.display.notebook import answer_html, outcomes_html, plan_html, report_html, retrieved_html
from tagframe.display.plot import plot_rows
from tagframe.display.terminal import alternative_lines, answer_text, join_tree, plan_text, retrieved_text

__all__ = [
    "Displayable",
    "Public",
    "alternative_lines",
    "answer_html",
    "answer_text",
    "fitted",
    "join_graph",
    "join_tree",
    "outcomes_html",
    "plan_html",
    "plan_text",
    "plot_rows",
    "report_html",
    "retrieved_html",
    "retrieved_text",
    "rows_html",
]
