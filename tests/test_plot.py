"""``answer.plot()``: what is drawn for which columns."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pandas as pd
import pytest

import tagframe as tf
from tagframe.answer import Answer
from tagframe.display.plot import chart_of, typed
from tagframe.errors import NothingToPlot

matplotlib = pytest.importorskip("matplotlib", reason="the plot extra is not installed")
matplotlib.use("agg")

# What a person expects of rows: the kind, and the columns of x, y, the series, and the axis on the right.
N = [f"n{at}" for at in range(40)]
CHARTS = [
    ("films by genre", {"genre": ["drama", "war"], "films": [7, 3]}, ("bar", "genre", "films")),
    ("films by year", {"year": [2019, 2020, 2021], "films": [1, 2, 3]}, ("line", "year", "films")),
    ("years as texts", {"yr_year": ["2019", "2020"], "n": [1, 2]}, ("line", "yr_year", "n")),
    ("sales by month", {"month": ["2021-01", "2021-02"], "sales": [5.5, 6.5]}, ("line", "month", "sales")),
    ("by day", {"sold_on": pd.date_range("2021-01-01", periods=3), "n": [3, 1, 2]}, ("line", "sold_on", "n")),
    ("by decade", {"decade": [1980, 1990, 2000], "hits": [4, 9, 2]}, ("line", "decade", "hits")),
    ("two lines", {"year": [1, 1, 2, 2], "sex": [*"fmfm"], "n": [3, 4, 5, 6]}, ("line", "year", "n", "sex")),
    (
        "champion by year",
        {"year": [2019, 2020, 2021], "who": ["Ann", "Bo", "Ann"], "points": [9, 8, 7]},
        ("bar", "year who", "points"),
    ),
    (
        "top films with years",
        {"title": ["Low Tide", "Salt Road"], "year": [1998, 2015], "gross": [9, 4]},
        ("bar", "title year", "gross"),
    ),
    (
        "two measures of a scale",
        {"school": [*"ab"], "math": [510, 520], "reading": [500, 530]},
        ("bar", "school", "math reading"),
    ),
    (
        "unlike measures",
        {"city": [*"ab"], "people": [9_000_000, 4_000_000], "density": [40, 90]},
        ("bar", "city", "people", "", "density"),
    ),
    (
        "unlike measures over time",
        {"year": [2019, 2020], "revenue": [1e6, 2e6], "orders": [10, 30]},
        ("line", "year", "revenue", "", "orders"),
    ),
    (
        "a rank of four things",
        {"city": [*"abcd"], "people": [90, 70, 70, 40], "place": [1, 2, 2, 4]},
        ("bar", "city", "people"),
    ),
    (
        "measures of one name have one scale",
        {"kind": [*"ab"], "min_price": [1, 2], "max_price": [90, 40]},
        ("bar", "kind", "min_price max_price"),
    ),
    ("places", {"station": [*"ab"], "lat": [48.1, 52.5], "lon": [11.5, 13.4]}, ("scatter", "lon", "lat")),
    ("two measures", {"height": [1.7, 1.8], "weight": [60, 80]}, ("scatter", "height", "weight")),
    (
        "many things of two measures",
        {"name": N, "goals": range(40), "minutes": range(40, 80)},
        ("scatter", "goals", "minutes"),
    ),
    ("one measure of many rows", {"age": [30, 31, 29, 40] * 5}, ("hist", "", "age")),
    ("one number", {"count(*)": [5]}, ("bar", "", "count(*)")),
    ("one row of numbers", {"men": [5], "women": [7]}, ("bar", "", "men women")),
    ("two categories", {"genre": [*"aabb"], "land": [*"xyxy"], "n": [1, 2, 3, 4]}, ("bar", "genre", "n", "land")),
    ("an id beside a name", {"player_id": [7, 9], "name": ["Ann", "Bo"], "goals": [3, 4]}, ("bar", "name", "goals")),
    ("an id alone", {"customer_id": [7, 9], "total": [30, 40]}, ("bar", "customer_id", "total")),
    ("a whole number by groups", {"seats": [2, 4, 5, 7], "cars": [9, 30, 3, 1]}, ("bar", "seats", "cars")),
    ("yes and no", {"is_member": [True, False], "n": [3, 4]}, ("bar", "is_member", "n")),
    ("months by number", {"month": [1, 2, 3], "rain": [80.5, 60, 44]}, ("line", "month", "rain")),
    ("a place of a thing", {"school": ["a", "b"], "city": ["x", "x"], "score": [5, 6]}, ("bar", "school", "score")),
    ("hours are measured", {"who": [*"ab"], "hours": [20, 30]}, ("bar", "who", "hours")),
    ("what is per year", {"who": [*"ab"], "income_per_year": [2000, 900]}, ("bar", "who", "income_per_year")),
    ("years alone", {"film": [*"ab"], "releaseYear": [1998, 2015]}, ("bar", "film", "releaseYear")),
    ("dates", {"d": [date(2024, 1, 1), date(2024, 2, 1)], "n": [1, 2]}, ("line", "d", "n")),
    (
        "a start and an end",
        {"name": [*"ab"], "first_year": [1990, 2000], "wins": [3, 4]},
        ("bar", "name first_year", "wins"),
    ),
]


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


@pytest.mark.parametrize(("columns", "expected"), [case[1:] for case in CHARTS], ids=[case[0] for case in CHARTS])
def test_a_chart_is_chosen_by_the_roles_of_columns(columns, expected):
    chart = chart_of(typed(pd.DataFrame(columns)))
    found = (chart.kind, " ".join(chart.x), " ".join(chart.y), chart.series, chart.right)
    assert found == (*expected, "", "")[:5]
    plotted(columns)


def test_lines_and_bars_beside_each_other_have_a_legend_with_the_name_of_the_column():
    for columns in ({"year": [1, 1, 2, 2]}, {"genre": [*"aabb"]}):
        ax = plotted({**columns, "sex": [*"fmfm"], "n_of_it": [3, 4, 5, 6]})
        assert ax.get_legend().get_title().get_text() == "sex"
        assert [text.get_text() for text in ax.get_legend().get_texts()] == ["f", "m"]
        assert ax.get_ylabel() == "n of it"
    gap = plotted({"year": [1, 1, 2, 3, 3], "who": [*"abbab"], "n": range(5)})
    assert [line.get_xdata().tolist() for line in gap.get_lines()] == [[1, 3], [1, 2, 3]]
    many = {"year": [1, 2] * 10, "who": [f"w{at // 2}" for at in range(20)], "n": range(20)}
    assert plotted(many).get_xlabel() == "year; the 8 largest of 10 who"


def test_years_are_whole_and_another_scale_has_an_axis_of_its_own():
    ax = plotted({"year": [2019, 2020], "revenue": [1e6, 2e6], "orders": [10, 30]})
    assert {label.get_text() for label in ax.get_xticklabels()} >= {"2019", "2020"}
    assert not [label for label in ax.get_xticklabels() if "." in label.get_text()]
    (other,) = [one for one in ax.figure.axes if one is not ax]
    assert (ax.get_ylabel(), other.get_ylabel()) == ("revenue", "orders (points)")
    assert list(other.get_lines()[0].get_ydata()) == [10, 30]


def test_names_alone_are_drawn_with_what_ranks_them_or_how_often_they_are_there():
    corpus = tf.open_corpus(
        {"film": pd.DataFrame({"title": ["a", "b", "c"], "gross": [3, 9, 5], "kind": ["x", "y", "x"]})}
    )

    def drawn(sql):
        ax = tf.TAG(lambda _: sql, tf.exec_sql(corpus))("Which?").plot()
        return ax.get_ylabel(), [label.get_text() for label in ax.get_xticklabels()], heights(ax)

    assert drawn("SELECT title FROM film ORDER BY gross DESC LIMIT 2") == ("gross", ["b", "c"], [9, 5])
    assert drawn("SELECT kind FROM film") == ("count", ["x", "y"], [2, 1])
    with pytest.raises(NothingToPlot):
        drawn("SELECT title FROM film")


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


def test_rows_that_are_not_drawn_are_counted():
    ax = plotted({"name": [f"n{at}" for at in range(40)], "score": [None, *range(1, 40)]})
    assert len(ax.patches) == 30
    assert ax.get_xlabel() == "name; 1 of 40 rows have no value; the first 30 of 39 rows"


def test_a_measure_that_has_no_axis_is_named():
    ax = plotted({"film": [*"ab"], "score": [7.5, 8.0], "minutes": [120, 90], "gross_in_euros": [9e7, 4e6]})
    assert ax.get_xlabel() == "film; without gross in euros"


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
