"""``answer.plot()``: the rows of an answer as a chart, chosen by the roles of their columns, drawn by pandas."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype

from tagframe.errors import NothingToPlot, counted, needing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_BARS = 30
"""More bars cannot be read: the first are drawn, and the axis says how many rows there are."""
_MAX_MEASURES, _MAX_SERIES = 3, 8
_LEAST_HISTOGRAM, _LEAST_RANKS = 10, 4
_UNLIKE = 10
"""Measures whose largest values differ by a larger factor have axes of their own."""
_LINE_LETTERS = 60
"""Characters of a line of the title, or of all labels of upright bars that stand beside each other."""
_MAX_UPRIGHT_LETTERS = 12
"""If a label is longer, the bars lie, so that it can be read."""
_MAX_LABEL_LETTERS = 40
_ID = re.compile(r"(?i:(?:.*[_ ])?(?:id|code|zip|postcode|isbn|uuid))|.*[a-z]I[dD]")
"""Names of numbers that tell things apart, and measure nothing."""
_PERIODS = {"year": (1, 2999), "decade": (1, 2999), "season": (1, 2999), "quarter": (1, 4), "month": (0, 12)}
_PERIODS |= {"week": (0, 53), "weekday": (0, 7), "day": (0, 366), "hour": (0, 24)}
"""Last words of names of whole numbers that are times, and their ranges."""
_EAST, _NORTH = (re.compile(f"(?i)(?:.*[_ ])?(?:{words})") for words in ("lon|lng|long|longitude", "lat|latitude"))
"""Names of coordinates."""
_LAST_WORD = re.compile(r"(?i)(?!.*\bper\b|.*_per_)(?:.*[^a-z])?([a-z]+)[^a-z]*")


@dataclass(frozen=True)
class Chart:
    """What is drawn.

    Attributes:
        kind: a line over times, bars of things, points of two measures, or how often a measure has which values.
        x: the columns of the horizontal axis; several are one label.
        y: measures of one scale.
        series: a column with the names of several lines, or of several bars beside each other.
        right: a measure of another scale, on an axis of its own.
    """

    kind: Literal["line", "bar", "scatter", "hist"]
    x: tuple[str, ...]
    y: tuple[str, ...]
    series: str = ""
    right: str = ""


def chart_of(frame: pd.DataFrame) -> Chart | None:
    """The chart for the roles of columns: times, measures, and labels; None if there is no measure.

    Labels that are in one row each are things, and their times say more of them; labels over repeated times are lines,
    and two that repeat are bars beside each other. Numbers that tell things apart are labels where there are no others.
    """
    names = [str(name) for name in frame]
    roles = {name: _role(name, frame[name]) for name in names}
    times, labels, measures, ids = (
        [name for name in names if roles[name] == role] for role in ("time", "label", "measure", "id")
    )
    if measures and not times and not labels and not ids and len(measures) > 1 and _are_keys(frame[measures[0]]):
        labels = [measures.pop(0)]
    labels = labels or ([] if times else ids)
    if not measures and labels and times and is_numeric_dtype(frame[times[-1]]):
        measures = [times.pop()]
    if labels or times:  # a rank says what the measure says
        measures = [name for name in measures if not any(_are_ranks(frame[name], frame[of]) for of in measures)]
    if not measures:
        return None
    place = [name for axis in (_EAST, _NORTH) for name in measures if axis.fullmatch(name)]
    if len(place) == len(measures) == 2:
        return Chart("scatter", (place[0],), (place[1],))
    like = [name for name in measures if _are_alike(frame[measures[0]], frame[name])][:_MAX_MEASURES]
    right = next((name for name in measures if name not in like), "") if len(like) == 1 else ""
    of_one = next((name for name in labels if not frame[name].duplicated().any()), "")
    are_points = not labels or (of_one and len(frame) > _MAX_BARS)
    if len(measures) > 1 and len(frame) > 1 and not times and are_points:
        return Chart("scatter", (measures[0],), (measures[1],))
    if not times and not labels:
        is_many = len(frame) >= _LEAST_HISTOGRAM and len(measures) == 1
        return Chart("hist" if is_many else "bar", (), tuple(measures))
    if times and not labels:
        return Chart("line" if len(frame) > 1 else "bar", (times[0],), tuple(like), right=right)
    if of_one or (times and not frame[times[0]].duplicated().any()):
        named = {of_one or labels[0], *times[:1]}
        return Chart("bar", tuple(name for name in names if name in named), tuple(like), right=right)
    if times and not frame.duplicated([times[0], labels[0]]).any():
        return Chart("line", (times[0],), tuple(measures[:1]), labels[0])
    if len(labels) > 1 and not frame.duplicated(labels[:2]).any():
        series = min(reversed(labels[:2]), key=lambda name: frame[name].nunique())
        if frame[series].nunique() <= _MAX_SERIES:
            x = next(name for name in labels[:2] if name != series)
            return Chart("bar", (x,), tuple(measures[:1]), series)
    return Chart("bar", tuple(name for name in names if name in (*labels, *times)), tuple(like), right=right)


def _role(name: str, column: pd.Series[Any]) -> str:
    if is_datetime64_any_dtype(column):
        return "time"
    if not is_numeric_dtype(column) or is_bool_dtype(column):
        return "label"
    known = column.dropna()
    least, most = _range_of(name)
    if bool(((known >= least) & (known <= most) & (known % 1 == 0)).all()) and least <= most:
        return "time"
    return "id" if _ID.fullmatch(name) else "measure"


def _range_of(name: str) -> tuple[int, int]:
    """The least and the largest number of a time of that name; an empty range if it is none."""
    word = _LAST_WORD.fullmatch(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))
    return _PERIODS.get(word[1].casefold() if word else "", (1, 0))


def _are_keys(column: pd.Series[Any]) -> bool:
    """Whether these are whole numbers in ascending order, each once, as GROUP BY gives them."""
    return len(column) > 2 and bool((column % 1 == 0).all()) and bool((column.diff().dropna() > 0).all())


def _are_ranks(column: pd.Series[Any], measure: pd.Series[Any]) -> bool:
    """Whether a column is the rank of another one's values, the largest first or last."""
    if len(column) < _LEAST_RANKS or bool((column == measure).all()):
        return False
    return any(
        (column == measure.rank(method=how, ascending=up)).all() for how in ("min", "dense") for up in (True, False)
    )


def _are_alike(one: pd.Series[Any], other: pd.Series[Any]) -> bool:
    """Whether two measures are of one scale: by their last words (min_price, max_price), or their largest values."""
    words = [re.split(r"[_ ]", str(column.name).casefold()) for column in (one, other)]
    if min(map(len, words)) > 1 and words[0][-1] == words[1][-1]:
        return True
    sizes = sorted(max(float(column.abs().max()), 1e-12) for column in (one, other))
    return sizes[1] <= _UNLIKE * sizes[0]


def plot_rows(rows: pd.DataFrame, question: str, ax: Axes | None = None) -> Axes:
    """The rows drawn by the roles of their columns; see :meth:`tagframe.answer.Answer.plot`."""
    with needing('a plot needs matplotlib: pip install "tagframe[plot]"'):
        import matplotlib.pyplot as plt
    names = _names(rows)
    frame = typed(rows.set_axis(names, axis="columns"))
    if (chart := chart_of(frame)) is None and names and frame[names[0]].duplicated().any():  # labels alone: how often
        frame = frame.groupby(names[0], sort=False).size().rename("count").reset_index()
        chart = chart_of(frame)
    if frame.empty or chart is None:
        columns = ", ".join(map(repr, names)) or "no columns"
        raise NothingToPlot(
            f"nothing to plot: a plot needs rows with numbers, and the answer has {counted(len(frame), 'row')} of "
            f"{columns}; look at answer.rows"
        )
    whole = frame.dropna(subset=[*chart.x, *chart.y[:1], *filter(None, [chart.series])])
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    ax.set_title(textwrap.fill(_plain(question), _LINE_LETTERS))
    notes = [f"{len(frame) - len(whole)} of {len(frame)} rows have no value"] if len(whole) < len(frame) else []
    drawn = {*chart.x, *chart.y, chart.series, chart.right}
    rest = [_name(name) for name in names if name not in drawn and _role(name, frame[name]) == "measure"]
    notes += [*_drawn(whole, chart, ax), *([f"without {', '.join(rest)}"] if rest else [])]
    ax.set_xlabel("; ".join(filter(None, [ax.get_xlabel(), *notes])))
    return ax


def _drawn(whole: pd.DataFrame, chart: Chart, ax: Axes) -> list[str]:
    """Draw a chart; what is left out, in words."""
    if chart.kind == "scatter":
        whole.plot.scatter(chart.x[0], chart.y[0], ax=ax)
        ax.set(xlabel=_name(chart.x[0]), ylabel=_name(chart.y[0]))
        return []
    if chart.kind == "hist":
        whole[chart.y[0]].plot.hist(ax=ax)
        ax.set(xlabel=_name(chart.y[0]), ylabel="rows")
        return []
    notes: list[str] = []
    if chart.series:
        wide = whole.pivot(index=chart.x[0], columns=chart.series, values=chart.y[0])
        wide = wide.reindex(index=whole[chart.x[0]].unique(), columns=whole[chart.series].unique())
        largest = wide.abs().sum().nlargest(_MAX_SERIES).index
        if len(largest) < wide.shape[1]:
            notes = [f"the {len(largest)} largest of {wide.shape[1]} {_name(chart.series)}"]
            wide = wide[[name for name in wide if name in largest]]
    elif not chart.x:
        only = whole[[*chart.y]]
        wide = only.T.set_axis(["value"], axis="columns") if len(only) == 1 and len(chart.y) > 1 else only
    else:
        labels = [_label(row) for row in whole[[*chart.x]].itertuples(index=False)]
        wide = whole[[*chart.y, *filter(None, [chart.right])]].set_axis(
            whole[chart.x[0]] if chart.kind == "line" else labels, axis="index"
        )
    wide.columns = pd.Index([_name(str(name)) for name in wide])
    if chart.kind == "line":
        wide = wide.sort_index()
    elif len(wide) > _MAX_BARS:
        notes.append(f"the first {_MAX_BARS} of {len(wide)} rows")
        wide = wide.head(_MAX_BARS)
    _draw(wide, chart, ax)
    return notes


def _draw(wide: pd.DataFrame, chart: Chart, ax: Axes) -> None:
    """Draw lines or bars, upright or lying, and a measure of another scale as points with an axis on the right."""
    from matplotlib.ticker import MaxNLocator

    left = wide.drop(columns=[_name(chart.right)]) if chart.right else wide
    title = _name(chart.series) if chart.series else None
    measure = _name(chart.y[0]) if len(chart.y) == 1 else ""
    lies = False
    if chart.kind == "line":
        for name in left:  # a line goes on where others have a time that it has not
            left[name].dropna().plot.line(marker="o", ax=ax, legend=left.shape[1] > 1)
        if is_numeric_dtype(left.index):  # years are whole
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            ax.ticklabel_format(axis="x", useOffset=False)
    else:
        texts = [textwrap.shorten(_plain(str(one)), _MAX_LABEL_LETTERS, placeholder="…") for one in left.index]
        texts = texts if chart.x or len(chart.y) > 1 else [""] * len(texts)
        lies = max(map(len, texts), default=0) > _MAX_UPRIGHT_LETTERS and not chart.right
        bars = left.set_axis(texts, axis="index")
        if lies:
            bars.iloc[::-1].plot.barh(ax=ax, legend=left.shape[1] > 1)
        else:
            rotation = 0 if sum(map(len, texts)) < _LINE_LETTERS else 90
            bars.plot.bar(ax=ax, legend=left.shape[1] > 1, rot=rotation)
    if left.shape[1] > 1 and title:
        ax.get_legend().set_title(title)  # type: ignore[union-attr]
    ax.set(xlabel="" if lies else ", ".join(map(_name, chart.x)), ylabel="")
    (ax.set_xlabel if lies else ax.set_ylabel)(measure)
    if chart.right:
        other = ax.twinx()
        places = wide.index if chart.kind == "line" else range(len(wide))
        other.plot(places, wide[_name(chart.right)], "o", color="black")
        other.set_ylabel(f"{_name(chart.right)} (points)")


def _label(cells: tuple[Any, ...]) -> str:
    plain = [f"{cell:%Y-%m-%d}" if isinstance(cell, pd.Timestamp) else cell for cell in cells]
    return ", ".join(f"{cell:.0f}" if isinstance(cell, float) and cell % 1 == 0 else str(cell) for cell in plain)


def _name(text: str) -> str:
    """A column's name as a person reads it."""
    return _plain(text.replace("_", " ").strip())


def _names(rows: pd.DataFrame) -> list[str]:
    """The names of the columns, each once."""
    names: list[str] = []
    for name in map(str, rows.columns):
        names.append(name if name not in names else f"{name} (column {len(names) + 1})")
    return names


def _plain(text: str) -> str:
    """A text of which matplotlib reads no part as a formula."""
    return text.replace("$", r"\$")


def typed(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with columns of the types that their cells have."""
    return pd.DataFrame({name: _typed(str(name), rows[name].reset_index(drop=True)) for name in rows})


def _typed(name: str, column: pd.Series[Any]) -> pd.Series[Any]:
    """Decimals as numbers; and of SQLite, which has texts only, ISO dates as times, and years as numbers."""
    known = column.dropna()
    if is_numeric_dtype(column) or is_datetime64_any_dtype(column) or known.empty:
        return column
    are_texts = all(isinstance(cell, str) for cell in known)
    if not any(isinstance(cell, str | bool) for cell in known) or (are_texts and _range_of(name)[1]):
        numbers = pd.to_numeric(column, errors="coerce")
        if numbers.notna().sum() == len(known):
            return numbers
    if all(isinstance(cell, date) for cell in known):
        return pd.to_datetime(column)
    if are_texts and all(re.match(r"\d{4}-\d", cell) for cell in known):
        times = pd.to_datetime(column, format="ISO8601", errors="coerce", utc=True).dt.tz_localize(None)
        return times if times.notna().sum() == len(known) else column
    return column
