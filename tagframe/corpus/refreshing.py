"""A corpus that follows its source: opened again before a use, if it is older than an interval; what has changed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

import pandas as pd

from tagframe.corpus.profile import TableProfile
from tagframe.errors import CatalogueWarning, InvalidArgument, warn
from tagframe.logs import note

if TYPE_CHECKING:
    from tagframe.corpus.corpus import Corpus

Interval = str | float | timedelta
"""Seconds, a time delta, or a text such as "30s", "5m" or "1h"."""


class Refreshing:
    """The newest corpus of a source. Safe to use from several threads.

    Args:
        corpus: the first one.
        seconds: how old it may become.
        are_alike: whether two corpora have the same tables, of the same state.
    """

    def __init__(self, corpus: Corpus, seconds: float, are_alike: Callable[[Corpus, Corpus], bool]) -> None:
        self._corpus, self._seconds, self._are_alike = corpus, seconds, are_alike
        self._due = time.monotonic() + seconds
        self._opening = threading.Lock()

    def corpus(self) -> Corpus:
        """The newest one. If it is due, this call opens the source again; other threads get the last one meanwhile."""
        if time.monotonic() >= self._due and self._opening.acquire(blocking=False):
            try:
                self._corpus = self._renewed(self._corpus)
            finally:
                self._due = time.monotonic() + self._seconds
                self._opening.release()
        return self._corpus

    def _renewed(self, corpus: Corpus) -> Corpus:
        try:
            now = corpus.refresh()
        except Exception as error:  # whatever it is, the tables that are known still serve
            warn(f"the corpus stays as it was, because its source cannot be opened again: {error}", CatalogueWarning)
            return corpus
        if self._are_alike(now, corpus):
            return corpus  # with the indexes made of it
        note("corpus", logging.INFO, f"the source has changed: {'; '.join(now.changes) or 'its files'}")
        return now


def seconds_of(interval: Interval) -> float:
    """The seconds of an interval.

    Raises:
        InvalidArgument: it is none, or not positive.

    >>> seconds_of("5m"), seconds_of(2.5), seconds_of("90")
    (300.0, 2.5, 90.0)
    """
    try:
        if isinstance(interval, bool):
            raise TypeError
        seconds = pd.Timedelta(interval).total_seconds() if isinstance(interval, timedelta) else float(interval)
    except (TypeError, ValueError):
        try:
            seconds = pd.Timedelta(str(interval)).total_seconds()
        except ValueError:
            seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InvalidArgument(f'refresh must be a time such as "30s", "5m" or "1h", or seconds; got {interval!r}')
    return seconds


def changes(before: Mapping[str, TableProfile], now: Mapping[str, TableProfile]) -> tuple[str, ...]:
    """A sentence for each table that is new, gone or different, sorted by its id."""
    sentences = []
    for id in sorted({*before, *now}):
        if id not in now:
            sentences.append(f"{id} is gone")
        elif id not in before:
            sentences.append(f"{id} is new")
        elif parts := _differences(before[id], now[id]):
            sentences.append(f"{id}: {'; '.join(parts)}")
    return tuple(sentences)


def _differences(before: TableProfile, now: TableProfile) -> list[str]:
    old = {column.name: column for column in before.columns}
    new = {column.name: column for column in now.columns}
    parts = [f"new column {name}" for name in new if name not in old]
    parts += [f"column {name} is gone" for name in old if name not in new]
    for name in (name for name in new if name in old):
        was, is_now = ((one.declared_type or one.family) for one in (old[name], new[name]))
        if was != is_now:
            parts.append(f"column {name} is {is_now}, it was {was}")
    if before.rows != now.rows:
        parts.append(f"{_rows(now)}, it had {_rows(before)}")
    for what in ("primary_key", "foreign_keys"):
        if getattr(before, what) != getattr(now, what):
            parts.append(f"another {what.replace('_', ' ').removesuffix('s')}")
    return parts or (["other cells"] if before != now else [])


def _rows(profile: TableProfile) -> str:
    return "rows that are not counted" if profile.rows is None else f"{profile.rows:,} rows"
