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
    """The operator is to be run on a frame, with these arguments."""

    frame: pd.DataFrame
    args: Any
    kwargs: dict[str, Any]


Calls: TypeAlias = Generator[Call, pd.DataFrame, pd.DataFrame]


def _aggregated(frames: Iterator[pd.DataFrame], args: Any, kwargs: dict[str, Any]) -> Calls:
    """All rows, of the columns that the model is shown: it reads every one of them, so that they fit into memory."""
    parts = []
    for frame in frames:
        shown = Instruction.resolve(args[0], frame, all_cols=kwargs.get("all_cols", False)).columns
        labels = dict.fromkeys([*group_keys(kwargs.get("group_by")), *shown])
        parts.append(frame[[label for label in frame.columns if label in labels]])
    return (yield Call(_together(parts), args, kwargs))


def _best(frames: Iterator[pd.DataFrame], args: Any, kwargs: dict[str, Any]) -> Calls:
    """The best of each batch, and of those the best: whoever is among the first K of all is so in its batch."""
    if kwargs.get("on_error") == "keep":
        raise InvalidArgument(
            'of batches on_error="keep" would rank rows without an answer again; "drop" leaves them out'
        )
    parts = []
    for frame in frames:
        parts.append((yield Call(frame, args, kwargs)))
    return parts[0] if len(parts) == 1 else (yield Call(_together(parts), args, kwargs))


def _nearest(frames: Iterator[pd.DataFrame], args: Any, kwargs: dict[str, Any]) -> Calls:
    """The nearest of each batch, by the scores of all; the model is asked at the end."""
    named = dict(zip(("col_name", "query", "K", "n_rerank"), args, strict=False))
    named.update({name: kwargs.pop(name) for name in ("col_name", "query", "K", "n_rerank") if name in kwargs})
    k, rerank = named.pop("K", None), named.pop("n_rerank", None)
    if k is None:
        return (yield from _best(frames, (), {**kwargs, **named, "n_rerank": rerank}))
    shows, suffix = kwargs.pop("return_scores", False), kwargs.get("suffix", "_sim_score")
    found: list[pd.DataFrame] = []
    for frame in frames:
        found.append((yield Call(frame, (), {"K": k, "return_scores": True, **named, **kwargs})))
        every = _together(found)
        scores = every[f"vec_scores{suffix}"]
        found = [every.iloc[(-scores).argsort(kind="stable").to_numpy()[:k]]]
    nearest = _together(found)
    nearest = nearest if shows else nearest.drop(columns=f"vec_scores{suffix}")
    return nearest if rerank is None else (yield Call(nearest, (), {"n_rerank": rerank, **named, **kwargs}))


def _alike(frames: Iterator[pd.DataFrame], args: Any, kwargs: dict[str, Any]) -> Calls:
    """All rows at once: whichever two are alike."""
    return (yield Call(_together(list(frames)), args, kwargs))


WHOLE: dict[str, Callable[[Iterator[pd.DataFrame], Any, dict[str, Any]], Calls]] = {
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
