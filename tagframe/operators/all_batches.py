"""Operators that look at all rows, over batches: generators that yield calls of the operator and receive what it gives.

Who calls it, blocking or awaited, is for :mod:`tagframe.operators.batches`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd

from tagframe.errors import InvalidArgument
from tagframe.operators.groups import group_keys
from tagframe.operators.instruction import Instruction


@dataclass(frozen=True, eq=False)
class Call:
    """The operator is to be run on a frame, with these arguments and settings."""

    frame: pd.DataFrame
    given: dict[str, Any]


Calls: TypeAlias = Generator[Call, pd.DataFrame, pd.DataFrame]


def _aggregated(frames: Iterator[pd.DataFrame], given: dict[str, Any]) -> Calls:
    """All rows, of the columns that the model is shown: it reads every one of them, so that they fit into memory."""
    parts = []
    for frame in frames:
        shown = Instruction.resolve(given["instruction"], frame, all_cols=given.get("all_cols", False)).columns
        labels = {*group_keys(given.get("group_by")), *shown}
        parts.append(frame[[label for label in frame.columns if label in labels]])
    return (yield Call(_together(parts), given))


def _best(frames: Iterator[pd.DataFrame], given: dict[str, Any]) -> Calls:
    """The best of each batch, and of those the best: whoever is among the first K of all is so in its batch."""
    if given.get("on_error") == "keep":
        raise InvalidArgument(
            'of batches on_error="keep" would rank rows without an answer again; "drop" leaves them out'
        )
    parts = []
    for frame in frames:
        parts.append((yield Call(frame, given)))
    return parts[0] if len(parts) == 1 else (yield Call(_together(parts), given))


def _nearest(frames: Iterator[pd.DataFrame], given: dict[str, Any]) -> Calls:
    """The nearest of each batch, by the scores of all; the model is asked at the end."""
    k, scores = given["K"], f"vec_scores{given['suffix']}"
    if k is None:
        return (yield from _best(frames, given))
    found: list[pd.DataFrame] = []
    for frame in frames:
        found.append((yield Call(frame, {**given, "n_rerank": None, "return_scores": True})))
        every = _together(found)
        found = [every.iloc[(-every[scores]).argsort(kind="stable").to_numpy()[:k]]]
    nearest = _together(found)
    nearest = nearest if given["return_scores"] else nearest.drop(columns=scores)
    # The scores are columns of theirs by now.
    reranks = {**given, "K": None, "return_scores": False}
    return nearest if given["n_rerank"] is None else (yield Call(nearest, reranks))


def _alike(frames: Iterator[pd.DataFrame], given: dict[str, Any]) -> Calls:
    """All rows at once: whichever two are alike."""
    return (yield Call(_together(list(frames)), given))


WHOLE: dict[str, Callable[[Iterator[pd.DataFrame], dict[str, Any]], Calls]] = {
    "whole": _aggregated,
    "best": _best,
    "nearest": _nearest,
    "alike": _alike,
}
"""By what an operator looks at: how it goes over batches; others take one at a time."""


def _together(frames: list[pd.DataFrame]) -> pd.DataFrame:
    if not frames:
        raise InvalidArgument("there is no batch, so there are no columns to show to the model")
    return frames[0] if len(frames) == 1 else pd.concat(frames)
