"""``answer.plot()``: the rows of an answer as bars, a line or a scatter plot, drawn by pandas with matplotlib."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pandas as pd
from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype

from tagframe.errors import NothingToPlot, counted, needing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_BARS = 30
"""More bars cannot be read: the first are drawn, and the axis says how many rows there are."""
_MAX_SERIES = 3
_LINE_LETTERS = 60
"""Characters of a line of the title, or of all labels of upright bars that stand beside each other."""
_MAX_UPRIGHT_LETTERS = 12
"""If a label is longer, the bars lie, so that it can be read."""
_MAX_LABEL_LETTERS = 40


def plot_rows(rows: pd.DataFrame, question: str, ax: Axes | None = None) -> Axes:
    """The rows drawn by the types of their columns; see :meth:`tagframe.answer.Answer.plot`."""
    with needing('a plot needs matplotlib: pip install "tagframe[plot]"'):
        import matplotlib.pyplot as plt
    names = _names(rows)
    frame = pd.DataFrame({name: _typed(rows.iloc[:, at].reset_index(drop=True)) for at, name in enumerate(names)})
    numbers = [name for name in names if is_numeric_dtype(frame[name]) and not is_bool_dtype(frame[name])]
    times = [name for name in names if is_datetime64_any_dtype(frame[name])]
    if not times and len(numbers) > 1:
        times = [name for name in numbers if _are_years(name, frame[name])][:1]
    numbers = [name for name in numbers if name not in times]
    labels = [name for name in names if name not in (*numbers, *times)]
    if frame.empty or not numbers:
        columns = ", ".join(map(repr, names)) or "no columns"
        raise NothingToPlot(
            f"nothing to plot: a plot needs rows with numbers, and the answer has {counted(len(frame), 'row')} of "
            f"{columns}; look at answer.rows"
        )
    if not labels and not times and len(numbers) > 1:
        kind, x, series = "scatter", numbers[0], numbers[1:2]
    else:
        # Times with labels beside them are many series in one column: the labels then say more.
        kind = "line" if times and not labels and len(frame) > 1 else "bar"
        x, series = next(iter([*labels, *times] if kind == "bar" else times), ""), numbers[:_MAX_SERIES]
    whole = frame.dropna(subset=[*series, *([x] if x else [])])
    drawn = whole.head(_MAX_BARS) if kind == "bar" else whole.sort_values(x)
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    ax.set_title(textwrap.fill(_plain(question), _LINE_LETTERS))
    if kind == "scatter":
        drawn.plot.scatter(x, series[0], ax=ax)
    elif kind == "line":
        drawn.set_index(x)[series].plot.line(marker="o", ax=ax, legend=len(series) > 1)
    else:
        kind = _draw_bars(drawn, x, series, ax)
    if len(series) == 1:
        (ax.set_xlabel if kind == "barh" else ax.set_ylabel)(_plain(series[0]))
    notes = [f"{len(frame) - len(whole)} of {len(frame)} rows have no value"] if len(whole) < len(frame) else []
    notes += [f"the first {len(drawn)} of {len(whole)} rows"] if len(drawn) < len(whole) else []
    ax.set_xlabel("; ".join(filter(None, [ax.get_xlabel(), *notes])))
    return ax


def _draw_bars(frame: pd.DataFrame, x: str, series: list[str], ax: Axes) -> str:
    """Draw them, upright or lying; the kind that was drawn."""
    texts = [_plain(str(label)) for label in frame[x]] if x else [""] * len(frame)
    labels = [textwrap.shorten(label, _MAX_LABEL_LETTERS, placeholder="…") for label in texts]
    bars = frame[series].set_axis(labels, axis="index")
    if max(map(len, labels), default=0) > _MAX_UPRIGHT_LETTERS:
        bars.iloc[::-1].plot.barh(ax=ax, legend=len(series) > 1)
        return "barh"
    bars.plot.bar(ax=ax, legend=len(series) > 1, rot=0 if sum(map(len, labels)) < _LINE_LETTERS else 90)
    ax.set_xlabel(_plain(x))
    return "bar"


def _names(rows: pd.DataFrame) -> list[str]:
    """The names of the columns, each once."""
    names: list[str] = []
    for name in map(str, rows.columns):
        names.append(name if name not in names else f"{name} (column {len(names) + 1})")
    return names


def _plain(text: str) -> str:
    """A text of which matplotlib reads no part as a formula."""
    return text.replace("$", r"\$")


def _typed(column: pd.Series[Any]) -> pd.Series[Any]:
    """Decimals as numbers, and ISO dates of SQLite, which has texts only, as times."""
    known = column.dropna()
    if is_numeric_dtype(column) or is_datetime64_any_dtype(column) or known.empty:
        return column
    if not any(isinstance(cell, str | bool) for cell in known):
        numbers = pd.to_numeric(column, errors="coerce")
        return numbers if numbers.notna().sum() == len(known) else column
    if all(isinstance(cell, str) and cell[:4].isdigit() and cell[4:5] == "-" for cell in known):
        times = pd.to_datetime(column, format="ISO8601", errors="coerce", utc=True).dt.tz_localize(None)
        return times if times.notna().sum() == len(known) else column
    return column


def _are_years(name: str, column: pd.Series[Any]) -> bool:
    """Whether these are years, by the name and the values."""
    known = column.dropna()
    return "year" in name.lower() and bool(((known >= 1000) & (known <= 2999) & (known % 1 == 0)).all())
