"""``answer.plot()``: what is drawn for which columns."""

from __future__ import annotations

from decimal import Decimal

import pandas as pd
import pytest

from tagframe.answer import Answer
from tagframe.errors import NothingToPlot

matplotlib = pytest.importorskip("matplotlib", reason="the plot extra is not installed")
matplotlib.use("agg")


def plotted(columns, question="How many?"):
    rows = columns if isinstance(columns, pd.DataFrame) else pd.DataFrame(columns)
    ax = Answer(question, "", [], None, rows).plot()
    ax.figure.canvas.draw()
    return ax


@pytest.fixture(autouse=True)
def close_figures():
    yield
    matplotlib.pyplot.close("all")


def widths(ax):
    return [patch.get_width() for patch in ax.patches]


def heights(ax):
    return [patch.get_height() for patch in ax.patches]


def test_labels_and_numbers_are_bars_under_the_question():
    ax = plotted({"genre": ["drama", "comedy"], "films": [7, 3]}, "How many films has each genre?")
    assert heights(ax) == [7, 3]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["drama", "comedy"]
    assert (ax.get_title(), ax.get_ylabel()) == ("How many films has each genre?", "films")


def test_long_labels_lie_with_the_first_row_on_top():
    ax = plotted({"school": ["Preuss School UCSD", "Lowell High"], "score": [711, 699]})
    assert widths(ax) == [699, 711]


@pytest.mark.parametrize(
    "columns",
    [
        {"year": [2021, 2019, 2020], "films": [3, 1, 2]},
        {"month": ["2021-03-01", "2021-01-01", "2021-02-01"], "films": [3, 1, 2]},
        {
            "at": pd.to_datetime(["2021-03-01", "2021-01-01", "2021-02-01"]),
            "films": [Decimal(3), Decimal(1), Decimal(2)],
        },
    ],
)
def test_times_are_a_line_in_their_order(columns):
    (line,) = plotted(columns).get_lines()
    assert list(line.get_ydata()) == [1, 2, 3]


def test_two_columns_of_numbers_are_a_scatter_plot():
    ax = plotted({"height": [1.7, 1.8], "weight": [60, 80]})
    assert ax.collections[0].get_offsets().tolist() == [[1.7, 60], [1.8, 80]]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("height", "weight")


def test_several_columns_of_numbers_stand_beside_each_other():
    ax = plotted({"school": ["a", "b"], "math": [1, 2], "reading": [3, 4]})
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["math", "reading"]


def test_one_number_is_one_bar():
    assert heights(plotted({"count(*)": [5]})) == [5]


def test_rows_that_are_not_drawn_are_counted():
    ax = plotted({"name": [f"n{at}" for at in range(40)], "score": [None, *range(1, 40)]})
    assert len(ax.patches) == 30
    assert ax.get_xlabel() == "name; 1 of 40 rows have no value; the first 30 of 39 rows"


def test_odd_names_and_texts_are_drawn_as_they_are():
    rows = pd.DataFrame([["$a_{b$ \\frac", 1, 2], [None, 3, 4]], columns=["x", "n", "n"], index=[7, 7])
    ax = plotted(rows, "What does $x^{ cost, {braces} and all?")
    assert "braces" in ax.get_title()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["n", "n (column 3)"]
    assert ax.get_xlabel().endswith("1 of 2 rows have no value")


@pytest.mark.parametrize(
    "rows",
    [
        pd.DataFrame(),
        pd.DataFrame({"n": pd.Series(dtype="int64")}),
        pd.DataFrame({"name": ["Ann"], "is_old": [True]}),
        pd.DataFrame({"name": ["007", None]}),
    ],
)
def test_nothing_to_plot_is_said(rows):
    with pytest.raises(NothingToPlot, match="a plot needs rows with numbers"):
        plotted(rows)


def test_it_is_drawn_on_axes_of_ones_own():
    _, axes = matplotlib.pyplot.subplots()
    assert Answer("?", "", [], None, pd.DataFrame({"a": ["x"], "b": [1]})).plot(axes) is axes
