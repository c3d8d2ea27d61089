"""Published figures, for comparison with ours: those of ``published.toml``, and both in one table."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

PUBLISHED: Mapping[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
"""The figures of other methods; the file says whose they are."""


def text_table(title: str, columns: Sequence[str], rows: Mapping[str, Sequence[str]]) -> str:
    """A table of texts, right-aligned, with the title over the names of its rows."""
    frame = pd.DataFrame([*rows.values()], index=[*rows], columns=[*columns])
    return str(frame.rename_axis(columns=title).to_string())


def figure_text(figure: float | None, form: str = ".1f") -> str:
    """A figure, or ``-`` if there is none."""
    return "-" if figure is None else format(figure, form)


def beside(dataset: str, method: str, ours: Mapping[str, Mapping[str, float]], questions: int) -> str:
    """Our figures of retrieval and the published ones as text tables, each line with its number of questions.

    Args:
        dataset: whose published figures are shown.
        method: our method.
        ours: P, R, F1 and CR in percent, by K.
        questions: that ours are a mean over.
    """
    tables = []
    for kind, measures in (("recall", ("R", "CR")), ("precision", ("P", "R", "F1"))):
        published = PUBLISHED[kind].get(dataset, {"questions": 0, "by_k": {}})
        mine = {size: [of_size[name] for name in measures] for size, of_size in ours.items()}
        rows = {f"tagframe {method}": [f"{questions:,}", *_cells(mine, ours)]}
        for name, by_k in published["by_k"].items():
            rows[name] = [f"{published['questions']:,}", *_cells(by_k, ours)]
        if len(rows) > 1 or kind == "recall":
            columns = ["questions", *(f"K={size}" for size in sorted(ours, key=int))]
            tables.append(text_table(f"{dataset} ({'/'.join(measures)} %)", columns, rows))
    return "\n".join(tables)


def _cells(by_k: Mapping[str, Sequence[float]], sizes: Mapping[str, Any]) -> list[str]:
    return ["/".join(map(figure_text, by_k[size])) if size in by_k else "-" for size in sorted(sizes, key=int)]
